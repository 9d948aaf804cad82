//! The daemon as an MCP server: its list of 1,000 tools against a bare server that reads the POST
//! and answers the same bytes, while all upstreams are well and while one is dead and one slow; and
//! the same list, and a call, beside other programs of this kind, all before the same MCP servers
//! and set up as by default.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::child_process::Daemon;
use crate::load::Round;
use crate::manifests::TOOLS;
use crate::mcp::{self, bare};
use crate::plan::Plan;
use crate::raw_http::{self, Connection};
use crate::report::{Row, median, percentile};
use crate::rivals::installed;
use crate::rivals::mcp_client::{self, McpClient};
use crate::rivals::peers::{Asked, Peer, PeerKind};
use crate::rivals::upstreams::{CALLED, Upstreams};
use crate::serving::{Alternating, SERVER};

const COUNT: usize = 50;
/// What a list may take, in times of the bare server's.
const LIST: f64 = 1.3;
/// What a call may take, in times of a rival's.
const CALL: f64 = 1.1;
/// How often each rival is asked at most and at least, and how long for all: some take seconds.
const TURNS: (usize, usize) = (3, 200);
const ENOUGH: Duration = Duration::from_secs(10);
const START: Duration = Duration::from_secs(240);

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    // The daemon chooses the same provider; without one the client cannot be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut rows = lists(plan, &runtime)?;
    let mut ours = None;
    for kind in installed() {
        match (
            runtime.block_on(measure(kind)).with_context(|| kind.name()),
            &ours,
        ) {
            (Ok(found), None) => ours = Some(found),
            (Ok(found), Some(ours)) => rows.extend(compare(kind, ours, &found)),
            (Err(error), None) => return Err(error),
            // That a rival does not run is no failure of ours.
            (Err(error), Some(_)) => println!("{error:#}"),
        }
    }
    Ok(rows)
}

/// The list, all well and in trouble, each against a bare server.
fn lists(plan: &Plan, runtime: &Runtime) -> Result<Vec<Row>> {
    let upstreams = Upstreams::start(COUNT)?;
    let daemon = Daemon::with_tables(
        Some(SERVER),
        mcp::OFF,
        &mcp::tables(0, &upstreams.addresses)?,
    )?;
    runtime.block_on(mcp::listed(&daemon, COUNT * TOOLS))?;
    let mut rows = list(plan, runtime, &daemon, "well", "all upstreams well")?;
    runtime.block_on(trouble(&upstreams))?;
    rows.extend(list(
        plan,
        runtime,
        &daemon,
        "trouble",
        "one upstream dead and one slow (3 s)",
    )?);
    Ok(rows)
}

/// Makes one upstream slow, and ends another one.
async fn trouble(upstreams: &Upstreams) -> Result<()> {
    upstreams.tell(2, "/slow").await?;
    upstreams.end(3).await;
    Ok(())
}

fn list(
    plan: &Plan,
    runtime: &Runtime,
    daemon: &Daemon,
    id: &str,
    label: &str,
) -> Result<Vec<Row>> {
    let headers = bare::headers("tools/list", None);
    let request = raw_http::post("/mcp", &headers, &bare::message(1, "tools/list", ""));
    let answer = runtime.block_on(async {
        Connection::open(daemon.address)
            .await?
            .get(request.as_bytes())
            .await
    })?;
    let listed = mcp_client::answer(&answer.body)?["result"]["tools"]
        .as_array()
        .map_or(0, Vec::len);
    ensure!(
        answer.status == 200 && listed == COUNT * TOOLS,
        "{} with {listed} tools",
        answer.status
    );
    let both = Alternating::with_bare(plan, daemon, &request, &answer)?;
    let row = |what: &str, value: fn(&Round) -> f64| {
        let of = |rounds: &[(Round, f64)]| {
            rounds
                .iter()
                .map(|(round, _)| value(round))
                .collect::<Vec<_>>()
        };
        let ours = of(&both.ours);
        let theirs = of(&both.theirs);
        let name = format!(
            "`tools/list` of {listed} tools ({} bytes), {label}: {what}",
            answer.body.len()
        );
        println!(
            "{name} {:.0} us, bare server {:.0} us",
            median(&ours),
            median(&theirs)
        );
        let row = Row::new(
            format!("mcp-server.list.{id}.{what}"),
            name,
            median(&ours),
            "us",
        );
        row.against("bare server that reads the POST", median(&theirs))
            .ratios(&ours, &theirs)
            .at_most(LIST)
    };
    Ok(vec![
        row("p50", |round| round.p50),
        row("p99", |round| round.p99),
    ])
}

