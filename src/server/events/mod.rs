//! `GET /api/v1/events`: changes as server-sent events (WHATWG HTML, section 9.2).
//!
//! Only transports the messages of [`crate::events`]: one stream is one subscription. A client that
//! does not read is disconnected.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderName, Version};

use crate::events::{
    Cursor, DisconnectWatch, Ending, EventType, Form, Message, Next, SubscribeRequest, Subscription,
};
use crate::runtime::{BudgetExceeded, Clock, StopTrigger};
use crate::server::SharedState;
use crate::server::api::findings::parse_values;
use crate::server::api::lookup;
use crate::server::auth::Access;
use crate::server::events::event_json as event_wire;
use crate::server::http::error::Problem;
use crate::server::http::held::{ConnectionBytes, with_reservation};
use crate::server::http::params::ParamType;
use crate::server::http::query::{ListQuery, Param, QueryParams, many, once};
use crate::server::http::sse;
use crate::views;

pub(super) mod event_json;
pub(super) mod socket;

/// The last event that a client has that reconnects by itself.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long a client may take to read the last event of a stream, which says why it ends; then its
/// connection is cut.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The reason why a stream ends for whose next event there is no memory.
const NO_ROOM: &str = "the memory for clients is in use (`server.held_bytes`); resume with the id of the last one you have";

/// Cuts the connection that a request came over, even while it is in use.
#[derive(Debug, Clone)]
pub(in crate::server) struct DisconnectTrigger(pub(in crate::server) Arc<StopTrigger>);

/// The parameters: those of a list that can be followed, and the kinds of events.
pub(in crate::server) const PARAMS: [Param; ListQuery::FOLLOWED.len() + 3] = {
    let mut all = [KIND; ListQuery::FOLLOWED.len() + 3];
    let mut at = 0;
    while at < ListQuery::FOLLOWED.len() {
        all[at] = ListQuery::FOLLOWED[at];
        at += 1;
    }
    all[at + 1] = CURSOR;
    all[at + 2] = CALL_ID;
    all
};
const KIND: Param = many("kind")
    .takes(ParamType::Word(|| {
        EventType::ALL.map(EventType::as_str).to_vec()
    }))
    .about("Only events of these kinds; all when not given.", "catalog");
const CALL_ID: Param = many("call_id").about(
    "Events of the kind `call` of the calls with these ids. Without it operators get those of all calls, and others of none; others never get those of an operator's call.",
    "",
);
const CURSOR: Param = once("cursor").about(
    "The `id` of the last message that the client has. One that is not known gets a snapshot.",
    "",
);
/// The header that a client sends when it reconnects by itself.
pub(in crate::server) const RESUME_HEADERS: &[Param] = &[once("Last-Event-ID").about(
    "The `id` of the last message that the client has, before `cursor`.",
    "",
)];

/// The body of one answer: a stream of events.
struct SseStream {
    subscription: Subscription,
    bytes: ConnectionBytes,
    clock: Clock,
    keep_alive: Duration,
    begun: bool,
    /// The only strong reference: a weak one shows when the stream is dropped.
    _open: Arc<()>,
}

/// `GET /api/v1/events`: takes the parameters of the list, `kind` (`catalog`, `scenario`,
/// `finding`, `approval`, `operation`, `call`; all by default), `call_id`, and, for clients that
/// cannot set `Last-Event-ID`, `cursor`. 503 when there are too many subscriptions.
pub(in crate::server) async fn follow(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    version: Version,
    headers: HeaderMap,
    access: Access,
    Extension(connection): Extension<DisconnectTrigger>,
    Extension(bytes): Extension<ConnectionBytes>,
) -> Result<Response, Problem> {
    let request = parse_subscription(raw.as_deref(), &headers, access)?;
    lookup::check_profile(&shared, &shared.reader.snapshot().catalog, &request.query)?;
    let subscription = shared.events.subscribe(request).await?;
    let open = Arc::new(());
    let watch = subscription.watch();
    let clock = shared.clock;
    // Over HTTP/2 a connection carries other requests too, so it is cut only if this stream is
    // still open.
    let hangs = (version >= Version::HTTP_2).then(|| Arc::downgrade(&open));
    shared
        .tasks
        .spawn(disconnect_when_overrun(watch, connection, clock, hangs));
    let keep_alive = shared.events.keep_alive();
    let stream = SseStream {
        subscription,
        bytes,
        clock,
        keep_alive,
        begun: false,
        _open: open,
    };
    Ok(sse::response(unfold(Some(stream), next), version))
}

