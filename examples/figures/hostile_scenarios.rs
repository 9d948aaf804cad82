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
use crate::hostile_mcp::{self, McpTrick};

const MIB: usize = 1 << 20;
const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";

/// The most bytes of a request that are read.
const MOST_ASKED: usize = 4 * MIB;

/// Their names, in the order of [`acts`].
pub(crate) const NAMES: [&str; 21] = [
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
    "millions-of-empty-tools",
    "branching-schema",
    "inlines-without-end",
    "thousands-of-types",
    "deep-results",
    "needs-approval",
    "mcp-pages-without-end",
    "mcp-changes-without-end",
    "mcp-answers-others",
    "mcp-large-page",
    "mcp-says-nothing",
];

/// Those whose tools may be listed: what they offer is bounded and otherwise fine.
pub(crate) const LISTED: [&str; 8] = [
    "a-hundred-thousand-tools",
    "calls-itself-another",
    "branching-schema",
    "inlines-without-end",
    "thousands-of-types",
    "deep-results",
    "needs-approval",
    "mcp-changes-without-end",
];

/// What one does with a request.
#[derive(Clone)]
enum HostileAnswer {
    Say(Arc<[u8]>),
    /// The first part once, then the second for ever, so far apart.
    Endless(Arc<[u8]>, Arc<[u8]>, Duration),
    /// The first to a poll, the second to a call.
    Called(Arc<[u8]>, Arc<[u8]>),
    Mcp(McpTrick),
}

/// Starts all of them; their addresses in the order of their names.
pub(crate) fn start() -> Result<(Child, Vec<SocketAddr>)> {
    let mut child = Child::start_last(&["play-hostile-scenarios".to_owned()])?;
    let line = child.line()?;
    let addresses = line
        .split(' ')
        .map(str::parse)
        .collect::<Result<_, _>>()
        .with_context(|| line.clone())?;
    Ok((child, addresses))
}

