//! Sends GET requests to scenarios, and holds what all requests share.
//!
//! It never sends a call (see [`post`](super::post)) and never decides when to send a request. It
//! repeats a request in two cases only: the connection was closed before an answer came, or the
//! server refused the credentials and there are renewed ones.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH};
use http::{Method, Response, StatusCode};
use hyper::body::Body;
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::body::{self, BodyError};
use super::cache_policy::CacheRules;
use super::connections::{Connections, Spawner, request};
use super::connector::{Connector, Route};
use super::credentials::{Credentials, SecretReader, TokenSources};
use super::proxy::ProxyRules;
use super::settings::ClientSettings;
use super::status::{self, ResponseAction};
use super::{
    Address, BoxError, ClientLimits, HttpResponse, HttpValidators, ResponseHead, Upstream, failure,
};
use crate::metrics::Fetches;
use crate::model::HttpTarget;
use crate::runtime::tasks::BodyStep;
use crate::runtime::{Clock, StopTrigger, Tasks};
use crate::transports::{Mask, TransportError};

/// How long [`Client::close`] waits for tasks that were ordered to end.
const CLOSE: Duration = Duration::from_secs(1);

/// Headers that later requests need as they are. They are neither shown nor stored.
const UNMASKED: [&str; 2] = ["location", "mcp-session-id"];

/// Which answers are returned to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Take {
    /// 2xx, and 304 to a conditional request.
    Success,
    /// All but redirects.
    Any,
}

/// One client for all scenarios: limited concurrency, a proxy only where the operator's rules name
/// one, redirects within the origin only.
pub struct Client {
    pub(super) settings: Arc<ArcSwap<ClientSettings>>,
    pub(super) connections: Arc<Connections>,
    /// Those to hosts that the operator named, which may take a proxy.
    pub(super) named_connections: Arc<Connections>,
    /// The tasks of all connections, including those to single scenarios.
    connection_tasks: Tasks,
    closing: StopTrigger,
    /// The id of this daemon for other daemons, once it is set.
    pub(in crate::transports) own_id: OnceLock<Arc<str>>,
    token_sources: OnceLock<Arc<dyn TokenSources>>,
    pub(in crate::transports) secrets: SecretReader,
    fetches: Arc<Fetches>,
    pub(in crate::transports) clock: Clock,
    pub(in crate::transports) tasks: Tasks,
}

impl Client {
    /// A client with these limits. At most `concurrency` requests are under way at once (at least
    /// one). `rules` says how long answers may be used; a duration alone means a private cache with
    /// that default lifetime. `tasks` runs work that takes long to decode.
    ///
    /// TLS is set up when the first address needs it. Without CA certificates on the machine the
    /// client works, but it trusts no https scenario.
    pub fn new(
        limits: ClientLimits,
        concurrency: usize,
        rules: impl Into<CacheRules>,
        clock: Clock,
        tasks: Tasks,
    ) -> Arc<Self> {
        let settings = ClientSettings::new(limits, concurrency, rules.into());
        let settings = Arc::new(ArcSwap::from_pointee(settings));
        let connection_tasks = Tasks::new();
        let (closing, end) = StopTrigger::new();
        let executor = Spawner {
            tasks: connection_tasks.clone(),
            end,
        };
        let connections = Connections::new(Connector::new(Arc::clone(&settings)), executor);
        let named_connections = connections.by(Route::DirectOrProxy);
        Arc::new(Self {
            settings,
            connections,
            named_connections,
            connection_tasks,
            closing,
            own_id: OnceLock::new(),
            token_sources: OnceLock::new(),
            secrets: SecretReader::new(clock, tasks.clone()),
            fetches: Arc::default(),
            clock,
            tasks,
        })
    }

    /// Replaces the limits and rules for later requests; see [`Client::new`]. Requests under way
    /// keep the old ones, so for a moment more than `concurrency` requests may be under way.
    pub fn adjust(&self, limits: ClientLimits, concurrency: usize, rules: CacheRules) {
        let next = self.settings.load().next(limits, concurrency, rules);
        self.settings.store(Arc::new(next));
    }

