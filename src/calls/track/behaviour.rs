//! `async_behavior`: the declaration of a long-running tool that says how its operations are
//! followed. It is read when the tool is called. Pure.
//!
//! The first text of the protocol does not have it. The providers and their consumer agree on its
//! shape, and [`lint`](crate::lint) checks it before any call. On the protobuf wire, zero and empty
//! mean "not set". Numbers may come as texts.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::{JsonText, Tool};

/// The poll interval if the tool does not declare one.
const POLL_INTERVAL_DEFAULT: Duration = Duration::from_secs(5);
/// How long an operation is followed if the tool does not declare it.
const FOLLOWED_DEFAULT: Duration = Duration::from_secs(3600);
/// How long cancelling may take if the tool does not declare it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(30);
/// Longer than any operation, and short enough that adding it to a clock reading does not overflow.
const YEAR: f64 = 365.0 * 24.0 * 3600.0;

/// How an operation is followed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Behaviour {
    /// The tool that returns the status.
    pub(super) status: CompanionTool,
    /// The field of the first answer that holds the operation's id.
    pub(super) id_field: String,
    /// The time between two polls; where it grows, the time before the first one.
    pub(super) interval: Duration,
    /// The factor by which the interval grows, and its upper limit.
    pub(super) growth: Option<(f64, Duration)>,
    /// How long the operation is followed at most.
    pub(super) longest: Duration,
    pub(super) status_field: String,
    pub(super) success: Vec<String>,
    pub(super) failure: Vec<String>,
    /// The statuses that mean that it goes on; empty if the tool declares none.
    pub(super) pending: Vec<String>,
    pub(super) error_field: Option<String>,
    pub(super) details_field: Option<String>,
    pub(super) result_field: Option<String>,
    pub(super) progress: ProgressFields,
    pub(super) cancellation: Option<Cancellation>,
}

/// A tool of the same scenario that is called with the operation's id alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CompanionTool {
    pub(super) tool: String,
    pub(super) param: String,
}

/// How an operation is cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cancellation {
    pub(super) partner: CompanionTool,
    /// The operation ends some time after the cancel tool answered, and its status shows when.
    pub(super) graceful: bool,
    pub(super) timeout: Duration,
}

/// The fields of a status that show progress.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ProgressFields {
    pub(super) amount: Option<String>,
    pub(super) message: Option<String>,
    pub(super) phase: Option<String>,
    pub(super) step: Option<String>,
    pub(super) steps: Option<String>,
    pub(super) remaining: Option<String>,
}

/// Why a running operation cannot be followed. The operation itself was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Untrackable {
    /// The tool declares no `async_behavior`.
    #[error("its operations cannot be followed: the tool has no `async_behavior`")]
    Undeclared,
    /// The declaration lacks a needed part.
    #[error("{0}")]
    Incomplete(&'static str),
    /// The status tool cannot be called.
    #[error("{0}")]
    Partner(String),
    /// The operation's id is missing, or not of the right type.
    #[error("{0}")]
    Id(String),
    /// A limit of followed operations is reached.
    #[error(
        "as many operations are followed as `calls.operations_max` and `calls.kept_bytes` allow"
    )]
    Full,
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}

/// What the tool declares, as its scenario wrote it; `None` if it declares nothing.
pub(crate) fn declared(tool: &Tool) -> Option<JsonText> {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow, default)]
        async_behavior: Option<&'a RawValue>,
    }
    // Few tools declare it. The metadata of the others is not parsed.
    if !tool.metadata.get().contains("\"async_behavior\"") {
        return None;
    }
    let metadata: Metadata<'_> = serde_json::from_str(tool.metadata.get()).ok()?;
    JsonText::parse(metadata.async_behavior?.get())
        .ok()
        .filter(|text| !matches!(text.get(), "{}" | "null"))
}

impl Behaviour {
    /// Whether the tool declares what its statuses mean, and this is none of them.
    pub(super) fn is_undeclared(&self, status: &str) -> bool {
        let mut declared = self
            .success
            .iter()
            .chain(&self.failure)
            .chain(&self.pending);
        !self.pending.is_empty() && !declared.any(|known| known == status)
    }

