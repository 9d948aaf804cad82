//! One request to a server and what comes for it until its answer: the loop that every carrier of
//! messages shares.
//!
//! What the server reports meanwhile is given to the caller, and what it requests is answered: by
//! the configuration, by the caller, or with a refusal. A message that names no request is for the
//! caller of the only call under way; with several calls it is not known whose is meant. This
//! module opens no connection.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::deadline::Deadline;
use super::inputs;
use super::notes::Note;
use super::request::{McpRequest, RequestError};
use crate::json::rpc::{self, RpcRequest};
use crate::model::Interaction;
use crate::protocols::{CallIo, cancelled_by_caller};
use crate::transports::TransportError;

/// Notes that wait for one caller; further ones are dropped.
pub(super) const NOTES_MAX: usize = 64;
/// Requests of the server that wait for one caller; further ones are refused.
pub(super) const REQUESTS_MAX: usize = 16;

/// The requests under way over one connection. `A` takes the answer of each.
#[derive(Debug)]
pub(super) struct RequestsUnderWay<A> {
    pending: Mutex<BTreeMap<u64, Pending<A>>>,
    next_id: AtomicU64,
}

/// A request whose answer has not come yet.
#[derive(Debug)]
struct Pending<A> {
    answer: A,
    notes: mpsc::Sender<Note>,
    requests: mpsc::Sender<RpcRequest>,
    /// Whether it is a call, whose caller may be meant by what names no request.
    is_call: bool,
}

/// What comes for one request beside its answer. Dropping it forgets the request.
pub(super) struct Expected<'a, A> {
    all: &'a RequestsUnderWay<A>,
    pub(super) id: u64,
    notes: mpsc::Receiver<Note>,
    requests: mpsc::Receiver<RpcRequest>,
}

/// What comes next for a request.
pub(super) enum Arrived<A> {
    /// Its answer.
    Answer(A),
    /// What the server reports to the caller.
    Note(Note),
    /// What the server requests of the caller.
    Request(RpcRequest),
}

/// The messages that come for one request.
pub(super) trait Messages: Send {
    /// Its answer.
    type Answer: Send;

    /// The next message. The error says why none comes any more. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Result<Arrived<Self::Answer>, RequestError>> + Send;

    /// Waits for the answer, and keeps other messages for later. What needs no caller, or is too
    /// much for one, is answered meanwhile. Cancel-safe.
    fn answer(&mut self) -> impl Future<Output = Result<Self::Answer, RequestError>> + Send;
}

/// A connection to a server.
pub(super) trait Connection: Sync {
    /// Its address, for messages.
    fn address(&self) -> String;

    /// The time.
    fn now(&self) -> Instant;

    /// The input that the server may request.
    fn interaction(&self) -> &Interaction;

    /// Sends the answer to a request of the server.
    fn respond(&self, response: String) -> impl Future<Output = Result<(), RequestError>> + Send;

    /// Informs the server that a request is not wanted any more.
    fn withdraw(&self, id: u64) -> impl Future<Output = ()> + Send;
}

/// A request that was sent over a connection, or is sent by its messages.
pub(super) struct RequestExchange<'a, C> {
    pub(super) connection: &'a C,
    pub(super) request: &'a McpRequest,
    pub(super) id: u64,
}

impl<C: Connection> RequestExchange<'_, C> {
    /// Waits for the answer, within the limits of the request. A request that took too long or that
    /// its caller cancelled is withdrawn at the server.
    pub(super) async fn run<M: Messages>(
        self,
        mut messages: M,
        io: &dyn CallIo,
    ) -> Result<M::Answer, RequestError> {
        let answered = self.wait(&mut messages, io).await;
        drop(messages);
        if matches!(
            answered,
            Err(RequestError::Cancelled | RequestError::Unanswered(TransportError::Timeout { .. }))
        ) {
            self.connection.withdraw(self.id).await;
        }
        answered
    }

    async fn wait<M: Messages>(
        &self,
        messages: &mut M,
        io: &dyn CallIo,
    ) -> Result<M::Answer, RequestError> {
        let mut deadline = Deadline::new(self.connection.now(), self.request);
        loop {
            let next = tokio::select! {
                next = until_cancelled(messages.next(), io) => next.ok_or(RequestError::Cancelled)??,
                () = deadline.passed() => return Err(deadline.exceeded(self.connection.address())),
            };
            match next {
                Arrived::Answer(answer) => return Ok(answer),
                Arrived::Note(note) => note.give(io),
                Arrived::Request(request) => {
                    let since = self.connection.now();
                    let responding = inputs::response(&request, self.connection.interaction(), io);
                    let response = tokio::select! {
                        biased;
                        response = until_cancelled(responding, io) => response.ok_or(RequestError::Cancelled)?,
                        // It does not wait for the input any more.
                        answer = messages.answer() => return answer,
                    };
                    self.connection.respond(response).await?;
                    deadline.exclude(since, self.connection.now());
                }
            }
            deadline.extend(self.connection.now());
        }
    }
}

