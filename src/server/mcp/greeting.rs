//! What the daemon says of itself: `server/discover`, and `initialize` of the legacy revisions.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::JsonText;
use crate::protocols::mcp::VIA;
use crate::server::mcp::capabilities::{ClientCapabilities, client_name};
use crate::server::mcp::context::McpContext;
use crate::server::mcp::era::{LEGACY, MODERN};
use crate::server::mcp::session_id::SessionClaims;

/// The most bytes of the instructions of all scenarios.
const MOST_INSTRUCTIONS: usize = 64 * 1024;
/// How to use the tools, for the model.
const INSTRUCTIONS: &str = "The tools come from several providers; callsheet passes each call on to the one that owns the tool. The list changes while providers come and go. A call that needs the approval of a person says so, and where it is decided.";

/// The result of `server/discover`.
pub(super) fn discover(context: &McpContext) -> Bytes {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "instructions": instructions(context),
        "ttlMs": 3_600_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    });
    name_daemon(&mut result, context);
    result.to_string().into()
}

/// How to use the tools: in the daemon's own words, and in those of the scenarios that the
/// configuration names for that, as far as this client sees them.
fn instructions(context: &McpContext) -> String {
    let mut all = INSTRUCTIONS.to_owned();
    let snapshot = context.shared.reader.snapshot();
    let config = context.shared.config.borrow();
    for scenario in &config.scenarios {
        let is_wanted = scenario
            .target
            .interaction()
            .is_some_and(|interaction| interaction.instructions);
        let Some(entry) = snapshot.catalog.entry(&scenario.name).filter(|_| is_wanted) else {
            continue;
        };
        let own = entry
            .manifest
            .scenario
            .extra
            .iter()
            .find(|(name, _)| &**name == "instructions");
        let own = own
            .and_then(|(_, text)| serde_json::from_str::<String>(text.get()).ok())
            .unwrap_or_default();
        let is_shown = snapshot.catalog.shows(&context.list.view, &scenario.name);
        if is_shown && !own.is_empty() && all.len() + own.len() <= MOST_INSTRUCTIONS {
            let _ = write!(all, "\n\nOf the tools of {}: {own}", scenario.name);
        }
    }
    all
}

/// The session that `initialize` begins, and its result.
pub(super) fn initialize(
    context: &McpContext,
    params: Option<&JsonText>,
) -> (SessionClaims, Bytes) {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct InitializeParams {
        protocol_version: String,
        capabilities: Option<Value>,
        client_info: Option<Value>,
    }
    let sent = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let InitializeParams {
        protocol_version,
        capabilities: declared,
        client_info,
    } = sent.unwrap_or_default();
    // The revision that the client wants, if it is known; else the newest.
    let known = LEGACY
        .into_iter()
        .find(|version| *version == protocol_version);
    let revision = known.unwrap_or(LEGACY[0]);
    let declared = ClientCapabilities::parse(declared.as_ref());
    let claims = SessionClaims::new(revision, declared, client_name(client_info.as_ref()));
    let mut result = json!({
        "protocolVersion": revision,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": instructions(context),
    });
    name_daemon(&mut result, context);
    (claims, result.to_string().into())
}

/// Names this daemon, so that a daemon that lists it leaves out the tools that it has from itself.
fn name_daemon(result: &mut Value, context: &McpContext) {
    if let Some(id) = context.own_id() {
        result["_meta"][VIA] = json!([id]);
    }
}

/// What the daemon can do, in both eras.
fn capabilities() -> Value {
    // Whether or not a scenario has any of it now.
    json!({
        "tools": {"listChanged": true},
        "prompts": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "completions": {},
        "logging": {},
    })
}

fn server_info() -> Value {
    json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")})
}
