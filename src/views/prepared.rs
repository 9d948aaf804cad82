//! A prepared answer, and how it is made from a rendered list.

use std::sync::Arc;

use bytes::Bytes;

use super::Coding;
use super::etag;
use super::render::Rendered;
use super::report::ReportBuilder;
use crate::model::Finding;
use crate::runtime::{AnswerBudget, BudgetExceeded, ReservedBytes, SharedReservation};

/// A prepared answer.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The body in its coding.
    pub body: Bytes,
    /// The coding of the body: the requested one, or identity in the unlikely case that the encoder
    /// failed.
    pub coding: Coding,
    /// Strong entity tag with its quotes; differs between codings of the same view (RFC 9110
    /// section 8.8.3.3).
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
    /// See [`Rendered::selection`]. Only set if the query requests a selection of tools.
    pub selection: Option<Arc<str>>,
    /// Notes on the selection, by short names.
    pub notes: Arc<[&'static str]>,
    /// Has the bytes of the body while clients hold them.
    pub reservation: Arc<SharedReservation>,
}

/// An answer whose body is reserved for a client.
#[derive(Debug)]
pub struct HeldView {
    /// The answer.
    pub prepared: Arc<Prepared>,
    /// Kept for as long as the client holds the body.
    pub reserved: Arc<ReservedBytes>,
}

impl Prepared {
    /// Reserves the body for one more client.
    pub(super) fn hold(&self, budget: &AnswerBudget) -> Result<Arc<ReservedBytes>, BudgetExceeded> {
        self.reservation.hold(self.body.len(), budget)
    }
}

/// The answer for a rendered list. `reservation` is for its body.
pub(super) fn prepared(
    rendered: Rendered,
    report: &ReportBuilder<'_>,
    reservation: Arc<SharedReservation>,
) -> Prepared {
    let etag = etag::strong(&rendered.body, Coding::Identity);
    Prepared {
        body: rendered.body.into(),
        coding: Coding::Identity,
        etag,
        tools: rendered.tools,
        findings: Arc::new(rendered.findings),
        left_out: rendered.left_out,
        deferred: rendered.deferred,
        tokens: rendered.tokens,
        notes: report.notes(&rendered.lines),
        selection: rendered
            .selection
            .filter(|_| report.query.chooses())
            .map(Into::into),
        reservation,
    }
}

/// The same answer in another coding. `reservation` is for its body.
pub(super) fn encoded(
    plain: &Prepared,
    coding: Coding,
    reservation: Arc<SharedReservation>,
) -> Prepared {
    match coding.encode(&plain.body) {
        Ok(body) => {
            let etag = etag::strong(&plain.body, coding);
            Prepared {
                body: body.into(),
                coding,
                etag,
                reservation,
                ..plain.clone()
            }
        }
        Err(error) => {
            tracing::warn!(%coding, %error, "a list could not be encoded; it is sent as it is");
            Prepared {
                reservation,
                ..plain.clone()
            }
        }
    }
}