/// What one program took, in milliseconds and MB.
#[derive(Debug)]
struct ServerFigures {
    /// Lists while all is well, and while one upstream is dead and one slow.
    well: Lists,
    trouble: Lists,
    call: f64,
    memory: f64,
}

/// Times of lists.
#[derive(Debug)]
struct Lists {
    p50: f64,
    p99: f64,
    /// How many tools the last one had.
    tools: usize,
}

async fn measure(kind: PeerKind) -> Result<ServerFigures> {
    let upstreams = Upstreams::start(COUNT)?;
    let peer = Peer::start(kind, Asked::ByMcp, &upstreams.addresses).await?;
    ensure!(
        peer.until(COUNT * TOOLS, START).await?,
        "it never lists all; {}",
        peer.log()
    );
    let mut client = peer.mcp().await?;
    let (well, all) = lists_of(&mut client).await?;
    ensure!(
        well.tools >= COUNT * TOOLS,
        "{} tools of {}",
        well.tools,
        COUNT * TOOLS
    );
    let call = call(&mut client, &all).await?;
    let memory = peer.memory()?;
    trouble(&upstreams).await?;
    let (trouble, _) = lists_of(&mut client).await?;
    let found = ServerFigures {
        well,
        trouble,
        call,
        memory,
    };
    println!("{}: {found:?}", kind.name());
    Ok(found)
}

/// Whether one more turn is wanted.
fn goes_on(turns: usize, spent: Duration) -> bool {
    turns < TURNS.0 || turns < TURNS.1 && spent < ENOUGH
}

/// Times of lists to the last byte, and the last list. What the client makes of it is not counted.
async fn lists_of(client: &mut McpClient) -> Result<(Lists, Value)> {
    let begun = Clock::system().now();
    let mut times = Vec::new();
    let mut last = bytes::Bytes::new();
    while goes_on(times.len(), begun.elapsed()) {
        let start = Clock::system().now();
        last = client.request("tools/list", &json!({})).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let read = mcp_client::answer(&last)?;
    let tools = read["result"]["tools"].as_array().map_or(0, Vec::len);
    Ok((
        Lists {
            p50: median(&times),
            p99: percentile(&times, 99),
            tools,
        },
        read,
    ))
}

/// The middle time of calls of the first tool of the first upstream, whatever it is called there.
async fn call(client: &mut McpClient, list: &Value) -> Result<f64> {
    let wanted = crate::manifests::tool(0, 0);
    let mut names = list["result"]["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["name"].as_str());
    let name = names
        .find(|name| name.replace('-', "_").ends_with(&wanted))
        .context("the tool is not listed")?;
    let arguments: Value = serde_json::from_str(mcp::ARGUMENTS)?;
    let params = json!({"name": name, "arguments": arguments});
    let begun = Clock::system().now();
    let mut times = Vec::new();
    while goes_on(times.len(), begun.elapsed()) {
        let start = Clock::system().now();
        let answer = client.request("tools/call", &params).await?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
        let text = String::from_utf8_lossy(&answer);
        ensure!(text.contains(CALLED), "the call is answered {text}");
    }
    Ok(median(&times))
}

fn compare(kind: PeerKind, ours: &ServerFigures, theirs: &ServerFigures) -> Vec<Row> {
    let row = |id: &str, name: &str, ours: f64, theirs: f64, unit| {
        let label = format!("{COUNT} MCP servers of {TOOLS} tools: {name}");
        Row::new(format!("mcp-server.{}.{id}", kind.id()), label, ours, unit)
            .against(kind.name(), theirs)
    };
    let tools = format!(
        "{} tools listed, theirs {}",
        ours.trouble.tools, theirs.trouble.tools
    );
    vec![
        row(
            "list.p50",
            "`tools/list`, p50",
            ours.well.p50,
            theirs.well.p50,
            "ms",
        )
        .at_most(1.0),
        row(
            "list.p99",
            "`tools/list`, p99",
            ours.well.p99,
            theirs.well.p99,
            "ms",
        )
        .at_most(1.0),
        row(
            "trouble.p50",
            "`tools/list` with one dead and one slow (3 s), p50",
            ours.trouble.p50,
            theirs.trouble.p50,
            "ms",
        )
        .at_most(1.0)
        .note(tools),
        row(
            "call",
            "a call through it, p50",
            ours.call,
            theirs.call,
            "ms",
        )
        .at_most(CALL),
        row(
            "memory",
            "resident memory",
            ours.memory,
            theirs.memory,
            "MB",
        ),
    ]
}
