//! What a bare server needs to send the same bytes with the same headers: no routes, no decisions.
//! It is made with the builder and the timeouts of the daemon's own server.

use std::convert::Infallible;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use callsheet::runtime::Tasks;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio_io_timeout::TimeoutStream;

use crate::child_process::Child;
use crate::raw_http::RawAnswer;

/// Headers that hyper writes by itself.
const WRITTEN_BY_HYPER: [&str; 3] = ["date", "content-length", "connection"];

/// How long a client may take for a request's head, and may read no byte of its answer.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A process with a bare server.
pub(crate) struct BareServer {
    pub(crate) address: SocketAddr,
    pub(crate) child: Child,
}

impl BareServer {
    /// Starts one that answers everything with `answer`.
    pub(crate) fn start(core: usize, answer: &RawAnswer) -> Result<Self> {
        let mut file = tempfile::NamedTempFile::new()?;
        writeln!(file, "{}", answer.status)?;
        for (name, value) in answer
            .headers
            .iter()
            .filter(|(name, _)| !WRITTEN_BY_HYPER.contains(&name.as_str()))
        {
            writeln!(file, "{name}: {value}")?;
        }
        writeln!(file)?;
        file.write_all(&answer.body)?;
        let mut child = Child::start(
            Some(core),
            &["play-bare".to_owned(), file.path().display().to_string()],
        )?;
        let address = child.line()?.parse()?;
        Ok(Self { address, child })
    }
}

/// The role: serves until it is killed. Prints its address.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let [file] = arguments else {
        anyhow::bail!("bare FILE")
    };
    let text = std::fs::read(file)?;
    let end = text
        .windows(2)
        .position(|two| two == b"\n\n")
        .context("no end of the head")?;
    let head = std::str::from_utf8(&text[..end])?;
    let mut lines = head.lines();
    let status: StatusCode = lines.next().context("no status")?.parse()?;
    let mut headers = HeaderMap::new();
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        headers.insert(HeaderName::try_from(name)?, HeaderValue::from_str(value)?);
    }
    let body = Bytes::copy_from_slice(&text[end + 2..]);
    // The same kind of runtime as the daemon's: held on one core, both have one worker.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(answer_all(status, headers, body))
}

async fn answer_all(status: StatusCode, headers: HeaderMap, body: Bytes) -> Result<()> {
    let tasks = Tasks::new();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(TIMEOUT)
        .keep_alive_timeout(TIMEOUT);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let headers = headers.clone();
        let body = body.clone();
        let builder = builder.clone();
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(TIMEOUT));
        tasks.spawn(async move {
            let answer = service_fn(move |request: Request<Incoming>| {
                let mut response = Response::new(Full::new(body.clone()));
                *response.status_mut() = status;
                *response.headers_mut() = headers.clone();
                async move {
                    if !request.body().is_end_stream() {
                        let _ = request.into_body().collect().await;
                    }
                    Ok::<_, Infallible>(response)
                }
            });
            // A client that goes away is no matter.
            let _ = builder
                .serve_connection_with_upgrades(TokioIo::new(Box::pin(stream)), answer)
                .await;
        });
    }
}
