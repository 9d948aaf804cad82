//! The command line: one file or folder per command.
//!
//! ```text
//! words -> groups, clap -> Command::run -> DaemonClient -> running daemon   (most commands)
//!                                       -> crate::app: the daemon itself    (serve, demo)
//!                                       -> files, scenarios directly        (check, init, ...)
//! Result -> output, table, paragraph (what to say) -> failure, exit (why not, and the exit code)
//! ```
//!
//! What is kept true here:
//!
//! - A command holds no logic of its own: it requests something and shows the answer.
//! - Only `output.rs` prints, besides clap with its own help. Text from scenarios passes its
//!   `sanitize`; an answer with `--json` keeps its bytes.
//! - A command that fails returns a [`CommandError`], which gives the message, the next step and
//!   the exit code.
//!
//! Read in this order:
//!
//! 1. This file, `exit.rs`, `failure.rs`, `output.rs`, `table.rs`, `paragraph.rs`, `groups.rs`.
//! 2. `client.rs` (requests to the daemon), `instance.rs` (where it is), `watch.rs`.
//! 3. Through the daemon: `tools.rs`, `search.rs`, `explain.rs`, `history.rs`, `identity.rs`,
//!    `findings.rs`, `scenarios.rs`, `refresh.rs`, `decide.rs`, `login.rs`, `prefs.rs`,
//!    `profiles.rs`, `logs.rs`, `call/`, `turn.rs`, `approvals.rs`, `operations.rs`, `by_id.rs`, `bundle/`, `complete.rs`.
//! 4. The daemon: `serve.rs`, `log.rs`, `otlp.rs`, `watchdog.rs`, `demo/`; `mcp.rs` is a front of
//!    it, for which `start.rs` starts one.
//! 5. Files and machine: `check/`, `doctor/`, `listeners.rs`, `init/`, `import/`, `connect.rs`,
//!    `add.rs` with `edited.rs`, `config.rs`, `state.rs`, `service.rs`, `completions.rs`, `man.rs`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use url::Url;

use crate::config::LoadOptions;
use crate::runtime::memory;

mod add;
mod approvals;
mod bundle;
mod by_id;
mod call;
mod check;
mod client;
mod complete;
mod completions;
mod config;
mod connect;
mod decide;
mod demo;
mod doctor;
mod edited;
mod exit;
mod explain;
mod failure;
mod findings;
mod groups;
mod history;
mod identity;
mod import;
mod init;
mod instance;
mod listeners;
mod log;
mod login;
mod logs;
mod man;
mod mcp;
mod operations;
#[cfg(feature = "otlp")]
mod otlp;
mod output;
mod paragraph;
mod pins;
mod prefs;
mod profiles;
mod refresh;
mod scenarios;
mod search;
mod serve;
mod service;
mod start;
mod state;
mod table;
mod tools;
mod turn;
mod watch;
mod watchdog;

pub use exit::CommandError;

