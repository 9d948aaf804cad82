//! What the work on calls that are not over is given.

use std::sync::Arc;

use crate::catalog::CatalogReader;
use crate::events::Hub;
use crate::model::{ApprovalRequest, Operation, ToolId, ToolUsage};
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::StateStore;

/// What the registers work with.
#[derive(Clone)]
pub struct Parts {
    /// Keeps what they hold over restarts.
    pub store: Arc<dyn StateStore>,
    /// Tells of it.
    pub hub: Hub,
    /// Shows when a tool is there again.
    pub reader: CatalogReader,
    /// Reads time.
    pub clock: Clock,
    /// Runs what must not be cut off with the request that began it.
    pub tasks: Tasks,
    /// Ends it all.
    pub stop: Stop,
}

/// What an earlier daemon had stored of calls.
#[derive(Debug, Default)]
pub struct Stored {
    /// Calls that need a yes.
    pub approvals: Vec<ApprovalRequest>,
    /// Operations that go on, or are over.
    pub operations: Vec<Operation>,
    /// What was counted of tools.
    pub usage: Vec<(ToolId, ToolUsage)>,
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}
