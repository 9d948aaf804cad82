//! Requests over a connection that carries messages both ways: a child process, or the stream of
//! the transport HTTP+SSE.
//!
//! Answers are matched with requests by id. A message that belongs to no request under way is
//! dropped, except for changes of the list and requests of the server. This module never starts a
//! process or opens a stream.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::{mpsc, oneshot, watch};

use super::deadline::Deadline;
use super::http::until_cancelled;
use super::inputs::{self, InputAnswer};
use super::notes::Note;
use super::request::{McpRequest, Reply, RequestError};
use super::revision::McpRevision;
use super::server::is_change;
use super::update_signals::{UPDATED, UpdateSignals};
use crate::model::{Interaction, JsonText};
use crate::protocols::json_rpc::{self, RpcError, RpcMessage};
use crate::protocols::{CallIo, EndReason, InputMethod};
use crate::runtime::Clock;
use crate::transports::TransportError;
use crate::transports::stdio::ProgramMasks;

/// Notes that wait for one caller; further ones are dropped.
const NOTES: usize = 64;
/// Requests of the server that wait for their answers; further ones are dropped.
const REQUESTS: usize = 16;

/// How long the reason of an end is waited for after a message could not be sent.
const END_KNOWN: Duration = Duration::from_secs(1);

/// The way of a message to the server.
pub(super) trait Outgoing: Send + Sync {
    /// Sends one message.
    fn send<'a>(&'a self, message: &'a str) -> BoxFuture<'a, Result<(), TransportError>>;

    /// The error for a request after the connection ended.
    fn ended(&self, address: &str, reason: &EndReason) -> TransportError {
        TransportError::Broken { url: address.to_owned(), message: reason.to_string() }
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
    pending: Mutex<BTreeMap<u64, Pending>>,
    next_id: AtomicU64,
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

/// A request whose answer has not come yet.
struct Pending {
    reply: oneshot::Sender<Result<Reply, TransportError>>,
    notes: mpsc::Sender<Note>,
    requests: mpsc::Sender<ServerRequest>,
    /// Whether it is a call, whose caller may be meant by what names no request.
    is_call: bool,
}

/// A request of the server.
struct ServerRequest {
    id: JsonText,
    method: String,
    params: Option<JsonText>,
}

/// What comes for one request. Dropping it forgets the request.
struct Waiting<'a> {
    incoming: &'a Incoming,
    id: u64,
    reply: oneshot::Receiver<Result<Reply, TransportError>>,
    notes: mpsc::Receiver<Note>,
    requests: mpsc::Receiver<ServerRequest>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.incoming.pending().remove(&self.id);
    }
}

impl Incoming {
    pub(super) fn new(interaction: &Arc<Interaction>, masks: ProgramMasks) -> Arc<Self> {
        Arc::new(Self {
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
            changes: watch::Sender::new(0),
            updates: UpdateSignals::default(),
            ended: watch::Sender::new(None),
            noise: Mutex::default(),
            interaction: Arc::clone(interaction),
            masks,
        })
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn register(&self, is_call: bool) -> Waiting<'_> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let ((reply, answered), (notes, received), (requests, questions)) =
            (oneshot::channel(), mpsc::channel(NOTES), mpsc::channel(REQUESTS));
        self.pending().insert(id, Pending { reply, notes, requests, is_call });
        Waiting { incoming: self, id, reply: answered, notes: received, requests: questions }
    }

    /// Handles one message of the server. Returns what has to be answered at once. The error says
    /// why it is no message.
    pub(super) fn receive(&self, text: &str) -> Result<Vec<String>, String> {
        let mut answers = Vec::new();
        for message in json_rpc::parse(text)? {
            answers.extend(self.take(message));
        }
        Ok(answers)
    }

