//! Why a tool is not in a view: exactly one reason for each.

use std::fmt;
use std::sync::Arc;

use crate::model::ViewTool;

/// A tool that is not in a view.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// The tool, as the asker's scope has it.
    pub tool: Arc<ViewTool>,
    /// Why it is not there.
    pub why: Absence,
}

/// Why a tool is not in a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// Its scenario is not published now; the text says why.
    Withdrawn(String),
    /// The bounds of the asker's profile keep it out; the text says which.
    Profile(String),
    /// Its scenario marks it as internal.
    Internal,
    /// It is switched off; the text says by whom.
    Disabled(String),
    /// It does not fit the filter of this name.
    Filtered(&'static str),
    /// It is not relevant to `q`.
    Irrelevant,
    /// Others have the places of `max_tools`, which is the number.
    OverTools(usize),
    /// It does not fit into what others leave of `max_tokens`, which is the number.
    OverTokens(usize),
    /// The target takes no more tools than this, and others come before it.
    OverCap(usize),
    /// It would be deferred, but the target knows no such thing.
    Deferred,
    /// It would be deferred, but the target takes only so many.
    OverDeferred(usize),
}

impl Absence {
    /// A short name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Withdrawn(_) => "withdrawn",
            Self::Profile(_) => "profile",
            Self::Internal => "internal-only",
            Self::Disabled(_) => "disabled",
            Self::Filtered(_) => "filtered",
            Self::Irrelevant => "irrelevant",
            Self::OverTools(_) => "over-max-tools",
            Self::OverTokens(_) => "over-max-tokens",
            Self::OverCap(_) => "over-cap",
            Self::Deferred => "deferred",
            Self::OverDeferred(_) => "over-deferred",
        }
    }

    /// Whether a budget of the asker or of the target keeps the tool out, and not what the asker looks for.
    pub fn is_budget(&self) -> bool {
        matches!(
            self,
            Self::OverTools(_) | Self::OverTokens(_) | Self::OverCap(_) | Self::Deferred | Self::OverDeferred(_)
        )
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Withdrawn(reason) => write!(f, "its scenario is not published: {reason}"),
            Self::Profile(reason) => f.write_str(reason),
            Self::Internal => f.write_str("its scenario marks it as internal"),
            Self::Disabled(source) => write!(f, "switched off by {source}"),
            Self::Filtered(filter) => write!(f, "it does not fit the filter `{filter}`"),
            Self::Irrelevant => f.write_str("nothing in it is relevant to `q`"),
            Self::OverTools(most) => {
                write!(f, "the list takes at most {most} tools (`max_tools`) and others come before it")
            }
            Self::OverTokens(most) => {
                write!(f, "it does not fit into what those before it leave of {most} tokens (`max_tokens`)")
            }
            Self::OverCap(most) => write!(f, "the list takes at most {most} tools and others come before it"),
            Self::Deferred => {
                f.write_str("it would be deferred, which this format cannot say, so it is not in the list")
            }
            Self::OverDeferred(most) => write!(f, "at most {most} tools can be deferred and others come before it"),
        }
    }
}
