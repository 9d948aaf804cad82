//! Signs that a scenario restarted between two answers. Pure.
//!
//! A sign from outside (a moved address, a new boot id, a refused connection) leads to an
//! unconditional poll, and its answer counts the restart in health. The signs here are seen in a
//! whole new answer: they are counted at once, and lead to one more poll.

use jiff::Timestamp;

use crate::model::Manifest;
use crate::protocols::Validity;

/// A sign that is seen by comparing two manifests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Sign {
    /// The scenario's own version changed: it was deployed anew.
    Version,
    /// `generated_at` went backwards with another content: an older build, or another instance
    /// behind the address.
    Backwards,
}

/// Compares the active manifest with a new one. Equal content is no sign, whatever its time stamp:
/// real servers stamp each answer anew.
pub(in crate::engine) fn sign(before: &Manifest, after: &Manifest) -> Option<Sign> {
    if before.digest == after.digest {
        return None;
    }
    if before.scenario.version != after.scenario.version {
        return Some(Sign::Version);
    }
    match (before.generated_at, after.generated_at) {
        // Clocks of one machine may differ by less than a second.
        (Some(before), Some(after)) if before.duration_since(after).as_secs() >= 1 => {
            Some(Sign::Backwards)
        }
        _ => None,
    }
}

/// Whether an answer of other content was last modified before the active one (RFC 9110 section
/// 8.8.2): an older build.
pub(in crate::engine) fn went_back(before: &Validity, after: &Validity) -> bool {
    before
        .modified
        .zip(after.modified)
        .is_some_and(|(before, after)| after < before)
}

/// The known restarts of one scenario.
#[derive(Debug, Default)]
pub(in crate::engine) struct Restarts {
    /// Since the last good answer a connection was refused, or the scenario moved or got a new boot
    /// id: the next good answer confirms a restart.
    suspected: bool,
    /// An answer showed a restart, and the next answer is to confirm its list.
    confirming: bool,
    count: u32,
    last: Option<Timestamp>,
}

impl Restarts {
    /// It may have restarted.
    pub(super) fn suspect(&mut self) {
        self.suspected = true;
    }

    /// Whether it may have restarted since its last good answer.
    pub(super) fn are_suspected(&self) -> bool {
        self.suspected
    }

    /// It gave a good answer.
    pub(super) fn settle(&mut self) {
        self.suspected = false;
    }

    /// It restarted.
    pub(super) fn add(&mut self, at: Timestamp) {
        self.count += 1;
        self.last = Some(at);
    }

    /// The next answer is to confirm what this one showed.
    pub(super) fn confirm(&mut self) {
        self.confirming = true;
    }

    /// Whether this answer was to confirm what the one before showed.
    pub(super) fn take_confirming(&mut self) -> bool {
        std::mem::take(&mut self.confirming)
    }

    /// How often it was seen to restart.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    /// When it was last seen to restart.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.last
    }
}
