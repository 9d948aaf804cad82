//! Prepared views: from a key (revision, query, format, coding) to a body with its `ETag`.
//!
//! ```text
//! ViewRequest -> key -> cache: body with ETag ----------------------------------> Prepared
//!                         | absent
//!                         `-> View (catalog) -> render: segments, joined -> coding -> cache
//!                                                 ^ latest_lists: scenarios that did not change
//! ```
//!
//! What is kept true here:
//!
//! - The same catalog and query give the same bytes in every process. No clock and no health
//!   enters.
//! - A body is rendered once for all requests that wait for it, outside the async threads.
//! - The cache is bounded in bytes. A larger list is made, shared by the requests that wait for it,
//!   and not kept.
//! - The bytes of a body are reserved before it is made for a client. Without room, or with too
//!   many lists waiting to be made, the request is refused.
//! - An entity tag is of exactly the bytes, so two codings of one list have two tags.
//!
//! Read in this order: this file ([`ViewCache`]), `render.rs` with `latest_lists.rs` and
//! `categories.rs`, `coding.rs`, `etag.rs`, `prepared.rs`, `cost.rs`, `report.rs` (why each tool is in a
//! list), `tagged.rs` (which revision a tag was of). The errors are in `docs/design/views.md`.
//!
//! Never done here: deciding what is in a view.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use parking_lot::Mutex;

use crate::catalog::{Estimator, Revision, Snapshot, View, ViewQuery};
use crate::formats::Format;
use crate::metrics::ViewCounts;
use crate::model::{ScenarioName, ViewTool};
use crate::runtime::{
    AnswerBudget, BudgetExceeded, QueueFull, ReservedBytes, SharedReservation, Tasks, WorkQueue,
    WorkTurn,
};

pub mod categories;
pub mod coding;
mod cost;
pub mod etag;
mod prepared;
pub mod render;
mod report;

pub(crate) use cost::CostJson;
pub(crate) use report::{FindingJson, ReportJson, finding};
mod latest_lists;
mod tagged;

pub use coding::Coding;
pub use prepared::{HeldView, Prepared};
pub use render::{Rendered, render};

use latest_lists::{CachedList, LatestLists};
use prepared::{encoded, prepared};
use tagged::TaggedRevisions;

/// Roughly how many bytes of memory a finding needs, with its texts.
const FINDING_BYTES: usize = 400;
/// Roughly how many bytes a text of a query needs besides its own.
const TEXT_BYTES: usize = 64;
/// Roughly how many bytes an entry needs besides its body.
const ENTRY_BYTES: usize = 512;
/// Roughly how many bytes a tool has in a list, as long as no list of its format is known.
const TOOL_BYTES: usize = 1_024;
/// Roughly how many bytes the report has for a tool.
const REPORTED_BYTES: usize = 256;
/// So many lists that are not plain ones are made at once.
const MADE_AT_ONCE: usize = 2;
/// So many requests wait for such a list to be made.
const MAKING_WAITS_MAX: usize = 512;

/// Estimates tools for the selection, as a format writes them.
pub(crate) struct FormatEstimator<'a>(pub(crate) &'a dyn Format);

impl Estimator for FormatEstimator<'_> {
    fn tokens(&self, tool: &ViewTool) -> Option<usize> {
        self.0
            .max_bytes(tool)
            .map(|bytes| self.0.limits().tokens(bytes))
    }

    fn max_deferred(&self) -> Option<usize> {
        self.0.max_deferred()
    }
}

/// Prepares and keeps views. Clones share the cache.
#[derive(Debug, Clone)]
pub struct ViewCache {
    bodies: Cache<ViewKey, Arc<Prepared>>,
    latest: LatestLists,
    tagged: TaggedRevisions,
    max_bytes: u64,
    making: WorkQueue,
    tasks: Tasks,
    newest: Arc<Mutex<Newest>>,
    own_id: Option<Arc<str>>,
    counts: Arc<ViewCounts>,
}

