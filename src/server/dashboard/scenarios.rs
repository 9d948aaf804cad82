//! The first page: all scenarios at a glance.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use http::HeaderMap;
use jiff::Timestamp;
use maud::{Markup, html};
use url::form_urlencoded;

use crate::catalog::Snapshot;
use crate::model::{Health, ScenarioState};
use crate::server::dashboard::page::{ErrorPage, NavPage, Page, current_snapshot, html_response};
use crate::server::dashboard::scenario_row::row;
use crate::server::dashboard::text::{IN, count, foreign, relative_time};
use crate::server::dashboard::{add, connect, overview};
use crate::server::{ServerState, SharedState};

/// At most this many rows are shown unless the client requests more.
const ROWS: usize = 200;
/// At most this many characters of the search are used.
const LONGEST_SEARCH: usize = 200;

/// The filter of the page. Values that cannot be parsed count as absent, because people type them.
#[derive(Debug, Default)]
struct ScenarioFilter {
    words: String,
    state: Option<ScenarioState>,
    sort: Sort,
    rows: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sort {
    /// Scenarios that need attention first.
    #[default]
    Urgency,
    Name,
    Since,
    Latency,
    Tools,
}

impl Sort {
    const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Urgency, "urgency", "Needs attention first"),
        (Self::Name, "name", "Name"),
        (Self::Since, "since", "Latest change"),
        (Self::Latency, "latency", "Slowest"),
        (Self::Tools, "tools", "Most tools"),
    ];
}

impl ScenarioFilter {
    fn parse(raw: Option<&str>) -> Self {
        let mut wanted = Self {
            rows: ROWS,
            ..Self::default()
        };
        for (name, value) in form_urlencoded::parse(raw.unwrap_or_default().as_bytes()) {
            match &*name {
                "q" => wanted.words = value.chars().take(LONGEST_SEARCH).collect(),
                "state" => {
                    wanted.state = ScenarioState::ALL
                        .into_iter()
                        .find(|state| state.as_str() == value);
                }
                "sort" => {
                    let known = Sort::ALL.iter().find(|(_, id, _)| *id == value);
                    wanted.sort = known.map_or(Sort::default(), |(sort, _, _)| *sort);
                }
                "rows" => wanted.rows = value.parse().unwrap_or(ROWS).max(ROWS),
                _ => {}
            }
        }
        wanted
    }

    fn matches(&self, health: &Health) -> bool {
        let text = [&health.description, &health.url]
            .map(|text| text.as_deref().unwrap_or_default())
            .join(" ");
        let text = format!("{} {} {text}", health.name, health.reason).to_lowercase();
        self.state.is_none_or(|state| state == health.state)
            && self
                .words
                .to_lowercase()
                .split_whitespace()
                .all(|word| text.contains(word))
    }

    fn order(&self, rows: &mut [&Arc<Health>]) {
        match self.sort {
            Sort::Name => {}
            Sort::Urgency => rows.sort_by_key(|health| urgency(health.state)),
            Sort::Since => rows.sort_by_key(|health| Reverse(health.since)),
            Sort::Latency => rows.sort_by_key(|health| Reverse(health.latency_ms)),
            Sort::Tools => rows.sort_by_key(|health| Reverse(health.tools.published)),
        }
    }
}

fn urgency(state: ScenarioState) -> u8 {
    match state {
        ScenarioState::Pending => 0,
        ScenarioState::Down => 1,
        ScenarioState::NeedsAuthorization => 2,
        ScenarioState::Incompatible => 3,
        ScenarioState::Stale => 4,
        ScenarioState::Connecting => 5,
        ScenarioState::Live => 6,
        ScenarioState::Asleep => 7,
        ScenarioState::Removed => 8,
        ScenarioState::Blocked => 9,
    }
}

