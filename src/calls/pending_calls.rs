//! Connects the calls to the approvals and to the operations. Calls that wait for approval and
//! status requests of operations are sent with the same steps, limits and breakers as any other
//! call.
//!
//! An earlier decision is checked again right before sending: the tool must still be offered in the
//! scope of the caller, and the same peer must answer for the scenario.

use std::sync::{Arc, Weak};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::approval::{
    self, Approvals, ApprovedCallRunner, CurrentTool, DecideError, DecisionRefusal, NewApproval,
    RunOutcome, UnansweredCallRecorder, needed,
};
use super::dependencies::{CallDependencies, Stored};
use super::held::CallerKey;
use super::inner::CallsInner;
use super::pending::PendingCalls;
use super::recorder::CallRecorder;
use super::track::{
    self, AnsweredCall, CancelError, CompanionCall, CompanionError, CompanionReply,
    CompanionUnavailable, FollowUp, OperationTracker, ToolCaller,
};
use super::turns::Turns;
use super::{
    CallResponse, Calls, ExecuteError, FailureCode, PreparedCall, Requester, WaitLimits, allow,
    resolve, routing,
};
use crate::catalog::{Catalog, ViewQuery};
use crate::config;
use crate::engine::CallRoute;
use crate::engine::awake::AwakeHold;
use crate::model::{
    ApprovalRequest, ApprovalState, CalledDefinition, CallerInfo, Operation, PeerIdentity,
    StoredAnswer, Tool, ToolId, ViewTool,
};
use crate::protocols::Outcome;

impl approval::ApprovalLimits {
    /// The configured limits.
    pub fn from_config(config: &config::CallsConfig) -> Self {
        let config::CallsConfig {
            approval_expiry: expiry,
            approvals_max: most,
            kept_bytes: bytes,
            keep,
            ..
        } = *config;
        Self {
            expiry,
            most,
            bytes,
            keep,
        }
    }
}

impl track::TrackerLimits {
    /// The configured limits.
    pub fn from_config(config: &config::CallsConfig) -> Self {
        let config::CallsConfig {
            operations_max: most,
            kept_bytes: bytes,
            keep,
            poll_min,
            poll_max,
            poll_longest,
            ..
        } = *config;
        Self {
            most,
            bytes,
            keep,
            poll_min,
            poll_max,
            longest: poll_longest,
        }
    }
}

impl Calls {
    /// Sets the approvals and the operations up, with what was stored. Only the first call has an
    /// effect. Until then, a call that needs approval is refused and no operation is followed.
    pub fn attach(&self, stored: Stored, parts: CallDependencies) {
        let config = self.0.config.load();
        let Stored {
            approvals,
            operations,
            turns,
            usage,
            histories,
            catalog,
            log,
            earlier_log,
            loss,
        } = stored;
        self.0.histories.begin(histories, catalog);
        self.0.loss.store(loss.map(Arc::new));
        let tasks = parts.tasks.clone();
        self.begin_log(&log, earlier_log, &parts);
        // A second pair is dropped, because the first may hold calls already.
        self.0.registers.get_or_init(|| PendingCalls {
            approvals: Approvals::start(
                approvals,
                approval::ApprovalLimits::from_config(&config),
                Box::new(WeakCalls(Arc::downgrade(&self.0))),
                parts.clone(),
            ),
            operations: OperationTracker::start(
                operations,
                track::TrackerLimits::from_config(&config),
                parts.clone(),
            ),
            turns: Turns::start(turns, config.turns.clone(), parts.clone()),
            parts,
        });
        let trim = self.begin_usage(usage);
        tasks.spawn(self.clone().keep_usage(trim));
    }

    /// The dependencies that approvals and operations share.
    pub(super) fn parts(&self) -> Option<&CallDependencies> {
        self.0.registers.get().map(|registers| &registers.parts)
    }

    /// Continues the operations and the approved calls that an earlier daemon had started.
    pub async fn resume(&self) {
        if let Some(PendingCalls {
            approvals,
            operations,
            ..
        }) = self.0.registers.get()
        {
            operations.resume(self);
            approvals.resume(self).await;
            self.resume_turns();
        }
    }

    /// The calls that need approval.
    pub fn approvals(&self) -> Option<&Approvals> {
        self.0.registers.get().map(|registers| &registers.approvals)
    }

    /// The operations that are followed.
    pub fn operations(&self) -> Option<&OperationTracker> {
        self.0
            .registers
            .get()
            .map(|registers| &registers.operations)
    }

