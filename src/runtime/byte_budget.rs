//! One budget of bytes for everything that is held for clients: bodies being read, calls that wait,
//! turns, results, and answers being written.
//!
//! Bytes are reserved before they are held, and are free again when the reservation is dropped. A
//! budget has shares, such as one for each connection and each caller: what is reserved in a share
//! counts in the whole budget too, so that one client cannot use it up. A reservation never waits:
//! if there is no room, it is refused at once, and the client gets that as its answer.
//!
//! It never measures memory: the code that reserves says how many bytes will be held, by their
//! escaped size where they are escaped.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;

/// An answer of at most so many bytes finds room even while large ones use up theirs, so that an
/// operator can still look.
const SMALL_ANSWER_BYTES: usize = 64 * 1024;

/// A budget of bytes, or a share of one. Clones share the same count.
#[derive(Debug, Clone)]
pub struct ByteBudget(Arc<BudgetLevel>);

#[derive(Debug)]
struct BudgetLevel {
    limit: BudgetLimit,
    reserved: AtomicUsize,
    /// The budget that this one is a share of.
    whole: Option<ByteBudget>,
    owner: BudgetOwner,
}

/// Whose bytes are reserved in a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BudgetOwner {
    All,
    /// One client alone.
    Client,
    Operators,
}

/// The most bytes that may be reserved at once.
#[derive(Debug)]
enum BudgetLimit {
    Bytes(AtomicUsize),
    /// So many eighths of the limit of the whole budget, and at least `least`.
    Part {
        eighths: usize,
        least: usize,
    },
}

/// Reserved bytes. Dropping it frees them.
#[derive(Debug)]
pub struct ReservedBytes {
    budget: ByteBudget,
    bytes: usize,
}

/// The budgets that the answers of a client are reserved from. Clones share the same counts.
#[derive(Debug, Clone)]
pub struct AnswerBudget {
    small: ByteBudget,
    large: ByteBudget,
    /// What the client has in addition when the others have no room.
    spare: Option<ByteBudget>,
}

/// The reservation of an answer whose length is not known yet: it is made part by part, or reserved
/// before it is made. It is in the budget of its length, or else in the spare one.
#[derive(Debug)]
pub struct AnswerBytes {
    budget: AnswerBudget,
    reserved: ReservedBytes,
    /// What it is made from.
    source: Option<Arc<ReservedBytes>>,
}

/// The reservation of bytes that many clients may hold at once: the budget of the first one has
/// them until the last one lets go. While no client holds them, they are not reserved. An operator
/// that holds them in the part for operators has them there alone: clients that request the same
/// bytes could use that part up.
#[derive(Debug, Default)]
pub struct SharedReservation {
    held: ArcSwap<Weak<ReservedBytes>>,
    is_for_all: bool,
}

/// Why bytes could not be reserved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetExceeded {
    /// The share of this client has no room; others have. Answered with 429.
    #[error("this client already uses its share of the memory for clients ({limit} bytes)")]
    Share {
        /// The size of the share in bytes.
        limit: usize,
    },
    /// The budget of all clients has no room. Answered with 503.
    #[error("the memory for clients is in use ({limit} bytes)")]
    Whole {
        /// The size of the budget in bytes.
        limit: usize,
    },
}

