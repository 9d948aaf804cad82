//! Why a tool is not in a view: exactly one reason for each.

use std::fmt;
use std::sync::Arc;

use crate::model::ViewTool;

/// A tool that is not in a view.
#[derive(Debug, Clone, PartialEq)]
pub struct LeftOut {
    /// The tool, with the settings of the client's scope.
    pub tool: Arc<ViewTool>,
    /// Why it is not there.
    pub why: Absence,
}

/// Why a tool is not in a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// Its scenario is not published now; the text says why.
    Withdrawn(String),
    /// The bounds of the client's profile keep it out; the text says which.
    Profile(String),
    /// Its scenario marks it as internal.
    Internal,
    /// It is the activity of a definition, which the text names.
    Activity(String),
    /// It is switched off; the text names the source of the setting.
    Disabled(String),
    /// It does not fit the filter of this name.
    Filtered(&'static str),
    /// It is not relevant to `q`.
    Irrelevant,
    /// Other tools take all places of `max_tools`. The number is that limit.
    OverTools(usize),
    /// It does not fit into the rest of `max_tokens`. The number is that limit.
    OverTokens(usize),
    /// The target takes no more tools than this, and others come before it.
    OverCap(usize),
    /// It would be deferred, but the target does not support deferred tools.
    Deferred,
    /// It would be deferred, but the target limits the number of deferred tools.
    OverDeferred(usize),
}

impl Absence {
    /// The reason as programs read it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Withdrawn(_) => "withdrawn",
            Self::Profile(_) => "profile",
            Self::Internal => "internal-only",
            Self::Activity(_) => "activity-bound",
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

    /// Whether a budget of the client or of the target keeps the tool out, and not the client's
    /// filters or query.
    pub fn is_budget(&self) -> bool {
        matches!(
            self,
            Self::OverTools(_)
                | Self::OverTokens(_)
                | Self::OverCap(_)
                | Self::Deferred
                | Self::OverDeferred(_)
        )
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Withdrawn(reason) => write!(f, "its scenario is not published: {reason}"),
            Self::Profile(reason) => f.write_str(reason),
            Self::Internal => f.write_str("its scenario marks it as internal"),
            Self::Activity(definition) => write!(
                f,
                "it is listed as `{definition}`, of which it is the activity"
            ),
            Self::Disabled(source) => write!(f, "switched off by {source}"),
            Self::Filtered(filter) => write!(f, "it does not fit the filter `{filter}`"),
            Self::Irrelevant => f.write_str("not relevant to `q`"),
            Self::OverTools(most) => {
                write!(
                    f,
                    "the list takes at most {most} tools (`max_tools`) and others come before it"
                )
            }
            Self::OverTokens(most) => {
                write!(
                    f,
                    "it does not fit into what those before it leave of {most} tokens (`max_tokens`)"
                )
            }
            Self::OverCap(most) => write!(
                f,
                "the list takes at most {most} tools and others come before it"
            ),
            Self::Deferred => f.write_str(
                "it would be deferred, which this format cannot express, so it is not in the list",
            ),
            Self::OverDeferred(most) => write!(
                f,
                "at most {most} tools can be deferred and others come before it"
            ),
        }
    }
}
