//! Files of Unix sockets: made for this user only, in the place of a file that no process serves,
//! and removed with their listener.
//!
//! Whether a message that comes by a socket is allowed is decided elsewhere.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

use super::file_stamp::FileIdentity;
use super::user;

/// Bytes of the path of a socket at most (unix(7), `sun_path` without its last byte).
const SOCKET_PATH_MAX_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// Bytes of the names of the private folder in which a socket is made and of its file there, with
/// their slashes: `/.xxxxxx/s`.
const MADE_AT_BYTES: usize = 10;
/// The mode of a folder that only its user can enter.
const FOLDER_MODE: u32 = 0o700;
/// The mode of a socket that only its user can connect to.
const SOCKET_MODE: u32 = 0o600;

/// The file of a socket. It is removed when this is dropped, unless another one is at its path by
/// then.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: FileIdentity,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path)
            .is_ok_and(|about| FileIdentity::new(&about) == self.identity)
        {
            // It may be gone with its folder.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Listens on a new socket at this path, which only this user can connect to from its beginning on.
///
/// # Errors
/// The path is too long, the folder is missing or not writable, something else than a socket is at
/// the path, or another process serves it.
pub fn bind(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    // It is made in a folder of its own, whose path may be the longer one.
    let length = path
        .as_os_str()
        .len()
        .max(folder.as_os_str().len() + MADE_AT_BYTES);
    if length > SOCKET_PATH_MAX_BYTES {
        let why = format!(
            "its path has {length} bytes, and that of a socket has {SOCKET_PATH_MAX_BYTES} at most"
        );
        return Err(io::Error::new(ErrorKind::InvalidFilename, why));
    }
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(
                ErrorKind::AlreadyExists,
                "something else than a socket is there",
            ));
        }
        Ok(_) if is_served(path) => {
            return Err(io::Error::new(
                ErrorKind::AddrInUse,
                "another process serves it",
            ));
        }
        // The file of a process that has ended, which the new one replaces.
        Ok(_) | Err(_) => {}
    }
    // A new socket has the mode that the umask leaves it. It gets its own in a folder that no other
    // user can enter.
    let private = Permissions::from_mode(FOLDER_MODE);
    let private = tempfile::Builder::new()
        .prefix(".")
        .permissions(private)
        .tempdir_in(folder)?;
    let made = private.path().join("s");
    let listener = UnixListener::bind(&made)?;
    fs::set_permissions(&made, Permissions::from_mode(SOCKET_MODE))?;
    let identity = FileIdentity::new(&fs::symlink_metadata(&made)?);
    fs::rename(&made, path)?;
    Ok((
        listener,
        SocketFile {
            path: path.to_owned(),
            identity,
        },
    ))
}

/// Whether a process listens on the socket at this path.
pub fn is_served(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        // What cannot be known, such as that of another user, is not replaced.
        Err(error) => !matches!(
            error.kind(),
            ErrorKind::ConnectionRefused | ErrorKind::NotFound
        ),
    }
}

/// Whether the socket at this path was made by this user, so that a secret may be sent there. The
/// system's administrator also trusts the socket of the user that owns its folder, if no other user
/// can write there.
pub fn is_trusted(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    is_socket && user::trusted_owner(path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_that_another_daemon_serves_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rpc.sock");
        let (listener, file) = bind(&path).unwrap();
        let taken = bind(&path).err().map(|error| error.kind());
        assert_eq!(taken, Some(ErrorKind::AddrInUse));
        // The file of a daemon that was killed stays.
        drop(listener);
        std::mem::forget(file);
        assert!(bind(&path).is_ok());
    }
}
