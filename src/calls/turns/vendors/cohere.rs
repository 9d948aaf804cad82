//! Cohere v2: a message with the role `tool` for each call, with a text as its content.

use serde_json::{Value, json};

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

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let ReadTurn { calls, model } = chat::read(body)?;
        Ok(ReadTurn { calls: calls.into_iter().map(ReadCall::needing_id).collect::<Result<_, _>>()?, model })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let message = |answer: &ModelAnswer<'_>| {
            let id = answer.call.id.as_deref().unwrap_or_default();
            json!({"role": "tool", "tool_call_id": id, "content": answer.marked_text()})
        };
        answers.iter().map(message).collect::<Value>().to_string()
    }
}
