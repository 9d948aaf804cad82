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
    /// Whether one client has this level alone.
    of_client: bool,
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

/// The reservation of an answer that is made part by part. As soon as all parts together are no
/// small answer any more, they have the room of large ones.
#[derive(Debug)]
pub struct GrowingAnswer {
    budget: AnswerBudget,
    reserved: Option<ReservedBytes>,
}

/// What is reserved for an answer until it is made and its length is known.
#[derive(Debug)]
pub struct ExpectedBytes {
    budget: AnswerBudget,
    reserved: ReservedBytes,
    /// What it is made from.
    source: Option<Arc<ReservedBytes>>,
}

/// The reservation of bytes that many clients may hold at once: the budget of the first one has
/// them until the last one lets go. While no client holds them, they are not reserved.
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
        Self::level(BudgetLimit::Bytes(AtomicUsize::new(limit)), None, false)
    }

    /// A share of this budget, of at most so many bytes.
    #[must_use]
    pub fn share(&self, limit: usize) -> Self {
        Self::level(BudgetLimit::Bytes(AtomicUsize::new(limit)), Some(self.clone()), true)
    }

    /// A part of this budget for one purpose of all clients, so that another purpose always has
    /// room: so many eighths of its limit, at least `least` bytes. It follows that limit.
    #[must_use]
    pub fn part(&self, eighths: usize, least: usize) -> Self {
        Self::level(BudgetLimit::Part { eighths, least }, Some(self.clone()), false)
    }

    /// The same as the share of one client.
    #[must_use]
    pub fn client_part(&self, eighths: usize, least: usize) -> Self {
        Self::level(BudgetLimit::Part { eighths, least }, Some(self.clone()), true)
    }

    fn level(limit: BudgetLimit, whole: Option<Self>, of_client: bool) -> Self {
        Self(Arc::new(BudgetLevel { limit, reserved: AtomicUsize::new(0), whole, of_client }))
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
        self.take(bytes)?;
        Ok(ReservedBytes { budget: self.clone(), bytes })
    }

    /// Counts bytes that are held in any case, even beyond the limit.
    pub(crate) fn count(&self, bytes: usize) -> ReservedBytes {
        self.add(bytes);
        ReservedBytes { budget: self.clone(), bytes }
    }

    fn add(&self, bytes: usize) {
        self.0.reserved.fetch_add(bytes, Ordering::Relaxed);
        if let Some(whole) = &self.0.whole {
            whole.add(bytes);
        }
    }

    fn take(&self, bytes: usize) -> Result<(), BudgetExceeded> {
        let limit = self.limit();
        let fits = |reserved: usize| reserved.checked_add(bytes).filter(|sum| *sum <= limit);
        let taken = self.0.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits);
        if taken.is_err() {
            return Err(if self.0.of_client {
                BudgetExceeded::Share { limit }
            } else {
                BudgetExceeded::Whole { limit }
            });
        }
        let Some(whole) = &self.0.whole else { return Ok(()) };
        whole.take(bytes).inspect_err(|_| self.free_here(bytes))
    }

    fn free(&self, bytes: usize) {
        self.free_here(bytes);
        if let Some(whole) = &self.0.whole {
            whole.free(bytes);
        }
    }

    fn free_here(&self, bytes: usize) {
        self.0.reserved.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl AnswerBudget {
    /// Small answers are reserved from `small`, larger ones from `large`.
    pub fn new(small: ByteBudget, large: ByteBudget) -> Self {
        Self { small, large, spare: None }
    }

    /// The same with `spare` in addition: answers for which the others have no room are reserved
    /// from it.
    #[must_use]
    pub fn with_spare(&self, spare: &ByteBudget) -> Self {
        Self { spare: Some(spare.clone()), ..self.clone() }
    }

    /// Reserves an answer of so many bytes.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve(&self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        let budget = if bytes <= SMALL_ANSWER_BYTES { &self.small } else { &self.large };
        budget.reserve(bytes).or_else(|exceeded| match &self.spare {
            Some(spare) => spare.reserve(bytes),
            None => Err(exceeded),
        })
    }

    /// Reserves an answer of so many bytes. One that is larger than the client's whole share takes
    /// all of it, so that a very long list can still be sent.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve_up_to(&self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        self.reserve(bytes.min(self.large.limit()))
    }

    /// Reserves an answer that is expected to have so many bytes, as [`Self::reserve_up_to`] does.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve_expected(&self, bytes: usize) -> Result<ExpectedBytes, BudgetExceeded> {
        Ok(ExpectedBytes { reserved: self.reserve_up_to(bytes)?, budget: self.clone(), source: None })
    }

    /// The same for an answer that is made from another one, whose bytes stay reserved until then:
    /// both together take at most the client's whole share.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for it.
    pub fn reserve_beside(&self, source: Arc<ReservedBytes>, bytes: usize) -> Result<ExpectedBytes, BudgetExceeded> {
        let most = self.large.limit().saturating_sub(source.bytes());
        Ok(ExpectedBytes { source: Some(source), ..self.reserve_expected(bytes.min(most))? })
    }

    /// The same for an answer that all clients share: it has the room of small ones, so that large
    /// answers of some clients never keep it from the others.
    #[must_use]
    pub fn for_all(&self) -> Self {
        Self { large: self.small.clone(), ..self.clone() }
    }
}

