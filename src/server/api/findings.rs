//! `/api/v1/findings`: lists the open findings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::extract::{RawQuery, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{Snapshot, ViewQuery};
use crate::formats;
use crate::model::{Finding, FindingCode, ScenarioName, Severity};
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::params::{ParamType, grammar};
use crate::server::http::query::{Param, QueryParams, bad_value, many, once};
use crate::server::{ServerState, SharedState};
use crate::views::Coding;

/// `GET /api/v1/findings`: the findings of sources, manifests, the store and the merge, of the
/// checks for authors of scenarios, of refused profiles, and of
/// the plain list in each format for LLMs (tools that a
/// limit left out, or that the format cannot express). Filters: `severity`, `code` (both with
/// several values) and `scenario`; with `formats=used` none about a format in which no client
/// has requested a list.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), FILTERS)?;
    let severities = parse_values(&query, "severity", &Severity::ALL, Severity::as_str)?;
    let codes = parse_values(&query, "code", FindingCode::ALL, FindingCode::as_str)?;
    let scenario = query.scenario("scenario")?;
    let used_only = match query.optional("formats") {
        None | Some("all") => false,
        Some("used") => true,
        Some(other) => return Err(bad_value("formats", other, "used, all")),
    };
    let unused = if used_only { UnusedFormats::Counted } else { UnusedFormats::Included };
    let wanted = FindingFilter { severities, codes, scenario, unused };
    let found = open_findings(&shared, &shared.reader.snapshot(), &wanted).await;
    let hidden = found.hidden;
    let findings = found.all();
    shared_json::json(&Findings { findings: findings.iter().map(shared_json::finding).collect(), hidden })
}

/// The filters of the list of findings.
pub(in crate::server) const FILTERS: &[Param] = &[
    many("severity")
        .takes(ParamType::Word(|| Severity::ALL.map(Severity::as_str).to_vec()))
        .about("Only findings that matter so much.", "error"),
    many("code")
        .takes(ParamType::Word(|| FindingCode::ALL.iter().map(|code| code.as_str()).collect()))
        .about("Only findings of these kinds.", "name-collision"),
    once("scenario").takes(ParamType::Matching(grammar::SCENARIO)).about("Only findings about this scenario.", "files"),
    once("formats").takes(ParamType::Word(|| vec!["used", "all"])).about(
        "With `used`, findings about formats in which no client has requested a list since the start are left out.",
        "used",
    ),
];

/// Every open finding that matches.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Findings<'a> {
    findings: Vec<shared_json::FindingJson<'a>>,
    /// How many `formats=used` left out; absent when none.
    #[serde(skip_serializing_if = "is_zero")]
    hidden: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The formats in which clients have requested a list since the start.
#[derive(Debug, Default)]
pub(in crate::server) struct UsedFormats(AtomicU32);

impl UsedFormats {
    /// Adds one, by its id or that of a variant of it.
    pub(in crate::server) fn add(&self, id: &str) {
        let bit = bit(id);
        // Nearly always it is there, and a write would be shared by all threads.
        if self.0.load(Ordering::Relaxed) & bit != bit {
            self.0.fetch_or(bit, Ordering::Relaxed);
        }
    }

    fn contains(&self, id: &str) -> bool {
        self.0.load(Ordering::Relaxed) & bit(id) != 0
    }
}

/// The bit of a format by its place in the list of formats; none for one that is not there.
fn bit(id: &str) -> u32 {
    let base = id.split('+').next().unwrap_or_default();
    formats::FORMATS.iter().position(|format| format.id() == base).map_or(0, |at| 1 << at)
}

/// The findings that match, by what they are about.
#[derive(Default)]
pub(in crate::server) struct OpenFindings {
    /// Those of every format, in order, each once.
    pub(in crate::server) general: Vec<Finding>,
    /// Those of the plain list in each format for LLMs, in the order of the formats.
    pub(in crate::server) of_formats: Vec<Finding>,
    /// How many about unused formats were left out.
    pub(in crate::server) hidden: usize,
}

impl OpenFindings {
    /// All of them, in order, each once: what several formats have in common is one finding, which
    /// names none of them.
    fn all(self) -> Vec<Finding> {
        let mut all = self.general;
        all.extend(self.of_formats);
        all.sort();
        all.dedup_by(|next, kept| {
            let format = kept.format.take();
            let next_format = next.format.take();
            let is_same = next == kept;
            if !is_same || format == next_format {
                kept.format = format;
            }
            next.format = next_format;
            is_same
        });
        all
    }
}

