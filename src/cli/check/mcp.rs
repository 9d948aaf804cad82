//! Lists the tools of MCP servers several times, over HTTP or as programs that are started for that
//! and ended again, and checks them. Calls no tool.

use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::super::{CommandError, output, watchdog};
use super::client;
use crate::config::Config;
use crate::config::client_files::{ClientServers, LeftOutReason, Variables, read_client_file};
use crate::model::{Awaited, Finding, FindingCode, REPORTED_AFTER, Target};
use crate::protocols::mcp::{Mcp, McpSession};
use crate::protocols::tool_discovery::Inspected;
use crate::protocols::{ListError, Session as _};
use crate::runtime::{Clock, Tasks};
use crate::transports::stdio::Children;
use crate::transports::{TransportError, Transports};

/// Lines of standard error that explain why a server cannot be listed.
const LAST_LINES: usize = 10;

/// How often it is looked whether a server answers.
const ANSWER_CHECK_INTERVAL: Duration = Duration::from_millis(200);

/// How long the lists of one server may take in all.
const INSPECTION_TIME_MAX: Duration = Duration::from_secs(120);

/// Why a server cannot be listed.
pub(in crate::cli) struct Unlisted {
    error: ListError,
    stderr: Vec<String>,
}

/// Lists the tools of a server as a daemon with this configuration would, and checks them.
pub(in crate::cli) async fn inspect_server(
    target: &Target,
    config: &Config,
) -> Result<Inspected, Unlisted> {
    let clock = Clock::system();
    let tasks = Tasks::new();
    let client = client::of_daemon(config, clock, tasks);
    let children = Children::watched(clock, watchdog::command());
    let transports = Transports::new(client).with_children(Arc::clone(&children));
    let inspected = match Mcp::default().session(target, &transports) {
        Ok(session) => {
            // It is nested deeply, and so are the commands that await it.
            let inspected = Box::pin(inspect_patiently(&session, target, clock)).await;
            inspected.map_err(|error| Unlisted {
                error,
                stderr: session.recent_errors(),
            })
        }
        Err(error) => Err(Unlisted {
            error: error.into(),
            stderr: Vec::new(),
        }),
    };
    // A program is ended with its session; this waits for it.
    let _ = children.close().await;
    inspected
}

/// Inspects a server within [`INSPECTION_TIME_MAX`], and reports meanwhile what is waited for.
async fn inspect_patiently(
    session: &McpSession,
    target: &Target,
    clock: Clock,
) -> Result<Inspected, ListError> {
    let mut inspecting = std::pin::pin!(session.inspect());
    let end = clock.now() + INSPECTION_TIME_MAX;
    let mut last = None;
    loop {
        tokio::select! {
            inspected = &mut inspecting => return inspected,
            () = clock.sleep_until(end) => {
                let timeout = TransportError::Timeout { url: target.to_string(), limit: INSPECTION_TIME_MAX };
                return Err(timeout.into());
            }
            () = clock.sleep(ANSWER_CHECK_INTERVAL) => {}
        }
        let Some(awaited) = session
            .awaited()
            .filter(|awaited| awaited.waited >= REPORTED_AFTER)
        else {
            continue;
        };
        // A person sees that time passes; a log gets one line.
        let round = awaited.waited.as_secs() / REPORTED_AFTER.as_secs();
        let is_due = if std::io::stderr().is_terminal() {
            last != Some(round)
        } else {
            last.is_none()
        };
        if is_due {
            last = Some(round);
            output::note(&output::sanitize(&waiting(&awaited)));
        }
    }
}

/// What is waited for, and how long that goes on.
fn waiting(awaited: &Awaited) -> String {
    format!(
        "{}; still waiting, gives up after {} min",
        awaited.message(),
        INSPECTION_TIME_MAX.as_secs() / 60
    )
}

impl Unlisted {
    /// What went wrong, in one sentence.
    pub(in crate::cli) fn message(&self) -> String {
        self.error.to_string()
    }

