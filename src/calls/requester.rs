//! On whose behalf a call is made, as far as the daemon can tell: the access of the request, and
//! its session. The outcome of an approved call is handed out to the same requester only, and an
//! operation belongs to the access of its call.

use std::fmt;
use std::sync::Arc;

use crate::model::{ApprovalRequest, belongs_to_access};

/// The access of requests with every right: those with the operator's token, all requests where no
/// token is configured, and those of the embedding program.
pub const FULL_ACCESS: &str = "full";

/// The access of calls that the daemon makes by itself for operations of calls with every right. So
/// they take no permit of their caller's share.
const POLLS_ACCESS: &str = "polls";
/// The same for operations of other calls, which take no permit that is for every right only.
const CLIENT_POLLS_ACCESS: &str = "polls-without-token";

/// A session in which calls are made.
pub trait CallSession: fmt::Debug + Send + Sync {
    /// Tells it from all other sessions.
    fn key(&self) -> &str;

    /// Whether its client is still there, as far as that is known.
    fn is_there(&self) -> bool;
}

/// On whose behalf a call is made.
#[derive(Debug, Clone)]
pub struct Requester {
    /// The identity of the access, to which the call belongs.
    pub access: Arc<str>,
    /// The session, if the protocol has sessions.
    pub session: Option<Arc<dyn CallSession>>,
}

/// In which session a call was requested that waits for approval.
#[derive(Debug, Clone)]
pub(super) enum RequestedIn {
    /// In this one.
    Session(Arc<dyn CallSession>),
    /// In none, by a protocol without sessions.
    NoSession,
    /// It is not known any more: it was requested before a restart.
    Unknown,
}

impl Requester {
    /// With every right, in no session: the program that embeds the library.
    pub fn full_access() -> Self {
        Self::with_access(FULL_ACCESS)
    }

    /// With this access, in no session.
    pub fn with_access(access: impl Into<Arc<str>>) -> Self {
        Self {
            access: access.into(),
            session: None,
        }
    }

    /// The daemon, for an operation that belongs to this access; `None` if an earlier version
    /// stored it.
    pub(super) fn following(access: Option<&str>) -> Self {
        let has_every_right = access.is_none_or(|access| access == FULL_ACCESS);
        Self::with_access(if has_every_right {
            POLLS_ACCESS
        } else {
            CLIENT_POLLS_ACCESS
        })
    }

    /// Whether it may have the permits that are kept for every right.
    pub(super) fn may_use_operators_permits(&self) -> bool {
        [FULL_ACCESS, POLLS_ACCESS].contains(&&*self.access)
    }

    fn session_key(&self) -> Option<&str> {
        self.session.as_ref().map(|session| session.key())
    }
}

impl PartialEq for Requester {
    fn eq(&self, other: &Self) -> bool {
        self.access == other.access && self.session_key() == other.session_key()
    }
}

impl Eq for Requester {}

impl RequestedIn {
    /// Whether a call of `requester` is one with the call `request`, which was requested in this
    /// session: it joins it while that waits, and gets its outcome.
    ///
    /// The access has to be the same in both directions. What was requested with the token is no
    /// business of callers without it; and a caller with the token can read every outcome by its
    /// id, and would take it from its caller here. Calls whose session is gone belong to all
    /// sessions of their access, so that a client that connects anew gets its outcomes.
    pub(super) fn is_joined_by(&self, request: &ApprovalRequest, requester: &Requester) -> bool {
        belongs_to_access(request.access.as_deref(), &requester.access)
            && match self {
                Self::Session(own) => requester.session_key() == Some(own.key()) || !own.is_there(),
                Self::NoSession => requester.session.is_none(),
                Self::Unknown => true,
            }
    }
}

impl From<&Requester> for RequestedIn {
    fn from(requester: &Requester) -> Self {
        requester
            .session
            .as_ref()
            .map_or(Self::NoSession, |session| {
                Self::Session(Arc::clone(session))
            })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::calls::approval::tests::request;

    #[derive(Debug)]
    struct TestSession {
        key: &'static str,
        is_there: AtomicBool,
    }

    impl CallSession for TestSession {
        fn key(&self) -> &str {
            self.key
        }

        fn is_there(&self) -> bool {
            self.is_there.load(Ordering::Relaxed)
        }
    }

    fn in_session(session: &Arc<TestSession>) -> Requester {
        Requester {
            session: Some(Arc::<TestSession>::clone(session)),
            ..Requester::full_access()
        }
    }

    #[test]
    fn a_call_belongs_to_its_session_while_that_is_there_and_then_to_its_access() {
        let session = |key| {
            Arc::new(TestSession {
                key,
                is_there: true.into(),
            })
        };
        let own = session("own");
        let made = in_session(&own);
        let call = ApprovalRequest {
            access: Some(Arc::clone(&made.access)),
            ..request("1")
        };
        let made_in = RequestedIn::from(&made);
        let joins = |requester: &Requester| made_in.is_joined_by(&call, requester);
        let of_other = in_session(&session("other"));
        let without_session = Requester::full_access();
        let without_token = Requester::with_access("without-token");
        assert!(joins(&made));
        assert!(!joins(&of_other) && !joins(&without_session) && !joins(&without_token));
        own.is_there.store(false, Ordering::Relaxed);
        assert!(joins(&made) && joins(&of_other) && joins(&without_session));
        assert!(!joins(&without_token), "the access stays");
    }

    #[test]
    fn a_call_without_a_session_belongs_to_requests_without_one_and_a_restored_one_to_its_access() {
        let other = in_session(&Arc::new(TestSession {
            key: "other",
            is_there: true.into(),
        }));
        let call = ApprovalRequest {
            access: Some(FULL_ACCESS.into()),
            ..request("1")
        };
        assert!(RequestedIn::NoSession.is_joined_by(&call, &Requester::full_access()));
        assert!(!RequestedIn::NoSession.is_joined_by(&call, &other));
        assert!(RequestedIn::Unknown.is_joined_by(&call, &other));
        assert!(
            !RequestedIn::Unknown.is_joined_by(&call, &Requester::with_access("without-token"))
        );
        let of_earlier_version = ApprovalRequest {
            access: None,
            ..call
        };
        assert!(RequestedIn::Unknown.is_joined_by(
            &of_earlier_version,
            &Requester::with_access("without-token")
        ));
    }
}
