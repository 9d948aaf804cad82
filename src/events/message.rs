//! The typed messages: one for each change. The surface that sends a message decides how it is
//! written.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;

use super::cursor::Cursor;
use crate::catalog::{CatalogDiff, Revision, ToolChange};
use crate::model::{
    ApprovalRequest, CallEvent, CallerInfo, Finding, Health, Operation, PublishedName,
    ScenarioName, StateTransition,
};
use crate::runtime::SharedReservation;

/// The kinds of events that readers can choose. A snapshot may come whatever they chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Changes of the reader's list.
    Catalog,
    /// Changes of the states of scenarios.
    Scenario,
    /// Findings that are added or removed.
    Finding,
    /// Changes of calls that need approval.
    Approval,
    /// Changes of long-running operations. Only the access of their call and operators get them.
    Operation,
    /// What happens in a call while it runs. Only its caller and operators get it.
    Call,
}

/// An event with its cursor, shared by all readers.
#[derive(Debug)]
pub struct Message {
    /// The position after this event, from which a reader can resume.
    pub id: Cursor,
    /// The change.
    pub event: Event,
    written: [OnceLock<Bytes>; 2],
    reservations: [SharedReservation; 2],
}

/// The written forms of a message. There is one way to write each form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An event of a stream of server-sent events.
    Event,
    /// A text of its own.
    Frame,
}

/// A change, or everything.
#[derive(Debug)]
pub enum Event {
    /// Everything, for a reader that is new or has missed events. It replaces what the reader knew
    /// before.
    Snapshot(Overview),
    /// The reader's list changed.
    Catalog(CatalogChange),
    /// A scenario's state changed.
    Scenario(Arc<StateTransition>),
    /// A finding was added or removed.
    Finding(FindingChange),
    /// A call waits for approval, or its state changed.
    Approval(Arc<ApprovalRequest>),
    /// A long-running operation started, changed or ended.
    Operation(Arc<Operation>),
    /// Something happened in a call.
    Call(Arc<CallEvent>),
}

/// Everything that a filter covers at one moment.
#[derive(Debug)]
pub struct Overview {
    /// The revision of the catalog in the reader's scope.
    pub revision: Revision,
    /// When this revision was published first.
    pub generated_at: Timestamp,
    /// The published names in the reader's list, in its order.
    pub names: Vec<PublishedName>,
    /// The health of the scenarios that the filter names, or of all, in order.
    pub scenarios: Vec<Arc<Health>>,
    /// How many findings of sources, manifests, the store and the merge are open for these
    /// scenarios.
    pub findings: usize,
}

/// A change of the reader's list.
#[derive(Debug)]
pub struct CatalogChange {
    /// The revision of the catalog in the reader's scope, after the change.
    pub revision: Revision,
    /// When this revision was published first.
    pub generated_at: Timestamp,
    /// The differences.
    pub difference: CatalogDiff,
}

/// A finding was added or removed. A finding that only says the same of the same tool in other
/// words is neither.
#[derive(Debug)]
pub enum FindingChange {
    /// It was added.
    Added(Finding),
    /// It was removed.
    Removed(Finding),
}

impl EventType {
    /// All kinds.
    pub const ALL: [Self; 6] = [
        Self::Catalog,
        Self::Scenario,
        Self::Finding,
        Self::Approval,
        Self::Operation,
        Self::Call,
    ];

    /// The written name of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Catalog => "catalog",
            Self::Scenario => "scenario",
            Self::Finding => "finding",
            Self::Approval => "approval",
            Self::Operation => "operation",
            Self::Call => "call",
        }
    }
}

impl Event {
    /// The kind of this event; `None` for a snapshot.
    pub fn kind(&self) -> Option<EventType> {
        match self {
            Self::Snapshot(_) => None,
            Self::Catalog(_) => Some(EventType::Catalog),
            Self::Scenario(_) => Some(EventType::Scenario),
            Self::Finding(_) => Some(EventType::Finding),
            Self::Approval(_) => Some(EventType::Approval),
            Self::Operation(_) => Some(EventType::Operation),
            Self::Call(_) => Some(EventType::Call),
        }
    }

    /// The scenario, where it is known, and the caller of the call that this event is about; `None`
    /// for events that come from snapshots.
    pub(super) fn call(&self) -> Option<(Option<&ScenarioName>, &CallerInfo)> {
        match self {
            Self::Approval(request) => Some((Some(&request.tool.scenario), &request.caller)),
            Self::Operation(operation) => Some((Some(&operation.tool.scenario), &operation.caller)),
            Self::Call(event) => Some((None, &event.caller)),
            Self::Snapshot(_) | Self::Catalog(_) | Self::Scenario(_) | Self::Finding(_) => None,
        }
    }

    /// The written name of the event.
    pub fn name(&self) -> &'static str {
        self.kind().map_or("snapshot", EventType::as_str)
    }

    /// Roughly how many bytes it needs in memory.
    fn weight(&self) -> usize {
        let named =
            |named: &ToolChange| 2 * named.reason.len() + 6 * named.name.as_str().len() + 270;
        let inner = match self {
            Self::Snapshot(all) => all.names.len() * 96 + all.scenarios.len() * 300,
            Self::Catalog(CatalogChange {
                difference: found, ..
            }) => {
                let lists = [&found.added, &found.removed, &found.changed];
                lists.into_iter().flatten().map(named).sum::<usize>() + found.scenarios.len() * 32
            }
            Self::Scenario(turn) => turn.reason.len() * 2,
            Self::Finding(FindingChange::Added(finding) | FindingChange::Removed(finding)) => {
                finding.message.len() * 2
            }
            // The contents are kept elsewhere anyhow, and neither answers nor arguments are
            // written.
            Self::Approval(_) | Self::Operation(_) => 1_000,
            Self::Call(event) => event.weight() * 3,
        };
        inner + 400
    }
}

impl Message {
    /// An event with its cursor.
    pub(super) fn new(id: Cursor, event: Event) -> Arc<Self> {
        Arc::new(Self {
            id,
            event,
            written: Default::default(),
            reservations: Default::default(),
        })
    }

    /// The reservation of this written form, for as long as clients hold it.
    pub fn reservation(&self, form: Form) -> &SharedReservation {
        let [event, frame] = &self.reservations;
        match form {
            Form::Event => event,
            Form::Frame => frame,
        }
    }

    /// The message as bytes. `write` makes them for the first reader of this form, and they are
    /// shared with all others. So there can be only one way to write a form.
    pub fn written(&self, form: Form, write: impl FnOnce(&Self) -> Bytes) -> Bytes {
        let [event, frame] = &self.written;
        let written = match form {
            Form::Event => event,
            Form::Frame => frame,
        };
        written.get_or_init(|| write(self)).clone()
    }

    /// Roughly how many bytes the message needs in memory, with both written forms.
    pub(super) fn weight(&self) -> usize {
        self.event.weight()
    }
}
