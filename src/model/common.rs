//! What fleets repeat, kept once for the whole process: settings of tools, groupings, and texts that come again.
//!
//! It only knows where something stands that is in use, and keeps nothing alive: what nobody holds any more is gone, and its line here
//! goes with the next clearing up. So churn leaves nothing behind.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use foldhash::quality::RandomState;
use xxhash_rust::xxh3::xxh3_64;

use super::manifest::Category;
use super::text::{SharedText, TextBlock};
use super::tool::Facts;

/// Shorter texts take less where they are than as an allocation of their own.
const WORTH: usize = 64;
/// Tables are cleared up once they have twice the lines of last time, and this many at least.
const LINES: usize = 256;
/// Texts whose digests are remembered.
const REMEMBERED: usize = 1 << 17;

static FACTS: LazyLock<Table<Facts>> = LazyLock::new(Table::default);
static CATEGORIES: LazyLock<Table<[Category]>> = LazyLock::new(Table::default);
static NAMES: LazyLock<Table<str>> = LazyLock::new(Table::default);
static TEXTS: LazyLock<Table<Box<str>>> = LazyLock::new(Table::default);

/// The digests of the texts that were met lately, where the low bits of it say, and who had it. Its pages are taken as they are written to.
static MET: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(0) }; REMEMBERED];

/// Equal values in use, by their digests.
struct Table<T: ?Sized>(Mutex<Lines<T>>);

struct Lines<T: ?Sized> {
    known: HashMap<u64, Weak<T>, RandomState>,
    /// How many there may be before those are taken out that nobody holds.
    most: usize,
}

impl<T: ?Sized> Default for Table<T> {
    fn default() -> Self {
        Self(Mutex::new(Lines { known: HashMap::default(), most: LINES }))
    }
}

impl<T: ?Sized + PartialEq> Table<T> {
    fn lines(&self) -> MutexGuard<'_, Lines<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one that is in use and has this digest.
    fn at(&self, digest: u64) -> Option<Arc<T>> {
        self.lines().known.get(&digest)?.upgrade()
    }

    /// The one that is in use and equals `value`.
    fn find(&self, digest: u64, value: &T) -> Option<Arc<T>> {
        self.at(digest).filter(|known| **known == *value)
    }

    /// Enters one; the one that came in between where there is one.
    fn enter(&self, digest: u64, new: Arc<T>) -> Arc<T> {
        let mut lines = self.lines();
        if lines.known.len() >= lines.most {
            lines.known.retain(|_, known| known.strong_count() > 0);
            lines.known.shrink_to_fit();
            lines.most = (lines.known.len() * 2).max(LINES);
        }
        match lines.known.get(&digest).and_then(Weak::upgrade) {
            Some(known) if *known == *new => known,
            // Of two values with one digest both are good, and the other one is known.
            Some(_) => new,
            None => {
                lines.known.insert(digest, Arc::downgrade(&new));
                new
            }
        }
    }

    /// How many lines there are, those included that nobody holds any more.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.lines().known.len()
    }
}

/// These facts, once.
pub(super) fn facts(facts: Facts) -> Arc<Facts> {
    let digest = digest(&facts);
    FACTS.find(digest, &facts).unwrap_or_else(|| FACTS.enter(digest, Arc::new(facts)))
}

/// These groupings, once.
pub(super) fn categories(categories: Vec<Category>) -> Arc<[Category]> {
    let digest = digest(&categories);
    CATEGORIES.find(digest, &categories).unwrap_or_else(|| CATEGORIES.enter(digest, categories.into()))
}

/// A short text that many have, such as the id of a grouping, once.
pub(super) fn name(name: &str) -> Arc<str> {
    let digest = xxh3_64(name.as_bytes());
    NAMES.find(digest, name).unwrap_or_else(|| NAMES.enter(digest, name.into()))
}

/// A text, with its digest, that others than `owner` have too: nothing for one that only the owner had lately. What is met for the first
/// time may stand in its owner's block; a text of its own, which each of those can hold who have it, is made when somebody else comes with
/// it.
pub(super) fn text(text: &str, digest: u64, owner: u64) -> Option<SharedText> {
    if text.len() < WORTH {
        return None;
    }
    let known = TEXTS.at(digest).filter(|known| ***known == *text);
    let common = known.or_else(|| met_elsewhere(digest, owner).then(|| TEXTS.enter(digest, Arc::new(text.into()))));
    common.map(SharedText::whole)
}

/// A whole block of texts that a scenario has which is there several times.
pub(super) fn block(block: TextBlock) -> TextBlock {
    let TextBlock(whole) = block;
    let digest = xxh3_64(whole.as_bytes());
    TextBlock(TEXTS.enter(digest, whole))
}

/// Whether a text was met lately with another owner. Remembers that it was met now.
fn met_elsewhere(digest: u64, owner: u64) -> bool {
    const OWNER: u32 = 24;
    let met = (digest & !((1 << OWNER) - 1)) | (owner >> (u64::BITS - OWNER));
    let Some(place) = usize::try_from(digest % REMEMBERED as u64).ok().and_then(|at| MET.get(at)) else { return false };
    // Whoever looks at the same place meanwhile may miss it once, and meets it the next time.
    let before = place.swap(met, Ordering::Relaxed);
    before != met && before >> OWNER == met >> OWNER
}

fn digest(value: &impl Hash) -> u64 {
    static SEED: LazyLock<RandomState> = LazyLock::new(RandomState::default);
    SEED.hash_one(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the tests of this process have no other text of.
    fn own(what: &str) -> String {
        format!("a text of the tests of what is common, long enough to be worth it: {what}")
    }

    #[test]
    fn a_text_is_common_when_somebody_else_comes_with_it() {
        let (one, another) = (1 << 60, 2 << 60);
        let said = own("met");
        let text = |said: &str, owner| text(said, xxh3_64(said.as_bytes()), owner);
        assert!(text(&said, one).is_none(), "the first time");
        assert!(text(&said, one).is_none(), "its owner again");
        let common = text(&said, another).unwrap();
        assert!(common.stands_with(&text(&said, one).unwrap()), "from then on for everyone");
        assert!(text("short", one).is_none() && text("short", another).is_none());
    }

    #[test]
    fn what_nobody_holds_is_forgotten() {
        let held = name("held");
        for at in 0..20 * LINES {
            name(&format!("passing {at}"));
        }
        assert!(NAMES.len() <= 4 * LINES, "{} lines", NAMES.len());
        assert!(Arc::ptr_eq(&held, &name("held")));
    }

    #[test]
    fn equal_facts_are_one_and_others_are_not() {
        let of = |tag: &str| facts(Facts { tags: vec![tag.into()], ..Facts::default() });
        let (one, two, other) = (of("same"), of("same"), of("other"));
        assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &other));
        assert_ne!(one, other);
    }
}
