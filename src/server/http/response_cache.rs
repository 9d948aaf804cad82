//! A cache of whole answers: between two changes, equal queries for the list get equal answers.
//!
//! Parsing the query, finding the list and writing its headers took longer than sending a 304 or a
//! small list. So the latest answers are cached by the text of the query, for as long as the
//! snapshot that they were made from. Of an answer with a long body only the headers are cached,
//! which is all that a 304 needs. This module never makes an answer: [`crate::server::api::tools`]
//! does that, and also checks the query. Tool sets and findings are cached in the same way, each by
//! a text that says what they were made of.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use bytes::Bytes;
use callsheet_provide::conditional;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use crate::catalog::Snapshot;
use crate::runtime::{AnswerBudget, BudgetExceeded, ReservedBytes, SharedReservation};
use crate::server::http::held::with_reservation;
use crate::views::Coding;

/// Largest number of cached answers: enough for a few agents, formats and codings. They are
/// searched one by one.
const MAX_RESPONSES: usize = 16;
/// Largest size of all cached bodies in bytes; a longer body is not cached.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Longest query in bytes that is cached.
const MAX_QUERY_LENGTH: usize = 256;

/// The cached answers.
#[derive(Debug, Default)]
pub(in crate::server) struct ResponseCache(ArcSwap<CachedResponses>);

/// The answers of one snapshot, oldest first.
#[derive(Debug, Default)]
struct CachedResponses {
    /// Weak, so that the old snapshot is freed when a new one is published. While this reference
    /// exists, no other snapshot can have its address.
    snapshot: Weak<Snapshot>,
    answers: Vec<Kept>,
}

/// One cached answer.
#[derive(Debug, Clone)]
struct Kept {
    query: Box<str>,
    coding: Coding,
    ready: Arc<CachedResponse>,
    /// `false` if the body was too long to be cached: then only clients that have it are answered.
    with_body: bool,
}

/// An answer with its headers, for clients that have the content and for those that do not.
#[derive(Debug)]
pub(in crate::server) struct CachedResponse {
    /// The body of the 200.
    pub(in crate::server) body: Bytes,
    /// The entity tag of the body.
    pub(in crate::server) etag: HeaderValue,
    /// The headers of the 200.
    pub(in crate::server) ok_headers: HeaderMap,
    /// The headers of the 304.
    pub(in crate::server) not_modified_headers: HeaderMap,
    /// Has the bytes of the body while clients hold them.
    pub(in crate::server) reservation: Arc<SharedReservation>,
}

impl CachedResponse {
    /// An answer without an entity tag, which no client has already.
    pub(in crate::server) fn untagged(body: impl Into<Bytes>, ok_headers: HeaderMap) -> Arc<Self> {
        Arc::new(Self {
            body: body.into(),
            etag: HeaderValue::from_static(""),
            ok_headers,
            not_modified_headers: HeaderMap::new(),
            reservation: Arc::default(),
        })
    }

    /// 200 with the body, or 304 without it if the client already has it (RFC 9110 section 15.4.5).
    pub(in crate::server) fn answer(&self, headers: &HeaderMap) -> Response<Full<Bytes>> {
        if conditional::is_known(headers, &self.etag) {
            self.not_modified()
        } else {
            self.found(self.body.clone())
        }
    }

    /// The same with the body reserved for a client, once for all clients that hold it.
    ///
    /// # Errors
    /// [`BudgetExceeded`] if there is no room for the body.
    pub(in crate::server) fn answer_held(
        &self,
        headers: &HeaderMap,
        budget: &AnswerBudget,
    ) -> Result<Response<Full<Bytes>>, BudgetExceeded> {
        if conditional::is_known(headers, &self.etag) {
            return Ok(self.not_modified());
        }
        Ok(self.answer_reserved(headers, self.reservation.hold(self.body.len(), budget)?))
    }

    /// The same with a body that is reserved for the client already.
    pub(in crate::server) fn answer_reserved(
        &self,
        headers: &HeaderMap,
        reserved: Arc<ReservedBytes>,
    ) -> Response<Full<Bytes>> {
        if conditional::is_known(headers, &self.etag) {
            return self.not_modified();
        }
        self.found(with_reservation(self.body.clone(), reserved))
    }

    fn found(&self, body: Bytes) -> Response<Full<Bytes>> {
        let mut answer = Response::new(Full::new(body));
        *answer.headers_mut() = self.ok_headers.clone();
        answer
    }

    fn not_modified(&self) -> Response<Full<Bytes>> {
        let mut answer = Response::new(Full::default());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        *answer.headers_mut() = self.not_modified_headers.clone();
        answer
    }

