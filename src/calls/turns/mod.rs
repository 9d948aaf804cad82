//! Turns: the tool calls of one response of a model, in its vendor's shape, and the messages with
//! their results in that shape.
//!
//! [`read`](self::read_response) takes the calls out of a response. `run` looks their names up in
//! one snapshot and sends each by the usual way of a call; `follow` waits for those that do not end
//! at once, and ends those that are not needed. [`Turn::messages`] writes what the model
//! gets: a call that is refused or fails is an answer to the model too. [`Turns`] keeps turns, so
//! that a turn with an id of its caller is never run twice.
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
