//! What the answer to `tools/call` means: an outcome, or input that is needed first.
//!
//! A result is passed on as it came, but for keys of `_meta` that MCP does not allow. A tool that
//! failed (`isError`) is an answer, and so is an error of JSON-RPC.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::request::Reply;
use crate::json::rpc::RpcError;
use crate::model::{JsonText, with_allowed_meta};
use crate::protocols::{CallError, InputRound, Outcome};

/// The code of an outcome that needs input.
pub(super) const INPUT_REQUIRED: &str = "input_required";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    result_type: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    structured_content: Option<&'a RawValue>,
    #[serde(default)]
    is_error: bool,
    #[serde(borrow)]
    input_requests: Option<&'a RawValue>,
    request_state: Option<String>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

fn present<'de: 'a, 'a, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// What the answer to a call means.
pub(super) enum Step {
    Done(Box<Outcome>),
    /// The tool needs input to continue.
    NeedsInput(InputRound),
}

/// Reads the answer to a call.
pub(super) fn step(reply: Reply) -> Result<Step, CallError> {
    let result = match reply {
        Ok(result) => with_allowed_meta(result),
        Err(error) => return Ok(Step::Done(Box::new(refused(&error)))),
    };
    let sent: CallResult<'_> = match serde_json::from_str(result.get()) {
        Ok(sent) => sent,
        Err(error) => {
            return Err(not_a_result(
                &format!("the result cannot be read: {error}"),
                &result,
            ));
        }
    };
    match sent.result_type.as_deref() {
        None | Some("complete") => Ok(Step::Done(Box::new(outcome(&sent, &result)))),
        Some("input_required") => Ok(Step::NeedsInput(InputRound {
            by_key: JsonText::known(sent.input_requests.map_or("{}", RawValue::get)),
            state: sent.request_state,
        })),
        Some(other) => Err(not_a_result(
            &format!("the result is of the unknown type {other:?}"),
            &result,
        )),
    }
}

/// The outcome of a call that does not continue without input.
pub(super) fn needs_input(required: Option<InputRound>, why: String) -> Outcome {
    let code = Some(INPUT_REQUIRED.to_owned());
    Outcome {
        input_required: required,
        ..Outcome::failed(None, why, code)
    }
}

fn not_a_result(why: &str, result: &JsonText) -> CallError {
    let start: String = result.get().chars().take(200).collect();
    CallError::NotThisProtocol {
        answered: "a result".to_owned(),
        status: None,
        excerpt: format!("{why} (`{}`)", start.escape_debug()),
        retry_after: None,
    }
}

/// The error that a server answered instead of a result.
fn refused(error: &RpcError) -> Outcome {
    let document = error.data.clone();
    Outcome {
        document,
        ..Outcome::failed(None, error.message.clone(), Some(error.code.to_string()))
    }
}

/// The outcome of a result. Programs get the structured content or else the text; the whole result
/// is beside it.
fn outcome(sent: &CallResult<'_>, whole: &JsonText) -> Outcome {
    let text = sent
        .content
        .map(|content| texts(content.get()))
        .unwrap_or_default();
    let result = match sent.structured_content {
        // It is part of a text that was parsed as JSON.
        Some(structured) => JsonText::known(structured.get()),
        None => JsonText::known(serde_json::Value::from(&*text).to_string()),
    };
    let error = sent.is_error.then(|| {
        if text.is_empty() {
            "the tool failed without a message".to_owned()
        } else {
            text
        }
    });
    let code = sent.is_error.then(|| "tool_error".to_owned());
    let done = Outcome {
        content: Some(whole.clone()),
        document: Some(whole.clone()),
        ..Outcome::done(result)
    };
    if sent.is_error {
        Outcome {
            success: false,
            error,
            code,
            ..done
        }
    } else {
        done
    }
}

/// The texts of all blocks, one below the other.
fn texts(content: &str) -> String {
    let blocks: Vec<&RawValue> = serde_json::from_str(content).unwrap_or_default();
    let blocks = blocks
        .into_iter()
        .filter_map(|raw| serde_json::from_str::<Block>(raw.get()).ok());
    let texts: Vec<_> = blocks
        .filter(|block| block.kind == "text")
        .map(|block| block.text)
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: &str) -> Result<Step, CallError> {
        step(Ok(JsonText::parse(result).unwrap()))
    }

    fn done(result: &str) -> Outcome {
        match read(result).unwrap() {
            Step::Done(outcome) => *outcome,
            Step::NeedsInput(required) => panic!("{required:?}"),
        }
    }

    #[test]
    fn a_result_is_its_structured_content_or_its_text() {
        let outcome = done(
            r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":""},{"type":"text","text":"b"}]}"#,
        );
        assert!(outcome.success);
        assert_eq!(outcome.result.unwrap().get(), "\"a\\nb\"");
        let outcome =
            done(r#"{"resultType":"complete","content":[],"structuredContent":{"t": 21}}"#);
        assert_eq!(outcome.result.unwrap().get(), "{\"t\": 21}");
        let outcome = done(r#"{"content":[{"type":"text","text":"no such city"}],"isError":true}"#);
        assert!(!outcome.success);
        assert_eq!(outcome.error.as_deref(), Some("no such city"));
        assert!(
            outcome
                .content
                .unwrap()
                .get()
                .ends_with(r#""isError":true}"#)
        );
    }

    #[test]
    fn needed_input_is_kept_as_it_came() {
        let result = r#"{"resultType":"input_required","requestState":"\u00e9","inputRequests":{"who": {"method":"elicitation/create"}}}"#;
        let Ok(Step::NeedsInput(required)) = read(result) else {
            panic!("it needs input")
        };
        assert_eq!(
            required.by_key.get(),
            r#"{"who": {"method":"elicitation/create"}}"#
        );
        assert_eq!(required.state.as_deref(), Some("\u{e9}"));
    }

    #[test]
    fn an_unknown_type_of_result_is_no_answer() {
        for result in [
            r#"{"resultType":"task"}"#,
            "[]",
            "7",
            r#"{"resultType":"input_required","requestState":{}}"#,
        ] {
            assert!(
                matches!(read(result), Err(CallError::NotThisProtocol { .. })),
                "{result}"
            );
        }
    }
}
