//! Prints the figures of `docs/benchmarks.md`: `cargo run --release --example callsheet-bench`.
//!
//! Each figure is a ratio of two things measured in the same run, since machines differ and are
//! shared. Every part runs in a process of its own, started from this same program: the daemon
//! (exactly as `callsheet serve`), the scenarios it asks, the bare server and the bare client that
//! it is compared with, and the load. Names of figures as arguments run only those; `--quick` takes
//! some minutes less, `--json FILE` writes what `benches/compare` reads. While figures are taken,
//! `guard` compares what the daemon lists with the truth: a wrong answer fails the run.
//!
//! `soak [--minutes N] [--seed N]` and `faults [--rounds N]` are no ratios and take their time, so
//! they run only when they are named. So does `signatures FOLDER`, which needs real tools.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

mod bare_loop;
mod bare_server;
mod callee;
mod calls;
mod change_latency;
mod changing_scenario;
mod checker;
mod child_process;
mod daemon_list;
mod events;
mod faults;
mod faulty_scenario;
mod formats;
mod health;
mod hostile_callers;
mod hostile_mcp;
mod hostile_scenarios;
mod list_check;
mod load;
mod manifests;
mod mcp;
mod mcp_server;
mod memory;
mod merge;
mod network;
mod plan;
mod raw_http;
mod readers;
mod report;
mod rivals;
mod scenarios;
mod search;
mod search_mode;
mod serving;
mod signatures;
mod sleeping;
mod soak;
mod start;
mod sweep;
mod truth_guard;
mod turns;
mod unchanged_answers;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail, ensure};
use plan::Plan;
use report::{Failed, Report, Row};

/// Measures a figure.
type Measure = fn(&Plan) -> Result<Vec<Row>>;

/// The figures by name, in the order in which they are printed.
const FIGURES: &[(&str, Measure)] = &[
    ("serving", serving::run),
    ("health", health::run),
    ("change", change_latency::run),
    ("merge", merge::run),
    ("same", unchanged_answers::run),
    ("sweep", sweep::run),
    ("memory", memory::run),
    ("start", start::run),
    ("events", events::run),
    ("network", network::run),
    ("formats", formats::run),
    ("search", search::run),
    ("search-mode", search_mode::run),
    ("calls", calls::run),
    ("turns", turns::run),
    ("mcp", mcp::run),
    ("sleeping", sleeping::run),
    ("mcp-server", mcp_server::run),
    ("rivals", rivals::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("daemon", rest)) = arguments
        .split_first()
        .map(|(role, rest)| (role.as_str(), rest))
    {
        let command = ["callsheet".to_owned(), "serve".to_owned()];
        return callsheet::cli::run(
            command
                .into_iter()
                .chain(rest.iter().cloned())
                .map(OsString::from),
        );
    }
    match play(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The role that the first argument names; without one, all figures.
fn play(arguments: &[String]) -> Result<()> {
    match arguments
        .split_first()
        .map(|(role, rest)| (role.as_str(), rest))
    {
        Some(("play-scenarios", rest)) => scenarios::serve(rest),
        Some(("play-bare", rest)) => bare_server::serve(rest),
        Some(("play-loop", rest)) => bare_loop::run(rest),
        Some(("play-load", rest)) => load::run(rest),
        Some(("play-callee", rest)) => callee::serve(rest),
        Some(("play-proxy", rest)) => callee::pass_on(rest),
        Some(("play-waiters", rest)) => calls::wait(rest),
        Some(("play-readers", rest)) => readers::run(rest),
        Some(("play-upstreams", rest)) => rivals::upstreams::serve(rest),
        Some(("play-mcp-child", rest)) => mcp::servers::play_child(rest),
        Some(("play-mcp-servers", rest)) => mcp::servers::play_servers(rest),
        Some(("play-mcp-loop", rest)) => mcp::bare::play_loop(rest),
        Some(("play-mcp-hop", rest)) => mcp::bare::play_hop(rest),
        Some(("play-hostile-scenarios", _)) => hostile_scenarios::serve(),
        Some(("play-callers", rest)) => hostile_callers::run(rest),
        Some(("--help" | "-h" | "help", _)) => {
            println!("{}", help());
            Ok(())
        }
        Some(("soak", rest)) => soak::run(rest),
        Some(("faults", rest)) => faults::run(rest),
        Some(("signatures", rest)) => signatures::run(rest),
        _ => figures(&Plan::read(arguments)?, arguments),
    }
}

/// How it is called.
fn help() -> String {
    let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
    format!(
        "callsheet-bench {}\n       callsheet-bench soak [--minutes N] [--seed N]\n       callsheet-bench faults [--rounds N]\n       callsheet-bench signatures FOLDER\n\nFigures: {}; all when none is named.",
        plan::USAGE,
        names.join(", ")
    )
}

/// A figure that fails costs only itself, but the run.
fn figures(plan: &Plan, arguments: &[String]) -> Result<()> {
    if let Some(unknown) = plan
        .figures
        .iter()
        .find(|name| FIGURES.iter().all(|(known, _)| known != name))
    {
        let known: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        bail!(
            "no figure is called `{unknown}`; known are {}",
            known.join(", ")
        );
    }
    let mut report = Report::new(
        format!("callsheet-bench {}", arguments.join(" "))
            .trim()
            .to_owned(),
    );
    println!("{}\n", report::machine());
    for (name, figure) in FIGURES {
        if !plan.figures.is_empty() && !plan.figures.iter().any(|wanted| wanted == name) {
            continue;
        }
        match figure(plan) {
            Ok(rows) => report.rows.extend(rows),
            Err(error) => {
                println!("{name} failed: {error:#}");
                report.failed.push(Failed {
                    figure: name,
                    why: format!("{error:#}"),
                });
            }
        }
        // What is there is kept, whatever becomes of the rest.
        if let Some(file) = &plan.json {
            std::fs::write(file, serde_json::to_string_pretty(&report)?)?;
        }
    }
    println!("\n{}", report.markdown());
    if let Some(file) = &plan.readme {
        report.quote(file)?;
    }
    ensure!(
        report.failed.is_empty(),
        "{} figures failed",
        report.failed.len()
    );
    Ok(())
}
