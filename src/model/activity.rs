//! How the calls of a tool get their results: what a definition says about it, and what the catalog
//! decided.
//!
//! The words are those of the Tool Protocol: a call is explicit if code runs it, which is an
//! activity, and latent if the caller's model produces the result itself.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::name::ToolId;

/// The name of the scenario that holds the definitions of this daemon.
pub const DEFINITIONS: &str = "definitions";

/// The meta fields of a call, as the Tool Protocol has them. All other members of a call are
/// arguments.
pub const META_FIELDS: [&str; 4] = ["_tool", "_activity", "_reasoningForCall", "_output"];

/// What chooses the activity of a definition. An activity is named as `scenario/tool`, or by a name
/// that only one tool has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActivityChoice {
    /// The activity that the definition names. Without it, the tool with the name of the definition
    /// is its activity.
    pub named: Option<Arc<str>>,
    /// The activities for callers of single profiles, by profile. One that is not there is latent.
    pub by_profile: BTreeMap<String, Arc<str>>,
}

/// How the calls of a tool get their results.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Execution {
    /// Explicit: its own scenario runs it.
    #[default]
    Own,
    /// Explicit: its own scenario runs it, as the activity of this definition. It is not listed
    /// itself.
    ActivityOf(Box<ToolId>),
    /// Explicit: a tool of another scenario runs it.
    By(Box<BoundActivity>),
    /// Latent: the caller's model produces the result.
    Latent,
    /// It names an activity that is not there, so it cannot be called.
    Missing(Arc<str>),
}

/// The activity of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoundActivity {
    /// The tool that runs the calls.
    pub tool: ToolId,
    /// Its name as the definition has it, or its own name.
    pub name: Arc<str>,
}

impl Execution {
    /// The tool that runs the calls in place of the called one.
    pub fn activity(&self) -> Option<&ToolId> {
        match self {
            Self::By(bound) => Some(&bound.tool),
            Self::Own | Self::ActivityOf(_) | Self::Latent | Self::Missing(_) => None,
        }
    }

    /// Whether it is the activity of a definition.
    pub fn is_activity(&self) -> bool {
        matches!(self, Self::ActivityOf(_))
    }
}

impl fmt::Display for Execution {
    /// A short text that differs where the values differ.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own => f.write_str("own scenario"),
            Self::ActivityOf(id) => write!(f, "activity of {id}"),
            Self::By(bound) => write!(f, "explicit by {} as {}", bound.tool, bound.name),
            Self::Latent => f.write_str("latent"),
            Self::Missing(name) => write!(f, "missing {name}"),
        }
    }
}
