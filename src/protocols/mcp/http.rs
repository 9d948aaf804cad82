//! MCP over Streamable HTTP: each request is a POST, whose answer is a document or a stream of
//! events.
//!
//! A connection keeps no socket. To a legacy server it keeps the id of the session. It never
//! repeats a request and never decides which revision is spoken.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use super::deadline::UNTIMED;
use super::exchange::{
    Arrived, Connection, Expected, Messages, Overdue, RequestExchange, RequestsUnderWay, withdrawal,
};
use super::inputs;
use super::request::{McpRequest, Reply, RequestError, version_header};
use super::revision::McpRevision;
use super::stream_messages::{HttpAnswer, StreamMessages, WhileWaiting};
use crate::json::rpc::{self, RpcMessage, RpcRequest};
use crate::model::Interaction;
use crate::protocols::{CallError, CallIo, InputMethod};
use crate::transports::TransportError;
use crate::transports::http::{
    CallLimits, EventLimits, EventStream, HttpResponse, ResponseHead, StreamedResponse, Unanswered,
    Upstream,
};

/// The header with the id of a legacy session.
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The longest id of a session that is kept.
const SESSION_ID_MAX: usize = 1_024;

/// A server over HTTP, in one of the two eras.
#[derive(Debug)]
pub(super) struct HttpConnection {
    upstream: Upstream,
    dialect: Dialect,
    /// The input that the server may request.
    interaction: Arc<Interaction>,
    under_way: RequestsUnderWay<()>,
}

/// How requests are written.
#[derive(Debug, Clone)]
pub(super) enum Dialect {
    /// Each request stands alone.
    Modern(McpRevision),
    /// The request that begins a session with a legacy server.
    Handshake,
    /// A session with a legacy server, with its id if the server gave one.
    Session(McpRevision, Option<HeaderValue>),
}

/// An answer, and the headers that it came with.
pub(super) struct Answered {
    pub(super) reply: Reply,
    pub(super) head: Arc<ResponseHead>,
}

impl HttpConnection {
    pub(super) fn new(upstream: Upstream, dialect: Dialect, interaction: Arc<Interaction>) -> Self {
        Self {
            upstream,
            dialect,
            interaction,
            under_way: RequestsUnderWay::new(),
        }
    }

    /// The same server in the session that its answer to `initialize` began.
    pub(super) fn in_session(self, revision: McpRevision, head: &ResponseHead) -> Self {
        let id = head
            .headers
            .get(SESSION_ID)
            .filter(|id| id.len() <= SESSION_ID_MAX)
            .cloned();
        Self {
            dialect: Dialect::Session(revision, id),
            ..self
        }
    }

