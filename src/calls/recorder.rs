//! The record of one call when it is over: it is counted, added to the log, and written
//! to the audit log if there is one.
//!
//! The record is part of the task that runs the call, so it is made whether or not a client still
//! waits. It only adds to counters and puts a line into a queue; it never waits.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::ExecuteError;
use super::audit::{AuditEntry, AuditSettings};
use super::ended_call::EndedCall;
use super::held::CallerKey;
use super::inner::CallsInner;
use super::log::CallPayload;
use super::log::queue::{LogLine, LogQueue};
use super::request::{CallResponse, PreparedCall, Request, collected, outcome};
use super::usage::FinishedCall;
use crate::model::{ApprovalRequest, JsonText, ToolId, short_caller_text};
use crate::runtime::ReservedBytes;

/// The outcome of a call whose client went away before it was sent.
pub(super) const GIVEN_UP: &str = "given_up";

/// The record of one call that is not over.
#[derive(Debug)]
pub(super) struct CallRecorder {
    inner: Arc<CallsInner>,
    begun: Instant,
    call: EndedCall,
    /// The outcome if it is dropped before an outcome was set.
    otherwise: Option<&'static str>,
    /// Taken at the begin, so that a call that ends while the daemon stops is still written.
    queue: Option<Arc<LogQueue>>,
    /// The arguments for the log, where it keeps them.
    arguments: Option<JsonText>,
    /// The audit log with the arguments for it, where one is configured.
    audit: Option<(Arc<AuditSettings>, JsonText)>,
    /// The reason that the caller's model gave for the call, shortened.
    reasoning: Option<String>,
    /// What is reserved for its arguments.
    held: Option<ReservedBytes>,
}

impl CallRecorder {
    /// The record of a call that is requested now.
    pub(super) fn for_request(inner: &Arc<CallsInner>, request: &Request) -> Self {
        Self::new(
            inner,
            EndedCall::of_request(request, inner.clock.wall()),
            &request.arguments,
        )
    }

    /// The record of an approved call.
    pub(super) fn for_approved(
        inner: &Arc<CallsInner>,
        ready: &PreparedCall,
        approval: &Arc<str>,
    ) -> Self {
        Self::new(
            inner,
            EndedCall::of_approved(ready, approval, inner.clock.wall()),
            &ready.arguments,
        )
    }

    /// Records a call that needed approval and is over without an answer: it is added to the logs.
    /// It was counted when it was requested.
    pub(super) fn ended_unanswered(
        inner: &Arc<CallsInner>,
        request: &ApprovalRequest,
        code: &'static str,
        why: &str,
    ) {
        let mut record = Self::new(inner, EndedCall::of_approval(request), &request.arguments);
        record.otherwise = None;
        record.call.unanswered(code, why);
        let waited = inner.clock.wall().duration_since(request.asked_at);
        record.keep(code, None, Duration::try_from(waited).unwrap_or_default());
    }

    fn new(inner: &Arc<CallsInner>, call: EndedCall, arguments: &JsonText) -> Self {
        let config = inner.config.load();
        let audit = AuditSettings::from_config(&config).map(|audit| (audit, arguments.clone()));
        let arguments = (config.log_payloads > 0).then(|| arguments.clone());
        let begun = inner.clock.now();
        let queue = inner.queue.load_full();
        Self {
            inner: Arc::clone(inner),
            begun,
            call,
            otherwise: Some(GIVEN_UP),
            queue,
            arguments,
            audit,
            reasoning: None,
            held: None,
        }
    }

    /// Reserves the arguments of the call until it is over. Those of approved calls are counted
    /// with their approvals.
    pub(super) fn hold_arguments(&mut self, request: &Request) -> Result<(), ExecuteError> {
        let bytes = request.arguments.get().len();
        let caller = CallerKey::of(&request.requester, &request.scope());
        let held = self.inner.held.hold_arguments(&caller, bytes);
        let held = held.map_err(|exceeded| ExecuteError::NoRoom {
            name: request.name.clone(),
            exceeded,
        })?;
        self.held = Some(held);
        Ok(())
    }

