//! What a client works with, and what may be exchanged while requests are under way: limits, rules, and the connections' own settings.
//!
//! It never sends anything.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::header::{ACCEPT, HeaderMap, HeaderValue};
use tokio::sync::Semaphore;

use super::cache_policy::Rules;
use super::dial::Given;
use super::direct::Direct;
use super::plain::Plain;
use super::{AskError, Limits};
use crate::model::Bounds;
use crate::runtime::Clock;

/// How scenarios see us.
pub(super) const OURS: &str = concat!("callsheet/", env!("CARGO_PKG_VERSION"));

/// Idle connections kept per host. None: a poll per minute would hold one open per scenario (24 KB each) and find it closed by the
/// server most times, and a fresh connection costs no more.
const IDLE_PER_HOST: usize = 0;

/// Idle connections for calls kept per host, and for how long. Calls come in bursts and are waited for, so a connection is worth keeping for
/// the next one; many servers close theirs after five seconds, and a request that meets a closing connection is lost, for a call is not
/// repeated. So ours are given up before that, which also bounds how many are open.
pub(super) const CALLS_IDLE_PER_HOST: usize = 32;
pub(super) const CALLS_IDLE: Duration = Duration::from_secs(4);
/// The same for all hosts together: at 12 KB each, 6 MB at the worst, for four seconds.
pub(super) const CALLS_IDLE_IN_ALL: usize = 512;

/// What may be exchanged while requests are under way, which keep what they began with.
pub(super) struct Settings {
    /// For asks that need neither TLS nor credentials nor a target of their own.
    pub(super) direct: Direct,
    /// For asks that need TLS or credentials; made when the first comes: its certificates take milliseconds and a megabyte.
    pub(super) asking: Arc<OnceLock<reqwest::Client>>,
    /// The same, but connecting where each request says; made when the first is needed.
    pub(super) dialling: Arc<OnceLock<reqwest::Client>>,
    /// For calls that need TLS or credentials; made when the first comes.
    pub(super) calling: Arc<OnceLock<reqwest::Client>>,
    /// For the other calls; made when the first comes.
    pub(super) plain: Arc<OnceLock<Plain>>,
    /// Held while one of them is made, which a burst of first requests need not do each by itself.
    pub(super) making: Arc<Mutex<()>>,
    pub(super) limits: Limits,
    pub(super) permits: Arc<Semaphore>,
    pub(super) concurrency: usize,
    pub(super) rules: Rules,
    /// How much of a manifest is taken.
    pub(super) bounds: Bounds,
}

impl Settings {
    pub(super) fn new(limits: Limits, concurrency: usize, rules: Rules, bounds: Bounds) -> Self {
        Self {
            direct: Direct::new(limits.connect),
            asking: Arc::default(),
            dialling: Arc::default(),
            calling: Arc::default(),
            plain: Arc::default(),
            making: Arc::default(),
            limits,
            permits: places(concurrency),
            concurrency,
            rules,
            bounds,
        }
    }

    /// The same once more; places and connections are shared.
    pub(super) fn share(&self) -> Self {
        Self {
            direct: self.direct.clone(),
            asking: Arc::clone(&self.asking),
            dialling: Arc::clone(&self.dialling),
            calling: Arc::clone(&self.calling),
            plain: Arc::clone(&self.plain),
            making: Arc::clone(&self.making),
            limits: self.limits.clone(),
            permits: Arc::clone(&self.permits),
            concurrency: self.concurrency,
            rules: self.rules,
            bounds: self.bounds,
        }
    }

    /// The client for asks that have no shorter way.
    pub(super) fn asking(&self) -> Result<&reqwest::Client, AskError> {
        self.once(&self.asking, Use::Asks)
    }

    /// Whether asks needed TLS or credentials before.
    pub(super) fn has_tls(&self) -> bool {
        self.asking.get().is_some()
    }

    /// The client for requests that bring their address.
    pub(super) fn dialling(&self) -> Result<&reqwest::Client, AskError> {
        self.once(&self.dialling, Use::Dialling)
    }

    /// The client for calls. One that brings its address takes [`Settings::dialling`], which keeps no connections: they are known by the
    /// name in the request, which may have led elsewhere before.
    pub(super) fn calling(&self) -> Result<&reqwest::Client, AskError> {
        self.once(&self.calling, Use::Calls)
    }

    /// The client for calls that need neither TLS nor credentials nor a target of their own.
    pub(super) fn plain(&self, clock: Clock) -> &Plain {
        self.plain.get_or_init(|| Plain::new(self.limits.connect, clock))
    }

    fn once<'a>(&self, made: &'a OnceLock<reqwest::Client>, what_for: Use) -> Result<&'a reqwest::Client, AskError> {
        if let Some(client) = made.get() {
            return Ok(client);
        }
        let _alone = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = made.get() {
            return Ok(client);
        }
        let client = set_up(self.limits.connect, what_for)?;
        Ok(made.get_or_init(|| client))
    }
}

/// What a client is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Asks, looking up host names.
    Asks,
    /// Requests that say where to connect.
    Dialling,
    /// Calls, looking up host names.
    Calls,
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

/// A client for one use.
fn set_up(connect: Duration, what_for: Use) -> Result<reqwest::Client, AskError> {
    choose_tls();
    let builder = || match what_for {
        Use::Asks => builder(connect).gzip(true).brotli(true),
        Use::Dialling => builder(connect).gzip(true).brotli(true).dns_resolver(Given),
        // What is called is near, where packing costs more time than sending.
        Use::Calls => builder(connect)
            .no_gzip()
            .no_brotli()
            .pool_max_idle_per_host(CALLS_IDLE_PER_HOST)
            .pool_idle_timeout(CALLS_IDLE),
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
        .user_agent(OURS)
        .default_headers(HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]))
        // HTTP_PROXY in the environment would send even loopback requests to a stranger.
        .no_proxy()
        // Redirects are followed in `exchange`, which can name the target that it refuses.
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .connect_timeout(connect)
}
