//! The number of files and connections that this process may have open.
//!
//! Systems start programs with a low limit (usually 1,024) because of programs that use `select`,
//! and allow far more on request. This program requests the highest allowed limit once, at its
//! start. It never exceeds what the system allows.

/// Raises the limit as far as the system allows; returns the new limit, if there is one. Only for
/// the daemon's own process: an embedding program sets its own limit.
#[cfg(unix)]
pub fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
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

/// The flag of `open(2)` that refuses a symbolic link.
#[cfg(unix)]
pub(crate) const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
