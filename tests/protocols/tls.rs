//! Scenarios with https: asked and called over the version of HTTP that they choose, and only when
//! their certificate is trusted. Trust is the machine's, named by the environment, so each test
//! runs itself again in a process with another one.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use callsheet::transports::http::{CallLimits, ClientLimits, Upstream};
use http::header::{HOST, HeaderMap};
use http::{Method, Request, Response, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::support::assert_empty;
use crate::support::callee::PATIENCE;
use crate::support::tls_server;
use crate::support::upstream_server::{client, limits, upstream};

/// Tells the process that a test starts where the servers are.
const SERVERS: &str = "CALLSHEET_TEST_SERVERS";

/// What a server has seen of a request: the number of its connection, its method, its version and
/// the host that it names.
type Seen = (usize, Method, Version, String);

/// A server with the certificate of [`tls_server`], which the machine does not trust by itself.
struct Server {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _accepting: JoinSet<()>,
}

impl Server {
    async fn start(protocol: &'static [u8]) -> Self {
        Self::started(protocol, false).await
    }

    /// With `floods` it speaks HTTP/2 and answers the first request of each connection with interim
    /// responses without end.
    async fn started(protocol: &'static [u8], floods: bool) -> Self {
        let acceptor = tls_server::acceptor(protocol);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let mut accepting = JoinSet::new();
        let counted = Arc::clone(&seen);
        accepting.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 1.. {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(
                    number,
                    stream,
                    acceptor.clone(),
                    Arc::clone(&counted),
                    floods,
                ));
            }
        });
        Self {
            address,
            seen,
            _accepting: accepting,
        }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// Serves one connection. Its end may be as it likes: clients close theirs.
async fn serve(
    number: usize,
    stream: TcpStream,
    acceptor: TlsAcceptor,
    seen: Arc<Mutex<Vec<Seen>>>,
    floods: bool,
) {
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    if floods {
        return flood(&mut stream).await;
    }
    let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(|request: Request<Incoming>| {
        let header = request
            .headers()
            .get(HOST)
            .map(|host| host.to_str().unwrap().to_owned());
        let host = header
            .or_else(|| Some(request.uri().authority()?.to_string()))
            .unwrap();
        seen.lock()
            .unwrap()
            .push((number, request.method().clone(), request.version(), host));
        std::future::ready(Ok::<_, Infallible>(Response::new(Full::new(
            Bytes::from_static(b"{}"),
        ))))
    });
    let stream = TokioIo::new(stream);
    let _ = if is_h2 {
        http2::Builder::new(TokioExecutor::new())
            .serve_connection(stream, service)
            .await
    } else {
        http1::Builder::new()
            .serve_connection(stream, service)
            .await
    };
}

/// Waits for the first request, and sends `103` as fast as that is read.
async fn flood(stream: &mut TlsStream<TcpStream>) {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const HEADERS: u8 = 1;
    // On stream 1, with the end of the headers: the eighth static name is `:status`.
    const HINT: [u8; 14] = [0, 0, 5, HEADERS, 4, 0, 0, 0, 1, 0x08, 3, b'1', b'0', b'3'];
    let mut preface = [0; 24];
    let _ = stream.write_all(&SETTINGS).await;
    let _ = stream.read_exact(&mut preface).await;
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length.try_into().unwrap()];
        let _ = stream.read_exact(&mut payload).await;
        if head[3] == HEADERS {
            break;
        }
    }
    let hints = HINT.repeat(1_000);
    while stream.write_all(&hints).await.is_ok() {}
}

/// Runs a test again where only the certificates of this file are trusted.
async fn run_with(certificates: &str, test: &str, servers: &[&Server]) {
    let servers: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    run_again(certificates, test, &servers).await;
}

