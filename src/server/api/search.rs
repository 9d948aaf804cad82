//! `GET /api/v1/tools/search`: the tools that match a text best, and the reasons.

use std::collections::BTreeSet;

use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use callsheet_provide::conditional;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG};
use http::{HeaderMap, StatusCode, Uri};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use crate::catalog::{Field, Hit, Snapshot, View, ViewQuery};
use crate::formats::{Format, signature};
use crate::model::{ScenarioName, ToolId};
use crate::runtime::AnswerBudget;
use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::http::error::Problem;
use crate::server::http::held::{ConnectionBytes, with_reservation};
use crate::server::http::next_step::NextStep;
use crate::server::http::params;
use crate::server::http::params::ParamType;
use crate::server::http::query::{Param, QueryParams, bad_value, many, once, question};
use crate::server::rendered::rendered;

/// The number of results if `limit` is left out.
const DEFAULT_LIMIT: usize = 20;
/// Largest number of results.
const MAX_LIMIT: u32 = 1_000;
/// Largest number of tools in `recent`.
const MOST_RECENT: usize = 100;

/// The parameters of a search.
pub(in crate::server) const PARAMS: &[Param] = &[
    once("q").about(
        "What the tool is to do, or in `mode=palette` what was typed; only there it may be empty. What follows the first 4,000 characters \
         does not count.",
        "read a file",
    ),
    once("mode")
        .takes(ParamType::Word(|| vec!["rank", "palette"]))
        .about("`rank` goes by meaning, `palette` by what a person types of a name.", "palette"),
    once("limit").takes(ParamType::Count(1, MAX_LIMIT)).about("Maximum number of results; 20 by default.", "5"),
    many("recent")
        .takes(ParamType::Matching(params::grammar::TOOL))
        .about("Tools used before, the latest first. With `mode=palette` only, 100 at most.", ""),
    once("detail")
        .takes(ParamType::Word(|| vec!["full", "signature"]))
        .about("`signature` answers a line for each tool: `signatures` in place of `results`. Not with `format`.", "full"),
    params::FORMAT,
    params::PROFILE,
    params::PERMISSION,
    params::CHAT,
    params::SCENARIOS,
    params::CATEGORIES,
    params::TAGS,
    params::INCLUDE_DISABLED,
];

/// The parsed query.
#[derive(Clone)]
struct SearchRequest {
    text: String,
    palette: bool,
    limit: usize,
    recent: Vec<ToolId>,
    detail: SearchDetail,
    view: ViewQuery,
}

/// What is answered of each tool.
#[derive(Clone, Copy)]
enum SearchDetail {
    /// Its signature.
    Signature,
    /// The members for people.
    People,
    /// The same, with the tool in this format.
    Format(&'static dyn Format),
}

impl SearchDetail {
    fn parse(query: &QueryParams) -> Result<Self, Problem> {
        let format = query.optional("format");
        match query.optional("detail") {
            None | Some("full") => {
                format.map_or(Ok(Self::People), |_| query.format().map(Self::Format))
            }
            Some("signature") if format.is_none() => Ok(Self::Signature),
            Some("signature") => Err(Problem::bad_request(
                "`detail=signature` goes without `format`: a signature is the same for all",
            )),
            Some(other) => Err(bad_value("detail", other, "`full` or `signature`")),
        }
    }

    /// The format, if there is one.
    fn format(self) -> Option<&'static dyn Format> {
        match self {
            Self::Format(format) => Some(format),
            Self::Signature | Self::People => None,
        }
    }
}

/// The answer to a search.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "SearchAnswer")]
pub(in crate::server) enum SearchAnswer<'a> {
    /// Of each tool its members.
    Results(SearchResults<'a>),
    /// With `detail=signature`: a line for each tool.
    Signatures(SearchSignatures<'a>),
}

/// The signatures of the tools that fit best, the best first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchSignatures")]
pub(in crate::server) struct SearchSignatures<'a> {
    /// The query.
    query: &'a str,
    /// `rank` or `palette`.
    mode: &'static str,
    /// The catalog's revision in the client's scope.
    revision: String,
    /// `name(parameter: type, optional?: type) - What it does.`
    signatures: Vec<String>,
}

