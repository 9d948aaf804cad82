//! `callsheet block NAME` and `callsheet trust NAME`: what an operator decides of a scenario.

use clap::Args;

use super::client::{Daemon, Query};
use super::{Failure, Remote, output};

/// Arguments of `block` and `trust`.
#[derive(Debug, Args)]
pub(super) struct Decide {
    /// Which scenario.
    name: String,
    /// Take this decision back.
    #[arg(long)]
    undo: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Decide {
    /// Takes the decision that the daemon knows as `action`, or takes it back, and tells what came of it.
    pub(super) async fn run(self, action: &str) -> Result<(), Failure> {
        let daemon = Daemon::of(&self.remote)?;
        let method = if self.undo { http::Method::DELETE } else { http::Method::POST };
        let answer = daemon.send(method, &["scenarios", &self.name, action], Query::new(), None, "state").await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            let text = |pointer| output::text(&answer.value, pointer);
            output::line(&format!("{} is {}: {}", text("/name"), text("/state"), text("/reason")));
        }
        Ok(())
    }
}
