//! Anthropic Messages: one message of the user with a `tool_result` for each call. A result is a
//! text, or a list of texts, images and documents (`ToolResultBlockParam` of their library), and
//! may be marked as an error.
//!
//! Calls that the vendor runs itself (`server_tool_use`, `mcp_tool_use`) are passed over.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::{ModelAnswer, ModelBlock};
use super::super::read::{ReadCall, ReadError, ReadTurn};
use super::TurnFormat;

/// `format=anthropic`.
#[derive(Debug)]
pub(super) struct AnthropicTurns;

#[derive(Deserialize)]
struct AnthropicMessage<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicBlock<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

impl TurnFormat for AnthropicTurns {
    fn id(&self) -> &'static str {
        "anthropic"
    }

    fn is_response(&self, _: &BodyMarks<'_>) -> bool {
        // A whole response is a message.
        false
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        if message.has("tool_calls") {
            return false;
        }
        let is_own = |block: &BodyMarks<'_>| {
            block.has("type") && !block.has("toolUse") && block.text("type") != "output_text"
        };
        message
            .blocks()
            .is_none_or(|blocks| blocks.iter().all(is_own))
    }

    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        ["message_", "content_block_"]
            .into_iter()
            .any(|event| body.text("type").starts_with(event))
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let message: AnthropicMessage<'_> = serde_json::from_str(body)?;
        // A message may also have a text for its content.
        let Some(content) = message
            .content
            .map(RawValue::get)
            .filter(|content| content.starts_with('['))
        else {
            return Ok(ReadTurn::default());
        };
        let blocks: Vec<AnthropicBlock<'_>> = serde_json::from_str(content)?;
        let calls = blocks
            .into_iter()
            .filter(|block| block.kind.as_deref() == Some("tool_use"));
        let calls = calls.map(|block| ReadCall::with_id(block.id, block.name, block.input));
        Ok(ReadTurn {
            calls: calls.collect::<Result<_, _>>()?,
            model: None,
        })
    }

    fn takes(&self, media_type: &str, _model: Option<&str>) -> bool {
        matches!(
            media_type,
            "image/png" | "image/jpeg" | "image/webp" | "image/gif" | "application/pdf"
        )
    }

    /// The vendor refuses a request with `is_error` beside anything but text.
    fn takes_files_in_errors(&self) -> bool {
        false
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        if answers.is_empty() {
            return "[]".to_owned();
        }
        let result = |answer: &ModelAnswer<'_>| {
            let content = if answer.is_text() {
                answer.text().into()
            } else {
                answer.blocks.iter().map(block).collect::<Value>()
            };
            let id = answer.call.id.as_deref().unwrap_or_default();
            let mut result = json!({"type": "tool_result", "tool_use_id": id, "content": content});
            if answer.is_error {
                result["is_error"] = true.into();
            }
            result
        };
        let results: Value = answers.iter().map(result).collect();
        json!([{"role": "user", "content": results}]).to_string()
    }
}

fn block(block: &ModelBlock) -> Value {
    match block {
        ModelBlock::Text(text) => json!({"type": "text", "text": text}),
        ModelBlock::File { media_type, data } => {
            let kind = if media_type.starts_with("image/") {
                "image"
            } else {
                "document"
            };
            json!({"type": kind, "source": {"type": "base64", "media_type": media_type, "data": data}})
        }
    }
}
