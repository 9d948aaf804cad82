//! Memory that was needed for a moment goes back to the system. In a program of its own, since it
//! looks at the memory of the whole process.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

use std::hint::black_box;
use std::thread;

use callsheet::runtime::memory::{give_back, resident};

const PIECES: usize = 64 * 1024;
const PIECE: usize = 1024;

#[test]
fn what_one_small_piece_holds_back_is_given_back() {
    // A thread of its own, so that it has a heap of its own. The last piece lies at its end and
    // lives on.
    let last = thread::spawn(|| {
        let mut pieces: Vec<Box<[u8]>> = (0..PIECES)
            .map(|_| black_box(vec![1; PIECE].into_boxed_slice()))
            .collect();
        pieces.pop()
    });
    let last = last.join().unwrap();
    let held = resident().unwrap();
    give_back();
    let left = resident().unwrap();
    let half = (PIECES * PIECE / 2) as u64;
    assert!(left + half < held, "{held} bytes before, {left} after");
    drop(last);
}
