//! Small plots as SVG, rendered on the server: they need no script, can be printed and have a text
//! alternative. Only the plot that shows single values under the pointer is drawn by a script
//! (uPlot). Sizes and positions are attributes, because the policy of the pages allows no inline
//! style.

use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use crate::calls::LogEntry;
use crate::model::{Health, ScenarioState};
use crate::server::dashboard::assets;
use crate::server::dashboard::history::{LatencySample, ScenarioHistory};
use crate::server::dashboard::text::minute;

const SPARK: (usize, usize) = (84, 22);
/// Fewer latencies are not drawn: a line between two points looks like a trend.
const FEWEST: usize = 4;
/// Width of the time line in SVG units.
const WIDE: i64 = 1_440;

/// The latest latencies as a line.
pub(super) fn sparkline(latencies: &[LatencySample]) -> Markup {
    let times = || latencies.iter().map(|took| took.milliseconds);
    let highest = times().max().unwrap_or_default().max(1);
    let (width, height) = SPARK;
    let steps = latencies.len().saturating_sub(1).max(1);
    let point = |(at, took): (usize, u64)| {
        let x = 1 + at * (width - 2) / steps;
        let room = (height - 4) as u64;
        let y = height as u64 - 2 - took * room / highest;
        format!("{x},{y}")
    };
    let points: Vec<String> = times().enumerate().map(point).collect();
    let lowest = times().min().unwrap_or_default();
    let label = format!(
        "the last {} answers took {lowest} to {highest} ms",
        latencies.len()
    );
    html! {
        @if latencies.len() >= FEWEST {
            svg class="spark" viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) role="img" aria-label=(label) {
                title { (label) }
                polyline points=(points.join(" ")) fill="none" {}
            }
        }
    }
}

/// The same latencies as an interactive plot, drawn by a script (`assets/plots.js`). Hidden without
/// scripts.
pub(super) fn interactive_plot() -> Markup {
    html! {
        link rel="stylesheet" href=(assets::href("uPlot.min.css"));
        script src=(assets::href("uPlot.iife.min.js")) defer {}
        script src=(assets::href("plots.js")) defer {}
        section class="card" id="latency" aria-labelledby="latency-title" hidden {
            h2 id="latency-title" { "Latency of its answers" }
            p class="quiet" { span id="latency-told" {} " Drag over a part to zoom in; double-click to zoom out." }
            div class="plot" {}
        }
    }
}

/// What the script draws.
pub(super) fn plot_data(latencies: &[LatencySample]) -> Markup {
    let list = |value: fn(&LatencySample) -> i128| {
        latencies
            .iter()
            .map(|took| value(took).to_string())
            .collect::<Vec<_>>()
            .join(",")
    };
    html! {
        span id="latencies" hidden data-at=(list(|took| took.at.as_second().into())) data-took=(list(|took| took.milliseconds.into())) {}
    }
}

/// The rest of a time span as a bar that shrinks. The script updates it.
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

/// How far back a time line reaches, its heading, and the labels of its quarters.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimelineSpan {
    span: SignedDuration,
    pub(super) words: &'static str,
    quarters: [&'static str; 4],
}

/// The shortest span that shows the whole history is used, since a daemon that has just started
/// would show an empty day.
const TIMELINE_SPANS: [TimelineSpan; 4] = [
    TimelineSpan {
        span: SignedDuration::from_mins(20),
        words: "20 minutes",
        quarters: ["20 min ago", "15 min", "10 min", "5 min"],
    },
    TimelineSpan {
        span: SignedDuration::from_hours(2),
        words: "2 hours",
        quarters: ["2 h ago", "90 min", "1 h", "30 min"],
    },
    TimelineSpan {
        span: SignedDuration::from_hours(8),
        words: "8 hours",
        quarters: ["8 h ago", "6 h", "4 h", "2 h"],
    },
    TimelineSpan {
        span: SignedDuration::from_hours(24),
        words: "24 hours",
        quarters: ["24 h ago", "18 h", "12 h", "6 h"],
    },
];

/// The span of the time lines of a daemon whose history starts at `begun`.
pub(super) fn timeline_span(begun: Timestamp, now: Timestamp) -> TimelineSpan {
    let known = now.duration_since(begun);
    TIMELINE_SPANS
        .into_iter()
        .find(|reach| known <= reach.span)
        .unwrap_or(TIMELINE_SPANS[3])
}

/// The states of a scenario as coloured bands. `begun` is the start of the history.
pub(super) fn timeline(
    past: &ScenarioHistory,
    health: &Health,
    begun: Timestamp,
    now: Timestamp,
) -> Markup {
    let reach = timeline_span(begun, now);
    let start = now.saturating_sub(reach.span).unwrap_or(begun);
    let x = |at: Timestamp| {
        (at.duration_since(start).as_millis() * i128::from(WIDE) / reach.span.as_millis())
            .clamp(0, WIDE.into())
    };
    let bands = bands(&past.lines, health, begun.max(start), now);
    html! {
        svg class="timeline" viewBox={ "0 0 " (WIDE) " 40" } preserveAspectRatio="none" role="img"
            aria-label={ "States of the last " (reach.words) "; the table below lists them" } {
            rect class="unknown" width=(WIDE) height="40" {}
            @for (state, from, until) in &bands {
                rect class={ "band state-" (state) } x=(x(*from)) width=((x(*until) - x(*from)).max(2)) height="40" {
                    title { (state) " from " (minute(*from)) " to " (minute(*until)) }
                }
            }
            @for hour in 1..4 { line class="tick" x1=(hour * WIDE / 4) x2=(hour * WIDE / 4) y1="0" y2="40" {} }
        }
        p class="scale" aria-hidden="true" { @for quarter in reach.quarters { span { (quarter) } } span { "now" } }
    }
}

/// The bands from `begun` to `now`, in order. While callsheet did not run, the state is not known.
fn bands(
    lines: &[LogEntry],
    health: &Health,
    begun: Timestamp,
    now: Timestamp,
) -> Vec<(ScenarioState, Timestamp, Timestamp)> {
    let mut bands = Vec::new();
    let mut known_from = begun;
    let mut stood: Option<(ScenarioState, Timestamp)> = None;
    for line in lines {
        match line {
            LogEntry::State(turn) => {
                let turn = &turn.change;
                let before = stood.or(turn.from.map(|from| (from, known_from)));
                bands.extend(before.map(|(state, since)| (state, since, turn.at)));
                stood = turn.to.map(|to| (to, turn.at));
            }
            LogEntry::Start(start) => {
                let until = start.previous_until.unwrap_or(start.at);
                bands.extend(
                    stood
                        .take()
                        .map(|(state, since)| (state, since, until.max(since))),
                );
                known_from = known_from.max(start.at);
            }
            LogEntry::Call(_) | LogEntry::End(_) => {}
        }
    }
    let (state, since) = stood.unwrap_or((health.state, health.since));
    bands.push((state, since, now));
    let shown = bands
        .into_iter()
        .map(|(state, from, until)| (state, from.max(begun), until.max(begun)));
    shown.filter(|(_, from, until)| until > from).collect()
}
