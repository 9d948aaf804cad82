//! Calls that wait for a yes and operations that go on, on their way to scenarios: by the same steps, limits and breakers as any other call.
//!
//! Whatever was decided earlier is judged again at the moment of sending: the tool must still be offered to whoever asked, and its scenario
//! must be who it was.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::approval::{self, Approvals, DecideError, Ran, Refusal, Run, Standing, Wanted, needed};
use super::parts::{Parts, Stored};
use super::pending::Registers;
use super::track::{self, Ask, Begun, CancelError, Reply, Side, Started, Tracker, Unasked, Unoffered};
use super::{Answered, Calls, Ready, Refused, allow, routing};
use crate::catalog::{Found, ViewQuery, find_in_scope};
use crate::config;
use crate::engine::Route;
use crate::model::{ApprovalRequest, Asker, CallAnswer, NameRef, Operation, Party, Tool, ToolId, ViewTool};
use crate::protocols::Outcome;

impl approval::Limits {
    /// The bounds that are configured.
    pub fn of(config: &config::Calls) -> Self {
        let config::Calls { approval_expiry: expiry, approvals_max: most, kept_bytes: bytes, keep, .. } = *config;
        Self { expiry, most, bytes, keep }
    }
}

impl track::Limits {
    /// The bounds that are configured.
    pub fn of(config: &config::Calls) -> Self {
        let config::Calls { operations_max: most, kept_bytes: bytes, keep, poll_min, poll_max, poll_longest, .. } =
            *config;
        Self { most, bytes, keep, poll_min, poll_max, longest: poll_longest }
    }
}

impl Calls {
    /// Gives it its registers, with what was stored; once. Without them a call that needs a yes is refused, and nothing is followed.
    pub fn attach(&self, stored: Stored, parts: Parts) {
        let config = self.0.config.load();
        let Stored { approvals, operations, usage } = stored;
        let tasks = parts.tasks.clone();
        // A second pair is not taken: the first may hold calls already.
        self.0.registers.get_or_init(|| Registers {
            approvals: Approvals::start(approvals, approval::Limits::of(&config), parts.clone()),
            operations: Tracker::start(operations, track::Limits::of(&config), parts.clone()),
            parts,
        });
        let trim = self.begin_usage(usage);
        tasks.spawn(self.clone().keep_usage(trim));
    }

    /// What the registers work with.
    pub(super) fn parts(&self) -> Option<&Parts> {
        self.0.registers.get().map(|registers| &registers.parts)
    }

    /// Goes on with what an earlier daemon had begun.
    pub async fn resume(&self) {
        if let Some(Registers { approvals, operations, .. }) = self.0.registers.get() {
            operations.resume(self);
            approvals.resume(self).await;
        }
    }

    /// The calls that need a yes.
    pub fn approvals(&self) -> Option<&Approvals> {
        self.0.registers.get().map(|registers| &registers.approvals)
    }

    /// The operations that go on.
    pub fn operations(&self) -> Option<&Tracker> {
        self.0.registers.get().map(|registers| &registers.operations)
    }

    /// Says yes to a call ([`Approvals::approve`]).
    pub async fn approve(&self, id: &str, by: &str) -> Result<Arc<ApprovalRequest>, DecideError> {
        let approvals = self.approvals().ok_or(Refusal::Unknown)?;
        approvals.approve(self, id, by).await
    }

    /// Says no to a call ([`Approvals::reject`]).
    pub async fn reject(&self, id: &str, by: &str, reason: Option<&str>) -> Result<Arc<ApprovalRequest>, DecideError> {
        let approvals = self.approvals().ok_or(Refusal::Unknown)?;
        approvals.reject(id, by, reason).await
    }

    /// Calls an operation off ([`Tracker::cancel`]).
    pub async fn cancel(&self, id: &str) -> Result<Arc<Operation>, CancelError> {
        self.operations().ok_or(CancelError::Unknown)?.cancel(self, id).await
    }

    /// Puts other bounds of the registers in force.
    pub(super) fn adjust_registers(&self, config: &config::Calls) {
        if let Some(Registers { approvals, operations, .. }) = self.0.registers.get() {
            approvals.configure(approval::Limits::of(config));
            operations.configure(track::Limits::of(config));
        }
    }