/// What becomes of findings about formats in which no client has requested a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::server) enum UnusedFormats {
    /// They are among the others.
    #[default]
    Included,
    /// They are only counted.
    Counted,
    /// They are not even made.
    Skipped,
}

/// The parsed filters; an empty list matches all.
#[derive(Clone, Default)]
pub(in crate::server) struct FindingFilter {
    pub(in crate::server) severities: Vec<Severity>,
    pub(in crate::server) codes: Vec<FindingCode>,
    pub(in crate::server) scenario: Option<ScenarioName>,
    pub(in crate::server) unused: UnusedFormats,
}

impl FindingFilter {
    fn matches_code(&self, code: FindingCode) -> bool {
        (self.severities.is_empty() || self.severities.contains(&code.severity()))
            && (self.codes.is_empty() || self.codes.contains(&code))
    }

    fn matches(&self, finding: &Finding) -> bool {
        self.matches_code(finding.code) && (self.scenario.is_none() || finding.scenario == self.scenario)
    }
}

/// The findings that match the filters. Many colliding or disabled tools have very many findings,
/// so the others are dropped before they are made or copied.
pub(in crate::server) async fn open_findings(
    shared: &ServerState,
    snapshot: &Arc<Snapshot>,
    wanted: &FindingFilter,
) -> OpenFindings {
    let mut general = snapshot.catalog.findings_where(wanted.scenario.as_ref(), |code| wanted.matches_code(code));
    general.extend(snapshot.findings.iter().filter(|finding| wanted.matches(finding)).cloned());
    general.extend(lint_findings(shared, snapshot, wanted).await);
    if wanted.matches_code(FindingCode::SchemaUnchecked) {
        let unusable = shared.calls.unusable_schemas(&snapshot.catalog, wanted.scenario.as_ref()).await;
        general.extend(unusable.into_iter().filter(|finding| wanted.matches(finding)));
    }
    general.extend(shared.calls.findings(&snapshot.catalog).into_iter().filter(|finding| wanted.matches(finding)));
    let refused = shared.refused_profiles.finding(&snapshot.catalog);
    general.extend(refused.filter(|finding| wanted.matches(finding)));
    general.sort();
    general.dedup();
    let mut open = OpenFindings { general, ..OpenFindings::default() };
    for format in formats::FORMATS.iter().copied().filter(|format| format.for_llm()) {
        let is_used = wanted.unused == UnusedFormats::Included || shared.used_formats.contains(format.id());
        if !is_used && wanted.unused == UnusedFormats::Skipped {
            continue;
        }
        let prepared = shared
            .views
            .prepare(snapshot, &ViewQuery { of_operator: true, ..ViewQuery::default() }, format, Coding::Identity)
            .await;
        let of_format = prepared.findings.iter().filter(|finding| wanted.matches(finding));
        if is_used {
            open.of_formats.extend(of_format.map(|finding| finding.clone().of_format(format.id())));
        } else {
            open.hidden += of_format.count();
        }
    }
    open
}

/// The findings of the checks for authors of published scenarios, made off the async threads.
async fn lint_findings(shared: &ServerState, snapshot: &Arc<Snapshot>, wanted: &FindingFilter) -> Vec<Finding> {
    let all = snapshot.catalog.entries().filter(|entry| entry.is_published());
    let entries = all.filter(|entry| wanted.scenario.as_ref().is_none_or(|name| *name == entry.name));
    let entries: Arc<[_]> = entries.cloned().collect();
    let wanted = wanted.clone();
    let judge = move || {
        let findings = entries.iter().flat_map(|entry| entry.lint());
        findings.filter(|finding| wanted.matches(finding)).cloned().collect()
    };
    shared.tasks.off_thread(judge).await
}

/// The values of a parameter, each of them one of `known`.
pub(in crate::server) fn parse_values<T: Copy>(
    query: &QueryParams,
    name: &str,
    known: &[T],
    text: fn(T) -> &'static str,
) -> Result<Vec<T>, Problem> {
    let read = |value: &str| {
        let found = known.iter().copied().find(|candidate| text(*candidate) == value);
        found.ok_or_else(|| {
            let known: Vec<&str> = known.iter().map(|candidate| text(*candidate)).collect();
            bad_value(name, value, &known.join(", ")).with_member("known", known)
        })
    };
    query.list(name)?.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_take_known_words_only() {
        let read = |raw| {
            let query = QueryParams::parse(Some(raw), &[many("severity")]).unwrap();
            parse_values(&query, "severity", &Severity::ALL, Severity::as_str)
        };
        assert_eq!(read("severity=error,info").unwrap(), [Severity::Error, Severity::Info]);
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read("severity=fatal").unwrap_err().into_full_response().status(), 400);
    }
}
