//! What a model gets when a call has no result: what happened, and what it can do.
//!
//! Tools are named as the model's list names them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use super::settled::{Settled, TurnCallStatus};
use crate::calls::not_approved::UNKNOWN_TO_MODEL;
use crate::calls::request::{UNTRACKED, UNTRACKED_ERROR};
use crate::calls::{Failure, FailureCode, GoingOn, Reader, ToolAnswer, Violation};
use crate::formats::native;
use crate::model::{ToolId, ViewTool};
use crate::runtime::BudgetExceeded;

/// What became of a call that is over. `name` is the one that the model used, and `names` gives a
/// tool's name in the model's list.
pub(super) fn of_failure(
    name: &str,
    failure: &Failure,
    names: &dyn Fn(&ToolId) -> String,
) -> Settled {
    if let (Some(request), Some(text)) =
        (&failure.approval, failure.not_approved(Reader::Model(name)))
    {
        let status = match failure.code {
            FailureCode::UnknownOutcome => TurnCallStatus::UnknownOutcome,
            _ => TurnCallStatus::Refused,
        };
        let settled = Settled::with_text(status, failure.code.as_str(), text);
        return Settled {
            approval_id: Some(Arc::clone(&request.id)),
            ..settled
        };
    }
    let status = if failure.is_refusal() {
        TurnCallStatus::Refused
    } else {
        TurnCallStatus::Failed
    };
    let text = failure_text(name, failure, names);
    Settled {
        violations: failure.violations.clone(),
        candidates: failure.candidates.iter().map(names).collect(),
        ..Settled::with_text(status, failure.code.as_str(), text)
    }
}

/// What became of a call whose tool answered.
pub(super) fn of_answer(answer: &ToolAnswer) -> Settled {
    let settled = Settled {
        result: answer.result.clone(),
        content: answer
            .content
            .clone()
            .filter(|whole| whole.get().starts_with('{')),
        code: answer.code.as_deref().map(str::to_owned),
        took_ms: answer.took_ms,
        adjusted: answer.adjusted.clone(),
        approval_id: answer.approval.clone(),
        declined: answer.declined,
        definition: answer
            .response
            .as_ref()
            .and_then(|response| Some(response.definition.as_ref()?.id.to_string())),
        ..Settled::new(TurnCallStatus::Result)
    };
    if answer
        .response
        .as_ref()
        .is_some_and(|response| response.outcome.input_required.is_some())
    {
        let text =
            "The tool needs input that cannot be given here. Do without it, or tell the user.";
        let code = Some("input_required".to_owned());
        return Settled {
            status: TurnCallStatus::Failed,
            said: Some(text.to_owned()),
            code,
            result: None,
            ..settled
        };
    }
    if !answer.success {
        let error = answer.error.as_deref().unwrap_or("the tool failed");
        let text = settled
            .content
            .is_none()
            .then(|| with_code(error, settled.code.as_deref()));
        return Settled {
            status: TurnCallStatus::Failed,
            said: text,
            result: None,
            ..settled
        };
    }
    let status = TurnCallStatus::Operation;
    match (&answer.going, answer.error.as_deref()) {
        (GoingOn::As(id), _) => {
            let note = format!(
                "The tool goes on in the background as operation {id}; its outcome is not known yet."
            );
            Settled {
                status,
                note: Some(note),
                operation_id: Some(Arc::clone(id)),
                ..settled
            }
        }
        (GoingOn::Untracked(why), _) => {
            let note = format!("The tool answered, and {UNTRACKED_ERROR}{why}.");
            Settled {
                status,
                note: Some(note),
                code: Some(UNTRACKED.to_owned()),
                ..settled
            }
        }
        // An answer that is too large to be kept until it is handed out.
        (GoingOn::No, Some(why)) => Settled {
            said: Some(format!("The tool succeeded, but {why}.")),
            ..settled
        },
        (GoingOn::No, None) => settled,
    }
}

fn with_code(error: &str, code: Option<&str>) -> String {
    code.map_or_else(|| error.to_owned(), |code| format!("{error} ({code})"))
}

