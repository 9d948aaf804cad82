//! The connections that calls go over: kept for the next call, given up when the other side has,
//! and never a reason to send a call twice.

#![allow(
    clippy::disallowed_methods,
    reason = "a server of a test is no task of the daemon"
)]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callsheet::transports::http::{CallLimits, Client, HttpResponse, Unanswered, Upstream};
use futures_util::future::join_all;
use http::header::HeaderMap;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, watch};
use tokio::task::JoinSet;
use url::Url;

use crate::support::callee::PATIENCE;
use crate::support::upstream_server::{self, answer, client};

const BODY: &[u8] = b"{}";
/// As many as are kept for one host.
const KEPT: usize = 32;

/// What a server does with a request.
#[derive(Clone)]
enum Does {
    /// Sends these bytes.
    Answers(Vec<u8>),
    /// Sends an answer, and closes the connection without a word of it.
    AnswersAndCloses,
    /// Closes.
    Closes,
    /// Sends these bytes and nothing more.
    Stalls(Vec<u8>),
    /// Answers when so many requests are there.
    Waits(Arc<Barrier>),
}

/// What a server has seen.
#[derive(Debug, Default)]
struct Seen {
    opened: usize,
    requests: usize,
    closed: usize,
}

/// A server that does with each request what a test says, by its number in all.
struct Server {
    address: SocketAddr,
    client: Arc<Client>,
    upstream: Upstream,
    seen: watch::Receiver<Seen>,
    _accepting: JoinSet<()>,
}

impl Server {
    async fn start(does: impl Fn(usize) -> Does + Send + Sync + 'static) -> Self {
        Self::bound(TcpListener::bind("127.0.0.1:0").await.unwrap(), does)
    }

    /// The same on a listener that stands already.
    fn bound(listener: TcpListener, does: impl Fn(usize) -> Does + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().unwrap();
        let (counts, seen) = watch::channel(Seen::default());
        let mut accepting = JoinSet::new();
        accepting.spawn(async move {
            let counts = Arc::new(counts);
            let does = Arc::new(does);
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counts.send_modify(|seen| seen.opened += 1);
                let counts = Arc::clone(&counts);
                let does = Arc::clone(&does);
                connections.spawn(async move {
                    serve(stream, &counts, &*does).await;
                    counts.send_modify(|seen| seen.closed += 1);
                });
            }
        });
        let client = client(upstream_server::limits(), 4);
        let upstream = client
            .upstream(format!("http://{address}/").parse().unwrap())
            .unwrap();
        Self {
            address,
            client,
            upstream,
            seen,
            _accepting: accepting,
        }
    }

    async fn until(&self, what: &str, holds: impl FnMut(&Seen) -> bool) {
        let mut seen = self.seen.clone();
        let waited = tokio::time::timeout(PATIENCE, seen.wait_for(holds))
            .await
            .is_ok();
        assert!(waited, "not {what}: {:?}", *self.seen.borrow());
    }

    fn post(&self) -> impl Future<Output = Result<HttpResponse, Unanswered>> + use<> {
        let upstream = self.upstream.clone();
        let limits = limits();
        async move { upstream.post("/execute", BODY, &limits).await }
    }

    async fn answers(&self) -> HttpResponse {
        tokio::time::timeout(PATIENCE, self.post())
            .await
            .unwrap()
            .unwrap()
    }
}

fn limits() -> CallLimits {
    CallLimits {
        timeout: PATIENCE,
        max_body: 1024,
        headers: HeaderMap::new(),
        repeatable: false,
    }
}

/// Serves one connection until either side has closed it.
async fn serve(mut stream: TcpStream, counts: &watch::Sender<Seen>, does: &impl Fn(usize) -> Does) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        seen.extend_from_slice(&buffer[..read]);
        if !seen.ends_with(BODY) {
            continue;
        }
        seen.clear();
        let mut number = 0;
        counts.send_modify(|seen| {
            seen.requests += 1;
            number = seen.requests;
        });
        let (bytes, closes) = match does(number) {
            Does::Answers(bytes) | Does::Stalls(bytes) => (bytes, false),
            Does::AnswersAndCloses => (ok(), true),
            Does::Closes => (Vec::new(), true),
            Does::Waits(together) => {
                together.wait().await;
                (ok(), false)
            }
        };
        stream.write_all(&bytes).await.unwrap();
        if closes {
            return;
        }
    }
}

fn ok() -> Vec<u8> {
    answer("200 OK", &[], b"done")
}

