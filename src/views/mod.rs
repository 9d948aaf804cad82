//! Prepared views: from a key (revision, query, format, coding) to a body with its `ETag`.
//!
//! A body is rendered once for all requests that wait for it, outside the async threads, and the
//! cache is bounded in bytes. Tools of scenarios that did not change are copied from the latest
//! list, so a change costs the rendering of one scenario and one copy. The same catalog gives the
//! same bytes in every process. Never done here: deciding what is in a view. A picture, an example
//! and the errors are in `docs/design/views.md`.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use moka::future::Cache;
use moka::policy::EvictionPolicy;

use crate::catalog::{Estimator, Revision, Snapshot, View, ViewQuery};
use crate::formats::Format;
use crate::metrics::ViewCounts;
use crate::model::{ScenarioName, ViewTool};
use crate::runtime::Tasks;

pub mod categories;
pub mod coding;
pub mod etag;
mod prepared;
pub mod render;
mod report;

pub(crate) use report::{FindingJson, ReportJson, finding};
mod latest_lists;
mod tagged;

pub use coding::Coding;
pub use prepared::Prepared;
pub use render::{Rendered, render};

use latest_lists::LatestLists;
use prepared::{encoded, prepared};
use tagged::TaggedRevisions;

/// Roughly how many bytes of memory a finding needs, with its texts.
const FINDING_BYTES: usize = 400;
/// Roughly how many bytes a text of a query needs besides its own.
const TEXT_BYTES: usize = 64;
/// Roughly how many bytes an entry needs besides its body.
const ENTRY_BYTES: usize = 512;

/// Estimates tools for the selection, as a format writes them.
pub(crate) struct FormatEstimator<'a>(pub(crate) &'a dyn Format);

