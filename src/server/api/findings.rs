//! Every open finding.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::{Snapshot, ViewQuery};
use crate::formats;
use crate::model::{Finding, FindingCode, ScenarioName, Severity};
use crate::server::api::wire;
use crate::server::http::error::Problem;
use crate::server::http::params::{Takes, grammar};
use crate::server::http::query::{Param, Query, bad_value, many, once};
use crate::server::{App, Shared};
use crate::views::Coding;

/// `GET /api/v1/findings`: those of sources, manifests and the store, of the merge, what the authors of scenarios got wrong, and of
/// the plain list in each format for LLMs (what its limit left out, what it could not say). Filters: `severity`, `code` (both with several values) and `scenario`.
pub(in crate::server) async fn all(State(shared): State<App>, RawQuery(raw): RawQuery) -> Result<Response, Problem> {
    let query = Query::read(raw.as_deref(), FILTERS)?;
    let severities = read_all(&query, "severity", &Severity::ALL, Severity::as_str)?;
    let codes = read_all(&query, "code", FindingCode::ALL, FindingCode::as_str)?;
    let scenario = query.scenario("scenario")?;
    let wanted = Wanted { severities, codes, scenario };
    let findings = open(&shared, &shared.reader.snapshot(), &wanted).await;
    wire::json(&Findings { findings: findings.iter().map(wire::finding).collect() })
}

/// What may be asked with.
pub(in crate::server) const FILTERS: &[Param] = &[
    many("severity")
        .takes(Takes::Word(|| Severity::ALL.map(Severity::as_str).to_vec()))
        .about("Only findings that matter so much.", "error"),
    many("code")
        .takes(Takes::Word(|| FindingCode::ALL.iter().map(|code| code.as_str()).collect()))
        .about("Only findings of these kinds.", "name-collision"),
    once("scenario").takes(Takes::Matching(grammar::SCENARIO)).about("Only findings about this scenario.", "files"),
];

/// Every open finding that was asked for.
#[derive(Serialize, JsonSchema)]
pub(in crate::server) struct Findings<'a> {
    findings: Vec<wire::FindingJson<'a>>,
}

/// Every finding there is, in order, each once.
pub(in crate::server) async fn all_open(shared: &Shared, snapshot: &Arc<Snapshot>) -> Vec<Finding> {
    open(shared, snapshot, &Wanted { severities: Vec::new(), codes: Vec::new(), scenario: None }).await
}

/// What was asked for; an empty list asks for all.
#[derive(Clone)]
struct Wanted {
    severities: Vec<Severity>,
    codes: Vec<FindingCode>,
    scenario: Option<ScenarioName>,
}

impl Wanted {
    fn code(&self, code: FindingCode) -> bool {
        (self.severities.is_empty() || self.severities.contains(&code.severity()))
            && (self.codes.is_empty() || self.codes.contains(&code))
    }

    fn finding(&self, finding: &Finding) -> bool {
        self.code(finding.code) && (self.scenario.is_none() || finding.scenario == self.scenario)
    }
}

/// Every finding that is wanted, in order, each once. A crowd of colliding or switched off tools has very many, so what is not wanted is
/// left out before it is made or copied.
async fn open(shared: &Shared, snapshot: &Arc<Snapshot>, wanted: &Wanted) -> Vec<Finding> {
    let mut findings = snapshot.catalog.findings_where(wanted.scenario.as_ref(), |code| wanted.code(code));
    findings.extend(snapshot.findings.iter().filter(|finding| wanted.finding(finding)).cloned());
    findings.extend(linted(shared, snapshot, wanted).await);
    findings.extend(shared.calls.findings(&snapshot.catalog).into_iter().filter(|finding| wanted.finding(finding)));
    for format in formats::FORMATS.iter().copied().filter(|format| format.for_llm()) {
        let prepared = shared.views.prepare(snapshot, &ViewQuery::default(), format, Coding::Identity).await;
        findings.extend(prepared.findings.iter().filter(|finding| wanted.finding(finding)).cloned());
    }
    findings.sort();
    findings.dedup();
    findings
}

/// What the authors of published scenarios got wrong, judged beside the async threads.
async fn linted(shared: &Shared, snapshot: &Arc<Snapshot>, wanted: &Wanted) -> Vec<Finding> {
    let all = snapshot.catalog.entries().filter(|entry| entry.is_published());
    let entries = all.filter(|entry| wanted.scenario.as_ref().is_none_or(|name| *name == entry.name));
    let entries: Arc<[_]> = entries.cloned().collect();
    let wanted = wanted.clone();
    let judge = move || {
        let findings = entries.iter().flat_map(|entry| entry.lint());
        findings.filter(|finding| wanted.finding(finding)).cloned().collect()
    };
    shared.tasks.off_thread(judge).await
}

/// The values of a parameter, each one of `known`.
pub(in crate::server) fn read_all<T: Copy>(
    query: &Query,
    name: &str,
    known: &[T],
    text: fn(T) -> &'static str,
) -> Result<Vec<T>, Problem> {
    let read = |value: &str| {
        let found = known.iter().copied().find(|candidate| text(*candidate) == value);
        found.ok_or_else(|| {
            let known: Vec<&str> = known.iter().map(|candidate| text(*candidate)).collect();
            bad_value(name, value, &known.join(", ")).with("known", known)
        })
    };
    query.all(name)?.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_take_known_words_only() {
        let read = |raw| {
            let query = Query::read(Some(raw), &[many("severity")]).unwrap();
            read_all(&query, "severity", &Severity::ALL, Severity::as_str)
        };
        assert_eq!(read("severity=error,info").unwrap(), [Severity::Error, Severity::Info]);
        assert_eq!(read("").unwrap(), []);
        assert_eq!(read("severity=fatal").unwrap_err().into_answer().status(), 400);
    }
}
