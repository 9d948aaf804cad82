//! Connections that are kept for the next call.
//!
//! Bounded for each host and in all, and each is closed when it was kept for too long. One that the other side has closed meanwhile is given to
//! nobody. Nothing is sent here.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use http_body_util::Full;
use hyper::rt::Executor as _;
use hyper_util::rt::TokioExecutor;
use tokio::time::Instant;

use super::settings::{CALLS_IDLE, CALLS_IDLE_IN_ALL, CALLS_IDLE_PER_HOST};
use super::wire::{Home, Wire};
use crate::runtime::Clock;

/// A connection that calls go over.
pub(super) type CallWire = Box<Wire<Full<Bytes>>>;

/// Connections that nobody uses now. Dropping it closes them.
#[derive(Debug)]
pub(super) struct Pool {
    clock: Clock,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The one that was used last is behind. No host is forgotten before the next [`Kept::forget`].
    by_host: HashMap<Arc<str>, VecDeque<(Instant, CallWire)>>,
    count: usize,
    /// Somebody waits for the time to close some.
    watched: bool,
}

/// Where the connections to one host go back to.
#[derive(Debug)]
pub(super) struct Place {
    pool: Arc<Pool>,
    host: Arc<str>,
}

impl Pool {
    pub(super) fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Self { clock, kept: Mutex::default() })
    }

    /// The place of a host with its port, as it stands in a request.
    pub(super) fn place(self: &Arc<Self>, host: &Arc<str>) -> Place {
        Place { pool: Arc::clone(self), host: Arc::clone(host) }
    }

    /// A connection to a host that is still open, the one used last before the others.
    pub(super) fn take(&self, host: &str) -> Option<CallWire> {
        loop {
            let (since, mut wire) = self.kept().take(host)?;
            // The clock that closes the old ones may be late.
            if self.clock.now() - since < CALLS_IDLE && wire.is_still_free() {
                return Some(wire);
            }
        }
    }

    fn keep(self: &Arc<Self>, host: &Arc<str>, wire: CallWire) {
        let now = self.clock.now();
        let mut kept = self.kept();
        let refused = kept.keep(host, now, wire);
        let watch = !std::mem::replace(&mut kept.watched, true);
        // Closing is for nobody to wait for.
        drop(kept);
        drop(refused);
        if watch {
            // No task of ours that a stop would wait for: it ends with what it watches, and with the runtime.
            TokioExecutor::new().execute(close_old(self.clock, Arc::downgrade(self), now + CALLS_IDLE));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Every change is whole before the lock is given back.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes what was kept for too long, until nothing is kept.
async fn close_old(clock: Clock, pool: Weak<Pool>, first: Instant) {
    let mut due = first;
    loop {
        clock.sleep_until(due).await;
        let Some(pool) = pool.upgrade() else { return };
        let (closed, oldest) = pool.kept().forget(clock.now());
        drop(closed);
        match oldest {
            Some(oldest) => due = oldest + CALLS_IDLE,
            None => return,
        }
    }
}

impl Kept {
    fn take(&mut self, host: &str) -> Option<(Instant, CallWire)> {
        let found = self.by_host.get_mut(host)?.pop_back()?;
        self.count -= 1;
        Some(found)
    }

    /// Keeps a connection, and gives back the one that there is no room for.
    fn keep(&mut self, host: &Arc<str>, now: Instant, wire: CallWire) -> Option<CallWire> {
        if !self.by_host.contains_key(host) {
            self.by_host.insert(Arc::clone(host), VecDeque::new());
        }
        let Some(wires) = self.by_host.get_mut(host) else { return Some(wire) };
        if wires.len() >= CALLS_IDLE_PER_HOST || self.count >= CALLS_IDLE_IN_ALL {
            return Some(wire);
        }
        wires.push_back((now, wire));
        self.count += 1;
        None
    }

    /// Takes out what is too old, and tells since when the oldest of the others is kept. When there are none, nobody watches any more.
    fn forget(&mut self, now: Instant) -> (Vec<CallWire>, Option<Instant>) {
        let mut old = Vec::new();
        self.by_host.retain(|_, wires| {
            let count = wires.partition_point(|(since, _)| now - *since >= CALLS_IDLE);
            old.extend(wires.drain(..count).map(|(_, wire)| wire));
            !wires.is_empty()
        });
        self.count -= old.len();
        let oldest = self.by_host.values().filter_map(|wires| wires.front()).map(|(since, _)| *since).min();
        self.watched = oldest.is_some();
        (old, oldest)
    }
}

impl Home<Full<Bytes>> for Place {
    fn take_back(&self, wire: CallWire) {
        self.pool.keep(&self.host, wire);
    }
}
