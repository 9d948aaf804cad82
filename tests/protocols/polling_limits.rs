//! The limits of asking: time, size and how many at once, against real servers on this machine.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use callsheet::runtime::Clock;
use callsheet::transports::TransportError;
use callsheet::transports::http::{ClientLimits, Upstream};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

use crate::support::upstream_server::{
    MIB, UpstreamServer, answer, client, gzip, hang, limits, upstream,
};

#[tokio::test]
async fn a_connection_that_does_not_come_to_stand_is_a_connect_timeout() {
    // It accepts and then never speaks TLS, so the connection is not there until the handshake is.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", silent.local_addr().unwrap());
    let connect = Duration::from_millis(100);
    let client = client(
        ClientLimits {
            connect,
            ..limits()
        },
        1,
    );
    let error = client
        .upstream(Url::parse(&url).unwrap())
        .unwrap()
        .get("", None)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, TransportError::Timeout { limit, .. } if *limit == connect),
        "{error:?}"
    );
    assert_eq!(error.kind(), "timeout");
}

#[tokio::test]
async fn no_head_within_the_whole_limit_is_a_timeout() {
    let server = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let whole = Duration::from_millis(150);
    let client = client(ClientLimits { whole, ..limits() }, 1);
    let error = client
        .upstream(server.url())
        .unwrap()
        .get("/tools", None)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, TransportError::Timeout { limit, .. } if *limit == whole),
        "{error:?}"
    );
    assert_eq!(server.requests().len(), 1, "a timeout is not repeated");
}

#[tokio::test]
async fn a_body_that_trickles_hits_the_whole_limit() {
    let server = UpstreamServer::serving(|_, mut stream| {
        Box::pin(async move {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                .await
                .unwrap();
            // Always moving, so that a limit on silence would never end it.
            while stream.write_all(b" ").await.is_ok() {
                Clock::system().sleep(Duration::from_millis(10)).await;
            }
        })
    })
    .await;
    let whole = Duration::from_millis(200);
    let client = client(ClientLimits { whole, ..limits() }, 1);
    let error = client
        .upstream(server.url())
        .unwrap()
        .get("/tools", None)
        .await
        .unwrap_err();
    assert!(
        matches!(&error, TransportError::Timeout { limit, .. } if *limit == whole),
        "{error:?}"
    );
}

#[tokio::test]
async fn waiting_for_a_place_is_not_counted_into_the_whole_limit() {
    let slow = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let quick = UpstreamServer::answering(|_| answer("200 OK", &[], b"quick")).await;
    let whole = Duration::from_millis(300);
    let client = client(ClientLimits { whole, ..limits() }, 1);
    let slow = client.upstream(slow.url()).unwrap();
    let quick = client.upstream(quick.url()).unwrap();
    // The second waits as long as the whole limit for the only place.
    let (timed_out, answered) = tokio::join!(biased; slow.get("", None), quick.get("", None));
    assert_eq!(timed_out.unwrap_err().kind(), "timeout");
    assert_eq!(&answered.unwrap().body[..], b"quick");
}

#[tokio::test]
async fn the_body_limit_counts_to_the_byte() {
    let server = UpstreamServer::answering(|request| {
        let body = vec![
            b' ';
            if request.target() == "/fits" {
                MIB
            } else {
                MIB + 1
            }
        ];
        if request.target() == "/chunked" {
            let mut bytes = format!(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n",
                body.len()
            )
            .into_bytes();
            bytes.extend_from_slice(&body);
            bytes.extend_from_slice(b"\r\n0\r\n\r\n");
            return bytes;
        }
        answer("200 OK", &[], &body)
    })
    .await;
    let upstream = upstream(server.url());
    assert_eq!(upstream.get("/fits", None).await.unwrap().body.len(), MIB);
    for path in ["/announced", "/chunked"] {
        let error = upstream.get(path, None).await.unwrap_err();
        assert!(
            matches!(error, TransportError::TooLarge { limit: MIB, .. }),
            "{path}: {error:?}"
        );
        assert_eq!(error.kind(), "too-large");
    }
}

#[tokio::test]
async fn a_body_that_announces_too_much_is_not_waited_for() {
    let server = UpstreamServer::serving(|_, mut stream| {
        Box::pin(async move {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
                .await
                .unwrap();
            hang(stream).await;
        })
    })
    .await;
    assert_eq!(
        upstream(server.url())
            .get("/tools", None)
            .await
            .unwrap_err()
            .kind(),
        "too-large"
    );
}

