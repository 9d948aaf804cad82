//! The user that this process runs as: which files and processes of the machine are of users that
//! it trusts with a secret.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The mode bits that let other users write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The number of this user.
pub(crate) fn number() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The owner of the file at this path, if that is a user to whose programs a secret may be sent:
/// this user, and for the system's administrator also the user that owns its folder, if no other
/// user can write there.
pub(crate) fn trusted_owner(path: &Path) -> Option<u32> {
    let owner = fs::symlink_metadata(path).ok()?.uid();
    if owner == number() {
        return Some(owner);
    }
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let folder = fs::metadata(path.parent()?).ok()?;
    let is_of_owner = folder.uid() == owner && folder.mode() & WRITABLE_BY_OTHERS == 0;
    is_of_owner.then_some(owner)
}

/// Whether a process with this number runs that this user may signal, so one of its own. The
/// system's administrator may signal all.
pub(crate) fn may_signal(process: u32) -> bool {
    let known = i32::try_from(process)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    known.is_some_and(|known| rustix::process::test_kill_process(known).is_ok())
}
