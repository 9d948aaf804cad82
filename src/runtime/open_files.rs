//! The number of files and connections that this process may have open, and opening files that
//! others may have put there, and replacing files.
//!
//! Systems start programs with a low limit (usually 1,024) because of programs that use `select`,
//! and allow far more on request. This program requests the highest allowed limit once, at its
//! start. It never exceeds what the system allows.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Raises the limit as far as the system allows; returns the new limit, if there is one. Only for
/// the daemon's own process: an embedding program sets its own limit.
#[cfg(unix)]
pub fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If the system refuses, the limit stays as it was.
    if limit.current != limit.maximum && setrlimit(Resource::Nofile, raised).is_ok() {
        return limit.maximum;
    }
    limit.current
}

/// Other systems have no such limit.
#[cfg(not(unix))]
pub fn raise() -> Option<u64> {
    None
}

/// Of the files that may be open, one of so many is left for everything but connections of clients:
/// programs, scenarios, the state, and the wait for the next connection.
const OTHER_FILES_OF: usize = 4;

/// At most so many connections of clients, as far as the system allows so many open files. Beyond
/// its limit none is accepted, and none of the open ones could give way.
pub(crate) fn connections_within_limit(connections: usize) -> usize {
    within(connections, limit())
}

/// The limit that holds now, if there is one.
#[cfg(unix)]
fn limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};

    getrlimit(Resource::Nofile).current
}

/// Other systems have no such limit.
#[cfg(not(unix))]
fn limit() -> Option<u64> {
    None
}

fn within(connections: usize, files: Option<u64>) -> usize {
    let files = files.and_then(|files| usize::try_from(files).ok());
    files.map_or(connections, |files| {
        connections.min(files - files / OTHER_FILES_OF).max(1)
    })
}

/// The flag of `open(2)` that refuses a symbolic link.
#[cfg(unix)]
pub(crate) const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

/// The flag of `open(2)` that does not wait for the other end of a pipe.
#[cfg(unix)]
pub(crate) const NO_WAIT: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Puts a file with this content in the place of what is there, whole or not at all: another
/// program sees the former content or this one, also after a crash of the system.
///
/// # Errors
/// The folder is not there or full, or cannot be written. The former content stays.
pub(crate) fn replace_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Opens a regular file for reading. Opening a pipe would wait for its writer, however long that
/// takes: here it is an error, as is everything else that is no regular file.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NO_WAIT);
    require_regular(options.open(path)?)
}

/// The open file, if it is a regular one: reading a pipe or a device could wait or go on without
/// end.
pub(crate) fn require_regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "it is not a file",
    ))
}

/// Reads a regular file of text, as [`open_regular`] opens it. One of more than `bytes_max` bytes
/// is an error, and is not read to its end.
pub(crate) fn read_regular(path: &Path, bytes_max: u64) -> io::Result<String> {
    let file = open_regular(path)?;
    let mut text = String::new();
    // Its length may be out of date, and is 0 for files of the system.
    let is_larger = file.metadata()?.len() > bytes_max;
    if !is_larger {
        file.take(bytes_max + 1).read_to_string(&mut text)?;
    }
    if is_larger || text.len() as u64 > bytes_max {
        let limit = match (bytes_max >> 20, bytes_max % (1 << 20)) {
            (1.., 0) => format!("{} MiB", bytes_max >> 20),
            _ => format!("{bytes_max} bytes"),
        };
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {limit}"),
        ));
    }
    Ok(text)
}

/// The path of an open file, as the system knows it: whatever its name means by now, this is what
/// was opened. `None` where the system does not say it.
pub(crate) fn path_of(file: &File) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd as _;
        std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = file;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn an_open_file_is_known_by_where_it_is_now() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::write(folder.join("real"), "").unwrap();
        std::os::unix::fs::symlink("real", folder.join("link")).unwrap();
        let file = open_regular(&folder.join("link")).unwrap();
        assert_eq!(path_of(&file), Some(folder.join("real")));
        std::fs::rename(folder.join("real"), folder.join("other")).unwrap();
        assert_eq!(path_of(&file), Some(folder.join("other")));
    }

    #[test]
    fn a_quarter_of_the_files_is_left_for_others() {
        assert_eq!(within(4_096, None), 4_096);
        assert_eq!(within(4_096, Some(1_000_000)), 4_096);
        assert_eq!(within(4_096, Some(1_024)), 768);
        assert_eq!(within(4_096, Some(0)), 1);
    }

    #[test]
    fn what_is_no_file_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        assert!(open_regular(folder.path()).is_err());
        assert_eq!(
            open_regular(&folder.path().join("none"))
                .unwrap_err()
                .kind(),
            io::ErrorKind::NotFound
        );
    }
}