/// Why a call was not made or failed, for the model.
fn failure_text(name: &str, failure: &Failure, names: &dyn Fn(&ToolId) -> String) -> String {
    let why = &failure.to_string();
    match failure.code {
        FailureCode::InvalidArguments => {
            let places = places(&failure.violations, failure.has_more_violations);
            format!(
                "The arguments do not fit the parameters of `{name}`:{places}. The tool did not run. Correct the arguments and call it again."
            )
        }
        FailureCode::OutputMissing => {
            format!(
                "No program runs `{name}`: you produce its result. Call it again with the result as `_output`."
            )
        }
        FailureCode::InvalidOutput => {
            let places = places(&failure.violations, failure.has_more_violations);
            format!(
                "Your `_output` does not fit the results of `{name}`:{places}. Correct it and call again."
            )
        }
        FailureCode::NoActivity => {
            format!("The program that runs `{name}` is not there. Do without it, or tell the user.")
        }
        FailureCode::Ambiguous => {
            let candidates: Vec<String> = failure
                .candidates
                .iter()
                .map(|id| format!("`{}`", names(id)))
                .collect();
            format!(
                "`{name}` may mean several tools. Call {} instead.",
                candidates.join(" or ")
            )
        }
        FailureCode::ToolGone => {
            let id = failure
                .tool
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            format!(
                "`{name}` was the tool `{id}`, which is gone. Do without it, or use another tool."
            )
        }
        FailureCode::StaleDefinition => stale(name, failure.present.as_deref()),
        FailureCode::Disabled => format!("`{name}` is disabled. Do without it, or tell the user."),
        FailureCode::NotTrusted
        | FailureCode::Held
        | FailureCode::NotAllowed
        | FailureCode::UnknownProfile => {
            format!("`{name}` may not be called: {why}. Do without it, or tell the user.")
        }
        _ if failure.is_refusal() => match failure.retry_after {
            Some(wait) => format!(
                "{why}. The tool did not run. It may be called again in {}.",
                seconds(wait)
            ),
            None => format!("{why}. The tool did not run."),
        },
        FailureCode::Internal => maybe_run(why),
        _ if failure.was_sent => maybe_run(why),
        _ => format!("{why}. The tool did not run. Try again later, or do without it."),
    }
}

/// A call that was made for another definition than the tool has now.
fn stale(name: &str, present: Option<&ViewTool>) -> String {
    let definition = present.and_then(native::written);
    let shown = definition
        .map(|definition| format!(" It is now: {definition}"))
        .unwrap_or_default();
    format!(
        "The definition of `{name}` changed after you were given it, so the tool did not run. Call it again once you are given the new one.{shown}"
    )
}

/// A call that failed after it was sent, or may have been.
fn maybe_run(why: &str) -> String {
    format!("{why}. The tool may have done its work: check that before you call it again.")
}

/// What does not fit, with its place, each after a space.
fn places(violations: &[Violation], more: bool) -> String {
    let mut text = String::new();
    for violation in violations {
        let place = if violation.pointer.is_empty() {
            "the whole"
        } else {
            &violation.pointer
        };
        let _ = write!(text, " {place}: {};", violation.message);
    }
    if more {
        text.push_str(" and more;");
    }
    text.pop();
    text
}

fn seconds(wait: Duration) -> String {
    match wait.as_millis().div_ceil(1000).max(1) {
        1 => "a second".to_owned(),
        seconds => format!("{seconds} seconds"),
    }
}

/// A call whose result is left out, because the results of its turn or those of all turns have no
/// room for it.
pub(super) fn left_out(settled: &Settled, exceeded: BudgetExceeded) -> Settled {
    let happened = match settled.status {
        TurnCallStatus::Result => "The tool succeeded",
        TurnCallStatus::Operation => "The tool goes on in the background",
        _ => "The tool failed",
    };
    let bytes = settled.weight();
    let text = match exceeded {
        BudgetExceeded::Share { limit } => format!(
            "{happened}, but its answer of {bytes} bytes is left out: the answers to all calls of one message may have {limit} bytes together. Call it again alone, or for less."
        ),
        BudgetExceeded::Whole { .. } => format!(
            "{happened}, but its answer of {bytes} bytes is left out: there is no room for it now. Call it again later, or for less."
        ),
    };
    Settled {
        approval_id: settled.approval_id.clone(),
        operation_id: settled.operation_id.clone(),
        took_ms: settled.took_ms,
        definition: settled.definition.clone(),
        ..Settled::with_text(settled.status, "result_left_out", text)
    }
}

/// A call of a tool that does not exist.
pub(super) fn unknown(name: &str, near: &[String]) -> Settled {
    let next = match near {
        [] => "Call only tools that are in your list.".to_owned(),
        near => {
            format!(
                "Did you mean {}?",
                near.iter()
                    .map(|name| format!("`{name}`"))
                    .collect::<Vec<_>>()
                    .join(" or ")
            )
        }
    };
    let text = format!("There is no tool `{name}`. {next}");
    Settled {
        candidates: near.to_vec(),
        ..Settled::with_text(TurnCallStatus::Refused, "unknown_tool", text)
    }
}

/// A call without the name of a tool.
pub(super) fn nameless() -> Settled {
    let text = "The call names no tool, so no tool ran. Call it again with the name of a tool that is in your list.";
    Settled::with_text(TurnCallStatus::Refused, "unknown_tool", text)
}

