//! The log: calls that are over, changes of states, ends of programs and starts of callsheet, in
//! the order in which they happened.
//!
//! ```text
//! EndedCall, snapshot (follow) -> ActivityLog in memory -> readers
//!                                    `-> queue -> one task -> store (document), audit log
//! ```
//!
//! What is kept true here:
//!
//! - What is kept is in memory, bounded by number and age, so that a reader never waits; the same
//!   lines are in the store, from which the next daemon begins.
//! - A call never waits for its line. If the queue is full, a line is dropped and counted.
//! - Lines are ordered by their numbers, because a clock may be set back.
//! - Arguments and results are kept only where the operator says so ([`payload`]), up to a size,
//!   and with secrets replaced.
//!
//! Read in this order: this file (lines and what is wanted of them), `follow.rs` (states and ends),
//! `seen.rs`, `queue.rs` (writing), `document.rs` (the stored form), `payload.rs`.
//!
//! Never done here: writing ([`queue`] does).

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::ended_call::EndedCall;
use crate::config::CallsConfig;
use crate::model::{Finding, FindingCode, RecordedEnd, ScenarioName, StateTransition, ToolId};
use crate::state::{LogKind, LogNumbers, LogRow};

mod document;
mod follow;
mod payload;
pub(super) mod queue;
mod seen;

pub use payload::{CallPayload, KeptText};
use seen::SeenEvents;

/// How many numbers a log may use beyond those that the store has: more than the lines of a day on
/// which the store refuses all of them, so that numbers do not go back after a crash.
const NUMBERS_AHEAD: u64 = 1 << 24;

/// Bytes of the arguments and results in one page. A page with more has fewer lines.
const PAGE_MAX_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of the arguments and results that are kept, of all calls together.
const PAYLOADS_MAX_BYTES: usize = 64 * 1024 * 1024;

/// How much is kept.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogLimits {
    calls: usize,
    states: usize,
    age: SignedDuration,
    /// Bytes of the arguments, and of the result, of a call; 0 keeps none.
    pub(super) payload: usize,
}

/// A call and its numbers.
#[derive(Debug, Clone)]
pub struct NumberedCall {
    /// Its number among the calls. It grows in the order in which the calls ended, also over
    /// restarts.
    pub number: u64,
    /// Its number among all lines of the log.
    pub line: u64,
    /// When it ended.
    pub ended: Timestamp,
    /// The call.
    pub call: Arc<EndedCall>,
    /// Its arguments and its result, where they are kept.
    pub payload: Option<Arc<CallPayload>>,
}

/// A change of a state and its number among all lines of the log.
#[derive(Debug, Clone)]
pub struct NumberedState {
    /// Its number.
    pub line: u64,
    /// The change.
    pub change: Arc<StateTransition>,
}

/// The end of a program and its number among all lines of the log.
#[derive(Debug, Clone)]
pub struct NumberedEnd {
    /// Its number.
    pub line: u64,
    /// The end.
    pub end: Arc<RecordedEnd>,
}

/// A start of callsheet.
#[derive(Debug, Clone)]
pub struct NumberedStart {
    /// Its number among all lines of the log.
    pub line: u64,
    /// When it was.
    pub at: Timestamp,
    /// The version that was started.
    pub version: Arc<str>,
    /// Until when the daemon before ran at least; `None` if there was none.
    pub previous_until: Option<Timestamp>,
}

/// One line of the log.
#[derive(Debug, Clone)]
pub enum LogEntry {
    /// A call that is over.
    Call(NumberedCall),
    /// A change of a scenario's state.
    State(NumberedState),
    /// The end of a program that was started here.
    End(NumberedEnd),
    /// A start of callsheet.
    Start(NumberedStart),
}

/// Which lines are wanted.
#[derive(Debug, Clone, Default)]
pub struct LogWanted {
    /// Of these kinds only; of every kind if there is none.
    pub kinds: Vec<LogKind>,
    /// Of this scenario only.
    pub scenario: Option<ScenarioName>,
    /// Only calls of the tool with this name or identity.
    pub tool: Option<String>,
    /// Only calls that did not succeed.
    pub failed: bool,
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// With a number greater than this.
    pub after: Option<u64>,
    /// With a number less than this.
    pub before: Option<u64>,
    /// At most so many, the latest.
    pub limit: usize,
}

