//! The client of a call, as far as it takes part while the call runs.
//!
//! What the tool sends becomes events, which the answer to the client's request carries. A request
//! for input goes to a legacy client as a request of the daemon, on the stream of its call or else
//! on that of a GET. A modern client gets it as the answer, and sends its call again with the
//! input.

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::mpsc;

use crate::calls::active::PendingInput;
use crate::json::rpc;
use crate::model::JsonText;
use crate::protocols::{
    CallIo, CallLog, CallProgress, CallerOffers, Cancelled, InputWanted, LogLevel, TraceContext,
};
use crate::runtime::{Clock, Stop};
use crate::server::mcp::answer::event;
use crate::server::mcp::context::McpClient;

/// Something that happens while a call runs.
pub(super) enum CallerEvent {
    Progress(CallProgress),
    Log(CallLog),
    /// A request of the daemon to a legacy client, as an event of a stream.
    Request(Bytes),
    /// Input that a modern client has to give.
    Input(PendingInput),
}

/// See the module.
pub(super) struct McpCaller {
    pub(super) client: McpClient,
    /// The trace that the call belongs to.
    pub(super) trace: Option<TraceContext>,
    /// Whether the answer may be a stream, which carries requests of the daemon.
    pub(super) has_stream: bool,
    pub(super) events: mpsc::Sender<CallerEvent>,
    pub(super) cancelled: Stop,
    pub(super) clock: Clock,
    /// How long input may take.
    pub(super) input_timeout: Duration,
}

impl McpCaller {
    /// Requests input, whatever the scenario may request. `None` if the client gives none.
    pub(super) async fn request(&self, wanted: &InputWanted) -> Option<JsonText> {
        let waiting = async {
            match &self.client {
                McpClient::Modern(_) => {
                    let expires_at = self.clock.wall_at(self.clock.now() + self.input_timeout);
                    let (pending, given) = PendingInput::new(wanted.clone(), expires_at);
                    self.events.send(CallerEvent::Input(pending)).await.ok()?;
                    given.await.ok()
                }
                McpClient::Legacy(session) => {
                    let awaited = session.expect_reply();
                    let method = wanted.method.to_string();
                    let message = rpc::request(awaited.id, &method, wanted.params.get());
                    let message = event(message.as_bytes());
                    let on_call = self.has_stream
                        && self
                            .events
                            .send(CallerEvent::Request(message.clone()))
                            .await
                            .is_ok();
                    if !on_call && !session.send_on_stream(&message) {
                        return None;
                    }
                    awaited.reply().await?.ok()
                }
            }
        };
        tokio::select! {
            replied = waiting => replied,
            () = self.cancelled.wait() => None,
            () = self.clock.sleep(self.input_timeout) => None,
        }
    }
}

impl CallIo for McpCaller {
    fn offers(&self) -> CallerOffers {
        let log_level = match &self.client {
            McpClient::Modern(client) => client.log_level,
            // The protocol leaves it to the server as long as the client set none.
            McpClient::Legacy(session) => Some(session.log_level().unwrap_or(LogLevel::Info)),
        };
        let can = self.client.capabilities();
        CallerOffers {
            elicitation_form: can.shows_forms(),
            elicitation_url: can.opens_urls(),
            sampling: can.samples(),
            roots: can.has_roots(),
            log_level,
            resumes: self.client.is_modern(),
        }
    }

    fn trace(&self) -> Option<&TraceContext> {
        self.trace.as_ref()
    }

    fn progress(&self, progress: CallProgress) {
        // A client that does not keep up misses some.
        let _ = self.events.try_send(CallerEvent::Progress(progress));
    }

    fn log(&self, line: CallLog) {
        let _ = self.events.try_send(CallerEvent::Log(line));
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        Box::pin(self.request(wanted))
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        let cancelled = self.cancelled.clone();
        Box::pin(async move {
            cancelled.wait().await;
            Cancelled::ByCaller
        })
    }
}

/// A log message as a notification.
pub(super) fn log_notification(line: &CallLog) -> String {
    let logger = line
        .logger
        .as_ref()
        .map(|logger| format!(r#","logger":{}"#, json!(logger)))
        .unwrap_or_default();
    let level = line.level.as_str();
    let data = line.data.get();
    let params = format!(r#"{{"level":"{level}"{logger},"data":{data}}}"#);
    rpc::notification("notifications/message", Some(&params))
}

/// Progress as a notification with the client's own token.
pub(super) fn progress_notification(progress: &CallProgress, token: &str) -> String {
    let number = |value: f64| json!(value).to_string().trim_end_matches(".0").to_owned();
    let total = progress
        .total
        .map(|total| format!(r#","total":{}"#, number(total)))
        .unwrap_or_default();
    let message = progress
        .message
        .as_ref()
        .map(|text| format!(r#","message":{}"#, json!(text)))
        .unwrap_or_default();
    let done = number(progress.done);
    let params = format!(r#"{{"progressToken":{token},"progress":{done}{total}{message}}}"#);
    rpc::notification("notifications/progress", Some(&params))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JsonText;
    use crate::protocols::InputMethod;
    use crate::runtime::StopTrigger;
    use crate::server::mcp::capabilities::ClientCapabilities;
    use crate::server::mcp::era::ModernClient;
    use crate::server::mcp::sessions::LiveSession;

    #[test]
    fn notifications_are_those_of_the_protocol() {
        let progress = CallProgress {
            done: 50.0,
            total: Some(100.5),
            message: Some("half".into()),
        };
        assert!(
            progress_notification(&progress, "\"p1\"").ends_with(
                r#"{"progressToken":"p1","progress":50,"total":100.5,"message":"half"}}"#
            )
        );
        let line = CallLog::new(LogLevel::Warning, "careful");
        assert!(
            log_notification(&line).ends_with(r#""params":{"level":"warning","data":"careful"}}"#)
        );
    }

    fn question() -> InputWanted {
        InputWanted {
            method: InputMethod::Elicitation,
            params: JsonText::parse(r#"{"message":"Name?"}"#).unwrap(),
        }
    }

    /// A client that shows a form for ever must not keep its call for ever.
    #[tokio::test(start_paused = true)]
    async fn input_is_awaited_for_a_limited_time_from_a_client_of_either_era() {
        let clock = Clock::system();
        let limit = Duration::from_secs(60);
        let modern = ModernClient {
            capabilities: ClientCapabilities::default(),
            log_level: None,
            name: None,
        };
        for client in [
            McpClient::Modern(modern),
            McpClient::Legacy(LiveSession::for_tests()),
        ] {
            let (sender, mut events) = mpsc::channel(1);
            let (_trigger, cancelled) = StopTrigger::new();
            let caller = McpCaller {
                client,
                trace: None,
                has_stream: true,
                events: sender,
                cancelled,
                clock,
                input_timeout: limit,
            };
            let began = clock.now();
            let wanted = question();
            let refused = tokio::time::timeout(2 * limit, caller.request(&wanted))
                .await
                .expect("an end");
            assert_eq!(refused, None);
            assert_eq!(clock.now() - began, limit);
            assert!(
                events.recv().await.is_some(),
                "the client was sent the question"
            );
        }
    }
}
