//! Requests per second of the prepared list, against a bare server with the same bytes and headers.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::bare::Bare;
use crate::child::{Child, Daemon};
use crate::load;
use crate::raw::{self, Connection};
use crate::report::{Demand, Row, median};
use crate::scenarios::Scenarios;

const SCENARIOS: usize = 50;
const PATH: &str = "/api/v1/tools?format=openai&max_tools=0";
/// The servers run on this core, the load on the other.
const SERVER: usize = 0;
const LOAD: usize = 1;
const CONNECTIONS: usize = 16;
const ROUNDS: usize = 7;
const SPAN: Duration = Duration::from_millis(700);

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let scenarios = Scenarios::start(SCENARIOS, Duration::ZERO)?;
    let daemon = Daemon::start(Some(SERVER), &scenarios.addresses, "30s")?;
    runtime.block_on(crate::fleet::ready(&daemon))?;
    let etag = runtime.block_on(raw::once(daemon.address, "GET", PATH))?.header("etag").unwrap_or_default().to_owned();
    let cases = [
        ("the list, identity", vec![]),
        ("the list, gzip", vec![("accept-encoding", "gzip")]),
        ("304", vec![("if-none-match", etag.as_str())]),
    ];
    let mut rows = Vec::new();
    for (name, headers) in cases {
        let request = raw::request("GET", PATH, &headers);
        let answer =
            runtime.block_on(async { Connection::open(daemon.address).await?.get(request.as_bytes()).await })?;
        ensure!(answer.header("callsheet-tools") == Some("1000"), "{name}: {} {:?}", answer.status, answer.headers);
        let bare = Bare::start(SERVER, &answer)?;
        // One server under load after the other: what else the machine does meets both.
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            theirs.push(round(&bare.child, bare.address, &request)?);
            ours.push(round(&daemon.child, daemon.address, &request)?);
        }
        let shown = |rounds: &[(f64, f64)]| {
            let rate = median(&rounds.iter().map(|(rate, _)| *rate).collect::<Vec<_>>());
            let busy = median(&rounds.iter().map(|(_, busy)| *busy).collect::<Vec<_>>());
            (rate, format!("{rate:.0}/s, core {:.0} % busy", busy * 100.0))
        };
        let ((our_rate, ours), (their_rate, theirs)) = (shown(&ours), shown(&theirs));
        println!("{name} ({} bytes): {ours}; bare {theirs}", answer.body.len());
        rows.push(Row {
            figure: format!("1,000 tools as `format=openai`, {name} ({} bytes)", answer.body.len()),
            ours,
            theirs: format!("bare hyper: {theirs}"),
            value: our_rate / their_rate,
            demand: Some(Demand::AtLeast(0.8, "")),
        });
    }
    Ok(rows)
}

/// Requests per second, and how much of its core the server used.
fn round(server: &Child, address: std::net::SocketAddr, request: &str) -> Result<(f64, f64)> {
    let before = server.cpu()?;
    let found = load::put(LOAD, address, request, CONNECTIONS, SPAN)?;
    Ok((found.rate, (server.cpu()? - before) / SPAN.as_secs_f64()))
}
