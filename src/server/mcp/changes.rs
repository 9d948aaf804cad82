//! Streams on which a client hears that its list changed: `subscriptions/listen`, and the stream of a
//! GET in the older revisions.
//!
//! A stream is one subscription to the events of the client's list. It says nothing but that the
//! list changed, at most every 100 ms.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{StatusCode, Version};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::events::{Event, EventType, Next, SubscribeRequest, Subscription};
use crate::model::JsonText;
use crate::runtime::Clock;
use crate::server::events::disconnect_when_overrun;
use crate::server::http::error::Problem;
use crate::server::http::sse;
use crate::server::mcp::context::McpContext;
use crate::server::mcp::era::Refusal;
use crate::views;

/// Changes within this time are one.
const TOGETHER: Duration = Duration::from_millis(100);
/// An own error: there are too many streams.
const BUSY: i64 = -31_003;

/// One stream.
struct ChangeStream {
    subscription: Subscription,
    clock: Clock,
    keep_alive: Duration,
    /// What is sent first.
    first: Option<Bytes>,
    /// What says that the list changed.
    changed: Bytes,
    /// What is sent when the daemon stops.
    end: Option<Bytes>,
    /// The only strong reference: a weak one shows when the stream is dropped.
    _open: Arc<()>,
}

/// `subscriptions/listen`. Of what can be listened to, changes of the list of tools are honoured.
pub(super) async fn listen(
    context: &McpContext,
    id: &JsonText,
    params: Option<&JsonText>,
) -> Result<Response, Refusal> {
    #[derive(Deserialize, Default)]
    struct ListenParams {
        #[serde(default)]
        notifications: Wanted,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct Wanted {
        #[serde(default)]
        tools_list_changed: bool,
    }
    let wanted: ListenParams = params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
    let id: Value = serde_json::from_str(id.get()).unwrap_or_default();
    let honoured = if wanted.notifications.tools_list_changed { json!({"toolsListChanged": true}) } else { json!({}) };
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let first = event(&json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": honoured, "_meta": meta},
    }));
    let changed = event(&json!({
        "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta},
    }));
    let end = event(&json!({
        "jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta},
    }));
    let opened = open(context, wanted.notifications.tools_list_changed, (Some(first), changed, Some(end))).await;
    opened.map_err(|full| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, BUSY, full))
}

/// The stream of a GET.
pub(super) async fn legacy(context: &McpContext) -> Result<Response, Problem> {
    let changed = event(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    open(context, true, (None, changed, None)).await.map_err(Problem::busy)
}

fn event(message: &Value) -> Bytes {
    format!("event: message\ndata: {message}\n\n").into()
}

async fn open(
    context: &McpContext,
    follows: bool,
    (first, changed, end): (Option<Bytes>, Bytes, Option<Bytes>),
) -> Result<Response, String> {
    let (shared, list) = (&context.shared, &context.list);
    let kinds = if follows { [EventType::Catalog].into() } else { std::collections::BTreeSet::new() };
    let ask = SubscribeRequest { query: views::effective(&list.view, list.format), kinds, cursor: None };
    let subscription = shared.events.subscribe(ask).await.map_err(|full| full.to_string())?;
    let open = Arc::new(());
    let hangs = (context.version >= Version::HTTP_2).then(|| Arc::downgrade(&open));
    let watch = subscription.watch();
    shared.tasks.spawn(disconnect_when_overrun(watch, context.connection.clone(), shared.clock, hangs));
    let stream = ChangeStream {
        subscription,
        clock: shared.clock,
        keep_alive: shared.events.keep_alive(),
        first: Some(first.unwrap_or(sse::ALIVE)),
        changed,
        end,
        _open: open,
    };
    Ok(sse::response(unfold(Some(stream), next), context.version))
}

async fn next(stream: Option<ChangeStream>) -> Option<(Result<Bytes, Infallible>, Option<ChangeStream>)> {
    let mut stream = stream?;
    if let Some(first) = stream.first.take() {
        return Some((Ok(first), Some(stream)));
    }
    loop {
        let silent = stream.clock.sleep(stream.keep_alive);
        let next = tokio::select! {
            next = stream.subscription.next() => next,
            () = silent => return Some((Ok(sse::ALIVE), Some(stream))),
        };
        match next {
            Next::Message(message) if matches!(message.event, Event::Catalog(_)) => break,
            // What the client has to know of the present it learns by listing.
            Next::Message(_) => {}
            Next::Ended(_) => return Some((Ok(stream.end.take().unwrap_or(sse::ALIVE)), None)),
        }
    }
    let together = stream.clock.now() + TOGETHER;
    let ended = loop {
        let rest = stream.clock.sleep(together.saturating_duration_since(stream.clock.now()));
        tokio::select! {
            next = stream.subscription.next() => if let Next::Ended(_) = next { break true },
            () = rest => break false,
        }
    };
    let changed = stream.changed.clone();
    Some((Ok(changed), (!ended).then_some(stream)))
}
