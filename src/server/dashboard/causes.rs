//! Findings of one code, grouped by their cause: tools of the same name by the scenarios that have
//! them, what a format changes by the format, and all others by their message. A group can be
//! opened, so that many findings of one cause take one line.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};
use xxhash_rust::xxh3::xxh3_64;

use crate::catalog::Catalog;
use crate::model::{Finding, FindingCode};
use crate::server::dashboard::finding_list::{FindingParts, item};
use crate::server::dashboard::text::{count, foreign, sentence};

/// A group of fewer findings is shown open, as single findings.
const FOLDED_FROM: usize = 3;
/// At most this many groups of one code are shown.
const CAUSES: usize = 100;
/// At most this many findings of one group are shown.
const OF_CAUSE: usize = 200;
/// At most this many names of tools are shown before a group is opened.
const NAMED: usize = 6;

/// What the findings of a group have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FindingCause<'a> {
    /// These scenarios have tools of the same name.
    Names(BTreeSet<&'a str>),
    /// The format.
    Format(&'static str),
    Message(&'a str),
}

impl<'a> FindingCause<'a> {
    fn new(finding: &'a Finding) -> Self {
        if let Some(format) = finding.format {
            return Self::Format(format);
        }
        match &finding.scenario {
            Some(own)
                if finding.code == FindingCode::NameCollision && !finding.others.is_empty() =>
            {
                let others = finding.others.iter().map(|other| other.scenario.as_str());
                Self::Names(others.chain([own.as_str()]).collect())
            }
            _ => Self::Message(&finding.message),
        }
    }

    /// The id of its box, by which the page's script keeps it open.
    fn id(&self, code: FindingCode) -> String {
        format!(
            "cause-{code}-{:016x}",
            xxh3_64(format!("{self:?}").as_bytes())
        )
    }

    fn summary(&self, findings: &[&Finding]) -> Markup {
        html! {
            @match self {
                Self::Names(scenarios) => {
                    strong { (scenarios.iter().copied().collect::<Vec<_>>().join(", ")) }
                    @let names: BTreeSet<&str> = findings.iter().filter_map(|finding| finding.tool.as_deref()).collect();
                    ": " (count(names.len(), "name")) " in common: "
                    @for (at, name) in names.iter().take(NAMED).enumerate() { @if at > 0 { ", " } code { (foreign(name, 80)) } }
                    @if names.len() > NAMED { " and " (names.len() - NAMED) " more" }
                }
                Self::Format(format) => { strong { (format) } ": " (count(findings.len(), "finding")) }
                Self::Message(message) => { (sentence(message, 300)) " " span class="quiet" { (count(findings.len(), "finding")) } }
            }
        }
    }
}

/// The findings of one code, by their causes.
pub(super) fn list(catalog: &Catalog, code: FindingCode, findings: &[&Finding]) -> Markup {
    let mut causes: BTreeMap<FindingCause<'_>, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        causes
            .entry(FindingCause::new(finding))
            .or_default()
            .push(finding);
    }
    let shown: usize = causes
        .values()
        .take(CAUSES)
        .map(|group| group.len().min(OF_CAUSE))
        .sum();
    html! {
        ul class="findings" {
            @for (cause, group) in causes.iter().take(CAUSES) {
                @if group.len() < FOLDED_FROM && !matches!(cause, FindingCause::Names(_)) {
                    @for finding in group { (item(catalog, finding, FindingParts { severity: false, message: true, hint: true })) }
                } @else {
                    li { (folded(catalog, code, cause, group)) }
                }
            }
        }
        @if shown < findings.len() {
            p class="quiet" { (findings.len() - shown) " more: choose a scenario above, or read " a href={ "/api/v1/findings?code=" (code) } { "more as JSON" } }
        }
    }
}

/// A group that has to be opened.
fn folded(
    catalog: &Catalog,
    code: FindingCode,
    cause: &FindingCause<'_>,
    group: &[&Finding],
) -> Markup {
    // What all of them say is said once.
    let common = group.first().and_then(|first| first.hint.as_deref());
    let common = common.filter(|hint| {
        group
            .iter()
            .all(|finding| finding.hint.as_deref() == Some(*hint))
    });
    let parts = FindingParts {
        severity: false,
        message: !matches!(cause, FindingCause::Message(_)),
        hint: common.is_none(),
    };
    html! {
        details id=(cause.id(code)) {
            summary { (cause.summary(group)) }
            @if let Some(hint) = common { p class="quiet" { "Next: " (sentence(hint, 400)) } }
            ul class="findings" { @for finding in group.iter().take(OF_CAUSE) { (item(catalog, finding, parts)) } }
        }
    }
}