#[tokio::test]
async fn a_connection_is_kept_whatever_the_form_of_the_answer_was() {
    let answers = [
        ok(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ndo\r\n2\r\nne\r\n0\r\n\r\n"
            .to_vec(),
        b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        answer("500 Internal Server Error", &[], b"no"),
    ];
    let server =
        Server::start(move |number| Does::Answers(answers[(number - 1) % answers.len()].clone()))
            .await;
    let mut bodies = Vec::new();
    for _ in 0..8 {
        bodies.push(server.answers().await.body);
    }
    assert_eq!(bodies, [&b"done"[..], b"done", b"", b"no"].repeat(2));
    assert_eq!(server.seen.borrow().opened, 1);
    assert_eq!(server.seen.borrow().requests, 8);
}

#[tokio::test]
async fn one_that_says_it_closes_is_not_kept() {
    let server =
        Server::start(|_| Does::Answers(answer("200 OK", &["Connection: close"], b"done"))).await;
    server.answers().await;
    server.until("closed", |seen| seen.closed == 1).await;
    server.answers().await;
    assert_eq!(server.seen.borrow().opened, 2);
}

#[tokio::test]
async fn one_that_was_closed_meanwhile_is_not_used() {
    let server = Server::start(|number| {
        if number < 20 {
            Does::AnswersAndCloses
        } else {
            Does::Answers(ok())
        }
    })
    .await;
    for number in 1..=20 {
        assert_eq!(server.answers().await.body, &b"done"[..], "call {number}");
        server
            .until("closed", |seen| seen.closed >= number.min(19))
            .await;
    }
    assert_eq!(server.seen.borrow().opened, 20, "each was sent once");
    assert_eq!(server.seen.borrow().requests, 20, "each was sent once");
}

#[tokio::test]
async fn a_call_that_was_seen_is_not_sent_again() {
    let server = Server::start(|number| {
        if number == 2 {
            Does::Closes
        } else {
            Does::Answers(ok())
        }
    })
    .await;
    server.answers().await;
    let error = tokio::time::timeout(PATIENCE, server.post())
        .await
        .unwrap()
        .unwrap_err();
    assert!(error.sent && error.error.kind() == "broken", "{error}");
    assert_eq!(server.seen.borrow().opened, 1);
    assert_eq!(server.seen.borrow().requests, 2);
    server.answers().await;
    assert_eq!(server.seen.borrow().opened, 2);
    assert_eq!(server.seen.borrow().requests, 3);
}

#[tokio::test]
async fn a_call_that_is_dropped_closes_its_connection() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndo".to_vec();
    for begun in [Vec::new(), half] {
        // The first answer keeps a connection, which the call that is dropped takes.
        let stalls = move |number| {
            if number == 1 {
                Does::Answers(ok())
            } else {
                Does::Stalls(begun.clone())
            }
        };
        let server = Server::start(stalls).await;
        server.answers().await;
        let call = tokio::spawn(server.post());
        server.until("asked", |seen| seen.requests == 2).await;
        assert_eq!(server.seen.borrow().closed, 0);
        call.abort();
        server.until("closed", |seen| seen.closed == 1).await;
        assert_eq!(server.seen.borrow().opened, 1);
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read_on() {
    let mut begun = answer("200 OK", &[], &[b'x'; 4096]);
    begun.truncate(begun.len() - 1);
    let server = Server::start(move |_| Does::Stalls(begun.clone())).await;
    let error = tokio::time::timeout(PATIENCE, server.post())
        .await
        .unwrap()
        .unwrap_err();
    assert_eq!(error.error.kind(), "too-large");
    server.until("closed", |seen| seen.closed == 1).await;
}

#[tokio::test]
async fn closing_the_client_closes_what_was_kept() {
    let server = Server::start(|_| Does::Answers(ok())).await;
    server.answers().await;
    server.client.close().await;
    // Before it would be closed for its age.
    let closed = server.until("closed", |seen| seen.closed == 1);
    tokio::time::timeout(Duration::from_secs(3), closed)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_kept_connection_is_not_used_for_another_machine_of_the_same_name() {
    let answers = |body: &'static [u8]| move |_| Does::Answers(answer("200 OK", &[], body));
    let first = Server::start(answers(b"first")).await;
    let port = first.address.port();
    // Not every system has the whole of 127.0.0.0/8.
    let Ok(listener) = TcpListener::bind(("127.0.0.2", port)).await else {
        return;
    };
    let second = Server::bound(listener, answers(b"second"));
    let url: Url = format!("http://host-a.local:{port}/").parse().unwrap();
    let at = |address| {
        first
            .client
            .upstream(url.clone())
            .unwrap()
            .with_dial(Some(address))
    };
    let one = at(first.address);
    let two = at(second.address);
    for _ in 0..2 {
        for (upstream, body) in [(&one, &b"first"[..]), (&two, b"second")] {
            let answered = upstream.post("/execute", BODY, &limits()).await.unwrap();
            assert_eq!(answered.body, body);
        }
    }
    assert_eq!(first.seen.borrow().opened, 1);
    assert_eq!(second.seen.borrow().opened, 1);
}

#[tokio::test]
async fn only_so_many_are_kept_and_none_for_long() {
    let more = KEPT + 8;
    let together = Arc::new(Barrier::new(more));
    let server = Server::start(move |_| Does::Waits(Arc::clone(&together))).await;
    for answered in join_all((0..more).map(|_| server.post())).await {
        answered.unwrap();
    }
    server
        .until("bounded", |seen| seen.closed == more - KEPT)
        .await;
    let calls = join_all((0..more).map(|_| server.post()));
    assert!(
        tokio::time::timeout(PATIENCE, calls)
            .await
            .unwrap()
            .iter()
            .all(Result::is_ok)
    );
    assert_eq!(
        server.seen.borrow().opened,
        more + more - KEPT,
        "those that were kept are used again"
    );

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(5)).await;
    tokio::time::resume();
    server
        .until("closed", |seen| seen.closed == seen.opened)
        .await;
}
