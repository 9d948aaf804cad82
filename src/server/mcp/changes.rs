//! Streams on which a client hears of changes: `subscriptions/listen`, and the stream of a GET in
//! the older revisions.
//!
//! A stream follows the events of the client's list of tools, its lists of prompts and resources,
//! and single resources. It says at once that something changed, but at most every 100 ms, and
//! carries the requests of the daemon that belong to no other stream of a session.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::unfold;
use http::Version;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::yield_now;
use tokio::time::Instant;

use crate::events::{Event, EventType, Next, SubscribeRequest, Subscription};
use crate::json::rpc;
use crate::model::JsonText;
use crate::runtime::Clock;
use crate::server::events::disconnect_when_overrun;
use crate::server::http::sse;
use crate::server::mcp::answer::event;
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::face::OpenStream;
use crate::server::mcp::offers_seen::{ListChange, OffersSeen};
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::resources;
use crate::server::mcp::sessions::LiveSession;
use crate::server::mcp::watched::{ResourceWatch, WatchKey};
use crate::views;

/// Changes within this time after one that was sent are sent together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Messages of the daemon that wait for the reader of a GET stream.
const QUEUE: usize = 64;
/// The most resources that one stream follows.
const MOST_FOLLOWED: usize = 100;

/// Which changes a stream tells.
struct Wanted {
    lists: BTreeSet<ListChange>,
    /// The id of the subscription of a modern client.
    subscription: Option<Value>,
    followed: FollowedResources,
    /// The updates of resources. They are heard from before the first one is followed.
    updates: broadcast::Receiver<Arc<WatchKey>>,
}

/// The single resources that a stream tells of.
enum FollowedResources {
    /// These.
    These(Vec<Arc<ResourceWatch>>),
    /// Those of a session, which also has requests of the daemon to its client.
    OfSession(Arc<LiveSession>, mpsc::Receiver<Bytes>),
}

/// One stream.
struct ChangeStream {
    subscription: Subscription,
    /// Whether its first snapshot came. A further one stands in place of changes.
    is_opened: bool,
    offers: OffersSeen,
    wanted: Wanted,
    clock: Clock,
    keep_alive: Duration,
    /// When a sign of life is sent, if nothing else is.
    silent_until: Instant,
    first: Option<Bytes>,
    /// Changes that were not sent yet.
    pending: BTreeSet<ListChange>,
    /// When the next change may be sent.
    next_change: Instant,
    /// What is sent when the daemon stops.
    end: Option<Bytes>,
    /// Tells the session that its client closed the stream.
    of_session: Option<SessionStream>,
    /// Counted among the streams of its client.
    _counted: OpenStream,
    /// The only strong reference: a weak one shows when the stream is dropped.
    _open: Arc<()>,
}

/// The stream of a session. Its session notes when it is dropped, unless the daemon ended it.
struct SessionStream {
    session: Arc<LiveSession>,
    is_ended_here: bool,
}

impl Drop for SessionStream {
    fn drop(&mut self) {
        if !self.is_ended_here {
            self.session.stream_closed();
        }
    }
}

