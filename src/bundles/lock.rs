//! The lock of the folder of bundles, which holds across processes. The system releases it when its
//! holder ends, however that happens.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use super::BundleError;

/// The file that is locked, in the folder of bundles.
const FILE: &str = ".lock";
/// How often the lock is tried, and the pause between. A change holds it for milliseconds.
const LOCK_TRIES_MAX: u32 = 3_000;
const LOCK_TRY_INTERVAL: Duration = Duration::from_millis(10);

/// Holds the folder for changes of one process. Dropping it releases the folder.
#[derive(Debug)]
pub(super) struct FolderLock(#[expect(dead_code, reason = "it holds the lock")] File);

impl FolderLock {
    /// Waits for the lock, for half a minute at most. Makes the folder where it is missing.
    /// Blocking.
    pub(super) fn acquire(root: &Path) -> Result<Self, BundleError> {
        let failed = |error: &std::io::Error| BundleError::storage("lock", root, error);
        fs::create_dir_all(root).map_err(|error| failed(&error))?;
        let file = lock_file()
            .open(root.join(FILE))
            .map_err(|error| failed(&error))?;
        for _ in 0..LOCK_TRIES_MAX {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_TRY_INTERVAL),
                Err(TryLockError::Error(error)) => return Err(failed(&error)),
            }
        }
        Err(BundleError::Busy)
    }
}

/// How the lock is opened. Every user that may read a file may lock it, and so keep the daemon from
/// each change; so it is for its owner only. A pipe in its place is an error, and is not waited
/// for.
fn lock_file() -> OpenOptions {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options
            .mode(0o600)
            .custom_flags(crate::runtime::open_files::NO_WAIT);
    }
    options
}
