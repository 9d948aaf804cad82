//! The open connections of a listener, and what is under way on each.
//!
//! If there is no slot for another connection, the one gives way that has rested longest: it has no
//! request under way, or its client owes the rest of a body or takes no part of an answer, or its
//! requests wait for a change of something that is kept. Those are answered first with what is
//! known. Half a head is no request.
//!
//! A connection whose requests the daemon works on is kept, but for a small reserve of those that
//! came last: of them the first gives way if none rests. So a new client always gets in, and a
//! brief request is answered.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::runtime::{Clock, StopTrigger};

/// How many of the longest resting connections are found in one pass over all.
const FOUND_AT_ONCE: usize = 64;

/// So many requests may be under way for each connection that is allowed, over all connections
/// together. One of HTTP/2 alone may have more.
const REQUESTS_EACH_CONNECTION: usize = 4;
/// So many may be under way however few connections are allowed: those of some connections of
/// HTTP/2.
const FEWEST_REQUESTS: usize = 128;

/// How often the log says at most that there is no slot for another connection.
const FULL_NOTE: Duration = Duration::from_secs(60);

/// The connections of one listener.
#[derive(Debug)]
pub(in crate::server) struct ConnectionTable {
    slots: Arc<Semaphore>,
    size: usize,
    /// So many connections, those that came last, are the reserve.
    reserve: usize,
    open: Mutex<OpenEntries>,
    opened: AtomicU64,
    /// Requests under way on all connections, also those that rest.
    requests: AtomicUsize,
    /// Those of them that are on connections which give way, and so end soon.
    leaving: AtomicUsize,
    /// Signals that a connection might give way that did not before.
    rested: Notify,
    full_noted: Mutex<Option<Instant>>,
    clock: Clock,
}

/// All connections.
#[derive(Debug, Default)]
struct OpenEntries {
    by_number: HashMap<u64, OpenEntry>,
    /// Those that rested longest when they were last looked at, the longest first. All others began
    /// to rest later.
    longest: VecDeque<(Instant, u64)>,
}

/// One connection as the table has it.
#[derive(Debug)]
struct OpenEntry {
    load: ConnectionLoad,
    cut: StopTrigger,
}

/// One connection in its slot, until it is dropped.
pub(in crate::server) struct AdmittedConnection {
    table: Arc<ConnectionTable>,
    number: u64,
    /// What is under way on it.
    pub(in crate::server) load: ConnectionLoad,
    _slot: OwnedSemaphorePermit,
}

/// What is under way on one connection. Clones are of the same connection.
#[derive(Debug, Clone)]
pub(in crate::server) struct ConnectionLoad {
    work: Arc<watch::Sender<ConnectionWork>>,
    /// Whether it carries a WebSocket.
    is_socket: Arc<AtomicBool>,
    table: Arc<ConnectionTable>,
}

/// The work on one connection.
#[derive(Debug, Clone, Copy)]
struct ConnectionWork {
    /// Requests that were begun and have not ended.
    under_way: usize,
    /// Requests that the daemon works on: those that wait for their client, or for a change, are
    /// not among them. Below 0 for a moment where one ends while it waits.
    requests: i64,
    /// Requests that wait for a change of something that is kept.
    waiting: usize,
    /// The time from which there was none.
    rests_since: Instant,
    /// Whether it is being closed for another connection. Then it begins no further request.
    gives_way: bool,
}

impl ConnectionWork {
    /// Whether no request is worked on.
    fn rests(&self) -> bool {
        self.requests <= 0
    }

    /// Whether its client waits for no answer.
    fn is_idle(&self) -> bool {
        self.rests() && self.waiting == 0
    }

    /// Whether it is being closed for another connection.
    fn gives_way(&self) -> bool {
        self.gives_way
    }
}

/// A request that the daemon works on. It may rest while its client has to send or to read.
pub(in crate::server) struct OpenRequest {
    load: ConnectionLoad,
    rests: bool,
    /// Whether so many requests are under way on all connections that it has to be refused.
    pub(in crate::server) is_too_many: bool,
}

