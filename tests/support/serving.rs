//! A real server on a free loopback port over a catalog made by hand, and a client that writes
//! requests as they are.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callsheet::bundles::{BundleSettings, BundleStore, Functions};
use callsheet::calls::Calls;
use callsheet::catalog::{CatalogWriter, Inputs, Snapshot, StateTransitions, build, catalog_store};
use callsheet::config::{self, Config};
use callsheet::engine::EngineHandle;
use callsheet::events::Hub;
use callsheet::model::{Finding, Health, ScenarioState, SourceId, ToolCounts};
use callsheet::runtime::{ByteBudget, Clock, Readiness, StopTrigger, Tasks};
use callsheet::server::{self, ServeError, ServerParts};
use callsheet::transports::http::Client;
use callsheet::transports::http::credentials::oauth::OAuthTokens;
use callsheet::views::ViewCache;
use http::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A server under test.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) readiness: Readiness,
    pub(crate) writer: CatalogWriter,
    pub(crate) stop: StopTrigger,
    pub(crate) ended: JoinHandle<Result<(), ServeError>>,
}

/// What came back.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl std::fmt::Debug for Answer {
    /// The body as text, up to 2,000 characters of it, so that the message of a failed test can be
    /// read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let body: String = String::from_utf8_lossy(&self.body)
            .chars()
            .take(2_000)
            .collect();
        write!(
            f,
            "{} {:?} {} bytes: {body}",
            self.status,
            self.headers,
            self.body.len()
        )
    }
}

/// `[server]` as it is by default, on a free port.
pub(crate) fn configured() -> config::ServerConfig {
    config::ServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        allowed_hosts: vec!["tools.example".into()],
        allowed_origins: vec!["https://ui.example".into()],
        max_body: 1_000,
        max_connections: 4_096,
        held_bytes: 256 << 20,
        list_lifetime: Duration::from_secs(1),
        stop_timeout: Duration::from_secs(10),
        ready_timeout: Duration::from_secs(10),
        rpc_socket: None,
        operator_token: None,
    }
}

/// What is published of `inputs`, with the health of some scenarios.
pub(crate) fn snapshot(inputs: &Inputs, health: Vec<Health>, findings: Vec<Finding>) -> Snapshot {
    Snapshot {
        former_names: callsheet::catalog::FormerNames::default(),
        catalog: build(inputs),
        generated_at: Timestamp::from_second(1_700_000_000).unwrap(),
        health: health
            .into_iter()
            .map(|health| (health.name.clone(), Arc::new(health)))
            .collect(),
        findings: Arc::new(findings),
        sequence: 1,
        transitions: StateTransitions::default(),
        program_ends: callsheet::catalog::ProgramEnds::default(),
        isolated: None,
        configuration: None,
    }
}

/// A scenario that was never asked.
pub(crate) fn health(name: &str, state: ScenarioState) -> Health {
    Health {
        name: name.parse().unwrap(),
        state,
        reason: "as the test says".into(),
        since: Timestamp::UNIX_EPOCH,
        url: None,
        source: SourceId::STATIC,
        trusted: true,
        party: callsheet::model::PeerIdentity::default(),
        own_name: None,
        protocol: None,
        protocol_version: None,
        version: None,
        description: None,
        tools: ToolCounts::default(),
        freshness: None,
        last_success: None,
        last_attempt: None,
        last_error: None,
        program_end: None,
        next_attempt: None,
        awaited: None,
        failures_in_a_row: 0,
        latency_ms: None,
        restarts: 0,
        last_restart: None,
    }
}

/// Serves a snapshot.
pub(crate) async fn serve(first: Snapshot) -> Served {
    serve_keeping(first, 10_000_000).await
}

/// Serves a snapshot; of prepared bodies so many bytes are kept.
pub(crate) async fn serve_keeping(first: Snapshot, most: u64) -> Served {
    serve_configured(first, most, configured()).await
}

/// The same with another `[server]`.
pub(crate) async fn serve_configured(
    first: Snapshot,
    most: u64,
    server: config::ServerConfig,
) -> Served {
    serve_following(first, most, server, config::EventsConfig::default()).await
}

