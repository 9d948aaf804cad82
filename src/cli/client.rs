//! The client of a running daemon: all requests that commands send to one go through it.
//!
//! ```text
//! --url, CALLSHEET_URL, record of a daemon, configuration --location--> address
//!  request -> socket (if it answers; operators' own connections) or TCP -> daemon
//!  answer  -> refusal (commands instead of routes) or DaemonAnswer; lists through answer_cache
//! ```
//!
//! What is kept true here:
//!
//! - What a command wants is sent once. Before, a request that is only read finds out whether the
//!   Unix socket answers.
//! - The operator's token goes to programs of trusted users only. An address that is named on
//!   purpose is used as it is (`token.rs`).
//! - A kept answer is used only if the daemon says that it still stands.
//! - An answer has at most [`MAX_ANSWER`] bytes.
//! - The daemon's refusals name commands and flags in place of requests and parameters.
//!
//! Read in this order: this file ([`DaemonClient`]), `location.rs`, `socket.rs`, `token.rs`,
//! `answer_cache.rs`, `refusal.rs` with `commands.rs`, `requests.rs`; then single kinds of requests:
//! `turns.rs`, `archives.rs`, `configuration.rs`, `event_stream.rs`, `mcp_messages.rs`.
//!
//! Never prints an answer and never decides what a command shows.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use serde_json::Value;
use url::Url;

use super::instance::{self, DaemonFiles, DaemonRecord};
use super::{CommandError, RemoteArgs};
use crate::config::{self, LoadOptions};

mod answer_cache;
mod archives;
mod commands;
mod configuration;
mod event_stream;
mod location;
mod mcp_messages;
mod refusal;
mod requests;
mod socket;
mod token;
mod turns;

use answer_cache::AnswerCache;
pub(super) use commands::{as_commands, word as shell_word};
pub(super) use event_stream::DaemonEventStream;
use location::{DaemonAddress, LocatedDaemon, located};
pub(super) use location::{address_of, parse_url};
pub(super) use mcp_messages::{McpAnswer, McpScope, SESSION_ID};
use refusal::refused;
pub(super) use requests::{NotListed, tool_segments};
use socket::SocketWay;
use token::{OperatorToken, TokenRecipients};

/// A refresh waits for scenarios, whose own limit is shorter than this by default.
const TIMEOUT: Duration = Duration::from_secs(120);
/// A daemon that is there is connected to at once, also over a slow network.
const CONNECT: Duration = Duration::from_secs(5);
/// A year.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);
/// How soon a silent connection whose other side has vanished is detected.
const PROBE: Duration = Duration::from_secs(30);
/// Bytes of an answer; a list of 100,000 tools has about 150 MB.
const MAX_ANSWER: usize = 1 << 30;

/// A client of one daemon.
#[derive(Debug)]
pub(super) struct DaemonClient {
    base: Url,
    /// Whether the arguments or the environment name the address.
    is_named: bool,
    /// Whether it has recorded itself for this user, or in the state of this configuration.
    is_recorded: bool,
    /// By its address, for what may take as long as the daemon allows.
    http: reqwest::Client,
    /// By its Unix socket, for all else: it has a few connections of its own, for operators.
    by_socket: Option<SocketWay>,
    /// The bearer token, sent with an operator's requests.
    token: Option<OperatorToken>,
    cache: AnswerCache,
    /// Set until the daemon said whether it can use the configuration that this process cannot read
    /// as a whole.
    is_in_doubt: AtomicBool,
}

/// The query of a request, in order.
pub(super) type QueryPairs<'a> = Vec<(&'a str, String)>;

/// A daemon's answer, with what the headers of a list say.
#[derive(Debug)]
pub(super) struct DaemonAnswer {
    /// As it came.
    pub(super) body: Vec<u8>,
    /// Its content.
    pub(super) value: Value,
    /// How many tools of a list did not fit.
    pub(super) left_out: usize,
    /// What a list hands out for the next turn of a conversation.
    pub(super) selection: Option<String>,
    /// What a list says of how its tools were chosen.
    pub(super) notes: Option<String>,
}

impl DaemonAnswer {
    /// An answer that is no list.
    fn new(body: Vec<u8>, value: Value) -> Self {
        Self {
            body,
            value,
            left_out: 0,
            selection: None,
            notes: None,
        }
    }
}

impl DaemonClient {
    /// The daemon that the arguments, the environment or the configuration name.
    pub(super) fn from_args(remote: &RemoteArgs) -> Result<Self, CommandError> {
        Self::from_args_in(remote, LoadOptions::from_process())
    }

