//! Tools over plain JSON-RPC 2.0: `tools/list`, `tools/call` and `server/identity`, each a POST to
//! one address. There is no handshake and no session.
//!
//! The identity is requested first: the list is requested only when it differs from the one of the
//! known list, and each `refresh.max_interval`, because an identity does not cover the schemas. It
//! is requested again after the list, so that a list never counts under the identity of another
//! one. Servers without `server/identity` are listed each time. What `known_identity` remembers is
//! stored with the list, so that this holds over restarts, too.
//!
//! Tools are decoded like those of an MCP server, whose list has the same members. A malformed tool
//! is left out with a finding. This module never guesses tools that a list does not have.

mod exchange;
mod inspect;
mod known_identity;

use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use tokio::time::Instant;

use super::decoding::decode_manifest;
use super::fetch::upstream;
use super::mcp::decode_list;
use super::tool_discovery::Decoded;
use super::{
    Call, CallError, CallIo, ConnectError, Fits, ListError, ListRequest, Listing, Outcome,
    Protocol, ProtocolId, Session, Validators, Validity,
};
use crate::model::{Bounds, Finding, FindingCode, JsonText, Target};
use crate::transports::Transports;

use exchange::{Exchange, RequestFailure};
use known_identity::KnownIdentity;

/// The protocol's id.
pub const ID: ProtocolId = "json-rpc";
/// Where messages go, below a base address without a path. Any other address is used as it is.
pub const PATH: &str = "/rpc";
/// Lists that are requested at most, while the identity changes from one answer to the next.
const ATTEMPTS: usize = 2;

/// The protocol; see the module documentation.
#[derive(Debug)]
pub struct JsonRpcTools;

/// A server at an address. The session keeps no state.
pub struct JsonRpcSession {
    exchange: Exchange,
    transports: Transports,
}

impl Protocol for JsonRpcTools {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Http(_) => Fits::Probe { at: PATH },
            Target::Stdio(_) | Target::InProcess(_) | Target::Bundle(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        Box::pin(ready(
            JsonRpcSession::new(target, transports).map(|session| Arc::new(session) as _),
        ))
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

    fn call<'a>(
        &'a self,
        call: &'a Call,
        _io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(self.exchange.call(call))
    }

    fn masked(&self, text: String) -> String {
        self.exchange.upstream.masked(text)
    }
}

impl JsonRpcSession {
    /// A session with the server at a target.
    ///
    /// # Errors
    /// The target is none that HTTP leads to.
    pub fn new(target: &Target, transports: &Transports) -> Result<Self, ConnectError> {
        let path = match target {
            Target::Http(http) if !matches!(http.url.path(), "" | "/") => "",
            _ => PATH,
        };
        let upstream = upstream(target, transports)?;
        Ok(Self {
            exchange: Exchange { upstream, path },
            transports: transports.clone(),
        })
    }

    async fn listed(&self, request: &ListRequest) -> Result<Listing, ListError> {
        let clock = self.transports.clock();
        let begun = clock.now();
        let listed = clock.wall();
        let address = &*self.exchange.upstream.shown();
        let known = request.known.as_ref();
        let remembered =
            known.and_then(|known| KnownIdentity::read(&known.validators, address, request.bounds));
        let mut identity = self.identity(request).await?;
        let same_id = remembered
            .as_ref()
            .zip(identity.as_ref())
            .is_some_and(|(known, id)| known.id == *id);
        if same_id
            && let Some((known, remembered)) = known.zip(remembered.as_ref())
            && remembered.stands(listed, request.whole_after)
        {
            return Ok(Listing::Unchanged(
                self.validity(begun, known.validators.clone()),
            ));
        }
        let mut list = self.tools(request).await?;
        let mut is_steady = identity.is_none();
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
        let bytes = list.get().len();
        let more = further_page(&list);
        let bounds = request.bounds;
        let judged = request.judged;
        let decode = move || decode_list(&list, bounds, judged);
        let (manifest, mut findings, quarantined) =
            decode_manifest(self.exchange.upstream.tasks(), bytes, decode).await?;
        findings.extend(more);
        let same_id = remembered
            .zip(identity.as_ref())
            .is_some_and(|(known, id)| known.id == *id);
        if !is_steady {
            findings.push(unsteady());
        } else if same_id && known.is_some_and(|known| known.digest != manifest.digest) {
            findings.push(unnoticed());
        }
        let validators = identity.filter(|_| is_steady).map(|id| {
            let known = KnownIdentity::new(id, listed, address, request.bounds);
            // The findings of a list are not stored, so it is requested again after a restart.
            if findings.is_empty() {
                known.stored()
            } else {
                Validators::new(known)
            }
        });
        let validity = self.validity(begun, validators.unwrap_or_default());
        Ok(Listing::Manifest {
            manifest,
            findings,
            quarantined,
            validity,
        })
    }

