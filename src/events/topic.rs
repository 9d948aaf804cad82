//! One filter that has readers: its ring of messages, and the positions of its readers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::Instant;

use super::cursor::{Cursor, Epoch};
use super::message::{Event, Message, Overview};
use super::snapshot_diff;
use crate::catalog::{Snapshot, View, ViewQuery};
use crate::config;
use crate::model::ScenarioName;

/// The current state of the hub.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) epoch: Epoch,
    pub(super) seq: u64,
    pub(super) snapshot: Arc<Snapshot>,
    /// Shared by all moments of this snapshot.
    pub(super) findings: Arc<FindingCounts>,
}

/// How many findings a snapshot has. They are counted for the first reader that needs that, and
/// once for all filters: many colliding tools have very many.
#[derive(Debug, Default)]
pub(super) struct FindingCounts(OnceLock<CountedFindings>);

/// See [`FindingCounts`].
#[derive(Debug)]
struct CountedFindings {
    all: usize,
    by_scenario: BTreeMap<ScenarioName, usize>,
}

impl FindingCounts {
    /// How many there are about these scenarios; about all if none is named.
    fn about(&self, snapshot: &Snapshot, scenarios: &BTreeSet<ScenarioName>) -> usize {
        let counted = self.0.get_or_init(|| CountedFindings::of(snapshot));
        if scenarios.is_empty() {
            return counted.all;
        }
        scenarios
            .iter()
            .filter_map(|name| counted.by_scenario.get(name))
            .sum()
    }
}

impl CountedFindings {
    fn of(snapshot: &Snapshot) -> Self {
        let mut findings = snapshot.catalog.findings();
        findings.extend(snapshot.findings.iter().cloned());
        findings.sort_unstable();
        findings.dedup();
        let mut by_scenario = BTreeMap::new();
        for name in findings
            .iter()
            .filter_map(|finding| finding.scenario.as_ref())
        {
            match by_scenario.get_mut(name) {
                Some(count) => *count += 1,
                None => _ = by_scenario.insert(name.clone(), 1),
            }
        }
        Self {
            all: findings.len(),
            by_scenario,
        }
    }
}

/// Roughly how many bytes it takes to remember that a reader gets a snapshot.
const SNAPSHOT_BYTES: usize = 64;

/// Everything, for a reader that is new or has missed events. The message is made when a reader
/// needs it, and kept only while a reader has it: each filter has another one, and it is large.
#[derive(Debug)]
pub(super) struct Opening {
    moment: Arc<Moment>,
    query: ViewQuery,
    made: Mutex<Weak<Message>>,
}

/// What is published to a filter.
#[derive(Debug)]
pub(super) enum Published {
    /// A change.
    Change(Arc<Message>),
    /// Too much changed: a reader gets everything, as it is when it reads. Its position is that of
    /// the moment.
    Snapshot,
}

/// What a reader gets next.
pub(super) enum ReadNext {
    /// A message.
    Message(Arc<Message>),
    /// Everything.
    Snapshot(Arc<Opening>),
}

/// One filter with its ring and readers; see the head of the module.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) query: ViewQuery,
    ring: Mutex<Ring>,
    /// How many messages were pushed in all.
    pushed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    messages: VecDeque<RingMessage>,
    /// How many messages came before the first one in the ring.
    first: u64,
    /// How many pushes there were. A push may have several messages.
    pushes: u64,
    bytes: usize,
    /// All messages after this sequence number are in the ring.
    floor: u64,
    opening: Arc<Opening>,
    readers: Vec<Weak<TopicReader>>,
    left: Option<Instant>,
}

/// A message, and the push that it belongs to.
#[derive(Debug)]
struct RingMessage {
    push: u64,
    /// The position after it.
    seq: u64,
    published: Published,
}

/// The position of a reader. It is all that a reader costs.
#[derive(Debug)]
pub(super) struct TopicReader {
    /// How many messages of the topic are behind the reader.
    next: AtomicU64,
    /// How many pushes were forgotten since it read, before it got them.
    missed: AtomicU64,
    /// How many pushes the reader may be behind. Messages are not counted: those of one push are
    /// published together, so their number does not show whether the reader is slow.
    leeway: u64,
    pub(super) fate: watch::Sender<ReaderState>,
}

/// The state of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// It reads.
    Reading,
    /// It left.
    Gone,
    /// It was too slow.
    Overrun,
    /// Its place was given to another one.
    GaveWay,
}

/// How old what a topic remembers is. The first in order is forgotten first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TopicAge {
    is_followed: bool,
    oldest: u64,
}

/// The start of a new reader.
pub(super) struct ReaderStart {
    pub(super) reader: Arc<TopicReader>,
    /// Its first message, unless it resumes.
    pub(super) opening: Option<Arc<Opening>>,
    pub(super) pushed: watch::Receiver<u64>,
}