    /// Sets the tool of the call.
    pub(super) fn set_tool(&mut self, id: &ToolId) {
        self.call.tool = Some(id.clone());
    }

    /// Sets the reason that the caller's model gave for the call, for the audit log.
    pub(super) fn set_reasoning(&mut self, reasoning: Option<&str>) {
        self.reasoning = reasoning.map(short_caller_text);
    }

    /// The call was sent. From now on it continues to its end, so a missing outcome is a failure
    /// inside this program.
    pub(super) fn is_sent(&mut self) {
        self.otherwise = Some("internal");
    }

    /// How long it has taken so far.
    fn took(&self) -> Duration {
        self.inner.clock.now() - self.begun
    }

    /// Records the outcome and returns how long the call took.
    pub(super) fn ended(mut self, answered: &Result<CallResponse, ExecuteError>) -> Duration {
        self.otherwise = None;
        let took = self.took();
        let waits = matches!(
            answered,
            Err(ExecuteError::ApprovalRequired {
                waiting: Some(_),
                ..
            })
        );
        let sent = matches!(
            answered,
            Ok(_) | Err(ExecuteError::Failed { .. } | ExecuteError::ResultLeftOut { .. })
        );
        let well = answered.as_ref().is_ok_and(|answered| {
            answered.outcome.success || answered.outcome.input_required.is_some()
        });
        self.count(outcome(answered), took, !waits, well, sent);
        match collected(answered) {
            Some(request) => self.call.collected(request),
            None => self.call.answered(answered),
        }
        self.keep(outcome(answered), Some(answered), took);
        took
    }

    fn count(&self, outcome: &'static str, took: Duration, of_tool: bool, well: bool, sent: bool) {
        self.inner.counts.ended(outcome, took);
        if let Some(id) = self.call.tool.as_ref().filter(|_| of_tool) {
            self.inner.usage.ended(
                id,
                FinishedCall {
                    outcome,
                    well,
                    sent,
                    took,
                    at: self.inner.clock.wall(),
                },
            );
        }
    }

    /// Adds the call to the log, and has it written to the store and to the audit log.
    fn keep(
        &mut self,
        outcome: &'static str,
        answered: Option<&Result<CallResponse, ExecuteError>>,
        took: Duration,
    ) {
        self.call.outcome = Cow::Borrowed(outcome);
        self.call.took = took;
        let payload = self.payload(answered);
        let call = self
            .inner
            .log
            .add_call(self.call.clone(), payload, self.inner.clock.wall());
        let audit = self.audit.take().map(|(settings, arguments)| {
            (
                settings,
                AuditEntry {
                    call: Arc::clone(&call.call),
                    arguments,
                    reasoning: self.reasoning.take(),
                },
            )
        });
        if let Some(queue) = &self.queue {
            queue.enqueue(LogLine::Call(call, audit));
        }
    }

    /// What the log keeps of the arguments and of the result, if the operator still wants that.
    fn payload(
        &mut self,
        answered: Option<&Result<CallResponse, ExecuteError>>,
    ) -> Option<Arc<CallPayload>> {
        let arguments = self.arguments.take()?;
        let most = self.inner.config.load().log_payloads;
        if most == 0 {
            return None;
        }
        let tool = self.call.activity.as_ref().or(self.call.tool.as_ref());
        let route = tool.and_then(|id| self.inner.engine.route(&id.scenario));
        let masked = |text: String| match route {
            Some(route) => route.session.masked(text),
            None => text,
        };
        let outcome = answered
            .and_then(|answered| answered.as_ref().ok())
            .map(|answered| &answered.outcome);
        let result =
            outcome.and_then(|outcome| outcome.content.as_ref().or(outcome.result.as_ref()));
        Some(Arc::new(CallPayload::new(
            arguments.get(),
            result.map(JsonText::get),
            most,
            masked,
        )))
    }
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        let Some(outcome) = self.otherwise.take() else {
            return;
        };
        let took = self.took();
        self.count(outcome, took, true, false, false);
        self.keep(outcome, None, took);
    }
}
