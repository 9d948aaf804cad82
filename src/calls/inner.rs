//! What all clones of [`Calls`](super::Calls) share.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::active::ActiveCalls;
use super::held::CallBytes;
use super::history::DefinitionHistories;
use super::limits::CallLimiter;
use super::log::ActivityLog;
use super::log::queue::{LogQueue, LogStore};
use super::pending::PendingCalls;
use super::usage::Usage;
use super::validate::ArgumentValidator;
use crate::catalog::CatalogReader;
use crate::config;
use crate::engine::EngineHandle;
use crate::metrics::{AuditCounts, CallCounts};
use crate::runtime::{Clock, Tasks};
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
    pub(super) histories: DefinitionHistories,
    /// What happened, as far as it is kept.
    pub(super) log: Arc<ActivityLog>,
    /// The queue of lines that are to be written; `None` once the daemon stops.
    pub(super) queue: ArcSwapOption<LogQueue>,
    /// Lines of the audit log.
    pub(super) audited: Arc<AuditCounts>,
    /// Lines of the log in the store.
    pub(super) logged: Arc<AuditCounts>,
    /// Where the writer of the log stores lines, set after the start.
    pub(super) log_store: Arc<LogStore>,
    /// Set after the start, because approvals and operations need the calls themselves.
    pub(super) registers: OnceLock<PendingCalls>,
    pub(super) active: ActiveCalls,
    /// What was lost of the stored state and is not accepted: no tool is called.
    pub(super) loss: ArcSwapOption<StateLoss>,
    /// The budget of bytes that are held for clients, with the parts of calls.
    pub(super) held: CallBytes,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
}
