//! Reads and writes the folder of bundles.
//!
//! `bundle.json` makes a folder a bundle; its identity stands in it, whatever the folder is called.
//! Every other file whose name ends in `.json` is one version of a tool. A file that cannot be used
//! is a finding, and what it said before stays until the daemon ends. Names that begin with a dot
//! are not read, and neither is a file that is as it was when it was read before.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::bundle_set::{FileStamps, ReadBundle};
use super::stored_document::FILE_MAX;
use super::{
    BundleDefinition, BundleError, BundleSet, BundleSettings, StoredBundle, StoredDocument,
    StoredTool, new_id,
};
use crate::model::finding::quoted_excerpt;
use crate::model::{CappedFindings, Finding, FindingCode};
use crate::runtime::file_stamp::FileStamp;
use crate::runtime::open_files::open_regular;

/// The file that makes a folder a bundle.
pub(super) const BUNDLE_FILE: &str = "bundle.json";
/// How the names of files and folders begin that are not written to their end.
pub(super) const FRESH: &str = ".new-";
/// Bytes of the name of a file that is made of slug and version, at most.
const FILE_NAME_MAX: usize = 130;

/// Reads all bundles below `root` at this time, beside the built-in one; `before` has what was read
/// last. An absent folder has none. Blocking.
pub(super) fn read(
    root: &Path,
    built_in: Option<ReadBundle>,
    before: &BundleSet,
    settings: &BundleSettings,
    now: Timestamp,
) -> io::Result<BundleSet> {
    let mut bundles: Vec<ReadBundle> = built_in.into_iter().collect();
    let mut findings = CappedFindings::default();
    let mut changes = FileChanges {
        before: &before.stamps,
        now,
        stamps: FileStamps::new(),
    };
    let mut left = Allowance {
        bundles: settings.max_bundles,
        tools: settings.max_tools,
        bytes: settings.max_bytes,
    };
    for folder in names(root)?.into_iter().filter(|path| path.is_dir()) {
        let known = before.bundles().find(|bundle| bundle.folder == folder);
        match read_definition(&folder, known, &mut changes) {
            Ok(definition)
                if bundles
                    .iter()
                    .any(|other| other.definition.id == definition.id) =>
            {
                let message = format!(
                    "`{}` has the id of another bundle, `{}`",
                    folder.display(),
                    definition.id
                );
                findings.push(left_out(message, "give its `bundle.json` an id of its own"));
            }
            Ok(definition) if left.bundles == 0 || left.bytes < definition.bytes() => {
                let limit = if left.bundles == 0 {
                    "bundles.max_bundles"
                } else {
                    "bundles.max_bytes"
                };
                let message = format!("`{}` is beyond `{limit}`", folder.display());
                findings.push(left_out(message, "raise the limit, or take folders out"));
            }
            Ok(definition) => {
                left.bundles -= 1;
                left.bytes -= definition.bytes();
                let (tools, findings) =
                    read_tools(&folder, &definition, known, &mut left, &mut changes)?;
                bundles.push(ReadBundle {
                    definition,
                    folder,
                    tools,
                    findings,
                });
            }
            Err(why) => {
                let stays = known.map_or("is no bundle", |_| "keeps its last good state");
                let message = format!("`{}` {stays}: {why}", folder.join(BUNDLE_FILE).display());
                findings.push(left_out(
                    message,
                    "correct the file, or take the folder out",
                ));
                bundles.extend(known.map(|known| {
                    left.take(known);
                    let definition = known.definition.clone();
                    let tools = known.tools.clone();
                    ReadBundle {
                        definition,
                        folder,
                        tools,
                        findings: known.findings.clone(),
                    }
                }));
            }
        }
    }
    Ok(BundleSet::new(bundles, changes.stamps, findings.finish()))
}

/// Which files have changed since they were read before.
struct FileChanges<'a> {
    before: &'a FileStamps,
    now: Timestamp,
    /// The stamps of the files that are used now.
    stamps: FileStamps,
}

