//! How soon those who follow are told of a change among 100,000 tools: a thousand of them, over
//! server-sent events, over `WebSocket`s and over streams of MCP. Clients, daemon and scenarios
//! share the machine's cores.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::child_process::Daemon;
use crate::daemon_list;
use crate::manifests::{self, TOOLS};
use crate::mcp::bare;
use crate::plan::Plan;
use crate::raw_http;
use crate::report::{Row, median, percentile};
use crate::scenarios::Scenarios;

const SUBSCRIBERS: usize = 1_000;
/// Scenarios of a quick run and of a thorough one.
const FLEETS: (usize, usize) = (1_000, 5_000);
/// Fewer than scenarios, and each is over long before a WebSocket has missed enough pings to be let
/// go.
const CHANGES: usize = 21;
/// Longer than changes of one stream of MCP are apart at least.
const APART: Duration = Duration::from_millis(150);
/// What every subscriber has to have a change within, in milliseconds.
const WANTED: f64 = 100.0;

/// A way of following.
#[derive(Clone, Copy)]
pub(crate) enum FollowTransport {
    Stream,
    Socket,
    Mcp,
}

impl FollowTransport {
    fn name(self) -> &'static str {
        match self {
            Self::Stream => "server-sent events",
            Self::Socket => "WebSockets",
            Self::Mcp => "streams of MCP",
        }
    }

    /// The request that begins it.
    fn request(self) -> String {
        match self {
            Self::Stream => raw_http::request("GET", "/api/v1/events?kind=catalog", &[]),
            Self::Socket => raw_http::request(
                "GET",
                "/api/v1/ws?kind=catalog",
                &[
                    ("Connection", "Upgrade"),
                    ("Upgrade", "websocket"),
                    ("Sec-WebSocket-Version", "13"),
                    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ],
            ),
            Self::Mcp => {
                let members = r#""notifications":{"toolsListChanged":true},"#;
                let body = bare::message(1, "subscriptions/listen", members);
                raw_http::post("/mcp", &bare::headers("subscriptions/listen", None), &body)
            }
        }
    }

    /// How the answer to it begins.
    fn answer(self) -> &'static [u8] {
        match self {
            Self::Stream | Self::Mcp => b"HTTP/1.1 200",
            Self::Socket => b"HTTP/1.1 101",
        }
    }

    /// What every event of a changed list has in it, once, and nothing else has.
    fn mark(self) -> &'static [u8] {
        match self {
            Self::Stream => b"event: catalog\n",
            Self::Socket => br#""event":"catalog""#,
            Self::Mcp => b"notifications/tools/list_changed",
        }
    }
}

/// What was measured of one way, in milliseconds.
struct EventTimes {
    /// From asking the scenario to its new catalog.
    published: Vec<f64>,
    /// From asking the scenario to the event, for each change and subscriber.
    each: Vec<f64>,
    /// Processor time of the daemon for each change.
    busy: f64,
}

pub(crate) fn run(plan: &Plan) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Runtime::new()?;
    let count = plan.pick(FLEETS.0, FLEETS.1);
    let scenarios = Scenarios::start(count, Duration::ZERO)?;
    let settings = format!("mcp.max_streams = {SUBSCRIBERS}\n");
    let daemon = Daemon::start(None, &scenarios.named(), "60s", &settings)?;
    runtime.block_on(async {
        daemon_list::ready(&daemon).await?;
        daemon_list::whole(&daemon, count * TOOLS).await?;
        let mut rows = Vec::new();
        let ways = [
            FollowTransport::Stream,
            FollowTransport::Socket,
            FollowTransport::Mcp,
        ];
        for (turn, way) in ways.into_iter().enumerate() {
            // A scenario is asked again a second after its last ask at the earliest.
            Clock::system().sleep(Duration::from_secs(3)).await;
            let times = follow(&daemon, &scenarios, way, turn).await?;
            rows.push(row(way, count, &times));
        }
        Ok(rows)
    })
}

