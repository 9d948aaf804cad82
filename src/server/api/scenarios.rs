//! `/api/v1/scenarios`: shows the health of scenarios, and takes the decisions of operators about
//! them. Never judges health itself; the engine does.

use std::sync::Arc;

use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalog::{self, Snapshot};
use crate::engine::Forgotten;
use crate::model::{Finding, FindingCode, Health, ScenarioName, ScenarioState, SourceId};
use crate::server::api::findings::{cached_list, digest_text, parse_values, written_list};
use crate::server::api::program_costs::{ProgramCostJson, program_cost, program_costs};
use crate::server::api::shared_json;
use crate::server::auth::Access;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::held::ConnectionBytes;
use crate::server::http::next_step::NextStep;
use crate::server::http::params::ParamType;
use crate::server::http::query::{NoQuery, Param, QueryParams, many, once};
use crate::server::http::typed_body::ApiJson;
use crate::server::rendered::rendered;
use crate::server::{ServerState, SharedState};
use crate::state::Decision;

/// The filter of the list of scenarios.
pub(in crate::server) const STATES: &[Param] = &[many("state")
    .takes(ParamType::Word(|| {
        ScenarioState::ALL.map(ScenarioState::as_str).to_vec()
    }))
    .about("Only scenarios in these states.", "live")];
/// The parameter of a decision to trust.
pub(in crate::server) const ORIGIN: &[Param] = &[once("origin").about(
    "Only if it is there: what was looked at may have made room for something else meanwhile.",
    "http://127.0.0.1:9001",
)];

/// The health of every scenario that matches, in order of their names.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Scenarios")]
pub(in crate::server) struct ScenarioList<'a> {
    scenarios: Vec<ListedScenario<'a>>,
    /// There while the daemon takes itself to be cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    isolated: Option<shared_json::IsolatedJson>,
    /// Present while the active configuration differs from the written one.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<shared_json::ConfigurationJson<'a>>,
}

/// The health of a scenario, and how calls of its tools fare.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ListedScenario")]
struct ListedScenario<'a> {
    #[serde(flatten)]
    scenario: shared_json::HealthJson<'a>,
    /// Its circuit breakers; `null` when no tool of its present process was called yet.
    calls: Option<shared_json::BreakerJson>,
    /// What its program costs; present where callsheet started one, and the system shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramCostJson>,
}

/// The health of a scenario, with its findings.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExaminedScenario")]
pub(in crate::server) struct ExaminedScenario<'a> {
    #[serde(flatten)]
    scenario: shared_json::HealthJson<'a>,
    /// Its circuit breakers; `null` when no tool of its present process was called yet.
    calls: Option<shared_json::BreakerJson>,
    /// What its program costs; present where callsheet started one, and the system shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<ProgramCostJson>,
    #[schemars(with = "Vec<shared_json::FindingJson<'a>>")]
    findings: shared_json::WrittenJson,
    /// The last lines that the program of this scenario wrote to standard error, the oldest first,
    /// with the values of its environment masked; empty where callsheet has started no program.
    stderr: Vec<String>,
    /// How the run of the program ended that wrote these lines, if they are of the run that ended
    /// last; a run that is there now has written none then.
    stderr_end: Option<String>,
}

/// `GET /api/v1/scenarios`: `{"scenarios": [health]}`, in order of their names. Filter: `state`,
/// with several values. While the daemon assumes that it is cut off, `isolated` says since when,
/// until when at most, and why. While the active configuration differs from the written one,
/// `configuration` says so, as in `/readyz`.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    access: Access,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), STATES)?;
    let states = parse_values(&query, "state", &ScenarioState::ALL, ScenarioState::as_str)?;
    let snapshot = shared.reader.snapshot();
    let now = shared.clock.wall();
    let wanted = |health: &&Arc<Health>| states.is_empty() || states.contains(&health.state);
    let shown = || snapshot.health.values().filter(wanted);
    let names = shown().map(|health| health.name.clone()).collect();
    let costs = program_costs(&shared, names).await;
    let listed = shown().map(|health| ListedScenario {
        scenario: shared_json::health(health, now),
        calls: shared_json::breaker(&shared.calls, &health.name),
        program: costs.get(&health.name).copied().map(Into::into),
    });
    let deviating = snapshot
        .configuration
        .as_ref()
        .filter(|state| !state.is_as_written());
    shared_json::json(&ScenarioList {
        scenarios: listed.collect(),
        isolated: snapshot.isolated.as_ref().map(shared_json::isolated),
        configuration: deviating.map(|state| shared_json::configuration(state, access)),
    })
}

