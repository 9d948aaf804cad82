//! Every message to the loop: events ([`EngineEvent`]) and requests ([`EngineCommand`]).

use std::sync::Arc;

use tokio::sync::oneshot;

use super::call_report::CallReport;
use super::error::EngineError;
use super::persist::kept_preferences::GaveWay;
use super::poll_task::PollResult;
use super::sessions::news::SessionNews;
use crate::catalog::pins::PinAcceptance;
use crate::config::{Additions, Config};
use crate::discovery::{EndpointSet, SourceError};
use crate::model::{
    Awaited, ConfigState, Health, PreferenceSet, ScenarioName, ScenarioState, Settings, SourceId,
};
use crate::state::{StateError, TrustDecision};
use crate::transports::TransportError;
use crate::transports::http::Upstream;

/// The channel for the answer to a change.
pub(super) type ReplySender<T> = oneshot::Sender<Result<T, EngineError>>;

/// The health of a scenario after its next answer.
pub(super) type HealthReceiver = oneshot::Receiver<Result<Arc<Health>, EngineError>>;

/// A base address and the path of the list, or why no request can be sent there.
pub(super) type ListAddress = Result<(Upstream, &'static str), TransportError>;

/// A request to the loop.
#[derive(Debug)]
pub(super) enum EngineCommand {
    Refresh(Vec<ScenarioName>, ReplySender<Vec<HealthReceiver>>),
    /// The address at which one request gets a scenario's list as the scenario writes it.
    Locate(ScenarioName, ReplySender<ListAddress>),
    /// The configuration that is active from now on (`None` when it is the same), and the state of
    /// the configuration.
    Configure(Option<Arc<Config>>, Arc<ConfigState>, ReplySender<()>),
    /// Removes a scenario that is removed or down.
    Forget(ScenarioName, ReplySender<Forgotten>),
    /// The approval of a forgotten scenario could not be removed from the store.
    Unforget(ScenarioName),
    /// Only sends an answer.
    Ping(ReplySender<()>),
    /// The new tools of the next listing count as accepted.
    AwaitNewTools(ScenarioName),
    /// What a call showed, over a route of this generation.
    Called(ScenarioName, u64, CallReport),
}

/// An event that the loop receives.
pub(super) enum EngineEvent {
    /// A source's whole set.
    Endpoints(SourceId, EndpointSet),
    /// A source was switched off, and its endpoints no longer count.
    SourceOff(SourceId),
    /// A source ended before it was stopped; its last set stays active.
    SourceEnded(SourceError),
    /// A poll ended.
    Polled(Box<PollResult>),
    /// A poll of this generation has waited long for an answer.
    Waits {
        /// The scenario.
        name: ScenarioName,
        /// Its generation.
        generation: u64,
        /// What is waited for.
        awaited: Box<Awaited>,
    },
    /// Preferences changed, and are durable.
    PreferencesChanged {
        /// All of them.
        preferences: Arc<PreferenceSet>,
        /// Those that gave way to others since the start.
        gave_way: GaveWay,
        /// The settings after each change.
        settings: Vec<Settings>,
        /// Where the settings are sent when they are published.
        reply: ReplySender<Vec<Settings>>,
    },
    /// Operators added other profiles or definitions, or took some away, and it is durable.
    AdditionsChanged {
        /// All additions.
        additions: Arc<Additions>,
        /// Whether there was one of the name before.
        was_there: bool,
        /// Where that is sent when they are published.
        reply: ReplySender<bool>,
    },
    /// An operator decided, and it is durable.
    Decided(
        ScenarioName,
        Option<TrustDecision>,
        ReplySender<Arc<Health>>,
    ),
    /// An operator accepted definitions of a scenario, and that is durable.
    PinsAccepted(ScenarioName, Vec<PinAcceptance>, ReplySender<()>),
    /// A session reported something by itself.
    Session(SessionNews),
    /// A save ended.
    Saved(Result<(), StateError>, SavedScenarios),
}

/// What of scenarios was in a save, besides decisions and preferences.
#[derive(Debug, Default)]
pub(super) struct SavedScenarios {
    /// Those whose manifests were.
    pub(super) manifests: Vec<ScenarioName>,
    /// Those whose baselines were.
    pub(super) baselines: Vec<ScenarioName>,
}

/// The result of forgetting a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forgotten {
    /// The scenario.
    pub name: ScenarioName,
    /// The state it was in.
    pub was: ScenarioState,
    /// The source that still names it, so that it comes back.
    pub named_by: Option<SourceId>,
    /// Whether an operator's approval was removed with it.
    pub approval_ended: bool,
}
