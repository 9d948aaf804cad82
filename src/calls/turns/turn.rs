//! One turn: its calls, and how far each is.
//!
//! A call that is over stays as it is: the messages of a turn are always the same bytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use super::read::ReadCall;
use super::settled::{Settled, TurnCallStatus};
use super::vendors::TurnFormat;
use super::words;
use crate::calls::active::PendingInput;
use crate::calls::call_mode::CallMode;
use crate::calls::kept::KeptChanges;
use crate::calls::{GivenArgumentsError, Requester};
use crate::model::ToolId;
use crate::runtime::{BudgetExceeded, ByteBudget, ReservedBytes};

/// Roughly how many bytes a call of a turn needs besides its texts.
const CALL_FIXED_BYTES: usize = 500;
/// What is reserved for what the model gets for each call before it is known: a refusal and the
/// text that stands for a result that is left out are shorter.
const CALL_TEXT_BYTES: usize = 1_024;

/// The tool calls of one response of a model, and what became of them.
#[derive(Debug)]
pub struct Turn {
    /// Its id.
    pub id: Arc<str>,
    /// The identity of the caller that made it.
    pub owner: Arc<str>,
    /// A digest of everything that it was made of.
    pub digest: Arc<str>,
    /// The vendor's shape.
    pub format: &'static dyn TurnFormat,
    /// When it began.
    pub begun_at: Timestamp,
    /// What its messages depend on besides its calls.
    pub settings: TurnSettings,
    /// Which of its calls are wanted.
    pub mode: CallMode,
    /// Its calls, in the model's order.
    pub calls: Vec<TurnCall>,
    phases: Mutex<Vec<TurnPhase>>,
    pub(super) changes: KeptChanges,
    /// What is reserved for its results; `None` while it is not kept.
    held: Mutex<Option<HeldResults>>,
    /// Whether it is in the store.
    is_stored: AtomicBool,
    /// Whether none of its calls is sent, and none makes another one needless, any more.
    is_run: AtomicBool,
    /// Since when it is over, as far as that was noted.
    over_since: OnceLock<Timestamp>,
    /// Held while it is stored; the version that is stored already.
    pub(super) saved: tokio::sync::Mutex<Option<u64>>,
}

/// The bytes that are reserved for the results of a turn.
#[derive(Debug)]
struct HeldResults {
    /// In the share that the results of one turn have together.
    results: ReservedBytes,
    /// The bytes of results that were known when it was added, which its weight has.
    known_results: usize,
}

/// What the messages of a turn depend on besides its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnSettings {
    /// Whether the model gets a text that a call waits for approval, instead of being kept waiting.
    pub tells_approvals: bool,
    /// The most bytes of text of one result.
    pub text_bytes: usize,
    /// The most bytes of one result, with its files.
    pub result_bytes: usize,
    /// The model, where its results depend on it.
    pub model: Option<String>,
    /// Whether the list that the names were taken from is not remembered.
    pub is_revision_forgotten: bool,
}

/// One call of a turn.
#[derive(Debug)]
pub struct TurnCall {
    /// As the model made it.
    pub read: ReadCall,
    /// The tool that it means.
    pub tool: Option<ToolId>,
}

/// How far one call is.
#[derive(Debug, Clone)]
pub enum TurnPhase {
    /// It waits for its turn.
    Queued,
    /// It is under way.
    Running,
    /// Its tool waits for input.
    NeedsInput(Arc<PendingInput>),
    /// It waits for the approval with this id.
    WaitsForApproval(Arc<str>),
    /// It goes on as an operation, which may end while the turn is waited for.
    GoesOn(Arc<Settled>),
    /// It is over.
    Over(Arc<Settled>),
}

impl TurnPhase {
    /// The state of the call.
    pub fn status(&self) -> TurnCallStatus {
        match self {
            Self::Queued => TurnCallStatus::Queued,
            Self::Running => TurnCallStatus::Running,
            Self::NeedsInput(_) => TurnCallStatus::WaitingForInput,
            Self::WaitsForApproval(_) => TurnCallStatus::WaitingForApproval,
            Self::GoesOn(settled) | Self::Over(settled) => settled.status,
        }
    }

    /// The bytes of its result beyond those that every call has.
    fn result_bytes(&self) -> usize {
        match self {
            Self::GoesOn(settled) | Self::Over(settled) => {
                settled.weight().saturating_sub(CALL_TEXT_BYTES)
            }
            _ => 0,
        }
    }

    /// The same phase without its result, and with a text that says so.
    fn without_result(&self, exceeded: BudgetExceeded) -> Self {
        match self {
            Self::GoesOn(settled) => Self::GoesOn(Arc::new(words::left_out(settled, exceeded))),
            Self::Over(settled) => Self::Over(Arc::new(words::left_out(settled, exceeded))),
            other => other.clone(),
        }
    }

    /// Whether it waits for a person or an operation.
    fn waits(&self) -> bool {
        matches!(
            self,
            Self::NeedsInput(_) | Self::WaitsForApproval(_) | Self::GoesOn(_)
        )
    }

