//! Sends a call that passed all checks: rate, admission, and attempts.
//!
//! A call is sent once, with two exceptions that cannot run a tool twice against its declaration.
//! If no part of the call was sent, this waits a moment for a new route and tries it there once. If
//! the connection broke and the tool declares that calling it again is safe, the call is repeated.
//! A call that its caller cancelled gets no further try.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::attempt::AttemptAdmission;
use super::caller::CallLine;
use super::recorder::CallRecorder;
use super::{
    CallResponse, Calls, CallsInner, ExecuteError, PreparedCall, activity, allow, approval,
    resolve, results, routing,
};
use crate::engine::CallRoute;
use crate::protocols::{Call, CallError, CallIo, Outcome};
use crate::runtime::tasks::panic_text;
use crate::transports::TransportError;

/// The pause before a call is repeated.
const REPEAT_DELAY: Duration = Duration::from_millis(100);

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
        let share = ready.caller_key();
        let admitted = match self.0.limits.rate(&ready.tool, &share) {
            Ok(()) => {
                AttemptAdmission::wait(&self.0, &ready.tool.id, &share, caller.as_ref()).await
            }
            Err(refused) => Err(refused),
        };
        match admitted {
            Ok(admission) => {
                let sending = Sending {
                    inner: Arc::clone(&self.0),
                    ready,
                    admission,
                };
                // Boxed, because it is moved several times.
                self.begin(Box::new(sending), note, caller).await
            }
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
        let sent = self
            .0
            .tasks
            .run_to_completion(AssertUnwindSafe(run.instrument(span)).catch_unwind());
        sent.map(move |sent| {
            drop(presence);
            sent.unwrap_or_else(|panic| {
                tracing::error!(scenario = %id.scenario, tool = &*id.tool, error = panic_text(&*panic), "a call failed inside callsheet");
                Err(ExecuteError::Internal(id))
            })
        })
    }
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
    ready: Box<PreparedCall>,
    admission: AttemptAdmission,
}

/// The further tries that a call has used.
#[derive(Default)]
struct Used {
    /// The try by another route, for a call that was not sent.
    reroute: bool,
    /// The repeats, for a tool that may be called again.
    repeats: u32,
}

/// A call that was answered.
struct Tried {
    outcome: Outcome,
    /// The route of the last attempt.
    to: Arc<CallRoute>,
    attempts: u32,
}

impl Sending {
    async fn run(
        self: Box<Self>,
        line: CallLine,
        span: tracing::Span,
    ) -> Result<CallResponse, ExecuteError> {
        let begun = self.inner.clock.now();
        let route = Arc::clone(self.admission.route());
        self.still_allowed()?;
        self.owned(&route)?;
        if let Some(answered) = activity::latent_response(&self.ready) {
            return Ok(answered);
        }
        self.admission.pass(&route)?;
        let answered = self.tried(route, &line, begun).await;
        let spent = self.inner.clock.now() - begun;
        let answered = match answered {
            Ok(Tried {
                outcome,
                to,
                attempts,
            }) => {
                let answered = self.answered(outcome, &to, attempts).await;
                answered.map(|answered| CallResponse {
                    took: spent,
                    declined: line.question_declined(),
                    ..answered
                })
            }
            Err(refused) => Err(refused),
        };
        span.record("outcome", super::outcome(&answered));
        answered
    }

