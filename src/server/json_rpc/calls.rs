//! `tools/call`: the result is what the tool gave back, and a tool that failed is an error with its
//! text. That callsheet declined a question of the tool stands beside the result, or in the data of
//! the error.

use std::sync::Arc;

use callsheet_provide::json_rpc::AnswerError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::active::AttendError;
use crate::calls::{
    AwaitedApproval, CallEnd, CallerRole, Failure, FailureCode, GoingOn, Reader, Request,
    ToolAnswer, WaitLimits,
};
use crate::formats::native;
use crate::model::{ApprovalRequest, JsonText, NamedVersion, NotAVersion};
use crate::protocols::LogLevel;
use crate::runtime::tasks::BodyStep;
use crate::server::api::call_event_json;
use crate::server::json_rpc::{MethodResult, RpcContext};

/// A person has to approve the call first. The codes of callsheet are outside the range that
/// JSON-RPC reserves.
const WAITS_FOR_APPROVAL: i64 = 1001;
/// The tool needs input of the caller.
const WAITS_FOR_INPUT: i64 = 1002;

/// Calls a tool.
pub(super) async fn call(
    context: &RpcContext,
    params: Option<JsonText>,
) -> Result<MethodResult, AnswerError> {
    let shared = &context.shared;
    let name = name(params.as_ref())?;
    let arguments = arguments(params.as_ref())?;
    let request = Request {
        profile: context.view.profile.clone(),
        permission: context.view.permission,
        chat: context.view.chat.clone(),
        definition_version: definition_version(params.as_ref())?,
        remembered: true,
        collects: true,
        ..Request::new(name, arguments, context.access.requester())
    };
    // Frees them while the call waits.
    drop(params);
    let refused = |error: AttendError| AnswerError::refused(error.to_string());
    let call = shared
        .calls
        .attend(&request, None, LogLevel::Info)
        .map_err(refused)?;
    let limits = WaitLimits::for_work(shared.config.borrow().mcp_face.wait);
    match shared
        .calls
        .settle(request, CallerRole::ById(Arc::clone(&call)), limits)
        .await
    {
        CallEnd::Answered(answer) => {
            let bytes = answer.bytes();
            shared
                .tasks
                .work_on_body(BodyStep::Further, bytes, move || answered(&answer))
                .await
        }
        CallEnd::AwaitsApproval(awaited) => Err(waits(&awaited)),
        CallEnd::NeedsInput(input) => {
            let why = format!(
                "the tool needs input to continue: {}",
                input.wanted.message()
            );
            let interaction = call_event_json::interaction(&input);
            Err(AnswerError::new(WAITS_FOR_INPUT, why)
                .with_data(json!({"call_id": &**call.id(), "interaction": interaction})))
        }
        CallEnd::Failed(failure) => Err(failed(&failure)),
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
    named
        .map(|named| named.name)
        .ok_or_else(|| AnswerError::invalid_params("Missing 'name'"))
}

/// The arguments: an object, which is empty if they are left out.
fn arguments(params: Option<&JsonText>) -> Result<JsonText, AnswerError> {
    #[derive(Deserialize)]
    struct Arguments<'a> {
        #[serde(borrow)]
        arguments: Option<&'a RawValue>,
    }
    let invalid =
        |why: String| AnswerError::invalid_params("Invalid parameters").with_data(why.into());
    let params = params.map_or("{}", JsonText::get);
    if !params.starts_with('{') {
        return Err(invalid("`params` must be a JSON object".to_owned()));
    }
    let sent: Arguments<'_> =
        serde_json::from_str(params).map_err(|error| invalid(error.to_string()))?;
    match sent.arguments.map_or("{}", RawValue::get) {
        "null" => Ok(JsonText::known("{}")),
        object if object.starts_with('{') => Ok(JsonText::known(object)),
        _ => Err(invalid("`arguments` is not an object".to_owned())),
    }
}

