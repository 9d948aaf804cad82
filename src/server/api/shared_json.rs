//! JSON shapes that several routes share. Times are RFC 3339 in UTC; an unknown value is `null`.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::ser::Formatter;

use crate::calls::{BreakerState, Calls, FailureCode, ToolBreakerStatus};
use crate::model::{
    ApprovalPolicy, Awaited, ConfigState, Health, Isolated, JsonText, ParameterOverrides, PinMode,
    PreferenceTarget, ScenarioChanges, ScenarioName, ScenarioState, Scope, Settings,
};
use crate::server::auth::Access;
use crate::server::http::error::Problem;
use crate::server::http::held::{ConnectionBytes, with_reservation};
pub(in crate::server) use crate::views::{FindingJson, finding};

/// The headers of an answer that is JSON and that caches must not store.
pub(in crate::server) const WRITTEN_HEADERS: [(HeaderName, HeaderValue); 2] = [
    (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];
/// Usual size of an answer without its results.
const USUAL_BYTES: usize = 320;

/// A 200 answer with a JSON document that caches must not store (`no-store`).
pub(in crate::server) fn json(document: &impl Serialize) -> Result<Response, Problem> {
    Ok(written(StatusCode::OK, bytes(document, 0)?))
}

/// The same, with the bytes of its body reserved until they were sent, for documents that may be
/// large. Results in it have about `result_bytes`.
pub(in crate::server) fn reserved(
    document: &impl Serialize,
    result_bytes: usize,
    bytes: &ConnectionBytes,
) -> Result<Response, Problem> {
    let body = self::bytes(document, result_bytes)?;
    let reservation = bytes.answers().reserve(body.len())?;
    Ok(written(
        StatusCode::OK,
        with_reservation(body.into(), reservation),
    ))
}

/// An answer with a body that is JSON already, which caches must not store.
pub(in crate::server) fn written<B: From<Bytes>>(
    status: StatusCode,
    body: impl Into<Bytes>,
) -> http::Response<B> {
    let mut answer = http::Response::new(B::from(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().extend(WRITTEN_HEADERS);
    answer
}

/// Writes a document, in which each [`RawJson`] and each [`WrittenJson`] stays the text that it is.
/// Results in it have about `result_bytes`.
pub(in crate::server) fn bytes(
    document: &impl Serialize,
    result_bytes: usize,
) -> Result<Vec<u8>, Problem> {
    let written = Vec::with_capacity(USUAL_BYTES + result_bytes);
    let mut serializer = serde_json::Serializer::with_formatter(written, BytesAsTheyAre);
    document
        .serialize(&mut serializer)
        .map_err(|error| Problem::internal(&error))?;
    Ok(serializer.into_inner())
}

/// Writes bytes as JSON that was written before, and not as a list of numbers.
struct BytesAsTheyAre;

impl Formatter for BytesAsTheyAre {
    fn write_byte_array<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        value: &[u8],
    ) -> io::Result<()> {
        writer.write_all(value)
    }
}

/// A JSON text that is written as it is, by [`bytes()`] only. A tree would hide equal members and
/// change numbers, and cannot hold every depth; the raw value of `serde_json` would be read once
/// more for each answer.
#[derive(Debug)]
pub(in crate::server) struct RawJson<'a>(pub(in crate::server) &'a JsonText);

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0.get().as_bytes())
    }
}

/// A part of a document that is JSON already. It is written as it is, by [`bytes()`] only.
#[derive(Debug)]
pub(in crate::server) struct WrittenJson(pub(in crate::server) Bytes);

impl Serialize for WrittenJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

/// A time in JSON: RFC 3339 in UTC.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct Time(pub(in crate::server) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl JsonSchema for Time {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// The schema of a scenario's state.
pub(in crate::server) fn states(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ScenarioState::ALL.map(ScenarioState::as_str)})
}

/// The schema of the member `approval` of a preference.
pub(in crate::server) fn approvals(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["require", "skip", null]})
}

/// What a user or operator wants of a tool or scenario, within a scope. `null` inherits.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Preference")]
pub(in crate::server) struct PreferenceJson {
    /// `global`, `profile:NAME` or `chat:ID`.
    scope: String,
    /// `scenario:NAME`, `category:ID`, `tag:TAG` or `tool:SCENARIO/TOOL`.
    target: String,
    /// Whether the tool is in the list.
    enabled: Option<bool>,
    /// Whether calls need a person's approval.
    #[schemars(schema_with = "approvals")]
    approval: Option<&'static str>,
    /// The name to publish it under.
    alias: Option<String>,
    /// Which tools stay when a limit allows only so many: highest first.
    priority: Option<i32>,
    /// Whether it is always in the list, whatever the search or limits.
    pinned: Option<bool>,
    /// What happens with definitions of a scenario that were not accepted.
    pins: Option<&'static str>,
    /// What models read in place of the tool's own description.
    description: Option<String>,
    /// What replaces parts of its parameters.
    #[schemars(schema_with = "parameter_overrides")]
    parameters: Option<Value>,
}