impl ByteBudget {
    /// A budget of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self::level(
            BudgetLimit::Bytes(AtomicUsize::new(limit)),
            None,
            BudgetOwner::All,
        )
    }

    /// A share of this budget, of at most so many bytes.
    #[must_use]
    pub fn share(&self, limit: usize) -> Self {
        Self::level(
            BudgetLimit::Bytes(AtomicUsize::new(limit)),
            Some(self.clone()),
            BudgetOwner::Client,
        )
    }

    /// A part of this budget for one purpose of all clients, so that another purpose always has
    /// room: so many eighths of its limit, at least `least` bytes. It follows that limit.
    #[must_use]
    pub fn part(&self, eighths: usize, least: usize) -> Self {
        Self::level(
            BudgetLimit::Part { eighths, least },
            Some(self.clone()),
            BudgetOwner::All,
        )
    }

    /// The same as the share of one client.
    #[must_use]
    pub fn client_part(&self, eighths: usize, least: usize) -> Self {
        Self::level(
            BudgetLimit::Part { eighths, least },
            Some(self.clone()),
            BudgetOwner::Client,
        )
    }

    /// The same for operators. What is reserved there is shared with no other client, see
    /// [`SharedReservation`].
    #[must_use]
    pub fn operators_part(&self, eighths: usize, least: usize) -> Self {
        Self::level(
            BudgetLimit::Part { eighths, least },
            Some(self.clone()),
            BudgetOwner::Operators,
        )
    }

    fn level(limit: BudgetLimit, whole: Option<Self>, owner: BudgetOwner) -> Self {
        Self(Arc::new(BudgetLevel {
            limit,
            reserved: AtomicUsize::new(0),
            whole,
            owner,
        }))
    }

    /// Changes the limit. What is reserved stays reserved. A part of a budget keeps following that
    /// one.
    pub fn set_limit(&self, limit: usize) {
        if let BudgetLimit::Bytes(bytes) = &self.0.limit {
            bytes.store(limit, Ordering::Relaxed);
        }
    }

    /// The most bytes that may be reserved at once.
    pub fn limit(&self) -> usize {
        match &self.0.limit {
            BudgetLimit::Bytes(bytes) => bytes.load(Ordering::Relaxed),
            BudgetLimit::Part { eighths, least } => {
                let whole = self.0.whole.as_ref().map_or(0, Self::limit);
                // In this order, the product does not overflow.
                (whole / 8 * eighths + whole % 8 * eighths / 8).max(*least)
            }
        }
    }

    /// The bytes that are reserved now.
    pub fn reserved(&self) -> usize {
        self.0.reserved.load(Ordering::Relaxed)
    }

    /// Reserves so many bytes, here and in every budget that this one is a share of.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if one of them has no room; then no bytes are reserved in any.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        let mut reserved = ReservedBytes {
            budget: self.clone(),
            bytes: 0,
        };
        reserved.grow(bytes)?;
        Ok(reserved)
    }

    /// Counts bytes that are held in any case, even beyond the limit.
    pub(crate) fn count(&self, bytes: usize) -> ReservedBytes {
        self.add(bytes);
        ReservedBytes {
            budget: self.clone(),
            bytes,
        }
    }

    fn add(&self, bytes: usize) {
        self.0.reserved.fetch_add(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.add(bytes);
        }
    }

    /// Reserves what so many bytes need more than `before` has, here and in every budget that this
    /// one is a share of.
    fn take(&self, bytes: usize, before: &ReservedBytes) -> Result<(), BudgetExceeded> {
        let more = bytes.saturating_sub(before.bytes_in(self));
        let limit = self.limit();
        // Fewer bytes always have room, also if the limit was lowered.
        let fits = |reserved: usize| {
            reserved
                .checked_add(more)
                .filter(|sum| more == 0 || *sum <= limit)
        };
        let taken = self
            .0
            .reserved
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if taken.is_err() {
            return Err(if self.0.owner == BudgetOwner::Client {
                BudgetExceeded::Share { limit }
            } else {
                BudgetExceeded::Whole { limit }
            });
        }
        let Some(whole) = &self.0.whole else {
            return Ok(());
        };
        whole
            .take(bytes, before)
            .inspect_err(|_| self.free_here(more))
    }

    fn free(&self, bytes: usize) {
        self.free_here(bytes);
        if let Some(whole) = &self.0.whole {
            whole.free(bytes);
        }
    }

    /// Whether this is `other`, or a share of it.
    fn is_within(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || self
                .0
                .whole
                .as_ref()
                .is_some_and(|whole| whole.is_within(other))
    }

    fn free_here(&self, bytes: usize) {
        self.0.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl AnswerBudget {
    /// Small answers are reserved from `small`, larger ones from `large`.
    pub fn new(small: ByteBudget, large: ByteBudget) -> Self {
        Self {
            small,
            large,
            spare: None,
        }
    }

    /// The same with `spare` in addition: answers for which the others have no room are reserved
    /// from it.
    #[must_use]
    pub fn with_spare(&self, spare: &ByteBudget) -> Self {
        Self {
            spare: Some(spare.clone()),
            ..self.clone()
        }
    }

    /// Reserves an answer of so many bytes.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        let mut answer = self.empty();
        answer.resize(bytes)?;
        Ok(answer.reserved)
    }

    /// Reserves an answer of so many bytes. One that is larger than the client's whole share takes
    /// all of it, so that a very long list can still be sent.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve_up_to(&self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        self.reserve_expected(bytes).map(|answer| answer.reserved)
    }

    /// An answer without a part.
    pub fn empty(&self) -> AnswerBytes {
        let reserved = ReservedBytes {
            budget: self.small.clone(),
            bytes: 0,
        };
        AnswerBytes {
            budget: self.clone(),
            reserved,
            source: None,
        }
    }

    /// Reserves an answer that is expected to have so many bytes, as [`Self::reserve_up_to`] does.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve_expected(&self, bytes: usize) -> Result<AnswerBytes, BudgetExceeded> {
        let mut answer = self.empty();
        answer.resize_up_to(bytes)?;
        Ok(answer)
    }

    /// The same for an answer that is made from another one, whose bytes stay reserved until then:
    /// both together take at most the client's whole share.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve_beside(
        &self,
        source: Arc<ReservedBytes>,
        bytes: usize,
    ) -> Result<AnswerBytes, BudgetExceeded> {
        let mut answer = AnswerBytes {
            source: Some(source),
            ..self.empty()
        };
        answer.resize_up_to(bytes)?;
        Ok(answer)
    }

    /// Whether bytes are reserved from one of these budgets.
    fn has(&self, reserved: &ReservedBytes) -> bool {
        [Some(&self.small), Some(&self.large), self.spare.as_ref()]
            .into_iter()
            .flatten()
            .any(|own| reserved.is_of(own))
    }

    /// The same for an answer that all clients share: it has the room of small ones, so that large
    /// answers of some clients never keep it from the others.
    #[must_use]
    pub fn for_all(&self) -> Self {
        Self {
            large: self.small.clone(),
            ..self.clone()
        }
    }
}

