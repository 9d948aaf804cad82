//! The tools of callsheet itself: the state of an operation, and search in place of a long list.
//!
//! They can be called in every mode, whether or not a list shows them, and never reach a scenario:
//! `call_tool` becomes the call of the tool that it names before anything else looks at it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::catalog::{Hit, Snapshot, View};
use crate::formats::{CALL_TOOL, FIND_TOOLS, Format, GET_OPERATION};
use crate::model::JsonText;
use crate::server::api::{call_json, operations, shared_json};
use crate::server::mcp::context::McpContext;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::{call_results, lists};

/// The tokens of an answer of `find_tools`, if the model does not say how many.
const TOKENS: usize = 2_000;
/// The most tokens of an answer of `find_tools`.
const MOST_TOKENS: usize = 50_000;
/// How many tools a search looks at.
const HITS: usize = 50;
/// How many tools that do not fit are named.
const NAMED: usize = 10;

/// The parameters of `tools/call`, as far as they are needed here.
#[derive(Deserialize)]
struct Called<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// The call that a call of `call_tool` stands for; every other call as it is.
pub(super) fn meant(params: Option<JsonText>) -> Option<JsonText> {
    let params = params?;
    let unwrapped = || {
        let called: Called<'_> = serde_json::from_str(params.get()).ok()?;
        if called.name != CALL_TOOL {
            return None;
        }
        let inner: Value =
            serde_json::from_str(called.arguments.map_or("{}", RawValue::get)).ok()?;
        // Everything but the name and the arguments is of the request, not of the tool.
        let mut params: Value = serde_json::from_str(params.get()).ok()?;
        params["name"] = inner["name"].as_str()?.into();
        params["arguments"] = inner.get("arguments").cloned().unwrap_or_else(|| json!({}));
        JsonText::parse(&params.to_string()).ok()
    };
    Some(unwrapped().unwrap_or(params))
}

/// The result of a call of a tool of callsheet itself; `None` for every other tool.
pub(super) async fn call(
    context: &McpContext,
    params: Option<&JsonText>,
) -> Option<Result<String, Refusal>> {
    let called: Called<'_> = serde_json::from_str(params?.get()).ok()?;
    let arguments = called.arguments.map_or("{}", RawValue::get);
    let answer = match called.name.as_str() {
        GET_OPERATION => operation(context, arguments),
        FIND_TOOLS => found(context, arguments).await,
        CALL_TOOL => {
            Err("`call_tool` needs the `name` of a tool and its `arguments`, an object".to_owned())
        }
        _ => return None,
    };
    Some(Ok(answer.map_or_else(
        |why| call_results::failed(&why),
        |value| result(&value),
    )))
}

fn result(value: &Value) -> String {
    let content = json!([{"type": "text", "text": value.to_string()}]);
    json!({"resultType": "complete", "content": content, "structuredContent": value}).to_string()
}

/// The arguments of a tool, or what is wrong with them.
fn read<'a, T: Deserialize<'a>>(tool: &str, arguments: &'a str) -> Result<T, String> {
    // An array would be read as the members in their order.
    if !arguments.starts_with('{') {
        return Err(format!("the arguments of `{tool}` must be a JSON object"));
    }
    serde_json::from_str(arguments)
        .map_err(|error| format!("the arguments of `{tool}` cannot be read: {error}"))
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

/// `find_tools`: the best tools of the view within the budget.
async fn found(context: &McpContext, arguments: &str) -> Result<Value, String> {
    #[derive(Deserialize)]
    struct FindArguments {
        query: String,
        max_tokens: Option<usize>,
    }
    let FindArguments { query, max_tokens } = read(FIND_TOOLS, arguments)?;
    if query.trim().is_empty() {
        return Err("`query` is empty: say in a few words what the tool should do".to_owned());
    }
    let tokens = max_tokens.unwrap_or(TOKENS).min(MOST_TOKENS);
    let snapshot = context.shared.reader.snapshot();
    let format = lists::format(context, &snapshot);
    let view = lists::searched(context);
    // If there is no index yet, it is built now, which may take too long for an async thread.
    let search = move || within(&hits(&snapshot, &view, &query), format, tokens);
    Ok(context.shared.tasks.off_thread(search).await)
}

fn hits(snapshot: &Snapshot, view: &crate::catalog::ViewQuery, text: &str) -> Vec<Hit> {
    View::select(&snapshot.catalog, view).rank(text, HITS)
}

/// The tools that fit into so many tokens, and the names of the next ones.
fn within(hits: &[Hit], format: &'static dyn Format, tokens: usize) -> Value {
    let mut shown = Vec::new();
    let mut others = Vec::new();
    let mut left = tokens;
    for hit in hits {
        let Some(tool) = definition(hit, format) else {
            continue;
        };
        let cost = format.limits().tokens(tool.to_string().len());
        if cost <= left {
            left -= cost;
            shown.push(tool);
        } else if others.len() < NAMED {
            others.push(tool["name"].clone());
        }
    }
    let mut answer = json!({"tools": shown});
    if !others.is_empty() {
        answer["others"] = others.into();
        answer["note"] =
            "`others` fit too, but not within `max_tokens`; raise it to see them".into();
    }
    if hits.is_empty() {
        answer["note"] = "no matching tools; try other words".into();
    }
    answer
}

/// What a model needs to call a tool.
fn definition(hit: &Hit, format: &'static dyn Format) -> Option<Value> {
    let whole: Value = serde_json::from_slice(&format.encode(&hit.tool).json?).ok()?;
    let mut tool = json!({});
    for member in ["name", "description", "inputSchema"] {
        if let Some(value) = whole.get(member) {
            tool[member] = value.clone();
        }
    }
    Some(tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_through_call_tool_is_the_call_of_the_tool() {
        let sent = JsonText::parse(
            r#"{"name":"call_tool","arguments":{"name":"files__read","arguments":{"a":1}},"_meta":{"progressToken":1}}"#,
        );
        let meant_call: Value =
            serde_json::from_str(meant(Some(sent.unwrap())).unwrap().get()).unwrap();
        let expected =
            json!({"name": "files__read", "arguments": {"a": 1}, "_meta": {"progressToken": 1}});
        assert_eq!(meant_call, expected);
        for other in [
            r#"{"name":"files__read","arguments":{"name":"x"}}"#,
            r#"{"name":"call_tool"}"#,
            "[]",
        ] {
            assert_eq!(
                meant(Some(JsonText::parse(other).unwrap())).unwrap().get(),
                other
            );
        }
    }
}
