//! `GET /metrics`: counters and the state of the latest snapshot, for Prometheus.
//!
//! The counters belong to the parts of the daemon that count. All gauges are derived from one
//! snapshot at each scrape, so nothing has to be kept up to date between scrapes.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, VARY};
use jiff::Timestamp;

use crate::calls::Calls;
use crate::catalog::{CatalogEntry, Snapshot, Visibility};
use crate::metrics::{self, Family, MetricKind, MetricValue, Style};
use crate::model::{
    Finding, FindingCode, Health, ProgramCost, ScenarioName, ScenarioState, Severity, ToolId,
};
use crate::server::api::program_costs::program_costs;
use crate::server::http::error::Problem;
use crate::server::{ServerState, SharedState};

/// Largest number of tools that get series of their own.
const TOOLS: usize = 200;

/// `GET /metrics` in the format `OpenMetrics`, or in the older text format of Prometheus for
/// clients that prefer `text/plain`.
pub(in crate::server) async fn scrape(
    State(shared): State<SharedState>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let style = style(&headers);
    let tasks = shared.tasks.clone();
    let (bodies, bytes) = shared.views.kept().await;
    let snapshot = shared.reader.snapshot();
    let shown = snapshot
        .health
        .values()
        .filter(|health| has_own_series(health));
    let names = shown.map(|health| health.name.clone()).collect();
    let costs = program_costs(&shared, names).await;
    // Off the main threads, because it reads `/proc` and visits each scenario.
    let text = tasks
        .off_thread(move || {
            let mut all = families(&shared, bodies, bytes);
            all.extend(programs(&costs));
            metrics::write(all, style)
        })
        .await;
    let text = text.map_err(|error| Problem::internal(&error))?;
    let headers = [
        (CONTENT_TYPE, style.media_type()),
        (CACHE_CONTROL, "no-store"),
        (VARY, "accept"),
    ];
    Ok((headers, text).into_response())
}

/// All metrics. `bodies` is the number of prepared bodies in memory, `bytes` their size.
fn families(shared: &ServerState, bodies: u64, bytes: u64) -> Vec<Family> {
    let snapshot = shared.reader.snapshot();
    let counts = shared.engine.counts();
    let mut all = vec![build()];
    all.extend(scenarios(&snapshot));
    all.extend(catalog(&snapshot));
    all.extend(daemon(shared, &snapshot));
    all.extend(counts.fetches.families());
    all.extend(counts.listings.families());
    all.extend(shared.calls.counts().families(shared.calls.waiting()));
    all.push(circuits(&shared.calls));
    all.push(shared.calls.audit_counts());
    all.push(shared.calls.log_counts());
    if shared.calls.tells_tools_apart() {
        all.extend(tools(&shared.calls, &snapshot));
    }
    all.extend(counts.loads.families());
    all.extend(shared.views.counts().families(bodies, bytes));
    all.extend(
        shared
            .events
            .counts()
            .families(shared.events.subscribers(), shared.events.remembered()),
    );
    all.extend(shared.requests.families());
    all.extend(metrics::process::families());
    all
}

fn build() -> Family {
    Family::new(
        MetricKind::Info,
        "callsheet_build",
        "Which callsheet this is.",
    )
    .with_label("version", env!("CARGO_PKG_VERSION"), MetricValue::Fact)
}

/// The number of scenarios by state, and series for each scenario. Scenarios that wait for approval
/// or are blocked are only counted: a program on the network chooses the name it announces, and so
/// would choose the names of series. Removed scenarios are only counted too, so that they raise no
/// alarm.
fn scenarios(snapshot: &Snapshot) -> [Family; 5] {
    let gauge = |name, help| Family::new(MetricKind::Gauge, name, help);
    let mut states = gauge("callsheet_scenarios", "Scenarios that are known, by state.");
    for state in ScenarioState::ALL {
        let count = snapshot
            .health
            .values()
            .filter(|health| health.state == state)
            .count();
        states = states.with_label("state", state.as_str(), count);
    }
    let mut up = gauge(
        "callsheet_scenario_up",
        "Whether the scenario's last answers were good (it is live, stale or asleep).",
    );
    let mut incompatible = gauge(
        "callsheet_scenario_incompatible",
        "Whether the scenario speaks a protocol version out of the accepted range.",
    );
    let mut unauthorized = gauge(
        "callsheet_scenario_needs_authorization",
        "Whether the scenario answers 401 or 403, so that a credential is missing.",
    );
    let mut success = gauge(
        "callsheet_scenario_last_success_timestamp_seconds",
        "When the scenario last gave a good answer; absent when it never did.",
    );
    for health in snapshot
        .health
        .values()
        .filter(|health| has_own_series(health))
    {
        let name = health.name.as_str();
        let is_up = matches!(
            health.state,
            ScenarioState::Live | ScenarioState::Stale | ScenarioState::Asleep
        );
        up = up.with_label("scenario", name, is_up);
        incompatible = incompatible.with_label(
            "scenario",
            name,
            health.state == ScenarioState::Incompatible,
        );
        unauthorized = unauthorized.with_label(
            "scenario",
            name,
            health.state == ScenarioState::NeedsAuthorization,
        );
        if let Some(at) = health.last_success {
            success = success.with_label("scenario", name, seconds(at));
        }
    }
    [states, up, incompatible, unauthorized, success]
}

