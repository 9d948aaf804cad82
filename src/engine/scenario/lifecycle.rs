//! The states of one scenario, and every transition between them.
//!
//! Pure: [`next`] is the only place that says which state follows. What each state means for the
//! tools, an example and the errors are in `docs/design/lifecycle.md`.
//!
//! ```text
//!                  Unapproved                        Rejected
//!   any state ------------------> Pending    any state -----------> Blocked
//!                                    |                                 |
//!                                    +------------ Approved -----------+
//!                                                     |
//!                                                     v
//!                        +------------------------ Connecting
//!                        | Fresh                      | Lost, Returned
//!                        v           Aged, Failing    v
//!                      Live <----------------------  Down <-------- Present -----+
//!                        |  \                         ^                          |
//!                        |   +--> Stale --- Lost -----+                          |
//!                        |          | Fresh: Live                                |
//!                        |          |                                            |
//!                        +----------+-- Unauthorized --> NeedsAuthorization      |
//!                        |          +-- OutOfRange ----> Incompatible            |
//!                        |                                                       |
//!                        +--- Absent (from any state but Pending, Blocked) --> Removed
//! ```
//!
//! `Sleeping` leads from `Connecting`, `Live` and `Stale` to `Asleep`, where it stays until there
//! is an answer, good or bad.
//!
//! An input is a fact about the scenario now, not an event: the same input twice changes nothing
//! the second time. Whenever something may have changed, the loop gives three inputs in this order:
//! what the operator decided (`Rejected`, `Unapproved`, `Approved`), what the sources say
//! (`Absent`, `Present`), and what the answers came to (all others). So an operator's decision
//! hides everything else, and what is hidden shows again when the decision is taken back.

use crate::model::ScenarioState;

/// The state of a scenario. [`ScenarioState`] says what it means for the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Lifecycle {
    /// It waits for an operator's approval.
    Pending,
    /// It has not answered since the start.
    Connecting,
    /// Its last answer is up to date.
    Live,
    /// Its last answer is out of date, or it fails, within grace.
    Stale,
    /// Its program does not run, because no client needs it.
    Asleep,
    /// It answered 401 or 403 last, and gave no good answer since.
    NeedsAuthorization,
    /// It failed too often for too long, or came back and gave no good answer yet.
    Down,
    /// It spoke a version out of range, and gave no good answer since.
    Incompatible,
    /// No source names it any more, and it does not answer.
    Removed(RemovedBy),
    /// An operator rejected it.
    Blocked,
}

/// Why no source names a scenario any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum RemovedBy {
    /// Its source does not see it any more. It may come back, so the names of its tools stay
    /// reserved.
    Source,
    /// Its entry was taken out of the configuration, or its source was switched off there. The
    /// names are free at once.
    Configuration,
}

/// A fact about a scenario now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum LifecycleInput {
    /// An operator rejected it.
    Rejected,
    /// Its source is not trusted for it, and no operator trusted it.
    Unapproved,
    /// A source is trusted for it, or an operator trusted it.
    Approved,
    /// No source names it any more, and it does not answer.
    Absent(RemovedBy),
    /// A source names it, or it still answers.
    Present,
    /// It gave no good answer since the start, and did not fail too often, or there is nothing yet
    /// that could be lost.
    Unanswered,
    /// Its last answer is good and fresh.
    Fresh,
    /// Its last answer is good, and past its freshness.
    Aged,
    /// Its program was ended because no client needed it, or was not started for that reason, and
    /// there is a list that may be used.
    Sleeping,
    /// It failed, but not too often, and its last good answer is fresh.
    Doubtful,
    /// It was absent or down since its last good answer, and gave no other one.
    Returned,
    /// It failed, too often or past the freshness of its last good answer; there are tools to keep,
    /// and grace is not over.
    Failing,
    /// Its last answer was 401 or 403.
    Unauthorized,
    /// Its last answer was in a version out of range.
    OutOfRange,
    /// It failed too often, and there are no tools to keep, or grace is over.
    Lost,
}

/// The state that follows. Total: every input has a meaning in every state.
#[expect(
    clippy::match_same_arms,
    reason = "one line for each rule; the order of the lines is the order of precedence"
)]
pub(in crate::engine) fn next(state: Lifecycle, input: LifecycleInput) -> Lifecycle {
    use Lifecycle::{
        Asleep, Blocked, Connecting, Down, Incompatible, Live, NeedsAuthorization, Pending,
        Removed, Stale,
    };
    match (input, state) {
        (LifecycleInput::Rejected, _) => Blocked,
        (LifecycleInput::Unapproved, _) => Pending,
        (LifecycleInput::Approved, Pending | Blocked) => Connecting,
        (LifecycleInput::Approved, kept) => kept,
        // An operator's decision hides all facts from sources and answers.
        (_, Pending | Blocked) => state,
        (LifecycleInput::Absent(by), _) => Removed(by),
        // A source names it again, but it has not answered yet.
        (LifecycleInput::Present, Removed(_)) => Down,
        (LifecycleInput::Present, kept) => kept,
        (_, Removed(_)) => state,
        (LifecycleInput::Fresh, _) => Live,
        (LifecycleInput::Aged, _) => Stale,
        (LifecycleInput::Unauthorized, _) => NeedsAuthorization,
        (LifecycleInput::OutOfRange, _) => Incompatible,
        (LifecycleInput::Lost, _) => Down,
        // Only a good answer ends these states.
        (_, NeedsAuthorization | Down | Incompatible) => state,
        (LifecycleInput::Sleeping, Connecting | Live | Stale | Asleep) => Asleep,
        (LifecycleInput::Unanswered, Connecting | Live | Stale | Asleep) => Connecting,
        // Its earlier tools may be out of date, also when an operator approved it again meanwhile.
        (LifecycleInput::Returned, Connecting | Live | Stale | Asleep) => Down,
        (LifecycleInput::Doubtful, Connecting | Live | Stale | Asleep) => Live,
        (LifecycleInput::Failing, Connecting | Live | Stale | Asleep) => Stale,
    }
}