/// Lines of the log.
#[derive(Debug, Clone, Default)]
pub struct LogPage {
    /// The lines, the oldest first.
    pub lines: Vec<LogEntry>,
    /// Whether there are earlier ones that are wanted too.
    pub more: bool,
    /// The number of the latest line of the log.
    pub last: u64,
    /// The number of the latest call.
    pub last_call: u64,
    /// Since when changes of states are kept without a gap; `None` if none is kept.
    pub states_since: Option<Timestamp>,
    /// Lines since the start that the store does not have: a restart loses them.
    pub dropped: u64,
}

/// The lines that are kept.
#[derive(Debug, Default)]
pub(super) struct ActivityLog {
    rings: Mutex<LogRings>,
    /// What of the published events is in it. Taken before the lines.
    seen: Mutex<SeenEvents>,
    /// The number of the latest call.
    ended: watch::Sender<u64>,
    /// Whether the store refused the latest lines.
    failing: AtomicBool,
    /// Whether arguments and results were switched off and may still be in the store.
    forgets_payloads: AtomicBool,
}

#[derive(Debug, Default)]
struct LogRings {
    limits: LogLimits,
    /// The numbers of the latest line and of the latest call.
    last: LogNumbers,
    /// The oldest first.
    calls: VecDeque<NumberedCall>,
    /// Bytes of the arguments and results of all calls.
    payload_bytes: usize,
    /// What is no call.
    changes: VecDeque<LogEntry>,
    stored_from: StoredFrom,
}

/// The numbers from which on the store may have lines: smaller ones are deleted there.
#[derive(Debug, Clone, Copy, Default)]
struct StoredFrom {
    calls: u64,
    changes: u64,
}

impl LogLimits {
    pub(super) fn from_config(config: &CallsConfig) -> Self {
        let age = SignedDuration::try_from(config.log_keep).unwrap_or(SignedDuration::MAX);
        Self {
            calls: config.recent,
            states: config.log_states,
            age,
            payload: config.log_payloads,
        }
    }
}

impl LogRings {
    fn is_old(&self, at: Timestamp, now: Timestamp) -> bool {
        now.duration_since(at) > self.limits.age
    }

    /// Drops what is too much or too old.
    fn prune(&mut self, now: Timestamp) {
        let limits = self.limits;
        while self.calls.len() > limits.calls
            || self.payload_bytes > PAYLOADS_MAX_BYTES
            || self
                .calls
                .front()
                .is_some_and(|call| self.is_old(call.ended, now))
        {
            let Some(call) = self.calls.pop_front() else {
                break;
            };
            self.payload_bytes -= call.payload_bytes();
        }
        while self.changes.len() > limits.states
            || self
                .changes
                .front()
                .is_some_and(|change| self.is_old(change.at(), now))
        {
            self.changes.pop_front();
        }
    }

    fn first(&self, kind: LogKind) -> u64 {
        let first = match kind {
            LogKind::Call => self.calls.front().map(|call| call.line),
            LogKind::State | LogKind::End | LogKind::Start => {
                self.changes.front().map(LogEntry::line)
            }
        };
        first.unwrap_or(self.last.line + 1)
    }

    /// When the oldest line was added that is no call.
    fn states_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.changes
            .iter()
            .map(LogEntry::at)
            .find(|at| !self.is_old(*at, now))
    }

    fn push_call(&mut self, call: NumberedCall) {
        self.payload_bytes += call.payload_bytes();
        self.calls.push_back(call);
    }

    /// Drops all arguments and results.
    fn drop_payloads(&mut self) {
        for call in &mut self.calls {
            call.payload = None;
        }
        self.payload_bytes = 0;
    }

    /// How long the oldest line may still be kept; `None` if there is no line.
    fn oldest_for(&self, now: Timestamp) -> Option<SignedDuration> {
        let call = self.calls.front().map(|call| call.ended);
        let change = self.changes.front().map(LogEntry::at);
        let left = |at: Timestamp| self.limits.age.saturating_sub(now.duration_since(at));
        call.into_iter().chain(change).map(left).min()
    }
}

impl StoredFrom {
    /// The smallest numbers of stored lines; `none` where there is no line.
    fn lines(stored: &[LogRow], none: u64) -> Self {
        let smallest = |is_call: bool| {
            let rows = stored
                .iter()
                .filter(|row| (row.kind == LogKind::Call) == is_call);
            rows.map(|row| row.number).min().unwrap_or(none)
        };
        Self {
            calls: smallest(true),
            changes: smallest(false),
        }
    }

