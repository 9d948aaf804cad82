//! `callsheet man`: manual pages, one for each command, made from the command line's own
//! definition. For packagers, so the help does not show it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _};
use clap_mangen::Man as Page;

use super::{Cli, CommandError, output};

/// The manual's name, at the head of each page.
const MANUAL: &str = "callsheet manual";

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder, instead of printing the first.
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
}

impl ManArgs {
    pub(super) fn run(self) -> Result<(), CommandError> {
        // `help COMMAND` is no command of its own.
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        let Some(folder) = &self.out else {
            output::raw(&rendered(&command)?);
            return Ok(());
        };
        write_all(&command, folder).map_err(|error| CommandError::Usage {
            message: format!(
                "the pages cannot be written to {}: {error}",
                folder.display()
            ),
            hint: "name a folder that this user may write to".into(),
        })
    }
}

/// Writes the page of a command and of all below it.
fn write_all(command: &clap::Command, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    fs::write(folder.join(format!("{name}.1")), rendered(command)?)?;
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
        .try_for_each(|below| write_all(below, folder))
}

fn rendered(command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let source = format!("callsheet {}", env!("CARGO_PKG_VERSION"));
    Page::new(command.clone())
        .source(source)
        .manual(MANUAL)
        .render(&mut page)?;
    Ok(page)
}
