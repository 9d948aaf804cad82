//! Clients that mean harm, all at once, in a process of their own.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use callsheet::runtime::{Clock, Tasks};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::child_process::Child;

/// The bytes of the request with this number.
type Attack = fn(usize) -> Vec<u8>;

/// Requests that are sent again and again, with a pause after each, by so many clients.
const ATTACKS: &[(&str, usize, Duration, Attack)] = &[
    (
        "arguments as deep as their schema",
        4,
        Duration::from_millis(50),
        |at| {
            let depth = 10 + at % 60;
            let nested = format!("{}5{}", r#"{"c":"#.repeat(depth), "}".repeat(depth));
            execute("branching-schema/grow", &nested)
        },
    ),
    (
        "arguments with equal members",
        1,
        Duration::from_millis(20),
        |at| {
            execute(
                "needs-approval/wipe",
                &format!(r#"{{"path":"/{at}","path":"/"}}"#),
            )
        },
    ),
    (
        "calls that wait for approval",
        2,
        Duration::from_millis(20),
        |at| {
            execute(
                "needs-approval/wipe",
                &json!({"at": at, "pad": "x".repeat(2_000)}).to_string(),
            )
        },
    ),
    (
        "results that are too deep",
        1,
        Duration::from_millis(50),
        |_| execute("deep-results/dig", "{}"),
    ),
    (
        "bodies that are too large",
        1,
        Duration::from_millis(200),
        |_| {
            execute(
                "needs-approval/wipe",
                &json!({"pad": "x".repeat(8 << 20)}).to_string(),
            )
        },
    ),
    (
        "lists that nobody asked for before",
        2,
        Duration::from_millis(50),
        |at| {
            let format = ["gemini", "ollama", "openai", "anthropic", "bedrock", "mcp"][at % 6];
            get(&format!(
                "/api/v1/tools?format={format}&q=word{at}&max_tokens={}",
                1_000 + at
            ))
        },
    ),
    (
        "searches for a thousand words",
        1,
        Duration::from_millis(50),
        |at| {
            let words: Vec<String> = (0..1_000)
                .map(|word| format!("w{}", word * (at + 1)))
                .collect();
            get(&format!("/api/v1/tools/search?q={}", words.join("+")))
        },
    ),
    ("batches of MCP", 1, Duration::from_millis(50), |_| {
        let one = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
        post(
            "/mcp",
            &format!("[{}]", vec![one; 100].join(",")),
            "mcp-protocol-version: 2025-03-26\r\n",
        )
    }),
    ("MCP that is none", 1, Duration::from_millis(20), |at| {
        let body = [
            "[",
            "{}",
            "[[[[[[",
            r#"{"jsonrpc":"2.0","id":{},"method":7}"#,
        ][at % 4];
        post("/mcp", body, "")
    }),
    ("no HTTP", 2, Duration::from_millis(20), |at| {
        let mut bytes = vec![0; 512];
        fastrand::Rng::with_seed(at as u64).fill(&mut bytes);
        [b"GET / HTTP/1.1\r\n".to_vec(), bytes].concat()
    }),
    ("HTTP/2 that is none", 1, Duration::from_millis(20), |at| {
        let mut bytes = vec![0; 2_000];
        fastrand::Rng::with_seed(at as u64).fill(&mut bytes);
        [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec(),
            bytes,
        ]
        .concat()
    }),
    (
        "two lengths for one body",
        1,
        Duration::from_millis(20),
        |_| {
            b"POST /api/v1/tools/execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n".to_vec()
        },
    ),
];

/// Connections that are held: what is sent on each once, and what is sent after that every second.
const HELD: &[(&str, usize, &[u8], &[u8])] = &[
    ("connections that say nothing", 200, b"", b""),
    ("heads that come byte by byte", 100, b"GET /api/v1/tools HTTP/1.1\r\nHost: localhost\r\nX: ", b"x"),
    (
        "streams that nobody reads",
        60,
        b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
        b"",
    ),
    (
        "bodies that come byte by byte",
        60,
        b"POST /api/v1/tools/execute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{",
        b" ",
    ),
];

/// No answer takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into_bytes()
}

fn post(target: &str, body: &str, headers: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn execute(tool: &str, arguments: &str) -> Vec<u8> {
    post(
        "/api/v1/tools/execute",
        &format!(r#"{{"tool_name":"{tool}","arguments":{arguments}}}"#),
        "",
    )
}

/// Starts them for so long.
pub(crate) fn start(address: SocketAddr, span: Duration) -> Result<Child> {
    Child::start(
        None,
        &[
            "play-callers".to_owned(),
            address.to_string(),
            span.as_millis().to_string(),
        ],
    )
}

/// Waits for them. Fails if one was answered with an error of the daemon itself.
pub(crate) fn end(callers: Child) -> Result<Vec<String>> {
    let text = callers.rest()?;
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let kinds = ATTACKS.len() + HELD.len();
    ensure!(lines.len() == kinds, "the hostile callers failed: {text}");
    let failed: Vec<&String> = lines
        .iter()
        .filter(|line| line.contains(", 500 "))
        .collect();
    ensure!(
        failed.is_empty(),
        "answered as an error of the daemon itself: {failed:?}"
    );
    Ok(lines)
}

/// The role.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [address, span] = arguments else {
        anyhow::bail!("callers ADDRESS MS")
    };
    let address = address.parse::<SocketAddr>()?;
    let span = Duration::from_millis(span.parse()?);
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let clock = Clock::system();
            let tasks = Tasks::new();
            let end = clock.now() + span;
            let mut running = Vec::new();
            for (name, clients, pause, attack) in ATTACKS {
                let each = (0..*clients)
                    .map(|client| tasks.spawn(repeat(address, end, client, *pause, *attack)));
                running.push((*name, each.collect::<Vec<_>>()));
            }
            let mut held = Vec::new();
            for (name, count, first, then) in HELD {
                let each = (0..*count).map(|_| tasks.spawn(hold(address, end, first, then)));
                held.push((*name, *count, each.collect::<Vec<_>>()));
            }
            for (name, clients) in running {
                let mut seen = Seen::default();
                for client in clients {
                    seen.add(client.await.context("a caller ended")?);
                }
                println!("{name}: {seen}");
            }
            for (name, count, each) in held {
                for one in each {
                    one.await.context("a caller ended")?;
                }
                println!("{name}: {count} at once");
            }
            Ok(())
        })
}

