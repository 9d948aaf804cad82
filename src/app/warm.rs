//! Makes the search's index of what was published, behind everything else: nobody who searches waits for more than what changed just now.
//!
//! Waits until the catalog is at rest, so that a sweep of a whole fleet has the processor to itself. Never touches what is published.

use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{CatalogReader, Entry, Snapshot};
use crate::runtime::{Clock, Stop, Tasks};

/// A catalog that did not change for so long is at rest.
const REST: Duration = Duration::from_millis(250);
/// For one that never rests it is waited so long.
const RESTLESS: Duration = Duration::from_secs(20);
/// Scenarios at a time, between two looks at whether to stop.
const SLICE: usize = 64;

/// Runs until `stop`.
pub(super) fn start(mut reader: CatalogReader, clock: Clock, tasks: &Tasks, stop: Stop) {
    let own = tasks.clone();
    tasks.spawn(async move {
        let warming = async {
            let mut snapshot = Some(reader.snapshot());
            while let Some(current) = snapshot {
                let rested = at_rest(&mut reader, clock, current).await;
                warm(&rested, &own).await;
                snapshot = reader.changed().await;
            }
        };
        tokio::select! {
            () = warming => {}
            () = stop.wait() => {}
        }
    });
}

/// The snapshot that is current once the catalog is at rest, or has been restless for long enough. What only the health of scenarios changes is
/// no unrest.
async fn at_rest(reader: &mut CatalogReader, clock: Clock, mut current: Arc<Snapshot>) -> Arc<Snapshot> {
    let begun = clock.now();
    let (mut rested, end) = (begun + REST, begun + RESTLESS);
    loop {
        tokio::select! {
            next = reader.changed() => match next {
                Some(next) => {
                    if next.catalog.revision() != current.catalog.revision() {
                        rested = clock.now() + REST;
                    }
                    current = next;
                }
                None => return current,
            },
            () = clock.sleep_until(rested.min(end)) => return current,
        }
    }
}

async fn warm(snapshot: &Snapshot, tasks: &Tasks) {
    let published = snapshot.catalog.entries().filter(|entry| entry.is_published() && !entry.is_warm());
    let cold: Vec<Arc<Entry>> = published.cloned().collect();
    for slice in cold.chunks(SLICE) {
        let slice: Arc<[Arc<Entry>]> = slice.into();
        tasks.off_thread(move || slice.iter().for_each(|entry| entry.warm())).await;
    }
}
