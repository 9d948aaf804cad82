//! The database file: its folder, its lock, and the replacement of a damaged one.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::{OPEN, failed};
use super::schema::{self, FileOwner};
use crate::runtime::Clock;
use crate::runtime::file_stamp::FileIdentity;
#[cfg(unix)]
use crate::runtime::open_files::{NO_FOLLOW, NO_WAIT};
use crate::runtime::open_files::{open_regular, require_regular};
use crate::state::StateError;

/// How long a write waits while another program, such as a `sqlite3` shell, has the file locked.
pub(super) const BUSY: Duration = Duration::from_secs(5);
/// KiB of the pages that SQLite keeps in memory.
const CACHE_KIB: i32 = 512;
/// The endings of the files that belong together: the database and the two that SQLite keeps beside
/// it.
const COMPANIONS: [&str; 3] = ["", "-wal", "-shm"];
/// Earlier versions kept prepared lists in these files beside the database. They are not read any
/// more.
const OBSOLETE: [&str; 2] = [".lists", ".lists.new"];

/// A running daemon that holds the lock of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockHolder {
    /// Its process id, as far as it is known.
    pub process: Option<u32>,
}

/// Keeps other daemons away from the file until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// Whether an empty file has lost its data: a daemon has used the state before, or left other
    /// files beside it. A daemon that was killed while it made the file leaves a lock file without
    /// a note of use, and a file that was made for the first start (`touch`, a mounted file) has no
    /// other one beside it: emptying that cannot be told from making it.
    pub(super) empty_is_lost: bool,
}

/// The text in the lock file once the state was used.
const USED: &str = "used";

impl Lock {
    /// Notes in the lock file that the state is in use from now on.
    pub(super) fn note_use(&mut self) {
        // Without the note, an emptied file is taken for one that was just made; there is no other
        // harm.
        let _ = self
            .file
            .rewind()
            .and_then(|()| writeln!(self.file, "{}\n{USED}", std::process::id()));
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone may come too late: a child process that is just being started holds the
        // file open until it has begun. If unlocking fails, closing is the only way left.
        let _ = self.file.unlock();
    }
}

/// Makes the folder if needed and takes the lock that one daemon at a time holds. The lock goes
/// with the process, however that ends; the lock file stays, because deleting it would let two
/// daemons hold a lock of the same name.
pub(super) fn lock(path: &Path) -> Result<Lock, StateError> {
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        private_folder().create(folder).map_err(|error| {
            let message = format!("the folder cannot be made: {error}");
            StateError::new(
                OPEN,
                path,
                message,
                "make it, or set `state.path` to another file",
            )
            .with_io_kind(&error)
        })?;
    }
    let lock_path = beside(path, ".lock");
    let lock = unlinked_file().open(&lock_path).map_err(|error| {
        let message = format!("`{}` cannot be made: {error}", lock_path.display());
        let next = "make the folder writable for this user, or set `state.path` to another file";
        StateError::new(OPEN, path, message, next).with_io_kind(&error)
    })?;
    let mut lock = require_regular(lock).map_err(|error| irregular(path, &lock_path, &error))?;
    match lock.try_lock() {
        Ok(()) => {
            let note = noted(&mut lock);
            let was_used = note.lines().any(|line| line == USED);
            let empty_is_lost = was_used || (note.is_empty() && has_traces(path));
            let note = format!(
                "{}\n{}",
                std::process::id(),
                if was_used { "used\n" } else { "" }
            );
            // The note is for operators only, so a failure to write it does no harm.
            let _ = lock
                .set_len(0)
                .and_then(|()| lock.rewind())
                .and_then(|()| lock.write_all(note.as_bytes()));
            Ok(Lock {
                file: lock,
                empty_is_lost,
            })
        }
        Err(TryLockError::WouldBlock) => {
            let process = process(&mut lock)
                .map(|process| format!(" (process {process})"))
                .unwrap_or_default();
            let message = format!("another daemon{process} is running on it");
            Err(StateError::new(
                OPEN,
                path,
                message,
                "stop that one, or set `state.path` to another file",
            ))
        }
        Err(TryLockError::Error(error)) => {
            let message = format!("`{}` cannot be locked: {error}", lock_path.display());
            Err(StateError::new(
                OPEN,
                path,
                message,
                "set `state.path` to a file on a local disk",
            ))
        }
    }
}

