//! The hub: follows what is published and tells each filter what that means for it.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Semaphore, mpsc, watch};

use super::cursor::{Cursor, Epoch};
use super::message::{Event, EventType, Message};
use super::snapshot_diff::SnapshotDiff;
use super::subscription::{Subscription, SubscriptionParts};
use super::topic::{Moment, Opening, Topic};
use crate::catalog::{CatalogReader, Snapshot, ViewQuery};
use crate::config;
use crate::metrics::EventCounts;
use crate::runtime::{Clock, Stop, Tasks};

/// After telling a change the next look waits this many times as long as the telling took, so that a burst is told together and telling
/// takes a quarter of the time at most. A change that comes alone is told at once.
const PAUSE: u32 = 3;
/// The longest such wait.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Filters without readers that are remembered at most, besides the plain list.
const IDLE: usize = 64;

/// What was said of calls and not told yet at most; whoever says more waits.
const SAID: usize = 1_024;
/// Of that, what is told at once.
const TOGETHER: usize = 128;

/// Where changes are heard. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Hub(Arc<HubInner>);

#[derive(Debug)]
struct HubInner {
    /// Another one may take its place; how many may follow at once stays as it was.
    config: ArcSwap<config::EventsConfig>,
    clock: Clock,
    tasks: Tasks,
    stop: Stop,
    places: Arc<Semaphore>,
    reader: CatalogReader,
    said: mpsc::Sender<Event>,
    state: Mutex<HubState>,
    /// The sequence of the latest snapshot that was told.
    told: watch::Sender<u64>,
    counts: Arc<EventCounts>,
}

#[derive(Debug)]
struct HubState {
    moment: Arc<Moment>,
    topics: HashMap<ViewQuery, Arc<Topic>>,
}

/// What a reader asks for.
#[derive(Debug, Clone)]
pub struct SubscribeRequest {
    /// The list whose changes are to be told. Its scenarios, if it names any, are those of which states and findings are told too.
    pub query: ViewQuery,
    /// What is to be told.
    pub kinds: BTreeSet<EventType>,
    /// Where the reader was. What came since is told first; a snapshot is when that is unknown or too long ago, or nothing is given.
    pub cursor: Option<Cursor>,
}

/// Why nobody more can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubscribeError {
    /// So many follow already.
    #[error("{0} readers follow changes already, as many as `events.max_subscribers` allows; try again later")]
    Full(usize),
}

impl Default for SubscribeRequest {
    /// Everything about the plain list, from now on.
    fn default() -> Self {
        Self { query: ViewQuery::default(), kinds: EventType::ALL.into(), cursor: None }
    }
}

impl Hub {
    /// Follows what `reader` reads until `stop`.
    pub fn start(
        reader: CatalogReader,
        config: config::EventsConfig,
        clock: Clock,
        tasks: &Tasks,
        stop: &Stop,
    ) -> Self {
        let moment = Arc::new(Moment { epoch: Epoch::random(), seq: 0, snapshot: reader.snapshot() });
        let told = watch::Sender::new(moment.snapshot.sequence);
        // The plain list is what nearly everybody follows, so it can always be resumed.
        let plain = Arc::new(Topic::new(ViewQuery::default(), &moment));
        let topics = HashMap::from([(ViewQuery::default(), plain)]);
        // A semaphore has an upper limit of its own, far above this.
        let places = Arc::new(Semaphore::new(config.max_subscribers.min(Semaphore::MAX_PERMITS)));
        let (state, tasks, stop) = (Mutex::new(HubState { moment, topics }), tasks.clone(), stop.clone());
        let followed = reader.clone();
        let (config, counts) = (ArcSwap::from_pointee(config), Arc::default());
        let (said, heard) = mpsc::channel(SAID);
        let shared = Arc::new(HubInner { config, clock, tasks, stop, places, reader, said, state, told, counts });
        shared.tasks.spawn(Arc::clone(&shared).follow(followed, heard));
        Self(shared)
    }