impl FileChanges<'_> {
    /// Whether a file is as it was when it was read before. One of which a stamp is known only
    /// since it was read a while after its last change.
    fn is_unchanged(&mut self, file: &Path) -> bool {
        let stamp = self
            .before
            .get(file)
            .filter(|known| FileStamp::from_path(file).as_ref() == Some(known));
        self.stamps
            .extend(stamp.map(|stamp| (file.to_owned(), *stamp)));
        stamp.is_some()
    }

    /// The text of a file, and when it was written. It is used, so that its stamp is kept.
    fn read(&mut self, file: &Path) -> Result<(String, Option<Timestamp>), String> {
        let opened = open_regular(file).map_err(|error| error.to_string())?;
        let stamp = FileStamp::from_opened(&opened, self.now);
        let written = opened
            .metadata()
            .and_then(|found| found.modified())
            .ok()
            .and_then(whole_milliseconds);
        let text = read_opened(opened)?;
        self.stamps
            .extend(stamp.map(|stamp| (file.to_owned(), stamp)));
        Ok((text, written))
    }

    /// Has a file read again the next time, because what it says is not used.
    fn forget(&mut self, file: &Path) {
        self.stamps.remove(file);
    }
}

/// How much more may be read.
struct Allowance {
    bundles: usize,
    tools: usize,
    bytes: usize,
}

impl Allowance {
    /// Counts a bundle that stays as it is.
    fn take(&mut self, bundle: &StoredBundle) {
        self.bundles = self.bundles.saturating_sub(1);
        self.tools = self.tools.saturating_sub(bundle.tools.len());
        self.bytes = self.bytes.saturating_sub(bundle.bytes());
    }

    /// Counts a tool. Gives the limit that it is beyond otherwise; what comes after it in the
    /// folder is beyond the limit too.
    fn take_tool(&mut self, tool: &StoredTool) -> Result<(), &'static str> {
        self.check()?;
        self.tools -= 1;
        self.bytes = self.bytes.saturating_sub(tool.bytes + 1);
        self.check_bytes()
    }

    /// Gives the limit that has been reached.
    fn check(&self) -> Result<(), &'static str> {
        if self.tools == 0 {
            Err("bundles.max_tools")
        } else {
            self.check_bytes()
        }
    }

    fn check_bytes(&self) -> Result<(), &'static str> {
        if self.bytes == 0 {
            Err("bundles.max_bytes")
        } else {
            Ok(())
        }
    }
}

fn left_out(message: String, hint: &str) -> Finding {
    Finding::new(FindingCode::EntryIgnored, message).hint(hint)
}

/// What is in a folder, by name, without what begins with a dot. An absent folder is empty.
fn names(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let hidden = |path: &PathBuf| {
        path.file_name()
            .is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    let mut paths: Vec<_> = paths.into_iter().filter(|path| !hidden(path)).collect();
    paths.sort();
    Ok(paths)
}

fn read_definition(
    folder: &Path,
    known: Option<&Arc<StoredBundle>>,
    changes: &mut FileChanges<'_>,
) -> Result<BundleDefinition, String> {
    let file = folder.join(BUNDLE_FILE);
    if let Some(known) = known.filter(|_| changes.is_unchanged(&file)) {
        return Ok(known.definition.clone());
    }
    let (text, written) = changes.read(&file)?;
    if let Some(known) = known.filter(|known| known.definition.document.get() == text.trim()) {
        return Ok(known.definition.clone());
    }
    let read = || {
        let definition =
            BundleDefinition::parse(parse_document(&text)?).map_err(|why| why.to_string())?;
        if definition.is_built_in {
            return Err("`/isBuiltIn` is `true`, and what is built in has no file".to_owned());
        }
        Ok(BundleDefinition {
            modified_at: later(definition.modified_at, written),
            ..definition
        })
    };
    read().inspect_err(|_| changes.forget(&file))
}

/// The tools of one bundle, of which `left` more may be read.
fn read_tools(
    folder: &Path,
    definition: &BundleDefinition,
    known: Option<&Arc<StoredBundle>>,
    left: &mut Allowance,
    changes: &mut FileChanges<'_>,
) -> io::Result<(Vec<Arc<StoredTool>>, Vec<Finding>)> {
    let mut tools: Vec<Arc<StoredTool>> = Vec::new();
    let mut findings = CappedFindings::default();
    let former = known
        .map(|known| known.tools.as_slice())
        .unwrap_or_default();
    let former: HashMap<&Path, &Arc<StoredTool>> = former
        .iter()
        .map(|tool| (tool.file.as_path(), tool))
        .collect();
    let same_bundle = known.is_some_and(|known| known.definition.id == definition.id);
    let is_tool = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "json") && !path.ends_with(BUNDLE_FILE)
    };
    for file in names(folder)?.into_iter().filter(is_tool) {
        let name: Arc<str> = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into();
        if let Err(limit) = left.check() {
            findings.push_with(FindingCode::ToolsBeyondLimit, || beyond(&file, limit, name));
            continue;
        }
        let before = former.get(file.as_path()).copied();
        let tool = match read_tool(
            &file,
            definition.id,
            before.filter(|_| same_bundle),
            changes,
        ) {
            Ok(tool) => Some(tool),
            Err(why) => {
                changes.forget(&file);
                let stays = if before.is_some() {
                    "keeps its last good state"
                } else {
                    "is left out"
                };
                let message = format!(
                    "the file `{}` of this bundle {stays}: {why}",
                    file.display()
                );
                let finding =
                    Finding::new(FindingCode::ToolQuarantined, message).of_tool(Arc::clone(&name));
                findings.push(finding.hint("correct the file, or take it out"));
                before.cloned()
            }
        };
        let Some(tool) = tool else { continue };
        if tools
            .iter()
            .any(|other| other.slug == tool.slug && other.version == tool.version)
        {
            let message = format!(
                "`{}` has a slug and version that another file has",
                file.display()
            );
            findings.push(
                Finding::new(FindingCode::DuplicateTool, message)
                    .of_tool(name)
                    .hint("take one of them out"),
            );
        } else if let Err(limit) = left.take_tool(&tool) {
            findings.push_with(FindingCode::ToolsBeyondLimit, || beyond(&file, limit, name));
        } else {
            tools.push(tool);
        }
    }
    Ok((tools, findings.finish()))
}

