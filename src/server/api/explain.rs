//! Why a tool is or is not in the list, and what became of a name that was.

use std::borrow::Cow;
use std::sync::Arc;

use axum::response::Response;
use http::StatusCode;
use jiff::{Timestamp, Unit};
use schemars::JsonSchema;
use serde::Serialize;

use crate::calls::{BreakerStatus, LogEntry, LogWanted};
use crate::catalog::{FormerName, Snapshot, ViewQuery, explain};
use crate::model::{Finding, Health, ScenarioName, ScenarioState, ToolId, ViewTool};
use crate::server::ServerState;
use crate::server::api::{lookup, shared_json};
use crate::server::http::error::Problem;
use crate::server::http::next_step::NextStep;
use crate::state::LogKind;

/// Every decision about a tool, with its source; or the standing of a scenario, where no tool but a
/// scenario has the name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Explanation")]
pub(in crate::server) struct ToolExplanation<'a> {
    /// What has the name: `tool` or `scenario`.
    kind: &'static str,
    /// The published name.
    name: &'a str,
    /// `scenario/tool`, or the name of the scenario.
    id: String,
    scenario: &'a str,
    /// The name its scenario gave it; empty for a scenario.
    tool: &'a str,
    /// Whether a list for this scope has it, or a tool of the scenario, before limits.
    listed: bool,
    /// The same with the one cause, for people.
    verdict: String,
    /// In the order they were taken.
    steps: Vec<ExplainedStep<'a>>,
    /// The version of its definition, whole; for a tool that is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    definition_version: Option<String>,
    /// The version that its provider gives it, if it gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_version: Option<String>,
    /// What findings say of it, and of its scenario's standing.
    findings: Vec<shared_json::FindingJson<'a>>,
}

/// One decision.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Step")]
struct ExplainedStep<'a> {
    /// What was decided.
    subject: &'static str,
    /// What came of it, and why.
    outcome: Cow<'a, str>,
    /// Where that came from: `manifest`, `catalog`, `calls`, `log`, or a preference as `SCOPE
    /// TARGET`.
    source: &'a str,
    /// The requests that `outcome` quotes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<NextStep>,
}

impl<'a> ExplainedStep<'a> {
    fn new(subject: &'static str, outcome: &'a str, source: &'a str) -> Self {
        Self {
            subject,
            outcome: outcome.into(),
            source,
            next: Vec::new(),
        }
    }

    /// How a scenario stands, with the request that lifts its block if an operator blocked it.
    fn standing(outcome: &'a str, source: &'a str, health: Option<&Health>) -> Self {
        let step = Self::new("standing", outcome, source);
        let Some(blocked) = health.filter(|health| health.is_blocked_by_name()) else {
            return step;
        };
        let unblock = NextStep::request(
            "DELETE",
            format!("/api/v1/scenarios/{}/block", blocked.name),
        );
        Self {
            outcome: format!("{outcome}; {unblock} lifts that").into(),
            next: vec![unblock],
            ..step
        }
    }
}

