//! MCP servers as scenarios: the first whole list of 50 child processes and 50 servers over HTTP
//! against a bare loop, a change of a list until it is seen, a call against a bare hop, and what a
//! child process costs in memory.

pub(crate) mod bare;
pub(crate) mod servers;

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::callee::Process;
use crate::child_process::{Child, Daemon};
use crate::manifests::{self, TOOLS};
use crate::plan::Plan;
use crate::raw_http::{self, Connection};
use crate::report::{Row, median, percentile};
use crate::{daemon_list, load};
use servers::{HttpServers, LATER};

/// Child processes, and as many servers over HTTP.
const COUNT: usize = 50;
/// What a call is made with.
pub(crate) const ARGUMENTS: &str = r#"{"argument_0":"src/main.rs","argument_1":40}"#;
/// Changes of the list of each kind of server.
const CHANGES: usize = 40;
/// Where what is measured runs together with the server that is called, and where the load runs.
const OURS: usize = 0;
const LOAD: usize = 1;
const SPAN: Duration = Duration::from_secs(2);
/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(60);
/// What was needed to get somewhere may take a moment to be given back.
const SETTLED: Duration = Duration::from_secs(3);
/// No source but the configuration.
pub(crate) const OFF: &str = "discovery.mdns.enabled = false\ndiscovery.vrooli.enabled = false\nserver.ready_timeout = \"60s\"\n";

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let mut rows = vec![first_list(plan, &runtime)?];
    rows.extend(changes(plan, &runtime)?);
    rows.extend(calls(plan, &runtime)?);
    rows.push(memory(&runtime)?);
    Ok(rows)
}

/// The tables of the configuration for child processes with the numbers from 0 on, and for these
/// addresses after them.
pub(crate) fn tables(programs: usize, addresses: &[SocketAddr]) -> Result<String> {
    let mut text = String::new();
    let program = std::env::current_exe()?.display().to_string();
    for at in 0..programs {
        let args = servers::child_arguments(at);
        writeln!(
            text,
            "[[scenarios]]\nname = \"{}\"\ncommand = {program:?}\nargs = {args:?}",
            manifests::name(at)
        )?;
    }
    for (at, address) in (programs..).zip(addresses) {
        writeln!(
            text,
            "[[scenarios]]\nname = \"{}\"\nurl = \"http://{address}/mcp\"",
            manifests::name(at)
        )?;
    }
    Ok(text)
}

