//! `callsheet completions SHELL`.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::{Cli, output};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// For which shell.
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self) {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "callsheet", &mut script);
        output::line(String::from_utf8_lossy(&script).trim_end());
    }
}