    /// Parses a declaration. Optional parts that are missing get their defaults.
    pub(crate) fn parse(text: &JsonText) -> Result<Self, Untrackable> {
        let declaration: Value = serde_json::from_str(text.get()).unwrap_or_default();
        let polling = part(
            &declaration,
            "status_polling",
            "`async_behavior` has no `status_polling`, so its status cannot be polled",
        )?;
        let missing =
            "`status_polling` does not name the `status_tool`, so its status cannot be polled";
        let tool = words(polling, "status_tool").ok_or(Untrackable::Incomplete(missing))?;
        let missing =
            "`status_polling` has no `operation_id_field`, so the operation's id is not known";
        let id_field =
            words(polling, "operation_id_field").ok_or(Untrackable::Incomplete(missing))?;
        let missing = "`status_polling` has no `status_tool_id_param`, so a status request cannot name the operation";
        let param =
            words(polling, "status_tool_id_param").ok_or(Untrackable::Incomplete(missing))?;
        let missing =
            "`async_behavior` has no `completion_conditions`, so its end cannot be recognised";
        let completion = part(&declaration, "completion_conditions", missing)?;
        let missing =
            "`completion_conditions` has no `status_field`, so its end cannot be recognised";
        let status_field =
            words(completion, "status_field").ok_or(Untrackable::Incomplete(missing))?;
        let success = values(completion, "success_values");
        if success.is_empty() {
            let missing =
                "`completion_conditions` has no `success_values`, so its end cannot be recognised";
            return Err(Untrackable::Incomplete(missing));
        }
        let interval = seconds(polling, "poll_interval_seconds").unwrap_or(POLL_INTERVAL_DEFAULT);
        let (interval, growth) = backoff(polling.get("backoff"), interval);
        Ok(Self {
            status: CompanionTool { tool, param },
            id_field,
            interval,
            growth,
            longest: seconds(polling, "max_poll_duration_seconds").unwrap_or(FOLLOWED_DEFAULT),
            status_field,
            success,
            failure: values(completion, "failure_values"),
            pending: values(completion, "pending_values"),
            error_field: words(completion, "error_field"),
            details_field: words(completion, "error_details_field"),
            result_field: words(completion, "result_field"),
            progress: declaration
                .get("progress_tracking")
                .map(progress)
                .unwrap_or_default(),
            cancellation: declaration.get("cancellation").and_then(cancellation),
        })
    }
}

fn part<'v>(
    declaration: &'v Value,
    name: &str,
    missing: &'static str,
) -> Result<&'v Value, Untrackable> {
    let part = declaration
        .get(name)
        .filter(|part| part.as_object().is_some_and(|members| !members.is_empty()));
    part.ok_or(Untrackable::Incomplete(missing))
}

fn backoff(declaration: Option<&Value>, interval: Duration) -> (Duration, Option<(f64, Duration)>) {
    let Some(declaration) = declaration.filter(|declaration| {
        declaration
            .as_object()
            .is_some_and(|members| !members.is_empty())
    }) else {
        return (interval, None);
    };
    let first = seconds(declaration, "initial_interval_seconds").unwrap_or(interval);
    let longest = seconds(declaration, "max_interval_seconds").unwrap_or(Duration::MAX);
    match number(declaration, "multiplier") {
        Some(multiplier) if multiplier > 1.0 => (first, Some((multiplier, longest))),
        _ => (first.min(longest), None),
    }
}

fn progress(declaration: &Value) -> ProgressFields {
    ProgressFields {
        amount: words(declaration, "progress_field"),
        message: words(declaration, "message_field"),
        phase: words(declaration, "phase_field"),
        step: words(declaration, "current_step_field"),
        steps: words(declaration, "total_steps_field"),
        remaining: words(declaration, "estimated_remaining_field"),
    }
}

fn cancellation(declaration: &Value) -> Option<Cancellation> {
    let partner = CompanionTool {
        tool: words(declaration, "cancel_tool")?,
        param: words(declaration, "cancel_tool_id_param")?,
    };
    let graceful = declaration.get("graceful") == Some(&Value::Bool(true));
    Some(Cancellation {
        partner,
        graceful,
        timeout: seconds(declaration, "cancel_timeout_seconds").unwrap_or(CANCEL_TIMEOUT),
    })
}

fn words(declaration: &Value, name: &str) -> Option<String> {
    declaration
        .get(name)?
        .as_str()
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
}

