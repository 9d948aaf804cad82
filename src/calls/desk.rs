//! Where calls wait for a yes and operations are followed: the two registers, and how they reach scenarios.
//!
//! Whatever was decided earlier is judged again at the moment of sending: the tool must still be offered, to whoever asked, by the same
//! party.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::approval::{self, Approvals, DecideError, Ran, Run, Standing, needed};
use super::track::{Ask, Begun, CancelError, Reply, Side, Started, Tracker, Unasked, Unoffered};
use crate::catalog::{CatalogReader, Found, ViewQuery, find_in_scope, out_of_bounds};
use crate::engine::{EngineHandle, Route};
use crate::model::{
    ApprovalRequest, Asker, CallAnswer, JsonText, NameRef, Operation, Party, Tool, ToolId, ViewTool,
};
use crate::protocols::{Call, CallError, Outcome};
use crate::runtime::Clock;

/// The registers of calls. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Desk {
    approvals: Approvals,
    operations: Tracker,
    engine: EngineHandle,
    reader: CatalogReader,
    clock: Clock,
}

impl Desk {
    /// Puts the parts together.
    pub fn new(approvals: Approvals, operations: Tracker, engine: EngineHandle, reader: CatalogReader, clock: Clock) -> Self {
        Self { approvals, operations, engine, reader, clock }
    }

    /// Goes on with what an earlier daemon had begun.
    pub async fn resume(&self) {
        self.operations.resume(self);
        self.approvals.resume(self).await;
    }

    /// The calls that need a yes.
    pub fn approvals(&self) -> &Approvals {
        &self.approvals
    }

    /// The operations that go on.
    pub fn operations(&self) -> &Tracker {
        &self.operations
    }

    /// Says yes to a call ([`Approvals::approve`]).
    pub async fn approve(&self, id: &str, by: &str) -> Result<Arc<ApprovalRequest>, DecideError> {
        self.approvals.approve(self, id, by).await
    }

    /// Calls an operation off ([`Tracker::cancel`]).
    pub async fn cancel(&self, id: &str) -> Result<Arc<Operation>, CancelError> {
        self.operations.cancel(self, id).await
    }

    /// Follows what goes on after an answer, if anything does.
    pub async fn begin(&self, id: &ToolId, tool: &Arc<Tool>, owner: &Party, asker: &Asker, outcome: &Outcome) -> Begun {
        if !outcome.success {
            return Begun::Over;
        }
        let started = Started {
            id: id.clone(),
            tool: Arc::clone(tool),
            owner: owner.clone(),
            asker: asker.clone(),
            result: outcome.result.clone(),
            document: outcome.document.clone(),
            running: outcome.running.is_some(),
        };
        self.operations.begin(self, started).await
    }

    /// The tool as whoever asks may call it now, and the way to it.
    fn callable(&self, id: &ToolId, asker: &Asker) -> Option<(Arc<ViewTool>, Arc<Route>)> {
        let route = self.engine.route(&id.scenario)?;
        let snapshot = self.reader.snapshot();
        let query = scope(asker);
        let Found::One(tool) = find_in_scope(&snapshot.catalog, &query, &NameRef::Id(id.clone())) else { return None };
        let allowed = tool.effective.enabled && out_of_bounds(&snapshot.catalog, &query, &tool).is_none();
        allowed.then_some((tool, route))
    }
}

/// The view of whoever asks.
pub(crate) fn scope(asker: &Asker) -> ViewQuery {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    ViewQuery { chat: text(&asker.chat), profile: text(&asker.profile), ..ViewQuery::default() }
}

impl Desk {
    /// Sends a call to whoever is at the end of this way.
    async fn send(&self, route: &Route, call: Call) -> Result<Outcome, CallError> {
        route.protocol.call(&route.upstream, &call).await
    }

    async fn run_approved(self, request: Arc<ApprovalRequest>) -> Ran {
        let begun = self.clock.now();
        let Some((tool, route)) = self.callable(&request.tool, &request.asker) else {
            return unanswered(format!("`{}` is not offered to whoever asked any more", request.tool), "not_allowed", 0);
        };
        // Judged once more, with the very way that it takes.
        let standing = Standing { owner: route.party.clone(), tool: Arc::clone(&tool.tool) };
        if let Some(change) = approval::changed(&request, Some(&standing)) {
            return unanswered(change, "changed", 0);
        }
        let call = self.call(&tool.tool, &request.arguments, &request.asker, None);
        let sent = self.send(&route, call).await;
        let took = u64::try_from((self.clock.now() - begun).as_millis()).unwrap_or(u64::MAX);
        match sent {
            Ok(outcome) => {
                let begun = self.begin(&request.tool, &tool.tool, &route.party, &request.asker, &outcome).await;
                Ran { answer: answer(outcome, &begun, took), answered: true }
            }
            Err(error) => unanswered(error.to_string(), error.kind(), took),
        }
    }

