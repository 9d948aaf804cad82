//! What the system says about a file without reading it, so that an unchanged file stays unread,
//! and a file that is gone from its path is noticed.

use std::fs::Metadata;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// How long ago a file must have changed before it was read. Within this time another change may
/// leave the same stamp: some file systems count in steps of two seconds.
const SETTLED: Duration = Duration::from_secs(3);

/// One state of a file. Equal stamps mean the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStamp {
    bytes: u64,
    modified: SystemTime,
    /// The device, the inode, and when either of them or the content changed, which no program can
    /// set.
    #[cfg(unix)]
    inode: (u64, u64, i64, i64),
}

impl FileStamp {
    /// The stamp of a file as it is now; `None` if there is no file, or the system says too little.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        Self::new(&std::fs::metadata(path).ok()?)
    }

    /// The stamp of a file that is opened at this time and read then. `None` if it changed a moment
    /// ago, so that a later change might not show.
    pub(crate) fn from_opened(file: &std::fs::File, now: Timestamp) -> Option<Self> {
        let stamp = Self::new(&file.metadata().ok()?)?;
        let settled = SystemTime::from(now).checked_sub(SETTLED)?;
        (stamp.changed()? <= settled).then_some(stamp)
    }

    fn new(found: &Metadata) -> Option<Self> {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Some(Self {
            bytes: found.len(),
            modified: found.modified().ok()?,
            #[cfg(unix)]
            inode: (found.dev(), found.ino(), found.ctime(), found.ctime_nsec()),
        })
    }

    /// When the file changed last.
    #[cfg(unix)]
    fn changed(&self) -> Option<SystemTime> {
        let (_, _, seconds, nanoseconds) = self.inode;
        let since = Duration::new(
            u64::try_from(seconds).ok()?,
            u32::try_from(nanoseconds).ok()?,
        );
        Some(
            self.modified
                .max(SystemTime::UNIX_EPOCH.checked_add(since)?),
        )
    }

    /// When the file changed last.
    #[cfg(not(unix))]
    fn changed(&self) -> Option<SystemTime> {
        Some(self.modified)
    }
}
/// Distinguishes a file from others, also from one that is at its path later. Other systems than
/// Unix do not, or do not let an open file be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    #[cfg(unix)]
    device: u64,
    #[cfg(unix)]
    inode: u64,
}

impl FileIdentity {
    /// The file at this path, or the one that a link there leads to.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        std::fs::metadata(path).map(|found| Self::new(&found))
    }

    /// The file that this is known of.
    #[cfg_attr(
        not(unix),
        expect(unused_variables, reason = "there all files count as one")
    )]
    pub(crate) fn new(found: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            #[cfg(unix)]
            device: found.dev(),
            #[cfg(unix)]
            inode: found.ino(),
        }
    }
}
