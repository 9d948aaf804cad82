//! What a failed exchange was: reads the error chains of all clients.
//!
//! Texts take only the innermost cause, since the outer levels repeat the address, credentials included.

use std::error::Error;
use std::io;
use std::time::Duration;

use super::connector::{Unanswered, Unresolved};
use super::{Address, AskError};

/// What a client tells of a request that failed.
pub(super) trait Failure: Error + 'static {
    /// There was nothing to send.
    fn is_unmade(&self) -> bool;
    /// There was no connection.
    fn is_connect(&self) -> bool;
    /// It took too long.
    fn is_late(&self) -> bool;
    /// The host has no address.
    fn is_unresolved(&self) -> bool;
}

impl Failure for reqwest::Error {
    fn is_unmade(&self) -> bool {
        self.is_builder()
    }

    fn is_connect(&self) -> bool {
        self.is_connect()
    }

    fn is_late(&self) -> bool {
        self.is_timeout()
    }

    fn is_unresolved(&self) -> bool {
        self.is_dns()
    }
}

impl Failure for Unanswered {
    fn is_unmade(&self) -> bool {
        matches!(self, Self::Unmade(_))
    }

    fn is_connect(&self) -> bool {
        matches!(self, Self::Unconnected(_) | Self::Late)
    }

    fn is_late(&self) -> bool {
        matches!(self, Self::Late) || io_kinds(self).any(|kind| kind == io::ErrorKind::TimedOut)
    }

    fn is_unresolved(&self) -> bool {
        causes(self).any(<dyn Error>::is::<Unresolved>)
    }
}

/// Names the reason why no head of an answer came. `connect` is the limit that a connect timeout means.
pub(super) fn explain(address: &Address, error: &impl Failure, connect: Duration) -> AskError {
    let url = address.to_string();
    if error.is_unmade() {
        AskError::Address(format!("{url} cannot be asked: {}", innermost(error)))
    } else if error.is_unresolved() {
        AskError::Unresolved(url)
    } else if error.is_connect() && error.is_late() {
        AskError::Timeout { url, limit: connect }
    } else if error.is_connect() && io_kinds(error).any(|kind| kind == io::ErrorKind::ConnectionRefused) {
        AskError::Refused(url)
    } else {
        broken(address, error)
    }
}

/// The connection or the body broke.
pub(super) fn broken(address: &Address, error: &(impl Error + 'static)) -> AskError {
    AskError::Broken { url: address.to_string(), message: innermost(error) }
}

/// Whether the connection was closed on us before a whole head of an answer came: the server may have closed it while our request was on
/// its way, so that a GET can be sent again (RFC 9112 section 9.3.1). A head cut in half looks the same from here; repeating a GET is
/// safe then too (RFC 9110 section 9.2.2).
pub(super) fn closed_before_answer(error: &impl Failure) -> bool {
    if error.is_connect() || error.is_late() {
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
pub(super) fn unsent(error: &impl Failure) -> bool {
    let gone = |cause: &hyper::Error| cause.is_canceled();
    error.is_connect() || error.is_unmade() || causes(error).filter_map(|cause| cause.downcast_ref()).any(gone)
}

fn io_kinds(error: &(impl Error + 'static)) -> impl Iterator<Item = io::ErrorKind> {
    causes(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn causes(error: &(impl Error + 'static)) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

fn innermost(error: &(impl Error + 'static)) -> String {
    let outermost: &(dyn Error + 'static) = error;
    match causes(error).last() {
        Some(cause) => cause.to_string(),
        // reqwest's own words repeat the address.
        None if outermost.is::<reqwest::Error>() => "no cause was given".to_owned(),
        None => outermost.to_string(),
    }
}
