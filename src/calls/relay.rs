//! The path of a request that is no call of a tool, such as for a prompt or a resource, to the
//! scenario that owns its subject.
//!
//! Limits, the circuit breaker and the bounds of the caller's profile hold as for calls. Such a
//! request changes nothing, so it ends with its caller, and it is not in the audit log. It is never
//! sent twice.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;

use super::caller::CallLine;
use super::{Calls, ExecuteError, routing};
use crate::catalog::ViewQuery;
use crate::engine::CallReport;
use crate::model::{JsonText, ScenarioName, ToolId};
use crate::protocols::{CallError, CallIo, Outcome, Relay, RelayMethod, ResumedInput};
use crate::transports::TransportError;

/// How much longer than its limit a session may take to report that a request took too long.
const SLACK: Duration = Duration::from_secs(5);

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
    pub resumed: Option<ResumedInput>,
    /// The scope of the caller.
    pub scope: ViewQuery,
}

impl Calls {
    /// Sends a request to the scenario that owns its subject, and gives the outcome. The result is
    /// in [`Outcome::content`].
    pub async fn relay(&self, request: RelayRequest, caller: Option<Arc<dyn CallIo>>) -> Result<Outcome, ExecuteError> {
        let inner = &self.0;
        let RelayRequest { scenario, method, params, resumed, scope } = request;
        let id = ToolId::new(scenario.clone(), method.as_str());
        self.may_relay(&id, &scope)?;
        let rules = inner.config.load_full();
        let lane = inner.limits.scenario_limiter(&scenario, &rules);
        let _turn = inner.limits.acquire(&scenario, &lane, &rules).await?;
        let route = match routing::usable(inner, &scenario) {
            Some(route) => route,
            None => Box::pin(routing::first(inner, &id, rules.reroute_wait)).await?,
        };
        lane.pass(&scenario, route.generation, &rules)?;
        let relay = Relay { method, params, resumed, longest: rules.max_timeout, max_body: rules.max_body };
        let (io, _presence) = CallLine::new(id.clone(), caller, self.0.clock);
        let began = inner.clock.now();
        // A session applies the limit itself. This second limit is for one that does not.
        let limit = rules.max_timeout.saturating_add(SLACK);
        let outcome = tokio::select! {
            biased;
            outcome = route.session.relay(&relay, &io) => outcome,
            () = io.expired(began, limit) => {
                Err(CallError::Unanswered(TransportError::Timeout { url: route.address.to_string(), limit }))
            }
        };
        match &outcome {
            Ok(_) => inner.engine.report_call(&scenario, &route, CallReport::Answered),
            Err(CallError::Unsent(TransportError::Refused(_))) => {
                inner.engine.report_call(&scenario, &route, CallReport::Refused);
            }
            Err(_) => {}
        }
        let well = !outcome.as_ref().is_err_and(|error| !matches!(error, CallError::NotCallable(_)));
        if well || !io.is_cancelled() {
            lane.ended(route.generation, well, &rules);
        }
        outcome.map_err(|error| ExecuteError::Failed { id, error, attempts: 1 })
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
        let route = match routing::usable(inner, scenario) {
            Some(route) => route,
            None => Box::pin(routing::first(inner, &id, rules.reroute_wait)).await?,
        };
        let limit = rules.max_timeout;
        let followed = tokio::time::timeout(limit, route.session.updates(uri)).await.unwrap_or_else(|_| {
            Err(CallError::Unanswered(TransportError::Timeout { url: route.address.to_string(), limit }))
        });
        followed.map_err(|error| ExecuteError::Failed { id, error, attempts: 1 })
    }

    /// Refuses what a caller may not request of a scenario.
    fn may_relay(&self, id: &ToolId, scope: &ViewQuery) -> Result<(), ExecuteError> {
        let snapshot = self.0.reader.snapshot();
        if let Some(unknown) = snapshot.catalog.may_not_call(scope) {
            return Err(ExecuteError::UnknownProfile(unknown));
        }
        if !snapshot.catalog.shows(scope, &id.scenario) {
            let reason = "its scenario is not in the list of this caller".to_owned();
            return Err(ExecuteError::Unavailable { id: id.clone(), reason });
        }
        Ok(())
    }
}
