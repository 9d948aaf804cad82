//! `callsheet identity`: the identity of the list, which stays as long as the list does.

use clap::Args;

use super::client::{DaemonClient, QueryPairs};
use super::{CommandError, RemoteArgs, output};

/// Arguments of `identity`.
#[derive(Debug, Args)]
pub(super) struct IdentityArgs {
    /// Of the list with the preferences of this profile.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// Of the list with the preferences of this conversation.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl IdentityArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let scope = [
            ("profile", self.profile),
            ("permission", self.permission),
            ("chat_id", self.chat),
        ];
        let query: QueryPairs<'_> = scope
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)))
            .collect();
        let identity = daemon.rpc("server/identity", query).await?;
        if self.remote.json {
            output::json(&identity);
            return Ok(());
        }
        for (what, pointer) in [
            ("identity", "/server_id"),
            ("with schemas", "/schema_id"),
            ("protocol", "/protocol_version"),
        ] {
            output::line(&format!("{what:<14}{}", output::text(&identity, pointer)));
        }
        output::line(&format!(
            "{:<14}{}",
            "tools",
            output::number(&identity, "/tools_count")
        ));
        Ok(())
    }
}
