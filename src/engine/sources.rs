//! Runs the sources and passes their sets on to the loop.

use tokio::sync::{mpsc, watch};

use super::Event;
use crate::discovery::{EndpointSet, Source};
use crate::model::SourceId;
use crate::runtime::{Stop, Tasks};

/// Runs one source. Only its newest set matters: what it sends while the loop is busy replaces what it sent before.
pub(super) fn start(source: Box<dyn Source>, events: &mpsc::Sender<Event>, tasks: &Tasks, stop: &Stop) {
    let id = source.id();
    let (out, sets) = watch::channel(EndpointSet::default());
    let (events, stop) = (events.clone(), stop.clone());
    tasks.spawn(async move {
        let (ended, ()) = tokio::join!(source.run(out, stop), pass(id, sets, &events));
        // Told after the source's last set, which stays in force.
        if let Err(error) = ended {
            let _ = events.send(Event::SourceEnded(error)).await;
        }
    });
}

/// Passes sets on until the source drops its sender, or the loop is gone.
async fn pass(id: SourceId, mut sets: watch::Receiver<EndpointSet>, events: &mpsc::Sender<Event>) {
    while sets.changed().await.is_ok() {
        let set = sets.borrow_and_update().clone();
        if events.send(Event::Endpoints(id, set)).await.is_err() {
            return;
        }
    }
}
