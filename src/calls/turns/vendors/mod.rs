//! One file for each vendor: reads the tool calls in its response, and writes the messages with
//! their results.
//!
//! ```text
//! {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{}"}}]}     a response
//!   read  -> ReadTurn: call `a` of `f` with `{}`
//!   write -> [{"role": "tool", "tool_call_id": "a", "content": "..."}]            its messages
//! ```
//!
//! What is kept true here:
//!
//! - A vendor is pure: text in, text out, the same text for the same answers.
//! - It never runs a call, and never decides what a result says.
//! - What its bodies are known by stands in its file alone ([`TurnFormat::is_response`] and the
//!   others that look at marks); no other file of turns names a vendor.
//!
//! Read in this order: this file ([`TurnFormat`]), `chat.rs` (messages of Chat Completions, which
//! several share) with `openai.rs`, `mistral.rs`, `cohere.rs` and `ollama.rs`; then
//! `openai_responses.rs`, `anthropic.rs`, `gemini.rs`, `bedrock.rs`; `calls.rs` (the Tool
//! Protocol).
//!
//! To add one: a file here and a line in [`TURN_FORMATS`], under the id that its list has.

use super::marks::BodyMarks;
use super::model_answer::ModelAnswer;
use super::read::{ReadError, ReadTurn};

mod anthropic;
mod bedrock;
mod calls;
mod chat;
mod cohere;
mod gemini;
mod mistral;
mod ollama;
mod openai;
mod openai_responses;

/// One vendor's way of calling tools.
pub trait TurnFormat: Sync + std::fmt::Debug {
    /// Its id, the value of `format=`: that of its list.
    fn id(&self) -> &'static str;

    /// Whether a body has the marks of a whole response of this vendor, or of one answer of its
    /// model in one.
    fn is_response(&self, body: &BodyMarks<'_>) -> bool;

    /// Whether a message alone, which has a `role`, may be of this vendor.
    fn is_message(&self, message: &BodyMarks<'_>) -> bool {
        let _ = message;
        false
    }

    /// Whether a list that begins with this item is a response of this vendor.
    fn is_list(&self, first: Option<&BodyMarks<'_>>) -> bool {
        let _ = first;
        false
    }

    /// Whether a body is one part of a stream of this vendor.
    fn is_event(&self, body: &BodyMarks<'_>) -> bool {
        let _ = body;
        false
    }

    /// Whether a list that begins with this item is a stream of this vendor, part by part.
    fn is_streamed(&self, first: &BodyMarks<'_>) -> bool {
        self.is_event(first)
    }

    /// Reads the calls in a whole response, or in the assistant's message alone. The shape was
    /// checked before.
    fn read(&self, body: &str) -> Result<ReadTurn, ReadError>;

    /// Whether a result may hold a file of this media type. `model` is the one that answered.
    fn takes(&self, media_type: &str, model: Option<&str>) -> bool {
        let _ = (media_type, model);
        false
    }

    /// Whether a result of a call that failed may hold files.
    fn takes_files_in_errors(&self) -> bool {
        true
    }

    /// The messages that follow the assistant's in the next request, as a JSON array.
    fn write(&self, answers: &[ModelAnswer<'_>]) -> String;
}

/// Every vendor there is.
pub const TURN_FORMATS: &[&dyn TurnFormat] = &[
    &openai::OpenAiTurns,
    &openai_responses::ResponsesTurns,
    &anthropic::AnthropicTurns,
    &gemini::GeminiTurns,
    &bedrock::BedrockTurns,
    &mistral::MistralTurns,
    &cohere::CohereTurns,
    &ollama::OllamaTurns,
    &calls::ProtocolTurns,
];

/// The vendor with this id.
pub fn by_id(id: &str) -> Option<&'static dyn TurnFormat> {
    TURN_FORMATS
        .iter()
        .copied()
        .find(|format| format.id() == id)
}