    /// The route to a scenario that has none now. It waits with a turn, so that the calls that wait are as many as the limits allow.
    async fn first_route(&self, id: &ToolId) -> Result<Arc<Route>, Refused> {
        let rules = self.0.config.load_full();
        let lane = self.0.limits.lane(&id.scenario, &rules);
        let _turn = self.0.limits.turn(&id.scenario, &lane, &rules).await?;
        routing::first(&self.0, id, rules.reroute_wait).await
    }

    /// Puts a call down to wait for a yes. What its caller is told.
    pub(super) async fn wait_for_yes(&self, name: &str, ready: Ready) -> Refused {
        let id = ready.tool.id.clone();
        let refused = Refused::ApprovalRequired { id: id.clone(), waiting: None };
        let Some(approvals) = self.approvals() else { return refused };
        let route = match self.0.engine.route(&id.scenario) {
            Some(route) => route,
            None => match self.first_route(&id).await {
                Ok(route) => route,
                Err(refused) => return refused,
            },
        };
        let asker = asker(&ready);
        let Ready { tool, arguments, .. } = ready;
        let tool = Arc::clone(&tool.tool);
        let wanted = Wanted { id: id.clone(), name: name.into(), tool, owner: route.party.clone(), arguments, asker };
        match approvals.ask(wanted).await {
            Ok(waiting) => Refused::ApprovalRequired { id, waiting: Some(waiting) },
            Err(approval::AskError::Full) => Refused::ApprovalsFull { id },
            Err(approval::AskError::State(error)) => {
                tracing::error!(error = %error, "a call that needs approval could not be stored");
                Refused::ApprovalNotStored { id }
            }
            Err(approval::AskError::Stopping) => refused,
        }
    }

    /// Follows what goes on after an answer, if anything does.
    pub(super) async fn follow(&self, ready: &Ready, owner: &Party, outcome: &Outcome) -> Begun {
        let Some(operations) = self.operations().filter(|_| outcome.success && ready.follow) else {
            return Begun::Over;
        };
        let started = Started {
            id: ready.tool.id.clone(),
            tool: Arc::clone(&ready.tool.tool),
            owner: owner.clone(),
            asker: asker(ready),
            result: outcome.result.clone(),
            document: outcome.document.clone(),
            running: outcome.running.is_some(),
        };
        operations.begin(self, started).await
    }

    /// The tool as whoever asked may call it now, and who answers for its scenario.
    fn callable(&self, id: &ToolId, asker: &Asker) -> Option<(Arc<ViewTool>, Party)> {
        let owner = self.0.engine.route(&id.scenario)?.party.clone();
        let (snapshot, scope) = (self.0.reader.snapshot(), scope(asker));
        let Found::One(tool) = find_in_scope(&snapshot.catalog, &scope, &NameRef::Id(id.clone())) else { return None };
        allow::check(&snapshot.catalog, &scope, &tool).is_ok().then_some((tool, owner))
    }

    async fn run_request(self, request: Arc<ApprovalRequest>) -> Ran {
        let Some((tool, owner)) = self.callable(&request.tool, &request.asker) else {
            return unanswered(format!("`{}` is not offered to whoever asked any more", request.tool), "not_allowed");
        };
        // Judged once more: a call that is repeated waited for its tool.
        let standing = Standing { owner, tool: Arc::clone(&tool.tool) };
        if let Some(change) = approval::changed(&request, Some(&standing)) {
            return unanswered(change, "changed");
        }
        let ready = Ready {
            tool,
            scope: scope(&request.asker),
            arguments: request.arguments.clone(),
            user_id: request.asker.user_id.clone(),
            owner: Some(request.owner.clone()),
            timeout: None,
            follow: true,
        };
        match self.run_approved(ready, &request.id).await {
            Ok(answered) => Ran { answer: answer(answered), answered: true },
            Err(refused) => unanswered(refused.to_string(), refused.kind()),
        }
    }

