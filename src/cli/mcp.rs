//! `callsheet mcp`: the running daemon as an MCP server over standard input and output, for clients
//! that start their servers as programs. Without a daemon it starts one.
//!
//! A thin front: each message is sent to `/mcp` of the daemon, and what comes back is printed, one
//! message a line. It keeps no list and decides nothing. Nothing but messages goes to standard
//! output.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use http::header::HeaderValue;
use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_util::task::AbortOnDropHandle;

use super::client::{DaemonClient, McpAnswer, McpScope, SESSION_ID};
use super::failure::{self, ErrorText};
use super::{CommandError, RemoteArgs, output, start};
use crate::json::rpc::{self, RpcError};
use crate::runtime::{Clock, Tasks};

/// The longest message.
const MAX_LINE: usize = 16 * 1024 * 1024;
/// The pause before a stream of changes is opened again.
const REOPEN: Duration = Duration::from_secs(2);
/// An own error, outside the reserved range: the daemon did not answer.
const NO_DAEMON: i64 = -31_001;

/// Arguments of `mcp`.
#[derive(Debug, Args)]
pub(super) struct McpArgs {
    /// Only the tools of this profile.
    #[arg(long)]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Says that the client spoke over standard input, where there are no headers.
const FRONT: HeaderName = HeaderName::from_static("callsheet-front");

/// What is read of a message.
#[derive(Deserialize)]
struct FrontLine<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    params: FrontParams<'a>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct FrontParams<'a> {
    #[serde(rename = "_meta")]
    meta: Map<String, Value>,
    name: Option<String>,
    uri: Option<String>,
    #[serde(borrow, rename = "requestId")]
    request_id: Option<&'a RawValue>,
}

/// A request under way.
struct RunningLine {
    /// Tells it from an earlier request with the same id.
    number: u64,
    is_modern: bool,
    work: AbortOnDropHandle<()>,
}

/// The front. Cheap to clone.
#[derive(Clone)]
struct StdioFront {
    daemon: Arc<DaemonClient>,
    /// How the daemon was found.
    remote: Arc<RemoteArgs>,
    scope: McpScope,
    /// The requests under way, by the text of their id.
    running: Arc<Mutex<HashMap<String, RunningLine>>>,
    /// The id of the session that `initialize` began.
    session: Arc<Mutex<Option<HeaderValue>>>,
    /// How many messages came.
    count: Arc<AtomicU64>,
}

impl McpArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = Arc::new(start::daemon(&self.remote).await?.by_address());
        let front = StdioFront {
            daemon,
            remote: Arc::new(self.remote.clone()),
            scope: McpScope {
                profile: self.profile.map(Into::into),
                permission: self.permission.map(Into::into),
            },
            running: Arc::default(),
            session: Arc::default(),
            count: Arc::default(),
        };
        let tasks = Tasks::new();
        let _present = AbortOnDropHandle::new(
            tasks.spawn(start::stay(Arc::clone(&front.daemon), self.remote)),
        );
        let mut input = BufReader::new(tokio::io::stdin());
        let mut line = Vec::new();
        let mut changes: Option<AbortOnDropHandle<()>> = None;
        // Ends with the input: the client has gone.
        while input
            .read_until(b'\n', &mut line)
            .await
            .is_ok_and(|read| read > 0)
        {
            if let Some(text) = std::str::from_utf8(&line)
                .ok()
                .map(str::trim)
                .filter(|text| !text.is_empty())
            {
                if text.len() > MAX_LINE {
                    refuse(None, &format!("a message may have {MAX_LINE} bytes"));
                } else if front.take(text, &tasks).await && changes.is_none() {
                    let follower = front.clone();
                    changes = Some(AbortOnDropHandle::new(
                        tasks.spawn(async move { follower.follow().await }),
                    ));
                }
            }
            line.clear();
        }
        // What was requested is still answered.
        drop(changes);
        let pending: Vec<_> = front
            .running()
            .drain()
            .map(|(_, request)| request)
            .collect();
        for request in pending {
            let _ = tokio::time::timeout(REOPEN, request.work).await;
        }
        Ok(())
    }
}

