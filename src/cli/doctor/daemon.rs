//! A running daemon: whether one answers, and which.

use std::time::Duration;

use super::super::Failure;
use super::super::client::Daemon;
use super::report::{Check, Report};

/// How long whoever listens there may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who answers at an address.
pub(super) enum Heard {
    /// A callsheet daemon of this version.
    Version(String),
    /// Somebody else, or nobody: what was heard.
    Other(String),
}

/// Asks who is there.
pub(super) async fn ask(daemon: &Daemon) -> Heard {
    match tokio::time::timeout(PATIENCE, daemon.version()).await {
        Ok(Ok(version)) => Heard::Version(version),
        Ok(Err(Failure::Refused { message, .. } | Failure::Unreachable { message, .. })) => Heard::Other(message),
        Ok(Err(_)) => Heard::Other("what it says cannot be understood".to_owned()),
        Err(_) => Heard::Other(format!("it takes connections and says nothing for {} s", PATIENCE.as_secs())),
    }
}

/// Looks at the daemon that was named; gives it back when it answers.
pub(super) async fn check(daemon: Daemon, report: &mut Report) -> Option<Daemon> {
    let subject = daemon.shown().to_owned();
    match ask(&daemon).await {
        Heard::Version(version) => {
            report.ok(Check::Daemon, &subject, format!("a callsheet daemon {version} answers"));
            Some(daemon)
        }
        Heard::Other(why) => {
            let hint = "start it with `callsheet serve`, or name another with `--url` or `CALLSHEET_URL`";
            report.error(Check::Daemon, &subject, why, hint);
            None
        }
    }
}
