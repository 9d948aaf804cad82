//! What dead scenarios and slow ones cost the readers of the list, while all are asked every
//! second: two daemons with the same list, of which one has a tenth of its scenarios dead and a
//! tenth slow.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;

use crate::child_process::Daemon;
use crate::manifests::{self, TOOLS};
use crate::plan::Plan;
use crate::raw_http;
use crate::report::Row;
use crate::scenarios::Scenarios;
use crate::serving::{self, Alternating, ListCase};
use crate::truth_guard::TruthGuard;
use crate::{daemon_list, list_check};

/// Scenarios that answer, the slow ones at the end.
const GOOD: usize = 90;
const TENTH: usize = 10;
const SLOW: Duration = Duration::from_secs(3);
/// Far more often than by default, so that a short time has many asks.
const INTERVAL: Duration = Duration::from_secs(1);
const SETTINGS: &str = "refresh.min_interval = \"1s\"\nrefresh.max_interval = \"1s\"\n";

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let quick = Scenarios::start(GOOD, Duration::ZERO)?;
    let slow = Scenarios::some(GOOD - TENTH, TENTH, SLOW, TOOLS)?;
    let dead: Vec<SocketAddr> = (0..TENTH).map(|_| nobody()).collect::<Result<_>>()?;
    let names = (GOOD..).map(manifests::name);
    let mut faulty: Vec<_> = quick
        .named()
        .into_iter()
        .take(GOOD - TENTH)
        .chain(slow.named())
        .collect();
    faulty.extend(names.zip(dead));
    // Each daemon has watched scenarios of its own: the lists have the same names.
    let guards = runtime
        .block_on(async { anyhow::Ok([TruthGuard::start().await?, TruthGuard::start().await?]) })?;
    let [of_good, of_bad] = guards;
    let good = Daemon::start(Some(0), &of_good.beside(quick.named()), "30s", SETTINGS)?;
    runtime.block_on(daemon_list::ready(&good))?;
    let started = Clock::system().now();
    // As configured by default.
    let bad = Daemon::start(Some(0), &of_bad.beside(faulty), "1s", SETTINGS)?;
    runtime.block_on(daemon_list::ready(&bad))?;
    let ready = started.elapsed().as_secs_f64();
    let early = runtime.block_on(raw_http::once(bad.address, "GET", daemon_list::PATH))?;
    let early: usize = early
        .header("callsheet-tools")
        .unwrap_or_default()
        .parse()?;
    ensure!(early >= (GOOD - TENTH) * TOOLS, "{early} tools when ready");
    let tools = GOOD * TOOLS + TruthGuard::tools();
    let guarded = runtime.block_on(async {
        let end = started + SLOW * 3;
        while daemon_list::begun(&bad, tools).await.is_err() && Clock::system().now() < end {
            Clock::system().sleep(Duration::from_millis(20)).await;
        }
        for daemon in [&good, &bad] {
            list_check::check(
                &daemon_list::whole(daemon, tools).await?.body,
                0..GOOD,
                TOOLS,
                |_| 0,
            )?;
        }
        anyhow::Ok([
            of_good.watch(good.address, INTERVAL, false),
            of_bad.watch(bad.address, INTERVAL, false),
        ])
    })?;

    let mut rows = Vec::new();
    let tag = "\"of another list\"";
    for (name, header) in [
        ("identity", ("accept-encoding", "identity")),
        ("gzip", ("accept-encoding", "gzip")),
    ] {
        let request =
            raw_http::request("GET", daemon_list::PATH, &[header, ("if-none-match", tag)]);
        let mut both = Alternating::default();
        for _ in 0..plan.rounds() * 2 {
            both.theirs
                .push(serving::round(plan, &good.child, good.address, &request)?);
            both.ours
                .push(serving::round(plan, &bad.child, bad.address, &request)?);
        }
        let case = ListCase {
            size: "",
            name,
            bytes: 0,
            least: 0.95,
            most: 1.05,
        };
        let label = format!("100 scenarios, 10 dead and 10 slow (3 s), the list as {name}");
        rows.extend(both.rows(&format!("health.{name}"), &label, "all healthy", &case));
    }
    runtime.block_on(async {
        for guard in guarded {
            guard.end().await?;
        }
        for daemon in [&good, &bad] {
            list_check::check(
                &daemon_list::whole(daemon, tools).await?.body,
                0..GOOD,
                TOOLS,
                |_| 0,
            )?;
        }
        anyhow::Ok(())
    })?;
    let label = "from start to ready with those, the tools of all that are neither in the list";
    rows.push(Row::new("health.ready", label, ready, "s").at_most(1.5));
    Ok(rows)
}

/// An address where nobody listens.
fn nobody() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
