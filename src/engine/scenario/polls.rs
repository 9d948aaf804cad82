//! The polls of one scenario as data: the planned one, the one under way, and the last one.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// The polls of one scenario.
pub(super) struct Polls {
    /// When the next one is planned, on both clocks.
    pub(super) next: Option<(Instant, Timestamp)>,
    /// The next one is unconditional: a 304 would only confirm what a restart made doubtful.
    pub(super) unconditional: bool,
    /// The last back-off wait, which the next one grows from.
    pub(super) backoff: Option<Duration>,
    /// The one that is under way. Dropping it ends the poll.
    pub(super) under_way: Option<AbortOnDropHandle<()>>,
    /// Answers to polls of an older generation are dropped: the scenario moved or restarted
    /// meanwhile.
    pub(super) generation: u64,
    /// The generation whose tools were listed last: none since the start of the daemon.
    pub(super) listed: Option<u64>,
    /// Whether that generation was listed before, too.
    pub(super) is_listed_again: bool,
    /// Whether the next one is to confirm what the first listing after a sleep showed.
    pub(super) confirms_wake: bool,
    /// When the last one began, on both clocks.
    pub(super) last: Option<(Instant, Timestamp)>,
    /// How long after its begin the next one may begin, for what its answer cost.
    pub(super) rest: Duration,
}

impl Polls {
    /// Notes a listing of the present generation.
    pub(super) fn note_listing(&mut self) {
        let listed = Some(self.generation);
        self.is_listed_again = self.listed == listed;
        self.listed = listed;
    }

    /// None yet. No other scenario of the same name may have had this generation.
    pub(super) fn new(generation: u64) -> Self {
        let rest = Duration::ZERO;
        Self {
            next: None,
            unconditional: false,
            backoff: None,
            under_way: None,
            generation,
            listed: None,
            is_listed_again: false,
            confirms_wake: false,
            last: None,
            rest,
        }
    }
}
