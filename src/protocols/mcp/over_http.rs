//! Greets a server over HTTP: in the modern way, then in the old one, then by the transport
//! HTTP+SSE of 2024-11-05, which a server may still speak that refuses both as HTTP.
//!
//! Each step has a time limit of its own. This module lists and calls no tools, and remembers
//! nothing.

use std::sync::Arc;

use http::StatusCode;

use super::connection::{Carrier, McpServer};
use super::eras::Era;
use super::http::{Dialect, HttpConnection};
use super::negotiate::{self, Discovered};
use super::request::RequestError;
use super::revision::McpRevision;
use super::setup::ServerSetup;
use super::sse;
use crate::protocols::{ListError, NoCaller};
use crate::transports::TransportError;
use crate::transports::http::Upstream;

/// Greets a server over HTTP. What is known of its era is tried first.
pub(super) async fn connect(
    upstream: &Upstream,
    known: Option<Era>,
    setup: &ServerSetup,
) -> Result<(McpServer, Era), ListError> {
    let limit = upstream.poll_limits().timeout;
    let mut unauthorized = None;
    if !matches!(known, Some(Era::Legacy | Era::Sse)) {
        let modern = HttpConnection::new(
            upstream.clone(),
            Dialect::Modern(McpRevision::MODERN),
            Arc::clone(&setup.interaction),
        );
        setup
            .greeting
            .sends("server/discover", upstream.clock().now());
        for _ in 0..2 {
            let answered = modern.send(&negotiate::discover(limit), &NoCaller).await;
            match negotiate::judge(answered.map(|answered| answered.reply)) {
                Discovered::Modern(info, revision) => {
                    let http = HttpConnection::new(
                        upstream.clone(),
                        Dialect::Modern(revision),
                        Arc::clone(&setup.interaction),
                    );
                    return Ok((
                        McpServer::new(Carrier::Http(http), info, setup),
                        Era::Modern,
                    ));
                }
                Discovered::Again => {}
                Discovered::Legacy => break,
                Discovered::Unauthorized(error) => {
                    unauthorized = Some(error);
                    break;
                }
                Discovered::Unreachable(error) => return Err(error),
            }
        }
    }
    if known == Some(Era::Sse) {
        return sse::connect(upstream, setup)
            .await
            .map(|connected| (connected, Era::Sse));
    }
    connect_legacy(upstream, setup)
        .await
        .map_err(|error| unauthorized.unwrap_or(error))
}

/// Greets a server in the old way.
async fn connect_legacy(
    upstream: &Upstream,
    setup: &ServerSetup,
) -> Result<(McpServer, Era), ListError> {
    let limit = upstream.poll_limits().timeout;
    setup.greeting.sends("initialize", upstream.clock().now());
    let handshake = HttpConnection::new(
        upstream.clone(),
        Dialect::Handshake,
        Arc::clone(&setup.interaction),
    );
    match handshake
        .send(&negotiate::initialize(limit, setup), &NoCaller)
        .await
    {
        Ok(answered) if !is_http_refusal(answered.head.status) => {
            let (info, revision) =
                negotiate::begun(&answered.reply.map_err(|error| negotiate::refused(&error))?)?;
            let session = handshake.in_session(revision, &answered.head);
            session
                .notify(negotiate::initialized())
                .await
                .map_err(RequestError::into_list_error)?;
            Ok((
                McpServer::new(Carrier::Http(session), info, setup),
                Era::Legacy,
            ))
        }
        Ok(answered) => {
            let refusal = answered
                .reply
                .err()
                .map_or_else(not_mcp, |error| negotiate::refused(&error));
            sse_or(upstream, setup, refusal).await
        }
        Err(RequestError::NotRpc { status, error }) if is_refusal(status) => {
            sse_or(
                upstream,
                setup,
                ListError::NotThisProtocol(error.to_string()),
            )
            .await
        }
        Err(RequestError::NotRpc { error, .. }) => {
            Err(ListError::NotThisProtocol(error.to_string()))
        }
        Err(error) => Err(error.into_list_error()),
    }
}

fn not_mcp() -> ListError {
    ListError::NotThisProtocol("it does not speak MCP".to_owned())
}

/// Tries HTTP+SSE; a server that does not speak it either is refused for the reason that came
/// before.
async fn sse_or(
    upstream: &Upstream,
    setup: &ServerSetup,
    refusal: ListError,
) -> Result<(McpServer, Era), ListError> {
    match sse::connect(upstream, setup).await {
        Ok(connected) => Ok((connected, Era::Sse)),
        Err(
            ListError::NotThisProtocol(_) | ListError::Transport(TransportError::Status { .. }),
        ) => Err(refusal),
        Err(error) => Err(error),
    }
}

/// Whether a status refuses a POST at this address as such.
fn is_refusal(status: u16) -> bool {
    matches!(status, 400 | 404 | 405)
}

fn is_http_refusal(status: StatusCode) -> bool {
    is_refusal(status.as_u16())
}