    fn from_args_in(remote: &RemoteArgs, options: LoadOptions) -> Result<Self, CommandError> {
        let cache = AnswerCache::in_folder(options.cache_folder());
        if let Some(url) = remote.address() {
            return Ok(Self {
                cache,
                is_named: true,
                ..Self::at(remote.parsed(&url)?)?
            });
        }
        let LocatedDaemon {
            address,
            is_in_doubt,
        } = located(remote, options)?;
        let daemon = match address {
            DaemonAddress::Recorded(record) => Self::recorded(record)?,
            DaemonAddress::Configured(url) => Self::at(url)?,
        };
        Ok(Self {
            cache,
            is_in_doubt: is_in_doubt.into(),
            ..daemon
        })
    }

    /// The same for what an operator does: the token that this may need is that of the
    /// configuration, as the daemon's is. A daemon that is named by its address needs no
    /// configuration here.
    pub(super) fn for_operator(remote: &RemoteArgs) -> Result<Self, CommandError> {
        Self::for_operator_in(remote, LoadOptions::from_process())
    }

    /// The same with other options than those of this process.
    pub(super) fn for_operator_in(
        remote: &RemoteArgs,
        mut options: LoadOptions,
    ) -> Result<Self, CommandError> {
        let daemon = Self::from_args_in(remote, options.clone())?;
        options.file.clone_from(&remote.config);
        let (loaded, _) = config::load_usable(&options);
        let recipients = match remote.address() {
            Some(_) => TokenRecipients::AtNamedAddress,
            None => TokenRecipients::OfDaemon(DaemonFiles::new(&options, &loaded.config.state)),
        };
        let secret = loaded.config.operator_token().cloned();
        Ok(Self {
            token: secret.map(|secret| OperatorToken { secret, recipients }),
            ..daemon
        })
    }

    /// Whether it is only known that some program listens at the address of the configuration: it
    /// may belong to another user.
    pub(super) fn may_be_of_others(&self) -> bool {
        !self.is_named && !self.is_recorded
    }

    /// The address of a page for people.
    pub(super) fn page(&self, path: &str) -> String {
        format!("{}/{path}", self.address_text().trim_end_matches('/'))
    }

    /// The daemon at this address.
    pub(super) fn at(base: Url) -> Result<Self, CommandError> {
        crate::transports::http::tls::choose_tls();
        Ok(Self {
            base,
            is_named: false,
            is_recorded: false,
            http: built(builder())?,
            by_socket: None,
            token: None,
            cache: AnswerCache::default(),
            is_in_doubt: AtomicBool::new(false),
        })
    }

    /// The daemon that is where it has recorded to be.
    pub(super) fn recorded(record: DaemonRecord) -> Result<Self, CommandError> {
        let daemon = Self {
            is_recorded: true,
            ..Self::at(parse_url(&record.url)?)?
        };
        match record.socket.filter(|socket| instance::serves(socket)) {
            Some(socket) => Ok(Self {
                by_socket: Some(SocketWay::if_it_answers(client_of_socket(&socket)?)),
                ..daemon
            }),
            None => Ok(daemon),
        }
    }

    /// The same daemon by this Unix socket, whether or not it answers.
    pub(super) fn with_socket(self, socket: &Path) -> Result<Self, CommandError> {
        Ok(Self {
            by_socket: Some(SocketWay::always(client_of_socket(socket)?)),
            ..self
        })
    }

    /// The same daemon by its address only, for a client that stays: the socket is for operators.
    pub(super) fn by_address(self) -> Self {
        Self {
            by_socket: None,
            ..self
        }
    }

    /// The way for a request that is answered soon.
    async fn soon(&self) -> &reqwest::Client {
        self.socket_http().await.unwrap_or(&self.http)
    }

    /// The way by the socket, if there is one and the daemon answers there.
    async fn socket_http(&self) -> Option<&reqwest::Client> {
        self.by_socket
            .as_ref()?
            .http(&self.below(&["healthz"]))
            .await
    }

    /// An operator's request that is answered soon, with the token. The file of the socket was
    /// judged when the daemon was found.
    async fn request_with_token(
        &self,
        method: http::Method,
        url: Url,
    ) -> Result<reqwest::RequestBuilder, CommandError> {
        match (self.socket_http().await, &self.token) {
            (Some(http), Some(token)) => {
                Ok(http.request(method, url).bearer_auth(token.secret.expose()))
            }
            (Some(http), None) => Ok(http.request(method, url)),
            (None, _) => self.add_token_for_address(self.http.request(method, url)),
        }
    }