/// One always-current list of every tool that your AI agents may call.
#[derive(Debug, Parser)]
#[command(name = "callsheet", version = env!("CALLSHEET_VERSION"), after_help = exit::HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon until it is stopped.
    #[command(alias = "start")]
    Serve(serve::ServeArgs),
    /// Run four sample scenarios and the daemon, and show the resulting list.
    Demo(demo::DemoArgs),
    /// Find what offers tools on this machine, and write a first configuration; needs no daemon.
    Init(init::InitArgs),
    /// List the tools, as a table or as an LLM request needs them.
    #[command(alias = "list")]
    Tools(tools::ToolsArgs),
    /// Find the tools that fit a text best.
    Search(search::SearchArgs),
    /// List the scenarios with their health.
    #[command(alias = "status")]
    Scenarios(scenarios::ScenariosArgs),
    /// Show why a tool is or is not in the list.
    Explain(explain::ExplainArgs),
    /// Show how the definition of a tool changed.
    History(history::HistoryArgs),
    /// Show how definitions differ from what was accepted, and accept them.
    Pins(pins::PinsArgs),
    /// Show the identity of the list: it stays as long as the list does.
    Identity(identity::IdentityArgs),
    /// List what was left out, renamed, hidden or kept from an older answer, and why.
    Findings(findings::FindingsArgs),
    /// Run a tool.
    Call(call::CallArgs),
    /// Show the latest calls and the changes of scenarios.
    Logs(logs::LogsArgs),
    /// Run the tool calls in a model's response, and print the messages for the next request.
    Turn(turn::TurnArgs),
    /// Show, set and reset preferences.
    Prefs(prefs::PrefsArgs),
    /// Show, set and remove profiles: what callers that name one may see and call at most.
    Profiles(profiles::ProfilesArgs),
    /// List calls that wait for approval, and approve or reject them.
    Approvals(approvals::ApprovalsArgs),
    /// List long-running operations, and cancel them.
    Operations(operations::OperationsArgs),
    /// List, show and change bundles of stored tools.
    Bundle(bundle::BundleArgs),
    /// Poll scenarios for their tools now.
    Refresh(refresh::RefreshArgs),
    /// Take the tools of a scenario out of the list, whatever names it, until `--undo`.
    Block(decide::BlockArgs),
    /// Unblock a scenario: the same as `block --undo`.
    #[command(hide = true)]
    Unblock(decide::UnblockArgs),
    /// Trust a scenario that was found by an untrusted source, such as the local network.
    Trust(decide::TrustArgs),
    /// Add a scenario to the configuration file: an address, or a program to start.
    Add(add::AddArgs),
    /// Take a scenario out of the configuration file: the opposite of `add`.
    Remove(add::RemoveArgs),
    /// Delete what is remembered of a scenario that is removed or down: health, names, findings.
    Forget(decide::ForgetArgs),
    /// Log in to a scenario behind OAuth, in a browser.
    Login(login::LoginArgs),
    /// Forget the login for a scenario.
    Logout(login::LogoutArgs),
    /// Give the tools of the running daemon to an MCP client, over standard input and output.
    Mcp(mcp::McpArgs),
    /// Show or write how an MCP client is configured to use callsheet; needs no daemon.
    Connect(connect::ConnectArgs),
    /// Take over the MCP servers that other programs on this machine use; needs no daemon.
    Import(import::ImportArgs),
    /// Check a manifest and how it is served; needs no daemon.
    Check(check::CheckArgs),
    /// Find what prevents the daemon or a scenario from working, and how to fix it; changes no
    /// data.
    Doctor(doctor::DoctorArgs),
    /// Show the effective configuration.
    Config(config::ConfigArgs),
    /// Back up the stored state, or put a backup in its place.
    State(state::StateArgs),
    /// Run the daemon as a service of this user, or remove that service.
    Service(service::ServiceArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Print what may stand at the end of a command line; asked by completion scripts.
    #[command(hide = true)]
    Complete(complete::CompleteArgs),
    /// Print the version: the same as `--version`.
    #[command(hide = true)]
    Version,
    /// Print manual pages.
    #[command(hide = true)]
    Man(man::ManArgs),
    /// Run the sample MCP server of `demo` over standard input and output; started by `demo`.
    #[command(hide = true)]
    DemoServer,
    /// End the child processes of a daemon that was killed; started by the daemon itself.
    #[command(hide = true)]
    Watchdog,
}

/// Which daemon to speak to, and how to print.
#[derive(Debug, Clone, Args)]
pub(crate) struct RemoteArgs {
    /// Address of the daemon; by default `CALLSHEET_URL`, or that of the running daemon of this
    /// user.
    #[arg(long, value_name = "URL", help_heading = "Daemon")]
    url: Option<String>,
    /// Configuration file to take the listen address from, as `serve` takes it.
    #[arg(long, value_name = "FILE", help_heading = "Daemon")]
    config: Option<PathBuf>,
    /// Print the daemon's JSON answer instead of a table, and errors as JSON.
    #[arg(long, help_heading = "Output")]
    json: bool,
}

