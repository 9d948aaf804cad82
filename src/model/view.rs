//! A tool as one client sees it: its published name and its effective settings, each with its
//! source.

use std::fmt;
use std::sync::Arc;

use super::activity::Execution;
use super::name::{PublishedName, ScenarioName, ToolId};
use super::preference::{PreferenceTarget, Scope};
use super::tool::Tool;
use super::tool_override::OverrideValue;

/// A tool within a view.
#[derive(Debug, Clone, PartialEq)]
pub struct ViewTool {
    /// Identity: the owning scenario and the tool's original name.
    pub id: ToolId,
    /// The tool as the client gets it: as offered, unless an operator replaced parts of it.
    pub tool: Arc<Tool>,
    /// What an operator replaced, if so.
    pub overridden: Option<Arc<OverriddenTool>>,
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
    /// The tool as its scenario offers it.
    pub fn offered(&self) -> &Arc<Tool> {
        self.overridden
            .as_ref()
            .map_or(&self.tool, |overridden| &overridden.offered)
    }

    /// Why it is withheld, if the value of a fixed parameter does not fit it any more.
    pub fn withheld_reason(&self) -> Option<&UnfitOverride> {
        self.overridden.as_ref()?.withheld_reason()
    }

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

/// What an operator replaced of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct OverriddenTool {
    /// The tool as its scenario offers it.
    pub offered: Arc<Tool>,
    /// The values that its calls get, by parameter.
    pub values: Box<[(Arc<str>, OverrideValue)]>,
    /// The overrides that do not fit the tool as it is now. The tool is without them.
    pub unfit: Box<[UnfitOverride]>,
}

/// An override that does not fit its tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfitOverride {
    /// The parameter.
    pub parameter: Arc<str>,
    /// Why it does not fit: the rest of a sentence that begins with the parameter.
    pub why: String,
    /// Whether the value is fixed: then the tool cannot be called without it.
    pub is_fixed: bool,
}

impl OverriddenTool {
    /// The override because of which the tool is withheld, if there is one.
    pub fn withheld_reason(&self) -> Option<&UnfitOverride> {
        self.unfit.iter().find(|unfit| unfit.is_fixed)
    }
}

impl fmt::Display for UnfitOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the parameter `{}` {}", self.parameter, self.why)
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
    /// A preference whose fixed value for a parameter does not fit the tool any more.
    UnfitOverride(Arc<(Scope, PreferenceTarget)>),
}

impl Provenance {
    /// Why it disables a tool of this scenario, in one clause.
    pub(crate) fn why_disabled(&self, scenario: &ScenarioName) -> String {
        match self {
            Self::Manifest => format!("{scenario} disables it by default"),
            Self::Preference(_) => format!("the preference {self} disables it"),
            Self::UnfitOverride(_) => {
                format!("a value that the preference {self} fixes does not fit it any more")
            }
        }
    }
}

impl fmt::Display for Provenance {
    /// `manifest`, or the scope and the target with a blank between: `chat:7 tool:files/read`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manifest => f.write_str("manifest"),
            Self::Preference(place) | Self::UnfitOverride(place) => {
                write!(f, "{} {}", place.0, place.1)
            }
        }
    }
}