/// `GET /api/v1/scenarios/{name}`: its health with its `findings`. 404 suggests similar names.
pub(in crate::server) async fn show(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let state = Arc::clone(&shared);
    let held = bytes.clone();
    let made = async move { examined(&state, &name, &held).await };
    rendered(&shared, &bytes, made).await?
}

/// The health of a scenario with its findings. The list of these is made once for all requests
/// until it changes; the rest is as of now.
async fn examined(
    shared: &ServerState,
    name: &str,
    bytes: &ConnectionBytes,
) -> Result<Response, Problem> {
    let snapshot = shared.reader.snapshot();
    let health = find(&snapshot, name)?;
    let unusable = shared
        .calls
        .unusable_schemas(&snapshot.catalog, Some(&health.name))
        .await;
    let key = format!("{} {}", health.name, digest_text(&written_list(&unusable)?));
    let findings = cached_list(shared, &snapshot, &key, || {
        written_list(&with_unusable(&snapshot, &health.name, unusable))
    })?;
    let errors = recent_errors(shared, health);
    let cost = program_cost(shared, &health.name).await;
    let findings_bytes = findings.body.len();
    let document = ExaminedScenario {
        scenario: shared_json::health(health, shared.clock.wall()),
        calls: shared_json::breaker(&shared.calls, &health.name),
        program: cost.map(Into::into),
        findings: shared_json::WrittenJson(findings.body.clone()),
        stderr: errors.lines,
        stderr_end: errors.end,
    };
    shared_json::reserved(&document, findings_bytes, bytes)
}

/// The last lines that the program of a scenario wrote to standard error.
#[derive(Debug, Default)]
pub(in crate::server) struct RecentErrors {
    /// The oldest first.
    pub(in crate::server) lines: Vec<String>,
    /// How the run that wrote them ended, if they are of the run that ended last.
    pub(in crate::server) end: Option<String>,
}

/// The last lines that the program of a scenario wrote to standard error. Those of the run that
/// ended last stay while its successor has written none, and are marked, so that they are not taken
/// for the reason of something later.
pub(in crate::server) fn recent_errors(shared: &ServerState, health: &Health) -> RecentErrors {
    let lines = shared
        .engine
        .route(&health.name)
        .map(|route| route.session.recent_errors())
        .unwrap_or_default();
    if !lines.is_empty() {
        return RecentErrors { lines, end: None };
    }
    match health
        .program_end
        .as_ref()
        .filter(|end| !end.stderr.is_empty())
    {
        Some(end) => RecentErrors {
            lines: end.stderr.clone(),
            end: Some(end.how.clone()),
        },
        None => RecentErrors::default(),
    }
}

/// `POST /api/v1/scenarios/{name}/refresh`: polls the scenario now and answers its health after the
/// poll, even if the poll failed.
pub(in crate::server) async fn refresh(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let name = find(&shared.reader.snapshot(), &name)?.name.clone();
    let refreshed = shared.engine.refresh(vec![name.clone()]).await?;
    match refreshed.into_iter().find(|health| health.name == name) {
        Some(health) => shared_json::json(&shared_json::health(&health, shared.clock.wall())),
        None => current_health(&shared, name.as_str()),
    }
}

/// `POST /api/v1/scenarios/{name}/trust`: its address may be used although its source does not
/// vouch for it. Lifts a block. With `origin`, 409 unless the scenario is there: another one may
/// have taken its place since the operator looked.
pub(in crate::server) async fn trust(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), ORIGIN)?;
    if let Some(meant) = query.optional("origin") {
        let found = find(&shared.reader.snapshot(), &name)?
            .party
            .origin
            .clone()
            .unwrap_or_default();
        if *found != *meant.trim_end_matches('/') {
            let show = NextStep::request("GET", format!("/api/v1/scenarios/{name}"));
            let meant = excerpt(meant);
            let problem = Problem::new(
                StatusCode::CONFLICT,
                format!("`{name}` is at {found} now, not at {meant}"),
            );
            return Err(problem
                .and_next(&format!("{show} shows what it claims to be"))
                .with_next(show));
        }
    }
    decide(&shared, &name, Some(Decision::Trusted)).await
}

