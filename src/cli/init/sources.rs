//! Runs the daemon's own sources once, and gathers what they find. Polls nothing.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;

use crate::config::Config;
use crate::discovery::{Endpoint, EndpointSet, SOURCES, SourceFactory, SourceTrust};
use crate::model::{SourceAbsence, SourceId};
use crate::runtime::{Clock, StopTrigger, Tasks};

/// How long a source may take; that of announcements waits three seconds for answers.
const SOURCE_TIME_MAX: Duration = Duration::from_secs(5);

/// One endpoint that a source found.
#[derive(Debug)]
pub(super) struct FoundEndpoint {
    /// Which source found it.
    pub(super) source: SourceId,
    /// Its name, if the source knows it.
    pub(super) name: Option<String>,
    /// Its address.
    pub(super) place: String,
    /// Whether its tools are listed without a person's decision.
    pub(super) is_trusted: bool,
}

/// What the sources say.
#[derive(Debug, Default)]
pub(super) struct ScannedSources {
    /// What needs no entry in the configuration, in the order of the sources.
    pub(super) endpoints: Vec<FoundEndpoint>,
    /// A line for each thing that they leave out.
    pub(super) left_out: Vec<String>,
}

/// What the sources find that need no entry in the configuration.
pub(super) async fn scan(config: &Config, clock: Clock) -> ScannedSources {
    // What others name by their entries is a decision of a person.
    let needs_no_entry =
        |factory: &&SourceFactory| factory.id.spec().absence == SourceAbsence::Hint;
    let sources = SOURCES.iter().filter(needs_no_entry);
    let found = join_all(sources.map(|factory| one(factory, config, clock))).await;
    let mut all = ScannedSources::default();
    for mut scanned in found {
        all.endpoints.append(&mut scanned.endpoints);
        all.left_out.append(&mut scanned.left_out);
    }
    all
}

/// What one source finds.
async fn one(factory: &SourceFactory, config: &Config, clock: Clock) -> ScannedSources {
    let Some(finder) = (factory.make)(config, clock) else {
        return ScannedSources::default();
    };
    let (out, mut sets) = watch::channel(EndpointSet::default());
    let (trigger, stop) = StopTrigger::new();
    let tasks = Tasks::new();
    let running = tasks.spawn(finder.run(out, stop));
    tokio::select! {
        // A source that has ended has sent its last set.
        _ = sets.wait_for(|set| set.initial_scan_done) => {}
        () = clock.sleep(SOURCE_TIME_MAX) => {}
    }
    let set = sets.borrow().clone();
    let endpoints = set
        .endpoints
        .values()
        .filter_map(|endpoint| endpoint_of(factory.id, endpoint))
        .collect();
    // What the other sources leave out is no entry of a person.
    let findings = set
        .findings
        .into_iter()
        .filter(|_| factory.id == SourceId::ENVIRONMENT);
    let left_out = findings.map(|finding| finding.message).collect();
    trigger.stop();
    // How it ends does not matter any more.
    let _ = running.await;
    ScannedSources {
        endpoints,
        left_out,
    }
}

/// An endpoint that has an address and whose process runs.
fn endpoint_of(source: SourceId, endpoint: &Endpoint) -> Option<FoundEndpoint> {
    if endpoint.ended.is_some() {
        return None;
    }
    Some(FoundEndpoint {
        source,
        name: endpoint.name.as_ref().map(ToString::to_string),
        place: endpoint.target.as_ref()?.to_string(),
        is_trusted: endpoint.trust == SourceTrust::Trusted,
    })
}
