//! The hub: compares each published snapshot with the one before and publishes the resulting events
//! to each filter.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Semaphore, mpsc, watch};

use super::cursor::{Cursor, Epoch};
use super::message::{Event, EventType, Message};
use super::places::{PlaceHolder, SubscriberPlaces};
use super::seen::CallsSeen;
use super::snapshot_diff::SnapshotDiff;
use super::subscription::{Subscription, SubscriptionParts};
use super::topic::{Moment, Published, Topic};
use crate::catalog::{CatalogReader, Snapshot, ViewQuery};
use crate::config;
use crate::metrics::EventCounts;
use crate::model::WithNextStep;
use crate::runtime::{Clock, Stop, Tasks, WorkQueue};

/// After publishing a change, the hub waits this many times as long as the publishing took. So
/// changes in a burst are published together, and publishing takes at most a quarter of the time. A
/// single change is published at once.
const PAUSE_TIMES: u32 = 3;
/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// How many filters without readers are kept, besides the plain list.
const IDLE: usize = 64;

/// All filters but the plain list together remember as many bytes as so many filters may.
const FULL_RINGS: usize = 16;
/// So many snapshots for readers are made at once.
const OPENINGS_AT_ONCE: usize = 2;

/// How many events of calls may be queued; a further publisher waits.
const QUEUE: usize = 1_024;
/// How many of these are published together.
const TOGETHER: usize = 128;

/// Publishes changes to subscribers. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub(Arc<HubInner>);

#[derive(Debug)]
struct HubInner {
    /// May be replaced while running, except for the limit of subscribers.
    config: ArcSwap<config::EventsConfig>,
    clock: Clock,
    tasks: Tasks,
    stop: Stop,
    places: SubscriberPlaces,
    openings: WorkQueue,
    reader: CatalogReader,
    events: mpsc::Sender<Event>,
    state: Mutex<HubState>,
    /// The sequence of the latest snapshot that was published.
    published: watch::Sender<u64>,
    /// How often events of calls were published.
    call_events: watch::Sender<u64>,
    counts: Arc<EventCounts>,
}

#[derive(Debug)]
struct HubState {
    moment: Arc<Moment>,
    topics: HashMap<ViewQuery, Arc<Topic>>,
}

/// What a reader subscribes to.
#[derive(Debug, Clone)]
pub struct SubscribeRequest {
    /// The list whose changes are published. If it names scenarios, only their states and findings
    /// are published.
    pub query: ViewQuery,
    /// The kinds of events.
    pub kinds: BTreeSet<EventType>,
    /// The position of the reader. Later events come first. A snapshot comes instead if there is no
    /// cursor, or if the hub does not know it any more.
    pub cursor: Option<Cursor>,
    /// The calls whose events are published.
    pub calls: CallsSeen,
}

// What to do next: the ends of the texts below.
const TRY_LATER: &str = "try again later";

/// Why no further reader can subscribe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// The limit of subscribers is reached.
    #[error(
        "{0} readers follow changes already, as many as `events.max_subscribers` allows; {TRY_LATER}"
    )]
    Full(usize),
}

impl WithNextStep for SubscribeError {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        Some(TRY_LATER.into())
    }
}

impl Default for SubscribeRequest {
    /// All kinds of events of the plain list, from now on.
    fn default() -> Self {
        Self {
            query: ViewQuery::default(),
            kinds: EventType::ALL.into(),
            cursor: None,
            calls: CallsSeen::All,
        }
    }
}

