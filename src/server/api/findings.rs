//! `/api/v1/findings`: lists the open findings.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use schemars::JsonSchema;
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128;

use crate::catalog::{FindingSink, Snapshot, ViewQuery};
use crate::formats;
use crate::model::{Finding, FindingCode, ScenarioName, Severity};
use crate::server::api::shared_json;
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::params::{ParamType, grammar};
use crate::server::http::query::{Param, QueryParams, bad_value, many, once};
use crate::server::http::response_cache::CachedResponse;
use crate::server::rendered::rendered;
use crate::server::{ServerState, SharedState};
use crate::views::{Coding, Prepared};

/// So many findings of one kind are listed.
const OF_KIND_MAX: usize = 500;
/// So many, where only those about one scenario are.
const OF_KIND_IN_SCENARIO_MAX: usize = 5_000;

/// `GET /api/v1/findings`: the findings of sources, manifests, the store and the merge, of the
/// checks for authors of scenarios, of refused profiles, and of
/// the plain list in each format for LLMs (tools that a
/// limit left out, or that the format cannot express). Filters: `severity`, `code` (both with
/// several values) and `scenario`; with `formats=used` none about a format in which no client
/// has requested a list.
pub(in crate::server) async fn list(
    State(shared): State<SharedState>,
    Extension(bytes): Extension<ConnectionBytes>,
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
    let unused = if used_only {
        UnusedFormats::Counted
    } else {
        UnusedFormats::Included
    };
    let wanted = FindingFilter {
        severities,
        codes,
        scenario,
        unused,
    };
    let state = Arc::clone(&shared);
    let held = bytes.clone();
    let made = async move {
        let sources = FindingSources::gather(&state, &state.reader.snapshot(), wanted).await;
        let ready = cached_list(&state, &sources.snapshot, &sources.cache_key()?, || {
            sources.write()
        })?;
        Ok(ready
            .answer_held(&HeaderMap::new(), held.answers())?
            .map(Body::new))
    };
    rendered(&shared, &bytes, made).await?
}

/// A list of findings that was made of the same before, or a new one. Called only while the request
/// has its turn, so that few are made at once.
pub(in crate::server) fn cached_list(
    shared: &ServerState,
    snapshot: &Arc<Snapshot>,
    key: &str,
    write: impl FnOnce() -> Result<Vec<u8>, Problem>,
) -> Result<Arc<CachedResponse>, Problem> {
    let headers = shared_json::WRITTEN_HEADERS.into_iter().collect();
    shared
        .finding_lists
        .find_or_write(snapshot, key, headers, write)
}

/// A JSON list of findings.
pub(in crate::server) fn written_list(findings: &[Finding]) -> Result<Vec<u8>, Problem> {
    let listed: Vec<_> = findings.iter().map(shared_json::finding).collect();
    shared_json::bytes(&listed, 0)
}

/// A text that differs where the bytes differ.
pub(in crate::server) fn digest_text(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
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
    formats::FORMATS
        .iter()
        .position(|format| format.id() == base)
        .map_or(0, |at| 1 << at)
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
#[derive(Debug, Clone, Default)]
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
        self.matches_code(finding.code)
            && (self.scenario.is_none() || finding.scenario == self.scenario)
    }
}

/// Findings that match a filter, bounded: so many of each kind, then one that counts the rest. A
/// kind is a code in one format, or of one scenario.
struct BoundedFindings<'a> {
    wanted: &'a FindingFilter,
    /// The format that they are about, if it is one.
    format: Option<&'static str>,
    counts: BTreeMap<(FindingCode, Option<ScenarioName>), usize>,
    findings: Vec<Finding>,
}

impl<'a> BoundedFindings<'a> {
    fn new(wanted: &'a FindingFilter, format: Option<&'static str>) -> Self {
        Self {
            wanted,
            format,
            counts: BTreeMap::new(),
            findings: Vec::new(),
        }
    }