    /// The turns that are kept.
    pub fn turns(&self) -> Option<&Turns> {
        self.0.registers.get().map(|registers| &registers.turns)
    }

    /// Approves a call and runs it, and waits for its answer as long as `limits` says. Returns its
    /// state then: `started` if it is still under way.
    pub async fn approve(
        &self,
        id: &str,
        by: &str,
        limits: WaitLimits,
    ) -> Result<Arc<ApprovalRequest>, DecideError> {
        let approvals = self.approvals().ok_or(DecisionRefusal::Unknown)?;
        let started = approvals.approve(self, id, by).await?;
        Ok(self.wait_for_approval(started, limits).await)
    }

    /// Rejects a call ([`Approvals::reject`]).
    pub async fn reject(
        &self,
        id: &str,
        by: &str,
        reason: Option<&str>,
    ) -> Result<Arc<ApprovalRequest>, DecideError> {
        let approvals = self.approvals().ok_or(DecisionRefusal::Unknown)?;
        approvals.reject(id, by, reason).await
    }

    /// Cancels an operation ([`OperationTracker::cancel`]).
    pub async fn cancel(&self, id: &str) -> Result<Arc<Operation>, CancelError> {
        self.operations()
            .ok_or(CancelError::Unknown)?
            .cancel(self, id)
            .await
    }

    /// Applies the limits of a new configuration to approvals and operations.
    pub(super) fn adjust_registers(&self, config: &config::CallsConfig) {
        if let Some(PendingCalls {
            approvals,
            operations,
            turns,
            ..
        }) = self.0.registers.get()
        {
            approvals.configure(approval::ApprovalLimits::from_config(config));
            operations.configure(track::TrackerLimits::from_config(config));
            turns.configure(config.turns.clone());
        }
    }

    /// Waits for a route to a scenario that has none now. It holds a permit meanwhile, so that no
    /// more calls wait than the limits allow.
    async fn first_route(
        &self,
        id: &ToolId,
        caller: &CallerKey,
    ) -> Result<Arc<CallRoute>, ExecuteError> {
        let rules = self.0.config.load_full();
        let limiter = self.0.limits.scenario_limiter(&id.scenario, &rules);
        let _turn = self
            .0
            .limits
            .acquire(&id.scenario, &limiter, caller, &rules)
            .await?;
        let held = routing::first(&self.0, id, rules.reroute_wait).await?;
        Ok(held.route)
    }

    /// Adds a call to those that wait for approval. Returns the error that its caller gets.
    pub(super) async fn request_approval(&self, name: &str, ready: PreparedCall) -> ExecuteError {
        let id = ready.tool.id.clone();
        let refused = ExecuteError::ApprovalRequired {
            id: id.clone(),
            waiting: None,
            adjusted: Vec::new(),
        };
        let Some(approvals) = self.approvals() else {
            return refused;
        };
        let route = match self.0.engine.route(&id.scenario) {
            Some(route) => route,
            None => match self.first_route(&id, &ready.caller_key()).await {
                Ok(route) => route,
                Err(refused) => return refused,
            },
        };
        let caller = ready.caller();
        let PreparedCall {
            tool,
            definition,
            made_for,
            arguments,
            adjusted,
            collects,
            requester,
            ..
        } = ready;
        let tool = Arc::clone(&tool.tool);
        let definition = definition.zip(made_for);
        let wanted = NewApproval {
            id: id.clone(),
            name: name.into(),
            tool,
            owner: route.party.clone(),
            called: definition.map(|(definition, version)| CalledDefinition {
                id: definition.id.clone(),
                version,
            }),
            arguments,
            caller,
            requester,
            collects,
        };
        match approvals.enqueue(wanted).await {
            Ok(waiting) => ExecuteError::ApprovalRequired {
                id,
                waiting: Some(waiting),
                adjusted,
            },
            Err(approval::EnqueueError::Full) => ExecuteError::ApprovalsFull { id },
            Err(approval::EnqueueError::State(error)) => {
                tracing::error!(error = %error, "a call that needs approval could not be stored");
                ExecuteError::ApprovalNotStored { id }
            }
            Err(approval::EnqueueError::Stopping) => refused,
        }
    }