/// The tools that fit best, the best first.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchResults")]
pub(in crate::server) struct SearchResults<'a> {
    /// The query.
    query: &'a str,
    /// `rank` or `palette`.
    mode: &'static str,
    /// The catalog's revision in the client's scope.
    revision: String,
    results: Vec<SearchResult<'a>>,
}

/// A tool, and how well it fits.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SearchResult")]
struct SearchResult<'a> {
    /// The published name.
    name: &'a str,
    /// `scenario/tool`.
    id: String,
    scenario: &'a str,
    /// The name its scenario gave it.
    tool: &'a str,
    category: Option<&'a str>,
    description: &'a str,
    enabled: bool,
    requires_approval: bool,
    /// Comparable within one answer only.
    score: f64,
    /// Where the words were found, the most important first.
    fields: Vec<&'static str>,
    /// How it matched, in `mode=palette`.
    #[schemars(schema_with = "tiers")]
    tier: Option<&'static str>,
    /// With `format`: the tool in that format, or `null` when the format must leave it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    definition: Option<Box<RawValue>>,
}

fn tiers(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"enum": ["prefix", "word", "fuzzy", "recent", null]})
}

/// `GET /api/v1/tools/search`: parameters as in [`PARAMS`].
pub(in crate::server) async fn search(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let request = SearchRequest::parse(uri.query())?;
    let snapshot = shared.reader.snapshot();
    lookup::check_profile(&shared, &snapshot.catalog, &request.view)?;
    // If there is no index yet, it is built now, and the definitions of many tools are large: a few
    // answers are written at once.
    let reserved_from = bytes.clone();
    let made = async move { request.answer(&snapshot, reserved_from.answers()) };
    let answer = rendered(&shared, &bytes, made).await??;
    let etag = format!("\"{:032x}\"", xxh3_128(&answer));
    if conditional::is_known(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response());
    }
    let head = [
        (ETAG, etag.as_str()),
        (CONTENT_TYPE, "application/json"),
        (CACHE_CONTROL, "private, no-cache"),
    ];
    Ok((head.map(|(name, value)| (name, value.to_owned())), answer).into_response())
}

impl SearchRequest {
    fn parse(raw: Option<&str>) -> Result<Self, Problem> {
        let query = QueryParams::parse(raw, PARAMS)?;
        let text = question(query.optional("q").unwrap_or_default());
        let palette = match query.optional("mode") {
            None | Some("rank") => false,
            Some("palette") => true,
            Some(other) => return Err(bad_value("mode", other, "`rank` or `palette`")),
        };
        if text.trim().is_empty() && !palette {
            let detail = "`q` is missing: say what the tool is to do (a tool called `search` is requested as `scenario/search`)";
            return Err(Problem::bad_request(detail));
        }
        let recent = recent(&query, palette)?;
        let detail = SearchDetail::parse(&query)?;
        let texts = |name: &str| -> Result<BTreeSet<String>, Problem> {
            Ok(query.list(name)?.into_iter().map(str::to_owned).collect())
        };
        let scenarios = query.list("scenario")?.into_iter();
        let scenarios = scenarios.map(|name| {
            name.parse::<ScenarioName>()
                .map_err(|_| bad_value("scenario", name, "a scenario's name"))
        });
        let view = ViewQuery {
            scenarios: scenarios.collect::<Result<_, _>>()?,
            categories: texts("category")?,
            tags: texts("tag")?,
            include_disabled: query.flag("include_disabled")?,
            ..query.scope()?
        };
        if view.include_disabled && detail.format().is_some_and(Format::for_llm) {
            let disabled = NextStep::parameter("include_disabled", "true");
            let native = NextStep::parameter("format", "native");
            let detail = format!("{disabled} goes with {native} only: LLMs never get such tools");
            return Err(Problem::bad_request(detail)
                .with_next(disabled)
                .with_next(native));
        }
        Ok(Self {
            text: text.to_owned(),
            palette,
            limit: limit(&query)?,
            recent,
            detail,
            view,
        })
    }