/// Everything that the bytes of a body depend on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ViewKey {
    stamp: Stamp,
    /// For a query with a profile or chat, whose preferences do not show in the revision of the
    /// stamp.
    scoped: Option<Revision>,
    query: ViewQuery,
    format: &'static str,
    /// Whether the list is part of a report.
    report: bool,
    coding: Coding,
}

/// The list that a client requests.
#[derive(Clone, Copy)]
pub struct ViewRequest<'a> {
    /// Which tools.
    pub query: &'a ViewQuery,
    /// How they are written.
    pub format: &'static dyn Format,
    /// Whether the list is part of a report.
    pub report: bool,
}

/// Why a list is not made for a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ViewRefused {
    /// There is no room for its body.
    #[error(transparent)]
    Memory(#[from] BudgetExceeded),
    /// Too many lists wait to be made. Answered with 503.
    #[error(transparent)]
    Busy(#[from] QueueFull),
}

/// A list to prepare. Its query is an effective one.
struct WantedView<'a> {
    snapshot: &'a Arc<Snapshot>,
    query: ViewQuery,
    format: &'static dyn Format,
    report: bool,
    /// What its body is reserved from; `None` for the daemon itself.
    budget: Option<&'a AnswerBudget>,
}

impl<'a> WantedView<'a> {
    /// The list that a client requests.
    fn of_client(
        snapshot: &'a Arc<Snapshot>,
        list: ViewRequest<'_>,
        budget: &'a AnswerBudget,
    ) -> Self {
        let ViewRequest {
            query,
            format,
            report,
        } = list;
        Self {
            snapshot,
            query: effective(query, format),
            format,
            report,
            budget: Some(budget),
        }
    }

    /// Whether it is a list that all clients share.
    fn is_plain(&self) -> bool {
        !self.report && self.query == effective(&ViewQuery::default(), self.format)
    }

    /// What its body is reserved from, of the budget of a client.
    fn budget_of(&self, client: &AnswerBudget) -> AnswerBudget {
        if self.is_plain() {
            client.for_all()
        } else {
            client.clone()
        }
    }

    /// The reservation of its body for the clients that will hold it.
    fn reservation(&self) -> Arc<SharedReservation> {
        Arc::new(if self.is_plain() {
            SharedReservation::for_all()
        } else {
            SharedReservation::default()
        })
    }
}

/// An answer that is not put into the cache.
enum NotKept {
    TooLarge(Arc<Prepared>),
    Refused(ViewRefused),
}

/// An answer that was made for a request.
struct MadeView {
    prepared: Prepared,
    /// Has its body; `None` if it was made for the daemon itself.
    reserved: Option<ReservedBytes>,
    /// The turn in which it was made.
    turn: Option<WorkTurn>,
}

/// The result of a lookup.
struct CacheLookup {
    prepared: Arc<Prepared>,
    /// The reservation of its body, if it was made for this request.
    reserved: Option<Arc<ReservedBytes>>,
    /// The turn in which it was made, if it was made for this request.
    turn: Option<WorkTurn>,
    /// Whether the answer was in the cache.
    kept: bool,
}

impl CacheLookup {
    /// The reservation of its body for the client.
    fn hold(&mut self, budget: &AnswerBudget) -> Result<Arc<ReservedBytes>, BudgetExceeded> {
        self.reserved
            .take()
            .map_or_else(|| self.prepared.hold(budget), Ok)
    }
}

/// One content at one time. A revision that comes back later has another `generated_at` in its
/// list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Stamp {
    revision: Revision,
    generated_at: Timestamp,
}

/// The content of the latest snapshot that was requested.
#[derive(Debug, Default)]
struct Newest {
    sequence: u64,
    stamp: Stamp,
}

