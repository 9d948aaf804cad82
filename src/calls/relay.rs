//! The path of a request that is no call of a tool, such as for a prompt or a resource, to the
//! scenario that owns its subject.
//!
//! It waits for its permit, is sent and is judged as a call is ([`AttemptAdmission`]), and holds
//! its parameters and its result in the same budget. Such a request changes nothing, so it ends
//! with its caller, and it is not in the audit log. It is never sent twice.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};

use super::attempt::AttemptAdmission;
use super::caller::CallLine;
use super::held::CallerKey;
use super::requester::Requester;
use super::routing::HeldRoute;
use super::{Calls, ExecuteError, routing};
use crate::catalog::ViewQuery;
use crate::model::{JsonText, ScenarioName, ToolId};
use crate::protocols::{CallError, CallIo, InputRound, Outcome, Relay, RelayMethod};
use crate::runtime::ReservedBytes;
use crate::transports::TransportError;

/// A request for a prompt, a resource or a completion.
#[derive(Debug, Clone)]
pub struct RelayRequest {
    /// The scenario that owns the subject.
    pub scenario: ScenarioName,
    /// What is requested.
    pub method: RelayMethod,
    /// The parameters, in the words of the scenario: one JSON object without `_meta`.
    pub params: JsonText,
    /// The input with which a request that needed some is sent again.
    pub resumed: Option<InputRound>,
    /// The scope of the caller.
    pub scope: ViewQuery,
    /// On whose behalf it is made.
    pub requester: Requester,
}

/// What the scenario answered.
#[derive(Debug)]
pub struct RelayResponse {
    /// The answer. The result is in [`Outcome::content`].
    pub outcome: Outcome,
    /// What is reserved for the outcome, until the answer is made of it.
    _held: ReservedBytes,
}

impl Calls {
    /// Sends a request to the scenario that owns its subject.
    pub async fn relay(
        &self,
        request: RelayRequest,
        caller: Option<Arc<dyn CallIo>>,
    ) -> Result<RelayResponse, ExecuteError> {
        let inner = &self.0;
        let RelayRequest {
            scenario,
            method,
            params,
            resumed,
            scope,
            requester,
        } = request;
        let id = ToolId::new(scenario, method.as_str());
        self.may_relay(&id, &scope)?;
        let share = CallerKey::of(&requester, &scope);
        let held = inner.held.hold_arguments(&share, params.get().len());
        let _params = held.map_err(|exceeded| ExecuteError::NoRoom {
            name: id.to_string(),
            exceeded,
        })?;
        let admission = AttemptAdmission::wait(inner, &id, &share, caller.as_ref()).await?;
        let to = admission.route();
        let rules = admission.rules();
        admission.pass(to)?;
        let relay = Relay {
            method,
            params,
            resumed,
            longest: rules.max_timeout,
            max_body: rules.max_body,
        };
        let (line, _presence) = CallLine::new(id.clone(), caller, inner.clock);
        let sent = to.session.relay(&relay, &line);
        let answered = admission.attempt(to, sent, relay.longest, &line).await;
        let outcome = match answered {
            Ok(outcome) => outcome,
            Err(error) => {
                return Err(ExecuteError::Failed {
                    id,
                    error,
                    attempts: 1,
                });
            }
        };
        match inner.held.hold_result(&share, &outcome) {
            Ok(held) => Ok(RelayResponse {
                outcome,
                _held: held,
            }),
            Err(exceeded) => Err(ExecuteError::ResultLeftOut {
                id,
                bytes: outcome.bytes(),
                exceeded,
                attempts: 1,
            }),
        }
    }

    /// Follows a resource of a scenario, for a caller with this scope: an item for each time that
    /// it changed. The stream ends with the connection to the scenario.
    pub async fn updates(
        &self,
        scenario: &ScenarioName,
        uri: &str,
        scope: &ViewQuery,
    ) -> Result<BoxStream<'static, ()>, ExecuteError> {
        let inner = &self.0;
        let id = ToolId::new(scenario.clone(), "subscriptions/listen");
        self.may_relay(&id, scope)?;
        let rules = inner.config.load_full();
        let HeldRoute { route, awake } = routing::first(inner, &id, rules.reroute_wait).await?;
        let limit = rules.max_timeout;
        let followed = tokio::time::timeout(limit, route.session.updates(uri))
            .await
            .unwrap_or_else(|_| {
                Err(CallError::Unanswered(TransportError::Timeout {
                    url: route.address.to_string(),
                    limit,
                }))
            });
        let updates = followed.map_err(|error| ExecuteError::Failed {
            id,
            error,
            attempts: 1,
        })?;
        // Its program does not fall asleep as long as a client follows.
        let held = stream::unfold((updates, awake), |(mut updates, awake)| async move {
            updates.next().await?;
            Some(((), (updates, awake)))
        });
        Ok(Box::pin(held))
    }

    /// Refuses what a caller may not request of a scenario.
    fn may_relay(&self, id: &ToolId, scope: &ViewQuery) -> Result<(), ExecuteError> {
        let snapshot = self.0.reader.snapshot();
        if let Some(unknown) = snapshot.catalog.may_not_call(scope) {
            return Err(ExecuteError::UnknownProfile(unknown));
        }
        if !snapshot.catalog.shows(scope, &id.scenario) {
            let reason = "its scenario is not in the list of this caller".to_owned();
            return Err(ExecuteError::Unavailable {
                id: id.clone(),
                reason,
            });
        }
        Ok(())
    }
}
