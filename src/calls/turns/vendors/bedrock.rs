//! Bedrock Converse: one message of the user with a `toolResult` for each call, which has a status.
//!
//! Images are named in text: the vendor's libraries take them as bytes, which JSON cannot carry,
//! and would encode a text once more.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadCall, ReadError, ReadTurn};
use super::TurnFormat;

/// The events of its streams, each under its own name.
const EVENTS: [&str; 5] = [
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
];

/// `format=bedrock`.
#[derive(Debug)]
pub(super) struct BedrockTurns;

/// A response, or the message in it.
#[derive(Deserialize)]
struct BedrockBody<'a> {
    #[serde(borrow)]
    output: Option<BedrockOutput<'a>>,
    #[serde(borrow)]
    content: Option<Vec<BedrockBlock<'a>>>,
}

#[derive(Deserialize)]
struct BedrockOutput<'a> {
    #[serde(borrow)]
    message: Option<BedrockMessage<'a>>,
}

#[derive(Deserialize)]
struct BedrockMessage<'a> {
    #[serde(borrow)]
    content: Option<Vec<BedrockBlock<'a>>>,
}

#[derive(Deserialize)]
struct BedrockBlock<'a> {
    #[serde(borrow, rename = "toolUse")]
    call: Option<BedrockCall<'a>>,
}

#[derive(Deserialize)]
struct BedrockCall<'a> {
    #[serde(rename = "toolUseId")]
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    /// `server_tool_use` where the vendor runs it.
    #[serde(rename = "type")]
    kind: Option<String>,
}

impl TurnFormat for BedrockTurns {
    fn id(&self) -> &'static str {
        "bedrock"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        body.begins("output", '{')
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        let Some(blocks) = message.blocks().filter(|_| !message.has("tool_calls")) else {
            return false;
        };
        let is_empty = blocks.is_empty() && message.text("type") != "message";
        // Its blocks are named by their one member.
        is_empty
            || blocks
                .iter()
                .any(|block| block.has("toolUse") || !block.has("type"))
    }

    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        EVENTS.into_iter().any(|event| body.has(event))
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let body: BedrockBody<'_> = serde_json::from_str(body)?;
        let message = body.output.and_then(|output| output.message);
        let blocks = message
            .and_then(|message| message.content)
            .or(body.content)
            .unwrap_or_default();
        let calls = blocks
            .into_iter()
            .filter_map(|block| block.call)
            .filter(|call| call.kind.is_none());
        let calls = calls.map(|call| ReadCall::with_id(call.id, call.name, call.input));
        Ok(ReadTurn {
            calls: calls.collect::<Result<_, _>>()?,
            model: None,
        })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        if answers.is_empty() {
            return "[]".to_owned();
        }
        let result = |answer: &ModelAnswer<'_>| {
            let id = answer.call.id.as_deref().unwrap_or_default();
            let status = if answer.is_error { "error" } else { "success" };
            json!({"toolResult": {"toolUseId": id, "content": [{"text": answer.text()}], "status": status}})
        };
        let results: Value = answers.iter().map(result).collect();
        json!([{"role": "user", "content": results}]).to_string()
    }
}
