//! The identity of this daemon, independent of its address and name: an id that is made once and
//! kept beside the database.
//!
//! It is what a daemon announces, what it knows its own announcement by, and what marks the tools
//! that came through it, so that two daemons that list each other do not list their own tools
//! again. A copied folder has the same id: when you clone an installation, remove the file from the
//! copy.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::is_id;
use crate::runtime::open_files::{read_regular, replace_file};

/// Bytes of the file, which is one line.
const FILE_BYTES_MAX: u64 = 1024;

/// The id of the daemon whose database is at `database`: the content of the file beside it
/// (`<database>.id`), which is written when it is not there. When it can neither be read nor
/// written the id lasts for this run only, which is logged.
pub fn load_or_create(database: &Path) -> String {
    let path = beside(database);
    kept(&path).unwrap_or_else(|error| {
        let hint = "move what is there away, or make the folder writable for this user";
        tracing::warn!(path = %path.display(), %error, hint, "the daemon's id cannot be kept, so it changes at the next start");
        made()
    })
}

/// Where the id is kept. It has the database's name in it, since two daemons may keep their
/// databases in one folder.
pub fn beside(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".id");
    name.into()
}

fn kept(path: &Path) -> io::Result<String> {
    match read_regular(path, FILE_BYTES_MAX) {
        Ok(text) if is_id(text.trim()) => return Ok(text.trim().to_owned()),
        Ok(_) => {
            tracing::warn!(path = %path.display(), "this file has no id, so a new one is made");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let id = made();
    // Half an id would be another one.
    replace_file(path, format!("{id}\n").as_bytes())?;
    Ok(id)
}

fn made() -> String {
    uuid::Uuid::new_v4().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn an_id_is_made_once_and_a_broken_one_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("state.db");
        let first = load_or_create(&database);
        assert!(is_id(&first));
        assert_eq!(load_or_create(&database), first);
        assert_ne!(load_or_create(&folder.path().join("other.db")), first);
        fs::write(beside(&database), "two words\n").unwrap();
        let second = load_or_create(&database);
        assert!(is_id(&second) && second != first);
        assert_eq!(load_or_create(&database), second);
    }

    #[test]
    fn without_a_place_to_keep_it_there_is_still_an_id() {
        assert!(is_id(&load_or_create(Path::new(
            "/nowhere at all/state.db"
        ))));
    }
}