/// What the programs of scenarios cost.
fn programs(costs: &BTreeMap<ScenarioName, ProgramCost>) -> [Family; 2] {
    let mut memory = Family::new(
        MetricKind::Gauge,
        "callsheet_program_memory_bytes",
        "Memory in RAM of the processes of the scenario's program; what they share in proportion, where the system shows that.",
    );
    let mut time = Family::new(
        MetricKind::Counter,
        "callsheet_program_cpu_seconds",
        "Processor time of the processes of the scenario's program, since that was started.",
    );
    for (name, cost) in costs {
        memory = memory.with_label("scenario", name.as_str(), cost.memory_bytes);
        let seconds = cost.processor_time.as_secs_f64();
        time = time.with_label("scenario", name.as_str(), seconds);
    }
    [memory, time]
}

/// The circuit breakers that are not closed.
fn circuits(calls: &Calls) -> Family {
    let open = calls.open_circuits();
    let help = "Circuit breakers that are not closed: of scenarios that calls did not reach, and of tools that failed too often in a row.";
    let family = Family::new(MetricKind::Gauge, "callsheet_circuits_open", help);
    family
        .with_label("of", "scenario", open.scenarios)
        .with_label("of", "tool", open.tools)
}

fn has_own_series(health: &Health) -> bool {
    !matches!(
        health.state,
        ScenarioState::Pending | ScenarioState::Blocked | ScenarioState::Removed
    )
}

fn catalog(snapshot: &Snapshot) -> [Family; 4] {
    let mut withheld = Withheld::default();
    let mut published = 0;
    for entry in snapshot.catalog.entries() {
        published += withheld.count_entry(entry);
    }
    withheld.quarantined = snapshot
        .health
        .values()
        .map(|health| health.tools.quarantined)
        .sum();
    let reasons = Family::new(
        MetricKind::Gauge,
        "callsheet_tools_withheld",
        "Tools that scenarios offer and that are not in the plain list, by why: switched off, internal to their scenario, malformed, \
         their scenario is withdrawn, or it is not let in.",
    );
    [
        Family::new(
            MetricKind::Gauge,
            "callsheet_catalog_revision_timestamp_seconds",
            "When the present revision of the catalog came to be; how old it is is the time since then.",
        )
        .value(seconds(snapshot.generated_at)),
        Family::new(MetricKind::Counter, "callsheet_snapshots_published", "Snapshots that were published.")
            .value(snapshot.sequence),
        Family::new(MetricKind::Gauge, "callsheet_tools_published", "Tools in the plain list.").value(published),
        reasons
            .with_label("reason", "disabled", withheld.disabled)
            .with_label("reason", "internal", withheld.internal)
            .with_label("reason", "quarantined", withheld.quarantined)
            .with_label("reason", "withdrawn", withheld.withdrawn)
            .with_label("reason", "hidden", withheld.hidden),
    ]
}

/// The published tools that are called most. Tools that are not published, because their scenario
/// is removed or not trusted, are left out.
fn tools(calls: &Calls, snapshot: &Snapshot) -> [Family; 3] {
    let counter = |name, help| Family::new(MetricKind::Counter, name, help);
    let mut counts = counter(
        "callsheet_tool_calls",
        "Calls of the tools that are called most.",
    );
    let mut failures = counter("callsheet_tool_call_failures", "Those that failed.");
    let mut times = counter(
        "callsheet_tool_call_seconds",
        "How long those of them that were sent took together, waiting for their turn included.",
    );
    let mut usages = calls.usages();
    usages.sort_unstable_by(|(a, one), (b, other)| {
        other.calls.cmp(&one.calls).then_with(|| a.cmp(b))
    });
    let listed = |id: &ToolId| {
        let entry = snapshot
            .catalog
            .entry(&id.scenario)
            .filter(|entry| entry.is_published());
        entry.is_some_and(|entry| entry.listed.iter().any(|tool| tool.id.tool == id.tool))
    };
    for (id, usage) in usages.iter().filter(|(id, _)| listed(id)).take(TOOLS) {
        let labels = vec![
            ("scenario", id.scenario.to_string()),
            ("tool", id.tool.to_string()),
        ];
        counts = counts.sample(labels.clone(), usage.calls);
        failures = failures.sample(labels.clone(), usage.failed());
        times = times.sample(labels, usage.total.as_secs_f64());
    }
    [counts, failures, times]
}

/// The number of tools that are not in the plain list, by reason.
#[derive(Debug, Default)]
struct Withheld {
    disabled: usize,
    internal: usize,
    quarantined: usize,
    withdrawn: usize,
    hidden: usize,
}

