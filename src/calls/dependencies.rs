//! What approvals and operations depend on, and what an earlier daemon stored of them.

use std::sync::Arc;

use crate::catalog::{Catalog, CatalogReader};
use crate::events::Hub;
use crate::model::{ApprovalRequest, Operation, StoredTurn, ToolId, ToolUsage};
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::{EarlierLog, LogRow, StateLoss, StateStore, StoredHistory};

/// The dependencies that approvals and operations share.
#[derive(Clone)]
pub struct CallDependencies {
    /// Stores them over restarts.
    pub store: Arc<dyn StateStore>,
    /// Publishes their changes.
    pub hub: Hub,
    /// Shows when a tool is available again.
    pub reader: CatalogReader,
    /// Gives the time.
    pub clock: Clock,
    /// Runs work that has to continue after the request that started it.
    pub tasks: Tasks,
    /// Signals the stop of the daemon.
    pub stop: Stop,
}

/// The stored state of calls.
#[derive(Debug, Default)]
pub struct Stored {
    /// Calls that wait for approval, or were decided.
    pub approvals: Vec<ApprovalRequest>,
    /// Operations that are running or over.
    pub operations: Vec<Operation>,
    /// Turns that are kept.
    pub turns: Vec<StoredTurn>,
    /// The call counts of tools.
    pub usage: Vec<(ToolId, ToolUsage)>,
    /// The histories of tools' definitions.
    pub histories: Vec<StoredHistory>,
    /// The definitions that were stored, from which the histories go on.
    pub catalog: Catalog,
    /// The lines of the log.
    pub log: Vec<LogRow>,
    /// What else is known of the log.
    pub earlier_log: Option<EarlierLog>,
    /// What was lost: no tool is called until an operator accepts it.
    pub loss: Option<StateLoss>,
}

impl std::fmt::Debug for CallDependencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}