/// Waits until so many tools are listed.
pub(crate) async fn listed(daemon: &Daemon, tools: usize) -> Result<()> {
    let clock = Clock::system();
    let request = raw_http::request("GET", daemon_list::PATH, &[]);
    let end = clock.now() + PATIENCE;
    loop {
        let begun = Connection::open(daemon.address)
            .await?
            .begin(request.as_bytes())
            .await?;
        let count = begun
            .answer
            .header("callsheet-tools")
            .unwrap_or_default()
            .to_owned();
        if count == tools.to_string() {
            return Ok(());
        }
        ensure!(clock.now() < end, "{count} tools are listed, not {tools}");
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// From the start of the process to the whole list, against a loop that greets and lists the same
/// servers.
fn first_list(plan: &Plan, runtime: &Runtime) -> Result<Row> {
    let over_http = HttpServers::start(None, COUNT, COUNT)?;
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    // The first round warms up.
    for round in 0..=plan.rounds() {
        let start = Clock::system().now();
        let daemon = Daemon::with_tables(None, OFF, &tables(COUNT, &over_http.addresses)?)?;
        runtime.block_on(listed(&daemon, 2 * COUNT * TOOLS))?;
        let taken = start.elapsed().as_secs_f64() * 1e3;
        drop(daemon);
        let mut arguments = vec!["play-mcp-loop".to_owned()];
        arguments.extend((0..COUNT).map(|at| at.to_string()));
        arguments.extend(over_http.addresses.iter().map(SocketAddr::to_string));
        let start = Clock::system().now();
        let mut bare = Child::start(None, &arguments)?;
        ensure!(
            bare.line()? == format!("listed {}", 2 * COUNT),
            "the bare loop failed"
        );
        let bare_taken = start.elapsed().as_secs_f64() * 1e3;
        if round > 0 {
            ours.push(taken);
            theirs.push(bare_taken);
        }
    }
    let name = format!(
        "{COUNT} child processes and {COUNT} MCP servers over HTTP, {TOOLS} tools each: from process start to the first whole list"
    );
    println!(
        "{name}: {:.0} ms, bare loop {:.0} ms",
        median(&ours),
        median(&theirs)
    );
    let row =
        Row::new("mcp.first_list", name, median(&ours), "ms").against("bare loop", median(&theirs));
    Ok(row.ratios(&ours, &theirs).at_most(1.5))
}

/// From the moment a server signals a change to the first byte of the new list.
fn changes(plan: &Plan, runtime: &Runtime) -> Result<[Row; 2]> {
    let over_http = HttpServers::start(None, COUNT, COUNT)?;
    let daemon = Daemon::with_tables(None, OFF, &tables(COUNT, &over_http.addresses)?)?;
    runtime.block_on(listed(&daemon, 2 * COUNT * TOOLS))?;
    // Greeted, listed and followed: a change is heard from here on.
    std::thread::sleep(SETTLED);
    let count = plan.pick(CHANGES / 4, CHANGES);
    let measure = |id: &str, label: &str, first: usize| {
        let times = (first..first + count).map(|at| runtime.block_on(change(&daemon, at)));
        let times = times.collect::<Result<Vec<_>>>()?;
        let p50 = percentile(&times, 50);
        let p99 = percentile(&times, 99);
        let name = format!(
            "`list_changed` of one of {} MCP servers, {label}, to the new list: p50",
            2 * COUNT
        );
        println!("{name} {p50:.1} ms, p99 {p99:.1} ms");
        let row = Row::new(format!("mcp.change.{id}"), name, p50, "ms").at_most(50.0);
        anyhow::Ok(row.note(format!("p99 {p99:.1} ms, {count} changes")))
    };
    Ok([
        measure("child", "a child process", 0)?,
        measure("http", "over HTTP", COUNT)?,
    ])
}

/// Lets one server add a tool; the milliseconds from its signal until it is listed.
async fn change(daemon: &Daemon, at: usize) -> Result<f64> {
    let clock = Clock::system();
    let called = call(daemon.address, &manifests::tool(at, 1)).await?;
    ensure!(called.status == 200, "{}", called.status);
    let path = format!("{}?scenario={}", daemon_list::PATH, manifests::name(at));
    let end = clock.now() + PATIENCE;
    let mut connection = Connection::open(daemon.address).await?;
    loop {
        let list = connection
            .get(raw_http::request("GET", &path, &[]).as_bytes())
            .await?;
        let seen = clock.wall().as_microsecond();
        let list: Value = serde_json::from_slice(&list.body)?;
        let mut names = list["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str());
        if let Some(signalled) = names.find_map(|name| name.strip_prefix(LATER)) {
            #[expect(clippy::cast_precision_loss, reason = "some milliseconds")]
            return Ok((seen - signalled.parse::<i64>()?) as f64 / 1e3);
        }
        ensure!(
            clock.now() < end,
            "the new tool of {} is not listed",
            manifests::name(at)
        );
        clock.sleep(Duration::from_millis(1)).await;
    }
}

fn call_request(tool: &str) -> String {
    let body = format!(r#"{{"tool_name":"{tool}","arguments":{ARGUMENTS}}}"#);
    raw_http::post(
        "/api/v1/tools/execute",
        &[("content-type", "application/json")],
        &body,
    )
}

async fn call(daemon: SocketAddr, tool: &str) -> Result<raw_http::RawAnswer> {
    Connection::open(daemon)
        .await?
        .get(call_request(tool).as_bytes())
        .await
}

/// A call over HTTP and one to a child process, each against a program that does the same hop and
/// nothing else.
fn calls(plan: &Plan, runtime: &Runtime) -> Result<Vec<Row>> {
    let over_http = HttpServers::start(Some(OURS), COUNT, 1)?;
    let [server] = over_http.addresses[..] else {
        anyhow::bail!("no server")
    };
    let daemon = Daemon::with_tables(Some(OURS), OFF, &tables(COUNT, &over_http.addresses)?)?;
    runtime.block_on(listed(&daemon, (COUNT + 1) * TOOLS))?;

    let tool = manifests::tool(COUNT, 0);
    let proxy = Process::proxy(OURS, server)?;
    let members = format!(r#""name":"{tool}","arguments":{ARGUMENTS},"#);
    let body = bare::message(1, "tools/call", &members);
    let request = raw_http::post("/mcp", &bare::headers("tools/call", Some(&tool)), &body);
    let [ours, theirs] = [
        (daemon.address, call_request(&tool)),
        (proxy.address, request),
    ];
    let mut rows = compare(
        plan,
        "http",
        "over HTTP",
        "bare reverse proxy",
        &ours,
        &theirs,
    )?;

    let tool = manifests::tool(0, 0);
    let mut hop = Child::start(
        Some(OURS),
        &["play-mcp-hop".to_owned(), "0".to_owned(), tool.clone()],
    )?;
    let address = hop.line()?.parse().context("the hop has no address")?;
    let [ours, theirs] = [
        (daemon.address, call_request(&tool)),
        (address, raw_http::post("/", &[], "{}")),
    ];
    rows.extend(compare(
        plan,
        "child",
        "to a child process",
        "bare hop (one line there and back)",
        &ours,
        &theirs,
    )?);
    Ok(rows)
}

type Asked = (SocketAddr, String);

fn compare(
    plan: &Plan,
    id: &str,
    label: &str,
    against: &str,
    ours: &Asked,
    theirs: &Asked,
) -> Result<Vec<Row>> {
    let span = plan.pick(SPAN / 4, SPAN);
    let mut rows = Vec::new();
    for (address, request) in [ours, theirs] {
        let answer = Runtime::new()?.block_on(async {
            Connection::open(*address)
                .await?
                .get(request.as_bytes())
                .await
        })?;
        let text = String::from_utf8_lossy(&answer.body);
        ensure!(
            answer.status == 200 && text.contains("fn main()"),
            "{}: {text}",
            answer.status
        );
    }
    for connections in [1, 32] {
        let mut found = [Vec::new(), Vec::new()];
        // The first round warms up.
        for round in 0..=plan.rounds() {
            for (found, (address, request)) in found.iter_mut().zip([ours, theirs]) {
                let p50 = load::put(LOAD, *address, request, connections, span)?.p50;
                if round > 0 {
                    found.push(p50);
                }
            }
        }
        let [ours, theirs] = found;
        let name = format!("a call of an MCP server {label}, {connections} at once: p50");
        println!(
            "{name} {:.0} us, {against} {:.0} us",
            median(&ours),
            median(&theirs)
        );
        let row = Row::new(
            format!("mcp.call.{id}.{connections}"),
            name,
            median(&ours),
            "us",
        );
        rows.push(
            row.against(against, median(&theirs))
                .ratios(&ours, &theirs)
                .at_most(2.0),
        );
    }
    Ok(rows)
}

/// What the daemon holds for a child process and its 20 tools.
fn memory(runtime: &Runtime) -> Result<Row> {
    let held = |programs: usize| {
        let daemon = Daemon::with_tables(None, OFF, &tables(programs, &[])?)?;
        runtime.block_on(listed(&daemon, programs * TOOLS))?;
        std::thread::sleep(SETTLED);
        daemon.child.memory("VmRSS")
    };
    let without = held(0)?;
    let with = held(COUNT)?;
    #[expect(clippy::cast_precision_loss, reason = "fifty")]
    let each = (with - without) * 1e3 / COUNT as f64;
    let name = format!(
        "resident memory of the daemon for each of {COUNT} child processes of {TOOLS} tools"
    );
    println!("{name}: {each:.0} KB");
    let note = format!("{without:.1} MB without, {with:.1} MB with them");
    Ok(Row::new("mcp.memory", name, each, "KB")
        .at_most(300.0)
        .note(note))
}
