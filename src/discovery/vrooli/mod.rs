//! Vrooli's lifecycle system: the JSON files under its processes folder,
//! `<path>/<scenario>/{start-api,start-app,api,app}.json`.
//!
//! ```text
//! watches, endings, rescan: "look again" -> scanner -> folder -> process_file -> assemble
//!                                                                 alive? ----------^   |
//!                                                                             EndpointSet
//! ```
//!
//! What is kept true here:
//!
//! - Vrooli writes one such file per process that it starts. A scenario is found where the first
//!   usable one of its files (readable, with a port, its process alive) says:
//!   `http://127.0.0.1:PORT`.
//! - Where none is usable and a process has ended, the scenario is reported with that reason
//!   ([`Endpoint::ended`](super::Endpoint::ended)).
//! - The folder is watched, and so is the end of each process; it is read again every
//!   `rescan_interval` all the same, because some file systems signal no changes. A watch never
//!   says what changed.
//! - Files are read on the blocking pool, and judged by pure code.
//!
//! Read in this order: `process_file.rs` (one file), `assemble.rs` (from files to endpoints),
//! `alive.rs`, `folder.rs`, `scanner.rs` (one look), `watches.rs` and `endings.rs`, this file (the
//! source), `text.rs`. `environment.rs` is a source of its own: addresses in variables of the
//! environment.
//!
//! It never writes there, never sends a request to an address and never ends a process. Reading
//! needs no process of Vrooli's own command line.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use self::endings::Endings;
use self::scanner::FolderScanner;
use super::{EndpointSet, Source, SourceError, SourceFactory, announce, publish_once};
use crate::config::{self, Config};
use crate::model::{SourceAbsence, SourceId, SourceSpec};
use crate::runtime::{Clock, Stop, Tasks};

pub mod environment;

mod alive;
mod assemble;
mod endings;
mod folder;
mod process_file;
mod scanner;
mod text;
mod watches;

/// After the first sign of a change, further ones are gathered for this long: a file is often
/// created, written and renamed at once.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The shortest time between two rescans, whatever was configured.
const MIN_RESCAN: Duration = Duration::from_millis(10);

/// The source of Vrooli's process files.
#[derive(Debug, Clone)]
pub struct VrooliFiles {
    section: config::VrooliConfig,
    clock: Clock,
}

impl SourceId {
    /// The Vrooli process files.
    pub const VROOLI: Self = Self::new(&SourceSpec {
        name: "vrooli",
        rank: 40,
        found: "in the Vrooli process files",
        absence: SourceAbsence::Hint,
        is_announced: false,
        has_entries: false,
    });
}

/// How the source is made.
pub const FACTORY: SourceFactory = SourceFactory {
    id: SourceId::VROOLI,
    make,
    same_settings,
};

/// The source, when it is switched on and the folder is known.
fn make(config: &Config, clock: Clock) -> Option<Box<dyn Source>> {
    let section = &config.discovery.vrooli;
    (section.enabled && section.path.is_some())
        .then(|| Box::new(VrooliFiles::new(section.clone(), clock)) as Box<dyn Source>)
}

fn same_settings(one: &Config, other: &Config) -> bool {
    one.discovery.vrooli == other.discovery.vrooli
}

impl VrooliFiles {
    /// The source over `section.path`; without a path it finds no scenarios. Does not check whether
    /// it is enabled.
    pub fn new(section: config::VrooliConfig, clock: Clock) -> Self {
        Self { section, clock }
    }

    /// Scans, sends the set, and waits for a reason to scan again, until `stop`.
    async fn follow(
        self,
        root: PathBuf,
        out: watch::Sender<EndpointSet>,
        stop: &Stop,
    ) -> Result<(), SourceError> {
        let tasks = Tasks::new();
        let rescan = self.section.rescan_interval.max(MIN_RESCAN);
        // Kept here too, so that the channel outlives a watcher that ended.
        let (wake, mut woken) = watch::channel(());
        let mut look = FolderScanner::new(root, self.section.max_scenarios, rescan, wake.clone());
        let mut endings = Endings::default();
        loop {
            // A change from here on may have come too late for this scan.
            woken.mark_unchanged();
            let looking = stop.clone();
            let looked = tasks.spawn_blocking(move || {
                let set = look.everywhere(&looking);
                (look, set)
            });
            let (back, set) = tokio::select! {
                () = stop.wait() => return Ok(()),
                looked = looked => looked.map_err(|error| failed(&error))?,
            };
            look = back;
            if let Some(set) = set {
                announce(&out, set);
            }
            endings.watch(look.running());
            tokio::select! {
                () = stop.wait() => return Ok(()),
                () = self.clock.sleep(endings.pause(rescan)) => continue,
                () = endings.next() => {}
                _ = woken.changed() => {}
            }
            tokio::select! {
                () = stop.wait() => return Ok(()),
                () = self.clock.sleep(DEBOUNCE) => {}
            }
        }
    }
}

impl Source for VrooliFiles {
    fn id(&self) -> SourceId {
        SourceId::VROOLI
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        async move {
            let Some(path) = self.section.path.clone() else {
                return publish_once(
                    EndpointSet {
                        initial_scan_done: true,
                        ..EndpointSet::default()
                    },
                    out,
                    stop,
                )
                .await;
            };
            // The watcher reports absolute paths.
            let root = std::path::absolute(&path).unwrap_or(path);
            self.follow(root, out, &stop).await
        }
        .boxed()
    }
}

fn failed(error: &tokio::task::JoinError) -> SourceError {
    SourceError {
        id: SourceId::VROOLI,
        message: format!("reading the processes folder broke off: {error}"),
    }
}
