//! The replacement for a session that ended by itself. It releases the process or connection at
//! once, and not only when the next session is made.
//!
//! It sends no request and returns the reason of the end.

use futures_util::future::BoxFuture;

use crate::model::Target;
use crate::protocols::{
    Call, CallError, CallIo, EndReason, ListError, ListRequest, Listing, Outcome, Relay, Session,
};
use crate::transports::TransportError;

/// A session that has ended.
pub(super) struct EndedSession {
    address: String,
    reason: EndReason,
    /// What it last wrote as errors.
    errors: Vec<String>,
}

impl EndedSession {
    /// A replacement for the session with this target, which ended for this reason, and whose last
    /// errors stay readable.
    pub(super) fn new(target: &Target, reason: EndReason, errors: Vec<String>) -> Self {
        Self {
            address: target.to_string(),
            reason,
            errors,
        }
    }

    fn error(&self) -> TransportError {
        TransportError::Broken {
            url: self.address.clone(),
            message: self.reason.to_string(),
        }
    }

    fn unsent<'a, T: Send + 'a>(&self) -> BoxFuture<'a, Result<T, CallError>> {
        Box::pin(std::future::ready(Err(CallError::Unsent(self.error()))))
    }
}

impl Session for EndedSession {
    fn list<'a>(&'a self, _: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(std::future::ready(Err(self.error().into())))
    }

    fn call<'a>(
        &'a self,
        _: &'a Call,
        _: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        self.unsent()
    }

    fn recent_errors(&self) -> Vec<String> {
        self.errors.clone()
    }

    fn relay<'a>(
        &'a self,
        _: &'a Relay,
        _: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        self.unsent()
    }
}