    fn take(&self, message: RpcMessage) -> Option<String> {
        match message {
            RpcMessage::Response { id, result } => {
                let mut pending = self.pending();
                // A server that could not read the id can only mean the one request under way.
                let id = id.or_else(|| pending.keys().next().copied().filter(|_| pending.len() == 1))?;
                let _ = pending.remove(&id)?.reply.send(Ok(result.map_err(|error| self.masked(error))));
                None
            }
            RpcMessage::Notification { method, params } => {
                if is_change(&method) {
                    self.changes.send_modify(|count| *count += 1);
                } else if method == UPDATED {
                    self.updates.take(params.as_ref());
                } else if let Some((about, note)) = Note::parse(&method, params.as_ref()) {
                    let pending = self.pending();
                    let request = match about {
                        Some(id) => pending.get(&id),
                        // A log line names no request.
                        None => only_call(&pending),
                    };
                    let _ = request?.notes.try_send(note);
                }
                None
            }
            RpcMessage::Request { id, method, params } => {
                let request = ServerRequest { id, method, params };
                if InputMethod::parse(&request.method).is_none() {
                    return Some(self.without_caller(&request));
                }
                // It names no request, so with several calls it is not known whose caller is meant.
                let sent = match only_call(&self.pending()) {
                    Some(call) => call.requests.try_send(request).map_err(mpsc::error::TrySendError::into_inner),
                    None => Err(request),
                };
                sent.err().map(|request| self.without_caller(&request))
            }
        }
    }

    /// An error without what is masked.
    fn masked(&self, error: RpcError) -> RpcError {
        let mask = &self.masks.errors;
        let data = error.data.map(|data| match mask.document(data.get().as_bytes()) {
            Cow::Borrowed(_) => data,
            Cow::Owned(masked) => JsonText::known(String::from_utf8_lossy(&masked).into_owned()),
        });
        RpcError { message: mask.text(error.message), data, code: error.code }
    }

    /// The answer to a request of the server that no caller answers.
    fn without_caller(&self, request: &ServerRequest) -> String {
        if request.method == "ping" {
            return json_rpc::response(&request.id, Ok("{}"));
        }
        request.response(inputs::answer_without_caller(&request.method, &self.interaction), &self.interaction)
    }

    /// Records that the connection ended: no answer comes any more.
    pub(super) fn end(&self, reason: EndReason) {
        self.ended.send_replace(Some(reason));
        self.pending().clear();
    }

    /// Ends all requests under way with this error.
    pub(super) fn fail_all(&self, error: &TransportError) {
        for (_, pending) in std::mem::take(&mut *self.pending()) {
            let _ = pending.reply.send(Err(error.clone()));
        }
    }

    /// Counts a line that is no message.
    pub(super) fn skip(&self, line: &str) {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        if noise.first.len() < NOISE_LINES {
            noise.first.push(self.masks.lines.text(line.to_owned()).chars().take(NOISE).collect());
        }
        noise.lines += 1;
    }

