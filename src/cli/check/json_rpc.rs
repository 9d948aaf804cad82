//! Requests the identity and the list of a server that speaks plain JSON-RPC several times, and
//! checks them. Calls no tool.

use super::client;
use crate::config::Config;
use crate::model::{Finding, FindingCode, Target};
use crate::protocols::ListError;
use crate::protocols::json_rpc_tools::JsonRpcSession;
use crate::protocols::tool_discovery::Inspected;
use crate::runtime::{Clock, Tasks};
use crate::transports::Transports;

/// Checks the server at a target as a daemon with this configuration would list it. `None` if what
/// answers there speaks something else.
pub(super) async fn inspect_server(target: &Target, config: &Config) -> Option<Inspected> {
    let client = client::of_daemon(config, Clock::system(), Tasks::new());
    let session = JsonRpcSession::new(target, &Transports::new(client)).ok()?;
    match session.inspect().await {
        Ok(inspected) => Some(inspected),
        Err(
            error @ (ListError::Malformed(_)
            | ListError::VersionUnreadable(_)
            | ListError::Incompatible { .. }),
        ) => {
            let finding = Finding::new(FindingCode::ManifestRefused, error.to_string());
            let findings = vec![finding.hint("correct the server; its tools cannot be listed")];
            Some(Inspected::refused(findings))
        }
        Err(ListError::Transport(_) | ListError::NotThisProtocol(_)) => None,
    }
}
