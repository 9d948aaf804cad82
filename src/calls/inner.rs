//! What all clones of [`Calls`](super::Calls) share.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};

use super::audit::Audit;
use super::limits::Limits;
use super::pending::Registers;
use super::usage::Usage;
use super::validate::Validators;
use crate::catalog::CatalogReader;
use crate::config;
use crate::engine::EngineHandle;
use crate::metrics::{AuditCounts, CallCounts};
use crate::runtime::{Clock, Tasks};

/// What the work on calls needs.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) config: ArcSwap<config::Calls>,
    pub(super) reader: CatalogReader,
    pub(super) engine: EngineHandle,
    pub(super) limits: Limits,
    pub(super) validators: Validators,
    pub(super) counts: CallCounts,
    pub(super) usage: Usage,
    pub(super) audit: ArcSwapOption<Audit>,
    pub(super) audited: Arc<AuditCounts>,
    /// Given after the start, since they hold what calls are told through.
    pub(super) registers: OnceLock<Registers>,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
}
