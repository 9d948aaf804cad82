//! What a dead scenario and a slow one cost the others.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use callsheet::runtime::Clock;

use crate::child::Daemon;
use crate::load;
use crate::manifests::TOOLS;
use crate::raw;
use crate::report::{Demand, Row, median};
use crate::scenarios::Scenarios;

const HEALTHY: usize = 20;
const SLOW: Duration = Duration::from_secs(3);
const PATH: &str = "/api/v1/tools?format=openai&max_tools=0";
const ROUNDS: usize = 9;
const SPAN: Duration = Duration::from_millis(300);

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let healthy = Scenarios::start(HEALTHY, Duration::ZERO)?;
    let slow = Scenarios::start(1, SLOW)?;
    let mut all = healthy.addresses.clone();
    all.extend([dead()?, slow.addresses[0]]);
    let good = Daemon::start(Some(0), &healthy.addresses, "30s")?;
    runtime.block_on(crate::fleet::ready(&good))?;
    let started = Clock::system().now();
    // As configured by default.
    let bad = Daemon::start(Some(0), &all, "1s")?;
    runtime.block_on(crate::fleet::ready(&bad))?;
    let ready = started.elapsed().as_secs_f64();
    let list = runtime.block_on(raw::once(bad.address, "GET", PATH))?;
    let tools: usize = list.header("callsheet-tools").unwrap_or_default().parse()?;
    ensure!(tools == HEALTHY * TOOLS, "{tools} tools when ready");

    let request = raw::request("GET", PATH, &[]);
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(load::put(1, good.address, &request, 1, SPAN)?.p50);
        with.push(load::put(1, bad.address, &request, 1, SPAN)?.p50);
    }
    let (with, without) = (median(&with), median(&without));
    println!("p50 with a dead and a slow scenario {with:.0} us, without {without:.0} us; ready after {ready:.2} s");
    Ok(vec![
        Row {
            figure: format!("the list's p50 with a dead and a slow scenario beside {HEALTHY}"),
            ours: format!("{with:.0} us"),
            theirs: format!("all healthy: {without:.0} us"),
            value: with / without,
            demand: Some(Demand::AtMost(1.1, "")),
        },
        Row {
            figure: format!("from start to ready, with all {tools} tools of the healthy in the list"),
            ours: format!("{ready:.2} s"),
            theirs: "-".into(),
            value: ready,
            demand: Some(Demand::AtMost(1.5, " s")),
        },
    ])
}

/// An address where nobody listens.
fn dead() -> Result<SocketAddr> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}
