//! How often each tool was called, with which outcome, and how long it took.
//!
//! The counters are in memory, for a bounded number of tools: those called least recently are
//! forgotten first. At its end, a call takes the lock of one share of the counters for one map
//! access. Serving lists never takes it. Counts of earlier daemons are kept apart, so metrics start
//! from zero; [`usage_store`](super::usage_store) stores the sum, in the background.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher as _;
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use crate::model::{ToolId, ToolUsage};

/// How many tools are remembered.
pub const MOST: usize = SHARES * EACH;
/// The number of locks, so that calls of different tools seldom wait for the same one.
const SHARES: usize = 16;
const EACH: usize = 625;

/// A call that is over.
#[derive(Debug, Clone, Copy)]
pub(super) struct FinishedCall {
    /// The word for the outcome in the metrics.
    pub(super) outcome: &'static str,
    /// Whether it succeeded.
    pub(super) well: bool,
    /// Whether it was sent to its scenario.
    pub(super) sent: bool,
    /// The time since the request.
    pub(super) took: Duration,
    /// When it ended.
    pub(super) at: Timestamp,
}

/// The counters of all tools.
#[derive(Debug)]
pub(super) struct Usage {
    since: Timestamp,
    state: RandomState,
    shares: [Mutex<HashMap<ToolId, UsageEntry>>; SHARES],
    earlier: OnceLock<HashMap<ToolId, ToolUsage>>,
}

/// The counters of a tool since the daemon started.
#[derive(Debug)]
struct UsageEntry {
    usage: ToolUsage,
    /// Whether a part of it is not stored.
    unsaved: bool,
}

impl Usage {
    /// Empty counters that start at this time.
    pub(super) fn since(since: Timestamp) -> Self {
        Self {
            since,
            state: RandomState::new(),
            shares: Default::default(),
            earlier: OnceLock::new(),
        }
    }

    /// The time since which calls are counted.
    pub(super) fn beginning(&self) -> Timestamp {
        self.since
    }

    /// Sets the counts of earlier daemons. Only the first call has an effect.
    pub(super) fn begin_with(&self, earlier: Vec<(ToolId, ToolUsage)>) {
        self.earlier.get_or_init(|| earlier.into_iter().collect());
    }

    /// Counts a call of a tool that is over.
    pub(super) fn ended(&self, id: &ToolId, over: FinishedCall) {
        let mut share = self.share(id);
        if share.len() >= EACH && !share.contains_key(id) {
            let oldest = share
                .iter()
                .min_by_key(|(_, counted)| counted.usage.last)
                .map(|(id, _)| id.clone());
            oldest.and_then(|oldest| share.remove(&oldest));
        }
        let UsageEntry { usage, unsaved } = match share.entry(id.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(UsageEntry {
                usage: ToolUsage::since(over.at),
                unsaved: true,
            }),
        };
        *unsaved = true;
        usage.calls += 1;
        usage.last = over.at;
        if !over.well {
            *usage
                .failures
                .entry(Cow::Borrowed(over.outcome))
                .or_default() += 1;
        }
        if over.sent {
            usage.sent += 1;
            usage.total = usage.total.saturating_add(over.took);
            usage.longest = usage.longest.max(over.took);
        }
    }

    /// The counters of a tool, before the daemon started and since.
    pub(super) fn for_tool(&self, id: &ToolId) -> Option<ToolUsage> {
        let now = self.share(id).get(id).map(|counted| counted.usage.clone());
        match (self.before(id), now) {
            (Some(before), Some(now)) => Some(before.clone().with(&now)),
            (before, now) => now.or_else(|| before.cloned()),
        }
    }

    fn before(&self, id: &ToolId) -> Option<&ToolUsage> {
        self.earlier.get()?.get(id)
    }

    /// The counters of all tools since the daemon started, in no order.
    pub(super) fn all(&self) -> Vec<(ToolId, ToolUsage)> {
        let copy = |share: &Mutex<HashMap<ToolId, UsageEntry>>| -> Vec<_> {
            lock(share)
                .iter()
                .map(|(id, counted)| (id.clone(), counted.usage.clone()))
                .collect()
        };
        self.shares.iter().flat_map(copy).collect()
    }

    /// The sums of all tools with unstored counts. They count as stored from now on.
    pub(super) fn unsaved(&self) -> Vec<(ToolId, ToolUsage)> {
        let take = |share: &Mutex<HashMap<ToolId, UsageEntry>>| -> Vec<_> {
            let mut share = lock(share);
            let unsaved = share.iter_mut().filter(|(_, counted)| counted.unsaved);
            let mut copied = Vec::new();
            for (id, counted) in unsaved {
                counted.unsaved = false;
                copied.push((id.clone(), counted.usage.clone()));
            }
            copied
        };
        let mut all: Vec<(ToolId, ToolUsage)> = self.shares.iter().flat_map(take).collect();
        for (id, usage) in &mut all {
            if let Some(before) = self.before(id) {
                *usage = before.clone().with(usage);
            }
        }
        all
    }

