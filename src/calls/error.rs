//! Why a call was not made, or failed.
//!
//! Texts name the thing and the next step. They may quote the caller, so they never go to the log.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use crate::catalog::UnknownProfile;
use crate::model::{
    ApprovalRequest, NamedVersion, PeerIdentity, ScenarioName, ToolId, ViewTool, WithNextStep,
};
use crate::protocols::{CallError, Fault};
use crate::runtime::BudgetExceeded;

/// One way in which arguments do not fit their schema.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Violation {
    /// The place, as a JSON pointer (RFC 6901) into the arguments.
    pub pointer: String,
    /// What is wrong at this place.
    pub message: String,
}

/// So many violations stand in the text of an error; all that are known are beside it.
const VIOLATIONS_SHOWN: usize = 5;

/// The next step after a latent call without a result.
pub(crate) const GIVE_OUTPUT: &str = "call it again with `_output`";

// What to do next: the ends of the texts below.
const FETCH_AGAIN: &str = "fetch the list again";
const FETCH_AGAIN_OR_NAME: &str = "fetch the list again, or name the tool as `scenario/tool`";
const READ_AGAIN: &str = "read the present definition, and call the tool again with its version";
const START_ACTIVITY: &str =
    "start the scenario that offers it, or take `activity` out of the definition";
const DECIDE_FIRST: &str = "decide some of them first";
const TRY_LATER: &str = "try again later";
const TRY_WITH_ROOM: &str = "try again when other calls have ended, or raise `server.held_bytes`";
const RAISE_HELD: &str = "raise `server.held_bytes`";
const ACCEPT_LOSS: &str =
    "an operator looks at preferences and blocks, and runs `callsheet state accept-loss`";
const SEE_LOG: &str = "see the daemon's log";