impl RemoteArgs {
    /// The address of the daemon, if it is named.
    fn address(&self) -> Option<String> {
        named_address(self.url.as_deref())
    }

    /// That address, read.
    fn parsed(&self, address: &str) -> Result<Url, CommandError> {
        parse_named(self.url.as_deref(), address)
    }
}

/// The address that `--url` or else `CALLSHEET_URL` gives. An empty variable is one that is not
/// set. The parser does not read the variable: its usage lines would then show `--url` as required.
fn named_address(url: Option<&str>) -> Option<String> {
    let named = url
        .map(str::to_owned)
        .or_else(|| std::env::var("CALLSHEET_URL").ok());
    named.filter(|url| !url.is_empty())
}

/// Reads the address that `--url` or else `CALLSHEET_URL` gives. The error names the variable if it
/// is the origin: nobody looks for a mistake there.
fn parse_named(flag: Option<&str>, address: &str) -> Result<Url, CommandError> {
    client::parse_url(address).map_err(|error| match error {
        CommandError::Usage { message, hint } if flag.is_none() => CommandError::Usage {
            message: format!("environment CALLSHEET_URL: {message}"),
            hint,
        },
        error => error,
    })
}

/// The configuration file that a command changes: the one that is named, the one that `serve`
/// takes, or else the one of this user.
fn config_place(named: Option<&Path>) -> Result<PathBuf, CommandError> {
    let options = LoadOptions {
        file: named.map(Path::to_owned),
        ..LoadOptions::from_process()
    };
    let candidates = options.candidate_files();
    let existing = candidates.iter().find(|path| path.exists()).cloned();
    match (existing, named) {
        (Some(existing), _) => Ok(existing),
        (None, Some(named)) => Ok(std::path::absolute(named)?),
        // A file in the working folder is used when it is there, and not made there unasked.
        (None, None) => user_place(),
    }
}

/// The configuration file of this user, which need not exist.
fn user_place() -> Result<PathBuf, CommandError> {
    LoadOptions::from_process()
        .user_file()
        .ok_or_else(|| CommandError::Usage {
            message: "there is no configuration file, and no home folder to make one in".into(),
            hint: "name one with `--config`".into(),
        })
}

/// How long the process waits at its end for work on blocking threads.
const BLOCKING_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs the command line. Prints what there is to say and returns the exit code.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    run_collected(&arguments.into_iter().collect::<Vec<_>>())
}

/// The same for one type of arguments. So all commands are compiled with this library: what is
/// generic is compiled with each program that uses it, and all that it awaits.
fn run_collected(arguments: &[OsString]) -> ExitCode {
    let parsed = groups::grouped(Cli::command())
        .try_get_matches_from(arguments)
        .and_then(|matches| {
            if wants_json(&matches) {
                output::as_json();
            }
            Cli::from_arg_matches(&matches)
        });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return unparsed(&error, arguments),
    };
    if matches!(cli.command, Command::Serve(_)) {
        memory::keep_little();
    }
    let ended = exit::runtime().and_then(|runtime| {
        let ended = runtime.block_on(cli.command.run());
        // Dropping a runtime waits for its blocking threads however long their work takes. What has
        // to end before the process does was waited for by the command.
        runtime.shutdown_timeout(BLOCKING_TIMEOUT);
        ended
    });
    finish(ended)
}

/// Prints why not all of the output could be written and why the command failed, if so. Returns the
/// exit code: that of the command where both failed.
fn finish(ended: Result<(), CommandError>) -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    for failure in [output::finish(), ended.err()].into_iter().flatten() {
        failure::print(&failure);
        code = failure.code();
    }
    code
}

