//! Answers that are asked for again: between two changes, the same list goes to everyone who asks in the same words.
//!
//! Reading the query, looking the list up and writing its headers took longer than sending a 304 or a small list. So the latest answers
//! are kept as they are sent, by the query as it was written, and last exactly as long as the snapshot that they were made from. Of an
//! answer with a long body only the headers are kept: they are all that a 304 needs. Nothing is decided here: what is not kept is made
//! by [`crate::server::api::tools`], which also checks the query.

use std::sync::{Arc, Weak};

use arc_swap::ArcSwap;
use bytes::Bytes;
use callsheet_provide::conditional;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::Full;

use crate::catalog::Snapshot;
use crate::views::Coding;

/// Answers kept at most: those of a few agents, formats and codings. They are looked through one by one.
const KEPT: usize = 16;
/// Bytes of all their bodies at most; a longer body is not kept.
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// A longer query is not kept.
const LONGEST_QUERY: usize = 256;

/// The kept answers.
#[derive(Debug, Default)]
pub(in crate::server) struct Repeats(ArcSwap<Given>);

/// The answers of one snapshot, oldest first.
#[derive(Debug, Default)]
struct Given {
    /// Weak: it must not outlive its successor. While this stands, no other snapshot can have its address.
    snapshot: Weak<Snapshot>,
    answers: Vec<Kept>,
}

/// One of them.
#[derive(Debug, Clone)]
struct Kept {
    query: Box<str>,
    coding: Coding,
    ready: Arc<Ready>,
    /// `false` where the body was too long to be kept: then this answers only clients that have it.
    with_body: bool,
}

/// An answer with its headers, for those who have it and for those who do not.
#[derive(Debug)]
pub(in crate::server) struct Ready {
    /// The body of the 200.
    pub(in crate::server) body: Bytes,
    /// What identifies it.
    pub(in crate::server) etag: HeaderValue,
    /// The headers of the 200.
    pub(in crate::server) found: HeaderMap,
    /// The headers of the 304.
    pub(in crate::server) known: HeaderMap,
}

impl Ready {
    /// 200 with the body, or 304 without when the client has it already (RFC 9110 section 15.4.5).
    pub(in crate::server) fn answer(&self, asked: &HeaderMap) -> Response<Full<Bytes>> {
        let (status, headers, body) = if conditional::is_known(asked, &self.etag) {
            (StatusCode::NOT_MODIFIED, &self.known, Bytes::new())
        } else {
            (StatusCode::OK, &self.found, self.body.clone())
        };
        let mut answer = Response::new(Full::new(body));
        *answer.status_mut() = status;
        *answer.headers_mut() = headers.clone();
        answer
    }

    /// What a 304 needs of it.
    fn without_body(&self) -> Self {
        let Self { body: _, etag, found, known } = self;
        Self { body: Bytes::new(), etag: etag.clone(), found: found.clone(), known: known.clone() }
    }
}

impl Repeats {
    /// The answer for this query, as it was written, from this very snapshot, if it was given before.
    pub(in crate::server) fn answer(
        &self,
        snapshot: &Arc<Snapshot>,
        query: &str,
        coding: Coding,
        asked: &HeaderMap,
    ) -> Option<Response<Full<Bytes>>> {
        let given = self.0.load();
        let kept = given.of(snapshot)?.iter().find(|kept| kept.is_for(query, coding))?;
        let suffices = kept.with_body || conditional::is_known(asked, &kept.ready.etag);
        suffices.then(|| kept.ready.answer(asked))
    }

    /// Keeps an answer in place of those of other snapshots, and of the oldest when there are too many.
    pub(in crate::server) fn keep(&self, snapshot: &Arc<Snapshot>, query: &str, coding: Coding, ready: &Arc<Ready>) {
        // Two at once cost one of them, which is kept the next time.
        let before = self.0.load();
        let mut answers = before.of(snapshot).map_or_else(Vec::new, <[_]>::to_vec);
        if query.len() > LONGEST_QUERY || answers.iter().any(|kept| kept.is_for(query, coding)) {
            return;
        }
        let with_body = ready.body.len() <= MOST_BYTES;
        let ready = if with_body { Arc::clone(ready) } else { Arc::new(ready.without_body()) };
        let mut bytes: usize = answers.iter().map(|kept| kept.ready.body.len()).sum();
        while answers.len() >= KEPT || bytes + ready.body.len() > MOST_BYTES {
            bytes -= answers.remove(0).ready.body.len();
        }
        answers.push(Kept { query: query.into(), coding, ready, with_body });
        self.0.store(Arc::new(Given { snapshot: Arc::downgrade(snapshot), answers }));
    }
}