    async fn ask_once(self, ask: Ask) -> Result<Reply, Unasked> {
        let Ask { id, owner, arguments, asker, timeout } = ask;
        let unoffered = |why| Unasked { why: format!("its tool `{}` {why}", id.tool), retry_after: None };
        let tool = self.partner(&id, &owner, &asker).map_err(unoffered)?;
        let (scope, user_id) = (scope(&asker), asker.user_id);
        let ready = Ready { tool, scope, arguments, user_id, owner: Some(owner), timeout, follow: false };
        match self.send(ready).await {
            Ok(Answered { outcome, .. }) => Ok(Reply {
                success: outcome.success,
                result: outcome.result,
                document: outcome.document,
                error: outcome.error,
                retry_after: outcome.retry_after,
            }),
            Err(refused) => Err(Unasked { why: refused.to_string(), retry_after: refused.retry_after() }),
        }
    }

    /// A tool that is asked unattended. It may be switched off: that keeps it from lists, not from whom it is for.
    fn partner(&self, id: &ToolId, owner: &Party, asker: &Asker) -> Result<Arc<ViewTool>, Unoffered> {
        let Some(route) = self.0.engine.route(&id.scenario) else {
            return Err(Unoffered::Away("cannot be asked: its scenario may not be called now".to_owned()));
        };
        if !owner.holds_for(&route.party) {
            let now = &route.party;
            let why = format!("is not asked: the operation belongs to the one {owner}, and this is the one {now}");
            return Err(Unoffered::Stranger(why));
        }
        let (snapshot, scope) = (self.0.reader.snapshot(), scope(asker));
        let Found::One(tool) = find_in_scope(&snapshot.catalog, &scope, &NameRef::Id(id.clone())) else {
            return Err(Unoffered::Never(format!("is not offered by `{}`", id.scenario)));
        };
        if needed(&tool) {
            return Err(Unoffered::Never("needs a human's approval, so it is not asked unattended".to_owned()));
        }
        Ok(tool)
    }
}

impl Run for Calls {
    fn standing(&self, request: &ApprovalRequest) -> Option<Standing> {
        let (tool, owner) = self.callable(&request.tool, &request.asker)?;
        Some(Standing { owner, tool: Arc::clone(&tool.tool) })
    }

    fn run(&self, request: Arc<ApprovalRequest>) -> BoxFuture<'static, Ran> {
        self.clone().run_request(request).boxed()
    }
}

impl Side for Calls {
    fn offered(&self, id: &ToolId, owner: &Party, asker: &Asker) -> Result<Arc<Tool>, Unoffered> {
        self.partner(id, owner, asker).map(|tool| Arc::clone(&tool.tool))
    }

    fn ask(&self, ask: Ask) -> BoxFuture<'static, Result<Reply, Unasked>> {
        self.clone().ask_once(ask).boxed()
    }
}

/// The view of whoever asks.
fn scope(asker: &Asker) -> ViewQuery {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    ViewQuery { chat: text(&asker.chat), profile: text(&asker.profile), ..ViewQuery::default() }
}

fn asker(ready: &Ready) -> Asker {
    let text = |text: &Option<String>| text.as_deref().map(Into::into);
    Asker { chat: text(&ready.scope.chat), profile: text(&ready.scope.profile), user_id: ready.user_id.clone() }
}

fn answer(answered: Answered) -> CallAnswer {
    let Answered { outcome: Outcome { success, result, error, code, .. }, going, took, .. } = answered;
    let (operation, untracked) = match going {
        Begun::Followed(operation) => (Some(Arc::clone(&operation.id)), None),
        Begun::Untracked(why) => (None, Some(format!("it goes on, and cannot be followed: {why}"))),
        Begun::Over => (None, None),
    };
    let code = code.or(untracked.as_ref().map(|_| "untracked".to_owned()));
    let error = error.or(untracked);
    let took_ms = milliseconds(took);
    CallAnswer { success, result, error: error.map(Into::into), code: code.map(Into::into), took_ms, operation }
}

fn unanswered(error: String, code: &str) -> Ran {
    let answer = CallAnswer {
        success: false,
        result: None,
        error: Some(error.into()),
        code: Some(code.into()),
        took_ms: 0,
        operation: None,
    };
    Ran { answer, answered: false }
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
