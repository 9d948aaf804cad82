//! The tools that the names of one turn mean, in one snapshot.

use std::sync::Arc;

use crate::calls::{ExecuteError, Request, resolve};
use crate::catalog::{
    Catalog, NameLookup, RevisionHistory, Snapshot, ViewQuery, find_in_scope, nearest,
};
use crate::model::{DefinitionVersion, NameRef, ToolId, ViewTool};

/// Where the names of a turn are looked up.
pub(super) struct TurnNames {
    snapshot: Arc<Snapshot>,
    history: Arc<RevisionHistory>,
    scope: ViewQuery,
    /// The revision of the list that the names were taken from, if that list is known.
    revision: Option<String>,
    /// That list, if it is not the present one.
    before: Option<Catalog>,
    /// Whether a revision was given whose list is not remembered.
    is_forgotten: bool,
}

impl TurnNames {
    /// The names of the list with this revision, or of the current list.
    pub(super) fn new(
        snapshot: Arc<Snapshot>,
        history: Arc<RevisionHistory>,
        scope: ViewQuery,
        revision: Option<String>,
    ) -> Self {
        let former = revision
            .as_deref()
            .filter(|revision| !snapshot.catalog.has_revision(&scope, revision));
        let before = former
            .and_then(|revision| history.find(&scope, revision))
            .cloned();
        let is_forgotten = former.is_some() && before.is_none();
        let revision = revision.filter(|_| !is_forgotten);
        Self {
            snapshot,
            history,
            scope,
            revision,
            before,
            is_forgotten,
        }
    }

    /// Whether the list that the names were taken from is not remembered.
    pub(super) fn is_forgotten(&self) -> bool {
        self.is_forgotten
    }

    /// The tool that the name in a call means. An LLM is never shown an internal tool, so it cannot
    /// mean one.
    pub(super) fn find(&self, call: Request) -> Result<Arc<ViewTool>, ExecuteError> {
        let request = Request {
            revision: self.revision.clone(),
            ..call
        };
        let name = request.name.as_str();
        let tool = resolve::tool(&self.snapshot.catalog, &self.history, &self.scope, &request)?;
        if tool.tool.facts.internal_only {
            return Err(ExecuteError::Unknown(name.to_owned()));
        }
        match self.other_meanings(name, &tool.id) {
            others if others.is_empty() => Ok(tool),
            others => {
                let candidates = std::iter::once(tool.id.clone()).chain(others).collect();
                Err(ExecuteError::Ambiguous {
                    name: name.to_owned(),
                    candidates,
                })
            }
        }
    }

    /// The version of the tool's definition in the list that the name was taken from; the present
    /// one, if no remembered list was named.
    pub(super) fn seen_version(&self, tool: &ViewTool) -> DefinitionVersion {
        let seen = self
            .before
            .as_ref()
            .and_then(|catalog| resolve::by_id(catalog, &self.scope, tool.id.clone()));
        seen.map_or_else(|| tool.tool.version(), |seen| seen.tool.version())
    }

    /// The other tools that the name meant in a remembered list, if it is not known in which list
    /// the model saw it.
    fn other_meanings(&self, name: &str, now: &ToolId) -> Vec<ToolId> {
        let mut others: Vec<ToolId> = Vec::new();
        if !self.is_forgotten {
            return others;
        }
        let name = NameRef::parse(name);
        for before in self.history.newest_first() {
            if let NameLookup::One(tool) = find_in_scope(before, &self.scope, &name)
                && tool.id != *now
                && !others.contains(&tool.id)
            {
                others.push(tool.id.clone());
            }
        }
        others
    }

    /// The name of a tool in the list now; its identity if it has none.
    pub(super) fn name_of(&self, id: &ToolId) -> String {
        match find_in_scope(
            &self.snapshot.catalog,
            &self.scope,
            &NameRef::Id(id.clone()),
        ) {
            NameLookup::One(tool) => tool.name.as_str().to_owned(),
            NameLookup::Ambiguous(_) | NameLookup::None => id.to_string(),
        }
    }

    /// Names of listed tools that are near to one that no tool has.
    pub(super) fn near(&self, name: &str) -> Vec<String> {
        let listed = self
            .snapshot
            .catalog
            .entries()
            .filter(|entry| entry.is_published());
        let tools = listed
            .flat_map(|entry| entry.tools.iter())
            .filter(|tool| !tool.tool.facts.internal_only);
        nearest(name, tools.map(|tool| (tool.name.as_str(), &tool.name)))
    }
}