impl ConnectionTable {
    /// A table for so many connections, of which one of `reserve_of` is in the reserve.
    pub(in crate::server) fn new(size: usize, reserve_of: usize, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(size)),
            size,
            reserve: size / reserve_of,
            open: Mutex::default(),
            opened: AtomicU64::new(0),
            requests: AtomicUsize::new(0),
            leaving: AtomicUsize::new(0),
            rested: Notify::new(),
            full_noted: Mutex::default(),
            clock,
        })
    }

    /// Waits for a slot for one more connection. If there is none, the connection that has rested
    /// longest is closed for it, or else the first of the reserve.
    pub(super) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                return Some(slot);
            }
            self.note_full();
            let slot = Arc::clone(&self.slots).acquire_owned();
            if self.close_longest_resting() || self.close_first_of_reserve() {
                // The semaphore is never closed.
                return slot.await.ok();
            }
            tokio::select! {
                slot = slot => return slot.ok(),
                () = self.rested.notified() => {}
            }
        }
    }

    /// Enters a new connection, which `cut` closes.
    pub(in crate::server) fn admit(
        self: &Arc<Self>,
        slot: OwnedSemaphorePermit,
        cut: StopTrigger,
    ) -> AdmittedConnection {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let work = ConnectionWork {
            under_way: 0,
            requests: 0,
            waiting: 0,
            rests_since: self.clock.now(),
            gives_way: false,
        };
        let load = ConnectionLoad {
            work: Arc::new(watch::Sender::new(work)),
            is_socket: Arc::default(),
            table: Arc::clone(self),
        };
        self.open().by_number.insert(
            number,
            OpenEntry {
                load: load.clone(),
                cut,
            },
        );
        AdmittedConnection {
            table: Arc::clone(self),
            number,
            load,
            _slot: slot,
        }
    }

    /// Connections that have not ended.
    pub(super) fn len(&self) -> usize {
        self.size - self.slots.available_permits()
    }

    /// Waits until every connection has ended.
    pub(super) async fn ended(&self) {
        let all = u32::try_from(self.size).unwrap_or(u32::MAX);
        // Every connection returns its slot when it ends.
        let _ = self.slots.acquire_many(all).await;
    }

    /// Closes the connection that has rested longest. Returns whether there is one.
    fn close_longest_resting(&self) -> bool {
        let mut open = self.open();
        let mut was_looked_at = false;
        loop {
            let Some((since, number)) = open.longest.pop_front() else {
                if was_looked_at {
                    return false;
                }
                was_looked_at = true;
                open.find_longest();
                continue;
            };
            // It may have ended, or begun a request, since it was found.
            if open.close_if_rests(number, since) {
                return true;
            }
        }
    }

    /// Closes the connection that has rested longest of those with requests under way. Returns
    /// whether there is one.
    fn close_longest_resting_with_requests(&self) -> bool {
        let mut open = self.open();
        let resting = open
            .by_number
            .iter()
            .filter(|(_, entry)| entry.load.work.borrow().under_way > 0);
        let resting =
            resting.filter_map(|(number, entry)| Some((entry.load.rests_since()?, *number)));
        let Some((since, number)) = resting.min() else {
            return false;
        };
        open.close_if_rests(number, since)
    }

    /// Closes the first of the connections that came last, whatever it does. Returns whether there
    /// is one.
    fn close_first_of_reserve(&self) -> bool {
        let mut open = self.open();
        let kept = open.by_number.len().checked_sub(self.reserve);
        let Some(kept) = kept.filter(|_| self.reserve > 0) else {
            return false;
        };
        let mut numbers: Vec<u64> = open.by_number.keys().copied().collect();
        let number = *numbers.select_nth_unstable(kept).1;
        let Some(entry) = open.by_number.remove(&number) else {
            return false;
        };
        entry.load.work.send_modify(|work| entry.load.leave(work));
        entry.cut.stop();
        true
    }

    /// Counts a request that begins. Returns whether there are too many. One more may begin if a
    /// connection gives way whose requests rest; those of it make room for as many.
    fn begin_request(&self) -> bool {
        let under_way = self.requests.fetch_add(1, Ordering::Relaxed);
        let others = under_way.saturating_sub(self.leaving.load(Ordering::Relaxed));
        let most = self
            .size
            .saturating_mul(REQUESTS_EACH_CONNECTION)
            .max(FEWEST_REQUESTS);
        others >= most && !self.close_longest_resting_with_requests()
    }

    /// Notes in the log that there is no slot, from time to time.
    fn note_full(&self) {
        let mut noted = self.full_noted.lock();
        let now = self.clock.now();
        if noted.is_none_or(|noted| now - noted >= FULL_NOTE) {
            *noted = Some(now);
            let size = self.size;
            tracing::warn!(
                "all {size} connections are in use: those that rest longest are closed for new ones"
            );
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenEntries> {
        self.open.lock()
    }
}

impl OpenEntries {
    /// Finds those that have rested longest.
    fn find_longest(&mut self) {
        let resting = self
            .by_number
            .iter()
            .filter_map(|(number, entry)| Some((entry.load.rests_since()?, *number)));
        let mut resting: Vec<_> = resting.collect();
        if resting.len() > FOUND_AT_ONCE {
            resting.select_nth_unstable(FOUND_AT_ONCE);
            resting.truncate(FOUND_AT_ONCE);
        }
        resting.sort_unstable();
        self.longest = resting.into();
    }

    /// Closes a connection if it has rested since this time. Returns whether it did. One with
    /// requests that wait for a change answers them first.
    fn close_if_rests(&mut self, number: u64, since: Instant) -> bool {
        if !self
            .by_number
            .get(&number)
            .is_some_and(|entry| entry.load.give_way(since))
        {
            return false;
        }
        let Some(entry) = self.by_number.remove(&number) else {
            return false;
        };
        if entry.load.work.borrow().is_idle() {
            entry.cut.stop();
        }
        true
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        self.table.open().by_number.remove(&self.number);
    }
}

impl ConnectionLoad {
    /// Begins a request; `None` if the connection is being closed for another one.
    pub(in crate::server) fn begin(&self) -> Option<OpenRequest> {
        let mut begun = false;
        self.change(|work| {
            begun = !work.gives_way;
            work.requests += i64::from(begun);
            work.under_way += usize::from(begun);
        });
        begun.then(|| OpenRequest {
            load: self.clone(),
            rests: false,
            is_too_many: self.table.begin_request(),
        })
    }

    /// Waits until the connection has to give way to another one.
    pub(super) fn gives_way(&self) -> impl Future<Output = ()> + use<> {
        let mut work = self.work.subscribe();
        // The sender lives as long as the connection.
        async move { drop(work.wait_for(ConnectionWork::gives_way).await) }
    }

    /// The time from which its client waits for no answer, unless it does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let work = *self.work.borrow();
        work.is_idle().then_some(work.rests_since)
    }

    /// Changes the work without a word to those who follow it. They wait for
    /// [`gives_way`](Self::gives_way) alone, and each that is woken has its whole connection polled
    /// again, with all requests on it.
    fn change(&self, change: impl FnOnce(&mut ConnectionWork)) {
        self.work.send_if_modified(|work| {
            change(work);
            false
        });
    }

    /// Its next bytes are those of a WebSocket, whose client may send little.
    pub(in crate::server) fn becomes_socket(&self) {
        self.is_socket.store(true, Ordering::Relaxed);
    }

    /// Whether it carries a WebSocket.
    pub(super) fn is_socket(&self) -> bool {
        self.is_socket.load(Ordering::Relaxed)
    }

    /// Counts a request that is under way as one that waits for its client, until the guard is
    /// dropped.
    pub(in crate::server) fn waits_for_client(&self) -> ClientWait {
        self.rest();
        ClientWait(self.clone())
    }

    /// Waits for `patience`, or until the connection has to give way to another one. Meanwhile a
    /// request that is under way counts as one that waits for a change.
    pub(in crate::server) async fn waits_for_change(&self, patience: impl Future<Output = ()>) {
        let _waiting = ChangeWait::begin(self.clone());
        tokio::select! {
            () = patience => {}
            () = self.gives_way() => {}
        }
    }

    /// One request less is worked on.
    fn rest(&self) {
        self.change(|work| self.rested(work));
        self.table.rested.notify_one();
    }

    /// Takes one request off those that are worked on.
    fn rested(&self, work: &mut ConnectionWork) {
        work.requests -= 1;
        if work.rests() {
            work.rests_since = self.table.clock.now();
        }
    }

    /// One request more is worked on.
    fn resume(&self) {
        self.change(|work| work.requests += 1);
    }

    /// The time from which no request is worked on, unless one is.
    fn rests_since(&self) -> Option<Instant> {
        let work = *self.work.borrow();
        (work.rests() && !work.gives_way).then_some(work.rests_since)
    }

    /// Begins no request from now on, if it has rested since this time.
    fn give_way(&self, since: Instant) -> bool {
        self.work.send_if_modified(|work| {
            let gives_way = work.rests() && work.rests_since == since;
            if gives_way {
                self.leave(work);
            }
            gives_way
        })
    }

    /// Counts its requests among those that end soon. None begins from now on.
    fn leave(&self, work: &mut ConnectionWork) {
        work.gives_way = true;
        self.table
            .leaving
            .fetch_add(work.under_way, Ordering::Relaxed);
    }
}

