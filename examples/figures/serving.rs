//! The prepared list, small and large, in each coding, against a bare server with the same bytes
//! and headers. The servers run on one core, the load on the other; rounds of the two alternate, so
//! that what else the machine does meets both.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::runtime::Runtime;

use crate::bare_server::BareServer;
use crate::child_process::{Child, Daemon};
use crate::load::{self, Round};
use crate::manifests::TOOLS;
use crate::plan::Plan;
use crate::raw_http::{self, Connection, RawAnswer};
use crate::report::{Row, median};
use crate::scenarios::Scenarios;
use crate::{daemon_list, list_check};

/// Lists by their size: of how many scenarios.
const SIZES: [(&str, usize); 2] = [("1,000 tools", 50), ("20,000 tools", 1_000)];
/// The rate that is wanted, and the p99 that is allowed, in times of the bare server's.
const LEAST: f64 = 0.85;
const MOST: f64 = 1.5;
/// The codings that are served.
const CODINGS: [&str; 4] = ["identity", "gzip", "br", "zstd"];
/// The servers run on this core, the load on the other.
pub(crate) const SERVER: usize = 0;
const LOAD: usize = 1;
const CONNECTIONS: usize = 16;

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = Runtime::new()?;
    let mut rows = Vec::new();
    for (size, scenarios) in SIZES {
        let fleet = Scenarios::start(scenarios, Duration::ZERO)?;
        let tools = TOOLS;
        let daemon = Daemon::start(Some(SERVER), &fleet.named(), "60s", "")?;
        runtime.block_on(daemon_list::ready(&daemon))?;
        let list = runtime.block_on(daemon_list::whole(&daemon, scenarios * tools))?;
        list_check::check(&list.body, 0..scenarios, tools, |_| 0)?;
        for coding in CODINGS {
            let (request, answer) =
                runtime.block_on(ask(&daemon, &[("accept-encoding", coding)]))?;
            ensure!(
                plain(&answer)? == list.body,
                "{size} as {coding} is another list"
            );
            let case = ListCase {
                size,
                name: coding,
                bytes: answer.body.len(),
                least: LEAST,
                most: MOST,
            };
            rows.extend(case.measure(plan, &daemon, &request, &answer)?);
        }
        let tag = list.header("etag").context("no tag")?;
        let (request, answer) = runtime.block_on(ask(&daemon, &[("if-none-match", tag)]))?;
        ensure!(answer.status == 304, "{}", answer.status);
        let case = ListCase {
            size,
            name: "304",
            bytes: 0,
            least: LEAST,
            most: MOST,
        };
        rows.extend(case.measure(plan, &daemon, &request, &answer)?);
        let after = runtime.block_on(daemon_list::whole(&daemon, scenarios * tools))?;
        ensure!(
            after.body == list.body,
            "the list changed though nothing did"
        );
    }
    Ok(rows)
}

async fn ask(daemon: &Daemon, headers: &[(&str, &str)]) -> Result<(String, RawAnswer)> {
    let request = raw_http::request("GET", daemon_list::PATH, headers);
    let answer = Connection::open(daemon.address)
        .await?
        .get(request.as_bytes())
        .await?;
    Ok((request, answer))
}

/// The body without its coding.
fn plain(answer: &RawAnswer) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    match answer.header("content-encoding") {
        None => body.clone_from(&answer.body),
        Some("gzip") => {
            _ = flate2::read::GzDecoder::new(&answer.body[..]).read_to_end(&mut body)?;
        }
        Some("br") => {
            _ = brotli::Decompressor::new(&answer.body[..], 1 << 12).read_to_end(&mut body)?;
        }
        Some("zstd") => body = zstd::decode_all(&answer.body[..])?,
        Some(other) => anyhow::bail!("nobody asked for {other}"),
    }
    Ok(body)
}

