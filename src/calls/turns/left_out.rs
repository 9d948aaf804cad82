//! Stored turns that are not kept after a restart: because there was no room for them, or because
//! they cannot be read.
//!
//! One without room stays in the store as long as it would have been kept: until none of its calls
//! waits for approval, and for `turns.keep` after that. What cannot be read is never deleted.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};

use super::turn::{Turn, TurnPhase};
use crate::model::{Finding, FindingCode};

/// How many turns a finding names.
const NAMED_TURNS: usize = 20;

/// The stored turns that are not kept.
#[derive(Debug, Default)]
pub(super) struct LeftOutTurns(Mutex<LeftOutLists>);

#[derive(Debug, Default)]
struct LeftOutLists {
    without_room: Vec<LeftOutTurn>,
    unreadable: Vec<Arc<str>>,
}

/// A stored turn for which there is no room.
#[derive(Debug, Clone)]
pub(super) struct LeftOutTurn {
    pub(super) id: Arc<str>,
    pub(super) begun_at: Timestamp,
    /// The approvals that its calls wait for.
    pub(super) approvals: Vec<Arc<str>>,
}

impl LeftOutTurn {
    pub(super) fn new(turn: &Turn) -> Self {
        let approvals = turn.phases().into_iter().filter_map(|phase| match phase {
            TurnPhase::WaitsForApproval(id) => Some(id),
            _ => None,
        });
        Self {
            id: Arc::clone(&turn.id),
            begun_at: turn.begun_at,
            approvals: approvals.collect(),
        }
    }
}

impl LeftOutTurns {
    /// There is no room for a stored turn.
    pub(super) fn add(&self, turn: LeftOutTurn) {
        self.lists().without_room.push(turn);
    }

    /// A stored turn cannot be read.
    pub(super) fn add_unreadable(&self, id: Arc<str>) {
        self.lists().unreadable.push(id);
    }

    /// Those without room.
    pub(super) fn without_room(&self) -> Vec<LeftOutTurn> {
        self.lists().without_room.clone()
    }

    /// The turn is not in the store any longer, or is kept again.
    pub(super) fn remove(&self, id: &str) {
        self.lists().without_room.retain(|turn| *turn.id != *id);
    }

    /// The findings about them.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let lists = self.lists();
        let limits =
            "they wait for approval, and `turns.max` or `turns.kept_bytes` is lower than before";
        let without_room: Vec<_> = lists
            .without_room
            .iter()
            .map(|turn| Arc::clone(&turn.id))
            .collect();
        let findings = [
            finding(
                &without_room,
                limits,
                "raise these keys and restart the daemon",
            ),
            finding(
                &lists.unreadable,
                "they cannot be read",
                "restart the version of the daemon that stored them",
            ),
        ];
        findings.into_iter().flatten().collect()
    }

    fn lists(&self) -> MutexGuard<'_, LeftOutLists> {
        self.0.lock()
    }
}

/// The finding about stored turns with these ids that are not kept.
fn finding(ids: &[Arc<str>], why: &str, next: &str) -> Option<Finding> {
    if ids.is_empty() {
        return None;
    }
    let named: Vec<String> = ids
        .iter()
        .take(NAMED_TURNS)
        .map(|id| format!("`{id}`"))
        .collect();
    let more = if ids.len() > NAMED_TURNS {
        " and others"
    } else {
        ""
    };
    let message = format!(
        "{} of the stored turns are not kept, because {why}: {}{more}",
        ids.len(),
        named.join(", ")
    );
    let hint = format!(
        "{next}; until then, a client that sends one of them again has its calls run again"
    );
    Some(Finding::new(FindingCode::TurnsLeftOut, message).hint(hint))
}
