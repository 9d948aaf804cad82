//! What a failed exchange was: reads reqwest's error chain.
//!
//! Texts take only the innermost cause, since the outer levels repeat the address, credentials included.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::{Address, AskError};

/// Names the reason why no head of an answer came. `connect` is the limit that a connect timeout means.
pub(super) fn explain(address: &Address, error: &reqwest::Error, connect: Duration) -> AskError {
    let url = address.to_string();
    if error.is_builder() {
        AskError::Address(format!("{url} cannot be asked: {}", innermost(error)))
    } else if error.is_dns() {
        AskError::Unresolved(url)
    } else if error.is_connect() && error.is_timeout() {
        AskError::Timeout { url, limit: connect }
    } else if error.is_connect() && io_kinds(error).any(|kind| kind == io::ErrorKind::ConnectionRefused) {
        AskError::Refused(url)
    } else {
        broken(address, error)
    }
}

/// The connection or the body broke.
pub(super) fn broken(address: &Address, error: &reqwest::Error) -> AskError {
    AskError::Broken { url: address.to_string(), message: innermost(error) }
}

/// Whether the connection was closed on us before a whole head of an answer came: the server may have closed it while our request was on
/// its way, so that a GET can be sent again (RFC 9112 section 9.3.1). A head cut in half looks the same from here; repeating a GET is
/// safe then too (RFC 9110 section 9.2.2).
pub(super) fn closed_before_answer(error: &reqwest::Error) -> bool {
    if error.is_connect() || error.is_timeout() {
        return false;
    }
    let by_http = causes(error)
        .filter_map(|cause| cause.downcast_ref::<hyper::Error>())
        .any(|cause| cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed());
    by_http
        || io_kinds(error).any(|kind| {
            use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
            matches!(kind, BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
        })
}

/// Whether nothing of the request can have reached anybody: there was no connection, or it was gone before the first byte was written.
pub(super) fn unsent(error: &reqwest::Error) -> bool {
    let gone = |cause: &hyper::Error| cause.is_canceled();
    error.is_connect() || error.is_builder() || causes(error).filter_map(|cause| cause.downcast_ref()).any(gone)
}

fn io_kinds(error: &reqwest::Error) -> impl Iterator<Item = io::ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

fn innermost(error: &reqwest::Error) -> String {
    causes(error).last().map_or_else(|| "no cause was given".to_owned(), ToString::to_string)
}
