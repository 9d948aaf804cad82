//! OpenAI Chat Completions: a message with the role `tool` for each call. It has no mark for an
//! error, and takes texts only (`ChatCompletionToolMessageParam.content` of their library).

use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadError, ReadTurn};
use super::{TurnFormat, chat};

/// `format=openai`.
#[derive(Debug)]
pub(super) struct OpenAiTurns;

impl TurnFormat for OpenAiTurns {
    fn id(&self) -> &'static str {
        "openai"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        chat::is_response(body)
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        chat::is_message(message)
    }

    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        body.text("object") == "chat.completion.chunk" || (body.has("delta") && !body.has("role"))
    }

    fn is_streamed(&self, first: &BodyMarks<'_>) -> bool {
        first.has("choices") || self.is_event(first)
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        chat::read(body)
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let message = |answer: &ModelAnswer<'_>| {
            let id = answer.call.id.as_deref().unwrap_or_default();
            json!({"role": "tool", "tool_call_id": id, "content": answer.marked_text()})
        };
        answers.iter().map(message).collect::<Value>().to_string()
    }
}
