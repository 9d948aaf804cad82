//! What a catalog holds in memory, tool by tool: what each structure asks the allocator for, block
//! by block with the allocator's own head.
//!
//! `cargo bench --bench memory` prints bytes for each tool after each step, and with a number
//! behind `--` for so many scenarios (1,000 otherwise). The manifests are those of the figures: 20
//! tools of about 1,050 bytes, no two with a text in common. `blocks` behind the number prints the
//! commonest sizes of blocks of each step too.

#![allow(missing_docs, reason = "a program that prints a table")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints"
)]
#![allow(clippy::cast_precision_loss, reason = "bytes of a process")]
#![allow(
    unsafe_code,
    reason = "counting what the allocator is asked for needs an allocator around it"
)]

#[path = "../examples/figures/manifests.rs"]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "of the figures only the manifests are needed"
)]
mod manifests;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use callsheet::catalog::{Catalog, Change, Offer, Snapshot, Visibility, catalog_store};
use callsheet::formats;
use callsheet::model::{AcceptedVersions, Manifest, ScenarioName};
use callsheet::protocols::tool_discovery::decode;
use callsheet::views::{Coding, ViewCache};

/// Sizes that are told apart: 16 bytes to a step, what is larger is in the last.
const STEPS: usize = 512;

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);
static BLOCKS: [AtomicIsize; STEPS] = [const { AtomicIsize::new(0) }; STEPS];

/// What glibc takes for a block: eight bytes of its own, in steps of sixteen, 32 at least.
fn taken(size: usize) -> usize {
    ((size + 8).div_ceil(16) * 16).max(32)
}

fn count(size: usize, sign: isize) {
    let taken = taken(size);
    LIVE.fetch_add(sign * isize::try_from(taken).unwrap_or_default(), Relaxed);
    BLOCKS[(taken / 16).min(STEPS - 1)].fetch_add(sign, Relaxed);
}

// SAFETY: everything is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(layout.size(), -1);
        count(size, 1);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What is in use at one moment.
struct Mark {
    live: isize,
    blocks: Vec<isize>,
}

impl Mark {
    fn now() -> Self {
        Self {
            live: LIVE.load(Relaxed),
            blocks: BLOCKS.iter().map(|blocks| blocks.load(Relaxed)).collect(),
        }
    }
}

/// Prints what each step added.
struct Steps {
    tools: f64,
    blocks: bool,
    before: Mark,
}

impl Steps {
    fn done(&mut self, step: &str) {
        let now = Mark::now();
        println!(
            "{step:<58}{:>12.1}",
            (now.live - self.before.live) as f64 / self.tools
        );
        if self.blocks {
            let mut sizes: Vec<(isize, usize, isize)> = now
                .blocks
                .iter()
                .zip(&self.before.blocks)
                .enumerate()
                .map(|(at, (now, before))| {
                    (
                        (now - before) * isize::try_from(at * 16).unwrap(),
                        at * 16,
                        now - before,
                    )
                })
                .filter(|(_, _, blocks)| blocks.unsigned_abs() as f64 > self.tools / 200.0)
                .collect();
            sizes.sort_unstable_by_key(|(bytes, ..)| -bytes.abs());
            for (bytes, size, blocks) in sizes.into_iter().take(8) {
                println!(
                    "    {:>10.1} bytes: {:>8.3} blocks of {size}",
                    bytes as f64 / self.tools,
                    blocks as f64 / self.tools
                );
            }
        }
        self.before = Mark::now();
    }
}

fn read(at: usize) -> Manifest {
    decode(
        manifests::manifest(at, 0).as_bytes(),
        &AcceptedVersions::default(),
    )
    .unwrap()
    .manifest
}

fn offer(manifest: &Arc<Manifest>) -> Change {
    let offer = Offer {
        manifest: Arc::clone(manifest),
        visibility: Visibility::Published,
    };
    Change::Offer(name_of(manifest), Some(offer))
}

fn name_of(manifest: &Manifest) -> ScenarioName {
    manifest.scenario.name.parse().unwrap()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let scenarios = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(1_000);
    let tools = scenarios * manifests::TOOLS;
    let bytes: usize = (0..scenarios)
        .map(|at| manifests::manifest(at, 0).len())
        .sum();
    println!(
        "{tools} tools, {:.1} bytes of a manifest each\n",
        bytes as f64 / tools as f64
    );
    println!("{:<58}{:>12}", "step", "bytes/tool");
    let mut steps = Steps {
        tools: tools as f64,
        blocks: arguments.iter().any(|argument| argument == "blocks"),
        before: Mark::now(),
    };

    let read: Vec<_> = (0..scenarios).map(read).collect();
    steps.done("manifests, as they are read");
    let manifests: Vec<_> = read.into_iter().map(Arc::new).collect();
    let (mut writer, reader) = catalog_store(Snapshot {
        catalog: Catalog::default(),
        former_names: callsheet::catalog::FormerNames::default(),
        generated_at: jiff::Timestamp::UNIX_EPOCH,
        health: imbl::OrdMap::new(),
        findings: Arc::default(),
        sequence: 0,
        transitions: callsheet::catalog::StateTransitions::default(),
        program_ends: callsheet::catalog::ProgramEnds::default(),
        isolated: None,
        configuration: None,
    });
    // As a sweep publishes: some answers at a time.
    for some in manifests.chunks(32) {
        let mut next = Snapshot::clone(&writer.current());
        for manifest in some {
            next.catalog = next.catalog.with(offer(manifest));
        }
        next.sequence += 1;
        writer.publish(next);
    }
    steps.done("catalog, and the former ones of the sweep");
    println!("    {} former catalogs", reader.history().len());
    let last = Snapshot::clone(&writer.current());
    drop((writer, reader));
    let (writer, _reader) = catalog_store(last);
    steps.done("without the former catalogs");
    let snapshot = writer.current();
    let index: usize = snapshot
        .catalog
        .entries()
        .map(|entry| entry.index_bytes())
        .sum();
    steps.done("the search's index");
    println!("    it says of itself {:.1}", index as f64 / steps.tools);

    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let views = ViewCache::new(1 << 30, callsheet::runtime::Tasks::new());
    let native = formats::FORMATS[0];
    let ask = |coding| {
        let query = callsheet::catalog::ViewQuery::default();
        runtime.block_on(views.prepare(&snapshot, &query, native, coding))
    };
    let body = ask(Coding::Identity).body.len();
    steps.done("the list, prepared");
    println!("    its body {:.1}", body as f64 / steps.tools);
    let body = ask(Coding::Gzip).body.len();
    steps.done("the list, prepared with gzip");
    println!("    its body {:.1}", body as f64 / steps.tools);
}
