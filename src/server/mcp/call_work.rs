//! What a call does from its checks to its result, apart from the request that carries it: sending,
//! the approval in a form of the client, and waiting for an operation that goes on.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::calls::track::FollowUp;
use crate::calls::{CallResponse, ExecuteError, Request};
use crate::model::{ApprovalRequest, ApprovalState, JsonText, ToolId};
use crate::protocols::{InputReply, InputWanted};
use crate::server::SharedState;
use crate::server::auth::Access;
use crate::server::mcp::adjusted::with_adjusted;
use crate::server::mcp::call_results as results;
use crate::server::mcp::caller::McpCaller;
use crate::server::mcp::held::{CallEnd, CallEnding};
use crate::server::mcp::refusal::Refusal;

/// A call that is made.
pub(super) struct CallWork {
    pub(super) shared: SharedState,
    pub(super) request: Request,
    pub(super) caller: Arc<McpCaller>,
    pub(super) access: Access,
}

/// The form in which a person approves a call.
const FORM: &str = r#"{"type":"object","properties":{"approve":{"type":"boolean","title":"Approve this call","description":"The call runs once, with exactly these arguments","default":false}},"required":["approve"]}"#;
/// The most characters of the arguments that the form shows.
const SHOWN: usize = 2_000;

impl CallWork {
    /// Makes the call.
    pub(super) async fn run(self) -> CallEnd {
        let caller = Arc::clone(&self.caller);
        match self.shared.calls.execute_for(self.request.clone(), Some(caller)).await {
            Ok(answered) => self.answered(answered).await,
            Err(ExecuteError::Unknown(name)) => Err(Refusal::invalid(format!("Unknown tool: {name}"))),
            Err(ExecuteError::ApprovalRequired { id, waiting: Some(waiting), adjusted }) => {
                Ok(CallEnding::Complete(with_adjusted(self.approved(&id, waiting).await, &adjusted)))
            }
            Err(refused) => Ok(CallEnding::Complete(results::failed(&refused.to_string()))),
        }
    }

    async fn answered(&self, mut answered: CallResponse) -> CallEnd {
        if let Some(required) = answered.outcome.input_required.take() {
            return Ok(CallEnding::NeedsInput(required));
        }
        if let Some(refusal) = results::refusal(&answered.outcome) {
            return Err(refusal);
        }
        let over = match &answered.going {
            FollowUp::Followed(operation) => self.over(&operation.id).await,
            FollowUp::Over | FollowUp::Untracked(_) => None,
        };
        let result = over.unwrap_or_else(|| results::result(&answered));
        Ok(CallEnding::Complete(with_adjusted(result, &answered.adjusted)))
    }

    /// The result of an operation that is over within `mcp.wait`.
    async fn over(&self, id: &str) -> Option<String> {
        let limit = self.shared.config.borrow().mcp_face.wait;
        let operation = self.shared.calls.operations()?.wait_until_over(id, limit).await?;
        results::of_operation(&operation)
    }

    /// The result of a call that needs approval.
    async fn approved(&self, id: &ToolId, waiting: Arc<ApprovalRequest>) -> String {
        let decided = match waiting.state {
            ApprovalState::Waiting if self.may_show_form() => self.by_form(id, &waiting).await,
            _ => None,
        };
        let mut request = decided.unwrap_or(waiting);
        if request.state == ApprovalState::Started
            && let Some(approvals) = self.shared.calls.approvals()
        {
            let limit = self.shared.config.borrow().mcp_face.wait;
            request = approvals.wait_until_over(request, limit).await;
        }
        if request.state.is_over()
            && let Some(approvals) = self.shared.calls.approvals()
        {
            approvals.set_collected(&request.id);
        }
        results::of_approval(&request)
    }

    /// Whether the person at the client may approve calls.
    fn may_show_form(&self) -> bool {
        let config = self.shared.config.borrow();
        let is_on = config.mcp_face.approve_by_elicitation && config.operator_token().is_none();
        is_on && self.access == Access::Full && self.caller.client.capabilities().shows_forms()
    }

    /// Has a person decide in a form. `None` if there is no decision.
    async fn by_form(&self, id: &ToolId, waiting: &ApprovalRequest) -> Option<Arc<ApprovalRequest>> {
        let arguments: String = waiting.arguments.get().chars().take(SHOWN).collect();
        let cut = if arguments.len() < waiting.arguments.get().len() { " (cut)" } else { "" };
        let message = format!("The tool `{id}` needs your approval. Its arguments{cut}: {arguments}");
        let question = InputWanted::question(&message, &JsonText::known(FORM));
        let Ok(InputReply::Given(reply)) = self.caller.request(&question).await else { return None };
        let reply: Value = serde_json::from_str(reply.get()).unwrap_or_default();
        let by = format!("the user of {}", self.caller.client.name().unwrap_or("an MCP client"));
        let decided = match (reply["action"].as_str(), reply["content"]["approve"].as_bool()) {
            (Some("accept"), Some(true)) => self.shared.calls.approve(&waiting.id, &by).await,
            (Some("accept" | "decline"), _) => {
                self.shared.calls.reject(&waiting.id, &by, Some("rejected in the form of the MCP client")).await
            }
            _ => return None,
        };
        match decided {
            Ok(request) => Some(request),
            Err(error) => {
                tracing::debug!(error = %error, "a decision in a form of an MCP client did not count");
                self.shared.calls.approvals()?.get(&waiting.id)
            }
        }
    }
}

/// What a modern client gets that has to send its call again with input.
pub(super) fn input_required(requests: &str, state: Option<&str>) -> String {
    let requests = if requests == "{}" { String::new() } else { format!(r#","inputRequests":{requests}"#) };
    let state = state.map(|state| format!(r#","requestState":{}"#, json!(state))).unwrap_or_default();
    format!(r#"{{"resultType":"input_required"{requests}{state}}}"#)
}
