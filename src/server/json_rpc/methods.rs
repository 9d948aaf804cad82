//! The methods, and the result of each but `tools/call`.

use bytes::Bytes;
use callsheet_provide::json_rpc::AnswerError;

use crate::catalog::{NameLookup, find_in_scope, out_of_bounds};
use crate::formats::native::NativeFormat;
use crate::formats::{Format, json_rpc_tools};
use crate::model::{JsonText, NameRef, ViewTool};
use crate::server::http::held::with_reservation;
use crate::server::json_rpc::{MethodResult, RpcContext};
use crate::server::json_rpc::{calls, capabilities};
use crate::views::{Coding, HeldView, ViewRequest};

/// The result of a method.
pub(super) async fn answer(
    context: &RpcContext,
    method: &str,
    params: Option<JsonText>,
) -> Result<MethodResult, AnswerError> {
    match method {
        "tools/list" => {
            let list = list(context).await?;
            Ok(with_reservation(list.prepared.body.clone(), list.reserved).into())
        }
        "tools/call" => calls::call(context, params).await,
        "tools/describe" => describe(context, params.as_ref()).map(|tool| Bytes::from(tool).into()),
        "server/identity" => {
            let identity = context.shared.identities.of(&list(context).await?.prepared);
            let identity = identity.and_then(|identity| serde_json::to_string(&*identity).ok());
            let identity = identity.ok_or_else(AnswerError::internal)?;
            Ok(Bytes::from(identity).into())
        }
        "server/capabilities" => {
            capabilities::answer(context, params.as_ref()).map(|answer| Bytes::from(answer).into())
        }
        _ => Err(AnswerError::method_not_found()),
    }
}

async fn list(context: &RpcContext) -> Result<HeldView, AnswerError> {
    let snapshot = context.shared.reader.snapshot();
    let wanted = ViewRequest {
        query: &context.view,
        format: json_rpc_tools(),
        report: false,
    };
    let held = context
        .shared
        .views
        .prepare_for(&snapshot, wanted, Coding::Identity, &context.answers)
        .await;
    held.map_err(|refused| AnswerError::refused(refused.to_string()))
}

/// `tools/describe`: the tool as in the list, and in `details` as `GET /api/v1/tools/{name}` has
/// it.
fn describe(context: &RpcContext, params: Option<&JsonText>) -> Result<String, AnswerError> {
    let name = calls::name(params)?;
    let snapshot = context.shared.reader.snapshot();
    let unknown = || AnswerError::invalid_request(format!("no tool is called `{name}`"));
    let catalog = &snapshot.catalog;
    let is_listed = |tool: &ViewTool| {
        let is_on = tool.effective.enabled && !tool.is_internal();
        is_on
            && catalog.shows(&context.view, &tool.id.scenario)
            && out_of_bounds(catalog, &context.view, tool).is_none()
    };
    let tool = match find_in_scope(catalog, &context.view, &NameRef::parse(&name)) {
        NameLookup::One(tool) if is_listed(&tool) => tool,
        _ => return Err(unknown()),
    };
    let text = |format: &dyn Format| {
        format
            .encode(&tool)
            .json
            .and_then(|json| String::from_utf8(json).ok())
    };
    let listed = text(json_rpc_tools()).ok_or_else(unknown)?;
    let details = text(&NativeFormat).ok_or_else(AnswerError::internal)?;
    let members = listed.strip_suffix('}').ok_or_else(AnswerError::internal)?;
    Ok(format!(r#"{members},"details":{details}}}"#))
}
