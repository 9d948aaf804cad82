//! The scenarios named in the configuration, modules and the definitions among them.
//!
//! Sends them once and then only waits: when the list changes in a reload, another source takes its
//! place. It never searches by itself.

use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::path::Path;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::client_entries::{endpoint, findings};
use super::{
    Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceFactory, SourceTrust,
    publish_once,
};
use crate::config::client_files::{ClientServers, ReadEntry};
use crate::config::{Config, MODULE, ModulesConfig, StaticScenario};
use crate::model::{
    Auth, DEFINITIONS, Finding, FindingCode, HttpTarget, SourceAbsence, SourceId, SourceSpec,
    Target,
};
use crate::runtime::{Clock, Stop};

/// The file that `mcpServers` stands in, for findings.
const CONFIGURATION: &str = "the configuration";

/// The source of `[[scenarios]]`, `[modules]`, `mcpServers` and `[[definitions]]`.
#[derive(Debug, Clone)]
pub struct StaticList {
    set: EndpointSet,
}

impl SourceId {
    /// `[[scenarios]]`, `[[modules]]` and `mcpServers` in the configuration.
    pub const STATIC: Self = Self::new(&SourceSpec {
        name: "static",
        rank: 10,
        found: "in the configuration",
        absence: SourceAbsence::Decision("the configuration does not name it any more"),
        is_announced: false,
        has_entries: true,
    });
}

/// How the source is made.
pub const FACTORY: SourceFactory = SourceFactory {
    id: SourceId::STATIC,
    make,
    same_settings,
};

/// The source, when any scenario is configured.
fn make(config: &Config, _clock: Clock) -> Option<Box<dyn Source>> {
    let scenarios = config.static_scenarios();
    let servers = &config.mcp.servers;
    let defines = !config.definitions.is_empty();
    (!scenarios.is_empty() || !servers.is_empty() || defines).then(|| {
        let list = StaticList::new(scenarios)
            .with(&config.modules)
            .with_servers(servers, config.server.listen);
        Box::new(if defines {
            list.with_definitions()
        } else {
            list
        }) as Box<dyn Source>
    })
}

/// What is defined is no matter of the source.
fn same_settings(one: &Config, other: &Config) -> bool {
    one.scenarios == other.scenarios
        && one.modules == other.modules
        && one.mcp.servers == other.mcp.servers
        && one.definitions.is_empty() == other.definitions.is_empty()
}

impl StaticList {
    /// One trusted endpoint per entry, filed under the entry's name. The configuration keeps names
    /// unique.
    pub fn new(scenarios: Vec<StaticScenario>) -> Self {
        let endpoints = scenarios.into_iter().map(|scenario| {
            let id = EndpointId(scenario.name.as_str().into());
            let StaticScenario {
                name,
                target,
                protocol,
                sleep_after,
            } = scenario;
            (
                id,
                Endpoint {
                    name: Some(name),
                    protocol,
                    sleep_after,
                    ..Endpoint::new(target, SourceTrust::Trusted)
                },
            )
        });
        Self {
            set: EndpointSet {
                initial_scan_done: true,
                endpoints: endpoints.collect(),
                findings: Vec::new(),
            },
        }
    }

    /// Adds the servers that are written as MCP clients write them. `own` is the address that this
    /// daemon listens on.
    #[must_use]
    pub fn with_servers(mut self, entries: &[ReadEntry], own: SocketAddr) -> Self {
        let mut servers = ClientServers {
            own: Some(own),
            ..ClientServers::default()
        };
        servers.add(entries.iter().cloned(), Path::new(CONFIGURATION));
        self.set.findings.extend(findings(&servers));
        for server in &servers.taken {
            let Some((id, endpoint)) = endpoint(server, SourceTrust::Trusted) else {
                continue;
            };
            match self.set.endpoints.entry(id) {
                Entry::Vacant(free) => _ = free.insert(endpoint),
                Entry::Occupied(_) => {
                    let message = "`mcpServers` has this name too, and that entry is left out";
                    let finding =
                        Finding::new(FindingCode::EntryIgnored, message).of_scenario(&server.name);
                    self.set
                        .findings
                        .push(finding.hint("give one of the two another name"));
                }
            }
        }
        self
    }

    /// Adds the scenario inside this process that the definitions become.
    #[must_use]
    pub fn with_definitions(mut self) -> Self {
        self.set.endpoints.extend(definitions_endpoint());
        self
    }

    /// Gives the facts about the modules among them: how they are shown, and how long a call may
    /// take. There are none about other scenarios.
    #[must_use]
    pub fn with(mut self, modules: &ModulesConfig) -> Self {
        for endpoint in self.set.endpoints.values_mut() {
            let Some(name) = endpoint
                .name
                .as_ref()
                .filter(|_| endpoint.protocol.as_deref() == Some(MODULE))
            else {
                continue;
            };
            let Some(target) = endpoint.target.as_ref().and_then(Target::http) else {
                continue;
            };
            let token = || {
                modules
                    .token_of(name)
                    .map(|token| Auth::Bearer(token.clone()))
            };
            let auth = target.auth.clone().or_else(token);
            let call_timeout = Some(modules.timeout_of(name));
            endpoint.target = Some(
                HttpTarget {
                    auth,
                    call_timeout,
                    ..target.clone()
                }
                .into(),
            );
        }
        self
    }
}

/// The scenario inside this process that definitions become.
pub(super) fn definitions_endpoint() -> Option<(EndpointId, Endpoint)> {
    let name = DEFINITIONS.parse().ok()?;
    let url = format!("local:{DEFINITIONS}").parse().ok()?;
    let endpoint = Endpoint {
        name: Some(name),
        protocol: Some(DEFINITIONS.to_owned()),
        ..Endpoint::at(url, SourceTrust::Trusted)
    };
    Some((EndpointId(DEFINITIONS.into()), endpoint))
}

impl Source for StaticList {
    fn id(&self) -> SourceId {
        SourceId::STATIC
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        publish_once(self.set, out, stop).boxed()
    }
}
