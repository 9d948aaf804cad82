//! Waiting for changes of something that is kept.

use tokio::sync::watch;

/// Counts the changes of one item, and wakes those that wait for one. Clones share the same count.
#[derive(Debug, Clone, Default)]
pub(in crate::calls) struct KeptChanges(watch::Sender<u64>);

impl KeptChanges {
    /// The item changed.
    pub(in crate::calls) fn note(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    /// How many changes there were.
    pub(in crate::calls) fn count(&self) -> u64 {
        *self.0.borrow()
    }

    /// Sees every change from now on.
    pub(in crate::calls) fn watch(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }

    /// Waits until `look` finds what is waited for. It looks now and after each change. Dropping
    /// this future has no effect.
    pub(in crate::calls) async fn wait_for<R>(&self, look: impl Fn() -> Option<R>) -> R {
        let mut changes = self.watch();
        loop {
            // Not within `watch::Receiver::wait_for`, which looks under the lock that `note` takes.
            if let Some(found) = look() {
                return found;
            }
            // The sender lives in `self`, so there is always another change to wait for.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Waits until `holds`.
    pub(in crate::calls) async fn wait_until(&self, holds: impl Fn() -> bool) {
        self.wait_for(|| holds().then_some(())).await;
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use std::sync::Arc;

    use super::*;
    use crate::runtime::Tasks;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_change_is_missed_and_a_look_may_take_the_lock_under_which_changes_are_noted() {
        let changes = KeptChanges::default();
        let value = Arc::new(Mutex::new(0));
        let waiting = {
            let changes = changes.clone();
            let value = Arc::clone(&value);
            Tasks::new().spawn(async move { changes.wait_until(|| *value.lock() == 20_000).await })
        };
        for _ in 0..20_000 {
            let mut value = value.lock();
            *value += 1;
            changes.note();
        }
        waiting.await.unwrap();
        assert_eq!(changes.count(), 20_000);
    }
}
