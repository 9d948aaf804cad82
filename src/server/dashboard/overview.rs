//! The head of the first page: one verdict about all scenarios, a card for each state, and the
//! calls that wait for a person.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use maud::{Markup, html};

use crate::catalog::Snapshot;
use crate::model::text::byte_count;
use crate::model::{Health, SESSIONLESS_REVISION, ScenarioName, ScenarioState};
use crate::server::api::program_costs::program_costs;
use crate::server::dashboard::nav_numbers::WaitingCalls;
use crate::server::dashboard::page::{ErrorPage, current_snapshot, html_response};
use crate::server::dashboard::scenario_row::badge;
use crate::server::dashboard::text::count;
use crate::server::{ServerState, SharedState};

/// The head, with the parts that are fetched again when something changes.
pub(super) async fn section(shared: &ServerState, snapshot: &Snapshot) -> Markup {
    let programs = programs(shared, snapshot).await;
    html! {
        div id="overview" hx-get="/dashboard/overview" hx-trigger="sse:health" hx-sync="this:replace" hx-disinherit="*" {
            (verdict(snapshot)) (programs)
        }
        // A stream of its own, because snapshots do not contain calls.
        div sse-connect="/api/v1/events?kind=approval,call" {
            div id="waiting-calls" hx-get="/dashboard/overview/calls" hx-trigger="sse:approval, sse:call, sse:snapshot" hx-sync="this:replace" hx-disinherit="*" {
                (waiting(shared))
            }
        }
    }
}

/// `GET /dashboard/overview`: the verdict and the cards.
pub(super) async fn part(
    State(shared): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    let (snapshot, _) = current_snapshot(&shared);
    let programs = programs(&shared, &snapshot).await;
    html_response(&headers, html! { (verdict(&snapshot)) (programs) })
}

/// `GET /dashboard/overview/calls`: the calls that wait.
pub(super) async fn calls_part(
    State(shared): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, ErrorPage> {
    html_response(&headers, waiting(&shared))
}

/// Whether a person should look at it.
fn needs_attention(health: &Health) -> bool {
    match health.state {
        ScenarioState::Pending
        | ScenarioState::Down
        | ScenarioState::NeedsAuthorization
        | ScenarioState::Incompatible
        | ScenarioState::Stale => true,
        ScenarioState::Connecting => health.failures_in_a_row > 0,
        ScenarioState::Live
        | ScenarioState::Asleep
        | ScenarioState::Removed
        | ScenarioState::Blocked => false,
    }
}

/// One sentence about everything, and the number of scenarios in each state.
fn verdict(snapshot: &Snapshot) -> Markup {
    let mut states: BTreeMap<ScenarioState, usize> = BTreeMap::new();
    let mut published = 0;
    let mut quarantined = 0;
    let mut attention = 0;
    let mut known = 0;
    for health in snapshot.health.values() {
        *states.entry(health.state).or_default() += 1;
        published += health.tools.published;
        quarantined += health.tools.quarantined;
        attention += usize::from(needs_attention(health));
        known += usize::from(health.state != ScenarioState::Removed);
    }
    html! {
        p class="verdict" {
            @if known == 0 { "No tools yet: no scenario is known" } @else {
                a href="/dashboard/tools" { (count(published, "tool")) } " of " (count(known, "scenario")) "; "
                @match attention {
                    0 => "none needs attention",
                    1 => strong class="bad" { "1 needs attention" },
                    more => strong class="bad" { (more) " need attention" },
                }
            }
        }
        ul class="summary" aria-label="Scenarios by state" {
            @for (state, number) in &states { li { a class="state tile" href={ "/?state=" (state) } { strong { (number) } " " (badge(*state)) } } }
            @if quarantined > 0 { li class="bad" { a class="tile" href="/dashboard/findings" { strong { (quarantined) } " quarantined" } } }
        }
    }
}

/// What the programs cost that callsheet started, and how they could sleep where no key decides
/// that.
async fn programs(shared: &ServerState, snapshot: &Snapshot) -> Markup {
    let names = snapshot.health.keys().cloned().collect();
    let costs = program_costs(shared, names).await;
    let bytes = costs.values().map(|cost| cost.memory_bytes).sum();
    let is_decided = shared.config.borrow().decides_sleep();
    let is_sessionless = |name: &&ScenarioName| {
        let health = snapshot.health.get(*name);
        let version = health.and_then(|health| health.protocol_version.as_deref());
        version == Some(SESSIONLESS_REVISION)
    };
    let unharmed: Vec<&str> = costs
        .keys()
        .filter(is_sessionless)
        .map(ScenarioName::as_str)
        .collect();
    html! {
        @if !costs.is_empty() {
            p class="quiet" {
                (count(costs.len(), "program")) " started by callsheet, " (byte_count(bytes)) " of memory. "
                @if !is_decided { code { "mcp.sleep_after" } " ends those that no client uses, and starts them for the next call." }
                @if !is_decided && !unharmed.is_empty() { " Servers without sessions lose none by it: " (unharmed.join(", ")) "." }
            }
        }
    }
}

/// How many calls wait for a person; empty when none does.
fn waiting(shared: &ServerState) -> Markup {
    let WaitingCalls { approvals, inputs } = WaitingCalls::now(shared);
    html! {
        @if approvals + inputs > 0 {
            p class="banner" {
                @if approvals > 0 { strong { (count(approvals, "call")) } @if approvals == 1 { " waits" } @else { " wait" } " for approval. " }
                @if inputs > 0 { strong { (count(inputs, "call")) } @if inputs == 1 { " waits" } @else { " wait" } " for input. " }
                a href="/dashboard/calls" { "Decide" }
            }
        }
    }
}
