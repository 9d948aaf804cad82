//! Findings as a list, on the page of all findings, of a scenario and of a tool.

use maud::{Markup, html};

use crate::catalog::Catalog;
use crate::model::{Finding, Severity, ToolId};
use crate::server::dashboard::links;
use crate::server::dashboard::text::{foreign, sentence};

/// At most this many findings are shown on the page of a scenario or a tool.
const SHOWN: usize = 100;

/// The parts of a finding that its list shows besides what it is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct FindingParts {
    pub(super) severity: bool,
    pub(super) message: bool,
    pub(super) hint: bool,
}

/// The severity as a word beside a colour.
pub(super) fn severity_badge(severity: Severity) -> Markup {
    html! { span class={ "badge " (severity.as_str()) } { (severity.as_str()) } }
}

/// The findings of a scenario or a tool, each with all its parts.
pub(super) fn finding_list<'a>(
    catalog: &Catalog,
    findings: impl IntoIterator<Item = &'a Finding>,
) -> Markup {
    let parts = FindingParts {
        severity: true,
        message: true,
        hint: true,
    };
    html! {
        ul class="findings" { @for finding in findings.into_iter().take(SHOWN) { (item(catalog, finding, parts)) } }
    }
}

/// One finding as an item of a list.
pub(super) fn item(catalog: &Catalog, finding: &Finding, parts: FindingParts) -> Markup {
    html! {
        li data-code=(finding.code) {
            (about(catalog, finding)) @if parts.severity { (severity_badge(finding.severity())) " " }
            @if parts.message { (sentence(&finding.message, 600)) }
            @if let Some(pointer) = &finding.pointer { " " code { (foreign(pointer, 200)) } }
            @if let Some(hint) = finding.hint.as_ref().filter(|_| parts.hint) { p class="quiet" { "Next: " (sentence(hint, 400)) } }
        }
    }
}

/// What a finding is about. A tool that the catalog does not have has no page, so its scenario's is
/// linked.
fn about(catalog: &Catalog, finding: &Finding) -> Markup {
    let has_page = |id: &ToolId| {
        catalog
            .entry(&id.scenario)
            .is_some_and(|entry| entry.tool(&id.tool).is_some())
    };
    let link = |id: ToolId| {
        if has_page(&id) {
            links::tool(&id)
        } else {
            links::scenario(&id.scenario)
        }
    };
    html! {
        @match (&finding.scenario, &finding.tool) {
            (Some(scenario), Some(name)) => { a href=(link(ToolId::new(scenario.clone(), name.clone()))) { (scenario) "/" (foreign(name, 80)) } " " }
            (Some(scenario), None) => { a href=(links::scenario(scenario)) { (scenario) } " " }
            _ => {}
        }
    }
}
