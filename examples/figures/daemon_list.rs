//! A daemon and its list, as one who waits for them sees them.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::Clock;

use crate::child_process::Daemon;
use crate::raw_http::{self, Connection, PartialAnswer, RawAnswer};

/// The list that everything here is about.
pub(crate) const PATH: &str = "/api/v1/tools";
/// Nothing here takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until the daemon is ready.
pub(crate) async fn ready(daemon: &Daemon) -> Result<()> {
    let clock = Clock::system();
    let end = clock.now() + PATIENCE;
    let request = raw_http::request("GET", "/readyz", &[]);
    loop {
        // While much is awaited the answer is long, and only its status matters.
        let begun = Connection::open(daemon.address)
            .await?
            .begin(request.as_bytes())
            .await?;
        if begun.answer.status == 200 {
            return Ok(());
        }
        ensure!(
            clock.now() < end,
            "the daemon is not ready after two minutes"
        );
        clock.sleep(Duration::from_millis(5)).await;
    }
}

/// The list, which must have so many tools.
pub(crate) async fn whole(daemon: &Daemon, tools: usize) -> Result<RawAnswer> {
    let list = raw_http::once(daemon.address, "GET", PATH).await?;
    counted(&list, tools)?;
    Ok(list)
}

/// Begins to read the list, which must have so many tools, over a connection that may be left.
pub(crate) async fn begun(daemon: &Daemon, tools: usize) -> Result<(Connection, PartialAnswer)> {
    let mut connection = Connection::open(daemon.address).await?;
    let begun = connection
        .begin(raw_http::request("GET", PATH, &[]).as_bytes())
        .await?;
    counted(&begun.answer, tools)?;
    Ok((connection, begun))
}

fn counted(list: &RawAnswer, tools: usize) -> Result<()> {
    let listed = list.header("callsheet-tools").unwrap_or_default();
    ensure!(
        list.status == 200 && listed == tools.to_string(),
        "{} with {listed} tools, not {tools}",
        list.status
    );
    Ok(())
}

/// The sum of what a metric counts.
pub(crate) async fn metric(daemon: &Daemon, name: &str) -> Result<f64> {
    let metrics = raw_http::once(daemon.address, "GET", "/metrics").await?;
    let text = String::from_utf8(metrics.body)?;
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        (rest.starts_with([' ', '{'])).then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
    });
    values
        .reduce(|sum, value| sum + value)
        .with_context(|| format!("no metric {name}"))
}
