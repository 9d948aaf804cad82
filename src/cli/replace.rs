//! Replaces files of people without a moment in which they are half written.

use std::io::Write as _;
use std::path::Path;

/// Which users may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileReaders {
    /// Its owner only: it holds secrets.
    Owner,
    /// Those that could read it before; of a new file all.
    AsBefore,
}

/// Replaces a file by one rename. What a link points to is replaced, not the link.
pub(super) fn replace(place: &Path, text: &str, readers: FileReaders) -> std::io::Result<()> {
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let folder = place.parent().unwrap_or(Path::new("."));
    // A temporary file can be read by its owner only.
    let mut file = tempfile::Builder::new().prefix(".callsheet").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    if readers == FileReaders::AsBefore {
        match std::fs::metadata(&place) {
            Ok(known) => file.as_file().set_permissions(known.permissions())?,
            Err(_) => open_to_readers(file.as_file())?,
        }
    }
    file.as_file().sync_all()?;
    file.persist(&place)?;
    Ok(())
}

/// The usual mode of a file without secrets.
fn open_to_readers(file: &std::fs::File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}
