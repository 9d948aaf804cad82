//! Ollama: a message with the role `tool` and the tool's name for each call. Only newer servers
//! give calls an id, and take it back.

use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadError, ReadTurn};
use super::{TurnFormat, chat};

/// `format=ollama`.
#[derive(Debug)]
pub(super) struct OllamaTurns;

impl TurnFormat for OllamaTurns {
    fn id(&self) -> &'static str {
        "ollama"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        let is_other = body.has("index") || body.has("finish_reason");
        body.begins("message", '{') && (body.has("done") || body.has("created_at") || !is_other)
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        chat::is_message(message)
    }

    fn is_streamed(&self, first: &BodyMarks<'_>) -> bool {
        first.has("done")
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        chat::read(body)
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let message = |answer: &ModelAnswer<'_>| {
            let mut message = json!({"role": "tool", "tool_name": answer.call.name});
            if let Some(id) = answer.call.id.as_deref().filter(|id| !id.is_empty()) {
                message["tool_call_id"] = id.into();
            }
            message["content"] = answer.marked_text().into();
            message
        };
        answers.iter().map(message).collect::<Value>().to_string()
    }
}