impl AnswerBytes {
    /// How many bytes are reserved.
    pub fn bytes(&self) -> usize {
        self.reserved.bytes
    }

    /// Reserves so many bytes in all from now on.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for them; what was reserved before stays reserved.
    pub fn resize(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        self.place(|_| bytes)
    }

    /// The same, but an answer that is larger than a whole budget takes all of it that what it is
    /// made from leaves.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it; what was reserved before stays reserved.
    pub fn resize_up_to(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        let source = self.source.clone();
        self.place(|budget| {
            let beside = source
                .as_ref()
                .filter(|source| source.is_of(budget))
                .map_or(0, |source| source.bytes);
            bytes.min(budget.limit().saturating_sub(beside))
        })
    }

    /// The reservation of the answer, which was made and has so many bytes. One that is larger than
    /// a whole budget has all of it. What it was made from is free, unless other clients hold it.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if the answer is longer than expected and there is no room for it.
    pub fn made(mut self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        // The larger one of both is resized, so that no other client gets between. One in the share
        // of another client stays that client's.
        match self.source.take().and_then(Arc::into_inner) {
            Some(source) if source.bytes > self.reserved.bytes && self.budget.has(&source) => {
                self.reserved = source;
            }
            _ => {}
        }
        self.resize_up_to(bytes)?;
        Ok(self.reserved)
    }

