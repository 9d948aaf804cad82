//! One filter that is followed: its ring of messages, and the places of its readers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use tokio::sync::watch;
use tokio::time::Instant;

use super::cursor::{Cursor, Epoch};
use super::message::{Event, Message, Overview};
use super::snapshot_diff;
use crate::catalog::{Snapshot, View, ViewQuery};
use crate::config;
use crate::model::Finding;

/// Where the hub is.
#[derive(Debug)]
pub(super) struct Moment {
    pub(super) epoch: Epoch,
    pub(super) seq: u64,
    pub(super) snapshot: Arc<Snapshot>,
}

/// What a reader that begins now is told first; made when the first one does.
#[derive(Debug)]
pub(super) struct Opening {
    moment: Arc<Moment>,
    query: ViewQuery,
    told: OnceLock<Arc<Message>>,
}

/// See the module's head.
#[derive(Debug)]
pub(super) struct Topic {
    pub(super) query: ViewQuery,
    ring: Mutex<Ring>,
    /// How many messages there ever were.
    pushed: watch::Sender<u64>,
}

#[derive(Debug)]
struct Ring {
    messages: VecDeque<RingMessage>,
    /// How many messages came before the first of these.
    first: u64,
    /// How many times something was told.
    pushes: u64,
    bytes: usize,
    /// Everything that was told behind this place is in the ring.
    floor: u64,
    opening: Arc<Opening>,
    readers: Vec<Weak<TopicReader>>,
    left: Option<Instant>,
}

/// A message, and with which others it was told.
#[derive(Debug)]
struct RingMessage {
    push: u64,
    message: Arc<Message>,
}

/// A reader's place. All it costs.
#[derive(Debug)]
pub(super) struct TopicReader {
    /// How many messages of the topic it has behind it.
    next: AtomicU64,
    /// How many pushes it may be behind. Not messages: what is told at once reaches nobody one by one, so however much it is, it says nothing
    /// of who keeps up.
    leeway: u64,
    pub(super) fate: watch::Sender<ReaderState>,
}

/// What became of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReaderState {
    /// It reads.
    Reading,
    /// It went.
    Gone,
    /// It did not keep up.
    Overrun,
}

/// Where a new reader begins.
pub(super) struct ReaderStart {
    pub(super) reader: Arc<TopicReader>,
    /// What it is told first, unless it resumes.
    pub(super) opening: Option<Arc<Opening>>,
    pub(super) pushed: watch::Receiver<u64>,
}

impl Opening {
    pub(super) fn new(moment: &Arc<Moment>, query: &ViewQuery) -> Arc<Self> {
        Arc::new(Self { moment: Arc::clone(moment), query: query.clone(), told: OnceLock::new() })
    }

    /// The snapshot message. The first to ask makes it, which takes as long as listing does; others wait for it.
    pub(super) fn message(&self) -> Arc<Message> {
        Arc::clone(self.told.get_or_init(|| {
            let Moment { epoch, seq, snapshot } = &*self.moment;
            Message::new(Cursor { epoch: *epoch, seq: *seq }, Event::Snapshot(overview(snapshot, &self.query)))
        }))
    }
}

/// Everything that a filter covers.
fn overview(snapshot: &Snapshot, query: &ViewQuery) -> Overview {
    let catalog = &snapshot.catalog;
    let covered = &query.scenarios;
    let mut findings: Vec<Finding> = if covered.is_empty() {
        catalog.findings()
    } else {
        covered.iter().flat_map(|name| catalog.findings_of(name)).collect()
    };
    let covers =
        |finding: &&Finding| covered.is_empty() || finding.scenario.as_ref().is_some_and(|name| covered.contains(name));
    findings.extend(snapshot.findings.iter().filter(covers).cloned());
    findings.sort_unstable();
    findings.dedup();
    let health = snapshot.health.values();
    Overview {
        revision: snapshot_diff::revision(catalog, query),
        generated_at: snapshot.generated_at,
        names: View::select(catalog, query).tools().map(|tool| tool.name.clone()).collect(),
        scenarios: health.filter(|health| covered.is_empty() || covered.contains(&health.name)).cloned().collect(),
        findings: findings.len(),
    }
}