/// Waits for the work, or for the caller to cancel it (`None`).
pub(super) async fn until_cancelled<T>(
    work: impl Future<Output = T>,
    io: &dyn CallIo,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        () = cancelled_by_caller(io) => None,
    }
}

/// The message that withdraws a request.
pub(super) fn withdrawal(id: u64) -> String {
    let params = format!(r#"{{"requestId":{id},"reason":"the caller does not wait any more"}}"#);
    rpc::notification("notifications/cancelled", Some(&params))
}

impl<A> RequestsUnderWay<A> {
    pub(super) fn new() -> Self {
        Self {
            pending: Mutex::default(),
            next_id: AtomicU64::new(1),
        }
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<u64, Pending<A>>> {
        self.pending.lock()
    }

    /// The id of a new request.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// From now on something may come for a new request, whose answer is given to `answer`.
    pub(super) fn expect(&self, answer: A, is_call: bool) -> Expected<'_, A> {
        let id = self.next_id();
        let (notes, received_notes) = mpsc::channel(NOTES_MAX);
        let (requests, received_requests) = mpsc::channel(REQUESTS_MAX);
        self.pending().insert(
            id,
            Pending {
                answer,
                notes,
                requests,
                is_call,
            },
        );
        Expected {
            all: self,
            id,
            notes: received_notes,
            requests: received_requests,
        }
    }

    /// What takes the answer with this id. A server that could not read the id can only mean the
    /// one request under way.
    pub(super) fn take(&self, id: Option<u64>) -> Option<A> {
        let mut pending = self.pending();
        let id = id.or_else(|| {
            pending
                .keys()
                .next()
                .copied()
                .filter(|_| pending.len() == 1)
        })?;
        pending.remove(&id).map(|request| request.answer)
    }

    /// Forgets all requests, and gives what would have taken their answers.
    pub(super) fn take_all(&self) -> Vec<A> {
        std::mem::take(&mut *self.pending())
            .into_values()
            .map(|request| request.answer)
            .collect()
    }

    /// Gives a note to the caller of the request that it names. One that names none is for the only
    /// call.
    pub(super) fn give_note(&self, about: Option<u64>, note: Note) {
        let pending = self.pending();
        let request = match about {
            Some(id) => pending.get(&id),
            None => only_call(&pending),
        };
        if let Some(request) = request {
            let _ = request.notes.try_send(note);
        }
    }

    /// Gives a request of the server, which names no call, to the caller of the only one. It comes
    /// back if no call or several could be meant, or the caller has too many.
    pub(super) fn give_request(&self, request: RpcRequest) -> Result<(), RpcRequest> {
        match only_call(&self.pending()) {
            Some(call) => call
                .requests
                .try_send(request)
                .map_err(mpsc::error::TrySendError::into_inner),
            None => Err(request),
        }
    }
}

/// The call under way, if there is only one.
fn only_call<A>(pending: &BTreeMap<u64, Pending<A>>) -> Option<&Pending<A>> {
    let mut calls = pending.values().filter(|request| request.is_call);
    calls.next().filter(|_| calls.next().is_none())
}

impl<A> Expected<'_, A> {
    /// What comes next, notes first. Never completes once the request is forgotten. Cancel-safe.
    pub(super) async fn next<T>(&mut self) -> Arrived<T> {
        tokio::select! {
            biased;
            Some(note) = self.notes.recv() => Arrived::Note(note),
            Some(request) = self.requests.recv() => Arrived::Request(request),
            else => std::future::pending().await,
        }
    }
}

impl<A> Drop for Expected<'_, A> {
    fn drop(&mut self) {
        self.all.pending().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JsonText;

    fn request() -> RpcRequest {
        RpcRequest {
            id: JsonText::parse("1").unwrap(),
            method: "elicitation/create".to_owned(),
            params: None,
        }
    }

    /// A request of the server that names no call must not reach the caller of another one.
    #[tokio::test]
    async fn what_names_no_call_is_for_the_only_one() {
        let all = RequestsUnderWay::new();
        assert!(all.give_request(request()).is_err());
        let list = all.expect((), false);
        assert!(all.give_request(request()).is_err());
        let mut first = all.expect((), true);
        all.give_request(request()).unwrap();
        assert!(matches!(first.next::<()>().await, Arrived::Request(given) if given == request()));
        let second = all.expect((), true);
        assert!(all.give_request(request()).is_err(), "either may be meant");
        drop((second, list));
        for _ in 0..REQUESTS_MAX {
            all.give_request(request()).unwrap();
        }
        assert!(all.give_request(request()).is_err(), "it has too many");
    }

    #[test]
    fn an_answer_without_an_id_is_for_the_only_request() {
        let all = RequestsUnderWay::new();
        let _first = all.expect(1, true);
        let second = all.expect(2, true);
        assert_eq!(all.take(None), None);
        let id = second.id;
        assert_eq!(all.take(Some(id)), Some(2));
        assert_eq!(all.take(Some(id)), None);
        assert_eq!(all.take(None), Some(1));
    }
}