    /// How the server is reached.
    pub(super) fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// The revision that is spoken; the newest one with a handshake before that is known.
    pub(super) fn revision(&self) -> McpRevision {
        match self.dialect {
            Dialect::Modern(revision) | Dialect::Session(revision, _) => revision,
            Dialect::Handshake => McpRevision::LEGACY,
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn send(
        &self,
        request: &McpRequest,
        io: &dyn CallIo,
    ) -> Result<Answered, RequestError> {
        let caller = request.progress.then(|| io.offers());
        let own = self.under_way.expect((), caller);
        let id = own.id;
        let body = rpc::request(id, request.method, &request.params(self.revision(), id));
        let limits = CallLimits {
            timeout: UNTIMED,
            max_body: request.max_body,
            headers: self.request_headers(request),
            repeatable: request.is_repeatable(),
        };
        let posting = Box::pin(self.upstream.post_streamed(body, &limits));
        // Only a legacy server continues a stream.
        let session = matches!(self.dialect, Dialect::Session(..)).then(|| self.legacy_headers());
        let stream = StreamMessages::new(&self.upstream, session, posting, id, request.max_body);
        let exchange = RequestExchange {
            connection: self,
            request,
            id,
        };
        match exchange
            .run(
                HttpMessages {
                    connection: self,
                    stream,
                    own,
                    answering: None,
                },
                io,
            )
            .await?
        {
            HttpAnswer::Document(answer) => self.document(id, answer).await,
            HttpAnswer::Streamed(head, reply) => Ok(Answered { reply, head }),
        }
    }

    /// Sends a message that wants no answer.
    pub(super) async fn notify(&self, message: String) -> Result<(), RequestError> {
        let limits = CallLimits {
            headers: self.legacy_headers(),
            ..self.upstream.poll_limits()
        };
        match self.upstream.post_streamed(message, &limits).await {
            Ok(_) => Ok(()),
            Err(Unanswered { error, .. }) => Err(RequestError::Unanswered(error)),
        }
    }

    /// Opens the stream on which a legacy server signals changes. `None` if it has no such stream.
    pub(super) async fn event_stream(
        &self,
        limits: EventLimits,
    ) -> Result<Option<EventStream>, TransportError> {
        self.upstream
            .events_with("", limits, self.legacy_headers())
            .await
    }

    /// Opens the stream on which a modern server signals changes.
    pub(super) async fn listen(
        &self,
        request: &McpRequest,
        events: EventLimits,
    ) -> Result<Option<EventStream>, RequestError> {
        let id = self.under_way.next_id();
        let body = rpc::request(id, request.method, &request.params(self.revision(), id));
        let limits = CallLimits {
            timeout: request.limit,
            max_body: request.max_body,
            headers: self.request_headers(request),
            repeatable: request.is_repeatable(),
        };
        match self.upstream.post_streamed(body, &limits).await {
            Ok(StreamedResponse::Events(_, stream)) => Ok(Some(stream.within(events))),
            Ok(StreamedResponse::Document(_)) => Ok(None),
            Err(Unanswered { error, .. }) => Err(RequestError::Unanswered(error)),
        }
    }

    fn request_headers(&self, request: &McpRequest) -> HeaderMap {
        match self.dialect {
            Dialect::Modern(revision) => request.modern_headers(revision),
            Dialect::Handshake | Dialect::Session(..) => self.legacy_headers(),
        }
    }

    /// The headers of every message in a session.
    fn legacy_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Dialect::Session(revision, id) = &self.dialect {
            headers.extend([version_header(*revision)]);
            headers.extend(id.clone().map(|id| (SESSION_ID, id)));
        }
        headers
    }

    /// Reads a whole answer.
    async fn document(&self, id: u64, answer: HttpResponse) -> Result<Answered, RequestError> {
        let status = answer.head.status;
        // What the body says of it is for people: the head says which credential is missing.
        if answer
            .challenge()
            .is_some_and(|challenge| challenge.wants_another())
        {
            return Err(RequestError::Unanswered(
                answer.refused(self.upstream.to_string()),
            ));
        }
        let body = answer.body.clone();
        let parse = move || {
            std::str::from_utf8(&body)
                .ok()
                .and_then(|text| rpc::parse(text).ok())
        };
        let messages = self
            .upstream
            .tasks()
            .work_on_body(self.upstream.decode_step(), answer.body.len(), parse)
            .await;
        let reply = messages
            .into_iter()
            .flatten()
            .find_map(|message| match message {
                // Servers that refuse a request before reading it answer without its id.
                RpcMessage::Response { id: given, result }
                    if given.is_none_or(|given| given == id) =>
                {
                    Some((given, result))
                }
                _ => None,
            });
        // Some servers answer 400 instead of 404 for a session that they do not know (any more).
        let refused_whole = reply.as_ref().is_none_or(|(given, _)| given.is_none());
        if matches!(self.dialect, Dialect::Session(_, Some(_)))
            && (status == StatusCode::NOT_FOUND || status == StatusCode::BAD_REQUEST)
            && refused_whole
        {
            return Err(RequestError::SessionLost);
        }
        match reply {
            Some((_, reply)) => Ok(Answered {
                reply,
                head: Arc::new(answer.head),
            }),
            None if status.is_success() => {
                let error = CallError::not_this_protocol(&answer, "the answer is not JSON-RPC");
                Err(RequestError::NotRpc {
                    status: status.as_u16(),
                    error,
                })
            }
            None => {
                if matches!(status.as_u16(), 401 | 403 | 429 | 500..) {
                    return Err(RequestError::Unanswered(
                        answer.refused(self.upstream.to_string()),
                    ));
                }
                let error = CallError::not_this_protocol(&answer, "the answer is not JSON-RPC");
                Err(RequestError::NotRpc {
                    status: status.as_u16(),
                    error,
                })
            }
        }
    }

    /// Takes a request of the server that came on its own stream: for the caller that it means, or
    /// else it is answered here.
    pub(super) async fn take_request(&self, request: RpcRequest) -> Result<(), RequestError> {
        let given = match InputMethod::parse(&request.method) {
            Some(_) => self.under_way.give_request(request, &self.interaction),
            None => Err(request),
        };
        match given {
            Ok(()) => Ok(()),
            Err(request) => {
                self.notify(inputs::response_without_caller(&request, &self.interaction))
                    .await
            }
        }
    }
}

impl Connection for HttpConnection {
    fn address(&self) -> String {
        self.upstream.to_string()
    }

