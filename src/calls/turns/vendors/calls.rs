//! The Tool Protocol: `{"calls": [...]}`, without a vendor. A result is the call as it came, with
//! its `_output`; a failure has `_error` in its place.
//!
//! The whole call is the arguments, as in every other call of a tool: the path of a call takes the
//! meta fields out of them.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::marks::BodyMarks;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadCall, ReadError, ReadTurn};
use super::TurnFormat;
use crate::json::members::MemberTexts;
use crate::model::JsonText;

/// `format=calls`.
#[derive(Debug)]
pub(super) struct ProtocolTurns;

#[derive(Deserialize)]
struct CallsBody<'a> {
    #[serde(borrow)]
    calls: Vec<&'a RawValue>,
}

impl TurnFormat for ProtocolTurns {
    fn id(&self) -> &'static str {
        "calls"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        body.has("calls")
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let body: CallsBody<'_> = serde_json::from_str(body)?;
        Ok(ReadTurn {
            calls: body.calls.into_iter().map(call).collect::<Result<_, _>>()?,
            model: None,
        })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let written: Vec<String> = answers.iter().map(message).collect();
        format!("[{}]", written.join(","))
    }
}

fn call(sent: &RawValue) -> Result<ReadCall, ReadError> {
    let members = MemberTexts::parse(sent.get())?;
    let name = members
        .get("_tool")
        .and_then(|value| serde_json::from_str(value).ok())
        .unwrap_or_default();
    let whole = JsonText::known(sent.get());
    Ok(ReadCall {
        id: None,
        name,
        arguments: Ok(whole.clone()),
        whole: Some(whole),
        is_foreign: false,
    })
}

fn message(answer: &ModelAnswer<'_>) -> String {
    let whole = answer.call.whole.as_ref().map_or("{}", JsonText::get);
    let call = MemberTexts::parse(whole)
        .unwrap_or_default()
        .filtered(|name| name != "_output" && name != "_error");
    let (name, value) = match &answer.value {
        _ if answer.is_error => ("_error", json!(answer.text()).to_string()),
        Some(value) => ("_output", value.get().to_owned()),
        None => ("_output", json!(answer.text()).to_string()),
    };
    let end = call.strip_suffix('}').unwrap_or(&call);
    let comma = if end == "{" { "" } else { "," };
    format!(r#"{end}{comma}"{name}":{value}}}"#)
}
