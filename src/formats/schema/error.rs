//! Why a schema cannot be offered to a vendor.

use crate::model::text::truncate_at_char_boundary;

/// Why a schema cannot be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// No common reader takes the text.
    #[error("its schema cannot be read as JSON ({0})")]
    Unreadable(String),
    /// Arguments of a call are always an object.
    #[error("its schema describes {0}, but the arguments of a call are always an object")]
    NotAnObject(String),
    /// The target of a reference is not within the schema; it is never fetched.
    #[error("its schema refers to `{0}`, which is not within it")]
    Reference(String),
    /// The schema would become huge, or cost too much work.
    #[error("its schema is too large or too deep once its references are followed")]
    TooLarge,
    /// The target is known to refuse it.
    #[error("it has {0}, which the target refuses")]
    Unsupported(String),
}

impl TransformError {
    /// What a reference means is not within the schema.
    pub(super) fn reference(target: &str) -> Self {
        Self::Reference(truncate_at_char_boundary(target, 100).text)
    }

    /// The next step for the scenario's author.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => {
                "nest at most 127 levels, escape characters in whole pairs, and keep numbers within a double"
            }
            Self::Reference(_) => "put what is referred to under `$defs` of the same schema",
            Self::TooLarge => {
                "write the schema without references that repeat large parts or lead back to themselves"
            }
            Self::Unsupported(_) => "rename or simplify it, or use another format",
            Self::NotAnObject(_) => {
                "give the schema the type `object` and make each argument one of its properties"
            }
        }
    }
}
