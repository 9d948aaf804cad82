//! The bare loop that the fleet is compared with: reqwest, the same concurrency, the same settings, the same bytes, nothing else.

use std::net::SocketAddr;

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt};

use crate::child::Child;

/// How many are asked at once, as the daemon does by default.
const CONCURRENCY: usize = 32;

/// Runs the loop in a process of its own; answers how many bytes it got.
pub(crate) fn fetch(addresses: &[SocketAddr]) -> Result<usize> {
    let file = tempfile::NamedTempFile::new()?;
    let list: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    std::fs::write(file.path(), list.join("\n"))?;
    let child = Child::start(None, &["sweep".to_owned(), file.path().display().to_string()])?;
    Ok(child.rest()?.trim().parse()?)
}

/// The role.
#[expect(clippy::disallowed_methods, reason = "what it reads is its own, and it is what limits are measured against")]
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [file] = arguments else { anyhow::bail!("sweep FILE") };
    let list = std::fs::read_to_string(file)?;
    // The daemon chooses the same provider; without one the client cannot be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bodies: Vec<_> = runtime.block_on(async {
        let client = reqwest::Client::builder()
            .gzip(true)
            .brotli(true)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .pool_max_idle_per_host(0)
            .build()?;
        let urls: Vec<String> = list.lines().map(|address| format!("http://{address}/api/v1/tools")).collect();
        let answers = futures_util::stream::iter(urls).map(|url| {
            let asked = client.get(url).send();
            async move { asked.await?.error_for_status()?.bytes().await }
        });
        answers.buffer_unordered(CONCURRENCY).try_collect().await
    })?;
    println!("{}", bodies.iter().map(bytes::Bytes::len).sum::<usize>());
    Ok(())
}
