//! Copies of the state for backup and for moving to another machine.
//!
//! An export is a whole database in one file and may be made while a daemon runs. An import
//! replaces the state and needs it to itself. Neither changes or deletes what it reads: a state
//! that is replaced is renamed and stays.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::failure::{EXPORT, IMPORT, failed};
use super::file::{self, BUSY, Opened};
use super::schema::{self, FileOwner};
use crate::runtime::Clock;
use crate::runtime::open_files::{read_regular, replace_file};
use crate::state::StateError;

/// The next step where the file is no state of callsheet.
const NAME_STATE: &str = "name the state with `--state` or `--config`";

/// The identity under which a daemon announces itself stands beside its database
/// (`discovery::mdns`), and is copied with it.
const IDENTITY: &str = ".id";
/// Bytes of a file with an identity, which is one line.
const IDENTITY_BYTES_MAX: u64 = 1024;

/// Writes a copy of the state at `path` to the new file `to` (mode 0600), and the daemon's identity
/// to `<to>.id` where there is one. A running daemon goes on meanwhile: the copy has everything
/// that was acknowledged before it was begun.
///
/// Fails when there is no state at `path`, when it is damaged or not callsheet's, and when `to`
/// exists or cannot be written; then no file is left behind.
///
/// Source: `VACUUM INTO` (<https://www.sqlite.org/lang_vacuum.html>, section 4).
pub fn export(path: &Path, to: &Path) -> Result<(), StateError> {
    if !path.is_file() {
        return Err(StateError::new(
            EXPORT,
            path,
            "there is no such file",
            NAME_STATE,
        ));
    }
    for target in [to.to_owned(), file::beside(to, IDENTITY)] {
        if target.symlink_metadata().is_ok() {
            let next = "choose another name or move it away";
            return Err(StateError::new(
                EXPORT,
                &target,
                "the file exists already",
                next,
            ));
        }
    }
    // SQLite writes into an empty file, which so has its mode before anything is in it.
    file::private_file()
        .open(to)
        .map_err(|error| unwritable(EXPORT, to, &error))?;
    let copied = copy(path, to).and_then(|()| copy_identity(EXPORT, path, to));
    if copied.is_err() {
        for target in [
            to.to_owned(),
            file::beside(to, IDENTITY),
            file::beside(to, "-journal"),
        ] {
            // What stays is the empty or half-written copy, and the error says that it is none.
            let _ = fs::remove_file(target);
        }
    }
    copied
}

fn copy(path: &Path, to: &Path) -> Result<(), StateError> {
    let connection = open(path).map_err(|error| failed(EXPORT, path, &error))?;
    match schema::owner(&connection).map_err(|error| failed(EXPORT, path, &error))? {
        FileOwner::Us => {}
        other => return Err(not_ours(EXPORT, path, &other)),
    }
    let check: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| failed(EXPORT, path, &error))?;
    if check != "ok" {
        let next = "save what can be read with `sqlite3 FILE .recover`";
        return Err(StateError::new(
            EXPORT,
            path,
            format!("it is damaged ({check})"),
            next,
        ));
    }
    let Some(target) = to.to_str() else {
        return Err(StateError::new(
            EXPORT,
            to,
            "the name is not UTF-8",
            "choose another name",
        ));
    };
    connection
        .execute("VACUUM INTO ?1", [target])
        .map_err(|error| failed(EXPORT, to, &error))?;
    File::open(to)
        .and_then(|copy| copy.sync_all())
        .map_err(|error| unwritable(EXPORT, to, &error))
}

/// Opens a database that is there. A log beside it is read and stays as it is.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_db_config(
        DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
        file::has_log(path),
    )?;
    Ok(connection)
}