    /// Makes one attempt after the other until one is answered or the call may have no further one.
    async fn tried(
        &self,
        route: Arc<CallRoute>,
        line: &CallLine,
        begun: Instant,
    ) -> Result<Tried, ExecuteError> {
        let mut call = self.call();
        let longest = call.limit(self.admission.rules().max_timeout);
        let mut to = route;
        let mut used = Used::default();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let sent = to.session.call(&call, line);
            let error = match self.admission.attempt(&to, sent, call.longest, line).await {
                Ok(outcome) => {
                    return Ok(Tried {
                        outcome,
                        to,
                        attempts,
                    });
                }
                Err(error) => error,
            };
            let next = tokio::select! {
                biased;
                () = line.cancelled_by_caller() => None,
                next = self.next(&error, &to, &mut used) => next,
            };
            let left = (longest + line.waited()).saturating_sub(self.inner.clock.now() - begun);
            match next.filter(|next| !left.is_zero() && self.may_try(next)) {
                Some(next) => {
                    to = next;
                    call.longest = left;
                }
                None => {
                    return Err(ExecuteError::Failed {
                        id: self.ready.tool.id.clone(),
                        error,
                        attempts,
                    });
                }
            }
        }
    }

    /// Whether the call may be tried by this route too.
    fn may_try(&self, next: &CallRoute) -> bool {
        self.owned(next).is_ok()
            && self.still_allowed().is_ok()
            && self.admission.pass(next).is_ok()
    }

    /// The response with this outcome, if there is memory for it until the caller has its answer.
    async fn answered(
        &self,
        outcome: Outcome,
        to: &CallRoute,
        attempts: u32,
    ) -> Result<CallResponse, ExecuteError> {
        let PreparedCall {
            tool,
            definition,
            adjusted,
            ..
        } = &*self.ready;
        // First, so that an operation is followed also where its first result is left out.
        let going = Calls(Arc::clone(&self.inner))
            .follow(&self.ready, &to.party, &outcome)
            .await;
        let held = self
            .inner
            .held
            .hold_result(&self.ready.caller_key(), &outcome)
            .map_err(|exceeded| ExecuteError::ResultLeftOut {
                id: tool.id.clone(),
                bytes: outcome.bytes(),
                exceeded,
                attempts,
            })?;
        results::note(&self.inner, &self.ready, &outcome, self.admission.rules());
        Ok(CallResponse {
            tool: Arc::clone(tool),
            definition: definition.clone(),
            outcome,
            url: to.address.to_string(),
            took: Duration::ZERO,
            attempts,
            adjusted: adjusted.clone(),
            declined: None,
            going,
            _held: Some(Arc::new(held)),
        })
    }

    /// The route for one more try of a call that failed with `error`, if it may have one.
    async fn next(
        &self,
        error: &CallError,
        tried: &CallRoute,
        used: &mut Used,
    ) -> Option<Arc<CallRoute>> {
        let scenario = &self.ready.tool.id.scenario;
        if !error.was_sent() && !used.reroute {
            used.reroute = true;
            routing::another(
                &self.inner,
                scenario,
                tried,
                self.admission.rules().reroute_wait,
            )
            .await
        } else if self.may_repeat(error) && used.repeats < self.admission.rules().retries {
            used.repeats += 1;
            self.inner.clock.sleep(REPEAT_DELAY).await;
            routing::any(&self.inner, scenario, self.admission.rules().reroute_wait).await
        } else {
            None
        }
    }

    /// The call as the session gets it.
    fn call(&self) -> Call {
        let PreparedCall {
            tool,
            arguments,
            user_id,
            ..
        } = &*self.ready;
        // Some scenarios write zero if they set no limit.
        let declared = tool
            .tool
            .facts
            .timeout_seconds
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        let timeout = self.ready.timeout.or(declared);
        Call {
            tool: Arc::clone(&tool.id.tool),
            arguments: arguments.clone(),
            user_id: user_id.clone(),
            caller: self.ready.caller(),
            timeout,
            longest: self.admission.rules().max_timeout,
            max_body: self.admission.rules().max_body,
            resumed: self.ready.resumed.clone(),
        }
    }

    /// Judges the call again by the present catalog: it may have waited, and a change that an
    /// operator or user made meanwhile holds. Calls of companion tools are judged by the operation
    /// that they belong to, unless they are held.
    fn still_allowed(&self) -> Result<(), ExecuteError> {
        let snapshot = self.inner.reader.snapshot();
        if !self.ready.follow {
            return resolve::check_not_held(&snapshot.catalog, &self.ready.tool.id);
        }
        let tool = resolve::again(&snapshot.catalog, &self.ready)?;
        allow::check(&snapshot.catalog, &self.ready.scope, &tool)?;
        resolve::check_version_again(&snapshot.catalog, &self.ready)?;
        // A call with an owner was approved.
        if self.ready.owner.is_none() && approval::needed(&tool) {
            return Err(ExecuteError::ApprovalRequired {
                id: tool.id.clone(),
                waiting: None,
                adjusted: Vec::new(),
            });
        }
        Ok(())
    }

    /// Refuses a route to another peer than the one that the call is for.
    fn owned(&self, to: &CallRoute) -> Result<(), ExecuteError> {
        match &self.ready.owner {
            Some(owner) if !owner.holds_for(&to.party) => {
                let id = self.ready.tool.id.clone();
                let owner = owner.clone();
                let now = to.party.clone();
                Err(ExecuteError::OtherOwner { id, owner, now })
            }
            _ => Ok(()),
        }
    }

    /// Whether the tool may be called again although it may have run.
    fn may_repeat(&self, error: &CallError) -> bool {
        let broke = match error {
            CallError::Unsent(error) | CallError::Unanswered(error) => {
                matches!(error, TransportError::Broken { .. })
            }
            // These statuses come from a gateway before the scenario.
            CallError::NotThisProtocol { status, .. } => matches!(status, Some(502..=504)),
            CallError::NotCallable(_) => false,
        };
        broke && self.ready.tool.tool.facts.idempotent
    }
}
