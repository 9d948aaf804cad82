//! What approvals and operations are made of, and what an earlier daemon stored of them.

use std::sync::Arc;

use crate::catalog::CatalogReader;
use crate::events::Hub;
use crate::model::{ApprovalRequest, Operation, ToolId, ToolUsage};
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::StateStore;

/// What the registers work with.
#[derive(Clone)]
pub struct CallDependencies {
    /// Keeps what they hold over restarts.
    pub store: Arc<dyn StateStore>,
    /// Publishes their changes.
    pub hub: Hub,
    /// Shows when a tool is there again.
    pub reader: CatalogReader,
    /// Reads time.
    pub clock: Clock,
    /// Runs what has to go on when the request that began it ends.
    pub tasks: Tasks,
    /// Ends their work.
    pub stop: Stop,
}

/// What an earlier daemon had stored of calls.
#[derive(Debug, Default)]
pub struct Stored {
    /// Calls that wait for an approval, or were decided.
    pub approvals: Vec<ApprovalRequest>,
    /// Operations that go on, or are over.
    pub operations: Vec<Operation>,
    /// What was counted of tools.
    pub usage: Vec<(ToolId, ToolUsage)>,
}

impl std::fmt::Debug for CallDependencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").finish_non_exhaustive()
    }
}
