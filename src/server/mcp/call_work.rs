//! What a call does from its request to its result, apart from the request that carries it: it is
//! settled, and an approval is decided in a form of the client where that is allowed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::calls::{
    AwaitedApproval, CallEnd, CallerRole, Failure, FailureCode, Request, ToolAnswer, WaitLimits,
};
use crate::model::text::marked;
use crate::model::{ApprovalRequest, JsonText};
use crate::protocols::InputWanted;
use crate::runtime::tasks::BodyStep;
use crate::server::SharedState;
use crate::server::auth::Access;
use crate::server::mcp::adjusted::{with_adjusted, with_text};
use crate::server::mcp::call_results as results;
use crate::server::mcp::caller::McpCaller;
use crate::server::mcp::find_tools::ClientTools;
use crate::server::mcp::held::{LongRequestEnd, LongRequestResult};
use crate::server::mcp::refusal::Refusal;
use crate::server::readable_arguments::ReadableArguments;

/// What a call is made with.
pub(super) struct CallWork {
    pub(super) shared: SharedState,
    pub(super) caller: Arc<McpCaller>,
    pub(super) access: Access,
    /// What the schema of the tool is looked up in if the arguments do not fit, where the client
    /// may not have read it.
    pub(super) tools: Option<ClientTools>,
}

/// The form in which a person approves a call.
const FORM: &str = r#"{"type":"object","properties":{"approve":{"type":"boolean","title":"Approve this call","description":"The call runs once, with exactly these arguments","default":false}},"required":["approve"]}"#;
/// The most characters of the arguments that the form shows. No form is shown for a call with more.
const SHOWN: usize = 2_000;

impl CallWork {
    /// Makes the call.
    pub(super) async fn run(self, request: Request) -> LongRequestEnd {
        let calls = &self.shared.calls;
        let name = request.name.clone();
        let limits = WaitLimits::for_work(self.shared.config.borrow().mcp_face.wait);
        let role = CallerRole::Connected(Arc::<McpCaller>::clone(&self.caller));
        let mut end = calls.settle(request, role, limits).await;
        if let CallEnd::AwaitsApproval(awaited) = &end
            && self.is_decided(awaited).await
        {
            end = calls.wait_for_end(end, limits).await;
        }
        match end {
            CallEnd::Answered(answer) => {
                let bytes = answer.bytes();
                self.shared
                    .tasks
                    .work_on_body(BodyStep::Further, bytes, move || answered(&answer))
                    .await
            }
            CallEnd::AwaitsApproval(awaited) => Ok(complete(
                results::awaits_approval(&awaited),
                &awaited.adjusted,
            )),
            CallEnd::NeedsInput(input) => {
                Ok(complete(results::failed(&input.wanted.message()), &[]))
            }
            CallEnd::Failed(failure) if failure.code == FailureCode::UnknownTool => {
                let name = failure.reason.as_deref().unwrap_or_default();
                Err(Refusal::invalid(format!("Unknown tool: {name}")))
            }
            CallEnd::Failed(failure) => {
                let schema = self.missing_schema(&failure, &name);
                Ok(complete(
                    results::of_failure(&failure, schema),
                    &failure.adjusted,
                ))
            }
        }
    }

    /// The definition of the tool, if the call failed because the arguments do not fit it, and the
    /// client may not have read it.
    fn missing_schema(&self, failure: &Failure, name: &str) -> Option<Value> {
        let tools = self
            .tools
            .as_ref()
            .filter(|_| failure.code == FailureCode::InvalidArguments)?;
        tools.definition_of(&self.shared.reader.snapshot(), name)
    }

    /// Whether a person decided about the call in a form.
    async fn is_decided(&self, awaited: &AwaitedApproval) -> bool {
        !awaited.is_under_way()
            && self.may_show_form()
            && self.by_form(&awaited.request).await.is_some()
    }

    /// Whether the person at the client may approve calls.
    fn may_show_form(&self) -> bool {
        let config = self.shared.config.borrow();
        let is_on = config.mcp_face.approve_by_elicitation && config.operator_token().is_none();
        is_on && self.access == Access::Full && self.caller.client.capabilities().shows_forms()
    }

    /// Has a person decide in a form. `None` if there is no decision, also because the form would
    /// not show the whole call. An earlier decision of another person counts in its place.
    async fn by_form(&self, waiting: &ApprovalRequest) -> Option<()> {
        let message = form_message(waiting)?;
        let question = InputWanted::question(&message, &JsonText::known(FORM));
        let reply = self.caller.request(&question).await?;
        let reply: Value = serde_json::from_str(reply.get()).unwrap_or_default();
        let by = format!(
            "the user of {}",
            self.caller.client.name().unwrap_or("an MCP client")
        );
        let decided = match (
            reply["action"].as_str(),
            reply["content"]["approve"].as_bool(),
        ) {
            (Some("accept"), Some(true)) => {
                // The end of the call is waited for below, with the limits of the request.
                self.shared
                    .calls
                    .approve(&waiting.id, &by, WaitLimits::NONE)
                    .await
            }
            (Some("accept" | "decline"), _) => {
                self.shared
                    .calls
                    .reject(
                        &waiting.id,
                        &by,
                        Some("rejected in the form of the MCP client"),
                    )
                    .await
            }
            _ => return None,
        };
        if let Err(error) = decided {
            tracing::debug!(error = %error, "a decision in a form of an MCP client did not count");
        }
        Some(())
    }
}

/// The text of the form; `None` if it would not show the whole call.
fn form_message(waiting: &ApprovalRequest) -> Option<String> {
    let arguments = ReadableArguments::new(&waiting.arguments, SHOWN);
    // Its line ends are those between its parts: a text in JSON has none.
    let lines: Vec<String> = arguments.text.lines().map(marked).collect();
    let text = lines.join("\n");
    if !arguments.is_whole || text.chars().nth(SHOWN).is_some() {
        return None;
    }
    let tool = marked(&waiting.tool.to_string());
    Some(format!(
        "The tool `{tool}` needs your approval. Its arguments:\n{text}"
    ))
}

/// The result of a tool, or the error of the protocol with which its MCP server answered.
fn answered(answer: &ToolAnswer) -> LongRequestEnd {
    if let Some(response) = &answer.response {
        if let Some(required) = &response.outcome.input_required {
            return Ok(LongRequestResult::NeedsInput(required.clone()));
        }
        if let Some(refusal) = results::refusal(&response.outcome) {
            return Err(refusal);
        }
    }
    let result = results::result(answer);
    let result = match answer.declined {
        Some(why) => with_text(result, &why.to_string()),
        None => result,
    };
    Ok(complete(result, &answer.adjusted))
}

fn complete(result: String, adjusted: &[String]) -> LongRequestResult {
    LongRequestResult::Complete(with_adjusted(result, adjusted))
}

/// What a modern client gets that has to send its call again with input.
pub(super) fn input_required(requests: &str, state: Option<&str>) -> String {
    let requests = if requests == "{}" {
        String::new()
    } else {
        format!(r#","inputRequests":{requests}"#)
    };
    let state = state
        .map(|state| format!(r#","requestState":{}"#, json!(state)))
        .unwrap_or_default();
    format!(r#"{{"resultType":"input_required"{requests}{state}}}"#)
}
