//! The table of operations that are followed or over, within its limits. Pure.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::Notify;

use super::limits::TrackerLimits;
use crate::model::Operation;

/// Roughly how many bytes an entry needs besides its texts.
const FIXED: usize = 1_000;

/// All operations that are kept, in the order of their start.
#[derive(Debug, Default)]
pub(super) struct OperationTable {
    entries: VecDeque<OperationEntry>,
}

#[derive(Debug)]
struct OperationEntry {
    operation: Arc<Operation>,
    /// Wakes the task that follows it.
    poke: Arc<Notify>,
}

impl OperationTable {
    /// Adds an operation. Those that are over make room, the oldest first. Returns the forgotten
    /// ids and what wakes its follower; `None` if there is no room.
    pub(super) fn admit(
        &mut self,
        operation: Arc<Operation>,
        limits: &TrackerLimits,
    ) -> Option<(Vec<Arc<str>>, Arc<Notify>)> {
        let going = self.entries.iter().filter(|entry| !entry.operation.state.is_over()).count();
        if going >= limits.most {
            return None;
        }
        let forgotten = self.make_room(limits.most - 1, limits.bytes.saturating_sub(weight(&operation)));
        Some((forgotten, self.take_up(operation)))
    }

    /// Adds one that was stored.
    pub(super) fn take_up(&mut self, operation: Arc<Operation>) -> Arc<Notify> {
        let poke = Arc::<Notify>::default();
        self.entries.push_back(OperationEntry { operation, poke: Arc::clone(&poke) });
        poke
    }

    /// Forgets those that are over, the oldest first, until at most `most` entries with `bytes`
    /// bytes are left.
    pub(super) fn make_room(&mut self, most: usize, bytes: usize) -> Vec<Arc<str>> {
        let mut held: usize = self.entries.iter().map(|entry| weight(&entry.operation)).sum();
        let (mut forgotten, mut at) = (Vec::new(), 0);
        while (self.entries.len() > most || held > bytes) && at < self.entries.len() {
            if !self.entries[at].operation.state.is_over() {
                at += 1;
            } else if let Some(entry) = self.entries.remove(at) {
                held -= weight(&entry.operation);
                forgotten.push(Arc::clone(&entry.operation.id));
            }
        }
        forgotten
    }

    /// Forgets those that were over before `then`.
    pub(super) fn forget_before(&mut self, then: Timestamp) -> Vec<Arc<str>> {
        let old = |entry: &OperationEntry| entry.operation.ended_at.is_some_and(|ended| ended < then);
        let forgotten =
            self.entries.iter().filter(|entry| old(entry)).map(|entry| Arc::clone(&entry.operation.id)).collect();
        self.entries.retain(|entry| !old(entry));
        forgotten
    }

    /// Changes one that is running, and wakes its follower. `None` if it does not exist or is over:
    /// an end is final.
    pub(super) fn change(&mut self, id: &str, change: impl FnOnce(&mut Operation)) -> Option<Arc<Operation>> {
        let entry = self.entries.iter_mut().find(|entry| *entry.operation.id == *id)?;
        if entry.operation.state.is_over() {
            return None;
        }
        change(Arc::make_mut(&mut entry.operation));
        entry.poke.notify_one();
        Some(Arc::clone(&entry.operation))
    }

    /// Wakes the follower of one.
    pub(super) fn poke(&self, id: &str) -> Arc<Notify> {
        let entry = self.entries.iter().find(|entry| *entry.operation.id == *id);
        entry.map(|entry| Arc::clone(&entry.poke)).unwrap_or_default()
    }

    /// The operation with this id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Operation>> {
        self.all().find(|operation| *operation.id == *id).cloned()
    }

    /// All of them, in the order of their start.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<Operation>> {
        self.entries.iter().map(|entry| &entry.operation)
    }
}

fn weight(operation: &Operation) -> usize {
    operation.weight() + FIXED
}

#[cfg(test)]
mod tests {
    use super::super::tests::operation;
    use super::*;
    use crate::model::OperationState;

    fn end(book: &mut OperationTable, id: &str, at: i64) {
        let ended = book.change(id, |operation| {
            operation.state = OperationState::Succeeded;
            operation.ended_at = Timestamp::from_second(at).ok();
        });
        assert!(ended.is_some());
    }

    fn ids(book: &OperationTable) -> Vec<&str> {
        book.all().map(|operation| &*operation.id).collect()
    }

    #[test]
    fn those_that_go_on_keep_their_place_and_no_more_are_taken_up() {
        let limits = TrackerLimits { most: 2, ..TrackerLimits::for_tests() };
        let mut book = OperationTable::default();
        for id in ["1", "2"] {
            assert!(book.admit(Arc::new(operation(id)), &limits).is_some());
        }
        assert!(book.admit(Arc::new(operation("3")), &limits).is_none());
        end(&mut book, "2", 1);
        let (forgotten, _) = book.admit(Arc::new(operation("3")), &limits).unwrap();
        assert_eq!(forgotten, vec!["2".into()]);
        assert_eq!(ids(&book), vec!["1", "3"]);
    }

    #[test]
    fn an_end_is_an_end() {
        let mut book = OperationTable::default();
        book.take_up(Arc::new(operation("1")));
        end(&mut book, "1", 1);
        assert!(book.change("1", |operation| operation.state = OperationState::Running).is_none());
        assert_eq!(book.get("1").unwrap().state, OperationState::Succeeded);
        assert!(book.change("2", |_| {}).is_none());
    }

    #[test]
    fn what_was_over_long_ago_is_forgotten() {
        let mut book = OperationTable::default();
        for id in ["1", "2", "3"] {
            book.take_up(Arc::new(operation(id)));
        }
        end(&mut book, "1", 10);
        end(&mut book, "3", 20);
        assert_eq!(book.forget_before(Timestamp::from_second(15).unwrap()), [Arc::from("1")]);
        assert_eq!(ids(&book), ["2", "3"]);
    }
}
