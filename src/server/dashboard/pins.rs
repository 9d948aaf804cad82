//! What of a scenario differs from what was accepted, with the button that accepts it.

use jiff::Timestamp;
use maud::{Markup, html};

use crate::catalog::pins::{PinChange, PinDifference};
use crate::model::{Health, PinMode};
use crate::server::ServerState;
use crate::server::api::pins::accepting;
use crate::server::dashboard::text::{AGO, count, foreign, relative_time, segment};

/// At most this many differences are shown.
const DIFFERENCES: usize = 50;
/// Characters of one side of a difference.
const TEXT: usize = 600;

/// The card; empty for a scenario that is as it was accepted.
pub(super) fn card(shared: &ServerState, health: &Health, now: Timestamp) -> Markup {
    let report = shared.engine.pins_of(&health.name);
    let differing = report.filter(|report| !report.verdict.differences.is_empty());
    let Some(report) = differing else {
        return html! {};
    };
    let name = &health.name;
    let differences = &report.verdict.differences;
    let shown = &differences[..differences.len().min(DIFFERENCES)];
    let left = differences.len() - shown.len();
    html! {
        section class="card" aria-labelledby="pins-title" {
            h2 id="pins-title" { "Differs from what was accepted" }
            p {
                @match report.mode {
                    PinMode::Hold => "Changed and new tools are neither listed nor called until they are accepted.",
                    PinMode::Warn | PinMode::Off => "It is listed, and counts as accepted after 7 days.",
                }
            }
            ul { @for one in shown { (difference(one, now)) } }
            @if left > 0 { p { (count(left, "further difference")) " not shown, and not accepted with these." } }
            p class="actions row" {
                // What is accepted is what this page shows, whatever the scenario offers by then.
                button id={ "accept-pins-" (name) } type="button" class="primary" hx-post={ "/api/v1/pins/" (segment(name.as_str())) "/accept" }
                    hx-swap="none" data-body=(accepting(shown))
                    hx-confirm={ "Accept these definitions of " (name) "? Models read them." }
                    aria-label={ "Accept the definitions of " (name) } { "Accept" }
            }
        }
    }
}

fn difference(one: &PinDifference, now: Timestamp) -> Markup {
    let parts = one.difference().unwrap_or_default();
    html! {
        li {
            @match one.subject.tool() { Some(tool) => code { (foreign(tool, 100)) }, None => "Its instructions" }
            @match one.change { PinChange::Changed => " changed ", PinChange::New => " is new ", PinChange::Removed => " is gone " }
            (relative_time(one.since, now, AGO))
            @if one.is_frequent { ", changes often" }
            @if !parts.parts.is_empty() {
                dl {
                    @for part in &parts.parts {
                        dt { code { (foreign(&part.pointer, 200)) } }
                        @if let Some(before) = &part.before { dd { del { (foreign(before, TEXT)) } } }
                        @if let Some(after) = &part.after { dd { ins { (foreign(after, TEXT)) } } }
                    }
                }
            }
            @if parts.more > 0 { " and " (count(parts.more, "further part")) }
        }
    }
}
