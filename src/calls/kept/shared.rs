//! A table that is shared: what is in it is waited for, stored and forgotten.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use super::{Admission, Keepable, KeptLimits, KeptTable};
use crate::calls::dependencies::CallDependencies;
use crate::state::Write;

/// How often items that are over are checked for their age, by the wall clock, which may be set.
const AGE_CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// A table of items that outlive the daemon.
pub(in crate::calls) struct KeptRegister<T> {
    table: Mutex<KeptTable<T>>,
    parts: CallDependencies,
}

impl<T: Keepable + Send + Sync + 'static> KeptRegister<T> {
    /// Takes over what was stored, within the limits or not.
    pub(in crate::calls) fn new(
        restored: impl IntoIterator<Item = T>,
        limits: KeptLimits,
        parts: CallDependencies,
    ) -> Arc<Self> {
        let mut table = KeptTable::new(limits);
        for item in restored {
            table.add(item);
        }
        Arc::new(Self {
            table: Mutex::new(table),
            parts,
        })
    }

    /// Applies other limits to what is added from now on.
    pub(in crate::calls) fn configure(&self, limits: KeptLimits) {
        self.table().configure(limits);
    }

    /// The table.
    pub(in crate::calls) fn table(&self) -> MutexGuard<'_, KeptTable<T>> {
        self.table.lock()
    }

    /// Adds an item within the limits, and returns what made room. `None` if there is no room.
    pub(in crate::calls) fn admit(self: &Arc<Self>, item: T) -> Option<Vec<T>> {
        let admission = self.table().admit(item);
        match admission {
            Admission::Added(forgotten) => Some(forgotten),
            Admission::Full(forgotten) => {
                self.delete(&forgotten);
                None
            }
        }
    }

    /// Waits until an item is over, for at most so long. It returns at once if the item is not
    /// known, and when the daemon stops. Dropping this future has no effect.
    pub(in crate::calls) async fn wait_until_over(&self, id: &str, limit: Duration) {
        let Some(changes) = self.table().get(id).map(|item| item.changes().clone()) else {
            return;
        };
        tokio::select! {
            () = changes.wait_until(|| self.table().get(id).is_none_or(Keepable::is_over)) => {}
            () = self.parts.clock.sleep(limit) => {}
            () = self.parts.stop.wait() => {}
        }
    }

    /// Stores changes that are in the table already, and deletes what is forgotten.
    pub(in crate::calls) async fn store(&self, mut writes: Vec<Write>, forgotten: &[T]) {
        writes.extend(forgotten.iter().filter_map(Keepable::deletion));
        if writes.is_empty() {
            return;
        }
        if let Err(error) = self.parts.store.save(writes).await {
            tracing::error!(error = %error, "what became of calls could not be stored");
        }
    }

    /// Deletes what is forgotten from the store, in the background.
    pub(in crate::calls) fn delete(self: &Arc<Self>, forgotten: &[T]) {
        let writes: Vec<Write> = forgotten.iter().filter_map(Keepable::deletion).collect();
        if writes.is_empty() {
            return;
        }
        let kept = Arc::clone(self);
        self.parts
            .tasks
            .spawn(async move { kept.store(writes, &[]).await });
    }

    /// Forgets what is too old or beyond the limits.
    pub(in crate::calls) async fn prune(&self) {
        let forgotten = self.table().prune(self.parts.clock.wall());
        self.store(Vec::new(), &forgotten).await;
    }

    /// Forgets what becomes too old, until the stop.
    pub(in crate::calls) async fn look_after(self: Arc<Self>) {
        loop {
            self.prune().await;
            tokio::select! {
                () = self.parts.stop.wait() => return,
                () = self.parts.clock.sleep(AGE_CHECK_INTERVAL) => {}
            }
        }
    }
}

impl<T> std::fmt::Debug for KeptRegister<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptRegister").finish_non_exhaustive()
    }
}
