//! Replaces files of people without a moment in which they are half written.

use std::fs::{File, Metadata};
use std::io::Write as _;
use std::path::Path;

/// Which users may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileReaders {
    /// Its owner only: it holds secrets.
    Owner,
    /// Those that could read it before; of a new file all.
    AsBefore,
}

/// Replaces a file by one rename. What a link points to is replaced, not the link. The file keeps
/// its owner and its group.
///
/// # Errors
/// The folder cannot be written to, or the owner cannot be kept; the file is then as it was.
pub(crate) fn replace(place: &Path, text: &str, readers: FileReaders) -> std::io::Result<()> {
    let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
    let folder = place.parent().unwrap_or(Path::new("."));
    // A temporary file can be read by its owner only.
    let mut file = tempfile::Builder::new()
        .prefix(".callsheet")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    let known = std::fs::metadata(&place).ok();
    if let Some(known) = &known {
        keep_owner(file.as_file(), known)?;
    }
    if readers == FileReaders::AsBefore {
        match known {
            Some(known) => file.as_file().set_permissions(known.permissions())?,
            None => open_to_readers(file.as_file())?,
        }
    }
    file.as_file().sync_all()?;
    file.persist(&place)?;
    Ok(())
}

/// Gives a new file the owner and the group of the one before it: a service reads its file as the
/// member of a group.
fn keep_owner(file: &File, known: &Metadata) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (known.uid(), known.gid()) {
            fchown(file, Some(known.uid()), Some(known.gid()))?;
        }
    }
    let _ = (file, known);
    Ok(())
}

/// The usual mode of a file without secrets.
fn open_to_readers(file: &File) -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}