/// `GET /` for browsers. Parameters: `q`, `state`, `sort`, `rows`.
pub(super) async fn page(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: &HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    let wanted = ScenarioFilter::parse(raw.as_deref());
    let overview = overview::section(&shared, &snapshot).await;
    let main = html! {
        h1 { "Scenarios" }
        (overview)
        div class="columns" { (connect::section(&shared, headers)) (add::section(&shared, snapshot.health.is_empty())) }
        form id="filter" class="filter" method="get" action="/" role="search" {
            label { "Search" input type="search" name="q" value=(wanted.words) placeholder="name, address or words" data-search autocomplete="off"; }
            label { "State" select name="state" {
                option value="" { "every state" }
                @for state in ScenarioState::ALL { option value=(state) selected[wanted.state == Some(state)] { (state) } }
            } }
            label { "Order" select name="sort" {
                @for (sort, id, told) in Sort::ALL { option value=(id) selected[wanted.sort == sort] { (told) } }
            } }
            noscript { button type="submit" { "Show" } }
        }
        div id="scenarios" hx-get="/dashboard/scenarios" hx-include="#filter" hx-sync="this:replace" hx-disinherit="*"
            hx-trigger="sse:health, input delay:150ms from:#filter, submit from:#filter" {
            (list(&shared, &snapshot, &wanted, now))
        }
    };
    let page = Page {
        nav: Some(NavPage::Scenarios),
        title: "Scenarios",
        snapshot: &snapshot,
        now,
    };
    html_response(headers, page.render(&main))
}

/// `GET /dashboard/scenarios`: the part of the page that changes.
pub(super) async fn part(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, now) = current_snapshot(&shared);
    html_response(
        &headers,
        list(
            &shared,
            &snapshot,
            &ScenarioFilter::parse(raw.as_deref()),
            now,
        ),
    )
}

fn list(
    shared: &ServerState,
    snapshot: &Snapshot,
    wanted: &ScenarioFilter,
    now: Timestamp,
) -> Markup {
    let mut rows: Vec<&Arc<Health>> = snapshot
        .health
        .values()
        .filter(|health| wanted.matches(health))
        .collect();
    wanted.order(&mut rows);
    let history = &shared.dashboard.history;
    html! {
        (isolation(snapshot, now))
        @if snapshot.health.is_empty() {
            (empty())
        } @else if rows.is_empty() {
            p class="card" { "No scenario matches. " a href="/" { "Show all" } }
        } @else {
            div class="scroll" tabindex="0" role="region" aria-label="Table of scenarios" {
                table class="cards" {
                    caption class="hidden" { "Scenarios with their health and actions" }
                    thead { tr { @for head in ["Scenario and address", "State", "Tools", "Freshness", "Latency", "Protocol", "Actions"] { th scope="col" { (head) } } } }
                    tbody {
                        @for health in rows.iter().take(wanted.rows) { (row(health, &history.latencies(&health.name), shared.load_options.is_some(), now)) }
                    }
                }
            }
            @if rows.len() > wanted.rows {
                p { "The first " (wanted.rows) " of " (rows.len()) " are shown. "
                    label { "Show " input form="filter" type="number" name="rows" min=(ROWS) step=(ROWS) value=(wanted.rows + ROWS); }
                }
            }
        }
    }
}

fn isolation(snapshot: &Snapshot, now: Timestamp) -> Markup {
    html! {
        @if let Some(isolated) = &snapshot.isolated {
            section id="isolated" class="banner" aria-labelledby="isolated-title" {
                h2 id="isolated-title" { "This daemon seems to be cut off" }
                p { (foreign(&isolated.reason(), 600)) }
                p { "Check the network of this machine. Withdrawals go on " (relative_time(isolated.until, now, IN)) " at the latest; "
                    (count(isolated.lost, "scenario")) " of " (isolated.of) " were lost." }
            }
        }
    }
}

/// The page of a daemon without scenarios: what to do next.
fn empty() -> Markup {
    html! {
        section id="empty" class="card" {
            h2 { "No scenario is known yet" }
            p { "A scenario is a running program that offers tools, such as an MCP server. callsheet finds it by itself when it is announced on the local "
                "network or runs under Vrooli. Add one with the form above, or in a terminal:" }
            dl {
                dt { code { "callsheet init" } } dd { "shows what was found on this machine" }
                dt { code { "callsheet import --write" } } dd { "takes over the MCP servers of a client" }
                dt { code { "callsheet check http://127.0.0.1:8080" } } dd { "shows what an address answers before you add it" }
                dt { code { "callsheet demo" } } dd { "shows callsheet at work with samples" }
            }
            p { "Or write it into " code { "callsheet.toml" } ", which is read again within a second:" }
            pre { code { "[[scenarios]]\nname = \"notes\"\nurl = \"http://127.0.0.1:8080\"" } }
        }
    }
}
