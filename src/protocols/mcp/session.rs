//! One MCP server as long as it is the same process or connection.
//!
//! The server is greeted by the first request that needs it. Over HTTP a lost session is begun
//! anew; what was requested is repeated unless a tool may have run. The end of a process, or of the
//! stream of HTTP+SSE, ends the session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use tokio::sync::{Mutex, watch};

use super::call;
use super::connection::{Carrier, McpServer};
use super::decode::{DecodedTools, decode, sent_findings, tools_list};
use super::eras::{Era, Eras};
use super::hints;
use super::lines::Noise;
use super::listing::{Pages, PagesError, pages};
use super::offers::{self, ListedOffers};
use super::over_http;
use super::patience::Patience;
use super::request::RequestError;
use super::setup::{EndsGreeting, ServerSetup};
use super::stdio;
use super::through_daemons;
use crate::lint;
use crate::model::finding::quoted_excerpt;
use crate::model::{
    Awaited, Bounds, Finding, FindingCode, ProgramCost, ProgramOutput, REPORTED_AFTER,
    RelayedOffers, StdioTarget, Target,
};
use crate::protocols::decoding::decode_manifest;
use crate::protocols::{
    Call, CallError, CallIo, EndReason, Hint, ListError, ListRequest, Listing, Outcome, Relay,
    Session, Validators, Validity,
};
use crate::transports::http::Upstream;
use crate::transports::stdio::StderrTail;
use crate::transports::{TransportError, Transports};

/// Lines of standard error that are shown of a program that does not answer.
const SHOWN_LINES: usize = 3;

/// How the server is reached.
pub(super) enum Way {
    Http(Upstream),
    Stdio(Arc<StdioTarget>),
}

/// A session with an MCP server.
pub struct McpSession {
    target: Target,
    address: Arc<str>,
    way: Way,
    transports: Transports,
    eras: Arc<Eras>,
    patience: Patience,
    /// What is configured for it.
    setup: ServerSetup,
    /// The server, once it was greeted.
    server: ArcSwapOption<McpServer>,
    /// What the latest process of a program writes to standard error.
    stderr: ArcSwapOption<StderrTail>,
    /// What it offered besides tools when that was listed last.
    offered: parking_lot::Mutex<RelayedOffers>,
    /// Held while the server is greeted.
    greeting: Mutex<()>,
    /// Why the session ended.
    ended: watch::Sender<Option<EndReason>>,
}

impl McpSession {
    pub(super) fn new(
        target: &Target,
        way: Way,
        transports: &Transports,
        eras: Arc<Eras>,
        patience: Patience,
    ) -> Self {
        Self {
            address: target.to_string().into(),
            target: target.clone(),
            way,
            transports: transports.clone(),
            eras,
            patience,
            setup: ServerSetup::new(target, transports.tasks()),
            server: ArcSwapOption::empty(),
            stderr: ArcSwapOption::empty(),
            offered: parking_lot::Mutex::default(),
            greeting: Mutex::new(()),
            ended: watch::Sender::new(None),
        }
    }

    pub(super) fn transports(&self) -> &Transports {
        &self.transports
    }

    /// The server, greeted now if it was not yet.
    pub(super) async fn server(&self) -> Result<Arc<McpServer>, ListError> {
        if let Some(server) = self.server.load_full() {
            return Ok(server);
        }
        let _greeting = self.greeting.lock().await;
        if let Some(server) = self.server.load_full() {
            return Ok(server);
        }
        let known = self.eras.known(&self.target);
        let mut greeted = self.greet(known.or(self.setup.era())).await;
        if greeted.is_err() {
            // What was remembered may be wrong.
            self.eras.forget(&self.target);
        }
        if let (Some(_), Err(ListError::NotThisProtocol(_) | ListError::Incompatible { .. })) =
            (known, &greeted)
        {
            greeted = self.greet(self.setup.era()).await;
        }
        let (server, era) = greeted?;
        self.eras.remember(&self.target, era);
        let server = Arc::new(server);
        self.watch_end(&server);
        self.server.store(Some(Arc::clone(&server)));
        Ok(server)
    }

