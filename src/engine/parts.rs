//! What the loop uses but does not own the state of.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::persist::manifest_writer::SaveRequest;
use super::routes::CallRoutes;
use crate::config::Config;
use crate::protocols::Protocols;
use crate::runtime::Clock;
use crate::transports::Transports;

/// What the loop uses but does not own the state of.
pub(super) struct EngineParts {
    pub(super) config: Arc<Config>,
    pub(super) transports: Transports,
    pub(super) protocols: Protocols,
    pub(super) clock: Clock,
    /// What is to be stored behind the loop's back.
    pub(super) saves: mpsc::Sender<SaveRequest>,
    /// Tells the sources of another configuration.
    pub(super) configured: watch::Sender<Arc<Config>>,
    /// Where calls find the ways to scenarios.
    pub(super) routes: CallRoutes,
}