    /// Whether it makes the other calls of its turn needless.
    fn decides(&self, mode: CallMode) -> bool {
        let succeeded = self.status() == TurnCallStatus::Result;
        mode.is_decided_by(
            succeeded || self.status() == TurnCallStatus::Failed,
            succeeded,
        )
    }

    fn is_over(&self) -> bool {
        matches!(self, Self::Over(_))
    }
}

/// Everything that a new turn is made of.
pub(super) struct NewTurn {
    pub(super) id: Arc<str>,
    pub(super) owner: Arc<str>,
    pub(super) digest: Arc<str>,
    pub(super) format: &'static dyn TurnFormat,
    pub(super) begun_at: Timestamp,
    pub(super) settings: TurnSettings,
    pub(super) mode: CallMode,
    pub(super) calls: Vec<(TurnCall, TurnPhase)>,
}

impl Turn {
    pub(super) fn new(new: NewTurn) -> Self {
        let NewTurn {
            id,
            owner,
            digest,
            format,
            begun_at,
            settings,
            mode,
            calls,
        } = new;
        let (calls, phases): (Vec<_>, Vec<_>) = calls.into_iter().unzip();
        Self {
            id,
            owner,
            digest,
            format,
            begun_at,
            settings,
            mode,
            calls,
            phases: Mutex::new(phases),
            changes: KeptChanges::default(),
            held: Mutex::default(),
            is_stored: AtomicBool::new(false),
            is_run: AtomicBool::new(false),
            over_since: OnceLock::new(),
            saved: tokio::sync::Mutex::default(),
        }
    }

    /// The id of a call, for its events, its input and its whole result.
    pub fn call_id(&self, number: usize) -> String {
        format!("{}.{number}", self.id)
    }

    /// The ids of all calls.
    pub(super) fn call_ids(&self) -> impl Iterator<Item = String> {
        (0..self.calls.len()).map(|number| self.call_id(number))
    }

    /// How far each call is.
    pub fn phases(&self) -> Vec<TurnPhase> {
        self.locked().clone()
    }

    /// How far one call is.
    pub(super) fn phase(&self, number: usize) -> Option<TurnPhase> {
        self.locked().get(number).cloned()
    }

    /// Whether every call is over.
    pub fn is_over(&self) -> bool {
        self.locked().iter().all(TurnPhase::is_over)
    }

    /// Notes since when it is over, if it is. Returns whether it is.
    pub(super) fn note_end(&self, now: Timestamp) -> bool {
        let is_over = self.is_over();
        if is_over {
            self.over_since.get_or_init(|| now);
        }
        is_over
    }

    /// Since when it is over, as far as that was noted.
    pub(super) fn over_since(&self) -> Option<Timestamp> {
        self.over_since.get().copied()
    }

    /// Whether it is in the store.
    pub(super) fn is_stored(&self) -> bool {
        self.is_stored.load(Ordering::Acquire)
    }

    /// It is in the store from now on.
    pub(super) fn set_stored(&self) {
        self.is_stored.store(true, Ordering::Release);
    }

    /// Counts the changes of its calls.
    pub(super) fn version(&self) -> u64 {
        self.changes.count()
    }

    /// The bytes of its calls, and of what is known of their results.
    pub(super) fn weight(&self) -> usize {
        let calls = self.calls.iter().map(|call| {
            let arguments = match &call.read.arguments {
                Ok(arguments) => arguments.get().len(),
                Err(
                    GivenArgumentsError::NotAnObject(text) | GivenArgumentsError::NotJson(text),
                ) => text.len(),
            };
            let whole = call
                .read
                .whole
                .as_ref()
                .map_or(0, |whole| whole.get().len());
            let id = call.read.id.as_ref().map_or(0, String::len);
            CALL_FIXED_BYTES + CALL_TEXT_BYTES + id + call.read.name.len() + arguments + whole
        });
        let model = self.settings.model.as_ref().map_or(0, String::len);
        model + calls.sum::<usize>() + self.result_bytes()
    }

    /// Has the results that come from now on reserved in this share.
    pub(super) fn hold_results(&self, share: &ByteBudget) {
        let known_results = self.result_bytes();
        *self.held() = Some(HeldResults {
            results: share.count(0),
            known_results,
        });
    }

    /// Frees what is reserved for the results of a turn that is not kept any longer.
    pub(super) fn release_results(&self) {
        *self.held() = None;
    }

    /// Moves a call on. One that is over stays as it is; `false` says so. Its result is left out,
    /// and the model gets a text that says so, if there are no bytes for it.
    pub(super) fn set(&self, number: usize, phase: TurnPhase) -> bool {
        let mut phases = self.locked();
        let Some(own) = phases.get(number).filter(|own| !own.is_over()) else {
            return false;
        };
        let phase = match self.reserve_result(own.result_bytes(), phase.result_bytes()) {
            Ok(()) => phase,
            Err(exceeded) => phase.without_result(exceeded),
        };
        if let Some(own) = phases.get_mut(number) {
            *own = phase;
        }
        self.free_results(&phases);
        drop(phases);
        self.changes.note();
        true
    }