    /// Lets a reader in. Whatever was published before is told already or in its snapshot; what has just been published is waited for,
    /// which takes some milliseconds.
    pub async fn subscribe(&self, ask: SubscribeRequest) -> Result<Subscription, SubscribeError> {
        let shared = &self.0;
        let place = Arc::clone(&shared.places).try_acquire_owned();
        let config = shared.config.load_full();
        let place = place.map_err(|_| SubscribeError::Full(config.max_subscribers))?;
        let published = shared.reader.snapshot().sequence;
        let mut told = shared.told.subscribe();
        tokio::select! {
            // The sender lives in `shared`.
            _ = told.wait_for(|told| *told >= published) => {}
            () = shared.stop.wait() => {}
        }
        let SubscribeRequest { query, kinds, cursor } = ask;
        let mut state = shared.state();
        let HubState { moment, topics } = &mut *state;
        let topic = topics.entry(query).or_insert_with_key(|query| Arc::new(Topic::new(query.clone(), moment)));
        let topic = Arc::clone(topic);
        let begun = topic.begin(cursor, config.reader_queue);
        state.forget_idle(shared);
        let (clock, tasks, stop) = (shared.clock, shared.tasks.clone(), shared.stop.clone());
        Ok(Subscription::new(
            topic,
            begun,
            SubscriptionParts { kinds, clock, tasks, stop, place, counts: Arc::clone(&shared.counts) },
        ))
    }

    /// Tells what is in no snapshot: what becomes of a call ([`Event::Approval`], [`Event::Operation`]). It goes to those who follow the
    /// scenario, the chat and the profile of that call, or everything. Waits only while very much is being told.
    pub async fn publish(&self, event: Event) {
        // After the stop nobody is told anything.
        let _ = self.0.said.send(event).await;
    }

    /// What was told to how many.
    pub fn counts(&self) -> &EventCounts {
        &self.0.counts
    }

    /// How many follow now.
    pub fn subscribers(&self) -> usize {
        let places = self.0.config.load().max_subscribers.min(Semaphore::MAX_PERMITS);
        places.saturating_sub(self.0.places.available_permits())
    }

    /// How often a stream in which nothing happens should show that it lives (`events.keep_alive`).
    pub fn keep_alive(&self) -> Duration {
        self.0.config.load().keep_alive
    }

    /// Puts other limits in force, but for how many may follow at once.
    pub fn configure(&self, config: &config::EventsConfig) {
        let max_subscribers = self.0.config.load().max_subscribers;
        self.0.config.store(Arc::new(config::EventsConfig { max_subscribers, ..config.clone() }));
    }
}

