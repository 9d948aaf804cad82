//! The route of a call: from what an asker wrote to the scenario that owns the tool, and back with what it answered.
//!
//! The steps are one file each, in this order: [`resolve`] finds the tool, [`allow`] asks whether this asker may call it, [`validate`] checks
//! the arguments, [`approval`] asks whether a human must say yes, [`limits`] gives it its turn, `routing` finds its session,
//! [`send`] sends it. Every step refuses with a [`ExecuteError`] that says why and what to do.
//!
//! A call that is under way goes on to its end when whoever made it goes away: what a tool has begun cannot be taken back by not listening,
//! and its outcome is counted. One that still waits for its turn is given up then.
//!
//! Never here: HTTP, rendering of answers, a log of arguments or results.

use std::sync::{Arc, OnceLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;

use crate::catalog::{Catalog, CatalogReader};
use crate::config;
use crate::engine::EngineHandle;
use crate::metrics::{CallCounts, Family};
use crate::model::{Finding, ScenarioName, ToolId, ToolUsage};
use crate::runtime::{Clock, Tasks};

pub mod allow;
pub mod approval;
mod audit;
pub mod breaker;
mod caller;
mod dependencies;
pub mod error;
mod inner;
pub mod limits;
mod pending;
pub mod pending_calls;
mod recorder;
mod request;
pub mod resolve;
mod routing;
pub mod send;
pub mod track;
pub mod usage;
mod usage_store;
pub mod validate;

pub use breaker::{BreakerState, BreakerStatus};
pub use caller::Caller;
pub use dependencies::{CallDependencies, Stored};
pub use error::{ExecuteError, Violation};
pub use request::{CallResponse, PreparedCall, Request};

use audit::Audit;
use inner::CallsInner;
use limits::CallLimiter;
use recorder::CallRecorder;
use request::outcome;
use usage::Usage;
use validate::ArgumentValidator;

/// Calls tools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Calls(Arc<CallsInner>);

impl Calls {
    /// Calls tools that `reader` shows, at the ways that `engine` knows.
    pub fn new(
        config: config::CallsConfig,
        engine: EngineHandle,
        reader: CatalogReader,
        clock: Clock,
        tasks: Tasks,
    ) -> Self {
        let limits = CallLimiter::new(clock);
        let validators = ArgumentValidator::new(clock);
        let (config, counts) = (ArcSwap::from_pointee(config), CallCounts::default());
        let (registers, usage, audited) = (OnceLock::new(), Usage::since(clock.wall()), Arc::default());
        let audit = ArcSwapOption::new(Audit::configured(&config.load(), None, &audited, &tasks));
        Self(Arc::new(CallsInner {
            config,
            reader,
            engine,
            limits,
            validators,
            counts,
            usage,
            audit,
            audited,
            registers,
            clock,
            tasks,
        }))
    }

    /// Puts other limits in force for the calls to come.
    pub fn adjust(&self, config: config::CallsConfig) {
        self.adjust_registers(&config);
        let inner = &self.0;
        inner.audit.store(Audit::configured(&config, inner.audit.load_full(), &inner.audited, &inner.tasks));
        self.0.config.store(Arc::new(config));
    }

    /// Makes a call, and waits for what comes of it. See the module's head for what dropping it means.
    pub async fn execute(&self, request: Request) -> Result<CallResponse, ExecuteError> {
        self.execute_for(request, None).await
    }

    /// The same for a caller that takes part while the call runs: it hears progress, answers what the tool needs, or cancels.
    pub async fn execute_for(
        &self,
        request: Request,
        caller: Option<Arc<dyn Caller>>,
    ) -> Result<CallResponse, ExecuteError> {
        let mut note = CallRecorder::for_request(&self.0, &request);
        match self.prepare(request, &mut note).await {
            Ok(ready) => self.send_noted(ready, note, caller).await,
            Err(refused) => {
                let refused = Err(refused);
                note.ended(&refused);
                refused
            }
        }
    }

    /// Every step up to a human's yes.
    async fn prepare(&self, request: Request, note: &mut CallRecorder) -> Result<Box<PreparedCall>, ExecuteError> {
        let snapshot = self.0.reader.snapshot();
        let scope = request.scope();
        let tool = resolve::tool(&snapshot.catalog, &self.0.reader.history(), &scope, &request)?;
        note.set_tool(&tool.id);
        allow::check(&snapshot.catalog, &scope, &tool)?;
        let rules = self.0.config.load_full();
        self.0.validators.check(&tool, &request.arguments, &rules).await?;
        let needs_yes = approval::needed(&tool);
        let ready = PreparedCall::new(tool, scope, request.arguments, request.user_id);
        if needs_yes {
            // In a box, as whatever is rare and large on this way: what stands in a future is moved with every call.
            return Err(Box::pin(self.request_approval(&request.name, ready)).await);
        }
        Ok(Box::new(ready))
    }

    /// Makes a call that a human said yes to, under this id. Whether it may still be made is asked once more: the tool may be gone,
    /// switched off or out of the asker's bounds since.
    pub async fn run_approved(&self, ready: PreparedCall, approval: &Arc<str>) -> Result<CallResponse, ExecuteError> {
        let note = CallRecorder::for_approved(&self.0, &ready, approval);
        let snapshot = self.0.reader.snapshot();
        let tool = resolve::again(&snapshot.catalog, &ready)
            .and_then(|tool| allow::check(&snapshot.catalog, &ready.scope, &tool).map(|()| tool));
        match tool {
            Ok(tool) => self.send_noted(Box::new(PreparedCall { tool, ..ready }), note, None).await,
            Err(refused) => {
                let refused = Err(refused);
                note.ended(&refused);
                refused
            }
        }
    }

    /// Findings about tools of this catalog whose calls were sent with unchecked arguments.
    pub fn findings(&self, catalog: &Catalog) -> Vec<Finding> {
        self.0.validators.findings(catalog)
    }

    /// How a scenario's circuit breaker stands; nothing when it was not called since the start.
    pub fn breaker(&self, scenario: &ScenarioName) -> Option<BreakerStatus> {
        self.0.limits.breaker(scenario)
    }

    /// How many calls wait for their turn now.
    pub fn waiting(&self) -> usize {
        self.0.limits.waiting()
    }

    /// How many calls of a scenario are under way.
    pub fn under_way(&self, scenario: &ScenarioName) -> usize {
        self.0.limits.under_way(scenario)
    }

    /// What was counted so far.
    pub fn counts(&self) -> &CallCounts {
        &self.0.counts
    }

    /// What was counted of a tool, in this daemon and those before it on the same state; nothing when no call of it is known.
    pub fn usage(&self, id: &ToolId) -> Option<ToolUsage> {
        self.0.usage.for_tool(id)
    }

    /// What was counted since [`counting_since`](Self::counting_since) of every tool that was called, at most [`usage::MOST`], in no order.
    pub fn usages(&self) -> Vec<(ToolId, ToolUsage)> {
        self.0.usage.all()
    }

    /// Since when calls are counted for metrics: since this daemon began.
    pub fn counting_since(&self) -> Timestamp {
        self.0.usage.beginning()
    }

    /// What became of the lines of the audit log.
    pub fn audit_counts(&self) -> Family {
        self.0.audited.family()
    }

    /// Whether metrics are to tell tools apart.
    pub fn tells_tools_apart(&self) -> bool {
        self.0.config.load().tool_metrics
    }

    /// Ends the audit log: calls that are under way are still written, later ones are not.
    pub fn close_audit(&self) {
        self.0.audit.store(None);
    }
}
