//! Requests over a connection that carries messages both ways: a child process, or the stream of
//! the transport HTTP+SSE.
//!
//! Answers are matched with requests by id. A message that belongs to no request under way is
//! dropped, except for changes of the list and requests of the server. This module never starts a
//! process or opens a stream.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use super::exchange::{
    Arrived, Connection, Expected, Messages, Overdue, RequestExchange, RequestsUnderWay, withdrawal,
};
use super::inputs;
use super::notes::Note;
use super::request::{McpRequest, Reply, RequestError};
use super::revision::McpRevision;
use super::server::is_change;
use super::update_signals::{UPDATED, UpdateSignals};
use crate::json::rpc::{self, RpcError, RpcMessage};
use crate::model::finding::quoted_excerpt;
use crate::model::{Interaction, JsonText, ProgramEnd};
use crate::protocols::{CallIo, EndReason, InputMethod};
use crate::runtime::Clock;
use crate::transports::TransportError;
use crate::transports::stdio::ProgramMasks;

/// How long the reason of an end is waited for after a message could not be sent.
const END_KNOWN: Duration = Duration::from_secs(1);

/// The way of a message to the server.
pub(super) trait Outgoing: Send + Sync {
    /// Sends one message.
    fn send<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<(), TransportError>>;

    /// The error for a request after the connection ended.
    fn ended(&self, address: &str, reason: &EndReason) -> TransportError {
        TransportError::Broken {
            url: address.to_owned(),
            message: reason.to_string(),
        }
    }
}

/// A connection that carries messages both ways.
pub(super) struct Lines {
    address: String,
    outgoing: Box<dyn Outgoing>,
    incoming: Arc<Incoming>,
    clock: Clock,
}

/// What came from the server. Shared with the task that reads.
pub(super) struct Incoming {
    under_way: RequestsUnderWay<ReplySender>,
    /// How often the server said that its list changed.
    changes: watch::Sender<u64>,
    updates: UpdateSignals,
    /// Why the connection ended.
    ended: watch::Sender<Option<EndReason>>,
    noise: Mutex<Noise>,
    /// The input that it may request.
    interaction: Arc<Interaction>,
    /// What is masked in what a program says; of a server, that is masked before.
    masks: ProgramMasks,
}

/// Lines that were no messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Noise {
    pub(super) lines: u64,
    /// The beginnings of the first ones.
    pub(super) first: Vec<String>,
}

/// Lines that are no messages whose beginnings are kept.
const NOISE_LINES: usize = 3;
/// The most characters of a line that is no message that are kept.
const NOISE: usize = 120;

/// Takes the answer to one request.
type ReplySender = oneshot::Sender<Result<Reply, TransportError>>;

impl Incoming {
    pub(super) fn new(interaction: &Arc<Interaction>, masks: ProgramMasks) -> Arc<Self> {
        Arc::new(Self {
            under_way: RequestsUnderWay::new(),
            changes: watch::Sender::new(0),
            updates: UpdateSignals::default(),
            ended: watch::Sender::new(None),
            noise: Mutex::default(),
            interaction: Arc::clone(interaction),
            masks,
        })
    }

    /// Handles one message of the server. Returns what has to be answered at once. The error says
    /// why it is no message.
    pub(super) fn receive(&self, text: &str) -> Result<Vec<String>, String> {
        let mut answers = Vec::new();
        for message in rpc::parse(text)? {
            answers.extend(self.take(message));
        }
        Ok(answers)
    }

