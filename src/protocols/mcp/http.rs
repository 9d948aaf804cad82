//! MCP over Streamable HTTP: each request is a POST, whose answer is a document or a stream of
//! events.
//!
//! A connection keeps no socket. To a legacy server it keeps the id of the session. It never
//! repeats a request and never decides which revision is spoken.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::deadline::{Deadline, UNTIMED};
use super::inputs;
use super::notes::Note;
use super::questions::{CallQuestions, Question, Questions};
use super::request::{McpRequest, Reply, RequestError, version_header};
use super::revision::McpRevision;
use super::stream_messages::StreamMessages;
use crate::model::{Interaction, JsonText};
use crate::protocols::decoding::decode_answer;
use crate::protocols::json_rpc::{self, RpcMessage};
use crate::protocols::{CallError, CallIo, InputMethod, cancelled_by_caller};
use crate::transports::TransportError;
use crate::transports::http::{
    CallLimits, EventLimits, EventStream, HttpResponse, ResponseHead, StreamedResponse, Unanswered, Upstream,
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
    /// Those calls whose callers may be meant by what the server requests on its own stream.
    questions: Questions,
    next_id: AtomicU64,
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
    pub(super) head: ResponseHead,
}

impl HttpConnection {
    pub(super) fn new(upstream: Upstream, dialect: Dialect, interaction: Arc<Interaction>) -> Self {
        Self { upstream, dialect, interaction, questions: Questions::default(), next_id: AtomicU64::new(1) }
    }

    /// The same server in the session that its answer to `initialize` began.
    pub(super) fn in_session(self, revision: McpRevision, head: &ResponseHead) -> Self {
        let id = head.headers.get(SESSION_ID).filter(|id| id.len() <= SESSION_ID_MAX).cloned();
        Self { dialect: Dialect::Session(revision, id), ..self }
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
    pub(super) async fn send(&self, request: &McpRequest, io: &dyn CallIo) -> Result<Answered, RequestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut deadline = Deadline::new(self.upstream.now(), request);
        let body = json_rpc::request(id, request.method, &request.params(self.revision(), id));
        let limits = CallLimits {
            timeout: UNTIMED,
            max_body: request.max_body,
            headers: self.request_headers(request),
            repeatable: request.is_repeatable(),
        };
        let mut questions = self.questions.register(id, request.progress);
        let posting = self.upstream.post_streamed(body, &limits);
        let answered = self.answering(posting, (&mut questions, &mut deadline), io).await.and_then(|answered| {
            answered.map_err(
                |Unanswered { error, sent }| {
                    if sent { RequestError::Unanswered(error) } else { RequestError::Unsent(error) }
                },
            )
        });
        let result = match answered {
            Ok(StreamedResponse::Document(answer)) => self.document(id, answer).await,
            Ok(StreamedResponse::Events(head, events)) => {
                let reply = self.follow(id, events, (request, deadline, &mut questions), io).await;
                reply.map(|reply| Answered { reply, head })
            }
            Err(error) => Err(error),
        };
        if matches!(result, Err(RequestError::Cancelled | RequestError::Unanswered(TransportError::Timeout { .. }))) {
            self.cancel(id).await;
        }
        result
    }

    /// Sends a message that wants no answer.
    pub(super) async fn notify(&self, message: String) -> Result<(), RequestError> {
        let limits = CallLimits { headers: self.legacy_headers(), ..self.upstream.poll_limits() };
        match self.upstream.post_streamed(message, &limits).await {
            Ok(_) => Ok(()),
            Err(Unanswered { error, .. }) => Err(RequestError::Unanswered(error)),
        }
    }

