//! Gives memory back to the system that the allocator keeps.
//!
//! A hostile or very large manifest takes some 50 MB while it is read. glibc has a heap for each thread, and where one small thing at the
//! end of such a heap lives on, all the rest of it stays with the process, free or not: a soak with hostile scenarios held 270 MB, of
//! which 7 MB were in use. `malloc_trim` gives back what is free anywhere. Other allocators do that by themselves.
//!
//! A heap for each thread, of which each keeps what the others could use, is also more than a daemon of a few threads needs: two heaps, and
//! large blocks apart from them, hold a fleet of 200,000 tools in 30 MB less.
//!
//! It never frees anything that is in use, and is for a process of our own: what an embedding program keeps is that program's affair.

use std::fs;
use std::time::Duration;

use super::{Clock, Stop, Tasks};

/// Until the first time: what is needed to start is not needed any more.
const FIRST: Duration = Duration::from_secs(1);
/// The longest time between two times while it is worth it. Giving back takes some milliseconds, in
/// which allocations wait.
const WHILE_WORTH: Duration = Duration::from_secs(10);
/// The longest time between two times otherwise.
const LONGEST: Duration = Duration::from_secs(60);
/// What is worth it, in bytes.
const WORTH: u64 = 8 << 20;

/// Heaps that threads share, as long as the environment does not say how many (`MALLOC_ARENA_MAX`): two threads that render or decode do not
/// wait for each other, and no third one leaves gaps of its own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS: libc::c_int = 2;

/// Has the allocator keep little. To be called before there are threads; what the environment says of it (mallopt(3)) is left as it is.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers this to C alone")]
pub fn keep_little() {
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    if std::env::var_os("MALLOC_ARENA_MAX").is_none() && !tunables.to_string_lossy().contains("arena_max") {
        // SAFETY: mallopt(3) takes any numbers, and no other thread is there yet. What it refuses stays as it was.
        unsafe { libc::mallopt(libc::M_ARENA_MAX, HEAPS) };
    }
}

/// Nothing: this platform's allocator has other ways.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little() {}

/// Gives back until `stop`, at growing distances: at most ten seconds apart while there is much to
/// give, and at most a minute apart while there is little. A start and the first sweep after it leave
/// the most, so the first times come soon after each other. The growth of the process is not used to
/// decide: it may have been measured while a large manifest was read.
pub async fn watch(clock: Clock, tasks: Tasks, stop: Stop) {
    let mut pause = FIRST;
    loop {
        tokio::select! {
            () = stop.wait() => return,
            () = clock.sleep(pause) => {}
        }
        let given = tasks.spawn_blocking(|| {
            let before = resident();
            give_back();
            before.zip(resident()).map_or(0, |(before, after)| before.saturating_sub(after))
        });
        // The error is that the runtime goes down.
        let Ok(given) = given.await else { return };
        pause = (pause * 2).min(if given >= WORTH { WHILE_WORTH } else { LONGEST });
    }
}

/// Bytes of the process that are in memory; nothing where there is no `/proc` (proc(5), `VmRSS`). Reads a file.
pub fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Gives back what is free now. Takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers this to C alone")]
pub fn give_back() {
    // SAFETY: malloc_trim(3) takes any number, may be called from any thread at any time, and touches only what is free.
    unsafe { libc::malloc_trim(0) };
}

/// Nothing: this platform's allocator gives back by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