    /// Sets which of the later connections take a proxy. Without it none does.
    pub fn use_proxies(&self, proxies: &ProxyRules) {
        self.settings.rcu(|settings| ClientSettings {
            proxies: proxies.clone(),
            ..ClientSettings::clone(settings)
        });
    }

    /// Which connections take a proxy.
    pub fn proxies(&self) -> ProxyRules {
        self.settings.load().proxies.clone()
    }

    /// Closes every connection and waits for their tasks. It breaks off requests under way, so call
    /// it when there are none left. No request can be sent after it.
    pub async fn close(&self) {
        self.closing.stop();
        self.connection_tasks.finish(CLOSE).await;
    }

    /// Sets the id of this daemon, by which it recognises tools that came through itself. Only the
    /// first call counts.
    pub fn identify(&self, id: &str) {
        let _ = self.own_id.set(id.into());
    }

    /// Sets where the tokens come from that change while the daemon runs. Only the first call
    /// counts, and only for targets that are reached after it.
    pub fn set_token_sources(&self, sources: Arc<dyn TokenSources>) {
        let _ = self.token_sources.set(sources);
    }

    /// The limits of every request.
    pub(in crate::transports) fn limits(&self) -> ClientLimits {
        self.settings.load().limits.clone()
    }

    /// How long an answer is used that does not say so itself.
    pub(in crate::transports) fn default_lifetime(&self) -> Duration {
        self.settings.load().rules.default_lifetime
    }

    /// The time on the clock that this client was given.
    pub(super) fn now(&self) -> Instant {
        self.clock.now()
    }

    /// How many requests were sent, and their results.
    pub fn fetches(&self) -> &Arc<Fetches> {
        &self.fetches
    }

    /// Counts a request that was sent at `begun`.
    fn count(&self, answered: &Result<HttpResponse, TransportError>, begun: Instant) {
        let (outcome, bytes) = match answered {
            Ok(answer) if answer.head.status == StatusCode::NOT_MODIFIED => ("not-modified", 0),
            Ok(answer) => ("ok", answer.body.len()),
            Err(error) => (error.kind(), 0),
        };
        self.fetches.ended(outcome, self.clock.now() - begun, bytes);
    }

    /// The upstream for a scenario's address. Fails with [`TransportError::Address`] when the
    /// address is neither http nor https.
    pub fn upstream(self: &Arc<Self>, base: Url) -> Result<Upstream, TransportError> {
        self.upstream_to(&HttpTarget::at(base))
    }