    fn of(self, kind: LogKind) -> u64 {
        match kind {
            LogKind::Call => self.calls,
            LogKind::State | LogKind::End | LogKind::Start => self.changes,
        }
    }
}

impl ActivityLog {
    /// An empty log.
    pub(super) fn new(limits: LogLimits) -> Self {
        let rings = Mutex::new(LogRings {
            limits,
            ..LogRings::default()
        });
        Self {
            rings,
            ..Self::default()
        }
    }

    fn rings(&self) -> MutexGuard<'_, LogRings> {
        self.rings.lock()
    }

    fn seen(&self) -> MutexGuard<'_, SeenEvents> {
        self.seen.lock()
    }

    /// The number of the latest call, for those who wait for the next one.
    pub(super) fn ended(&self) -> watch::Receiver<u64> {
        self.ended.subscribe()
    }

    /// Begins with what was stored, the oldest first. `used` are numbers that are not used again,
    /// although their lines may be deleted.
    fn begin(
        &self,
        stored: Vec<LogEntry>,
        stored_from: StoredFrom,
        used: LogNumbers,
        now: Timestamp,
    ) {
        let mut rings = self.rings();
        rings.stored_from = stored_from;
        rings.last.line = rings.last.line.max(used.line);
        rings.last.call = rings.last.call.max(used.call);
        for entry in stored {
            rings.last.line = rings.last.line.max(entry.line());
            match entry {
                LogEntry::Call(call) => {
                    rings.last.call = rings.last.call.max(call.number);
                    rings.push_call(call);
                }
                change => rings.changes.push_back(change),
            }
        }
        if rings.limits.payload == 0 {
            rings.drop_payloads();
            self.forgets_payloads.store(true, Ordering::Relaxed);
        }
        rings.prune(now);
    }

    /// Adds a call; the oldest make room.
    pub(super) fn add_call(
        &self,
        call: EndedCall,
        payload: Option<Arc<CallPayload>>,
        now: Timestamp,
    ) -> NumberedCall {
        let mut rings = self.rings();
        rings.last.line += 1;
        rings.last.call += 1;
        let LogNumbers { line, call: number } = rings.last;
        // The operator may have switched them off since the call was made.
        let payload = payload.filter(|_| rings.limits.payload > 0);
        let call = NumberedCall {
            number,
            line,
            ended: now,
            call: Arc::new(call),
            payload,
        };
        rings.push_call(call.clone());
        rings.prune(now);
        drop(rings);
        self.ended.send_replace(number);
        call
    }

    /// Adds a line that is no call, made with its number; the oldest make room.
    fn add_change(&self, make: impl FnOnce(u64) -> LogEntry, now: Timestamp) -> LogEntry {
        let mut rings = self.rings();
        rings.last.line += 1;
        let change = make(rings.last.line);
        rings.changes.push_back(change.clone());
        rings.prune(now);
        change
    }

    /// Applies other limits.
    pub(super) fn set_limits(&self, limits: LogLimits, now: Timestamp) {
        let mut rings = self.rings();
        rings.limits = limits;
        if limits.payload == 0 {
            rings.drop_payloads();
            self.forgets_payloads.store(true, Ordering::Relaxed);
        }
        rings.prune(now);
    }

    /// Whether the store has to delete the arguments and results that it may have.
    fn forgets_payloads(&self) -> bool {
        self.forgets_payloads.load(Ordering::Relaxed) && !self.keeps_payloads()
    }

    /// The store has deleted them.
    fn set_payloads_forgotten(&self) {
        self.forgets_payloads.store(false, Ordering::Relaxed);
    }

    /// Whether arguments and results are kept.
    pub(super) fn keeps_payloads(&self) -> bool {
        self.rings().limits.payload > 0
    }

    /// Drops what is too much or too old.
    fn prune(&self, now: Timestamp) {
        self.rings().prune(now);
    }

    /// How long the oldest line may still be kept; `None` if there is no line.
    fn oldest_for(&self, now: Timestamp) -> Option<SignedDuration> {
        self.rings().oldest_for(now)
    }

    /// The numbers that were used, and those that may be used before they are stored again.
    fn numbers(&self, ahead: u64) -> LogNumbers {
        let last = self.rings().last;
        LogNumbers {
            line: last.line + ahead,
            call: last.call + ahead,
        }
    }

    /// The number of the first line that is kept of those that are bounded together with a kind;
    /// the next number if none is.
    fn first(&self, kind: LogKind) -> u64 {
        self.rings().first(kind)
    }

    /// The numbers of the lines that are kept no more and may still be in the store.
    fn to_delete(&self, kind: LogKind) -> Range<u64> {
        let rings = self.rings();
        rings.stored_from.of(kind)..rings.first(kind)
    }

    /// The store has deleted the lines of a kind with smaller numbers.
    fn set_deleted(&self, kind: LogKind, below: u64) {
        let mut rings = self.rings();
        match kind {
            LogKind::Call => rings.stored_from.calls = below,
            LogKind::State | LogKind::End | LogKind::Start => rings.stored_from.changes = below,
        }
    }

    /// All calls, the oldest first, and the number of the latest.
    pub(super) fn calls(&self, now: Timestamp) -> (Vec<NumberedCall>, u64) {
        let rings = self.rings();
        let old = rings
            .calls
            .iter()
            .take_while(|call| rings.is_old(call.ended, now))
            .count();
        (
            rings.calls.iter().skip(old).cloned().collect(),
            rings.last.call,
        )
    }

    /// The latest lines that are wanted.
    pub(super) fn page(&self, wanted: &LogWanted, now: Timestamp) -> LogPage {
        let rings = self.rings();
        let is_looked_at = |kinds: &[LogKind]| {
            wanted.kinds.is_empty() || wanted.kinds.iter().any(|kind| kinds.contains(kind))
        };
        // A ring of which no line is wanted is not read: there may be many calls.
        let most_calls = if is_looked_at(&[LogKind::Call]) {
            usize::MAX
        } else {
            0
        };
        let most_changes = if is_looked_at(&[LogKind::State, LogKind::End, LogKind::Start]) {
            usize::MAX
        } else {
            0
        };
        let mut calls = rings
            .calls
            .iter()
            .rev()
            .take(most_calls)
            .cloned()
            .map(LogEntry::Call)
            .peekable();
        let mut changes = rings
            .changes
            .iter()
            .rev()
            .take(most_changes)
            .cloned()
            .peekable();
        let mut page = LogPage {
            last: rings.last.line,
            last_call: rings.last.call,
            states_since: rings.states_since(now),
            ..LogPage::default()
        };
        let mut bytes = 0;
        loop {
            let from_calls = match (calls.peek(), changes.peek()) {
                (Some(call), Some(change)) => call.line() > change.line(),
                (call, _) => call.is_some(),
            };
            let next = if from_calls {
                calls.next()
            } else {
                changes.next()
            };
            let Some(entry) = next else { break };
            if rings.is_old(entry.at(), now) || !wanted.takes(&entry) {
                continue;
            }
            bytes += entry.payload_bytes();
            let is_full = page.lines.len() == wanted.limit || bytes > PAGE_MAX_BYTES;
            if is_full && !page.lines.is_empty() {
                page.more = true;
                break;
            }
            page.lines.push(entry);
        }
        page.lines.reverse();
        page
    }

    /// Notes whether the store took the latest lines; returns whether that is news.
    fn note_stored(&self, stored: bool) -> bool {
        self.failing.swap(!stored, Ordering::Relaxed) == stored
    }

    /// Whether the store did not take the latest lines.
    fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// The finding that the log is not stored.
    pub(super) fn finding(&self) -> Option<Finding> {
        let message =
            "the log of calls and states cannot be stored, so a restart loses its latest lines";
        let hint = "make room on the disk and the state file writable; calls go on meanwhile";
        self.is_failing()
            .then(|| Finding::new(FindingCode::StateFailed, message).hint(hint))
    }
}

