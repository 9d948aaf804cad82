//! `callsheet bundle export` and `callsheet bundle import`: a bundle as a ZIP archive.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};

use super::put::{put_bundle, put_tool, usage};
use super::{bundle_id, bundles, tools};
use crate::bundles::archive::{self, ARCHIVE_MAX, ArchivedBundle};
use crate::cli::client::DaemonClient;
use crate::cli::{CommandError, RemoteArgs, output};

/// Members that a daemon adds to stored documents.
const ADDED: [&str; 4] = ["scenario", "tool", "callCount", "lastCalledAt"];

/// Arguments of `bundle export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// The bundle: its id or its slug.
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
        let bundle = bundles(&daemon, true).await?.into_iter().find(|bundle| bundle["id"] == id.as_str());
        let bundle = bundle.ok_or_else(|| CommandError::Refused {
            message: format!("no bundle has the id `{id}`"),
            hint: Some("`callsheet bundle list --all` lists those that there are".to_owned()),
        })?;
        let tools: Vec<_> = tools(&daemon, &id, true).await?.into_iter().map(stored).collect();
        let bytes = archive::write(&stored(bundle), &tools)
            .map_err(|error| usage(&self.file, &error.to_string(), "report this as a fault"))?;
        let written =
            std::fs::File::create_new(&self.file).and_then(|mut file| std::io::Write::write_all(&mut file, &bytes));
        written.map_err(|error| usage(&self.file, &error.to_string(), "name a file that is not there yet"))?;
        output::line(&format!(
            "{} with {} is in {}",
            self.bundle,
            output::count(tools.len(), "tool"),
            self.file.display()
        ));
        Ok(())
    }
}

impl ImportArchiveArgs {
    /// Stores what is in the archive. All of it is read before any of it is sent.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let refused = |why: &str| usage(&self.file, why, "name an archive that `callsheet bundle export` wrote");
        let about = std::fs::metadata(&self.file).map_err(|error| refused(&error.to_string()))?;
        if about.len() > ARCHIVE_MAX as u64 {
            return Err(refused(&format!("it is larger than {} MiB", ARCHIVE_MAX >> 20)));
        }
        let bytes = std::fs::read(&self.file).map_err(|error| refused(&error.to_string()))?;
        let ArchivedBundle { definition, tools } =
            archive::read(&bytes).map_err(|error| refused(&error.to_string()))?;
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let own = definition.id.to_string();
        let named = Some(own.as_str()).filter(|_| !self.new);
        let stored = put_bundle(&daemon, named, &definition.document).await?;
        let id = output::text(&stored.value, "/id");
        let mut left_out = Vec::new();
        for tool in &tools {
            let mut document = tool.document.clone();
            document.remove("bundleID");
            match put_tool(&daemon, &id, &document).await {
                Ok(_) => {}
                Err(CommandError::Problem { message, .. }) => left_out.push(message),
                Err(error) => return Err(error),
            }
        }
        let count = tools.len() - left_out.len();
        let stored = format!("{} with {} is stored: {id}", definition.slug, output::count(count, "tool"));
        match left_out.first() {
            None => {
                output::line(&stored);
                Ok(())
            }
            Some(first) => Err(CommandError::Refused {
                message: format!("{stored}, but {} left out: {first}", output::count(left_out.len(), "tool")),
                hint: Some("import it as a new bundle with `--new`, or delete what is there first".to_owned()),
            }),
        }
    }
}

/// A document as it is stored.
fn stored(document: Value) -> Map<String, Value> {
    let Value::Object(mut document) = document else { return Map::new() };
    document.retain(|name, _| !ADDED.contains(&name.as_str()));
    document
}
