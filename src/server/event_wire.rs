//! Events as they are written: the JSON of each message, and its frame in a stream of server-sent events or over a WebSocket.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{call_wire, wire};
use crate::catalog::Named;
use crate::events::{CatalogChange, Event, FindingChange, Message, Overview};
use crate::model::{PublishedName, ScenarioName, ScenarioState, Turn};

/// A message as a server-sent event. JSON texts have no line ends, so its data is one line.
pub(super) fn event(message: &Message) -> Bytes {
    let (name, data) = (message.event.name(), data(&message.event));
    format!("id: {}\nevent: {name}\ndata: {data}\n\n", message.id).into()
}

/// A message as a text of its own: `{"id", "event", "data"}`.
pub(super) fn frame(message: &Message) -> Bytes {
    let frame = json!({
        "id": message.id.to_string(),
        "event": message.event.name(),
        "data": data(&message.event),
    });
    frame.to_string().into()
}

/// The last event of a stream, which says why it ends. It has no id: it is no place to resume from.
pub(super) fn end(reason: &str) -> Bytes {
    format!("event: end\ndata: {}\n\n", json!({"reason": reason})).into()
}

/// What a message says.
fn data(event: &Event) -> Value {
    match event {
        Event::Snapshot(all) => snapshot(all),
        Event::Catalog(change) => catalog(change),
        Event::Scenario(turn) => scenario(turn),
        Event::Finding(FindingChange::Added(finding)) => json!({"change": "added", "finding": wire::finding(finding)}),
        Event::Finding(FindingChange::Removed(finding)) => {
            json!({"change": "removed", "finding": wire::finding(finding)})
        }
        Event::Approval(request) => call_wire::approval_event(request),
        Event::Operation(operation) => call_wire::operation_event(operation),
    }
}

/// `{"revision", "generated_at", "names", "scenarios": [{"name", "state", "reason", "since", "restarts"}], "findings"}`; `findings` is
/// how many.
fn snapshot(all: &Overview) -> Value {
    let scenarios = all.scenarios.iter().map(|health| {
        json!({
            "name": health.name.as_str(),
            "state": health.state.as_str(),
            "reason": health.reason,
            "since": health.since.to_string(),
            "restarts": health.restarts,
        })
    });
    json!({
        "revision": all.revision.to_string(),
        "generated_at": all.generated_at.to_string(),
        "names": all.names.iter().map(PublishedName::as_str).collect::<Vec<_>>(),
        "scenarios": scenarios.collect::<Vec<_>>(),
        "findings": all.findings,
    })
}

/// `{"revision", "generated_at", "added", "removed", "changed", "reasons", "scenarios"}`: published names, the reason for each by its
/// name, and the scenarios of which only something else changed.
fn catalog(change: &CatalogChange) -> Value {
    let found = &change.difference;
    let names = |named: &[Named]| named.iter().map(|named| json!(named.name.as_str())).collect::<Vec<_>>();
    let all = [&found.added, &found.removed, &found.changed].into_iter().flatten();
    let reasons: BTreeMap<_, _> = all.map(|named| (named.name.as_str(), named.reason.as_str())).collect();
    let reasons: Map<String, Value> = reasons.into_iter().map(|(name, why)| (name.to_owned(), json!(why))).collect();
    json!({
        "revision": change.revision.to_string(),
        "generated_at": change.generated_at.to_string(),
        "added": names(&found.added),
        "removed": names(&found.removed),
        "changed": names(&found.changed),
        "reasons": reasons,
        "scenarios": found.scenarios.iter().map(ScenarioName::as_str).collect::<Vec<_>>(),
    })
}

/// `{"name", "from", "to", "reason", "at", "restarts", "failures_in_a_row"}`; `from` is `null` for a scenario that was just heard of,
/// `to` for one that is not known any more.
fn scenario(turn: &Turn) -> Value {
    json!({
        "name": turn.name.as_str(),
        "from": turn.from.map(ScenarioState::as_str),
        "to": turn.to.map(ScenarioState::as_str),
        "reason": turn.reason,
        "at": turn.at.to_string(),
        "restarts": turn.restarts,
        "failures_in_a_row": turn.failures_in_a_row,
    })
}
