//! Turns: the tool calls of one response of a model, in its vendor's shape, and the messages with
//! their results in that shape.
//!
//! ```text
//! body -> shape, marks -> vendors: read -> ReadTurn -> run: meaning (names) -> the path of a call
//!                                                        |                        |
//! messages <- vendors: write <- content, words <- Turn <-+---- settled <- follow -+
//! ```
//!
//! What is kept true here:
//!
//! - The names of a turn are looked up in one snapshot, before its first call is sent.
//! - A call that is refused or fails is an answer to the model too. Only a body that cannot be read
//!   and a turn that cannot be taken are errors of the request.
//! - A turn with an id of its caller is stored before its first call is sent, so it is never run
//!   twice.
//! - A call that is over stays as it is: the messages of a turn are always the same bytes.
//!
//! Read in this order:
//!
//! 1. `request.rs`, `read.rs`, `shape.rs`, `marks.rs`, then `vendors`.
//! 2. `turn.rs`, `run.rs`, `meaning.rs`, `follow.rs`, `settled.rs` (what became of a call).
//! 3. `messages.rs`, `model_answer.rs`, `content.rs` (results), `words.rs` (what has no result).
//! 4. `register.rs` ([`Turns`]), `document.rs` (the stored form), `left_out.rs` (what a restart
//!    lost).
//!
//! Never done here: HTTP, speaking to a vendor, and deciding whether a call may be made.

mod content;
mod document;
mod follow;
mod left_out;
mod marks;
mod meaning;
mod messages;
mod model_answer;
mod read;
mod register;
mod request;
mod run;
mod settled;
mod shape;
mod turn;
mod vendors;
mod words;

pub use marks::BodyMarks;
pub use model_answer::{ModelAnswer, ModelBlock};
pub use read::{ReadCall, ReadError, ReadTurn};
pub use register::{TurnError, Turns};
pub use request::TurnRequest;
pub use settled::{Settled, TurnCallStatus};
pub use turn::{Turn, TurnCall, TurnPhase, TurnSettings};
pub use vendors::{TURN_FORMATS, TurnFormat, by_id};

/// Reads the calls in a response of this format: a whole one, or the assistant's message alone.
///
/// # Errors
/// The body is of another vendor, is a stream, or cannot be read.
pub fn read_response(format: &dyn TurnFormat, body: &str) -> Result<ReadTurn, ReadError> {
    shape::check(format, body)?;
    format.read(body)
}
