//! `GET /dashboard/live`: sends an open page the parts that it has to fetch again.
//!
//! A stream of server-sent events beside that of the API, since pages also show changes that are no
//! API events: each poll changes the freshness, the latency and the next attempt of a scenario.
//! Events: `calls` (calls that are over), `health` (states, freshness, isolation), `catalog`
//! (tools, preferences, findings), `news`, a sentence for people, and the numbers of the
//! navigation. Changes in quick succession are sent as one event.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::unfold;
use http::Version;
use maud::html;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::Instant;

use crate::catalog::{CatalogReader, Snapshot};
use crate::model::StateTransition;
use crate::runtime::Clock;
use crate::server::SharedState;
use crate::server::dashboard::nav_numbers::{NavNumber, NavNumbers, offer_differs};
use crate::server::dashboard::security_headers::add_security_headers;
use crate::server::dashboard::text::foreign;
use crate::server::http::error::Problem;
use crate::server::http::query::{QueryParams, once};
use crate::server::http::sse;

/// The minimum time between two events.
const EVENT_INTERVAL_MIN: Duration = Duration::from_millis(250);
/// How often an idle stream sends a comment that keeps it alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// At most this many sentences are in one `news` event.
const SENTENCES: usize = 3;

/// One page's stream.
struct PageStream {
    shared: SharedState,
    reader: CatalogReader,
    /// Changes with each event of a call: snapshots do not contain calls.
    calls: watch::Receiver<u64>,
    /// The number of the latest call that is over.
    ended: watch::Receiver<u64>,
    /// The number of the latest call that was signalled; `None` before the first signal.
    shown_call: Option<u64>,
    known: Arc<Snapshot>,
    /// The numbers of the navigation that were sent; `None` before the first ones.
    numbers: Option<NavNumbers>,
    waiting: VecDeque<Bytes>,
    clock: Clock,
    next_look: Instant,
    _place: OwnedSemaphorePermit,
}

/// `seen` is the sequence of the snapshot that the page was rendered from: changes since then are
/// sent at once.
pub(super) async fn follow(
    State(shared): State<SharedState>,
    RawQuery(raw): RawQuery,
    version: Version,
) -> Result<Response, Problem> {
    let query = QueryParams::parse(raw.as_deref(), &[once("seen")])?;
    let place = Arc::clone(&shared.dashboard.streams).try_acquire_owned();
    let place = place.map_err(|_| {
        Problem::busy("too many pages of the dashboard are open").and_next("close some")
    })?;
    let reader = shared.reader.clone();
    let calls = shared.events.call_events();
    let ended = shared.calls.ended_calls();
    let known = reader.snapshot();
    let mut waiting = VecDeque::from([sse::FIRST]);
    if query.optional("seen") != Some(known.sequence.to_string().as_str()) {
        waiting.extend([event("health", "1"), event("catalog", "1")]);
    }
    let clock = shared.clock;
    let next_look = clock.now();
    let stream = PageStream {
        shared,
        reader,
        calls,
        ended,
        shown_call: None,
        known,
        numbers: None,
        waiting,
        clock,
        next_look,
        _place: place,
    };
    let mut response = sse::response(unfold(stream, next), version);
    add_security_headers(response.headers_mut());
    Ok(response)
}

async fn next(mut stream: PageStream) -> Option<(Result<Bytes, Infallible>, PageStream)> {
    loop {
        if let Some(bytes) = stream.waiting.pop_front() {
            return Some((Ok(bytes), stream));
        }
        if stream.numbers.is_none() {
            // A call may have ended since the page was rendered.
            stream.send_ended();
            stream.send_numbers().await;
            continue;
        }
        tokio::select! {
            biased;
            () = stream.shared.dashboard.stop.wait() => return None,
            changed = stream.reader.changed() => {
                changed?;
                stream.send_changes().await;
            }
            changed = stream.calls.changed() => {
                changed.ok()?;
                stream.send_changes().await;
            }
            changed = stream.ended.changed() => {
                changed.ok()?;
                stream.send_changes().await;
            }
            () = stream.clock.sleep(KEEP_ALIVE) => return Some((Ok(sse::ALIVE), stream)),
        }
    }
}

impl PageStream {
    /// Queues what has changed since the last look.
    async fn send_changes(&mut self) {
        // Changes within the pause are sent together with this one.
        self.clock.sleep_until(self.next_look).await;
        self.calls.mark_unchanged();
        let snapshot = self.reader.snapshot();
        self.waiting = change_events(&self.known, &snapshot);
        self.known = snapshot;
        self.send_ended();
        self.send_numbers().await;
        self.next_look = self.clock.now() + EVENT_INTERVAL_MIN;
    }

    /// Queues the signal that calls ended since the last one.
    fn send_ended(&mut self) {
        let ended = *self.ended.borrow_and_update();
        if self.shown_call.replace(ended) != Some(ended) {
            self.waiting.push_back(event("calls", "1"));
        }
    }

    /// Queues the numbers that are not as they were sent.
    async fn send_numbers(&mut self) {
        let numbers = NavNumbers::counted(&self.shared, &self.known).await;
        let before = self.numbers.replace(numbers);
        let changed = |number: &NavNumber| {
            before.is_none_or(|before| before.get(*number) != numbers.get(*number))
        };
        let events = NavNumber::ALL.into_iter().filter(changed);
        self.waiting.extend(
            events.map(|number| event(number.event(), &numbers.shown(number).into_string())),
        );
    }
}

/// Events for the changes between two snapshots.
fn change_events(before: &Snapshot, after: &Snapshot) -> VecDeque<Bytes> {
    let mut events = VecDeque::new();
    if !before.health.ptr_eq(&after.health) || before.isolated != after.isolated {
        events.push_back(event("health", "1"));
    }
    if offer_differs(before, after) {
        events.push_back(event("catalog", "1"));
    }
    let turns = after
        .transitions
        .since(&before.transitions)
        .unwrap_or_default();
    if !turns.is_empty() {
        events.push_back(event("news", &news(&turns)));
    }
    events
}

/// The latest changes of state, as sentences.
fn news(turns: &[Arc<StateTransition>]) -> String {
    let shown = turns.len().saturating_sub(SENTENCES);
    let text = html! {
        @for turn in &turns[shown..] {
            span { (turn.name) @match turn.to { Some(state) => { " is " (state) ": " (foreign(&turn.reason, 200)) } None => " is removed" } ". " }
        }
    };
    // A line end would end the event.
    text.into_string().replace(['\n', '\r'], " ")
}

fn event(name: &str, data: &str) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}
