//! How soon those who follow are told of a change.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::child::Daemon;
use crate::fleet::{self, SCENARIOS};
use crate::manifests::{self, TOOLS};
use crate::raw;
use crate::report::{Row, median};
use crate::scenarios::Scenarios;

const SUBSCRIBERS: usize = 100;
const CHANGES: usize = 21;
/// What begins the event of a changed list.
const EVENT: &[u8] = b"event: catalog\n";

pub(crate) fn run() -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let scenarios = Scenarios::start(SCENARIOS, Duration::ZERO)?;
    let daemon = Daemon::start(None, &scenarios.addresses, "60s")?;
    let (mut published, mut told) = (Vec::new(), Vec::new());
    runtime.block_on(async {
        fleet::ready(&daemon).await?;
        fleet::whole(&daemon).await?;
        let (clock, tasks) = (Clock::system(), Tasks::new());
        // A scenario is asked again a second after its last ask at the earliest.
        clock.sleep(Duration::from_secs(3)).await;
        let (send, mut heard) = mpsc::channel(SUBSCRIBERS);
        for _ in 0..SUBSCRIBERS {
            let stream = follow(daemon.address).await?;
            tasks.spawn(listen(stream, clock, send.clone()));
        }
        for at in (0..SCENARIOS).step_by(SCENARIOS / CHANGES).take(CHANGES) {
            let name = manifests::name(at);
            scenarios.change(at).await?;
            let start = clock.now();
            let done = raw::once(daemon.address, "POST", &format!("/api/v1/scenarios/{name}/refresh")).await?;
            ensure!(done.status == 200, "{}", done.status);
            published.push(milliseconds(start, clock.now()));
            for _ in 0..SUBSCRIBERS {
                let at = tokio::time::timeout(Duration::from_secs(10), heard.recv()).await;
                told.push(milliseconds(start, at.context("an event did not come")?.context("nobody follows")?));
            }
        }
        Ok::<_, anyhow::Error>(())
    })?;
    told.sort_by(f64::total_cmp);
    let (published, p50) = (median(&published), median(&told));
    let p99 = told.get(told.len() * 99 / 100).copied().unwrap_or_default();
    println!(
        "{SUBSCRIBERS} subscribers: told after p50 {p50:.2} ms, p99 {p99:.2} ms; published after {published:.2} ms"
    );
    Ok(vec![Row {
        figure: format!(
            "one of {SCENARIOS} scenarios of {TOOLS} tools changes: from asking it to the event at {SUBSCRIBERS} subscribers"
        ),
        ours: format!("p50 {p50:.2} ms, p99 {p99:.2} ms"),
        theirs: format!("until it is published: {published:.2} ms"),
        value: 0.0,
        demand: None,
    }])
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}

/// Begins to follow the plain list; when this returns, the stream is open.
async fn follow(address: SocketAddr) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(raw::request("GET", "/api/v1/events?kind=catalog", &[]).as_bytes()).await?;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await?;
    ensure!(&first == b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&first));
    Ok(stream)
}

/// Tells when each event came, until the stream ends.
async fn listen(mut stream: TcpStream, clock: Clock, send: mpsc::Sender<Instant>) {
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 1 << 16];
    while let Ok(read) = stream.read(&mut chunk).await {
        let now = clock.now();
        if read == 0 {
            return;
        }
        buffer.extend_from_slice(&chunk[..read]);
        while let Some(at) = buffer.windows(EVENT.len()).position(|window| window == EVENT) {
            buffer.drain(..at + EVENT.len());
            if send.send(now).await.is_err() {
                return;
            }
        }
        // What may be the beginning of the next.
        let keep = buffer.len().min(EVENT.len() - 1);
        buffer.drain(..buffer.len() - keep);
    }
}