/// Explains a tool, even if it is not published, and a name that was published before.
pub(super) fn answer(
    shared: &ServerState,
    snapshot: &Arc<Snapshot>,
    scope: &ViewQuery,
    name: &str,
) -> Result<Response, Problem> {
    let problem = match lookup::resolve_tool(&snapshot.catalog, scope, name) {
        Ok(tool) => return of_tool(shared, snapshot, scope, &tool, None),
        Err(problem) => problem,
    };
    let former = snapshot.former_names.find(name);
    let now = former.and_then(|former| {
        lookup::resolve_tool(&snapshot.catalog, scope, &former.id.to_string()).ok()
    });
    match (former, now) {
        // Several tools could be meant: the problem names them.
        (Some(former), _) if problem.status_and_detail().0 != StatusCode::NOT_FOUND => {
            Err(problem.preceded_by(&became(former)))
        }
        (None, _) if problem.status_and_detail().0 != StatusCode::NOT_FOUND => Err(problem),
        (Some(former), Some(tool)) => of_tool(shared, snapshot, scope, &tool, Some(former)),
        (Some(former), None) => match lookup::left_out(snapshot, &former.id.to_string()) {
            Some(finding) => left_out(&finding),
            None => gone(snapshot, former),
        },
        (None, _) => {
            match (
                lookup::left_out(snapshot, name),
                lookup::remembered(&shared.reader.history(), scope, name),
            ) {
                (Some(finding), _) => left_out(&finding),
                (None, Some(tool)) => of_tool(shared, snapshot, scope, &tool, None),
                (None, None) => match name
                    .parse()
                    .ok()
                    .and_then(|name: ScenarioName| snapshot.health.get(&name))
                {
                    Some(health) => of_scenario(snapshot, health),
                    None => match logged(shared, scope, name) {
                        Some(known) => match known.offered(snapshot, scope) {
                            Some(tool) => of_tool(shared, snapshot, scope, &tool, None),
                            None => known.explanation(),
                        },
                        None => Err(lookup::with_unanswered(problem, snapshot, name)),
                    },
                },
            }
        }
    }
}

/// Explains the standing of a scenario, for clients that know it and none of its tools.
fn of_scenario(snapshot: &Snapshot, health: &Health) -> Result<Response, Problem> {
    let Health {
        name,
        state,
        reason,
        tools,
        ..
    } = health;
    let verdict = format!("a tool provider (scenario) and no tool; it is {state}: {reason}");
    let next = NextStep::request("GET", format!("/api/v1/scenarios/{name}"));
    let counts = format!(
        "{} published, {} disabled, {} malformed; {next} shows more",
        tools.published, tools.disabled, tools.quarantined
    );
    let source = health.source.as_str();
    let mut findings = snapshot.catalog.findings_of_scenario(name);
    let of_itself =
        |finding: &&Finding| finding.scenario.as_ref() == Some(name) && finding.tool.is_none();
    findings.extend(snapshot.findings.iter().filter(of_itself).cloned());
    findings.sort();
    findings.dedup();
    shared_json::json(&ToolExplanation {
        kind: "scenario",
        name: name.as_str(),
        id: name.to_string(),
        scenario: name.as_str(),
        tool: "",
        listed: tools.published > 0,
        verdict,
        steps: vec![
            ExplainedStep::standing(reason, source, Some(health)),
            ExplainedStep {
                next: vec![next],
                ..ExplainedStep::new("tools", &counts, "catalog")
            },
        ],
        definition_version: None,
        provider_version: None,
        findings: findings.iter().map(shared_json::finding).collect(),
    })
}

/// Explains a tool, which had another name before.
fn of_tool(
    shared: &ServerState,
    snapshot: &Snapshot,
    scope: &ViewQuery,
    tool: &ViewTool,
    former: Option<&FormerName>,
) -> Result<Response, Problem> {
    let explanation = explain(&snapshot.catalog, scope, tool);
    let mut verdict = explanation.verdict.clone();
    let tool = &explanation.tool;
    if let Some(former) = former.filter(|former| explanation.listed && former.name != tool.name) {
        let why = explanation
            .steps
            .iter()
            .find(|step| step.subject == "name")
            .map(|step| step.outcome.as_str());
        let why = why.unwrap_or(&former.cause);
        verdict = format!(
            "{verdict} as `{}`, and not as `{}` since {}: {why}",
            tool.name,
            former.name,
            at(former.since)
        );
    }
    let health = snapshot
        .health
        .get(&tool.id.scenario)
        .map(|health| &**health);
    let stale = health.filter(|health| health.state == ScenarioState::Stale);
    if let Some(health) = stale.filter(|_| explanation.listed) {
        verdict = format!("{verdict}, but {} is stale: {}", health.name, health.reason);
    }
    let refused = refused_now(shared, &tool.id);
    if let Some(why) = refused.as_ref().filter(|_| explanation.listed) {
        verdict = format!("{verdict}, but {why}");
    }
    let steps = explanation.steps.iter().map(|step| match step.subject {
        "standing" => ExplainedStep::standing(&step.outcome, &step.source, health),
        subject => ExplainedStep::new(subject, &step.outcome, &step.source),
    });
    let circuit = refused
        .as_deref()
        .map(|why| ExplainedStep::new("circuit", why, "calls"));
    shared_json::json(&ToolExplanation {
        kind: "tool",
        name: tool.name.as_str(),
        id: tool.id.to_string(),
        scenario: tool.id.scenario.as_str(),
        tool: &tool.id.tool,
        listed: explanation.listed,
        verdict,
        steps: steps.chain(circuit).collect(),
        definition_version: Some(tool.tool.version().to_string()),
        provider_version: tool.tool.provider_version(),
        findings: explanation
            .findings
            .iter()
            .map(shared_json::finding)
            .collect(),
    })
}

