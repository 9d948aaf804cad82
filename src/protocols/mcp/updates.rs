//! Follows resources: their server signals when one of them changed.
//!
//! A legacy server is sent `resources/subscribe`, and signals on its connection or its own stream.
//! A modern one signals on a stream of `subscriptions/listen`. Dropping the stream of updates ends
//! that. Such a stream keeps no connection alive. This module reads no resource.

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use serde_json::Value;

use super::connection::{Carrier, McpServer};
use super::hints::LIMITS;
use super::request::{McpRequest, RequestError};
use super::session::{McpSession, ungreeted};
use super::update_signals::UPDATED;
use crate::json::rpc::{self, RpcMessage};
use crate::protocols::{CallError, NoCaller};
use crate::runtime::Tasks;
use crate::transports::http::EventStream;

/// The most bytes of the answers to requests about subscriptions.
const ANSWER: usize = 64 * 1024;

/// A subscription at a server over a connection. Dropping it ends it there.
struct Subscribed {
    server: Weak<McpServer>,
    uri: String,
    /// The request that a modern server leaves unanswered meanwhile.
    listening: Option<u64>,
    limit: Duration,
    tasks: Tasks,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        let listening = self.listening;
        let limit = self.limit;
        let params = member(&self.uri);
        self.tasks.spawn(async move {
            if let (Carrier::Lines(lines, _), Some(id)) = (&server.carrier, listening) {
                let _ = lines.cancel(id).await;
            } else {
                let request = McpRequest::new("resources/unsubscribe", params, limit, ANSWER);
                let _ = server.send(&request, &NoCaller).await;
            }
        });
    }
}

impl McpSession {
    /// Follows a resource.
    pub(super) async fn follow(&self, uri: &str) -> Result<BoxStream<'static, ()>, CallError> {
        let server = self.server().await.map_err(ungreeted(self.address()))?;
        if !server.info.updates_resources {
            return Err(CallError::NotCallable(
                "it does not signal updates of its resources".to_owned(),
            ));
        }
        let limit = self.relay_limit();
        let failed = |error: RequestError| {
            if matches!(error, RequestError::SessionLost) {
                self.lose(&server);
            }
            error.into_call_error(self.address())
        };
        let updates = server.updates.of(uri);
        let listening = match &server.carrier {
            Carrier::Http(http) if http.revision().is_modern() => {
                let events = http
                    .listen(&listen(uri, limit), LIMITS)
                    .await
                    .map_err(failed)?;
                let events = events.ok_or_else(|| {
                    CallError::NotCallable("it opens no stream of updates".to_owned())
                })?;
                return Ok(read(events));
            }
            Carrier::Lines(lines, revision) if revision.is_modern() => Some(
                lines
                    .begin(&listen(uri, limit), *revision)
                    .await
                    .map_err(failed)?,
            ),
            Carrier::Http(_) | Carrier::Lines(..) => {
                let request = McpRequest::new("resources/subscribe", member(uri), limit, ANSWER);
                let reply = server.send(&request, &NoCaller).await.map_err(failed)?;
                reply.map_err(|error| CallError::NotCallable(error.to_string()))?;
                None
            }
        };
        let uri = uri.to_owned();
        let tasks = self.transports().tasks().clone();
        let subscribed = Subscribed {
            server: Arc::downgrade(&server),
            uri,
            listening,
            limit,
            tasks,
        };
        // The subscription ends with the stream.
        let updates = stream::unfold(
            (updates, subscribed),
            |(mut updates, subscribed)| async move {
                updates.next().await.map(|()| ((), (updates, subscribed)))
            },
        );
        let Carrier::Lines(lines, _) = &server.carrier else {
            return Ok(updates.boxed());
        };
        let mut ended = lines.incoming().ended();
        Ok(updates
            .take_until(async move { ended.wait_for(Option::is_some).await.is_ok() })
            .boxed())
    }
}

/// The member of the parameters that names a resource.
fn member(uri: &str) -> String {
    format!(r#""uri":{}"#, Value::from(uri))
}

fn listen(uri: &str, limit: Duration) -> McpRequest {
    let params = format!(
        r#""notifications":{{"resourceSubscriptions":[{}]}}"#,
        Value::from(uri)
    );
    McpRequest::new("subscriptions/listen", params, limit, ANSWER)
}

/// The updates on a stream of one resource, until its server ends it.
fn read(events: EventStream) -> BoxStream<'static, ()> {
    let updates = stream::unfold(events, |mut events| async move {
        loop {
            let event = events.next().await.ok()??;
            for message in rpc::parse(&event.data).unwrap_or_default() {
                match message {
                    RpcMessage::Notification { method, .. } if method == UPDATED => {
                        return Some(((), events));
                    }
                    // The server ended the subscription.
                    RpcMessage::Response { .. } => return None,
                    RpcMessage::Notification { .. } | RpcMessage::Request(_) => {}
                }
            }
        }
    });
    updates.boxed()
}