/// Why a call has no answer. Its text ends with the next step ([`WithNextStep`]).
#[derive(Debug, Clone, thiserror::Error)]
pub enum ExecuteError {
    /// No tool has this name in the caller's scope.
    #[error("no tool is called `{0}`")]
    Unknown(String),
    /// In the list that the name was taken from, it meant a tool that is gone. Another tool may
    /// have the name now; it is not called instead.
    #[error("{}, and that tool is gone; {FETCH_AGAIN}", listed_before(name, id, revision.as_deref()))]
    Gone {
        /// The name.
        name: String,
        /// The tool that it meant.
        id: ToolId,
        /// The revision of that list; `None` if it was the list when the call came.
        revision: Option<String>,
    },
    /// The list that the name was taken from is not remembered, so the meaning of the name there is
    /// not known.
    #[error("the list with revision {0} is not remembered; {FETCH_AGAIN_OR_NAME}")]
    UnknownRevision(String),
    /// The tool has another definition than the one that the call was made for.
    #[error(
        "the definition of `{}` is not the one that the call was made for: its version is {} now, and was {named}; {READ_AGAIN}",
        tool.id,
        tool.tool.version().short()
    )]
    StaleDefinition {
        /// The tool, with its present definition.
        tool: Arc<ViewTool>,
        /// The version that the caller named.
        named: NamedVersion,
    },
    /// The name may mean several tools.
    #[error("several tools are called `{name}`; {}", call_either(candidates))]
    Ambiguous {
        /// The name.
        name: String,
        /// These tools.
        candidates: Vec<ToolId>,
    },
    /// The tool's scenario may not be called: no operator approved it, or one blocked it.
    #[error("`{id}` may not be called: {reason}")]
    NotTrusted {
        /// The tool.
        id: ToolId,
        /// The reason.
        reason: String,
    },
    /// The tool is disabled in the caller's scope.
    #[error("`{id}` may not be called: {by}")]
    Disabled {
        /// The tool.
        id: ToolId,
        /// Which preference or default disables it, in one clause.
        by: String,
    },
    /// The tool is new or changed, and no operator has accepted it.
    #[error("`{id}` is held: {reason}; {}", accept_it(id))]
    Held {
        /// The tool.
        id: ToolId,
        /// Why it is held, in one clause.
        reason: String,
    },
    /// The bounds of the caller's profile exclude the tool.
    #[error("`{id}` is not for this profile: {reason}")]
    OutOfBounds {
        /// The tool.
        id: ToolId,
        /// The bound that excludes it.
        reason: String,
    },
    /// The profile is unknown: it is not configured, and if no profiles are configured, no
    /// preference names it.
    #[error(transparent)]
    UnknownProfile(UnknownProfile),
    /// The arguments do not fit the tool's schema.
    #[error(
        "the arguments do not fit the parameters of `{}`: {}",
        tool,
        shown(violations, *more)
    )]
    Invalid {
        /// The tool's name.
        tool: String,
        /// Violations of the schema, at most
        /// [`MOST_VIOLATIONS`](crate::calls::validate::MOST_VIOLATIONS).
        violations: Vec<Violation>,
        /// Whether there are more violations.
        more: bool,
    },
    /// The call is latent, and the caller's model gave no result.
    #[error(
        "`{tool}` is latent: no program runs it, and the model that calls it gives its result as `_output`; {}",
        GIVE_OUTPUT
    )]
    OutputMissing {
        /// The tool's name.
        tool: String,
    },
    /// The call is latent, and the result of the caller's model does not fit the schema of results.
    #[error(
        "`_output` does not fit what `{}` declares as its result: {}",
        tool,
        shown(violations, *more)
    )]
    OutputUnfit {
        /// The tool's name.
        tool: String,
        /// Violations of the schema, as of arguments.
        violations: Vec<Violation>,
        /// Whether there are more violations.
        more: bool,
    },
    /// The tool is a definition whose activity is not there.
    #[error("`{id}` cannot be called: its activity `{activity}` is not there; {START_ACTIVITY}")]
    NoActivity {
        /// The definition.
        id: ToolId,
        /// The name of the activity.
        activity: Arc<str>,
    },
    /// A human has to approve the call first.
    #[error("a call of `{id}` needs the approval of a human{}", awaited(waiting.as_deref()))]
    ApprovalRequired {
        /// The tool.
        id: ToolId,
        /// The approval that waits; `None` if the call cannot wait.
        waiting: Option<Arc<ApprovalRequest>>,
        /// JSON pointers to members that were `null` for "not set" and were taken out of the
        /// arguments that wait.
        adjusted: Vec<String>,
    },
    /// A human has to approve the call first, and too many calls wait for approval.
    #[error(
        "a call of `{id}` needs the approval of a human, and as many calls wait for that as `calls.approvals_max` and `calls.kept_bytes` allow, of which none gives way to it; {DECIDE_FIRST}"
    )]
    ApprovalsFull {
        /// The tool.
        id: ToolId,
    },
    /// A human has to approve the call first, and the waiting call could not be stored.
    #[error(
        "a call of `{id}` needs the approval of a human, and cannot wait for it because the call could not be stored"
    )]
    ApprovalNotStored {
        /// The tool.
        id: ToolId,
    },
    /// The peer that answers for the scenario is not the one that the call is for.
    #[error(
        "the call of `{id}` is for the peer {owner}, but the peer {now} answers for its scenario now"
    )]
    OtherOwner {
        /// The tool.
        id: ToolId,
        /// The peer that the call is for.
        owner: PeerIdentity,
        /// The peer that answers now.
        now: PeerIdentity,
    },
    /// The tool was called as often as it may be in a minute.
    #[error("`{id}` may be called {per_minute} times a minute; {}", try_again_in(*wait))]
    RateLimited {
        /// The tool.
        id: ToolId,
        /// The limit of calls in a minute.
        per_minute: u64,
        /// After what time it may be called again.
        wait: Duration,
    },
    /// Too many calls wait already, or this call waited too long.
    #[error("`{scenario}` has as many calls under way as it may, and {reason}; {TRY_LATER}")]
    Busy {
        /// The scenario.
        scenario: ScenarioName,
        /// The limit that was reached.
        reason: &'static str,
    },
    /// There is no memory for the arguments.
    #[error("`{name}` was not called: {exceeded}; {TRY_WITH_ROOM}")]
    NoRoom {
        /// The name that the caller used.
        name: String,
        /// What has no room.
        exceeded: BudgetExceeded,
    },
    /// The tool ran, and there is no memory for its result.
    #[error("`{id}` ran, and its result of {bytes} bytes is left out: {exceeded}; {RAISE_HELD}")]
    ResultLeftOut {
        /// The tool.
        id: ToolId,
        /// The size of the result.
        bytes: usize,
        /// What has no room.
        exceeded: BudgetExceeded,
        /// How many times the call was sent.
        attempts: u32,
    },
    /// The arguments could not be checked because too many other checks wait or run.
    #[error("the arguments of `{id}` could not be checked, and {reason}; {TRY_LATER}")]
    ChecksBusy {
        /// The tool.
        id: ToolId,
        /// The limit that was reached.
        reason: &'static str,
    },
    /// The tool failed too often just now, or calls did not reach the scenario.
    #[error("{}", circuit_open(scenario, tool.as_ref(), *failures, *last_failure, *wait))]
    BreakerOpen {
        /// The scenario.
        scenario: ScenarioName,
        /// The tool, if it is its own breaker that refuses the call, and not the scenario's.
        tool: Option<ToolId>,
        /// The number of failures.
        failures: u32,
        /// The code with which the last of them was reported to its caller.
        last_failure: Option<&'static str>,
        /// After what time it is tried again.
        wait: Duration,
    },
    /// The scenario is known to be unavailable now.
    #[error("`{id}` cannot be called now: {reason}")]
    Unavailable {
        /// The tool.
        id: ToolId,
        /// The reason.
        reason: String,
    },
    /// The call was tried and failed.
    #[error("the call of `{id}` failed: {error}")]
    Failed {
        /// The tool.
        id: ToolId,
        /// The failure.
        error: CallError,
        /// How many times it was sent.
        attempts: u32,
    },
    /// Decisions of operators may be lost, and no operator accepted that yet.
    #[error(
        "no tool is called, because stored decisions of operators were lost at {at}; {ACCEPT_LOSS}"
    )]
    StateLost {
        /// When the loss was noticed.
        at: Timestamp,
    },
    /// An unexpected failure inside this program.
    #[error("the call of `{0}` failed unexpectedly; {SEE_LOG}")]
    Internal(ToolId),
}