    /// A copy with all that a 304 needs.
    fn without_body(&self) -> Self {
        Self {
            body: Bytes::new(),
            etag: self.etag.clone(),
            ok_headers: self.ok_headers.clone(),
            not_modified_headers: self.not_modified_headers.clone(),
            reservation: Arc::default(),
        }
    }
}

impl ResponseCache {
    /// The answer that is cached with its body for exactly this text, made from exactly this
    /// snapshot.
    pub(in crate::server) fn find(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        coding: Coding,
    ) -> Option<Arc<CachedResponse>> {
        let cached = self.0.load();
        let kept = cached.find(snapshot, query, coding)?;
        kept.with_body.then(|| Arc::clone(&kept.ready))
    }

    /// The answer that is cached with its body for this text, or else what `write` gives, which is
    /// cached with these headers and without an entity tag.
    ///
    /// # Errors
    /// Those of `write`.
    pub(in crate::server) fn find_or_write<E>(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        headers: HeaderMap,
        write: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<CachedResponse>, E> {
        if let Some(ready) = self.find(snapshot, query, Coding::Identity) {
            return Ok(ready);
        }
        let ready = CachedResponse::untagged(write()?, headers);
        self.insert(snapshot, query, Coding::Identity, &ready);
        Ok(ready)
    }

    /// The cached answer for exactly this text of a query, made from exactly this snapshot, with
    /// its body reserved for the client. Without a budget the client gets no body, as for `HEAD`.
    pub(in crate::server) fn answer(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        coding: Coding,
        headers: &HeaderMap,
        budget: Option<&AnswerBudget>,
    ) -> Option<Result<Response<Full<Bytes>>, BudgetExceeded>> {
        let cached = self.0.load();
        let kept = cached.find(snapshot, query, coding)?;
        let suffices = kept.with_body || conditional::is_known(headers, &kept.ready.etag);
        suffices.then(|| match budget {
            Some(budget) => kept.ready.answer_held(headers, budget),
            None => Ok(kept.ready.answer(headers)),
        })
    }

    /// Caches an answer. Drops those of other snapshots, and the oldest if there are too many.
    pub(in crate::server) fn insert(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        coding: Coding,
        ready: &Arc<CachedResponse>,
    ) {
        // If two requests do this at once, one answer is lost; it is cached the next time.
        let before = self.0.load();
        let mut answers = before.of(snapshot).map_or_else(Vec::new, <[_]>::to_vec);
        if query.len() > MAX_QUERY_LENGTH || answers.iter().any(|kept| kept.is_for(query, coding)) {
            return;
        }
        let with_body = ready.body.len() <= MAX_BYTES;
        let ready = if with_body {
            Arc::clone(ready)
        } else {
            Arc::new(ready.without_body())
        };
        let mut bytes: usize = answers.iter().map(|kept| kept.ready.body.len()).sum();
        while answers.len() >= MAX_RESPONSES || bytes + ready.body.len() > MAX_BYTES {
            bytes -= answers.remove(0).ready.body.len();
        }
        answers.push(Kept {
            query: query.into(),
            coding,
            ready,
            with_body,
        });
        self.0.store(Arc::new(CachedResponses {
            snapshot: Arc::downgrade(snapshot),
            answers,
        }));
    }
}

impl Kept {
    fn is_for(&self, query: &str, coding: Coding) -> bool {
        self.coding == coding && *self.query == *query
    }
}

impl CachedResponses {
    /// The answers, if they are of this snapshot.
    fn of(&self, snapshot: &Arc<Snapshot>) -> Option<&[Kept]> {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(snapshot)).then_some(&self.answers)
    }

