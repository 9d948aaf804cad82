//! The open connections of a listener, and what is under way on each.
//!
//! If there is no slot for another connection, the one gives way that the daemon has waited for
//! longest: it has no request under way, or its client owes the rest of a body, or takes no part of
//! an answer. Half a head is no request. A connection whose requests the daemon works on never
//! gives way.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

use crate::runtime::{Clock, StopTrigger};

/// How many of the longest resting connections are found in one pass over all.
const FOUND_AT_ONCE: usize = 64;

/// How often the log says at most that there is no slot for another connection.
const FULL_NOTE: Duration = Duration::from_secs(60);

/// The connections of one listener.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    slots: Arc<Semaphore>,
    size: usize,
    open: Mutex<OpenEntries>,
    opened: AtomicU64,
    /// Signals that a connection might give way that did not before.
    rested: Arc<Notify>,
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
pub(super) struct AdmittedConnection {
    table: Arc<ConnectionTable>,
    number: u64,
    /// What is under way on it.
    pub(super) load: ConnectionLoad,
    _slot: OwnedSemaphorePermit,
}

/// What is under way on one connection. Clones are of the same connection.
#[derive(Debug, Clone)]
pub(in crate::server) struct ConnectionLoad {
    work: Arc<watch::Sender<ConnectionWork>>,
    rested: Arc<Notify>,
    clock: Clock,
}

/// The work on one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionWork {
    /// Requests that the daemon works on: those that wait for their client are not among them.
    /// Below 0 for a moment where one ends while it waits.
    requests: i64,
    /// The time from which there was none.
    rests_since: Instant,
    /// Whether it is being closed for another connection. Then it begins no further request.
    gives_way: bool,
}

impl ConnectionWork {
    /// Whether no request is worked on.
    pub(super) fn rests(&self) -> bool {
        self.requests <= 0
    }
}

/// A request that the daemon works on. It may rest while its client has to send or to read.
pub(in crate::server) struct OpenRequest {
    load: ConnectionLoad,
    rests: bool,
}

impl ConnectionTable {
    /// A table for so many connections.
    pub(super) fn new(size: usize, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            slots: Arc::new(Semaphore::new(size)),
            size,
            open: Mutex::default(),
            opened: AtomicU64::new(0),
            rested: Arc::default(),
            full_noted: Mutex::default(),
            clock,
        })
    }

    /// Waits for a slot for one more connection. If there is none, the connection that has rested
    /// longest is closed for it.
    pub(super) async fn slot(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() {
                return Some(slot);
            }
            self.note_full();
            let slot = Arc::clone(&self.slots).acquire_owned();
            if self.close_longest_resting() {
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
    pub(super) fn admit(self: &Arc<Self>, slot: OwnedSemaphorePermit, cut: StopTrigger) -> AdmittedConnection {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let work = ConnectionWork { requests: 0, rests_since: self.clock.now(), gives_way: false };
        let load = ConnectionLoad {
            work: Arc::new(watch::Sender::new(work)),
            rested: Arc::clone(&self.rested),
            clock: self.clock,
        };
        self.open().by_number.insert(number, OpenEntry { load: load.clone(), cut });
        AdmittedConnection { table: Arc::clone(self), number, load, _slot: slot }
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
            if open.by_number.get(&number).is_some_and(|entry| entry.load.give_way(since))
                && let Some(entry) = open.by_number.remove(&number)
            {
                entry.cut.stop();
                return true;
            }
        }
    }

    /// Notes in the log that there is no slot, from time to time.
    fn note_full(&self) {
        let mut noted = self.full_noted.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if noted.is_none_or(|noted| now - noted >= FULL_NOTE) {
            *noted = Some(now);
            let size = self.size;
            tracing::warn!("all {size} connections are in use: those that rest longest are closed for new ones");
        }
    }

    fn open(&self) -> MutexGuard<'_, OpenEntries> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenEntries {
    /// Finds those that have rested longest.
    fn find_longest(&mut self) {
        let resting = self.by_number.iter().filter_map(|(number, entry)| Some((entry.load.rests_since()?, *number)));
        let mut resting: Vec<_> = resting.collect();
        if resting.len() > FOUND_AT_ONCE {
            resting.select_nth_unstable(FOUND_AT_ONCE);
            resting.truncate(FOUND_AT_ONCE);
        }
        resting.sort_unstable();
        self.longest = resting.into();
    }
}

impl Drop for AdmittedConnection {
    fn drop(&mut self) {
        self.table.open().by_number.remove(&self.number);
    }
}

impl ConnectionLoad {
    /// Begins a request; `None` if the connection is being closed for another one.
    pub(super) fn begin(&self) -> Option<OpenRequest> {
        let begun = self.work.send_if_modified(|work| {
            work.requests += i64::from(!work.gives_way);
            !work.gives_way
        });
        begun.then(|| OpenRequest { load: self.clone(), rests: false })
    }

    /// Follows the work.
    pub(super) fn subscribe(&self) -> watch::Receiver<ConnectionWork> {
        self.work.subscribe()
    }

    /// Counts a request that is under way as one that waits for its client, until the guard is
    /// dropped.
    pub(in crate::server) fn waits_for_client(&self) -> ClientWait {
        self.rest();
        ClientWait(self.clone())
    }

    /// One request less is worked on.
    fn rest(&self) {
        self.work.send_modify(|work| {
            work.requests -= 1;
            if work.rests() {
                work.rests_since = self.clock.now();
            }
        });
        self.rested.notify_one();
    }

    /// One request more is worked on.
    fn resume(&self) {
        self.work.send_modify(|work| work.requests += 1);
    }

    /// The time from which no request is worked on, unless one is.
    fn rests_since(&self) -> Option<Instant> {
        let work = *self.work.borrow();
        (work.rests() && !work.gives_way).then_some(work.rests_since)
    }

    /// Begins no request from now on, if it has rested since this time.
    fn give_way(&self, since: Instant) -> bool {
        self.work.send_if_modified(|work| {
            work.gives_way = work.rests() && work.rests_since == since;
            work.gives_way
        })
    }
}

/// A request that waits for its client until this is dropped.
pub(in crate::server) struct ClientWait(ConnectionLoad);

impl Drop for ClientWait {
    fn drop(&mut self) {
        self.0.resume();
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
        if !self.rests {
            self.load.rest();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl ConnectionLoad {
        /// That of a connection without a request.
        pub(in crate::server) fn for_tests() -> Self {
            let clock = Clock::system();
            let work = ConnectionWork { requests: 0, rests_since: clock.now(), gives_way: false };
            Self { work: Arc::new(watch::Sender::new(work)), rested: Arc::default(), clock }
        }
    }
}