/// `POST /api/v1/scenarios/{name}/block`: the scenario is neither polled nor published.
pub(in crate::server) async fn block(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    decide(&shared, &name, Some(Decision::Blocked)).await
}

/// `DELETE /api/v1/scenarios/{name}/trust`: takes an operator's trust back. 409 when it is blocked,
/// since that would lift the block.
pub(in crate::server) async fn untrust(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    if find(&shared.reader.snapshot(), &name)?.state == ScenarioState::Blocked {
        let unblock = NextStep::request("DELETE", format!("/api/v1/scenarios/{name}/block"));
        let problem = Problem::new(
            StatusCode::CONFLICT,
            format!("`{name}` is blocked, not trusted"),
        );
        return Err(problem
            .and_next(&format!("{unblock} takes the block back"))
            .with_next(unblock));
    }
    decide(&shared, &name, None).await
}

/// `DELETE /api/v1/scenarios/{name}/block`: lifts a block. Changes nothing if the scenario is not
/// blocked, not even its trust.
pub(in crate::server) async fn unblock(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    if find(&shared.reader.snapshot(), &name)?.state == ScenarioState::Blocked {
        decide(&shared, &name, None).await
    } else {
        current_health(&shared, &name)
    }
}

/// What came of forgetting a scenario.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ForgottenScenario")]
pub(in crate::server) struct ForgottenJson<'a> {
    /// The name it was filed under.
    name: &'a str,
    /// The state that it was in.
    #[schemars(schema_with = "shared_json::states")]
    was: &'static str,
    /// The source that still names it; `null` when none does.
    named_by: Option<&'static str>,
    /// Whether an operator's trust in it was taken back with it.
    trust_ended: bool,
    /// What that means, for people.
    message: String,
}

impl<'a> ForgottenJson<'a> {
    fn new(forgotten: &'a Forgotten) -> Self {
        let name = forgotten.name.as_str();
        let message = match forgotten.named_by {
            Some(source) => format!(
                "`{name}` is forgotten, but its source ({source}) still names it: it is known anew, and its tools come back at its next good answer"
            ),
            None => format!("`{name}` is forgotten, and the names of its tools are free"),
        };
        let named_by = forgotten.named_by.map(SourceId::as_str);
        Self {
            name,
            was: forgotten.was.as_str(),
            named_by,
            trust_ended: forgotten.approval_ended,
            message,
        }
    }
}

/// `POST /api/v1/scenarios/{name}/forget`: deletes a scenario that is removed or down. 409 in any
/// other state.
pub(in crate::server) async fn forget(
    State(shared): State<SharedState>,
    Path(name): Path<String>,
    _: NoQuery,
) -> Result<Response, Problem> {
    let name = find(&shared.reader.snapshot(), &name)?.name.clone();
    shared_json::json(&ForgottenJson::new(&shared.engine.forget(name).await?))
}

/// Whether the scenarios are only named.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ForgetUnreachable")]
pub(in crate::server) struct ForgetManyBody {
    /// Whether they are only named, and stay known.
    #[schemars(skip_serializing_if = "Option::is_none")]
    preview: Option<bool>,
}

/// The scenarios that were forgotten, or would be.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ForgottenScenarios")]
pub(in crate::server) struct ForgottenMany {
    /// Their names, in order.
    scenarios: Vec<String>,
    /// Those of them that a source still names: they come back at their next good answer.
    still_named: Vec<String>,
    /// Whether they are forgotten; else they were only named.
    forgotten: bool,
}

