//! Streams on which a client hears that its list changed: `subscriptions/listen`, and the stream of
//! a GET in the older revisions.
//!
//! A stream is one subscription to the events of the client's list. It says at once that the list
//! changed, but at most every 100 ms, and carries the requests of the daemon that belong to no
//! other stream of a session.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::Version;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::events::{Event, EventType, Next, SubscribeRequest, Subscription};
use crate::model::JsonText;
use crate::runtime::{Clock, Stop};
use crate::server::events::disconnect_when_overrun;
use crate::server::http::sse;
use crate::server::mcp::answer::event;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::face::OpenStream;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sessions::LiveSession;
use crate::views;

/// Changes within this time of one that was told are told together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Messages of the daemon that wait for the reader of a GET stream.
const QUEUE: usize = 64;

/// What a stream says of changes.
struct StreamTexts {
    /// What is sent first.
    first: Bytes,
    /// What says that the list changed. `None`: the client does not want to hear it.
    changed: Option<Bytes>,
    /// What is sent when the daemon stops.
    end: Option<Bytes>,
}

/// One stream.
struct ChangeStream {
    subscription: Subscription,
    clock: Clock,
    keep_alive: Duration,
    first: Option<Bytes>,
    changed: Bytes,
    /// When the next change may be told.
    next_change: Instant,
    end: Option<Bytes>,
    /// Requests of the daemon to a legacy client, and the end of its session.
    session: Option<(mpsc::Receiver<Bytes>, Stop)>,
    /// Counted among the streams of its client.
    _counted: OpenStream,
    /// The only strong reference: a weak one shows when the stream is dropped.
    _open: Arc<()>,
}

/// `subscriptions/listen`. Of what can be listened to, changes of the list of tools are honoured.
pub(super) async fn listen(
    context: &McpContext,
    client: &McpClient,
    (id, params): (&JsonText, Option<&JsonText>),
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
    let texts = StreamTexts {
        first: message(&json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": honoured, "_meta": meta},
        })),
        changed: wanted.notifications.tools_list_changed.then(|| {
            message(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}}))
        }),
        end: Some(message(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}}))),
    };
    open(context, client.key(), texts, None).await
}

/// The stream of a GET.
pub(super) async fn legacy(context: &McpContext, session: &Arc<LiveSession>) -> Result<Response, Refusal> {
    let changed = message(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    let texts = StreamTexts { first: sse::ALIVE, changed: Some(changed), end: None };
    let (sender, receiver) = mpsc::channel(QUEUE);
    let response = open(context, &session.claims.key, texts, Some((receiver, session.ended()))).await?;
    session.add_stream(sender);
    Ok(response)
}

fn message(message: &Value) -> Bytes {
    event(message.to_string().as_bytes())
}

async fn open(
    context: &McpContext,
    client: &str,
    texts: StreamTexts,
    session: Option<(mpsc::Receiver<Bytes>, Stop)>,
) -> Result<Response, Refusal> {
    let (shared, list) = (&context.shared, &context.list);
    let counted = shared.mcp.streams.open(client, shared.config.borrow().mcp_face.max_streams)?;
    let kinds = if texts.changed.is_some() { [EventType::Catalog].into() } else { BTreeSet::new() };
    let query = views::effective(&list.view, list.format);
    let wanted = SubscribeRequest { query, kinds, ..SubscribeRequest::default() };
    let subscription = shared.events.subscribe(wanted).await.map_err(|full| Refusal::busy(full.to_string()))?;
    let open = Arc::new(());
    let hangs = (context.version >= Version::HTTP_2).then(|| Arc::downgrade(&open));
    let watch = subscription.watch();
    shared.tasks.spawn(disconnect_when_overrun(watch, context.connection.clone(), shared.clock, hangs));
    let stream = ChangeStream {
        subscription,
        clock: shared.clock,
        keep_alive: shared.events.keep_alive(),
        first: Some(texts.first),
        changed: texts.changed.unwrap_or(sse::ALIVE),
        next_change: shared.clock.now(),
        end: texts.end,
        session,
        _counted: counted,
        _open: open,
    };
    Ok(sse::response(unfold(Some(stream), next), context.version))
}

/// A message of the daemon for the session of this stream. `None` when the session ended.
async fn for_session(session: &mut Option<(mpsc::Receiver<Bytes>, Stop)>) -> Option<Bytes> {
    let Some((messages, ended)) = session else { return std::future::pending().await };
    tokio::select! {
        biased;
        () = ended.wait() => None,
        // `None` when the daemon forgot the session, which begins anew with its next message.
        message = messages.recv() => message,
    }
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
            message = for_session(&mut stream.session) => {
                return message.map(|message| (Ok(message), Some(stream)));
            }
            () = silent => return Some((Ok(sse::ALIVE), Some(stream))),
        };
        match next {
            Next::Message(message) if matches!(message.event, Event::Catalog(_)) => break,
            // What the client has to know of the present it learns by listing.
            Next::Message(_) => {}
            Next::Ended(_) => return Some((Ok(stream.end.take().unwrap_or(sse::ALIVE)), None)),
        }
    }
    let ended = loop {
        let now = stream.clock.now();
        if now >= stream.next_change {
            stream.next_change = now + TOGETHER;
            break false;
        }
        let rest = stream.clock.sleep(stream.next_change - now);
        tokio::select! {
            next = stream.subscription.next() => if let Next::Ended(_) = next { break true },
            () = rest => {}
        }
    };
    let changed = stream.changed.clone();
    Some((Ok(changed), (!ended).then_some(stream)))
}
