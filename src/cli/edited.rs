//! The configuration file that `add` and `remove` change: the one that the running daemon follows,
//! or else the one that `serve` would take. And what the daemon makes of the change.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::client::{DaemonClient, NotListed, QueryPairs};
use super::{CommandError, RemoteArgs, config_place, output, user_place};
use crate::config::LoadOptions;
use crate::config::edit::{ConfigEdit, EditError, WrittenConfig};
use crate::model::{FindingCode, SourceId};
use crate::runtime::Clock;

/// How long a daemon may take to read a file that has changed, and to follow it.
const RELOAD: Duration = Duration::from_secs(10);
/// How long a new scenario is waited for: `npx` may have to download its program first.
const FIRST_ANSWER: Duration = Duration::from_secs(30);
/// After this time a person sees that the first answer is waited for.
const ANNOUNCED_AFTER: Duration = Duration::from_secs(2);
/// Characters of a line that is shown.
const LINE: usize = 100;
/// How often the daemon is asked meanwhile.
const EVERY: Duration = Duration::from_millis(100);

/// A configuration file, and the daemon that follows it.
#[derive(Debug)]
pub(super) struct EditedFile {
    /// The file; it need not exist.
    pub(super) path: PathBuf,
    /// The daemon, if one runs that follows this file.
    daemon: Option<FollowingDaemon>,
}

/// A daemon that follows the file.
#[derive(Debug)]
struct FollowingDaemon {
    client: DaemonClient,
    /// How often it had taken another configuration before the change.
    reloads: i64,
    /// The `PATH` in which it finds programs.
    search_path: Option<String>,
}

impl EditedFile {
    /// The file that these arguments mean.
    pub(super) async fn find(remote: &RemoteArgs) -> Result<Self, CommandError> {
        let is_named = remote.address().is_some();
        let configuration = async {
            // None of its requests needs the operator's token.
            let client = DaemonClient::from_args(remote)?;
            let state = client.configuration().await?;
            Ok((client, state))
        };
        let (client, state) = match configuration.await {
            Ok(answered) => answered,
            // One that runs and does not answer follows the file all the same.
            Err(error) if is_named || matches!(error, CommandError::Refused { .. }) => {
                return Err(error);
            }
            // Without a daemon, what is changed is the file that one would take.
            Err(_) => {
                return Ok(Self {
                    path: config_place(remote.config.as_deref())?,
                    daemon: None,
                });
            }
        };
        if is_named && !client.is_local() {
            return Err(CommandError::Usage {
                message: format!(
                    "the daemon at {} is on another machine, and so is its file",
                    client.address_text()
                ),
                hint: "use the form on the first page of its dashboard, or run this command there"
                    .into(),
            });
        }
        if state.is_null() {
            if is_named {
                let message = format!(
                    "the daemon at {} follows no configuration file",
                    client.address_text()
                );
                return Err(CommandError::Refused {
                    message,
                    hint: None,
                });
            }
            return Ok(Self {
                path: config_place(remote.config.as_deref())?,
                daemon: None,
            });
        }
        let search_path = state["search_path"].as_str().map(str::to_owned);
        let daemon = FollowingDaemon {
            client,
            reloads: output::number(&state, "/reloads"),
            search_path,
        };
        let followed = state["file"]
            .as_str()
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let Some(named) = &remote.config else {
            if let Some(followed) = &followed
                && daemon.client.may_be_of_others()
            {
                check_is_own(followed, &daemon.client)?;
            }
            // A daemon without a file takes the one in the usual place as soon as it is there.
            let path = followed.map_or_else(user_place, Ok)?;
            return Ok(Self {
                path,
                daemon: Some(daemon),
            });
        };
        let path = config_place(Some(named))?;
        let is_followed = followed.is_some_and(|followed| is_same(&followed, &path));
        Ok(Self {
            path,
            daemon: is_followed.then_some(daemon),
        })
    }

