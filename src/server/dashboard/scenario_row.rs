//! One scenario as a row of the table, which narrow screens show as a card.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::model::{Health, ScenarioState};
use crate::server::dashboard::history::LatencySample;
use crate::server::dashboard::plots;
use crate::server::dashboard::text::{
    AGO, FOR, FRESH, IN, count, foreign, foreign_plain, relative_time, segment, sentence,
};

/// A state as a word beside a colour and a shape.
pub(super) fn badge(state: ScenarioState) -> Markup {
    let shape = match state {
        ScenarioState::Pending => "?",
        ScenarioState::Connecting => "…",
        ScenarioState::Live => "●",
        ScenarioState::Stale => "◐",
        ScenarioState::Asleep => "☾",
        ScenarioState::Down => "✕",
        ScenarioState::Removed => "∅",
        ScenarioState::NeedsAuthorization => "!",
        ScenarioState::Incompatible => "≠",
        ScenarioState::Blocked => "⊘",
    };
    html! { span class={ "badge state-" (state) } { span aria-hidden="true" { (shape) } " " (state) } }
}

/// The row.
/// `has_file` is whether the configuration has a file that can be changed. A scenario that is live is
/// taken out of it on its own page only.
pub(super) fn row(
    health: &Health,
    latencies: &[LatencySample],
    has_file: bool,
    now: Timestamp,
) -> Markup {
    html! {
        tr id={ "scenario-" (health.name) } data-scenario=(health.name) data-state=(health.state) {
            th scope="row" data-label="Scenario" {
                a class="name" href={ "/dashboard/scenarios/" (segment(health.name.as_str())) } { (health.name) }
                (address(health))
                @if let Some(description) = health.description.as_deref().filter(|text| !text.is_empty()) {
                    p class="quiet clip" { (foreign(description, 120)) }
                }
                p class="quiet" { "found " (health.source.spec().found) @if !health.trusted { ", not trusted" } }
            }
            td data-label="State" { (standing(health, now)) }
            td data-label="Tools" { (tools(health)) }
            td data-label="Freshness" { (freshness(health, now)) (answers(health, now)) }
            td data-label="Latency" class="number" {
                (plots::sparkline(latencies))
                p { @match health.latency_ms { Some(took) => { (took) " ms" } None => span class="quiet" { "not measured" } } }
            }
            td data-label="Protocol" {
                p class="fixed" { (health.protocol.unwrap_or("unknown")) @if let Some(version) = &health.protocol_version { " " (foreign(version, 20)) } }
                @if health.restarts > 0 { p class="quiet" { (count(health.restarts as usize, "restart")) } }
            }
            td data-label="Actions" class="actions" { (actions(health, has_file && health.state != ScenarioState::Live)) }
        }
    }
}

/// The address, cut by the style where it is long.
fn address(health: &Health) -> Markup {
    html! {
        @if let Some(url) = &health.url { code class="address" title=(foreign_plain(url, 600)) { (foreign(url, 300)) } }
    }
}

/// The state, its duration and its reason; and the last error, unless the reason contains it.
pub(super) fn standing(health: &Health, now: Timestamp) -> Markup {
    let is_polled = health.state != ScenarioState::Removed;
    let error = health
        .last_error
        .as_ref()
        .filter(|error| is_polled && !health.reason.contains(&error.message));
    html! {
        p { (badge(health.state)) " " span class="quiet" { (relative_time(health.since, now, FOR)) } }
        p class={ "why " (tone(health.state)) } title=(foreign_plain(&health.reason, 600)) { (sentence(&health.reason, 400)) }
        @if let Some(error) = error {
            p class={ "why " (if health.failures_in_a_row > 0 { "bad" } else { "quiet" }) } title=(foreign_plain(&error.message, 600)) {
                "last error " (relative_time(error.at, now, AGO)) ": " (sentence(&error.message, 400))
            }
        }
    }
}

/// Whether the reason of a state is bad news.
fn tone(state: ScenarioState) -> &'static str {
    use ScenarioState::{Down, Incompatible, NeedsAuthorization};
    if matches!(state, Down | Incompatible | NeedsAuthorization) {
        "bad"
    } else {
        "quiet"
    }
}

fn tools(health: &Health) -> Markup {
    let counts = &health.tools;
    let withheld = counts
        .offered
        .saturating_sub(counts.published + counts.disabled);
    html! {
        p { strong { (counts.published) } " published" }
        @if counts.disabled > 0 { p class="quiet" { (counts.disabled) " disabled" } }
        @if withheld > 0 { p class={ "fixed " (tone(health.state)) } { (withheld) " not listed" } }
        @if counts.quarantined > 0 { p class="fixed bad" { (counts.quarantined) " quarantined" } }
    }
}

