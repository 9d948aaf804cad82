//! A full table of connections, and clients that send what requests no work, or large heads: others
//! are answered.

use std::io::ErrorKind;
use std::time::Duration;

use callsheet::catalog::Inputs;
use callsheet::config::ServerConfig;
use futures_util::future::{join_all, select_all};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::held::until_held;
use crate::support::callee::{Callee, Ran, done, manifest, tool};
use crate::support::daemon::{Daemon, Home, configured};
use crate::support::serving::{self, Served};

/// No condition of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that takes so many connections at once.
async fn served(connections: usize) -> Served {
    let server = ServerConfig {
        max_connections: connections,
        max_body: 60_000,
        ..serving::configured()
    };
    serving::serve_configured(
        serving::snapshot(&Inputs::default(), Vec::new(), Vec::new()),
        1 << 20,
        server,
    )
    .await
}

/// A connection on which these bytes were sent.
async fn sent(server: &Served, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Reads the beginning of an answer.
async fn begun(stream: &mut TcpStream) -> String {
    let mut first = vec![0; 12];
    let read = tokio::time::timeout(PATIENCE, stream.read_exact(&mut first)).await;
    read.expect("an answer in time").unwrap();
    String::from_utf8(first).unwrap()
}

/// Waits until the server has closed the connection.
async fn closed(stream: &mut TcpStream) {
    let end = async {
        let mut rest = [0; 4_096];
        while stream.read(&mut rest).await.is_ok_and(|read| read > 0) {}
    };
    tokio::time::timeout(PATIENCE, end)
        .await
        .expect("it is closed");
}

/// Whether the connection has not been closed: a request on it is answered.
async fn is_open(stream: &mut TcpStream) -> bool {
    let answered = async {
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .await
            .ok()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .unwrap();
        stream
            .read_exact(&mut vec![0; length.parse().unwrap()])
            .await
            .ok()
    };
    tokio::time::timeout(PATIENCE, answered)
        .await
        .expect("an answer or an end")
        .is_some()
}

const EVENTS: &[u8] = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn the_longest_resting_connection_gives_way_whatever_its_client_has_begun() {
    let half_body = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: 50000\r\nExpect: 100-continue\r\n\r\n";
    for begun_by_client in [
        &b""[..],
        b"GET / HTTP/1.1\r\nHost: loc",
        b"PRI * HT",
        half_body,
    ] {
        let server = served(3).await;
        // A stream of events is a request under way: it never gives way.
        let mut follower = sent(&server, EVENTS).await;
        assert_eq!(begun(&mut follower).await, "HTTP/1.1 200");
        let mut first = sent(&server, begun_by_client).await;
        if begun_by_client == half_body {
            assert_eq!(begun(&mut first).await, "HTTP/1.1 100");
        }
        let mut second = TcpStream::connect(server.address).await.unwrap();
        assert!(is_open(&mut second).await);
        // There is no slot for this one.
        let mut new = sent(&server, HEALTH).await;
        assert_eq!(
            begun(&mut new).await,
            "HTTP/1.1 200",
            "beside {:?}",
            String::from_utf8_lossy(begun_by_client)
        );
        closed(&mut first).await;
        assert!(is_open(&mut second).await, "it rested for less long");
        drop(new);
        drop(follower);
    }
}

#[tokio::test]
async fn beside_streams_on_all_connections_a_brief_request_is_answered() {
    let server = served(64).await;
    let mut followers = Vec::new();
    for _ in 0..64 {
        let mut follower = sent(&server, EVENTS).await;
        assert_eq!(begun(&mut follower).await, "HTTP/1.1 200");
        followers.push(follower);
    }
    for _ in 0..3 {
        let mut new = sent(&server, HEALTH).await;
        assert_eq!(begun(&mut new).await, "HTTP/1.1 200");
    }
    let mut last = followers.pop().unwrap();
    closed(&mut last).await;
    for follower in &followers {
        // Their first events may be there, but no end.
        let read = follower.try_read(&mut [0; 4_096]);
        let is_open = read.map_or_else(
            |error| error.kind() == ErrorKind::WouldBlock,
            |bytes| bytes > 0,
        );
        assert!(is_open, "the earlier ones stay");
    }
}

#[tokio::test]
async fn a_head_that_is_larger_than_those_of_clients_is_refused_before_it_is_whole() {
    let server = served(10).await;
    let head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nCookie: ";
    let mut usual = sent(
        &server,
        &[&head[..], &vec![b'c'; 15 * 1024], b"\r\n\r\n"].concat(),
    )
    .await;
    assert_eq!(begun(&mut usual).await, "HTTP/1.1 200");
    let mut large = sent(&server, &[&head[..], &vec![b'c'; 16 * 1024]].concat()).await;
    assert_eq!(begun(&mut large).await, "HTTP/1.1 431");
    closed(&mut large).await;
}

/// The statuses of so many answers of HTTP/2: whether each is 200.
async fn http2_answers(stream: &mut TcpStream, count: usize) -> Vec<bool> {
    let mut found = Vec::new();
    let reading = async {
        let mut head = [0; 9];
        while found.len() < count {
            stream.read_exact(&mut head).await.unwrap();
            let length =
                usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
            let mut content = vec![0; length];
            stream.read_exact(&mut content).await.unwrap();
            if head[3] == 1 {
                // The field `:status: 200` of the static table.
                found.push(content[0] == 0x88);
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("so many answers");
    found
}

/// A connection of HTTP/2 with 32 streams of this header block, whose frames have these flags, each
/// followed by `rest`.
fn streams(fields: &[u8], flags: u8, rest: &[u8]) -> Vec<u8> {
    let length = u8::try_from(fields.len()).unwrap();
    let mut requests = PREFACE.to_vec();
    for stream in 0..32_u8 {
        let number = 1 + 2 * stream;
        requests.extend_from_slice(&[0, 0, length, 1, flags, 0, 0, 0, number]);
        requests.extend_from_slice(fields);
        if let Ok(length @ 1..) = u8::try_from(rest.len()) {
            requests.extend_from_slice(&[0, 0, length, 0, 0, 0, 0, 0, number]);
            requests.extend_from_slice(rest);
        }
    }
    requests
}

fn requests_for_events() -> Vec<u8> {
    let target = b"/api/v1/events";
    let length = u8::try_from(target.len()).unwrap();
    let fields = [&b"\x82\x86\x41\x09localhost\x04"[..], &[length], target].concat();
    streams(&fields, 5, b"")
}

#[tokio::test]
async fn beyond_the_limit_of_requests_no_more_connections_are_closed_than_make_room() {
    let server = served(6).await;
    let fields = b"\x83\x86\x41\x09localhost\x04\x04/rpc\x5f\x10application/json";
    let unfinished = streams(fields, 4, b"{");
    let mut connections = Vec::new();
    for count in 1..=3 {
        connections.push(sent(&server, &unfinished).await);
        until_held(&server, "read", |bytes| bytes >= count * 32 * 16 * 1024).await;
    }
    // With these, 128 are under way: one that looks how many bytes are held would be one too many.
    connections.push(sent(&server, &unfinished).await);
    let mut busy = sent(&server, &requests_for_events()).await;
    assert_eq!(http2_answers(&mut busy, 32).await, [true; 32]);
    let mut first = connections.remove(0);
    closed(&mut first).await;
    for connection in &mut connections {
        connection.write_all(&frame(6, b"12345678")).await.unwrap();
        let pong = async {
            let mut head = [0; 9];
            while head[3] != 6 || head[4] != 1 {
                connection.read_exact(&mut head).await.unwrap();
                let length = usize::from(head[1]) << 8 | usize::from(head[2]);
                connection.read_exact(&mut vec![0; length]).await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, pong)
            .await
            .expect("the others stay");
    }
}

#[tokio::test]
async fn requests_under_way_are_limited_over_all_connections() {
    let server = served(6).await;
    let requests = requests_for_events();
    let mut connections = Vec::new();
    for _ in 0..4 {
        let mut connection = sent(&server, &requests).await;
        assert_eq!(http2_answers(&mut connection, 32).await, [true; 32]);
        connections.push(connection);
    }
    let mut further = sent(&server, &requests).await;
    assert_eq!(
        http2_answers(&mut further, 32).await,
        [false; 32],
        "they are refused at once"
    );
    let mut probe = sent(&server, HEALTH).await;
    assert_eq!(
        begun(&mut probe).await,
        "HTTP/1.1 200",
        "a supervisor is answered"
    );
    drop(probe);
    connections.pop();
    drop(further);
    let mut new = sent(&server, HEALTH).await;
    assert_eq!(begun(&mut new).await, "HTTP/1.1 200");
}

#[tokio::test]
async fn a_new_connection_waits_while_all_have_a_request_under_way() {
    let server = served(1).await;
    let mut follower = sent(&server, EVENTS).await;
    assert_eq!(begun(&mut follower).await, "HTTP/1.1 200");
    let mut new = sent(&server, HEALTH).await;
    // Without the limit it would be answered well within this time.
    let early = tokio::time::timeout(Duration::from_millis(100), new.read_u8()).await;
    assert!(early.is_err(), "it came in beside the stream");
    drop(follower);
    assert_eq!(begun(&mut new).await, "HTTP/1.1 200");
}

/// One frame of HTTP/2 on the whole connection.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap();
    [&[0, 0, length, kind, 0, 0, 0, 0, 0][..], content].concat()
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

#[tokio::test]
async fn a_client_that_sends_frames_without_end_that_request_no_work_is_disconnected() {
    let server = served(100).await;
    let kinds = [
        frame(6, b"12345678"),
        frame(4, b"\0\x04\0\0\xff\xff"),
        frame(8, b"\0\0\0\x01"),
    ];
    for kind in kinds {
        let flood = async {
            let stream = sent(&server, PREFACE).await;
            let (mut reading, mut writing) = stream.into_split();
            let many = kind.repeat(100);
            let send = async { while writing.write_all(&many).await.is_ok() {} };
            let read = async {
                let mut rest = [0; 4_096];
                while reading.read(&mut rest).await.is_ok_and(|read| read > 0) {}
            };
            tokio::join!(send, read);
        };
        tokio::time::timeout(PATIENCE, flood)
            .await
            .unwrap_or_else(|_| panic!("{kind:?} go on"));
    }
    // A few are answered.
    let mut stream = sent(
        &server,
        &[PREFACE, &frame(6, b"12345678").repeat(100)].concat(),
    )
    .await;
    let mut pongs = 0;
    let reading = async {
        let mut head = [0; 9];
        while pongs < 100 {
            stream.read_exact(&mut head).await.unwrap();
            let mut content = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            stream.read_exact(&mut content).await.unwrap();
            pongs += usize::from(head[3] == 6);
        }
    };
    tokio::time::timeout(PATIENCE, reading)
        .await
        .expect("every ping is answered");
}

#[tokio::test]
async fn calls_that_wait_for_their_turn_leave_half_of_the_connections_to_others() {
    let home = Home::new();
    let open = watch::Sender::new(false);
    let gate = open.clone();
    let callee = Callee::start(manifest("disks", &[tool("hold")]), move |ran: Ran| {
        let mut gate = gate.subscribe();
        async move {
            let _ = gate.wait_for(|open| *open).await;
            done(&ran.arguments)
        }
    })
    .await;
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    config.server.max_connections = 8;
    config.calls.concurrency = 1;
    let daemon = Daemon::ready(config).await;
    let call = json!({"tool_name": "hold", "arguments": {}});
    // One is under way, and four wait.
    {
        let calls =
            (0..6).map(|_| Box::pin(daemon.send_json("POST", "/api/v1/tools/execute", &call)));
        let first = tokio::time::timeout(PATIENCE, select_all(calls)).await;
        let (refused, _, others) = first.expect("one is refused");
        assert_eq!(refused.status, 429, "{refused:?}");
        assert_eq!(daemon.get("/healthz").await.status, 200);
        open.send_replace(true);
        for answer in join_all(others).await {
            assert_eq!(answer.status, 200, "{answer:?}");
        }
    }
    daemon.stop().await;
}