    /// Reads the file.
    pub(super) fn open(&self) -> ConfigEdit {
        let mut edit = ConfigEdit::open(&self.path, &LoadOptions::from_process());
        let Some(daemon) = &self.daemon else {
            return edit;
        };
        if let Some(path) = &daemon.search_path {
            edit.for_daemon_with_path(path);
        }
        if let Some(address) = daemon.client.socket_address() {
            edit.for_daemon_at(address);
        }
        edit
    }

    /// What the daemon knows of a scenario now; `None` without a daemon, or if it knows none.
    pub(super) async fn known(&self, name: &str) -> Option<Value> {
        let daemon = self.daemon.as_ref()?;
        Some(
            daemon
                .client
                .get(&["scenarios", name], QueryPairs::new(), "state")
                .await
                .ok()?
                .value,
        )
    }

    /// The findings about texts of a scenario that may speak to a model behind its user's back.
    pub(super) async fn suspicious_texts(&self, name: &str) -> Vec<Value> {
        let Some(daemon) = &self.daemon else {
            return Vec::new();
        };
        let codes = [FindingCode::SuspiciousText, FindingCode::HiddenCharacters];
        let mut query: QueryPairs = codes
            .iter()
            .map(|code| ("code", code.as_str().to_owned()))
            .collect();
        query.push(("scenario", name.to_owned()));
        let answer = daemon.client.get(&["findings"], query, "findings").await;
        answer
            .map(|answer| output::list(&answer.value, "findings").to_vec())
            .unwrap_or_default()
    }

    /// Waits until the daemon has taken the change.
    async fn reloaded(daemon: &FollowingDaemon, clock: Clock) -> Result<(), CommandError> {
        let end = clock.now() + RELOAD;
        loop {
            let state = daemon.client.configuration().await?;
            if let Some(problem) = state.pointer("/refused/problems/0") {
                let message = output::text(problem, "/message");
                let hint = output::text(problem, "/hint");
                let message = format!("the daemon does not take the file: {message}");
                return Err(CommandError::Refused {
                    message,
                    hint: Some(hint),
                });
            }
            if output::number(&state, "/reloads") > daemon.reloads || clock.now() > end {
                return Ok(());
            }
            clock.sleep(EVERY).await;
        }
    }

    /// The health of a scenario whose entry was replaced, after it was polled at its new place.
    /// Until then its health is that of the entry before. `None` without a daemon, or if it cannot
    /// be polled.
    pub(super) async fn replaced(&self, name: &str) -> Result<Option<Value>, CommandError> {
        let Some(daemon) = &self.daemon else {
            return Ok(None);
        };
        Self::reloaded(daemon, Clock::system()).await?;
        let path = ["scenarios", name, "refresh"];
        let polled =
            daemon
                .client
                .send(http::Method::POST, &path, QueryPairs::new(), None, "state");
        let polled = tokio::time::timeout(FIRST_ANSWER, polled).await;
        Ok(polled.ok().and_then(Result::ok).map(|answer| answer.value))
    }

    /// The health of a scenario after the daemon has taken its entry and `has_answered` holds for
    /// it, or after a limited time. `None` without a daemon.
    ///
    /// # Errors
    /// The daemon lists no such scenario, and says why.
    pub(super) async fn added(
        &self,
        name: &str,
        has_answered: impl Fn(&Value) -> bool,
    ) -> Result<Option<Value>, CommandError> {
        let Some(daemon) = &self.daemon else {
            return Ok(None);
        };
        let clock = Clock::system();
        Self::reloaded(daemon, clock).await?;
        let began = clock.now();
        let mut is_announced = !std::io::stderr().is_terminal();
        loop {
            let known = self.known(name).await;
            if known.as_ref().is_some_and(&has_answered) {
                return Ok(known);
            }
            // A scenario that was just written is not known at once.
            if known.is_none()
                && clock.now() > began + ANNOUNCED_AFTER
                && let Some(NotListed { message, hint }) = daemon.client.not_listed(name).await
            {
                let message =
                    format!("the entry of `{name}` is written, but it is not listed: {message}");
                return Err(CommandError::Refused {
                    message,
                    hint: Some(hint).filter(|hint| !hint.is_empty()),
                });
            }
            if clock.now() > began + FIRST_ANSWER {
                return match known {
                    Some(known) => Ok(Some(known)),
                    None => Err(unknown(name)),
                };
            }
            if !is_announced && clock.now() > began + ANNOUNCED_AFTER {
                is_announced = true;
                output::note(&format!("waiting for the first answer of {name}"));
            }
            clock.sleep(EVERY).await;
        }
    }