    /// The upstream for a target, with its credentials. Fails as [`Self::upstream`] does.
    pub fn upstream_to(self: &Arc<Self>, target: &HttpTarget) -> Result<Upstream, TransportError> {
        let address = Address::new(target.url.clone())?;
        let reader = self.secrets.clone();
        let credentials = Credentials::new(
            target,
            address.credentials(),
            reader,
            self.token_sources.get(),
        );
        let connections = match (target.dial, target.may_use_proxy) {
            (Some(dial), _) => self.connections.dialling(dial),
            (None, true) => Arc::clone(&self.named_connections),
            (None, false) => Arc::clone(&self.connections),
        };
        Ok(Upstream {
            client: Arc::clone(self),
            connections,
            address,
            credentials,
            call_timeout: target.call_timeout,
            max_body: None,
            turn: Arc::new(Mutex::new(())),
        })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("limits", &self.settings.load().limits)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// A document with the secrets replaced that are sent to this server.
    pub(crate) fn masked(&self, document: String) -> String {
        self.credentials.mask().document_text(document)
    }

    /// Sends a GET for `path` below the base address, conditionally when validators are given.
    /// Returns only 2xx and, to a conditional request, 304; any other status is an error. A second
    /// request through the same upstream or a clone of it waits for the first.
    ///
    /// Cancel-safe: dropping the future closes the connection and frees its place.
    pub async fn get(
        &self,
        path: &str,
        validators: Option<&HttpValidators>,
    ) -> Result<HttpResponse, TransportError> {
        self.send_get(path, validators, Take::Success).await
    }

    /// Like [`Self::get`], but returns an answer of any status, for callers that show how a request
    /// was refused.
    pub async fn get_any_status(
        &self,
        path: &str,
        validators: Option<&HttpValidators>,
    ) -> Result<HttpResponse, TransportError> {
        self.send_get(path, validators, Take::Any).await
    }

    /// Splits a response whose request was sent at `requested`, and masks the secrets in its
    /// headers that were sent there. Headers are read from here only. The server's own words for
    /// the status (the reason phrase) are dropped.
    pub(super) fn received<B>(
        &self,
        response: Response<B>,
        requested: Instant,
    ) -> (B, ResponseHead) {
        let (mut head, body) = response.into_parts();
        mask_headers(&mut head.headers, &self.credentials.mask());
        let head = ResponseHead {
            status: head.status,
            headers: head.headers,
            requested,
            received: self.client.clock.now(),
            received_at: self.client.clock.wall(),
        };
        (body, head)
    }

    async fn send_get(
        &self,
        path: &str,
        validators: Option<&HttpValidators>,
        take: Take,
    ) -> Result<HttpResponse, TransportError> {
        let address = self.address.join(path)?;
        let client = &self.client;
        let _turn = self.turn.lock().await;
        let settings = client.settings.load_full();
        // The semaphore is never closed, so the error case here cannot occur. The turn comes first:
        // a request that cannot start yet must not take another scenario's permit.
        let _permit = settings.permits.acquire().await;
        let max_body = self.max_body.map_or(settings.limits.max_body, |most| {
            most.min(settings.limits.max_body)
        });
        let limits = &ClientLimits {
            max_body,
            ..settings.limits.clone()
        };
        let headers = validators.map(conditions).unwrap_or_default();
        let begun = client.clock.now();
        let exchange = self.exchange(limits, address.clone(), headers, take);
        let timeout = |_| {
            Err(TransportError::Timeout {
                url: address.to_string(),
                limit: limits.whole,
            })
        };
        let answer = tokio::time::timeout(limits.whole, exchange)
            .await
            .unwrap_or_else(timeout);
        let answer = answer.map_err(|error| error.masked(&self.credentials.mask()));
        client.count(&answer, begun);
        answer
    }

    /// Sends the request, follows redirects within the origin, and reads the answer. The caller
    /// holds a permit and limits the time.
    async fn exchange(
        &self,
        limits: &ClientLimits,
        mut address: Address,
        headers: HeaderMap,
        take: Take,
    ) -> Result<HttpResponse, TransportError> {
        let mut may_retry = true;
        let mut followed = 0;
        let mut attempt = self.attempt(&address, true).await?;
        loop {
            let mut all = headers.clone();
            all.extend(attempt.headers().clone());
            let (body, head) = self.send(limits, &address, &all, &mut may_retry).await?;
            if attempt.is_refused(head.status, &head.headers).await? {
                continue;
            }
            match status::judge(head.status, &head.headers, is_conditional(&headers)) {
                ResponseAction::Take => {
                    return self.read(limits.max_body, &address, body, head).await;
                }
                ResponseAction::Follow(location) => {
                    let refuse = |target| TransportError::Redirect {
                        url: address.to_string(),
                        target,
                    };
                    let next = address.redirected(location).map_err(refuse)?;
                    if followed == limits.max_redirects {
                        return Err(refuse(next.to_string()));
                    }
                    followed += 1;
                    address = next;
                }
                ResponseAction::Unasked => {
                    let message = "it answered 304 to a request without conditions".to_owned();
                    return Err(TransportError::Broken {
                        url: address.to_string(),
                        message,
                    });
                }
                ResponseAction::Refuse if take == Take::Any => {
                    return self.read(limits.max_body, &address, body, head).await;
                }
                ResponseAction::Refuse => return Err(self.refusal(&address, body, head).await),
            }
        }
    }

    /// The error for an answer that is no success. The first line of its body is read where the
    /// status alone does not say what is refused.
    async fn refusal<B>(&self, address: &Address, body: B, head: ResponseHead) -> TransportError
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let bare = status::refused(address.to_string(), &head, b"");
        if !status::explains(head.status) {
            return bare;
        }
        match self.read(status::REFUSAL_BYTES, address, body, head).await {
            Ok(answer) => answer.refused(address.to_string()),
            Err(_) => bare,
        }
    }

