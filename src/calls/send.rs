//! Sends a call that passed all checks: rate, permit, breaker, and further tries.
//!
//! A call is sent once, with two exceptions that cannot run a tool twice against its declaration.
//! If no part of the call was sent, this waits a moment for a new route and tries it there once. If
//! the connection broke and the tool declares that calling it again is safe, the call is repeated.
//! A call that its caller cancelled gets no further try.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::argument_form::MAX_DEPTH;
use super::caller::CallLine;
use super::limits::{CallPermit, ScenarioLimiter};
use super::recorder::CallRecorder;
use super::{
    CallResponse, Calls, CallsInner, ExecuteError, PreparedCall, activity, allow, approval, resolve, results, routing,
};
use crate::config;
use crate::engine::{CallReport, CallRoute};
use crate::model::ToolId;
use crate::protocols::{Call, CallError, CallIo, Outcome, cancelled_by_caller};
use crate::runtime::tasks::panic_text;
use crate::transports::{TransportError, status_text};

/// How much longer than its limit a session may take to report that a call took too long.
const SLACK: Duration = Duration::from_secs(5);
/// A result of at most so many bytes is checked on the thread that serves requests.
const BRIEF_RESULT_BYTES: usize = 64 * 1024;
/// The pause before a call is repeated.
const PAUSE: Duration = Duration::from_millis(100);

impl Calls {
    /// Waits for a permit and sends the call. From then on the call continues to its end, whether
    /// or not its caller still waits.
    pub(super) async fn send(&self, ready: PreparedCall) -> Result<CallResponse, ExecuteError> {
        self.send_with(Box::new(ready), None, None).await
    }

    /// The same for a call that is recorded when it is over. `took` of the answer is that of the
    /// whole call. Boxed, because it is moved several times, and each move would enlarge the future
    /// of a waiting call.
    pub(super) async fn send_noted(
        &self,
        ready: Box<PreparedCall>,
        note: CallRecorder,
        caller: Option<Arc<dyn CallIo>>,
    ) -> Result<CallResponse, ExecuteError> {
        self.send_with(ready, Some(note), caller).await
    }

    async fn send_with(
        &self,
        ready: Box<PreparedCall>,
        note: Option<CallRecorder>,
        caller: Option<Arc<dyn CallIo>>,
    ) -> Result<CallResponse, ExecuteError> {
        let turn = match &caller {
            None => self.turn(ready).await,
            Some(caller) => {
                let id = ready.tool.id.clone();
                tokio::select! {
                    biased;
                    () = cancelled_by_caller(&**caller) => Err(cancelled(id)),
                    turn = self.turn(ready) => turn,
                }
            }
        };
        match turn {
            Ok(sending) => self.begin(sending, note, caller).await,
            Err(refused) => record(Err(refused), note),
        }
    }

    /// Sends a call that has its permit. Not part of the future that waits for permits, so its
    /// large parts exist only while it is sent.
    fn begin(
        &self,
        sending: Box<Sending>,
        note: Option<CallRecorder>,
        caller: Option<Arc<dyn CallIo>>,
    ) -> impl Future<Output = Result<CallResponse, ExecuteError>> + use<> {
        let id = sending.ready.tool.id.clone();
        let (line, presence) = CallLine::new(id.clone(), caller, self.0.clock);
        let span = tracing::info_span!("call", scenario = %id.scenario, tool = &*id.tool, trace = tracing::field::Empty, outcome = tracing::field::Empty);
        if let Some(trace) = line.trace() {
            span.record("trace", trace.id());
        }
        let call_span = span.clone();
        let run = async move {
            let note = note.map(|mut note| {
                note.is_sent();
                note
            });
            record(sending.run(line, call_span).await, note)
        };
        let sent = self.0.tasks.run_to_completion(AssertUnwindSafe(run.instrument(span)).catch_unwind());
        sent.map(move |sent| {
            drop(presence);
            sent.unwrap_or_else(|panic| {
                tracing::error!(scenario = %id.scenario, tool = &*id.tool, error = panic_text(&*panic), "a call failed inside callsheet");
                Err(ExecuteError::Internal(id))
            })
        })
    }

    /// Waits for a permit.
    async fn turn(&self, ready: Box<PreparedCall>) -> Result<Box<Sending>, ExecuteError> {
        let inner = &self.0;
        let rules = inner.config.load_full();
        let (id, scenario) = (&ready.tool.id, &ready.tool.id.scenario);
        inner.limits.rate(&ready.tool, &ready.scope)?;
        let lane = inner.limits.scenario_limiter(scenario, &rules);
        match routing::usable(inner, scenario) {
            // A call that the breaker refuses does not wait for a permit.
            Some(route) => lane.would_pass(scenario, route.generation)?,
            // All permits are held by calls that wait for a route. More waiting calls would fill
            // the queue that all scenarios share.
            None if lane.is_full() => return Err(routing::unavailable(inner, id, None)),
            None => {}
        }
        let turn = inner.limits.acquire(scenario, &lane, &rules).await?;
        let route = match routing::usable(inner, scenario) {
            Some(route) => route,
            // It waits with its permit, so the limits also apply to the calls that wait here.
            // Boxed, since it is rare.
            None => Box::pin(routing::first(inner, id, rules.reroute_wait)).await?,
        };
        // Boxed, because it is moved several times.
        Ok(Box::new(Sending { inner: Arc::clone(inner), rules, ready, lane, route, _turn: turn }))
    }
}