/// The finding for a file that a limit leaves out.
fn beyond(file: &Path, limit: &str, name: Arc<str>) -> Finding {
    let message = format!("`{}` is beyond `{limit}`", file.display());
    Finding::new(FindingCode::ToolsBeyondLimit, message)
        .of_tool(name)
        .hint("raise the limit, or take files out")
}

/// The tool in a file; the one that was read before where the file is unchanged.
fn read_tool(
    file: &Path,
    bundle: Uuid,
    before: Option<&Arc<StoredTool>>,
    changes: &mut FileChanges<'_>,
) -> Result<Arc<StoredTool>, String> {
    if let Some(before) = before.filter(|_| changes.is_unchanged(file)) {
        return Ok(Arc::clone(before));
    }
    let (text, written) = changes.read(file)?;
    if let Some(before) = before.filter(|before| before.document.get() == text.trim()) {
        return Ok(Arc::clone(before));
    }
    let tool =
        StoredTool::parse(parse_document(&text)?, bundle).map_err(|error| error.to_string())?;
    let modified_at = later(tool.modified_at, written);
    Ok(Arc::new(StoredTool {
        file: file.to_owned(),
        modified_at,
        ..tool
    }))
}

/// When a document was changed last: a person that changes a file need not change its `modifiedAt`.
/// The daemon gives the files that it writes the time that they say.
fn later(said: Timestamp, written: Option<Timestamp>) -> Timestamp {
    written.map_or(said, |written| said.max(written))
}

/// A time as documents have it.
fn whole_milliseconds(time: SystemTime) -> Option<Timestamp> {
    Timestamp::from_millisecond(Timestamp::try_from(time).ok()?.as_millisecond()).ok()
}

/// The JSON object in a file.
pub(super) fn read_members(file: &Path) -> Result<Map<String, Value>, String> {
    let text = read_opened(open_regular(file).map_err(|error| error.to_string())?)?;
    serde_json::from_str(&text).map_err(|error| no_object(&error))
}

fn parse_document(text: &str) -> Result<StoredDocument, String> {
    StoredDocument::parse(text).map_err(|error| no_object(&error))
}

fn no_object(error: &serde_json::Error) -> String {
    format!(
        "it is no JSON object: {}",
        quoted_excerpt(&error.to_string())
    )
}

/// The text of an open file.
fn read_opened(opened: fs::File) -> Result<String, String> {
    let mut text = Vec::new();
    opened
        .take(FILE_MAX + 1)
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!("it is larger than {} KiB", FILE_MAX >> 10));
    }
    String::from_utf8(text).map_err(|_| "it is no JSON object: it is not UTF-8".to_owned())
}