    /// The lines so far that were no messages.
    pub(super) fn noise(&self) -> Noise {
        self.noise.lock().unwrap_or_else(PoisonError::into_inner).clone()
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

/// The call under way, if there is only one.
fn only_call(pending: &BTreeMap<u64, Pending>) -> Option<&Pending> {
    let mut calls = pending.values().filter(|request| request.is_call);
    calls.next().filter(|_| calls.next().is_none())
}

impl ServerRequest {
    /// The message with its answer.
    fn response(&self, answer: InputAnswer, interaction: &Interaction) -> String {
        json_rpc::response(&self.id, answer.of_request(&self.method, interaction).as_deref())
    }
}

impl Lines {
    /// A connection whose messages go out by `outgoing` and are given to `incoming`.
    pub(super) fn new(address: String, outgoing: Box<dyn Outgoing>, incoming: Arc<Incoming>, clock: Clock) -> Self {
        Self { address, outgoing, incoming, clock }
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
        io: &mut dyn CallIo,
    ) -> Result<Reply, RequestError> {
        let mut waiting = self.incoming.register(request.progress);
        if let Some(reason) = self.incoming.end_reason() {
            return Err(RequestError::Unsent(self.broken(&reason)));
        }
        let id = waiting.id;
        let message = json_rpc::request(id, request.method, &request.params(revision, id));
        if let Err(error) = self.outgoing.send(&message).await {
            return Err(self.unsendable(error).await);
        }
        let answered = self.wait(&mut waiting, request, io).await;
        if matches!(answered, Err(RequestError::Cancelled | RequestError::Unanswered(TransportError::Timeout { .. }))) {
            let _ = self.cancel(id).await;
        }
        answered
    }

    /// Sends a request whose answer is not waited for, and gives its id.
    pub(super) async fn begin(&self, request: &McpRequest, revision: McpRevision) -> Result<u64, RequestError> {
        let id = self.incoming.next_id.fetch_add(1, Ordering::Relaxed);
        self.notify(&json_rpc::request(id, request.method, &request.params(revision, id))).await?;
        Ok(id)
    }

    /// Informs the server that a request is not wanted any more.
    pub(super) async fn cancel(&self, id: u64) -> Result<(), RequestError> {
        let params = format!(r#"{{"requestId":{id},"reason":"the caller does not wait any more"}}"#);
        self.notify(&json_rpc::notification("notifications/cancelled", &params)).await
    }

    async fn wait(
        &self,
        waiting: &mut Waiting<'_>,
        request: &McpRequest,
        io: &mut dyn CallIo,
    ) -> Result<Reply, RequestError> {
        let mut deadline = Deadline::new(self.clock.now(), request);
        loop {
            let Waiting { reply, notes, requests, .. } = waiting;
            let next = async {
                tokio::select! {
                    biased;
                    Some(note) = notes.recv() => Arrived::Note(note),
                    Some(request) = requests.recv() => Arrived::Request(request),
                    reply = reply => Arrived::Reply(reply.ok()),
                }
            };
            let next = tokio::select! {
                next = until_cancelled(next, io.cancelled()) => next.ok_or(RequestError::Cancelled)?,
                () = deadline.passed() => return Err(deadline.exceeded(self.address.clone())),
            };
            match next {
                Arrived::Reply(reply) => return self.replied(reply),
                Arrived::Note(note) => note.give(io),
                Arrived::Request(request) => {
                    let interaction = &self.incoming.interaction;
                    let cancelled = io.cancelled();
                    let answering = inputs::answer(&request.method, request.params.as_ref(), interaction, io);
                    let since = self.clock.now();
                    let answer = tokio::select! {
                        answer = until_cancelled(answering, cancelled) => answer.ok_or(RequestError::Cancelled)?,
                        // It does not wait for the input any more.
                        reply = &mut waiting.reply => return self.replied(reply.ok()),
                    };
                    self.notify(&request.response(answer, interaction)).await?;
                    deadline.exclude(since, self.clock.now());
                }
            }
            deadline.extend(self.clock.now());
        }
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
        let reason = known.ok().and_then(Result::ok).and_then(|reason| reason.clone());
        RequestError::Unanswered(reason.map_or(error, |reason| self.broken(&reason)))
    }

    fn broken(&self, reason: &EndReason) -> TransportError {
        self.outgoing.ended(&self.address, reason)
    }
}

/// What comes while a request waits.
enum Arrived {
    /// `None` when the connection ended.
    Reply(Option<Result<Reply, TransportError>>),
    Note(Note),
    Request(ServerRequest),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(is_call: bool) -> Pending {
        Pending { reply: oneshot::channel().0, notes: mpsc::channel(1).0, requests: mpsc::channel(1).0, is_call }
    }

    /// A request of the server that names no call must not reach the caller of another one.
    #[test]
    fn what_names_no_call_is_for_the_only_one() {
        let mut all = BTreeMap::from([(1, pending(false)), (2, pending(true))]);
        assert!(only_call(&all).is_some_and(|call| call.is_call));
        all.insert(3, pending(true));
        assert!(only_call(&all).is_none(), "either may be meant");
        assert!(only_call(&BTreeMap::from([(1, pending(false))])).is_none());
    }
}