    /// Follows the operation that goes on after an answer, if there is one.
    pub(super) async fn follow(
        &self,
        ready: &PreparedCall,
        owner: &PeerIdentity,
        outcome: &Outcome,
    ) -> FollowUp {
        let Some(operations) = self
            .operations()
            .filter(|_| outcome.success && ready.follow)
        else {
            return FollowUp::Over;
        };
        let started = AnsweredCall {
            id: ready.tool.id.clone(),
            tool: Arc::clone(&ready.tool.tool),
            owner: owner.clone(),
            caller: ready.caller(),
            access: Arc::clone(&ready.requester.access),
            result: outcome.result.clone(),
            document: outcome.document.clone(),
            running: outcome.running.is_some(),
        };
        operations.begin(self, started).await
    }

    /// What an approval of this request would run now; `None` if its tool is not offered to the
    /// caller any more.
    fn standing(&self, request: &ApprovalRequest) -> Option<StandingRequest> {
        let owner = self.0.engine.route(&request.tool.scenario)?.party.clone();
        let snapshot = self.0.reader.snapshot();
        let scope = scope(&request.caller);
        let tool = allowed(&snapshot.catalog, &scope, &request.tool)?;
        let called = request.called.as_ref();
        let definition = called.and_then(|called| allowed(&snapshot.catalog, &scope, &called.id));
        let current = CurrentTool {
            owner,
            tool: Arc::clone(&tool.tool),
            called: definition.as_ref().map(|called| Arc::clone(&called.tool)),
        };
        Some(StandingRequest {
            tool,
            definition,
            current,
        })
    }

    async fn run_request(self, request: Arc<ApprovalRequest>) -> RunOutcome {
        let Some(standing) = self.standing(&request) else {
            let why = format!("`{}` is not offered to the caller any more", request.tool);
            return self.unsent(&request, why, FailureCode::NotAllowed.as_str());
        };
        // Checked once more, because a call that is repeated waited for its tool.
        if let Some(change) = approval::changed(&request, Some(&standing.current)) {
            return self.unsent(&request, change, "changed");
        }
        // Rows of earlier versions do not say with which access they were requested.
        let requester = request
            .access
            .clone()
            .map_or_else(Requester::full_access, Requester::with_access);
        let ready = PreparedCall {
            approved: Some(standing.tool.tool.version().into()),
            made_for: request.called.as_ref().map(|called| called.version.clone()),
            definition: standing.definition,
            user_id: request.caller.user_id.clone(),
            owner: Some(request.owner.clone()),
            client: request.caller.client.clone(),
            ..PreparedCall::new(
                standing.tool,
                scope(&request.caller),
                request.arguments.clone(),
                requester,
            )
        };
        match self.run_approved(ready, &request.id).await {
            Ok(answered) => RunOutcome {
                answer: answered.to_stored(),
                answered: true,
            },
            Err(refused) => unanswered(refused.to_string(), refused.kind()),
        }
    }

    /// The outcome of an approved call that is not sent, for this reason.
    fn unsent(&self, request: &ApprovalRequest, why: String, code: &'static str) -> RunOutcome {
        CallRecorder::ended_unanswered(&self.0, request, code, &why);
        unanswered(why, code)
    }

    async fn call_once(self, call: CompanionCall) -> Result<CompanionReply, CompanionError> {
        let CompanionCall {
            id,
            owner,
            arguments,
            caller,
            access,
            timeout,
        } = call;
        let unoffered = |why| CompanionError {
            why: format!("its tool `{}` {why}", id.tool),
            retry_after: None,
        };
        let tool = self.partner(&id, &owner, &caller).map_err(unoffered)?;
        let scope = scope(&caller);
        let ready = PreparedCall {
            user_id: caller.user_id,
            owner: Some(owner),
            timeout,
            follow: false,
            ..PreparedCall::new(
                tool,
                scope,
                arguments,
                Requester::following(access.as_deref()),
            )
        };
        match self.send(ready).await {
            Ok(CallResponse { outcome, .. }) => Ok(CompanionReply {
                success: outcome.success,
                result: outcome.result,
                document: outcome.document,
                error: outcome.error,
                retry_after: outcome.retry_after,
            }),
            Err(refused) => Err(CompanionError {
                why: refused.to_string(),
                retry_after: refused.retry_after(),
            }),
        }
    }

