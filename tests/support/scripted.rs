//! A scenario whose every answer the test writes: a real server on loopback that counts, records,
//! can be stopped and started again.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use callsheet::runtime::Clock;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;
use url::Url;

pub(crate) use super::in_process::PATIENCE;
use super::upstream_server::{Request, UpstreamServer, answer};

/// Answers as its script says. Stopped when it is dropped.
pub(crate) struct Scripted {
    server: Option<UpstreamServer>,
    /// Holds the port while nobody listens there: connections to it are refused.
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

type Script = Box<dyn FnMut(&Request) -> Reply + Send>;

/// A request and when it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) request: Request,
    pub(crate) at: Instant,
}

/// Opens once, for all who wait at it.
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

    /// Gives the same answer to everyone.
    pub(crate) fn saying(reply: Reply) -> Self {
        Self::start(move |_| reply.clone())
    }

    /// Has an address where nobody listens until it is opened.
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
            script: Mutex::new(Box::new(|_| Reply::status("500 Internal Server Error"))),
            seen: watch::Sender::default(),
            open: AtomicUsize::new(0),
            most: watch::Sender::new(0),
            left: watch::Sender::new(0),
        };
        Self { server: None, address: held.local_addr().unwrap(), held: Some(held), stage: Arc::new(stage) }
    }

    /// Answers by another script from now on.
    pub(crate) fn script(&self, script: impl FnMut(&Request) -> Reply + Send + 'static) {
        *self.stage.script.lock().unwrap() = Box::new(script);
    }

    /// Gives the same answer to everyone from now on.
    pub(crate) fn say(&self, reply: Reply) {
        self.script(move |_| reply.clone());
    }

    /// Listens at its address again.
    pub(crate) fn open(&mut self) {
        let listener = self.held.take().expect("it is closed").listen(1024).unwrap();
        let stage = Arc::clone(&self.stage);
        self.server = Some(UpstreamServer::bound(listener, move |request, stream| {
            let stage = Arc::clone(&stage);
            Box::pin(async move { stage.serve(request, stream).await })
        }));
    }

    /// Ends every connection and listens no more; returns when nobody can connect.
    pub(crate) async fn close(&mut self) {
        self.server = None;
        let free = async {
            loop {
                match hold(self.address) {
                    Ok(held) => return held,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        self.held = Some(tokio::time::timeout(PATIENCE, free).await.expect("the port becomes free"));
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
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(|seen| seen.len() >= times)).await.is_ok();
        assert!(waited, "asked {} times, not {times}", self.count());
    }

    /// The most requests that were under way at one moment.
    pub(crate) fn most_at_once(&self) -> usize {
        *self.stage.most.borrow()
    }

    pub(crate) async fn until_at_once(&self, times: usize) {
        let mut most = self.stage.most.subscribe();
        let waited = tokio::time::timeout(PATIENCE, most.wait_for(|most| *most >= times)).await.is_ok();
        assert!(waited, "{} at once, not {times}", self.most_at_once());
    }

    /// Waits until so many askers went away without waiting for their answer.
    pub(crate) async fn until_left(&self, times: usize) {
        let mut left = self.stage.left.subscribe();
        let waited = tokio::time::timeout(PATIENCE, left.wait_for(|left| *left >= times)).await.is_ok();
        assert!(waited, "{} askers left, not {times}", *self.stage.left.borrow());
    }
}

impl Stage {
    async fn serve(&self, request: Request, mut stream: TcpStream) {
        let reply = (self.script.lock().unwrap())(&request);
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.send_modify(|most| *most = (*most).max(open));
        let at = Clock::system().now();
        self.seen.send_modify(|seen| seen.push(Seen { request, at }));
        let mut stays = true;
        if let Some(gate) = &reply.gate {
            let mut gate = gate.0.subscribe();
            let mut byte = [0];
            stays = tokio::select! {
                _ = gate.wait_for(|open| *open) => true,
                // Askers send nothing more, so what is read is the end.
                _ = stream.read(&mut byte) => false,
            };
        }
        self.open.fetch_sub(1, Ordering::SeqCst);
        if stays {
            let headers: Vec<&str> = reply.headers.iter().map(String::as_str).collect();
            // Whoever went away needs no answer.
            let _ = stream.write_all(&answer(reply.status, &headers, &reply.body)).await;
        } else {
            self.left.send_modify(|left| *left += 1);
        }
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
        Self { status, headers: Vec::new(), body: Vec::new(), gate: None }
    }

    pub(crate) fn text(text: impl Into<Vec<u8>>) -> Self {
        Self { body: text.into(), ..Self::status("200 OK") }
    }

    pub(crate) fn json(json: &Value) -> Self {
        Self::text(json.to_string())
    }

    /// A manifest of plain tools.
    pub(crate) fn tools(scenario: &str, tools: &[&str]) -> Self {
        Self::json(&manifest(scenario, tools))
    }

    /// With another status.
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
        Self { gate: Some(gate.clone()), ..self }
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
