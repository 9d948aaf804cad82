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
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::child::Child;
use crate::manifests;

/// Where an edition is counted up: no scenario has such a path of its own, nor the next.
const CHANGE: &str = "/change";
/// Where a scenario is told to end.
const END: &str = "/end";

/// A process full of scenarios.
pub(crate) struct Scenarios {
    pub(crate) addresses: Vec<SocketAddr>,
    _child: Child,
}

impl Scenarios {
    /// Starts `count` of them; each answers after `delay`.
    pub(crate) fn start(count: usize, delay: Duration) -> Result<Self> {
        let arguments = ["scenarios".to_owned(), count.to_string(), delay.as_millis().to_string()];
        let mut child = Child::start(None, &arguments)?;
        let line = child.line()?;
        let addresses = line.split(' ').map(str::parse).collect::<Result<_, _>>().with_context(|| line.clone())?;
        Ok(Self { addresses, _child: child })
    }

    /// Changes one scenario's manifest.
    pub(crate) async fn change(&self, at: usize) -> Result<()> {
        crate::raw::once(self.addresses[at], "GET", CHANGE).await.map(drop)
    }

    /// Ends one: once this returns its port is refused.
    pub(crate) async fn end(&self, at: usize) -> Result<()> {
        let address = self.addresses[at];
        crate::raw::once(address, "GET", END).await?;
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            Clock::system().sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

/// The role: serves until it is killed. Prints its addresses when it does.
pub(crate) fn serve(arguments: &[String]) -> Result<()> {
    let [count, delay] = arguments else { anyhow::bail!("scenarios COUNT DELAY_MS") };
    let (count, delay) = (count.parse::<usize>()?, Duration::from_millis(delay.parse()?));
    tokio::runtime::Runtime::new()?.block_on(async {
        let tasks = Tasks::new();
        let mut addresses = Vec::with_capacity(count);
        for at in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            addresses.push(listener.local_addr()?.to_string());
            let scenario = Scenario {
                at,
                delay,
                first: manifests::manifest(at, 0).into(),
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
                let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer).await;
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
        let body = match self.edition.load(Ordering::Relaxed) {
            0 => self.first.clone(),
            edition => manifests::manifest(self.at, edition).into(),
        };
        let mut response = Response::new(Full::new(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
        response
    }
}
