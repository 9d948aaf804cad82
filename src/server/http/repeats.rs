//! Answers that are asked for again: between two changes, the same list goes to everyone who asks in the same words.
//!
//! Reading the query, looking the list up and writing its headers took longer than sending a 304 or a small list. So the latest answers
//! are kept as they are sent, by the query as it was written, and last exactly as long as the snapshot that they were made from. Nothing
//! is decided here: what is not kept is made by [`crate::server::api::tools`], which also checks the query.

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
/// Bytes of all their bodies at most; a longer body is not kept. Each by itself may be long: finding it again takes longer than saying 304.
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
    answers: Vec<(Box<str>, Coding, Arc<Ready>)>,
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
}

impl Repeats {
    /// The answer that was given for this query, as it was written, from this very snapshot.
    pub(in crate::server) fn find(&self, snapshot: &Arc<Snapshot>, query: &str, coding: Coding) -> Option<Arc<Ready>> {
        let given = self.0.load();
        if !given.is_of(snapshot) {
            return None;
        }
        given.answers.iter().find(|(q, c, _)| *c == coding && **q == *query).map(|(_, _, ready)| Arc::clone(ready))
    }

    /// Keeps an answer in place of those of other snapshots, and of the oldest when there are too many.
    pub(in crate::server) fn keep(&self, snapshot: &Arc<Snapshot>, query: &str, coding: Coding, ready: &Arc<Ready>) {
        if query.len() > LONGEST_QUERY || ready.body.len() > MOST_BYTES {
            return;
        }
        // Two at once cost one of them, which is kept the next time.
        let before = self.0.load();
        let mut answers = if before.is_of(snapshot) { before.answers.clone() } else { Vec::new() };
        let mut bytes: usize = answers.iter().map(|(_, _, kept)| kept.body.len()).sum();
        while answers.len() >= KEPT || bytes + ready.body.len() > MOST_BYTES {
            bytes -= answers.remove(0).2.body.len();
        }
        answers.push((query.into(), coding, Arc::clone(ready)));
        self.0.store(Arc::new(Given { snapshot: Arc::downgrade(snapshot), answers }));
    }
}

impl Given {
    fn is_of(&self, snapshot: &Arc<Snapshot>) -> bool {
        std::ptr::eq(self.snapshot.as_ptr(), Arc::as_ptr(snapshot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
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

    #[test]
    fn an_answer_is_found_by_its_words_coding_and_snapshot() {
        let (repeats, now) = (Repeats::default(), snapshot());
        repeats.keep(&now, "a=1", Coding::Gzip, &ready("x"));
        assert!(repeats.find(&now, "a=1", Coding::Gzip).is_some());
        assert!(repeats.find(&now, "a=1", Coding::Identity).is_none());
        assert!(repeats.find(&now, "a=2", Coding::Gzip).is_none());
        assert!(repeats.find(&snapshot(), "a=1", Coding::Gzip).is_none());
    }

    #[test]
    fn another_snapshot_takes_the_place_of_the_first() {
        let (repeats, first, second) = (Repeats::default(), snapshot(), snapshot());
        repeats.keep(&first, "", Coding::Identity, &ready("x"));
        repeats.keep(&second, "", Coding::Identity, &ready("y"));
        assert!(repeats.find(&first, "", Coding::Identity).is_none());
        assert_eq!(repeats.find(&second, "", Coding::Identity).unwrap().body, "y");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (repeats, now) = (Repeats::default(), snapshot());
        for at in 0..=KEPT {
            repeats.keep(&now, &at.to_string(), Coding::Identity, &ready("x"));
        }
        assert!(repeats.find(&now, "0", Coding::Identity).is_none());
        assert!(repeats.find(&now, &KEPT.to_string(), Coding::Identity).is_some());
        repeats.keep(&now, "long", Coding::Identity, &ready(vec![b'x'; MOST_BYTES + 1]));
        repeats.keep(&now, &"q".repeat(LONGEST_QUERY + 1), Coding::Identity, &ready("x"));
        assert!(repeats.find(&now, "long", Coding::Identity).is_none());
        for half in ["first", "second", "third"] {
            repeats.keep(&now, half, Coding::Identity, &ready(vec![b'x'; MOST_BYTES / 2]));
        }
        let kept = ["first", "second", "third"].map(|half| repeats.find(&now, half, Coding::Identity).is_some());
        assert_eq!(kept, [false, true, true], "all bodies together are bounded");
        assert!(repeats.find(&now, &"q".repeat(LONGEST_QUERY + 1), Coding::Identity).is_none());
    }
}