    /// The health of a scenario after the daemon has followed that its entry is gone; `None`
    /// without a daemon, or if it knows no such scenario.
    pub(super) async fn removed(&self, name: &str) -> Result<Option<Value>, CommandError> {
        let Some(daemon) = &self.daemon else {
            return Ok(None);
        };
        let clock = Clock::system();
        Self::reloaded(daemon, clock).await?;
        let end = clock.now() + RELOAD;
        loop {
            let Some(known) = self.known(name).await else {
                return Ok(None);
            };
            // Another source may still name it.
            let is_settled = matches!(
                output::text(&known, "/state").as_str(),
                "removed" | "blocked"
            ) || output::text(&known, "/source") != SourceId::STATIC.as_str();
            if is_settled || clock.now() > end {
                return Ok(Some(known));
            }
            clock.sleep(EVERY).await;
        }
    }

    /// Says how to have a daemon take the file, where none does.
    pub(super) fn print_next(&self) {
        if self.daemon.is_none() {
            let usual = config_place(None).is_ok_and(|usual| is_same(&usual, &self.path));
            let config = if usual {
                String::new()
            } else {
                format!(" --config {}", self.path.display())
            };
            output::wrapped(
                "",
                &format!("no daemon follows this file; start one with `callsheet serve{config}`"),
            );
        }
    }
}

/// Refuses the file of a daemon that only listens where the configuration of this command says, if
/// this command reads another file: it may be of another user, or of another home folder.
fn check_is_own(followed: &Path, client: &DaemonClient) -> Result<(), CommandError> {
    let own = config_place(None)?;
    if is_same(followed, &own) {
        return Ok(());
    }
    let address = client.address_text();
    Err(CommandError::Refused {
        message: format!(
            "the daemon at {address} follows {}, and this command reads {}",
            followed.display(),
            own.display()
        ),
        hint: Some(format!(
            "`--url {address}` changes the file of that daemon, `--config {}` the other one",
            own.display()
        )),
    })
}

/// The error that a daemon follows the file and shows no scenario of a name in it.
fn unknown(name: &str) -> CommandError {
    CommandError::Refused {
        message: format!("the entry of `{name}` is written, but the daemon does not show it"),
        hint: Some("`callsheet findings` shows what it leaves out, and why".to_owned()),
    }
}

/// The error of a change. Prints the lines that a person can write, where this program cannot.
pub(super) fn failed(error: EditError) -> CommandError {
    if let EditError::Unwritable { lines, .. } = &error
        && !lines.is_empty()
    {
        output::line(lines.trim_end());
    }
    error.into()
}

/// Says where the secrets went.
pub(super) fn print_secrets(written: &WrittenConfig) {
    if let Some(secrets) = &written.secrets {
        output::wrapped(
            "",
            &format!(
                "the values of variables and headers are in {}",
                secrets.display()
            ),
        );
    }
}

/// Prints lines of a file, indented; a long one, such as that with `PATH`, is cut.
pub(super) fn print_lines(lines: &str) {
    for line in lines.trim_end().lines() {
        output::line(&format!("  {}", output::cut(line, LINE)));
    }
}

/// Whether both are the same file.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || one
            .canonicalize()
            .ok()
            .is_some_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
