//! What all clones of [`Calls`](super::Calls) share.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::active::ActiveCalls;
use super::audit::Audit;
use super::limits::CallLimiter;
use super::pending::PendingCalls;
use super::recent::RecentCalls;
use super::usage::Usage;
use super::validate::ArgumentValidator;
use crate::catalog::CatalogReader;
use crate::config;
use crate::engine::EngineHandle;
use crate::metrics::{AuditCounts, CallCounts};
use crate::runtime::{ByteBudget, Clock, Tasks};
use crate::state::StateLoss;

/// The shared state of all calls.
#[derive(Debug)]
pub(super) struct CallsInner {
    pub(super) config: ArcSwap<config::CallsConfig>,
    pub(super) reader: CatalogReader,
    pub(super) engine: EngineHandle,
    pub(super) limits: CallLimiter,
    pub(super) validators: ArgumentValidator,
    pub(super) counts: CallCounts,
    pub(super) usage: Usage,
    pub(super) audit: ArcSwapOption<Audit>,
    pub(super) audited: Arc<AuditCounts>,
    pub(super) recent: RecentCalls,
    /// Set after the start, because approvals and operations need the calls themselves.
    pub(super) registers: OnceLock<PendingCalls>,
    pub(super) active: ActiveCalls,
    /// What was lost of the stored state and is not accepted: no tool is called.
    pub(super) loss: ArcSwapOption<StateLoss>,
    /// The budget of bytes that are held for clients.
    pub(super) held: ByteBudget,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
}