impl GrowingAnswer {
    /// An answer without a part.
    pub fn new(budget: AnswerBudget) -> Self {
        Self { budget, reserved: None }
    }

    /// Reserves a further part of so many bytes.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room; the earlier parts stay reserved.
    pub fn grow(&mut self, more: usize) -> Result<(), BudgetExceeded> {
        let before = self.reserved.as_ref().map_or(0, ReservedBytes::bytes);
        let all = before.saturating_add(more);
        let stays_small = (before <= SMALL_ANSWER_BYTES) == (all <= SMALL_ANSWER_BYTES);
        match &mut self.reserved {
            Some(reserved) if stays_small => reserved.grow(more),
            reserved => {
                *reserved = Some(self.budget.reserve(all)?);
                Ok(())
            }
        }
    }
}

impl ExpectedBytes {
    /// The reservation of the answer, which has so many bytes. One that is larger than the client's
    /// whole share has all of it. What it was made from is free, unless other clients hold it.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if the answer is longer than expected and there is no room for it.
    pub fn resized(self, bytes: usize) -> Result<ReservedBytes, BudgetExceeded> {
        let Self { budget, mut reserved, source } = self;
        let bytes = bytes.min(budget.large.limit());
        // The larger one of both is enlarged, so that no other client gets between.
        match source.and_then(Arc::into_inner) {
            Some(source) if source.bytes() > reserved.bytes() => reserved = source,
            _ => {}
        }
        if reserved.bytes() <= SMALL_ANSWER_BYTES && bytes > SMALL_ANSWER_BYTES {
            return budget.reserve(bytes);
        }
        if bytes > reserved.bytes() {
            reserved.grow(bytes - reserved.bytes())?;
        }
        reserved.shrink_to(bytes);
        Ok(reserved)
    }
}

impl SharedReservation {
    /// The reservation of an answer that all clients share, see [`AnswerBudget::for_all`].
    pub fn for_all() -> Self {
        Self { is_for_all: true, ..Self::default() }
    }

    /// Holds the bytes, of which there are so many. They are reserved from `budget` unless another
    /// client holds them already, which takes no lock. If two clients are the first at once, the
    /// bytes count twice until both let go.
    ///
    /// # Errors
    ///
    /// [`BudgetExceeded`] if there is no room for them.
    pub fn hold(&self, bytes: usize, budget: &AnswerBudget) -> Result<Arc<ReservedBytes>, BudgetExceeded> {
        if let Some(held) = self.held.load().upgrade() {
            return Ok(held);
        }
        let reserved =
            if self.is_for_all { budget.for_all().reserve_up_to(bytes) } else { budget.reserve_up_to(bytes) };
        Ok(self.begin(reserved?))
    }

