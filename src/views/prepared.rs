//! A ready answer: what it is made of, and how it comes from a list.

use std::sync::Arc;

use bytes::Bytes;

use super::Coding;
use super::etag;
use super::pieces::{Pieces, Planned};
use super::render::Rendered;
use super::report::Told;
use crate::catalog::Snapshot;
use crate::model::Finding;

/// The body of a ready answer.
#[derive(Debug, Clone)]
pub enum Body {
    /// It is there.
    Whole(Bytes),
    /// It is made while it is taken: alone it is bigger than all that may be kept.
    Pieces(Arc<Pieces>),
}

/// A ready answer.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The body in its coding.
    pub body: Body,
    /// Of the list as it is, for entity tags of its codings.
    pub(crate) digest: u128,
    /// The coding of the body: the one asked for, or identity in the unlikely case that the encoder failed.
    pub coding: Coding,
    /// Strong entity tag with its quotes; differs between codings of the same view (RFC 9110 section 8.8.3.3).
    pub etag: http::HeaderValue,
    /// Tools in the body.
    pub tools: usize,
    /// What a limit or the format left out or changed, in order.
    pub findings: Arc<Vec<Finding>>,
    /// How many tools were left out by a limit or the format.
    pub left_out: usize,
    /// See [`Rendered::deferred`].
    pub deferred: usize,
    /// See [`Rendered::tokens`].
    pub tokens: usize,
    /// See [`Rendered::selection`]. Only there when the query asks for a choice of tools.
    pub selection: Option<Arc<str>>,
    /// What the asker should know of the choice, by short names.
    pub notes: Arc<[&'static str]>,
}

impl Body {
    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        match self {
            Self::Whole(bytes) => bytes.len() as u64,
            Self::Pieces(pieces) => pieces.length(),
        }
    }

    /// Its bytes, if they are there.
    pub fn whole(&self) -> Option<&Bytes> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Pieces(_) => None,
        }
    }

    /// How many bytes it takes in memory, roughly.
    pub fn held(&self) -> usize {
        match self {
            Self::Whole(bytes) => bytes.len(),
            Self::Pieces(pieces) => pieces.weight(),
        }
    }
}

/// An answer of a list that was made.
pub(super) fn prepared(rendered: Rendered, told: &Told<'_>) -> Prepared {
    Prepared {
        body: Body::Whole(rendered.body.into()),
        digest: rendered.digest,
        coding: Coding::Identity,
        etag: etag::of(rendered.digest, Coding::Identity),
        tools: rendered.tools,
        findings: Arc::new(rendered.findings),
        left_out: rendered.left_out,
        deferred: rendered.deferred,
        tokens: rendered.tokens,
        notes: told.notes(&rendered.lines),
        selection: rendered.selection.filter(|_| told.query.chooses()).map(Into::into),
    }
}

/// A list that is made while it is taken. Nothing was chosen, so it has no selection.
pub(super) fn planned_answer(planned: Planned, told: &Told<'_>) -> Prepared {
    let Planned { pieces, tag, tools, left_out, tokens, findings } = planned;
    Prepared {
        body: Body::Pieces(Arc::new(pieces)),
        digest: tag,
        coding: Coding::Identity,
        etag: etag::of(tag, Coding::Identity),
        tools,
        findings: Arc::new(findings),
        left_out,
        deferred: 0,
        tokens,
        notes: told.notes(&[]),
        selection: None,
    }
}

/// The same answer in another coding.
pub(super) fn encoded(plain: &Prepared, coding: Coding, snapshot: &Arc<Snapshot>) -> Prepared {
    let encoded = match &plain.body {
        Body::Whole(bytes) => coding.encode(bytes),
        Body::Pieces(pieces) => coding.encode_pieces(pieces.length(), pieces.take(snapshot).pieces()),
    };
    match encoded {
        Ok(body) => {
            Prepared { body: Body::Whole(body.into()), coding, etag: etag::of(plain.digest, coding), ..plain.clone() }
        }
        Err(error) => {
            tracing::warn!(%coding, %error, "a list could not be encoded; it is sent as it is");
            plain.clone()
        }
    }
}
