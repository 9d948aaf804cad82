//! Bundles as archives: out of the folder, and into it.
//!
//! An import is all or nothing. All of it is checked under the lock of the folder, then all files
//! are written into a folder whose name readers skip, and then they are put in place: a new bundle
//! by one rename of that folder, the tools of a bundle that is there one by one. If that fails,
//! what was put in place is taken out again.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use super::archive::{self, ArchivedBundle};
use super::changes::time;
use super::definition::IMPORTED_AT;
use super::files::{self, BUNDLE_FILE, FRESH};
use super::store::{PutOutcome, enabled};
use super::{
    BundleDefinition, BundleError, BundleSet, BundleSettings, BundleStore, Slug, StoredBundle,
    StoredDocument, StoredTool, built_in, new_id,
};
use crate::json::layout::compact;

/// A bundle as an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedBundle {
    /// Its short name.
    pub slug: Slug,
    /// How many tools are in it.
    pub tools: usize,
    /// The ZIP.
    pub archive: Vec<u8>,
}

/// What an import has stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedBundle {
    /// The bundle.
    pub id: Uuid,
    /// Whether the bundle was there before.
    pub outcome: PutOutcome,
    /// How many tools came in.
    pub tools: usize,
}

impl BundleStore {
    /// A bundle as an archive, with all members of its files.
    pub async fn export(&self, id: Uuid) -> Result<ExportedBundle, BundleError> {
        if !self.is_on() {
            return Err(self.off());
        }
        let bundle = self.set().bundle(id)?.clone();
        if bundle.definition.is_built_in {
            return Err(BundleError::NoFiles);
        }
        let made = move || {
            let about = &bundle.definition;
            let documents = bundle
                .tools
                .iter()
                .map(|tool| dated(&tool.document, tool.modified_at));
            let documents: Vec<_> = documents.collect::<Result<_, _>>()?;
            let definition =
                dated(&about.document, about.modified_at)?.with(&[(IMPORTED_AT, None)])?;
            let archive = archive::write(&definition, &documents)?;
            Ok(ExportedBundle {
                slug: bundle.definition.slug.clone(),
                tools: documents.len(),
                archive,
            })
        };
        self.tasks().blocking(made).await
    }

    /// Stores what is in an archive: all of it or none. Ids and times are those of the archive, or
    /// `as_new` ones. A bundle that is there gets the tools, and what the archive says about it.
    pub async fn import(
        &self,
        archive: Bytes,
        as_new: bool,
    ) -> Result<ImportedBundle, BundleError> {
        if !self.is_on() {
            return Err(self.off());
        }
        let now = self.now();
        let settings = self.settings();
        let most_bytes = settings.max_bytes;
        let archived = self
            .tasks()
            .blocking(move || archive::read(&archive, most_bytes))
            .await?;
        let archived = if as_new {
            renewed(archived, now)?
        } else {
            archived
        };
        built_in::refuse(archived.definition.id)?;
        self.change(move |root, set| {
            let outcome = if let Some(before) = checked(set, &archived, &settings)? {
                put_into(before, &archived, now)?;
                PutOutcome::Replaced
            } else {
                put_new(root, &archived, now)?;
                PutOutcome::Created
            };
            Ok(ImportedBundle {
                id: archived.definition.id,
                outcome,
                tools: archived.tools.len(),
            })
        })
        .await
    }
}

/// A document with the time of its last change, where it has an earlier one because it was changed
/// by hand.
fn dated(document: &StoredDocument, modified: Timestamp) -> Result<StoredDocument, BundleError> {
    let members = document.member_texts();
    let read = |name: &str| {
        serde_json::from_str::<String>(members.get(name)?)
            .ok()?
            .parse::<Timestamp>()
            .ok()
    };
    let written = read("modifiedAt").or_else(|| read("createdAt"));
    match written {
        Some(written) if written < modified => {
            document.with(&[("modifiedAt", Some(time(modified).to_string()))])
        }
        _ => Ok(document.clone()),
    }
}

/// The archive as a bundle that was made now.
fn renewed(mut archived: ArchivedBundle, now: Timestamp) -> Result<ArchivedBundle, BundleError> {
    let id = new_id(now);
    archived.definition.id = id;
    archived.definition.document =
        with_members(&archived.definition.document, [("id", json!(id))], now)?;
    for tool in &mut archived.tools {
        let own = new_id(now);
        tool.id = Some(own);
        tool.document = with_members(
            &tool.document,
            [("toolID", json!(own)), ("bundleID", json!(id))],
            now,
        )?;
    }
    Ok(archived)
}

/// A document with other members, as it is when it is made now.
fn with_members<const N: usize>(
    document: &StoredDocument,
    others: [(&str, Value); N],
    now: Timestamp,
) -> Result<StoredDocument, BundleError> {
    let times = [("createdAt", time(now)), ("modifiedAt", time(now))];
    // `id` is another name of `toolID` where that is missing.
    let has_tool_id = document
        .member_texts()
        .get("toolID")
        .is_some_and(|id| id != "null");
    let former_id = (!has_tool_id).then_some(("id", None));
    let others = others
        .into_iter()
        .chain(times)
        .map(|(name, value)| (name, Some(value.to_string())));
    document.with(&former_id.into_iter().chain(others).collect::<Vec<_>>())
}

