//! The places of subscribers, of which there is a limit.
//!
//! If there is none left, the oldest stream of the largest group gives way, so that no client
//! keeps all others out. It may resume where it was. In a small table none gives way.
//!
//! Profiles and conversations are named by clients, so groups are compared level by level, as those
//! of calls that wait for approval: first clients without the operator's right with those that have
//! it, then profiles, then conversations. Unlike there a new stream is never refused, since what
//! gives way loses no work. So this is no use of `calls/kept/groups.rs`, where a flood of small
//! groups keeps what it has.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::seen::CallsSeen;
use super::topic::{ReaderState, TopicReader};
use crate::catalog::ViewQuery;
use crate::runtime::Clock;

/// In a table of less places, none gives way: a few clients are no flood.
const PLACES_TO_GIVE_WAY: usize = 64;
/// A group with at most this part of all places counts as no larger than others, as for calls that
/// wait for approval.
const SMALL_GROUP_DIVISOR: usize = 125;
/// How often the log says at most that streams give way.
const FULL_NOTE: Duration = Duration::from_secs(60);

/// All places. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct SubscriberPlaces(Arc<PlacesInner>);

#[derive(Debug)]
struct PlacesInner {
    size: usize,
    clock: Clock,
    table: Mutex<PlaceTable>,
}

#[derive(Debug, Default)]
struct PlaceTable {
    next: u64,
    /// In the order in which they were taken.
    taken: BTreeMap<u64, TakenPlace>,
    noted: Option<Instant>,
}

#[derive(Debug)]
struct TakenPlace {
    holder: PlaceHolder,
    /// Its reader, as soon as there is one. Without it a place does not give way.
    reader: Option<Weak<TopicReader>>,
}

/// Whose a stream is: clients without the operator's right apart, and by their profile and
/// conversation.
#[derive(Debug, Clone)]
pub(super) struct PlaceHolder {
    owner: Option<Arc<str>>,
    profile: Option<String>,
    chat: Option<String>,
}

/// A place, until it is dropped or gave way.
#[derive(Debug)]
pub(super) struct SubscriberPlace {
    places: SubscriberPlaces,
    number: u64,
}

impl PlaceHolder {
    /// The holder of a stream of these events.
    pub(super) fn of(query: &ViewQuery, calls: &CallsSeen) -> Self {
        let owner = match calls {
            CallsSeen::All | CallsSeen::WithIds(_) => None,
            CallsSeen::OwnWithIds(owner, _) => Some(Arc::clone(owner)),
        };
        Self {
            owner,
            profile: query.profile.clone(),
            chat: query.chat.clone(),
        }
    }
}

impl SubscriberPlaces {
    /// So many places.
    pub(super) fn new(size: usize, clock: Clock) -> Self {
        Self(Arc::new(PlacesInner {
            size,
            clock,
            table: Mutex::default(),
        }))
    }

    /// Takes a place; `None` if there is none and no stream gives way.
    pub(super) fn take(&self, holder: PlaceHolder) -> Option<SubscriberPlace> {
        let mut table = self.table();
        if table.taken.len() >= self.0.size {
            let gives_way = self.0.size >= PLACES_TO_GIVE_WAY;
            let number = table
                .gives_way(self.0.size / SMALL_GROUP_DIVISOR)
                .filter(|_| gives_way)?;
            let gone = table.taken.remove(&number);
            if let Some(reader) = gone.and_then(|place| place.reader?.upgrade()) {
                reader.fate.send_replace(ReaderState::GaveWay);
            }
            self.note_full(&mut table);
        }
        let number = table.next;
        table.next += 1;
        table.taken.insert(
            number,
            TakenPlace {
                holder,
                reader: None,
            },
        );
        Some(SubscriberPlace {
            places: self.clone(),
            number,
        })
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> usize {
        self.table().taken.len()
    }

    fn note_full(&self, table: &mut PlaceTable) {
        let now = self.0.clock.now();
        if table.noted.is_none_or(|at| now - at >= FULL_NOTE) {
            table.noted = Some(now);
            let readers = self.0.size;
            tracing::warn!(
                readers,
                "too many clients follow events (`events.max_subscribers`); some streams give way"
            );
        }
    }

    fn table(&self) -> MutexGuard<'_, PlaceTable> {
        self.0.table.lock()
    }
}

impl PlaceTable {
    /// The oldest place of the largest conversation of the largest profile of the owner with most.
    /// Groups of up to `small` places are equal.
    fn gives_way(&self, small: usize) -> Option<u64> {
        let used = self
            .taken
            .iter()
            .filter(|(_, place)| place.reader.is_some());
        let mut left: Vec<UsedPlace<'_>> = used
            .map(|(number, place)| (*number, &place.holder))
            .collect();
        keep_largest(&mut left, small, |holder| holder.owner.as_deref());
        keep_largest(&mut left, small, |holder| holder.profile.as_deref());
        keep_largest(&mut left, small, |holder| holder.chat.as_deref());
        left.first().map(|place| place.0)
    }
}

/// The number of a place that may give way, and whose it is.
type UsedPlace<'a> = (u64, &'a PlaceHolder);

/// Keeps the places of the largest group by this name; of equal ones, the one with the oldest.
fn keep_largest<'a, K: Eq + Hash>(
    places: &mut Vec<UsedPlace<'a>>,
    small: usize,
    name: impl Fn(&'a PlaceHolder) -> K,
) {
    let mut groups: HashMap<K, PlaceGroup> = HashMap::new();
    for place in places.iter() {
        groups
            .entry(name(place.1))
            .or_insert(PlaceGroup {
                streams: 0,
                oldest: place.0,
            })
            .streams += 1;
    }
    let largest = groups
        .into_iter()
        .max_by_key(|(_, group)| (group.streams.max(small), Reverse(group.oldest)));
    if let Some((largest, _)) = largest {
        places.retain(|place| name(place.1) == largest);
    }
}

/// The streams of one group.
struct PlaceGroup {
    streams: usize,
    oldest: u64,
}

impl SubscriberPlace {
    /// From now on the place may give way, which ends this reader.
    pub(super) fn used_by(&self, reader: &Arc<TopicReader>) {
        if let Some(place) = self.places.table().taken.get_mut(&self.number) {
            place.reader = Some(Arc::downgrade(reader));
        }
    }
}

impl Drop for SubscriberPlace {
    fn drop(&mut self) {
        self.places.table().taken.remove(&self.number);
    }
}
