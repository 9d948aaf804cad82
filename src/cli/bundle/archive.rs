//! `callsheet bundle export` and `callsheet bundle import`: a bundle as a ZIP archive. The daemon
//! makes and stores it; here are the files.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use clap::Args;

use super::bundle_id;
use super::put::usage;
use crate::bundles::archive::ARCHIVE_MAX;
use crate::cli::client::DaemonClient;
use crate::cli::{CommandError, RemoteArgs, output};

/// Arguments of `bundle export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The bundle: its id, its slug, or the name of its scenario.
    bundle: String,
    /// The archive to write; it must not be there yet.
    file: PathBuf,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// Arguments of `bundle import`.
#[derive(Debug, Args)]
pub(super) struct ImportArchiveArgs {
    /// The archive.
    file: PathBuf,
    /// Store it as a new bundle with an id of its own.
    #[arg(long)]
    new: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl ExportArgs {
    /// Writes the archive.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let id = bundle_id(&daemon, &self.bundle).await?;
        let archive = daemon.export_bundle(&id).await?;
        self.write(&archive.bytes)?;
        let tools = output::count(archive.tools, "tool");
        output::line(&format!(
            "{} with {tools} is in {}",
            self.bundle,
            self.file.display()
        ));
        Ok(())
    }

    /// Makes the file. A part of an archive is of no use, so it does not stay.
    fn write(&self, bytes: &[u8]) -> Result<(), CommandError> {
        let written = std::fs::File::create_new(&self.file).and_then(|mut file| {
            file.write_all(bytes).inspect_err(|_| {
                // The reason for the failure matters more than a failure to clean up.
                let _ = std::fs::remove_file(&self.file);
            })
        });
        written.map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::AlreadyExists => "name a file that is not there yet",
                ErrorKind::NotFound => {
                    "make its folder first, or name a file in a folder that is there"
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "name a file in a folder that you may write to"
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "make room, or name a file on another disk"
                }
                _ => "name another file",
            };
            usage(&self.file, &error.to_string(), hint)
        })
    }
}

impl ImportArchiveArgs {
    /// Has the daemon store what is in the archive: all of it or none.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let archive = self.read()?;
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let answer = daemon
            .import_bundle(archive, self.new)
            .await
            .map_err(|error| self.refused(error))?;
        let id = output::text(&answer.value, "/bundle/id");
        let count = |name: &str| {
            answer.value[name]
                .as_u64()
                .and_then(|count| usize::try_from(count).ok())
                .unwrap_or_default()
        };
        if count("leftOut") > 0 {
            let tools = output::count(count("leftOut"), "tool");
            output::note(&format!(
                "left out of the list, because it cannot run here: {tools}; `callsheet bundle list {id} --all` says why"
            ));
        }
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            let slug = output::text(&answer.value, "/bundle/slug");
            let tools = output::count(count("tools"), "tool");
            output::line(&format!("{slug} with {tools} is stored: {id}"));
        }
        Ok(())
    }

    fn read(&self) -> Result<Vec<u8>, CommandError> {
        let about =
            std::fs::metadata(&self.file).map_err(|error| self.unusable(&error.to_string()))?;
        if about.len() > ARCHIVE_MAX as u64 {
            return Err(self.unusable(&format!("it is larger than {} MiB", ARCHIVE_MAX >> 20)));
        }
        std::fs::read(&self.file).map_err(|error| self.unusable(&error.to_string()))
    }

    /// A refusal of the daemon; one of the archive names the file.
    fn refused(&self, error: CommandError) -> CommandError {
        match error {
            CommandError::Problem {
                message, document, ..
            } if document["code"] == "invalid_archive" => self.unusable(&message),
            error => error,
        }
    }

    fn unusable(&self, why: &str) -> CommandError {
        usage(
            &self.file,
            why,
            "name an archive that `callsheet bundle export` wrote",
        )
    }
}
