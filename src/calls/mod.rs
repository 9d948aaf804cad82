//! The path of a call: from the caller's request to the scenario that owns the tool, and back with
//! its end.
//!
//! ```text
//! Request -> resolve -> allow -> validate -> approval? -> limits -> routing -> send
//!                                                |                              |
//!                                                v                              v
//!        face <- CallEnd <- settle <---- approved calls, operations <---- CallResponse
//! ```
//!
//! What is kept true here:
//!
//! - A call is sent once, unless none of it can have been sent, or its tool is idempotent.
//! - A call that was sent continues to its end if its caller goes away, because a tool that has
//!   started cannot be stopped by closing a connection; its outcome is counted. A call that still
//!   waits for its permit is dropped then.
//! - An approved call is stored as started before it is sent, so that it never runs twice.
//! - Every call that ends is recorded, and no call waits for its record.
//! - Every face reports the same end: it parses a [`Request`], has it settled
//!   ([`Calls::settle`]), and writes the [`CallEnd`]; a later request finds the end by an id
//!   ([`Calls::end_by_id`]). Only these two wait for an approval or an operation.
//!
//! To read it, begin with [`request`](Request) and this file ([`Calls::execute_for`]). Each step is
//! one module, in the order of the picture; every step refuses with an [`ExecuteError`] that says
//! the reason and the next step. Then `end`, `failure` and `settle`; then what is kept of calls:
//! [`active`], [`approval`], [`track`] (operations) and [`turns`], which share the table of `kept`,
//! and `log`.
//!
//! Never done here: HTTP, rendering of answers, logging of arguments or results.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::catalog::{Catalog, CatalogReader, Snapshot};
use crate::config;
use crate::engine::EngineHandle;
use crate::metrics::{AuditCounts, CallCounts, Family};
use crate::model::{Execution, Finding, JsonText, ScenarioName, ToolId, ToolUsage, ViewTool};
use crate::protocols::CallIo;
use crate::runtime::{ByteBudget, Clock, Tasks};

pub mod active;
mod activity;
pub mod allow;
pub mod approval;
pub(crate) mod argument_form;
mod attempt;
mod audit;
pub mod breaker;
mod call_mode;
mod caller;
mod circuits;
mod dependencies;
mod end;
mod ended_call;
pub mod error;
mod failure;
mod given_arguments;
mod held;
mod history;
mod inner;
mod kept;
pub mod limits;
mod log;
mod loss;
mod meta_fields;
mod not_approved;
mod overrides;
mod pending;
pub mod pending_calls;
mod recorder;
pub mod relay;
mod request;
mod requester;
pub mod resolve;
mod results;
mod routing;
pub mod send;
mod settle;
mod several;
mod status_numbers;
pub mod track;
pub mod turns;
pub mod unset;
pub mod usage;
mod usage_store;
pub mod validate;

pub use breaker::{BreakerState, BreakerStatus, ToolBreakerStatus};
pub use call_mode::{CallMode, CannotCompete, UnknownCallMode};
pub use circuits::OpenCircuits;
pub use dependencies::{CallDependencies, Stored};
pub use end::{AwaitedApproval, CallEnd, EndedOperation, GoingOn, ToolAnswer};
pub use ended_call::EndedCall;
pub(crate) use error::GIVE_OUTPUT;
pub use error::{ExecuteError, Violation};
pub use failure::{Failure, FailureCode};
pub use given_arguments::{GivenArgumentsError, parse as parse_arguments};
pub use history::{DefinitionChange, StoredPart};
pub use log::{
    CallPayload, KeptText, LogEntry, LogPage, LogWanted, NumberedCall, NumberedEnd, NumberedStart,
    NumberedState,
};
pub use not_approved::Reader;
pub use relay::{RelayRequest, RelayResponse};
pub use request::{CallResponse, PreparedCall, Request};
pub use requester::{CallSession, FULL_ACCESS, Requester};
pub use settle::{CallId, CallerRole, WaitLimits};
pub use several::run_several;

use active::ActiveCalls;
use held::CallBytes;
use history::DefinitionHistories;
use inner::CallsInner;
use limits::CallLimiter;
use log::queue::{LogLine, LogQueue};
use log::{ActivityLog, LogLimits};
use meta_fields::SplitArguments;
use recorder::CallRecorder;
use request::outcome;
use usage::Usage;
use validate::{ArgumentValidator, CheckLimits};

/// Calls tools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Calls(Arc<CallsInner>);

