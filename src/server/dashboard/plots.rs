//! Small plots, drawn here as SVG: they need no script, print, and are told in words too. Sizes and places are attributes, for the
//! policy of the pages allows no inline style.

use jiff::Timestamp;
use maud::{Markup, html};

use super::history::{Past, SPAN};
use super::text::minute;
use crate::model::{Health, ScenarioState};

const SPARK: (usize, usize) = (84, 22);
/// Units of the time line's width.
const WIDE: i64 = 1_440;

/// The latest latencies as a line.
pub(super) fn spark(latencies: &[u64]) -> Markup {
    let highest = latencies.iter().copied().max().unwrap_or_default().max(1);
    let (width, height) = SPARK;
    let steps = latencies.len().saturating_sub(1).max(1);
    let point = |(at, took): (usize, &u64)| {
        let x = 1 + at * (width - 2) / steps;
        let room = (height - 4) as u64;
        let y = height as u64 - 2 - took * room / highest;
        format!("{x},{y}")
    };
    let points: Vec<String> = latencies.iter().enumerate().map(point).collect();
    let lowest = latencies.iter().copied().min().unwrap_or_default();
    let label = format!("the last {} answers took {lowest} to {highest} ms", latencies.len());
    html! {
        @if latencies.len() > 1 {
            svg class="spark" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" aria-label=(label) {
                title { (label) }
                polyline points=(points.join(" ")) fill="none" {}
            }
        }
    }
}

/// What is left of a span as a bar that shrinks; the page keeps it true as time goes on.
pub(super) fn bar(from: Timestamp, until: Timestamp, now: Timestamp) -> Markup {
    let whole = until.duration_since(from).as_millis().max(1);
    let left = (until.duration_since(now).as_millis() * 100 / whole).clamp(0, 100);
    html! {
        svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"
            data-from=(from.as_millisecond()) data-until=(until.as_millisecond()) {
            rect class="bar-all" width="100" height="6" rx="2" {}
            rect class="bar-left" width=(left) height="6" rx="2" {}
        }
    }
}

/// Where a scenario stood in the last day, as bands of colour. `begun` is since when that is known.
pub(super) fn timeline(past: &Past, health: &Health, begun: Timestamp, now: Timestamp) -> Markup {
    let start = now.saturating_sub(SPAN).unwrap_or(begun);
    let x = |at: Timestamp| {
        (at.duration_since(start).as_millis() * i128::from(WIDE) / SPAN.as_millis()).clamp(0, WIDE.into())
    };
    let bands = bands(past, health, begun.max(start), now);
    html! {
        svg class="timeline" viewBox={ "0 0 " (WIDE) " 40" } preserveAspectRatio="none" role="img"
            aria-label="States of the last 24 hours; the table below tells them in words" {
            rect class="unknown" width=(WIDE) height="40" {}
            @for (state, from, until) in &bands {
                rect class={ "band state-" (state) } x=(x(*from)) width=((x(*until) - x(*from)).max(2)) height="40" {
                    title { (state) " from " (minute(*from)) " to " (minute(*until)) }
                }
            }
            @for hour in 1..4 { line class="tick" x1=(hour * WIDE / 4) x2=(hour * WIDE / 4) y1="0" y2="40" {} }
        }
        p class="scale" aria-hidden="true" { span { "24 h ago" } span { "18 h" } span { "12 h" } span { "6 h" } span { "now" } }
    }
}

/// The bands from `begun` to `now`, in order.
fn bands(past: &Past, health: &Health, begun: Timestamp, now: Timestamp) -> Vec<(ScenarioState, Timestamp, Timestamp)> {
    let mut bands = Vec::new();
    let mut stood: Option<(ScenarioState, Timestamp)> = None;
    for turn in &past.turns {
        let before = stood.or(turn.from.map(|from| (from, begun)));
        if let Some((state, since)) = before {
            bands.push((state, since.max(begun), turn.at.max(begun)));
        }
        stood = turn.to.map(|to| (to, turn.at));
    }
    let (state, since) = stood.unwrap_or((health.state, health.since));
    bands.push((state, since.max(begun), now));
    bands.retain(|(_, from, until)| until > from);
    bands
}