/// How long its last answer may still be used.
pub(super) fn freshness(health: &Health, now: Timestamp) -> Markup {
    let used = matches!(
        health.state,
        ScenarioState::Live
            | ScenarioState::Stale
            | ScenarioState::Asleep
            | ScenarioState::Connecting
    );
    html! {
        @match health.freshness {
            Some(fresh) if used => {
                (plots::bar(fresh.received_at, fresh.fresh_until, now))
                p class="quiet" { (relative_time(fresh.fresh_until, now, FRESH)) }
            }
            Some(_) => p class="quiet" { "its tools are not listed" },
            None => p class="quiet" { "no good answer yet" },
        }
    }
}

/// Times of the last answer, the last failure and the next poll.
pub(super) fn answers(health: &Health, now: Timestamp) -> Markup {
    html! {
        @if let Some(at) = health.last_success { p class="quiet" { "answered " (relative_time(at, now, AGO)) } }
        @if let Some(error) = &health.last_error {
            p class=(if health.failures_in_a_row > 0 { "small bad" } else { "quiet" }) { "failed " (relative_time(error.at, now, AGO))
                @if health.failures_in_a_row > 1 { ", " (health.failures_in_a_row) " times in a row" } }
        }
        @if let Some(at) = health.next_attempt { p class="quiet" { "next try " (relative_time(at, now, IN)) } }
    }
}

/// The actions of an operator. Each calls a route of the API; the row is updated when the change is
/// published.
/// `removes` is whether a scenario of the configuration can be taken out of its file here.
pub(super) fn actions(health: &Health, removes: bool) -> Markup {
    let name = &health.name;
    let base = format!("/api/v1/scenarios/{}", segment(name.as_str()));
    let blocked = health.state == ScenarioState::Blocked;
    let origin = health.party.origin.as_deref();
    let at = origin.unwrap_or("an unknown address");
    let tools = count(health.tools.offered, "tool");
    html! {
        @if !blocked && health.state != ScenarioState::Removed && health.url.is_some() {
            button id={ "refresh-" (name) } type="button" hx-post={ (base) "/refresh" } hx-swap="none" hx-disabled-elt="this"
                aria-label={ "Refresh " (name) } { "Refresh" }
        }
        @if let Some(origin) = origin.filter(|_| !health.trusted && !blocked) {
            button id={ "trust-" (name) } type="button" class="primary" hx-post={ (base) "/trust?origin=" (segment(origin)) } hx-swap="none"
                hx-confirm={ "Trust " (name) " at " (at) "? Its " (tools) " will be offered to your agents." }
                aria-label={ "Trust " (name) } { "Trust" }
        }
        @if health.trusted && !blocked && health.source.spec().is_announced {
            button id={ "untrust-" (name) } type="button" hx-delete={ (base) "/trust" } hx-swap="none"
                hx-confirm={ "Distrust " (name) "? Its approval is deleted." }
                aria-label={ "Distrust " (name) } { "Distrust" }
        }
        @if matches!(health.state, ScenarioState::Removed | ScenarioState::Down) {
            button id={ "forget-" (name) } type="button" hx-post={ (base) "/forget" } hx-swap="none"
                hx-confirm={ "Forget " (name) "? All that is known of it is deleted. It returns when a source finds it and it answers." }
                aria-label={ "Forget " (name) } { "Forget" }
        }
        @if removes && health.source.spec().has_entries && health.state != ScenarioState::Removed {
            button id={ "remove-" (name) } type="button" class="danger" hx-delete=(base) hx-swap="none"
                hx-confirm={ "Take " (name) " out of the configuration file? Its " (tools) " are removed from the list." }
                aria-label={ "Remove " (name) } { "Remove" }
        }
        @if blocked {
            button id={ "unblock-" (name) } type="button" hx-delete={ (base) "/block" } hx-swap="none"
                aria-label={ "Unblock " (name) } { "Unblock" }
        } @else {
            button id={ "block-" (name) } type="button" class="danger" hx-post={ (base) "/block" } hx-swap="none"
                hx-confirm={ "Block " (name) "? It is not polled any more, and its " (tools) " are removed from the list." }
                aria-label={ "Block " (name) } { "Block" }
        }
    }
}
