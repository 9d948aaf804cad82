//! Memory that was needed for a moment goes back to the system. In a program of its own, since it looks at the memory of the whole process.

#![cfg(all(target_os = "linux", target_env = "gnu"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod support;

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::thread;

use callsheet::catalog::Inputs;
use callsheet::runtime::memory::{give_back, resident};
use tokio::io::AsyncReadExt as _;

use support::offers::{offer, put, tool};
use support::serving::{serve_keeping, snapshot};

/// What one test takes must not show in the other.
static ALONE: Mutex<()> = Mutex::new(());

const PIECES: usize = 64 * 1024;
const PIECE: usize = 1024;

#[test]
fn what_one_small_piece_holds_back_is_given_back() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // A thread of its own, so that it has a heap of its own. The last piece lies at its end and lives on.
    let last = thread::spawn(|| {
        let mut pieces: Vec<Box<[u8]>> = (0..PIECES).map(|_| black_box(vec![1; PIECE].into_boxed_slice())).collect();
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

/// Scenarios with 20 tools of 2 KB each: their list has some 47 MB.
const LONG_OFFERS: usize = 1_000;
/// Pieces of a few hundred kilobytes for each of those who take it, and what else lies around.
const MOST: u64 = 20 << 20;

#[test]
fn a_large_list_that_nobody_reads_on_is_not_made_further() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut all = Inputs::default();
    for at in 0..LONG_OFFERS {
        let text = format!("Of scenario {at}. {}", "It does what its name says, and nothing else. ".repeat(44));
        let tools = (0..20).map(|number| tool(&format!("scenario_{at}_{number}")).about(&text));
        put(&mut all, offer(&format!("scenario-{at}"), &tools.collect::<Vec<_>>()));
    }
    let server = runtime.block_on(serve_keeping(snapshot(&all, Vec::new(), Vec::new()), 1 << 20));
    drop(all);
    give_back();
    let before = resident().unwrap();
    let begun: Vec<_> = (0..4).map(|_| runtime.block_on(server.begun("/api/v1/tools"))).collect();
    let held = resident().unwrap().saturating_sub(before);
    assert!(held < MOST, "{held} bytes are held for four who do not read on");
    // They have all of it once they do.
    for mut stream in begun {
        let mut rest = Vec::new();
        runtime.block_on(stream.read_to_end(&mut rest)).unwrap();
        assert!(rest.len() > 40 << 20 && rest.ends_with(b"}"), "{}", rest.len());
    }
}