    fn now(&self) -> Instant {
        self.upstream.now()
    }

    fn interaction(&self) -> &Interaction {
        &self.interaction
    }

    async fn respond(&self, response: String) -> Result<(), RequestError> {
        self.notify(response).await
    }

    /// Only a legacy server is informed. A modern one learns it from the closed connection.
    async fn withdraw(&self, id: u64) {
        if let Dialect::Session(..) = self.dialect {
            let _ = self.notify(withdrawal(id)).await;
        }
    }

    fn has_answered(&self, id: u64) {
        self.under_way.has_answered(id);
    }

    fn overdue(&self, id: u64) -> Overdue {
        self.under_way.overdue(id)
    }
}

/// What comes for one request: its answer, and what a legacy server requests on its own stream.
struct HttpMessages<'a> {
    connection: &'a HttpConnection,
    stream: StreamMessages<'a>,
    own: Expected<'a, ()>,
    /// Sends the answer to a request that needs no caller. It is kept, so that it is sent once and
    /// whole.
    answering: Option<BoxFuture<'a, Result<(), RequestError>>>,
}

impl HttpMessages<'_> {
    /// Waits until the answer that is being sent was sent.
    async fn until_answered(&mut self) -> Result<(), RequestError> {
        let Some(answering) = &mut self.answering else {
            return Ok(());
        };
        let sent = answering.await;
        self.answering = None;
        sent
    }
}

impl Messages for HttpMessages<'_> {
    type Answer = HttpAnswer;

    async fn next(&mut self) -> Result<Arrived<HttpAnswer>, RequestError> {
        self.until_answered().await?;
        let arrived = tokio::select! {
            arrived = self.stream.next() => arrived,
            arrived = self.own.next() => return Ok(arrived),
        };
        match &arrived {
            Ok(Arrived::Answer(_)) => self.own.is_answered(),
            Ok(Arrived::Request(_)) => self.own.is_given(),
            _ => {}
        }
        arrived
    }

    async fn answer(&mut self) -> Result<HttpAnswer, RequestError> {
        loop {
            self.until_answered().await?;
            match self.stream.while_waiting().await? {
                WhileWaiting::Answer(answer) => {
                    self.own.is_answered();
                    return Ok(answer);
                }
                WhileWaiting::Request(request) => {
                    let response =
                        inputs::response_without_caller(&request, &self.connection.interaction);
                    self.answering = Some(Box::pin(self.connection.notify(response)));
                }
            }
        }
    }
}