/// What became of the requests of one kind.
#[derive(Debug, Default)]
struct Seen {
    sent: usize,
    /// By status.
    answers: std::collections::BTreeMap<u16, usize>,
}

impl Seen {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        for (status, count) in other.answers {
            *self.answers.entry(status).or_default() += count;
        }
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} sent", self.sent)?;
        self.answers
            .iter()
            .try_for_each(|(status, count)| write!(f, ", {status} {count} times"))
    }
}

async fn repeat(
    address: SocketAddr,
    end: Instant,
    client: usize,
    pause: Duration,
    attack: Attack,
) -> Seen {
    let clock = Clock::system();
    let mut seen = Seen::default();
    let mut at = client;
    while clock.now() < end {
        seen.sent += 1;
        let answered = tokio::time::timeout(PATIENCE, exchange(address, &attack(at))).await;
        if let Ok(Ok(Some(status))) = answered {
            *seen.answers.entry(status).or_default() += 1;
        }
        at += 7;
        clock.sleep(pause).await;
    }
    seen
}

/// Sends something, and reads what comes until the other side ends it. Gives the status, if any
/// came.
async fn exchange(address: SocketAddr, request: &[u8]) -> Result<Option<u16>> {
    let mut stream = TcpStream::connect(address).await?;
    // A request that is refused early is not taken whole.
    let _ = stream.write_all(request).await;
    let mut first = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read) = stream.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        if first.len() < 16 {
            first.extend_from_slice(&buffer[..read.min(16)]);
        }
    }
    let text = String::from_utf8_lossy(&first).into_owned();
    Ok(text
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok()))
}

/// Holds a connection, and opens another one when it is ended.
async fn hold(address: SocketAddr, end: Instant, first: &'static [u8], then: &'static [u8]) {
    let clock = Clock::system();
    while clock.now() < end {
        let Ok(mut stream) = TcpStream::connect(address).await else {
            clock.sleep(Duration::from_secs(1)).await;
            continue;
        };
        let mut open = stream.write_all(first).await.is_ok();
        while open && clock.now() < end {
            clock.sleep(Duration::from_secs(1)).await;
            open = stream.write_all(then).await.is_ok();
        }
        clock.sleep(Duration::from_millis(100)).await;
    }
}
