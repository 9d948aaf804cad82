//! What a session and the caller say to each other while a call runs.
//!
//! A session reports progress and log messages and requests input through [`CallIo`], and learns
//! there that the call is not wanted any more. It never carries the call itself or its answer.

use std::fmt;

use callsheet_provide::ToolFuture;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

use super::call_log::CallLog;
use super::input::{CallerOffers, DeclinedInput, InputWanted};
use super::trace::TraceContext;
use crate::bundles::CallContext;
use crate::model::{CallerInfo, JsonText};
use crate::runtime::StopTrigger;

/// The caller's side of one call. A face implements it for its callers, and the session that runs
/// the call uses it. Every method has a default for callers that take no part.
pub trait CallIo: Send + Sync {
    /// What the caller can do while the call runs. A scenario requests nothing else of it. By
    /// default nothing.
    fn offers(&self) -> CallerOffers {
        CallerOffers::default()
    }

    /// The trace that the call belongs to. By default none.
    fn trace(&self) -> Option<&TraceContext> {
        None
    }

    /// The tool reports its progress.
    fn progress(&self, progress: CallProgress) {
        let _ = progress;
    }

    /// The tool sends a log message. A caller gets those that are as severe as its offers say.
    fn log(&self, line: CallLog) {
        let _ = line;
    }

    /// The tool needs input of the caller to continue, and waits for it. A caller is requested only
    /// what it offers. Gives the result of the request as it came, one JSON object such as
    /// `{"action":"accept","content":{"name":"Ada"}}`. `None`, as by default, of a caller that gives
    /// none: then the session declines to its scenario as its protocol has it.
    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        let _ = wanted;
        Box::pin(std::future::ready(None))
    }

    /// The session declined a question of the tool, for this reason, so that the tool was answered
    /// without its user. By default ignored.
    fn declined(&self, why: DeclinedInput) {
        let _ = why;
    }

    /// Completes when the call is not wanted any more. A session that can inform its scenario does;
    /// one that cannot continues. A call that its caller cancelled is not tried again. Requested
    /// several times during a call: each of these futures completes, also one that is made after
    /// the caller cancelled. By default never.
    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        Box::pin(std::future::pending())
    }
}

/// The progress of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallProgress {
    /// How much is done. It grows from one to the next.
    pub done: f64,
    /// The amount that is complete, if that is known.
    pub total: Option<f64>,
    /// For people.
    pub message: Option<String>,
}

/// Why a call is not wanted any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// The caller cancelled it.
    ByCaller,
    /// The caller went away. What the tool has begun is counted all the same, so a session may let
    /// it go on.
    CallerGone,
}

/// The side of a caller that takes no part: it ignores progress, gives no input and never cancels.
#[derive(Debug, Clone, Copy)]
pub struct NoCaller;

impl CallIo for NoCaller {}

/// Completes when the caller cancels its call. One that goes away does not cancel: a call that was
/// sent continues then.
pub(crate) fn cancelled_by_caller(io: &dyn CallIo) -> impl Future<Output = ()> + Send + use<> {
    let cancelled = io.cancelled();
    async move {
        if cancelled.await == Cancelled::CallerGone {
            std::future::pending::<()>().await;
        }
    }
}

/// Runs a function of the program within a limit, and informs it when its caller cancels the call.
/// `None` if it took longer. A function that ignores that runs to its end.
pub(crate) async fn run_function(
    function: impl FnOnce(CallContext) -> ToolFuture + Send,
    caller: CallerInfo,
    deadline: Instant,
    io: &dyn CallIo,
) -> Option<Result<Value, String>> {
    let (trigger, cancelled) = StopTrigger::new();
    let context = CallContext {
        caller,
        deadline: Some(deadline),
        cancelled,
    };
    let running = tokio::time::timeout_at(deadline, function(context));
    let informed = async {
        cancelled_by_caller(io).await;
        trigger.stop();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = running => ended.ok(),
        () = informed => None,
    }
}

impl fmt::Display for CallProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.done)?;
        if let Some(total) = self.total {
            write!(f, " of {total}")?;
        }
        self.message
            .iter()
            .try_for_each(|message| write!(f, ": {message}"))
    }
}