/// `subscriptions/listen`. The acknowledgement says what of it is honoured: resources that no
/// scenario of this client has, or that their scenario does not let be followed, are not.
pub(super) async fn listen(
    context: &McpContext,
    client: &McpClient,
    id: &JsonText,
    params: Option<&JsonText>,
) -> Result<Response, Refusal> {
    #[derive(Deserialize, Default)]
    struct ListenParams {
        #[serde(default)]
        notifications: WantedNotifications,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct WantedNotifications {
        tools_list_changed: bool,
        prompts_list_changed: bool,
        resources_list_changed: bool,
        resource_subscriptions: Option<Vec<String>>,
    }
    let sent: ListenParams = params
        .and_then(|params| serde_json::from_str(params.get()).ok())
        .unwrap_or_default();
    let sent = sent.notifications;
    let subscription: Value = serde_json::from_str(id.get()).unwrap_or_default();
    let mut honoured = json!({});
    let mut lists = BTreeSet::new();
    for (is_wanted, list, name) in [
        (
            sent.tools_list_changed,
            ListChange::Tools,
            "toolsListChanged",
        ),
        (
            sent.prompts_list_changed,
            ListChange::Prompts,
            "promptsListChanged",
        ),
        (
            sent.resources_list_changed,
            ListChange::Resources,
            "resourcesListChanged",
        ),
    ] {
        if is_wanted {
            lists.insert(list);
            honoured[name] = true.into();
        }
    }
    let updates = context.shared.mcp.watches.updates();
    let uris: BTreeSet<&String> = sent
        .resource_subscriptions
        .iter()
        .flatten()
        .take(MOST_FOLLOWED)
        .collect();
    let mut keys = Vec::new();
    for uri in uris {
        // Each may be compared with many templates; other requests go on between two.
        yield_now().await;
        keys.extend(resources::watch_key(context, true, uri).ok());
    }
    let followed = join_all(keys.into_iter().map(|key| resources::follow(context, key))).await;
    let followed: Vec<_> = followed.into_iter().flatten().collect();
    if sent.resource_subscriptions.is_some() {
        let uris: Vec<_> = followed
            .iter()
            .map(|watch| watch.key.uri.as_str())
            .collect();
        honoured["resourceSubscriptions"] = json!(uris);
    }
    let meta = json!({"io.modelcontextprotocol/subscriptionId": subscription});
    let params = json!({"notifications": honoured, "_meta": meta});
    let first = notification("notifications/subscriptions/acknowledged", Some(&params));
    let result = json!({"resultType": "complete", "_meta": meta}).to_string();
    let end = event(rpc::response(id, Ok(&result)).as_bytes());
    let wanted = Wanted {
        lists,
        subscription: Some(subscription),
        followed: FollowedResources::These(followed),
        updates,
    };
    open(context, client.key(), wanted, first, Some(end)).await
}

/// The stream of a GET.
pub(super) async fn legacy(
    context: &McpContext,
    session: &Arc<LiveSession>,
) -> Result<Response, Refusal> {
    let lists = [
        ListChange::Tools,
        ListChange::Prompts,
        ListChange::Resources,
    ]
    .into();
    let (sender, receiver) = mpsc::channel(QUEUE);
    let followed = FollowedResources::OfSession(Arc::clone(session), receiver);
    let updates = context.shared.mcp.watches.updates();
    let wanted = Wanted {
        lists,
        subscription: None,
        followed,
        updates,
    };
    let response = open(context, &session.claims.key, wanted, sse::ALIVE, None).await?;
    session.add_stream(sender);
    Ok(response)
}

/// A notification as an event of the stream.
fn notification(method: &str, params: Option<&Value>) -> Bytes {
    let params = params.map(Value::to_string);
    event(rpc::notification(method, params.as_deref()).as_bytes())
}

async fn open(
    context: &McpContext,
    client: &str,
    wanted: Wanted,
    first: Bytes,
    end: Option<Bytes>,
) -> Result<Response, Refusal> {
    let shared = &context.shared;
    let list = &context.list;
    let counted = shared
        .mcp
        .streams
        .open(client, shared.config.borrow().mcp_face.max_streams)?;
    let kinds = if wanted.lists.contains(&ListChange::Tools) {
        [EventType::Catalog].into()
    } else {
        BTreeSet::new()
    };
    let query = views::effective(&list.view, list.format);
    // It gets no events of calls; they say whose stream it is.
    let calls = context.access.calls_seen(BTreeSet::new());
    let request = SubscribeRequest {
        query,
        kinds,
        calls,
        cursor: None,
    };
    let subscription = shared
        .events
        .subscribe(request)
        .await
        .map_err(|full| Refusal::busy(full.to_string()))?;
    let of_session = match &wanted.followed {
        FollowedResources::OfSession(session, _) => Some(SessionStream {
            session: Arc::clone(session),
            is_ended_here: false,
        }),
        FollowedResources::These(_) => None,
    };
    let open = Arc::new(());
    let hangs = (context.version >= Version::HTTP_2).then(|| Arc::downgrade(&open));
    let watch = subscription.watch();
    shared.tasks.spawn(disconnect_when_overrun(
        watch,
        context.connection.clone(),
        shared.clock,
        hangs,
    ));
    let stream = ChangeStream {
        subscription,
        is_opened: false,
        offers: OffersSeen::new(shared.reader.clone(), list.view.clone()),
        wanted,
        clock: shared.clock,
        keep_alive: shared.events.keep_alive(),
        silent_until: shared.clock.now() + shared.events.keep_alive(),
        first: Some(first),
        pending: BTreeSet::new(),
        next_change: shared.clock.now(),
        end,
        of_session,
        _counted: counted,
        _open: open,
    };
    Ok(sse::response(unfold(Some(stream), next), context.version))
}

impl Wanted {
    /// What was received about the resources. After updates were missed, any may have changed.
    fn of_received(&self, updated: Result<Arc<WatchKey>, RecvError>) -> Vec<ListChange> {
        self.of_update(updated.ok().as_deref())
    }

    /// What an update of a resource is to this stream. `None` for the key: some were missed.
    fn of_update(&self, key: Option<&WatchKey>) -> Vec<ListChange> {
        let of = |key: &WatchKey| ListChange::Resource(key.uri.clone());
        match (&self.followed, key) {
            (FollowedResources::These(all), Some(key)) => all
                .iter()
                .find(|watch| *watch.key == *key)
                .map(|watch| of(&watch.key))
                .into_iter()
                .collect(),
            (FollowedResources::These(all), None) => {
                all.iter().map(|watch| of(&watch.key)).collect()
            }
            (FollowedResources::OfSession(session, _), key) => {
                session.followed(key).iter().map(|key| of(key)).collect()
            }
        }
    }

    /// What says that something changed.
    fn text(&self, change: &ListChange) -> Bytes {
        let mut params = json!({});
        if let Some(id) = &self.subscription {
            params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        }
        let method = match change {
            ListChange::Tools => "notifications/tools/list_changed",
            ListChange::Prompts => "notifications/prompts/list_changed",
            ListChange::Resources => "notifications/resources/list_changed",
            ListChange::Resource(uri) => {
                params["uri"] = uri.as_str().into();
                "notifications/resources/updated"
            }
        };
        notification(method, (params != json!({})).then_some(&params))
    }
}

impl FollowedResources {
    /// A message of the daemon for the session of this stream. `None` when the session ended.
    async fn message(&mut self) -> Option<Bytes> {
        let Self::OfSession(session, messages) = self else {
            return std::future::pending().await;
        };
        let ended = session.ended();
        tokio::select! {
            biased;
            () = ended.wait() => None,
            // `None` when the daemon forgot the session, which begins anew with its next message.
            message = messages.recv() => message,
        }
    }
}

/// What comes next on a stream.
enum StreamStep {
    Changed(Vec<ListChange>),
    Message(Bytes),
    /// Nothing for a while.
    Silent,
    /// The pending changes may be sent.
    Due,
    Ended,
    /// The client ended its session.
    SessionEnded,
}

impl ChangeStream {
    async fn turn(&mut self) -> StreamStep {
        let due = async {
            if self.pending.is_empty() {
                std::future::pending::<()>().await;
            } else {
                self.clock.sleep_until(self.next_change).await;
            }
        };
        tokio::select! {
            next = self.subscription.next() => match next {
                Next::Message(message) => StreamStep::Changed(self.of_event(&message.event)),
                Next::Ended(_) => StreamStep::Ended,
            },
            changed = self.offers.changed() => StreamStep::Changed(changed),
            updated = self.wanted.updates.recv() => StreamStep::Changed(self.wanted.of_received(updated)),
            message = self.wanted.followed.message() => message.map_or(StreamStep::SessionEnded, StreamStep::Message),
            () = due => StreamStep::Due,
            () = self.clock.sleep_until(self.silent_until) => StreamStep::Silent,
        }
    }

    /// What an event is to this stream. The present state that the first snapshot has, the client
    /// learns by listing.
    fn of_event(&mut self, event: &Event) -> Vec<ListChange> {
        let was_opened = std::mem::replace(&mut self.is_opened, true);
        match event {
            Event::Catalog(_) => vec![ListChange::Tools],
            Event::Snapshot(_) if was_opened => vec![ListChange::Tools],
            _ => Vec::new(),
        }
    }

    /// What is pending, as one part of the stream.
    fn pending_text(&mut self) -> Bytes {
        self.next_change = self.clock.now() + TOGETHER;
        let messages: Vec<Bytes> = std::mem::take(&mut self.pending)
            .iter()
            .map(|change| self.wanted.text(change))
            .collect();
        messages.concat().into()
    }
}

async fn next(
    stream: Option<ChangeStream>,
) -> Option<(Result<Bytes, Infallible>, Option<ChangeStream>)> {
    let mut stream = stream?;
    if let Some(first) = stream.first.take() {
        return Some((Ok(first), Some(stream)));
    }
    loop {
        let sent = match stream.turn().await {
            StreamStep::Changed(changes) => {
                let lists = &stream.wanted.lists;
                let wanted = |change: &ListChange| {
                    matches!(change, ListChange::Resource(_)) || lists.contains(change)
                };
                stream.pending.extend(changes.into_iter().filter(wanted));
                continue;
            }
            StreamStep::Due => stream.pending_text(),
            StreamStep::Message(message) => message,
            StreamStep::Silent => sse::ALIVE,
            StreamStep::Ended if !stream.pending.is_empty() => stream.pending_text(),
            StreamStep::Ended => {
                if let Some(of_session) = &mut stream.of_session {
                    of_session.is_ended_here = true;
                }
                return Some((Ok(stream.end.take().unwrap_or(sse::ALIVE)), None));
            }
            StreamStep::SessionEnded => return None,
        };
        stream.silent_until = stream.clock.now() + stream.keep_alive;
        return Some((Ok(sent), Some(stream)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(uri: &str) -> Arc<WatchKey> {
        Arc::new(WatchKey {
            scenario: "docs".parse().unwrap(),
            uri: uri.to_owned(),
        })
    }

    #[tokio::test]
    async fn a_stream_that_missed_updates_says_that_all_of_its_resources_changed() {
        let (updates, received) = broadcast::channel(1);
        let followed = ["test://a", "test://b"].map(|uri| ResourceWatch::for_tests(key(uri)));
        let followed = FollowedResources::These(followed.into());
        let mut wanted = Wanted {
            lists: BTreeSet::new(),
            subscription: None,
            followed,
            updates: received,
        };
        let resource = |uri: &str| ListChange::Resource(uri.to_owned());
        updates.send(key("test://b")).unwrap();
        let update = wanted.updates.recv().await;
        assert_eq!(wanted.of_received(update), [resource("test://b")]);
        // More than are kept for a stream that does not read them.
        for uri in ["test://a", "test://another"] {
            updates.send(key(uri)).unwrap();
        }
        let update = wanted.updates.recv().await;
        assert_eq!(
            wanted.of_received(update),
            [resource("test://a"), resource("test://b")]
        );
        let update = wanted.updates.recv().await;
        assert_eq!(
            wanted.of_received(update),
            [],
            "the last one is of a resource that it does not follow"
        );
    }
}