/// The error for a pipe or a device in the place of a file of the state.
fn irregular(path: &Path, place: &Path, error: &std::io::Error) -> StateError {
    let message = format!("`{}` cannot be used: {error}", place.display());
    let next = "move it away, or set `state.path` to another file";
    StateError::new(OPEN, path, message, next).with_io_kind(error)
}

/// The process that holds the lock of the state at `path`.
pub(super) fn holder(path: &Path) -> Option<LockHolder> {
    let mut lock = open_regular(&beside(path, ".lock")).ok()?;
    match lock.try_lock_shared() {
        // Closing the file releases the lock.
        Ok(()) | Err(TryLockError::Error(_)) => None,
        Err(TryLockError::WouldBlock) => Some(LockHolder {
            process: process(&mut lock),
        }),
    }
}

/// The process that holds the lock, according to the lock file.
fn process(lock: &mut File) -> Option<u32> {
    noted(lock)
        .lines()
        .next()
        .and_then(|line| line.trim().parse().ok())
}

/// The text of the lock file; empty when it cannot be read.
fn noted(lock: &mut File) -> String {
    let mut text = String::new();
    let read = lock.take(40).read_to_string(&mut text);
    read.map(|_| text).unwrap_or_default()
}

/// A database that is open, and the damage that made it a fresh one.
pub(super) struct OpenedFile {
    pub(super) connection: Connection,
    pub(super) damage: Option<Damage>,
}

/// A damaged file that was moved aside.
pub(super) struct Damage {
    /// What is wrong with it.
    pub(super) what: String,
    /// Where it is now.
    pub(super) aside: PathBuf,
}

/// Opens the file, checked and at the current version. A damaged file is moved aside and replaced
/// by a new one.
pub(super) fn open_or_replace(
    path: &Path,
    empty_is_lost: bool,
    clock: Clock,
) -> Result<OpenedFile, StateError> {
    let what = match lost(path, empty_is_lost) {
        Some(damage) => damage,
        None => match open_checked(path)? {
            Checked::Good(connection) => {
                return Ok(OpenedFile {
                    connection,
                    damage: None,
                });
            }
            Checked::Damaged(damage) => damage,
        },
    };
    let aside = move_aside(path, "damaged", clock)?;
    match open_checked(path)? {
        Checked::Good(connection) => Ok(OpenedFile {
            connection,
            damage: Some(Damage { what, aside }),
        }),
        Checked::Damaged(damage) => {
            let message = format!("a fresh file is damaged at once ({damage})");
            Err(StateError::new(
                OPEN,
                path,
                message,
                "check the disk, or set `state.path` elsewhere",
            ))
        }
    }
}

/// Losses that SQLite does not report as damage but would delete or ignore: changes that wait
/// beside a missing or empty file, a file that was emptied, and an empty folder in place of the
/// file (container engines create one when a file that they are to mount does not exist).
fn lost(path: &Path, empty_is_lost: bool) -> Option<String> {
    let empty = match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return fs::read_dir(path)
                .is_ok_and(|mut held| held.next().is_none())
                .then(|| "it is a folder".to_owned());
        }
        Ok(found) => found.len() == 0,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !empty {
        return None;
    }
    let emptied = empty_is_lost && fs::metadata(path).is_ok_and(|found| found.is_file());
    if has_log(path) {
        Some("it is empty, while changes to it wait in the file beside it".to_owned())
    } else {
        emptied.then(|| "it is empty, and a file that callsheet makes is not".to_owned())
    }
}

enum Checked {
    Good(Connection),
    /// The file is damaged; holds the reason.
    Damaged(String),
}

