//! A bundle as a ZIP archive: its `bundle.json` and the files of its tools, in one folder.
//!
//! An archive that is read comes from anywhere. Names that lead out of it, names that come twice,
//! links, encrypted entries and everything beyond the limits are refused as a whole, before any of
//! it is used. Nothing is written to disk here.

use std::collections::BTreeSet;
use std::io::{self, Read, Write as _};
use std::path::Path;

use super::files::{self, BUNDLE_FILE};
use super::stored_document::FILE_MAX;
use super::{BundleDefinition, BundleError, StoredDocument, StoredTool};
use flate2::Compression;
use flate2::bufread::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rawzip::{
    CompressionMethod, ZipArchive, ZipArchiveWriter, ZipFileHeaderRecord, ZipSliceArchive,
};

/// Entries of an archive at most.
const ENTRIES_MAX: usize = 10_000;
/// Bytes of all its files together, unpacked, at most.
const UNPACKED_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of an archive at most.
pub const ARCHIVE_MAX: usize = 64 * 1024 * 1024;

/// What is in an archive.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchivedBundle {
    /// `bundle.json`.
    pub definition: BundleDefinition,
    /// The tools, each a version of its own.
    pub tools: Vec<StoredTool>,
}

fn refused(why: impl Into<String>) -> BundleError {
    BundleError::Archive(why.into())
}

fn too_large(most_bytes: usize) -> BundleError {
    refused(format!(
        "its tools need more than the {most_bytes} bytes that `bundles.max_bytes` allows; raise it, or import fewer tools"
    ))
}

/// The archive of a bundle with the documents of its tools. No entry has a time, so the same bundle
/// gives the same bytes.
pub fn write(
    definition: &StoredDocument,
    tools: &[StoredDocument],
) -> Result<Vec<u8>, BundleError> {
    let mut bytes = Vec::new();
    let mut archive = ZipArchiveWriter::new(&mut bytes);
    let mut add = |name: &str, text: &[u8]| -> Result<(), rawzip::Error> {
        let (mut entry, config) = archive
            .new_file(name)
            .compression_method(CompressionMethod::DEFLATE)
            .start()?;
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
        writer.write_all(text)?;
        let (encoder, descriptor) = writer.finish()?;
        encoder.finish()?;
        entry.finish(descriptor).map(drop)
    };
    let failed = |error: rawzip::Error| refused(error.to_string());
    add(BUNDLE_FILE, files::text(definition).as_bytes()).map_err(failed)?;
    for (at, tool) in tools.iter().enumerate() {
        // A name on every system; slug and version stand in the file.
        add(&format!("tools/{at:05}.json"), files::text(tool).as_bytes()).map_err(failed)?;
    }
    archive.finish().map_err(failed)?;
    Ok(bytes)
}

/// Reads an archive whose tools take at most so many bytes of memory (`bundles.max_bytes`).
pub fn read(bytes: &[u8], most_bytes: usize) -> Result<ArchivedBundle, BundleError> {
    if bytes.len() > ARCHIVE_MAX {
        return Err(refused(format!(
            "it is larger than {} MiB",
            ARCHIVE_MAX >> 20
        )));
    }
    let mut definition = None;
    let mut tools = Vec::new();
    for (name, document) in documents(bytes, most_bytes)? {
        if name.rsplit('/').next() == Some(BUNDLE_FILE) {
            let read = BundleDefinition::parse(document)
                .map_err(|error| refused(format!("`{name}`: {error}")))?;
            if definition.replace(read).is_some() {
                return Err(refused("it has more than one bundle"));
            }
        } else {
            tools.push((name, document));
        }
    }
    let definition = definition.ok_or_else(|| refused(format!("it has no `{BUNDLE_FILE}`")))?;
    if definition.is_built_in {
        return Err(refused(format!(
            "`{BUNDLE_FILE}` says `isBuiltIn`, and what is built in is a part of the program"
        )));
    }
    if definition.soft_deleted_at.is_some() {
        return Err(refused(format!(
            "`{BUNDLE_FILE}` says `softDeletedAt`, and a deleted bundle cannot be imported"
        )));
    }
    parsed(definition, tools, most_bytes)
}

