//! One file between reading and writing: what was read, so that what another program wrote
//! meanwhile is not lost.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::EditError;
use super::replace::{FileReaders, replace};
use crate::config::file::CONFIG_FILE_BYTES_MAX;
use crate::runtime::open_files::read_regular;

/// A file that was read.
#[derive(Debug)]
pub(super) struct FileEdit {
    path: PathBuf,
    /// The text, `None` if there was no such file, or why it cannot be read.
    before: Result<Option<String>, String>,
}

impl FileEdit {
    /// Reads it.
    pub(super) fn open(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            before: read(path).map_err(|error| error.to_string()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What was read; empty if there was no file. The error says why it cannot be read.
    pub(super) fn text(&self) -> Result<&str, &str> {
        self.before
            .as_ref()
            .map(|text| text.as_deref().unwrap_or_default())
            .map_err(String::as_str)
    }

    /// Replaces what was read, unless the file has other content by now. `by_hand` has the lines
    /// that a person writes otherwise, and what to do with them.
    pub(super) fn write(
        &self,
        text: &str,
        readers: FileReaders,
        by_hand: (&str, &'static str),
    ) -> Result<(), EditError> {
        let failed =
            |error: std::io::Error| self.unwritable(error.to_string(), by_hand.0, by_hand.1);
        if let Some(folder) = self.path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        if self.before.as_ref() != Ok(&read(&self.path).map_err(failed)?) {
            return Err(EditError::Changed {
                path: self.path.clone(),
            });
        }
        replace(&self.path, text, readers).map_err(failed)
    }

    /// Puts back what was read.
    pub(super) fn take_back(&self) -> std::io::Result<()> {
        match &self.before {
            Ok(Some(text)) => replace(&self.path, text, FileReaders::AsBefore),
            Ok(None) => std::fs::remove_file(&self.path),
            // Then nothing was written either.
            Err(_) => Ok(()),
        }
    }

    pub(super) fn unwritable(&self, why: String, lines: &str, by_hand: &'static str) -> EditError {
        let what = if self.before == Ok(None) {
            "created"
        } else {
            "changed"
        };
        EditError::Unwritable {
            path: self.path.clone(),
            what,
            why,
            by_hand,
            lines: lines.to_owned(),
        }
    }
}

fn read(path: &Path) -> std::io::Result<Option<String>> {
    match read_regular(path, CONFIG_FILE_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_meanwhile_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("callsheet.toml");
        let by_hand = ("", "");
        for meanwhile in [Some("b"), Some(""), None] {
            std::fs::write(&path, "a").unwrap();
            let edit = FileEdit::open(&path);
            match meanwhile {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let refused = edit.write("c", FileReaders::AsBefore, by_hand);
            assert!(
                matches!(refused, Err(EditError::Changed { .. })),
                "{meanwhile:?}: {refused:?}"
            );
            assert_eq!(read(&path).unwrap().as_deref(), meanwhile);
        }
        let edit = FileEdit::open(&path);
        std::fs::write(&path, "made meanwhile").unwrap();
        assert!(edit.write("c", FileReaders::AsBefore, by_hand).is_err());
        let edit = FileEdit::open(&path);
        edit.write("c", FileReaders::AsBefore, by_hand).unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("c"));
        edit.take_back().unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("made meanwhile"));
    }
}
