//! Makes the search's index of what was published, behind everything else, where somebody searches: nobody who does waits for more than what
//! changed just now.
//!
//! The index of a large fleet takes a quarter of the memory of its tools, so it goes when nobody has searched for a while, and the first
//! who searches again waits until it is made. That of a small one stays. Waits until the catalog is at rest, so that a sweep of a whole
//! fleet has the processor to itself. What that sweep left over is given back then. Never touches what is published.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::catalog::{CatalogReader, Entry, Snapshot};
use crate::engine::EngineHandle;
use crate::runtime::{Clock, Stop, Tasks, memory};

/// A catalog that did not change for so long is at rest: twice as long as a first sweep waits between two catalogs, so that it is not
/// taken for rest, and the index not made beside it.
const REST: Duration = Duration::from_secs(1);
/// For one that never rests it is waited so long.
const RESTLESS: Duration = Duration::from_secs(20);
/// Scenarios at a time, between two looks at whether to stop.
const SLICE: usize = 64;
/// The index of so many tools, which takes about eight megabytes, is kept whether or not anybody searches.
const SMALL: usize = 25_000;
/// After a search the index of more tools is kept so long.
const KEPT: Duration = Duration::from_secs(600);
/// How often is looked for searches in a catalog that does not change.
const LOOK: Duration = Duration::from_secs(30);

/// How often, and how far apart, is looked whether a first sweep has been stored.
const STORED_LOOKS: usize = 40;
const STORED_LOOK: Duration = Duration::from_millis(250);

/// Runs until `stop`.
pub(super) fn start(mut reader: CatalogReader, clock: Clock, tasks: &Tasks, stop: Stop) {
    let own = tasks.clone();
    tasks.spawn(async move {
        let warming = async {
            let (mut snapshot, mut searched) = (reader.snapshot(), None);
            loop {
                let rested = at_rest(&mut reader, clock, snapshot).await;
                searched = keep(&rested, searched, clock.now(), &own).await;
                tokio::select! {
                    next = reader.changed() => match next {
                        Some(next) => snapshot = next,
                        None => return,
                    },
                    () = clock.sleep(LOOK) => snapshot = reader.snapshot(),
                }
            }
        };
        tokio::select! {
            () = warming => {}
            () = stop.wait() => {}
        }
    });
}

/// Gives back what a first sweep or a start left over, once the catalog is at rest and stored: whoever looks at the daemon then sees what it
/// needs, and not what it needed.
pub(super) fn give_back(mut reader: CatalogReader, engine: EngineHandle, clock: Clock, tasks: &Tasks, stop: Stop) {
    let own = tasks.clone();
    tasks.spawn(async move {
        let giving = async {
            let snapshot = reader.snapshot();
            let rested = at_rest(&mut reader, clock, snapshot).await;
            let looks = if rested.catalog.entries().next().is_some() { STORED_LOOKS } else { 0 };
            for _ in 0..looks {
                // What is never stored whole is given back at the end all the same.
                if !matches!(engine.restorable().await, Ok(None)) {
                    break;
                }
                clock.sleep(STORED_LOOK).await;
            }
            own.off_thread(|| {
                memory::give_back();
            })
            .await;
        };
        tokio::select! {
            () = giving => {}
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

/// Makes or drops indices. Takes and gives when somebody searched last, as far as that matters.
async fn keep(snapshot: &Snapshot, searched: Option<Instant>, now: Instant, tasks: &Tasks) -> Option<Instant> {
    let entries = || snapshot.catalog.entries();
    // Each is asked, since each remembers it by itself.
    let asked = entries().filter(|entry| entry.was_searched()).count() > 0;
    let searched = if asked { Some(now) } else { searched };
    let lately = searched.filter(|at| now - *at < KEPT);
    let small = entries().map(|entry| entry.tools.len()).sum::<usize>() <= SMALL;
    if small || lately.is_some() {
        warm(snapshot, tasks).await;
    } else {
        entries().for_each(|entry| entry.cool());
    }
    lately
}

async fn warm(snapshot: &Snapshot, tasks: &Tasks) {
    let published = snapshot.catalog.entries().filter(|entry| entry.is_published() && !entry.is_warm());
    let cold: Vec<Arc<Entry>> = published.cloned().collect();
    for slice in cold.chunks(SLICE) {
        let slice: Arc<[Arc<Entry>]> = slice.into();
        tasks.off_thread(move || slice.iter().for_each(|entry| entry.warm())).await;
    }
}
