//! Others who merge the tools of many servers into one list, side by side, as far as
//! `benches/rivals/set-up` has installed them: how long a list of 50 upstreams takes when all are
//! well, when one is dead and when one is slow; what it costs in memory; and how soon a new tool is
//! seen. They ask the upstreams by the Model Context Protocol, callsheet asks the same ones by the
//! Tool Discovery Protocol: for each the one that it and the upstreams understand best. All are set
//! up as by default.

pub(crate) mod mcp_client;
pub(crate) mod peers;
pub(crate) mod upstreams;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;

use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::report::{Row, median};
use peers::{ALL, Asked, Peer, PeerKind};
use upstreams::Upstreams;

const COUNT: usize = 50;
/// How often each is asked at most, and at least: some take many seconds each time, and get no more
/// than this for all.
const LISTS: (usize, usize) = (3, 21);
const ENOUGH: Duration = Duration::from_secs(10);
/// How long a new tool is waited for: longer than a minute, after which callsheet asks again by
/// default.
const NEW: Duration = Duration::from_secs(75);
const START: Duration = Duration::from_secs(240);

/// What one of them took, in seconds and MB.
#[derive(Debug, Default, Clone, Copy)]
struct PeerFigures {
    start: f64,
    healthy: f64,
    dead: f64,
    slow: f64,
    /// Tools that are listed while one is dead, and while one is slow.
    tools: [usize; 2],
    memory: f64,
    /// Nothing when it was not seen in time.
    new: Option<f64>,
    /// Where it can be asked to look now.
    asked: Option<f64>,
}

pub(crate) fn run(_: &Plan) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    // The daemon chooses the same provider; without one the client cannot be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let installed = installed();
    if installed.is_empty() {
        return Ok(Vec::new());
    }
    let mut ours = PeerFigures::default();
    let mut rows = Vec::new();
    for kind in installed {
        match runtime.block_on(measure(kind)).with_context(|| kind.name()) {
            Ok(found) if kind == PeerKind::Callsheet => ours = found,
            Ok(found) => rows.extend(compare(kind, ours, found)),
            Err(error) if kind == PeerKind::Callsheet => return Err(error),
            // That a rival does not run is no failure of ours.
            Err(error) => println!("{error:#}"),
        }
    }
    Ok(rows)
}

/// Ours and those that are there; nothing where there is no other.
pub(crate) fn installed() -> Vec<PeerKind> {
    let mut installed: Vec<PeerKind> = ALL
        .into_iter()
        .filter(|kind| kind.program().is_some())
        .collect();
    if installed.len() == 1 {
        println!("rivals: none is installed (benches/rivals/set-up)");
        installed.clear();
    }
    installed
}

async fn measure(kind: PeerKind) -> Result<PeerFigures> {
    let clock = Clock::system();
    let upstreams = Upstreams::start(COUNT)?;
    let begun = clock.now();
    let peer = Peer::start(kind, Asked::ByManifest, &upstreams.addresses).await?;
    let all = COUNT * TOOLS;
    ensure!(
        peer.until(all, START).await?,
        "it never lists all: {} tools; {}",
        peer.count().await.unwrap_or_default(),
        peer.log()
    );
    let mut found = PeerFigures {
        start: begun.elapsed().as_secs_f64(),
        ..PeerFigures::default()
    };
    let (healthy, tools) = list(&peer).await;
    ensure!(tools == all, "{tools} tools of {all}");
    found.healthy = healthy;
    found.memory = peer.memory()?;

    let before = clock.now();
    upstreams.tell(1, "/change").await?;
    if peer.until(all + 1, NEW).await? {
        found.new = Some(before.elapsed().as_secs_f64());
    }
    if kind == PeerKind::Callsheet {
        let before = clock.now();
        upstreams.tell(1, "/change").await?;
        peer.refresh(1).await?;
        ensure!(
            peer.until(all + 2, NEW).await?,
            "a refresh does not show the new tool"
        );
        found.asked = Some(before.elapsed().as_secs_f64());
    }

    upstreams.tell(2, "/slow").await?;
    (found.slow, found.tools[1]) = list(&peer).await;
    upstreams.tell(2, "/quick").await?;
    upstreams.end(3).await;
    (found.dead, found.tools[0]) = list(&peer).await;
    println!("{}: {found:?}", kind.name());
    Ok(found)
}

/// The middle time of some lists from the question to the last byte, and how many tools the last
/// had; none when it was not answered. What the asker makes of the bytes is not counted.
async fn list(peer: &Peer) -> (f64, usize) {
    let mut taken = Vec::new();
    let mut tools = 0;
    let mut failed = None;
    let begun = Clock::system().now();
    while taken.len() < LISTS.0 || taken.len() < LISTS.1 && begun.elapsed() < ENOUGH {
        let start = Clock::system().now();
        let answer = peer.list().await;
        taken.push(start.elapsed().as_secs_f64());
        tools = answer
            .and_then(|list| peer.tools(&list))
            .unwrap_or_else(|error| {
                failed = Some(error);
                0
            });
    }
    if let Some(error) = failed {
        println!("a list failed: {error:#}");
    }
    (median(&taken), tools)
}

fn compare(kind: PeerKind, ours: PeerFigures, theirs: PeerFigures) -> Vec<Row> {
    let row = |id: &str, name: &str, ours: f64, theirs: f64, unit| {
        let label = format!("{COUNT} upstreams of {TOOLS} tools: {name}");
        Row::new(format!("rivals.{}.{id}", kind.id()), label, ours, unit)
            .against(kind.name_and_face(), theirs)
    };
    let tools = |at: usize| {
        format!(
            "{} tools listed, theirs {}",
            ours.tools[at], theirs.tools[at]
        )
    };
    let mut rows = vec![
        row(
            "start",
            "from start to a list of all",
            ours.start,
            theirs.start,
            "s",
        ),
        row(
            "healthy",
            "a list, all well",
            ours.healthy * 1e3,
            theirs.healthy * 1e3,
            "ms",
        ),
        row(
            "dead",
            "a list, one dead",
            ours.dead * 1e3,
            theirs.dead * 1e3,
            "ms",
        )
        .note(tools(0)),
        row(
            "slow",
            "a list, one slow (3 s)",
            ours.slow * 1e3,
            theirs.slow * 1e3,
            "ms",
        )
        .note(tools(1)),
        row(
            "memory",
            "resident memory",
            ours.memory,
            theirs.memory,
            "MB",
        ),
    ];
    let name = "until a new tool is listed";
    let asked = ours.asked.map_or_else(String::new, |asked| {
        format!("{:.0} ms when asked to refresh", asked * 1e3)
    });
    let ours = ours.new.unwrap_or(NEW.as_secs_f64());
    rows.push(if let Some(theirs) = theirs.new {
        row("new", name, ours, theirs, "s").note(asked)
    } else {
        let label = format!("{COUNT} upstreams of {TOOLS} tools: {name}");
        let never = format!(
            "{asked}; {}: not within {} s",
            kind.name_and_face(),
            NEW.as_secs()
        );
        Row::new(format!("rivals.{}.new", kind.id()), label, ours, "s").note(never)
    });
    rows
}
