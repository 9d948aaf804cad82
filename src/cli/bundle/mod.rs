//! `callsheet bundle`: lists, shows and changes bundles of stored tools.

mod archive;
mod put;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use super::client::{DaemonAnswer, DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, RemoteArgs, output};

/// Bundles of one page of a list; the most that a daemon gives.
const PAGE: &str = "256";

/// An id that no bundle has: its time is the beginning of 1970.
const UNUSED_BUNDLE_ID: &str = "00000000-0000-7000-8000-000000000000";

/// Arguments of `bundle`.
#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// List the bundles, or the tools of one.
    List(ListBundlesArgs),
    /// Show a bundle, or one version of a tool, as JSON.
    Show(SubjectArgs),
    /// Store a bundle or a version of a tool that stands in a file of JSON.
    Put(put::PutArgs),
    /// Enable a bundle, or one version of a tool.
    Enable(SubjectArgs),
    /// Disable a bundle, or one version of a tool.
    Disable(SubjectArgs),
    /// Delete a bundle without tools, or one version of a tool.
    Delete(SubjectArgs),
    /// Restore a bundle that was deleted less than two days ago.
    Restore(RestoreArgs),
    /// Write a bundle with its tools into a ZIP archive.
    Export(archive::ExportArgs),
    /// Store the bundle of a ZIP archive.
    Import(archive::ImportArchiveArgs),
}