impl Calls {
    /// Calls the tools in the catalog of `reader`, by the routes of `engine`. What is held for
    /// callers is reserved from `held`.
    pub fn new(
        config: config::CallsConfig,
        engine: EngineHandle,
        reader: CatalogReader,
        held: ByteBudget,
        clock: Clock,
        tasks: Tasks,
    ) -> Self {
        let limits = CallLimiter::new(clock);
        let validators = ArgumentValidator::new();
        let log = Arc::new(ActivityLog::new(LogLimits::from_config(&config)));
        let config = ArcSwap::from_pointee(config);
        let counts = CallCounts::default();
        let active = ActiveCalls::default();
        let registers = OnceLock::new();
        let usage = Usage::since(clock.wall());
        let audited = Arc::default();
        let logged: Arc<AuditCounts> = Arc::default();
        let log_store = Arc::default();
        let queue = LogQueue::start(&log, (&audited, &logged), &log_store, clock, &tasks);
        Self(Arc::new(CallsInner {
            config,
            reader,
            engine,
            limits,
            validators,
            counts,
            usage,
            histories: DefinitionHistories::default(),
            log,
            queue: ArcSwapOption::new(Some(Arc::new(queue))),
            audited,
            logged,
            log_store,
            registers,
            active,
            loss: ArcSwapOption::empty(),
            held: CallBytes::new(held),
            clock,
            tasks,
        }))
    }

    /// The budget of bytes that are held for clients. The server reserves from the same one.
    pub fn held(&self) -> &ByteBudget {
        self.0.held.whole()
    }

    /// The part of it for everything but what only operators may hold.
    pub(crate) fn held_by_clients(&self) -> &ByteBudget {
        self.0.held.clients()
    }

    /// The part of that for everything but small answers and results.
    pub(crate) fn held_large(&self) -> &ByteBudget {
        self.0.held.large()
    }

    /// Applies other limits to later calls.
    pub fn adjust(&self, config: config::CallsConfig) {
        self.adjust_registers(&config);
        self.0
            .log
            .set_limits(LogLimits::from_config(&config), self.0.clock.wall());
        self.0.config.store(Arc::new(config));
        self.trim_log();
    }

    /// Makes a call and waits for its outcome. The module's head says what dropping this future
    /// does.
    pub async fn execute(&self, request: Request) -> Result<CallResponse, ExecuteError> {
        self.execute_for(request, None).await
    }

    /// The same for a caller that takes part while the call runs: it gets progress, answers
    /// requests for input, and may cancel.
    pub async fn execute_for(
        &self,
        request: Request,
        caller: Option<Arc<dyn CallIo>>,
    ) -> Result<CallResponse, ExecuteError> {
        let mut note = CallRecorder::for_request(&self.0, &request);
        let prepared = match note.hold_arguments(&request) {
            Ok(()) => self.prepare(request, &mut note).await,
            Err(refused) => Err(refused),
        };
        match prepared {
            Ok(ready) => self.send_noted(ready, note, caller).await,
            Err(refused) => {
                let refused = Err(refused);
                note.ended(&refused);
                refused
            }
        }
    }