/// Refuses a result that nests so deep that the caller, or the reader of a stored approval, could
/// not read it.
fn readable(outcome: Outcome) -> Result<Outcome, CallError> {
    let parts = [&outcome.result, &outcome.content];
    if !parts.into_iter().flatten().any(|part| part.nests_deeper_than(MAX_DEPTH)) {
        return Ok(outcome);
    }
    Err(CallError::NotThisProtocol {
        answered: outcome.status.map_or_else(|| "with a result".to_owned(), status_text),
        status: outcome.status,
        excerpt: format!("its result nests deeper than {MAX_DEPTH} levels"),
        retry_after: None,
    })
}

/// The refusal of a call that its caller cancelled before it was sent.
fn cancelled(id: ToolId) -> ExecuteError {
    ExecuteError::Unavailable { id, reason: "its caller cancelled the call before it was sent".to_owned() }
}

/// Records the outcome of a call.
fn record(
    answered: Result<CallResponse, ExecuteError>,
    note: Option<CallRecorder>,
) -> Result<CallResponse, ExecuteError> {
    let Some(note) = note else { return answered };
    let took = note.ended(&answered);
    answered.map(|answered| CallResponse { took, ..answered })
}

/// A call under way.
struct Sending {
    inner: Arc<CallsInner>,
    rules: Arc<config::CallsConfig>,
    ready: Box<PreparedCall>,
    lane: Arc<ScenarioLimiter>,
    /// The route of the first try.
    route: Arc<CallRoute>,
    _turn: CallPermit,
}

/// The further tries that a call has used.
#[derive(Default)]
struct Used {
    /// The try by another route, for a call that was not sent.
    reroute: bool,
    /// The repeats, for a tool that may be called again.
    repeats: u32,
}

impl Sending {
    async fn run(self: Box<Self>, line: CallLine, span: tracing::Span) -> Result<CallResponse, ExecuteError> {
        let begun = self.inner.clock.now();
        let (tool, mut attempts) = (&self.ready.tool, 0);
        let mut call = self.call();
        let longest = call.limit(self.rules.max_timeout);
        let mut to = Arc::clone(&self.route);
        let mut used = Used::default();
        self.still_allowed()?;
        self.owned(&to)?;
        if let Some(answered) = activity::latent_response(&self.ready) {
            return Ok(answered);
        }
        self.lane.pass(&tool.id.scenario, to.generation, &self.rules)?;
        let answered = loop {
            attempts += 1;
            let error = match self.try_at(&to, &call, &line).await {
                Ok(outcome) => break Ok((outcome, to)),
                Err(error) => error,
            };
            let next = tokio::select! {
                biased;
                () = line.cancelled_by_caller() => None,
                next = self.next(&error, &to, &mut used) => next,
            };
            let left = (longest + line.waited()).saturating_sub(self.inner.clock.now() - begun);
            let passes =
                |next: &Arc<CallRoute>| self.lane.pass(&tool.id.scenario, next.generation, &self.rules).is_ok();
            match next.filter(|next| {
                !left.is_zero() && self.owned(next).is_ok() && self.still_allowed().is_ok() && passes(next)
            }) {
                Some(next) => (to, call.longest) = (next, left),
                None => break Err(ExecuteError::Failed { id: tool.id.clone(), error, attempts }),
            }
        };
        let spent = self.inner.clock.now() - begun;
        let answered = match answered {
            Ok((outcome, to)) => {
                let answered = self.answered(outcome, &to, attempts).await;
                answered.map(|answered| CallResponse { took: spent, ..answered })
            }
            Err(refused) => Err(refused),
        };
        span.record("outcome", super::outcome(&answered));
        answered
    }

    /// The response with this outcome, if there is memory for it until the caller has its answer.
    async fn answered(&self, outcome: Outcome, to: &CallRoute, attempts: u32) -> Result<CallResponse, ExecuteError> {
        let PreparedCall { tool, definition, scope, adjusted, .. } = &*self.ready;
        // First, so that an operation is followed also where its first result is left out.
        let going = Calls(Arc::clone(&self.inner)).follow(&self.ready, &to.party, &outcome).await;
        let held = self.inner.held.hold_result(scope, &outcome).map_err(|exceeded| ExecuteError::ResultLeftOut {
            id: tool.id.clone(),
            bytes: outcome.bytes(),
            exceeded,
            attempts,
        })?;
        results::note(&self.inner, &self.ready, &outcome, &self.rules);
        Ok(CallResponse {
            tool: Arc::clone(tool),
            definition: definition.clone(),
            outcome,
            url: to.address.to_string(),
            took: Duration::ZERO,
            attempts,
            adjusted: adjusted.clone(),
            going,
            _held: Some(Arc::new(held)),
        })
    }

