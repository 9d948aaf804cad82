//! Someone who follows `GET /api/v1/ws`. Every wait is bounded.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::listener::ReceivedEvent;

/// No event of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

/// An open socket.
pub(crate) struct Follower {
    socket: WebSocketStream<TcpStream>,
    /// Pings that came so far.
    pub(crate) pings: usize,
}

/// What came.
#[derive(Debug, PartialEq)]
pub(crate) enum Came {
    /// An event.
    Event(ReceivedEvent),
    /// The end, with its code and why; 0 without a word.
    Closed(u16, String),
    /// An answer to a ping, with what that held.
    Pong(Vec<u8>),
}

/// Asks for a socket with this query (beginning with `?`, or empty).
pub(crate) async fn open(
    address: SocketAddr,
    query: &str,
    headers: &[(&'static str, &str)],
) -> Result<Follower, StatusCode> {
    let mut request = format!("ws://{address}/api/v1/ws{query}")
        .into_client_request()
        .unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(
            HeaderName::from_static(name),
            HeaderValue::try_from(*value).unwrap(),
        );
    }
    let stream = TcpStream::connect(address).await.unwrap();
    match tokio::time::timeout(PATIENCE, client_async(request, stream))
        .await
        .expect("an answer in time")
    {
        Ok((socket, _)) => Ok(Follower { socket, pings: 0 }),
        Err(Error::Http(refused)) => Err(refused.status()),
        Err(error) => panic!("{error}"),
    }
}

impl Follower {
    /// Begins to follow, with the snapshot that comes first.
    pub(crate) async fn begin(address: SocketAddr, query: &str) -> (Self, ReceivedEvent) {
        let mut follower = open(address, query, &[]).await.unwrap();
        let snapshot = follower.next().await;
        assert_eq!(snapshot.event, "snapshot");
        (follower, snapshot)
    }

    /// The next event. Fails the test when none comes.
    pub(crate) async fn next(&mut self) -> ReceivedEvent {
        match self.came().await {
            Came::Event(event) => event,
            other => panic!("{other:?}"),
        }
    }

    /// Reads to the end, which has this code and reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            if let Came::Closed(code, reason) = self.came().await {
                return (code, reason);
            }
        }
    }

    /// Whatever comes next but pings.
    pub(crate) async fn came(&mut self) -> Came {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.socket.next())
                .await
                .expect("something in time");
            match message {
                Some(Ok(Message::Text(text))) => {
                    let mut frame: Value = serde_json::from_str(&text).unwrap();
                    assert_eq!(frame.as_object().unwrap().len(), 3, "{frame}");
                    let text = |name: &str| frame[name].as_str().unwrap().to_owned();
                    return Came::Event(ReceivedEvent {
                        id: text("id"),
                        event: text("event"),
                        data: frame["data"].take(),
                    });
                }
                Some(Ok(Message::Ping(_))) => self.pings += 1,
                Some(Ok(Message::Pong(bytes))) => return Came::Pong(bytes.to_vec()),
                Some(Ok(Message::Close(Some(frame)))) => {
                    return Came::Closed(frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(other)) => panic!("{other:?}"),
                Some(Err(_)) | None => return Came::Closed(0, String::new()),
            }
        }
    }

    pub(crate) async fn say(&mut self, message: Message) {
        assert!(self.says(message).await, "the socket ended");
    }

    /// Sends, unless the socket has ended.
    pub(crate) async fn says(&mut self, message: Message) -> bool {
        self.socket.send(message).await.is_ok()
    }
}