/// One way of asking for a list.
pub(crate) struct ListCase {
    pub(crate) size: &'static str,
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    /// How much of the rate is wanted, and how much more time is allowed.
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl ListCase {
    fn measure(
        &self,
        plan: &Plan,
        daemon: &Daemon,
        request: &str,
        answer: &RawAnswer,
    ) -> Result<[Row; 2]> {
        let both = Alternating::with_bare(plan, daemon, request, answer)?;
        let Self {
            size, name, bytes, ..
        } = self;
        let id = format!(
            "serving.{}.{name}",
            size.replace(',', "").replace(" tools", "")
        );
        let name = format!(
            "list of {size}, {name}{}",
            if *bytes > 0 {
                format!(" ({bytes} bytes)")
            } else {
                String::new()
            }
        );
        Ok(both.rows(&id, &name, "bare hyper-util", self))
    }
}

/// Rounds of two servers in turns.
#[derive(Default)]
pub(crate) struct Alternating {
    /// What the load found, and how much of its core the server used.
    pub(crate) ours: Vec<(Round, f64)>,
    pub(crate) theirs: Vec<(Round, f64)>,
}

impl Alternating {
    /// The daemon, and a bare server that gives the same answer.
    pub(crate) fn with_bare(
        plan: &Plan,
        daemon: &Daemon,
        request: &str,
        answer: &RawAnswer,
    ) -> Result<Self> {
        let bare = BareServer::start(SERVER, answer)?;
        let mut both = Self::default();
        // Short turns, now one first and now the other: the machine's own ups and downs last longer
        // than a turn.
        for at in 0..plan.rounds() {
            let ours_first = at % 2 == 1;
            for ours in [ours_first, !ours_first] {
                let (server, address) = if ours {
                    (&daemon.child, daemon.address)
                } else {
                    (&bare.child, bare.address)
                };
                let found = round(plan, server, address, request)?;
                if ours {
                    both.ours.push(found);
                } else {
                    both.theirs.push(found);
                }
            }
        }
        Ok(both)
    }

    pub(crate) fn rows(&self, id: &str, name: &str, against: &str, case: &ListCase) -> [Row; 2] {
        let of = |rounds: &[(Round, f64)], value: fn(&Round) -> f64| -> Vec<f64> {
            rounds.iter().map(|(round, _)| value(round)).collect()
        };
        let busy = |rounds: &[(Round, f64)]| {
            100.0 * median(&rounds.iter().map(|(_, busy)| *busy).collect::<Vec<_>>())
        };
        let both = |value: fn(&Round) -> f64| (of(&self.ours, value), of(&self.theirs, value));
        let (our_rate, their_rate) = both(|round| round.rate);
        let (our_p99, their_p99) = both(|round| round.p99);
        let shown = format!(
            "core {:.0} % busy, theirs {:.0} %",
            busy(&self.ours),
            busy(&self.theirs)
        );
        println!(
            "{name}: {:.0}/s against {:.0}/s, p99 {:.0} us against {:.0} us; {shown}",
            median(&our_rate),
            median(&their_rate),
            median(&our_p99),
            median(&their_p99)
        );
        [
            Row::new(
                format!("{id}.rate"),
                format!("{name}: requests"),
                median(&our_rate),
                "/s",
            )
            .against(against, median(&their_rate))
            .ratios(&our_rate, &their_rate)
            .at_least(case.least)
            .note(shown),
            Row::new(
                format!("{id}.p99"),
                format!("{name}: p99"),
                median(&our_p99),
                "us",
            )
            .against(against, median(&their_p99))
            .ratios(&our_p99, &their_p99)
            .at_most(case.most),
        ]
    }
}

/// A round of load, and how much of its core the server used.
pub(crate) fn round(
    plan: &Plan,
    server: &Child,
    address: std::net::SocketAddr,
    request: &str,
) -> Result<(Round, f64)> {
    let span = Duration::from_millis(plan.pick(150, 600));
    let before = server.cpu()?;
    let found = load::put(LOAD, address, request, CONNECTIONS, span)?;
    Ok((found, (server.cpu()? - before) / span.as_secs_f64()))
}