/// Why calls of a tool are refused now although it is listed: its circuit breaker, or that of its
/// scenario.
fn refused_now(shared: &ServerState, id: &ToolId) -> Option<String> {
    let now = shared.clock.wall();
    let said = |subject: &str, status: &BreakerStatus, what: &str| {
        let until = status.until.filter(|until| *until > now)?;
        let last = status
            .last_failure
            .map(|code| format!(", the last time with `{}`", code.as_str()));
        let last = last.unwrap_or_default();
        Some(format!(
            "`{subject}` {what} {} times in a row{last}, and is not called until {}",
            status.failures,
            at(until)
        ))
    };
    let of_scenario = shared.calls.breaker(&id.scenario);
    let of_scenario =
        of_scenario.and_then(|status| said(id.scenario.as_str(), &status, "was not reached"));
    of_scenario.or_else(|| {
        let of_tools = shared.calls.tool_breakers(&id.scenario);
        let own = of_tools.iter().find(|breaker| breaker.tool == id.tool)?;
        said(&id.to_string(), &own.status, "failed")
    })
}

/// Explains a tool that a finding leaves out of the list.
fn left_out(finding: &Finding) -> Result<Response, Problem> {
    let scenario = finding
        .scenario
        .as_ref()
        .map(ScenarioName::as_str)
        .unwrap_or_default();
    let tool = finding.tool.as_deref().unwrap_or_default();
    let outcome = format!(
        "it is left out, because of `{}`: {}",
        finding.code, finding.message
    );
    shared_json::json(&ToolExplanation {
        kind: "tool",
        name: tool,
        id: format!("{scenario}/{tool}"),
        scenario,
        tool,
        listed: false,
        verdict: format!("not in the list: {outcome}"),
        steps: vec![ExplainedStep::new("offered", &outcome, "catalog")],
        definition_version: None,
        provider_version: None,
        findings: vec![shared_json::finding(finding)],
    })
}

/// Explains a name whose tool no scenario offers any more.
fn gone(snapshot: &Snapshot, former: &FormerName) -> Result<Response, Problem> {
    let id = &former.id;
    let removed = snapshot
        .health
        .get(&id.scenario)
        .filter(|_| snapshot.catalog.entry(&id.scenario).is_none());
    let cause = match removed {
        Some(health) => format!(
            "{} is {}: {}",
            id.scenario,
            health.state.as_str(),
            health.reason
        ),
        None => former.cause.to_string(),
    };
    let outcome = format!(
        "{cause}; the list does not have `{}` since {}",
        former.name,
        at(former.since)
    );
    shared_json::json(&ToolExplanation {
        kind: "tool",
        name: former.name.as_str(),
        id: id.to_string(),
        scenario: id.scenario.as_str(),
        tool: &id.tool,
        listed: false,
        verdict: format!("not in the list: {outcome}"),
        steps: vec![ExplainedStep::new("offered", &outcome, "catalog")],
        definition_version: None,
        provider_version: None,
        findings: Vec::new(),
    })
}