/// The query that is answered for a format.
///
/// Lists for LLMs never have disabled or internal tools. The client's budget may be exceeded by
/// tools that are always listed; the cap of the format may not. A client that sets a higher number
/// raises the cap to it. `Some(0)` (written `max_tools=0`) lifts both.
pub fn effective(query: &ViewQuery, format: &dyn Format) -> ViewQuery {
    let mut query = query.clone();
    if format.for_llm() {
        query.include_disabled = false;
        query.include_internal = false;
    }
    let cap = format.limits().max_tools;
    (query.max_tools, query.cap) = match query.max_tools {
        Some(0) => (None, None),
        Some(most) => (Some(most), cap.map(|cap| cap.max(most))),
        None => (None, cap),
    };
    query
}

impl ViewCache {
    /// A cache that holds at most `max_bytes` of bodies, and in addition the latest list of each
    /// format. A single body that is larger is shared by the requests that wait for it, and not
    /// kept. `tasks` runs work that would block an async thread.
    pub fn new(max_bytes: u64, tasks: Tasks) -> Self {
        let bodies = Cache::builder()
            .max_capacity(max_bytes)
            // The default policy may refuse a new entry in favour of a popular one, but here the
            // newest revision always matters most.
            .eviction_policy(EvictionPolicy::lru())
            .weigher(|key: &ViewKey, prepared: &Arc<Prepared>| weight(key, prepared))
            .build();
        Self {
            bodies,
            latest: LatestLists::default(),
            tagged: TaggedRevisions::default(),
            max_bytes,
            making: WorkQueue::new(MADE_AT_ONCE, MAKING_WAITS_MAX),
            tasks,
            newest: Arc::default(),
            own_id: None,
            counts: Arc::default(),
        }
    }

    /// How many requests there were, and how many were answered from the cache.
    pub fn counts(&self) -> &ViewCounts {
        &self.counts
    }

    /// How many bodies are kept, and roughly how many bytes of memory they need.
    pub async fn kept(&self) -> (u64, u64) {
        // The cache updates its counters when it runs its pending tasks.
        self.bodies.run_pending_tasks().await;
        (self.bodies.entry_count(), self.bodies.weighted_size())
    }

    /// Writes this daemon's id into lists for other daemons, as one that they passed through.
    #[must_use]
    pub fn identified(self, id: &str) -> Self {
        Self {
            own_id: Some(id.into()),
            ..self
        }
    }

    /// The prepared answer for a query on a snapshot, made once for many concurrent requests, for
    /// a use in the daemon itself that soon ends: it is never refused, and no client may hold its
    /// body. [`effective`] says how a format changes the query. Cancel-safe: if the request that
    /// makes the answer is dropped, another one makes it.
    pub async fn prepare(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &ViewQuery,
        format: &'static dyn Format,
        coding: Coding,
    ) -> Arc<Prepared> {
        let wanted = WantedView {
            snapshot,
            query: effective(query, format),
            format,
            report: false,
            budget: None,
        };
        loop {
            // Only a request with a budget is refused, and its refusal is not shared.
            if let Ok(found) = self.prepare_as(&wanted, coding).await {
                return found.prepared;
            }
        }
    }

    /// The same for a client, with its body reserved from `budget` before it is made. A list other
    /// than a plain one waits for its turn to be made. With `report` the list is part of a report,
    /// `{"tools": ..., "report": ...}`, where `tools` is the list in its format: for each tool in
    /// the list, the report gives the reason, its rank, its score and its tokens; for every other
    /// published tool, why it is left out.
    ///
    /// # Errors
    /// [`ViewRefused`] if there is no room for the body, or too many lists wait to be made.
    pub async fn prepare_for(
        &self,
        snapshot: &Arc<Snapshot>,
        list: ViewRequest<'_>,
        coding: Coding,
        budget: &AnswerBudget,
    ) -> Result<HeldView, ViewRefused> {
        let wanted = WantedView::of_client(snapshot, list, budget);
        let mut found = self.prepare_as(&wanted, coding).await?;
        let reserved = found.hold(budget)?;
        Ok(HeldView {
            prepared: found.prepared,
            reserved,
        })
    }