/// When a tool that is gone was listed.
fn listed_before(name: &str, id: &ToolId, revision: Option<&str>) -> String {
    match revision {
        Some(revision) => format!("`{name}` was `{id}` in the list with revision {revision}"),
        None => format!("`{id}` was listed when the call came"),
    }
}

impl ExecuteError {
    /// Whether the call was not tried at all.
    pub fn is_refusal(&self) -> bool {
        !matches!(
            self,
            Self::Failed { .. } | Self::ResultLeftOut { .. } | Self::Internal(_)
        )
    }

    /// A short, stable word for programs and metrics.
    pub fn kind(&self) -> &'static str {
        self.code().as_str()
    }

    /// Which side is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Self::Failed { error, .. } => error.fault(),
            Self::Unavailable { .. } | Self::BreakerOpen { .. } | Self::Busy { .. } => {
                Fault::Scenario
            }
            Self::Internal(_)
            | Self::ApprovalNotStored { .. }
            | Self::ChecksBusy { .. }
            | Self::NoRoom {
                exceeded: BudgetExceeded::Whole { .. },
                ..
            }
            | Self::ResultLeftOut { .. }
            | Self::StateLost { .. } => Fault::Ours,
            _ => Fault::Caller,
        }
    }

    /// When to try again, if that is known.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { wait, .. } | Self::BreakerOpen { wait, .. } => Some(*wait),
            Self::Busy { .. }
            | Self::ChecksBusy { .. }
            | Self::ApprovalsFull { .. }
            | Self::NoRoom { .. } => Some(Duration::from_secs(1)),
            Self::Failed { error, .. } => error.retry_after(),
            _ => None,
        }
    }
}