/// The role: serves until it is killed. Prints its addresses when it does.
pub(crate) fn serve() -> Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
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
    let gzip =
        format!("{HEAD}Content-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n").into_bytes();
    let to = |place: &str| {
        say(
            format!("HTTP/1.1 302 Found\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n")
                .into_bytes(),
        )
    };
    let tools: Vec<String> = (0..100_000)
        .map(|at| format!(r#"{{"name":"crowd_{at:06}"}}"#))
        .collect();
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
        endless(
            format!("{HEAD}\r\n{{").into_bytes(),
            vec![b' '; 64 * 1024],
            Duration::ZERO,
        ),
        endless(
            format!("{HEAD}Content-Length: 100000\r\n\r\n").into_bytes(),
            b" ".to_vec(),
            tick,
        ),
        say([gzip, bomb].concat()),
        say([
            b"HTTP/1.1 200 OK\r\nX-Flood: ".to_vec(),
            vec![b'x'; 10 * MIB],
            b"\r\n\r\n".to_vec(),
        ]
        .concat()),
        say(ok(&vec![b'['; MIB])),
        say(ok(
            b"{\"protocol_version\":\"1.0\",\"scenario\":{\"name\":\"\xc3\x28\"},\"tools\":[]}",
        )),
        to("/again"),
        to("http://169.254.169.254/latest/meta-data"),
        say(ok(crowd.as_bytes())),
        say(ok(other.as_bytes())),
        say(empty_tools()?),
        say(ok(offering("grow", &branching(), false).as_bytes())),
        say(ok(offering("inline", &inlining(), false).as_bytes())),
        say(ok(offering("choose", &types(), false).as_bytes())),
        HostileAnswer::Called(
            ok(offering("dig", r#"{"type":"object"}"#, false).as_bytes()).into(),
            ok(format!(
                r#"{{"success":true,"result":{}{}}}"#,
                "[".repeat(50_000),
                "]".repeat(50_000)
            )
            .as_bytes())
            .into(),
        ),
        HostileAnswer::Called(
            ok(offering("wipe", r#"{"type":"object"}"#, true).as_bytes()).into(),
            ok(br#"{"success":true,"result":{}}"#).into(),
        ),
        HostileAnswer::Mcp(McpTrick::PagesWithoutEnd),
        HostileAnswer::Mcp(McpTrick::ChangesWithoutEnd),
        HostileAnswer::Mcp(McpTrick::OtherIds),
        HostileAnswer::Mcp(McpTrick::LargePage),
        HostileAnswer::Mcp(McpTrick::Silence),
    ])
}

/// A manifest with one tool.
fn offering(tool: &str, parameters: &str, approval: bool) -> String {
    format!(
        r#"{{"protocol_version":"1.0","scenario":{{"name":"hostile"}},"generated_at":"2026-02-03T04:05:06Z","tools":[{{"name":"{tool}","description":"Does {tool}.","parameters":{parameters},"metadata":{{"enabled_by_default":true,"requires_approval":{approval}}}}}]}}"#
    )
}

/// A recursive schema whose check doubles with each level of the arguments, where it fails.
fn branching() -> String {
    let branch = |name: &str| {
        format!(
            r##"{{"type":"object","properties":{{"c":{{"$ref":"#/$defs/e"}}}},"required":["c","{name}"]}}"##
        )
    };
    format!(
        r##"{{"type":"object","properties":{{"c":{{"$ref":"#/$defs/e"}}}},"$defs":{{"e":{{"anyOf":[{},{},{{"type":"string"}}]}}}}}}"##,
        branch("not"),
        branch("maybe")
    )
}

/// A schema that is a thousand times as large once its references are written out.
fn inlining() -> String {
    let values = vec!["1"; 20_000].join(",");
    let properties: Vec<String> = (0..1_000)
        .map(|at| format!(r##""p{at}":{{"$ref":"#/$defs/b"}}"##))
        .collect();
    format!(
        r#"{{"type":"object","$defs":{{"b":{{"enum":[{values}]}}}},"properties":{{{}}}}}"#,
        properties.join(",")
    )
}

/// A schema with more types than there are.
fn types() -> String {
    let names: Vec<String> = (0..22_000).map(|at| format!("\"t{at}\"")).collect();
    format!(
        r#"{{"type":"object","properties":{{"x":{{"type":[{}]}}}}}}"#,
        names.join(",")
    )
}

/// Millions of tools that are nothing, eight megabytes in eight kilobytes.
fn empty_tools() -> Result<Vec<u8>> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(
        br#"{"protocol_version":"1.0","scenario":{"name":"empty"},"generated_at":"2026-02-03T04:05:06Z","tools":[{}"#,
    )?;
    let piece = b",{}".repeat(100_000);
    for _ in 0..27 {
        packed.write_all(&piece)?;
    }
    packed.write_all(b"]}")?;
    let packed = packed.finish()?;
    let head = format!(
        "{HEAD}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        packed.len()
    );
    Ok([head.into_bytes(), packed].concat())
}

fn say(bytes: Vec<u8>) -> HostileAnswer {
    HostileAnswer::Say(bytes.into())
}

fn endless(first: Vec<u8>, piece: Vec<u8>, pause: Duration) -> HostileAnswer {
    HostileAnswer::Endless(first.into(), piece.into(), pause)
}

/// One request: its head, and its body if it has one.
pub(crate) async fn asked(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut asked = Vec::new();
    let head = loop {
        if let Some(end) = asked.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream.read_buf(&mut asked).await.ok()?;
        if read == 0 || asked.len() > MOST_ASKED {
            return None;
        }
    };
    let body = asked.split_off(head);
    let text = String::from_utf8_lossy(&asked).to_lowercase();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    let length = length.unwrap_or_default().min(MOST_ASKED);
    let mut whole = body;
    while whole.len() < length {
        if stream.read_buf(&mut whole).await.ok()? == 0 {
            return None;
        }
    }
    Some((text, whole))
}

async fn play(mut stream: TcpStream, act: HostileAnswer) {
    let Some((head, body)) = asked(&mut stream).await else {
        return;
    };
    // Nobody minds when an answer is not taken.
    match act {
        HostileAnswer::Say(bytes) => _ = stream.write_all(&bytes).await,
        HostileAnswer::Called(manifest, result) => {
            let answer = if head.starts_with("post") {
                result
            } else {
                manifest
            };
            _ = stream.write_all(&answer).await;
        }
        HostileAnswer::Endless(first, piece, pause) => {
            let mut next = first;
            while stream.write_all(&next).await.is_ok() {
                Clock::system().sleep(pause).await;
                next = Arc::clone(&piece);
            }
        }
        HostileAnswer::Mcp(trick) => hostile_mcp::play(&mut stream, &head, &body, trick).await,
    }
}
