//! `/api/v1/pins`: how scenarios differ from what was accepted of them, and an operator's
//! acceptance. Never judges a difference itself; the catalog does.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::catalog::pins::{AcceptedPin, PinChange, PinDifference, PinSubject, PinVerdict};
use crate::catalog::{ChangedPart, DefinitionDifference};
use crate::engine::PinReport;
use crate::model::{DefinitionVersion, PinMode, ScenarioName};
use crate::server::api::scenarios::find;
use crate::server::api::shared_json::{self, Time};
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::params::{ParamType, grammar};
use crate::server::http::query::{NoQuery, Param, QueryParams, many};
use crate::server::http::typed_body::ApiJson;
use crate::server::openapi::{RefusalSpec, refusal};
use crate::server::rendered::rendered;
use crate::server::{ServerState, SharedState};

/// Differences of which an answer has the parts: each may have 16 KiB of them.
const SHOWN_DIFFERENCES_MAX: usize = 200;

/// The filter of the list.
pub(in crate::server) const SCENARIOS: &[Param] = &[many("scenario")
    .takes(ParamType::Matching(grammar::SCENARIO))
    .about("Only these scenarios.", "files")];

/// What was shown is not what is there now, or its definitions are not compared.
pub(in crate::server) const NOT_ACCEPTED: RefusalSpec = refusal(
    409,
    "It offers another version by now than the one that was named (`code` is `pins_changed`), or its definitions are not pinned; none was accepted.",
);

/// The scenarios whose definitions are compared, in order of their names.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pins")]
pub(in crate::server) struct PinsList<'a> {
    pins: Vec<ScenarioPins<'a>>,
}

/// How a scenario differs from what was accepted of it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ScenarioPins")]
pub(in crate::server) struct ScenarioPins<'a> {
    /// The name of the scenario.
    scenario: &'a str,
    /// What happens with what differs: `warn` or `hold`.
    mode: &'static str,
    /// How many of its tools are accepted.
    accepted_tools: usize,
    /// What differs: the instructions first, then the tools in order of their names.
    differences: Vec<DifferenceJson>,
}

/// One difference.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PinDifference")]
struct DifferenceJson {
    /// The tool; `null` for the instructions of the server.
    tool: Option<String>,
    /// `changed`, `new` or `removed`.
    change: &'static str,
    /// Whether it is neither listed nor called, or not passed on, until it is accepted.
    held: bool,
    /// Whether it changed more than three times in a week.
    changes_often: bool,
    /// Since when it is as it is.
    since: Time,
    /// The accepted version, whole; `null` if none was.
    accepted_version: Option<String>,
    /// The version now, whole; `null` if it is gone.
    version: Option<String>,
    /// The parts that differ, the first of them; of the first 200 definitions of an answer that
    /// changed.
    parts: Vec<PartJson>,
    /// How many more parts differ.
    more: usize,
}

/// A part that differs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PinnedPart")]
struct PartJson {
    /// Where it is, as a JSON pointer.
    pointer: String,
    /// What it was, where it differs; `null` if it is new.
    before: Option<String>,
    /// What it is, where it differs; `null` if it is gone.
    after: Option<String>,
}

/// What an operator accepts, in the versions that were shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "AcceptPins", extend("minProperties" = 1))]
pub(in crate::server) struct AcceptBody {
    /// Tools.
    #[serde(default)]
    #[schemars(length(min = 1))]
    tools: Vec<ShownTool>,
    /// The instructions of the server.
    #[serde(default, deserialize_with = "present")]
    #[schemars(with = "ShownVersion", skip_serializing_if = "Option::is_none")]
    instructions: Option<ShownVersion>,
}

/// A member that is no `null` where it is given.
fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A member that has to be given, if only as `null`.
fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

fn versions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "null"], "pattern": "^[0-9A-Fa-f]{64}$"})
}

/// A tool in the version that was shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownTool")]
struct ShownTool {
    /// The name that its scenario gives it.
    name: String,
    /// The version, whole; `null` if it was shown as removed.
    #[serde(deserialize_with = "required")]
    #[schemars(required, schema_with = "versions")]
    version: Option<String>,
}

/// A version that was shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ShownVersion")]
struct ShownVersion {
    /// The version, whole; `null` if they were shown as removed.
    #[serde(deserialize_with = "required")]
    #[schemars(required, schema_with = "versions")]
    version: Option<String>,
}

/// `GET /api/v1/pins`: what differs in each scenario. Filter: `scenario`, with several values.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), SCENARIOS)?;
    let names = query.list("scenario")?;
    let snapshot = shared.reader.snapshot();
    for name in &names {
        find(&snapshot, name)?;
    }
    let names: BTreeSet<String> = names.into_iter().map(str::to_owned).collect();
    let state = Arc::clone(&shared);
    let held = bytes.clone();
    let made = async move { listed(&state, &names, &held) };
    rendered(&shared, &bytes, made).await?
}

