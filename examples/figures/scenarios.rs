//! Scenarios as real hyper servers, each on a port of its own, all in one process.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use callsheet::runtime::{Clock, Tasks};
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::child_process::Child;
use crate::manifests;

/// Where an edition is counted up: no scenario has such a path of its own, nor the next.
const CHANGE: &str = "/change";
/// Where a scenario is told to end.
const END: &str = "/end";

/// A process full of scenarios.
pub(crate) struct Scenarios {
    first: usize,
    pub(crate) addresses: Vec<SocketAddr>,
    child: Child,
}

impl Scenarios {
    /// Starts `count` of them; each answers after `delay`.
    pub(crate) fn start(count: usize, delay: Duration) -> Result<Self> {
        Self::some(0, count, delay, manifests::TOOLS)
    }

    /// Starts those from number `first` on, each with so many tools.
    pub(crate) fn some(first: usize, count: usize, delay: Duration, tools: usize) -> Result<Self> {
        let arguments = [first, count, usize::try_from(delay.as_millis())?, tools]
            .map(|number| number.to_string());
        let arguments: Vec<String> = std::iter::once("play-scenarios".to_owned())
            .chain(arguments)
            .collect();
        let mut child = Child::start(None, &arguments)?;
        let line = child.line()?;
        let addresses = line
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .with_context(|| line.clone())?;
        Ok(Self {
            first,
            addresses,
            child,
        })
    }

    /// Their names, and where they are.
    pub(crate) fn named(&self) -> Vec<(String, SocketAddr)> {
        let names = (self.first..).map(manifests::name);
        names.zip(self.addresses.iter().copied()).collect()
    }

    /// Changes one scenario's manifest.
    pub(crate) async fn change(&self, at: usize) -> Result<()> {
        crate::raw_http::once(self.addresses[at], "GET", CHANGE)
            .await
            .map(drop)
    }

    /// Lets none of them answer any more. Their ports stay theirs: nobody else can be taken for
    /// them.
    pub(crate) fn freeze(&self) -> Result<()> {
        self.child.freeze()
    }

    /// Ends one: once this returns its port is refused.
    pub(crate) async fn end(&self, at: usize) -> Result<()> {
        let address = self.addresses[at];
        crate::raw_http::once(address, "GET", END).await?;
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            Clock::system().sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

/// The role: serves until it is killed. Prints its addresses when it does.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let numbers: Vec<u64> = arguments
        .iter()
        .map(|number| number.parse())
        .collect::<Result<_, _>>()?;
    let [first, count, delay, tools] = numbers[..] else {
        anyhow::bail!("play-scenarios FIRST COUNT DELAY_MS TOOLS")
    };
    let delay = Duration::from_millis(delay);
    let first = usize::try_from(first)?;
    let count = usize::try_from(count)?;
    let tools = usize::try_from(tools)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let tasks = Tasks::new();
        let mut addresses = Vec::with_capacity(count);
        for at in first..first + count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            addresses.push(listener.local_addr()?.to_string());
            let scenario = Scenario {
                at,
                delay,
                tools,
                first: manifests::small(at, 0, tools).into(),
                edition: Arc::default(),
                ended: Arc::default(),
            };
            tasks.spawn(scenario.run(listener, tasks.clone()));
        }
        println!("{}", addresses.join(" "));
        std::future::pending::<()>().await;
        Ok(())
    })
}

#[derive(Clone)]
struct Scenario {
    at: usize,
    delay: Duration,
    tools: usize,
    first: Bytes,
    edition: Arc<AtomicU64>,
    ended: Arc<Notify>,
}

impl Scenario {
    async fn run(self, listener: TcpListener, tasks: Tasks) {
        loop {
            let stream = tokio::select! {
                () = self.ended.notified() => return,
                Ok((stream, _)) = listener.accept() => stream,
                else => return,
            };
            let scenario = self.clone();
            tasks.spawn(async move {
                let answer = service_fn(move |request: Request<_>| {
                    let scenario = scenario.clone();
                    async move { Ok::<_, Infallible>(scenario.answer(&request).await) }
                });
                // A client that goes away is no matter.
                let _ = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
        }
    }

    async fn answer<B>(&self, request: &Request<B>) -> Response<Full<Bytes>> {
        if request.uri().path() == CHANGE {
            self.edition.fetch_add(1, Ordering::Relaxed);
            return Response::new(Full::default());
        }
        if request.uri().path() == END {
            self.ended.notify_one();
            return Response::new(Full::default());
        }
        if !self.delay.is_zero() {
            Clock::system().sleep(self.delay).await;
        }
        let edition = self.edition.load(Ordering::Relaxed);
        let tag = format!("\"{edition}\"");
        let known = request
            .headers()
            .get(IF_NONE_MATCH)
            .is_some_and(|known| known.as_bytes() == tag.as_bytes());
        let body = match edition {
            _ if known => Bytes::new(),
            0 => self.first.clone(),
            edition => manifests::small(self.at, edition, self.tools).into(),
        };
        let mut response = Response::new(Full::new(body));
        if known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        // A number in quotes is a value of a header.
        headers.extend(HeaderValue::try_from(tag).map(|tag| (ETAG, tag)));
        response
    }
}
