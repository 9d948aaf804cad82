//! The bare loop that a sweep is compared with: reqwest, the same concurrency, the same settings,
//! the same bytes, nothing else.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;
use futures_util::{StreamExt, TryStreamExt};
use reqwest::header::{ETAG, HeaderValue, IF_NONE_MATCH};

use crate::child_process::Child;

/// How many are asked at once, as the daemon does by default.
const CONCURRENCY: usize = 32;

/// What the loop took, in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    pub(crate) wall: f64,
    pub(crate) busy: f64,
}

/// What it found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Passes {
    pub(crate) bytes: usize,
    /// From the start of the process until everything was read.
    pub(crate) first: Took,
    /// The same again, where nothing changed.
    pub(crate) again: Took,
}

/// Runs the loop in a process of its own.
pub(crate) fn run_on(addresses: &[SocketAddr]) -> Result<Passes> {
    let file = tempfile::NamedTempFile::new()?;
    let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    std::fs::write(file.path(), list.join("\n"))?;
    let start = Clock::system().now();
    let mut child = Child::start(
        None,
        &["play-loop".to_owned(), file.path().display().to_string()],
    )?;
    let bytes = child.line()?.parse()?;
    let first = Took {
        wall: start.elapsed().as_secs_f64(),
        busy: child.cpu()?,
    };
    let wall = child.line()?.parse()?;
    let again = Took {
        wall,
        busy: child.cpu()? - first.busy,
    };
    Ok(Passes {
        bytes,
        first,
        again,
    })
}

/// The role: prints the bytes of the first pass when it is done, then the seconds of the second.
/// Lives until it is killed, so that its processor time can be read.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [file] = arguments else {
        anyhow::bail!("play-loop FILE")
    };
    let list = std::fs::read_to_string(file)?;
    // The daemon chooses the same provider; without one the client cannot be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = reqwest::Client::builder()
            .gzip(true)
            .brotli(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .build()?;
        let urls: Vec<_> = list
            .lines()
            .map(|address| (format!("http://{address}/api/v1/tools"), None))
            .collect();
        let first = pass(&client, urls).await?;
        println!("{}", first.iter().map(|(_, _, bytes)| bytes).sum::<usize>());
        let known: Vec<_> = first.into_iter().map(|(url, tag, _)| (url, tag)).collect();
        let start = Clock::system().now();
        let second = pass(&client, known).await?;
        ensure!(
            second.iter().all(|(_, _, bytes)| *bytes == 0),
            "something changed"
        );
        println!("{}", start.elapsed().as_secs_f64());
        std::future::pending().await
    })
}

/// Asks each once; the addresses with what the answers are known by, and how long they were.
#[expect(
    clippy::disallowed_methods,
    reason = "what it reads is its own, and it is what limits are measured against"
)]
async fn pass(
    client: &reqwest::Client,
    urls: Vec<(String, Option<HeaderValue>)>,
) -> Result<Vec<(String, Option<HeaderValue>, usize)>> {
    let answers = futures_util::stream::iter(urls).map(|(url, known)| async move {
        let request = client.get(&url);
        let request = match known {
            Some(known) => request.header(IF_NONE_MATCH, known),
            None => request,
        };
        let answer = request.send().await?.error_for_status()?;
        let tag = answer.headers().get(ETAG).cloned();
        anyhow::Ok((url, tag, answer.bytes().await?.len()))
    });
    answers
        .buffer_unordered(CONCURRENCY)
        .try_collect()
        .await
        .context("the bare loop")
}
