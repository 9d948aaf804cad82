//! What the MCP server keeps between requests. One per daemon.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::Secret;
use crate::runtime::Clock;
use crate::server::mcp::held::HeldCalls;
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::sealing::Sealer;
use crate::server::mcp::sessions::McpSessions;
use crate::server::mcp::watched::ResourceWatches;

/// See the module.
#[derive(Debug)]
pub(in crate::server) struct McpFace {
    pub(super) sealer: Sealer,
    pub(super) sessions: McpSessions,
    pub(super) streams: StreamCounter,
    pub(super) held: HeldCalls,
    pub(super) watches: ResourceWatches,
}

/// How many streams each client has open.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamCounter(Arc<Mutex<HashMap<String, usize>>>);

/// One open stream. Dropping it closes it.
#[derive(Debug)]
pub(super) struct OpenStream {
    counter: StreamCounter,
    client: String,
}

impl McpFace {
    /// With the key of the store.
    pub(in crate::server) fn new(key: Option<&Secret>, clock: Clock) -> Self {
        Self {
            sealer: Sealer::new(key),
            sessions: McpSessions::new(clock),
            streams: StreamCounter::default(),
            held: HeldCalls::default(),
            watches: ResourceWatches::default(),
        }
    }
}

impl StreamCounter {
    /// Opens a stream of this client, unless it has `most` already.
    pub(super) fn open(&self, client: &str, most: usize) -> Result<OpenStream, Refusal> {
        let mut open = self.0.lock();
        let count = open.entry(client.to_owned()).or_default();
        if *count >= most {
            let why = format!(
                "this client has {most} streams open, as many as `mcp.max_streams` allows; close one first"
            );
            return Err(Refusal::busy(why));
        }
        *count += 1;
        Ok(OpenStream {
            counter: self.clone(),
            client: client.to_owned(),
        })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.counter.0.lock();
        if let Some(count) = open.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.client);
            }
        }
    }
}