    /// How many of one kind are listed.
    fn most(&self) -> usize {
        match self.wanted.scenario {
            Some(_) => OF_KIND_IN_SCENARIO_MAX,
            None => OF_KIND_MAX,
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        let most = self.most();
        for ((code, scenario), count) in self.counts {
            let Some(more) = count.checked_sub(most).filter(|more| *more > 0) else {
                continue;
            };
            let hint = match (&self.wanted.scenario, &scenario) {
                (Some(_), _) => {
                    "`callsheet explain TOOL` says what was decided about one".to_owned()
                }
                (None, Some(name)) => {
                    format!("`callsheet findings --scenario {name}` lists more of them")
                }
                (None, None) => {
                    "`callsheet findings --scenario NAME` lists those of one scenario".to_owned()
                }
            };
            // Findings of several formats that say the same are one.
            let of_format = self
                .format
                .map_or_else(String::new, |id| format!(" for `{id}`"));
            let message = format!("{more} more of this kind are not listed{of_format}");
            let mut finding = Finding::new(code, message).hint(hint);
            finding.scenario = scenario.or_else(|| self.wanted.scenario.clone());
            self.findings.push(finding);
        }
        if let Some(format) = self.format {
            for finding in &mut self.findings {
                finding.format = Some(format);
            }
        }
        self.findings
    }
}

impl FindingSink for BoundedFindings<'_> {
    fn wants(&self, code: FindingCode) -> bool {
        self.wanted.matches_code(code)
    }

    fn take(
        &mut self,
        code: FindingCode,
        scenario: Option<&ScenarioName>,
        finding: impl FnOnce() -> Finding,
    ) {
        if !self.wants(code) {
            return;
        }
        let most = self.most();
        let scenario = scenario.filter(|_| self.format.is_none()).cloned();
        let count = self.counts.entry((code, scenario)).or_default();
        *count += 1;
        if *count <= most {
            self.findings.push(finding());
        }
    }
}

/// What the findings that match are made of. Gathering it waits for other work and copies little;
/// the rest neither waits nor is needed twice for the same [key](Self::cache_key).
pub(in crate::server) struct FindingSources {
    snapshot: Arc<Snapshot>,
    wanted: FindingFilter,
    /// Those that change without a new snapshot: about calls, schemas and refused profiles.
    live: Vec<Finding>,
    formats: Vec<FormatSource>,
}

/// The plain list in a format for LLMs.
struct FormatSource {
    id: &'static str,
    /// Whether findings about the format are listed, and not only counted.
    is_listed: bool,
    prepared: Arc<Prepared>,
}

/// What an equal list of findings of the same snapshot is recognised by.
#[derive(Serialize)]
struct FindingKey<'a> {
    severities: Vec<&'static str>,
    codes: Vec<&'static str>,
    scenario: Option<&'a str>,
    formats: Vec<(&'static str, bool)>,
    live: Vec<shared_json::FindingJson<'a>>,
}

impl FindingSources {
    /// Gathers them for a filter.
    pub(in crate::server) async fn gather(
        shared: &ServerState,
        snapshot: &Arc<Snapshot>,
        wanted: FindingFilter,
    ) -> Self {
        let mut formats = Vec::new();
        for format in formats::FORMATS
            .iter()
            .copied()
            .filter(|format| format.for_llm())
        {
            let is_listed = wanted.unused == UnusedFormats::Included
                || shared.used_formats.contains(format.id());
            if !is_listed && wanted.unused == UnusedFormats::Skipped {
                continue;
            }
            let query = ViewQuery {
                of_operator: true,
                ..ViewQuery::default()
            };
            let prepared = shared
                .views
                .prepare(snapshot, &query, format, Coding::Identity)
                .await;
            formats.push(FormatSource {
                id: format.id(),
                is_listed,
                prepared,
            });
        }
        let mut live = Vec::new();
        if wanted.matches_code(FindingCode::SchemaUnchecked) {
            live = shared
                .calls
                .unusable_schemas(&snapshot.catalog, wanted.scenario.as_ref())
                .await;
        }
        live.extend(shared.calls.findings(&snapshot.catalog));
        live.extend(shared.refused_profiles.finding(&snapshot.catalog));
        live.retain(|finding| wanted.matches(finding));
        Self {
            snapshot: Arc::clone(snapshot),
            wanted,
            live,
            formats,
        }
    }

