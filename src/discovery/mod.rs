//! Finding out where scenarios may be.
//!
//! ```text
//! configuration, process files, client files, mDNS, bundles, the program
//!       | each is a Source
//!       v
//! EndpointSet (whole, with findings) --watch channel--> engine/sources.rs --> reconcile
//! ```
//!
//! What is kept true here:
//!
//! - A source sends its *whole* set of endpoints each time, never a delta: a lost or repeated
//!   message does no harm, and a vanished endpoint needs no event of its own.
//! - A source neither fetches, filters nor judges. When it fails half way it keeps its last whole
//!   set and reports the problem as a finding.
//! - A set says whether the source has looked everywhere once (`initial_scan_done`); until then it
//!   cannot take an endpoint back.
//! - An endpoint carries the trust of its source: named, only found, or only proposed.
//!
//! Read in this order: this file ([`Source`], [`Endpoint`]), `static_list.rs` (the smallest
//! source), `bundles.rs`, `embedded.rs`, `mcp_files.rs` with `client_entries.rs`, `vrooli` (process
//! files and variables), `mdns` (the local network).
//!
//! To add one: a file here with its declaration ([`SourceSpec`](crate::model::SourceSpec)) and its
//! [`SourceFactory`], a line in [`SOURCES`], a section in `config/default.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use url::Url;

use crate::config::Config;
use crate::model::{Finding, ScenarioName, SourceId, Target};
use crate::runtime::{Clock, Stop};

pub mod bundles;
mod client_entries;
pub mod embedded;
pub mod mcp_files;
pub mod mdns;
pub mod registered;
pub mod static_list;
pub mod vrooli;

/// Identity of an endpoint within its source: stable while it means the same target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub Arc<str>);

/// One target, as a source reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name of the scenario. Sources that only know an address leave it out; the manifest then
    /// names it.
    pub name: Option<ScenarioName>,
    /// Where it is, and how it is reached. Its address has no query and no fragment. `dial` is for
    /// names that only the source can resolve, and for addresses that a URL cannot write
    /// (link-local IPv6 with its scope); a token is only of what the operator named. `None` only
    /// for a process that has ended, where nothing names an address.
    pub target: Option<Target>,
    /// The id of its protocol; probed when absent.
    pub protocol: Option<String>,
    /// Whether the source is trusted for this address.
    pub trust: SourceTrust,
    /// Changes when the source saw the scenario restart on the same address (a new process id, a
    /// new boot id).
    pub boot: Option<Arc<str>>,
    /// The identity that the scenario claims (the `id` of an mDNS announcement): the same identity
    /// is the same scenario, whatever it is called.
    pub identity: Option<Arc<str>>,
    /// Why its process does not run, in one sentence without a full stop, when the source knows
    /// that. The scenario is then shown as down and not polled, because another program may have
    /// its port by now.
    pub ended: Option<Arc<str>>,
    /// After how long without a client its program sleeps, `Some(None)` for never; `None` as all
    /// others (`mcp.sleep_after`).
    pub sleep_after: Option<Option<Duration>>,
}

impl Endpoint {
    /// An endpoint of which only the address is known.
    pub fn at(url: Url, trust: SourceTrust) -> Self {
        Self::new(Target::at(url), trust)
    }

    /// An endpoint of which only the target is known.
    pub fn new(target: Target, trust: SourceTrust) -> Self {
        Self {
            target: Some(target),
            ..Self::unplaced(trust)
        }
    }

    /// An endpoint without a target, identity or protocol yet.
    pub(crate) fn unplaced(trust: SourceTrust) -> Self {
        Self {
            name: None,
            target: None,
            protocol: None,
            trust,
            boot: None,
            identity: None,
            ended: None,
            sleep_after: None,
        }
    }
}

/// Whether a source is trusted for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceTrust {
    /// The operator or this machine itself named it.
    Trusted,
    /// It was found on the network; an operator has to trust it before its tools are published.
    Untrusted,
    /// A file names it that other programs write too. An operator accepts each version of its
    /// entry, and it is neither started nor contacted before.
    Proposed,
}

/// Everything a source knows now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointSet {
    /// Whether the source has completed its first search. An empty unsettled set has no meaning
    /// yet; an empty settled one means that there are no endpoints.
    pub initial_scan_done: bool,
    /// The endpoints.
    pub endpoints: BTreeMap<EndpointId, Endpoint>,
    /// The present problems of the source or of single entries; a failing source reports them here
    /// and keeps its last endpoints.
    pub findings: Vec<Finding>,
}

/// A source that cannot go on at all. Everything milder is a finding in its set.
#[derive(Debug, thiserror::Error)]
#[error("source `{id}` ended: {message}")]
pub struct SourceError {
    /// Which source.
    pub id: SourceId,
    /// What happened.
    pub message: String,
}

/// Finds out where scenarios may be.
pub trait Source: Send {
    /// Which source this is.
    fn id(&self) -> SourceId;

    /// Runs until `stop`, sending a whole set first as soon as it can, and again after each change.
    /// Returns early only when it can never send a set again; its last set then stays valid.
    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>>;
}

/// How a source is made from the configuration.
#[derive(Debug)]
pub struct SourceFactory {
    /// Which source it makes.
    pub id: SourceId,
    /// Makes it; `None` if it is disabled.
    pub make: fn(&Config, Clock) -> Option<Box<dyn Source>>,
    /// Whether both configurations give the same source, so that it need not be replaced.
    pub same_settings: fn(&Config, &Config) -> bool,
}

/// Every source that is made from the configuration.
pub const SOURCES: &[SourceFactory] = &[
    static_list::FACTORY,
    vrooli::environment::FACTORY,
    vrooli::FACTORY,
    mcp_files::FACTORY,
    mdns::FACTORY,
];

/// The sources that this program has, by their names.
#[derive(Debug, Clone)]
pub(crate) struct KnownSources(Arc<[SourceId]>);

impl KnownSources {
    /// Those of callsheet, and these.
    pub(crate) fn with(others: impl IntoIterator<Item = SourceId>) -> Self {
        let ours = SOURCES.iter().map(|factory| factory.id);
        Self(
            ours.chain([SourceId::EMBEDDED, SourceId::BUNDLES, SourceId::REGISTERED])
                .chain(others)
                .collect(),
        )
    }

    /// The source with this name. A name of the state may be of a program that had further sources.
    pub(crate) fn named(&self, name: &str) -> SourceId {
        self.0
            .iter()
            .copied()
            .find(|id| id.as_str() == name)
            .unwrap_or(SourceId::UNKNOWN)
    }
}

/// Sends `set` unless it equals the last one, so that receivers wake for real changes only.
pub(crate) fn announce(out: &watch::Sender<EndpointSet>, set: EndpointSet) {
    out.send_if_modified(|in_force| {
        let changed = *in_force != set;
        *in_force = set;
        changed
    });
}

/// The run of a source that knows its set from the start: sends it once, then waits, so that it
/// counts as running.
pub(crate) async fn publish_once(
    set: EndpointSet,
    out: watch::Sender<EndpointSet>,
    stop: Stop,
) -> Result<(), SourceError> {
    announce(&out, set);
    stop.wait().await;
    Ok(())
}

impl fmt::Display for EndpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
