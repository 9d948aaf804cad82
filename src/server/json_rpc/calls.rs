//! `tools/call`: the result is what the tool gave back, and a tool that failed is an error with its
//! text.

use callsheet_provide::json_rpc::AnswerError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::active::Attended;
use crate::calls::track::FollowUp;
use crate::calls::{CallResponse, ExecuteError, Request};
use crate::model::{ApprovalRequest, ApprovalState, JsonText, Operation, OperationState};
use crate::protocols::LogLevel;
use crate::server::api::call_event_json;
use crate::server::json_rpc::RpcContext;

/// A person has to approve the call first. The codes of callsheet are outside the range that
/// JSON-RPC reserves.
const WAITS_FOR_APPROVAL: i64 = 1001;
/// The tool needs input of the caller.
const WAITS_FOR_INPUT: i64 = 1002;

/// Calls a tool.
pub(super) async fn call(context: &RpcContext, params: Option<JsonText>) -> Result<String, AnswerError> {
    let shared = &context.shared;
    let request = Request {
        profile: context.view.profile.clone(),
        chat: context.view.chat.clone(),
        remembered: true,
        collects: true,
        ..Request::new(&name(params.as_ref())?, arguments(params.as_ref())?)
    };
    // Frees them while the call waits.
    drop(params);
    let refused = |error: crate::calls::active::AttendError| AnswerError::refused(error.to_string());
    let call = shared.calls.attend(&request, context.owner, None, LogLevel::Info).map_err(refused)?;
    match shared.calls.execute_attended(request, call.clone()).await {
        Attended::NeedsInput(input) => {
            let why = format!("the tool needs input to continue: {}", input.message);
            let interaction = call_event_json::interaction(&input);
            Err(AnswerError::new(WAITS_FOR_INPUT, why)
                .with_data(json!({"call_id": &**call.id(), "interaction": interaction})))
        }
        Attended::Over(answered) => match &*answered {
            Ok(answered) => context.result(answered).await,
            Err(ExecuteError::ApprovalRequired { waiting: Some(waiting), .. }) => {
                context.approved(waiting.clone()).await
            }
            Err(refused) => Err(refusal(refused)),
        },
    }
}

/// The member `name` of the parameters.
pub(super) fn name(params: Option<&JsonText>) -> Result<String, AnswerError> {
    #[derive(Deserialize)]
    struct Named {
        name: String,
    }
    let named = params.filter(|params| params.get().starts_with('{'));
    let named = named.and_then(|params| serde_json::from_str::<Named>(params.get()).ok());
    named.map(|named| named.name).ok_or_else(|| AnswerError::invalid_params("Missing 'name'"))
}

/// The arguments: an object, which is empty if they are left out.
fn arguments(params: Option<&JsonText>) -> Result<JsonText, AnswerError> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let invalid = |why: String| AnswerError::invalid_params("Invalid parameters").with_data(why.into());
    let params = params.map_or("{}", JsonText::get);
    if !params.starts_with('{') {
        return Err(invalid("`params` must be a JSON object".to_owned()));
    }
    let sent: Arguments<'_> = serde_json::from_str(params).map_err(|error| invalid(error.to_string()))?;
    match sent.arguments.map_or("{}", RawValue::get) {
        "null" => Ok(JsonText::known("{}")),
        object if object.starts_with('{') => Ok(JsonText::known(object)),
        _ => Err(invalid("`arguments` is not an object".to_owned())),
    }
}

impl RpcContext {
    /// The result of a call that was made, waited for up to `mcp.wait` if it goes on.
    async fn result(&self, answered: &CallResponse) -> Result<String, AnswerError> {
        let outcome = &answered.outcome;
        match &answered.going {
            FollowUp::Followed(operation) => {
                let limit = self.shared.config.borrow().mcp_face.wait;
                let over = match self.shared.calls.operations() {
                    Some(operations) => operations.wait_until_over(&operation.id, limit).await,
                    None => None,
                };
                match over.filter(|operation| operation.state.is_over()) {
                    Some(operation) => of_operation(&operation),
                    None => Ok(json!({"status": "running", "operation_id": &*operation.id}).to_string()),
                }
            }
            _ if outcome.success => Ok(text(outcome.result.as_ref())),
            _ => Err(failure(outcome.error.as_deref(), outcome.code.as_deref())),
        }
    }