/// Whether a command was given `--json`. What stands behind the name of a tool is none of its
/// options.
fn wants_json(matches: &ArgMatches) -> bool {
    let flag = matches
        .try_get_one::<bool>("json")
        .is_ok_and(|given| given == Some(&true));
    let form = matches.try_get_one::<check::ReportForm>("format");
    flag || form.is_ok_and(|form| form == Some(&check::ReportForm::Json))
        || matches
            .subcommand()
            .is_some_and(|(_, below)| wants_json(below))
}

/// Prints why the words cannot be parsed, or the help or version that they want, which are no
/// errors; clap knows which stream each needs.
fn unparsed(error: &clap::Error, arguments: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        output::keep(error.print());
        return finish(Ok(()));
    }
    // There are no parsed options to look at.
    if arguments
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json")
    {
        output::as_json();
        failure::print(&CommandError::of_usage(
            error,
            "`callsheet --help` and `callsheet COMMAND --help` list what there is".into(),
        ));
    } else {
        let _ = error.print();
    }
    exit::USAGE.into()
}

impl Command {
    /// Each command is boxed: together they would be nested deeper than the compiler follows.
    async fn run(self) -> Result<(), CommandError> {
        match self {
            Self::Serve(command) => Box::pin(command.run()).await,
            Self::Demo(command) => Box::pin(command.run()).await,
            Self::Init(command) => Box::pin(command.run()).await,
            Self::Tools(command) => Box::pin(command.run()).await,
            Self::Search(command) => Box::pin(command.run()).await,
            Self::Scenarios(command) => Box::pin(command.run()).await,
            Self::Explain(command) => Box::pin(command.run()).await,
            Self::History(command) => Box::pin(command.run()).await,
            Self::Pins(command) => Box::pin(command.run()).await,
            Self::Identity(command) => Box::pin(command.run()).await,
            Self::Findings(command) => Box::pin(command.run()).await,
            Self::Logs(command) => Box::pin(command.run()).await,
            Self::Call(command) => Box::pin(command.run()).await,
            Self::Turn(command) => Box::pin(command.run()).await,
            Self::Prefs(command) => Box::pin(command.run()).await,
            Self::Profiles(command) => Box::pin(command.run()).await,
            Self::Approvals(command) => Box::pin(command.run()).await,
            Self::Operations(command) => Box::pin(command.run()).await,
            Self::Bundle(command) => Box::pin(command.run()).await,
            Self::Refresh(command) => Box::pin(command.run()).await,
            Self::Block(command) => Box::pin(command.block()).await,
            Self::Unblock(command) => Box::pin(command.run()).await,
            Self::Trust(command) => Box::pin(command.run()).await,
            Self::Add(command) => Box::pin(command.run()).await,
            Self::Remove(command) => Box::pin(command.run()).await,
            Self::Forget(command) => Box::pin(command.run()).await,
            Self::Login(command) => Box::pin(command.run()).await,
            Self::Logout(command) => Box::pin(command.run()).await,
            Self::Connect(command) => command.run(),
            Self::Import(command) => command.run(),
            Self::Mcp(command) => Box::pin(command.run()).await,
            Self::Check(command) => Box::pin(command.run()).await,
            Self::Doctor(command) => Box::pin(command.run()).await,
            Self::Config(command) => command.run(),
            Self::State(command) => Box::pin(command.run()).await,
            Self::Service(command) => Box::pin(command.run()).await,
            Self::Man(command) => command.run(),
            Self::Version => {
                output::line(concat!("callsheet ", env!("CALLSHEET_VERSION")));
                Ok(())
            }
            Self::DemoServer => Ok(demo::run_mcp_server()?),
            Self::Watchdog => watchdog::run().await,
            Self::Completions(command) => {
                command.run();
                Ok(())
            }
            Self::Complete(command) => {
                command.run().await;
                Ok(())
            }
        }
    }
}
