//! JSON shapes of calls under way: their events, and the input that they wait for.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::calls::active::PendingInput;
use crate::model::{CallEvent, CallEventKind};
use crate::server::api::shared_json::Time;

/// Something that happened in a call.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "EventCall")]
pub(in crate::server) struct CallEventJson<'a> {
    call_id: &'a str,
    /// The name that the caller used.
    tool_name: &'a str,
    at: Time,
    /// `progress`, `log`, `input-needed` or `input-over`.
    what: &'static str,
    /// How much is done; it grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<f64>,
    /// The amount that is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<f64>,
    /// The message of progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// How severe a log message is: `debug` to `emergency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<&'static str>,
    /// The part of the scenario that wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    logger: Option<&'a str>,
    /// The log message: a text or any other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    /// The input that is needed, or not any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    interaction_id: Option<&'a str>,
}

/// A call under way, or one whose answer is kept.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ActiveCall")]
pub(in crate::server) struct ActiveCallJson<'a> {
    pub(super) call_id: &'a str,
    /// The name that the caller used.
    pub(super) tool_name: &'a str,
    /// `running`, `waiting_for_input` or `cancelling`.
    pub(super) status: &'static str,
    /// The input that it waits for.
    pub(super) interaction: Option<InteractionJson<'a>>,
}

/// Input that a tool waits for.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Interaction")]
pub(in crate::server) struct InteractionJson<'a> {
    /// `POST /api/v1/interactions/{id}` gives the input.
    id: &'a str,
    /// For the user, in the words of the tool.
    message: String,
    /// The JSON Schema of the content, if the tool gives one.
    schema: Option<Value>,
    /// Until when it can be given; then it is declined.
    expires_at: Time,
}

/// The JSON of an event.
pub(in crate::server) fn call_event(event: &CallEvent) -> CallEventJson<'_> {
    let mut json = CallEventJson {
        call_id: &event.call_id,
        tool_name: &event.tool_name,
        at: Time(event.at),
        what: "progress",
        progress: None,
        total: None,
        message: None,
        level: None,
        logger: None,
        data: None,
        interaction_id: None,
    };
    match &event.what {
        CallEventKind::Progress {
            done,
            total,
            message,
        } => {
            (json.progress, json.total, json.message) = (Some(*done), *total, message.as_deref());
        }
        CallEventKind::Log {
            level,
            logger,
            data,
        } => {
            json.what = "log";
            (json.level, json.logger) = (Some(*level), logger.as_deref());
            json.data = serde_json::from_str(data.get()).ok();
        }
        CallEventKind::InputNeeded(id) => {
            (json.what, json.interaction_id) = ("input-needed", Some(&**id));
        }
        CallEventKind::InputOver(id) => {
            (json.what, json.interaction_id) = ("input-over", Some(&**id));
        }
    }
    json
}

/// The JSON of input that a tool waits for.
pub(in crate::server) fn interaction(input: &PendingInput) -> InteractionJson<'_> {
    InteractionJson {
        id: &input.id,
        message: input.wanted.message(),
        schema: input
            .wanted
            .schema()
            .and_then(|schema| serde_json::from_str(schema.get()).ok()),
        expires_at: Time(input.expires_at),
    }
}