/// Lets them all follow, and changes one scenario after the other.
#[expect(clippy::cast_precision_loss, reason = "some twenty changes")]
async fn follow(
    daemon: &Daemon,
    scenarios: &Scenarios,
    way: FollowTransport,
    turn: usize,
) -> Result<EventTimes> {
    let clock = Clock::system();
    let tasks = Tasks::new();
    let count = scenarios.addresses.len();
    let (send, mut heard) = mpsc::channel(SUBSCRIBERS);
    let bytes = Arc::new(AtomicU64::new(0));
    let mut listeners = Vec::with_capacity(SUBSCRIBERS);
    for _ in 0..SUBSCRIBERS {
        let stream = begin(daemon.address, way).await?;
        listeners.push(tasks.spawn(listen(stream, way, clock, Arc::clone(&bytes), send.clone())));
    }
    // Each is told all names first, some hundred megabytes together.
    let mut before = None;
    while before != Some(bytes.load(Ordering::Relaxed)) {
        before = Some(bytes.load(Ordering::Relaxed));
        clock.sleep(Duration::from_secs(1)).await;
    }
    let mut times = EventTimes {
        published: Vec::new(),
        each: Vec::new(),
        busy: daemon.child.cpu()?,
    };
    for at in (turn..count).step_by(count / CHANGES).take(CHANGES) {
        let name = manifests::name(at);
        if matches!(way, FollowTransport::Mcp) {
            // A change soon after another one is held back until then.
            clock.sleep(APART).await;
        }
        scenarios.change(at).await?;
        let start = clock.now();
        let done = raw_http::once(
            daemon.address,
            "POST",
            &format!("/api/v1/scenarios/{name}/refresh"),
        )
        .await?;
        ensure!(done.status == 200, "{}", done.status);
        times.published.push(milliseconds(start, clock.now()));
        for _ in 0..SUBSCRIBERS {
            let at = tokio::time::timeout(Duration::from_secs(10), heard.recv()).await;
            times.each.push(milliseconds(
                start,
                at.context("an event did not come")?
                    .context("nobody follows")?,
            ));
        }
    }
    times.busy = (daemon.child.cpu()? - times.busy) * 1e3 / times.published.len() as f64;
    // The next thousand find their places free.
    listeners.iter().for_each(JoinHandle::abort);
    let end = clock.now() + Duration::from_secs(10);
    while followers(daemon).await? > 0 {
        ensure!(
            clock.now() < end,
            "the daemon does not notice that they are gone"
        );
        clock.sleep(Duration::from_millis(50)).await;
    }
    Ok(times)
}

/// How many follow, as the daemon counts them.
async fn followers(daemon: &Daemon) -> Result<usize> {
    let metrics = raw_http::once(daemon.address, "GET", "/metrics").await?;
    let text = String::from_utf8(metrics.body)?;
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("callsheet_event_subscribers "));
    Ok(count.context("it does not count them")?.parse()?)
}

fn row(way: FollowTransport, scenarios: usize, times: &EventTimes) -> Row {
    let published = median(&times.published);
    let p50 = median(&times.each);
    let p99 = percentile(&times.each, 99);
    let longest = times.each.iter().copied().fold(0.0, f64::max);
    let name = way.name();
    let tools = scenarios * TOOLS;
    let note = format!(
        "p50 {p50:.0} ms, p99 {p99:.0} ms, published after {published:.1} ms; processor time of the daemon {:.0} ms",
        times.busy
    );
    println!(
        "{SUBSCRIBERS} subscribers over {name}, {tools} tools: the last was told after {longest:.1} ms; {note}"
    );
    let note_text = format!(
        "20 of {tools} tools change: from asking for them to the event at the last of {SUBSCRIBERS} over {name}"
    );
    let id = match way {
        FollowTransport::Stream => "events.stream",
        FollowTransport::Socket => "events.socket",
        FollowTransport::Mcp => "events.mcp",
    };
    Row::new(id, note_text, longest, "ms")
        .at_most(WANTED)
        .note(note)
}

fn milliseconds(from: Instant, to: Instant) -> f64 {
    to.saturating_duration_since(from).as_secs_f64() * 1e3
}

/// Begins to follow the plain list; when this returns, the daemon has agreed.
pub(crate) async fn begin(address: SocketAddr, way: FollowTransport) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(way.request().as_bytes()).await?;
    let mut first = [0; 12];
    stream.read_exact(&mut first).await?;
    ensure!(first == way.answer(), "{}", String::from_utf8_lossy(&first));
    Ok(stream)
}

/// Tells when each event came, until the stream ends.
pub(crate) async fn listen(
    mut stream: TcpStream,
    way: FollowTransport,
    clock: Clock,
    bytes: Arc<AtomicU64>,
    send: mpsc::Sender<Instant>,
) {
    let mark = way.mark();
    let mut buffer = Vec::new();
    let mut chunk = vec![0; 1 << 13];
    while let Ok(read) = stream.read(&mut chunk).await {
        let now = clock.now();
        if read == 0 {
            return;
        }
        bytes.fetch_add(read as u64, Ordering::Relaxed);
        buffer.extend_from_slice(&chunk[..read]);
        while let Some(at) = buffer.windows(mark.len()).position(|window| window == mark) {
            buffer.drain(..at + mark.len());
            if send.send(now).await.is_err() {
                return;
            }
        }
        // What may be the beginning of the next.
        let keep = buffer.len().min(mark.len() - 1);
        buffer.drain(..buffer.len() - keep);
    }
}
