//! Whether to send a request, which one, and how an answer changes what is stored. Pure: the time
//! is an argument.

use tokio::time::Instant;

use super::ResponseHead;
use super::{CacheRules, HttpFreshness, freshness};
use crate::transports::http::status;

/// What to do when the answer is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plan {
    /// Use what is stored: it is fresh (RFC 9111 section 4.2).
    Reuse,
    /// Ask with the stored validators (RFC 9111 section 4.3.1).
    Revalidate(Meanwhile),
    /// Ask without conditions.
    Fetch(Meanwhile),
}

/// What a client gets while the request is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meanwhile {
    /// What is stored may be used, though stale (RFC 5861 section 3).
    Serve,
    /// Nothing may be used before an answer is there.
    Wait,
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// A whole new answer, which takes the place of what is stored. With
    /// [`HttpFreshness::no_store`] it is kept in memory at most.
    Replace(HttpFreshness),
    /// What is stored still stands, with this freshness (RFC 9111 section 4.3.4).
    Renew(HttpFreshness),
    /// No answer to go by: what is stored stays, and this is whether it may be used.
    Keep(Stale),
}

/// Whether a stored answer may be used although the request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stale {
    /// It may.
    Allowed,
    /// It may not, or there is none.
    Forbidden,
}

/// Judges what is stored at `now`, before anything is sent.
pub fn before_request(stored: Option<&HttpFreshness>, now: Instant) -> Plan {
    let Some(stored) = stored else {
        return Plan::Fetch(Meanwhile::Wait);
    };
    if now < stored.fresh_until() {
        return Plan::Reuse;
    }
    // RFC 5861 section 3; by RFC 9111 section 4.2.4 a directive that requires revalidation forbids
    // it.
    let within = stored
        .stale_while_revalidate
        .is_some_and(|window| now < stored.fresh_until() + window);
    let may = within && !stored.must_revalidate && !stored.no_store;
    let meanwhile = if may {
        Meanwhile::Serve
    } else {
        Meanwhile::Wait
    };
    if stored.validators.any() {
        Plan::Revalidate(meanwhile)
    } else {
        Plan::Fetch(meanwhile)
    }
}

/// Judges the head of an answer. `stored` is what the request was made by: conditional if it has
/// validators. The answer's own time of receipt is the present.
///
/// Any status that is no success keeps what is stored, and is never stored itself: an error is not
/// a list of tools, however long it may be kept (RFC 9111 section 3 requires no cache to store). Of
/// server errors RFC 9111 section 4.3.3 says the same.
pub fn after_response(
    stored: Option<&HttpFreshness>,
    head: &ResponseHead,
    rules: CacheRules,
) -> Verdict {
    let conditional = stored.is_some_and(|stored| stored.validators.any());
    match (
        status::judge(head.status, &head.headers, conditional),
        stored,
    ) {
        (status::ResponseAction::Take, Some(stored))
            if head.status == http::StatusCode::NOT_MODIFIED =>
        {
            Verdict::Renew(freshness(head, rules).renewing(stored))
        }
        (status::ResponseAction::Take, _) => Verdict::Replace(freshness(head, rules)),
        (
            status::ResponseAction::Follow(_)
            | status::ResponseAction::Unasked
            | status::ResponseAction::Refuse,
            _,
        ) => Verdict::Keep(after_failure(stored, head.received)),
    }
}

/// Judges what is stored when no answer came at all, or none that can be used.
pub fn after_failure(stored: Option<&HttpFreshness>, now: Instant) -> Stale {
    let usable = stored.is_some_and(|stored| stored.usable_until().is_none_or(|until| now < until));
    if usable {
        Stale::Allowed
    } else {
        Stale::Forbidden
    }
}
