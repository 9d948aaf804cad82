//! What a server sends while a request runs: progress, log lines, and requests of its own.
//!
//! It goes to the caller of that request and never to the log of the daemon.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::JsonText;
use crate::protocols::json_rpc::{METHOD_NOT_FOUND, RpcError};
use crate::protocols::{CallIo, CallLog, CallProgress, InputReply, InputWanted};

/// The method of a question to the user.
pub(super) const ELICITATION: &str = "elicitation/create";

/// A message for the caller of a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Note {
    Progress(CallProgress),
    Log(CallLog),
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
                let id = sent.progress_token.and_then(|token| token.get().parse().ok())?;
                let progress = CallProgress { done: sent.progress, total: sent.total, message: sent.message };
                Some((Some(id), Self::Progress(progress)))
            }
            "notifications/message" => {
                let sent: LogMessage<'_> = serde_json::from_str(params).ok()?;
                let text = sent.data.map(|data| plain_text(data.get())).unwrap_or_default();
                Some((None, Self::Log(CallLog { level: sent.level, text })))
            }
            _ => None,
        }
    }

    /// Gives it to the caller.
    pub(super) fn give(self, io: &mut dyn CallIo) {
        match self {
            Self::Progress(progress) => io.progress(progress),
            Self::Log(line) => io.log(line),
        }
    }
}

/// A JSON text as people read it: a string without its quotes.
fn plain_text(json: &str) -> String {
    serde_json::from_str::<String>(json).unwrap_or_else(|_| json.to_owned())
}

/// The parameters of a question to the user.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicitation<'a> {
    #[serde(default)]
    message: String,
    mode: Option<String>,
    #[serde(borrow)]
    requested_schema: Option<&'a RawValue>,
}

/// Answers a request of the server that came while a request of a caller runs: the text of the
/// result, or the error.
pub(super) async fn answer(method: &str, params: Option<&JsonText>, io: &mut dyn CallIo) -> Result<String, RpcError> {
    match method {
        "ping" => Ok("{}".to_owned()),
        ELICITATION => Ok(elicit(params, io).await),
        other => Err(unknown_method(other)),
    }
}

/// The answer to a method that a client need not know.
pub(super) fn unknown_method(method: &str) -> RpcError {
    let message = format!("callsheet does not answer {}", method.escape_debug());
    RpcError { code: METHOD_NOT_FOUND, message, data: None }
}

/// Asks the caller, and writes the answer as the protocol has it. A caller that cannot be asked
/// declines.
pub(super) async fn elicit(params: Option<&JsonText>, io: &mut dyn CallIo) -> String {
    let declined = r#"{"action":"decline"}"#.to_owned();
    let Some(sent) = params.and_then(|params| serde_json::from_str::<Elicitation<'_>>(params.get()).ok()) else {
        return declined;
    };
    // Other modes send the user to an address, which was not offered.
    if sent.mode.is_some_and(|mode| mode != "form") {
        return declined;
    }
    let schema = sent.requested_schema.map(|schema| JsonText::known(schema.get()));
    match io.input(&InputWanted { message: sent.message, schema }).await {
        Ok(InputReply::Given(content)) => format!(r#"{{"action":"accept","content":{}}}"#, content.get()),
        Ok(InputReply::Declined) | Err(_) => declined,
    }
}
