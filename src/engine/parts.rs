//! The parts that the loop uses but whose state it does not own.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::persist::manifest_writer::SaveRequest;
use super::routes::CallRoutes;
use crate::config::Config;
use crate::protocols::Protocols;
use crate::runtime::{Clock, Readiness};
use crate::transports::Transports;

/// The parts that the loop uses but whose state it does not own.
pub(super) struct EngineParts {
    pub(super) config: Arc<Config>,
    pub(super) transports: Transports,
    pub(super) protocols: Protocols,
    pub(super) clock: Clock,
    /// The queue of writes to the store.
    pub(super) saves: mpsc::Sender<SaveRequest>,
    /// Sends another configuration to the sources.
    pub(super) configured: watch::Sender<Arc<Config>>,
    /// The routes that calls use.
    pub(super) routes: CallRoutes,
    /// What the lists of the MCP server wait for.
    pub(super) first_lists: Readiness,
}