    /// The next step.
    pub(in crate::cli) fn hint(&self) -> String {
        let next = match &self.error {
            ListError::Transport(TransportError::CommandNotFound { .. }) => {
                "write the whole path of the command, or install it"
            }
            ListError::Transport(
                TransportError::NotStarted { .. } | TransportError::ProcessEnded { .. },
            ) => "run the command by hand to see what it needs",
            ListError::Transport(refusal) if refusal.refuses_host() => {
                "use an address that it allows, such as localhost, or add this host name to those that it allows"
            }
            ListError::Transport(TransportError::Status {
                status: 401 | 403, ..
            }) => {
                "give it the credential that it wants, as `headers` of a client's file or of [[scenarios]]"
            }
            ListError::Transport(TransportError::Timeout { .. }) => {
                "see whether it answers at all, and what it waits for"
            }
            ListError::Transport(_) => "start it, or correct its address",
            ListError::Incompatible { .. } => "update the server",
            ListError::NotThisProtocol(_)
            | ListError::Malformed(_)
            | ListError::VersionUnreadable(_) => "correct the server; its tools cannot be listed",
        };
        next.to_owned()
    }

    /// Prints what the program wrote last, which mostly says what is wrong. `of` is its name, where
    /// several are checked.
    pub(in crate::cli) fn print_stderr(&self, of: Option<&str>) {
        let last = &self.stderr[self.stderr.len().saturating_sub(LAST_LINES)..];
        for line in last {
            let of = of.map(|name| format!("{name}: ")).unwrap_or_default();
            output::note(&format!("{of}stderr: {}", output::sanitize(line)));
        }
    }

    /// The same as findings of an inspection.
    pub(in crate::cli) fn into_inspected(self) -> Inspected {
        let finding = Finding::new(FindingCode::ManifestRefused, self.message()).hint(self.hint());
        Inspected::refused(vec![finding])
    }

    /// The same as the failure of the whole command.
    pub(in crate::cli) fn into_failure(self) -> CommandError {
        self.print_stderr(None);
        CommandError::Refused {
            message: self.message(),
            hint: Some(self.hint()),
        }
    }
}

/// The servers that a client's file names. `None` if the document is none of a client.
pub(super) fn servers_in(document: &str, path: &Path) -> Option<ClientServers> {
    let environment = |name: &str| std::env::var(name).ok();
    let absolute = std::path::absolute(path).ok()?;
    let entries = read_client_file(document, &absolute, &Variables::new(&environment)).ok()?;
    let mut servers = ClientServers {
        with_disabled: true,
        ..ClientServers::default()
    };
    servers.add(entries, &absolute);
    Some(servers)
}

/// The findings about entries that cannot be checked.
pub(super) fn left_out(servers: &ClientServers) -> impl Iterator<Item = (String, Inspected)> {
    let unusable = servers
        .left_out
        .iter()
        .filter(|entry| !matches!(entry.why, LeftOutReason::SameAs(..)));
    unusable.map(|entry| {
        let finding = Finding::new(FindingCode::EntryIgnored, entry.why.to_string());
        (entry.name.clone(), Inspected::refused(vec![finding]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::StdioTarget;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_never_answers_is_given_up_after_two_minutes() {
        let config = Config::for_state("state.db");
        let clock = Clock::system();
        let client = client::of_daemon(&config, clock, Tasks::new());
        let children = Children::new(clock);
        let transports = Transports::new(client).with_children(Arc::clone(&children));
        let target = Target::Stdio(Arc::new(
            StdioTarget::new("/bin/sh").with_args(["-c", "while :; do sleep 1; done"]),
        ));
        let Ok(session) = Mcp::default().session(&target, &transports) else {
            panic!("it is a program")
        };
        let begun = clock.now();
        let Err(error) = inspect_patiently(&session, &target, clock).await else {
            panic!("it never answers")
        };
        let took = clock.now() - begun;
        assert_eq!(
            error.to_string(),
            format!("no answer within 120s from {target}")
        );
        assert!(
            took >= INSPECTION_TIME_MAX && took < INSPECTION_TIME_MAX + Duration::from_secs(1),
            "{took:?}"
        );
        drop(session);
        let _ = children.close().await;
    }

    #[test]
    fn the_note_says_when_it_gives_up() {
        let awaited = Awaited {
            answer_to: "initialize",
            waited: REPORTED_AFTER,
            output: None,
        };
        assert_eq!(
            waiting(&awaited),
            "no answer for 10 s; still waiting, gives up after 2 min"
        );
    }
}
