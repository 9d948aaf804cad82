//! Exit codes for scripts, and the errors that lead to each.

use std::borrow::Cow;
use std::process::ExitCode;

use serde_json::Value;

use crate::app::StartError;
use crate::config::ConfigError;
use crate::config::edit::EditError;
use crate::model::WithNextStep as _;

/// The part of the help about first steps and exit codes.
pub(super) const HELP: &str = "\
First steps:
  callsheet demo       shows it at work with four sample scenarios
  callsheet init       finds what offers tools on this machine
  callsheet serve      runs the daemon; the other commands speak to it

Exit codes:
  0  done
  1  refused, no such thing, no answer, or a tool failed, or `check` or `doctor` found errors
  2  wrong usage, or what is to be checked cannot be read
  3  no daemon can be reached
  4  the configuration is wrong
  5  the daemon could not start or stop cleanly, or the output cannot be written
  6  the call waits for approval or input";

/// Wrong usage, as clap's own.
pub(super) const USAGE: u8 = 2;

/// Why a command failed. Each kind has its exit code.
#[derive(Debug)]
pub enum CommandError {
    /// The daemon refused, or the named thing does not exist. Code 1.
    Refused {
        /// The daemon's message.
        message: String,
        /// The next step, if there is one.
        hint: Option<String>,
    },
    /// The daemon refused with a problem document (RFC 9457). Code 1.
    Problem {
        /// Its message, in the words of the command line.
        message: String,
        /// The next step, if there is one.
        hint: Option<String>,
        /// The document as it came.
        document: Box<Value>,
    },
    /// `check` or `doctor` found errors, and has printed them. Code 1.
    Found,
    /// `doctor` found that the configuration is wrong, and has printed why. Code 4.
    FoundConfig,
    /// An argument is invalid, or the file that it names cannot be read. Code 2.
    Usage {
        /// Which, and why.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// The daemon cannot be reached. Code 3.
    Unreachable {
        /// What was tried and what happened.
        message: String,
        /// The next step.
        hint: String,
    },
    /// The configuration is wrong. Code 4.
    Config(Box<ConfigError>),
    /// A call waits for approval. Code 6.
    WaitsForApproval {
        /// The identifier of the approval.
        id: String,
        /// The command that waits for the decision.
        waiting: String,
    },
    /// The tool of a call asks its user a question. Code 6.
    WaitsForInput {
        /// The identifier of the interaction.
        id: String,
        /// What the tool asks.
        question: String,
    },
    /// The daemon could not start, serve or stop cleanly, or what the process itself needs failed,
    /// such as its output. Code 5.
    Daemon {
        /// What was tried, and the causes.
        error: anyhow::Error,
        /// The next step. The error may end with it.
        hint: Option<String>,
    },
}

impl CommandError {
    /// The exit code.
    pub fn code(&self) -> ExitCode {
        self.number().into()
    }

    /// The exit code as a number.
    pub(super) fn number(&self) -> u8 {
        match self {
            Self::Refused { .. } | Self::Problem { .. } | Self::Found => 1,
            Self::Usage { .. } => USAGE,
            Self::Unreachable { .. } => 3,
            Self::Config(_) | Self::FoundConfig => 4,
            Self::Daemon { .. } => 5,
            Self::WaitsForApproval { .. } | Self::WaitsForInput { .. } => 6,
        }
    }

    /// Wrong usage that clap found, in one sentence.
    pub(super) fn of_usage(error: &clap::Error, hint: String) -> Self {
        let text = error.to_string();
        let first: Vec<&str> = text
            .lines()
            .take_while(|line| !line.is_empty())
            .map(str::trim)
            .collect();
        let message = first.join(" ");
        Self::Usage {
            message: message
                .strip_prefix("error: ")
                .unwrap_or(&message)
                .to_owned(),
            hint,
        }
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        Self::Config(Box::new(error))
    }
}

impl From<EditError> for CommandError {
    fn from(error: EditError) -> Self {
        match error {
            EditError::Invalid { problems, .. } => problems.into(),
            error => Self::Refused {
                message: error.to_string(),
                hint: error.hint(),
            },
        }
    }
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Daemon { error, hint: None }
    }
}

impl From<StartError> for CommandError {
    fn from(error: StartError) -> Self {
        let StartError::State(cause) = &error;
        let hint = cause.next_step().map(Cow::into_owned);
        Self::Daemon {
            error: error.into(),
            hint,
        }
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}

/// The runtime every command runs on.
pub(super) fn runtime() -> Result<tokio::runtime::Runtime, CommandError> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}
