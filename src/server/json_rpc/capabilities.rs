//! `server/capabilities`: which methods and versions there are, so that a client need not try. It
//! has no effect on later requests: the server keeps no state for a client.

use callsheet_provide::json_rpc::{AnswerError, MAX_BATCH};
use serde::Deserialize;
use serde_json::json;

use crate::model::JsonText;
use crate::server::json_rpc::RpcContext;

/// The versions of the protocol that are spoken.
const VERSIONS: [&str; 1] = ["1.0"];
/// The methods.
const METHODS: [&str; 5] = [
    "tools/list",
    "tools/call",
    "tools/describe",
    "server/identity",
    "server/capabilities",
];

/// What a client may say of itself.
#[derive(Deserialize)]
struct WantedVersions {
    /// The versions that it speaks, the best first.
    protocol_versions: Option<Vec<String>>,
}

/// The capabilities, with the version that both sides speak. Without a common one the request is
/// refused, and the error names what is spoken here.
pub(super) fn answer(
    context: &RpcContext,
    params: Option<&JsonText>,
) -> Result<String, AnswerError> {
    let text = params.map_or("{}", JsonText::get);
    let text = if text == "null" { "{}" } else { text };
    let wanted: WantedVersions = serde_json::from_str(text).map_err(|error| {
        AnswerError::invalid_params("Invalid parameters").with_data(error.to_string().into())
    })?;
    let version = match &wanted.protocol_versions {
        None => VERSIONS.first(),
        Some(spoken) => spoken
            .iter()
            .find_map(|wanted| VERSIONS.iter().find(|version| *version == wanted)),
    };
    let Some(version) = version else {
        let error = AnswerError::invalid_params("no common protocol version");
        return Err(error.with_data(json!({"protocol_versions": VERSIONS})));
    };
    let config = context.shared.config.borrow();
    let capabilities = json!({
        "protocol_version": version,
        "protocol_versions": VERSIONS,
        "methods": METHODS,
        "capabilities": {
            "identity": true,
            "schema_identity": true,
            "definition_versions": true,
            "approvals": true,
            "interactions": true,
            "operations": true,
            "notifications": false,
        },
        "limits": {
            "batch_messages": MAX_BATCH,
            "body_bytes": config.server.max_body,
            "wait_ms": u64::try_from(config.mcp_face.wait.as_millis()).unwrap_or(u64::MAX),
        },
    });
    Ok(capabilities.to_string())
}
