//! The tools of callsheet itself: the state of an operation, and search in place of a long list.
//!
//! They can be called in every mode, whether or not a list shows them, and never reach a scenario:
//! `call_tool` becomes the call of the tool that it names before anything else looks at it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::formats::{CALL_TOOL, DESCRIBE_TOOLS, FIND_TOOLS, GET_OPERATION};
use crate::model::JsonText;
use crate::server::api::{call_json, operations, shared_json};
use crate::server::mcp::context::McpContext;
use crate::server::mcp::own_answer::{OwnAnswer, read};
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::{call_results, find_tools};

/// The parameters of `tools/call`, as far as they are needed here.
#[derive(Deserialize)]
struct Called<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// A call as it is meant.
pub(super) struct MeantCall {
    /// The parameters of the call.
    pub(super) params: Option<JsonText>,
    /// Whether it was made through `call_tool`.
    pub(super) through_call_tool: bool,
}

/// The call that a call of `call_tool` stands for; every other call as it is.
pub(super) fn meant(params: Option<JsonText>) -> MeantCall {
    let unwrapped = params.as_ref().and_then(unwrapped);
    MeantCall {
        through_call_tool: unwrapped.is_some(),
        params: unwrapped.or(params),
    }
}

/// The parameters of the call that `call_tool` is to make; `None` if it is another tool that is
/// called, or no call can be read.
fn unwrapped(params: &JsonText) -> Option<JsonText> {
    let called: Called<'_> = serde_json::from_str(params.get()).ok()?;
    if called.name != CALL_TOOL {
        return None;
    }
    let inner: Value = serde_json::from_str(called.arguments.map_or("{}", RawValue::get)).ok()?;
    // Everything but the name and the arguments is of the request, not of the tool.
    let mut params: Value = serde_json::from_str(params.get()).ok()?;
    params["name"] = inner["name"].as_str()?.into();
    params["arguments"] = inner.get("arguments").cloned().unwrap_or_else(|| json!({}));
    JsonText::parse(&params.to_string()).ok()
}

/// The result of a call of a tool of callsheet itself; `None` for every other tool.
pub(super) async fn call(
    context: &McpContext,
    params: Option<&JsonText>,
) -> Option<Result<String, Refusal>> {
    let called: Called<'_> = serde_json::from_str(params?.get()).ok()?;
    let arguments = called.arguments.map_or("{}", RawValue::get);
    let answer = match called.name.as_str() {
        GET_OPERATION => operation(context, arguments).map(OwnAnswer::of_value),
        FIND_TOOLS => find_tools::found(context, arguments).await,
        DESCRIBE_TOOLS => find_tools::described(context, arguments).await,
        CALL_TOOL => {
            Err("`call_tool` needs the `name` of a tool and its `arguments`, an object".to_owned())
        }
        _ => return None,
    };
    Some(Ok(answer.map_or_else(
        |why| call_results::failed(&why),
        OwnAnswer::into_result,
    )))
}

/// `get_operation`: an operation that was begun in the scope of this client, with its access.
fn operation(context: &McpContext, arguments: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct OperationArguments {
        operation_id: String,
    }
    let OperationArguments { operation_id } = read(GET_OPERATION, arguments)?;
    let view = &context.list.view;
    let known = operations::find(&context.shared, &operation_id, context.access);
    let own = known.filter(|known| {
        known
            .caller
            .is_within(view.chat.as_deref(), view.profile.as_deref())
    });
    let own = own.ok_or_else(|| {
        format!("no operation is known as {operation_id:?}: it is too long ago, or the id is another one")
    })?;
    let shown = call_json::operation(&own);
    let result_bytes = own.result.as_ref().map_or(0, |result| result.get().len());
    let text = shared_json::bytes(&shown, result_bytes).ok();
    let shown = text.and_then(|text| serde_json::from_slice(&text).ok());
    shown.ok_or_else(|| "the operation cannot be shown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_through_call_tool_is_the_call_of_the_tool() {
        let sent = JsonText::parse(
            r#"{"name":"call_tool","arguments":{"name":"files__read","arguments":{"a":1}},"_meta":{"progressToken":1}}"#,
        );
        let meant_call = meant(Some(sent.unwrap()));
        assert!(meant_call.through_call_tool);
        let meant_call: Value = serde_json::from_str(meant_call.params.unwrap().get()).unwrap();
        let expected =
            json!({"name": "files__read", "arguments": {"a": 1}, "_meta": {"progressToken": 1}});
        assert_eq!(meant_call, expected);
        for other in [
            r#"{"name":"files__read","arguments":{"name":"x"}}"#,
            r#"{"name":"call_tool"}"#,
            "[]",
        ] {
            let meant_call = meant(Some(JsonText::parse(other).unwrap()));
            assert!(!meant_call.through_call_tool);
            assert_eq!(meant_call.params.unwrap().get(), other);
        }
    }
}
