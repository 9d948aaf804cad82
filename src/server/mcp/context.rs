//! What a message was sent with, and by which client.

use std::sync::Arc;

use http::header::ACCEPT;
use http::{HeaderMap, Version};

use crate::calls::CallSession;
use crate::server::SharedState;
use crate::server::auth::Access;
use crate::server::events::DisconnectTrigger;
use crate::server::http::held::ConnectionBytes;
use crate::server::http::query::ListQuery;
use crate::server::mcp::capabilities::ClientCapabilities;
use crate::server::mcp::era::ModernClient;
use crate::server::mcp::sessions::LiveSession;

/// What all messages of one request have in common.
pub(super) struct McpContext {
    pub(super) shared: SharedState,
    pub(super) list: ListQuery,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    pub(super) connection: DisconnectTrigger,
    /// What its answers are reserved from.
    pub(super) bytes: ConnectionBytes,
    pub(super) access: Access,
    /// Whether its messages are answered as one list, into which no stream fits.
    pub(super) is_batch: bool,
}

/// The client of a request.
#[derive(Debug, Clone)]
pub(super) enum McpClient {
    Modern(ModernClient),
    Legacy(Arc<LiveSession>),
}

impl McpContext {
    /// The id of this daemon.
    pub(super) fn own_id(&self) -> Option<String> {
        self.shared.config.borrow().discovery.mdns.id.clone()
    }

    /// Whether the answer may be a stream of events.
    pub(super) fn takes_events(&self) -> bool {
        let accepted = self
            .headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        let mut ranges = accepted
            .flat_map(|value| value.split(','))
            .map(|range| range.split(';').next().unwrap_or(""));
        !self.is_batch
            && ranges.any(|range| matches!(range.trim(), "text/event-stream" | "text/*" | "*/*"))
    }
}

impl McpClient {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Self::Modern(_))
    }

    /// Its name, if it says one.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Modern(client) => client.name.as_deref(),
            Self::Legacy(session) => session.claims.client.as_deref(),
        }
    }

    /// The session in which its calls are made, if it has one.
    pub(super) fn call_session(&self) -> Option<Arc<dyn CallSession>> {
        match self {
            Self::Modern(_) => None,
            Self::Legacy(session) => Some(Arc::<LiveSession>::clone(session)),
        }
    }

    pub(super) fn capabilities(&self) -> ClientCapabilities {
        match self {
            Self::Modern(client) => client.capabilities,
            Self::Legacy(session) => session.claims.capabilities,
        }
    }

    /// What tells it from other clients, for limits: its session, or else its name.
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Modern(client) => client.name.as_deref().unwrap_or_default(),
            Self::Legacy(session) => &session.claims.key,
        }
    }
}
