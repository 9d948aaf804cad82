//! The messages over HTTP for one request: its answer is a document, or a stream of messages of
//! which the last one is the answer.
//!
//! A legacy server may end the stream before the answer; it is opened again where it ended, after
//! the time that the server named. Answers to other requests are skipped. While the caller gives
//! input, some messages are kept for later: of notes the first ones, and of requests those that
//! wait for the caller. This module answers no request.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, sleep_until};

use super::deadline::UNTIMED;
use super::exchange::{Arrived, NOTES_MAX, REQUESTS_MAX};
use super::notes::Note;
use super::request::{Reply, RequestError};
use crate::json::rpc::{self, RpcMessage, RpcRequest};
use crate::protocols::InputMethod;
use crate::transports::TransportError;
use crate::transports::http::{
    EventLimits, EventStream, HttpResponse, ResponseHead, ResumePoint, ServerEvent,
    StreamedResponse, Unanswered, Upstream,
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What one POST comes to.
pub(super) type Posted = Result<StreamedResponse, Unanswered>;

/// The answer to one request.
pub(super) enum HttpAnswer {
    /// A whole answer, which has not been read.
    Document(HttpResponse),
    /// The reply that came on a stream with this head.
    Streamed(Arc<ResponseHead>, Reply),
}

/// What comes while the caller gives input.
pub(super) enum WhileWaiting {
    /// The answer.
    Answer(HttpAnswer),
    /// A request that has to be answered without the caller.
    Request(RpcRequest),
}

/// The messages that come for one request, on the stream that answers it or as the whole answer.
pub(super) struct StreamMessages<'a> {
    upstream: &'a Upstream,
    /// The headers of the session, if its server may continue a stream.
    session: Option<HeaderMap>,
    begin: AnswerBegin<'a>,
    events: Option<EventStream>,
    /// Where the stream ended that has to be opened again, and when that may be.
    ended: Option<(ResumePoint, Instant)>,
    read: VecDeque<RpcMessage>,
    /// The messages of the event that is being read. It is kept, so that none is lost.
    reading: Option<BoxFuture<'static, Vec<RpcMessage>>>,
    /// The id of the request.
    id: u64,
    max_body: usize,
}

/// How far the answer is.
enum AnswerBegin<'a> {
    /// The request is sent.
    Posting(BoxFuture<'a, Posted>),
    /// The answer is a stream with this head.
    Streaming(Arc<ResponseHead>),
}

/// How the answer began.
enum BegunAnswer {
    Document(HttpResponse),
    Stream(Arc<ResponseHead>),
}

impl<'a> StreamMessages<'a> {
    /// Those for the request with this id, which is posted. With the headers of a session, a stream
    /// that ended early is opened again.
    pub(super) fn new(
        upstream: &'a Upstream,
        session: Option<HeaderMap>,
        posting: BoxFuture<'a, Posted>,
        id: u64,
        max_body: usize,
    ) -> Self {
        let begin = AnswerBegin::Posting(posting);
        Self {
            upstream,
            session,
            begin,
            events: None,
            ended: None,
            read: VecDeque::new(),
            reading: None,
            id,
            max_body,
        }
    }

