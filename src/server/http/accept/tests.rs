//! Connections and streams as clients meet them, with small limits.

use super::*;
use http_body_util::Full;
use hyper::service::service_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server that answers `/` at once, `/slow` after a `release`, and `/wait` when its connection
/// has to give way. `entered` counts requests.
struct Fake {
    address: SocketAddr,
    release: Arc<Notify>,
    entered: watch::Receiver<usize>,
    stop: StopTrigger,
    ended: JoinHandle<usize>,
}

async fn fake(limits: ConnectionLimits) -> Fake {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let release = Arc::new(Notify::new());
    let (count, entered) = watch::channel(0);
    let (stop, stopping) = StopTrigger::new();
    let count = Arc::new(count);
    let notify = Arc::clone(&release);
    let tasks = Tasks::new();
    let service = move |_: &TcpStream, _, load: &ConnectionLoad| {
        let count = Arc::clone(&count);
        let notify = Arc::clone(&notify);
        let load = load.clone();
        service_fn(move |request: Request<Incoming>| {
            let count = Arc::clone(&count);
            let notify = Arc::clone(&notify);
            let load = load.clone();
            async move {
                count.send_modify(|count| *count += 1);
                if request.uri().path() == "/wait" {
                    load.waits_for_change(std::future::pending()).await;
                }
                if request.uri().path() == "/slow" {
                    notify.notified().await;
                }
                // More than the buffers of two sockets hold.
                let body = if request.uri().path() == "/large" {
                    vec![b'.'; 32 << 20]
                } else {
                    b"done".to_vec()
                };
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
            }
        })
    };
    let served = tasks.clone();
    let ended = tasks.spawn(async move {
        let open = OpenConnections::default();
        serve(
            listener,
            service,
            limits,
            Clock::system(),
            &served,
            &open,
            &stopping,
        )
        .await
    });
    Fake {
        address,
        release,
        entered,
        stop,
        ended,
    }
}

impl Fake {
    async fn connect_and_get(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Waits until so many requests have come in.
    async fn entered(&mut self, count: usize) {
        self.entered
            .wait_for(|entered| *entered >= count)
            .await
            .unwrap();
    }
}

async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        match stream.read_u8().await {
            Ok(byte) => text.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_the_stop() {
    let server = fake(ConnectionLimits::default()).await;
    let mut idle = server.connect_and_get("/").await;
    assert!(
        read_until(&mut idle, "done")
            .await
            .starts_with("HTTP/1.1 200")
    );
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "still listening"
    );
}

#[tokio::test]
async fn an_answer_under_way_is_finished_after_the_stop() {
    let mut server = fake(ConnectionLimits::default()).await;
    let mut slow = server.connect_and_get("/slow").await;
    server.entered(1).await;
    server.stop.stop();
    server.release.notify_one();
    assert!(read_until(&mut slow, "done").await.ends_with("done"));
    assert_eq!(server.ended.await.unwrap(), 0);
}

#[tokio::test]
async fn what_does_not_end_in_time_is_cut_and_counted() {
    let mut server = fake(ConnectionLimits {
        stop_timeout: Duration::from_millis(20),
        ..ConnectionLimits::default()
    })
    .await;
    let mut slow = [
        server.connect_and_get("/slow").await,
        server.connect_and_get("/slow").await,
    ];
    server.entered(2).await;
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 2);
    assert_eq!(read_until(&mut slow[0], "done").await, "");
}

#[tokio::test]
async fn a_connection_without_a_request_is_closed() {
    let server = fake(ConnectionLimits {
        head_timeout: Duration::from_millis(20),
        ..ConnectionLimits::default()
    })
    .await;
    // The second holds hyper in doubt about the version of HTTP.
    for beginning in ["", "P", "GET / HTTP/1.1\r\n"] {
        let mut silent = TcpStream::connect(server.address).await.unwrap();
        silent.write_all(beginning.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // Ends only when the server closes.
        let _ = silent.read_to_end(&mut rest).await;
    }
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}

#[tokio::test]
async fn a_client_that_does_not_read_loses_its_slot() {
    let read_timeout = Duration::from_millis(50);
    let mut server = fake(ConnectionLimits {
        connections: 1,
        read_timeout,
        ..ConnectionLimits::default()
    })
    .await;
    let stuck = server.connect_and_get("/large").await;
    server.entered(1).await;
    // Only one connection is accepted, so this one is answered once the other one was cut.
    let mut second = server.connect_and_get("/").await;
    let answer =
        tokio::time::timeout(Duration::from_secs(30), read_until(&mut second, "done")).await;
    assert!(answer.expect("the slot is free").ends_with("done"));
    drop(stuck);
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}

#[tokio::test]
async fn further_connections_wait_for_a_slot() {
    let mut server = fake(ConnectionLimits {
        connections: 1,
        ..ConnectionLimits::default()
    })
    .await;
    let mut first = server.connect_and_get("/slow").await;
    server.entered(1).await;
    let mut second = server.connect_and_get("/").await;
    // No signal says that a request is *not* accepted; without the limit it would be answered
    // well within this time.
    let early = tokio::time::timeout(Duration::from_millis(100), second.read_u8()).await;
    assert!(early.is_err(), "the second came in beside the first");
    server.release.notify_one();
    assert!(read_until(&mut first, "done").await.ends_with("done"));
    drop(first);
    assert!(read_until(&mut second, "done").await.ends_with("done"));
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}

/// A request of HTTP/2 on this stream.
fn http2_request(stream: u8, path: &[u8]) -> Vec<u8> {
    let mut fields = b"\x82\x86\x41\x09localhost\x04".to_vec();
    fields.push(u8::try_from(path.len()).unwrap());
    fields.extend_from_slice(path);
    let head = [
        0,
        0,
        u8::try_from(fields.len()).unwrap(),
        1,
        5,
        0,
        0,
        0,
        stream,
    ];
    [&head[..], &fields].concat()
}

/// The preface of HTTP/2, settings, and a request for `/` or `/slow` (RFC 7541 appendix A has
/// the indices of the fields).
fn http2(path: &[u8]) -> Vec<u8> {
    [
        &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..],
        &http2_request(1, path),
    ]
    .concat()
}