impl Hub {
    /// Publishes the changes of `reader` until `stop`.
    pub fn start(
        reader: CatalogReader,
        config: config::EventsConfig,
        clock: Clock,
        tasks: &Tasks,
        stop: &Stop,
    ) -> Self {
        let moment = Arc::new(Moment {
            epoch: Epoch::random(),
            seq: 0,
            snapshot: reader.snapshot(),
            findings: Arc::default(),
        });
        let published = watch::Sender::new(moment.snapshot.sequence);
        // Most readers follow the plain list, so its ring is never dropped and they can always
        // resume.
        let plain = Arc::new(Topic::new(ViewQuery::default(), &moment));
        let topics = HashMap::from([(ViewQuery::default(), plain)]);
        // A semaphore has an upper limit of its own, far above this number.
        let readers_max = config.max_subscribers.min(Semaphore::MAX_PERMITS / 2);
        let places = SubscriberPlaces::new(config.max_subscribers, clock);
        let openings = WorkQueue::new(OPENINGS_AT_ONCE, readers_max);
        let state = Mutex::new(HubState { moment, topics });
        let tasks = tasks.clone();
        let stop = stop.clone();
        let followed = reader.clone();
        let config = ArcSwap::from_pointee(config);
        let counts = Arc::default();
        let (events, received) = mpsc::channel(QUEUE);
        let shared = HubInner {
            config,
            clock,
            tasks,
            stop,
            places,
            openings,
            reader,
            events,
            state,
            published,
            call_events: watch::Sender::new(0),
            counts,
        };
        let shared = Arc::new(shared);
        shared
            .tasks
            .spawn(Arc::clone(&shared).follow(followed, received));
        Self(shared)
    }

    /// Adds a reader. If there is no place left, another one gives way (see
    /// [`Ending::GaveWay`](super::Ending::GaveWay)). Everything that was published before is in its
    /// snapshot or in the ring. If a snapshot was published just now, this waits for it, which
    /// takes some milliseconds.
    pub async fn subscribe(
        &self,
        request: SubscribeRequest,
    ) -> Result<Subscription, SubscribeError> {
        let shared = &self.0;
        let config = shared.config.load_full();
        let place = shared
            .places
            .take(PlaceHolder::of(&request.query, &request.calls));
        let place = place.ok_or(SubscribeError::Full(config.max_subscribers))?;
        let published = shared.reader.snapshot().sequence;
        let mut followed = shared.published.subscribe();
        tokio::select! {
            // The sender lives in `shared`.
            _ = followed.wait_for(|followed| *followed >= published) => {}
            () = shared.stop.wait() => {}
        }
        let SubscribeRequest {
            query,
            kinds,
            cursor,
            calls,
        } = request;
        let mut state = shared.state();
        let HubState { moment, topics } = &mut *state;
        let topic = topics
            .entry(query)
            .or_insert_with_key(|query| Arc::new(Topic::new(query.clone(), moment)));
        let topic = Arc::clone(topic);
        let begun = topic.begin(cursor, config.reader_queue);
        place.used_by(&begun.reader);
        state.forget_idle(shared);
        let parts = SubscriptionParts {
            kinds,
            calls,
            clock: shared.clock,
            tasks: shared.tasks.clone(),
            openings: shared.openings.clone(),
            stop: shared.stop.clone(),
            place,
            counts: Arc::clone(&shared.counts),
        };
        Ok(Subscription::new(topic, begun, parts))
    }

    /// Publishes an event that is in no snapshot: [`Event::Approval`] or [`Event::Operation`]. It
    /// goes to the readers that follow the scenario, chat and profile of that call, or everything.
    /// Waits only while the queue is full.
    pub async fn publish(&self, event: Event) {
        // Fails only after the stop, when no event is published any more.
        let _ = self.0.events.send(event).await;
    }

    /// The same without waiting: while the queue is full, the event is dropped.
    pub fn try_publish(&self, event: Event) {
        let _ = self.0.events.try_send(event);
    }

    /// Follows that events of calls are published, for a reader that looks at all calls again and
    /// needs no single event. It takes no place of a subscriber.
    pub(crate) fn call_events(&self) -> watch::Receiver<u64> {
        self.0.call_events.subscribe()
    }

    /// How many events went to how many readers.
    pub fn counts(&self) -> &EventCounts {
        &self.0.counts
    }

    /// How many readers are subscribed now.
    pub fn subscribers(&self) -> usize {
        self.0.places.taken()
    }

    /// How many bytes of events are remembered for all filters, roughly.
    pub fn remembered(&self) -> usize {
        self.0
            .state()
            .topics
            .values()
            .map(|topic| topic.bytes())
            .sum()
    }