impl Opening {
    pub(super) fn new(moment: &Arc<Moment>, query: &ViewQuery) -> Arc<Self> {
        Arc::new(Self {
            moment: Arc::clone(moment),
            query: query.clone(),
            made: Mutex::default(),
        })
    }

    /// The snapshot message. The first reader makes it, which takes as long as a listing; others
    /// wait for it.
    pub(super) fn message(&self) -> Arc<Message> {
        let mut made = self.made.lock();
        if let Some(message) = made.upgrade() {
            return message;
        }
        let overview = overview(&self.moment, &self.query);
        let message = Message::new(
            Cursor {
                epoch: self.moment.epoch,
                seq: self.moment.seq,
            },
            Event::Snapshot(overview),
        );
        *made = Arc::downgrade(&message);
        message
    }
}

impl Published {
    /// Roughly how many bytes it needs while it is remembered.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Change(message) => message.weight(),
            Self::Snapshot => SNAPSHOT_BYTES,
        }
    }
}

impl RingMessage {
    fn new(push: u64, moment_seq: u64, published: Published) -> Self {
        let seq = match &published {
            Published::Change(message) => message.id.seq,
            Published::Snapshot => moment_seq,
        };
        Self {
            push,
            seq,
            published,
        }
    }

    fn weight(&self) -> usize {
        self.published.weight()
    }
}

impl TopicReader {
    /// How many pushes it is behind, if `messages` came after `first` others.
    fn behind(&self, messages: &VecDeque<RingMessage>, first: u64) -> u64 {
        self.missed.load(Ordering::Acquire)
            + behind(messages, first, self.next.load(Ordering::Acquire))
    }
}

/// Everything that a filter covers.
fn overview(moment: &Moment, query: &ViewQuery) -> Overview {
    let snapshot = &moment.snapshot;
    let catalog = &snapshot.catalog;
    let covered = &query.scenarios;
    let health = snapshot.health.values();
    Overview {
        revision: snapshot_diff::revision(catalog, query),
        generated_at: snapshot.generated_at,
        names: View::select(catalog, query)
            .tools()
            .map(|tool| tool.name.clone())
            .collect(),
        scenarios: health
            .filter(|health| covered.is_empty() || covered.contains(&health.name))
            .cloned()
            .collect(),
        findings: moment.findings.about(snapshot, covered),
    }
}

impl Topic {
    /// A topic for a filter that has readers from this moment on.
    pub(super) fn new(query: ViewQuery, moment: &Arc<Moment>) -> Self {
        let opening = Opening::new(moment, &query);
        let ring = Ring {
            messages: VecDeque::new(),
            first: 0,
            pushes: 0,
            bytes: 0,
            floor: moment.seq,
            opening,
            readers: Vec::new(),
            left: None,
        };
        Self {
            query,
            ring: Mutex::new(ring),
            pushed: watch::Sender::new(0),
        }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock()
    }

    /// Pushes messages to the readers, and makes `moment` the current one. Returns how many readers
    /// were too slow, and how many messages were waiting for them.
    pub(super) fn push(
        &self,
        messages: Vec<Published>,
        moment: &Arc<Moment>,
        limits: &config::EventsConfig,
    ) -> (u64, u64) {
        let opening = Opening::new(moment, &self.query);
        let mut ring = self.ring();
        ring.opening = opening;
        if messages.is_empty() {
            return (0, 0);
        }
        ring.pushes += 1;
        let push = ring.pushes;
        for published in messages {
            let message = RingMessage::new(push, moment.seq, published);
            ring.bytes += message.weight();
            ring.messages.push_back(message);
        }
        while ring.messages.len() > limits.ring
            || (ring.bytes > limits.ring_bytes && ring.messages.len() > 1)
        {
            let Some(oldest) = ring.messages.pop_front() else {
                break;
            };
            ring.bytes -= oldest.weight();
            ring.first += 1;
            ring.floor = oldest.seq;
        }
        let first = ring.first;
        let end = ring.end();
        let mut overrun = 0;
        let mut unread = 0;
        let Ring {
            readers, messages, ..
        } = &mut *ring;
        readers.retain(|reader| {
            let Some(reader) = reader.upgrade() else {
                return false;
            };
            let next = reader.next.load(Ordering::Acquire);
            let keeps_up = next >= first && reader.behind(messages, first) <= reader.leeway;
            if !keeps_up {
                overrun += 1;
                unread += end.saturating_sub(next);
                reader.fate.send_replace(ReaderState::Overrun);
            }
            keeps_up
        });
        self.pushed.send_replace(end);
        (overrun, unread)
    }