/// A name that no file in these folders has, for the file of a new tool: slug and version where
/// every file system can hold that, and an id otherwise.
pub(super) fn free_name(folders: &[&Path], tool: &StoredTool) -> String {
    let plain = format!("{}.json", tool.name());
    let every =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte);
    let fits = plain.len() <= FILE_NAME_MAX && plain.bytes().all(every) && !plain.starts_with('.');
    let named = Some(plain)
        .filter(|_| fits)
        .into_iter()
        .chain(tool.id.map(|id| format!("{id}.json")));
    let mut free = named.filter(|name| folders.iter().all(|folder| !folder.join(name).exists()));
    free.next()
        .unwrap_or_else(|| format!("{}.json", new_id(tool.created_at)))
}

/// A document as the text of a file. One that leaves no byte for the end of the line has none.
pub(super) fn text(document: &StoredDocument) -> String {
    let end = if (document.get().len() as u64) < FILE_MAX {
        "\n"
    } else {
        ""
    };
    format!("{}{end}", document.get())
}

/// Writes a document so that a reader sees the old or the new one, and it outlives a crash. The
/// file gets the time at which the document was modified. Blocking.
pub(super) fn write(
    file: &Path,
    document: &StoredDocument,
    modified: Option<Timestamp>,
) -> Result<(), BundleError> {
    replace(file, document, modified)?;
    make_durable(file.parent().unwrap_or(Path::new(".")))
}

/// The same without [`make_durable`] of its folder, for a caller that writes many files. Blocking.
pub(super) fn replace(
    file: &Path,
    document: &StoredDocument,
    modified: Option<Timestamp>,
) -> Result<(), BundleError> {
    let text = text(document);
    let folder = file.parent().unwrap_or(Path::new("."));
    let written = || -> io::Result<()> {
        fs::create_dir_all(folder)?;
        let mut fresh = tempfile::Builder::new().prefix(FRESH).tempfile_in(folder)?;
        fresh.write_all(text.as_bytes())?;
        if let Some(modified) = modified {
            // Where the time cannot be set, the document counts as modified now.
            let _ = fresh.as_file().set_modified(modified.into());
        }
        fresh.as_file().sync_all()?;
        fresh.persist(file).map_err(|error| error.error)?;
        Ok(())
    };
    written().map_err(|error| BundleError::storage("write", file, &error))
}

/// Lets what was made, renamed or removed in a folder outlive a crash. Blocking.
pub(super) fn make_durable(folder: &Path) -> Result<(), BundleError> {
    sync(folder).map_err(|error| BundleError::storage("write", folder, &error))
}

/// Removes a file for good. Blocking.
pub(super) fn remove(file: &Path) -> Result<(), BundleError> {
    let removed =
        fs::remove_file(file).and_then(|()| sync(file.parent().unwrap_or(Path::new("."))));
    removed.map_err(|error| BundleError::storage("remove", file, &error))
}

/// Removes the folder of a bundle if nothing but `bundle.json` is in it. Returns whether it was.
/// Blocking.
pub(super) fn remove_empty(folder: &Path) -> Result<bool, BundleError> {
    let failed = |error: &io::Error| BundleError::storage("remove", folder, error);
    remove_rests(folder)?;
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let names: Vec<_> = entries
        .map_err(|error| failed(&error))?
        .iter()
        .map(fs::DirEntry::file_name)
        .collect();
    if names.iter().any(|name| name != BUNDLE_FILE) {
        return Ok(false);
    }
    for name in names {
        remove(&folder.join(name))?;
    }
    fs::remove_dir(folder).map_err(|error| failed(&error))?;
    Ok(true)
}

/// Removes from a folder what a process that ended did not write to its end. The caller holds the
/// lock, so no other process is writing. Blocking.
pub(super) fn remove_rests(folder: &Path) -> Result<(), BundleError> {
    let removed = || -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry
                .file_name()
                .as_encoded_bytes()
                .starts_with(FRESH.as_bytes())
            {
                if entry.file_type()?.is_dir() {
                    fs::remove_dir_all(entry.path())?;
                } else {
                    fs::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    };
    removed().map_err(|error| BundleError::storage("remove", folder, &error))
}

/// Makes a change of a folder durable.
fn sync(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}