/// What the log has of a name that no tool or scenario has any more, also from before a restart.
struct LoggedName {
    name: String,
    scenario: ScenarioName,
    /// The tool; `None` for the name of a scenario.
    tool: Option<ToolId>,
    /// What became of it.
    outcome: String,
}

/// What the log has of a name. It has the tools of all profiles, so it is not read for one.
fn logged(shared: &ServerState, scope: &ViewQuery, name: &str) -> Option<LoggedName> {
    if scope.names_bounds() {
        return None;
    }
    let wanted = LogWanted {
        kinds: vec![LogKind::Call],
        tool: Some(name.to_owned()),
        limit: 1,
        ..LogWanted::default()
    };
    let called = shared
        .calls
        .log(&wanted)
        .lines
        .into_iter()
        .find_map(|line| match line {
            LogEntry::Call(call) => Some((call.call.tool.clone()?, call.ended)),
            _ => None,
        });
    let tool = called
        .as_ref()
        .map(|called| called.0.clone())
        .or_else(|| name.parse().ok());
    let scenario = tool.as_ref().map_or_else(
        || name.parse().ok(),
        |tool: &ToolId| Some(tool.scenario.clone()),
    )?;
    let outcome = match (removal(shared, &scenario), called) {
        (Some(removal), _) => removal,
        (None, Some((id, ended))) => {
            format!(
                "{} does not offer it now; its last call ended at {}",
                id.scenario,
                at(ended)
            )
        }
        (None, None) => return None,
    };
    Some(LoggedName {
        name: name.to_owned(),
        scenario,
        tool,
        outcome,
    })
}

/// How a scenario left, if that is the last that the log has of it.
fn removal(shared: &ServerState, scenario: &ScenarioName) -> Option<String> {
    let wanted = LogWanted {
        kinds: vec![LogKind::State],
        scenario: Some(scenario.clone()),
        limit: 1,
        ..LogWanted::default()
    };
    let LogEntry::State(state) = shared.calls.log(&wanted).lines.pop()? else {
        return None;
    };
    let change = &state.change;
    let left = match change.to {
        None => "forgotten",
        Some(ScenarioState::Removed) => "removed",
        Some(_) => return None,
    };
    Some(format!(
        "{scenario} was {left} at {}: {}",
        at(change.at),
        change.reason
    ))
}

impl LoggedName {
    /// The tool, if it is offered now: in another scope, or by another name.
    fn offered(&self, snapshot: &Snapshot, scope: &ViewQuery) -> Option<Arc<ViewTool>> {
        let id = self.tool.as_ref()?.to_string();
        lookup::resolve_tool(&snapshot.catalog, scope, &id).ok()
    }

    fn explanation(&self) -> Result<Response, Problem> {
        let id = self
            .tool
            .as_ref()
            .map_or_else(|| self.scenario.to_string(), ToolId::to_string);
        shared_json::json(&ToolExplanation {
            kind: if self.tool.is_some() {
                "tool"
            } else {
                "scenario"
            },
            name: &self.name,
            id,
            scenario: self.scenario.as_str(),
            tool: self.tool.as_ref().map_or("", |tool| &tool.tool),
            listed: false,
            verdict: format!("not in the list: {}", self.outcome),
            steps: vec![ExplainedStep::new("offered", &self.outcome, "log")],
            definition_version: None,
            provider_version: None,
            findings: Vec::new(),
        })
    }
}

/// What became of a name, as the beginning of a sentence.
fn became(former: &FormerName) -> String {
    format!(
        "`{}` was the name of {} until {}, and {}",
        former.name,
        former.id,
        at(former.since),
        former.cause
    )
}

/// A time for people, in seconds.
fn at(time: Timestamp) -> String {
    time.round(Unit::Second).unwrap_or(time).to_string()
}