    /// Informs a legacy server that a request is not wanted any more. A modern one learns it from
    /// the closed connection.
    async fn cancel(&self, id: u64) {
        if let Dialect::Session(..) = self.dialect {
            let params = format!(r#"{{"requestId":{id},"reason":"the caller does not wait any more"}}"#);
            let _ = self.notify(json_rpc::notification("notifications/cancelled", &params)).await;
        }
    }

    /// Opens the stream on which a legacy server signals changes. `None` if it has no such stream.
    pub(super) async fn event_stream(&self, limits: EventLimits) -> Result<Option<EventStream>, TransportError> {
        self.upstream.events_with("", limits, self.legacy_headers()).await
    }

    /// Opens the stream on which a modern server signals changes.
    pub(super) async fn listen(
        &self,
        request: &McpRequest,
        events: EventLimits,
    ) -> Result<Option<EventStream>, RequestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json_rpc::request(id, request.method, &request.params(self.revision(), id));
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
        if answer.challenge().is_some_and(|challenge| challenge.wants_another()) {
            return Err(RequestError::Unanswered(answer.refused(self.upstream.to_string())));
        }
        let body = answer.body.clone();
        let parse = move || std::str::from_utf8(&body).ok().and_then(|text| json_rpc::parse(text).ok());
        let messages = decode_answer(self.upstream.tasks(), answer.body.len(), parse).await;
        let reply = messages.into_iter().flatten().find_map(|message| match message {
            // Servers that refuse a request before reading it answer without its id.
            RpcMessage::Response { id: given, result } if given.is_none_or(|given| given == id) => {
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
            Some((_, reply)) => Ok(Answered { reply, head: answer.head }),
            None if status.is_success() => {
                let error = CallError::not_this_protocol(&answer, "the answer is not JSON-RPC");
                Err(RequestError::NotRpc { status: status.as_u16(), error })
            }
            None => {
                if matches!(status.as_u16(), 401 | 403 | 429 | 500..) {
                    return Err(RequestError::Unanswered(answer.refused(self.upstream.to_string())));
                }
                let error = CallError::not_this_protocol(&answer, "the answer is not JSON-RPC");
                Err(RequestError::NotRpc { status: status.as_u16(), error })
            }
        }
    }

    /// Reads a stream until the answer comes.
    async fn follow(
        &self,
        id: u64,
        events: EventStream,
        (request, mut deadline, questions): (&McpRequest, Deadline, &mut CallQuestions<'_>),
        io: &dyn CallIo,
    ) -> Result<Reply, RequestError> {
        // Only a legacy server continues a stream.
        let session = matches!(self.dialect, Dialect::Session(..)).then(|| self.legacy_headers());
        let mut messages = StreamMessages::new((&self.upstream, session), events, id, request.max_body);
        loop {
            let next = tokio::select! {
                next = until_cancelled(messages.next(), io) => next.ok_or(RequestError::Cancelled)?,
                Question { id, method, params } = questions.next() => Ok(RpcMessage::Request { id, method, params }),
                () = deadline.passed() => return Err(deadline.exceeded(self.upstream.to_string())),
            };
            match next? {
                RpcMessage::Response { result, .. } => return Ok(result),
                RpcMessage::Notification { method, params } => {
                    let Some((about, note)) = Note::parse(&method, params.as_ref()) else { continue };
                    if about.is_some_and(|about| about != id) {
                        continue;
                    }
                    note.give(io);
                }
                RpcMessage::Request { id: request_id, method, params } => {
                    let since = self.upstream.now();
                    if let Some(reply) = self.answer((&request_id, &method, params.as_ref()), &mut messages, io).await?
                    {
                        return Ok(reply);
                    }
                    deadline.exclude(since, self.upstream.now());
                }
            }
            deadline.extend(self.upstream.now());
        }
    }

    /// Answers a request of the server, unless the reply to ours comes before.
    async fn answer(
        &self,
        (id, method, params): (&JsonText, &str, Option<&JsonText>),
        messages: &mut StreamMessages<'_>,
        io: &dyn CallIo,
    ) -> Result<Option<Reply>, RequestError> {
        if method == "ping" {
            self.notify(json_rpc::response(id, Ok("{}"))).await?;
            return Ok(None);
        }
        let answering = inputs::answer(method, params, &self.interaction, io);
        let answer = tokio::select! {
            answer = until_cancelled(answering, io) => answer.ok_or(RequestError::Cancelled)?,
            // It does not wait for the input any more.
            reply = messages.reply() => return reply.map(Some),
        };
        let answer = answer.of_request(method, &self.interaction);
        self.notify(json_rpc::response(id, answer.as_deref())).await?;
        Ok(None)
    }

    /// Waits for what was sent, and answers what the server requests on its own stream meanwhile.
    async fn answering<T>(
        &self,
        sending: impl Future<Output = T>,
        (questions, deadline): (&mut CallQuestions<'_>, &mut Deadline),
        io: &dyn CallIo,
    ) -> Result<T, RequestError> {
        let mut sending = std::pin::pin!(until_cancelled(sending, io));
        loop {
            let Question { id, method, params } = tokio::select! {
                sent = &mut sending => return sent.ok_or(RequestError::Cancelled),
                question = questions.next() => question,
                () = deadline.passed() => return Err(deadline.exceeded(self.upstream.to_string())),
            };
            let since = self.upstream.now();
            let answer = tokio::select! {
                // It does not wait for the input any more.
                sent = &mut sending => return sent.ok_or(RequestError::Cancelled),
                answer = inputs::answer(&method, params.as_ref(), &self.interaction, io) => answer,
            };
            deadline.exclude(since, self.upstream.now());
            let answer = answer.of_request(&method, &self.interaction);
            self.notify(json_rpc::response(&id, answer.as_deref())).await?;
        }
    }

    /// Takes a request of the server that came on its own stream: for the caller that it means, or
    /// else it is answered here.
    pub(super) async fn take_request(
        &self,
        id: JsonText,
        method: String,
        params: Option<JsonText>,
    ) -> Result<(), RequestError> {
        let question = Question { id, method, params };
        let given = match InputMethod::parse(&question.method) {
            Some(_) => self.questions.give(question),
            None => Err(question),
        };
        match given {
            Ok(()) => Ok(()),
            Err(Question { id, method, .. }) => self.answer_without_caller(&id, &method).await,
        }
    }

    /// Answers a request of the server that came outside of a call.
    async fn answer_without_caller(&self, id: &JsonText, method: &str) -> Result<(), RequestError> {
        let answer = match method {
            "ping" => Ok("{}".to_owned()),
            _ => inputs::answer_without_caller(method, &self.interaction).of_request(method, &self.interaction),
        };
        self.notify(json_rpc::response(id, answer.as_deref())).await
    }
}

/// Waits for the work, or for the caller to cancel it (`None`). A caller that went away does not
/// cancel.
pub(super) async fn until_cancelled<T>(work: impl Future<Output = T>, io: &dyn CallIo) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = cancelled_by_caller(io) => None,
    }
}
