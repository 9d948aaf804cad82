//! What a caller is sent while a request runs: progress and log messages of the server, and that a
//! question of the server was declined here.
//!
//! It goes to the caller of that request and never to the log of the daemon.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::JsonText;
use crate::protocols::{CallIo, CallLog, CallProgress, DeclinedInput, LogLevel};

/// A message for the caller of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    Progress(CallProgress),
    Log(CallLog),
    /// A question of the server was declined here.
    Declined(DeclinedInput),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProgressParams<'a> {
    #[serde(borrow)]
    progress_token: Option<&'a RawValue>,
    progress: f64,
    total: Option<f64>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct LogMessage<'a> {
    level: String,
    logger: Option<String>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl Note {
    /// The note that a notification is, with the id of the request that it names by its progress
    /// token. `None` if it is neither progress nor a log line.
    pub(super) fn parse(method: &str, params: Option<&JsonText>) -> Option<(Option<u64>, Self)> {
        let params = params?.get();
        match method {
            "notifications/progress" => {
                let sent: ProgressParams<'_> = serde_json::from_str(params).ok()?;
                let id = sent
                    .progress_token
                    .and_then(|token| token.get().parse().ok())?;
                let progress = CallProgress {
                    done: sent.progress,
                    total: sent.total,
                    message: sent.message,
                };
                Some((Some(id), Self::Progress(progress)))
            }
            "notifications/message" => {
                let sent: LogMessage<'_> = serde_json::from_str(params).ok()?;
                // A level of another name is taken for the usual one.
                let level = LogLevel::parse(&sent.level).unwrap_or(LogLevel::Info);
                let data = JsonText::known(sent.data.map_or("null", RawValue::get));
                Some((
                    None,
                    Self::Log(CallLog {
                        level,
                        logger: sent.logger,
                        data,
                    }),
                ))
            }
            _ => None,
        }
    }

    /// Gives it to the caller.
    pub(super) fn give(self, io: &dyn CallIo) {
        match self {
            Self::Progress(progress) => io.progress(progress),
            Self::Log(line) => io.log(line),
            Self::Declined(why) => io.declined(why),
        }
    }
}
