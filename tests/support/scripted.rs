//! The scripted scenario over HTTP: a real server on loopback whose every answer the test writes.
//! It counts and records requests, and can be stopped, started again and moved to another port.
//! [`callee`](super::callee) has the script of a scenario that lists tools and runs them; faults
//! below HTTP are made by [`upstream_server`](super::upstream_server).

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{self, HeaderMap, Method};
use axum::response::Response;
use callsheet::runtime::Clock;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;
use url::Url;

pub(crate) use super::in_process::PATIENCE;

/// Answers as its script says. Stopped when it is dropped.
pub(crate) struct Scripted {
    serving: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    /// Holds the port while it does not listen: connections to it are refused, and no other
    /// process gets it.
    held: Option<TcpSocket>,
    address: SocketAddr,
    stage: Arc<Stage>,
}

struct Stage {
    script: Mutex<Script>,
    seen: watch::Sender<Vec<Seen>>,
    open: AtomicUsize,
    most: watch::Sender<usize>,
    left: watch::Sender<usize>,
}

type Script = Box<dyn FnMut(Request) -> BoxFuture<'static, Response> + Send>;

/// One request, whole.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    /// The body, byte for byte.
    pub(crate) text: String,
    target: String,
}

/// A request and when it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) request: Request,
    pub(crate) at: Instant,
}

/// Opens once, for all that wait at it.
#[derive(Debug, Clone)]
pub(crate) struct Gate(watch::Sender<bool>);

/// One answer.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    status: &'static str,
    headers: Vec<String>,
    body: Vec<u8>,
    gate: Option<Gate>,
}

impl Scripted {
    /// Starts on a free port.
    pub(crate) fn start(script: impl FnMut(&Request) -> Reply + Send + 'static) -> Self {
        let mut scripted = Self::absent();
        scripted.script(script);
        scripted.open();
        scripted
    }

    /// Starts on a free port, with answers that may take their time.
    pub(crate) fn start_slow<F, A>(mut script: F) -> Self
    where
        F: FnMut(Request) -> A + Send + 'static,
        A: Future<Output = Response> + Send + 'static,
    {
        let mut scripted = Self::absent();
        *scripted.stage.script.lock().unwrap() = Box::new(move |request| Box::pin(script(request)));
        scripted.open();
        scripted
    }

    /// Gives the same answer to every request.
    pub(crate) fn saying(reply: Reply) -> Self {
        Self::start(move |_| reply.clone())
    }

    /// Has an address at which no server listens until it is opened.
    pub(crate) fn absent() -> Self {
        Self::absent_at([127, 0, 0, 1])
    }

    /// On another of this machine's loopback addresses, which stands for another host.
    pub(crate) fn on(host: [u8; 4], reply: Reply) -> Self {
        let mut scripted = Self::absent_at(host);
        scripted.say(reply);
        scripted.open();
        scripted
    }

    fn absent_at(host: [u8; 4]) -> Self {
        let held = hold(SocketAddr::from((host, 0))).unwrap();
        let stage = Stage {
            script: Mutex::new(Box::new(|_| {
                Box::pin(Reply::status("500 Internal Server Error").given())
            })),
            seen: watch::Sender::default(),
            open: AtomicUsize::new(0),
            most: watch::Sender::new(0),
            left: watch::Sender::new(0),
        };
        Self {
            serving: None,
            address: held.local_addr().unwrap(),
            held: Some(held),
            stage: Arc::new(stage),
        }
    }

    /// Answers by another script from now on.
    pub(crate) fn script(&self, mut script: impl FnMut(&Request) -> Reply + Send + 'static) {
        *self.stage.script.lock().unwrap() =
            Box::new(move |request| Box::pin(script(&request).given()));
    }

    /// Gives the same answer to every request from now on.
    pub(crate) fn say(&self, reply: Reply) {
        self.script(move |_| reply.clone());
    }

    /// Listens at its address again.
    pub(crate) fn open(&mut self) {
        let listener = self
            .held
            .take()
            .expect("it is closed")
            .listen(1024)
            .unwrap();
        self.listen(listener);
    }

    fn listen(&mut self, listener: TcpListener) {
        let (stop, stopped) = oneshot::channel();
        self.serving = Some((
            stop,
            tokio::spawn(accept(listener, Arc::clone(&self.stage), stopped)),
        ));
    }

