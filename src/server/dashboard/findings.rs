//! All open findings, grouped by code, with what to do about each.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};

use crate::catalog::Catalog;
use crate::model::{Finding, FindingCode, Severity, ToolId};
use crate::server::SharedState;
use crate::server::api::findings::all_open;
use crate::server::dashboard::links;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{count, foreign, sentence};

/// How many findings are shown.
pub(super) mod told {
    /// On the page of all findings.
    pub(in super::super) const OF_KIND: usize = 30;
    /// On the page of a scenario.
    pub(in super::super) const OF_SCENARIO: usize = 100;
}

/// `GET /dashboard/findings`.
pub(super) async fn page(State(shared): State<SharedState>, asked: HeaderMap) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let findings = all_open(&shared, &snapshot).await;
    let main = html! {
        h1 { "Findings" }
        p class="lead" { "What was left out, renamed, hidden or kept from an older answer, and why. Nothing is left out without a finding." }
        div id="findings" hx-get="/dashboard/findings/now" hx-trigger="sse:catalog" hx-sync="this:replace" hx-disinherit="*" { (groups(&snapshot.catalog, &findings)) }
    };
    let page = Page { nav: Some(NavPage::Findings), title: "Findings", snapshot: &snapshot, now };
    html_response(&asked, page.render(&main))
}

/// `GET /dashboard/findings/now`: the part that changes.
pub(super) async fn part(State(shared): State<SharedState>, asked: HeaderMap) -> Result<Response, ErrorPage> {
    let snapshot = shared.reader.snapshot();
    html_response(&asked, groups(&snapshot.catalog, &all_open(&shared, &snapshot).await))
}

fn groups(catalog: &Catalog, findings: &[Finding]) -> Markup {
    let mut kinds: BTreeMap<_, Vec<&Finding>> = BTreeMap::new();
    for finding in findings {
        // The worst first.
        kinds.entry((std::cmp::Reverse(finding.severity()), finding.code.as_str())).or_default().push(finding);
    }
    html! {
        @if kinds.is_empty() {
            p class="card" id="empty" { "No findings: every offered tool is in the list, unchanged." }
        }
        @for ((severity, code), of_kind) in &kinds {
            section class="card" data-code=(code) aria-labelledby={ "kind-" (code) } {
                h2 id={ "kind-" (code) } { (severity_badge(severity.0)) " " (title(code)) " " span class="quiet" { (count(of_kind.len(), "finding")) } }
                @if let Some(what) = of_kind.first().and_then(|finding| advice(finding.code)) { p { strong { "What to do: " } (sentence(what, 400)) } }
                (finding_list(catalog, of_kind.iter().copied(), told::OF_KIND, true))
                @if of_kind.len() > told::OF_KIND {
                    p class="quiet" { (of_kind.len() - told::OF_KIND) " more: " a href={ "/api/v1/findings?code=" (code) } { "all as JSON" } }
                }
            }
        }
    }
}

/// `name-collision` as `Name collision`.
fn title(code: &str) -> String {
    let mut text = code.replace('-', " ");
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text
}

/// The severity as a word beside a colour.
pub(super) fn severity_badge(severity: Severity) -> Markup {
    html! { span class={ "badge " (severity.as_str()) } { (severity.as_str()) } }
}

/// The first `most` findings. With `grouped`, the heading already shows their severity.
pub(super) fn finding_list<'a>(
    catalog: &Catalog,
    findings: impl IntoIterator<Item = &'a Finding>,
    most: usize,
    grouped: bool,
) -> Markup {
    html! {
        ul class="findings" {
            @for finding in findings.into_iter().take(most) {
                li data-code=(finding.code) {
                    (about(catalog, finding)) @if !grouped { (severity_badge(finding.severity())) " " } (sentence(&finding.message, 600))
                    @if let Some(pointer) = &finding.pointer { " " code { (foreign(pointer, 200)) } }
                    @if let Some(hint) = &finding.hint { p class="quiet" { "Next: " (sentence(hint, 400)) } }
                }
            }
        }
    }
}

/// What a finding is about. A tool that the catalog does not have has no page, so its scenario's is
/// linked.
fn about(catalog: &Catalog, finding: &Finding) -> Markup {
    let has_page = |id: &ToolId| catalog.entry(&id.scenario).is_some_and(|entry| entry.tool(&id.tool).is_some());
    let link = |id: ToolId| if has_page(&id) { links::tool(&id) } else { links::scenario(&id.scenario) };
    html! {
        @match (&finding.scenario, &finding.tool) {
            (Some(scenario), Some(name)) => { a href=(link(ToolId::new(scenario.clone(), name.clone()))) { (scenario) "/" (foreign(name, 80)) } " " }
            (Some(scenario), None) => { a href=(links::scenario(scenario)) { (scenario) } " " }
            _ => {}
        }
    }
}

/// What an operator can do about findings of a code, unless each finding has its own hint.
fn advice(code: FindingCode) -> Option<&'static str> {
    Some(match code {
        FindingCode::NameCollision => {
            "give one of the tools an alias, or leave it: both are in the list under longer names."
        }
        FindingCode::AliasRefused => "choose an alias that no other tool has.",
        FindingCode::ToolQuarantined => {
            "report it to the author of the scenario; `callsheet check` shows where it is in the manifest."
        }
        FindingCode::VersionRefused => "update the scenario or callsheet, or widen `protocol.accept`.",
        FindingCode::ManifestRefused => {
            "look at the scenario's log; its last good tools stay published until it is fixed."
        }
        FindingCode::Disabled => "enable a tool where it is needed: on its page, or with a preference for many tools.",
        FindingCode::Withdrawn => {
            "find out why the scenario does not answer; its tools return with its next good answer."
        }
        FindingCode::NeedsAuthorization => {
            "give callsheet the credential, or let the scenario list its tools without one."
        }
        FindingCode::OverLimit => "disable tools that are not needed, or raise the priority of those that must stay.",
        FindingCode::TrustWithheld => {
            "check which program answers at that address now, and trust it again if it is the right one."
        }
        FindingCode::PreferenceUnmatched => {
            "if the profile is not configured, configure it; if the tool will not return, reset the preference; otherwise no action is needed."
        }
        FindingCode::SourceFailed => "fix what the finding names; until then the last known addresses stay active.",
        FindingCode::StateFailed | FindingCode::StateRepaired => {
            "check the free space and the permissions of the state folder."
        }
        FindingCode::Isolated => "check the network of this machine.",
        FindingCode::Lossy => "no action is needed, unless a tool needs what the vendor does not accept.",
        _ => return None,
    })
}
