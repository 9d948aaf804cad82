//! Readers that keep asking for the list, at a steady pace, in a process of their own.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use callsheet::runtime::{Clock, Tasks};
use tokio::time::Instant;

use crate::child_process::Child;
use crate::raw_http::{self, Connection};

/// What they saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answers {
    pub(crate) count: usize,
    /// Times of answers in milliseconds.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) most: f64,
    /// Requests that were not answered with a list.
    pub(crate) failed: usize,
}

/// Starts so many readers for so long, each requesting the list at `path` every `pace`.
pub(crate) fn start(
    (address, path): (SocketAddr, &str),
    count: usize,
    pace: Duration,
    span: Duration,
) -> Result<Child> {
    let count = count.to_string();
    let pace = pace.as_millis().to_string();
    let span = span.as_millis().to_string();
    Child::start(
        None,
        &[
            "play-readers".to_owned(),
            address.to_string(),
            path.to_owned(),
            count,
            pace,
            span,
        ],
    )
}

/// Waits for them.
pub(crate) fn end(readers: Child) -> Result<Answers> {
    let text = readers.rest()?;
    let parts: Vec<f64> = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    let [count, p50, p99, most, failed] = parts[..] else {
        anyhow::bail!("the readers failed: {text}")
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts, printed as such"
    )]
    let count = count as usize;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts, printed as such"
    )]
    let failed = failed as usize;
    Ok(Answers {
        count,
        p50,
        p99,
        most,
        failed,
    })
}

/// The role.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [address, path, count, pace, span] = arguments else {
        anyhow::bail!("readers ADDRESS PATH COUNT PACE_MS MS")
    };
    let address = address.parse::<SocketAddr>()?;
    let count = count.parse::<usize>()?;
    let pace = Duration::from_millis(pace.parse()?);
    let span = Duration::from_millis(span.parse()?);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let clock = Clock::system();
            let tasks = Tasks::new();
            let end = clock.now() + span;
            let readers: Vec<_> = (0..count)
                .map(|_| tasks.spawn(read_until(address, path.clone(), pace, end)))
                .collect();
            let mut times = Vec::new();
            let mut failed = 0;
            for reader in readers {
                let (its, fails) = reader.await.context("a reader ended")?;
                times.extend(its);
                failed += fails;
            }
            times.sort_by(f64::total_cmp);
            let at = |share: usize| {
                times
                    .get(times.len().saturating_sub(1) * share / 100)
                    .copied()
                    .unwrap_or_default()
            };
            println!("{} {} {} {} {failed}", times.len(), at(50), at(99), at(100));
            Ok(())
        })
}

async fn read_until(
    address: SocketAddr,
    path: String,
    pace: Duration,
    end: Instant,
) -> (Vec<f64>, usize) {
    let clock = Clock::system();
    let request = raw_http::request("GET", &path, &[]);
    let mut connection = None;
    let mut times = Vec::new();
    let mut failed = 0;
    while clock.now() < end {
        let begun = clock.now();
        let answered = async {
            let mut open = match connection.take() {
                Some(open) => open,
                None => Connection::open(address).await?,
            };
            open.ask(request.as_bytes()).await?;
            connection = Some(open);
            anyhow::Ok(())
        };
        match answered.await {
            Ok(()) => times.push((clock.now() - begun).as_secs_f64() * 1e3),
            Err(_) => failed += 1,
        }
        clock.sleep_until((begun + pace).max(clock.now())).await;
    }
    (times, failed)
}
