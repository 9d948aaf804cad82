//! The Tool Protocol: `{"calls": [...]}`, without a vendor. A result is the call as it came, with
//! its `_output`; a failure has `_error` in its place.
//!
//! Members whose names begin with `_` are meta fields. They are never arguments.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::members::CallMembers;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ProtocolCall, ReadCall, ReadError, ReadTurn};
use super::TurnFormat;
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

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let body: CallsBody<'_> = serde_json::from_str(body)?;
        Ok(ReadTurn { calls: body.calls.into_iter().map(call).collect::<Result<_, _>>()?, model: None })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let written: Vec<String> = answers.iter().map(message).collect();
        format!("[{}]", written.join(","))
    }
}

fn call(sent: &RawValue) -> Result<ReadCall, ReadError> {
    let members = CallMembers::parse(sent.get())?;
    let text = |name: &str| members.get(name).and_then(|value| serde_json::from_str::<String>(value).ok());
    let name = text("_tool").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ReadError::Malformed("a call has no `_tool`, the name of its tool".to_owned()))?;
    let arguments = members.filtered(|name| !name.starts_with('_'));
    let protocol = ProtocolCall {
        whole: JsonText::known(sent.get()),
        activity: text("_activity"),
        reasoning: text("_reasoningForCall"),
        output: members.get("_output").map(JsonText::known),
    };
    Ok(ReadCall {
        id: None,
        name,
        arguments: Ok(JsonText::known(arguments)),
        protocol: Some(Box::new(protocol)),
        is_foreign: false,
    })
}

fn message(answer: &ModelAnswer<'_>) -> String {
    let whole = answer.call.protocol.as_ref().map_or("{}", |call| call.whole.get());
    let call = CallMembers::parse(whole).unwrap_or_default().filtered(|name| name != "_output" && name != "_error");
    let (name, value) = match &answer.value {
        _ if answer.is_error => ("_error", json!(answer.text()).to_string()),
        Some(value) => ("_output", value.get().to_owned()),
        None => ("_output", json!(answer.text()).to_string()),
    };
    let end = call.strip_suffix('}').unwrap_or(&call);
    let comma = if end == "{" { "" } else { "," };
    format!(r#"{end}{comma}"{name}":{value}}}"#)
}