    fn take(&self, message: RpcMessage) -> Option<String> {
        match message {
            RpcMessage::Response { id, result } => {
                let reply = self.under_way.take(id)?;
                let _ = reply.send(Ok(result.map_err(|error| self.masked(error))));
                None
            }
            RpcMessage::Notification { method, params } => {
                if is_change(&method) {
                    self.changes.send_modify(|count| *count += 1);
                } else if method == UPDATED {
                    self.updates.take(params.as_ref());
                } else if let Some((about, note)) = Note::parse(&method, params.as_ref()) {
                    self.under_way.give_note(about, note);
                }
                None
            }
            RpcMessage::Request(request) => {
                let given = match InputMethod::parse(&request.method) {
                    Some(_) => self.under_way.give_request(request, &self.interaction),
                    None => Err(request),
                };
                given
                    .err()
                    .map(|request| inputs::response_without_caller(&request, &self.interaction))
            }
        }
    }

    /// An error without what is masked.
    fn masked(&self, error: RpcError) -> RpcError {
        let mask = &self.masks.errors;
        let data = error
            .data
            .map(|data| match mask.document(data.get().as_bytes()) {
                Cow::Borrowed(_) => data,
                Cow::Owned(masked) => {
                    JsonText::known(String::from_utf8_lossy(&masked).into_owned())
                }
            });
        RpcError {
            message: mask.text(error.message),
            data,
            code: error.code,
        }
    }

    /// Records that the connection ended: no answer comes any more.
    pub(super) fn end(&self, reason: EndReason) {
        let reason = self.with_first_line(reason);
        self.ended.send_replace(Some(reason));
        self.under_way.take_all();
    }

    /// The reason of an end. A program that wrote no line on standard error may have written on
    /// standard output why it ended.
    fn with_first_line(&self, reason: EndReason) -> EndReason {
        let is_silent = |end: &Arc<ProgramEnd>| end.stderr.is_empty();
        let first = self.noise().first.into_iter().next();
        match first.filter(|_| reason.program.as_ref().is_some_and(is_silent)) {
            Some(first) => EndReason {
                text: format!(
                    "{}; its first line on stdout is no message: {}",
                    reason.text,
                    quoted_excerpt(&first)
                ),
                ..reason
            },
            None => reason,
        }
    }

    /// Ends all requests under way with this error.
    pub(super) fn fail_all(&self, error: &TransportError) {
        for reply in self.under_way.take_all() {
            let _ = reply.send(Err(error.clone()));
        }
    }

    /// Counts a line that is no message.
    pub(super) fn skip(&self, line: &str) {
        let mut noise = self.noise.lock();
        if noise.first.len() < NOISE_LINES {
            noise.first.push(
                self.masks
                    .lines
                    .text(line.to_owned())
                    .chars()
                    .take(NOISE)
                    .collect(),
            );
        }
        noise.lines += 1;
    }

    /// The lines so far that were no messages.
    pub(super) fn noise(&self) -> Noise {
        self.noise.lock().clone()
    }

    /// Why the connection ended, if it did.
    pub(super) fn end_reason(&self) -> Option<EndReason> {
        self.ended.borrow().clone()
    }

    /// How often the server said that its list changed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The updates of resources that the server signals.
    pub(super) fn updates(&self) -> &UpdateSignals {
        &self.updates
    }

    /// Why the connection ended, once it did.
    pub(super) fn ended(&self) -> watch::Receiver<Option<EndReason>> {
        self.ended.subscribe()
    }
}

impl Lines {
    /// A connection whose messages go out by `outgoing` and are given to `incoming`.
    pub(super) fn new(
        address: String,
        outgoing: Box<dyn Outgoing>,
        incoming: Arc<Incoming>,
        clock: Clock,
    ) -> Self {
        Self {
            address,
            outgoing,
            incoming,
            clock,
        }
    }

    /// The present time.
    pub(super) fn now(&self) -> tokio::time::Instant {
        self.clock.now()
    }

    pub(super) fn incoming(&self) -> &Arc<Incoming> {
        &self.incoming
    }

