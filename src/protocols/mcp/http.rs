//! MCP over Streamable HTTP: each request is a POST, whose answer is a document or a stream of
//! events.
//!
//! A connection keeps no socket. To a legacy server it keeps the id of the session. It never
//! repeats a request and never decides which revision is spoken.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, sleep_until};

use super::notes::{self, Note};
use super::request::{McpRequest, Reply, RequestError, version_header};
use super::revision::McpRevision;
use crate::protocols::json_rpc::{self, RpcMessage};
use crate::protocols::{CallError, CallIo, Cancelled};
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
    pub(super) fn new(upstream: Upstream, dialect: Dialect) -> Self {
        Self { upstream, dialect, next_id: AtomicU64::new(1) }
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
    pub(super) async fn send(&self, request: &McpRequest, io: &mut dyn CallIo) -> Result<Answered, RequestError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let began = self.upstream.now();
        let body = json_rpc::request(id, request.method, &request.params(self.revision(), id));
        let limits = CallLimits {
            timeout: request.limit,
            max_body: request.max_body,
            headers: self.headers(self.request_headers(request)),
        };
        let posting = self.upstream.post_streamed(body, &limits);
        let answered = match until_cancelled(posting, io.cancelled()).await {
            Some(answered) => {
                answered.map_err(
                    |Unanswered { error, sent }| {
                        if sent { RequestError::Unanswered(error) } else { RequestError::Unsent(error) }
                    },
                )
            }
            None => Err(RequestError::Cancelled),
        };
        let result = match answered {
            Ok(StreamedResponse::Document(answer)) => self.document(id, answer),
            Ok(StreamedResponse::Events(head, events)) => {
                let reply = self.follow(id, events, (request, began), io).await;
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
        let limits = CallLimits { headers: self.headers(self.legacy_headers()), ..self.upstream.poll_limits() };
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
            headers: self.headers(self.request_headers(request)),
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

    fn headers(&self, headers: HeaderMap) -> HeaderMap {
        let mut all = headers;
        all.extend(self.upstream.credentials());
        all
    }

    /// Reads a whole answer.
    fn document(&self, id: u64, answer: HttpResponse) -> Result<Answered, RequestError> {
        let status = answer.head.status;
        let messages =
            std::str::from_utf8(&answer.body).map_err(|_| "it is no text".to_owned()).and_then(json_rpc::parse);
        let reply = match messages {
            Ok(messages) => messages.into_iter().find_map(|message| match message {
                // Servers that refuse a request before reading it answer without its id.
                RpcMessage::Response { id: given, result } if given.is_none_or(|given| given == id) => {
                    Some((given, result))
                }
                _ => None,
            }),
            Err(_) => None,
        };
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
                let error = CallError::not_this_protocol(&answer, "the answer is no JSON-RPC");
                Err(RequestError::NotRpc { status: status.as_u16(), error })
            }
            None => {
                let (retry_after, url) = (answer.retry_after(), self.upstream.to_string());
                if matches!(status.as_u16(), 401 | 403 | 429 | 500..) {
                    let error = TransportError::Status { url, status: status.as_u16(), retry_after };
                    return Err(RequestError::Unanswered(error));
                }
                let error = CallError::not_this_protocol(&answer, "the answer is no JSON-RPC");
                Err(RequestError::NotRpc { status: status.as_u16(), error })
            }
        }
    }

    /// Reads a stream until the answer comes.
    async fn follow(
        &self,
        id: u64,
        mut events: EventStream,
        (request, began): (&McpRequest, Instant),
        io: &mut dyn CallIo,
    ) -> Result<Reply, RequestError> {
        let url = self.upstream.to_string();
        let last = began + request.longest;
        let mut deadline = (began + request.limit).min(last);
        loop {
            let next = tokio::select! {
                next = until_cancelled(events.next(), io.cancelled()) => next.ok_or(RequestError::Cancelled)?,
                () = sleep_until(deadline) => {
                    return Err(RequestError::Unanswered(TransportError::Timeout { url, limit: deadline - began }));
                }
            };
            let Some(event) = next.map_err(RequestError::Unanswered)? else {
                let message = "the stream ended before the answer".to_owned();
                return Err(RequestError::Unanswered(TransportError::Broken { url, message }));
            };
            if event.cut {
                return Err(RequestError::Unanswered(TransportError::TooLarge { url, limit: request.max_body }));
            }
            if event.event != "message" {
                continue;
            }
            // What cannot be read is no answer to this request; the stream goes on.
            for message in json_rpc::parse(&event.data).unwrap_or_default() {
                match message {
                    RpcMessage::Response { id: given, result } if given.is_none_or(|given| given == id) => {
                        return Ok(result);
                    }
                    RpcMessage::Response { .. } => {}
                    RpcMessage::Notification { method, params } => {
                        if let Some((about, note)) = Note::parse(&method, params.as_ref())
                            && about.is_none_or(|about| about == id)
                        {
                            note.give(io);
                            deadline = (self.upstream.now() + request.limit).min(last);
                        }
                    }
                    RpcMessage::Request { id: asked, method, params } => {
                        let answer = notes::answer(&method, params.as_ref(), io).await;
                        let text = json_rpc::response(&asked, answer.as_deref());
                        self.notify(text).await?;
                        // The time that a person takes is not the tool's.
                        deadline = (self.upstream.now() + request.limit).min(last);
                    }
                }
            }
        }
    }
}

/// Waits for the work, or for the caller to cancel it (`None`). A caller that went away does not
/// cancel.
pub(super) async fn until_cancelled<T>(
    work: impl Future<Output = T>,
    cancelled: BoxFuture<'static, Cancelled>,
) -> Option<T> {
    let by_caller = async {
        match cancelled.await {
            Cancelled::ByCaller => {}
            Cancelled::CallerGone => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        done = work => Some(done),
        () = by_caller => None,
    }
}