    /// Marks tools whose counts could not be stored.
    pub(super) fn not_saved<'a>(&self, ids: impl IntoIterator<Item = &'a ToolId>) {
        for id in ids {
            if let Some(counted) = self.share(id).get_mut(id) {
                counted.unsaved = true;
            }
        }
    }

    fn share(&self, id: &ToolId) -> MutexGuard<'_, HashMap<ToolId, UsageEntry>> {
        let place = usize::try_from(self.state.hash_one(id) % SHARES as u64).unwrap_or(0);
        lock(&self.shares[place])
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is complete before the lock is released.
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn over(second: i64, took: u64) -> FinishedCall {
        FinishedCall {
            outcome: "ok",
            well: true,
            sent: true,
            took: Duration::from_millis(took),
            at: at(second),
        }
    }

    #[test]
    fn each_call_counts_for_its_tool() {
        let usage = Usage::since(at(0));
        let id: ToolId = "files/read".parse().unwrap();
        assert_eq!(usage.for_tool(&id), None);
        usage.ended(&id, over(1, 10));
        usage.ended(
            &id,
            FinishedCall {
                outcome: "failed",
                well: false,
                ..over(2, 30)
            },
        );
        usage.ended(
            &id,
            FinishedCall {
                outcome: "busy",
                well: false,
                sent: false,
                ..over(3, 500)
            },
        );
        let counted = usage.for_tool(&id).unwrap();
        assert_eq!(counted.calls, 3);
        assert_eq!(counted.sent, 2);
        assert_eq!(counted.failed(), 2);
        assert_eq!(
            counted.failures,
            BTreeMap::from([("busy".into(), 1), ("failed".into(), 1)])
        );
        assert_eq!(counted.mean(), Some(Duration::from_millis(20)));
        assert_eq!(counted.longest, Duration::from_millis(30));
        assert_eq!(counted.last, at(3));
        assert_eq!(usage.all().len(), 1);
    }

    #[test]
    fn what_was_counted_before_is_added_and_only_what_changed_is_stored() {
        let usage = Usage::since(at(100));
        let [before, both, now]: [ToolId; 3] =
            ["a/before", "a/both", "a/now"].map(|id| id.parse().unwrap());
        let earlier = |last| ToolUsage {
            calls: 5,
            sent: 5,
            total: Duration::from_secs(5),
            last: at(last),
            ..ToolUsage::since(at(1))
        };
        usage.begin_with(vec![
            (before.clone(), earlier(50)),
            (both.clone(), earlier(60)),
        ]);
        usage.ended(&both, over(101, 10));
        usage.ended(&now, over(102, 10));
        let sum = usage.for_tool(&both).unwrap();
        assert_eq!(sum.calls, 6);
        assert_eq!(sum.first, at(1));
        assert_eq!(sum.last, at(101));
        assert_eq!(sum.total, Duration::from_millis(5_010));
        assert_eq!(usage.for_tool(&before), Some(earlier(50)));
        assert_eq!(usage.for_tool(&now).unwrap().calls, 1);
        assert_eq!(
            usage
                .all()
                .iter()
                .map(|(_, usage)| usage.calls)
                .sum::<u64>(),
            2,
            "metrics begin anew"
        );

        let mut stored = usage.unsaved();
        stored.sort_by(|(one, _), (other, _)| one.cmp(other));
        assert_eq!(
            stored,
            [
                (both.clone(), sum),
                (now.clone(), usage.for_tool(&now).unwrap())
            ]
        );
        assert_eq!(usage.unsaved().len(), 0, "there is nothing in it");
        usage.not_saved([&both]);
        assert_eq!(
            usage.unsaved().iter().map(|(id, _)| id).collect::<Vec<_>>(),
            [&both],
            "what failed is tried again"
        );
        usage.not_saved([&now, &before]);
        usage.ended(&now, over(103, 10));
        assert_eq!(
            usage
                .unsaved()
                .iter()
                .map(|(id, usage)| (id, usage.calls))
                .collect::<Vec<_>>(),
            [(&now, 2)]
        );
    }

    #[test]
    fn usage_forgets_the_tool_that_was_called_least_recently() {
        let usage = Usage::since(at(0));
        let ids: Vec<ToolId> = (0..2 * MOST)
            .map(|n| format!("files/t{n}").parse().unwrap())
            .collect();
        for (second, id) in (1..).zip(&ids) {
            usage.ended(id, over(second, 1));
            usage.ended(&ids[0], over(second, 1));
        }
        let all = usage.all();
        assert_eq!(all.len(), MOST);
        assert_eq!(usage.for_tool(&ids[0]).unwrap().calls, 2 * MOST as u64 + 1);
        assert!(usage.for_tool(&ids[2 * MOST - 1]).is_some());
        let early = ids[1..MOST / 2]
            .iter()
            .filter(|id| usage.for_tool(id).is_some())
            .count();
        assert_eq!(early, 0);
    }
}