    /// Greets the server. What is known of its era is tried first.
    async fn greet(&self, known: Option<Era>) -> Result<(McpServer, Era), ListError> {
        self.setup.greeting.begin(self.transports.clock().now());
        let _ended = EndsGreeting(&self.setup.greeting);
        match &self.way {
            Way::Http(upstream) => over_http::connect(upstream, known, &self.setup).await,
            Way::Stdio(target) => {
                stdio::connect(
                    &self.transports,
                    target,
                    &self.setup,
                    known,
                    self.patience,
                    &self.stderr,
                )
                .await
            }
        }
    }

    /// Ends the session with the connection that carries it.
    fn watch_end(&self, server: &McpServer) {
        if let Carrier::Lines(lines, _) = &server.carrier {
            let mut ended = lines.incoming().ended();
            let reason = self.ended.clone();
            self.transports.tasks().spawn(async move {
                // Fails when the connection was dropped, which is no end by itself.
                if let Ok(why) = ended.wait_for(Option::is_some).await {
                    reason.send_replace(why.clone());
                }
            });
        }
    }

    /// Forgets a greeting that the server does not know any more.
    pub(super) fn lose(&self, server: &Arc<McpServer>) {
        let now = self.server.load_full();
        if now.is_some_and(|now| Arc::ptr_eq(&now, server)) {
            self.server.store(None);
        }
    }

    /// How the server is reached, for messages.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The time in which the server has to answer what is no call of a tool.
    pub(super) fn relay_limit(&self) -> Duration {
        let configured = match &self.way {
            Way::Http(upstream) => upstream.call_timeout(),
            Way::Stdio(target) => target.call_timeout(),
        };
        configured.unwrap_or(call::TIMEOUT)
    }

    async fn pages(&self, server: &Arc<McpServer>, max_body: usize) -> Result<Pages, PagesError> {
        let limit = self.transports.poll_timeout();
        let list = tools_list(&server.info);
        let result = pages(
            server,
            list,
            limit,
            max_body,
            &self.address,
            self.transports.clock(),
        )
        .await;
        if result.is_ok() {
            server.has_listed.store(true, Ordering::Relaxed);
        }
        result
    }

    /// All pages, after greeting the server anew where that helps: its session is gone, or it
    /// claimed a revision that it does not speak.
    pub(super) async fn listed(
        &self,
        max_body: usize,
    ) -> Result<(Arc<McpServer>, Pages), ListError> {
        let server = self.server().await?;
        let failed = match self.pages(&server, max_body).await {
            Ok(pages) => return Ok((server, pages)),
            Err(error) => error,
        };
        let claims = server.revision().is_modern() && !server.has_listed.load(Ordering::Relaxed);
        match &failed {
            PagesError::Request(RequestError::SessionLost) => {}
            PagesError::Refused(..)
            | PagesError::Request(RequestError::Unanswered(TransportError::Timeout { .. }))
                if claims =>
            {
                self.eras.remember(&self.target, Era::Legacy);
            }
            _ => return Err(failed.into()),
        }
        self.lose(&server);
        let again = self.server().await.map_err(|_| ListError::from(failed))?;
        let pages = self.pages(&again, max_body).await?;
        Ok((again, pages))
    }

    /// What the server offers besides tools. The last good lists are kept for a list that fails.
    pub(super) async fn offers(
        &self,
        server: &McpServer,
        max_body: usize,
        bounds: Bounds,
    ) -> ListedOffers {
        let known = self.offered.lock().clone();
        let transports = &self.transports;
        let listed =
            offers::list(server, &known, max_body, bounds, &self.address, transports).await;
        *self.offered.lock() = listed.offers.clone();
        listed
    }

