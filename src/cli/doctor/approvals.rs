//! Checks who may decide approvals, if tools need them. Needs a running daemon, which knows the
//! tools.

use serde_json::Value;

use super::super::client::DaemonClient;
use super::super::{CommandError, output};
use super::report::{CheckArea, DoctorReport};

/// Checks whether callers can approve their own calls. Reports no entry if no tool needs approval.
pub(super) async fn check(daemon: Option<&DaemonClient>, report: &mut DoctorReport) {
    let Some(daemon) = daemon else { return };
    match fetch(daemon).await {
        Ok((0, _)) => {}
        Ok((tools, true)) => {
            let message = format!(
                "{}; approving needs the token of `server.operator_token`",
                needing_approval(tools)
            );
            report.ok(CheckArea::Approvals, daemon.address_text(), message);
        }
        Ok((tools, false)) => {
            let message = format!(
                "{}, but any caller can approve its own calls",
                needing_approval(tools)
            );
            let hint = "set `server.operator_token`, and do not give it to callers";
            report.warning(CheckArea::Approvals, daemon.address_text(), message, hint);
        }
        Err(CommandError::Problem { message, .. } | CommandError::Unreachable { message, .. }) => {
            report.error(
                CheckArea::Approvals,
                daemon.address_text(),
                message,
                "look at the daemon's log",
            );
        }
        Err(_) => report.error(
            CheckArea::Approvals,
            daemon.address_text(),
            "its answer cannot be read",
            "look at the daemon's log",
        ),
    }
}

fn needing_approval(tools: usize) -> String {
    let needs = if tools == 1 { "needs" } else { "need" };
    format!("{} {needs} approval", output::count(tools, "tool"))
}

/// The number of listed tools that need approval, and whether approving needs a token.
async fn fetch(daemon: &DaemonClient) -> Result<(usize, bool), CommandError> {
    let tools = daemon.list(Vec::new()).await?.value;
    let needs_approval = |tool: &&Value| tool["requires_approval"] == true;
    let count = output::list(&tools, "tools")
        .iter()
        .filter(needs_approval)
        .count();
    let approvals = daemon
        .get(
            &["approvals"],
            vec![("state", "waiting".to_owned())],
            "token_needed",
        )
        .await?
        .value;
    Ok((count, approvals["token_needed"] == true))
}