/// The schema of what replaces parts of parameters.
pub(in crate::server) fn parameter_overrides(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "additionalProperties": {
            "type": "object",
            "properties": {"description": {"type": "string"}, "default": {}, "fixed": {}},
            "minProperties": 1,
            "additionalProperties": false,
            "not": {"required": ["default", "fixed"]},
        },
    })
}

/// A preference in JSON.
pub(in crate::server) fn preference(
    scope: &Scope,
    target: &PreferenceTarget,
    settings: &Settings,
) -> PreferenceJson {
    PreferenceJson {
        scope: scope.to_string(),
        target: target.to_string(),
        enabled: settings.enabled,
        approval: settings.approval.map(ApprovalPolicy::as_str),
        alias: settings.alias.as_ref().map(ToString::to_string),
        priority: settings.priority,
        pinned: settings.pinned,
        pins: settings.pins.map(PinMode::as_str),
        description: settings.description.as_deref().map(str::to_owned),
        parameters: settings
            .parameters
            .as_ref()
            .map(ParameterOverrides::to_json),
    }
}

/// The health of a scenario. What is not known is `null`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Scenario")]
pub(in crate::server) struct HealthJson<'a> {
    /// The name of the scenario.
    name: &'a str,
    #[schemars(schema_with = "states")]
    state: &'static str,
    /// The reason for the state, in one sentence.
    reason: &'a str,
    /// Since when it is in this state.
    since: Time,
    /// The base address that is polled, credentials masked.
    url: Option<&'a str>,
    /// The source that found it.
    source: &'static str,
    /// Whether its address may be used for more than reading its manifest.
    trusted: bool,
    /// The identity that it claims.
    identity: Option<&'a str>,
    /// Where it is: scheme, host and port.
    origin: Option<&'a str>,
    /// The name it gives itself.
    own_name: Option<&'a str>,
    /// The protocol it speaks.
    protocol: Option<&'static str>,
    /// The protocol version as it wrote it.
    protocol_version: Option<&'a str>,
    /// Its own version.
    version: Option<&'a str>,
    /// What it says it is.
    description: Option<&'a str>,
    tools: CountsJson,
    freshness: Option<FreshnessJson>,
    /// When it last gave a good answer.
    last_success: Option<Time>,
    /// When it was last polled.
    last_attempt: Option<Time>,
    /// The last error; cleared by a good answer.
    last_error: Option<LastErrorJson<'a>>,
    /// When it will be polled next.
    next_attempt: Option<Time>,
    /// What the poll under way has waited for without an answer, for 10 s or longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited: Option<AwaitedJson<'a>>,
    /// Failures since the last good answer.
    failures_in_a_row: u32,
    /// How long the last answer took.
    latency_ms: Option<u64>,
    /// How often it was seen to restart.
    restarts: u32,
    /// When it was last seen to restart.
    last_restart: Option<Time>,
}

/// What a scenario has not answered.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Awaited")]
struct AwaitedJson<'a> {
    /// The request without an answer, such as `initialize`.
    answer_to: &'a str,
    /// For how long.
    seconds: u64,
    /// The first lines of a program's standard output that are no messages.
    stdout: &'a [String],
    /// The last lines of a program's standard error.
    stderr: &'a [String],
    /// The same in one sentence.
    message: String,
}

fn awaited(awaited: &Awaited) -> AwaitedJson<'_> {
    let output = awaited.output.as_ref();
    AwaitedJson {
        answer_to: awaited.answer_to,
        seconds: awaited.waited.as_secs(),
        stdout: output
            .map(|output| output.stdout.as_slice())
            .unwrap_or_default(),
        stderr: output
            .map(|output| output.stderr.as_slice())
            .unwrap_or_default(),
        message: awaited.message(),
    }
}

/// The numbers of a scenario's tools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Counts")]
struct CountsJson {
    offered: usize,
    published: usize,
    disabled: usize,
    quarantined: usize,
}

/// The freshness of the active manifest.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Freshness")]
struct FreshnessJson {
    /// When the scenario says it made it.
    generated_at: Option<Time>,
    fresh_until: Time,
    received_at: Time,
    /// Whole seconds since it was received.
    age: u64,
}

/// The error.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LastError")]
struct LastErrorJson<'a> {
    kind: &'a str,
    message: &'a str,
    at: Time,
}