    /// Adds the token, if there is one, to a request that goes to the address. Fails if it may not
    /// be sent there.
    fn add_token_for_address(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<reqwest::RequestBuilder, CommandError> {
        let Some(token) = &self.token else {
            return Ok(request);
        };
        token.check_address(&self.base, self.socket_address())?;
        Ok(request.bearer_auth(token.secret.expose()))
    }

    /// Fetches a JSON object that has `member`.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: QueryPairs<'_>,
        member: &str,
    ) -> Result<DaemonAnswer, CommandError> {
        self.send(http::Method::GET, path, query, None, member)
            .await
    }

    /// Sends a request that changes state; the answer is a JSON object that has `member`.
    pub(super) async fn send(
        &self,
        method: http::Method,
        path: &[&str],
        query: QueryPairs<'_>,
        body: Option<&Value>,
        member: &str,
    ) -> Result<DaemonAnswer, CommandError> {
        let (_, body) = self.exchange(method, path, query, body).await?;
        let value = self.parse_json(&body)?;
        if value.get(member).is_none() {
            return Err(self.unexpected_answer(&format!("its answer has no `{member}`")));
        }
        Ok(DaemonAnswer::new(body, value))
    }

    /// Sends a JSON body and waits for the answer for as long as the daemon allows.
    async fn post_patiently(&self, url: Url, body: String) -> Result<Vec<u8>, CommandError> {
        let request = self
            .http
            .post(url)
            .timeout(FOREVER)
            .header(CONTENT_TYPE, "application/json");
        let response = request
            .body(body)
            .send()
            .await
            .map_err(|error| self.unanswered(&error))?;
        Ok(self.receive(response).await?.1)
    }

    /// Reads JSON that it wrote.
    pub(super) fn parse_json(&self, body: &[u8]) -> Result<Value, CommandError> {
        serde_json::from_slice(body)
            .map_err(|error| self.unexpected_answer(&format!("its answer is not JSON: {error}")))
    }

    async fn exchange(
        &self,
        method: http::Method,
        path: &[&str],
        query: QueryPairs<'_>,
        body: Option<&Value>,
    ) -> Result<(http::HeaderMap, Vec<u8>), CommandError> {
        self.exchange_at(method, self.address(path)?, query, body)
            .await
    }

    async fn exchange_at(
        &self,
        method: http::Method,
        mut url: Url,
        query: QueryPairs<'_>,
        body: Option<&Value>,
    ) -> Result<(http::HeaderMap, Vec<u8>), CommandError> {
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let mut request = self.request_with_token(method, url).await?;
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        self.receive(response).await
    }

    /// Fetches what has an entity tag. If it was kept and still stands, only that is sent.
    async fn get_kept(
        &self,
        path: &[&str],
        query: QueryPairs<'_>,
    ) -> Result<(http::HeaderMap, Vec<u8>), CommandError> {
        let mut url = self.address(path)?;
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let kept = self.cache.read(&url);
        let mut request = self.soon().await.get(url.clone());
        if let Some(kept) = &kept {
            request = request.header(IF_NONE_MATCH, kept.etag.clone());
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        if let Some(kept) = kept.filter(|_| response.status() == http::StatusCode::NOT_MODIFIED) {
            self.settle_doubt().await;
            return Ok((kept.headers, kept.body));
        }
        let (headers, body) = self.receive(response).await?;
        self.cache.keep(&url, &headers, &body);
        Ok((headers, body))
    }

    /// Reads a whole answer.
    async fn receive(
        &self,
        mut response: reqwest::Response,
    ) -> Result<(http::HeaderMap, Vec<u8>), CommandError> {
        self.settle_doubt().await;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut bytes = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| self.unreachable(&error))?
        {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_ANSWER {
                return Err(self.unexpected_answer("its answer is larger than 1 GiB"));
            }
        }
        if status.is_success() {
            return Ok((headers, bytes));
        }
        match headers.get(CONTENT_TYPE) {
            Some(kind) if kind == "application/problem+json" => Err(refused(status, &bytes)),
            _ => Err(self.unexpected_answer(&format!("it answered {status}"))),
        }
    }

