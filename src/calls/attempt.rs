//! How anything is sent to a scenario, a call of a tool or a relayed request.
//!
//! An [`AttemptAdmission`] is the permit and the route with which it may be sent. Each attempt
//! under it has a limit of its own, and its result is reported to the engine and to the circuit
//! breakers. Never done here: deciding whether a caller may send something, and whether there is a
//! further attempt.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::caller::CallLine;
use super::circuits::AttemptEnd;
use super::held::CallerKey;
use super::inner::CallsInner;
use super::limits::{CallPermit, ScenarioLimiter};
use super::routing::HeldRoute;
use super::{ExecuteError, routing};
use crate::config;
use crate::engine::awake::AwakeHold;
use crate::engine::{CallReport, CallRoute};
use crate::json::LEVELS_MAX;
use crate::model::ToolId;
use crate::protocols::{CallError, CallIo, CallProgress, Outcome, cancelled_by_caller};
use crate::runtime::tasks::BodyStep;
use crate::transports::{TransportError, status_text};

/// How much longer than its limit a session may take to report that an attempt took too long.
const SESSION_SLACK: Duration = Duration::from_secs(5);

/// The permit and the route with which something may be sent to a scenario. Dropping it lets the
/// next one proceed.
pub(super) struct AttemptAdmission {
    inner: Arc<CallsInner>,
    id: ToolId,
    rules: Arc<config::CallsConfig>,
    limiter: Arc<ScenarioLimiter>,
    route: Arc<CallRoute>,
    /// Keeps the program awake.
    _awake: AwakeHold,
    _permit: CallPermit,
}

impl AttemptAdmission {
    /// Waits for a permit and a route. A caller that cancels meanwhile ends the wait.
    pub(super) async fn wait(
        inner: &Arc<CallsInner>,
        id: &ToolId,
        caller: &CallerKey,
        io: Option<&Arc<dyn CallIo>>,
    ) -> Result<Self, ExecuteError> {
        let Some(io) = io else {
            return Self::acquire(inner, id, caller).await;
        };
        if routing::is_asleep(inner, &id.scenario) {
            io.progress(CallProgress {
                done: 0.0,
                total: None,
                message: Some(format!("starting the program of `{}`", id.scenario)),
            });
        }
        tokio::select! {
            biased;
            () = cancelled_by_caller(&**io) => Err(cancelled(id)),
            admitted = Self::acquire(inner, id, caller) => admitted,
        }
    }

    async fn acquire(
        inner: &Arc<CallsInner>,
        id: &ToolId,
        caller: &CallerKey,
    ) -> Result<Self, ExecuteError> {
        let scenario = &id.scenario;
        let rules = inner.config.load_full();
        let limiter = inner.limits.scenario_limiter(scenario, &rules);
        match routing::usable(inner, scenario) {
            // What the breaker refuses does not wait for a permit.
            Some(route) => limiter.would_pass(id, route.generation)?,
            // All permits are held by calls that wait for a route. More waiting calls would fill
            // the queue that all scenarios share.
            // One that sleeps is started in any case, so calls take turns as for one that runs.
            None if limiter.is_full_for(caller) && !routing::is_asleep(inner, scenario) => {
                return Err(routing::unavailable(inner, id, None));
            }
            None => {}
        }
        let permit = inner
            .limits
            .acquire(scenario, &limiter, caller, &rules)
            .await?;
        // It waits with its permit, so the limits also apply to the calls that wait here.
        let HeldRoute { route, awake } = routing::first(inner, id, rules.reroute_wait).await?;
        Ok(Self {
            inner: Arc::clone(inner),
            id: id.clone(),
            rules,
            limiter,
            route,
            _awake: awake,
            _permit: permit,
        })
    }

    /// The configuration under which it was admitted.
    pub(super) fn rules(&self) -> &Arc<config::CallsConfig> {
        &self.rules
    }

    /// The route of the first attempt.
    pub(super) fn route(&self) -> &Arc<CallRoute> {
        &self.route
    }

    /// Lets one attempt by this route pass the breakers.
    pub(super) fn pass(&self, to: &CallRoute) -> Result<(), ExecuteError> {
        self.limiter.pass(&self.id, to.generation, &self.rules)
    }

    /// Makes one attempt that passed the breaker: waits for what the session of this route answers,
    /// which applies the limit `longest` itself. The result is reported to the engine and to the
    /// breaker.
    pub(super) async fn attempt(
        &self,
        to: &CallRoute,
        sent: BoxFuture<'_, Result<Outcome, CallError>>,
        longest: Duration,
        line: &CallLine,
    ) -> Result<Outcome, CallError> {
        // This second limit is for a session that does not apply it.
        let limit = longest.saturating_add(SESSION_SLACK);
        let began = self.inner.clock.now();
        let answered = tokio::select! {
            biased;
            answered = sent => answered,
            () = line.expired(began, limit) => {
                Err(CallError::Unanswered(TransportError::Timeout { url: to.address.to_string(), limit }))
            }
        };
        let answered = match answered {
            Ok(outcome) => {
                let bytes = outcome.bytes();
                self.inner
                    .tasks
                    .work_on_body(BodyStep::Further, bytes, move || readable(outcome))
                    .await
            }
            Err(error) => Err(error),
        };
        self.report(to, &answered, line);
        answered
    }

    /// Reports the result of an attempt to the engine and to the breaker.
    fn report(&self, to: &CallRoute, answered: &Result<Outcome, CallError>, line: &CallLine) {
        match answered {
            Ok(_) => self
                .inner
                .engine
                .report_call(&self.id.scenario, to, CallReport::Answered),
            Err(CallError::Unsent(TransportError::Refused(_))) => {
                self.inner
                    .engine
                    .report_call(&self.id.scenario, to, CallReport::Refused);
            }
            Err(_) => {}
        }
        let end = AttemptEnd::of(answered);
        if end == AttemptEnd::Answered || !line.is_cancelled() {
            self.limiter
                .ended(&self.id.tool, to.generation, end, &self.rules);
        }
    }
}

/// The refusal of what its caller cancelled before it was sent.
fn cancelled(id: &ToolId) -> ExecuteError {
    let reason = "its caller cancelled the call before it was sent".to_owned();
    ExecuteError::Unavailable {
        id: id.clone(),
        reason,
    }
}

/// Refuses a result that nests so deep that the caller, or the reader of a stored approval, could
/// not read it.
fn readable(outcome: Outcome) -> Result<Outcome, CallError> {
    let parts = [&outcome.result, &outcome.content];
    if !parts
        .into_iter()
        .flatten()
        .any(|part| part.nests_deeper_than(LEVELS_MAX))
    {
        return Ok(outcome);
    }
    Err(CallError::NotThisProtocol {
        answered: outcome
            .status
            .map_or_else(|| "with a result".to_owned(), status_text),
        status: outcome.status,
        excerpt: format!("its result nests deeper than {LEVELS_MAX} levels"),
        retry_after: None,
    })
}