/// The documents of an archive with their names. Their texts have at most so many bytes.
fn documents(
    bytes: &[u8],
    most_bytes: usize,
) -> Result<Vec<(String, StoredDocument)>, BundleError> {
    let archive =
        ZipArchive::from_slice(bytes).map_err(|error| refused(format!("it is no ZIP: {error}")))?;
    let mut entries = archive.entries();
    let mut names = BTreeSet::new();
    let mut left = UNPACKED_MAX;
    let mut texts = 0;
    let mut documents = Vec::new();
    while let Some(entry) = entries
        .next_entry()
        .map_err(|error| refused(format!("its directory cannot be read: {error}")))?
    {
        let name = name(&entry)?;
        // Letter case is no difference on every system.
        if !names.insert(name.trim_end_matches('/').to_lowercase()) {
            return Err(refused(format!("`{name}` is in it twice")));
        }
        if names.len() > ENTRIES_MAX {
            return Err(refused(format!("it has more than {ENTRIES_MAX} entries")));
        }
        let file = name.rsplit('/').next().unwrap_or_default();
        let is_json = Path::new(file).extension().is_some_and(|end| end == "json");
        if entry.is_dir() || !is_json || file.starts_with('.') {
            continue;
        }
        let text = text(&archive, &entry, &name, FILE_MAX.min(left))?;
        left -= text.len() as u64;
        // Each takes at least the bytes of its text: what is too large is refused unread.
        texts += text.len();
        if texts > most_bytes {
            return Err(too_large(most_bytes));
        }
        let document = StoredDocument::parse(&text)
            .map_err(|error| refused(format!("`{name}` is no JSON object: {error}")))?;
        documents.push((name, document));
    }
    Ok(documents)
}

/// The text of an entry, of at most so many bytes.
fn text(
    archive: &ZipSliceArchive<&[u8]>,
    entry: &ZipFileHeaderRecord<'_>,
    name: &str,
    limit: u64,
) -> Result<String, BundleError> {
    let text = unpacked(archive, entry, limit)
        .map_err(|error| refused(format!("`{name}` cannot be unpacked: {error}")))?;
    if text.len() as u64 > limit {
        let most = FILE_MAX >> 10;
        return Err(refused(format!(
            "`{name}` is larger than {most} KiB, or all files together are too large"
        )));
    }
    String::from_utf8(text)
        .map_err(|_| refused(format!("`{name}` is no JSON object: it is not UTF-8")))
}

/// The name of an entry that stays within the archive and is a file or a folder.
fn name(entry: &ZipFileHeaderRecord<'_>) -> Result<String, BundleError> {
    let path = entry.file_path();
    let shown = || {
        String::from_utf8_lossy(path.as_bytes())
            .chars()
            .take(100)
            .flat_map(char::escape_debug)
            .collect::<String>()
    };
    let name = std::str::from_utf8(path.as_bytes())
        .ok()
        .filter(|name| is_plain(name));
    let name = name.filter(|_| !entry.mode().is_symlink());
    name.map(str::to_owned)
        .ok_or_else(|| refused(format!("`{}` leads out of it, or is a link", shown())))
}