/// The bundle that is there already, if the archive can be stored.
fn checked<'a>(
    set: &'a BundleSet,
    archived: &ArchivedBundle,
    settings: &BundleSettings,
) -> Result<Option<&'a StoredBundle>, BundleError> {
    let id = archived.definition.id;
    let tools = archived.tools.len();
    let stored = set.count();
    let most = settings.max_tools;
    let before = if set.get(id).is_some() {
        Some(&**enabled(set, id)?)
    } else {
        None
    };
    if let Some(before) = before {
        let mut taken = archived
            .tools
            .iter()
            .filter(|tool| before.tool(&tool.slug, &tool.version).is_ok());
        if let Some(StoredTool { slug, version, .. }) = taken.next() {
            let slug = slug.clone();
            let version = version.clone();
            let more = taken.count();
            return Err(BundleError::ArchiveConflict {
                bundle: id,
                slug,
                version,
                more,
            });
        }
    }
    if stored.saturating_add(tools) > most {
        return Err(BundleError::ArchiveTooMany {
            tools,
            stored,
            most,
        });
    }
    let new_bytes = if before.is_some() {
        0
    } else {
        archived.definition.bytes()
    };
    let added_bytes = new_bytes + archived.tools.iter().map(|tool| tool.bytes).sum::<usize>();
    set.check_limits(usize::from(before.is_none()), added_bytes, settings)?;
    Ok(before)
}

/// A folder for files that are not in place yet. It is removed with what is still in it.
struct StagingFolder(PathBuf);

impl Drop for StagingFolder {
    fn drop(&mut self) {
        // It is gone where it was renamed; what is left otherwise is removed by the next import.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Writes the files of tools into a folder of their own below `parent`. Their names, which it
/// returns, are free in `target`, too.
fn stage(
    parent: &Path,
    tools: &[StoredTool],
    target: &Path,
) -> Result<(StagingFolder, Vec<String>), BundleError> {
    files::remove_rests(parent)?;
    let folder = parent.join(format!("{FRESH}{}", Uuid::new_v4()));
    fs::create_dir(&folder).map_err(|error| BundleError::storage("write", &folder, &error))?;
    let staged = StagingFolder(folder);
    let mut names = Vec::new();
    for tool in tools {
        let name = files::free_name(&[&staged.0, target], tool);
        files::replace(
            &staged.0.join(&name),
            &tool.document,
            Some(tool.modified_at),
        )?;
        names.push(name);
    }
    files::make_durable(&staged.0)?;
    Ok((staged, names))
}

/// Stores a new bundle. No reader sees any of it before all of it is written.
fn put_new(root: &Path, archived: &ArchivedBundle, now: Timestamp) -> Result<(), BundleError> {
    let id = archived.definition.id;
    let mut target = root.join(id.to_string());
    if target.exists() {
        target = root.join(format!("{id}-{}", new_id(now)));
    }
    let (staged, _) = stage(root, &archived.tools, &target)?;
    // A folder without this file is no bundle.
    let about = &archived.definition;
    let document = about
        .document
        .with(&[(IMPORTED_AT, Some(time(now).to_string()))])?;
    files::write(
        &staged.0.join(BUNDLE_FILE),
        &document,
        Some(about.modified_at),
    )?;
    rename(&staged.0, &target)?;
    files::make_durable(root)
}

/// Stores the tools in a bundle that is there, and what the archive says about it.
fn put_into(
    bundle: &StoredBundle,
    archived: &ArchivedBundle,
    now: Timestamp,
) -> Result<(), BundleError> {
    let folder = &bundle.folder;
    let document = merged(&bundle.definition, &archived.definition, now)?;
    let modified = Some(
        BundleDefinition::parse(document.clone())?
            .modified_at
            .max(bundle.definition.modified_at),
    );
    let (staged, names) = stage(folder, &archived.tools, folder)?;
    let file = folder.join(BUNDLE_FILE);
    let before = &bundle.definition.document;
    let mut is_written = false;
    let mut placed = Vec::new();
    let mut place = || {
        // First, so that no tool is offered before the bundle is disabled.
        if document != *before {
            files::write(&file, &document, modified)?;
            is_written = true;
        }
        for name in &names {
            rename(&staged.0.join(name), &folder.join(name))?;
            placed.push(folder.join(name));
        }
        files::make_durable(folder)
    };
    let Err(error) = place() else { return Ok(()) };
    // Each of them is tried, whatever becomes of the others.
    let taken_out = placed.iter().map(|file| files::remove(file));
    let restored =
        is_written.then(|| files::write(&file, before, Some(bundle.definition.modified_at)));
    for error in taken_out.chain(restored).filter_map(Result::err) {
        tracing::error!(bundle = %bundle.definition.id, %error, "a part of a failed import could not be taken back");
    }
    Err(error)
}

/// What is said about a bundle that is there, with what the archive says about it. It was made when
/// it was, and is modified now if its content differs.
fn merged(
    before: &BundleDefinition,
    archived: &BundleDefinition,
    now: Timestamp,
) -> Result<StoredDocument, BundleError> {
    let is_time = |name: &str| matches!(name, "createdAt" | "modifiedAt" | IMPORTED_AT);
    let earlier = before.document.member_texts();
    let earlier: BTreeMap<&str, String> = earlier
        .iter()
        .map(|(name, text)| (name, compact(text)))
        .collect();
    let archived = archived.document.member_texts();
    let others = archived
        .iter()
        .filter(|(name, text)| !is_time(name) && earlier.get(name) != Some(&compact(text)));
    let mut others: Vec<(&str, Option<String>)> = others
        .map(|(name, text)| (name, Some(text.to_owned())))
        .collect();
    if others.is_empty() {
        return Ok(before.document.clone());
    }
    if others.iter().any(|(name, _)| *name != "isEnabled") {
        others.push(("modifiedAt", Some(time(now).to_string())));
    }
    before.document.with(&others)
}

fn rename(from: &Path, to: &Path) -> Result<(), BundleError> {
    fs::rename(from, to).map_err(|error: io::Error| BundleError::storage("write", to, &error))
}
