//! Scenarios that mean harm, each on a port of its own, in a process of their own.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use callsheet::runtime::{Clock, Tasks};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::child_process::Child;
use crate::faulty_scenario::ok;

const MIB: usize = 1 << 20;
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";

/// Their names; the last two offer tools.
pub(crate) const NAMES: [&str; 10] = [
    "endless-body",
    "one-byte-a-second",
    "gzip-bomb",
    "ten-megabytes-of-headers",
    "bottomless",
    "no-text",
    "roundabout",
    "sends-to-metadata",
    "a-hundred-thousand-tools",
    "calls-itself-another",
];

/// Those whose tools may be listed: what they offer is bounded and otherwise fine.
pub(crate) const LISTED: [&str; 2] = [NAMES[8], NAMES[9]];

/// What one does with a request.
#[derive(Clone)]
enum HostileAnswer {
    Say(Arc<[u8]>),
    /// The first part once, then the second for ever, so far apart.
    Endless(Arc<[u8]>, Arc<[u8]>, Duration),
}

/// Starts all of them; their addresses in the order of their names.
pub(crate) fn start() -> Result<(Child, Vec<SocketAddr>)> {
    let mut child = Child::start(None, &["play-villains".to_owned()])?;
    let line = child.line()?;
    let addresses = line.split(' ').map(str::parse).collect::<Result<_, _>>().with_context(|| line.clone())?;
    Ok((child, addresses))
}

/// The role: serves until it is killed. Prints its addresses when it does.
pub(crate) fn serve() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let tasks = Tasks::new();
        let mut addresses = Vec::new();
        for act in acts()? {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            addresses.push(listener.local_addr()?.to_string());
            let connections = tasks.clone();
            tasks.spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    // Whoever asks cuts it off.
                    connections.spawn(play(stream, act.clone()));
                }
            });
        }
        println!("{}", addresses.join(" "));
        std::future::pending::<()>().await;
        Ok(())
    })
}

fn acts() -> Result<Vec<HostileAnswer>> {
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..200 {
        bomb.write_all(&vec![b' '; MIB])?;
    }
    let bomb = bomb.finish()?;
    let length = bomb.len();
    let gzip = format!("{HEAD}Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let to =
        |place: &str| say(format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n").into_bytes());
    let tools: Vec<String> = (0..100_000).map(|at| format!(r#"{{"name":"crowd_{at:06}"}}"#)).collect();
    let crowd = format!(
        r#"{{"protocol_version":"1.0","scenario":{{"name":"crowd"}},"tools":[{}],"generated_at":"2026-02-03T04:05:06Z"}}"#,
        tools.join(",")
    );
    let other = r#"{"protocol_version":"1.0","scenario":{"name":"scenario-0000","base_url":"http://169.254.169.254/"},
        "tools":[{"name":"trap","description":"Runs {\"$ref\":\"http://169.254.169.254/x\"}",
        "parameters":{"type":"object","properties":{"x":{"$ref":"http://169.254.169.254/schema"}}}}],
        "generated_at":"2026-02-03T04:05:06Z"}"#;
    let tick = Duration::from_secs(1);
    Ok(vec![
        endless(format!("{HEAD}\r\n{{").into_bytes(), vec![b' '; 64 * 1024], Duration::ZERO),
        endless(format!("{HEAD}Content-Length: 100000\r\n\r\n").into_bytes(), b" ".to_vec(), tick),
        say([gzip, bomb].concat()),
        say([b"HTTP/1.1 200 OK\r\nX-Flood: ".to_vec(), vec![b'x'; 10 * MIB], b"\r\n\r\n".to_vec()].concat()),
        say(ok(&vec![b'['; MIB])),
        say(ok(b"{\"protocol_version\":\"1.0\",\"scenario\":{\"name\":\"\xc3\x28\"},\"tools\":[]}")),
        to("/again"),
        to("http://169.254.169.254/latest/meta-data"),
        say(ok(crowd.as_bytes())),
        say(ok(other.as_bytes())),
    ])
}

fn say(bytes: Vec<u8>) -> HostileAnswer {
    HostileAnswer::Say(bytes.into())
}

fn endless(first: Vec<u8>, piece: Vec<u8>, pause: Duration) -> HostileAnswer {
    HostileAnswer::Endless(first.into(), piece.into(), pause)
}

async fn play(mut stream: TcpStream, act: HostileAnswer) {
    let mut asked = Vec::new();
    while !asked.ends_with(b"\r\n\r\n") {
        if !matches!(stream.read_buf(&mut asked).await, Ok(read) if read > 0) {
            return;
        }
    }
    match act {
        // Nobody minds when it is not taken.
        HostileAnswer::Say(bytes) => _ = stream.write_all(&bytes).await,
        HostileAnswer::Endless(first, piece, pause) => {
            let mut next = first;
            while stream.write_all(&next).await.is_ok() {
                Clock::system().sleep(pause).await;
                next = Arc::clone(&piece);
            }
        }
    }
}
