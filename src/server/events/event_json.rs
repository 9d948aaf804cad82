//! The JSON of events: each message, and its frame in a stream of server-sent events or over a
//! WebSocket.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::catalog::ToolChange;
use crate::events::{CatalogChange, Event, FindingChange, Message, Overview};
use crate::model::{PublishedName, ScenarioName, ScenarioState, StateTransition};
use crate::server::api::call_event_json::{self, CallEventJson};
use crate::server::api::call_json;
use crate::server::api::shared_json;
use crate::server::api::shared_json::Time;

/// A message as a text of its own.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Event")]
pub(in crate::server) struct EventJson<'a> {
    /// The position after it, `EPOCH.SEQ`: send it as `cursor` to continue from here.
    id: String,
    /// What kind it is: `snapshot`, `catalog`, `scenario`, `finding`, `approval`, `operation` or
    /// `call`.
    event: &'static str,
    data: EventData<'a>,
}

/// One event of a stream of server-sent events, once its lines are put together.
#[derive(JsonSchema)]
#[schemars(rename = "StreamedEvent")]
pub(in crate::server) struct SseEventJson {
    /// The position after it, `EPOCH.SEQ`; a client that reconnects sends it as `Last-Event-ID`.
    /// Only the event `end` has none.
    #[schemars(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// What kind it is: `snapshot`, `catalog`, `scenario`, `finding`, `approval`, `operation`,
    /// `call`, or `end`, which says why the stream ends.
    event: &'static str,
    /// JSON.
    #[schemars(schema_with = "streamed_data")]
    data: String,
}

impl SseEventJson {
    /// The lines of the event. The JSON has no line ends, so the data is one line.
    fn into_bytes(self) -> Bytes {
        let id = self.id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        format!("{id}event: {}\ndata: {}\n\n", self.event, self.data).into()
    }
}

fn streamed_data(generator: &mut SchemaGenerator) -> Schema {
    let data = generator.subschema_for::<EventData<'_>>();
    json_schema!({"type": "string", "contentMediaType": "application/json", "contentSchema": data})
}