/// What differs in these scenarios, or in all if none is named.
fn listed(
    shared: &ServerState,
    names: &BTreeSet<String>,
    bytes: &ConnectionBytes,
) -> Result<Response, Problem> {
    let reports = shared.engine.pins();
    let wanted =
        |report: &&Arc<PinReport>| names.is_empty() || names.contains(report.scenario.as_str());
    let mut room = SHOWN_DIFFERENCES_MAX;
    let pins = reports
        .iter()
        .filter(wanted)
        .map(|report| written(report, &mut room));
    let document = PinsList {
        pins: pins.collect(),
    };
    shared_json::reserved(&document, 0, bytes)
}

/// `POST /api/v1/pins/{name}/accept`: accepts the named versions. 409 if one of them is not what
/// the scenario offers by now; none is accepted then.
pub(in crate::server) async fn accept(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    Path(name): Path<String>,
    _: NoQuery,
    ApiJson(body): ApiJson<AcceptBody>,
) -> Result<Response, Problem> {
    let name: ScenarioName = find(&shared.reader.snapshot(), &name)?.name.clone();
    let shown = body.into_pins()?;
    let state = Arc::clone(&shared);
    let held = bytes.clone();
    // The acceptance has its turn too, so that a request that is refused a turn changed no pin.
    let made = async move { accepted(&state, name, &shown, &held).await };
    rendered(&shared, &bytes, made).await?
}

/// Accepts what was shown, and answers with what still differs.
async fn accepted(
    shared: &ServerState,
    name: ScenarioName,
    shown: &[AcceptedPin],
    bytes: &ConnectionBytes,
) -> Result<Response, Problem> {
    let report = shared.engine.accept_pins(name, shown).await?;
    let mut room = SHOWN_DIFFERENCES_MAX;
    shared_json::reserved(&written(&report, &mut room), 0, bytes)
}

impl AcceptBody {
    fn into_pins(self) -> Result<Vec<AcceptedPin>, Problem> {
        let version = |text: Option<String>| {
            let parsed = text
                .map(|text| text.parse::<DefinitionVersion>())
                .transpose();
            parsed.map_err(|_| {
                let detail =
                    "a `version` is not one: give it whole, as `GET /api/v1/pins` shows it";
                Problem::bad_request(detail)
            })
        };
        let mut pins = Vec::new();
        for tool in self.tools {
            pins.push(AcceptedPin {
                subject: PinSubject::Tool(tool.name.into()),
                version: version(tool.version)?,
            });
        }
        if let Some(shown) = self.instructions {
            pins.push(AcceptedPin {
                subject: PinSubject::Instructions,
                version: version(shown.version)?,
            });
        }
        if pins.is_empty() {
            let detail = "the body has no definition to accept: give `tools` or `instructions`";
            return Err(Problem::bad_request(detail));
        }
        Ok(pins)
    }
}

/// The body that accepts these differences in the versions that they show.
pub(in crate::server) fn accepting(differences: &[PinDifference]) -> String {
    let shown = |one: &PinDifference| one.version().map(|version| version.to_string());
    let mut tools = Vec::new();
    let mut body = serde_json::Map::new();
    for one in differences {
        let version = shown(one);
        match one.subject.tool() {
            Some(name) => tools.push(json!({"name": &**name, "version": version})),
            None => _ = body.insert("instructions".to_owned(), json!({ "version": version })),
        }
    }
    body.insert("tools".to_owned(), tools.into());
    serde_json::Value::from(body).to_string()
}

/// `room` is how many differences are still shown with their parts.
fn written<'a>(report: &'a PinReport, room: &mut usize) -> ScenarioPins<'a> {
    let PinVerdict { differences, .. } = &report.verdict;
    ScenarioPins {
        scenario: report.scenario.as_str(),
        mode: report.mode.as_str(),
        accepted_tools: report.baseline.accepted_tools(),
        differences: differences
            .iter()
            .map(|one| difference(one, report.mode, room))
            .collect(),
    }
}

fn difference(one: &PinDifference, mode: PinMode, room: &mut usize) -> DifferenceJson {
    let found = (*room > 0).then(|| one.difference()).flatten();
    *room -= usize::from(found.is_some());
    let DefinitionDifference { parts, more } = found.unwrap_or_default();
    let version = |version: DefinitionVersion| version.to_string();
    DifferenceJson {
        tool: one.subject.tool().map(ToString::to_string),
        change: match one.change {
            PinChange::Changed => "changed",
            PinChange::New => "new",
            PinChange::Removed => "removed",
        },
        held: mode == PinMode::Hold && one.is_held(),
        changes_often: one.is_frequent,
        since: Time(one.since),
        accepted_version: one.accepted.map(version),
        version: one.version().map(version),
        parts: parts.into_iter().map(part).collect(),
        more,
    }
}

fn part(part: ChangedPart) -> PartJson {
    PartJson {
        pointer: part.pointer,
        before: part.before,
        after: part.after,
    }
}
