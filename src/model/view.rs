//! A tool as one client sees it: its published name and its effective settings, each with its
//! source.

use std::fmt;
use std::sync::Arc;

use super::activity::Execution;
use super::name::{PublishedName, ScenarioName, ToolId};
use super::preference::{PreferenceTarget, Scope};
use super::tool::Tool;

/// A tool within a view.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewTool {
    /// Identity: the owning scenario and the tool's original name.
    pub id: ToolId,
    /// The tool as offered.
    pub tool: Arc<Tool>,
    /// The name it is published under in this view.
    pub name: PublishedName,
    /// What preferences made of it.
    pub effective: Effective,
    /// The tools of the same scenario by which its operations are followed and cancelled.
    pub companions: Arc<[CompanionName]>,
    /// How its calls get their results.
    pub execution: Execution,
}

impl ViewTool {
    /// Whether no LLM sees it: its scenario marks it as internal, or it is the activity of a
    /// definition. It is still found by name.
    pub fn is_internal(&self) -> bool {
        self.tool.facts.internal_only || self.execution.is_activity()
    }

    /// What a call of it names as its activity, as the Tool Protocol has it: empty if it is latent.
    pub fn activity(&self) -> &str {
        match &self.execution {
            Execution::Latent => "",
            Execution::By(bound) => &bound.name,
            Execution::Missing(name) => name,
            Execution::Own | Execution::ActivityOf(_) => {
                self.tool.own_activity().unwrap_or(self.name.as_str())
            }
        }
    }
}

/// A tool that another tool of the same scenario names in its `async_behavior`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompanionName {
    /// The name that the scenario gave it, which is the one written there.
    pub original: Arc<str>,
    /// The name it is published under in this view.
    pub published: PublishedName,
}

impl CompanionName {
    /// Where a tool's metadata names its companions: the tool that gives the status of an
    /// operation, and the one that cancels it.
    pub const POINTERS: [&'static str; 2] = [
        "/async_behavior/status_polling/status_tool",
        "/async_behavior/cancellation/cancel_tool",
    ];
}

/// Effective settings with their provenance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Whether it is in the list.
    pub enabled: bool,
    /// Where that was decided.
    pub enabled_source: Provenance,
    /// Whether each call needs a human's approval.
    pub requires_approval: bool,
    /// Where that was decided.
    pub approval_source: Provenance,
    /// Which tools stay when a limit allows only so many: highest first.
    pub priority: i32,
    /// Whether it stays in the list, whatever the query and the limits are.
    pub pinned: bool,
}

/// Where an effective value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// The scenario's own manifest (or the protocol's default).
    Manifest,
    /// A preference. Shared: one preference may apply to many tools.
    Preference(Arc<(Scope, PreferenceTarget)>),
}

impl Provenance {
    /// Why it disables a tool of this scenario, in one clause.
    pub(crate) fn why_disabled(&self, scenario: &ScenarioName) -> String {
        match self {
            Self::Manifest => format!("{scenario} disables it by default"),
            Self::Preference(_) => format!("the preference {self} disables it"),
        }
    }
}

impl fmt::Display for Provenance {
    /// `manifest`, or the scope and the target with a blank between: `chat:7 tool:files/read`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest => f.write_str("manifest"),
            Self::Preference(place) => write!(f, "{} {}", place.0, place.1),
        }
    }
}
