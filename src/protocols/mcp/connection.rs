//! A connection to a server whose revision is known, whatever carries its messages.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use parking_lot::Mutex;

use super::headers::HeaderTable;
use super::http::HttpConnection;
use super::lines::Lines;
use super::request::{McpRequest, Reply, RequestError};
use super::revision::McpRevision;
use super::server::ServerDescription;
use super::setup::ServerSetup;
use super::update_signals::UpdateSignals;
use crate::model::Interaction;
use crate::protocols::{CallIo, LogLevel, NoCaller};
use crate::runtime::Tasks;

/// The most bytes of the answer to `logging/setLevel`.
const SET_LEVEL: usize = 64 * 1024;

/// A server that was greeted.
pub(super) struct McpServer {
    pub(super) carrier: Carrier,
    pub(super) info: ServerDescription,
    /// Whether it has listed its tools in this revision: some servers claim a revision that they do
    /// not speak.
    pub(super) has_listed: AtomicBool,
    /// Whether it refused to signal changes.
    pub(super) refuses_hints: Arc<AtomicBool>,
    /// The arguments that it wants in headers, by tool.
    pub(super) headers: Mutex<Arc<HeaderTable>>,
    /// The input that it may request of callers.
    pub(super) interaction: Arc<Interaction>,
    /// The updates of resources that it signals.
    pub(super) updates: UpdateSignals,
    /// For work on long answers.
    pub(super) tasks: Tasks,
    /// The lowest level of log messages that a legacy server was requested to send.
    log_level: Mutex<Option<LogLevel>>,
}

/// What carries the messages.
pub(super) enum Carrier {
    Http(HttpConnection),
    Lines(Lines, McpRevision),
}

impl McpServer {
    /// A server with this description, which was greeted as `setup` says.
    pub(super) fn new(carrier: Carrier, info: ServerDescription, setup: &ServerSetup) -> Self {
        let updates = match &carrier {
            Carrier::Lines(lines, _) => lines.incoming().updates().clone(),
            Carrier::Http(_) => UpdateSignals::default(),
        };
        Self {
            updates,
            carrier,
            info,
            has_listed: AtomicBool::new(false),
            refuses_hints: Arc::default(),
            headers: Mutex::default(),
            interaction: Arc::clone(&setup.interaction),
            tasks: setup.tasks.clone(),
            log_level: Mutex::default(),
        }
    }

    /// The revision that is spoken.
    pub(super) fn revision(&self) -> McpRevision {
        match &self.carrier {
            Carrier::Http(http) => http.revision(),
            Carrier::Lines(_, revision) => *revision,
        }
    }

    /// Whether arguments are wanted in headers: only where there are headers.
    pub(super) fn wants_headers(&self) -> bool {
        matches!(&self.carrier, Carrier::Http(http) if http.revision().is_modern())
    }

    /// Has a legacy server send log messages from this level on, if it sends fewer so far. The
    /// level is that of the session, so each caller gets only the messages that it wants.
    pub(super) async fn want_logs(&self, level: LogLevel, limit: Duration) {
        let known = |set: Option<LogLevel>| set.is_some_and(|set| set <= level);
        let is_set = known(*self.log_level.lock());
        if is_set || self.revision().is_modern() || !self.info.has_logging {
            return;
        }
        let params = format!(r#""level":"{}""#, level.as_str());
        let request = McpRequest::new("logging/setLevel", params, limit, SET_LEVEL);
        // A server that refuses it sends what it sends.
        if let Ok(Ok(_)) = self.send(&request, &NoCaller).await {
            *self.log_level.lock() = Some(level);
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn send(
        &self,
        request: &McpRequest,
        io: &dyn CallIo,
    ) -> Result<Reply, RequestError> {
        match &self.carrier {
            Carrier::Http(http) => Ok(http.send(request, io).await?.reply),
            Carrier::Lines(lines, revision) => lines.send(request, *revision, io).await,
        }
    }
}
