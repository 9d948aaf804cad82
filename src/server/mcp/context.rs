//! What a message was sent with.

use http::{HeaderMap, Version};

use crate::server::SharedState;
use crate::server::events::DisconnectTrigger;
use crate::server::http::query::ListQuery;

/// What all messages of one request have in common.
pub(super) struct McpContext {
    pub(super) shared: SharedState,
    pub(super) list: ListQuery,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    pub(super) connection: DisconnectTrigger,
}
