//! Which of several calls are wanted, and the refusal of calls of which not all may be wanted.
//!
//! Never makes a call.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::model::{ToolId, WithNextStep};

/// Which of several calls are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallMode {
    /// All of them.
    #[default]
    All,
    /// The first one that succeeds, or all if none does.
    Any,
    /// The first one that ends, whether or not it succeeds. A call that is refused before it is
    /// sent does not take part.
    Race,
}

/// A text that is no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no mode of several calls: write `all`, `any` or `race`")]
pub struct UnknownCallMode(String);

// What to do next: the end of the text below.
const CALL_ALL: &str = "call them with `mode=all`";

/// Tools that may not compete, because running them more than once may do harm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`mode={mode}` is for idempotent tools only, and these are not declared so: {}; {CALL_ALL}",
    listed(tools)
)]
pub struct CannotCompete {
    /// The mode that was wanted.
    pub mode: CallMode,
    /// The tools, each once, in the order of the calls.
    pub tools: Vec<ToolId>,
}

impl WithNextStep for CannotCompete {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        Some(CALL_ALL.into())
    }
}

impl CallMode {
    /// The mode as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Any => "any",
            Self::Race => "race",
        }
    }

    /// Whether a call that ended makes the others needless. One that was refused before it was sent
    /// was not made.
    pub fn is_decided_by(self, was_made: bool, succeeded: bool) -> bool {
        match self {
            Self::All => false,
            Self::Any => succeeded,
            Self::Race => was_made,
        }
    }
}

impl FromStr for CallMode {
    type Err = UnknownCallMode;

    fn from_str(text: &str) -> Result<Self, UnknownCallMode> {
        let known = [Self::All, Self::Any, Self::Race]
            .into_iter()
            .find(|mode| mode.as_str() == text);
        known.ok_or_else(|| UnknownCallMode(text.chars().take(40).collect()))
    }
}

impl fmt::Display for CallMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn listed(tools: &[ToolId]) -> String {
    tools
        .iter()
        .map(|id| format!("`{id}`"))
        .collect::<Vec<_>>()
        .join(", ")
}
