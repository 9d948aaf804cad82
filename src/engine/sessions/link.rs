//! The data that a session is made from, and the handle that calls hold.

use std::sync::Arc;

use crate::model::Target;
use crate::protocols::{Protocol, Session};

/// The data that a session is made from.
#[derive(Clone, Copy)]
pub(in crate::engine) struct SessionSpec<'a> {
    pub(in crate::engine) target: &'a Target,
    pub(in crate::engine) protocol: &'a Arc<dyn Protocol>,
    /// The protocol version of its last good list, which may be a stored one.
    pub(in crate::engine) version: Option<&'a str>,
    /// Whether its hints are followed. A scenario that waits for approval may not control how often
    /// it is listed.
    pub(in crate::engine) followed: bool,
    /// Whether its program sleeps, so that there is no process to speak to.
    pub(in crate::engine) asleep: bool,
}

/// A session that was made beside the loop.
pub(in crate::engine) struct Connected {
    pub(in crate::engine) target: Target,
    pub(in crate::engine) protocol: Arc<dyn Protocol>,
    pub(in crate::engine) session: Arc<dyn Session>,
}

/// The session of a scenario, as calls use it.
#[derive(Clone)]
pub(in crate::engine) struct SessionLink {
    pub(in crate::engine) session: Arc<dyn Session>,
    /// Whether it has ended, so that a call finds no connection until the next listing has made
    /// another one.
    pub(in crate::engine) ended: bool,
}
