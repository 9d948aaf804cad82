//! Runs the sources and passes their sets on to the loop.
//!
//! A source lives as long as its settings. When a reload changes them, it is ended and a source
//! with the new settings replaces it; the last set stays active until the new source sends one. All
//! other sources continue.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::message::EngineEvent;
use crate::config::Config;
use crate::discovery::{EndpointSet, SOURCES, Source};
use crate::model::SourceId;
use crate::runtime::{Clock, Stop, StopTrigger, Tasks};

/// All running sources.
pub(super) struct SourceRunner {
    pub(super) running: BTreeMap<SourceId, RunningSource>,
    /// The configuration that the sources were made from.
    pub(super) config: Arc<Config>,
    pub(super) events: mpsc::Sender<EngineEvent>,
    pub(super) tasks: Tasks,
    pub(super) clock: Clock,
    pub(super) stop: Stop,
}

/// A running source.
pub(super) struct RunningSource {
    stop: StopTrigger,
    ended: JoinHandle<()>,
}

impl SourceRunner {
    /// Runs one more source. Only its newest set counts: a set that is sent while the loop is busy
    /// replaces the one before.
    pub(super) fn start(&mut self, source: Box<dyn Source>) {
        let id = source.id();
        let (out, sets) = watch::channel(EndpointSet::default());
        let events = self.events.clone();
        let (trigger, stop) = self.stop.child();
        let ended = self.tasks.spawn(async move {
            let (ended, ()) = tokio::join!(source.run(out, stop), pass(id, sets, &events));
            // Sent after the source's last set, which stays active.
            if let Err(error) = ended {
                let _ = events.send(EngineEvent::SourceEnded(error)).await;
            }
        });
        self.running.insert(
            id,
            RunningSource {
                stop: trigger,
                ended,
            },
        );
    }

    /// Follows the configuration until the end.
    pub(super) async fn follow(mut self, mut configured: watch::Receiver<Arc<Config>>) {
        loop {
            tokio::select! {
                () = self.stop.wait() => return,
                changed = configured.changed() => if changed.is_err() { return },
            }
            let next = configured.borrow_and_update().clone();
            for factory in SOURCES {
                if !(factory.same_settings)(&self.config, &next) {
                    self.exchange(factory.id, (factory.make)(&next, self.clock))
                        .await;
                }
            }
            self.config = next;
        }
    }

    /// Replaces a source by another one, or by none.
    async fn exchange(&mut self, id: SourceId, next: Option<Box<dyn Source>>) {
        if let Some(RunningSource { stop, ended }) = self.running.remove(&id) {
            stop.stop();
            // The loop waits for the end, so that no set of the old source comes after a set of the
            // new one. Waiting fails only when the source panicked.
            let _ = ended.await;
        }
        match next {
            Some(source) => self.start(source),
            // Fails only when the loop is gone.
            None => _ = self.events.send(EngineEvent::SourceOff(id)).await,
        }
    }
}

/// Passes sets on until the source drops its sender, or the loop is gone.
async fn pass(
    id: SourceId,
    mut sets: watch::Receiver<EndpointSet>,
    events: &mpsc::Sender<EngineEvent>,
) {
    while sets.changed().await.is_ok() {
        let set = sets.borrow_and_update().clone();
        if events.send(EngineEvent::Endpoints(id, set)).await.is_err() {
            return;
        }
    }
}
