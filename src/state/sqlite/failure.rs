//! Error texts for a database that cannot be used.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::state::{StateError, StateErrorKind};

pub(super) const OPEN: &str = "cannot open the stored state";
pub(super) const LOAD: &str = "cannot read the stored state";
pub(super) const SAVE: &str = "cannot store a change";
pub(super) const EXPORT: &str = "cannot export the state";
pub(super) const IMPORT: &str = "cannot import the state";

/// Quotes the message of SQLite, and adds the next step for that kind of failure.
pub(super) fn failed(what: &'static str, place: &Path, error: &rusqlite::Error) -> StateError {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StateErrorKind::Full,
        Some(
            ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            | ErrorCode::SystemIoFailure,
        ) => StateErrorKind::Unwritable,
        _ => StateErrorKind::Other,
    };
    let step = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "free space on the disk and try again",
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "make the file and its folder writable for this user, or set `state.path` to another file"
        }
        Some(ErrorCode::CannotOpen) => {
            "check that it is a file in a folder that this user may write to, or set `state.path` to another file"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "close the other program that has the file open and try again"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "restart the daemon, which moves a damaged file aside and starts a fresh one"
        }
        Some(ErrorCode::SystemIoFailure) => {
            "check the disk, its free space and this user's limits, and try again"
        }
        _ => "check the file with `sqlite3 <file> 'PRAGMA integrity_check'` and try again",
    };
    StateError::new(what, place, error.to_string(), step).with_kind(kind)
}
