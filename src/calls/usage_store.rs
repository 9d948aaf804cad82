//! Stores the counters of tools and the histories of their definitions over a restart, in the
//! background: a call never waits for this and never fails because of it.
//!
//! Changes are stored together every `calls.usage_interval`, in one transaction, and once more at
//! the end of the daemon. A daemon that is killed loses only the counts since the last interval.

use std::cmp::Reverse;
use std::time::Duration;

use super::{Calls, usage};
use crate::model::{ToolId, ToolUsage};
use crate::state::{StateError, StateStore, Write};

/// How long the last write may take.
const LAST: Duration = Duration::from_secs(2);

impl Calls {
    /// Sets what was stored. If that is more tools than are counted, those called least recently
    /// are forgotten for good.
    pub(super) fn begin_usage(&self, mut stored: Vec<(ToolId, ToolUsage)>) -> Option<Write> {
        let too_many = stored.len() > usage::MOST;
        stored.sort_by_key(|(_, usage)| Reverse(usage.last));
        stored.truncate(usage::MOST);
        self.0.usage.begin_with(stored);
        too_many.then_some(Write::TrimUsage(usage::MOST))
    }

    /// Stores changes at each interval, until the stop.
    pub(super) async fn keep_usage(self, trim: Option<Write>) {
        let Some(parts) = self.parts() else { return };
        if let Some(trim) = trim {
            log_failure(parts.store.save(vec![trim]).await);
        }
        loop {
            let interval = self.0.config.load().usage_interval;
            tokio::select! {
                () = parts.stop.wait() => return,
                () = parts.clock.sleep(interval) => self.save_usage(&*parts.store).await,
            }
        }
    }

    /// Stores the latest counts, within a limited time. For the end of a daemon, when its calls are
    /// over.
    pub async fn save_usage_at_last(&self) {
        let Some(parts) = self.parts() else { return };
        let _ = tokio::time::timeout(LAST, self.save_usage(&*parts.store)).await;
    }

    async fn save_usage(&self, store: &dyn StateStore) {
        let changed = self.0.usage.unsaved();
        let histories = self.0.histories.unsaved();
        if changed.is_empty() && histories.is_empty() {
            return;
        }
        let counts = changed
            .iter()
            .map(|(id, usage)| Write::Usage(id.clone(), usage.clone()));
        let saved = store
            .save(counts.chain(histories.iter().cloned()).collect())
            .await;
        if saved.is_err() {
            self.0.usage.not_saved(changed.iter().map(|(id, _)| id));
            self.0.histories.not_saved(&histories);
        }
        log_failure(saved);
    }
}

/// Logs a failure. It is not an alarm: other writes report a full disk.
fn log_failure(saved: Result<(), StateError>) {
    if let Err(error) = saved {
        tracing::warn!(error = %error, "the counts and histories of tools could not be stored; this is tried again");
    }
}