    /// Has the bytes of a first client, which were reserved before they were made.
    pub fn begin(&self, reserved: ReservedBytes) -> Arc<ReservedBytes> {
        let reserved = Arc::new(reserved);
        self.held.store(Arc::new(Arc::downgrade(&reserved)));
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
        self.budget.take(more)?;
        self.bytes += more;
        Ok(())
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
        assert_eq!(budget.reserve(5).unwrap_err(), BudgetExceeded::Whole { limit: 10 });
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
        assert_eq!(one.reserve(7).unwrap_err(), BudgetExceeded::Share { limit: 6 });
        let held = one.reserve(6).unwrap();
        assert_eq!(other.reserve(5).unwrap_err(), BudgetExceeded::Whole { limit: 10 });
        assert_eq!(other.reserved(), 0, "a refused reservation leaves no bytes reserved");
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
        assert_eq!(client.reserve(11).unwrap_err(), BudgetExceeded::Share { limit: 10 });
        assert_eq!(bodies.reserve(26).unwrap_err(), BudgetExceeded::Whole { limit: 25 });
        budget.set_limit(400);
        assert_eq!(bodies.limit(), 100);
        assert_eq!(client.limit(), 25);
    }

    #[test]
    fn a_reservation_grows_and_shrinks() {
        let budget = ByteBudget::new(10);
        let mut held = budget.share(8).reserve(2).unwrap();
        held.grow(6).unwrap();
        assert_eq!(held.grow(1).unwrap_err(), BudgetExceeded::Share { limit: 8 });
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
        let other = SharedReservation::default().hold(150_000, &budget).unwrap_err();
        assert_eq!(other, BudgetExceeded::Share { limit: 200_000 });
        drop(first);
        assert_eq!(whole.reserved(), 150_000);
        drop(second);
        assert_eq!(whole.reserved(), 0);
        let again = shared.hold(150_000, &budget).unwrap();
        assert_eq!(again.bytes(), 150_000);
        assert!(SharedReservation::default().hold(SMALL_ANSWER_BYTES, &budget).is_ok(), "a small one has room");
        drop(again);
        let longest = shared.hold(1 << 30, &budget).unwrap();
        assert_eq!(longest.bytes(), 200_000, "a very long one takes the whole share");
    }

    #[test]
    fn the_parts_of_an_answer_count_together() {
        let whole = ByteBudget::new(1_000_000);
        let budget = AnswerBudget::new(whole.clone(), whole.share(100_000));
        let mut answer = GrowingAnswer::new(budget);
        answer.grow(SMALL_ANSWER_BYTES).unwrap();
        assert_eq!(whole.reserved(), SMALL_ANSWER_BYTES);
        answer.grow(30_000).unwrap();
        let both = SMALL_ANSWER_BYTES + 30_000;
        assert_eq!(whole.reserved(), both);
        assert_eq!(answer.grow(30_000).unwrap_err(), BudgetExceeded::Share { limit: 100_000 });
        assert_eq!(whole.reserved(), both);
        drop(answer);
        assert_eq!(whole.reserved(), 0);
    }

    #[test]
    fn an_expected_answer_is_resized_and_takes_the_place_of_what_it_was_made_from() {
        let whole = ByteBudget::new(400_000);
        let budget = AnswerBudget::new(whole.clone(), whole.share(200_000));
        let plain = Arc::new(budget.reserve_expected(100_000).unwrap().resized(150_000).unwrap());
        assert_eq!(whole.reserved(), 150_000);
        let coded = budget.reserve_beside(plain, 150_000).unwrap();
        assert_eq!(whole.reserved(), 200_000, "both together take the share");
        let others = whole.reserve(200_000).unwrap();
        let coded = coded.resized(70_000).unwrap();
        assert_eq!(whole.reserved(), 270_000);
        drop((coded, others));
        let short = budget.reserve_expected(1_000).unwrap();
        let long = short.resized(70_000).unwrap();
        assert_eq!(budget.reserve(140_000).unwrap_err(), BudgetExceeded::Share { limit: 200_000 }, "it is a large one");
        let further = budget.reserve_expected(120_000).unwrap();
        assert_eq!(further.resized(140_000).unwrap_err(), BudgetExceeded::Share { limit: 200_000 });
        drop(long);
        assert_eq!(budget.reserve_expected(70_000).unwrap().resized(1 << 30).unwrap().bytes(), 200_000);
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