    /// Every step up to the approval.
    async fn prepare(
        &self,
        request: Request,
        note: &mut CallRecorder,
    ) -> Result<Box<PreparedCall>, ExecuteError> {
        self.refuse_after_loss()?;
        let snapshot = self.0.reader.snapshot();
        let scope = request.scope();
        let tool = resolve::tool(
            &snapshot.catalog,
            &self.0.reader.history(),
            &scope,
            &request,
        )?;
        note.set_tool(&tool.id);
        allow::check(&snapshot.catalog, &scope, &tool)?;
        resolve::check_version(&tool, request.definition_version.as_ref())?;
        if let Some(violation) = argument_form::flaw(&request.arguments) {
            let tool = tool.name.as_str().to_owned();
            return Err(ExecuteError::Invalid {
                tool,
                violations: vec![violation],
                more: false,
            });
        }
        let rules = self.0.config.load_full();
        let client = request.shown_client();
        // Before the check, so that what is checked, approved and sent is the same.
        let split = meta_fields::split(&tool, request.arguments);
        note.set_reasoning(split.reasoning.as_deref());
        let violations = split.other_constants(&tool, &request.name);
        if !violations.is_empty() {
            return Err(ExecuteError::Invalid {
                tool: tool.name.as_str().to_owned(),
                violations,
                more: false,
            });
        }
        let SplitArguments {
            arguments, output, ..
        } = split;
        let runner = activity::runner(&snapshot.catalog, &scope, &tool)?;
        let (arguments, adjusted) = match unset::without_unset(&tool.tool.parameters, &arguments) {
            Some(unset::WithoutUnset { arguments, removed }) => (arguments, removed),
            None => (arguments, Vec::new()),
        };
        let limits = CheckLimits {
            rules: &rules,
            is_for_operator: request.requester.may_use_operators_permits(),
        };
        let mut arguments = self.fitting(&tool, arguments, limits).await?;
        if tool.execution == Execution::Latent {
            let validators = &self.0.validators;
            arguments = Box::pin(activity::latent_arguments(
                validators, &tool, &arguments, output, limits,
            ))
            .await?;
        }
        let mut needs_yes = approval::needed(&tool);
        let (tool, definition) = match runner {
            Some(runner) => (runner, Some(tool)),
            None => (tool, None),
        };
        if definition.is_some() {
            arguments = Box::pin(self.fitting(&tool, arguments, limits)).await?;
            needs_yes |= approval::needed(&tool);
        }
        let ready = PreparedCall {
            definition,
            adjusted,
            made_for: request.definition_version,
            resumed: request.resumed,
            collects: request.collects,
            client,
            user_id: request.user_id,
            ..PreparedCall::new(tool, scope, arguments, request.requester)
        };
        if needs_yes {
            // Boxed, like every rare and large future here: the size of a future is moved with
            // every call.
            return Err(Box::pin(self.request_approval(&request.name, ready)).await);
        }
        Ok(Box::new(ready))
    }

    /// The arguments that a call of this tool gets, if those of its caller fit.
    async fn fitting(
        &self,
        tool: &ViewTool,
        arguments: JsonText,
        limits: CheckLimits<'_>,
    ) -> Result<JsonText, ExecuteError> {
        let validators = &self.0.validators;
        overrides::refuse_fixed(tool, &arguments)?;
        validators.check(tool, &arguments, limits).await?;
        if tool.overridden.is_none() {
            return Ok(arguments);
        }
        Box::pin(overrides::with_values(validators, tool, arguments, limits)).await
    }

    /// Makes an approved call, under the id of its approval. Whether it is allowed is checked
    /// again: since then the tool may have gone, or have been disabled or excluded by the caller's
    /// profile.
    pub async fn run_approved(
        &self,
        ready: PreparedCall,
        approval: &Arc<str>,
    ) -> Result<CallResponse, ExecuteError> {
        let note = CallRecorder::for_approved(&self.0, &ready, approval);
        let snapshot = self.0.reader.snapshot();
        let tool = self
            .refuse_after_loss()
            .and_then(|()| resolve::again(&snapshot.catalog, &ready))
            .and_then(|tool| allow::check(&snapshot.catalog, &ready.scope, &tool).map(|()| tool));
        match tool {
            Ok(tool) => {
                self.send_noted(Box::new(PreparedCall { tool, ..ready }), note, None)
                    .await
            }
            Err(refused) => {
                let refused = Err(refused);
                note.ended(&refused);
                refused
            }
        }
    }

    /// Findings about the tools of published entries whose schemas cannot be used to check
    /// arguments, before any call of them. Each manifest is examined once.
    pub async fn unusable_schemas(
        &self,
        catalog: &Catalog,
        scenario: Option<&ScenarioName>,
    ) -> Vec<Finding> {
        let is_published = |name: &ScenarioName| {
            catalog
                .entry(name)
                .is_some_and(|entry| entry.is_published())
        };
        self.0.validators.forget_schemas(is_published).await;
        let published = catalog.entries().filter(|entry| entry.is_published());
        let wanted = published.filter(|entry| scenario.is_none_or(|name| *name == entry.name));
        let entries: Vec<_> = wanted.cloned().collect();
        self.0
            .validators
            .unusable_schemas(&entries, &self.0.config.load_full())
            .await
    }

    /// Findings about calls: tools of this catalog whose calls were sent with unchecked arguments,
    /// or whose results do not fit what they declare, operations that cannot end, stored turns that
    /// are not kept, and a loss that no operator accepted.
    pub fn findings(&self, catalog: &Catalog) -> Vec<Finding> {
        let mut findings = self.0.validators.findings(catalog);
        findings.extend(
            self.operations()
                .into_iter()
                .flat_map(track::OperationTracker::findings),
        );
        findings.extend(self.turns().into_iter().flat_map(turns::Turns::findings));
        findings.extend(self.loss_finding());
        findings.extend(self.0.log.finding());
        findings
    }