/// The health of a scenario, with the age of its manifest as of `now`.
pub(in crate::server) fn health(health: &Health, now: Timestamp) -> HealthJson<'_> {
    let freshness = health.freshness.map(|freshness| FreshnessJson {
        generated_at: freshness.generated_at.map(Time),
        fresh_until: Time(freshness.fresh_until),
        received_at: Time(freshness.received_at),
        // If the clock was set back, the age is 0 and not negative.
        age: u64::try_from(now.duration_since(freshness.received_at).as_secs()).unwrap_or(0),
    });
    let last_error = health.last_error.as_ref();
    HealthJson {
        name: health.name.as_str(),
        state: health.state.as_str(),
        reason: &health.reason,
        since: Time(health.since),
        url: health.url.as_deref(),
        source: health.source.as_str(),
        trusted: health.trusted,
        identity: health.party.identity.as_deref(),
        origin: health.party.origin.as_deref(),
        own_name: health.own_name.as_deref(),
        protocol: health.protocol,
        protocol_version: health.protocol_version.as_deref(),
        version: health.version.as_deref(),
        description: health.description.as_deref(),
        tools: CountsJson {
            offered: health.tools.offered,
            published: health.tools.published,
            disabled: health.tools.disabled,
            quarantined: health.tools.quarantined,
        },
        freshness,
        last_success: health.last_success.map(Time),
        last_attempt: health.last_attempt.map(Time),
        last_error: last_error.map(|error| LastErrorJson {
            kind: &error.kind,
            message: &error.message,
            at: Time(error.at),
        }),
        next_attempt: health.next_attempt.map(Time),
        awaited: health.awaited.as_ref().map(awaited),
        failures_in_a_row: health.failures_in_a_row,
        latency_ms: health.latency_ms,
        restarts: health.restarts,
        last_restart: health.last_restart.map(Time),
    }
}

/// The circuit breaker of a scenario, and those of its tools.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Breaker")]
pub(in crate::server) struct BreakerJson {
    /// Whether calls pass: all, none, or one that tries.
    #[schemars(schema_with = "breakers")]
    breaker: &'static str,
    since: Time,
    /// How many calls in a row did not reach the scenario.
    failures_in_a_row: u32,
    /// The code with which the last of them was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<&'static str>,
    /// Until when calls are refused. Then one tests whether the scenario is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
    /// The tools that failed since they last answered, by name. One whose breaker is open is not
    /// called; the others are.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ToolBreakerJson>,
}

/// The circuit breaker of a tool.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ToolBreaker")]
struct ToolBreakerJson {
    /// The name that its scenario gives the tool.
    tool: String,
    /// Whether calls pass: all, none, or one that tries.
    #[schemars(schema_with = "breakers")]
    breaker: &'static str,
    since: Time,
    failures_in_a_row: u32,
    /// The code with which the last of them was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<&'static str>,
    /// Until when calls are refused. Then one tests whether the tool works.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Time>,
}

fn breakers(_: &mut SchemaGenerator) -> Schema {
    let known = [
        BreakerState::Closed,
        BreakerState::Open,
        BreakerState::HalfOpen,
    ]
    .map(BreakerState::as_str);
    json_schema!({"type": "string", "enum": known})
}

/// The circuit breakers of a scenario in JSON; `None` if its present process was not called yet.
pub(in crate::server) fn breaker(calls: &Calls, scenario: &ScenarioName) -> Option<BreakerJson> {
    let breaker = calls.breaker(scenario)?;
    Some(BreakerJson {
        breaker: breaker.state.as_str(),
        since: Time(breaker.since),
        failures_in_a_row: breaker.failures,
        last_failure: breaker.last_failure.map(FailureCode::as_str),
        until: breaker.until.map(Time),
        tools: calls
            .tool_breakers(scenario)
            .iter()
            .map(tool_breaker)
            .collect(),
    })
}

fn tool_breaker(breaker: &ToolBreakerStatus) -> ToolBreakerJson {
    let status = &breaker.status;
    ToolBreakerJson {
        tool: breaker.tool.to_string(),
        breaker: status.state.as_str(),
        since: Time(status.since),
        failures_in_a_row: status.failures,
        last_failure: status.last_failure.map(FailureCode::as_str),
        until: status.until.map(Time),
    }
}

/// The daemon considers itself isolated, and withdraws no tools meanwhile.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Isolated")]
pub(in crate::server) struct IsolatedJson {
    since: Time,
    /// When withdrawals begin again in any case.
    until: Time,
    /// How many scenarios were lost when it began.
    lost: usize,
    /// Of how many that answered.
    of: usize,
    reason: String,
}

