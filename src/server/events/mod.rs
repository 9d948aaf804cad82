//! `GET /api/v1/events`: changes as server-sent events (WHATWG HTML, section 9.2).
//!
//! Only carries what [`crate::events`] tells: one stream is one subscription. A client that does not read is let go.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::{HeaderMap, HeaderName, Version};

use crate::events::{Ask, Cursor, Ending, Form, Kind, Next, Subscription, Watch};
use crate::runtime::{Clock, StopTrigger};
use crate::server::App;
use crate::server::api::findings::read_all;
use crate::server::api::lookup;
use crate::server::events::wire as event_wire;
use crate::server::http::error::Problem;
use crate::server::http::params::Takes;
use crate::server::http::query::{ListQuery, Param, Query, many, once};
use crate::server::http::sse;
use crate::views;

pub(super) mod socket;
pub(super) mod wire;

/// Where a client was that reconnects by itself.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How long a client may take for the last event of a stream, which says why it ends; then its connection is cut.
const LAST_WORD: Duration = Duration::from_secs(1);

/// Ends the connection that a request came over, whatever it is doing.
#[derive(Debug, Clone)]
pub(in crate::server) struct LetGo(pub(in crate::server) Arc<StopTrigger>);

/// What may be asked with: what may be asked of a list, and what to be told of.
pub(in crate::server) const KNOWN: [Param; 14] = {
    let mut all = [KIND; 14];
    let mut at = 0;
    while at < ListQuery::FOLLOWED.len() {
        all[at] = ListQuery::FOLLOWED[at];
        at += 1;
    }
    all[13] = CURSOR;
    all
};
const KIND: Param = many("kind")
    .takes(Takes::Word(|| Kind::ALL.map(Kind::as_str).to_vec()))
    .about("Only events of these kinds; all when not given.", "catalog");
const CURSOR: Param = once("cursor")
    .about("The `id` of the last message that the client has. One that is not known gets a snapshot.", "");
/// What a client that reconnects by itself says.
pub(in crate::server) const RESUMED: &[Param] =
    &[once("Last-Event-ID").about("The `id` of the last message that the client has, before `cursor`.", "")];

/// One stream.
struct Stream {
    subscription: Subscription,
    clock: Clock,
    keep_alive: Duration,
    begun: bool,
    /// Its only owner: who holds a weak one learns when the stream is dropped.
    _open: Arc<()>,
}

/// `GET /api/v1/events`: the parameters of the list, `kind` (`catalog`, `scenario`, `finding`, `approval`,
/// `operation`; all by default) and, for clients that
/// cannot set `Last-Event-ID`, `cursor`. 503 when too many follow already.
pub(in crate::server) async fn follow(
    State(shared): State<App>,
    RawQuery(raw): RawQuery,
    version: Version,
    headers: HeaderMap,
    Extension(connection): Extension<LetGo>,
) -> Result<Response, Problem> {
    let ask = read(raw.as_deref(), &headers)?;
    lookup::profile(&shared.reader.snapshot().catalog, &ask.query)?;
    let subscription = shared.events.subscribe(ask).await.map_err(|full| Problem::busy(full.to_string()))?;
    let open = Arc::new(());
    let (watch, clock) = (subscription.watch(), shared.clock);
    // Over HTTP/2 a connection carries other requests too, so it is cut only if this stream still hangs.
    let hangs = (version >= Version::HTTP_2).then(|| Arc::downgrade(&open));
    shared.tasks.spawn(let_go(watch, connection, clock, hangs));
    let stream = Stream { subscription, clock, keep_alive: shared.events.keep_alive(), begun: false, _open: open };
    Ok(sse::response(unfold(Some(stream), next), version))
}

/// What is asked for by the query, and where the client was.
pub(in crate::server) fn read(raw: Option<&str>, headers: &HeaderMap) -> Result<Ask, Problem> {
    let query = Query::read(raw, &KNOWN)?;
    let list = ListQuery::of(&query)?;
    let kinds: BTreeSet<Kind> = read_all(&query, "kind", &Kind::ALL, Kind::as_str)?.into_iter().collect();
    // A client that reconnects by itself repeats the address with the cursor it began with.
    let known_to = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let cursor = known_to.or_else(|| query.one("cursor"));
    Ok(Ask {
        query: views::effective(&list.view, list.format),
        kinds: if kinds.is_empty() { Kind::ALL.into() } else { kinds },
        // What is no cursor of ours is one that is not known: the client gets a snapshot.
        cursor: cursor.and_then(|text| text.parse::<Cursor>().ok()),
    })
}

async fn next(stream: Option<Stream>) -> Option<(Result<Bytes, Infallible>, Option<Stream>)> {
    let mut stream = stream?;
    if !stream.begun {
        stream.begun = true;
        return Some((Ok(sse::FIRST), Some(stream)));
    }
    let silent = stream.clock.sleep(stream.keep_alive);
    let next = tokio::select! {
        next = stream.subscription.next() => Some(next),
        () = silent => None,
    };
    Some(match next {
        Some(Next::Message(message)) => (Ok(message.written(Form::Event, event_wire::event)), Some(stream)),
        Some(Next::Ended(ending)) => (Ok(event_wire::end(reason(ending))), None),
        None => (Ok(sse::ALIVE), Some(stream)),
    })
}

/// Why a stream ends, for its client.
pub(in crate::server) fn reason(ending: Ending) -> &'static str {
    match ending {
        Ending::Stopping => "the daemon is stopping",
        Ending::Overrun => "you did not keep up with the events; resume with the id of the last one you have",
    }
}

/// Cuts the connection of a client that has to be let go and does not even read why. `hangs` is alive while its stream is; without it
/// the connection carries nothing else.
async fn let_go(watch: Watch, connection: LetGo, clock: Clock, hangs: Option<Weak<()>>) {
    if watch.ended().await.is_none() {
        return;
    }
    clock.sleep(LAST_WORD).await;
    if hangs.is_none_or(|open| open.strong_count() > 0) {
        connection.0.stop();
    }
}
