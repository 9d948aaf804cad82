//! Finding out where scenarios may be.
//!
//! A source tells its *whole* set of endpoints each time, never a delta: a lost or repeated message does no harm, and a vanished
//! endpoint needs no event of its own. A source neither fetches, filters nor judges; when it fails half way it keeps its last whole
//! set and says what went wrong.
//!
//! To add one: a file here, a line in [`SOURCES`], a section in `config/default.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use url::Url;

use crate::config::{self, Config};
use crate::model::{Finding, ScenarioName, SourceId, Target};
use crate::runtime::{Clock, Stop};

mod client_entries;
pub mod embedded;
pub mod mcp_files;
pub mod mdns;
pub mod static_list;
pub mod vrooli;

/// Identity of an endpoint within its source: stable while it means the same place to look.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub Arc<str>);

/// One target, as a source reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The scenario it is said to be. Sources that only know an address leave it out; the manifest then names it.
    pub name: Option<ScenarioName>,
    /// Where it is, and how it is reached. Its address has no query and no fragment. `dial` is for names that only the source can resolve, and for
    /// addresses that a URL cannot write (link-local IPv6 with its scope); a token is only of what the operator named.
    pub target: Target,
    /// The protocol it is said to speak, by its id; probed when absent.
    pub protocol: Option<String>,
    /// Whether the source vouches for the address.
    pub trust: SourceTrust,
    /// Changes when the source saw the scenario restart on the same address (a new process id, a new boot id).
    pub boot: Option<Arc<str>>,
    /// What the scenario says it is wherever it runs (the `id` of an mDNS announcement): the same identity is the same scenario,
    /// whatever it is called.
    pub identity: Option<Arc<str>>,
    /// Why its process does not run, in one sentence without a full stop, when the source knows that. The scenario is then shown as
    /// down and not polled, because another program may have its port by now.
    pub ended: Option<Arc<str>>,
}

impl Endpoint {
    /// An endpoint of which only the address is known.
    pub fn at(url: Url, trust: SourceTrust) -> Self {
        Self::new(Target::at(url), trust)
    }

    /// An endpoint of which only the target is known.
    pub fn new(target: Target, trust: SourceTrust) -> Self {
        Self { name: None, target, protocol: None, trust, boot: None, identity: None, ended: None }
    }
}

/// Whether a source vouches for an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceTrust {
    /// The operator or this machine itself named it.
    Trusted,
    /// It was heard of; an operator has to say yes before its tools are published.
    Untrusted,
    /// A file names it that other programs write too. An operator accepts each version of its entry, and it is neither started nor
    /// contacted before.
    Proposed,
}

/// Everything a source knows now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EndpointSet {
    /// Whether the source has looked everywhere at least once. An empty unsettled set says nothing; an empty settled one says
    /// "there are none".
    pub initial_scan_done: bool,
    /// The endpoints.
    pub endpoints: BTreeMap<EndpointId, Endpoint>,
    /// What is wrong with the source or with single entries now; a failing source says so here and keeps its last endpoints.
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

/// Something that tells where scenarios may be.
pub trait Source: Send {
    /// Which source this is.
    fn id(&self) -> SourceId;

    /// Runs until `stop`, sending a whole set first as soon as it can, and again after each change. Returns early only when it can
    /// never tell anything again; its last set then stays in force.
    fn run(self: Box<Self>, out: watch::Sender<EndpointSet>, stop: Stop)
    -> BoxFuture<'static, Result<(), SourceError>>;
}

/// Makes a source from the configuration, or nothing when it is switched off.
pub type MakeSource = fn(&Config, Clock) -> Option<Box<dyn Source>>;

/// Every source there is, in the order of precedence: the first that names a scenario wins.
pub const SOURCES: &[(SourceId, MakeSource)] = &[
    (SourceId::Static, static_list::make),
    (SourceId::Environment, vrooli::environment::make),
    (SourceId::Vrooli, vrooli::make),
    (SourceId::McpFiles, mcp_files::make),
    (SourceId::Mdns, mdns::make),
];

/// Whether a source would be made the same from both, so that it may go on as it is.
pub fn same_settings(source: SourceId, one: &Config, other: &Config) -> bool {
    let (mine, theirs) = (&one.discovery, &other.discovery);
    match source {
        // Of the program, not of its configuration.
        SourceId::Embedded => true,
        SourceId::Static => {
            one.scenarios == other.scenarios && one.modules == other.modules && one.mcp.servers == other.mcp.servers
        }
        // What the configuration has is not proposed again.
        SourceId::McpFiles => one.mcp.files == other.mcp.files && one.scenarios == other.scenarios,
        SourceId::Environment => mine.environment == theirs.environment,
        SourceId::Vrooli => mine.vrooli == theirs.vrooli,
        // What it announces is no matter of the source.
        SourceId::Mdns => {
            let listening = |section: &config::MdnsConfig| config::MdnsConfig {
                announce: false,
                name: String::new(),
                ..section.clone()
            };
            listening(&mine.mdns) == listening(&theirs.mdns)
        }
    }
}

/// Sends `set` unless it equals the one in force, so that receivers wake for real changes only.
pub(crate) fn announce(out: &watch::Sender<EndpointSet>, set: EndpointSet) {
    out.send_if_modified(|in_force| {
        let changed = *in_force != set;
        *in_force = set;
        changed
    });
}

/// The run of a source that knows everything from the start: tells it once, then waits, so that it counts as running.
pub(crate) async fn told_once(
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