    /// Follows the daemon's events from behind `last` on, the id of the last one that is known.
    pub(super) async fn follow(
        &self,
        query: &QueryPairs<'_>,
        last: Option<&str>,
    ) -> Result<DaemonEventStream, CommandError> {
        let mut url = self.address(&["events"])?;
        url.query_pairs_mut().extend_pairs(query);
        // The stream lasts until one side closes it.
        let mut request = self.http.get(url).timeout(FOREVER);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(&error))?;
        let kind = response.headers().get(CONTENT_TYPE);
        if response.status().is_success() && kind.is_some_and(|kind| kind == "text/event-stream") {
            self.settle_doubt().await;
            return Ok(DaemonEventStream::new(response));
        }
        self.receive(response).await?;
        Err(self.unexpected_answer("it has no events"))
    }

    /// The address of a route of the API.
    fn address(&self, path: &[&str]) -> Result<Url, CommandError> {
        self.address_below(&["api", "v1"], path)
    }

    /// The address of a route. Refuses names that as a part of a path would mean another route.
    fn address_below(&self, root: &[&str], path: &[&str]) -> Result<Url, CommandError> {
        if let Some(name) = path.iter().find(|part| matches!(**part, "" | "." | "..")) {
            let hint = "`callsheet scenarios` and `callsheet tools --all` list the names there are"
                .to_owned();
            return Err(CommandError::Usage {
                message: format!("`{name}` cannot be the name of a scenario or tool"),
                hint,
            });
        }
        Ok(self.below(&[root, path].concat()))
    }

    fn below(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    /// Its address.
    pub(super) fn address_text(&self) -> &str {
        self.base.as_str().trim_end_matches('/')
    }

    fn unreachable(&self, error: &reqwest::Error) -> CommandError {
        if error.is_timeout() && !error.is_connect() {
            // It has taken the request, so it runs.
            return CommandError::Refused {
                message: format!(
                    "the daemon at {} gave no answer within {} s",
                    self.address_text(),
                    TIMEOUT.as_secs()
                ),
                hint: Some(
                    "it may still be at work; `callsheet doctor` shows what it waits for"
                        .to_owned(),
                ),
            };
        }
        let cause = anyhow::Chain::new(error)
            .last()
            .map(ToString::to_string)
            .unwrap_or_default();
        CommandError::Unreachable {
            message: format!("no daemon answers at {}: {cause}", self.address_text()),
            hint: location::without_daemon(self.is_named),
        }
    }

    /// Why a call has no answer. One that reached the daemon may have run, so a script must not
    /// take it for one that was never sent.
    fn unanswered(&self, error: &reqwest::Error) -> CommandError {
        if error.is_connect() {
            return self.unreachable(error);
        }
        let cause = anyhow::Chain::new(error)
            .last()
            .map(ToString::to_string)
            .unwrap_or_default();
        CommandError::Refused {
            message: format!(
                "{} ended before it answered, and the call may have run: {cause}",
                self.address_text()
            ),
            hint: Some("look at what the tool has changed before you call it again".to_owned()),
        }
    }

    fn unexpected_answer(&self, what: &str) -> CommandError {
        CommandError::Unreachable {
            message: format!("{} is not a callsheet daemon: {what}", self.address_text()),
            hint: "name the daemon's address with `--url` or `CALLSHEET_URL`".into(),
        }
    }
}

/// What all clients of a daemon have in common.
fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        // The environment's proxy for the web does not lead to a daemon on this machine.
        .no_proxy()
        .user_agent(concat!("callsheet/", env!("CARGO_PKG_VERSION")))
        // A daemon never redirects; what does is something else.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .timeout(TIMEOUT)
        .tcp_keepalive(PROBE)
}

/// The client of a daemon that listens on this Unix socket.
#[cfg(unix)]
fn client_of_socket(socket: &Path) -> Result<reqwest::Client, CommandError> {
    built(builder().unix_socket(socket))
}

/// There are no such sockets, so no daemon names one.
#[cfg(not(unix))]
fn client_of_socket(_socket: &Path) -> Result<reqwest::Client, CommandError> {
    built(builder())
}

fn built(builder: reqwest::ClientBuilder) -> Result<reqwest::Client, CommandError> {
    let built = builder.build();
    Ok(built
        .map_err(|error| anyhow::Error::new(error).context("the HTTP client cannot be built"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_request_that_takes_too_long_does_not_say_that_no_daemon_runs() {
        // Connections are taken by the system, and no program reads them.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = parse_url(&silent.local_addr().unwrap().to_string()).unwrap();
        let usual = DaemonClient::at(url).unwrap();
        let http = built(builder().timeout(Duration::from_millis(50))).unwrap();
        let daemon = DaemonClient { http, ..usual };
        let error = daemon
            .get(&["scenarios"], QueryPairs::new(), "scenarios")
            .await
            .unwrap_err();
        assert_eq!(error.number(), 1);
        assert!(
            matches!(&error, CommandError::Refused { message, .. } if message.contains("gave no answer within"))
        );
    }
}
