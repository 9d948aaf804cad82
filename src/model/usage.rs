//! Counts the calls of each tool, their results and how long they took.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

/// What was counted of one tool. A call that waits for a human's approval counts once it is made;
/// what callsheet requests on its own account, such as how an operation goes on, does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUsage {
    /// Calls that named it, with any result.
    pub calls: u64,
    /// Those that were sent to its scenario; the others were refused or given up before.
    pub sent: u64,
    /// Those that failed, by the word under which metrics count them: `failed` is the tool's own
    /// failure, the others are the kinds of [`ExecuteError`](crate::calls::ExecuteError), and
    /// `given_up` if the caller stopped waiting for its turn.
    pub failures: BTreeMap<Cow<'static, str>, u64>,
    /// How long those that were sent took together, waiting for their turns included.
    pub total: Duration,
    /// The longest of them.
    pub longest: Duration,
    /// When the first one ended.
    pub first: Timestamp,
    /// When the latest one ended.
    pub last: Timestamp,
}

impl ToolUsage {
    /// No calls, counted from this time on.
    pub fn since(first: Timestamp) -> Self {
        let total = Duration::ZERO;
        let longest = Duration::ZERO;
        Self {
            calls: 0,
            sent: 0,
            failures: BTreeMap::new(),
            total,
            longest,
            first,
            last: first,
        }
    }

    /// How many failed.
    pub fn failed(&self) -> u64 {
        self.failures
            .values()
            .fold(0, |sum, number| sum.saturating_add(*number))
    }

    /// How long one that was sent took on average.
    pub fn mean(&self) -> Option<Duration> {
        (self.sent > 0).then(|| {
            self.total
                .div_f64(f64::from(u32::try_from(self.sent).unwrap_or(u32::MAX)))
        })
    }

    /// This and what was counted later, as one.
    #[must_use]
    pub fn with(mut self, later: &Self) -> Self {
        self.calls = self.calls.saturating_add(later.calls);
        self.sent = self.sent.saturating_add(later.sent);
        for (word, number) in &later.failures {
            let sum = self.failures.entry(word.clone()).or_default();
            *sum = sum.saturating_add(*number);
        }
        self.total = self.total.saturating_add(later.total);
        self.longest = self.longest.max(later.longest);
        self.first = self.first.min(later.first);
        self.last = self.last.max(later.last);
        self
    }
}
