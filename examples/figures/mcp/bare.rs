//! What is compared: a loop that makes the requests of a first list and keeps nothing, and a hop
//! that passes a call on to a child process as a line, with nothing decided.

use std::collections::HashMap;
use std::convert::Infallible;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use callsheet::runtime::Tasks;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;

use super::servers;
use crate::manifests;

/// How many servers are asked at once, as the daemon does by default.
const CONCURRENCY: usize = 32;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A message of 2026-07-28; `members` are further ones of its parameters.
pub(crate) fn message(id: u64, method: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}{META}}}}}"#)
}

/// The headers of a message over HTTP.
pub(crate) fn headers<'a>(method: &'a str, name: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
    ];
    headers.extend(name.map(|name| ("mcp-name", name)));
    headers
}

/// The role of the loop: greets and lists each server once, prints that it is done, and keeps them
/// until it is killed.
pub(crate) fn play_loop(arguments: &[String]) -> Result<()> {
    let (programs, addresses): (Vec<_>, Vec<_>) = arguments
        .iter()
        .partition(|argument| !argument.contains(':'));
    // The daemon chooses the same provider; without one the client cannot be built.
    let _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let client = reqwest::Client::builder().no_proxy().build()?;
            let programs = programs
                .iter()
                .map(|at| at.parse::<usize>())
                .collect::<Result<Vec<_>, _>>()?;
            let over_lines = programs
                .into_iter()
                .map(|at| futures_util::future::Either::Left(by_lines(at)));
            let over_http = addresses.into_iter().map(|address| {
                let posted = by_posts(&client, address);
                futures_util::future::Either::Right(async { posted.await.map(|()| None) })
            });
            let all = stream::iter(over_lines.chain(over_http).collect::<Vec<_>>())
                .buffer_unordered(CONCURRENCY);
            let kept: Vec<_> = all.try_collect().await?;
            println!("listed {}", kept.len());
            std::future::pending().await
        })
}

/// Starts a server, greets and lists it.
async fn by_lines(at: usize) -> Result<Option<Child>> {
    let requests = [("server/discover", ""), ("tools/list", "")];
    by_requests(at, &requests).await.map(Some)
}

/// Starts a server, greets and lists it, and calls its first tool, as a client without a daemon
/// does.
pub(crate) async fn first_call(at: usize) -> Result<()> {
    let tool = manifests::tool(at, 0);
    let members = format!(r#""name":"{tool}","arguments":{},"#, super::ARGUMENTS);
    let requests = [
        ("server/discover", ""),
        ("tools/list", ""),
        ("tools/call", members.as_str()),
    ];
    by_requests(at, &requests).await.map(drop)
}

/// Starts a server and makes these requests, with their members, one after the other.
async fn by_requests(at: usize, requests: &[(&str, &str)]) -> Result<Child> {
    let mut child = child(at)?;
    let mut input = child.stdin.take().context("no input")?;
    let output = child.stdout.take().context("no output")?;
    let mut output = BufReader::new(output);
    for (id, (method, members)) in (1..).zip(requests) {
        input
            .write_all(format!("{}\n", message(id, method, members)).as_bytes())
            .await?;
        let mut line = String::new();
        ensure!(
            output.read_line(&mut line).await? > 0 && line.contains("result"),
            "server {at}: {line}"
        );
    }
    // Its input stays open, so that it lives on.
    child.stdin = Some(input);
    Ok(child)
}

async fn by_posts(client: &reqwest::Client, address: &str) -> Result<()> {
    for (id, method) in (1..).zip(["server/discover", "tools/list"]) {
        let mut request = client
            .post(format!("http://{address}/mcp"))
            .body(message(id, method, ""));
        for (name, value) in headers(method, None) {
            request = request.header(name, value);
        }
        let mut answer = request.send().await?.error_for_status()?;
        let mut bytes = 0;
        while let Some(part) = answer.chunk().await? {
            bytes += part.len();
        }
        ensure!(bytes > 0, "{address} answered nothing");
    }
    Ok(())
}

fn child(at: usize) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    let command = command
        .args(servers::child_arguments(at))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    Ok(command.kill_on_drop(true).spawn()?)
}

/// Those who wait for a line, by its id.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<String>>>>;

/// What a hop works with.
struct Hop {
    input: tokio::sync::Mutex<ChildStdin>,
    waiting: Waiting,
    next: AtomicU64,
    members: String,
}

/// The role of the hop: each POST becomes one line to a child process, and the line with its answer
/// is the body. Prints its address.
pub(crate) fn play_hop(arguments: &[String]) -> Result<()> {
    let [at, tool] = arguments else {
        anyhow::bail!("play-mcp-hop NUMBER TOOL")
    };
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async {
            let tasks = Tasks::new();
            let mut child = child(at.parse()?)?;
            let input = child.stdin.take().context("no input")?;
            let output = child.stdout.take().context("no output")?;
            let waiting = Waiting::default();
            tasks.spawn(deal(BufReader::new(output), Arc::clone(&waiting)));
            let members = format!(r#""name":"{tool}","arguments":{},"#, super::ARGUMENTS);
            let hop = Arc::new(Hop {
                input: input.into(),
                waiting,
                next: AtomicU64::new(1),
                members,
            });
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            println!("{}", listener.local_addr()?);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let hop = Arc::clone(&hop);
                tasks.spawn(async move {
                    let answer = service_fn(move |request| {
                        let hop = Arc::clone(&hop);
                        async move { Ok::<_, Infallible>(hop.pass(request).await) }
                    });
                    // A client that goes away is no matter.
                    let _ = hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                });
            }
        })
}

impl Hop {
    async fn pass(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        // As a server does, it reads what it is asked.
        let _ = request.into_body().collect().await;
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (send, answer) = oneshot::channel();
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, send);
        let line = message(id, "tools/call", &self.members) + "\n";
        // Should the child be gone, the answer never comes, and the empty body fails the figure.
        let _ = self.input.lock().await.write_all(line.as_bytes()).await;
        Response::new(Full::new(answer.await.unwrap_or_default().into()))
    }
}

/// Gives each line to the one who waits for its id.
async fn deal(mut output: impl tokio::io::AsyncBufRead + Unpin, waiting: Waiting) {
    #[derive(serde::Deserialize)]
    struct Answer {
        id: u64,
    }
    let mut line = String::new();
    while output.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let answer = serde_json::from_str::<Answer>(&line).map(|answer| answer.id);
        let wanted = answer.ok().and_then(|id| {
            waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&id)
        });
        if let Some(wanted) = wanted {
            // One who left is no matter.
            let _ = wanted.send(std::mem::take(&mut line));
        }
        line.clear();
    }
}
