//! What a failed exchange was: reads the error chain of the client.
//!
//! Texts take only the innermost cause, since the outer levels may repeat the address, credentials
//! included.

use std::error::Error;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy;

use super::Address;
use super::connect_error::{ProxyError, Unresolved};
use crate::transports::TransportError;

/// Names the reason why no head of an answer came. `connect` is the limit that a connect timeout
/// means.
pub(super) fn explain(
    address: &Address,
    error: &legacy::Error,
    connect: Duration,
) -> TransportError {
    let url = address.to_string();
    let is = |wanted| error.is_connect() && io_kinds(error).any(|kind| kind == wanted);
    let by_proxy = causes(error).find_map(|cause| cause.downcast_ref::<ProxyError>());
    if let Some(ProxyError { proxy, message }) = by_proxy {
        TransportError::Proxy {
            url,
            proxy: proxy.clone(),
            message: message.clone(),
        }
    } else if causes(error).any(<dyn Error>::is::<Unresolved>) {
        TransportError::Unresolved(url)
    } else if is(io::ErrorKind::TimedOut) {
        TransportError::Timeout {
            url,
            limit: connect,
        }
    } else if is(io::ErrorKind::ConnectionRefused) {
        TransportError::Refused(url)
    } else {
        broken(address, error)
    }
}

/// The connection or the body broke.
pub(super) fn broken(address: &Address, error: &(dyn Error + 'static)) -> TransportError {
    TransportError::Broken {
        url: address.to_string(),
        message: innermost(error).to_string(),
    }
}

/// The innermost cause of an error, or the error itself.
pub(super) fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    causes(error).last().unwrap_or(error)
}

/// Whether the connection was closed on us before a whole head of an answer came: the server may
/// have closed it while our request was on its way, so that a GET can be sent again (RFC 9112
/// section 9.3.1). A head cut in half looks the same from here; repeating a GET is safe then too
/// (RFC 9110 section 9.2.2).
pub(super) fn closed_before_answer(error: &legacy::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let by_http = |cause: &hyper::Error| {
        cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed()
    };
    let by_socket = |kind| {
        matches!(
            kind,
            BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
        )
    };
    !error.is_connect() && (http_causes(error).any(by_http) || io_kinds(error).any(by_socket))
}

/// Whether no byte of the request can have reached a server: there was no connection, or it was
/// gone before the first byte was written, which is what a cancelled request means in hyper.
pub(super) fn unsent(error: &legacy::Error) -> bool {
    error.is_connect() || http_causes(error).any(hyper::Error::is_canceled)
}

fn http_causes(error: &legacy::Error) -> impl Iterator<Item = &hyper::Error> {
    causes(error).filter_map(|cause| cause.downcast_ref())
}

fn io_kinds(error: &legacy::Error) -> impl Iterator<Item = io::ErrorKind> {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .map(io::Error::kind)
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
