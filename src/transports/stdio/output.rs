//! Runs a program once for what it prints, such as a secret: without a shell, within a short time
//! and a bounded size, in an environment as small as that of other children.
//!
//! What it writes on standard error is dropped: it may be a secret, too.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::group::{EndSignal, ProcessGroup};
use super::{environment, lookup};
use crate::model::StdioTarget;

/// How long it may run.
const LIMIT: Duration = Duration::from_secs(5);

/// Ends the group of a program, whatever way its run ends.
struct RunningGroup(Option<ProcessGroup>);

impl Drop for RunningGroup {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            group.signal(EndSignal::Kill);
        }
    }
}

/// The text that a program prints, of at most so many bytes. The error is a sentence without
/// anything that it printed. Dropping the future ends the program.
pub(in crate::transports) async fn run_for_output(
    command: &[String],
    most: usize,
) -> Result<String, String> {
    let [program, args @ ..] = command else {
        return Err("it names no program".to_owned());
    };
    let target = StdioTarget::new(program);
    let program =
        lookup::program(&target, std::env::var_os("PATH")).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(environment::passed(std::env::vars_os()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let _group = RunningGroup(child.id().map(ProcessGroup::led_by));
    let Some(stdout) = child.stdout.take() else {
        return Err("its output cannot be read".to_owned());
    };
    let run = async {
        let mut printed = Vec::new();
        let read = stdout.take(most as u64 + 1).read_to_end(&mut printed).await;
        read.map_err(|error| format!("its output cannot be read: {error}"))?;
        if printed.len() > most {
            return Err(format!("it printed more than {most} bytes"));
        }
        let status = child
            .wait()
            .await
            .map_err(|error| format!("its end is not known: {error}"))?;
        if !status.success() {
            return Err(format!("it failed ({status})"));
        }
        String::from_utf8(printed).map_err(|_| "what it printed is not a text".to_owned())
    };
    let late = |_| Err(format!("it did not end within {LIMIT:?}"));
    tokio::time::timeout(LIMIT, run).await.unwrap_or_else(late)
}
