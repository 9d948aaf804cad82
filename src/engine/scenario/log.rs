//! Log lines about scenarios, for operators without the dashboard: which tools are known,
//! which scenarios fail, which are back.
//!
//! One line for each change, never for each poll. No line is written for a scenario that waits for
//! approval, because any program on the network can appear and disappear.

use std::fmt::Display;

use crate::engine::scenario::Scenario;
use crate::model::{ScenarioState, StateTransition};

/// The largest number of characters of a reason, which may quote an answer.
const REASON_CHARACTERS_MAX: usize = 300;

/// Its tools changed, or are known for the first time.
pub(in crate::engine) fn known(record: &Scenario, tools: usize) {
    if record.is_trusted() {
        tracing::info!(scenario = %record.name, tools, "tools loaded");
    }
}

/// It could not be polled, after polls that worked.
pub(in crate::engine) fn fails(record: &Scenario, error: &dyn Display) {
    if record.is_trusted() {
        tracing::warn!(scenario = %record.name, error = plain(error), "fetching tools failed");
    }
}

/// Its tools were withdrawn, or are back.
pub(in crate::engine) fn turned(turn: &StateTransition) {
    use ScenarioState::{Down, Incompatible, Live, NeedsAuthorization, Removed, Stale};
    match (turn.from, turn.to) {
        (_, Some(Down | Incompatible | NeedsAuthorization | Removed)) => {
            tracing::warn!(scenario = %turn.name, error = plain(&turn.reason), "scenario unavailable");
        }
        (Some(Down | Incompatible | NeedsAuthorization | Removed | Stale), Some(Live)) => {
            tracing::info!(scenario = %turn.name, "scenario available again");
        }
        _ => {}
    }
}

/// The text in one line.
fn plain(text: &dyn Display) -> String {
    text.to_string()
        .chars()
        .take(REASON_CHARACTERS_MAX)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