    /// The next one. The error says why none comes any more. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Arrived<HttpAnswer>, RequestError> {
        let head = match self.begun().await? {
            BegunAnswer::Document(answer) => {
                return Ok(Arrived::Answer(HttpAnswer::Document(answer)));
            }
            BegunAnswer::Stream(head) => head,
        };
        loop {
            match self.read.pop_front() {
                Some(RpcMessage::Response { result, .. }) => {
                    return Ok(Arrived::Answer(HttpAnswer::Streamed(head, result)));
                }
                Some(RpcMessage::Notification { method, params }) => {
                    let note = Note::parse(&method, params.as_ref());
                    if let Some((about, note)) = note
                        && about.is_none_or(|about| about == self.id)
                    {
                        return Ok(Arrived::Note(note));
                    }
                }
                Some(RpcMessage::Request(request)) => return Ok(Arrived::Request(request)),
                None => self.read().await?,
            }
        }
    }

    /// Waits for the answer, and keeps other messages for later: so many notes, and so many
    /// requests that need the caller. Cancel-safe.
    pub(super) async fn while_waiting(&mut self) -> Result<WhileWaiting, RequestError> {
        let head = match self.begun().await? {
            BegunAnswer::Document(answer) => {
                return Ok(WhileWaiting::Answer(HttpAnswer::Document(answer)));
            }
            BegunAnswer::Stream(head) => head,
        };
        loop {
            for message in &self.read {
                if let RpcMessage::Response { result, .. } = message {
                    return Ok(WhileWaiting::Answer(HttpAnswer::Streamed(
                        head,
                        result.clone(),
                    )));
                }
            }
            if let Some(request) = self.take_surplus_request() {
                return Ok(WhileWaiting::Request(request));
            }
            self.drop_surplus_notes();
            self.read().await?;
        }
    }

    /// Takes the first request that no caller answers, or that too many others wait before.
    fn take_surplus_request(&mut self) -> Option<RpcRequest> {
        let mut waiting = 0;
        let is_surplus = |message: &RpcMessage| match message {
            RpcMessage::Request(request) => {
                let needs_caller = InputMethod::parse(&request.method).is_some();
                waiting += usize::from(needs_caller);
                !needs_caller || waiting > REQUESTS_MAX
            }
            _ => false,
        };
        let index = self.read.iter().position(is_surplus)?;
        match self.read.remove(index) {
            Some(RpcMessage::Request(request)) => Some(request),
            _ => None,
        }
    }

    /// Drops the notes beyond those that wait for a caller.
    fn drop_surplus_notes(&mut self) {
        let mut notes = 0;
        self.read.retain(|message| {
            notes += usize::from(matches!(message, RpcMessage::Notification { .. }));
            notes <= NOTES_MAX || !matches!(message, RpcMessage::Notification { .. })
        });
    }

    /// How the answer begins, once it does. After a document or an error none comes any more.
    async fn begun(&mut self) -> Result<BegunAnswer, RequestError> {
        let posting = match &mut self.begin {
            AnswerBegin::Streaming(head) => return Ok(BegunAnswer::Stream(Arc::clone(head))),
            AnswerBegin::Posting(posting) => posting,
        };
        match posting.await {
            Ok(StreamedResponse::Document(answer)) => Ok(BegunAnswer::Document(answer)),
            Ok(StreamedResponse::Events(head, events)) => {
                let head = Arc::new(head);
                self.begin = AnswerBegin::Streaming(Arc::clone(&head));
                self.events = Some(events);
                Ok(BegunAnswer::Stream(head))
            }
            Err(Unanswered { error, sent: true }) => Err(RequestError::Unanswered(error)),
            Err(Unanswered { error, sent: false }) => Err(RequestError::Unsent(error)),
        }
    }

    /// The next event, of the stream or of the one that continues it. Cancel-safe.
    async fn event(&mut self) -> Result<ServerEvent, RequestError> {
        loop {
            if let Some(events) = &mut self.events {
                if let Some(event) = events.next().await.map_err(RequestError::Unanswered)? {
                    return Ok(event);
                }
                let point = events
                    .resume_point()
                    .or_else(|| self.ended.take().map(|(point, _)| point));
                let now = self.upstream.now();
                self.ended = point.map(|point| (point.clone(), now + point.after));
                self.events = None;
            }
            let again = match &self.ended {
                Some((point, at)) => {
                    let id = point.id.clone();
                    sleep_until(*at).await;
                    self.resume(&id).await?
                }
                None => None,
            };
            let message = "the stream ended before the answer".to_owned();
            let broken = || {
                RequestError::Unanswered(TransportError::Broken {
                    url: self.upstream.to_string(),
                    message,
                })
            };
            self.events = Some(again.ok_or_else(broken)?);
        }
    }

    /// Opens the stream again after this event. `None` if it cannot be continued.
    async fn resume(&mut self, id: &str) -> Result<Option<EventStream>, RequestError> {
        let (Some(session), Ok(id)) = (&self.session, HeaderValue::from_str(id)) else {
            return Ok(None);
        };
        let mut headers = session.clone();
        headers.insert(LAST_EVENT_ID, id);
        let per_minute = self.max_body.saturating_mul(4);
        let limits = EventLimits {
            max_event: self.max_body,
            silence: UNTIMED,
            per_minute,
        };
        self.upstream
            .events_with("", limits, headers)
            .await
            .map_err(RequestError::Unanswered)
    }

    /// Reads one event. Cancel-safe.
    async fn read(&mut self) -> Result<(), RequestError> {
        if self.reading.is_none() {
            self.reading = self.next_reading().await?;
        }
        if let Some(reading) = &mut self.reading {
            let messages = reading.await;
            self.reading = None;
            let id = self.id;
            self.read
                .extend(messages.into_iter().filter(|message| match message {
                    RpcMessage::Response { id: given, .. } => given.is_none_or(|given| given == id),
                    _ => true,
                }));
        }
        Ok(())
    }

    /// The messages of the next event, which may have none. Cancel-safe.
    async fn next_reading(
        &mut self,
    ) -> Result<Option<BoxFuture<'static, Vec<RpcMessage>>>, RequestError> {
        let event = self.event().await?;
        if event.cut {
            let url = self.upstream.to_string();
            let limit = self.max_body;
            return Err(RequestError::Unanswered(TransportError::TooLarge {
                url,
                limit,
            }));
        }
        if event.event != "message" {
            return Ok(None);
        }
        let tasks = self.upstream.tasks().clone();
        let step = self.upstream.decode_step();
        let reading = async move {
            let bytes = event.data.len();
            // What cannot be read is no answer to this request; the stream goes on.
            let read = move || rpc::parse(&event.data).unwrap_or_default();
            tasks.work_on_body(step, bytes, read).await
        };
        Ok(Some(Box::pin(reading)))
    }
}