/// What a message says, by its kind.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "EventData")]
enum EventData<'a> {
    Snapshot(SnapshotJson<'a>),
    Catalog(CatalogChangeJson<'a>),
    Scenario(TransitionJson<'a>),
    Finding(FindingChangeJson<'a>),
    Approval(call_json::ApprovalEvent<'a>),
    Operation(call_json::OperationEvent<'a>),
    Call(CallEventJson<'a>),
}

/// The present state: the first message of a stream.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventSnapshot")]
struct SnapshotJson<'a> {
    revision: String,
    generated_at: Time,
    /// The published names of the client's list.
    names: Vec<&'a str>,
    scenarios: Vec<StandingJson<'a>>,
    /// How many findings are open.
    findings: usize,
}

/// The state of a scenario.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventStanding")]
struct StandingJson<'a> {
    name: &'a str,
    #[schemars(schema_with = "shared_json::states")]
    state: &'static str,
    reason: &'a str,
    since: Time,
    restarts: u32,
}

/// The changes of the client's list, by published names.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventCatalog")]
struct CatalogChangeJson<'a> {
    revision: String,
    generated_at: Time,
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
    changed: Vec<&'a str>,
    /// The reason for each, by its name.
    reasons: BTreeMap<&'a str, &'a str>,
    /// The version of the definition of each tool that was added or changed, whole, by its name.
    definition_versions: BTreeMap<&'a str, String>,
    /// The scenarios of which only something else changed.
    scenarios: Vec<&'a str>,
}

/// One change of a scenario's state.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventScenario")]
struct TransitionJson<'a> {
    name: &'a str,
    /// `null` for a new scenario.
    from: Option<&'static str>,
    /// `null` for one that is not known any more.
    to: Option<&'static str>,
    reason: &'a str,
    at: Time,
    restarts: u32,
    failures_in_a_row: u32,
}

/// A finding that came or went.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EventFinding")]
struct FindingChangeJson<'a> {
    /// `added` or `removed`.
    change: &'static str,
    finding: shared_json::FindingJson<'a>,
}

/// A message as a server-sent event.
pub(in crate::server) fn event(message: &Message) -> Bytes {
    let data = text(&data(&message.event));
    SseEventJson {
        id: Some(message.id.to_string()),
        event: message.event.name(),
        data,
    }
    .into_bytes()
}

/// A message as the text of a WebSocket frame.
pub(in crate::server) fn frame(message: &Message) -> Bytes {
    let frame = EventJson {
        id: message.id.to_string(),
        event: message.event.name(),
        data: data(&message.event),
    };
    text(&frame).into()
}

/// The last event of a stream, which says why it ends. It has no id, because no stream can resume
/// after it.
pub(in crate::server) fn end(reason: &str) -> Bytes {
    SseEventJson {
        id: None,
        event: "end",
        data: text(&BTreeMap::from([("reason", reason)])),
    }
    .into_bytes()
}

/// Strings, numbers and maps of strings can always be written.
fn text(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

/// The content of a message.
fn data(event: &Event) -> EventData<'_> {
    match event {
        Event::Snapshot(all) => EventData::Snapshot(snapshot(all)),
        Event::Catalog(change) => EventData::Catalog(catalog(change)),
        Event::Scenario(turn) => EventData::Scenario(scenario(turn)),
        Event::Finding(FindingChange::Added(finding)) => EventData::Finding(FindingChangeJson {
            change: "added",
            finding: shared_json::finding(finding),
        }),
        Event::Finding(FindingChange::Removed(finding)) => EventData::Finding(FindingChangeJson {
            change: "removed",
            finding: shared_json::finding(finding),
        }),
        Event::Approval(request) => EventData::Approval(call_json::approval_event(request)),
        Event::Operation(operation) => EventData::Operation(call_json::operation_event(operation)),
        Event::Call(event) => EventData::Call(call_event_json::call_event(event)),
    }
}

fn snapshot(all: &Overview) -> SnapshotJson<'_> {
    let standing = all.scenarios.iter().map(|health| StandingJson {
        name: health.name.as_str(),
        state: health.state.as_str(),
        reason: &health.reason,
        since: Time(health.since),
        restarts: health.restarts,
    });
    SnapshotJson {
        revision: all.revision.to_string(),
        generated_at: Time(all.generated_at),
        names: all.names.iter().map(PublishedName::as_str).collect(),
        scenarios: standing.collect(),
        findings: all.findings,
    }
}

fn catalog(change: &CatalogChange) -> CatalogChangeJson<'_> {
    let found = &change.difference;
    let all = [&found.added, &found.removed, &found.changed]
        .into_iter()
        .flatten();
    CatalogChangeJson {
        revision: change.revision.to_string(),
        generated_at: Time(change.generated_at),
        added: names(&found.added),
        removed: names(&found.removed),
        changed: names(&found.changed),
        definition_versions: [&found.added, &found.changed]
            .into_iter()
            .flatten()
            .map(version)
            .collect(),
        reasons: all
            .map(|named| (named.name.as_str(), named.reason.as_str()))
            .collect(),
        scenarios: found.scenarios.iter().map(ScenarioName::as_str).collect(),
    }
}

fn version(named: &ToolChange) -> (&str, String) {
    (named.name.as_str(), named.version.to_string())
}

fn names(named: &[ToolChange]) -> Vec<&str> {
    named.iter().map(|named| named.name.as_str()).collect()
}

fn scenario(turn: &StateTransition) -> TransitionJson<'_> {
    TransitionJson {
        name: turn.name.as_str(),
        from: turn.from.map(ScenarioState::as_str),
        to: turn.to.map(ScenarioState::as_str),
        reason: &turn.reason,
        at: Time(turn.at),
        restarts: turn.restarts,
        failures_in_a_row: turn.failures_in_a_row,
    }
}