/// The isolation of the daemon in JSON.
pub(in crate::server) fn isolated(isolated: &Isolated) -> IsolatedJson {
    IsolatedJson {
        since: Time(isolated.since),
        until: Time(isolated.until),
        lost: isolated.lost,
        of: isolated.of,
        reason: isolated.reason(),
    }
}

/// The state of the daemon's configuration.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Configuration")]
pub(in crate::server) struct ConfigurationJson<'a> {
    /// The file that the active configuration was read from.
    file: Option<&'a str>,
    /// Since when it is active.
    since: Time,
    /// The `PATH` in which the daemon finds programs that it starts; `null` for clients without the
    /// token, where `server.operator_token` is set.
    search_path: Option<String>,
    /// The number of reloads since the start.
    reloads: u64,
    /// The keys that the last reload changed.
    changed: &'a [Arc<str>],
    scenarios: ScenarioChangesJson,
    /// Changed keys that take effect at the next restart.
    waiting_for_restart: &'a [Arc<str>],
    /// Present while the written configuration cannot be used.
    refused: Option<RefusedJson<'a>>,
}

/// How many entries of the list of scenarios the last reload changed.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ScenarioChanges")]
struct ScenarioChangesJson {
    added: usize,
    removed: usize,
    changed: usize,
}

/// A configuration that cannot be used.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "RefusedConfiguration")]
struct RefusedJson<'a> {
    since: Time,
    problems: Vec<ConfigProblemJson<'a>>,
}

/// One problem of it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ConfigurationProblem")]
struct ConfigProblemJson<'a> {
    message: &'a str,
    /// What to do about it.
    hint: &'a str,
}

/// The state of the daemon's configuration in JSON.
pub(in crate::server) fn configuration(
    state: &ConfigState,
    access: Access,
) -> ConfigurationJson<'_> {
    let ScenarioChanges {
        added,
        removed,
        changed,
    } = state.scenarios;
    let refused = state.refused.as_ref().map(|refused| {
        let problems = refused.problems.iter();
        let problems = problems.map(|problem| ConfigProblemJson {
            message: &problem.message,
            hint: &problem.hint,
        });
        RefusedJson {
            since: Time(refused.since),
            problems: problems.collect(),
        }
    });
    ConfigurationJson {
        file: state.file.as_deref(),
        since: Time(state.since),
        search_path: std::env::var("PATH")
            .ok()
            .filter(|_| access == Access::Full),
        reloads: state.reloads,
        changed: &state.changed,
        scenarios: ScenarioChangesJson {
            added,
            removed,
            changed,
        },
        waiting_for_restart: &state.waiting,
        refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Finding, FindingCode, Freshness, LastError, ScenarioState, SourceId, ToolCounts,
    };
    use serde_json::json;

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
            source: SourceId::STATIC,
            trusted: true,
            party: crate::model::PeerIdentity::default(),
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
            program_end: None,
            next_attempt: None,
            awaited: None,
            failures_in_a_row: 0,
            latency_ms: None,
            restarts: 0,
            last_restart: None,
        };
        let health = |of: &Health, now| serde_json::to_value(super::health(of, now)).unwrap();
        let shown = health(&bare, at(5));
        assert_eq!(shown["since"], "1970-01-01T00:00:00Z");
        for member in [
            "url",
            "protocol",
            "version",
            "freshness",
            "last_attempt",
            "last_error",
            "latency_ms",
        ] {
            assert!(
                shown[member].is_null() && shown.as_object().unwrap().contains_key(member),
                "{member}"
            );
        }
        let freshness = Freshness {
            generated_at: None,
            fresh_until: at(70),
            received_at: at(10),
        };
        let error = LastError {
            kind: "timeout".into(),
            message: "no answer".into(),
            at: at(12),
        };
        let full = Health {
            freshness: Some(freshness),
            last_error: Some(error),
            ..bare
        };
        assert_eq!(health(&full, at(25))["freshness"]["age"], 15);
        assert_eq!(health(&full, at(3))["freshness"]["age"], 0);
        assert_eq!(
            health(&full, at(3))["last_error"]["at"],
            "1970-01-01T00:00:12Z"
        );
    }

    #[test]
    fn a_finding_keeps_every_member() {
        let found = Finding::new(FindingCode::Disabled, "switched off")
            .of_tool("read")
            .hint("switch it on");
        let shown = serde_json::to_value(finding(&found)).unwrap();
        let expected = json!({"severity": "info", "code": "disabled", "scenario": null, "tool": "read",
            "message": "switched off", "hint": "switch it on", "pointer": null});
        assert_eq!(shown, expected);
    }
}