    /// The route for one more try of a call that failed with `error`, if it may have one.
    async fn next(&self, error: &CallError, tried: &CallRoute, used: &mut Used) -> Option<Arc<CallRoute>> {
        let scenario = &self.ready.tool.id.scenario;
        if !error.was_sent() && !used.reroute {
            used.reroute = true;
            routing::another(&self.inner, scenario, tried, self.rules.reroute_wait).await
        } else if self.may_repeat(error) && used.repeats < self.rules.retries {
            used.repeats += 1;
            self.inner.clock.sleep(PAUSE).await;
            routing::any(&self.inner, scenario, self.rules.reroute_wait).await
        } else {
            None
        }
    }

    /// The call as the session gets it.
    fn call(&self) -> Call {
        let PreparedCall { tool, arguments, user_id, .. } = &*self.ready;
        // Some scenarios write zero if they set no limit.
        let declared = tool.tool.facts.timeout_seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs);
        let timeout = self.ready.timeout.or(declared);
        Call {
            tool: Arc::clone(&tool.id.tool),
            arguments: arguments.clone(),
            user_id: user_id.clone(),
            timeout,
            longest: self.rules.max_timeout,
            max_body: self.rules.max_body,
            resumed: self.ready.resumed.clone(),
        }
    }

    /// Judges the call again by the present catalog: it may have waited, and a change that an
    /// operator or user made meanwhile holds. Calls of companion tools are judged by the operation
    /// that they belong to.
    fn still_allowed(&self) -> Result<(), ExecuteError> {
        if !self.ready.follow {
            return Ok(());
        }
        let snapshot = self.inner.reader.snapshot();
        let tool = resolve::again(&snapshot.catalog, &self.ready)?;
        allow::check(&snapshot.catalog, &self.ready.scope, &tool)?;
        // A call with an owner was approved.
        if self.ready.owner.is_none() && approval::needed(&tool) {
            return Err(ExecuteError::ApprovalRequired { id: tool.id.clone(), waiting: None, adjusted: Vec::new() });
        }
        Ok(())
    }

    /// Refuses a route to another peer than the one that the call is for.
    fn owned(&self, to: &CallRoute) -> Result<(), ExecuteError> {
        match &self.ready.owner {
            Some(owner) if !owner.holds_for(&to.party) => {
                let (id, owner, now) = (self.ready.tool.id.clone(), owner.clone(), to.party.clone());
                Err(ExecuteError::OtherOwner { id, owner, now })
            }
            _ => Ok(()),
        }
    }

    /// One try. Its result is reported to the engine and to the breaker.
    async fn try_at(&self, to: &CallRoute, call: &Call, line: &CallLine) -> Result<Outcome, CallError> {
        // A session applies the limit itself. This second limit is for one that does not.
        let limit = call.longest.saturating_add(SLACK);
        let began = self.inner.clock.now();
        let outcome = tokio::select! {
            biased;
            outcome = to.session.call(call, line) => outcome,
            () = line.expired(began, limit) => {
                Err(CallError::Unanswered(TransportError::Timeout { url: to.address.to_string(), limit }))
            }
        };
        let outcome = match outcome {
            // Reading a large one takes a while.
            Ok(outcome) if outcome.bytes() > BRIEF_RESULT_BYTES => {
                self.inner.tasks.blocking(move || readable(outcome)).await
            }
            Ok(outcome) => readable(outcome),
            Err(error) => Err(error),
        };
        let scenario = &self.ready.tool.id.scenario;
        match &outcome {
            Ok(_) => self.inner.engine.report_call(scenario, to, CallReport::Answered),
            Err(CallError::Unsent(TransportError::Refused(_))) => {
                self.inner.engine.report_call(scenario, to, CallReport::Refused);
            }
            Err(_) => {}
        }
        let well = !outcome.as_ref().is_err_and(|error| !matches!(error, CallError::NotCallable(_)));
        if well || !line.is_cancelled() {
            self.lane.ended(to.generation, well, &self.rules);
        }
        outcome
    }

    /// Whether the tool may be called again although it may have run.
    fn may_repeat(&self, error: &CallError) -> bool {
        let broke = match error {
            CallError::Unsent(error) | CallError::Unanswered(error) => matches!(error, TransportError::Broken { .. }),
            // These statuses come from a gateway before the scenario.
            CallError::NotThisProtocol { status, .. } => matches!(status, Some(502..=504)),
            CallError::NotCallable(_) => false,
        };
        broke && self.ready.tool.tool.facts.idempotent
    }
}
