//! Tools over plain JSON-RPC 2.0: `tools/list`, `tools/call` and `server/identity`, each a POST to
//! one address. There is no handshake and no session.
//!
//! The identity is requested first: the list is requested only when it differs from the one of the
//! known list, and once an hour, because an identity does not cover the schemas. It is requested
//! again after the list, so that a list never counts under the identity of another one. Servers
//! without `server/identity` are listed each time.
//!
//! Tools are decoded like those of an MCP server, whose list has the same members. A malformed tool
//! is left out with a finding. This module never guesses tools that a list does not have.

mod exchange;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::time::Instant;

use super::fetch::upstream;
use super::mcp::decode_list;
use super::{
    Call, CallError, CallIo, ConnectError, Fits, ListError, ListRequest, Listing, Outcome, Protocol, ProtocolId,
    Session, Validators, Validity,
};
use crate::model::{Finding, FindingCode, JsonText, Target};
use crate::transports::Transports;

use exchange::{Exchange, RequestFailure};

/// The protocol's id.
pub const ID: ProtocolId = "json-rpc";
/// Where messages go, below a base address without a path. Any other address is used as it is.
pub const PATH: &str = "/rpc";
/// After this long the list is requested although the identity is the known one.
const WHOLE_LIST: Duration = Duration::from_secs(60 * 60);
/// Lists that are requested at most, while the identity changes from one answer to the next.
const ATTEMPTS: usize = 2;

/// The protocol; see the module documentation.
#[derive(Debug)]
pub struct JsonRpcTools;

/// A server at an address. The session keeps no state.
struct JsonRpcSession {
    exchange: Exchange,
    transports: Transports,
}

/// What is remembered of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownIdentity {
    id: String,
    /// When the list was requested.
    listed: Instant,
}

impl Protocol for JsonRpcTools {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Http(_) => Fits::Probe { at: PATH },
            Target::Stdio(_) | Target::InProcess(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let path = match target {
            Target::Http(http) if !matches!(http.url.path(), "" | "/") => "",
            _ => PATH,
        };
        let session = upstream(target, transports).map(|upstream| {
            let exchange = Exchange { upstream, path };
            Arc::new(JsonRpcSession { exchange, transports: transports.clone() }) as _
        });
        Box::pin(ready(session))
    }

    fn is_connectionless(&self) -> bool {
        true
    }

    fn names_scenarios(&self) -> bool {
        false
    }

    fn is_probed_untrusted(&self) -> bool {
        false
    }
}

impl Session for JsonRpcSession {
    /// The accepted versions are not used: the tools have no version.
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(self.listed(request))
    }

    fn call<'a>(&'a self, call: &'a Call, _io: &'a mut dyn CallIo) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(self.exchange.call(call))
    }
}

impl JsonRpcSession {
    async fn listed(&self, request: &ListRequest) -> Result<Listing, ListError> {
        let begun = self.transports.clock().now();
        let known = request.known.as_ref().and_then(|known| known.validators.get::<KnownIdentity>());
        let mut identity = self.identity(request).await?;
        if let (Some(known), Some(id)) = (known, &identity)
            && known.id == *id
            && begun.saturating_duration_since(known.listed) < WHOLE_LIST
        {
            return Ok(Listing::Unchanged(self.validity(begun, Some(known.clone()))));
        }
        let (mut list, mut is_steady) = (self.tools(request).await?, identity.is_none());
        for _ in 0..ATTEMPTS {
            if is_steady {
                break;
            }
            let after = self.identity(request).await?;
            is_steady = after == identity;
            if !is_steady {
                identity = after;
                list = self.tools(request).await?;
            }
        }
        let (manifest, mut findings, quarantined) = decode_list(&list, request.bounds, request.judged)?;
        let same_id = known.zip(identity.as_ref()).is_some_and(|(known, id)| known.id == *id);
        let changed = request.known.as_ref().is_some_and(|known| known.digest != manifest.digest);
        if !is_steady {
            findings.push(unsteady());
        } else if same_id && changed {
            findings.push(unnoticed());
        }
        let remembered = identity.filter(|_| is_steady).map(|id| KnownIdentity { id, listed: begun });
        Ok(Listing::Manifest { manifest, findings, quarantined, validity: self.validity(begun, remembered) })
    }

    /// The identity of the list as it is now; `None` of a server that has none.
    async fn identity(&self, request: &ListRequest) -> Result<Option<String>, ListError> {
        #[derive(Deserialize)]
        struct ServerIdentity {
            server_id: String,
        }
        match self.exchange.request("server/identity", request, &self.transports).await {
            Ok(result) => {
                let identity = serde_json::from_str::<ServerIdentity>(result.get()).map_err(|error| {
                    ListError::Malformed(format!("its answer to `server/identity` cannot be read: {error}"))
                })?;
                Ok(Some(identity.server_id))
            }
            Err(RequestFailure::Refused(_)) => Ok(None),
            Err(RequestFailure::Unusable(error)) => Err(error),
        }
    }

    async fn tools(&self, request: &ListRequest) -> Result<JsonText, ListError> {
        self.exchange.request("tools/list", request, &self.transports).await.map_err(|failed| match failed {
            RequestFailure::Refused(error) => ListError::Malformed(format!("it refuses `tools/list`: {error}")),
            RequestFailure::Unusable(error) => error,
        })
    }

    fn validity(&self, begun: Instant, remembered: Option<KnownIdentity>) -> Validity {
        let clock = self.transports.clock();
        let received = clock.now();
        Validity {
            received,
            received_at: clock.wall(),
            took: received.saturating_duration_since(begun),
            fresh_for: self.transports.default_lifetime(),
            usable_for: None,
            may_store: true,
            modified: None,
            validators: remembered.map(Validators::new).unwrap_or_default(),
        }
    }
}

fn unsteady() -> Finding {
    let what = "its identity changes from one answer to the next, so its tools are listed at each poll";
    Finding::new(FindingCode::ServerIdentity, what)
        .hint("compute the identity from the sorted names and descriptions of the tools")
}

fn unnoticed() -> Finding {
    let what = "its tools changed while its identity stayed the same, which is noticed once an hour only";
    Finding::new(FindingCode::ServerIdentity, what).hint("change the identity when a tool changes")
}