fn open_checked(path: &Path) -> Result<Checked, StateError> {
    // SQLite gives its companion files the mode of the main file, so that is made first.
    let file = private_file().open(path).map_err(|error| {
        let next = "make the file writable for this user, or set `state.path` to another file";
        StateError::new(OPEN, path, error.to_string(), next).with_io_kind(&error)
    })?;
    require_regular(file).map_err(|error| irregular(path, path, &error))?;
    match try_open(path) {
        Ok(Opened::Usable(connection)) => Ok(Checked::Good(connection)),
        Ok(Opened::Unsound(damage)) => Ok(Checked::Damaged(damage)),
        Ok(Opened::NotOurs { message, next }) => Err(StateError::new(OPEN, path, message, next)),
        Err(error) if is_damage(&error) => Ok(Checked::Damaged(error.to_string())),
        Err(error) => Err(failed(OPEN, path, &error)),
    }
}

pub(super) enum Opened {
    Usable(Connection),
    /// The check failed with this message.
    Unsound(String),
    /// Another program's file, or a newer callsheet's.
    NotOurs {
        /// Whose it is, for the operator.
        message: String,
        /// What the operator does next.
        next: &'static str,
    },
}

pub(super) fn try_open(path: &Path) -> rusqlite::Result<Opened> {
    // No URI: a path that happens to begin with `file:` is a path.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    // Until the file is known to be sound: closing would write the log into a damaged file and
    // delete the log.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log(path))?;
    // Before any write: another program's file stays as it is.
    match schema::owner(&connection)? {
        FileOwner::Us => {}
        FileOwner::NewerVersion(version) => {
            let current = schema::current();
            return Ok(Opened::NotOurs {
                message: format!(
                    "it has schema version {version}, but this callsheet knows versions up to {current}"
                ),
                next: "start the newer callsheet that wrote it, or set `state.path` to another file",
            });
        }
        FileOwner::Stranger => {
            let message = "it is another program's database".to_owned();
            return Ok(Opened::NotOurs {
                message,
                next: "set `state.path` to another file",
            });
        }
    }
    let check: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if check != "ok" {
        return Ok(Opened::Unsound(check));
    }
    // The answer is the active mode: without shared memory, SQLite stays with its rollback journal,
    // which is as durable.
    // A new file has pages that hold its whole schema in the first one: what can be read of a file
    // that was cut off needs it. An older file keeps the size of its pages.
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // In KiB where it is negative. The store is read once and then written, mostly to the last
    // pages of a few tables; what SQLite would keep by default is four times as much.
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    // What an operator has deleted is overwritten, and not only unlinked.
    connection.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    if schema::migrate(&mut connection)? {
        for ending in OBSOLETE {
            // Most databases have no such file, and one that stays does no harm.
            let _ = fs::remove_file(beside(path, ending));
        }
    }
    if let Some(missing) = schema::missing_part(&connection)? {
        return Ok(Opened::Unsound(missing));
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(Opened::Usable(connection))
}

pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)
    )
}

/// Renames the file and its companions so that they still belong together, to
/// `<file>.<label>-<UTC time>`, and returns the new place.
pub(super) fn move_aside(path: &Path, label: &str, clock: Clock) -> Result<PathBuf, StateError> {
    let stamp = clock.wall().strftime("%Y%m%dT%H%M%SZ").to_string();
    let mut aside = beside(path, &format!(".{label}-{stamp}"));
    let mut others = 1;
    while COMPANIONS
        .iter()
        .any(|companion| beside(&aside, companion).exists())
    {
        others += 1;
        aside = beside(path, &format!(".{label}-{stamp}-{others}"));
    }
    for companion in COMPANIONS {
        match fs::rename(beside(path, companion), beside(&aside, companion)) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = format!(
                    "the file is {label} and cannot be moved to `{}`: {error}",
                    aside.display()
                );
                return Err(StateError::new(
                    OPEN,
                    path,
                    message,
                    "move it away yourself and try again",
                ));
            }
        }
    }
    Ok(aside)
}

