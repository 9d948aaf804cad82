//! Cohere v2: a message with the role `tool` for each call, with a text as its content.

use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadCall, ReadError, ReadTurn};
use super::{TurnFormat, chat};

/// `format=cohere`.
#[derive(Debug)]
pub(super) struct CohereTurns;

impl TurnFormat for CohereTurns {
    fn id(&self) -> &'static str {
        "cohere"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        // A choice of Chat Completions has an index, and Ollama says when it is done.
        let is_other = ["done", "created_at", "index"]
            .into_iter()
            .any(|name| body.has(name));
        body.begins("message", '{') && !is_other
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        chat::is_message(message) || chat::has_blocks_of_other_types(message)
    }

    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        ["content-", "tool-call-", "message-"]
            .into_iter()
            .any(|event| body.text("type").starts_with(event))
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let ReadTurn { calls, model } = chat::read(body)?;
        Ok(ReadTurn {
            calls: calls
                .into_iter()
                .map(ReadCall::needing_id)
                .collect::<Result<_, _>>()?,
            model,
        })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let message = |answer: &ModelAnswer<'_>| {
            let id = answer.call.id.as_deref().unwrap_or_default();
            json!({"role": "tool", "tool_call_id": id, "content": answer.marked_text()})
        };
        answers.iter().map(message).collect::<Value>().to_string()
    }
}