    async fn list_once(&self, request: &ListRequest) -> Result<Listing, ListError> {
        let _turn = match &self.way {
            Way::Http(upstream) => Some(upstream.poll_turn().await),
            Way::Stdio(_) => None,
        };
        let most = self.transports.max_body();
        let max_body = request.max_body.map_or(most, |own| own.min(most));
        let (
            server,
            Pages {
                results,
                lifetime,
                took,
            },
        ) = self.listed(max_body).await?;
        let info = server.info.clone();
        let revision = server.revision().as_str();
        let bounds = request.bounds;
        let wants_headers = server.wants_headers();
        let results_bytes: usize = results.iter().map(|page| page.get().len()).sum();
        let results = Arc::new(results);
        let pages = Arc::clone(&results);
        let work = move || decode(&results, &info, revision, bounds, wants_headers);
        let decoded = decode_manifest(self.transports.tasks(), results_bytes, work).await?;
        let decoded = through_daemons::follow(decoded, &server.info.via, self.transports.own_id())?;
        let DecodedTools {
            mut manifest,
            mut findings,
            quarantined,
            headers,
        } = decoded;
        let offered = self
            .offers(&server, max_body.saturating_sub(results_bytes), bounds)
            .await;
        let lifetime = offered
            .lifetime
            .map_or(lifetime, |shortest| shortest.min(lifetime));
        findings.extend(offered.findings);
        if !offered.offers.is_empty() {
            manifest.relayed = offered.offers;
            manifest.digest = manifest.content_digest();
        }
        if request.judged != Some(manifest.digest) {
            let judged = manifest.clone();
            let decoded = findings.clone();
            let judged_bytes = results_bytes + manifest.bytes_besides_tools();
            let work = move || sent_findings(&pages, &judged, lint::check_mcp, &decoded);
            manifest.sent_findings =
                decode_manifest(self.transports.tasks(), judged_bytes, work).await;
        }
        findings.extend(output_noise(&server));
        *server.headers.lock() = Arc::new(headers);
        let clock = self.transports.clock();
        let validity = Validity {
            received: clock.now(),
            received_at: clock.wall(),
            took,
            age: Duration::ZERO,
            // Most servers give no lifetime or zero; then the configured one holds.
            fresh_for: lifetime.max(self.transports.default_lifetime()),
            usable_for: None,
            may_store: true,
            modified: None,
            validators: self.stored_validators(),
        };
        Ok(Listing::Manifest {
            manifest,
            findings,
            quarantined,
            validity,
        })
    }

    /// What says after a restart of the daemon that the stored list is of the same program.
    fn stored_validators(&self) -> Validators {
        let digest = match &self.way {
            Way::Http(_) => None,
            Way::Stdio(target) => self.transports.program_digest(target),
        };
        digest.map(Validators::stored).unwrap_or_default()
    }

    fn call_limit(&self, call: &Call) -> Duration {
        let configured = match &self.way {
            Way::Http(upstream) => upstream.call_timeout(),
            Way::Stdio(target) => target.call_timeout(),
        };
        call.limit(configured.unwrap_or(call::TIMEOUT))
    }

    async fn call_once(&self, called: &Call, io: &dyn CallIo) -> Result<Outcome, CallError> {
        let limit = self.call_limit(called);
        let greeting = tokio::time::timeout(limit, self.server()).await;
        let timeout = || TransportError::Timeout {
            url: self.address.to_string(),
            limit,
        };
        let server = greeting
            .map_err(|_| CallError::Unsent(timeout()))?
            .map_err(ungreeted(&self.address))?;
        let outcome = call::call(&server, called, io, limit, &self.address).await;
        let lost = matches!(&outcome, Err(call::Failed::SessionLost));
        let stale_headers = matches!(&outcome, Ok(outcome) if call::wants_other_headers(outcome));
        if lost {
            // The server refused the session before it looked at the call.
            self.lose(&server);
        } else if stale_headers {
            let Ok(pages) = self.pages(&server, self.transports.max_body()).await else {
                return outcome.map_err(|error| error.into_call_error(&self.address));
            };
            self.keep_headers(&server, pages).await;
        } else {
            return outcome.map_err(|error| error.into_call_error(&self.address));
        }
        let server = self.server().await.map_err(ungreeted(&self.address))?;
        let outcome = call::call(&server, called, io, limit, &self.address).await;
        outcome.map_err(|error| error.into_call_error(&self.address))
    }

