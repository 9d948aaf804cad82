//! Lines of the log about scenarios, for who runs a daemon without looking at its pages: whose
//! tools are known, who fails, who is back.
//!
//! Once for each change, never for each ask; of who waits for an operator's yes nothing, since
//! strangers come and go as they like.

use std::fmt::Display;

use crate::engine::scenario::Scenario;
use crate::model::{ScenarioState, StateTransition};

/// Characters of a reason. It may quote what a scenario answered.
const LONGEST: usize = 300;

/// Its tools are others than before, or known for the first time.
pub(in crate::engine) fn known(record: &Scenario, tools: usize) {
    if record.is_trusted() {
        tracing::info!(scenario = %record.name, tools, "the tools of a scenario are known");
    }
}

/// It could not be asked, which it could before.
pub(in crate::engine) fn fails(record: &Scenario, error: &dyn Display) {
    if record.is_trusted() {
        tracing::warn!(scenario = %record.name, error = plain(error), "a scenario cannot be asked for its tools");
    }
}

/// Its tools are withdrawn, or back.
pub(in crate::engine) fn turned(turn: &StateTransition) {
    use ScenarioState::{Down, Incompatible, Live, NeedsAuthorization, Removed, Stale};
    match (turn.from, turn.to) {
        (_, Some(Down | Incompatible | NeedsAuthorization | Removed)) => {
            tracing::warn!(scenario = %turn.name, error = plain(&turn.reason), "a scenario is not usable any more");
        }
        (Some(Down | Incompatible | NeedsAuthorization | Removed | Stale), Some(Live)) => {
            tracing::info!(scenario = %turn.name, "a scenario is back");
        }
        _ => {}
    }
}

/// In one line.
fn plain(text: &dyn Display) -> String {
    text.to_string().chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
