//! What may be exchanged while requests are under way: limits and rules.
//!
//! It never sends anything.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

use super::cache_policy::CacheRules;
use super::proxy::ProxyRules;

/// Limits of every request. Each stands in `config/default.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientLimits {
    /// Until the connection stands, TLS included. Through a proxy each step has so long: looking up
    /// the host, the proxy's connection to it, and TLS.
    pub connect: Duration,
    /// From the start to the last byte of the body, redirects and the one retry included. Waiting
    /// for a turn is not counted.
    pub whole: Duration,
    /// Bytes of a body after decoding.
    pub max_body: usize,
    /// Redirects followed within the origin.
    pub max_redirects: usize,
}

/// What requests work with. Those under way keep what they began with.
#[derive(Debug, Clone)]
pub(super) struct ClientSettings {
    pub(super) limits: ClientLimits,
    pub(super) permits: Arc<Semaphore>,
    /// How many permits there are.
    pub(super) concurrency: usize,
    pub(super) rules: CacheRules,
    pub(super) proxies: ProxyRules,
}

impl ClientSettings {
    /// Settings with permits of their own, at least one.
    pub(super) fn new(limits: ClientLimits, concurrency: usize, rules: CacheRules) -> Self {
        let permits = Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)));
        Self {
            limits,
            permits,
            concurrency,
            rules,
            proxies: ProxyRules::default(),
        }
    }

    /// The settings that follow these ones. Permits are shared while their number stays.
    pub(super) fn next(&self, limits: ClientLimits, concurrency: usize, rules: CacheRules) -> Self {
        if concurrency == self.concurrency {
            return Self {
                limits,
                rules,
                ..self.clone()
            };
        }
        Self {
            proxies: self.proxies.clone(),
            ..Self::new(limits, concurrency, rules)
        }
    }
}
