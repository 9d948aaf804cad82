//! One thing that is pinned: what was accepted of it, what is there in its place, and since when.

use std::time::Duration;

use jiff::Timestamp;

use super::difference::{AcceptedText, PinChange, PinDifference, PinSubject, PinnedText};
use crate::model::{DefinitionVersion, PinMode};

/// How long a definition that differs is reported before it counts as accepted, where changes are
/// not held.
pub const REPORTED_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// Changes within [`REPORTED_FOR`] after which a tool counts as one that changes often.
const CHANGES_OFTEN: usize = 4;

/// What was accepted, and what differs from it. Empty for what was neither accepted nor is there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Pin {
    pub(super) accepted: Option<AcceptedSince>,
    /// Boxed, since few differ.
    pub(super) deviation: Option<Box<Deviation>>,
    /// Whether a listing that may be half of one lacks it.
    pub(super) is_unseen: bool,
    /// When another definition came, the latest times.
    pub(super) changes: Vec<Timestamp>,
}

/// What was accepted, and when.
#[derive(Debug, Clone)]
pub(super) struct AcceptedSince {
    pub(super) text: AcceptedText,
    pub(super) since: Timestamp,
}

/// Something else than the accepted text.
#[derive(Debug, Clone)]
pub(super) struct Deviation {
    /// What is there; `None` if it is gone.
    pub(super) version: Option<DefinitionVersion>,
    pub(super) since: Timestamp,
    /// Since when it is reported where changes are not held; `None` while they are. Only this time
    /// counts towards [`REPORTED_FOR`].
    pub(super) reported_since: Option<Timestamp>,
    /// The text, as far as it was seen since the start.
    pub(super) offered: Option<PinnedText>,
}

/// How one look at a scenario is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct PinLook {
    pub(super) mode: PinMode,
    pub(super) is_complete: bool,
    /// Whether what is new counts as accepted.
    pub(super) joins: bool,
    pub(super) now: Timestamp,
}

/// Another text is accepted at another time.
impl PartialEq for AcceptedSince {
    fn eq(&self, other: &Self) -> bool {
        self.since == other.since
    }
}

/// The text follows from the version.
impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.version == other.version
            && self.since == other.since
            && self.reported_since == other.reported_since
    }
}

impl Pin {
    /// What was accepted at a time.
    pub(super) fn accepted(text: PinnedText, since: Timestamp) -> Self {
        let text = AcceptedText::Known(text);
        Self {
            accepted: Some(AcceptedSince { text, since }),
            ..Self::default()
        }
    }

    pub(super) fn is_accepted(&self) -> bool {
        self.accepted.is_some()
    }

    /// Whether it is as it was accepted.
    pub(super) fn is_equal(&self) -> bool {
        self.accepted.is_some() && self.deviation.is_none()
    }

    /// Whether it has no reason to be kept: a name that was never accepted is forgotten with its
    /// tool, so that a scenario with ever new names fills no memory.
    pub(super) fn is_empty(&self) -> bool {
        let deviation = self.deviation.as_ref();
        let is_there = deviation.is_some_and(|deviation| deviation.version.is_some());
        self.accepted.is_none() && !is_there
    }

    /// Takes a text that is known to be the accepted one in the place of what was stored.
    pub(super) fn share(&mut self, text: PinnedText) {
        if let Some(accepted) = &mut self.accepted {
            accepted.text = AcceptedText::Known(text);
        }
    }

    /// Notes what is there now.
    pub(super) fn observe(&mut self, offered: Option<PinnedText>, listing: PinLook) {
        self.changes
            .retain(|at| later(*at, REPORTED_FOR) > listing.now);
        self.is_unseen = offered.is_none() && !listing.is_complete;
        if listing.mode == PinMode::Hold
            && let Some(deviation) = &mut self.deviation
        {
            deviation.reported_since = None;
        }
        match (&self.accepted, offered) {
            (Some(accepted), Some(text)) if accepted.text.is(&text) => self.is_back(text, listing),
            (None, None) => self.deviation = None,
            // Another listing shows whether it is gone.
            (Some(_), None) if self.is_unseen => {}
            (None, Some(text)) if listing.joins => *self = Self::accepted(text, listing.now),
            (_, offered) => self.deviates(offered, listing),
        }
    }