    /// Collects the findings. Takes long for many tools, so it is called only on threads that serve
    /// no requests. Many colliding or disabled tools have very many findings, so those that do not
    /// match are dropped before they are made or copied.
    pub(in crate::server) fn collect(&self) -> OpenFindings {
        let Self {
            snapshot, wanted, ..
        } = self;
        let mut of_merge = BoundedFindings::new(wanted, None);
        snapshot
            .catalog
            .give_findings(wanted.scenario.as_ref(), &mut of_merge);
        let mut general = of_merge.finish();
        general.extend(
            snapshot
                .findings
                .iter()
                .filter(|finding| wanted.matches(finding))
                .cloned(),
        );
        let published = snapshot
            .catalog
            .entries()
            .filter(|entry| entry.is_published());
        let entries = published.filter(|entry| {
            wanted
                .scenario
                .as_ref()
                .is_none_or(|name| *name == entry.name)
        });
        let lints = entries.flat_map(|entry| entry.lint());
        general.extend(lints.filter(|finding| wanted.matches(finding)).cloned());
        general.extend(self.live.iter().cloned());
        general.sort();
        general.dedup();
        let mut open = OpenFindings {
            general,
            ..OpenFindings::default()
        };
        for format in &self.formats {
            let of_format = format
                .prepared
                .findings
                .iter()
                .filter(|finding| wanted.matches(finding));
            if !format.is_listed {
                open.hidden += of_format.count();
                continue;
            }
            let mut listed = BoundedFindings::new(wanted, Some(format.id));
            for finding in of_format {
                listed.take(finding.code, finding.scenario.as_ref(), || finding.clone());
            }
            open.of_formats.extend(listed.finish());
        }
        open
    }

    /// The list as it is answered.
    fn write(&self) -> Result<Vec<u8>, Problem> {
        let found = self.collect();
        let hidden = found.hidden;
        let findings = found.all();
        let findings = findings.iter().map(shared_json::finding).collect();
        shared_json::bytes(&Findings { findings, hidden }, 0)
    }

    /// Differs where lists of the same snapshot may differ.
    fn cache_key(&self) -> Result<String, Problem> {
        let key = FindingKey {
            severities: self
                .wanted
                .severities
                .iter()
                .map(|severity| severity.as_str())
                .collect(),
            codes: self.wanted.codes.iter().map(|code| code.as_str()).collect(),
            scenario: self.wanted.scenario.as_ref().map(ScenarioName::as_str),
            formats: self
                .formats
                .iter()
                .map(|format| (format.id, format.is_listed))
                .collect(),
            live: self.live.iter().map(shared_json::finding).collect(),
        };
        Ok(digest_text(&shared_json::bytes(&key, 0)?))
    }
}

/// The findings that match the filters. Called only by pages while they have their turn to be
/// written.
pub(in crate::server) async fn open_findings(
    shared: &ServerState,
    snapshot: &Arc<Snapshot>,
    wanted: FindingFilter,
) -> OpenFindings {
    FindingSources::gather(shared, snapshot, wanted)
        .await
        .collect()
}

/// The values of a parameter, each of them one of `known`.
pub(in crate::server) fn parse_values<T: Copy>(
    query: &QueryParams,
    name: &str,
    known: &[T],
    text: fn(T) -> &'static str,
) -> Result<Vec<T>, Problem> {
    let read = |value: &str| {
        let found = known
            .iter()
            .copied()
            .find(|candidate| text(*candidate) == value);
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
        assert_eq!(
            read("severity=error,info").unwrap(),
            [Severity::Error, Severity::Info]
        );
        assert_eq!(read("").unwrap(), []);
        assert_eq!(
            read("severity=fatal")
                .unwrap_err()
                .into_full_response()
                .status(),
            400
        );
    }
}