/// Replaces the state at `path` by the export `from`, with the identity in `<from>.id` where there
/// is one. Returns where the state that was there before is now.
///
/// The export is copied, checked and brought to the current version first. Fails when a daemon runs
/// on the state, and when `from` is damaged, another program's or a newer callsheet's; then the
/// state is as it was.
pub fn import(path: &Path, from: &Path, clock: Clock) -> Result<Option<PathBuf>, StateError> {
    if !from.is_file() {
        let next = "name one that `callsheet state export` wrote";
        return Err(StateError::new(IMPORT, from, "there is no such file", next));
    }
    if file::has_log(from) {
        let message =
            "changes wait in the file beside it (`-wal`), so it is no export but a state in use";
        return Err(StateError::new(
            IMPORT,
            from,
            message,
            "copy it with `callsheet state export`",
        ));
    }
    let mut lock = file::lock(path)?;
    let incoming = file::beside(path, ".incoming");
    let prepared = prepare(from, &incoming);
    if prepared.is_err() {
        // A copy that cannot be removed is written over by the next import.
        let _ = fs::remove_file(&incoming);
    }
    prepared?;
    let replaced = if path.symlink_metadata().is_ok() {
        Some(file::move_aside(path, "replaced", clock)?)
    } else {
        None
    };
    fs::rename(&incoming, path).map_err(|error| unwritable(IMPORT, path, &error))?;
    copy_identity(IMPORT, from, path)?;
    lock.note_use();
    Ok(replaced)
}

/// Makes a copy of `from` that this version of callsheet can use.
fn prepare(from: &Path, incoming: &Path) -> Result<(), StateError> {
    fn write(from: &Path, incoming: &Path) -> std::io::Result<()> {
        let mut copy = file::private_file().open(incoming)?;
        copy.set_len(0)?;
        std::io::copy(&mut File::open(from)?, &mut copy)?;
        copy.sync_all()
    }
    write(from, incoming).map_err(|error| unwritable(IMPORT, incoming, &error))?;
    let empty = incoming.metadata().is_ok_and(|copy| copy.len() == 0);
    let opened = match file::try_open(incoming) {
        Ok(_) if empty => Err("it is empty".to_owned()),
        Ok(Opened::Usable(connection)) => {
            connection.close().map_err(|(_, error)| error.to_string())
        }
        Ok(Opened::Unsound(damage)) => Err(format!("it is damaged ({damage})")),
        Ok(Opened::NotOurs { message, next }) => {
            return Err(StateError::new(IMPORT, from, message, next));
        }
        Err(error) if file::is_damage(&error) => {
            Err(format!("it is damaged or no database ({error})"))
        }
        Err(error) => return Err(failed(IMPORT, from, &error)),
    };
    let next = "name another file that `callsheet state export` wrote";
    opened.map_err(|damage| StateError::new(IMPORT, from, damage, next))
}

/// Copies the identity beside one database to the other, where there is one.
fn copy_identity(what: &'static str, from: &Path, to: &Path) -> Result<(), StateError> {
    let source = file::beside(from, IDENTITY);
    let target = file::beside(to, IDENTITY);
    let identity = match read_regular(&source, IDENTITY_BYTES_MAX) {
        Ok(identity) => identity,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            let message = format!("the daemon's id cannot be read: {error}");
            return Err(StateError::new(
                what,
                &source,
                message,
                "move this file away and try again",
            ));
        }
    };
    replace_file(&target, identity.as_bytes()).map_err(|error| unwritable(what, &target, &error))
}

fn not_ours(what: &'static str, path: &Path, owner: &FileOwner) -> StateError {
    match owner {
        FileOwner::NewerVersion(version) => {
            let current = schema::current();
            let message = format!(
                "it has schema version {version}, but this callsheet knows versions up to {current}"
            );
            StateError::new(what, path, message, "use the newer callsheet")
        }
        _ => StateError::new(what, path, "it is another program's database", NAME_STATE),
    }
}

fn unwritable(what: &'static str, path: &Path, error: &std::io::Error) -> StateError {
    let next = "make the file and its folder writable for this user, or choose another place";
    StateError::new(what, path, error.to_string(), next).with_io_kind(error)
}