    /// Sends one request until its head is answered. If the connection was closed before that, and
    /// `may_retry` still allows it, sends it once more on a fresh connection. The race with a
    /// server that closes a connection is not a failure of the scenario.
    async fn send(
        &self,
        limits: &ClientLimits,
        address: &Address,
        headers: &HeaderMap,
        may_retry: &mut bool,
    ) -> Result<
        (
            impl Body<Data = Bytes, Error = BoxError> + use<>,
            ResponseHead,
        ),
        TransportError,
    > {
        loop {
            let requested = self.client.clock.now();
            let request = request(Method::GET, address, headers, Bytes::new())?;
            match self.connections.poll(request).await {
                Ok(response) => return Ok(self.received(response, requested)),
                Err(error) if *may_retry && failure::closed_before_answer(&error) => {
                    let address = self.masked(address.to_string());
                    tracing::debug!(%address, "the connection was closed before an answer; the request is sent once more");
                    *may_retry = false;
                }
                Err(error) => return Err(failure::explain(address, &error, limits.connect)),
            }
        }
    }
}

/// Whether a request with these headers is conditional.
fn is_conditional(headers: &HeaderMap) -> bool {
    headers.contains_key(IF_NONE_MATCH) || headers.contains_key(IF_MODIFIED_SINCE)
}

impl Upstream {
    /// Reads the body of an answer, at most `limit` bytes, and masks the secrets in it that were
    /// sent there. Nothing decodes a body that did not come from here.
    pub(super) async fn read<B>(
        &self,
        limit: usize,
        address: &Address,
        body: B,
        head: ResponseHead,
    ) -> Result<HttpResponse, TransportError>
    where
        B: Body<Data = Bytes, Error: Into<BoxError>>,
    {
        let url = || address.to_string();
        // The accepted codings were decoded and their header removed before; any other coding was
        // not requested.
        if let Some(coding) = head
            .headers
            .get(CONTENT_ENCODING)
            .filter(|coding| *coding != "identity")
        {
            let message = format!("its content coding {coding:?} was not requested");
            return Err(TransportError::Broken {
                url: url(),
                message,
            });
        }
        let body = body::read(body, limit).await.map_err(|error| match error {
            BodyError::TooLarge => TransportError::TooLarge { url: url(), limit },
            BodyError::Broken(error) => failure::broken(address, &*error.into()),
        })?;
        let mask = self.credentials.mask();
        if mask.is_empty() {
            return Ok(HttpResponse { head, body });
        }
        let bytes = body.len();
        let masked = self
            .client
            .tasks
            .work_on_body(BodyStep::First, bytes, move || mask.body(body));
        Ok(HttpResponse {
            head,
            body: masked.await,
        })
    }
}

/// Masks secrets in all headers but those that later requests need as they are.
fn mask_headers(headers: &mut HeaderMap, mask: &Mask) {
    if mask.is_empty() {
        return;
    }
    for (name, value) in headers {
        if UNMASKED.iter().any(|unmasked| name == unmasked) {
            continue;
        }
        if let Cow::Owned(masked) = mask.document(value.as_bytes()) {
            // Visible letters replace visible ones.
            *value = HeaderValue::try_from(masked).unwrap_or(HeaderValue::from_static("***"));
        }
    }
}

/// The headers that make a request conditional (RFC 9110 section 13.1). Both are sent; a server
/// that knows `If-None-Match` ignores the other. Empty without validators.
fn conditions(validators: &HttpValidators) -> HeaderMap {
    let etag = validators
        .etag
        .iter()
        .map(|etag| (IF_NONE_MATCH, etag.clone()));
    let last_modified = validators
        .last_modified
        .iter()
        .map(|date| (IF_MODIFIED_SINCE, date.clone()));
    etag.chain(last_modified).collect()
}
