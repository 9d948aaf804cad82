//! The route of a call: from what an asker wrote to the scenario that owns the tool, and back with what it answered.
//!
//! The steps are one file each, in this order: [`resolve`] finds the tool, [`allow`] asks whether this asker may call it, [`validate`] checks
//! the arguments, [`approval`] asks whether a human must say yes, [`limits`] gives it its turn, [`send`] sends it through the scenario's
//! protocol. Every step refuses with a [`Refused`] that says why and what to do.
//!
//! A call that is under way goes on to its end when whoever made it goes away: what a tool has begun cannot be taken back by not listening,
//! and its outcome is counted. One that still waits for its turn is given up then.
//!
//! Never here: HTTP, rendering of answers, a log of arguments or results.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::catalog::{CatalogReader, ViewQuery};
use crate::config;
use crate::engine::EngineHandle;
use crate::metrics::CallCounts;
use crate::model::{JsonText, ScenarioName, ViewTool};
use crate::protocols::Outcome;
use crate::runtime::{Clock, Tasks};

pub mod allow;
pub mod approval;
pub mod breaker;
pub mod limits;
pub mod refused;
pub mod resolve;
pub mod send;
pub mod validate;

pub use breaker::{Breaker, BreakerState};
pub use refused::{Refused, Violation};

use limits::Limits;
use validate::Validators;

/// Calls tools. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Calls(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: ArcSwap<config::Calls>,
    reader: CatalogReader,
    engine: EngineHandle,
    limits: Limits,
    validators: Validators,
    counts: CallCounts,
    clock: Clock,
    tasks: Tasks,
}

/// What an asker wants to have called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A published name, `scenario/tool`, or an original name that only one scenario has.
    pub name: String,
    /// The text of one JSON object.
    pub arguments: JsonText,
    /// Whose tool it is, if the asker says so; then `name` may be the tool's own.
    pub scenario: Option<ScenarioName>,
    /// For which conversation.
    pub chat: Option<String>,
    /// For which profile.
    pub profile: Option<String>,
    /// For whom, where a protocol passes that on.
    pub user_id: Option<Arc<str>>,
    /// The revision of the list that the name was taken from. Without it the name is looked up in the present list.
    pub revision: Option<String>,
}

/// A call for which everything is decided but whether it gets its turn.
#[derive(Debug, Clone)]
pub struct Ready {
    /// The tool, as the asker's scope has it.
    pub tool: Arc<ViewTool>,
    /// The asker's scope.
    pub scope: ViewQuery,
    /// The text of one JSON object, which fits the tool's schema.
    pub arguments: JsonText,
    /// For whom.
    pub user_id: Option<Arc<str>>,
}

/// What came of a call that its scenario answered.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The tool that was called.
    pub tool: Arc<ViewTool>,
    /// Its scenario's answer, which may be that it failed, or that it goes on.
    pub outcome: Outcome,
    /// Where it went, without credentials.
    pub url: String,
    /// From the request to the answer, waiting included.
    pub took: Duration,
    /// How often it was sent; more than once only for an idempotent tool, or when nobody had seen it before.
    pub attempts: u32,
}

impl Request {
    /// A call in the global scope.
    pub fn new(name: impl Into<String>, arguments: JsonText) -> Self {
        Self { name: name.into(), arguments, scenario: None, chat: None, profile: None, user_id: None, revision: None }
    }

    /// The scope it is made in.
    pub fn scope(&self) -> ViewQuery {
        ViewQuery { profile: self.profile.clone(), chat: self.chat.clone(), ..ViewQuery::default() }
    }
}

impl Calls {
    /// Calls tools that `reader` shows, at the ways that `engine` knows.
    pub fn new(config: config::Calls, engine: EngineHandle, reader: CatalogReader, clock: Clock, tasks: Tasks) -> Self {
        let limits = Limits::new(clock);
        let validators = Validators::default();
        let (config, counts) = (ArcSwap::from_pointee(config), CallCounts::default());
        Self(Arc::new(Inner { config, reader, engine, limits, validators, counts, clock, tasks }))
    }

    /// Puts other limits in force for the calls to come.
    pub fn adjust(&self, config: config::Calls) {
        self.0.config.store(Arc::new(config));
    }

    /// Makes a call, and waits for what comes of it. See the module's head for what dropping it means.
    pub async fn execute(&self, request: Request) -> Result<Answered, Refused> {
        let begun = self.0.clock.now();
        let answered = match self.prepare(request).await {
            Ok(ready) => self.send(ready).await,
            Err(refused) => Err(refused),
        };
        let took = self.0.clock.now() - begun;
        self.0.counts.ended(outcome(&answered), took);
        answered.map(|answered| Answered { took, ..answered })
    }

    /// Every step up to a human's yes.
    async fn prepare(&self, request: Request) -> Result<Ready, Refused> {
        let snapshot = self.0.reader.snapshot();
        let scope = request.scope();
        let tool = resolve::tool(&snapshot.catalog, &self.0.reader.past(), &scope, &request)?;
        allow::check(&snapshot.catalog, &scope, &tool)?;
        let most = self.0.config.load().validators;
        let (name, schema) = (tool.name.as_str(), &tool.tool.parameters);
        self.0.validators.check(name, schema, &request.arguments, most, &self.0.tasks).await?;
        if approval::needed(&tool) {
            return Err(Refused::ApprovalRequired { id: tool.id.clone() });
        }
        Ok(Ready { tool, scope, arguments: request.arguments, user_id: request.user_id })
    }

    /// Makes a call that a human said yes to. Whether it may still be made is asked once more: the tool may be gone, switched off or out
    /// of the asker's bounds since.
    pub async fn run_approved(&self, ready: Ready) -> Result<Answered, Refused> {
        let begun = self.0.clock.now();
        let snapshot = self.0.reader.snapshot();
        let answered = match resolve::again(&snapshot.catalog, &ready) {
            Ok(tool) => match allow::check(&snapshot.catalog, &ready.scope, &tool) {
                Ok(()) => self.send(Ready { tool, ..ready }).await,
                Err(refused) => Err(refused),
            },
            Err(refused) => Err(refused),
        };
        let took = self.0.clock.now() - begun;
        self.0.counts.ended(outcome(&answered), took);
        answered.map(|answered| Answered { took, ..answered })
    }

    /// How a scenario's circuit breaker stands; nothing when it was not called since the start.
    pub fn breaker(&self, scenario: &ScenarioName) -> Option<Breaker> {
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
}

/// The word under which it is counted.
fn outcome(answered: &Result<Answered, Refused>) -> &'static str {
    match answered {
        Ok(answered) if answered.outcome.running.is_some() => "running",
        Ok(answered) if answered.outcome.success => "ok",
        Ok(_) => "failed",
        Err(refused) => refused.kind(),
    }
}