impl WithNextStep for ExecuteError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        let known = match self {
            Self::Gone { .. } => FETCH_AGAIN,
            Self::UnknownRevision(_) => FETCH_AGAIN_OR_NAME,
            Self::StaleDefinition { .. } => READ_AGAIN,
            Self::OutputMissing { .. } => GIVE_OUTPUT,
            Self::NoActivity { .. } => START_ACTIVITY,
            Self::ApprovalsFull { .. } => DECIDE_FIRST,
            Self::Busy { .. } | Self::ChecksBusy { .. } => TRY_LATER,
            Self::NoRoom { .. } => TRY_WITH_ROOM,
            Self::ResultLeftOut { .. } => RAISE_HELD,
            Self::StateLost { .. } => ACCEPT_LOSS,
            Self::Internal(_) => SEE_LOG,
            Self::Ambiguous { candidates, .. } => return Some(call_either(candidates).into()),
            Self::RateLimited { wait, .. } => return Some(try_again_in(*wait).into()),
            Self::Held { id, .. } => return Some(accept_it(id).into()),
            Self::UnknownProfile(unknown) => return unknown.next_step(),
            Self::Unknown(_)
            | Self::NotTrusted { .. }
            | Self::Disabled { .. }
            | Self::OutOfBounds { .. }
            | Self::Invalid { .. }
            | Self::OutputUnfit { .. }
            | Self::ApprovalRequired { .. }
            | Self::ApprovalNotStored { .. }
            | Self::OtherOwner { .. }
            | Self::BreakerOpen { .. }
            | Self::Unavailable { .. }
            | Self::Failed { .. } => return None,
        };
        Some(known.into())
    }
}

/// Violations of a part of the arguments, with their places in the whole.
pub(super) fn under(pointer: &str, violations: Vec<Violation>) -> Vec<Violation> {
    let placed = violations.into_iter().map(|violation| Violation {
        pointer: format!("{pointer}{}", violation.pointer),
        ..violation
    });
    placed.collect()
}

fn awaited(waiting: Option<&ApprovalRequest>) -> String {
    waiting.map_or_else(String::new, |waiting| {
        format!(", and waits for it as `{}`", waiting.id)
    })
}

/// What is not called for a while, why, and for how long.
fn circuit_open(
    scenario: &ScenarioName,
    tool: Option<&ToolId>,
    failures: u32,
    last_failure: Option<&str>,
    wait: Duration,
) -> String {
    let last = last_failure
        .map(|code| format!(", the last time with `{code}`,"))
        .unwrap_or_default();
    let until = seconds(wait);
    match tool {
        Some(tool) => format!(
            "`{tool}` failed {failures} times in a row{last} and is not called for {until}; other tools of `{scenario}` are"
        ),
        None => format!(
            "`{scenario}` was not reached {failures} times in a row{last} and is not called for {until}"
        ),
    }
}

/// A wait in whole seconds: at the end of it the call is possible.
fn seconds(wait: Duration) -> String {
    format!("{} s", wait.as_secs_f64().ceil())
}

fn accept_it(id: &ToolId) -> String {
    let scenario = &id.scenario;
    format!("an operator accepts it with `callsheet pins accept {scenario}`")
}

fn try_again_in(wait: Duration) -> String {
    format!("try again in {}", seconds(wait))
}

fn call_either(candidates: &[ToolId]) -> String {
    let candidates: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    format!("call {}", candidates.join(" or "))
}

/// The first violations, and how many others there are.
fn shown(violations: &[Violation], more: bool) -> String {
    if violations.is_empty() {
        return "they are no JSON object".to_owned();
    }
    let texts: Vec<String> = violations
        .iter()
        .take(VIOLATIONS_SHOWN)
        .map(placed)
        .collect();
    let others = match (violations.len().saturating_sub(VIOLATIONS_SHOWN), more) {
        (0, false) => String::new(),
        (others, false) => format!(" (and {others} more)"),
        (others, true) => format!(" (and more than {others} more)"),
    };
    format!("{}{others}", texts.join("; "))
}

/// A violation with its place.
fn placed(violation: &Violation) -> String {
    if violation.pointer.is_empty() {
        return violation.message.clone();
    }
    format!("{}: {}", violation.pointer, violation.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_violations_are_shown_and_the_others_counted() {
        let violations: Vec<Violation> = (0..7)
            .map(|number| Violation {
                pointer: format!("/{number}"),
                message: "is wrong".to_owned(),
            })
            .collect();
        assert_eq!(shown(&violations[..2], false), "/0: is wrong; /1: is wrong");
        let all = shown(&violations, false);
        assert!(all.ends_with("; /4: is wrong (and 2 more)"), "{all}");
        let all = shown(&violations, true);
        assert!(all.ends_with(" (and more than 2 more)"), "{all}");
    }
}