/// Whether files beside the state say that there was one: those of SQLite, with content or without,
/// and copies of a damaged one.
fn has_traces(path: &Path) -> bool {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else {
        return false;
    };
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let name = name.as_encoded_bytes();
    let is_trace = |found: &OsStr| {
        let ending = found.as_encoded_bytes().strip_prefix(name);
        ending.is_some_and(|ending| {
            [&b"-wal"[..], b"-shm", b"-journal", b".damaged-"]
                .iter()
                .any(|of| ending.starts_with(of))
        })
    };
    fs::read_dir(folder).is_ok_and(|held| {
        held.filter_map(Result::ok)
            .any(|entry| is_trace(&entry.file_name()))
    })
}

/// Whether the write-ahead log beside the file holds changes. An empty one holds none, and the
/// index of a log (`-shm`) is made anew from it: a missing file beside them has lost no data that
/// is still there, and is a new one.
pub(super) fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0)
}

/// The files of a database that is open, as they were found at their paths when it was opened. A
/// file that is moved or deleted then stays open: what is written to it is not at its path, where
/// the next start looks.
pub(super) struct OpenFiles(Vec<OpenStateFile>);

/// See [`OpenFiles`].
struct OpenStateFile {
    path: PathBuf,
    identity: FileIdentity,
}

impl OpenFiles {
    /// The database at this path and the log beside it, as far as there is one.
    pub(super) fn of(path: &Path) -> Self {
        let paths = [path.to_owned(), beside(path, "-wal")];
        let known = |path: PathBuf| {
            Some(OpenStateFile {
                identity: FileIdentity::at(&path).ok()?,
                path,
            })
        };
        Self(paths.into_iter().filter_map(known).collect())
    }

    /// What is wrong if one of them is not at its path any more.
    pub(super) fn lost(&self) -> Option<String> {
        self.0.iter().find_map(OpenStateFile::lost)
    }
}

impl OpenStateFile {
    fn lost(&self) -> Option<String> {
        let what = match FileIdentity::at(&self.path) {
            Ok(there) if there == self.identity => return None,
            Ok(_) => "was replaced by another file",
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => "was moved or deleted",
            // A folder that cannot be looked into does not say that the file is gone.
            Err(_) => return None,
        };
        Some(format!(
            "`{}` {what} while callsheet runs, so a change would be lost at the next start",
            self.path.display()
        ))
    }
}

/// The path with `ending` added to its file name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(ending);
    name.into()
}

fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Opens for reading and writing; a new file is readable and writable by this user only. A pipe in
/// its place is not waited for.
pub(super) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags(NO_WAIT);
    }
    options
}

/// The same, but a symbolic link is refused: in a folder that others may write to, it could lead to
/// a file of another user.
fn unlinked_file() -> OpenOptions {
    let mut options = private_file();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NO_FOLLOW | NO_WAIT);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test can take a machine's power away, so this looks at the setting that makes a commit
    /// wait for the disk (<https://www.sqlite.org/pragma.html#pragma_synchronous>: 2 is FULL).
    #[test]
    fn a_commit_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let Ok(Opened::Usable(connection)) = try_open(&folder.path().join("state.db")) else {
            panic!("it opens")
        };
        let setting = |name| {
            connection.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0))
        };
        assert_eq!(
            setting("synchronous").unwrap(),
            rusqlite::types::Value::Integer(2)
        );
        assert_eq!(
            setting("journal_mode").unwrap(),
            rusqlite::types::Value::Text("wal".into())
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_is_a_symbolic_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.db");
        let other = folder.path().join("other");
        fs::write(&other, "of somebody else").unwrap();
        std::os::unix::fs::symlink(&other, beside(&state, ".lock")).unwrap();
        let refused = lock(&state).expect_err("a link is no lock").to_string();
        assert!(refused.contains("state.db.lock"), "{refused}");
        assert_eq!(fs::read_to_string(&other).unwrap(), "of somebody else");
    }
}
