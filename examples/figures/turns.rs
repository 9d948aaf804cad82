//! What a turn with eight calls side by side takes, against one call of the slowest of them.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use crate::callee::{Process, TOOL};
use crate::plan::Plan;
use crate::report::{Row, median};
use crate::{calls, load, raw_http};

/// Where the daemon and the scenario run, and where the load runs.
const OURS: usize = 0;
const LOAD: usize = 1;
/// How long each call of a turn takes in its scenario, in milliseconds.
const CALLS: [u64; 8] = [3, 20, 8, 12, 5, 17, 10, 14];
/// The most that a turn may take, in times of the slowest call, apart from [`OWN`].
const MOST: f64 = 1.2;
/// What a turn may take besides, in microseconds.
const OWN: f64 = 1_000.0;
const SPAN: Duration = Duration::from_secs(2);
const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let scenario = Process::slow_scenario(OURS)?;
    let daemon = calls::daemon(scenario.address, Vec::new(), "")?;
    let slowest = CALLS.iter().max().copied().unwrap_or_default();
    let call = json!({"tool_name": TOOL, "arguments": arguments(slowest)}).to_string();
    let one = raw_http::post("/api/v1/tools/execute", &[JSON], &call);
    let turn = raw_http::post(
        "/api/v1/turns?format=openai",
        &[JSON],
        &response().to_string(),
    );
    let span = plan.pick(SPAN / 4, SPAN);
    let mut turns = Vec::new();
    let mut calls = Vec::new();
    // The first round warms up.
    for round in 0..=plan.rounds() {
        for (request, found) in [(&turn, &mut turns), (&one, &mut calls)] {
            let measured = load::put(LOAD, daemon.address, request, 1, span)?;
            if round > 0 {
                found.push(measured.p50);
            }
        }
    }
    let name = format!(
        "a turn with {} calls side by side, less 1 ms: p50",
        CALLS.len()
    );
    let note = format!("the whole turn {:.0} us", median(&turns));
    println!(
        "{name}: {:.0} us; the slowest call alone {:.0} us; {note}",
        median(&turns) - OWN,
        median(&calls)
    );
    let ours: Vec<f64> = turns.iter().map(|turn| turn - OWN).collect();
    let row = Row::new("turns.8.p50", name, median(&ours), "us")
        .against("the slowest of its calls alone", median(&calls))
        .ratios(&ours, &calls)
        .at_most(MOST)
        .note(note);
    Ok(vec![row])
}

fn arguments(milliseconds: u64) -> Value {
    json!({"path": "src/main.rs", "first": 1, "lines": milliseconds})
}

/// A message with all the calls.
fn response() -> Value {
    let calls = CALLS.iter().enumerate().map(|(number, wait)| {
        let function = json!({"name": TOOL, "arguments": arguments(*wait).to_string()});
        json!({"id": format!("call_{number}"), "type": "function", "function": function})
    });
    json!({"role": "assistant", "content": null, "tool_calls": calls.collect::<Vec<_>>()})
}