    /// The status or cancel tool of an operation, which is called without a person. A disabled tool
    /// is allowed here: disabling it only takes it out of lists.
    fn partner(
        &self,
        id: &ToolId,
        owner: &PeerIdentity,
        caller: &CallerInfo,
    ) -> Result<Arc<ViewTool>, CompanionUnavailable> {
        let Some(route) = self.0.engine.route(&id.scenario) else {
            return Err(CompanionUnavailable::Offline(
                "cannot be called: its scenario may not be called now".to_owned(),
            ));
        };
        if !owner.holds_for(&route.party) {
            let now = &route.party;
            let why = format!(
                "is not called: the operation belongs to the peer {owner}, and the peer {now} answers now"
            );
            return Err(CompanionUnavailable::OwnerChanged(why));
        }
        let snapshot = self.0.reader.snapshot();
        let scope = scope(caller);
        let Some(tool) = resolve::by_id(&snapshot.catalog, &scope, id.clone()) else {
            return Err(CompanionUnavailable::NotAllowed(format!(
                "is not offered by `{}`",
                id.scenario
            )));
        };
        if needed(&tool) {
            return Err(CompanionUnavailable::NotAllowed(
                "needs a human's approval, so it is not called automatically".to_owned(),
            ));
        }
        Ok(tool)
    }
}

impl ApprovedCallRunner for Calls {
    fn current_tool(&self, request: &ApprovalRequest) -> Option<CurrentTool> {
        self.standing(request).map(|standing| standing.current)
    }

    fn run(&self, request: Arc<ApprovalRequest>) -> BoxFuture<'static, RunOutcome> {
        self.clone().run_request(request).boxed()
    }
}

/// The calls, for what they own themselves.
struct WeakCalls(Weak<CallsInner>);

impl UnansweredCallRecorder for WeakCalls {
    fn ended_unanswered(&self, request: &ApprovalRequest) {
        let Some(inner) = self.0.upgrade() else {
            return;
        };
        let decided = request.decided.as_ref();
        let reason = decided.and_then(|decided| decided.reason.as_deref());
        let code = match request.state {
            ApprovalState::Rejected => FailureCode::Rejected,
            ApprovalState::Unknown => FailureCode::UnknownOutcome,
            _ => FailureCode::ApprovalExpired,
        };
        let why = match (request.state, decided) {
            (ApprovalState::Rejected, Some(decided)) => {
                let reason = reason
                    .map(|reason| format!(": {reason}"))
                    .unwrap_or_default();
                format!("rejected by {}{reason}", decided.by)
            }
            (ApprovalState::Unknown, _) => {
                "callsheet ended before its outcome was known".to_owned()
            }
            _ => reason
                .unwrap_or("no operator decided about it in time")
                .to_owned(),
        };
        CallRecorder::ended_unanswered(&inner, request, code.as_str(), &why);
    }
}

impl ToolCaller for Calls {
    fn offered(
        &self,
        id: &ToolId,
        owner: &PeerIdentity,
        caller: &CallerInfo,
    ) -> Result<Arc<Tool>, CompanionUnavailable> {
        self.partner(id, owner, caller)
            .map(|tool| Arc::clone(&tool.tool))
    }

    fn call(
        &self,
        call: CompanionCall,
    ) -> BoxFuture<'static, Result<CompanionReply, CompanionError>> {
        self.clone().call_once(call).boxed()
    }

    fn keep_awake(&self, id: &ToolId) -> Option<AwakeHold> {
        let route = self.0.engine.route(&id.scenario)?;
        Some(route.awake.hold(self.0.clock))
    }
}

/// What an approval would run now.
struct StandingRequest {
    tool: Arc<ViewTool>,
    /// The definition that was called, if it is another one and still offered.
    definition: Option<Arc<ViewTool>>,
    current: CurrentTool,
}

/// The tool with this identity, if it may be called in this scope.
fn allowed(catalog: &Catalog, scope: &ViewQuery, id: &ToolId) -> Option<Arc<ViewTool>> {
    let tool = resolve::by_id(catalog, scope, id.clone())?;
    allow::check(catalog, scope, &tool).is_ok().then_some(tool)
}

/// The view of the caller.
fn scope(caller: &CallerInfo) -> ViewQuery {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    ViewQuery {
        chat: text(&caller.chat),
        profile: text(&caller.profile),
        permission: caller.permission,
        ..ViewQuery::default()
    }
}

fn unanswered(error: String, code: &str) -> RunOutcome {
    let answer = StoredAnswer {
        success: false,
        result: None,
        content: None,
        error: Some(error.into()),
        code: Some(code.into()),
        took_ms: 0,
        operation: None,
    };
    RunOutcome {
        answer,
        answered: false,
    }
}