    /// Adds a reader. It starts after `cursor` if the ring still has all later messages, else with
    /// a snapshot.
    pub(super) fn begin(&self, cursor: Option<Cursor>, queue: usize) -> ReaderStart {
        let mut ring = self.ring();
        let now = &ring.opening.moment;
        let resumed = cursor.filter(|cursor| {
            cursor.epoch == now.epoch && (ring.floor..=now.seq).contains(&cursor.seq)
        });
        let seen = resumed
            .map(|cursor| ring.messages.partition_point(|kept| kept.seq <= cursor.seq) as u64);
        let next = seen.map_or_else(|| ring.end(), |seen| ring.first + seen);
        // The messages that it still has to catch up on do not count against it.
        let leeway = queue as u64 + behind(&ring.messages, ring.first, next);
        let reader = Arc::new(TopicReader {
            next: AtomicU64::new(next),
            missed: AtomicU64::new(0),
            leeway,
            fate: watch::Sender::new(ReaderState::Reading),
        });
        ring.readers.retain(|reader| reader.strong_count() > 0);
        ring.readers.push(Arc::downgrade(&reader));
        ring.left = None;
        let opening = resumed.is_none().then(|| Arc::clone(&ring.opening));
        ReaderStart {
            reader,
            opening,
            pushed: self.pushed.subscribe(),
        }
    }

    /// The next message for a reader. The reader's position moves past it.
    pub(super) fn read(&self, reader: &TopicReader) -> Option<ReadNext> {
        let ring = self.ring();
        let next = reader.next.load(Ordering::Acquire);
        // A reader whose position is not in the ring any more learns that from its state.
        let at = usize::try_from(next.checked_sub(ring.first)?).ok()?;
        let published = &ring.messages.get(at)?.published;
        reader.missed.store(0, Ordering::Release);
        Some(match published {
            Published::Change(message) => {
                reader.next.store(next + 1, Ordering::Release);
                ReadNext::Message(Arc::clone(message))
            }
            Published::Snapshot => {
                // What follows is in it.
                reader.next.store(ring.end(), Ordering::Release);
                ReadNext::Snapshot(Arc::clone(&ring.opening))
            }
        })
    }

    /// Forgets all messages. A reader that has not read all of them gets everything as its next
    /// message, and one that comes back gets that, too.
    pub(super) fn forget(&self) {
        let mut ring = self.ring();
        let Ring {
            messages,
            first,
            readers,
            ..
        } = &mut *ring;
        let end = *first + messages.len() as u64;
        let mut is_missed = false;
        let readers: Vec<_> = readers.iter().filter_map(Weak::upgrade).collect();
        for reader in &readers {
            // One behind the ring has been disconnected.
            if (*first..end).contains(&reader.next.load(Ordering::Acquire)) {
                reader
                    .missed
                    .store(reader.behind(messages, *first), Ordering::Release);
                reader.next.store(end, Ordering::Release);
                is_missed = true;
            } else {
                reader.next.store(end + 1, Ordering::Release);
            }
        }
        ring.first = end;
        ring.floor = ring.opening.moment.seq;
        let snapshot = RingMessage::new(ring.pushes, ring.floor, Published::Snapshot);
        ring.bytes = snapshot.weight();
        ring.messages = VecDeque::from([snapshot]);
        if is_missed {
            self.pushed.send_replace(ring.end());
        }
    }

    /// The bytes that are remembered, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.ring().bytes
    }

    /// How old what it remembers is, for the choice of a topic that forgets.
    pub(super) fn age(&self) -> TopicAge {
        let ring = self.ring();
        let oldest = ring
            .messages
            .front()
            .map_or(ring.floor, |oldest| oldest.seq);
        TopicAge {
            is_followed: ring.left.is_none(),
            oldest,
        }
    }

    /// Removes a reader.
    pub(super) fn leave(&self, reader: &TopicReader, now: Instant) {
        let mut ring = self.ring();
        ring.readers
            .retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), reader));
        if ring.readers.is_empty() {
            ring.left = Some(now);
        }
    }

    /// Since when there are no readers; `None` while there are.
    pub(super) fn left(&self) -> Option<Instant> {
        self.ring().left
    }
}

/// How many pushes a reader is behind, if `next` messages are behind it and `first` messages came
/// before these.
fn behind(messages: &VecDeque<RingMessage>, first: u64, next: u64) -> u64 {
    let at = next
        .checked_sub(first)
        .and_then(|at| usize::try_from(at).ok());
    let oldest = at.and_then(|at| messages.get(at));
    messages
        .back()
        .zip(oldest)
        .map_or(0, |(latest, oldest)| latest.push - oldest.push + 1)
}

impl Ring {
    /// How many messages were pushed in all.
    fn end(&self) -> u64 {
        self.first + self.messages.len() as u64
    }
}