    /// The same for a client that gets no body, as for `HEAD`: it is reserved only while it is
    /// made.
    ///
    /// # Errors
    /// [`ViewRefused`] if it has to be made, and there is no room for it, or too many lists wait.
    pub async fn prepare_without_body(
        &self,
        snapshot: &Arc<Snapshot>,
        list: ViewRequest<'_>,
        coding: Coding,
        budget: &AnswerBudget,
    ) -> Result<Arc<Prepared>, ViewRefused> {
        let wanted = WantedView::of_client(snapshot, list, budget);
        self.prepare_as(&wanted, coding)
            .await
            .map(|found| found.prepared)
    }

    async fn prepare_as(
        &self,
        wanted: &WantedView<'_>,
        coding: Coding,
    ) -> Result<CacheLookup, ViewRefused> {
        let WantedView {
            snapshot,
            query,
            format,
            report,
            ..
        } = wanted;
        let stamp = Stamp {
            revision: snapshot.catalog.revision(),
            generated_at: snapshot.generated_at,
        };
        if self.forget_older(snapshot.sequence, stamp) {
            // Otherwise the cache would hold the memory of dropped entries until some requests
            // later.
            self.bodies.run_pending_tasks().await;
        }
        let scoped = snapshot
            .catalog
            .is_scoped(query)
            .then(|| snapshot.catalog.revision_for(query));
        let identity = ViewKey {
            stamp,
            scoped,
            query: query.clone(),
            format: format.id(),
            report: *report,
            coding: Coding::Identity,
        };
        let found = if coding == Coding::Identity {
            self.identity(wanted, &identity).await?
        } else {
            let key = ViewKey {
                coding,
                ..identity.clone()
            };
            self.once(&key, || self.encode(wanted, &identity, coding).boxed())
                .await?
        };
        self.counts.looked_up(found.kept);
        Ok(found)
    }