impl Kept {
    fn is_for(&self, query: &str, coding: Coding) -> bool {
        self.coding == coding && *self.query == *query
    }
}

impl Given {
    /// The answers, if they are of this snapshot.
    fn of(&self, snapshot: &Arc<Snapshot>) -> Option<&[Kept]> {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(snapshot)).then_some(&self.answers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use http::header::IF_NONE_MATCH;
    use hyper::body::Body as _;
    use imbl::OrdMap;

    fn snapshot() -> Arc<Snapshot> {
        Arc::new(Snapshot {
            catalog: Catalog::default(),
            generated_at: jiff::Timestamp::UNIX_EPOCH,
            health: OrdMap::new(),
            findings: Arc::default(),
            sequence: 1,
            turns: crate::catalog::Turns::default(),
            isolated: None,
            configuration: None,
        })
    }

    fn ready(body: impl Into<Bytes>) -> Arc<Ready> {
        let (found, known) = (HeaderMap::new(), HeaderMap::new());
        Arc::new(Ready { body: body.into(), etag: HeaderValue::from_static("\"a\""), found, known })
    }

    /// The status and the length of the body that a client with these headers is answered.
    fn answered(
        repeats: &Repeats,
        of: &Arc<Snapshot>,
        query: &str,
        coding: Coding,
        asked: &HeaderMap,
    ) -> Option<(u16, u64)> {
        let answer = repeats.answer(of, query, coding, asked)?;
        Some((answer.status().as_u16(), answer.body().size_hint().exact().unwrap()))
    }

    fn found(repeats: &Repeats, of: &Arc<Snapshot>, query: &str) -> bool {
        answered(repeats, of, query, Coding::Identity, &HeaderMap::new()).is_some()
    }

    #[test]
    fn an_answer_is_found_by_its_words_coding_and_snapshot() {
        let (repeats, now, none) = (Repeats::default(), snapshot(), HeaderMap::new());
        repeats.keep(&now, "a=1", Coding::Gzip, &ready("x"));
        assert_eq!(answered(&repeats, &now, "a=1", Coding::Gzip, &none), Some((200, 1)));
        assert_eq!(answered(&repeats, &now, "a=1", Coding::Identity, &none), None);
        assert_eq!(answered(&repeats, &now, "a=2", Coding::Gzip, &none), None);
        assert_eq!(answered(&repeats, &snapshot(), "a=1", Coding::Gzip, &none), None);
    }

    #[test]
    fn another_snapshot_takes_the_place_of_the_first() {
        let (repeats, first, second) = (Repeats::default(), snapshot(), snapshot());
        repeats.keep(&first, "", Coding::Identity, &ready("x"));
        repeats.keep(&second, "", Coding::Identity, &ready("yy"));
        assert!(!found(&repeats, &first, ""));
        assert_eq!(answered(&repeats, &second, "", Coding::Identity, &HeaderMap::new()), Some((200, 2)));
    }

    #[test]
    fn of_a_long_answer_the_304_is_kept() {
        let (repeats, now) = (Repeats::default(), snapshot());
        let long = ready(vec![b'x'; MOST_BYTES + 1]);
        for _ in 0..=KEPT {
            repeats.keep(&now, "long", Coding::Identity, &long);
        }
        let asked = |tag| HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(tag))]);
        let status = |tag| answered(&repeats, &now, "long", Coding::Identity, &asked(tag));
        assert_eq!((status("\"a\""), status("\"b\"")), (Some((304, 0)), None));
        let whole = long.answer(&asked("\"a\""));
        let again = repeats.answer(&now, "long", Coding::Identity, &asked("\"a\"")).unwrap();
        assert_eq!((whole.status(), whole.headers()), (again.status(), again.headers()));
        assert!(!found(&repeats, &now, "long"), "its body has to be made");
        assert_eq!(repeats.0.load().answers.len(), 1, "it takes one place, however often it is made");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (repeats, now) = (Repeats::default(), snapshot());
        for at in 0..=KEPT {
            repeats.keep(&now, &at.to_string(), Coding::Identity, &ready("x"));
        }
        assert!(!found(&repeats, &now, "0"));
        assert!(found(&repeats, &now, &KEPT.to_string()));
        repeats.keep(&now, &"q".repeat(LONGEST_QUERY + 1), Coding::Identity, &ready("x"));
        assert!(!found(&repeats, &now, &"q".repeat(LONGEST_QUERY + 1)));
        for half in ["first", "second", "third"] {
            repeats.keep(&now, half, Coding::Identity, &ready(vec![b'x'; MOST_BYTES / 2]));
        }
        let kept = ["first", "second", "third"].map(|half| found(&repeats, &now, half));
        assert_eq!(kept, [false, true, true], "all bodies together are bounded");
    }
}
