//! Why a tool is not in a view: exactly one reason for each.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::filter::Filter;
use super::{View, ViewQuery};
use crate::catalog::lens::Lens;
use crate::catalog::{Catalog, Standing};
use crate::model::{ToolId, ViewTool};

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

impl View {
    /// Every tool of a published or withdrawn scenario that is not in this view, in order, each with its one reason. The view is of the
    /// same catalog and query. Scenarios that wait for an operator's yes, or were blocked, have no published tools and are not told.
    pub fn absences(&self, catalog: &Catalog, query: &ViewQuery) -> Vec<LeftOut> {
        let lens = Lens::of(catalog, query);
        let filter = Filter::of(catalog, query);
        let present: BTreeSet<&ToolId> = self.tools().map(|tool| &tool.id).collect();
        let chosen: BTreeSet<&ToolId> = self.left_out.iter().map(|left| &left.tool.id).collect();
        let mut absences = self.left_out.clone();
        for entry in catalog.entries().filter(|entry| !matches!(entry.standing, Standing::Hidden(_))) {
            let refused = filter.refuses_entry(entry);
            for tool in entry.tools.iter().filter(|tool| !present.contains(&tool.id) && !chosen.contains(&tool.id)) {
                let tool = lens.tool(tool);
                let why = refused.clone().or_else(|| filter.refuses(&tool));
                // What nothing refuses is in the view or was left out by the choice.
                absences.extend(why.map(|why| LeftOut { tool, why }));
            }
        }
        absences.sort_by(|a, b| a.tool.id.cmp(&b.tool.id));
        absences
    }
}