    fn find(&self, snapshot: &Arc<Snapshot>, query: &str, coding: Coding) -> Option<&Kept> {
        let mut answers = self.of(snapshot)?.iter();
        answers.find(|kept| kept.is_for(query, coding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::runtime::ByteBudget;
    use http::header::IF_NONE_MATCH;
    use hyper::body::Body as _;
    use imbl::OrdMap;

    fn snapshot() -> Arc<Snapshot> {
        Arc::new(Snapshot {
            catalog: Catalog::default(),
            former_names: crate::catalog::FormerNames::default(),
            generated_at: jiff::Timestamp::UNIX_EPOCH,
            health: OrdMap::new(),
            findings: Arc::default(),
            sequence: 1,
            transitions: crate::catalog::StateTransitions::default(),
            program_ends: crate::catalog::ProgramEnds::default(),
            isolated: None,
            configuration: None,
        })
    }

    fn ready(body: impl Into<Bytes>) -> Arc<CachedResponse> {
        let found = HeaderMap::new();
        let known = HeaderMap::new();
        Arc::new(CachedResponse {
            body: body.into(),
            etag: HeaderValue::from_static("\"a\""),
            ok_headers: found,
            not_modified_headers: known,
            reservation: Arc::default(),
        })
    }

    fn budget() -> AnswerBudget {
        let whole = ByteBudget::new(usize::MAX);
        AnswerBudget::new(whole.clone(), whole)
    }

    /// The status and the length of the body that a client with these headers gets.
    fn answered(
        repeats: &ResponseCache,
        of: &Arc<Snapshot>,
        query: &str,
        coding: Coding,
        headers: &HeaderMap,
    ) -> Option<(u16, u64)> {
        let answer = repeats
            .answer(of, query, coding, headers, Some(&budget()))?
            .unwrap();
        Some((
            answer.status().as_u16(),
            answer.body().size_hint().exact().unwrap(),
        ))
    }

    fn found(repeats: &ResponseCache, of: &Arc<Snapshot>, query: &str) -> bool {
        answered(repeats, of, query, Coding::Identity, &HeaderMap::new()).is_some()
    }

    #[test]
    fn an_answer_is_found_by_its_words_coding_and_snapshot() {
        let repeats = ResponseCache::default();
        let now = snapshot();
        let none = HeaderMap::new();
        repeats.insert(&now, "a=1", Coding::Gzip, &ready("x"));
        assert_eq!(
            answered(&repeats, &now, "a=1", Coding::Gzip, &none),
            Some((200, 1))
        );
        assert_eq!(
            answered(&repeats, &now, "a=1", Coding::Identity, &none),
            None
        );
        assert_eq!(answered(&repeats, &now, "a=2", Coding::Gzip, &none), None);
        assert_eq!(
            answered(&repeats, &snapshot(), "a=1", Coding::Gzip, &none),
            None
        );
    }

    #[test]
    fn another_snapshot_takes_the_place_of_the_first() {
        let repeats = ResponseCache::default();
        let first = snapshot();
        let second = snapshot();
        repeats.insert(&first, "", Coding::Identity, &ready("x"));
        repeats.insert(&second, "", Coding::Identity, &ready("yy"));
        assert!(!found(&repeats, &first, ""));
        assert_eq!(
            answered(&repeats, &second, "", Coding::Identity, &HeaderMap::new()),
            Some((200, 2))
        );
    }

    #[test]
    fn of_a_long_answer_the_304_is_kept() {
        let repeats = ResponseCache::default();
        let now = snapshot();
        let long = ready(vec![b'x'; MAX_BYTES + 1]);
        for _ in 0..=MAX_RESPONSES {
            repeats.insert(&now, "long", Coding::Identity, &long);
        }
        let headers = |tag| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(tag))]);
        let status = |tag| answered(&repeats, &now, "long", Coding::Identity, &headers(tag));
        assert_eq!(status("\"a\""), Some((304, 0)));
        assert_eq!(status("\"b\""), None);
        let whole = long.answer(&headers("\"a\""));
        let again = repeats.answer(
            &now,
            "long",
            Coding::Identity,
            &headers("\"a\""),
            Some(&budget()),
        );
        let again = again.unwrap().unwrap();
        assert_eq!(whole.status(), again.status());
        assert_eq!(whole.headers(), again.headers());
        assert!(!found(&repeats, &now, "long"), "its body has to be made");
        assert_eq!(
            repeats.0.load().answers.len(),
            1,
            "it takes one place, however often it is made"
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let repeats = ResponseCache::default();
        let now = snapshot();
        for at in 0..=MAX_RESPONSES {
            repeats.insert(&now, &at.to_string(), Coding::Identity, &ready("x"));
        }
        assert!(!found(&repeats, &now, "0"));
        assert!(found(&repeats, &now, &MAX_RESPONSES.to_string()));
        repeats.insert(
            &now,
            &"q".repeat(MAX_QUERY_LENGTH + 1),
            Coding::Identity,
            &ready("x"),
        );
        assert!(!found(&repeats, &now, &"q".repeat(MAX_QUERY_LENGTH + 1)));
        for half in ["first", "second", "third"] {
            repeats.insert(
                &now,
                half,
                Coding::Identity,
                &ready(vec![b'x'; MAX_BYTES / 2]),
            );
        }
        let kept = ["first", "second", "third"].map(|half| found(&repeats, &now, half));
        assert_eq!(kept, [false, true, true], "all bodies together are bounded");
    }
}