    /// Counts so many further bytes, which are held in any case, even beyond the limit.
    pub(crate) fn count(&mut self, more: usize) {
        self.reserved.set(self.reserved.bytes.saturating_add(more));
    }

    /// Reserves as many bytes as `wanted` gives for a budget: in the budget of that length, or else
    /// in the spare one.
    fn place(&mut self, wanted: impl Fn(&ByteBudget) -> usize) -> Result<(), BudgetExceeded> {
        let Self {
            budget, reserved, ..
        } = self;
        let bytes = wanted(&budget.large);
        let usual = if bytes <= SMALL_ANSWER_BYTES {
            &budget.small
        } else {
            &budget.large
        };
        reserved
            .move_to(usual, bytes)
            .or_else(|exceeded| match &budget.spare {
                Some(spare) => reserved.move_to(spare, wanted(spare)),
                None => Err(exceeded),
            })
    }
}

impl SharedReservation {
    /// The reservation of an answer that all clients share, see [`AnswerBudget::for_all`].
    pub fn for_all() -> Self {
        Self {
            is_for_all: true,
            ..Self::default()
        }
    }

    /// Holds the bytes, of which there are so many. They are reserved from `budget` unless another
    /// client holds them already, which takes no lock. If two clients are the first at once, the
    /// bytes count twice until both let go.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for them.
    pub fn hold(
        &self,
        bytes: usize,
        budget: &AnswerBudget,
    ) -> Result<Arc<ReservedBytes>, BudgetExceeded> {
        if let Some(held) = self.held.load().upgrade() {
            return Ok(held);
        }
        let reserved = if self.is_for_all {
            budget.for_all().reserve_up_to(bytes)
        } else {
            budget.reserve_up_to(bytes)
        };
        Ok(self.begin(reserved?))
    }

    /// Has the bytes of a first client, which were reserved before they were made.
    pub fn begin(&self, reserved: ReservedBytes) -> Arc<ReservedBytes> {
        let is_shared = reserved.budget.0.owner != BudgetOwner::Operators;
        let reserved = Arc::new(reserved);
        if is_shared {
            self.held.store(Arc::new(Arc::downgrade(&reserved)));
        }
        reserved
    }
}

impl ReservedBytes {
    /// How many bytes are reserved.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reserves more bytes.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room; what was reserved before stays reserved.
    pub fn grow(&mut self, more: usize) -> Result<(), BudgetExceeded> {
        let budget = self.budget.clone();
        self.move_to(&budget, self.bytes.saturating_add(more))
    }

    /// Has so many bytes of this budget from now on. In what both budgets are shares of, only the
    /// difference changes: there is no moment in which the old and the new bytes are reserved.
    fn move_to(&mut self, budget: &ByteBudget, bytes: usize) -> Result<(), BudgetExceeded> {
        budget.take(bytes, self)?;
        let moved = Self {
            budget: budget.clone(),
            bytes,
        };
        let mut level = Some(&self.budget);
        while let Some(old) = level {
            old.free_here(self.bytes.saturating_sub(moved.bytes_in(old)));
            level = old.0.whole.as_ref();
        }
        // Its bytes are free already, as far as they are not those of the new one.
        self.bytes = 0;
        *self = moved;
        Ok(())
    }

    /// How many of the bytes count in this budget: all, or none.
    fn bytes_in(&self, budget: &ByteBudget) -> usize {
        if self.budget.is_within(budget) {
            self.bytes
        } else {
            0
        }
    }

    /// Whether they are reserved from this budget itself.
    fn is_of(&self, budget: &ByteBudget) -> bool {
        Arc::ptr_eq(&self.budget.0, &budget.0)
    }

    /// Counts so many bytes from now on, which are held in any case, even beyond the limit.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.budget.add(bytes.saturating_sub(self.bytes));
        self.bytes = self.bytes.max(bytes);
        self.shrink_to(bytes);
    }

    /// Frees all but so many bytes. It never reserves more.
    pub fn shrink_to(&mut self, bytes: usize) {
        let freed = self.bytes.saturating_sub(bytes);
        self.budget.free(freed);
        self.bytes -= freed;
    }
}