    /// What was accepted is there.
    fn is_back(&mut self, text: PinnedText, listing: PinLook) {
        self.share(text);
        let before = self.deviation.take();
        if before.is_some_and(|deviation| deviation.version.is_some()) {
            self.note_change(listing.now);
        }
    }

    fn deviates(&mut self, offered: Option<PinnedText>, listing: PinLook) {
        let version = offered.as_ref().map(PinnedText::version);
        match &mut self.deviation {
            Some(known) if known.version == version => known.offered = offered,
            _ => {
                if version.is_some() {
                    self.note_change(listing.now);
                }
                self.deviation = Some(Box::new(Deviation {
                    version,
                    since: listing.now,
                    reported_since: None,
                    offered,
                }));
            }
        }
        if listing.mode == PinMode::Hold {
            return;
        }
        let is_over = |deviation: &mut Box<Deviation>| {
            let since = *deviation.reported_since.get_or_insert(listing.now);
            later(since, REPORTED_FOR) <= listing.now
        };
        if let Some(deviation) = self.deviation.take_if(is_over) {
            let accepted = deviation.offered;
            *self = accepted
                .map(|text| Self::accepted(text, listing.now))
                .unwrap_or_default();
        }
    }

    fn note_change(&mut self, now: Timestamp) {
        if self.changes.len() >= CHANGES_OFTEN {
            self.changes.remove(0);
        }
        self.changes.push(now);
    }

    fn is_frequent(&self) -> bool {
        self.changes.len() >= CHANGES_OFTEN
    }

    /// How it differs from what was accepted, if that is to be reported.
    pub(super) fn difference(
        &self,
        subject: PinSubject,
        listing: PinLook,
    ) -> Option<PinDifference> {
        let deviation = self.deviation.as_ref();
        if self.is_unseen && deviation.is_none_or(|one| one.version.is_some()) {
            // What the listing lacks cannot be accepted, and is not known to be gone.
            return None;
        }
        let is_frequent = self.is_frequent();
        let accepted = self.accepted.as_ref();
        let Some(deviation) = deviation else {
            // One that changes to and fro is as it was accepted at times.
            return accepted
                .filter(|_| is_frequent && listing.mode != PinMode::Hold)
                .map(|accepted| PinDifference {
                    subject,
                    change: PinChange::Changed,
                    accepted: Some(accepted.text.version()),
                    offered: match &accepted.text {
                        AcceptedText::Known(text) => Some(text.clone()),
                        AcceptedText::Stored(_) => None,
                    },
                    since: self.changes.last().copied().unwrap_or(accepted.since),
                    is_frequent,
                    before: None,
                });
        };
        let change = match (accepted, deviation.version) {
            (Some(_), Some(_)) => PinChange::Changed,
            (None, _) => PinChange::New,
            (Some(_), None) => PinChange::Removed,
        };
        Some(PinDifference {
            subject,
            change,
            accepted: accepted.map(|accepted| accepted.text.version()),
            offered: deviation.offered.clone(),
            since: deviation.since,
            is_frequent,
            before: accepted.map(|accepted| accepted.text.clone()),
        })
    }

    /// When time alone changes what is reported of it.
    pub(super) fn until(&self, listing: PinLook) -> Option<Timestamp> {
        let mut times = Vec::new();
        if let Some(deviation) = &self.deviation
            && let Some(since) = deviation.reported_since
        {
            times.push(later(since, REPORTED_FOR));
        }
        times.extend(self.changes.first().map(|at| later(*at, REPORTED_FOR)));
        times.into_iter().filter(|at| *at > listing.now).min()
    }
}

/// A time so much later, or the last one that there is.
fn later(time: Timestamp, by: Duration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}