    /// The identity of the list as it is now; `None` of a server that has none.
    async fn identity(&self, request: &ListRequest) -> Result<Option<String>, ListError> {
        #[derive(Deserialize)]
        struct ServerIdentity {
            server_id: String,
        }
        match self
            .exchange
            .request("server/identity", request, &self.transports)
            .await
        {
            Ok(result) => {
                let identity =
                    serde_json::from_str::<ServerIdentity>(result.get()).map_err(|error| {
                        ListError::Malformed(format!(
                            "its answer to `server/identity` cannot be read: {error}"
                        ))
                    })?;
                Ok(Some(identity.server_id))
            }
            Err(RequestFailure::Refused(_)) => Ok(None),
            Err(RequestFailure::Unusable(error)) => Err(error),
        }
    }

    async fn tools(&self, request: &ListRequest) -> Result<JsonText, ListError> {
        self.exchange
            .request("tools/list", request, &self.transports)
            .await
            .map_err(|failed| match failed {
                RequestFailure::Refused(error) => refused_list(&error),
                RequestFailure::Unusable(error) => error,
            })
    }

    fn validity(&self, begun: Instant, validators: Validators) -> Validity {
        let clock = self.transports.clock();
        let received = clock.now();
        Validity {
            received,
            received_at: clock.wall(),
            took: received.saturating_duration_since(begun),
            age: Duration::ZERO,
            fresh_for: self.transports.default_lifetime(),
            usable_for: None,
            may_store: true,
            modified: None,
            validators,
        }
    }
}

/// Decodes the answer to `tools/list`, as a listing does.
///
/// # Errors
/// It is no answer, it is an error of the server, or its list cannot be used as a whole.
pub fn decode(body: &[u8], bounds: Bounds) -> Result<Decoded, ListError> {
    let list = exchange::result(body)
        .map_err(ListError::NotThisProtocol)?
        .map_err(|error| refused_list(&error))?;
    let (manifest, mut findings, quarantined) = decode_list(&list, bounds, None)?;
    findings.extend(further_page(&list));
    Ok(Decoded {
        manifest,
        findings,
        quarantined,
    })
}

fn refused_list(why: &dyn fmt::Display) -> ListError {
    ListError::Malformed(format!("it refuses `tools/list`: {why}"))
}

/// A finding for a list that goes on elsewhere, as MCP has it and this protocol has not.
fn further_page(list: &JsonText) -> Option<Finding> {
    #[derive(Deserialize)]
    struct FurtherPage {
        #[serde(rename = "nextCursor")]
        cursor: Option<String>,
    }
    let page: FurtherPage = serde_json::from_str(list.get()).ok()?;
    page.cursor.filter(|cursor| !cursor.is_empty()).map(|_| {
        let what = "its list has a further page, which this protocol has no request for, so tools are missing";
        Finding::new(FindingCode::Paging, what).at("/nextCursor").hint("give the whole list in one answer")
    })
}

fn unsteady() -> Finding {
    let what =
        "its identity changes from one answer to the next, so its tools are listed at each poll";
    Finding::new(FindingCode::ServerIdentity, what)
        .hint("compute the identity from the sorted names and descriptions of the tools")
}

fn unnoticed() -> Finding {
    let what = "its tools changed while its identity stayed the same, which is noticed each `refresh.max_interval` only";
    Finding::new(FindingCode::ServerIdentity, what).hint("change the identity when a tool changes")
}