/// The content of an entry, up to one byte more than `limit`, with its checksum compared where it
/// was read to its end.
fn unpacked(
    archive: &ZipSliceArchive<&[u8]>,
    entry: &ZipFileHeaderRecord<'_>,
    limit: u64,
) -> Result<Vec<u8>, rawzip::Error> {
    let mut text = Vec::new();
    let stored = archive.get_entry(entry.wayfinder())?;
    match entry.compression_method() {
        _ if entry.flags().is_encrypted() => return Err(io::Error::other("it is encrypted").into()),
        CompressionMethod::STORE => {
            stored
                .verifying_reader(stored.data())
                .take(limit + 1)
                .read_to_end(&mut text)?;
        }
        CompressionMethod::DEFLATE => {
            stored
                .verifying_reader(DeflateDecoder::new(stored.data()))
                .take(limit + 1)
                .read_to_end(&mut text)?;
        }
        _ => {
            return Err(io::Error::other("it is compressed in another way than by DEFLATE").into());
        }
    }
    Ok(text)
}

/// Parses the tools of a bundle, each of which is a version of its own.
fn parsed(
    definition: BundleDefinition,
    documents: Vec<(String, StoredDocument)>,
    most_bytes: usize,
) -> Result<ArchivedBundle, BundleError> {
    let mut tools = Vec::new();
    let mut seen = BTreeSet::new();
    let mut bytes = definition.bytes();
    for (name, document) in documents {
        let tool = StoredTool::parse(document, definition.id)
            .map_err(|error| refused(format!("`{name}`: {error}")))?;
        if !seen.insert((tool.slug.clone(), tool.version.clone())) {
            return Err(refused(format!(
                "`{name}` is version `{}` of `{}` again",
                tool.version, tool.slug
            )));
        }
        bytes = bytes.saturating_add(tool.bytes);
        if bytes > most_bytes {
            return Err(too_large(most_bytes));
        }
        tools.push(tool);
    }
    Ok(ArchivedBundle { definition, tools })
}

