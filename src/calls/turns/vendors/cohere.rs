//! Cohere v2: a message with the role `tool` for each call, with a text as its content.

use serde_json::{Value, json};

use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadError, ReadTurn};
use super::{TurnFormat, chat};

/// `format=cohere`.
#[derive(Debug)]
pub(super) struct CohereTurns;

impl TurnFormat for CohereTurns {
    fn id(&self) -> &'static str {
        "cohere"
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let mut turn = chat::read(body)?;
        let ids = turn.calls.drain(..).map(|call| match &call.id {
            Some(_) => Ok(call),
            None => Err(ReadError::NoId(call.name)),
        });
        let calls = ids.collect::<Result<_, _>>()?;
        Ok(ReadTurn { calls, ..turn })
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let message = |answer: &ModelAnswer<'_>| {
            let id = answer.call.id.as_deref().unwrap_or_default();
            json!({"role": "tool", "tool_call_id": id, "content": answer.marked_text()})
        };
        answers.iter().map(message).collect::<Value>().to_string()
    }
}