impl Drop for ReservedBytes {
    fn drop(&mut self) {
        self.budget.free(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_reserved_is_free_again_when_it_is_dropped() {
        let budget = ByteBudget::new(10);
        let first = budget.reserve(6).unwrap();
        assert_eq!(
            budget.reserve(5).unwrap_err(),
            BudgetExceeded::Whole { limit: 10 }
        );
        let second = budget.reserve(4).unwrap();
        assert_eq!(budget.reserved(), 10);
        drop(first);
        assert_eq!(second.bytes(), 4);
        assert_eq!(budget.reserved(), 4);
    }

    #[test]
    fn a_share_counts_in_the_whole_budget_too() {
        let budget = ByteBudget::new(10);
        let one = budget.share(6);
        let other = budget.share(6);
        assert_eq!(
            one.reserve(7).unwrap_err(),
            BudgetExceeded::Share { limit: 6 }
        );
        let held = one.reserve(6).unwrap();
        assert_eq!(
            other.reserve(5).unwrap_err(),
            BudgetExceeded::Whole { limit: 10 }
        );
        assert_eq!(
            other.reserved(),
            0,
            "a refused reservation leaves no bytes reserved"
        );
        drop(held);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn a_part_follows_the_whole_budget() {
        let budget = ByteBudget::new(100);
        let bodies = budget.part(2, 0);
        let client = bodies.client_part(2, 10);
        assert_eq!(bodies.limit(), 25);
        assert_eq!(client.limit(), 10);
        assert_eq!(
            client.reserve(11).unwrap_err(),
            BudgetExceeded::Share { limit: 10 }
        );
        assert_eq!(
            bodies.reserve(26).unwrap_err(),
            BudgetExceeded::Whole { limit: 25 }
        );
        budget.set_limit(400);
        assert_eq!(bodies.limit(), 100);
        assert_eq!(client.limit(), 25);
    }

    #[test]
    fn a_reservation_grows_and_shrinks() {
        let budget = ByteBudget::new(10);
        let mut held = budget.share(8).reserve(2).unwrap();
        held.grow(6).unwrap();
        assert_eq!(
            held.grow(1).unwrap_err(),
            BudgetExceeded::Share { limit: 8 }
        );
        assert_eq!(held.bytes(), 8);
        held.shrink_to(3);
        held.shrink_to(5);
        assert_eq!(held.bytes(), 3, "shrinking never reserves more");
        assert_eq!(budget.reserved(), 3);
        assert!(budget.reserve(usize::MAX).is_err(), "sums do not overflow");
        drop(held);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn what_is_held_in_any_case_counts_beyond_the_limit() {
        let budget = ByteBudget::new(10);
        let mut held = budget.share(5).count(8);
        held.set(12);
        assert_eq!(budget.reserved(), 12);
        assert!(budget.reserve(1).is_err());
        held.set(3);
        assert_eq!(budget.reserved(), 3);
        assert_eq!(held.bytes(), 3);
        drop(held);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn shared_bytes_are_reserved_once_and_only_while_a_client_holds_them() {
        let whole = ByteBudget::new(300_000);
        let budget = AnswerBudget::new(whole.clone(), whole.share(200_000));
        let shared = SharedReservation::default();
        let first = shared.hold(150_000, &budget).unwrap();
        let second = shared.hold(150_000, &budget).unwrap();
        assert_eq!(whole.reserved(), 150_000);
        let other = SharedReservation::default()
            .hold(150_000, &budget)
            .unwrap_err();
        assert_eq!(other, BudgetExceeded::Share { limit: 200_000 });
        drop(first);
        assert_eq!(whole.reserved(), 150_000);
        drop(second);
        assert_eq!(whole.reserved(), 0);
        let again = shared.hold(150_000, &budget).unwrap();
        assert_eq!(again.bytes(), 150_000);
        assert!(
            SharedReservation::default()
                .hold(SMALL_ANSWER_BYTES, &budget)
                .is_ok(),
            "a small one has room"
        );
        drop(again);
        let longest = shared.hold(1 << 30, &budget).unwrap();
        assert_eq!(
            longest.bytes(),
            200_000,
            "a very long one takes the whole share"
        );
    }

    #[test]
    fn bytes_in_the_part_for_operators_are_shared_with_no_client() {
        let (clients, spare, operator) = with_spare();
        let client = AnswerBudget::new(clients.clone(), clients.client_part(2, 0));
        let others = clients.reserve(650_000).unwrap();
        let shared = SharedReservation::default();
        let held = shared.hold(80_000, &operator).unwrap();
        assert_eq!(spare.reserved(), 80_000);
        assert_eq!(
            shared.hold(80_000, &client).unwrap_err(),
            BudgetExceeded::Whole { limit: 700_000 }
        );
        drop(others);
        let own = shared.hold(80_000, &client).unwrap();
        let again = shared.hold(80_000, &operator).unwrap();
        assert!(
            Arc::ptr_eq(&own, &again),
            "what a client holds is shared with operators, too"
        );
        drop((held, own, again));
        assert_eq!([clients.reserved(), spare.reserved()], [0, 0]);
    }

    #[test]
    fn the_parts_of_an_answer_count_together() {
        let whole = ByteBudget::new(1_000_000);
        let budget = AnswerBudget::new(whole.clone(), whole.share(100_000));
        let mut answer = budget.empty();
        answer.resize(SMALL_ANSWER_BYTES).unwrap();
        assert_eq!(whole.reserved(), SMALL_ANSWER_BYTES);
        answer.resize(90_000).unwrap();
        assert_eq!(whole.reserved(), 90_000);
        assert_eq!(
            answer.resize(120_000).unwrap_err(),
            BudgetExceeded::Share { limit: 100_000 }
        );
        assert_eq!(whole.reserved(), 90_000);
        answer.count(20_000);
        assert_eq!(
            whole.reserved(),
            110_000,
            "what is there in any case counts beyond the limit"
        );
        drop(answer);
        assert_eq!(whole.reserved(), 0);
    }

    #[test]
    fn an_answer_that_becomes_large_needs_no_room_for_both_sizes() {
        let whole = ByteBudget::new(100_000);
        let large = whole.share(90_000);
        let budget = AnswerBudget::new(whole.clone(), large.clone());
        let mut answer = budget.empty();
        answer.resize(60_000).unwrap();
        answer.resize(80_000).unwrap();
        assert_eq!([whole.reserved(), large.reserved()], [80_000, 80_000]);
        assert!(answer.resize(90_001).is_err());
        assert_eq!([whole.reserved(), large.reserved()], [80_000, 80_000]);
        answer.resize(10_000).unwrap();
        assert_eq!([whole.reserved(), large.reserved()], [10_000, 0]);
        drop(answer);
        assert_eq!(whole.reserved(), 0);
    }

    /// Of 800,000 bytes, 100,000 are the spare room of some.
    fn with_spare() -> (ByteBudget, ByteBudget, AnswerBudget) {
        let whole = ByteBudget::new(800_000);
        let clients = whole.part(7, 0);
        let spare = whole.operators_part(1, 0);
        let budget =
            AnswerBudget::new(clients.clone(), clients.client_part(2, 0)).with_spare(&spare);
        (clients, spare, budget)
    }

    #[test]
    fn an_answer_that_began_while_there_was_room_goes_on_in_the_spare_one() {
        let (clients, spare, budget) = with_spare();
        let mut answer = budget.empty();
        answer.resize(70_000).unwrap();
        assert_eq!([clients.reserved(), spare.reserved()], [70_000, 0]);
        let others = clients.reserve(625_000).unwrap();
        answer.resize(90_000).unwrap();
        assert_eq!([clients.reserved(), spare.reserved()], [625_000, 90_000]);
        assert!(answer.resize(110_000).is_err());
        assert_eq!(spare.reserved(), 90_000);
        let listed = budget.reserve_expected(5_000).unwrap();
        let listed = listed.made(10_000).unwrap();
        assert_eq!([clients.reserved(), spare.reserved()], [635_000, 90_000]);
        drop((others, answer, listed));
        assert_eq!([clients.reserved(), spare.reserved()], [0, 0]);
    }

    #[test]
    fn a_list_that_is_longer_than_the_spare_room_takes_all_of_it() {
        let (clients, spare, budget) = with_spare();
        let others = clients.reserve(650_000).unwrap();
        let plain = budget
            .reserve_expected(150_000)
            .unwrap()
            .made(160_000)
            .unwrap();
        assert_eq!(spare.reserved(), 100_000);
        let coded = budget.reserve_beside(Arc::new(plain), 160_000).unwrap();
        assert_eq!(spare.reserved(), 100_000, "both together take it");
        let coded = coded.made(70_000).unwrap();
        assert_eq!([clients.reserved(), spare.reserved()], [650_000, 70_000]);
        drop((others, coded));
        assert_eq!([clients.reserved(), spare.reserved()], [0, 0]);
    }

    #[test]
    fn an_expected_answer_is_resized_and_takes_the_room_of_what_it_was_made_from() {
        let whole = ByteBudget::new(400_000);
        let budget = AnswerBudget::new(whole.clone(), whole.share(200_000));
        let plain = Arc::new(
            budget
                .reserve_expected(100_000)
                .unwrap()
                .made(150_000)
                .unwrap(),
        );
        assert_eq!(whole.reserved(), 150_000);
        let coded = budget.reserve_beside(plain, 150_000).unwrap();
        assert_eq!(whole.reserved(), 200_000, "both together take the share");
        let others = whole.reserve(200_000).unwrap();
        let coded = coded.made(70_000).unwrap();
        assert_eq!(whole.reserved(), 270_000);
        drop((coded, others));
        let short = budget.reserve_expected(1_000).unwrap();
        let long = short.made(70_000).unwrap();
        assert_eq!(
            budget.reserve(140_000).unwrap_err(),
            BudgetExceeded::Share { limit: 200_000 },
            "it is a large one"
        );
        let further = budget.reserve_expected(120_000).unwrap();
        assert_eq!(
            further.made(140_000).unwrap_err(),
            BudgetExceeded::Share { limit: 200_000 }
        );
        drop(long);
        assert_eq!(
            budget
                .reserve_expected(70_000)
                .unwrap()
                .made(1 << 30)
                .unwrap()
                .bytes(),
            200_000
        );
        assert_eq!(whole.reserved(), 0);
    }

    #[test]
    fn what_an_answer_is_made_from_stays_in_the_share_of_another_client() {
        let whole = ByteBudget::new(1_000_000);
        let shares = [whole.share(300_000), whole.share(300_000)];
        let one = AnswerBudget::new(whole.clone(), shares[0].clone());
        let other = AnswerBudget::new(whole.clone(), shares[1].clone());
        let source = Arc::new(one.reserve(200_000).unwrap());
        let coded = other
            .reserve_beside(source, 150_000)
            .unwrap()
            .made(160_000)
            .unwrap();
        assert_eq!([shares[0].reserved(), shares[1].reserved()], [0, 160_000]);
        drop(coded);
        assert_eq!(whole.reserved(), 0);
    }

    #[test]
    fn a_lower_limit_refuses_until_enough_is_free() {
        let budget = ByteBudget::new(10);
        let held = budget.reserve(8).unwrap();
        budget.set_limit(4);
        assert!(budget.reserve(1).is_err());
        drop(held);
        assert!(budget.reserve(4).is_ok());
    }
}
