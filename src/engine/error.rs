//! Errors of requests to the engine.

use crate::catalog::pins::PinsChanged;
use crate::config::ADDITIONS_MAX;
use crate::model::{ScenarioName, ScenarioState, Scope};
use crate::state::{
    CLIENT_PREFERENCES_MAX, CLIENT_PREFERENCES_OF_SCOPE_MAX, PREFERENCES_MAX, StateError,
};

/// Why a request to the engine failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// No source, store or operator knows this scenario.
    #[error("no scenario is called `{0}`")]
    UnknownScenario(ScenarioName),
    /// An operator blocked it, so it is not polled.
    #[error("`{0}` is blocked")]
    Blocked(ScenarioName),
    /// No source names it any more, so there is no address to poll.
    #[error("no source names `{0}` any more")]
    NoAddress(ScenarioName),
    /// It waits for an operator's approval, and is neither started nor contacted before.
    #[error("`{0}` waits for approval, and is not contacted before that")]
    NotTrusted(ScenarioName),
    /// Its source knows that its process does not run, so there is no address to poll.
    #[error("`{0}` does not run: {1}")]
    ProcessEnded(ScenarioName, String),
    /// It is neither removed nor down.
    #[error("`{0}` is {1}, and only a removed or down scenario can be forgotten")]
    NotForgettable(ScenarioName, ScenarioState),
    /// Its definitions are not compared with accepted ones.
    #[error("the definitions of `{0}` are not pinned")]
    NotPinned(ScenarioName),
    /// It offers something else by now than what was to be accepted.
    #[error("no definition of `{0}` was accepted, because {1}")]
    PinsChanged(ScenarioName, PinsChanged),
    /// The largest number of preferences is reached.
    #[error("there are {PREFERENCES_MAX} preferences already, as many as are kept")]
    TooManyPreferences,
    /// The largest number of preferences that clients without the right made is reached, and none
    /// of them may give way.
    #[error(
        "there are {CLIENT_PREFERENCES_MAX} preferences of clients without the operator's token already, as many as \
         are kept, and none may give way because they disable tools or require approvals"
    )]
    TooManyClientPreferences,
    /// The same for one scope.
    #[error(
        "there are {CLIENT_PREFERENCES_OF_SCOPE_MAX} preferences of clients without the operator's token in the scope \
         {0} already, as many as are kept in one, and none may give way because they disable tools or require \
         approvals"
    )]
    TooManyClientPreferencesOfScope(Scope),
    /// The largest number of additions of one kind is reached.
    #[error("there are {ADDITIONS_MAX} of these already, as many as are kept")]
    TooManyAdditions,
    /// The change could not be stored, so it was not made.
    #[error(transparent)]
    State(#[from] StateError),
    /// The daemon is stopping.
    #[error("the daemon is stopping")]
    Stopping,
}