/// `POST /api/v1/state/forget-unreachable`: forgets every scenario that is removed or down, or with
/// `preview` only names them.
pub(in crate::server) async fn forget_many(
    State(shared): State<SharedState>,
    _: NoQuery,
    ApiJson(body): ApiJson<ForgetManyBody>,
) -> Result<Response, Problem> {
    if body.preview.unwrap_or_default() {
        let snapshot = shared.reader.snapshot();
        let names = shared.engine.forgettable();
        let is_named = |name: &&ScenarioName| {
            let health = snapshot.health.get(*name);
            health.is_some_and(|health| health.state == ScenarioState::Down)
        };
        return shared_json::json(&ForgottenMany {
            still_named: names
                .iter()
                .filter(is_named)
                .map(ToString::to_string)
                .collect(),
            scenarios: names.iter().map(ToString::to_string).collect(),
            forgotten: false,
        });
    }
    let forgotten = shared.engine.forget_all().await?;
    let still_named = forgotten.iter().filter(|one| one.named_by.is_some());
    shared_json::json(&ForgottenMany {
        still_named: still_named.map(|one| one.name.to_string()).collect(),
        scenarios: forgotten.iter().map(|one| one.name.to_string()).collect(),
        forgotten: true,
    })
}

/// The engine checks whether the scenario is known: an operator may decide before it appears.
async fn decide(
    shared: &ServerState,
    name: &str,
    decision: Option<Decision>,
) -> Result<Response, Problem> {
    let health = shared.engine.decide(name.parse()?, decision).await?;
    shared_json::json(&shared_json::health(&health, shared.clock.wall()))
}

fn current_health(shared: &ServerState, name: &str) -> Result<Response, Problem> {
    shared_json::json(&shared_json::health(
        find(&shared.reader.snapshot(), name)?,
        shared.clock.wall(),
    ))
}

/// The health of a scenario; 404 suggests similar names.
pub(in crate::server) fn find<'a>(
    snapshot: &'a Snapshot,
    name: &str,
) -> Result<&'a Arc<Health>, Problem> {
    let parsed: ScenarioName = name.parse()?;
    snapshot.health.get(&parsed).ok_or_else(|| {
        if let Some(problem) = not_listed(snapshot, &parsed) {
            return problem;
        }
        let near = catalog::nearest(
            name,
            snapshot.health.keys().map(|known| (known.as_str(), known)),
        );
        let list = NextStep::request("GET", "/api/v1/scenarios");
        let next = match near.first() {
            Some(_) => format!("did you mean {}?", near.join(" or ")),
            None => format!("{list} lists those that are known"),
        };
        let problem = Problem::not_found(format!("no scenario is called `{}`", excerpt(name)))
            .and_next(&next);
        problem.with_member("candidates", near).with_next(list)
    })
}

/// Why a scenario that a source names is not listed under its name, if a finding says so.
fn not_listed(snapshot: &Snapshot, name: &ScenarioName) -> Option<Problem> {
    let is_reason = |finding: &&Finding| {
        finding.scenario.as_ref() == Some(name)
            && matches!(
                finding.code,
                FindingCode::SourceShadowed | FindingCode::EntryIgnored
            )
    };
    let finding = snapshot.findings.iter().find(is_reason)?;
    let problem = Problem::not_found(format!("`{name}` is not listed: {}", finding.message));
    Some(problem.and_next_if(finding.hint.as_deref()))
}

/// The findings of sources, manifests, the store and the merge about one scenario, in order, each
/// once.
pub(in crate::server) async fn findings_of(
    shared: &ServerState,
    snapshot: &Snapshot,
    name: &ScenarioName,
) -> Vec<Finding> {
    // The only wait, before there is much to keep.
    let unusable = shared
        .calls
        .unusable_schemas(&snapshot.catalog, Some(name))
        .await;
    with_unusable(snapshot, name, unusable)
}

/// The same with those about unusable schemas, which are known already.
fn with_unusable(snapshot: &Snapshot, name: &ScenarioName, unusable: Vec<Finding>) -> Vec<Finding> {
    let mut findings = unusable;
    findings.extend(snapshot.catalog.findings_of(name));
    findings.extend(
        snapshot
            .findings
            .iter()
            .filter(|finding| finding.scenario.as_ref() == Some(name))
            .cloned(),
    );
    findings.extend(
        snapshot
            .catalog
            .entry(name)
            .iter()
            .flat_map(|entry| entry.lint())
            .cloned(),
    );
    findings.sort();
    findings.dedup();
    findings
}
