//! The transport HTTP+SSE of revision 2024-11-05: one stream of events carries all messages of the
//! server, and each message to it is a POST to an address that the stream names first.
//!
//! The stream is the session: when it ends, so does the session. It is never resumed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;

use super::connection::{Carrier, McpServer};
use super::lines::{Incoming, Lines, Outgoing};
use super::negotiate;
use super::request::{RequestError, version_header};
use super::revision::McpRevision;
use super::setup::ServerSetup;
use crate::protocols::{EndReason, ListError, NoCaller};
use crate::transports::TransportError;
use crate::transports::http::{CallLimits, EventLimits, EventStream, Unanswered, Upstream};
use crate::transports::stdio::ProgramMasks;

/// A stream without a byte for so long counts as broken. Servers need not send signs of life.
const SILENCE: Duration = Duration::from_secs(3600);

/// How the head of the message ends that calls a tool.
const CALL: &str = r#""method":"tools/call""#;

/// Messages go out as POSTs; the reader of the stream ends with it.
struct Posts {
    upstream: Upstream,
    _reader: AbortOnDropHandle<()>,
}

impl Outgoing for Posts {
    fn send<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<(), TransportError>> {
        Box::pin(post(&self.upstream, message.to_owned()))
    }
}

async fn post(upstream: &Upstream, message: String) -> Result<(), TransportError> {
    // `json_rpc` writes the method before the parameters, so no argument can look like it.
    let is_repeatable = !message
        .split(r#","params":"#)
        .next()
        .is_some_and(|head| head.ends_with(CALL));
    let headers = [version_header(McpRevision::V20241105)]
        .into_iter()
        .collect();
    let limits = CallLimits {
        headers,
        repeatable: is_repeatable,
        ..upstream.poll_limits()
    };
    match upstream.post("", message, &limits).await {
        // The answer comes on the stream; some servers say 200 or 204 instead of 202.
        Ok(answer) if answer.head.status.is_success() => Ok(()),
        Ok(answer) => Err(answer.refused(upstream.to_string())),
        Err(Unanswered { error, .. }) => Err(error),
    }
}

/// Opens the stream and greets the server.
pub(super) async fn connect(
    upstream: &Upstream,
    setup: &ServerSetup,
) -> Result<McpServer, ListError> {
    let limits = upstream.poll_limits();
    let limits = EventLimits {
        max_event: limits.max_body,
        silence: SILENCE,
        per_minute: limits.max_body.saturating_mul(4),
    };
    let step = upstream.poll_limits().timeout;
    let none =
        || ListError::NotThisProtocol("its address does not open a stream of events".to_owned());
    let mut events = upstream.events("", limits).await?.ok_or_else(none)?;
    let first = tokio::time::timeout(step, endpoint(&mut events)).await;
    let endpoint = first.map_err(|_| TransportError::Timeout {
        url: upstream.to_string(),
        limit: step,
    })??;
    let posts = upstream.redirected_to(&endpoint)?;
    let incoming = Incoming::new(&setup.interaction, ProgramMasks::default());
    let reader = read(events, Arc::clone(&incoming), posts.clone());
    let reader = AbortOnDropHandle::new(upstream.tasks().spawn(reader));
    let outgoing = Box::new(Posts {
        upstream: posts,
        _reader: reader,
    });
    let lines = Lines::new(upstream.to_string(), outgoing, incoming, upstream.clock());
    let answered = lines
        .send(
            &negotiate::initialize(step, setup),
            McpRevision::LEGACY,
            &NoCaller,
        )
        .await;
    let reply = answered.map_err(RequestError::into_list_error)?;
    let (info, revision) = negotiate::begun(&reply.map_err(|error| negotiate::refused(&error))?)?;
    lines
        .notify(&negotiate::initialized())
        .await
        .map_err(RequestError::into_list_error)?;
    Ok(McpServer::new(Carrier::Lines(lines, revision), info, setup))
}

/// The address that the first event names.
async fn endpoint(events: &mut EventStream) -> Result<String, ListError> {
    match events.next().await? {
        Some(event) if event.event == "endpoint" && !event.cut => Ok(event.data),
        _ => Err(ListError::NotThisProtocol(
            "its stream of events does not begin with an `endpoint`".to_owned(),
        )),
    }
}

/// Reads the stream to its end.
async fn read(mut events: EventStream, incoming: Arc<Incoming>, upstream: Upstream) {
    let reason = loop {
        match events.next().await {
            Ok(Some(event)) if event.cut => break "it sent a message that is too large".to_owned(),
            Ok(Some(event)) if event.event == "message" => {
                let own = Arc::clone(&incoming);
                let bytes = event.data.len();
                // What is no message is skipped: it answers no request.
                let received = move || own.receive(&event.data).unwrap_or_default();
                for answer in upstream
                    .tasks()
                    .work_on_body(upstream.decode_step(), bytes, received)
                    .await
                {
                    let _ = post(&upstream, answer).await;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break "the server ended the stream".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    incoming.end(EndReason::new(reason));
}