impl HubInner {
    fn state(&self) -> MutexGuard<'_, HubState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn follow(self: Arc<Self>, mut reader: CatalogReader, mut said: mpsc::Receiver<Event>) {
        let mut events = Vec::new();
        loop {
            let snapshot = tokio::select! {
                () = self.stop.wait() => return,
                snapshot = reader.changed() => snapshot,
                // A sender lives in `self`.
                _ = said.recv_many(&mut events, TOGETHER) => {
                    self.publish_events(events.drain(..));
                    continue;
                }
            };
            let Some(snapshot) = snapshot else { return };
            let begun = self.clock.now();
            let shared = Arc::clone(&self);
            self.tasks.off_thread(move || shared.publish_snapshot(&snapshot)).await;
            let pause = LONGEST_PAUSE.min((self.clock.now() - begun) * PAUSE);
            tokio::select! {
                () = self.stop.wait() => return,
                () = self.clock.sleep(pause) => {}
            }
        }
    }

    /// Tells what was said of calls. Only the task that tells snapshots does this, so places are given out in one order.
    fn publish_events(&self, events: impl Iterator<Item = Event>) {
        let config = self.config.load_full();
        let mut state = self.state();
        for event in events {
            let Moment { epoch, seq, ref snapshot } = *state.moment;
            let moment = Arc::new(Moment { epoch, seq: seq + 1, snapshot: Arc::clone(snapshot) });
            let message = Message::new(Cursor { epoch, seq: seq + 1 }, event);
            state.moment = Arc::clone(&moment);
            for topic in state.topics.values() {
                let covered = message.event.call().is_some_and(|(scenario, asker)| {
                    let query = &topic.query;
                    let of_scenario = query.scenarios.is_empty() || query.scenarios.contains(scenario);
                    of_scenario && asker.is_within(query.chat.as_deref(), query.profile.as_deref())
                });
                let messages = if covered { vec![Arc::clone(&message)] } else { Vec::new() };
                self.push(topic, messages, &moment, &config);
            }
        }
    }

    fn push(&self, topic: &Topic, messages: Vec<Arc<Message>>, moment: &Arc<Moment>, config: &config::EventsConfig) {
        let (overrun, unread) = topic.push(messages, moment, config);
        if overrun > 0 {
            self.counts.overrun(overrun, unread);
            tracing::info!(readers = overrun, "readers of events did not keep up and are let go");
        }
    }

    /// Tells every filter what happened until `snapshot`. What differs is found before anybody has to wait for it.
    fn publish_snapshot(&self, snapshot: &Arc<Snapshot>) {
        let (before, topics) = {
            let state = self.state();
            (Arc::clone(&state.moment), state.topics.values().cloned().collect::<Vec<_>>())
        };
        let change = SnapshotDiff::between(before.epoch, before.seq, &before.snapshot, snapshot);
        let moment = Arc::new(Moment { epoch: before.epoch, seq: change.last, snapshot: Arc::clone(snapshot) });
        let config = self.config.load_full();
        let mut told: HashMap<ViewQuery, Vec<Arc<Message>>> = topics
            .iter()
            .map(|topic| (topic.query.clone(), messages_for_topic(&change, &topic.query, &moment, &config)))
            .collect();
        let mut state = self.state();
        state.moment = Arc::clone(&moment);
        for topic in state.topics.values() {
            // A filter that somebody began to follow meanwhile has seen nothing of this yet.
            let messages = told.remove(&topic.query);
            let messages =
                messages.unwrap_or_else(|| self::messages_for_topic(&change, &topic.query, &moment, &config));
            self.push(topic, messages, &moment, &config);
        }
        state.forget_idle(self);
        self.told.send_replace(snapshot.sequence);
    }
}

/// What the followers of a filter are told of a change. Where that would take more than half of what is remembered, they are told how
/// everything is instead: so it has bounds, and who has read what came before never loses a part of it.
fn messages_for_topic(
    change: &SnapshotDiff,
    query: &ViewQuery,
    moment: &Arc<Moment>,
    config: &config::EventsConfig,
) -> Vec<Arc<Message>> {
    let snapshot = || Opening::new(moment, query).message();
    // In a first sweep nearly all of the work would be in what differs in the list.
    if change.is_beyond(query, (config.ring / 2).max(1)) {
        return vec![snapshot()];
    }
    let mut told = change.messages_for(query);
    let bytes: usize = told.iter().map(|message| message.weight()).sum();
    if told.len() > 1 && (told.len() > config.ring / 2 || bytes > config.ring_bytes / 2) {
        return vec![snapshot()];
    }
    if change.missed {
        told.push(snapshot());
    }
    told
}

impl HubState {
    /// Forgets filters that nobody has followed for long, and those that are too many.
    fn forget_idle(&mut self, shared: &HubInner) {
        let now = shared.clock.now();
        let (plain, linger) = (ViewQuery::default(), shared.config.load().linger);
        let mut idle = Vec::new();
        self.topics.retain(|query, topic| {
            let Some(left) = topic.left().filter(|_| *query != plain) else { return true };
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
