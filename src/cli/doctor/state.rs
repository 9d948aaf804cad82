//! Checks the place of the database: whether it exists or can be created, is writable and sound,
//! has free space, and is not used by another process.

use std::path::Path;

use super::report::{CheckArea, DoctorReport};
use super::shown;
use crate::state::sqlite;

/// A disk with less room than this cannot take what a daemon writes at its start.
const FULL: u64 = 1 << 20;
/// A fleet of a thousand scenarios has some 25 MB of manifests, which are written twice.
const SCARCE: u64 = 100 << 20;

/// Checks the place of the database. `running` is whether a daemon answers at the configured
/// address.
pub(super) fn check(path: &Path, running: bool, report: &mut DoctorReport) {
    let subject = shown(path);
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut notes = Vec::new();
    match check_file(path, folder) {
        Ok(there) => notes.push(
            if there {
                "writable"
            } else {
                "created at the first start"
            }
            .to_owned(),
        ),
        Err((message, hint)) => report.error(CheckArea::State, &subject, message, hint),
    }
    check_damage(path, &subject, report);
    check_disk_space(&subject, folder, &mut notes, report);
    check_lock(path, running, &mut notes, report);
    if report.is_well(CheckArea::State) {
        report.ok(CheckArea::State, &subject, notes.join(", "));
    }
}

/// Whether the file exists; if not, it can be created. The error is the problem and the next step.
fn check_file(path: &Path, folder: &Path) -> Result<bool, (String, &'static str)> {
    const ELSEWHERE: &str = "make it writable for this user, or set `state.path` to another file";
    if let Some(found) = path.metadata().ok().filter(|found| !found.is_file()) {
        let what = if found.is_dir() {
            "a folder"
        } else {
            "a pipe or a device"
        };
        return Err((
            format!("{what} is in its place"),
            "move it away, or set `state.path` to a file",
        ));
    }
    let there = path.is_file();
    let known = folder
        .ancestors()
        .find(|folder| folder.symlink_metadata().is_ok());
    let known = known.unwrap_or(folder);
    if !known.is_dir() {
        let message = format!("`{}` is not a folder", shown(known));
        return Err((message, "move it away, or set `state.path` to another file"));
    }
    writable(known, true).map_err(|error| {
        (
            format!("`{}` cannot be written to: {error}", shown(known)),
            ELSEWHERE,
        )
    })?;
    if there {
        writable(path, false)
            .map_err(|error| (format!("it cannot be written to: {error}"), ELSEWHERE))?;
    }
    Ok(there)
}

/// Whether the file is sound. While a daemon runs on it, that one would have found damage at its
/// start.
fn check_damage(path: &Path, subject: &str, report: &mut DoctorReport) {
    const HINT: &str = "put a backup in its place with `callsheet state import FILE`; without one, `callsheet serve` moves it aside and begins with what can be read of it";
    if sqlite::holder(path).is_some() {
        return;
    }
    if let Some(what) = sqlite::damage(path) {
        report.error(
            CheckArea::State,
            subject,
            format!("it is damaged: {what}"),
            HINT,
        );
    }
}

/// How much room is left.
fn check_disk_space(
    subject: &str,
    folder: &Path,
    notes: &mut Vec<String>,
    report: &mut DoctorReport,
) {
    const HINT: &str = "free space there, or set `state.path` to another disk";
    let Some(free) = folder.ancestors().find_map(free) else {
        return;
    };
    if free < FULL {
        report.error(
            CheckArea::State,
            subject,
            format!("its disk is full: {free} bytes are left"),
            HINT,
        );
    } else if free < SCARCE {
        report.warning(
            CheckArea::State,
            subject,
            format!("its disk has {} MB left", free / 1_000_000),
            HINT,
        );
    } else {
        notes.push(format!(
            "{}.{} GB free",
            free / 1_000_000_000,
            free / 100_000_000 % 10
        ));
    }
}

/// Which process uses the database.
fn check_lock(path: &Path, running: bool, notes: &mut Vec<String>, report: &mut DoctorReport) {
    let Some(holder) = sqlite::holder(path) else {
        return;
    };
    let process = holder
        .process
        .map(|process| format!(" (process {process})"))
        .unwrap_or_default();
    if running {
        notes.push(format!("in use by the running daemon{process}"));
        return;
    }
    report.error(
        CheckArea::State,
        &shown(path),
        format!("a daemon{process} has it, and none of this configuration answers"),
        "name its address with `--url`, or stop it before another is started on this state",
    );
}

/// Whether this user may write there, without writing (access(2)); to a folder also whether names
/// in it can be reached.
#[cfg(unix)]
fn writable(path: &Path, folder: bool) -> std::io::Result<()> {
    use rustix::fs::Access;
    let wanted = if folder {
        Access::WRITE_OK | Access::EXEC_OK
    } else {
        Access::WRITE_OK | Access::READ_OK
    };
    Ok(rustix::fs::access(path, wanted)?)
}

#[cfg(not(unix))]
fn writable(path: &Path, _folder: bool) -> std::io::Result<()> {
    if path.metadata()?.permissions().readonly() {
        Err(std::io::ErrorKind::PermissionDenied.into())
    } else {
        Ok(())
    }
}

/// Bytes that this user may still write on the disk of `path` (statvfs(3)).
#[cfg(unix)]
fn free(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

#[cfg(not(unix))]
fn free(_path: &Path) -> Option<u64> {
    None
}
