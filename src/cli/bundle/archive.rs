//! `callsheet bundle export` and `callsheet bundle import`: a bundle as a ZIP archive.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use http::Method;
use serde_json::{Map, Value};

use super::put::{put_bundle, put_tool, usage};
use super::{bundle_id, bundles, tools};
use crate::bundles::archive::{self, ARCHIVE_MAX, ArchivedBundle};
use crate::bundles::{StoredTool, ToolContent};
use crate::cli::client::{DaemonClient, QueryPairs};
use crate::cli::{CommandError, RemoteArgs, output};

/// Members that a daemon adds to stored documents.
const ADDED: [&str; 5] = ["scenario", "tool", "leftOut", "callCount", "lastCalledAt"];

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
        written.map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::AlreadyExists => "name a file that is not there yet",
                ErrorKind::NotFound => "make its folder first, or name a file in a folder that is there",
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "name a file in a folder that you may write to"
                }
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "make room, or name a file on another disk",
                _ => "name another file",
            };
            usage(&self.file, &error.to_string(), hint)
        })?;
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
    /// Stores what is in the archive, or none of its tools. All of it is checked before any of it
    /// is sent. A daemon that refuses a tool all the same, such as the one that is one too many,
    /// loses those again that were stored before it.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let ArchivedBundle { definition, tools } = self.read()?;
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let own = definition.id.to_string();
        if !self.new {
            check_conflicts(&daemon, &own, &tools).await?;
        }
        let named = Some(own.as_str()).filter(|_| !self.new);
        let stored = put_bundle(&daemon, named, &definition.document).await.map_err(as_new)?;
        let id = output::text(&stored.value, "/id");
        for (at, tool) in tools.iter().enumerate() {
            if let Err(error) = put_tool(&daemon, &id, &content(tool)).await {
                for stored in &tools[..at] {
                    let path = ["bundles", &id, "tools", stored.slug.as_str(), "version", stored.version.as_str()];
                    daemon.stored_tools(Method::DELETE, &path, QueryPairs::new(), None).await?;
                }
                return Err(as_new(error));
            }
        }
        output::line(&format!("{} with {} is stored: {id}", definition.slug, output::count(tools.len(), "tool")));
        Ok(())
    }

    /// Reads and checks the archive.
    fn read(&self) -> Result<ArchivedBundle, CommandError> {
        let refused = |why: &str| usage(&self.file, why, "name an archive that `callsheet bundle export` wrote");
        let about = std::fs::metadata(&self.file).map_err(|error| refused(&error.to_string()))?;
        if about.len() > ARCHIVE_MAX as u64 {
            return Err(refused(&format!("it is larger than {} MiB", ARCHIVE_MAX >> 20)));
        }
        let bytes = std::fs::read(&self.file).map_err(|error| refused(&error.to_string()))?;
        let archived = archive::read(&bytes).map_err(|error| refused(&error.to_string()))?;
        for tool in &archived.tools {
            ToolContent::parse(content(tool))
                .map_err(|error| refused(&format!("the tool `{}` {}: {error}", tool.slug, tool.version)))?;
        }
        if !archived.definition.is_enabled && !archived.tools.is_empty() {
            let why = "its bundle is disabled, and a disabled bundle takes no tools";
            return Err(usage(
                &self.file,
                why,
                "enable the bundle with `callsheet bundle enable`, and export it again",
            ));
        }
        Ok(archived)
    }
}

/// Refuses tools that are there already.
async fn check_conflicts(daemon: &DaemonClient, id: &str, archived: &[StoredTool]) -> Result<(), CommandError> {
    let there = tools(daemon, id, true).await?;
    let there: BTreeSet<_> =
        there.iter().map(|tool| (output::text(tool, "/slug"), output::text(tool, "/version"))).collect();
    let names = archived.iter().map(|tool| (tool.slug.to_string(), tool.version.to_string()));
    let mut conflicts = names.filter(|name| there.contains(name));
    let Some((slug, version)) = conflicts.next() else { return Ok(()) };
    let more = match conflicts.count() {
        0 => String::new(),
        more => format!(", and {more} more of the archive"),
    };
    Err(CommandError::Refused {
        message: format!(
            "nothing is stored: the bundle `{id}` already has a tool `{slug}` with version `{version}`{more}"
        ),
        hint: Some(AS_NEW.to_owned()),
    })
}

/// The next step where what is there is in the way.
const AS_NEW: &str = "import it as a new bundle with `--new`, or delete what is there first";

/// A refusal with the next step that helps an import.
fn as_new(error: CommandError) -> CommandError {
    match error {
        CommandError::Problem { message, document, .. } if document["code"] == "being_deleted" => {
            let hint = "import it as a new bundle with `--new`, or wait until it is removed for good".to_owned();
            CommandError::Problem { message, hint: Some(hint), document }
        }
        CommandError::Problem { message, document, .. } if document["code"] == "exists" => {
            CommandError::Problem { message, hint: Some(AS_NEW.to_owned()), document }
        }
        error => error,
    }
}

/// What is sent of a tool.
fn content(tool: &StoredTool) -> Map<String, Value> {
    let mut document = tool.document.clone();
    document.remove("bundleID");
    document
}

/// A document as it is stored.
fn stored(document: Value) -> Map<String, Value> {
    let Value::Object(mut document) = document else { return Map::new() };
    document.retain(|name, _| !ADDED.contains(&name.as_str()));
    document
}