/// Reads frames to the end of the connection and answers pings. Gives the types of the frames.
async fn frames(stream: &mut TcpStream) -> Vec<u8> {
    let mut types = Vec::new();
    let mut head = [0; 9];
    while stream.read_exact(&mut head).await.is_ok() {
        let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
        if stream.read_exact(&mut payload).await.is_err() {
            break;
        }
        types.push(head[3]);
        if head[3] == 6 && head[4] == 0 {
            head[4] = 1;
            let _ = stream.write_all(&[&head[..], &payload].concat()).await;
        }
    }
    types
}

#[tokio::test]
async fn an_http2_connection_without_requests_ends_and_one_with_a_slow_answer_stays() {
    let mut server = fake(ConnectionLimits {
        idle_timeout: Duration::from_millis(50),
        ..ConnectionLimits::default()
    })
    .await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(&http2(b"/slow")).await.unwrap();
    server.entered(1).await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    idle.write_all(&http2(b"/")).await.unwrap();
    let seen = tokio::time::timeout(Duration::from_secs(30), frames(&mut idle)).await;
    let seen = seen.expect("it answers pings and is let go all the same");
    assert!(
        seen.contains(&0) && seen.contains(&7),
        "its answer and a GOAWAY: {seen:?}"
    );
    server.release.notify_one();
    let seen = tokio::time::timeout(Duration::from_secs(30), frames(&mut slow))
        .await
        .unwrap();
    assert!(
        seen.contains(&0),
        "it was idle for no longer, and is answered: {seen:?}"
    );
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}

/// Its client does not answer the ping that the end begins with, so the end lasts until it is cut.
#[tokio::test]
async fn a_connection_gives_way_also_while_it_ends_for_another_reason() {
    let limits = ConnectionLimits {
        connections: 1,
        idle_timeout: Duration::from_millis(20),
        read_timeout: Duration::from_secs(600),
        ..ConnectionLimits::default()
    };
    let mut server = fake(limits).await;
    let mut first = TcpStream::connect(server.address).await.unwrap();
    first.write_all(&http2(b"/")).await.unwrap();
    let mut head = [0; 9];
    let ends = async {
        while head[3] != 7 {
            first.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            first.read_exact(&mut payload).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ends)
        .await
        .expect("GOAWAY comes");
    first.write_all(&http2_request(3, b"/wait")).await.unwrap();
    server.entered(2).await;
    let mut second = server.connect_and_get("/").await;
    let answer =
        tokio::time::timeout(Duration::from_secs(30), read_until(&mut second, "done")).await;
    assert!(answer.expect("the first one is cut").ends_with("done"));
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}

#[tokio::test]
async fn a_stream_whose_client_takes_no_part_of_the_answer_is_reset() {
    let read_timeout = Duration::from_millis(50);
    let mut server = fake(ConnectionLimits {
        read_timeout,
        ..ConnectionLimits::default()
    })
    .await;
    let mut stuck = TcpStream::connect(server.address).await.unwrap();
    let mut asked = http2(b"/large");
    // SETTINGS_INITIAL_WINDOW_SIZE (4) is 0, in place of the empty SETTINGS frame.
    asked.splice(24..33, *b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0");
    stuck.write_all(&asked).await.unwrap();
    server.entered(1).await;
    let mut head = [0; 9];
    let mut streams = None;
    let reset = async {
        while head[3] != 3 {
            stuck.read_exact(&mut head).await.unwrap();
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            stuck.read_exact(&mut payload).await.unwrap();
            if head[3] == 4 && head[4] == 0 {
                let all = payload.chunks(6).find(|setting| setting[..2] == [0, 3]);
                streams = all.map(|setting| setting[5]);
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), reset)
        .await
        .expect("RST_STREAM comes");
    assert_eq!(streams, Some(32), "so many requests at once");
    drop(stuck);
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_spoken() {
    let server = fake(ConnectionLimits::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    // RFC 9113 section 3.4: the preface, then a SETTINGS frame, here an empty one.
    stream
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "the server's first frame is SETTINGS");
    drop(stream);
    server.stop.stop();
    assert_eq!(server.ended.await.unwrap(), 0);
}
