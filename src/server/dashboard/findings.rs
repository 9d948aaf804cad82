//! All open findings, by code and cause, with what to do about each.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};
use url::form_urlencoded;

use crate::catalog::Snapshot;
use crate::model::{Finding, FindingCode, ScenarioName, Severity};
use crate::server::SharedState;
use crate::server::api::findings::{FindingFilter, OpenFindings, UnusedFormats, open_findings};
use crate::server::dashboard::causes;
use crate::server::dashboard::finding_list::severity_badge;
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::text::{count, sentence};

/// At most this many scenarios can be chosen from.
const SCENARIOS: usize = 1_000;
/// The address of the page.
const PAGE: &str = "/dashboard/findings";

/// Findings by severity and code, the worst first.
type Kinds<'a> = BTreeMap<(Reverse<Severity>, &'static str), Vec<&'a Finding>>;

/// The filter of the page. Values that cannot be parsed count as absent, because people type them.
#[derive(Debug, Default)]
struct ShownFindings {
    severity: Option<Severity>,
    code: Option<FindingCode>,
    scenario: Option<ScenarioName>,
    /// Also about formats in which no client has requested a list.
    all_formats: bool,
}

impl ShownFindings {
    fn parse(raw: Option<&str>) -> Self {
        let mut wanted = Self::default();
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            match &*name {
                "severity" => {
                    wanted.severity = Severity::ALL
                        .into_iter()
                        .find(|known| known.as_str() == value);
                }
                "code" => {
                    wanted.code = FindingCode::ALL
                        .iter()
                        .copied()
                        .find(|known| known.as_str() == value);
                }
                "scenario" => wanted.scenario = value.parse().ok(),
                "formats" => wanted.all_formats = value == "all",
                _ => {}
            }
        }
        wanted
    }

    /// Whether it leaves anything out that concerns every client.
    fn is_limited(&self) -> bool {
        self.severity.is_some() || self.code.is_some() || self.scenario.is_some()
    }

    /// A code that is chosen is shown, also one that is hidden otherwise.
    fn filter(&self) -> FindingFilter {
        let shows_all = self.all_formats || self.code.is_some();
        FindingFilter {
            severities: self.severity.into_iter().collect(),
            codes: self.code.into_iter().collect(),
            scenario: self.scenario.clone(),
            unused: if shows_all {
                UnusedFormats::Included
            } else {
                UnusedFormats::Counted
            },
        }
    }

    /// The address of the page with this filter and with all formats.
    fn with_all_formats(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("formats", "all");
        let severity = self.severity.map(Severity::as_str);
        for (key, value) in [
            ("severity", severity),
            ("scenario", self.scenario.as_ref().map(ScenarioName::as_str)),
        ] {
            if let Some(value) = value {
                query.append_pair(key, value);
            }
        }
        format!("{}?{}", PAGE, query.finish())
    }
}

/// `GET /dashboard/findings`. Parameters: `severity`, `code`, `scenario`, `formats`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let wanted = ShownFindings::parse(raw.as_deref());
    let findings = open_findings(&shared, &snapshot.snapshot, wanted.filter()).await;
    let main = html! {
        h1 { "Findings" }
        p class="lead" { "What was left out, renamed, hidden or kept from an older answer, and why. Nothing is left out without a finding." }
        (form(&snapshot, &wanted))
        div id="findings" hx-get="/dashboard/findings/now" hx-include="#filter" hx-sync="this:replace" hx-disinherit="*"
            hx-trigger="sse:catalog, input delay:150ms from:#filter, submit from:#filter" {
            (groups(&snapshot, &findings, &wanted))
        }
    };
    let page = Page {
        nav: Some(NavPage::Findings),
        title: "Findings",
        snapshot: &snapshot,
        now,
    };
    html_response(&headers, page.render(&main))
}

/// `GET /dashboard/findings/now`: the part that changes.
pub(super) async fn part(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let snapshot = shared.reader.snapshot();
    let wanted = ShownFindings::parse(raw.as_deref());
    let findings = open_findings(&shared, &snapshot, wanted.filter()).await;
    html_response(&headers, groups(&snapshot, &findings, &wanted))
}