    /// Sends a message that wants no answer.
    pub(super) async fn notify(&self, message: &str) -> Result<(), RequestError> {
        match self.outgoing.send(message).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.unsendable(error).await),
        }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn send(
        &self,
        request: &McpRequest,
        revision: McpRevision,
        io: &dyn CallIo,
    ) -> Result<Reply, RequestError> {
        let (sender, reply) = oneshot::channel();
        let caller = request.progress.then(|| io.offers());
        let expected = self.incoming.under_way.expect(sender, caller);
        if let Some(reason) = self.incoming.end_reason() {
            return Err(RequestError::Unsent(self.broken(&reason)));
        }
        let id = expected.id;
        self.notify(&rpc::request(
            id,
            request.method,
            &request.params(revision, id),
        ))
        .await?;
        let messages = LineMessages {
            lines: self,
            expected,
            reply,
        };
        RequestExchange {
            connection: self,
            request,
            id,
        }
        .run(messages, io)
        .await
    }

    /// Sends a request whose answer is not waited for, and gives its id.
    pub(super) async fn begin(
        &self,
        request: &McpRequest,
        revision: McpRevision,
    ) -> Result<u64, RequestError> {
        let id = self.incoming.under_way.next_id();
        self.notify(&rpc::request(
            id,
            request.method,
            &request.params(revision, id),
        ))
        .await?;
        Ok(id)
    }

    /// Informs the server that a request is not wanted any more.
    pub(super) async fn cancel(&self, id: u64) -> Result<(), RequestError> {
        self.notify(&withdrawal(id)).await
    }

    /// The reply, or why there is none: the connection ended.
    fn replied(&self, reply: Option<Result<Reply, TransportError>>) -> Result<Reply, RequestError> {
        if let Some(reply) = reply {
            return reply.map_err(RequestError::Unanswered);
        }
        let reason = self.incoming.end_reason();
        let reason = reason.unwrap_or_else(|| EndReason::new("the connection ended"));
        Err(RequestError::Unanswered(self.broken(&reason)))
    }

    /// The error for a message that could not be sent: why the process ended, if it did. That is
    /// known a moment after the end of its input.
    async fn unsendable(&self, error: TransportError) -> RequestError {
        if !matches!(error, TransportError::ProcessEnded { .. }) {
            return RequestError::Unanswered(error);
        }
        let mut ended = self.incoming.ended();
        let known = tokio::time::timeout(END_KNOWN, ended.wait_for(Option::is_some)).await;
        let reason = known
            .ok()
            .and_then(Result::ok)
            .and_then(|reason| reason.clone());
        RequestError::Unanswered(reason.map_or(error, |reason| self.broken(&reason)))
    }

    fn broken(&self, reason: &EndReason) -> TransportError {
        self.outgoing.ended(&self.address, reason)
    }
}

impl Connection for Lines {
    fn address(&self) -> String {
        self.address.clone()
    }

    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn interaction(&self) -> &Interaction {
        &self.incoming.interaction
    }

    async fn respond(&self, response: String) -> Result<(), RequestError> {
        self.notify(&response).await
    }

    async fn withdraw(&self, id: u64) {
        let _ = self.cancel(id).await;
    }

    fn has_answered(&self, id: u64) {
        self.incoming.under_way.has_answered(id);
    }

    fn overdue(&self, id: u64) -> Overdue {
        self.incoming.under_way.overdue(id)
    }
}

/// What comes for one request.
struct LineMessages<'a> {
    lines: &'a Lines,
    expected: Expected<'a, ReplySender>,
    reply: oneshot::Receiver<Result<Reply, TransportError>>,
}

impl Messages for LineMessages<'_> {
    type Answer = Reply;

    async fn next(&mut self) -> Result<Arrived<Reply>, RequestError> {
        tokio::select! {
            biased;
            // What came before the reply is given before it.
            arrived = self.expected.next() => Ok(arrived),
            reply = &mut self.reply => self.lines.replied(reply.ok()).map(Arrived::Answer),
        }
    }

    async fn answer(&mut self) -> Result<Reply, RequestError> {
        let reply = (&mut self.reply).await;
        self.lines.replied(reply.ok())
    }
}
