//! What the daemon says of itself: `server/discover`, and `initialize` of the legacy revisions.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::JsonText;
use crate::protocols::mcp::VIA;
use crate::server::mcp::capabilities::{ClientCapabilities, client_name};
use crate::server::mcp::era::{LEGACY, MODERN};
use crate::server::mcp::session_id::SessionClaims;

/// How to use the tools, for the model.
const INSTRUCTIONS: &str = "The tools come from several providers; callsheet passes each call on to the one that owns the tool. The list changes while providers come and go. A call that needs the approval of a person says so, and where it is decided.";

/// The result of `server/discover`.
pub(super) fn discover(own_id: Option<&str>) -> Bytes {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": capabilities(),
        "instructions": INSTRUCTIONS,
        "ttlMs": 3_600_000,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    });
    name_daemon(&mut result, own_id);
    result.to_string().into()
}

/// The session that `initialize` begins, and its result.
pub(super) fn initialize(params: Option<&JsonText>, own_id: Option<&str>) -> (SessionClaims, Bytes) {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct InitializeParams {
        protocol_version: String,
        capabilities: Option<Value>,
        client_info: Option<Value>,
    }
    let sent = params.and_then(|params| serde_json::from_str(params.get()).ok());
    let InitializeParams { protocol_version, capabilities: declared, client_info } = sent.unwrap_or_default();
    // The revision that the client wants, if it is known; else the newest.
    let known = LEGACY.into_iter().find(|version| *version == protocol_version);
    let revision = known.unwrap_or(LEGACY[0]);
    let declared = ClientCapabilities::parse(declared.as_ref());
    let claims = SessionClaims::new(revision, declared, client_name(client_info.as_ref()));
    let mut result = json!({
        "protocolVersion": revision,
        "capabilities": capabilities(),
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    });
    name_daemon(&mut result, own_id);
    (claims, result.to_string().into())
}

/// Names this daemon, so that a daemon that lists it leaves out the tools that it has from itself.
fn name_daemon(result: &mut Value, own_id: Option<&str>) {
    if let Some(id) = own_id {
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