impl Estimator for FormatEstimator<'_> {
    fn tokens(&self, tool: &ViewTool) -> Option<usize> {
        self.0.max_bytes(tool).map(|bytes| self.0.limits().tokens(bytes))
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

/// The result of a lookup.
struct CacheLookup {
    prepared: Arc<Prepared>,
    /// Whether the answer was in the cache.
    kept: bool,
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
/// pinned tools; the cap of the format may not. A client that sets a higher number raises the cap
/// to it. `Some(0)` (written `max_tools=0`) lifts both.
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
        Self { own_id: Some(id.into()), ..self }
    }

    /// The prepared answer for a query on a snapshot, made once for many concurrent requests.
    /// [`effective`] says how a format changes the query. Cancel-safe: if the request that makes
    /// the answer is dropped, another one makes it.
    pub async fn prepare(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &ViewQuery,
        format: &'static dyn Format,
        coding: Coding,
    ) -> Arc<Prepared> {
        self.prepare_as(snapshot, query, format, coding, false).await
    }

    /// The same list within a report: `{"tools": ..., "report": ...}`, where `tools` is the list in
    /// its format. For each tool in the list, the report gives the reason, its rank, its score and
    /// its tokens; for every other published tool, why it is left out.
    pub async fn prepare_report(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &ViewQuery,
        format: &'static dyn Format,
        coding: Coding,
    ) -> Arc<Prepared> {
        self.prepare_as(snapshot, query, format, coding, true).await
    }

    async fn prepare_as(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &ViewQuery,
        format: &'static dyn Format,
        coding: Coding,
        report: bool,
    ) -> Arc<Prepared> {
        let stamp = Stamp { revision: snapshot.catalog.revision(), generated_at: snapshot.generated_at };
        if self.forget_older(snapshot.sequence, stamp) {
            // Otherwise the cache would hold the memory of dropped entries until some requests
            // later.
            self.bodies.run_pending_tasks().await;
        }
        let query = effective(query, format);
        let scoped = snapshot.catalog.is_scoped(&query).then(|| snapshot.catalog.revision_for(&query));
        let identity = ViewKey { stamp, scoped, query, format: format.id(), report, coding: Coding::Identity };
        let found = if coding == Coding::Identity {
            self.identity(snapshot, format, identity).await
        } else {
            let key = ViewKey { coding, ..identity.clone() };
            let encode = async {
                let plain = self.identity(snapshot, format, identity).await.prepared;
                self.tasks.off_thread(move || encoded(&plain, coding)).await
            };
            self.once(key, || encode.boxed()).await
        };
        self.counts.looked_up(found.kept);
        found.prepared
    }

    /// The answer that is cached or being made, or else the one that `make` gives.
    async fn once<'a>(&self, key: ViewKey, make: impl FnOnce() -> BoxFuture<'a, Prepared>) -> CacheLookup {
        let make = async {
            let prepared = Arc::new(make().await);
            // An error is shared with the waiting requests, like a value, and is not kept.
            if u64::from(weight(&key, &prepared)) > self.max_bytes { Err(prepared) } else { Ok(prepared) }
        };
        // Boxed, since the cache's own future is large. A separate lookup before would let two
        // requests make the same body twice.
        match Box::pin(self.bodies.entry_by_ref(&key).or_try_insert_with(make)).await {
            Ok(entry) => CacheLookup { kept: !entry.is_fresh(), prepared: entry.into_value() },
            Err(too_large) => CacheLookup { kept: false, prepared: Arc::clone(&too_large) },
        }
    }

    /// The body without coding, from which the codings are made.
    async fn identity(&self, snapshot: &Arc<Snapshot>, format: &'static dyn Format, key: ViewKey) -> CacheLookup {
        let (views, snapshot, query, report) = (self.clone(), Arc::clone(snapshot), key.query.clone(), key.report);
        let render = move || {
            let view = View::select_for(&snapshot.catalog, &query, &FormatEstimator(format));
            let origin = render::ListOrigin { generated_at: snapshot.generated_at, own_id: views.own_id.as_deref() };
            let builder = report::ReportBuilder { view: &view, query: &query, format };
            let known = views.latest.get(format.id());
            let (mut rendered, places) = render::render_again(&view, origin, format, known.as_deref());
            if report {
                rendered.body = builder.report(&snapshot.catalog, &rendered);
                return prepared(rendered, &builder);
            }
            let prepared = prepared(rendered, &builder);
            if prepared.body.len() as u64 <= views.max_bytes {
                views.latest.update(format.id(), prepared.body.clone(), prepared.tools, places);
            }
            prepared
        };
        let tasks = self.tasks.clone();
        let revision = key.scoped.unwrap_or(key.stamp.revision);
        let found = self.once(key, || async move { tasks.off_thread(render).await }.boxed()).await;
        if !found.kept {
            self.tagged.note(&found.prepared.etag, revision);
        }
        found
    }

    /// The revision of the list that was answered with this entity tag, if it is remembered.
    pub fn revision_of(&self, tag: &str) -> Option<Revision> {
        self.tagged.find(tag)
    }

    /// Drops the bodies of older contents. Returns whether this is the first request for the
    /// content.
    fn forget_older(&self, sequence: u64, stamp: Stamp) -> bool {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
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

/// The weight of an answer with its query: a query that names ten thousand tags is kept even if its
/// list is empty.
fn weight(key: &ViewKey, prepared: &Prepared) -> u32 {
    let bytes = query_bytes(&key.query) + prepared.body.len() + prepared.findings.len() * FINDING_BYTES + ENTRY_BYTES;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

fn query_bytes(query: &ViewQuery) -> usize {
    let scope = [&query.profile, &query.chat].into_iter().flatten();
    let texts = scope.chain(&query.categories).chain(&query.tags).chain(&query.q).map(String::as_str);
    let texts = texts.chain(query.scenarios.iter().map(ScenarioName::as_str));
    let carried = query.sticky.as_ref().map_or(0, |carried| size_of_val(carried.marks()));
    carried + texts.map(|text| text.len() + TEXT_BYTES).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::{native::NativeFormat, openai::OpenAiFormat};

    #[test]
    fn lists_for_llms_have_neither_disabled_nor_internal_tools() {
        let wanted = ViewQuery { include_disabled: true, include_internal: true, ..ViewQuery::default() };
        let query = effective(&wanted, &OpenAiFormat);
        assert!(!query.include_disabled && !query.include_internal);
        assert_eq!(effective(&wanted, &NativeFormat), wanted);
    }

    #[test]
    fn a_long_question_weighs_though_its_answer_is_short() {
        let tags = (0..1_000).map(|number| format!("tag-{number:04}")).collect();
        let key = |query| ViewKey {
            stamp: Stamp::default(),
            scoped: None,
            query,
            format: "native",
            report: false,
            coding: Coding::Identity,
        };
        let (view, query) = (View::default(), ViewQuery::default());
        let builder = report::ReportBuilder { view: &view, query: &query, format: &NativeFormat };
        let answer = prepared(render(&view, Timestamp::UNIX_EPOCH, &NativeFormat), &builder);
        let short = weight(&key(ViewQuery::default()), &answer);
        let long = weight(&key(ViewQuery { tags, ..ViewQuery::default() }), &answer);
        assert!(short < 1_000 && long > 70_000, "{short} and {long}");
    }

    #[test]
    fn the_asker_may_narrow_widen_and_lift_the_limit_of_a_format() {
        let limit = |max_tools, format: &dyn Format| {
            let query = effective(&ViewQuery { max_tools, ..ViewQuery::default() }, format);
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
