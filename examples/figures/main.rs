//! Prints the figures that README quotes: `cargo run --release --example callsheet-bench`.
//!
//! Each figure is a ratio of two things measured in the same run, since machines differ and are shared. Every part runs in a process of
//! its own, started from this same program: the daemon (exactly as `callsheet serve`), the scenarios it asks, the bare server and the
//! bare client that it is compared with, and the load. Names of figures as arguments run only those.
//!
//! `soak [--minutes N] [--seed N]` and `faults [--rounds N]` are no ratios and take their time, so they run only when they are named.

#![allow(clippy::print_stdout, reason = "a program that prints a table")]

mod actor;
mod bare;
mod callee;
mod calls;
mod change;
mod checker;
mod child;
mod events;
mod failing;
mod faults;
mod fleet;
mod formats;
mod load;
mod manifests;
mod network;
mod prepared;
mod raw;
mod readers;
mod report;
mod restart;
mod scenarios;
mod search;
mod soak;
mod sweep;
mod villains;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};
use report::Row;

/// Measures a figure.
type Measure = fn() -> Result<Vec<Row>>;

/// The figures by name, in the order in which they are printed.
const FIGURES: &[(&str, Measure)] = &[
    ("prepared", prepared::run),
    ("failing", failing::run),
    ("fleet", fleet::run),
    ("change", change::run),
    ("events", events::run),
    ("network", network::run),
    ("restart", restart::run),
    ("formats", formats::run),
    ("search", search::run),
    ("calls", calls::run),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("daemon", rest)) = arguments.split_first().map(|(role, rest)| (role.as_str(), rest)) {
        let command = ["callsheet".to_owned(), "serve".to_owned()];
        return callsheet::cli::run(command.into_iter().chain(rest.iter().cloned()).map(OsString::from));
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
    match arguments.split_first().map(|(role, rest)| (role.as_str(), rest)) {
        Some(("scenarios", rest)) => scenarios::serve(rest),
        Some(("bare", rest)) => bare::serve(rest),
        Some(("load", rest)) => load::run(rest),
        Some(("callee", rest)) => callee::serve(rest),
        Some(("proxy", rest)) => callee::pass_on(rest),
        Some(("waiters", rest)) => calls::wait(rest),
        Some(("sweep", rest)) => sweep::run(rest),
        Some(("readers", rest)) => readers::run(rest),
        Some(("villains", _)) => villains::serve(),
        Some(("soak", rest)) => soak::run(rest),
        Some(("faults", rest)) => faults::run(rest),
        _ => figures(arguments),
    }
}

fn figures(wanted: &[String]) -> Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| FIGURES.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        bail!("no figure is called `{unknown}`; known are {}", known.join(", "));
    }
    println!("{}\n", report::machine());
    let mut rows = Vec::new();
    for (name, figure) in FIGURES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            rows.extend(figure()?);
        }
    }
    println!("\n{}", report::table(&rows));
    Ok(())
}
