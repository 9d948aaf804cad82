//! Listing and reading the processes folder. Blocking; called on the blocking pool only.
//!
//! The depth is fixed: `<path>/<scenario>/<file>`. A linked folder is read like any other, and
//! nothing below it is walked, so a link that points back up does no harm.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, DirEntry};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use super::assemble::{File, Folder};
use super::process_file::{FILES, MAX_BYTES, ProcessFileError};

/// Names given as examples of what was left out.
const EXAMPLES: usize = 3;

/// The folders of scenarios, bytewise in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FolderListing {
    /// The folders to read.
    pub(super) folders: Vec<PathBuf>,
    /// How many more there are.
    pub(super) left_out: usize,
    /// The names of the first few of those.
    pub(super) examples: Vec<String>,
}

/// Lists the folders below `root`, at most `max`. Plain files and links that lead nowhere are no
/// entries. However many there are, no more than `max` and a few names are held.
pub(super) fn list(root: &Path, max: usize) -> io::Result<FolderListing> {
    let mut names: BTreeSet<OsString> = BTreeSet::new();
    let mut seen: usize = 0;
    for entry in fs::read_dir(root)? {
        let entry = entry?;
        if is_folder(&entry) {
            seen += 1;
            names.insert(entry.file_name());
            if names.len() > max.saturating_add(EXAMPLES) {
                names.pop_last();
            }
        }
    }
    let examples = names
        .iter()
        .skip(max)
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    let folders = names.iter().take(max).map(|name| root.join(name)).collect();
    Ok(FolderListing {
        folders,
        left_out: seen.saturating_sub(max),
        examples,
    })
}

/// Reads the process files of one scenario's folder.
pub(super) fn read(path: PathBuf) -> Folder {
    let found: Vec<File> = FILES
        .into_iter()
        .filter_map(|name| read_file(&path.join(name)).map(|text| File { name, text }))
        .collect();
    // If not even the presence of the files can be checked, the folder is the problem, and one
    // finding is enough.
    let unreadable = |file: &File| matches!(file.text, Err(ProcessFileError::Unreadable(_)));
    let files = match found.first() {
        Some(File {
            text: Err(problem), ..
        }) if found.len() == FILES.len() && found.iter().all(unreadable) => Err(problem.clone()),
        _ => Ok(found),
    };
    Folder { path, files }
}

fn is_folder(entry: &DirEntry) -> bool {
    match entry.file_type() {
        Ok(kind) if kind.is_symlink() => match fs::metadata(entry.path()) {
            Ok(target) => target.is_dir(),
            // A link to something that cannot be looked at is kept, so that reading it says what is
            // wrong.
            Err(error) => error.kind() != ErrorKind::NotFound,
        },
        Ok(kind) => kind.is_dir(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// The text of a file; `None` if it is not there.
fn read_file(path: &Path) -> Option<Result<String, ProcessFileError>> {
    match read_bytes(path) {
        Ok(bytes) if bytes.len() > MAX_BYTES => Some(Err(ProcessFileError::TooLarge)),
        Ok(bytes) => Some(
            String::from_utf8(bytes)
                .map_err(|_| ProcessFileError::NotJson("it is not UTF-8".into())),
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) if error.kind() == ErrorKind::InvalidInput => {
            Some(Err(ProcessFileError::NotAFile))
        }
        Err(error) => Some(Err(ProcessFileError::Unreadable(error.to_string()))),
    }
}

/// At most one byte more than may be there. Asks what it is first, since opening a pipe would wait
/// for a writer.
fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        return Err(ErrorKind::InvalidInput.into());
    }
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
