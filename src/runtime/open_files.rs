//! How many files and connections this process may have open.
//!
//! Systems start programs with a low limit (usually 1,024) for the sake of those that use `select`, and allow far more to those that ask.
//! This program asks once, at its start, for as many as it may. It never goes beyond what the system allows.

/// Raises the limit as far as the system allows; answers what it is then, where there is one. Only for a process of our own: in an
/// embedding program the limit is that program's affair.
#[cfg(unix)]
pub fn raise() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    // A system that refuses leaves what there was.
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
