//! The credentials of one request: applied when it is sent, renewed at most once.

use http::{HeaderMap, StatusCode};

use super::bound::{AppliedCredentials, Credentials};
use super::challenge::Challenge;
use crate::transports::TransportError;
use crate::transports::http::Address;

/// One request that may be sent again after its credential was refused.
#[derive(Debug)]
pub(in crate::transports::http) struct Attempt<'a> {
    credentials: &'a Credentials,
    to: Address,
    applied: AppliedCredentials,
    renewal: Renewal,
}

/// What a refused credential leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// It is renewed, and the request is sent again, which is safe or idempotent.
    AndRepeat,
    /// It is renewed for later requests.
    Alone,
    /// It was renewed already: nothing is done.
    Done,
}

impl<'a> Attempt<'a> {
    /// Begins a request to this address. `is_repeatable` says whether it may be sent twice.
    pub(in crate::transports::http) async fn begin(
        credentials: &'a Credentials,
        to: &Address,
        is_repeatable: bool,
    ) -> Result<Self, TransportError> {
        let applied = credentials.apply(to.url()).await;
        let applied = applied.map_err(|error| TransportError::Credential {
            url: to.to_string(),
            error,
        })?;
        let renewal = if is_repeatable {
            Renewal::AndRepeat
        } else {
            Renewal::Alone
        };
        Ok(Self {
            credentials,
            to: to.clone(),
            applied,
            renewal,
        })
    }

    /// The headers that go with it.
    pub(in crate::transports::http) fn headers(&self) -> &HeaderMap {
        &self.applied.headers
    }

    /// Called with the head of the answer: whether the request is to be sent again, with other
    /// credentials. What may not be sent again has its token renewed for later requests.
    pub(in crate::transports::http) async fn is_refused(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<bool, TransportError> {
        let before = std::mem::replace(&mut self.renewal, Renewal::Done);
        let challenge = Challenge::parse(status, headers).filter(Challenge::wants_another);
        let Some(mut challenge) = challenge.filter(|_| before != Renewal::Done) else {
            return Ok(false);
        };
        challenge.mask(&self.credentials.mask());
        let named = |error| TransportError::Credential {
            url: self.to.to_string(),
            error,
        };
        let is_renewed = self
            .credentials
            .renew(&self.applied, &challenge)
            .await
            .map_err(named)?;
        if !is_renewed || before == Renewal::Alone {
            return Ok(false);
        }
        let next = self.credentials.apply(self.to.url()).await.map_err(named)?;
        let refused = std::mem::replace(&mut self.applied, next);
        Ok(refused != self.applied)
    }
}
