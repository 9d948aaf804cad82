//! What a client works with, and what may be exchanged while requests are under way: limits, rules, and the connections' own settings.
//!
//! It never sends anything.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::{ACCEPT, HeaderMap, HeaderValue};
use tokio::sync::Semaphore;

use super::cache_policy::Rules;
use super::dial::Given;
use super::{AskError, Limits};
use crate::model::Bounds;

/// How scenarios see us.
const USER_AGENT: &str = concat!("callsheet/", env!("CARGO_PKG_VERSION"));

/// Idle connections kept per host. None: a poll per minute would hold one open per scenario (24 KB each) and find it closed by the
/// server most times, and a fresh connection costs no more.
const IDLE_PER_HOST: usize = 0;

/// What may be exchanged while requests are under way, which keep what they began with.
pub(super) struct Settings {
    pub(super) http: reqwest::Client,
    /// The same, but connecting where each request says; made when the first is needed.
    pub(super) dialling: Arc<OnceLock<reqwest::Client>>,
    pub(super) limits: Limits,
    pub(super) permits: Arc<Semaphore>,
    pub(super) concurrency: usize,
    pub(super) rules: Rules,
    /// How much of a manifest is taken.
    pub(super) bounds: Bounds,
}

impl Settings {
    pub(super) fn new(limits: Limits, concurrency: usize, rules: Rules, bounds: Bounds) -> Result<Self, AskError> {
        let (http, dialling) = (set_up(&limits, false)?, Arc::default());
        Ok(Self { http, dialling, limits, permits: places(concurrency), concurrency, rules, bounds })
    }

    /// The same once more; places and connections are shared.
    pub(super) fn share(&self) -> Self {
        let Self { http, dialling, limits, permits, concurrency, rules, bounds } = self;
        let (http, dialling, permits) = (http.clone(), Arc::clone(dialling), Arc::clone(permits));
        Self {
            http,
            dialling,
            limits: limits.clone(),
            permits,
            concurrency: *concurrency,
            rules: *rules,
            bounds: *bounds,
        }
    }

    /// The client for requests that bring their address.
    pub(super) fn dialling(&self) -> Result<&reqwest::Client, AskError> {
        if let Some(client) = self.dialling.get() {
            return Ok(client);
        }
        let client = set_up(&self.limits, true)?;
        Ok(self.dialling.get_or_init(|| client))
    }
}

/// So many places for requests, at least one.
pub(super) fn places(concurrency: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(concurrency.clamp(1, Semaphore::MAX_PERMITS)))
}

/// Makes ring the process's TLS, unless it has one already. Whoever builds a client of their own calls this first.
pub(crate) fn choose_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Fails only when another thread was faster, which serves us as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// A client with these limits, which looks up host names or connects where each request says.
fn set_up(limits: &Limits, dialling: bool) -> Result<reqwest::Client, AskError> {
    choose_tls();
    let builder = || {
        let builder = builder(limits.connect);
        if dialling { builder.dns_resolver(Given) } else { builder }
    };
    let client = builder().build().or_else(|error| {
        // A bare container has no CA certificates, and then the platform's verifier cannot be made; http needs none.
        tracing::warn!(error = ?error, "no CA certificates can be loaded, so https scenarios will not be trusted");
        builder().tls_certs_only([]).build()
    });
    client.map_err(|error| AskError::Address(format!("the HTTP client cannot be set up: {error:?}")))
}

fn builder(connect: Duration) -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .user_agent(USER_AGENT)
        .default_headers(HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]))
        .gzip(true)
        .brotli(true)
        // HTTP_PROXY in the environment would send even loopback requests to a stranger.
        .no_proxy()
        // Redirects are followed in `exchange`, which can name the target that it refuses.
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .connect_timeout(connect)
}
