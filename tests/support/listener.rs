//! Someone who follows `GET /api/v1/events`. Every wait is bounded.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

/// No event of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open stream.
pub(crate) struct Listener {
    response: reqwest::Response,
    buffer: String,
    /// Comments that came so far.
    pub(crate) comments: usize,
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReceivedEvent {
    pub(crate) id: String,
    pub(crate) event: String,
    pub(crate) data: Value,
}

/// What is answered to `GET /api/v1/events` with this query (beginning with `?`, or empty).
pub(crate) async fn ask(
    address: SocketAddr,
    query: &str,
    headers: &[(&str, &str)],
) -> reqwest::Response {
    // Nothing here is encrypted, but the client wants to know with what it would be. A second call
    // finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .pool_max_idle_per_host(0)
        .build()
        .unwrap();
    let mut request = client.get(format!("http://{address}/api/v1/events{query}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    tokio::time::timeout(PATIENCE, request.send())
        .await
        .expect("an answer in time")
        .unwrap()
}

impl Listener {
    /// Begins to follow.
    pub(crate) async fn open(address: SocketAddr, query: &str) -> Self {
        Self::of(ask(address, query, &[]).await)
    }

    /// Goes on behind an event.
    pub(crate) async fn resume(address: SocketAddr, query: &str, last: &str) -> Self {
        Self::of(ask(address, query, &[("last-event-id", last)]).await)
    }

    /// Begins to follow, with the snapshot that comes first.
    pub(crate) async fn begin(address: SocketAddr, query: &str) -> (Self, ReceivedEvent) {
        let mut listener = Self::open(address, query).await;
        let snapshot = listener.next().await;
        assert_eq!(snapshot.event, "snapshot");
        (listener, snapshot)
    }

    pub(crate) fn of(response: reqwest::Response) -> Self {
        assert_eq!(response.status(), 200);
        Self {
            response,
            buffer: String::new(),
            comments: 0,
        }
    }

    /// The next event. Fails the test when none comes.
    pub(crate) async fn next(&mut self) -> ReceivedEvent {
        self.maybe().await.expect("the stream goes on")
    }

    /// The next event; nothing when the stream ended.
    pub(crate) async fn maybe(&mut self) -> Option<ReceivedEvent> {
        loop {
            while let Some(frame) = self.frame() {
                self.comments += usize::from(frame.starts_with(": "));
                let field = |name: &str| {
                    frame
                        .lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                if let Some(data) = field("data: ") {
                    let data = serde_json::from_str(&data).unwrap();
                    return Some(ReceivedEvent {
                        id: field("id: ").unwrap_or_default(),
                        event: field("event: ").unwrap(),
                        data,
                    });
                }
            }
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            let chunk = chunk
                .unwrap_or_else(|_| panic!("no event came; there is {:?}", self.buffer))
                .ok()??;
            self.buffer.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// The next whole piece of what came.
    fn frame(&mut self) -> Option<String> {
        let (frame, rest) = self.buffer.split_once("\n\n")?;
        let frame = frame.to_owned();
        let rest = rest.to_owned();
        self.buffer = rest;
        Some(frame)
    }

    /// The next event of this name; others are passed over.
    pub(crate) async fn next_of(&mut self, event: &str) -> ReceivedEvent {
        loop {
            let next = self.next().await;
            if next.event == event {
                return next;
            }
        }
    }

    /// Waits until so many comments came, and no event before.
    pub(crate) async fn until_comments(&mut self, count: usize) {
        while self.comments < count {
            let chunk = tokio::time::timeout(PATIENCE, self.response.chunk())
                .await
                .expect("a comment in time");
            self.buffer.push_str(
                std::str::from_utf8(&chunk.unwrap().expect("the stream goes on")).unwrap(),
            );
            while let Some(frame) = self.frame() {
                assert!(!frame.contains("data: "), "{frame}");
                self.comments += usize::from(frame.starts_with(": "));
            }
        }
    }
}

impl ReceivedEvent {
    /// The texts of a list.
    pub(crate) fn texts(&self, member: &str) -> Vec<&str> {
        self.data[member]
            .as_array()
            .unwrap()
            .iter()
            .map(|text| text.as_str().unwrap())
            .collect()
    }

    /// Why a tool was added, removed or changed.
    pub(crate) fn reason(&self, name: &str) -> &str {
        self.data["reasons"][name].as_str().unwrap()
    }
}
