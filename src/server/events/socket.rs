//! `GET /api/v1/ws`: the messages of `GET /api/v1/events` over a WebSocket (RFC 6455).
//!
//! Only transports the messages of [`crate::events`]: one socket is one subscription, and each
//! message is one text frame. A client may send only pings, pongs and a close frame; to follow
//! other events it opens another socket. So no data of a client is stored, and its frames have at
//! most [`MAX_CLIENT_FRAME`] bytes. The answer to a ping is given to the system before another
//! frame is read, and pings have an allowance: the library would keep an answer for each. All its
//! bytes have one, too, below the library, which reads empty parts of a message without end.
//! Browsers let pages of any site open sockets, so [`crate::server::http::guard`] checks the
//! `Origin` first.

use std::time::Duration;

use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::SinkExt;
use http::HeaderMap;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::events::{self as event_messages, DisconnectWatch, Ending, Form, Next, Subscription};
use crate::runtime::Clock;
use crate::server::SharedState;
use crate::server::api::lookup;
use crate::server::auth::Access;
use crate::server::events;
use crate::server::events::event_json as event_wire;
use crate::server::http::accept::FrameAllowance;
use crate::server::http::error::Problem;
use crate::server::http::held::ConnectionBytes;

/// The largest frame that a client may send, in bytes. Control frames have at most 125 bytes (RFC
/// 6455 section 5.5).
const MAX_CLIENT_FRAME: usize = 1_024;
/// Sizes of the read and the write buffer in bytes. The defaults of the library would cost 256 KiB
/// for each socket.
const BUFFERS: usize = 1_024;
/// After so many pings without any frame from the client the connection is given up.
const MAX_UNANSWERED_PINGS: u32 = 3;
/// How long a client may take to read the close frame and to answer it; then its connection is cut.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The reason in the close frame for a client that sent pings without end.
const TOO_MANY_PINGS: &str = "too many pings";
/// The reason in the close frame for a client that sent a message.
const CLIENT_MESSAGE_REFUSED: &str =
    "this socket only sends events; to follow others, open another one";

/// The reason in the close frame for a client for whose next event there is no memory. It has at
/// most 123 bytes (RFC 6455 section 5.5).
const NO_ROOM_FOR_EVENT: &str =
    "the memory for clients is in use (`server.held_bytes`); resume with the last cursor";

/// A socket with its subscription.
struct EventSocket {
    socket: WebSocket,
    subscription: Subscription,
    bytes: ConnectionBytes,
    clock: Clock,
    keep_alive: Duration,
    /// Pings sent since the last frame of the client.
    unanswered: u32,
    /// For its pings and pongs.
    allowance: FrameAllowance,
}

/// Why a socket ends.
enum SocketEnd {
    /// The client gets a close frame with this code and reason, if it still reads.
    Close(u16, &'static str),
    /// The connection is lost: no close frame can be sent.
    Gone,
}

/// `GET /api/v1/ws`: takes the parameters of `GET /api/v1/events`. The first message is a snapshot
/// unless `cursor` is known. Close codes: 1001 when the daemon stops, 1013 when the client does not
/// keep up, 1008 when the client sends a message. 426 without a WebSocket handshake, 503 when there
/// are too many subscriptions.
pub(in crate::server) async fn follow(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    headers: HeaderMap,
    access: Access,
    Extension(bytes): Extension<ConnectionBytes>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let request = events::parse_subscription(raw.as_deref(), &headers, access)?;
    lookup::check_profile(&shared, &shared.reader.snapshot().catalog, &request.query)?;
    let upgrade = upgrade.map_err(|refused| Problem::upgrade_required(&refused.to_string()))?;
    let subscription = shared.events.subscribe(request).await?;
    bytes.becomes_socket();
    let (opened, opening) = oneshot::channel();
    let clock = shared.clock;
    let keep_alive = shared.events.keep_alive();
    // Spawned among the daemon's own tasks, so that a stop waits until the close frame was sent.
    shared.tasks.spawn(async move {
        if let Ok(socket) = opening.await {
            let allowance = FrameAllowance::new(clock.now());
            EventSocket {
                socket,
                subscription,
                bytes,
                clock,
                keep_alive,
                unanswered: 0,
                allowance,
            }
            .run()
            .await;
        }
    });
    let upgrade = upgrade.read_buffer_size(BUFFERS).write_buffer_size(BUFFERS);
    Ok(upgrade
        .max_frame_size(MAX_CLIENT_FRAME)
        .max_message_size(MAX_CLIENT_FRAME)
        .on_upgrade(async |socket| {
            // Fails only when the runtime is shutting down.
            let _ = opened.send(socket);
        }))
}

impl EventSocket {
    async fn run(mut self) {
        let end = self.send_events().await;
        if let SocketEnd::Close(code, reason) = end {
            let close = Message::Close(Some(CloseFrame {
                code,
                reason: Utf8Bytes::from_static(reason),
            }));
            let farewell = async {
                // The client answers with its own close frame; before that it may not have read
                // this one.
                if self.socket.send(close).await.is_ok() {
                    while let Some(Ok(_)) = self.socket.recv().await {}
                }
            };
            let _ = tokio::time::timeout(CLOSE_TIMEOUT, farewell).await;
        }
    }

