//! The store when writing is not possible: a full disk, or a read-only folder. The file is read
//! once, and every save is refused.
//!
//! It makes no file, takes no lock that other processes would wait for, and moves no data aside.

use std::fs;
use std::path::Path;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use parking_lot::Mutex;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::file::{has_log, is_damage};
use super::schema::{self, FileOwner};
use super::{SAVE, rows};
use crate::model::{Finding, FindingCode};
use crate::runtime::Clock;
use crate::state::{Restored, StateError, StateLoss, StateStore, Write};

/// Reads the changes in the write-ahead log too. Without locks SQLite assumes that it has the file
/// to itself, and keeps the log's index in memory instead of in a file. Unix only.
pub(super) const WITH_LOG: &str = "vfs=unix-none";
/// For a place where no log can be opened or made; changes in a log are ignored.
pub(super) const WITHOUT_LOG: &str = "immutable=1";

/// The state as it was read, and the reason why every save fails.
pub(super) struct ReadOnlyStore {
    restored: Mutex<Restored>,
    why: StateError,
}

/// Opens the file for reading only, because of `why`.
pub(super) fn open(path: &Path, clock: Clock, why: StateError) -> ReadOnlyStore {
    tracing::error!(error = %why, "changes cannot be stored");
    let ways = if has_log(path) {
        &[WITH_LOG][..]
    } else {
        &[WITH_LOG, WITHOUT_LOG]
    };
    let mut restored = match ways.iter().find_map(|way| read(path, way, clock).ok()) {
        Some(restored) => restored,
        None if fs::metadata(path).is_ok_and(|file| file.len() > 0) => {
            let message = format!(
                "the stored state in `{}` cannot be read while it cannot be written",
                path.display()
            );
            let loss = StateLoss {
                what: message.clone(),
                at: clock.wall(),
            };
            let findings = vec![Finding::new(FindingCode::StateFailed, message)];
            Restored {
                findings,
                loss: Some(loss),
                ..Restored::default()
            }
        }
        None if fs::metadata(path).is_ok_and(|file| file.is_file()) => {
            let what = format!(
                "the stored state in `{}` is empty, and it cannot be written",
                path.display()
            );
            Restored {
                loss: Some(StateLoss {
                    what,
                    at: clock.wall(),
                }),
                ..Restored::default()
            }
        }
        None => Restored::default(),
    };
    let message = format!(
        "changes of preferences and decisions are refused, because the state cannot be stored: {why}"
    );
    let hint = "the list is still served; fix the cause, then restart the daemon";
    restored
        .findings
        .push(Finding::new(FindingCode::StateFailed, message).hint(hint));
    ReadOnlyStore {
        restored: Mutex::new(restored),
        why: StateError { what: SAVE, ..why },
    }
}

/// A connection that changes neither the file nor its log. A pipe or a device in its place is an
/// error, and is not waited for.
pub(super) fn connect(path: &Path, way: &str) -> rusqlite::Result<Connection> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(rusqlite::Error::InvalidPath(path.to_owned()));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(path, way), flags)?;
    // Closing must not change the log either.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    connection.pragma_update_and_check(None, "locking_mode", "EXCLUSIVE", |_| Ok(()))?;
    Ok(connection)
}

/// What is damaged in the file; `None` if it is sound, not there or cannot be read at all.
pub(super) fn damage(path: &Path) -> Option<String> {
    if !fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() > 0) {
        return None;
    }
    let way = if has_log(path) { WITH_LOG } else { WITHOUT_LOG };
    let check = |connection: Connection| {
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    };
    match connect(path, way).and_then(check) {
        Ok(answer) => Some(answer).filter(|answer| answer != "ok"),
        Err(error) => is_damage(&error).then(|| error.to_string()),
    }
}

fn read(path: &Path, way: &str, clock: Clock) -> rusqlite::Result<Restored> {
    let mut connection = connect(path, way)?;
    if schema::owner(&connection)? != FileOwner::Us {
        return Err(rusqlite::Error::InvalidQuery);
    }
    rows::load(&mut connection, path, clock)
}

/// The file as a URI with parameters for SQLite (<https://www.sqlite.org/uri.html>, section 3).
fn uri(path: &Path, way: &str) -> String {
    let escaped = path
        .to_string_lossy()
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    format!("file:{escaped}?mode=ro&{way}")
}

impl StateStore for ReadOnlyStore {
    fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>> {
        let restored = std::mem::take(&mut *self.restored.lock());
        ready(Ok(restored)).boxed()
    }

    fn save(&self, _: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>> {
        ready(Err(self.why.clone())).boxed()
    }
}
