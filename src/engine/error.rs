//! Why the engine did not do what it was told.

use crate::model::{ScenarioName, ScenarioState};
use crate::state::{PREFERENCES_MAX, StateError};

/// Why the engine did not do what was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// No source, store or operator knows this scenario.
    #[error("no scenario is called `{0}`")]
    UnknownScenario(ScenarioName),
    /// An operator blocked it, so it is not asked.
    #[error("`{0}` is blocked")]
    Blocked(ScenarioName),
    /// No source names it any more, so there is no address to ask.
    #[error("no source names `{0}` any more")]
    NoAddress(ScenarioName),
    /// It is neither removed nor down.
    #[error("`{0}` is {1}, and only a removed or down scenario can be forgotten")]
    NotForgettable(ScenarioName, ScenarioState),
    /// There are as many preferences as are kept.
    #[error(
        "there are {PREFERENCES_MAX} preferences already, as many as are kept; reset some that are not needed first"
    )]
    TooManyPreferences,
    /// It could not be stored, so nothing changed.
    #[error(transparent)]
    State(#[from] StateError),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}