    async fn ask_once(self, ask: Ask) -> Result<Reply, Unasked> {
        let Ask { id, owner, arguments, asker, timeout } = ask;
        let unasked = |why: &dyn std::fmt::Display| Unasked { why: format!("`{}` {why}", id.tool), retry_after: None };
        let (tool, route) = self.partner(&id, &owner, &asker).map_err(|why| unasked(&why))?;
        let call = self.call(&tool.tool, &arguments, &asker, timeout);
        match self.send(&route, call).await {
            Ok(outcome) => Ok(Reply {
                success: outcome.success,
                result: outcome.result,
                document: outcome.document,
                error: outcome.error,
                retry_after: outcome.retry_after,
            }),
            Err(error) => Err(Unasked {
                why: format!("`{id}` could not be asked: {error}"),
                retry_after: error.retry_after(),
            }),
        }
    }

    fn call(&self, tool: &Tool, arguments: &JsonText, asker: &Asker, timeout: Option<Duration>) -> Call {
        let declared = tool.facts.timeout_seconds.map(Duration::from_secs);
        Call {
            tool: Arc::clone(&tool.name),
            arguments: arguments.clone(),
            user_id: asker.user_id.clone(),
            timeout: timeout.or(declared),
            longest: Duration::from_secs(600),
            max_body: 4 * 1024 * 1024,
        }
    }

    /// A tool that is asked unattended, and the way to it.
    fn partner(&self, id: &ToolId, owner: &Party, asker: &Asker) -> Result<(Arc<ViewTool>, Arc<Route>), Unoffered> {
        let Some(route) = self.engine.route(&id.scenario) else {
            return Err(Unoffered::Away("cannot be asked: its scenario may not be called now".to_owned()));
        };
        if !owner.holds_for(&route.party) {
            let why = format!("is not asked: the operation belongs to the one {owner}, and this is the one {}", route.party);
            return Err(Unoffered::Away(why));
        }
        let snapshot = self.reader.snapshot();
        let Found::One(tool) = find_in_scope(&snapshot.catalog, &scope(asker), &NameRef::Id(id.clone())) else {
            return Err(Unoffered::Never(format!("is not offered by `{}`", id.scenario)));
        };
        if needed(&tool) {
            return Err(Unoffered::Never("needs a human's approval, so it is not asked unattended".to_owned()));
        }
        Ok((tool, route))
    }
}

impl Run for Desk {
    fn standing(&self, request: &ApprovalRequest) -> Option<Standing> {
        let (tool, route) = self.callable(&request.tool, &request.asker)?;
        Some(Standing { owner: route.party.clone(), tool: Arc::clone(&tool.tool) })
    }

    fn run(&self, request: Arc<ApprovalRequest>) -> BoxFuture<'static, Ran> {
        self.clone().run_approved(request).boxed()
    }
}

impl Side for Desk {
    fn offered(&self, id: &ToolId, owner: &Party, asker: &Asker) -> Result<Arc<Tool>, Unoffered> {
        self.partner(id, owner, asker).map(|(tool, _)| Arc::clone(&tool.tool))
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'static, Result<Reply, Unasked>> {
        self.clone().ask_once(ask).boxed()
    }
}

fn answer(outcome: Outcome, begun: &Begun, took_ms: u64) -> CallAnswer {
    let Outcome { success, result, error, code, .. } = outcome;
    let (operation, untracked) = match begun {
        Begun::Followed(operation) => (Some(Arc::clone(&operation.id)), None),
        Begun::Untracked(why) => (None, Some(format!("it goes on, and cannot be followed: {why}"))),
        Begun::Over => (None, None),
    };
    let code = code.or(untracked.as_ref().map(|_| "untracked".to_owned()));
    let error = error.or(untracked);
    CallAnswer { success, result, error: error.map(Into::into), code: code.map(Into::into), took_ms, operation }
}

fn unanswered(error: String, code: &str, took_ms: u64) -> Ran {
    let answer = CallAnswer {
        success: false,
        result: None,
        error: Some(error.into()),
        code: Some(code.into()),
        took_ms,
        operation: None,
    };
    Ran { answer, answered: false }
}