    /// How often a stream without events should send a sign of life (`events.keep_alive`).
    pub fn keep_alive(&self) -> Duration {
        self.0.config.load().keep_alive
    }

    /// Applies other limits, except for the limit of subscribers.
    pub fn configure(&self, config: &config::EventsConfig) {
        let max_subscribers = self.0.config.load().max_subscribers;
        self.0.config.store(Arc::new(config::EventsConfig {
            max_subscribers,
            ..config.clone()
        }));
    }
}

impl HubInner {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock()
    }

    async fn follow(self: Arc<Self>, mut reader: CatalogReader, mut queue: mpsc::Receiver<Event>) {
        let mut events = Vec::new();
        loop {
            let snapshot = tokio::select! {
                () = self.stop.wait() => return,
                snapshot = reader.changed() => snapshot,
                // A sender lives in `self`.
                _ = queue.recv_many(&mut events, TOGETHER) => {
                    self.publish_events(events.drain(..));
                    continue;
                }
            };
            let Some(snapshot) = snapshot else { return };
            let begun = self.clock.now();
            let shared = Arc::clone(&self);
            self.tasks
                .off_thread(move || shared.publish_snapshot(&snapshot))
                .await;
            let pause = LONGEST_PAUSE.min((self.clock.now() - begun) * PAUSE_TIMES);
            tokio::select! {
                () = self.stop.wait() => return,
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// Publishes events of calls. Only the task that publishes snapshots does this, so the cursors
    /// are given out in one order.
    fn publish_events(&self, events: impl Iterator<Item = Event>) {
        let config = self.config.load_full();
        let mut state = self.state();
        for event in events {
            let Moment {
                epoch,
                seq,
                ref snapshot,
                ref findings,
            } = *state.moment;
            let snapshot = Arc::clone(snapshot);
            let findings = Arc::clone(findings);
            let moment = Arc::new(Moment {
                epoch,
                seq: seq + 1,
                snapshot,
                findings,
            });
            let message = Message::new(
                Cursor {
                    epoch,
                    seq: seq + 1,
                },
                event,
            );
            state.moment = Arc::clone(&moment);
            for topic in state.topics.values() {
                let covered = message.event.call().is_some_and(|(scenario, caller)| {
                    let query = &topic.query;
                    let of_scenario = query.scenarios.is_empty()
                        || scenario.is_some_and(|name| query.scenarios.contains(name));
                    of_scenario && caller.is_within(query.chat.as_deref(), query.profile.as_deref())
                });
                let messages = if covered {
                    vec![Published::Change(Arc::clone(&message))]
                } else {
                    Vec::new()
                };
                self.push(topic, messages, &moment, &config);
            }
        }
        state.bound_rings(&config);
        drop(state);
        self.call_events.send_modify(|count| *count += 1);
    }

    fn push(
        &self,
        topic: &Topic,
        messages: Vec<Published>,
        moment: &Arc<Moment>,
        config: &config::EventsConfig,
    ) {
        let (overrun, unread) = topic.push(messages, moment, config);
        if overrun > 0 {
            self.counts.overrun(overrun, unread);
            tracing::info!(
                readers = overrun,
                "readers of events did not keep up and were disconnected"
            );
        }
    }

    /// Publishes the changes up to `snapshot` to every filter. The differences are computed before
    /// a lock is taken that makes readers wait.
    fn publish_snapshot(&self, snapshot: &Arc<Snapshot>) {
        let (before, topics) = {
            let state = self.state();
            (
                Arc::clone(&state.moment),
                state.topics.values().cloned().collect::<Vec<_>>(),
            )
        };
        let change = SnapshotDiff::between(before.epoch, before.seq, &before.snapshot, snapshot);
        let moment = Arc::new(Moment {
            epoch: before.epoch,
            seq: change.last,
            snapshot: Arc::clone(snapshot),
            findings: Arc::default(),
        });
        let config = self.config.load_full();
        let mut room = rings_max(&config);
        let mut by_query: HashMap<ViewQuery, Vec<Published>> = HashMap::new();
        for topic in topics {
            by_query.insert(
                topic.query.clone(),
                messages_within(&mut room, &change, &topic.query, &config),
            );
        }
        let mut state = self.state();
        state.moment = Arc::clone(&moment);
        for topic in state.topics.values() {
            // A filter that was added meanwhile has none of these messages yet.
            let messages = by_query.remove(&topic.query);
            let messages = messages.unwrap_or_else(|| {
                self::messages_within(&mut room, &change, &topic.query, &config)
            });
            self.push(topic, messages, &moment, &config);
        }
        state.forget_idle(self);
        state.bound_rings(&config);
        self.published.send_replace(snapshot.sequence);
    }
}

/// How many bytes all filters but the plain list may remember.
fn rings_max(config: &config::EventsConfig) -> usize {
    config.ring_bytes.saturating_mul(FULL_RINGS)
}

/// The messages of a change for one filter, as long as there is `room` for its bytes; without, a
/// snapshot. The plain list needs none of it.
fn messages_within(
    room: &mut usize,
    change: &SnapshotDiff,
    query: &ViewQuery,
    config: &config::EventsConfig,
) -> Vec<Published> {
    if *query == ViewQuery::default() {
        return messages_for_topic(change, query, config);
    }
    if *room == 0 {
        return vec![Published::Snapshot];
    }
    let messages = messages_for_topic(change, query, config);
    *room = room.saturating_sub(messages.iter().map(Published::weight).sum());
    messages
}

/// The messages of a change for one filter. If they would take more than half of the ring, a
/// snapshot is published instead. So the memory is bounded, and a reader that has read all earlier
/// events never loses a part of a change.
fn messages_for_topic(
    change: &SnapshotDiff,
    query: &ViewQuery,
    config: &config::EventsConfig,
) -> Vec<Published> {
    // In a first listing nearly all of the work would be in comparing the lists.
    if change.is_beyond(query, (config.ring / 2).max(1)) {
        return vec![Published::Snapshot];
    }
    let mut messages: Vec<_> = change
        .messages_for(query)
        .into_iter()
        .map(Published::Change)
        .collect();
    let bytes: usize = messages.iter().map(Published::weight).sum();
    if messages.len() > 1 && (messages.len() > config.ring / 2 || bytes > config.ring_bytes / 2) {
        return vec![Published::Snapshot];
    }
    if change.missed {
        messages.push(Published::Snapshot);
    }
    messages
}

impl HubState {
    /// Lets filters forget what they remember until all rings fit, first those without readers,
    /// then those with the oldest events. The plain list, which most readers follow, keeps its own.
    fn bound_rings(&self, config: &config::EventsConfig) {
        let plain = ViewQuery::default();
        let others = self.topics.values().filter(|topic| topic.query != plain);
        let mut topics: Vec<_> = others.collect();
        let mut bytes: usize = topics.iter().map(|topic| topic.bytes()).sum();
        let most = rings_max(config);
        if bytes <= most {
            return;
        }
        topics.sort_by_cached_key(|topic| topic.age());
        for topic in topics {
            if bytes <= most {
                return;
            }
            bytes = bytes.saturating_sub(topic.bytes());
            topic.forget();
        }
    }

    /// Drops filters that had no readers for long, and those beyond the limit.
    fn forget_idle(&mut self, shared: &HubInner) {
        let now = shared.clock.now();
        let plain = ViewQuery::default();
        let linger = shared.config.load().linger;
        let mut idle = Vec::new();
        self.topics.retain(|query, topic| {
            let Some(left) = topic.left().filter(|_| *query != plain) else {
                return true;
            };
            let keep = now < left + linger;
            if keep {
                idle.push((left, query.clone()));
            }
            keep
        });
        let beyond = idle.len().saturating_sub(IDLE);
        if beyond > 0 {
            idle.sort_by_key(|(left, _)| *left);
            for (_, query) in idle.into_iter().take(beyond) {
                self.topics.remove(&query);
            }
        }
    }
}