/// The version of the tool's definition that the call was made for, if it names one.
fn definition_version(params: Option<&JsonText>) -> Result<Option<NamedVersion>, AnswerError> {
    #[derive(Deserialize)]
    struct Version {
        definition_version: Option<Value>,
    }
    let invalid =
        |why: String| AnswerError::invalid_params("Invalid parameters").with_data(why.into());
    let params = params.map_or("{}", JsonText::get);
    let sent: Version = serde_json::from_str(params).map_err(|error| invalid(error.to_string()))?;
    let Some(named) = sent.definition_version else {
        return Ok(None);
    };
    let version = named.as_str().and_then(|text| text.parse().ok());
    version
        .ok_or_else(|| {
            invalid(format!(
                "`definition_version` is not a version: {NotAVersion}"
            ))
        })
        .map(Some)
}

/// The answer of a tool.
fn answered(answer: &ToolAnswer) -> Result<MethodResult, AnswerError> {
    let json = match &answer.going {
        GoingOn::As(operation) => {
            json!({"status": "running", "operation_id": &**operation}).to_string()
        }
        GoingOn::No | GoingOn::Untracked(_) if answer.success => answer
            .result
            .as_ref()
            .map_or("null", JsonText::get)
            .to_owned(),
        GoingOn::No | GoingOn::Untracked(_) => return Err(failed_by_tool(answer)),
    };
    Ok(MethodResult {
        json: json.into(),
        declined: answer.declined,
    })
}

/// A tool that failed.
fn failed_by_tool(answer: &ToolAnswer) -> AnswerError {
    let failed = AnswerError::invalid_request(answer.error.as_deref().unwrap_or("the tool failed"));
    let mut data = match (&answer.operation, &answer.code) {
        (Some(operation), _) => json!({"operation_id": &*operation.id, "state": operation.state}),
        (None, Some(code)) => json!({"code": &**code}),
        (None, None) => json!({}),
    };
    if let Some(why) = answer.declined {
        data["declined"] = why.to_string().into();
    }
    if data == json!({}) {
        failed
    } else {
        failed.with_data(data)
    }
}

/// What programs read about an approval.
fn approval_data(request: &ApprovalRequest) -> Value {
    json!({"approval_id": &*request.id, "state": request.state.to_string(), "expires_at": request.expires_at.to_string()})
}

/// A call that waits for approval, or is under way after it.
fn waits(awaited: &AwaitedApproval) -> AnswerError {
    let tool = &awaited.request.tool;
    let why = if awaited.is_under_way() {
        format!(
            "the call of `{tool}` was approved and is under way; the same call gives its outcome later"
        )
    } else {
        format!(
            "the call of `{tool}` waits for the approval of a person; once it is decided, the same call gives its outcome"
        )
    };
    AnswerError::new(WAITS_FOR_APPROVAL, why).with_data(approval_data(&awaited.request))
}

/// A call that was not made, not approved, or got no valid answer.
fn failed(failure: &Failure) -> AnswerError {
    if let (Some(request), Some(why)) = (&failure.approval, failure.not_approved(Reader::Program)) {
        return AnswerError::refused(why).with_data(approval_data(request));
    }
    match failure.code {
        FailureCode::UnknownTool => AnswerError::invalid_request(failure.to_string()),
        FailureCode::InvalidArguments => {
            let shown = failure
                .violations
                .iter()
                .map(|found| json!({"pointer": found.pointer, "message": found.message}));
            let data = json!({"violations": shown.collect::<Vec<Value>>()});
            AnswerError::invalid_params(failure.to_string()).with_data(data)
        }
        code => {
            let mut data = json!({"code": code.as_str()});
            if let Some(tool) = &failure.present {
                data["definition"] = json!(native::written(tool));
            }
            if let Some(wait) = failure.retry_after {
                data["retry_after_s"] = json!(wait.as_secs());
            }
            AnswerError::refused(failure.to_string()).with_data(data)
        }
    }
}
