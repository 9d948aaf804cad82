//! JSON shapes that several routes share. Times are RFC 3339 in UTC; what is not known is `null`.

use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::Problem;
use crate::calls::Breaker;
use crate::model::{ConfigState, Health, Isolated, ScenarioChanges, Scope, Settings, Target};
pub(super) use crate::views::finding;

/// 200 with a JSON document that no cache may keep.
pub(super) fn json(document: &impl Serialize) -> Result<Response, Problem> {
    let body = serde_json::to_vec(document).map_err(|error| Problem::internal(&error))?;
    Ok(([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], body).into_response())
}

/// A preference: `{"scope", "target", "enabled", "approval", "alias", "priority", "pinned"}`; `null` inherits.
pub(super) fn preference(scope: &Scope, target: &Target, settings: &Settings) -> Value {
    json!({
        "scope": scope.to_string(),
        "target": target.to_string(),
        "enabled": settings.enabled,
        "approval": settings.approval.map(crate::model::Approval::as_str),
        "alias": settings.alias.as_ref().map(ToString::to_string),
        "priority": settings.priority,
        "pinned": settings.pinned,
    })
}

/// The health of a scenario, with the age of its manifest (in whole seconds) as of `now`.
pub(super) fn health(health: &Health, now: Timestamp) -> Value {
    let freshness = health.freshness.map(|freshness| {
        json!({
            "generated_at": time(freshness.generated_at),
            "fresh_until": time(Some(freshness.fresh_until)),
            "received_at": time(Some(freshness.received_at)),
            // A clock that was set back must not make it negative.
            "age": now.duration_since(freshness.received_at).as_secs().max(0),
        })
    });
    let last_error = health
        .last_error
        .as_ref()
        .map(|error| json!({"kind": error.kind, "message": error.message, "at": time(Some(error.at))}));
    json!({
        "name": health.name.as_str(),
        "state": health.state.as_str(),
        "reason": health.reason,
        "since": time(Some(health.since)),
        "url": health.url,
        "source": health.source.as_str(),
        "trusted": health.trusted,
        "identity": health.party.identity.as_deref(),
        "origin": health.party.origin.as_deref(),
        "own_name": health.own_name,
        "protocol": health.protocol,
        "protocol_version": health.protocol_version,
        "version": health.version,
        "description": health.description,
        "tools": {
            "offered": health.tools.offered,
            "published": health.tools.published,
            "disabled": health.tools.disabled,
            "quarantined": health.tools.quarantined,
        },
        "freshness": freshness,
        "last_success": time(health.last_success),
        "last_attempt": time(health.last_attempt),
        "last_error": last_error,
        "next_attempt": time(health.next_attempt),
        "failures_in_a_row": health.failures_in_a_row,
        "latency_ms": health.latency_ms,
        "restarts": health.restarts,
        "last_restart": time(health.last_restart),
    })
}

/// A circuit breaker: `{"breaker", "since", "failures_in_a_row"}`.
pub(super) fn breaker(breaker: &Breaker) -> Value {
    json!({
        "breaker": breaker.state.as_str(),
        "since": time(Some(breaker.since)),
        "failures_in_a_row": breaker.failures,
    })
}

/// That the daemon is isolated: `{"since", "until", "lost", "of", "reason"}`.
pub(super) fn isolated(isolated: &Isolated) -> Value {
    json!({
        "since": time(Some(isolated.since)),
        "until": time(Some(isolated.until)),
        "lost": isolated.lost,
        "of": isolated.of,
        "reason": isolated.reason(),
    })
}

/// How the daemon stands to its configuration: `{"file", "since", "reloads", "changed", "scenarios", "waiting_for_restart", "refused"}`.
pub(super) fn configuration(state: &ConfigState) -> Value {
    let ScenarioChanges { added, removed, changed } = state.scenarios;
    let refused = state.refused.as_ref().map(|refused| {
        let problems = refused.problems.iter().map(|problem| json!({"message": problem.message, "hint": problem.hint}));
        json!({"since": time(Some(refused.since)), "problems": problems.collect::<Vec<_>>()})
    });
    json!({
        "file": state.file,
        "since": time(Some(state.since)),
        "reloads": state.reloads,
        "changed": state.changed,
        "scenarios": {"added": added, "removed": removed, "changed": changed},
        "waiting_for_restart": state.waiting,
        "refused": refused,
    })
}

fn time(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Finding, FindingCode, Freshness, LastError, ScenarioState, SourceId, ToolCounts};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_scenario_never_asked_is_all_null() {
        let bare = Health {
            name: "files".parse().unwrap(),
            state: ScenarioState::Connecting,
            reason: "not asked yet".into(),
            since: at(0),
            url: None,
            source: SourceId::Static,
            trusted: true,
            party: crate::model::Party::default(),
            own_name: None,
            protocol: None,
            protocol_version: None,
            version: None,
            description: None,
            tools: ToolCounts::default(),
            freshness: None,
            last_success: None,
            last_attempt: None,
            last_error: None,
            next_attempt: None,
            failures_in_a_row: 0,
            latency_ms: None,
            restarts: 0,
            last_restart: None,
        };
        let shown = health(&bare, at(5));
        assert_eq!(shown["since"], "1970-01-01T00:00:00Z");
        for member in ["url", "protocol", "version", "freshness", "last_attempt", "last_error", "latency_ms"] {
            assert!(shown[member].is_null() && shown.as_object().unwrap().contains_key(member), "{member}");
        }
        let freshness = Freshness { generated_at: None, fresh_until: at(70), received_at: at(10) };
        let error = LastError { kind: "timeout".into(), message: "no answer".into(), at: at(12) };
        let full = Health { freshness: Some(freshness), last_error: Some(error), ..bare };
        assert_eq!(health(&full, at(25))["freshness"]["age"], 15);
        assert_eq!(health(&full, at(3))["freshness"]["age"], 0);
        assert_eq!(health(&full, at(3))["last_error"]["at"], "1970-01-01T00:00:12Z");
    }

    #[test]
    fn a_finding_keeps_every_member() {
        let shown = finding(&Finding::new(FindingCode::Disabled, "switched off").of_tool("read").hint("switch it on"));
        let expected = json!({"severity": "info", "code": "disabled", "scenario": null, "tool": "read",
            "message": "switched off", "hint": "switch it on", "pointer": null});
        assert_eq!(shown, expected);
    }
}