impl Lifecycle {
    /// The state as operators and programs see it.
    pub(in crate::engine) fn shown(self) -> ScenarioState {
        match self {
            Self::Pending => ScenarioState::Pending,
            Self::Connecting => ScenarioState::Connecting,
            Self::Live => ScenarioState::Live,
            Self::Stale => ScenarioState::Stale,
            Self::Asleep => ScenarioState::Asleep,
            Self::NeedsAuthorization => ScenarioState::NeedsAuthorization,
            Self::Down => ScenarioState::Down,
            Self::Incompatible => ScenarioState::Incompatible,
            Self::Removed(_) => ScenarioState::Removed,
            Self::Blocked => ScenarioState::Blocked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [(char, Lifecycle); 11] = [
        ('P', Lifecycle::Pending),
        ('C', Lifecycle::Connecting),
        ('L', Lifecycle::Live),
        ('S', Lifecycle::Stale),
        ('A', Lifecycle::Asleep),
        ('N', Lifecycle::NeedsAuthorization),
        ('D', Lifecycle::Down),
        ('I', Lifecycle::Incompatible),
        ('s', Lifecycle::Removed(RemovedBy::Source)),
        ('c', Lifecycle::Removed(RemovedBy::Configuration)),
        ('B', Lifecycle::Blocked),
    ];

    /// For each input the state that follows each of `STATES`.
    const TABLE: [(LifecycleInput, &str); 16] = [
        //                                           PCLSANDIscB
        (
            LifecycleInput::Rejected,
            /*                     */ "BBBBBBBBBBB",
        ),
        (
            LifecycleInput::Unapproved,
            /*                   */ "PPPPPPPPPPP",
        ),
        (
            LifecycleInput::Approved,
            /*                     */ "CCLSANDIscC",
        ),
        (
            LifecycleInput::Absent(RemovedBy::Source),
            /*    */ "PsssssssssB",
        ),
        (
            LifecycleInput::Absent(RemovedBy::Configuration),
            "PcccccccccB",
        ),
        (
            LifecycleInput::Present,
            /*                      */ "PCLSANDIDDB",
        ),
        (
            LifecycleInput::Unanswered,
            /*                   */ "PCCCCNDIscB",
        ),
        (
            LifecycleInput::Returned,
            /*                     */ "PDDDDNDIscB",
        ),
        (
            LifecycleInput::Fresh,
            /*                        */ "PLLLLLLLscB",
        ),
        (
            LifecycleInput::Aged,
            /*                         */ "PSSSSSSSscB",
        ),
        (
            LifecycleInput::Sleeping,
            /*                     */ "PAAAANDIscB",
        ),
        (
            LifecycleInput::Doubtful,
            /*                     */ "PLLLLNDIscB",
        ),
        (
            LifecycleInput::Failing,
            /*                      */ "PSSSSNDIscB",
        ),
        (
            LifecycleInput::Unauthorized,
            /*                 */ "PNNNNNNNscB",
        ),
        (
            LifecycleInput::OutOfRange,
            /*                   */ "PIIIIIIIscB",
        ),
        (
            LifecycleInput::Lost,
            /*                         */ "PDDDDDDDscB",
        ),
    ];

    #[test]
    fn every_input_in_every_state_leads_where_the_table_says() {
        for (input, expected) in TABLE {
            for ((_, state), letter) in STATES.into_iter().zip(expected.chars()) {
                let follows = STATES
                    .iter()
                    .find(|(known, _)| *known == letter)
                    .map(|(_, state)| *state);
                assert_eq!(Some(next(state, input)), follows, "{input:?} in {state:?}");
            }
        }
    }

    #[test]
    fn an_input_given_twice_changes_nothing_the_second_time() {
        for (input, _) in TABLE {
            for (_, state) in STATES {
                let once = next(state, input);
                assert_eq!(next(once, input), once, "{input:?} in {state:?}");
            }
        }
    }

    #[test]
    fn states_have_the_words_that_are_promised() {
        let words: Vec<_> = STATES
            .iter()
            .map(|(_, state)| state.shown().as_str())
            .collect();
        let expected = "pending connecting live stale asleep needs-authorization down incompatible removed removed blocked";
        assert_eq!(words.join(" "), expected);
    }
}