    /// The answer that is cached or being made, or else the one that `make` gives. A refusal is not
    /// shared: another request has a budget of its own, and tries by itself.
    async fn once<'a>(
        &self,
        key: &ViewKey,
        make: impl Fn() -> BoxFuture<'a, Result<MadeView, ViewRefused>>,
    ) -> Result<CacheLookup, ViewRefused> {
        loop {
            let mut is_own = false;
            let mut reserved = None;
            let mut turn = None;
            let attempt = async {
                is_own = true;
                let view = make().await.map_err(NotKept::Refused)?;
                // Before the requests that wait get the body, so that they hold these bytes too.
                reserved = view
                    .reserved
                    .map(|bytes| view.prepared.reservation.begin(bytes));
                turn = view.turn;
                let prepared = Arc::new(view.prepared);
                // An error is shared with the waiting requests, like a value, and is not kept.
                let too_large = u64::from(weight(key, &prepared)) > self.max_bytes;
                if too_large {
                    Err(NotKept::TooLarge(prepared))
                } else {
                    Ok(prepared)
                }
            };
            // Boxed, since the cache's own future is large. A separate lookup before would let two
            // requests make the same body twice.
            return match Box::pin(self.bodies.entry_by_ref(key).or_try_insert_with(attempt)).await {
                Ok(entry) => Ok(CacheLookup {
                    kept: !entry.is_fresh(),
                    prepared: entry.into_value(),
                    reserved,
                    turn,
                }),
                Err(not_kept) => match &*not_kept {
                    NotKept::TooLarge(prepared) => Ok(CacheLookup {
                        kept: false,
                        prepared: Arc::clone(prepared),
                        reserved,
                        turn,
                    }),
                    NotKept::Refused(refused) if is_own => Err(*refused),
                    NotKept::Refused(_) => continue,
                },
            };
        }
    }

    /// The body without coding, from which the codings are made.
    async fn identity(
        &self,
        wanted: &WantedView<'_>,
        key: &ViewKey,
    ) -> Result<CacheLookup, ViewRefused> {
        let found = self.once(key, || self.make(wanted).boxed()).await?;
        if !found.kept {
            self.tagged.note(
                &found.prepared.etag,
                key.scoped.unwrap_or(key.stamp.revision),
            );
        }
        Ok(found)
    }

    async fn make(&self, wanted: &WantedView<'_>) -> Result<MadeView, ViewRefused> {
        let turn = self.turn(wanted).await?;
        let views = self.clone();
        let snapshot = Arc::clone(wanted.snapshot);
        let query = wanted.query.clone();
        let format = wanted.format;
        let report = wanted.report;
        let budget = wanted.budget.cloned();
        // Also if the request is gone, another one waits until this work is done and has dropped
        // the turn.
        let render = move || {
            let wanted = WantedView {
                snapshot: &snapshot,
                query,
                format,
                report,
                budget: budget.as_ref(),
            };
            views.render(&wanted, turn)
        };
        self.tasks.blocking(render).await
    }

    /// Renders a list on this thread. Its bytes are reserved from before it is made, first as they
    /// are expected.
    fn render(
        &self,
        wanted: &WantedView<'_>,
        turn: Option<WorkTurn>,
    ) -> Result<MadeView, ViewRefused> {
        let WantedView {
            snapshot,
            query,
            format,
            report,
            budget,
        } = wanted;
        let format = *format;
        let view = View::select_for(&snapshot.catalog, query, &FormatEstimator(format));
        let origin = render::ListOrigin {
            generated_at: snapshot.generated_at,
            own_id: self.own_id.as_deref(),
        };
        let builder = report::ReportBuilder {
            view: &view,
            query,
            format,
        };
        let known = self.latest.get(format.id());
        let bytes = expected_bytes(&view, known.as_deref(), *report);
        let expected = budget
            .map(|budget| wanted.budget_of(budget).reserve_expected(bytes))
            .transpose()?;
        let (mut rendered, places) = render::render_again(&view, origin, format, known.as_deref());
        if *report {
            rendered.body = builder.report(&snapshot.catalog, &rendered);
        }
        let prepared = prepared(rendered, &builder, wanted.reservation());
        if !*report && prepared.body.len() as u64 <= self.max_bytes {
            self.latest
                .update(format.id(), prepared.body.clone(), prepared.tools, places);
        }
        let reserved = expected
            .map(|expected| expected.made(prepared.body.len()))
            .transpose()?;
        Ok(MadeView {
            prepared,
            reserved,
            turn,
        })
    }

    /// The list in a coding. One that is made for it has one turn for both, so that no more lists
    /// are there without a coding than are made at once.
    async fn encode(
        &self,
        wanted: &WantedView<'_>,
        identity: &ViewKey,
        coding: Coding,
    ) -> Result<MadeView, ViewRefused> {
        let mut found = self.identity(wanted, identity).await?;
        let held = wanted.budget.map(|budget| found.hold(budget)).transpose()?;
        let turn = match found.turn {
            Some(turn) => Some(turn),
            None => self.turn(wanted).await?,
        };
        let expected = match (wanted.budget, held) {
            (Some(client), Some(held)) => {
                let bytes = coding.expected_bytes(found.prepared.body.len());
                Some(wanted.budget_of(client).reserve_beside(held, bytes)?)
            }
            _ => None,
        };
        let reservation = wanted.reservation();
        let plain = found.prepared;
        let encode = move || {
            let prepared = encoded(&plain, coding, reservation);
            drop(plain);
            let reserved = expected
                .map(|expected| expected.made(prepared.body.len()))
                .transpose()?;
            Ok(MadeView {
                prepared,
                reserved,
                turn,
            })
        };
        self.tasks.blocking(encode).await
    }

    /// Waits until a list may be made. Plain lists do not wait: there are as many as formats and
    /// codings, and all clients share them.
    async fn turn(&self, wanted: &WantedView<'_>) -> Result<Option<WorkTurn>, QueueFull> {
        if wanted.is_plain() || wanted.budget.is_none() {
            return Ok(None);
        }
        self.making.turn().await.map(Some)
    }

    /// The revision of the list that was answered with this entity tag, if it is remembered.
    pub fn revision_of(&self, tag: &str) -> Option<Revision> {
        self.tagged.find(tag)
    }

    /// Drops the bodies of older contents. Returns whether this is the first request for the
    /// content.
    fn forget_older(&self, sequence: u64, stamp: Stamp) -> bool {
        let mut newest = self.newest.lock();
        if sequence <= newest.sequence {
            return false;
        }
        let changed = newest.stamp != stamp;
        *newest = Newest { sequence, stamp };
        if changed {
            // Before the lock is released, so that no body of this content is dropped.
            self.bodies.invalidate_all();
        }
        changed
    }
}

