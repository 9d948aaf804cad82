//! Resources that clients follow. Each is followed once at its scenario, however many clients
//! follow it here, and for as long as one does.
//!
//! When the connection to the scenario ends, the resource is followed anew, and its clients are
//! informed: it may have changed meanwhile.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::broadcast;
use tokio_util::task::AbortOnDropHandle;

use crate::calls::{Calls, ExecuteError};
use crate::catalog::ViewQuery;
use crate::model::ScenarioName;
use crate::runtime::Clock;
use crate::server::SharedState;

/// The most resources that are followed.
const WATCHED_RESOURCES_MAX: usize = 1_000;
/// Updates that wait for the streams of clients. A stream that misses some takes it that all of its
/// resources changed.
const WAITING: usize = 1_024;
/// The first and the longest wait before a resource is followed anew.
const WAIT: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];

/// A resource of a scenario.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    pub(super) scenario: ScenarioName,
    pub(super) uri: String,
}

/// A resource that is followed. The last handle ends that when it is dropped.
#[derive(Debug)]
pub(super) struct ResourceWatch {
    pub(super) key: Arc<WatchKey>,
    _following: AbortOnDropHandle<()>,
}

/// All resources that are followed.
#[derive(Debug)]
pub(super) struct ResourceWatches {
    watched: Mutex<HashMap<Arc<WatchKey>, Weak<ResourceWatch>>>,
    updates: broadcast::Sender<Arc<WatchKey>>,
}

impl Default for ResourceWatches {
    fn default() -> Self {
        Self {
            watched: Mutex::default(),
            updates: broadcast::Sender::new(WAITING),
        }
    }
}

impl ResourceWatches {
    fn watched(&self) -> MutexGuard<'_, HashMap<Arc<WatchKey>, Weak<ResourceWatch>>> {
        self.watched.lock()
    }

    /// The updates of all resources that are followed.
    pub(super) fn updates(&self) -> broadcast::Receiver<Arc<WatchKey>> {
        self.updates.subscribe()
    }

    /// Follows a resource. `None` if too many are followed.
    pub(super) async fn follow(
        &self,
        shared: &SharedState,
        scope: &ViewQuery,
        key: WatchKey,
    ) -> Result<Option<Arc<ResourceWatch>>, ExecuteError> {
        {
            let mut watched = self.watched();
            if let Some(watch) = watched.get(&key).and_then(Weak::upgrade) {
                return Ok(Some(watch));
            }
            watched.retain(|_, watch| watch.strong_count() > 0);
            if watched.len() >= WATCHED_RESOURCES_MAX {
                return Ok(None);
            }
        }
        let updates = shared.calls.updates(&key.scenario, &key.uri, scope).await?;
        let key = Arc::new(key);
        let following = Following {
            calls: shared.calls.clone(),
            scope: scope.clone(),
            key: Arc::clone(&key),
            clients: self.updates.clone(),
            clock: shared.clock,
        };
        let stop = shared.stop.clone();
        let following = shared.tasks.spawn(async move {
            tokio::select! {
                () = following.run(updates) => {}
                () = stop.wait() => {}
            }
        });
        let watch = ResourceWatch {
            key: Arc::clone(&key),
            _following: AbortOnDropHandle::new(following),
        };
        let watch = Arc::new(watch);
        self.watched().insert(key, Arc::downgrade(&watch));
        Ok(Some(watch))
    }
}

/// What follows one resource.
struct Following {
    calls: Calls,
    scope: ViewQuery,
    key: Arc<WatchKey>,
    clients: broadcast::Sender<Arc<WatchKey>>,
    clock: Clock,
}

impl Following {
    async fn run(self, mut updates: BoxStream<'static, ()>) {
        loop {
            while updates.next().await.is_some() {
                self.inform();
            }
            updates = self.again().await;
            self.inform();
        }
    }

    /// Tells all streams of clients. It is no error that there are none just now.
    fn inform(&self) {
        let _ = self.clients.send(Arc::clone(&self.key));
    }

    /// Follows the resource anew, as soon as that is possible.
    async fn again(&self) -> BoxStream<'static, ()> {
        let [mut wait, longest] = WAIT;
        loop {
            self.clock.sleep(wait).await;
            match self
                .calls
                .updates(&self.key.scenario, &self.key.uri, &self.scope)
                .await
            {
                Ok(updates) => return updates,
                Err(_) => wait = (wait * 2).min(longest),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::Tasks;

    impl ResourceWatch {
        /// A resource that has no updates.
        pub(in crate::server::mcp) fn for_tests(key: Arc<WatchKey>) -> Arc<Self> {
            let following = Tasks::new().spawn(std::future::pending());
            Arc::new(Self {
                key,
                _following: AbortOnDropHandle::new(following),
            })
        }
    }
}
