//! What is told: one message per change, typed. How it is written is the business of whoever sends it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;

use super::cursor::Cursor;
use crate::catalog::{CatalogDiff, Revision, ToolChange};
use crate::model::{
    ApprovalRequest, CallerInfo, Finding, Health, Operation, PublishedName, ScenarioName, StateTransition,
};

/// What readers may ask for. A snapshot may come whatever was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Changes of the asker's list.
    Catalog,
    /// Changes of scenarios' states.
    Scenario,
    /// Findings that come and go.
    Finding,
    /// What becomes of calls that need a human's yes.
    Approval,
    /// What becomes of long-running operations.
    Operation,
}

/// An event with its place, shared by all who read it.
#[derive(Debug)]
pub struct Message {
    /// The place behind it, from which a reader resumes.
    pub id: Cursor,
    /// What happened.
    pub event: Event,
    written: [OnceLock<Bytes>; 2],
}

/// How a message may be written. Each form has one way of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As an event of a stream of server-sent events.
    Event,
    /// As a text of its own.
    Frame,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Everything, for a reader that knows nothing yet or has missed something. What it knew before does not count any more.
    Snapshot(Overview),
    /// The asker's list changed.
    Catalog(CatalogChange),
    /// A scenario's state changed.
    Scenario(Arc<StateTransition>),
    /// A finding came or went.
    Finding(FindingChange),
    /// A call waits for a human's yes, or something became of it.
    Approval(Arc<ApprovalRequest>),
    /// A long-running operation began, moved on or ended.
    Operation(Arc<Operation>),
}

/// Everything that a filter covers at one moment.
#[derive(Debug)]
pub struct Overview {
    /// The catalog's revision, as the asker's scope sees it.
    pub revision: Revision,
    /// When this revision came to be.
    pub generated_at: Timestamp,
    /// The published names in the asker's list, in its order.
    pub names: Vec<PublishedName>,
    /// The health of the scenarios that the filter names, or of all, in order.
    pub scenarios: Vec<Arc<Health>>,
    /// How many findings of sources, manifests, the store and the merge are open for these scenarios.
    pub findings: usize,
}

/// How the asker's list changed.
#[derive(Debug)]
pub struct CatalogChange {
    /// The catalog's revision, as the asker's scope sees it now.
    pub revision: Revision,
    /// When this revision came to be.
    pub generated_at: Timestamp,
    /// What differs.
    pub difference: CatalogDiff,
}

/// A finding came or went. One that only says the same of the same tool in other words does neither.
#[derive(Debug)]
pub enum FindingChange {
    /// It came.
    Added(Finding),
    /// It went.
    Removed(Finding),
}

impl EventType {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Catalog, Self::Scenario, Self::Finding, Self::Approval, Self::Operation];

    /// The kind as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Scenario => "scenario",
            Self::Finding => "finding",
            Self::Approval => "approval",
            Self::Operation => "operation",
        }
    }
}

impl Event {
    /// Its kind; none for a snapshot.
    pub fn kind(&self) -> Option<EventType> {
        match self {
            Self::Snapshot(_) => None,
            Self::Catalog(_) => Some(EventType::Catalog),
            Self::Scenario(_) => Some(EventType::Scenario),
            Self::Finding(_) => Some(EventType::Finding),
            Self::Approval(_) => Some(EventType::Approval),
            Self::Operation(_) => Some(EventType::Operation),
        }
    }

    /// Whom a call that this tells of is for: its scenario, and who asked. Nothing for what is told of snapshots.
    pub(super) fn call(&self) -> Option<(&ScenarioName, &CallerInfo)> {
        match self {
            Self::Approval(request) => Some((&request.tool.scenario, &request.caller)),
            Self::Operation(operation) => Some((&operation.tool.scenario, &operation.caller)),
            Self::Snapshot(_) | Self::Catalog(_) | Self::Scenario(_) | Self::Finding(_) => None,
        }
    }

    /// The name of the event as it is written.
    pub fn name(&self) -> &'static str {
        self.kind().map_or("snapshot", EventType::as_str)
    }

    /// What it costs in memory, roughly, in bytes.
    fn weight(&self) -> usize {
        let named = |named: &ToolChange| 2 * named.reason.len() + 5 * named.name.as_str().len() + 200;
        let inner = match self {
            Self::Snapshot(all) => all.names.len() * 96 + all.scenarios.len() * 300,
            Self::Catalog(CatalogChange { difference: found, .. }) => {
                let lists = [&found.added, &found.removed, &found.changed];
                lists.into_iter().flatten().map(named).sum::<usize>() + found.scenarios.len() * 32
            }
            Self::Scenario(turn) => turn.reason.len() * 2,
            Self::Finding(FindingChange::Added(finding) | FindingChange::Removed(finding)) => finding.message.len() * 2,
            // What they hold is kept elsewhere anyhow; an answer or arguments are not written.
            Self::Approval(_) | Self::Operation(_) => 1_000,
        };
        inner + 400
    }
}

impl Message {
    /// An event at its place.
    pub(super) fn new(id: Cursor, event: Event) -> Arc<Self> {
        Arc::new(Self { id, event, written: Default::default() })
    }

    /// It as bytes: made by `write` for the first reader of this form, shared with all others. So there can be only one way of writing a
    /// form.
    pub fn written(&self, form: Form, write: impl FnOnce(&Self) -> Bytes) -> Bytes {
        let [event, frame] = &self.written;
        let written = match form {
            Form::Event => event,
            Form::Frame => frame,
        };
        written.get_or_init(|| write(self)).clone()
    }

    /// What it costs in memory, roughly, in bytes, with itself as written in both forms.
    pub(super) fn weight(&self) -> usize {
        self.event.weight()
    }
}