/// A request that waits for its client until this is dropped.
pub(in crate::server) struct ClientWait(ConnectionLoad);

impl Drop for ClientWait {
    fn drop(&mut self) {
        self.0.resume();
    }
}

/// A request that waits for a change until this is dropped.
struct ChangeWait(ConnectionLoad);

impl ChangeWait {
    fn begin(load: ConnectionLoad) -> Self {
        load.change(|work| {
            work.waiting += 1;
            load.rested(work);
        });
        load.table.rested.notify_one();
        Self(load)
    }
}

impl Drop for ChangeWait {
    fn drop(&mut self) {
        self.0.change(|work| {
            work.waiting -= 1;
            work.requests += 1;
        });
    }
}

impl OpenRequest {
    /// Whether it waits for its client from now on.
    pub(super) fn rests(&mut self, rests: bool) {
        match (self.rests, rests) {
            (false, true) => self.load.rest(),
            (true, false) => self.load.resume(),
            _ => {}
        }
        self.rests = rests;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.load.table.requests.fetch_sub(1, Ordering::Relaxed);
        self.load.change(|work| {
            work.under_way -= 1;
            if work.gives_way {
                self.load.table.leaving.fetch_sub(1, Ordering::Relaxed);
            }
            if !self.rests {
                self.load.rested(work);
            }
        });
        self.load.table.rested.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::http::accept::RESERVE_OF;

    impl ConnectionLoad {
        /// That of a connection without a request.
        pub(in crate::server) fn for_tests() -> Self {
            let table = ConnectionTable::new(1, RESERVE_OF, Clock::system());
            let work = ConnectionWork {
                under_way: 0,
                requests: 0,
                waiting: 0,
                rests_since: table.clock.now(),
                gives_way: false,
            };
            Self {
                work: Arc::new(watch::Sender::new(work)),
                is_socket: Arc::default(),
                table,
            }
        }
    }
}
