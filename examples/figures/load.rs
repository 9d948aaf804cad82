//! The load: keep-alive connections that ask again as soon as they are answered.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use callsheet::runtime::{Clock, Tasks};

use crate::child_process::Child;
use crate::raw_http::Connection;

/// What one round of load found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Answers in a second.
    pub(crate) rate: f64,
    /// Half of the answers took at most this many microseconds.
    pub(crate) p50: f64,
    /// And 99 of a hundred this many.
    pub(crate) p99: f64,
}

/// Puts load on a server for `span`, from a process on core `core`.
pub(crate) fn put(
    core: usize,
    address: SocketAddr,
    request: &str,
    connections: usize,
    span: Duration,
) -> Result<Round> {
    let arguments = [
        "play-load",
        &address.to_string(),
        &connections.to_string(),
        &span.as_millis().to_string(),
        request,
    ]
    .map(str::to_owned);
    let text = Child::start(Some(core), &arguments)?.rest()?;
    let parts: Vec<f64> = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [rate, p50, p99] = parts[..] else {
        anyhow::bail!("the load failed: {text}")
    };
    Ok(Round { rate, p50, p99 })
}

/// The role. Prints answers per second, and the time of an answer: the middle one and the one that
/// 99 of a hundred do not exceed.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [address, connections, span, request] = arguments else {
        anyhow::bail!("load ADDRESS CONNECTIONS MS REQUEST")
    };
    let address = address.parse::<SocketAddr>()?;
    let connections = connections.parse::<usize>()?;
    let span = Duration::from_millis(span.parse()?);
    let request: &'static [u8] = request.clone().leak().as_bytes();
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let clock = Clock::system();
            let tasks = Tasks::new();
            let start = clock.now();
            let workers: Vec<_> = (0..connections)
                .map(|_| tasks.spawn(ask_until(address, request, start + span)))
                .collect();
            // The load never sleeps: waking it costs the server more than an answer does, and would hit
            // the slower of two servers only.
            let awake = tasks.spawn(async {
                loop {
                    tokio::task::yield_now().await;
                }
            });
            let mut times = Vec::new();
            for worker in workers {
                times.extend(worker.await??);
            }
            awake.abort();
            let elapsed = start.elapsed().as_secs_f64();
            times.sort_unstable();
            let at = |percent| {
                times
                    .get(times.len() * percent / 100)
                    .copied()
                    .map_or(0.0, f64::from)
                    / 1_000.0
            };
            #[expect(
                clippy::cast_precision_loss,
                reason = "counts of seconds, far below 2^52"
            )]
            let rate = times.len() as f64 / elapsed;
            println!("{rate} {} {}", at(50), at(99));
            Ok(())
        })
}

/// The times of the answers, in nanoseconds.
async fn ask_until(
    address: SocketAddr,
    request: &[u8],
    end: tokio::time::Instant,
) -> Result<Vec<u32>> {
    let clock = Clock::system();
    let mut connection = Connection::open(address).await?;
    let mut times = Vec::with_capacity(1 << 16);
    let mut asked = clock.now();
    while asked < end {
        connection.ask(request).await?;
        let now = clock.now();
        times.push(u32::try_from((now - asked).as_nanos()).unwrap_or(u32::MAX));
        asked = now;
    }
    Ok(times)
}