#[derive(Debug, Args)]
struct ListBundlesArgs {
    /// List the tools of this bundle: its id, its slug, or the name of its scenario.
    bundle: Option<String>,
    /// Also what is disabled or deleted, and why tools are left out of the list of tools.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

#[derive(Debug, Args)]
struct RestoreArgs {
    /// The bundle: its id, its slug, or the name of its scenario.
    bundle: String,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl RestoreArgs {
    async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let all = bundles(&daemon, true, true).await?;
        let deleted: Vec<_> = all
            .into_iter()
            .filter(|bundle| bundle.get("softDeletedAt").is_some())
            .collect();
        let id = named(&deleted, &self.bundle)?;
        let path = ["bundles", &id, "restore"];
        let answer = daemon
            .stored_tools(Method::POST, &path, QueryPairs::new(), None)
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            output::line(&output::sanitize(&format!("{} is restored", self.bundle)));
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
struct SubjectArgs {
    /// The bundle: its id, its slug, or the name of its scenario.
    bundle: String,
    /// The slug of a tool in it; without one the bundle itself is meant.
    #[arg(requires = "version")]
    slug: Option<String>,
    /// The version of the tool.
    version: Option<String>,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl BundleArgs {
    /// Runs the command.
    pub(super) async fn run(self) -> Result<(), CommandError> {
        match self.command {
            BundleCommand::List(list) => list.run().await,
            BundleCommand::Show(subject) => subject.show().await,
            BundleCommand::Put(put) => put.run().await,
            BundleCommand::Enable(subject) => subject.switch(true).await,
            BundleCommand::Disable(subject) => subject.switch(false).await,
            BundleCommand::Delete(subject) => subject.delete().await,
            BundleCommand::Restore(restore) => restore.run().await,
            BundleCommand::Export(export) => export.run().await,
            BundleCommand::Import(import) => import.run().await,
        }
    }
}

impl ListBundlesArgs {
    async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let (member, rows) = match &self.bundle {
            None => ("bundles", bundles(&daemon, self.all, self.all).await?),
            Some(bundle) => {
                let id = bundle_id(&daemon, bundle).await?;
                ("tools", tools(&daemon, &id, self.all).await?)
            }
        };
        if self.remote.json {
            output::json(&json!({ member: rows }));
        } else if rows.is_empty() {
            let disabled = if self.all {
                ""
            } else {
                "; `--all` shows those that are disabled, too"
            };
            let off = if self.bundle.is_none() {
                why_off(&daemon).await
            } else {
                None
            };
            match off {
                Some(off) => output::wrapped("", &format!("no bundles: {off}")),
                None => output::line(&format!("no {member}{disabled}")),
            }
        } else if member == "bundles" {
            let mut columns = vec![
                ("ID", "/id"),
                ("SLUG", "/slug"),
                ("SCENARIO", "/scenario"),
                ("NAME", "/displayName"),
            ];
            columns.push(("ENABLED", "/isEnabled"));
            if rows.iter().any(|row| row.get("softDeletedAt").is_some()) {
                columns.push(("DELETED", "/softDeletedAt"));
            }
            table(&rows, &columns);
        } else {
            let mut columns = vec![
                ("SLUG", "/slug"),
                ("VERSION", "/version"),
                ("NAME", "/displayName"),
                ("ENABLED", "/isEnabled"),
            ];
            if self.all {
                columns.extend([
                    ("BY PREFERENCES", "/preferredEnabled"),
                    ("LEFT OUT", "/leftOut/message"),
                ]);
            }
            table(&rows, &columns);
        }
        Ok(())
    }
}

fn table(rows: &[Value], columns: &[(&'static str, &str)]) {
    let fit = |head| {
        if head == "NAME" {
            ColumnFit::Cut
        } else {
            ColumnFit::Whole
        }
    };
    let heads: Vec<_> = columns
        .iter()
        .map(|(head, _)| (*head, fit(*head)))
        .collect();
    let mut table = TextTable::new(&heads);
    for row in rows {
        table.row(columns.iter().map(|(_, pointer)| {
            cell(match row.pointer(pointer).and_then(Value::as_bool) {
                Some(is_on) => if is_on { "yes" } else { "no" }.to_owned(),
                None => output::text(row, pointer),
            })
        }));
    }
    table.print();
}

impl SubjectArgs {
    async fn show(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let id = bundle_id(&daemon, &self.bundle).await?;
        let shown = match (&self.slug, &self.version) {
            (Some(slug), Some(version)) => {
                let path = ["bundles", &id, "tools", slug, "version", version];
                daemon
                    .stored_tools(Method::GET, &path, QueryPairs::new(), None)
                    .await?
                    .value
            }
            _ => one_bundle(&daemon, &id).await?,
        };
        output::json(&shown);
        Ok(())
    }

    async fn switch(self, is_enabled: bool) -> Result<(), CommandError> {
        let answer = self
            .send(Method::PATCH, Some(&json!({"isEnabled": is_enabled})))
            .await?;
        self.report(
            &answer,
            if is_enabled {
                "is enabled"
            } else {
                "is disabled"
            },
        );
        Ok(())
    }

    async fn delete(self) -> Result<(), CommandError> {
        let answer = self.send(Method::DELETE, None).await?;
        let goes = "is deleted, and is removed for good after two days; `callsheet bundle restore` takes that back";
        self.report(
            &answer,
            if self.slug.is_some() {
                "is deleted"
            } else {
                goes
            },
        );
        Ok(())
    }

    async fn send(
        &self,
        method: Method,
        body: Option<&Value>,
    ) -> Result<DaemonAnswer, CommandError> {
        let daemon = DaemonClient::for_operator(&self.remote)?;
        let id = bundle_id(&daemon, &self.bundle).await?;
        let mut path = vec!["bundles", &id];
        if let (Some(slug), Some(version)) = (&self.slug, &self.version) {
            path.extend(["tools", slug, "version", version]);
        }
        daemon
            .stored_tools(method, &path, QueryPairs::new(), body)
            .await
    }

    fn report(&self, answer: &DaemonAnswer, what: &str) {
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else {
            let parts = [
                Some(&self.bundle),
                self.slug.as_ref(),
                self.version.as_ref(),
            ];
            let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
            output::line(&output::sanitize(&format!("{} {what}", parts.join(" "))));
        }
    }
}

/// The id of the bundle with this id, scenario or slug. Bundles may share a slug, and no scenario.
async fn bundle_id(daemon: &DaemonClient, name: &str) -> Result<String, CommandError> {
    if name.parse::<uuid::Uuid>().is_ok() {
        return Ok(name.to_owned());
    }
    named(&bundles(daemon, true, false).await?, name)
}

/// The id of the one of these bundles that is called like that.
fn named(all: &[Value], name: &str) -> Result<String, CommandError> {
    let with = |member: &str| -> Vec<&str> {
        all.iter()
            .filter(|bundle| bundle[member] == name)
            .filter_map(|bundle| bundle["id"].as_str())
            .collect()
    };
    let refused = |message: String, hint: &str| CommandError::Refused {
        message,
        hint: Some(hint.to_owned()),
    };
    let by_id = with("id");
    match (&with("slug")[..], &with("scenario")[..]) {
        _ if by_id.len() == 1 => Ok(name.to_owned()),
        ([id], _) | ([], [id]) => Ok((*id).to_owned()),
        ([], _) => Err(refused(
            format!("no bundle is called `{}`", output::sanitize(name)),
            "`callsheet bundle list --all` lists those that there are",
        )),
        _ => Err(refused(
            format!("several bundles are called `{}`", output::sanitize(name)),
            "name it by its id, as `callsheet bundle list --all` shows it",
        )),
    }
}

/// All bundles, also disabled or deleted ones.
async fn bundles(
    daemon: &DaemonClient,
    disabled: bool,
    deleted: bool,
) -> Result<Vec<Value>, CommandError> {
    let flags = [("includeDisabled", disabled), ("includeDeleted", deleted)];
    let flags = flags
        .into_iter()
        .filter(|(_, is_set)| *is_set)
        .map(|(name, _)| (name, "true".to_owned()));
    let query = [("pageSize", PAGE.to_owned())]
        .into_iter()
        .chain(flags)
        .collect();
    pages(daemon, "bundles", query).await
}

/// Why a daemon without bundles cannot have any, and the next step: no folder for them is in use.
/// Its list is empty either way, so the answer to a request for one tool says it.
async fn why_off(daemon: &DaemonClient) -> Option<String> {
    let path = [
        "bundles",
        UNUSED_BUNDLE_ID,
        "tools",
        "none",
        "version",
        "v1",
    ];
    match daemon
        .stored_tools(Method::GET, &path, QueryPairs::new(), None)
        .await
    {
        Err(CommandError::Problem {
            message,
            hint,
            document,
        }) if document["code"] == "bundles_off" => Some(
            [Some(message), hint]
                .into_iter()
                .flatten()
                .collect::<Vec<_>>()
                .join("; "),
        ),
        _ => None,
    }
}

/// The bundle with this id.
async fn one_bundle(daemon: &DaemonClient, id: &str) -> Result<Value, CommandError> {
    let bundle = bundles(daemon, true, false)
        .await?
        .into_iter()
        .find(|bundle| bundle["id"] == id);
    bundle.ok_or_else(|| CommandError::Refused {
        message: format!("no bundle has the id `{id}`"),
        hint: Some("`callsheet bundle list --all` lists those that there are".to_owned()),
    })
}

/// All tools of a bundle.
async fn tools(daemon: &DaemonClient, id: &str, all: bool) -> Result<Vec<Value>, CommandError> {
    let size = ("recommendedPageSize", PAGE.to_owned());
    pages(
        daemon,
        "tools",
        vec![
            size,
            ("includeDisabled", all.to_string()),
            ("bundleIDs", id.to_owned()),
        ],
    )
    .await
}

/// All pages of a list.
async fn pages(
    daemon: &DaemonClient,
    member: &str,
    query: QueryPairs<'_>,
) -> Result<Vec<Value>, CommandError> {
    let mut rows = Vec::new();
    let mut token = String::new();
    loop {
        let mut query = query.clone();
        query.push(("pageToken", token.clone()));
        let answer = daemon
            .stored_tools(Method::GET, &[member], query, None)
            .await?;
        rows.extend(output::list(&answer.value, member).iter().cloned());
        match answer.value["nextPageToken"].as_str() {
            Some(next) => next.clone_into(&mut token),
            None => return Ok(rows),
        }
    }
}