    /// Ends every connection and listens no more, as a killed process does; returns when
    /// connections are refused.
    pub(crate) async fn close(&mut self) {
        if let Some((stop, serving)) = self.serving.take() {
            drop(stop);
            serving.await.unwrap();
        }
        let free = async {
            loop {
                match hold(self.address) {
                    Ok(held) => return held,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        self.held = Some(
            tokio::time::timeout(PATIENCE, free)
                .await
                .expect("the port becomes free"),
        );
    }

    /// Ends where it is, and listens at another port. The old port stays held, so that connections
    /// to it are refused.
    pub(crate) async fn move_on(&mut self) -> TcpSocket {
        self.close().await;
        let old = self.held.take().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.address = listener.local_addr().unwrap();
        self.listen(listener);
        old
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(crate) fn url(&self) -> Url {
        self.below("")
    }

    /// An address of its own for one of several scenarios that this server plays.
    pub(crate) fn below(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}/{path}", self.address)).unwrap()
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.stage.seen.borrow().clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.stage.seen.borrow().len()
    }

    /// The latest request.
    pub(crate) fn last(&self) -> Request {
        self.seen().pop().expect("a request").request
    }

    /// Waits until so many requests came in all.
    pub(crate) async fn until_asked(&self, times: usize) {
        let mut seen = self.stage.seen.subscribe();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| seen.len() >= times))
            .await
            .is_ok();
        assert!(waited, "{} requests, not {times}", self.count());
    }

    /// The most requests that were under way at one moment.
    pub(crate) fn most_at_once(&self) -> usize {
        *self.stage.most.borrow()
    }

    pub(crate) async fn until_at_once(&self, times: usize) {
        let mut most = self.stage.most.subscribe();
        let waited = tokio::time::timeout(PATIENCE, most.wait_for(|most| *most >= times))
            .await
            .is_ok();
        assert!(waited, "{} at once, not {times}", self.most_at_once());
    }

    /// Waits until so many clients went away without waiting for their answer.
    pub(crate) async fn until_left(&self, times: usize) {
        let mut left = self.stage.left.subscribe();
        let waited = tokio::time::timeout(PATIENCE, left.wait_for(|left| *left >= times))
            .await
            .is_ok();
        assert!(
            waited,
            "{} clients left, not {times}",
            *self.stage.left.borrow()
        );
    }
}

/// Serves until it is stopped, which ends every connection too, as the end of a process does.
async fn accept(listener: TcpListener, stage: Arc<Stage>, stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    loop {
        let (stream, _) = tokio::select! {
            accepted = listener.accept() => accepted.unwrap(),
            _ = &mut stop => break,
        };
        let stage = Arc::clone(&stage);
        let service = service_fn(move |request| serve(Arc::clone(&stage), request));
        // Without a date of its own, an answer is as old as its script says.
        let connection = http1::Builder::new()
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service);
        // A client that goes away ends its connection, which is no failure here.
        connections.spawn(async move { drop(connection.await) });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    connections.shutdown().await;
}

async fn serve(
    stage: Arc<Stage>,
    request: http::Request<Incoming>,
) -> Result<Response, Infallible> {
    let (head, body) = request.into_parts();
    // A body that breaks off is a client that went away: its connection ends with it.
    let Ok(body) = body.collect().await else {
        std::future::pending().await
    };
    let request = Request {
        method: head.method,
        target: head
            .uri
            .path_and_query()
            .map_or("/", |target| target.as_str())
            .to_owned(),
        headers: head.headers,
        text: String::from_utf8(body.to_bytes().to_vec()).unwrap(),
    };
    let at = Clock::system().now();
    let answer = (stage.script.lock().unwrap())(request.clone());
    let open = Open::new(&stage);
    stage
        .seen
        .send_modify(|seen| seen.push(Seen { request, at }));
    let answer = answer.await;
    open.answered();
    Ok(answer)
}

/// A request under way. Dropped before it is answered, its client went away.
struct Open {
    stage: Arc<Stage>,
    answered: bool,
}

impl Open {
    fn new(stage: &Arc<Stage>) -> Self {
        let open = stage.open.fetch_add(1, Ordering::SeqCst) + 1;
        stage.most.send_modify(|most| *most = (*most).max(open));
        Self {
            stage: Arc::clone(stage),
            answered: false,
        }
    }

    fn answered(mut self) {
        self.answered = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.stage.open.fetch_sub(1, Ordering::SeqCst);
        if !self.answered {
            self.stage.left.send_modify(|left| *left += 1);
        }
    }
}

impl Request {
    /// Path and query.
    pub(crate) fn target(&self) -> &str {
        &self.target
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Gate {
    /// Closed.
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn open(&self) {
        self.0.send_replace(true);
    }
}

impl Reply {
    pub(crate) fn status(status: &'static str) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            gate: None,
        }
    }

    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self {
            body: text.into(),
            ..Self::status("200 OK")
        }
    }

    pub(crate) fn json(json: &Value) -> Self {
        Self::text(json.to_string())
    }

    /// A manifest of plain tools.
    pub(crate) fn tools(scenario: &str, tools: &[&str]) -> Self {
        Self::json(&manifest(scenario, tools))
    }

    /// With another status.
    /// The same with these bytes as its body.
    pub(crate) fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        Self {
            body: body.into(),
            ..self
        }
    }

    pub(crate) fn with_status(self, status: &'static str) -> Self {
        Self { status, ..self }
    }

    /// With one more header, as a whole line.
    pub(crate) fn header(mut self, line: &str) -> Self {
        self.headers.push(line.to_owned());
        self
    }

    /// That only comes when the gate is open.
    pub(crate) fn behind(self, gate: &Gate) -> Self {
        Self {
            gate: Some(gate.clone()),
            ..self
        }
    }

    /// The answer as it is sent, once its gate is open.
    async fn given(self) -> Response {
        if let Some(gate) = &self.gate {
            gate.0.subscribe().wait_for(|open| *open).await.unwrap();
        }
        let mut response = Response::builder().status(self.status.split(' ').next().unwrap());
        for line in &self.headers {
            let (name, value) = line.split_once(':').unwrap();
            response = response.header(name, value.trim());
        }
        response.body(Body::from(self.body)).unwrap()
    }
}

fn hold(address: SocketAddr) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// A whole manifest of plain tools.
pub(crate) fn manifest(scenario: &str, tools: &[&str]) -> Value {
    json!({
        "protocol_version": "1.0",
        "scenario": {"name": scenario, "version": "1.0.0", "description": "Plays its part in a test"},
        "tools": tools.iter().map(|name| tool(name)).collect::<Vec<_>>(),
        "categories": [],
        "generated_at": "2026-02-03T04:05:06Z",
    })
}

pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": format!("Does {name}"),
        "parameters": {"type": "object", "properties": {}},
        "metadata": {"enabled_by_default": true},
    })
}