impl StdioFront {
    fn running(&self) -> parking_lot::MutexGuard<'_, HashMap<String, RunningLine>> {
        self.running.lock()
    }

    fn session(&self) -> parking_lot::MutexGuard<'_, Option<HeaderValue>> {
        self.session.lock()
    }

    /// The headers of a message in the session.
    fn session_headers(&self) -> HeaderMap {
        self.session()
            .clone()
            .map(|id| (SESSION_ID, id))
            .into_iter()
            .collect()
    }

    /// Forgets a request that was answered. The client may use its id again.
    fn forget(&self, id: &str, number: u64) {
        let mut running = self.running();
        if running.get(id).is_some_and(|line| line.number == number) {
            running.remove(id);
        }
    }

    /// Ends a request whose client does not want it any more. Returns whether the daemon has to be
    /// informed: of a modern request it learns by the closed connection.
    fn cancel(&self, id: &str) -> bool {
        let mut running = self.running();
        match running.get(id).map(|line| line.is_modern) {
            Some(true) => {
                running.remove(id);
                false
            }
            Some(false) => true,
            None => false,
        }
    }

    /// Handles one message. Returns whether it ends the handshake of an older revision, after which
    /// changes are signalled without a request. Waits for the answer to `initialize`: messages that
    /// were written right behind it belong to its session.
    async fn take(&self, text: &str, tasks: &Tasks) -> bool {
        let Ok(line) = serde_json::from_str::<FrontLine<'_>>(text) else {
            refuse(None, "it is not a message of JSON-RPC");
            return false;
        };
        if line.method == "notifications/cancelled"
            && !line
                .params
                .request_id
                .is_some_and(|id| self.cancel(id.get()))
        {
            return false;
        }
        let modern = modern_headers(&line);
        let is_modern = modern.is_some();
        if !is_modern && line.method == "initialize" {
            self.send(text, HeaderMap::new(), line.id.map(RawValue::get))
                .await;
            return false;
        }
        let headers = modern.unwrap_or_else(|| self.session_headers());
        // A line without a method is the client's answer to a request of the daemon.
        let id = line
            .id
            .filter(|_| !line.method.is_empty())
            .map(|id| id.get().to_owned());
        let front = self.clone();
        let text = text.to_owned();
        let key = id.clone();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let work = async move {
            front.send(&text, headers, id.as_deref()).await;
            if let Some(id) = id {
                front.forget(&id, number);
            }
        };
        // Held until the work is noted, which removes itself when it is done.
        let mut running = self.running();
        let work = AbortOnDropHandle::new(tasks.spawn(work));
        match key {
            Some(id) => {
                _ = running.insert(
                    id,
                    RunningLine {
                        number,
                        is_modern,
                        work,
                    },
                );
            }
            // A message without an answer.
            None => _ = work.detach(),
        }
        line.method == "notifications/initialized"
    }

    /// Sends a message and prints what comes back.
    async fn send(&self, text: &str, headers: HeaderMap, id: Option<&str>) {
        let sent = match self
            .daemon
            .mcp(&self.scope, Some(text), headers.clone())
            .await
        {
            Err(error @ CommandError::Unreachable { .. }) => match self.started_again().await {
                // The message has not reached the one before.
                Some(daemon) => daemon.mcp(&self.scope, Some(text), headers).await,
                None => Err(error),
            },
            sent => sent,
        };
        let answer = match sent {
            Ok((answer, session)) => {
                // Before the answer is printed: the client's next message is in this session.
                if session.is_some() {
                    *self.session() = session;
                }
                answer
            }
            Err(error) => {
                if id.is_some() {
                    refuse(id, &reason(&error));
                }
                return;
            }
        };
        match answer {
            // A notification has no answer, even if the daemon refuses it.
            McpAnswer::Message(body) if id.is_some() => print(&body),
            McpAnswer::Stream(mut events) => {
                while let Some(event) = events.next().await {
                    print(&event.data);
                }
            }
            McpAnswer::Message(_) | McpAnswer::Accepted => {}
        }
    }

    /// The daemon that takes the place of one that is gone; `None` if that one runs, or was named
    /// by its address.
    async fn started_again(&self) -> Option<DaemonClient> {
        if self.remote.address().is_some() || self.daemon.version().await.is_ok() {
            return None;
        }
        start::daemon(&self.remote)
            .await
            .ok()
            .map(DaemonClient::by_address)
    }

    /// Prints the changes that the daemon signals, for as long as it runs.
    async fn follow(&self) {
        loop {
            let headers = self.session_headers();
            if let Ok((McpAnswer::Stream(mut events), _)) =
                self.daemon.mcp(&self.scope, None, headers).await
            {
                while let Some(event) = events.next().await {
                    print(&event.data);
                }
            }
            Clock::system().sleep(REOPEN).await;
        }
    }
}

/// Prints an error of the front itself.
fn refuse(id: Option<&str>, why: &str) {
    print(&rpc::refusal(
        id,
        &RpcError {
            code: NO_DAEMON,
            message: why.to_owned(),
            data: None,
        },
    ));
}

/// What went wrong, and the next step.
fn reason(error: &CommandError) -> String {
    if let CommandError::Config(_) = error {
        return "the configuration is wrong; `callsheet config show` shows where".to_owned();
    }
    let text = |ErrorText { message, hint }| {
        hint.map_or(message.clone(), |hint| format!("{message}; {hint}"))
    };
    failure::texts(error)
        .into_iter()
        .map(text)
        .next()
        .unwrap_or_default()
}

/// The headers that a modern message has over HTTP; `None` for a legacy one. Arguments are in no
/// header, which the daemon is informed of.
fn modern_headers(line: &FrontLine<'_>) -> Option<HeaderMap> {
    let version = line
        .params
        .meta
        .get("io.modelcontextprotocol/protocolVersion")?
        .as_str()?;
    let mut headers = HeaderMap::from_iter([(FRONT, HeaderValue::from_static("stdio"))]);
    let name = line.params.name.as_deref().or(line.params.uri.as_deref());
    for (header, value) in [
        ("mcp-protocol-version", Some(version)),
        ("mcp-method", Some(line.method.as_str())),
        ("mcp-name", name),
    ] {
        if let Some(value) = value.map(crate::protocols::mcp::header_value) {
            headers.insert(header, value);
        }
    }
    headers
        .entry("mcp-method")
        .or_insert(HeaderValue::from_static(""));
    Some(headers)
}

/// Prints a message on one line. A line break of JSON stands between values only, so a blank means
/// the same.
fn print(message: &str) {
    if message.contains(['\n', '\r']) {
        output::line(&message.replace(['\n', '\r'], " "));
    } else {
        output::line(message);
    }
}
