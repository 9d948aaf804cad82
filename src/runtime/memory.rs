//! Returns memory to the system that the allocator keeps.
//!
//! A hostile or very large manifest takes some 50 MB while it is read. glibc has a heap for each
//! thread, and if one small block at the end of such a heap is in use, the rest of the heap stays
//! with the process, even if it is free: a soak test with hostile scenarios held 270 MB, of which 7
//! MB were in use. `malloc_trim` returns free memory from every place. Other allocators do that by
//! themselves.
//!
//! A heap for each thread, each with memory that the others could use, is also more than a daemon
//! of a few threads needs: there are two. Blocks from [`LARGE`] bytes on are mapped one by one, and
//! so are back with the system as soon as they are free. Without that bound glibc raises its own
//! one up to 32 MiB after the first large body, and a soak with hostile scenarios kept 76 MB in
//! place of 41, of which 8 were in use.
//!
//! It never frees memory that is in use. It is meant for the daemon's own process: an embedding
//! program manages its own memory.

use std::fs;
use std::time::Duration;

use super::{Clock, Stop, Tasks};

/// The time until the first run: memory that was only needed for the start is free by then.
const FIRST: Duration = Duration::from_secs(1);
/// The longest time between two runs while there is much to return. A run takes some milliseconds,
/// in which allocations wait.
const WHILE_WORTH: Duration = Duration::from_secs(10);
/// The longest time between two runs otherwise.
const INTERVAL_MAX: Duration = Duration::from_secs(60);
/// The number of returned bytes that counts as much.
const WORTH: u64 = 8 << 20;

/// The number of heaps that threads share, unless the environment sets it (`MALLOC_ARENA_MAX`): two
/// threads that render or decode do not wait for each other, and no third heap leaves gaps of its
/// own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const HEAPS: libc::c_int = 2;

/// The number of bytes from which a block is mapped by itself, unless the environment sets it
/// (`MALLOC_MMAP_THRESHOLD_`). It is the value with which glibc begins.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 128 << 10;

/// The number of free bytes at the end of a heap that stay with it, unless the environment sets it
/// (`MALLOC_TRIM_THRESHOLD_`). A setting of [`LARGE`] ends glibc's own adjustment of it, and with
/// its first value each call shrinks the heap of its thread and lets it grow again: four system
/// calls. [`watch`] returns what stays.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT: libc::c_int = 2 << 20;

/// Makes the allocator keep little. To be called before there are other threads; settings of the
/// environment (mallopt(3)) are left as they are.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers this to C alone")]
pub fn keep_little() {
    let tunables = std::env::var_os("GLIBC_TUNABLES").unwrap_or_default();
    for (variable, tunable, parameter, value) in [
        ("MALLOC_ARENA_MAX", "arena_max", libc::M_ARENA_MAX, HEAPS),
        (
            "MALLOC_MMAP_THRESHOLD_",
            "mmap_threshold",
            libc::M_MMAP_THRESHOLD,
            LARGE,
        ),
        (
            "MALLOC_TRIM_THRESHOLD_",
            "trim_threshold",
            libc::M_TRIM_THRESHOLD,
            KEPT,
        ),
    ] {
        if std::env::var_os(variable).is_none() && !tunables.to_string_lossy().contains(tunable) {
            // SAFETY: mallopt(3) takes any numbers, and there is no other thread yet. A refused
            // setting stays as it was.
            unsafe { libc::mallopt(parameter, value) };
        }
    }
}

/// Has no effect: this platform's allocator works in another way.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn keep_little() {}

/// Returns memory until `stop`, at growing intervals: at most ten seconds while there is much to
/// return, and at most a minute while there is little. A start and the first sweep after it leave
/// the most free memory, so the first runs follow each other closely. The growth of the process is
/// not used to decide, because it may have been measured while a large manifest was read.
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
            before
                .zip(resident())
                .map_or(0, |(before, after)| before.saturating_sub(after))
        });
        // An error means that the runtime is shutting down.
        let Ok(given) = given.await else { return };
        pause = (pause * 2).min(if given >= WORTH {
            WHILE_WORTH
        } else {
            INTERVAL_MAX
        });
    }
}

/// The bytes of the process that are in memory; `None` where there is no `/proc` (proc(5),
/// `VmRSS`). Reads a file.
pub fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Returns the memory that is free now. Takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "the C library offers this to C alone")]
pub fn give_back() {
    // SAFETY: malloc_trim(3) takes any number, may be called from any thread at any time, and
    // touches only what is free.
    unsafe { libc::malloc_trim(0) };
}

/// Has no effect: this platform's allocator returns memory by itself.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back() {}
