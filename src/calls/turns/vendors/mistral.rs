//! Mistral: the messages of Chat Completions, with the name of the tool. Its library gives a call
//! without an id the id `null`.

use serde_json::{Value, json};

use super::super::marks::BodyMarks;
use super::super::model_answer::ModelAnswer;
use super::super::read::{ReadError, ReadTurn};
use super::{TurnFormat, chat};

/// `format=mistral`.
#[derive(Debug)]
pub(super) struct MistralTurns;

impl TurnFormat for MistralTurns {
    fn id(&self) -> &'static str {
        "mistral"
    }

    fn is_response(&self, body: &BodyMarks<'_>) -> bool {
        chat::is_response(body)
    }

    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        chat::is_message(message) || chat::has_blocks_of_other_types(message)
    }

    fn read(&self, body: &str) -> Result<ReadTurn, ReadError> {
        let mut turn = chat::read(body)?;
        for call in &mut turn.calls {
            call.id = call.id.take().filter(|id| id != "null");
        }
        Ok(turn)
    }

    fn write(&self, answers: &[ModelAnswer<'_>]) -> String {
        let message = |answer: &ModelAnswer<'_>| {
            let mut message = json!({"role": "tool", "name": answer.call.name});
            if let Some(id) = &answer.call.id {
                message["tool_call_id"] = id.as_str().into();
            }
            message["content"] = answer.marked_text().into();
            message
        };
        answers.iter().map(message).collect::<Value>().to_string()
    }
}
