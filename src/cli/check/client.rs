//! The HTTP client of checks.

use std::sync::Arc;

use crate::config::Config;
use crate::runtime::{Clock, Tasks};
use crate::transports::http::Client;

/// A client that sends requests as a daemon with this configuration would, one at a time.
pub(super) fn of_daemon(config: &Config, clock: Clock, tasks: Tasks) -> Arc<Client> {
    let client = Client::new(config.http_limits(), 1, config.cache_rules(), clock, tasks);
    client.use_proxies(&config.network.proxy_rules());
    client
}
