//! Outcomes of calls as results of the protocol.
//!
//! What a model can repair or wait for is a result with `isError`. The result of an MCP server is
//! passed on as it came, and so is its error of the protocol.

use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::calls::{AwaitedApproval, Failure, GoingOn, Reader, ToolAnswer};
use crate::formats::native;
use crate::json::rpc::RpcError;
use crate::model::{ApprovalRequest, JsonText};
use crate::protocols::Outcome;
use crate::server::mcp::refusal::{
    HEADER_MISMATCH, MISSING_CAPABILITY, Refusal, UNSUPPORTED_VERSION,
};

/// The codes that JSON-RPC and the protocol define.
const RESERVED: std::ops::RangeInclusive<i64> = -32_768..=-32_000;

/// The error of the protocol with which an MCP server answered a call.
pub(super) fn refusal(outcome: &Outcome) -> Option<Refusal> {
    if outcome.success || outcome.content.is_some() {
        return None;
    }
    let code = outcome
        .code
        .as_deref()?
        .parse()
        .ok()
        .filter(|code| RESERVED.contains(code))?;
    let status = match code {
        HEADER_MISMATCH | MISSING_CAPABILITY | UNSUPPORTED_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let message = outcome.error.clone().unwrap_or_default();
    Some(Refusal {
        status,
        error: RpcError {
            code,
            message,
            data: outcome.document.clone(),
        },
    })
}

/// A call that waits for approval, or is under way after it.
pub(super) fn awaits_approval(awaited: &AwaitedApproval) -> String {
    let ApprovalRequest {
        tool,
        id,
        expires_at,
        ..
    } = &*awaited.request;
    if awaited.is_under_way() {
        return failed(&format!(
            "The call of `{tool}` was approved under the id {id} and is under way; the same call gives its outcome later."
        ));
    }
    let until = expires_at.strftime("%Y-%m-%d %H:%M:%S UTC");
    failed(&format!(
        "The call of `{tool}` waits for the approval of a person, under the id {id}. It is decided on the dashboard, or by `callsheet approvals approve {id}`, until {until}. Tell the user; once it is decided, the same call gives its outcome."
    ))
}

/// A call that was not made, not approved, or got no valid answer. With `definition` that of its
/// tool is behind the reason.
pub(super) fn of_failure(failure: &Failure, definition: Option<Value>) -> String {
    if let Some(tool) = &failure.present {
        return with_definition(&failure.to_string(), native::written(tool));
    }
    if definition.is_some() {
        return with_definition(&failure.to_string(), definition);
    }
    failed(
        &failure
            .not_approved(Reader::Person)
            .unwrap_or_else(|| failure.to_string()),
    )
}

/// What went wrong, and the definition of the tool as it is now.
fn with_definition(text: &str, present: Option<Value>) -> String {
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(present.map(|tool| json!({"type": "text", "text": tool.to_string()})));
    json!({"resultType": "complete", "isError": true, "content": content}).to_string()
}

fn goes_on(operation: &str) -> String {
    format!(
        "It goes on as operation {operation}; `get_operation` gives its state, and its result once it is over."
    )
}

fn with_code(error: &str, code: Option<&str>) -> String {
    code.map_or_else(|| error.to_owned(), |code| format!("{error} ({code})"))
}

/// The answer of a tool as a result.
pub(super) fn result(answer: &ToolAnswer) -> String {
    if let Some(whole) = answer
        .content
        .as_ref()
        .filter(|whole| whole.get().starts_with('{'))
    {
        return complete(whole.get());
    }
    match (answer.success, &answer.operation) {
        (false, Some(operation)) => {
            let error = answer.error.as_deref().unwrap_or("it did not end well");
            failed(&format!(
                "The operation {} is {}: {error}",
                operation.id, operation.state
            ))
        }
        (false, None) => failed(&with_code(
            answer.error.as_deref().unwrap_or("the tool failed"),
            answer.code.as_deref(),
        )),
        (true, _) => of_value(answer.result.as_ref(), note(&answer.going)),
    }
}

/// What is said behind the result of a tool that goes on.
fn note(going: &GoingOn) -> Option<String> {
    match going {
        GoingOn::No => None,
        GoingOn::As(operation) => Some(goes_on(operation)),
        GoingOn::Untracked(why) => Some(format!("It goes on, and cannot be followed: {why}.")),
    }
}

/// A value as a text, and also as JSON where it is an object.
fn of_value(value: Option<&JsonText>, note: Option<String>) -> String {
    let value = value.map_or("null", JsonText::get);
    // A text is given as such; everything else also as JSON.
    let text = serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned());
    let mut content = vec![json!({"type": "text", "text": text})];
    content.extend(note.map(|text| json!({"type": "text", "text": text})));
    let structured = if value.starts_with('{') {
        format!(r#","structuredContent":{value}"#)
    } else {
        String::new()
    };
    format!(
        r#"{{"resultType":"complete","content":{}{structured}}}"#,
        Value::from(content)
    )
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
    json!({"resultType": "complete", "isError": true, "content": [{"type": "text", "text": text}]})
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_that_it_is_complete_once() {
        assert_eq!(complete("{ }"), r#"{"resultType":"complete"}"#);
        assert_eq!(
            complete(r#"{"content":[]}"#),
            r#"{"resultType":"complete","content":[]}"#
        );
        let modern = r#"{"content":[],"resultType":"complete"}"#;
        assert_eq!(complete(modern), modern);
    }
}