impl Withheld {
    /// Adds the tools of a scenario. Returns how many of them are in the list.
    fn count_entry(&mut self, entry: &CatalogEntry) -> usize {
        let all = entry.tools.len();
        match entry.visibility {
            Visibility::Withdrawn(_) => self.withdrawn += all,
            Visibility::Hidden(_) => self.hidden += all,
            Visibility::Published => {
                let listed = entry.listed.len();
                if listed < all {
                    let disabled = entry
                        .tools
                        .iter()
                        .filter(|tool| !tool.effective.enabled)
                        .count();
                    self.disabled += disabled;
                    self.internal += all - listed - disabled;
                }
                return listed;
            }
        }
        0
    }
}

/// The state of the daemon itself.
fn daemon(shared: &ServerState, snapshot: &Snapshot) -> [Family; 7] {
    let gauge = |name, help| Family::new(MetricKind::Gauge, name, help);
    let ready = gauge(
        "callsheet_ready",
        "Whether every configured scenario was polled since the start.",
    );
    let isolated = gauge(
        "callsheet_isolated",
        "Whether so many scenarios failed at once that the daemon considers itself isolated.",
    );
    let writable = gauge(
        "callsheet_state_writable",
        "Whether what has to outlive the process can be stored.",
    );
    let mut findings = gauge(
        "callsheet_findings",
        "Open findings of sources, manifests and the state, by severity; those of the merge are not counted.",
    );
    for severity in [Severity::Info, Severity::Warning, Severity::Error] {
        let count = snapshot
            .findings
            .iter()
            .filter(|finding| finding.code.severity() == severity)
            .count();
        findings = findings.with_label("severity", severity_name(severity), count);
    }
    [
        ready.value(shared.readiness.awaited().is_empty()),
        isolated.value(snapshot.isolated.is_some()),
        writable.value(!snapshot.findings.iter().any(is_of_the_store)),
        findings,
        gauge(
            "callsheet_held_bytes",
            "Bytes that are held for clients: bodies, calls that wait, turns, results, answers being written.",
        )
        .value(shared.calls.held().reserved()),
        gauge("callsheet_held_bytes_limit", "The most bytes that may be held for clients (`server.held_bytes`).")
            .value(shared.calls.held().limit()),
        Family::new(
            MetricKind::Counter,
            "callsheet_long_bodies",
            "How often a body over 64 KiB was masked, read or written beside the threads that serve requests.",
        )
        .value(shared.tasks.long_bodies()),
    ]
}

/// Whether the finding says that the state store cannot be written. For a single scenario this code
/// only means that too many writes were waiting; the next good answer of the scenario fixes that.
fn is_of_the_store(finding: &Finding) -> bool {
    finding.code == FindingCode::StateFailed && finding.scenario.is_none()
}

fn severity_name(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "info",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// Seconds since 1970.
fn seconds(at: Timestamp) -> f64 {
    at.as_duration().as_secs_f64()
}

/// `OpenMetrics`, unless the client prefers `text/plain` (RFC 9110 section 12.5.1).
fn style(headers: &HeaderMap) -> Style {
    let open = weight(headers, "application", "openmetrics-text");
    let plain = weight(headers, "text", "plain");
    if plain > open {
        Style::Plain
    } else {
        Style::OpenMetrics
    }
}

/// The weight of a media type in thousandths, from the most specific range that covers it; 0 if
/// none does. 1000 without an `Accept` header.
fn weight(headers: &HeaderMap, kind: &str, subtype: &str) -> u16 {
    if !headers.contains_key(ACCEPT) {
        return 1_000;
    }
    let lines = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok());
    let ranges = lines.flat_map(|line| line.split(',')).filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (of, under) = parts.next()?.split_once('/')?;
        let exact = match (of, under) {
            ("*", "*") => 0,
            (of, "*") if of.eq_ignore_ascii_case(kind) => 1,
            (of, under) if of.eq_ignore_ascii_case(kind) && under.eq_ignore_ascii_case(subtype) => {
                2
            }
            _ => return None,
        };
        let weight =
            parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        // A weight that cannot be parsed counts as left out.
        let weight = weight
            .and_then(crate::server::http::content_coding::parse_qvalue)
            .unwrap_or(1_000);
        Some((exact, weight))
    });
    ranges.max().map_or(0, |(_, weight)| weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_are_plain_text_where_accept_prefers_it() {
        let style = |accept: &'static str| {
            style(&HeaderMap::from_iter([(ACCEPT, accept.parse().unwrap())]))
        };
        for accept in [
            "*/*",
            "",
            "application/openmetrics-text",
            "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
            "text/html, */*;q=0.8",
            "image/png",
        ] {
            assert_eq!(style(accept), Style::OpenMetrics, "{accept}");
        }
        for accept in [
            "text/plain",
            "text/*",
            "text/plain;version=0.0.4, */*;q=0.1",
            "application/openmetrics-text;q=0, */*",
            "TEXT/Plain ; Q=1, application/openmetrics-text;q=0.999",
        ] {
            assert_eq!(style(accept), Style::Plain, "{accept}");
        }
        assert_eq!(super::style(&HeaderMap::new()), Style::OpenMetrics);
    }
}