/// The same with another `[events]`.
pub(crate) async fn serve_following(
    first: Snapshot,
    most: u64,
    server: config::ServerConfig,
    events: config::EventsConfig,
) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (writer, reader) = catalog_store(first);
    let (stop, stopping) = StopTrigger::new();
    let readiness = Readiness::new();
    let tasks = Tasks::new();
    let engine = EngineHandle::ended(reader.clone());
    let held = ByteBudget::new(server.held_bytes);
    let limits = config::CallsConfig::default();
    let calls = Calls::new(
        limits,
        engine.clone(),
        reader.clone(),
        held,
        Clock::system(),
        tasks.clone(),
    );
    let limits = config::Config::for_state("state.db").http_limits();
    let client = Client::new(limits, 1, Duration::ZERO, Clock::system(), tasks.clone());
    let parts = ServerParts {
        logins: Arc::new(OAuthTokens::new(&client)),
        definitions: callsheet::protocols::definitions::DefinitionRegistry::new(Vec::new(), &[]),
        bundles: BundleStore::new(
            BundleSettings::default(),
            Functions::default(),
            Clock::system(),
            tasks.clone(),
        ),
        engine,
        calls,
        events: Hub::start(reader.clone(), events, Clock::system(), &tasks, &stopping),
        reader,
        views: ViewCache::new(most, tasks.clone()),
        readiness: readiness.clone(),
        config: watch::Sender::new(Arc::new(Config {
            server,
            ..Config::for_state("state.db")
        }))
        .subscribe(),
        settings: watch::Sender::default().subscribe(),
        load_options: None,
        key: None,
        command_socket: None,
        connections: server::OpenConnections::default(),
        clock: Clock::system(),
        tasks: tasks.clone(),
    };
    let ended = tasks.spawn(server::run(listener, parts, stopping));
    Served {
        address,
        readiness,
        writer,
        stop,
        ended,
    }
}

/// Serves `inputs` without any health or findings.
pub(crate) async fn serve_inputs(inputs: &Inputs) -> Served {
    serve(snapshot(inputs, Vec::new(), Vec::new())).await
}

impl Served {
    /// A connection on which this was asked for, and whose answer has begun. Little of it fits into
    /// the socket, and its client takes no more for now.
    pub(crate) async fn begun(&self, target: &str) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4_096).unwrap();
        let mut stream = socket.connect(self.address).await.unwrap();
        let head = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.address
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        stream
    }

    /// See [`ask`].
    pub(crate) async fn ask(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        ask(self.address, method, target, headers, body).await
    }

    /// See [`ask_raw`].
    pub(crate) async fn ask_raw(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        rest: &str,
    ) -> Answer {
        ask_raw(self.address, method, target, headers, rest).await
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.ask("GET", target, &[], "").await
    }
}

/// Asks on a connection of its own. `Host` is the server's address unless given; one given as empty
/// is left out.
pub(crate) async fn ask(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let length = body.len().to_string();
    let mut headers = headers.to_vec();
    if !body.is_empty() {
        headers.push(("content-length", &length));
    }
    ask_raw(address, method, target, &headers, body).await
}

/// The same with a body of any bytes.
pub(crate) async fn ask_bytes(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let length = body.len().to_string();
    exchange(
        address,
        method,
        target,
        &[headers, &[("content-length", &length)]].concat(),
        body,
    )
    .await
}

/// The same, with `rest` after the head as it is.
pub(crate) async fn ask_raw(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    rest: &str,
) -> Answer {
    exchange(address, method, target, headers, rest.as_bytes()).await
}

async fn exchange(
    address: SocketAddr,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    rest: &[u8],
) -> Answer {
    let mut head = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "host") {
        write!(head, "Host: {address}\r\n").unwrap();
    }
    for (name, value) in headers.iter().filter(|header| **header != ("host", "")) {
        write!(head, "{name}: {value}\r\n").unwrap();
    }
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(&[format!("{head}\r\n").as_bytes(), rest].concat())
        .await
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    Answer::parse(&bytes)
}

impl Answer {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .expect("a whole head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        let headers = lines.map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (
                HeaderName::try_from(name).unwrap(),
                HeaderValue::try_from(value).unwrap(),
            )
        });
        Self {
            status,
            headers: headers.collect(),
            body: bytes[end + 4..].to_vec(),
        }
    }

    /// The text of a header; empty when absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The text of a problem, which is said twice.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{self:?}"
        );
        let body = self.json();
        assert_eq!(body["status"], self.status);
        assert_eq!(body["detail"], body["error"]);
        body["detail"].as_str().unwrap().to_owned()
    }
}
