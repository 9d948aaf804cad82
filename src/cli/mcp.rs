//! `callsheet mcp`: the running daemon as an MCP server over standard input and output, for clients
//! that start their servers as programs.
//!
//! A thin front: each message is sent to `/mcp` of the daemon, and what comes back is printed, one
//! message a line. It keeps no list and decides nothing. Nothing but messages goes to standard
//! output.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use http::HeaderMap;
use http::header::HeaderValue;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio_util::task::AbortOnDropHandle;

use super::client::{DaemonClient, McpAnswer};
use super::{CommandError, RemoteArgs, output};
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
    #[command(flatten)]
    remote: RemoteArgs,
}

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

/// The front. Cheap to clone.
#[derive(Clone)]
struct StdioFront {
    daemon: Arc<DaemonClient>,
    profile: Option<Arc<str>>,
    /// The requests under way, by the text of their id.
    running: Arc<Mutex<HashMap<String, AbortOnDropHandle<()>>>>,
}

impl McpArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = Arc::new(DaemonClient::for_operator(&self.remote)?);
        let front = StdioFront { daemon, profile: self.profile.map(Into::into), running: Arc::default() };
        let tasks = Tasks::new();
        let (mut input, mut line) = (BufReader::new(tokio::io::stdin()), Vec::new());
        let mut changes: Option<AbortOnDropHandle<()>> = None;
        // Ends with the input: the client has gone.
        while input.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
            if let Some(text) = std::str::from_utf8(&line).ok().map(str::trim).filter(|text| !text.is_empty()) {
                if text.len() > MAX_LINE {
                    refuse(None, &format!("a message may have {MAX_LINE} bytes"));
                } else if front.take(text, &tasks) && changes.is_none() {
                    let follower = front.clone();
                    changes = Some(AbortOnDropHandle::new(tasks.spawn(async move { follower.follow().await })));
                }
            }
            line.clear();
        }
        // What was requested is still answered.
        drop(changes);
        let pending: Vec<_> = front.running().drain().map(|(_, request)| request).collect();
        for request in pending {
            let _ = tokio::time::timeout(REOPEN, request).await;
        }
        Ok(())
    }
}

impl StdioFront {
    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, AbortOnDropHandle<()>>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles one message. Returns whether it ends the handshake of an older revision, after which
    /// changes are signalled without a request.
    fn take(&self, text: &str, tasks: &Tasks) -> bool {
        let Ok(line) = serde_json::from_str::<FrontLine<'_>>(text) else {
            refuse(None, "it is no message of JSON-RPC");
            return false;
        };
        if line.method == "notifications/cancelled" {
            if let Some(id) = line.params.request_id {
                // The closed connection is what cancels it.
                self.running().remove(id.get());
            }
            return false;
        }
        let headers = headers(&line);
        let (front, text, id) = (self.clone(), text.to_owned(), line.id.map(|id| id.get().to_owned()));
        let key = id.clone();
        let work = async move {
            front.send(&text, headers, id.as_deref()).await;
            if let Some(id) = id {
                front.running().remove(&id);
            }
        };
        let handle = AbortOnDropHandle::new(tasks.spawn(work));
        match key {
            Some(id) => _ = self.running().insert(id, handle),
            // A notification has no answer to wait for.
            None => _ = handle.detach(),
        }
        line.method == "notifications/initialized"
    }

    /// Sends a message and prints what comes back.
    async fn send(&self, text: &str, headers: HeaderMap, id: Option<&str>) {
        match self.daemon.mcp(self.profile.as_deref(), Some(text), headers).await {
            Ok(McpAnswer::Message(body)) => print(&body),
            Ok(McpAnswer::Stream(mut events)) => {
                while let Some(event) = events.next().await {
                    print(&event.data);
                }
            }
            Err(error) if id.is_some() => refuse(id, &reason(&error)),
            Ok(McpAnswer::Accepted) | Err(_) => {}
        }
    }

    /// Prints the changes that the daemon signals, for as long as it runs.
    async fn follow(&self) {
        loop {
            if let Ok(McpAnswer::Stream(mut events)) =
                self.daemon.mcp(self.profile.as_deref(), None, HeaderMap::new()).await
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
    let error = json!({"code": NO_DAEMON, "message": why});
    let id = id.map(|id| format!(r#""id":{id},"#)).unwrap_or_default();
    print(&format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#));
}

/// What went wrong, and the next step.
fn reason(error: &CommandError) -> String {
    match error {
        CommandError::Unreachable { message, hint } | CommandError::Usage { message, hint } => {
            format!("{message}; {hint}")
        }
        CommandError::Refused { message, hint: Some(hint) } => format!("{message}; {hint}"),
        CommandError::Refused { message, hint: None } => message.clone(),
        CommandError::Daemon { error, .. } => error.to_string(),
        CommandError::Config(_) | CommandError::Found | CommandError::FoundConfig => {
            "the configuration is wrong; `callsheet config show` says where".to_owned()
        }
    }
}

/// The headers that a modern message has over HTTP.
fn headers(line: &FrontLine<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Some(version) = line.params.meta.get("io.modelcontextprotocol/protocolVersion").and_then(Value::as_str) else {
        return headers;
    };
    let name = line.params.name.as_deref().or(line.params.uri.as_deref());
    for (header, value) in
        [("mcp-protocol-version", Some(version)), ("mcp-method", Some(line.method.as_str())), ("mcp-name", name)]
    {
        if let Some(value) = value.map(crate::protocols::mcp::header_value) {
            headers.insert(header, value);
        }
    }
    headers.entry("mcp-method").or_insert(HeaderValue::from_static(""));
    headers
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