/// A call whose arguments cannot be read.
pub(super) fn unreadable(name: &str, why: &str) -> Settled {
    let text = format!(
        "The arguments of `{name}` cannot be used: {why}. The tool did not run. Send one JSON object and call it again."
    );
    Settled::with_text(TurnCallStatus::Refused, "invalid_arguments", text)
}

/// A call with the id of an earlier one.
pub(super) fn repeated_id() -> Settled {
    let text = "Another call of this message has the same id, and only that one was run. Call again with an id of its own.";
    Settled::with_text(TurnCallStatus::Refused, "duplicate_id", text)
}

/// A call beyond the most of one turn.
pub(super) fn too_many(most: usize) -> Settled {
    let text = format!(
        "Only the first {most} calls of a message are run. The tool did not run. Call it again."
    );
    Settled::with_text(TurnCallStatus::Refused, "too_many_calls", text)
}

/// A call that is not needed after another one of its turn.
pub(super) fn not_needed(was_begun: bool) -> Settled {
    let text = if was_begun {
        "Another call of this message was enough, so this one was cancelled. Its tool may have done its work."
    } else {
        "Another call of this message was enough, so this one was not made."
    };
    Settled::with_text(TurnCallStatus::NotNeeded, "not_needed", text)
}

/// A call of a turn that could not be stored.
pub(super) fn not_stored() -> Settled {
    let text =
        "The call could not be stored, so it was not run. Tell the user, or try again later.";
    Settled::with_text(TurnCallStatus::Refused, "not_stored", text)
}

/// A call of a turn whose calls cannot have their ids.
pub(super) fn id_taken() -> Settled {
    let text =
        "Another call has the id of this one, so it was not run. Give the turn another `turn_id`.";
    Settled::with_text(TurnCallStatus::Refused, "turn_id_taken", text)
}

/// A call that had begun when the daemon ended.
pub(super) fn unknown_outcome() -> Settled {
    Settled::with_text(
        TurnCallStatus::UnknownOutcome,
        "unknown_outcome",
        UNKNOWN_TO_MODEL,
    )
}

/// A call that waits for approval, for a model that is not waited for.
pub(super) fn waits(name: &str, approval: &Arc<str>) -> Settled {
    let text = format!(
        "The call of `{name}` waits for the approval of a person, under the id {approval}, and did not run yet. Tell the user, and do not call it again."
    );
    let settled = Settled::with_text(
        TurnCallStatus::WaitingForApproval,
        "approval_required",
        text,
    );
    Settled {
        approval_id: Some(Arc::clone(approval)),
        ..settled
    }
}

/// What became of a call that went on as an operation, once that is over.
pub(super) fn of_operation(begun: &Settled, answer: &ToolAnswer) -> Settled {
    let over = Settled {
        note: None,
        content: None,
        ..begun.clone()
    };
    match &answer.operation {
        Some(operation) if !answer.success => {
            let error = answer.error.as_deref().unwrap_or("it did not end well");
            let text = format!(
                "The operation {} is {}: {error}",
                operation.id, operation.state
            );
            let code = Some(operation.state.to_owned());
            Settled {
                status: TurnCallStatus::Failed,
                said: Some(text),
                code,
                result: None,
                ..over
            }
        }
        _ => Settled {
            status: TurnCallStatus::Result,
            result: answer.result.clone(),
            ..over
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::ExecuteError;
    use crate::protocols::CallError;
    use crate::transports::TransportError;

    fn said(error: CallError) -> Settled {
        let refused = ExecuteError::Failed {
            id: "bank/pay".parse().unwrap(),
            error,
            attempts: 1,
        };
        of_failure("pay", &Failure::from(&refused), &ToString::to_string)
    }

    #[test]
    fn a_model_learns_whether_a_call_that_failed_may_have_run() {
        let timeout = || TransportError::Timeout {
            url: "http://h".into(),
            limit: Duration::from_secs(1),
        };
        let broken = || TransportError::Broken {
            url: "http://h".into(),
            message: "it ended early".into(),
        };
        for error in [timeout(), broken()] {
            let sent = said(CallError::Unanswered(error.clone()));
            assert_eq!(sent.status, TurnCallStatus::Failed);
            let text = sent.said.unwrap();
            assert!(
                text.contains("may have done its work") && !text.contains("did not run"),
                "{text}"
            );
            let unsent = said(CallError::Unsent(error));
            assert_eq!(unsent.status, TurnCallStatus::Failed);
            let text = unsent.said.unwrap();
            assert!(
                text.contains("did not run") && !text.contains("may have done"),
                "{text}"
            );
        }
    }
}