    /// Keeps the arguments that a list wants in headers.
    async fn keep_headers(&self, server: &McpServer, pages: Pages) {
        let bytes = pages.results.iter().map(|page| page.get().len()).sum();
        let info = server.info.clone();
        let pages = Arc::new(pages.results);
        let work = move || decode(&pages, &info, "", Bounds::NONE, true);
        if let Ok(decoded) = decode_manifest(self.transports.tasks(), bytes, work).await {
            *server.headers.lock() = Arc::new(decoded.headers);
        }
    }
}

/// The finding about lines of a program that are no messages.
pub(super) fn output_noise(server: &McpServer) -> Option<Finding> {
    let Carrier::Lines(lines, _) = &server.carrier else {
        return None;
    };
    let Noise { lines, first } = lines.incoming().noise();
    (lines > 0).then(|| {
        let message = format!(
            "{lines} lines of its output are no messages, the first is {}",
            quoted_excerpt(first.first().map_or("", String::as_str))
        );
        Finding::new(FindingCode::OutputNoise, message)
            .hint("let the program write its log to standard error")
    })
}

/// The reason why a call was not sent: the server could not be greeted.
pub(super) fn ungreeted(address: &str) -> impl FnOnce(ListError) -> CallError {
    move |error| {
        CallError::Unsent(match error {
            ListError::Transport(error) => error,
            other => TransportError::Broken {
                url: address.to_owned(),
                message: other.to_string(),
            },
        })
    }
}

impl Session for McpSession {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(self.list_once(request))
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(self.call_once(call, io))
    }

    fn relay<'a>(
        &'a self,
        request: &'a Relay,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(self.relay_once(request, io))
    }

    fn updates<'a>(
        &'a self,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<BoxStream<'static, ()>, CallError>> {
        Box::pin(self.follow(uri))
    }

    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        hints::hints(&self.server.load_full()?)
    }

    fn recent_errors(&self) -> Vec<String> {
        self.stderr
            .load_full()
            .map(|stderr| stderr.lines())
            .unwrap_or_default()
    }

    fn cost(&self) -> BoxFuture<'_, Option<ProgramCost>> {
        match &self.way {
            Way::Http(_) => Box::pin(std::future::ready(None)),
            Way::Stdio(target) => Box::pin(self.transports.program_cost(target)),
        }
    }

    fn masked(&self, text: String) -> String {
        match &self.way {
            Way::Http(upstream) => upstream.masked(text),
            // A value of its environment may be a word of its own.
            Way::Stdio(_) => text,
        }
    }

    fn awaited(&self) -> Option<Awaited> {
        let under_way = self.setup.greeting.under_way()?;
        let now = self.transports.clock().now();
        let waited = now.saturating_duration_since(under_way.since);
        let answer_to = under_way.unanswered(now);
        let output = matches!(self.way, Way::Stdio(_)).then(|| ProgramOutput {
            stdout: under_way
                .process
                .as_ref()
                .map(|process| process.incoming.noise().first)
                .unwrap_or_default(),
            stderr: self
                .stderr
                .load_full()
                .map(|stderr| stderr.last(SHOWN_LINES))
                .unwrap_or_default(),
        });
        // A process that follows a silent one had no time to write: what was reported stays.
        let is_new = |since| now.saturating_duration_since(since) < REPORTED_AFTER;
        let is_started_again = under_way
            .process
            .as_ref()
            .is_some_and(|process| is_new(process.since) && !is_new(under_way.since));
        if is_started_again
            && output
                .as_ref()
                .is_some_and(|output| *output == ProgramOutput::default())
        {
            return None;
        }
        Some(Awaited {
            answer_to,
            waited,
            output,
        })
    }

    fn ended(&self) -> Option<BoxFuture<'static, EndReason>> {
        let mut ended = self.ended.subscribe();
        Some(Box::pin(async move {
            let reason = ended
                .wait_for(Option::is_some)
                .await
                .ok()
                .and_then(|reason| reason.clone());
            match reason {
                Some(reason) => reason,
                // The session itself was dropped.
                None => std::future::pending().await,
            }
        }))
    }
}