    /// Reserves the bytes by which the result of a call grows.
    fn reserve_result(&self, before: usize, after: usize) -> Result<(), BudgetExceeded> {
        match self.held().as_mut() {
            Some(held) => held.results.grow(after.saturating_sub(before)),
            None => Ok(()),
        }
    }

    /// Frees the bytes that its results have no more.
    fn free_results(&self, phases: &[TurnPhase]) {
        let results: usize = phases.iter().map(TurnPhase::result_bytes).sum();
        if let Some(held) = self.held().as_mut() {
            let known = held.known_results;
            held.results.shrink_to(results.saturating_sub(known));
        }
    }

    /// Ends every call that is not over in the same way.
    pub(super) fn end(&self, settled: &Settled) {
        for number in 0..self.calls.len() {
            self.set(number, TurnPhase::Over(Arc::new(settled.clone())));
        }
    }

    /// Waits until no call is under way: each is over, waits for a person or an operation, or is
    /// held by one that does and may make it needless.
    pub(super) async fn until_quiet(&self) {
        self.until(|phases| {
            let is_run = self.mode == CallMode::All || self.is_run.load(Ordering::Acquire);
            let is_decided = phases.iter().any(|phase| phase.decides(self.mode));
            // A call for which the model gets a text that it waits holds no other one.
            let holds = |phase: &TurnPhase| phase.waits() && !self.is_said_to_wait(phase);
            let is_held = !is_run && !is_decided && phases.iter().any(holds);
            let is_under_way = phases.iter().any(|phase| match phase {
                TurnPhase::Running => true,
                TurnPhase::Queued => !is_held,
                _ => false,
            });
            !is_under_way && (is_run || is_held || phases.iter().all(TurnPhase::is_over))
        })
        .await;
    }

    /// No call of it is sent, and none makes another one needless, from now on.
    pub(super) fn set_run(&self) {
        self.is_run.store(true, Ordering::Release);
        self.changes.note();
    }

    /// Whether the model gets a text that a call waits for approval, so that it is over for it.
    pub(super) fn reports_approval(&self, number: usize) -> bool {
        self.phase(number)
            .is_some_and(|phase| self.is_said_to_wait(&phase))
    }

    fn is_said_to_wait(&self, phase: &TurnPhase) -> bool {
        self.settings.tells_approvals && matches!(phase, TurnPhase::WaitsForApproval(_))
    }

    /// On whose behalf its calls are made.
    pub(super) fn requester(&self) -> Requester {
        Requester::with_access(Arc::clone(&self.owner))
    }

    /// Whether a call makes the others needless.
    pub(super) fn decides(&self, number: usize) -> bool {
        self.phase(number)
            .is_some_and(|phase| phase.decides(self.mode))
    }

    /// Whether any call makes the others needless.
    pub(super) fn is_decided(&self) -> bool {
        self.locked().iter().any(|phase| phase.decides(self.mode))
    }

    /// Waits until every call is over.
    pub(super) async fn until_over(&self) {
        self.until(|phases| phases.iter().all(TurnPhase::is_over))
            .await;
    }

    async fn until(&self, holds: impl Fn(&[TurnPhase]) -> bool) {
        self.changes.wait_until(|| holds(&self.locked())).await;
    }

    /// Ends the calls that are not waited for any longer, if then every call is over: operations
    /// that go on, and, where the model gets a text instead, calls that wait for approval.
    pub(super) fn close(&self) {
        let mut phases = self.locked();
        let ends = |phase: &TurnPhase| match phase {
            TurnPhase::Over(_) | TurnPhase::GoesOn(_) => true,
            waiting => self.is_said_to_wait(waiting),
        };
        if !phases.iter().all(ends) {
            return;
        }
        for (phase, call) in phases.iter_mut().zip(&self.calls) {
            let settled = match phase {
                TurnPhase::GoesOn(settled) => Arc::clone(settled),
                TurnPhase::WaitsForApproval(id) => Arc::new(words::waits(&call.read.name, id)),
                _ => continue,
            };
            *phase = TurnPhase::Over(settled);
        }
        self.free_results(&phases);
        drop(phases);
        self.changes.note();
    }

    /// The bytes of the results of its calls, as JSON texts and with their escapes.
    pub fn result_bytes(&self) -> usize {
        self.locked().iter().map(TurnPhase::result_bytes).sum()
    }

    /// The whole result of a call, with the call, by its id.
    pub fn result(&self, id: &str) -> Option<(&TurnCall, Arc<Settled>)> {
        let number = self.number_of(id)?;
        match self.locked().get(number)? {
            TurnPhase::Over(settled) => Some((self.calls.get(number)?, Arc::clone(settled))),
            _ => None,
        }
    }

    /// The number of the call with this id, if it is one of this turn.
    pub(super) fn number_of(&self, id: &str) -> Option<usize> {
        let number = id
            .strip_prefix(&*self.id)?
            .strip_prefix('.')?
            .parse()
            .ok()?;
        (number < self.calls.len()).then_some(number)
    }

    fn held(&self) -> MutexGuard<'_, Option<HeldResults>> {
        self.held.lock()
    }

    fn locked(&self) -> MutexGuard<'_, Vec<TurnPhase>> {
        self.phases.lock()
    }
}
