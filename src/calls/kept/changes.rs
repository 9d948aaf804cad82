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

    /// Waits until `holds`, which is looked at now and after each change. Dropping this future has
    /// no effect.
    pub(in crate::calls) async fn wait_until(&self, holds: impl Fn() -> bool) {
        let mut changes = self.watch();
        // Not with `wait_for`, which looks under the lock that `note` takes.
        while !holds() {
            // An error would mean that the sender is gone, but it lives in `self`.
            if changes.changed().await.is_err() {
                return;
            }
        }
    }
}
