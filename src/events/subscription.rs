//! The subscription of one reader: its next message, and why it ended.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::message::{Event, EventType, Message};
use super::places::SubscriberPlace;
use super::seen::CallsSeen;
use super::topic::{Opening, ReadNext, ReaderStart, ReaderState, Topic, TopicReader};
use crate::metrics::EventCounts;
use crate::model::belongs_to_access;
use crate::runtime::{Clock, QueueFull, Stop, Tasks, WorkQueue};

/// A snapshot that is made for a reader.
type MakingOpening = BoxFuture<'static, Result<Arc<Message>, QueueFull>>;

/// A subscription. Dropping it ends it.
pub struct Subscription {
    topic: Arc<Topic>,
    reader: Arc<TopicReader>,
    /// The snapshot that comes next. It is kept while its reader does other things, so that it is
    /// made once and keeps its turn.
    opening: Option<MakingOpening>,
    pushed: watch::Receiver<u64>,
    fate: watch::Receiver<ReaderState>,
    kinds: BTreeSet<EventType>,
    calls: CallsSeen,
    clock: Clock,
    tasks: Tasks,
    openings: WorkQueue,
    stop: Stop,
    counts: Arc<EventCounts>,
    /// Held as long as the subscription: there is a limit of subscribers.
    _place: SubscriberPlace,
}

/// The result of waiting for the next message.
#[derive(Debug)]
pub enum Next {
    /// A message.
    Message(Arc<Message>),
    /// No further message comes.
    Ended(Ending),
}

/// Why no further message comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The daemon is stopping.
    Stopping,
    /// The reader was too slow. It may resume from the last message that it has.
    Overrun,
    /// There was no place left for another reader. It may resume like that, too.
    GaveWay,
}

/// Watches a subscription from another task without keeping it alive.
#[derive(Debug)]
pub struct DisconnectWatch {
    fate: watch::Receiver<ReaderState>,
    stop: Stop,
}

/// What a subscription needs besides its position.
pub(super) struct SubscriptionParts {
    pub(super) kinds: BTreeSet<EventType>,
    pub(super) calls: CallsSeen,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    /// Where snapshots for readers wait to be made; it has a place for each subscriber.
    pub(super) openings: WorkQueue,
    pub(super) stop: Stop,
    pub(super) place: SubscriberPlace,
    pub(super) counts: Arc<EventCounts>,
}

impl Subscription {
    pub(super) fn new(topic: Arc<Topic>, begun: ReaderStart, parts: SubscriptionParts) -> Self {
        let ReaderStart {
            reader,
            opening,
            pushed,
        } = begun;
        let SubscriptionParts {
            kinds,
            calls,
            clock,
            tasks,
            openings,
            stop,
            place,
            counts,
        } = parts;
        let fate = reader.fate.subscribe();
        let opening = opening.map(|opening| make(opening, tasks.clone(), openings.clone()));
        Self {
            topic,
            reader,
            opening,
            pushed,
            fate,
            kinds,
            calls,
            clock,
            tasks,
            openings,
            stop,
            counts,
            _place: place,
        }
    }

    /// Waits for the next message. Cancel-safe.
    pub async fn next(&mut self) -> Next {
        let next = self.wait().await;
        if let Next::Message(message) = &next {
            self.counts.sent(message.event.name());
        }
        next
    }

    async fn wait(&mut self) -> Next {
        loop {
            if let Some(opening) = &mut self.opening {
                let made = tokio::select! {
                    biased;
                    made = opening => made,
                    Ok(_) = self.fate.wait_for(|fate| ending_of(*fate) == Some(Ending::GaveWay)) => {
                        return Next::Ended(Ending::GaveWay);
                    }
                };
                self.opening = None;
                return made.map_or(Next::Ended(Ending::Overrun), Next::Message);
            }
            if self.stop.is_stopped() {
                return Next::Ended(Ending::Stopping);
            }
            if let Some(ending) = ending_of(*self.fate.borrow_and_update()) {
                return Next::Ended(ending);
            }
            match self.topic.read(&self.reader) {
                Some(ReadNext::Message(message)) if self.wants(&message.event) => {
                    return Next::Message(message);
                }
                Some(ReadNext::Message(_)) => continue,
                Some(ReadNext::Snapshot(opening)) => {
                    self.opening = Some(make(opening, self.tasks.clone(), self.openings.clone()));
                    continue;
                }
                None => {}
            }
            tokio::select! {
                () = self.stop.wait() => {}
                // Its sender lives in `reader`.
                _ = self.fate.changed() => {}
                changed = self.pushed.changed() => {
                    // The topic lives as long as this subscription does.
                    if changed.is_err() {
                        return Next::Ended(Ending::Stopping);
                    }
                }
            }
        }
    }

    fn wants(&self, event: &Event) -> bool {
        let sees = match (event, &self.calls) {
            (Event::Call(event), CallsSeen::WithIds(ids)) => ids.contains(&event.call_id),
            (Event::Call(event), CallsSeen::OwnWithIds(owner, ids)) => {
                event.owner == *owner && ids.contains(&event.call_id)
            }
            (Event::Operation(operation), CallsSeen::OwnWithIds(owner, _)) => {
                belongs_to_access(operation.access.as_deref(), owner)
            }
            _ => true,
        };
        sees && event.kind().is_none_or(|kind| self.kinds.contains(&kind))
    }

    /// A watch that reports when this reader has to be disconnected, even while its next message is
    /// not awaited.
    pub fn watch(&self) -> DisconnectWatch {
        DisconnectWatch {
            fate: self.reader.fate.subscribe(),
            stop: self.stop.clone(),
        }
    }
}

/// Makes a snapshot when it is its turn, on another thread.
fn make(opening: Arc<Opening>, tasks: Tasks, openings: WorkQueue) -> MakingOpening {
    let made = async move {
        let turn = openings.turn().await?;
        let make = move || {
            let message = opening.message();
            drop(turn);
            message
        };
        Ok(tasks.blocking(make).await)
    };
    made.boxed()
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subscription")
            .field("reader", &self.reader)
            .finish_non_exhaustive()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.reader.fate.send_if_modified(|fate| {
            let reads = *fate == ReaderState::Reading;
            if reads {
                *fate = ReaderState::Gone;
            }
            reads
        });
        self.topic.leave(&self.reader, self.clock.now());
    }
}

impl DisconnectWatch {
    /// Waits until the reader has to be disconnected, and returns why; `None` if it left by itself.
    pub async fn ended(mut self) -> Option<Ending> {
        let ending = tokio::select! {
            () = self.stop.wait() => None,
            fate = self.fate.wait_for(|fate| *fate != ReaderState::Reading) => fate.ok().and_then(|fate| ending_of(*fate)),
        };
        ending.or_else(|| self.stop.is_stopped().then_some(Ending::Stopping))
    }
}

/// Why no further message comes to a reader in this state, if none does.
fn ending_of(state: ReaderState) -> Option<Ending> {
    match state {
        ReaderState::Reading | ReaderState::Gone => None,
        ReaderState::Overrun => Some(Ending::Overrun),
        ReaderState::GaveWay => Some(Ending::GaveWay),
    }
}