    /// The result of a call that needs approval. The same call hands out its outcome once.
    async fn approved(&self, mut request: std::sync::Arc<ApprovalRequest>) -> Result<String, AnswerError> {
        let approvals = self.shared.calls.approvals();
        if let Some(approvals) = approvals.as_ref().filter(|_| request.state == ApprovalState::Started) {
            let limit = self.shared.config.borrow().mcp_face.wait;
            request = approvals.wait_until_over(request, limit).await;
        }
        if let Some(approvals) = approvals.filter(|_| request.state.is_over()) {
            approvals.set_collected(&request.id);
        }
        of_approval(&request)
    }
}

fn text(result: Option<&JsonText>) -> String {
    result.map_or("null", JsonText::get).to_owned()
}

/// A tool that failed.
fn failure(error: Option<&str>, code: Option<&str>) -> AnswerError {
    let failed = AnswerError::invalid_request(error.unwrap_or("the tool failed"));
    match code {
        Some(code) => failed.with_data(json!({"code": code})),
        None => failed,
    }
}

fn of_operation(operation: &Operation) -> Result<String, AnswerError> {
    if operation.state == OperationState::Succeeded {
        return Ok(text(operation.result.as_ref()));
    }
    let error = operation.error.as_deref().or(operation.note.as_deref());
    Err(failure(error, None).with_data(json!({"operation_id": &*operation.id, "state": operation.state.to_string()})))
}

fn of_approval(request: &ApprovalRequest) -> Result<String, AnswerError> {
    let (tool, id) = (&request.tool, &request.id);
    let data = || json!({"approval_id": &**id, "state": request.state.to_string(), "expires_at": request.expires_at.to_string()});
    let waits = |why: String| Err(AnswerError::new(WAITS_FOR_APPROVAL, why).with_data(data()));
    match (request.state, &request.answer) {
        (ApprovalState::Waiting, _) => waits(format!(
            "the call of `{tool}` waits for the approval of a person; once it is decided, the same call gives its outcome"
        )),
        (ApprovalState::Started, _) => {
            waits(format!("the call of `{tool}` was approved and is under way; the same call gives its outcome later"))
        }
        (ApprovalState::Answered | ApprovalState::Failed, Some(answer)) if answer.success => {
            Ok(text(answer.result.as_ref()))
        }
        (ApprovalState::Answered | ApprovalState::Failed, answer) => {
            let answer = answer.as_ref();
            Err(failure(answer.and_then(|answer| answer.error.as_deref()), answer.and_then(|a| a.code.as_deref())))
        }
        (ApprovalState::Rejected, _) => {
            let reason = request.decided.as_ref().and_then(|decided| decided.reason.as_deref());
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            Err(AnswerError::refused(format!("the call of `{tool}` was rejected{reason}; it was not run"))
                .with_data(data()))
        }
        (ApprovalState::Expired, _) => {
            let why = request.gave_way().map_or_else(
                || format!("the call of `{tool}` was not approved in time; it was not run"),
                |reason| format!("the call of `{tool}` gave way to newer ones: {reason}; it was not run"),
            );
            Err(AnswerError::refused(why).with_data(data()))
        }
        (ApprovalState::Unknown, _) => Err(AnswerError::refused(format!(
            "the call of `{tool}` was approved, and whether it ran to its end is not known"
        ))
        .with_data(data())),
    }
}

/// A call that was not made, or got no valid answer.
fn refusal(refused: &ExecuteError) -> AnswerError {
    match refused {
        ExecuteError::Unknown(_) => AnswerError::invalid_request(refused.to_string()),
        ExecuteError::Invalid { violations, .. } => {
            let shown = violations.iter().map(|found| json!({"pointer": found.pointer, "message": found.message}));
            let data = json!({"violations": shown.collect::<Vec<Value>>()});
            AnswerError::invalid_params(refused.to_string()).with_data(data)
        }
        _ => {
            let mut data = json!({"code": refused.kind()});
            if let Some(wait) = refused.retry_after() {
                data["retry_after_s"] = json!(wait.as_secs());
            }
            AnswerError::refused(refused.to_string()).with_data(data)
        }
    }
}
