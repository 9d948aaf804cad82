//! A full table of connections, and clients that send what requests no work: others are answered.

use std::time::Duration;

use callsheet::catalog::Inputs;
use callsheet::config::ServerConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::serving::{self, Served};

/// No condition of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that takes so many connections at once.
async fn served(connections: usize) -> Served {
    let server = ServerConfig { max_connections: connections, max_body: 60_000, ..serving::configured() };
    serving::serve_configured(serving::snapshot(&Inputs::default(), Vec::new(), Vec::new()), 1 << 20, server).await
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
    tokio::time::timeout(PATIENCE, end).await.expect("it is closed");
}

/// Whether the connection has not been closed: a request on it is answered.
async fn is_open(stream: &mut TcpStream) -> bool {
    let answered = async {
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.ok()?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        stream.read_exact(&mut vec![0; length.parse().unwrap()]).await.ok()
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("an answer or an end").is_some()
}

const EVENTS: &[u8] = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n";
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[tokio::test]
async fn the_longest_resting_connection_gives_way_whatever_its_client_has_begun() {
    let half_body = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
        Content-Length: 50000\r\nExpect: 100-continue\r\n\r\n";
    for begun_by_client in [&b""[..], b"GET / HTTP/1.1\r\nHost: loc", b"PRI * HT", half_body] {
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
        assert_eq!(begun(&mut new).await, "HTTP/1.1 200", "beside {:?}", String::from_utf8_lossy(begun_by_client));
        closed(&mut first).await;
        assert!(is_open(&mut second).await, "it rested for less long");
        drop(new);
        drop(follower);
    }
}

#[tokio::test]
async fn a_head_that_is_larger_than_those_of_clients_is_refused_before_it_is_whole() {
    let server = served(10).await;
    let head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nCookie: ";
    let mut usual = sent(&server, &[&head[..], &vec![b'c'; 15 * 1024], b"\r\n\r\n"].concat()).await;
    assert_eq!(begun(&mut usual).await, "HTTP/1.1 200");
    let mut large = sent(&server, &[&head[..], &vec![b'c'; 16 * 1024]].concat()).await;
    assert_eq!(begun(&mut large).await, "HTTP/1.1 431");
    closed(&mut large).await;
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
    let kinds = [frame(6, b"12345678"), frame(4, b"\0\x04\0\0\xff\xff"), frame(8, b"\0\0\0\x01")];
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
        tokio::time::timeout(PATIENCE, flood).await.unwrap_or_else(|_| panic!("{kind:?} go on"));
    }
    // A few are answered.
    let mut stream = sent(&server, &[PREFACE, &frame(6, b"12345678").repeat(100)].concat()).await;
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
    tokio::time::timeout(PATIENCE, reading).await.expect("every ping is answered");
}
