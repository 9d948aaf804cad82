//! The lists of the run before, answered while this one still reads what is stored.
//!
//! Such an answer has the bytes and the headers with which the list was answered then. It is given only to who asks in the same words, and
//! only until the real catalog is there; whether it still holds was judged when the file was opened (`state::lists`). Everything else waits.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use callsheet_provide::conditional;
use futures_util::Stream;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};
use serde::{Deserialize, Serialize};

use super::repeats::Ready;
use super::{coding, sent};
use crate::catalog::Snapshot;
use crate::runtime::Tasks;
use crate::state::lists::{List, Lists, Stamp};
use crate::views::{self, Coding};

/// Lists of the run before.
#[derive(Debug)]
pub struct Kept {
    lists: Arc<Lists>,
    answers: Vec<(usize, Label)>,
}

/// What a list is the answer to, and its headers.
#[derive(Debug, Serialize, Deserialize)]
struct Label {
    query: String,
    coding: String,
    etag: String,
    found: Vec<(String, String)>,
    known: Vec<(String, String)>,
}

impl Kept {
    /// The answers of an opened file. What cannot be read as one is left out.
    pub fn of(lists: Lists) -> Self {
        let answers = lists.labels().enumerate();
        let answers = answers.filter_map(|(at, label)| Some((at, serde_json::from_str(label).ok()?))).collect();
        Self { lists: Arc::new(lists), answers }
    }

    /// What they are made of.
    pub(super) fn stamp(&self) -> &Stamp {
        self.lists.stamp()
    }

    /// What they are answers to, oldest first.
    pub(super) fn asked(&self) -> impl Iterator<Item = (String, Coding)> {
        let known = |name: &str| Coding::ALL.into_iter().find(|coding| coding.as_str() == name);
        self.answers.iter().filter_map(move |(_, label)| Some((label.query.clone(), known(&label.coding)?)))
    }

    /// The answer to a GET of the list with this query.
    pub(super) fn answer(&self, query: Option<&str>, asked: &HeaderMap, tasks: &Tasks) -> Option<Response<Body>> {
        let (query, coding) = (query.unwrap_or_default(), coding::choose(asked));
        let (at, label) =
            self.answers.iter().find(|(_, label)| label.query == query && label.coding == coding.as_str())?;
        let etag = HeaderValue::try_from(&label.etag).ok()?;
        let is_known = conditional::is_known(asked, &etag);
        let (status, headers) =
            if is_known { (StatusCode::NOT_MODIFIED, &label.known) } else { (StatusCode::OK, &label.found) };
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = status;
        for (name, value) in headers {
            answer.headers_mut().append(HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?);
        }
        if !is_known {
            answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(self.lists.bytes(*at)));
            *answer.body_mut() = Body::from_stream(blocks(Arc::clone(&self.lists), *at, tasks));
        }
        Some(answer)
    }
}

/// The bytes of a list as they are read. Where they are not any more what they were when the file was opened, the answer breaks off.
fn blocks(lists: Arc<Lists>, at: usize, tasks: &Tasks) -> impl Stream<Item = std::io::Result<Bytes>> + Send + 'static {
    sent::in_order(move |block| lists.block(at, block), tasks.clone())
}

/// An answer as it is kept, made from that snapshot; nothing when a header of it is no text.
pub(super) fn list(query: &str, coding: Coding, ready: &Ready, from: &Arc<Snapshot>) -> Option<List> {
    let headers = |map: &HeaderMap| {
        let texts = map.iter().map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        texts.collect::<Option<Vec<_>>>()
    };
    let label = Label {
        query: query.to_owned(),
        coding: coding.as_str().to_owned(),
        etag: ready.etag.to_str().ok()?.to_owned(),
        found: headers(&ready.found)?,
        known: headers(&ready.known)?,
    };
    let label = serde_json::to_string(&label).ok()?;
    Some(match &ready.body {
        views::Body::Whole(bytes) => List::of(label, bytes.clone()),
        views::Body::Pieces(pieces) => List::in_pieces(label, pieces.length(), pieces.take(from).pieces()),
    })
}