impl NumberedCall {
    /// Bytes of its arguments and its result.
    fn payload_bytes(&self) -> usize {
        self.payload.as_ref().map_or(0, |payload| payload.bytes())
    }
}

impl LogEntry {
    /// Bytes of the arguments and the result of a call.
    fn payload_bytes(&self) -> usize {
        match self {
            Self::Call(call) => call.payload_bytes(),
            _ => 0,
        }
    }

    /// Its number among all lines.
    pub fn line(&self) -> u64 {
        match self {
            Self::Call(call) => call.line,
            Self::State(state) => state.line,
            Self::End(end) => end.line,
            Self::Start(start) => start.line,
        }
    }
}

impl LogEntry {
    /// When it happened.
    pub fn at(&self) -> Timestamp {
        match self {
            Self::Call(call) => call.ended,
            Self::State(state) => state.change.at,
            Self::End(end) => end.end.at,
            Self::Start(start) => start.at,
        }
    }

    /// What it is about.
    pub fn kind(&self) -> LogKind {
        match self {
            Self::Call(_) => LogKind::Call,
            Self::State(_) => LogKind::State,
            Self::End(_) => LogKind::End,
            Self::Start(_) => LogKind::Start,
        }
    }

    /// The scenario that it concerns.
    fn scenario(&self) -> Option<&ScenarioName> {
        match self {
            Self::Call(call) => call.call.tool.as_ref().map(|id| &id.scenario),
            Self::State(state) => Some(&state.change.name),
            Self::End(end) => Some(&end.end.name),
            Self::Start(_) => None,
        }
    }
}

