//! An allocator that counts, for tests that state what some work may take: bytes do not depend on
//! how busy the machine is. A program that uses it names it as its own and runs one test at a time.

#![allow(
    unsafe_code,
    reason = "counting what the allocator is asked for needs an allocator around it"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// The system's allocator with counters.
pub(crate) struct Counted;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

/// What some work took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Took {
    /// Bytes that were in use at once, beyond those before.
    pub(crate) peak: usize,
    /// Bytes that were asked for, given back or not.
    pub(crate) total: usize,
    /// Bytes that are still in use after it.
    pub(crate) held: usize,
}

/// Does some work and counts what it takes.
pub(crate) fn took<T>(work: impl FnOnce() -> T) -> (T, Took) {
    let live = LIVE.load(SeqCst);
    let total = TOTAL.load(SeqCst);
    PEAK.store(live, SeqCst);
    let done = work();
    let peak = PEAK.load(SeqCst).saturating_sub(live);
    let held = LIVE.load(SeqCst).saturating_sub(live);
    (
        done,
        Took {
            peak,
            total: TOTAL.load(SeqCst) - total,
            held,
        },
    )
}

fn take(bytes: usize) {
    TOTAL.fetch_add(bytes, SeqCst);
    PEAK.fetch_max(LIVE.fetch_add(bytes, SeqCst) + bytes, SeqCst);
}

// SAFETY: everything is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks may be there for a moment.
        take(size);
        LIVE.fetch_sub(layout.size(), SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}