/// Whether a name stays within the archive on every system.
fn is_plain(name: &str) -> bool {
    let parts = name.trim_end_matches('/').split('/');
    !name.is_empty()
        && !name.contains(['\\', ':', '\0'])
        && !name.chars().any(char::is_control)
        && parts
            .into_iter()
            .all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, Value, json};

    const ID: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";
    const MOST_BYTES: usize = 32 << 20;

    fn bundle() -> Map<String, Value> {
        let document = json!({"schemaVersion": "2025-07-01", "id": ID, "slug": "net", "displayName": "Net",
            "createdAt": "2024-05-14T13:44:00Z"});
        document.as_object().unwrap().clone()
    }

    fn tool(slug: &str) -> Map<String, Value> {
        let document = json!({"schemaVersion": "2025-07-01", "bundleID": ID, "slug": slug, "version": "v1",
            "displayName": "T", "type": "go", "impl": {"goFunc": "a.B"}, "createdAt": "2024-05-14T13:44:00Z"});
        document.as_object().unwrap().clone()
    }

    fn packed(files: &[(&str, String)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut archive = ZipArchiveWriter::new(&mut bytes);
        for (name, text) in files {
            let path = rawzip::path::EntryPath::verbatim(name.as_bytes());
            let (mut entry, config) = archive
                .new_file(path)
                .compression_method(CompressionMethod::DEFLATE)
                .start()
                .unwrap();
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
            writer.write_all(text.as_bytes()).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
        archive.finish().unwrap();
        bytes
    }

    fn text(document: &Map<String, Value>) -> String {
        Value::Object(document.clone()).to_string()
    }

    #[test]
    fn what_is_written_is_read_and_gives_the_same_bytes() {
        let tools = [tool("a"), tool("b")].map(|tool| StoredDocument::from_members(&tool).unwrap());
        let definition = StoredDocument::from_members(&bundle()).unwrap();
        let bytes = write(&definition, &tools).unwrap();
        assert_eq!(bytes, write(&definition, &tools).unwrap());
        let read = read(&bytes, MOST_BYTES).unwrap();
        assert_eq!(read.definition.document, definition);
        let documents: Vec<_> = read
            .tools
            .iter()
            .map(|tool| tool.document.clone())
            .collect();
        assert_eq!(documents, tools);
    }

    #[test]
    fn hostile_archives_are_refused_as_a_whole() {
        let good = ("net/bundle.json", text(&bundle()));
        let large = format!("{{\"a\": \"{}\"}}", " ".repeat(256 * 1024));
        for (files, told) in [
            (
                vec![good.clone(), ("../x.json", text(&tool("a")))],
                "leads out",
            ),
            (
                vec![good.clone(), ("/etc/x.json", text(&tool("a")))],
                "leads out",
            ),
            (
                vec![good.clone(), ("a\\..\\x.json", text(&tool("a")))],
                "leads out",
            ),
            (
                vec![good.clone(), ("C:x.json", text(&tool("a")))],
                "leads out",
            ),
            (
                vec![good.clone(), ("a//x.json", text(&tool("a")))],
                "leads out",
            ),
            (
                vec![
                    good.clone(),
                    ("x.json", text(&tool("a"))),
                    ("X.json", text(&tool("b"))),
                ],
                "twice",
            ),
            (
                vec![
                    good.clone(),
                    ("x.json", text(&tool("a"))),
                    ("y.json", text(&tool("a"))),
                ],
                "again",
            ),
            (
                vec![good.clone(), ("other/bundle.json", text(&bundle()))],
                "more than one bundle",
            ),
            (vec![good.clone(), ("x.json", large)], "larger than"),
            (
                vec![good.clone(), ("x.json", "[]".to_owned())],
                "no JSON object",
            ),
            (
                vec![good.clone(), ("x.json", "{}".to_owned())],
                "schemaVersion",
            ),
            (vec![("x.json", text(&tool("a")))], "no `bundle.json`"),
        ] {
            let error = read(&packed(&files), MOST_BYTES).unwrap_err().to_string();
            assert!(error.contains(told), "{told}: {error}");
        }
        assert!(
            read(b"PK\x05\x06", MOST_BYTES)
                .unwrap_err()
                .to_string()
                .contains("no ZIP")
        );
    }

    /// A list of empty lists takes forty times its bytes as a tree, so none is kept, and what the
    /// tools need in memory is limited.
    #[test]
    fn unknown_members_take_their_text_and_tools_beyond_the_memory_are_refused() {
        let mut large = tool("a");
        large.insert(
            "x-junk".to_owned(),
            json!(vec![Value::Array(Vec::new()); 60_000]),
        );
        let files = [("bundle.json", text(&bundle())), ("a.json", text(&large))];
        let archived = read(&packed(&files), MOST_BYTES).unwrap();
        assert!(
            archived.tools[0].bytes < 200 * 1024,
            "{}",
            archived.tools[0].bytes
        );
        let refused = read(&packed(&files), 100 * 1024).unwrap_err().to_string();
        assert!(refused.contains("`bundles.max_bytes` allows"), "{refused}");
    }

    /// Many small files that are large together.
    #[test]
    fn an_archive_that_unpacks_to_too_much_is_refused() {
        let text = format!("{{\"a\": \"{}\"}}", "0".repeat(200 * 1024));
        let names: Vec<String> = (0..400).map(|n| format!("{n}.json")).collect();
        let files: Vec<(&str, String)> = names
            .iter()
            .map(|name| (name.as_str(), text.clone()))
            .collect();
        let bytes = packed(&files);
        assert!(bytes.len() < 1024 * 1024, "{}", bytes.len());
        assert!(
            read(&bytes, usize::MAX)
                .unwrap_err()
                .to_string()
                .contains("too large")
        );
    }

    #[test]
    fn an_archive_with_more_entries_than_are_read_is_refused() {
        let mut bytes = Vec::new();
        let mut archive = ZipArchiveWriter::new(&mut bytes);
        for number in 0..=ENTRIES_MAX {
            archive.new_dir(format!("{number}/")).create().unwrap();
        }
        archive.finish().unwrap();
        let refused = read(&bytes, MOST_BYTES).unwrap_err().to_string();
        assert!(refused.contains("more than 10000 entries"), "{refused}");
    }
}
