//! A file of lines with a maximum size: if the next line does not fit, the file is renamed and a
//! new one is started. Blocking.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use crate::runtime::file_stamp::FileIdentity;

/// The latest lines are at the path, earlier ones at the path with `.1` (the latest) to `.N` behind
/// it.
#[derive(Debug, Default)]
pub(super) struct RotatingFile {
    path: PathBuf,
    max_size: u64,
    keep: usize,
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    size: u64,
}

impl RotatingFile {
    /// Does not open the file before the first line.
    pub(super) fn at(path: PathBuf, max_size: u64, keep: usize) -> Self {
        Self {
            path,
            max_size,
            keep,
            open: None,
        }
    }

    /// The path of the latest lines.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Closes the file if it was moved or removed, as programs that rotate logs do. The next line
    /// starts another one.
    pub(super) fn look(&mut self) {
        if self
            .open
            .as_ref()
            .is_some_and(|open| !is_at(&self.path, &open.file))
        {
            self.open = None;
        }
    }

    /// Appends a line, which ends with a line feed. After a failure the part that was written is
    /// removed, if possible.
    pub(super) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let mut open = self.take()?;
        if open.size > 0 && open.size.saturating_add(line.len() as u64) > self.max_size {
            drop(open);
            self.rotate()?;
            open = self.take()?;
        }
        if let Err(error) = open.file.write_all(line) {
            // Half a line could not be read. If this fails too, the next opening ends the line.
            let _ = open.file.set_len(open.size);
            return Err(error);
        }
        open.size += line.len() as u64;
        self.open = Some(open);
        Ok(())
    }

    fn take(&mut self) -> io::Result<Open> {
        self.open.take().map_or_else(|| Open::at(&self.path), Ok)
    }

    fn rotate(&self) -> io::Result<()> {
        if self.keep == 0 {
            return gone_is_fine(fs::remove_file(&self.path));
        }
        for number in (1..self.keep).rev() {
            gone_is_fine(fs::rename(self.earlier(number), self.earlier(number + 1)))?;
        }
        gone_is_fine(fs::rename(&self.path, self.earlier(1)))
    }

    fn earlier(&self, number: usize) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }
}

impl Open {
    /// Opens the file, or creates one that only its user may read.
    fn at(path: &Path) -> io::Result<Self> {
        // Opening a pipe would wait until another process reads it.
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other("it is not a regular file"));
        }
        let mut options = OpenOptions::new();
        options.create(true).append(true).read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        let mut size = file.metadata()?.len();
        if size > 0 {
            file.seek(SeekFrom::End(-1))?;
            let mut last = [0];
            file.read_exact(&mut last)?;
            // An unfinished line must not damage the next one.
            if last != *b"\n" {
                file.write_all(b"\n")?;
                size += 1;
            }
        }
        Ok(Self { file, size })
    }
}

fn gone_is_fine(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Whether this file is at the path.
fn is_at(path: &Path, file: &File) -> bool {
    let Ok(there) = FileIdentity::at(path) else {
        return false;
    };
    file.metadata()
        .is_ok_and(|found| FileIdentity::new(&found) == there)
}