fn form(snapshot: &Snapshot, wanted: &ShownFindings) -> Markup {
    let of = |severity: Severity| {
        let mut codes: Vec<_> = FindingCode::ALL
            .iter()
            .filter(|code| code.severity() == severity)
            .collect();
        codes.sort_by_key(|code| code.as_str());
        codes
    };
    html! {
        form id="filter" class="filter" method="get" action=(PAGE) role="search" {
            label { "Severity" select name="severity" {
                option value="" { "every severity" }
                @for severity in Severity::ALL.into_iter().rev() {
                    option value=(severity.as_str()) selected[wanted.severity == Some(severity)] { (severity.as_str()) }
                }
            } }
            label { "Kind" select name="code" {
                option value="" { "every kind" }
                @for severity in Severity::ALL.into_iter().rev() {
                    optgroup label=(severity.as_str()) {
                        @for code in of(severity) { option value=(code) selected[wanted.code == Some(*code)] { (title(code.as_str())) } }
                    }
                }
            } }
            label { "Scenario" select name="scenario" {
                option value="" { "every scenario" }
                @for name in snapshot.health.keys().take(SCENARIOS) { option value=(name) selected[wanted.scenario.as_ref() == Some(name)] { (name) } }
            } }
            label class="choice" { input type="checkbox" name="formats" value="all" checked[wanted.all_formats]; "Also formats that no client uses" }
            noscript { button type="submit" { "Show" } }
        }
    }
}

fn groups(snapshot: &Snapshot, found: &OpenFindings, wanted: &ShownFindings) -> Markup {
    let mut kinds = Kinds::new();
    for finding in found.general.iter().chain(&found.of_formats) {
        kinds
            .entry((Reverse(finding.severity()), finding.code.as_str()))
            .or_default()
            .push(finding);
    }
    html! {
        @if kinds.is_empty() {
            p class="card" id="empty" {
                @if wanted.is_limited() { "No finding matches. " a href=(PAGE) { "Show all" } }
                @else if found.hidden > 0 { "No findings, except about formats that no client uses." }
                @else { "No findings: every offered tool is in the list, unchanged." }
            }
        } @else {
            (counts(&kinds))
        }
        @for ((severity, code), of_kind) in &kinds {
            section class="card" data-code=(code) aria-labelledby={ "kind-" (code) } {
                h2 id={ "kind-" (code) } { (severity_badge(severity.0)) " " (title(code)) " " span class="quiet" { (count(of_kind.len(), "finding")) } }
                @if let Some(first) = of_kind.first() {
                    @if let Some(what) = advice(first.code) { p { strong { "What to do: " } (sentence(what, 400)) } }
                    (causes::list(&snapshot.catalog, first.code, of_kind))
                }
            }
        }
        @if found.hidden > 0 {
            p class="card quiet" id="unused-formats" { (count(found.hidden, "finding")) " about formats in which no client has requested a list. "
                a href=(wanted.with_all_formats()) { "Show them" } }
        }
    }
}

/// How many findings there are of each severity, as links.
fn counts(kinds: &Kinds<'_>) -> Markup {
    let of = |severity: Severity| {
        kinds
            .iter()
            .filter(|((of, _), _)| of.0 == severity)
            .map(|(_, all)| all.len())
            .sum()
    };
    let all: Vec<(Severity, usize)> = Severity::ALL
        .into_iter()
        .rev()
        .map(|severity| (severity, of(severity)))
        .collect();
    html! {
        ul class="summary" aria-label="Findings by severity" {
            @for (severity, number) in all.into_iter().filter(|(_, number)| *number > 0) {
                li { a class="tile" href={ (PAGE) "?severity=" (severity.as_str()) } { strong { (number) } " " (severity_badge(severity)) } }
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
        FindingCode::VersionRefused => {
            "update the scenario or callsheet, or widen `protocol.accept`."
        }
        FindingCode::ManifestRefused => {
            "look at the scenario's log; its last good tools stay published until it is fixed."
        }
        FindingCode::Disabled => {
            "enable a tool where it is needed: on its page, or with a preference for many tools."
        }
        FindingCode::Withdrawn => {
            "find out why the scenario does not answer; its tools return with its next good answer."
        }
        FindingCode::NeedsAuthorization => {
            "give callsheet the credential, or let the scenario list its tools without one."
        }
        FindingCode::OverLimit => {
            "disable tools that are not needed, or raise the priority of those that must stay."
        }
        FindingCode::TrustWithheld => {
            "check which program answers at that address now, and trust it again if it is the right one."
        }
        FindingCode::PreferenceUnmatched => {
            "if the profile is not configured, configure it; if the tool will not return, reset the preference; otherwise no action is needed."
        }
        FindingCode::SourceFailed => {
            "fix what the finding names; until then the last known addresses stay active."
        }
        FindingCode::StateFailed | FindingCode::StateRepaired => {
            "check the free space and the permissions of the state folder."
        }
        FindingCode::Isolated => "check the network of this machine.",
        FindingCode::Lossy => {
            "no action is needed, unless a tool needs what the vendor does not accept."
        }
        _ => return None,
    })
}
