//! `callsheet bundle put FILE`: stores what stands in a file of JSON, as the folder of bundles has
//! it.

use std::path::{Path, PathBuf};

use clap::Args;
use http::Method;
use serde_json::{Map, Value, json};

use super::bundle_id;
use crate::cli::client::{DaemonAnswer, DaemonClient, QueryPairs};
use crate::cli::{CommandError, RemoteArgs, output};
use crate::runtime::Clock;

/// Bytes of a file at most.
const FILE_MAX: u64 = 1024 * 1024;

/// Arguments of `bundle put`.
#[derive(Debug, Args)]
pub(super) struct PutArgs {
    /// The file: a bundle with `slug` and `displayName`, or a tool with `slug`, `version` and
    /// `type`.
    file: PathBuf,
    /// The bundle that a tool goes into: its id, its slug, or the name of its scenario;
    /// `bundleID` of the file by default.
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl PutArgs {
    /// Stores it.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let document = read(&self.file)?;
        if document.contains_key("mcpServers") {
            let hint = format!(
                "`callsheet import {}` takes such servers",
                self.file.display()
            );
            return Err(usage(
                &self.file,
                "it lists MCP servers, and is neither a bundle nor a tool",
                &hint,
            ));
        }
        if !document.contains_key("type") && !document.contains_key("slug") {
            let hint = "a bundle has a `slug` and a `displayName`, a tool a `type`, a `slug` and a `version`";
            return Err(usage(&self.file, "it is neither a bundle nor a tool", hint));
        }
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let answer = if document.contains_key("type") {
            let named = self
                .bundle
                .as_deref()
                .or_else(|| document.get("bundleID")?.as_str());
            let named = named.ok_or_else(|| {
                usage(&self.file, "it names no bundle", "name one with `--bundle`")
            })?;
            put_tool(&daemon, &bundle_id(&daemon, named).await?, &document).await?
        } else {
            put_bundle(
                &daemon,
                document.get("id").and_then(Value::as_str),
                &document,
            )
            .await?
        };
        if answer.value.get("leftOut").is_some() {
            let text = |pointer| output::text(&answer.value, pointer);
            let why = text("/leftOut/message");
            let next = text("/leftOut/hint");
            output::note(&format!(
                "{} is stored, and left out of the list: {why}; {next}",
                text("/tool")
            ));
        }
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            let text = |pointer| output::text(&answer.value, pointer);
            let version = match text("/version") {
                version if version.is_empty() => String::new(),
                version => format!(" {version}"),
            };
            output::line(&format!(
                "{}{version} is stored: {}{}",
                text("/slug"),
                text("/toolID"),
                text("/id")
            ));
        }
        Ok(())
    }
}

/// Stores a bundle, with a new id where it has none.
async fn put_bundle(
    daemon: &DaemonClient,
    id: Option<&str>,
    document: &Map<String, Value>,
) -> Result<DaemonAnswer, CommandError> {
    let id = id.map_or_else(
        || crate::bundles::new_id(Clock::system().wall()).to_string(),
        str::to_owned,
    );
    daemon
        .stored_tools(
            Method::PUT,
            &["bundles", &id],
            QueryPairs::new(),
            Some(&json!(document)),
        )
        .await
}

/// Stores a version of a tool.
async fn put_tool(
    daemon: &DaemonClient,
    bundle: &str,
    document: &Map<String, Value>,
) -> Result<DaemonAnswer, CommandError> {
    let part = |name: &str| {
        document
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let path = [
        "bundles",
        bundle,
        "tools",
        part("slug"),
        "version",
        part("version"),
    ];
    daemon
        .stored_tools(
            Method::PUT,
            &path,
            QueryPairs::new(),
            Some(&json!(document)),
        )
        .await
}

fn read(file: &Path) -> Result<Map<String, Value>, CommandError> {
    let about = std::fs::metadata(file)
        .map_err(|error| usage(file, &error.to_string(), "name a file that is there"))?;
    if about.len() > FILE_MAX {
        return Err(usage(
            file,
            "it is larger than 1 MiB",
            "name a file with one bundle or one tool",
        ));
    }
    let text =
        std::fs::read(file).map_err(|error| usage(file, &error.to_string(), "make it readable"))?;
    serde_json::from_slice(&text).map_err(|error| {
        usage(
            file,
            &format!("it is no JSON object: {error}"),
            "correct it",
        )
    })
}

/// The refusal of a file.
pub(super) fn usage(file: &Path, why: &str, hint: &str) -> CommandError {
    CommandError::Usage {
        message: format!("`{}` cannot be used: {why}", file.display()),
        hint: hint.to_owned(),
    }
}
