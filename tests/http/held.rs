//! Bytes that are held for clients: bodies that never end are refused beyond the budget, and are
//! free again when their connections are gone.

use std::time::Duration;

use callsheet::catalog::Inputs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::serving::{self, Served};

/// No condition of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

async fn served() -> Served {
    let server = callsheet::config::ServerConfig { max_body: 60_000, held_bytes: 1 << 20, ..serving::configured() };
    serving::serve_configured(serving::snapshot(&Inputs::default(), Vec::new(), Vec::new()), 1 << 20, server).await
}

/// A connection that has sent all of a body but its last byte.
async fn unfinished(server: &Served) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head =
        "POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 49_999]).await.unwrap();
    stream
}

async fn held(server: &Served) -> u64 {
    let metrics = server.get("/metrics").await;
    let text = String::from_utf8(metrics.body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("callsheet_held_bytes ")).unwrap();
    line.parse().unwrap()
}

async fn until_held(server: &Served, what: &str, condition: impl Fn(u64) -> bool) {
    let waiting = async {
        while !condition(held(server).await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("never {what}"));
}

#[tokio::test]
async fn bodies_that_do_not_end_are_refused_beyond_the_budget_and_free_again() {
    let server = served().await;
    let mut open = Vec::new();
    for count in 1..=3 {
        open.push(unfinished(&server).await);
        until_held(&server, "read", |bytes| bytes >= count * 49_999).await;
    }
    // Bodies have a quarter of what is not kept for small answers: the next one has no room, other
    // requests have.
    let refused = async {
        loop {
            let mut stream = unfinished(&server).await;
            let mut answer = vec![0; 4_096];
            let read = tokio::time::timeout(Duration::from_secs(1), stream.read(&mut answer)).await;
            if let Ok(Ok(length @ 1..)) = read {
                return String::from_utf8_lossy(&answer[..length]).into_owned();
            }
            open.push(stream);
        }
    };
    let refused = tokio::time::timeout(PATIENCE, refused).await.expect("a body is refused");
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after"), "{refused}");
    assert!(refused.contains("server.held_bytes"), "{refused}");
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(server.get("/api/v1/tools").await.status, 200);
    drop(open);
    until_held(&server, "free again", |bytes| bytes < 50_000).await;
    let taken = server.ask("POST", "/rpc", &[("content-type", "application/json")], "{}").await;
    assert_eq!(taken.status, 200);
}