/// Roughly how many bytes a list has, before it is made: its tools are as long as those of the
/// latest list.
fn expected_bytes(view: &View, known: Option<&CachedList>, report: bool) -> usize {
    let list = ENTRY_BYTES + view.len() * known.map_or(TOOL_BYTES, CachedList::tool_bytes);
    let reported = if report {
        view.len() + view.left_out.len()
    } else {
        0
    };
    list + reported * REPORTED_BYTES
}

/// The weight of an answer with its query: a query that names ten thousand tags is kept even if its
/// list is empty.
fn weight(key: &ViewKey, prepared: &Prepared) -> u32 {
    let bytes = query_bytes(&key.query)
        + prepared.body.len()
        + prepared.findings.len() * FINDING_BYTES
        + ENTRY_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn query_bytes(query: &ViewQuery) -> usize {
    let scope = [&query.profile, &query.chat].into_iter().flatten();
    let texts = scope
        .chain(&query.categories)
        .chain(&query.tags)
        .chain(&query.q)
        .map(String::as_str);
    let texts = texts.chain(query.scenarios.iter().map(ScenarioName::as_str));
    let carried = query
        .sticky
        .as_ref()
        .map_or(0, |carried| size_of_val(carried.marks()));
    carried + texts.map(|text| text.len() + TEXT_BYTES).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{native::NativeFormat, openai::OpenAiFormat};

    #[test]
    fn lists_for_llms_have_neither_disabled_nor_internal_tools() {
        let wanted = ViewQuery {
            include_disabled: true,
            include_internal: true,
            ..ViewQuery::default()
        };
        let query = effective(&wanted, &OpenAiFormat);
        assert!(!query.include_disabled && !query.include_internal);
        assert_eq!(effective(&wanted, &NativeFormat), wanted);
    }

    #[test]
    fn a_long_question_weighs_though_its_answer_is_short() {
        let tags = (0..1_000)
            .map(|number| format!("tag-{number:04}"))
            .collect();
        let key = |query| ViewKey {
            stamp: Stamp::default(),
            scoped: None,
            query,
            format: "native",
            report: false,
            coding: Coding::Identity,
        };
        let view = View::default();
        let query = ViewQuery::default();
        let builder = report::ReportBuilder {
            view: &view,
            query: &query,
            format: &NativeFormat,
        };
        let rendered = render(&view, Timestamp::UNIX_EPOCH, &NativeFormat);
        let answer = prepared(rendered, &builder, Arc::default());
        let short = weight(&key(ViewQuery::default()), &answer);
        let long = weight(
            &key(ViewQuery {
                tags,
                ..ViewQuery::default()
            }),
            &answer,
        );
        assert!(short < 1_000 && long > 70_000, "{short} and {long}");
    }

    #[test]
    fn the_asker_may_narrow_widen_and_lift_the_limit_of_a_format() {
        let limit = |max_tools, format: &dyn Format| {
            let query = effective(
                &ViewQuery {
                    max_tools,
                    ..ViewQuery::default()
                },
                format,
            );
            (query.max_tools, query.cap)
        };
        assert_eq!(limit(None, &OpenAiFormat), (None, Some(128)));
        assert_eq!(limit(Some(5), &OpenAiFormat), (Some(5), Some(128)));
        assert_eq!(limit(Some(500), &OpenAiFormat), (Some(500), Some(500)));
        assert_eq!(limit(Some(0), &OpenAiFormat), (None, None));
        assert_eq!(limit(None, &NativeFormat), (None, None));
        assert_eq!(limit(Some(0), &NativeFormat), (None, None));
    }
}
