//! Values that a request cannot hold.

use super::template::{NotFilled, Placeholder};

/// A value that cannot be put into the request, so none is sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", if place.is_empty() { String::new() } else { format!("`{place}` ") })]
pub struct RefusedValue {
    /// The placeholder; empty where it is not one alone.
    pub place: String,
    /// Why, as a sentence without its subject.
    pub why: String,
}

impl RefusedValue {
    pub(super) fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            why: why.into(),
        }
    }

    pub(super) fn missing(place: &Placeholder) -> Self {
        Self::new(place.as_str(), "has no value, and the request needs one")
    }

    /// For a template that cannot be filled. `long` says what is too long, as a sentence.
    pub(super) fn unfilled(why: NotFilled<'_>, long: impl FnOnce() -> String) -> Self {
        match why {
            NotFilled::Missing(place) => Self::missing(place),
            NotFilled::TooLong => Self::new("", long()),
        }
    }
}
