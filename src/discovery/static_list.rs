//! The scenarios named in the configuration, modules among them.
//!
//! Tells them once and then only waits: when the list changes in a reload, another source takes its place. It never looks anywhere by itself.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceTrust, told_once};
use crate::config::{Config, MODULE, ModulesConfig, StaticScenario};
use crate::model::{HttpTarget, SourceId};
use crate::runtime::{Clock, Stop};

/// The source of `[[scenarios]]` and `[modules]`.
#[derive(Debug, Clone)]
pub struct StaticList {
    set: EndpointSet,
}

/// The source, when any scenario is configured.
pub fn make(config: &Config, _clock: Clock) -> Option<Box<dyn Source>> {
    let scenarios = config.static_scenarios();
    (!scenarios.is_empty()).then(|| Box::new(StaticList::new(scenarios).with(&config.modules)) as Box<dyn Source>)
}

impl StaticList {
    /// One trusted endpoint per entry, filed under the entry's name. The configuration keeps names unique.
    pub fn new(scenarios: Vec<StaticScenario>) -> Self {
        let endpoints = scenarios.into_iter().map(|scenario| {
            let id = EndpointId(scenario.name.as_str().into());
            let StaticScenario { name, target, protocol } = scenario;
            (id, Endpoint { name: Some(name), protocol, ..Endpoint::new(target, SourceTrust::Trusted) })
        });
        Self { set: EndpointSet { initial_scan_done: true, endpoints: endpoints.collect(), findings: Vec::new() } }
    }

    /// Tells of the modules among them what they are to be shown, and how long a call may take. Of other scenarios nothing is known.
    #[must_use]
    pub fn with(mut self, modules: &ModulesConfig) -> Self {
        for endpoint in self.set.endpoints.values_mut() {
            let Some(name) = endpoint.name.as_ref().filter(|_| endpoint.protocol.as_deref() == Some(MODULE)) else {
                continue;
            };
            let Some(target) = endpoint.target.http() else { continue };
            let token = target.token.as_ref().or(modules.token_of(name)).cloned();
            let call_timeout = Some(modules.timeout_of(name));
            endpoint.target = HttpTarget { token, call_timeout, ..target.clone() }.into();
        }
        self
    }
}

impl Source for StaticList {
    fn id(&self) -> SourceId {
        SourceId::Static
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        told_once(self.set, out, stop).boxed()
    }
}
