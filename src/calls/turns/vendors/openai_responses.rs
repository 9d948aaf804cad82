//! OpenAI Responses: an item `function_call_output` for each call. Its output is a text, or a list
//! of texts, images and files (`ResponseFunctionCallOutputItemListParam` of their library). It has
//! no mark for an error.
//!
//! Calls that the vendor runs itself, such as those of `mcp` and `web_search`, are items of other
//! types and are passed over.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::{ModelAnswer, ModelBlock};
use super::super::read::{ReadCall, ReadError, ReadTurn};
use super::TurnFormat;

/// What the messages of several vendors consist of: blocks of their content, or their calls. A list
/// of them is no output.
const PARTS_OF_MESSAGES: [&str; 7] = [
    "text",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "function",
];

/// `format=openai-responses`.
#[derive(Debug)]
pub(super) struct ResponsesTurns;

#[derive(Deserialize)]
struct ResponseBody<'a> {
    #[serde(borrow)]
    output: Option<Vec<ResponseItem<'a>>>,
}

#[derive(Deserialize)]
struct ResponseItem<'a> {
    #[serde(rename = "type")]
    kind: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl TurnFormat for ResponsesTurns {
    fn id(&self) -> &'static str {
        "openai-responses"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        body.begins("output", '[') || body.text("type") == "function_call"
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        let Some(blocks) = message.blocks().filter(|_| !message.has("tool_calls")) else {
            return false;
        };
        let is_of_another = |block: &BodyMarks<'_>| block.has("toolUse") || !block.has("type");
        let is_empty = blocks.is_empty() && message.text("type") == "message";
        is_empty
            || (blocks
                .iter()
                .any(|block| block.text("type") == "output_text")
                && !blocks.iter().any(is_of_another))
    }

    fn is_list(&self, first: Option<&BodyMarks<'_>>) -> bool {
        let is_item = |kind: &str| !kind.is_empty() && !PARTS_OF_MESSAGES.contains(&kind);
        first.is_none_or(|first| is_item(first.text("type")))
    }

    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        body.text("type").starts_with("response.")
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let items = if body.trim_start().starts_with('[') {
            serde_json::from_str(body)?
        } else {
            let whole: ResponseBody<'_> = serde_json::from_str(body)?;
            match whole.output {
                Some(items) => items,
                None => vec![serde_json::from_str(body)?],
            }
        };
        let call = |item: ResponseItem<'_>| match item.kind.as_deref() {
            Some("function_call") => {
                Some(ReadCall::with_id(item.call_id, item.name, item.arguments))
            }
            Some("custom_tool_call") => Some(Ok(ReadCall::foreign(item.call_id, item.name))),
            _ => None,
        };
        Ok(ReadTurn {
            calls: items
                .into_iter()
                .filter_map(call)
                .collect::<Result<_, _>>()?,
            model: None,
        })
    }

    fn takes(&self, media_type: &str, _model: Option<&str>) -> bool {
        matches!(
            media_type,
            "image/png" | "image/jpeg" | "image/webp" | "image/gif" | "application/pdf"
        )
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let item = |answer: &ModelAnswer<'_>| {
            let id = answer.call.id.as_deref().unwrap_or_default();
            let output = if answer.is_text() {
                answer.marked_text().into()
            } else {
                let mark = answer
                    .is_error
                    .then(|| json!({"type": "input_text", "text": "Error:"}));
                mark.into_iter()
                    .chain(answer.blocks.iter().map(part))
                    .collect::<Value>()
            };
            json!({"type": "function_call_output", "call_id": id, "output": output})
        };
        answers.iter().map(item).collect::<Value>().to_string()
    }
}

fn part(block: &ModelBlock) -> Value {
    match block {
        ModelBlock::Text(text) => json!({"type": "input_text", "text": text}),
        ModelBlock::File { media_type, data } => {
            let url = format!("data:{media_type};base64,{data}");
            if media_type.starts_with("image/") {
                json!({"type": "input_image", "detail": "auto", "image_url": url})
            } else {
                json!({"type": "input_file", "filename": "result.pdf", "file_data": url})
            }
        }
    }
}
