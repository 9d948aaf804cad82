//! `callsheet service install|uninstall`: the daemon as a service of this user, run by systemd.
//!
//! The unit is `config/systemd/user/callsheet.service` with the path of this program. Only a unit
//! that this command wrote is replaced or removed. Never touches system units.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clap::{Args, Subcommand};
use tokio::process::Command;

use super::{CommandError, output};
use crate::config::edit::{FileReaders, replace};

/// The unit as it is in the repository.
const UNIT: &str = include_str!("../../config/systemd/user/callsheet.service");
/// The line of [`UNIT`] that names the program.
const START: &str = "ExecStart=/usr/bin/callsheet serve\n";
/// The name of the unit.
const NAME: &str = "callsheet.service";
/// The first line of each unit that this command writes.
const MARK: &str =
    "# Written by `callsheet service install`; `callsheet service uninstall` removes it.\n";

/// Arguments of `service`.
#[derive(Debug, Args)]
pub(super) struct ServiceArgs {
    #[command(subcommand)]
    action: ServiceAction,
}

/// What to do with the service.
#[derive(Debug, Subcommand)]
enum ServiceAction {
    /// Write the unit of this user, enable it and start it.
    Install {
        /// Configuration file of the service; by default the one in this user's configuration
        /// folder.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Only write the unit; systemd is not called.
        #[arg(long)]
        no_start: bool,
    },
    /// Stop and disable the service, and remove its unit.
    Uninstall,
}

impl ServiceArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let file = unit_file()?;
        match self.action {
            ServiceAction::Install { config, no_start } => {
                write_unit(&file, config.as_deref())?;
                output::line(&format!("written: {}", file.display()));
                if no_start {
                    output::line(&format!(
                        "start it with `systemctl --user enable --now {NAME}`"
                    ));
                    return Ok(());
                }
                systemctl(&["daemon-reload"]).await?;
                systemctl(&["enable", "--now", NAME]).await?;
                output::line(
                    "callsheet runs as a service of this user; `callsheet scenarios` shows its providers",
                );
                output::line(
                    "it ends when you log out, unless `loginctl enable-linger` is set for you",
                );
            }
            ServiceAction::Uninstall => {
                require_own(&file)?.ok_or_else(|| CommandError::Refused {
                    message: format!(
                        "the service is not installed: there is no {}",
                        file.display()
                    ),
                    hint: None,
                })?;
                // The unit is removed only when the service has stopped.
                systemctl(&["disable", "--now", NAME]).await?;
                std::fs::remove_file(&file)?;
                systemctl(&["daemon-reload"]).await?;
                output::line(&format!("stopped and removed: {}", file.display()));
            }
        }
        Ok(())
    }
}

/// Where systemd looks for the units of this user (systemd.unit(5)).
fn unit_file() -> Result<PathBuf, CommandError> {
    let folder = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config =
        folder("XDG_CONFIG_HOME").or_else(|| folder("HOME").map(|home| home.join(".config")));
    config
        .map(|config| config.join("systemd/user").join(NAME))
        .ok_or_else(|| CommandError::Usage {
            message: "this user has no home folder, so there is no folder for the unit".into(),
            hint: "set HOME".into(),
        })
}

/// Writes the unit for this program.
fn write_unit(file: &Path, config: Option<&Path>) -> Result<(), CommandError> {
    require_own(file)?;
    let config = config.map(std::path::absolute).transpose()?;
    if let Some(config) = config.as_ref().filter(|config| !config.is_file()) {
        return Err(CommandError::Usage {
            message: format!("there is no file {}", config.display()),
            hint: "name the configuration file of the service, or leave `--config` out".into(),
        });
    }
    let program = std::env::current_exe()?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    replace(
        file,
        &unit(&program, config.as_deref())?,
        FileReaders::AsBefore,
    )?;
    Ok(())
}

/// The unit that starts `program`, with this configuration file.
fn unit(program: &Path, config: Option<&Path>) -> Result<String, CommandError> {
    let mut start = format!("ExecStart={} serve", unit_word(program)?);
    if let Some(config) = config {
        start.push_str(" --config ");
        start.push_str(&unit_word(config)?);
    }
    start.push('\n');
    Ok(format!("{MARK}{}", UNIT.replacen(START, &start, 1)))
}

/// A path as one word of a command line in a unit (systemd.service(5), "Command lines"): quoted,
/// with `%` and `$` doubled, which would stand for other texts.
fn unit_word(path: &Path) -> Result<String, CommandError> {
    let text = path
        .to_str()
        .filter(|text| !text.contains(char::is_control))
        .ok_or_else(|| CommandError::Usage {
            message: format!("{} cannot be written into a unit", path.display()),
            hint: "use a path of plain characters".into(),
        })?;
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

/// Refuses a unit that this command has not written. `None` if there is no file.
fn require_own(file: &Path) -> Result<Option<()>, CommandError> {
    match std::fs::read_to_string(file) {
        Ok(text) if text.starts_with(MARK) => Ok(Some(())),
        Ok(_) => Err(CommandError::Refused {
            message: format!("{} was not written by callsheet", file.display()),
            hint: Some("move it away first".into()),
        }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Runs `systemctl --user`. Its own messages stand in the error.
async fn systemctl(arguments: &[&str]) -> Result<(), CommandError> {
    let line = format!("systemctl --user {}", arguments.join(" "));
    let refused = |why: String| CommandError::Refused {
        message: format!("`{line}` failed: {why}"),
        hint: Some(format!("run it in a login session of this user: `{line}`")),
    };
    let run = Command::new("systemctl")
        .arg("--user")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await;
    match run {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(refused(
            String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(refused("systemd is not installed".into()))
        }
        Err(error) => Err(refused(error.to_string())),
    }
}