    /// Sends the events of the subscription until the socket has to end.
    async fn send_events(&mut self) -> SocketEnd {
        let mut ping_at = self.clock.now() + self.keep_alive;
        loop {
            tokio::select! {
                next = self.subscription.next() => {
                    let end = match next {
                        Next::Message(message) => self.send_event(&message).await,
                        Next::Ended(ending) => return close_for(ending),
                    };
                    if let Some(end) = end {
                        return end;
                    }
                }
                received = self.socket.recv() => match received {
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                        if let Some(end) = self.pinged().await {
                            return end;
                        }
                    }
                    Some(Ok(Message::Text(_) | Message::Binary(_))) => {
                        return SocketEnd::Close(close_code::POLICY, CLIENT_MESSAGE_REFUSED);
                    }
                    Some(Err(error)) => {
                        tracing::debug!(error = %error, "socket of events ended early");
                        return SocketEnd::Gone;
                    }
                    Some(Ok(Message::Close(_))) | None => return SocketEnd::Gone,
                },
                () = self.clock.sleep_until(ping_at) => {
                    if self.unanswered >= MAX_UNANSWERED_PINGS {
                        return SocketEnd::Gone;
                    }
                    self.unanswered += 1;
                    ping_at = next_ping(ping_at, self.keep_alive, self.clock);
                    if let Some(end) = self.send(Message::Ping(Bytes::new())).await {
                        return end;
                    }
                }
            }
        }
    }

    /// Counts a ping or pong of the client. Returns why the socket has to end, if it has to.
    async fn pinged(&mut self) -> Option<SocketEnd> {
        self.unanswered = 0;
        if !self.allowance.take(self.clock.now()) {
            return Some(SocketEnd::Close(close_code::POLICY, TOO_MANY_PINGS));
        }
        // The library has the answer ready, and would read the next ping before it could send it.
        let watch = self.subscription.watch();
        unless_ended(watch, SinkExt::flush(&mut self.socket)).await
    }

    /// Sends an event, whose bytes are reserved once for all sockets that have not sent it yet.
    /// Returns why the socket has to end, if it has to.
    async fn send_event(&mut self, message: &event_messages::Message) -> Option<SocketEnd> {
        let written = message.written(Form::Frame, event_wire::frame);
        let reservation = message.reservation(Form::Frame);
        let Ok(_reserved) = reservation.hold(written.len(), self.bytes.answers()) else {
            return Some(SocketEnd::Close(close_code::AGAIN, NO_ROOM_FOR_EVENT));
        };
        // All messages are JSON, so they are valid UTF-8.
        let Ok(text) = Utf8Bytes::try_from(written) else {
            return Some(SocketEnd::Gone);
        };
        self.send(Message::Text(text)).await
    }

    /// Sends one frame. Returns why the socket has to end, if it has to.
    async fn send(&mut self, message: Message) -> Option<SocketEnd> {
        let watch = self.subscription.watch();
        unless_ended(watch, self.socket.send(message)).await
    }
}

/// Waits until the client took what is sent. Returns why the socket has to end if sending failed,
/// or if the subscription ended before that.
async fn unless_ended(
    watch: DisconnectWatch,
    sending: impl Future<Output = Result<(), axum::Error>>,
) -> Option<SocketEnd> {
    tokio::select! {
        sent = sending => sent.is_err().then_some(SocketEnd::Gone),
        Some(ending) = watch.ended() => Some(close_for(ending)),
    }
}

fn close_for(ending: Ending) -> SocketEnd {
    let code = match ending {
        Ending::Stopping => close_code::AWAY,
        Ending::Overrun | Ending::GaveWay => close_code::AGAIN,
    };
    SocketEnd::Close(code, events::reason(ending))
}

/// When the next ping is due. Pings that were missed while sending was blocked are not sent later.
fn next_ping(last: Instant, keep_alive: Duration, clock: Clock) -> Instant {
    (last + keep_alive).max(clock.now())
}
