//! What a vendor's response says: the tool calls in it, in its order.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::calls::given_arguments::{self, GivenArgumentsError};
use crate::model::{JsonText, WithNextStep};

/// The tool calls of one response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadTurn {
    /// In the order in which the model made them.
    pub calls: Vec<ReadCall>,
    /// The model, where the response names it and its results depend on it.
    pub model: Option<String>,
}

/// One tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadCall {
    /// The vendor's id of the call; `None` where there is none.
    pub id: Option<String>,
    /// The name that the model used; empty if it used none.
    pub name: String,
    /// The arguments, as one JSON object. Those of the Tool Protocol have their meta fields, which
    /// the path of a call takes out.
    pub arguments: Result<JsonText, GivenArgumentsError>,
    /// A call of the Tool Protocol as it came: its result repeats it.
    pub whole: Option<JsonText>,
    /// Whether it is a call of a kind that no list of callsheet offers, such as one with a text for
    /// input. The calling program answers it.
    pub is_foreign: bool,
}

// What to do next: the ends of the texts below.
const JOIN_FIRST: &str =
    "join it first, as the vendor's client library does, and send the whole message";
const SEND_WHOLE: &str = "send the vendor's whole response, or the assistant's message in it";
const SEND_AS_GIVEN: &str = "send the message as the vendor gave it";
const CHOOSE_ONE: &str = "choose one, and send its message";

/// Why a body cannot be read as a response of its format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON, or a member has another type than the vendor gives it.
    #[error("the response cannot be read: {0}")]
    Malformed(String),
    /// It is a part of a stream, or a whole one.
    #[error("the response is a stream of events; {JOIN_FIRST}")]
    Stream,
    /// It is of another vendor.
    #[error(
        "the response is none of `{format}`: it looks like one of `{like}`; {}",
        name_it(like)
    )]
    OtherFormat {
        /// The requested format.
        format: &'static str,
        /// The format that it looks like.
        like: &'static str,
    },
    /// It is of no known vendor.
    #[error("the response is none of `{0}`, nor of any other known format; {SEND_WHOLE}")]
    UnknownFormat(&'static str),
    /// A call has no id, so no result could name it.
    #[error(
        "the call of `{0}` has no id, without which this vendor takes no result; {SEND_AS_GIVEN}"
    )]
    NoId(String),
    /// Several answers of the model hold calls.
    #[error("several of its `{0}` call tools; {CHOOSE_ONE}")]
    Several(&'static str),
}

fn name_it(format: &str) -> String {
    format!("name it by `format={format}`")
}

impl WithNextStep for ReadError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Malformed(_) => None,
            Self::Stream => Some(JOIN_FIRST.into()),
            Self::OtherFormat { like, .. } => Some(name_it(like).into()),
            Self::UnknownFormat(_) => Some(SEND_WHOLE.into()),
            Self::NoId(_) => Some(SEND_AS_GIVEN.into()),
            Self::Several(_) => Some(CHOOSE_ONE.into()),
        }
    }
}

impl ReadCall {
    /// A call of a tool. An empty id is kept: some servers give no other.
    pub(super) fn new(
        id: Option<String>,
        name: Option<String>,
        arguments: Option<&RawValue>,
    ) -> Self {
        Self {
            id,
            name: name.unwrap_or_default(),
            arguments: given_arguments::parse(arguments),
            whole: None,
            is_foreign: false,
        }
    }

    /// The same for a vendor that takes no result without an id.
    pub(super) fn with_id(
        id: Option<String>,
        name: Option<String>,
        arguments: Option<&RawValue>,
    ) -> Result<Self, ReadError> {
        Self::new(id, name, arguments).needing_id()
    }

    /// A call of a vendor that takes no result without an id. Fails if it has none.
    pub(super) fn needing_id(self) -> Result<Self, ReadError> {
        match &self.id {
            Some(id) if !id.is_empty() => Ok(self),
            _ => Err(ReadError::NoId(self.name)),
        }
    }

    /// A call of a kind that callsheet has not.
    pub(super) fn foreign(id: Option<String>, name: Option<String>) -> Self {
        Self {
            is_foreign: true,
            ..Self::new(id, name, None)
        }
    }
}

impl From<serde_json::Error> for ReadError {
    fn from(error: serde_json::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}
