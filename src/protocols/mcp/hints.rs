//! Signs of a server that its list of tools changed.
//!
//! A modern server sends them on the stream that `subscriptions/listen` opens, a legacy one over
//! HTTP on the stream of a GET, and every other one on the connection itself. The stream of hints
//! begins with [`Hint::Following`] when the server declared that it signals every change. What a
//! message says is not read.
//!
//! A legacy server over HTTP may also request input on that stream, so it is opened whether or not
//! the server signals changes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::sync::watch;

use super::connection::{Carrier, McpServer};
use super::http::HttpConnection;
use super::request::{McpRequest, RequestError};
use super::server::{ServerDescription, is_change};
use super::update_signals::UPDATED;
use crate::json::rpc::{self, METHOD_NOT_FOUND, RpcMessage};
use crate::protocols::{Hint, NoCaller};
use crate::transports::TransportError;
use crate::transports::http::{EventLimits, EventStream};

/// What a stream of hints may cost. Servers need not send signs of life.
pub(super) const LIMITS: EventLimits = EventLimits {
    max_event: 64 * 1024,
    silence: Duration::from_secs(3600),
    per_minute: 1024 * 1024,
};

/// The hints of a server, if it gives any.
pub(super) fn hints(server: &Arc<McpServer>) -> Option<BoxStream<'static, Hint>> {
    if server.refuses_hints.load(Ordering::Relaxed) {
        return None;
    }
    match &server.carrier {
        Carrier::Lines(lines, revision) => {
            let changes = changes(
                lines.incoming().changes(),
                server.info.list_changed && !revision.is_modern(),
            );
            if !(revision.is_modern() && server.info.signals_changes()) {
                return Some(changes);
            }
            // A modern server signals changes for as long as a request to listen has no answer.
            let listening =
                stream::once(listen_on_lines(Arc::clone(server))).filter_map(std::future::ready);
            Some(stream::select(listening, changes).boxed())
        }
        Carrier::Http(http) if server.info.signals_changes() || !http.revision().is_modern() => {
            Some(stream::once(open(Arc::clone(server))).flatten().boxed())
        }
        Carrier::Http(_) => None,
    }
}

/// A hint for each change that came on the connection itself. It ends with the connection.
fn changes(changes: watch::Receiver<u64>, follows: bool) -> BoxStream<'static, Hint> {
    let rest = stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok()?;
        Some((Hint::Changed, changes))
    });
    stream::iter(follows.then_some(Hint::Following))
        .chain(rest)
        .boxed()
}

/// Sends the request to listen. It ends when the server answers it, which may be at once. While it
/// has no answer, the server counts as followed from its first change on.
async fn listen_on_lines(server: Arc<McpServer>) -> Option<Hint> {
    let request = listen_request(&server.info, Duration::from_secs(24 * 3600));
    let answered = server.send(&request, &NoCaller).await;
    if let Ok(Err(error)) = answered
        && error.code == METHOD_NOT_FOUND
    {
        server.refuses_hints.store(true, Ordering::Relaxed);
    }
    None
}

fn listen_request(server: &ServerDescription, limit: Duration) -> McpRequest {
    let wanted = [
        (server.list_changed, r#""toolsListChanged":true"#),
        (server.prompts_changed, r#""promptsListChanged":true"#),
        (server.resources_changed, r#""resourcesListChanged":true"#),
    ];
    let wanted: Vec<_> = wanted
        .into_iter()
        .filter(|(declared, _)| *declared)
        .map(|(_, member)| member)
        .collect();
    let params = format!(r#""notifications":{{{}}}"#, wanted.join(","));
    McpRequest::new("subscriptions/listen", params, limit, 64 * 1024)
}

/// Opens the stream over HTTP.
async fn open(server: Arc<McpServer>) -> BoxStream<'static, Hint> {
    let Carrier::Http(http) = &server.carrier else {
        return stream::empty().boxed();
    };
    let modern = http.revision().is_modern();
    let opened = if modern {
        listen(&server.info, http).await
    } else {
        http.event_stream(LIMITS).await
    };
    match opened {
        Ok(Some(events)) => {
            // A legacy stream carries every change from the beginning; a modern one says so first.
            let first =
                stream::iter((!modern && server.info.list_changed).then_some(Hint::Following));
            let hints = read(events, Arc::clone(&server));
            first.chain(hints).boxed()
        }
        // Such an answer is for good: there is no stream (MCP 2025-11-25, Streamable HTTP).
        Ok(None)
        | Err(TransportError::Status {
            status: 400..=499, ..
        }) => {
            server.refuses_hints.store(true, Ordering::Relaxed);
            stream::empty().boxed()
        }
        Err(_) => stream::empty().boxed(),
    }
}

async fn listen(
    server: &ServerDescription,
    http: &HttpConnection,
) -> Result<Option<EventStream>, TransportError> {
    let limit = http.upstream().poll_limits().timeout;
    match http.listen(&listen_request(server, limit), LIMITS).await {
        Ok(events) => Ok(events),
        Err(RequestError::Unanswered(error) | RequestError::Unsent(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn read(
    events: EventStream,
    server: Arc<McpServer>,
) -> impl futures_util::Stream<Item = Hint> + Send + 'static {
    stream::unfold((events, server), |(mut events, server)| async move {
        loop {
            let event = events.next().await.ok()??;
            for message in rpc::parse(&event.data).unwrap_or_default() {
                let hint = match message {
                    RpcMessage::Notification { method, params } => match method.as_str() {
                        "notifications/subscriptions/acknowledged" if server.info.list_changed => {
                            Hint::Following
                        }
                        method if is_change(method) => Hint::Changed,
                        UPDATED => {
                            server.updates.take(params.as_ref());
                            continue;
                        }
                        _ => continue,
                    },
                    RpcMessage::Response {
                        result: Err(error), ..
                    } => {
                        server
                            .refuses_hints
                            .store(error.code == METHOD_NOT_FOUND, Ordering::Relaxed);
                        return None;
                    }
                    // The server ended the subscription.
                    RpcMessage::Response { .. } => return None,
                    RpcMessage::Request(request) => {
                        if let Carrier::Http(http) = &server.carrier {
                            let _ = http.take_request(request).await;
                        }
                        continue;
                    }
                };
                return Some((hint, (events, server)));
            }
        }
    })
}