impl LogWanted {
    fn takes(&self, entry: &LogEntry) -> bool {
        self.after.is_none_or(|after| entry.line() > after)
            && self.before.is_none_or(|before| entry.line() < before)
            && (self.kinds.is_empty() || self.kinds.contains(&entry.kind()))
            && self
                .scenario
                .as_ref()
                .is_none_or(|name| entry.scenario() == Some(name))
            && self.since.is_none_or(|since| entry.at() >= since)
            && match entry {
                LogEntry::Call(call) => self.takes_call(&call.call),
                // Only calls belong to a tool or fail.
                _ => self.tool.is_none() && !self.failed,
            }
    }

    fn takes_call(&self, call: &EndedCall) -> bool {
        let named = |tool: &str| {
            call.name == tool || call.tool.as_ref().is_some_and(|id| is_named(id, tool))
        };
        self.tool.as_deref().is_none_or(named) && (!self.failed || call.is_failure())
    }
}

fn is_named(id: &ToolId, tool: &str) -> bool {
    &*id.tool == tool || id.to_string() == tool
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{Request, Requester};
    use crate::model::JsonText;

    fn limits(calls: usize) -> LogLimits {
        LogLimits {
            calls,
            states: 10,
            age: SignedDuration::from_secs(100),
            payload: 0,
        }
    }

    fn add(log: &ActivityLog, second: i64) {
        let call = EndedCall::of_request(
            &Request::new("read", JsonText::known("{}"), Requester::full_access()),
            at(second),
        );
        log.add_call(call, None, at(second));
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn numbers(log: &ActivityLog, second: i64) -> Vec<u64> {
        log.calls(at(second))
            .0
            .iter()
            .map(|call| call.number)
            .collect()
    }

    #[test]
    fn the_oldest_make_room_and_numbers_go_on() {
        let log = ActivityLog::new(limits(3));
        for _ in 0..5 {
            add(&log, 0);
        }
        assert_eq!(numbers(&log, 0), [3, 4, 5]);
        log.set_limits(limits(2), at(0));
        add(&log, 0);
        assert_eq!(numbers(&log, 0), [5, 6], "a smaller limit holds at once");
        log.set_limits(limits(0), at(0));
        add(&log, 0);
        assert!(numbers(&log, 0).is_empty());
        assert_eq!(log.calls(at(0)).1, 7);
    }

    #[test]
    fn what_is_too_old_goes_and_a_clock_that_is_set_back_changes_no_order() {
        let log = ActivityLog::new(limits(9));
        for second in [1000, 900, 1050] {
            add(&log, second);
        }
        let left = |now| log.oldest_for(at(now)).map(|left| left.as_secs());
        assert_eq!(numbers(&log, 1050), [1, 2, 3]);
        assert_eq!(left(1050), Some(50));
        assert_eq!(
            numbers(&log, 1101),
            [3],
            "the one that seems older went with the one before it"
        );
        log.prune(at(1101));
        assert_eq!(left(1101), Some(49));
        log.prune(at(1151));
        assert_eq!(left(1151), None);
        add(&log, 1151);
        assert_eq!(numbers(&log, 1151), [4], "numbers go on");
    }
}
