//! How often each tool was called, what came of it, and how long it took, since the daemon started.
//!
//! Kept in memory, for a bounded number of tools: those that were called least recently are forgotten first. A call takes the lock of its
//! share of them for one look into a map, when it is over. Serving lists never comes here.

use std::collections::hash_map::{Entry, RandomState};
use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasher as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::model::ToolId;

/// Tools that are remembered at most.
pub const MOST: usize = SHARES * EACH;
/// Calls of different tools seldom wait for the same lock.
const SHARES: usize = 16;
const EACH: usize = 625;

/// What was counted of one tool. A call that waits for a human's yes counts once it is made; what callsheet asks on its own account, such as
/// how an operation goes on, does not count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolUsage {
    /// Calls that named it, whatever came of them.
    pub calls: u64,
    /// Those of them that its scenario was asked to run; the others were refused or given up before.
    pub sent: u64,
    /// Those that came to nothing, by the word under which metrics count them: `failed` is the tool's own failure, the others are the
    /// kinds of [`Refused`](super::Refused), and `given_up` when nobody waited any more for its turn.
    pub failures: BTreeMap<&'static str, u64>,
    /// How long those that were sent took together, waiting for their turns included.
    pub total: Duration,
    /// The longest of them.
    pub longest: Duration,
    /// When one last ended.
    pub last: Timestamp,
}

impl ToolUsage {
    /// How many came to nothing.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// How long one that was sent took on average.
    pub fn mean(&self) -> Option<Duration> {
        (self.sent > 0).then(|| self.total.div_f64(f64::from(u32::try_from(self.sent).unwrap_or(u32::MAX))))
    }
}

/// A call that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Over {
    /// The word under which it is counted.
    pub(super) outcome: &'static str,
    /// Whether it came to something.
    pub(super) well: bool,
    /// Whether its scenario was asked to run it.
    pub(super) sent: bool,
    /// From the request on.
    pub(super) took: Duration,
    /// When that was.
    pub(super) at: Timestamp,
}

/// What was counted of every tool.
#[derive(Debug)]
pub(super) struct Usage {
    since: Timestamp,
    state: RandomState,
    shares: [Mutex<HashMap<ToolId, ToolUsage>>; SHARES],
}

impl Usage {
    /// Nothing yet, since then.
    pub(super) fn since(since: Timestamp) -> Self {
        Self { since, state: RandomState::new(), shares: Default::default() }
    }

    /// Since when it is counted.
    pub(super) fn beginning(&self) -> Timestamp {
        self.since
    }

    /// A call of a tool is over.
    pub(super) fn ended(&self, id: &ToolId, over: Over) {
        let mut share = self.share(id);
        if share.len() >= EACH && !share.contains_key(id) {
            let oldest = share.iter().min_by_key(|(_, usage)| usage.last).map(|(id, _)| id.clone());
            oldest.and_then(|oldest| share.remove(&oldest));
        }
        let usage = match share.entry(id.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(ToolUsage::default()),
        };
        usage.calls += 1;
        usage.last = over.at;
        if !over.well {
            *usage.failures.entry(over.outcome).or_default() += 1;
        }
        if over.sent {
            usage.sent += 1;
            usage.total = usage.total.saturating_add(over.took);
            usage.longest = usage.longest.max(over.took);
        }
    }

    /// What was counted of a tool.
    pub(super) fn of(&self, id: &ToolId) -> Option<ToolUsage> {
        self.share(id).get(id).cloned()
    }

    /// What was counted of all, in no order.
    pub(super) fn all(&self) -> Vec<(ToolId, ToolUsage)> {
        let copy = |share: &Mutex<HashMap<ToolId, ToolUsage>>| -> Vec<_> {
            lock(share).iter().map(|(id, usage)| (id.clone(), usage.clone())).collect()
        };
        self.shares.iter().flat_map(copy).collect()
    }

    fn share(&self, id: &ToolId) -> MutexGuard<'_, HashMap<ToolId, ToolUsage>> {
        let place = usize::try_from(self.state.hash_one(id) % SHARES as u64).unwrap_or(0);
        lock(&self.shares[place])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is whole before the lock is given back.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn over(second: i64, took: u64) -> Over {
        Over { outcome: "ok", well: true, sent: true, took: Duration::from_millis(took), at: at(second) }
    }

    #[test]
    fn each_call_counts_for_its_tool() {
        let usage = Usage::since(at(0));
        let id: ToolId = "files/read".parse().unwrap();
        assert_eq!(usage.of(&id), None);
        usage.ended(&id, over(1, 10));
        usage.ended(&id, Over { outcome: "failed", well: false, ..over(2, 30) });
        usage.ended(&id, Over { outcome: "busy", well: false, sent: false, ..over(3, 500) });
        let counted = usage.of(&id).unwrap();
        assert_eq!((counted.calls, counted.sent, counted.failed()), (3, 2, 2));
        assert_eq!(counted.failures, BTreeMap::from([("busy", 1), ("failed", 1)]));
        assert_eq!((counted.mean(), counted.longest), (Some(Duration::from_millis(20)), Duration::from_millis(30)));
        assert_eq!((counted.last, usage.all().len()), (at(3), 1));
    }

    #[test]
    fn who_was_called_least_recently_is_forgotten() {
        let usage = Usage::since(at(0));
        let ids: Vec<ToolId> = (0..2 * MOST).map(|n| format!("files/t{n}").parse().unwrap()).collect();
        for (second, id) in (1..).zip(&ids) {
            usage.ended(id, over(second, 1));
            usage.ended(&ids[0], over(second, 1));
        }
        let all = usage.all();
        assert_eq!(all.len(), MOST);
        assert_eq!(usage.of(&ids[0]).unwrap().calls, 2 * MOST as u64 + 1);
        assert!(usage.of(&ids[2 * MOST - 1]).is_some());
        let early = ids[1..MOST / 2].iter().filter(|id| usage.of(id).is_some()).count();
        assert_eq!(early, 0);
    }
}