    /// The state of a scenario's circuit breaker; `None` if the process that answers for it now was
    /// not called yet.
    pub fn breaker(&self, scenario: &ScenarioName) -> Option<BreakerStatus> {
        self.0.limits.breaker(scenario, self.generation(scenario))
    }

    /// The generation of the route to a scenario, if there is one.
    fn generation(&self, scenario: &ScenarioName) -> Option<u64> {
        self.0.engine.route(scenario).map(|route| route.generation)
    }

    /// The state of the circuit breakers of a scenario's tools that failed since they last
    /// answered, in the order of their names.
    pub fn tool_breakers(&self, scenario: &ScenarioName) -> Vec<ToolBreakerStatus> {
        self.0
            .limits
            .tool_breakers(scenario, self.generation(scenario))
    }

    /// How many circuit breakers are not closed now.
    pub fn open_circuits(&self) -> OpenCircuits {
        self.0
            .limits
            .open_circuits(|scenario| self.generation(scenario))
    }

    /// How many calls wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.0.limits.waiting()
    }

    /// How many calls of a scenario are under way.
    pub fn under_way(&self, scenario: &ScenarioName) -> usize {
        self.0.limits.under_way(scenario)
    }

    /// The latest calls that are over, the oldest first, and the number of the latest.
    pub fn recent(&self) -> (Vec<NumberedCall>, u64) {
        self.0.log.calls(self.0.clock.wall())
    }

    /// The latest lines of the log that are wanted.
    pub fn log(&self, wanted: &LogWanted) -> LogPage {
        self.catch_up(&self.0.reader.snapshot());
        let page = self.0.log.page(wanted, self.0.clock.wall());
        LogPage {
            dropped: self.0.logged.all_dropped() + self.0.logged.all_failed(),
            ..page
        }
    }

    /// Has what the log does not keep any more deleted, in the store too.
    fn trim_log(&self) {
        if let Some(queue) = self.0.queue.load_full() {
            queue.enqueue(LogLine::Trim);
        }
    }

    /// The number of the latest call that is over, for those who wait for the next one.
    pub fn ended_calls(&self) -> watch::Receiver<u64> {
        self.0.log.ended()
    }

    /// Whether the log keeps arguments and results.
    pub fn logs_payloads(&self) -> bool {
        self.0.log.keeps_payloads()
    }

    /// The counters of calls.
    pub fn counts(&self) -> &CallCounts {
        &self.0.counts
    }

    /// The counters of a tool, in this daemon and in earlier ones with the same state; `None` if no
    /// call of it is known.
    pub fn usage(&self, id: &ToolId) -> Option<ToolUsage> {
        self.0.usage.for_tool(id)
    }

    /// The counters since [`counting_since`](Self::counting_since) of every tool that was called,
    /// at most [`usage::MOST`], in no order.
    pub fn usages(&self) -> Vec<(ToolId, ToolUsage)> {
        self.0.usage.all()
    }

    /// The changes of a tool's definition up to a snapshot, as far as they are kept, the latest
    /// first. Compares definitions, if that was not done yet for this snapshot.
    pub fn history(&self, snapshot: &Snapshot, id: &ToolId) -> Vec<Arc<DefinitionChange>> {
        self.follow_definitions(snapshot);
        self.0.histories.of_tool(id)
    }

    /// The time since which calls are counted for metrics: the start of this daemon.
    pub fn counting_since(&self) -> Timestamp {
        self.0.usage.beginning()
    }

    /// How many lines of the audit log were written, dropped or failed.
    pub fn audit_counts(&self) -> Family {
        self.0.audited.family()
    }

    /// Whether metrics have a label for the tool.
    pub fn tells_tools_apart(&self) -> bool {
        self.0.config.load().tool_metrics
    }

    /// How many lines of the log were stored, dropped or failed.
    pub fn log_counts(&self) -> Family {
        self.0.logged.family_of(
            "callsheet_log_lines",
            "Lines of the log of calls and states by outcome: `dropped` found no room in the queue, `failed` could not be stored.",
        )
    }

    /// Closes the log and the audit log. Calls that are under way are still written, later ones are
    /// not.
    pub fn close_audit(&self) {
        self.0.queue.store(None);
    }
}