/// The same with servers of any kind.
pub(crate) async fn run_again(certificates: &str, test: &str, servers: &[SocketAddr]) {
    let servers: Vec<String> = servers.iter().map(SocketAddr::to_string).collect();
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", test])
        .env(SERVERS, servers.join(" "));
    child
        .env("SSL_CERT_FILE", tls_server::file(certificates))
        .env_remove("SSL_CERT_DIR");
    let output = tokio::time::timeout(PATIENCE, child.kill_on_drop(true).output())
        .await
        .unwrap()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Where the servers are, in the process that a test started.
pub(crate) fn servers() -> Option<Vec<SocketAddr>> {
    let named = std::env::var(SERVERS).ok()?;
    Some(
        named
            .split(' ')
            .map(|address| address.parse().unwrap())
            .collect(),
    )
}

/// Two polls and two calls.
async fn poll_and_call(upstream: &Upstream) {
    let limits = CallLimits {
        timeout: PATIENCE,
        max_body: 1024,
        headers: HeaderMap::new(),
        repeatable: false,
    };
    for _ in 0..2 {
        assert_eq!(&upstream.get("/tools", None).await.unwrap().body[..], b"{}");
        assert_eq!(
            &upstream.post("/execute", "{}", &limits).await.unwrap().body[..],
            b"{}"
        );
    }
}

#[tokio::test]
async fn a_trusted_scenario_is_asked_and_called_in_the_version_that_it_speaks() {
    if let Some(servers) = servers() {
        for address in servers {
            poll_and_call(&upstream(format!("https://{address}/").parse().unwrap())).await;
            // The certificate is looked at for the name, wherever the connection goes.
            let named = format!("https://host-a.local:{}/", address.port())
                .parse()
                .unwrap();
            let named = client(limits(), 1)
                .upstream(named)
                .unwrap()
                .with_dial(Some(address));
            poll_and_call(&named).await;
            let other = format!("https://host-b.local:{}/", address.port())
                .parse()
                .unwrap();
            let other = client(limits(), 1)
                .upstream(other)
                .unwrap()
                .with_dial(Some(address));
            assert_eq!(
                other.get("/tools", None).await.unwrap_err().kind(),
                "broken"
            );
        }
        return;
    }
    for (protocol, version) in [
        (&b"http/1.1"[..], Version::HTTP_11),
        (b"h2", Version::HTTP_2),
    ] {
        let server = Server::start(protocol).await;
        let test = "tls::a_trusted_scenario_is_asked_and_called_in_the_version_that_it_speaks";
        run_with("ca.pem", test, &[&server]).await;
        let hosts = [
            server.address.to_string(),
            format!("host-a.local:{}", server.address.port()),
        ];
        // Each poll has a connection of its own, while calls share one.
        let one_of = |host: &String, first: usize| {
            let of = |number, method| (number, method, version, host.clone());
            [
                (first, Method::GET),
                (first + 1, Method::POST),
                (first + 2, Method::GET),
                (first + 1, Method::POST),
            ]
            .map(|(number, method)| of(number, method))
        };
        assert_eq!(
            server.seen(),
            [one_of(&hosts[0], 1), one_of(&hosts[1], 4)].concat()
        );
    }
}

#[tokio::test]
async fn a_scenario_that_is_not_trusted_is_sent_nothing() {
    if let Some(servers) = servers() {
        let upstream = upstream(format!("https://{}/", servers[0]).parse().unwrap());
        let error = upstream.get("/tools", None).await.unwrap_err();
        assert_eq!(error.kind(), "broken", "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
        let limits = CallLimits {
            timeout: PATIENCE,
            max_body: 1024,
            headers: HeaderMap::new(),
            repeatable: false,
        };
        let error = upstream.post("/execute", "{}", &limits).await.unwrap_err();
        assert!(!error.sent && error.error.kind() == "broken", "{error}");
        return;
    }
    let server = Server::start(b"http/1.1").await;
    // The first of these is no authority, and the second is not a file.
    for certificates in ["server.pem", "none.pem"] {
        run_with(
            certificates,
            "tls::a_scenario_that_is_not_trusted_is_sent_nothing",
            &[&server],
        )
        .await;
    }
    assert_empty!(server.seen());
}

/// hyper drops them as they are read, and has other work go on in between: here the time limit, on
/// the only thread.
#[tokio::test]
async fn interim_responses_of_http_2_without_end_cost_their_own_request_alone() {
    if let Some(servers) = servers() {
        let before = peak_kib();
        let limits = ClientLimits {
            whole: Duration::from_secs(2),
            ..limits()
        };
        let upstream = client(limits, 1)
            .upstream(format!("https://{}/", servers[0]).parse().unwrap())
            .unwrap();
        let error = upstream.get("/tools", None).await.unwrap_err();
        assert_eq!(error.kind(), "timeout", "{error}");
        let grown = peak_kib() - before;
        assert!(grown < 64 * 1024, "{grown} KiB");
        return;
    }
    let server = Server::started(b"h2", true).await;
    run_with(
        "ca.pem",
        "tls::interim_responses_of_http_2_without_end_cost_their_own_request_alone",
        &[&server],
    )
    .await;
}

/// The most memory that this process had, in KiB.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}
