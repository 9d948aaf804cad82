//! Request bodies as they are sent: JSON or an archive, in no content coding, limited in size and
//! time.

use std::time::Duration;

use axum::RequestExt as _;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError};
use hyper::body::Body as _;
use serde_json::Value;

use crate::bundles::archive::ARCHIVE_MAX;
use crate::runtime::ByteBudget;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::held::{BODY_STEP_BYTES, ConnectionBytes, with_reservation};

/// How long a client may take to send a body of at most `server.max_body` bytes.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take to send an archive.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(120);

/// The body as the client sent it, within the same limits.
#[derive(Debug)]
pub(in crate::server) struct RawBody(pub(in crate::server) Bytes);

/// An archive of a bundle, as the client sent it.
#[derive(Debug)]
pub(in crate::server) struct ZipBody(pub(in crate::server) Bytes);

/// The whole body of a request, reserved from `budget` before it is kept and as long as it is used.
/// A layer of the router limits the size.
async fn read_body(
    request: Request,
    shares: &ConnectionBytes,
    budget: &ByteBudget,
    limit: Duration,
    too_large: fn() -> Problem,
) -> Result<Bytes, Problem> {
    check_coding(request.headers())?;
    let _waiting = shares.reads_body();
    match tokio::time::timeout(limit, collect(request, budget, too_large)).await {
        Ok(read) => read,
        Err(_) => Err(body_timeout()),
    }
}

/// Fails if the body is in a content coding. A program between, which decodes it, would see another
/// body than its route.
fn check_coding(headers: &HeaderMap) -> Result<(), Problem> {
    for line in headers.get_all(CONTENT_ENCODING) {
        let line = String::from_utf8_lossy(line.as_bytes());
        let mut codings = line.split(',').map(str::trim);
        let other =
            codings.find(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"));
        if let Some(other) = other {
            return Err(Problem::content_coding(other));
        }
    }
    Ok(())
}

async fn collect(
    request: Request,
    budget: &ByteBudget,
    too_large: fn() -> Problem,
) -> Result<Bytes, Problem> {
    let mut body = request.into_limited_body();
    let mut reserved = budget.reserve(0)?;
    let mut read: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            if is_too_long(&error) {
                too_large()
            } else {
                unreadable(&error)
            }
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let needed = read.len() + data.len();
        if needed > reserved.bytes() {
            // Growing in steps keeps the copying low; the small first step leaves room for the many
            // short bodies.
            let step = needed.next_multiple_of(BODY_STEP_BYTES);
            // A body whose length is known, as that of most calls, gets no more than that.
            let left = body
                .size_hint()
                .upper()
                .and_then(|left| usize::try_from(left).ok())
                .unwrap_or(usize::MAX);
            let wanted = step.min(needed.saturating_add(left));
            reserved.grow(wanted - reserved.bytes())?;
            read.reserve_exact(wanted - read.len());
        }
        read.extend_from_slice(&data);
    }
    read.shrink_to_fit();
    reserved.shrink_to(read.len());
    Ok(with_reservation(Bytes::from(read), reserved))
}

/// Whether a body was longer than its route takes.
fn is_too_long(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .any(<dyn std::error::Error>::is::<LengthLimitError>)
}

/// The shares of the connection that the request came by.
fn shares(request: &Request) -> Result<ConnectionBytes, Problem> {
    let found = request.extensions().get::<ConnectionBytes>().cloned();
    found.ok_or_else(|| Problem::internal(&"a request without the shares of its connection"))
}

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let shares = shares(&request)?;
        read_body(request, &shares, shares.bodies(), BODY_TIMEOUT, too_large)
            .await
            .map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for ZipBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let shares = shares(&request)?;
        let too_large = || Problem::larger_than_taken(ARCHIVE_MAX);
        read_body(
            request,
            &shares,
            shares.archives(),
            ARCHIVE_TIMEOUT,
            too_large,
        )
        .await
        .map(Self)
    }
}

/// 413: the body exceeded `server.max_body` while it was read.
fn too_large() -> Problem {
    Problem::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "the body is larger than `server.max_body` allows",
    )
}

fn unreadable(why: &dyn std::fmt::Display) -> Problem {
    Problem::bad_request(format!("the body could not be read: {why}"))
}

/// 408: the body did not arrive in time.
pub(in crate::server) fn body_timeout() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "the body did not arrive in time",
    )
}

/// 400 for an invalid value of a member.
pub(in crate::server) fn bad_member(name: &str, value: &Value, allowed: &str) -> Problem {
    Problem::bad_request(format!(
        "`{name}` cannot be `{}`: allowed is {allowed}",
        excerpt(&value.to_string())
    ))
}
