//! `callsheet call --wait`: waits for the decision about a call, for the input that its tool needs,
//! and for what came of it.

use std::time::Duration;

use serde_json::Value;

use super::super::client::{DaemonAnswer, DaemonClient, QueryPairs};
use super::super::{CommandError, output};
use super::answer;
use crate::model::ApprovalState;
use crate::runtime::Clock;

/// How often the daemon is polled. Every approval expires, so this ends.
const POLL: Duration = Duration::from_millis(500);

/// The approval once the call has ended, or will never be sent.
pub(super) async fn decided(daemon: &DaemonClient, id: &str) -> Result<DaemonAnswer, CommandError> {
    let decide = format!(
        "`callsheet approvals approve {id}` sends it, `callsheet approvals reject {id}` does not"
    );
    output::note(&output::sanitize(&format!(
        "waits for approval as {id}; {decide}"
    )));
    loop {
        let approval = daemon
            .get(&["approvals", id], QueryPairs::new(), "state")
            .await?;
        let state = approval.value["state"]
            .as_str()
            .and_then(|state| state.parse().ok());
        if state.is_none_or(ApprovalState::is_over) {
            return Ok(approval);
        }
        Clock::system().sleep(POLL).await;
    }
}

/// The answer of a call whose tool needs input, once it was given. Such input is given elsewhere,
/// and declined after a time, so this ends.
pub(super) async fn with_input(
    daemon: &DaemonClient,
    mut answer: DaemonAnswer,
) -> Result<DaemonAnswer, CommandError> {
    let Some(call) = answer.value["call_id"].as_str().map(str::to_owned) else {
        return Ok(answer);
    };
    let mut known = String::new();
    while is_under_way(&answer.value) {
        let interaction = &answer.value["interaction"];
        if let Some(id) = interaction["id"].as_str().filter(|id| *id != known) {
            known = id.to_owned();
            let question = interaction["message"].as_str().unwrap_or_default();
            let page = daemon.page("dashboard/calls");
            output::note(&output::sanitize(&format!(
                "waits for input as {id}: {question}; give it at {page}"
            )));
        }
        Clock::system().sleep(POLL).await;
        answer = daemon
            .get(&["calls", &call], QueryPairs::new(), "call_id")
            .await?;
    }
    Ok(answer)
}

/// Whether a call waits for input, or runs on after it was given.
fn is_under_way(answer: &Value) -> bool {
    answer["interaction"].is_object() || answer.get("success").is_none()
}

/// Prints what came of the call: its result, or why there is none.
pub(super) fn show(approval: &Value) -> Result<(), CommandError> {
    verdict(approval)?;
    answer::show(&approval["answer"])
}

/// Whether the call was approved and its tool succeeded, as an exit code.
pub(super) fn verdict(approval: &Value) -> Result<(), CommandError> {
    let refused = |message: String| {
        Err(CommandError::Refused {
            message,
            hint: None,
        })
    };
    match approval["state"]
        .as_str()
        .and_then(|state| state.parse().ok())
    {
        Some(ApprovalState::Rejected) => match approval["reason"].as_str() {
            Some(reason) => refused(format!("the call was rejected: {reason}")),
            None => refused("the call was rejected".to_owned()),
        },
        Some(ApprovalState::Expired) => match approval["reason"].as_str() {
            Some(reason) => refused(format!(
                "the call was not sent: it gave way to newer ones: {reason}"
            )),
            None => refused("the call was not sent: there was no decision in time".to_owned()),
        },
        Some(ApprovalState::Unknown) => {
            refused("what came of the call is unknown: the daemon ended while it ran".to_owned())
        }
        _ => answer::verdict(&approval["answer"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_did_not_run_to_its_end_is_no_success_whatever_the_reason() {
        for (state, reason, message) in [
            ("rejected", Some("no"), "the call was rejected: no"),
            ("expired", None, "there was no decision in time"),
            (
                "expired",
                Some("too many"),
                "it gave way to newer ones: too many",
            ),
            ("unknown-outcome", None, "what came of the call is unknown"),
        ] {
            let approval = json!({"state": state, "reason": reason, "answer": null});
            let Err(CommandError::Refused {
                message: refused, ..
            }) = verdict(&approval)
            else {
                panic!("{state}")
            };
            assert!(refused.contains(message), "{state}: {refused}");
        }
    }
}