#[tokio::test]
async fn compressed_bodies_are_decoded_and_bombs_stop_at_the_limit() {
    let server = UpstreamServer::answering(|request| {
        let plain = if request.target().ends_with("bomb") {
            vec![0; 8 * MIB]
        } else {
            b"{\"tools\":[]}".to_vec()
        };
        let (coding, body) = if request.target().starts_with("/gzip") {
            ("Content-Encoding: gzip", gzip(&plain))
        } else {
            ("Content-Encoding: br", brotli(&plain))
        };
        assert!(
            body.len() < MIB,
            "the bomb must pass the limit only once it is decoded"
        );
        answer("200 OK", &[coding], &body)
    })
    .await;
    let upstream = upstream(server.url());
    for path in ["/gzip", "/br"] {
        assert_eq!(
            &upstream.get(path, None).await.unwrap().body[..],
            b"{\"tools\":[]}",
            "{path}"
        );
        let error = upstream
            .get(&format!("{path}-bomb"), None)
            .await
            .unwrap_err();
        assert!(
            matches!(error, TransportError::TooLarge { limit: MIB, .. }),
            "{path}: {error:?}"
        );
    }
}

/// Counts requests under way, and answers only when `until` of them were at once or none came for a
/// while.
struct Gauge {
    now: watch::Sender<usize>,
    most: watch::Sender<usize>,
}

impl Gauge {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            now: watch::Sender::new(0),
            most: watch::Sender::new(0),
        })
    }

    async fn serve(self: Arc<Self>, mut stream: TcpStream, until: usize, patience: Duration) {
        self.now.send_modify(|now| *now += 1);
        let now = *self.now.borrow();
        self.most.send_modify(|most| *most = now.max(*most));
        let mut most = self.most.subscribe();
        let _ = tokio::time::timeout(patience, most.wait_for(|most| *most >= until)).await;
        // Counted down before the answer, so that the client cannot have taken the place again.
        self.now.send_modify(|now| *now -= 1);
        stream
            .write_all(&answer("200 OK", &[], b"{}"))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn no_more_requests_than_allowed_are_under_way() {
    let gauge = Gauge::new();
    let server = {
        let gauge = Arc::clone(&gauge);
        UpstreamServer::serving(move |_, stream| {
            // One more than allowed never come together, so the first three wait out their
            // patience.
            Box::pin(Arc::clone(&gauge).serve(stream, 4, Duration::from_millis(100)))
        })
        .await
    };
    let client = client(limits(), 3);
    let upstreams: Vec<Upstream> = (0..9)
        .map(|_| client.upstream(server.url()).unwrap())
        .collect();
    let answers =
        futures_util::future::join_all(upstreams.iter().map(|upstream| upstream.get("", None)))
            .await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(*gauge.most.borrow(), 3);
}

#[tokio::test]
async fn one_scenario_is_asked_one_request_at_a_time() {
    let gauge = Gauge::new();
    let server = {
        let gauge = Arc::clone(&gauge);
        UpstreamServer::serving(move |_, stream| {
            Box::pin(Arc::clone(&gauge).serve(stream, 2, Duration::from_millis(50)))
        })
        .await
    };
    let clones = vec![upstream(server.url()); 4];
    let answers =
        futures_util::future::join_all(clones.iter().map(|upstream| upstream.get("", None))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(*gauge.most.borrow(), 1);
}

#[tokio::test]
async fn giving_up_frees_the_place() {
    let slow = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let quick = UpstreamServer::answering(|_| answer("200 OK", &[], b"quick")).await;
    let client = client(limits(), 1);
    let slow = client.upstream(slow.url()).unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(50), slow.get("", None)).await;
    assert!(given_up.is_err());
    assert!(
        client
            .upstream(quick.url())
            .unwrap()
            .get("", None)
            .await
            .is_ok()
    );
}

fn brotli(plain: &[u8]) -> Vec<u8> {
    let mut encoded = brotli::CompressorWriter::new(Vec::new(), 64 * 1024, 1, 22);
    encoded.write_all(plain).unwrap();
    encoded.into_inner()
}
