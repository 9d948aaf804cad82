//! `tools/call`: the way of every call, and its outcome as a result of the protocol.
//!
//! What a model can repair or wait for is a result with `isError`; only a tool that is not known is
//! an error of the protocol. The result of an MCP server is passed on as it came.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::track::FollowUp;
use crate::calls::{CallResponse, ExecuteError, Request};
use crate::catalog::{NameLookup, find_in_scope};
use crate::model::{JsonText, NameRef};
use crate::server::mcp::adjusted::with_adjusted;
use crate::server::mcp::answer::Answer;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::param_headers;
use crate::server::mcp::refusal::Refusal;

#[derive(Deserialize)]
struct ToolCallParams<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

/// Calls a tool and writes the result.
pub(super) async fn call(
    context: &McpContext,
    client: McpClient,
    (_id, params): (&JsonText, Option<&JsonText>),
) -> Result<Answer, Refusal> {
    let params = params.map_or("{}", JsonText::get);
    let sent: ToolCallParams<'_> =
        serde_json::from_str(params).map_err(|error| Refusal::invalid(format!("no call can be read: {error}")))?;
    let arguments = sent.arguments.map_or("{}", RawValue::get);
    let arguments = if arguments == "null" { "{}" } else { arguments };
    if !arguments.starts_with('{') {
        return Err(Refusal::invalid("`arguments` is not an object"));
    }
    if client.is_modern() {
        check_headers(context, &sent.name, arguments)?;
    }
    let request = Request {
        profile: context.list.view.profile.clone(),
        chat: context.list.view.chat.clone(),
        remembered: true,
        ..Request::new(&sent.name, JsonText::known(arguments))
    };
    match context.shared.calls.execute(request).await {
        Ok(answered) => Ok(Answer::Result(with_adjusted(result(&answered), &answered.adjusted).into())),
        Err(ExecuteError::Unknown(name)) => Err(Refusal::invalid(format!("Unknown tool: {name}"))),
        Err(ExecuteError::ApprovalRequired { id, waiting: Some(waiting), adjusted }) => {
            let text = format!(
                "The call of `{id}` waits for the approval of a person, under the id {}. It is decided on the dashboard, or by `callsheet approvals approve {}`, until {}. Tell the user; do not repeat the call.",
                waiting.id, waiting.id, waiting.expires_at
            );
            Ok(Answer::Result(with_adjusted(failed(&text), &adjusted).into()))
        }
        Err(refused) => Ok(Answer::Result(failed(&refused.to_string()).into())),
    }
}

/// Compares the headers of a call with its arguments, by the schema that was listed.
fn check_headers(context: &McpContext, name: &str, arguments: &str) -> Result<(), Refusal> {
    let snapshot = context.shared.reader.snapshot();
    match find_in_scope(&snapshot.catalog, &context.list.view, &NameRef::parse(name)) {
        NameLookup::One(tool) => param_headers::check(&context.headers, tool.tool.parameters.get(), arguments),
        // The call says what is wrong.
        NameLookup::None | NameLookup::Ambiguous(_) => Ok(()),
    }
}

/// The outcome of a call as a result.
fn result(answered: &CallResponse) -> String {
    let outcome = &answered.outcome;
    if let Some(whole) = outcome.content.as_ref().filter(|whole| whole.get().starts_with('{')) {
        return complete(whole.get());
    }
    if !outcome.success {
        let code = outcome.code.as_deref().map(|code| format!(" ({code})")).unwrap_or_default();
        return failed(&format!("{}{code}", outcome.error.as_deref().unwrap_or("the tool failed")));
    }
    let goes_on = match &answered.going {
        FollowUp::Over => None,
        FollowUp::Followed(operation) => Some(format!(
            "It goes on as operation {}; `get_operation` gives its state, and its result once it is over.",
            operation.id
        )),
        FollowUp::Untracked(why) => Some(format!("It goes on, and cannot be followed: {why}.")),
    };
    let value = outcome.result.as_ref().map_or("null", JsonText::get);
    // A text is given as such; everything else also as JSON.
    let text = serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(goes_on.map(|text| json!({"type": "text", "text": text})));
    let structured = if value.starts_with('{') { format!(r#","structuredContent":{value}"#) } else { String::new() };
    format!(r#"{{"resultType":"complete","content":{}{structured}}}"#, Value::from(content))
}

/// A result of an MCP server, with the member that only modern ones write.
fn complete(whole: &str) -> String {
    #[derive(Deserialize)]
    struct ResultKind<'a> {
        #[serde(borrow, rename = "resultType")]
        kind: Option<&'a RawValue>,
    }
    if serde_json::from_str::<ResultKind<'_>>(whole).is_ok_and(|sent| sent.kind.is_some()) {
        return whole.to_owned();
    }
    let rest = whole[1..].trim_start();
    let comma = if rest.starts_with('}') { "" } else { "," };
    format!(r#"{{"resultType":"complete"{comma}{rest}"#)
}

/// A result that says what went wrong.
pub(super) fn failed(text: &str) -> String {
    json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_that_it_is_complete_once() {
        assert_eq!(complete("{ }"), r#"{"resultType":"complete"}"#);
        assert_eq!(complete(r#"{"content":[]}"#), r#"{"resultType":"complete","content":[]}"#);
        let modern = r#"{"content":[],"resultType":"complete"}"#;
        assert_eq!(complete(modern), modern);
    }
}