    /// The JSON text of the answer. Its bytes are reserved before it is written.
    fn answer(&self, snapshot: &Snapshot, budget: &AnswerBudget) -> Result<Bytes, Problem> {
        let view = View::select(&snapshot.catalog, &self.view);
        let hits = if self.palette {
            view.palette(&self.text, &self.recent, self.limit)
        } else {
            view.rank(&self.text, self.limit)
        };
        let expected = budget.reserve_expected(self.expected_bytes(&hits))?;
        let query = &self.text;
        let mode = if self.palette { "palette" } else { "rank" };
        let revision = snapshot.catalog.revision_for(&self.view).to_string();
        let answer = match self.detail {
            SearchDetail::Signature => SearchAnswer::Signatures(SearchSignatures {
                query,
                mode,
                revision,
                signatures: hits
                    .iter()
                    .map(|hit| signature(hit.tool.name.as_str(), &hit.tool))
                    .collect(),
            }),
            SearchDetail::People | SearchDetail::Format(_) => {
                SearchAnswer::Results(SearchResults {
                    query,
                    mode,
                    revision,
                    results: hits.iter().map(|hit| self.result(hit)).collect(),
                })
            }
        };
        let answer = serde_json::to_vec(&answer).map_err(|error| Problem::internal(&error))?;
        let reserved = expected.made(answer.len())?;
        Ok(with_reservation(answer.into(), reserved))
    }

    /// About the bytes of an answer with these tools.
    fn expected_bytes(&self, hits: &[Hit]) -> usize {
        let bytes = hits.iter().map(|hit| match self.detail {
            SearchDetail::People => hit.tool.tool.description.len(),
            SearchDetail::Format(_) | SearchDetail::Signature => hit.tool.tool.bytes(),
        });
        bytes.sum()
    }

    fn result<'a>(&self, hit: &'a Hit) -> SearchResult<'a> {
        let tool = &*hit.tool;
        let definition = self.detail.format().map(|format| {
            let json = format.encode(tool).json;
            json.and_then(|json| serde_json::from_slice(&json).ok())
                .unwrap_or_else(|| RawValue::NULL.to_owned())
        });
        SearchResult {
            name: tool.name.as_str(),
            id: tool.id.to_string(),
            scenario: tool.id.scenario.as_str(),
            tool: &tool.id.tool,
            category: tool.tool.category.as_deref(),
            description: &tool.tool.description,
            enabled: tool.effective.enabled,
            requires_approval: tool.effective.requires_approval,
            // Four decimals: more would only show details of the computation.
            score: (f64::from(hit.score) * 1e4).round() / 1e4,
            fields: hit.fields.iter().map(Field::as_str).collect(),
            tier: hit.tier.map(crate::catalog::Tier::as_str),
            definition,
        }
    }
}

/// A number from 1 to [`MAX_LIMIT`].
fn limit(query: &QueryParams) -> Result<usize, Problem> {
    let Some(text) = query.optional("limit") else {
        return Ok(DEFAULT_LIMIT);
    };
    let limit = text
        .parse::<u32>()
        .ok()
        .filter(|limit| (1..=MAX_LIMIT).contains(limit));
    let limit = limit.and_then(|limit| limit.try_into().ok());
    limit.ok_or_else(|| {
        bad_value(
            "limit",
            text,
            &format!("a whole number from 1 to {MAX_LIMIT}"),
        )
    })
}

/// The tools that were used last, the latest first.
fn recent(query: &QueryParams, palette: bool) -> Result<Vec<ToolId>, Problem> {
    let given = query.list("recent")?;
    if !given.is_empty() && !palette {
        return Err(Problem::bad_request(
            "`recent` goes with `mode=palette` only",
        ));
    }
    if given.len() > MOST_RECENT {
        return Err(Problem::bad_request(format!(
            "`recent` names {} tools; at most {MOST_RECENT}",
            given.len()
        )));
    }
    let read = |id: &str| {
        id.parse::<ToolId>()
            .map_err(|_| bad_value("recent", id, "tools as `scenario/tool`, the latest first"))
    };
    given.into_iter().map(read).collect()
}