impl Topic {
    /// A filter that is followed from this moment on.
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
        Self { query, ring: Mutex::new(ring), pushed: watch::Sender::new(0) }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells its readers what happened, and takes this moment for the present. Answers how many readers did not keep up, and how
    /// many messages they had before them.
    pub(super) fn push(
        &self,
        messages: Vec<Arc<Message>>,
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
        for message in messages {
            ring.bytes += message.weight();
            ring.messages.push_back(RingMessage { push, message });
        }
        while ring.messages.len() > limits.ring || (ring.bytes > limits.ring_bytes && ring.messages.len() > 1) {
            let Some(RingMessage { message: oldest, .. }) = ring.messages.pop_front() else { break };
            ring.bytes -= oldest.weight();
            ring.first += 1;
            ring.floor = oldest.id.seq;
        }
        let (first, end) = (ring.first, ring.end());
        let (mut overrun, mut unread) = (0, 0);
        let Ring { readers, messages, .. } = &mut *ring;
        readers.retain(|reader| {
            let Some(reader) = reader.upgrade() else { return false };
            let next = reader.next.load(Ordering::Acquire);
            let keeps_up = next >= first && behind(messages, first, next) <= reader.leeway;
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

    /// Lets a reader in: behind `cursor` if the ring still has everything that was told since, else with a snapshot.
    pub(super) fn begin(&self, cursor: Option<Cursor>, queue: usize) -> ReaderStart {
        let mut ring = self.ring();
        let now = &ring.opening.moment;
        let resumed = cursor.filter(|cursor| cursor.epoch == now.epoch && (ring.floor..=now.seq).contains(&cursor.seq));
        let seen = resumed.map(|cursor| ring.messages.partition_point(|told| told.message.id.seq <= cursor.seq) as u64);
        let next = seen.map_or_else(|| ring.end(), |seen| ring.first + seen);
        // What it has to catch up on does not count against it.
        let leeway = queue as u64 + behind(&ring.messages, ring.first, next);
        let reader = Arc::new(TopicReader {
            next: AtomicU64::new(next),
            leeway,
            fate: watch::Sender::new(ReaderState::Reading),
        });
        ring.readers.retain(|reader| reader.strong_count() > 0);
        ring.readers.push(Arc::downgrade(&reader));
        ring.left = None;
        let opening = resumed.is_none().then(|| Arc::clone(&ring.opening));
        ReaderStart { reader, opening, pushed: self.pushed.subscribe() }
    }

    /// The next message for a reader, which then has it behind it.
    pub(super) fn read(&self, reader: &TopicReader) -> Option<Arc<Message>> {
        let ring = self.ring();
        let next = reader.next.load(Ordering::Acquire);
        // One that fell out of the ring is told by its fate.
        let at = usize::try_from(next.checked_sub(ring.first)?).ok()?;
        let message = Arc::clone(&ring.messages.get(at)?.message);
        reader.next.store(next + 1, Ordering::Release);
        Some(message)
    }

    /// A reader went.
    pub(super) fn leave(&self, reader: &TopicReader, now: Instant) {
        let mut ring = self.ring();
        ring.readers.retain(|other| other.strong_count() > 0 && !std::ptr::eq(other.as_ptr(), reader));
        if ring.readers.is_empty() {
            ring.left = Some(now);
        }
    }

    /// Since when nobody reads; nothing while someone does.
    pub(super) fn left(&self) -> Option<Instant> {
        self.ring().left
    }
}

/// How many pushes a reader has messages of before it, when it has `next` behind it and `first` came before these messages.
fn behind(messages: &VecDeque<RingMessage>, first: u64, next: u64) -> u64 {
    let at = next.checked_sub(first).and_then(|at| usize::try_from(at).ok());
    let oldest = at.and_then(|at| messages.get(at));
    messages.back().zip(oldest).map_or(0, |(latest, oldest)| latest.push - oldest.push + 1)
}

impl Ring {
    /// How many messages there ever were.
    fn end(&self) -> u64 {
        self.first + self.messages.len() as u64
    }
}