fn values(declaration: &Value, name: &str) -> Vec<String> {
    let list = declaration.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(word).collect()
}

/// A value that can be compared with a declared one: texts, numbers and booleans as they are
/// written.
pub(super) fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number(declaration: &Value, name: &str) -> Option<f64> {
    match declaration.get(name)? {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    }
}

fn seconds(declaration: &Value, name: &str) -> Option<Duration> {
    let seconds = number(declaration, name).filter(|seconds| *seconds > 0.0)?;
    Some(Duration::from_secs_f64(seconds.min(YEAR)))
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// A declaration with every part.
    pub(in crate::calls::track) fn full() -> Value {
        json!({
            "status_polling": {
                "status_tool": "get_run", "operation_id_field": "run.id", "status_tool_id_param": "run_id",
                "poll_interval_seconds": 2, "max_poll_duration_seconds": 600,
                "backoff": {"initial_interval_seconds": 3, "max_interval_seconds": 10, "multiplier": 2},
            },
            "completion_conditions": {
                "status_field": "status", "success_values": ["done", 1], "failure_values": ["failed"],
                "pending_values": ["running"], "error_field": "error", "error_details_field": "details",
                "result_field": "output",
            },
            "progress_tracking": {"progress_field": "percent", "message_field": "said", "current_step_field": "at",
                "total_steps_field": "of", "phase_field": "phase", "estimated_remaining_field": "left"},
            "cancellation": {"cancel_tool": "stop_run", "cancel_tool_id_param": "run_id", "graceful": true,
                "cancel_timeout_seconds": 7},
        })
    }

    pub(in crate::calls::track) fn behaviour(declaration: &Value) -> Behaviour {
        read(declaration).unwrap()
    }

    fn read(declaration: &Value) -> Result<Behaviour, Untrackable> {
        Behaviour::parse(&JsonText::parse(&declaration.to_string()).unwrap())
    }

    #[test]
    fn everything_is_read() {
        let read = behaviour(&full());
        assert_eq!(read.interval, Duration::from_secs(3));
        assert_eq!(read.longest, Duration::from_secs(600));
        assert_eq!(read.growth, Some((2.0, Duration::from_secs(10))));
        assert_eq!(read.success, ["done", "1"]);
        let cancellation = read.cancellation.unwrap();
        assert!(cancellation.graceful && cancellation.timeout == Duration::from_secs(7));
    }

    #[test]
    fn what_is_not_set_has_the_defaults_of_the_protocol() {
        let mut declaration = full();
        declaration["status_polling"] = json!({"status_tool": "get_run", "operation_id_field": "id",
            "status_tool_id_param": "id", "poll_interval_seconds": 0, "backoff": {}});
        declaration["cancellation"] = json!({});
        let read = behaviour(&declaration);
        assert_eq!(read.interval, POLL_INTERVAL_DEFAULT);
        assert_eq!(read.longest, FOLLOWED_DEFAULT);
        assert_eq!(read.growth, None);
        assert_eq!(read.cancellation, None);
        declaration["status_polling"]["poll_interval_seconds"] = json!("0.25");
        assert_eq!(behaviour(&declaration).interval, Duration::from_millis(250));
        declaration["status_polling"]["poll_interval_seconds"] = json!(1e300);
        assert!(behaviour(&declaration).interval <= Duration::from_secs(365 * 24 * 3600));
    }

    #[test]
    fn what_is_missing_is_named() {
        for (place, member, named) in [
            ("", "status_polling", "`status_polling`"),
            ("", "completion_conditions", "`completion_conditions`"),
            ("status_polling", "status_tool", "`status_tool`"),
            (
                "status_polling",
                "operation_id_field",
                "`operation_id_field`",
            ),
            (
                "status_polling",
                "status_tool_id_param",
                "`status_tool_id_param`",
            ),
            ("completion_conditions", "status_field", "`status_field`"),
            (
                "completion_conditions",
                "success_values",
                "`success_values`",
            ),
        ] {
            let mut declaration = full();
            let part = if place.is_empty() {
                &mut declaration
            } else {
                &mut declaration[place]
            };
            part.as_object_mut().unwrap().remove(member);
            let why = read(&declaration).unwrap_err().to_string();
            assert!(why.contains(named), "{member}: {why}");
        }
        assert!(read(&json!([])).is_err());
    }
}
