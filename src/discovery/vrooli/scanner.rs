//! One look at the whole processes folder: watch, list, read, judge. Blocking; runs on the blocking
//! pool only.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::alive::liveness;
use super::assemble::{ProcessEntry, assemble};
use super::folder::{self, FolderListing};
use super::text::printable;
use super::watches::{WatchFailure, Watches, recommended};
use crate::discovery::{EndpointId, EndpointSet};
use crate::model::{Finding, FindingCode};
use crate::runtime::Stop;

/// What is remembered from one look to the next.
pub(super) struct FolderScanner {
    root: PathBuf,
    max_scenarios: usize,
    rescan_interval: Duration,
    watches: Watches,
    entries: BTreeMap<EndpointId, ProcessEntry>,
    /// The processes that run, of the last whole look.
    running: BTreeSet<u32>,
    /// The findings of the last whole look.
    findings: Vec<Finding>,
    settled: bool,
}

impl FolderScanner {
    /// A scanner before its first scan. `root` must be absolute; `wake` is notified when another
    /// scan is needed.
    pub(super) fn new(
        root: PathBuf,
        max_scenarios: usize,
        rescan_interval: Duration,
        wake: watch::Sender<()>,
    ) -> Self {
        Self {
            watches: Watches::new(root.clone(), recommended, wake),
            root,
            max_scenarios,
            rescan_interval,
            entries: BTreeMap::new(),
            running: BTreeSet::new(),
            findings: Vec::new(),
            settled: false,
        }
    }

    /// Scans the folder. A folder that is not there has no scenarios; if it cannot be listed, the
    /// last whole set stays, with a finding. No set is sent when `stop` came in between.
    pub(super) fn everywhere(&mut self, stop: &Stop) -> Option<EndpointSet> {
        let (anchors, watch_failure) = self.watches.anchor();
        let failure = match folder::list(&self.root, self.max_scenarios) {
            Ok(listing) => {
                let below = self.watch(anchors, &listing);
                self.read(listing, stop)?;
                watch_failure
                    .or(below)
                    .map(|failure| self.not_watched(&failure))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.watches.keep_only(&anchors);
                self.entries.clear();
                self.running.clear();
                self.findings.clear();
                self.settled = true;
                watch_failure.map(|failure| self.not_watched(&failure))
            }
            Err(error) => Some(self.not_listed(&error)),
        };
        let mut findings = self.findings.clone();
        findings.extend(failure);
        findings.sort();
        let endpoints = self
            .entries
            .iter()
            .map(|(id, entry)| (id.clone(), entry.endpoint.clone()))
            .collect();
        Some(EndpointSet {
            initial_scan_done: self.settled,
            endpoints,
            findings,
        })
    }

    /// The processes that run: the folder is to be scanned again when one of them ends.
    pub(super) fn running(&self) -> &BTreeSet<u32> {
        &self.running
    }

    fn watch(
        &mut self,
        anchors: BTreeSet<PathBuf>,
        listing: &FolderListing,
    ) -> Option<WatchFailure> {
        let mut wanted = anchors;
        // An entry that cannot be inspected is reported when it is read.
        wanted.extend(
            listing
                .folders
                .iter()
                .filter(|folder| folder.is_dir())
                .cloned(),
        );
        self.watches.keep_only(&wanted);
        self.watches.add(&wanted)
    }

    fn read(&mut self, listing: FolderListing, stop: &Stop) -> Option<()> {
        let mut findings = Vec::new();
        if listing.left_out > 0 {
            findings.push(self.too_many(&listing));
        }
        let mut folders = Vec::with_capacity(listing.folders.len());
        for path in listing.folders {
            if stop.is_stopped() {
                return None;
            }
            folders.push(folder::read(path));
        }
        let assembled = assemble(&folders, &self.entries, &liveness);
        findings.extend(assembled.findings);
        (self.entries, self.running) = (assembled.entries, assembled.running);
        self.findings = findings;
        self.settled = true;
        Some(())
    }

    fn not_watched(&self, failure: &WatchFailure) -> Finding {
        failure.finding(&format!("{:?}", self.rescan_interval))
    }

    fn not_listed(&self, error: &io::Error) -> Finding {
        let root = printable(&self.root.to_string_lossy());
        let hint = match error.kind() {
            ErrorKind::PermissionDenied => {
                "let the user that runs callsheet list the folder, or point"
            }
            _ => "point",
        };
        let kept = if self.settled {
            "so what it held before stays"
        } else {
            "so its state is unknown"
        };
        Finding::new(FindingCode::SourceFailed, format!("the folder `{root}` cannot be listed, {kept}: {error}")).hint(
            format!(
                "{hint} `discovery.vrooli.path` at Vrooli's processes folder, or switch `discovery.vrooli.enabled` off"
            ),
        )
    }

    fn too_many(&self, listing: &FolderListing) -> Finding {
        let root = printable(&self.root.to_string_lossy());
        let mut names = printable(&listing.examples.join("`, `"));
        if listing.left_out > listing.examples.len() {
            names.push_str("`, `...");
        }
        Finding::new(
            FindingCode::EntryIgnored,
            format!("of the folders in `{root}` the last {} were not read: `{names}`", listing.left_out),
        )
        .hint(format!(
            "raise `discovery.vrooli.max_scenarios` (now {}), or remove the folders of scenarios that are gone",
            self.max_scenarios
        ))
    }
}
