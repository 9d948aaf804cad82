//! Request bodies: one JSON object each, or an archive, limited in size and time.

use std::time::Duration;

use axum::RequestExt as _;
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, LengthLimitError};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::bundles::archive::ARCHIVE_MAX;
use crate::calls::argument_form;
use crate::model::JsonText;
use crate::runtime::ByteBudget;
use crate::server::http::error::{Problem, excerpt};
use crate::server::http::held::{BODY_STEP_BYTES, ConnectionBytes, with_reservation};

/// How long a client may take to send a body of at most `server.max_body` bytes.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a client may take to send an archive.
const ARCHIVE_TIMEOUT: Duration = Duration::from_secs(120);

/// The members of a body that is one JSON object.
#[derive(Debug)]
pub(in crate::server) struct JsonBody(pub(in crate::server) Map<String, Value>);

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
    let _waiting = shares.reads_body();
    match tokio::time::timeout(limit, collect(request, budget, too_large)).await {
        Ok(read) => read,
        Err(_) => Err(body_timeout()),
    }
}

async fn collect(request: Request, budget: &ByteBudget, too_large: fn() -> Problem) -> Result<Bytes, Problem> {
    let mut body = request.into_limited_body();
    let mut reserved = budget.reserve(0)?;
    let mut read: Vec<u8> = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| if is_too_long(&error) { too_large() } else { unreadable(&error) })?;
        let Ok(data) = frame.into_data() else { continue };
        let needed = read.len() + data.len();
        if needed > reserved.bytes() {
            // Growing in steps keeps the copying low; the small first step leaves room for the many
            // short bodies.
            let wanted = needed.next_multiple_of(BODY_STEP_BYTES);
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
    std::iter::successors(Some(error), |error| error.source()).any(<dyn std::error::Error>::is::<LengthLimitError>)
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
        read_body(request, &shares, shares.bodies(), BODY_TIMEOUT, too_large).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for ZipBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let shares = shares(&request)?;
        let too_large = || Problem::larger_than_taken(ARCHIVE_MAX);
        read_body(request, &shares, shares.archives(), ARCHIVE_TIMEOUT, too_large).await.map(Self)
    }
}

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let RawBody(bytes) = RawBody::from_request(request, state).await?;
        parse_object(&bytes).map(Self)
    }
}

/// 413: the body exceeded `server.max_body` while it was read.
fn too_large() -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than `server.max_body` allows")
}

fn unreadable(why: &dyn std::fmt::Display) -> Problem {
    Problem::bad_request(format!("the body could not be read: {why}"))
}

/// 408: the body did not arrive in time.
pub(in crate::server) fn body_timeout() -> Problem {
    Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")
}

/// Reads a body that is one JSON object into a struct. An array is refused: serde would take it as
/// the members in their order. The error is the end of a sentence about the body.
pub(in crate::server) fn read_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    match serde_json::from_slice::<serde::de::IgnoredAny>(bytes) {
        Err(error) => Err(format!("is not JSON: {error}")),
        Ok(_) if !bytes.trim_ascii_start().starts_with(b"{") => Err("must be a JSON object".to_owned()),
        Ok(_) => serde_json::from_slice(bytes).map_err(|error| format!("cannot be read: {error}")),
    }
}

/// Parses a body as one JSON object, in which no object has two members with the same name.
fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => {
            let text = std::str::from_utf8(bytes).map_err(|error| unreadable(&error))?;
            match argument_form::flaw(&JsonText::known(text)) {
                Some(flaw) => Err(Problem::bad_request(format!("the body: {}: {}", flaw.pointer, flaw.message))),
                None => Ok(members),
            }
        }
        Ok(other) => Err(Problem::bad_request(format!("the body must be a JSON object, got {}", shown(&other)))),
        Err(error) => Err(Problem::bad_request(format!("the body is not JSON: {error}"))),
    }
}

impl JsonBody {
    /// Refuses members that are not among `known`.
    pub(in crate::server) fn refuse_unknown(&self, known: &[&str]) -> Result<(), Problem> {
        let unknown = self.0.keys().find(|key| !known.contains(&key.as_str()));
        unknown.map_or(Ok(()), |key| {
            let detail = format!("unknown member `{}` in the body: known are {}", excerpt(key), known.join(", "));
            Err(Problem::bad_request(detail).with_member("known", known.to_vec()))
        })
    }

    /// A member that must be a text that is not empty.
    pub(in crate::server) fn text(&self, name: &str) -> Result<&str, Problem> {
        match self.0.get(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text),
            Some(other) => Err(bad_member(name, other, "a text that is not empty")),
            None => Err(Problem::bad_request(format!("`{name}` is missing from the body"))),
        }
    }
}

/// 400 for an invalid value of a member.
pub(in crate::server) fn bad_member(name: &str, value: &Value, allowed: &str) -> Problem {
    Problem::bad_request(format!("`{name}` cannot be {}: allowed is {allowed}", shown(value)))
}

fn shown(value: &Value) -> String {
    format!("`{}`", excerpt(&value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_objects() {
        assert_eq!(parse_object(br#"{"a":1}"#).unwrap().len(), 1);
        for body in [&b""[..], b"[]", b"null", b"{", b"{} {}", b"\xff", br#"{"a":1,"a":2}"#, br#"{"b":{"a":1,"a":2}}"#]
        {
            assert_eq!(parse_object(body).unwrap_err().into_full_response().status(), 400);
        }
    }

    #[test]
    fn members_are_known_and_texts_are_texts() {
        let body = JsonBody(parse_object(br#"{"scope":"global","x":1,"empty":""}"#).unwrap());
        assert!(body.refuse_unknown(&["scope", "x", "empty"]).is_ok());
        assert!(body.refuse_unknown(&["scope"]).is_err());
        assert_eq!(body.text("scope").unwrap(), "global");
        assert!(body.text("x").is_err() && body.text("empty").is_err() && body.text("absent").is_err());
    }
}
