//! Several calls that belong together, as a model emits them in one answer.
//!
//! All of them are made, or the first one that succeeds or ends decides. What is not needed any
//! more is cancelled where its scenario can cancel; a call that its scenario cannot stop runs to
//! its end, and its outcome is counted. So only tools that may be called again without harm
//! compete.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::call_mode::{CallMode, CannotCompete};
use super::{CallResponse, Calls, ExecuteError, Request, activity, resolve};
use crate::model::{Execution, Tool, ToolId};
use crate::protocols::{CallIo, Cancelled};
use crate::runtime::{Stop, StopTrigger};

/// The caller of one of several calls, which cancels it once it is not needed.
struct CompetingCaller(Stop);

impl CallIo for CompetingCaller {
    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        let stop = self.0.clone();
        Box::pin(async move {
            stop.wait().await;
            Cancelled::ByCaller
        })
    }
}

/// Makes `count` calls, at most `parallel` at a time (at least one), and gives the outcome of each,
/// in their order; `None` of one that was not needed. `call` makes the call of this index, and ends
/// it once the stop that it gets was requested. `decides` says whether an outcome makes the other
/// calls needless.
pub async fn run_several<T, F>(
    count: usize,
    parallel: usize,
    call: impl Fn(usize, Stop) -> F,
    decides: impl Fn(&T) -> bool,
) -> Vec<Option<T>>
where
    F: Future<Output = T>,
{
    let (others, stop) = StopTrigger::new();
    let indexed = |index: usize| {
        let outcome = call(index, stop.clone());
        async move { (index, outcome.await) }
    };
    let mut outcomes: Vec<Option<T>> = std::iter::repeat_with(|| None).take(count).collect();
    let mut waiting = 0..count;
    let mut running: FuturesUnordered<_> = waiting
        .by_ref()
        .take(parallel.max(1))
        .map(indexed)
        .collect();
    while let Some((index, outcome)) = running.next().await {
        let is_decided = decides(&outcome);
        if let Some(place) = outcomes.get_mut(index) {
            *place = Some(outcome);
        }
        if is_decided {
            others.stop();
            break;
        }
        running.extend(waiting.next().map(indexed));
    }
    outcomes
}

impl Calls {
    /// Makes several calls, at most `parallel` at a time, and gives the outcome of each, in their
    /// order; `None` of one that was not needed. Dropping this future does to each call what
    /// dropping that of [`execute`](Self::execute) does.
    pub async fn execute_several(
        &self,
        requests: Vec<Request>,
        mode: CallMode,
        parallel: usize,
    ) -> Result<Vec<Option<Result<CallResponse, ExecuteError>>>, CannotCompete> {
        self.may_compete(&requests, mode)?;
        let call = |index: usize, stop: Stop| {
            let request = requests.get(index).cloned();
            let caller: Arc<dyn CallIo> = Arc::new(CompetingCaller(stop));
            async move {
                match request {
                    Some(request) => Some(self.execute_for(request, Some(caller)).await),
                    None => None,
                }
            }
        };
        let decides = |outcome: &Option<Result<CallResponse, ExecuteError>>| match outcome {
            Some(Ok(answered)) => mode.is_decided_by(true, answered.outcome.success),
            Some(Err(error)) => mode.is_decided_by(!error.is_refusal(), false),
            None => false,
        };
        let outcomes = run_several(requests.len(), parallel, call, decides).await;
        Ok(outcomes.into_iter().map(Option::flatten).collect())
    }

    /// Refuses calls of tools that are not declared idempotent, unless all calls are wanted. A
    /// latent call is sent nowhere. A call whose tool is not found is refused by itself.
    pub fn may_compete(&self, requests: &[Request], mode: CallMode) -> Result<(), CannotCompete> {
        if mode == CallMode::All {
            return Ok(());
        }
        let snapshot = self.0.reader.snapshot();
        let history = self.0.reader.history();
        let unsafe_tool = |request: &Request| {
            let scope = request.scope();
            let called = resolve::tool(&snapshot.catalog, &history, &scope, request).ok()?;
            if called.execution == Execution::Latent {
                return None;
            }
            let runner = activity::runner(&snapshot.catalog, &scope, &called)
                .ok()?
                .unwrap_or(called);
            (!is_safe_to_repeat(&runner.tool)).then(|| runner.id.clone())
        };
        let mut tools: Vec<ToolId> = Vec::new();
        for tool in requests.iter().filter_map(unsafe_tool) {
            if !tools.contains(&tool) {
                tools.push(tool);
            }
        }
        if tools.is_empty() {
            Ok(())
        } else {
            Err(CannotCompete { mode, tools })
        }
    }
}

/// Whether a tool declares that it may be called again without harm.
fn is_safe_to_repeat(tool: &Tool) -> bool {
    let hints = ["hint:idempotent", "hint:read-only"];
    tool.facts.idempotent || tool.facts.tags.iter().any(|tag| hints.contains(&&**tag))
}