/// Parses the query and the client's last position.
pub(in crate::server) fn parse_subscription(
    raw: Option<&str>,
    headers: &HeaderMap,
    access: Access,
) -> Result<SubscribeRequest, Problem> {
    let query = QueryParams::parse(raw, &PARAMS)?;
    let list = ListQuery::from_params(&query)?;
    let kinds: BTreeSet<EventType> =
        parse_values(&query, "kind", &EventType::ALL, EventType::as_str)?
            .into_iter()
            .collect();
    // A client that reconnects by itself repeats the address with the cursor it began with, so the
    // header has precedence.
    let known_to = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let cursor = known_to.or_else(|| query.optional("cursor"));
    let ids: BTreeSet<Arc<str>> = query.list("call_id")?.into_iter().map(Into::into).collect();
    Ok(SubscribeRequest {
        calls: access.calls_seen(ids),
        query: views::effective(&list.view, list.format),
        kinds: if kinds.is_empty() {
            EventType::ALL.into()
        } else {
            kinds
        },
        // An invalid cursor counts as an unknown one: the client gets a snapshot.
        cursor: cursor.and_then(|text| text.parse::<Cursor>().ok()),
    })
}

async fn next(stream: Option<SseStream>) -> Option<(Result<Bytes, Infallible>, Option<SseStream>)> {
    let mut stream = stream?;
    if !stream.begun {
        stream.begun = true;
        return Some((Ok(sse::FIRST), Some(stream)));
    }
    let keep_alive = stream.clock.sleep(stream.keep_alive);
    let next = tokio::select! {
        next = stream.subscription.next() => Some(next),
        () = keep_alive => None,
    };
    Some(match next {
        Some(Next::Message(message)) => match held(&message, &stream.bytes) {
            Ok(written) => (Ok(written), Some(stream)),
            Err(_) => (Ok(event_wire::end(NO_ROOM)), None),
        },
        Some(Next::Ended(ending)) => (Ok(event_wire::end(reason(ending))), None),
        None => (Ok(sse::ALIVE), Some(stream)),
    })
}

/// The message as it is written, reserved once for all clients that have not read it yet.
fn held(message: &Message, bytes: &ConnectionBytes) -> Result<Bytes, BudgetExceeded> {
    let written = message.written(Form::Event, event_wire::event);
    let reserved = message
        .reservation(Form::Event)
        .hold(written.len(), bytes.answers())?;
    Ok(with_reservation(written, reserved))
}

/// The reason why a stream ends, as its client gets it.
pub(in crate::server) fn reason(ending: Ending) -> &'static str {
    match ending {
        Ending::Stopping => "the daemon is stopping",
        Ending::GaveWay => {
            "too many clients follow events, and another one took this place; resume with the id of the last one you have"
        }
        Ending::Overrun => {
            "you did not keep up with the events; resume with the id of the last one you have"
        }
    }
}

/// Cuts the connection of a client that is disconnected for not reading and does not read the last
/// event either. `hangs` is alive while its stream is; without it the connection carries no other
/// request.
pub(in crate::server) async fn disconnect_when_overrun(
    watch: DisconnectWatch,
    connection: DisconnectTrigger,
    clock: Clock,
    hangs: Option<Weak<()>>,
) {
    if watch.ended().await.is_none() {
        return;
    }
    clock.sleep(CLOSE_TIMEOUT).await;
    if hangs.is_none_or(|open| open.strong_count() > 0) {
        connection.0.stop();
    }
}
