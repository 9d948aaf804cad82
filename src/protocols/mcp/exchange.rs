//! One request to a server and what comes for it until its answer: the loop that every carrier of
//! messages shares.
//!
//! What the server reports meanwhile is given to the caller, and what it requests is answered: by
//! the configuration, by the caller, or with a refusal. A message that names no request is for the
//! caller of the only call under way. With several calls it is not known whose is meant: a request
//! of the server waits for its turn then, until only one of the calls that were under way when it
//! came is left ([`UnderWayTable::hold`]). This module opens no connection.

use std::collections::{BTreeMap, BTreeSet};
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
use crate::protocols::{CallIo, CallerOffers, DeclinedInput, cancelled_by_caller};
use crate::transports::TransportError;

/// Notes that wait for one caller; further ones are dropped.
pub(super) const NOTES_MAX: usize = 64;
/// Requests of the server that wait for one caller, or of one server for their turn; further ones
/// are refused.
pub(super) const REQUESTS_MAX: usize = 16;

/// The requests under way over one connection. `A` takes the answer of each.
#[derive(Debug)]
pub(super) struct RequestsUnderWay<A> {
    table: Mutex<UnderWayTable<A>>,
    next_id: AtomicU64,
}

/// The requests under way, and what of the server may belong to several of them.
#[derive(Debug)]
struct UnderWayTable<A> {
    pending: BTreeMap<u64, Pending<A>>,
    /// Requests of the server that wait for their turn.
    held: Vec<HeldRequest>,
}

/// A request whose answer has not come yet.
#[derive(Debug)]
struct Pending<A> {
    answer: A,
    notes: mpsc::Sender<Note>,
    requests: mpsc::Sender<ForCall>,
    /// What the caller of a call offers, who may be meant by what names no request. `None` if it is
    /// no call.
    caller: Option<CallerOffers>,
    /// How many requests of the server its caller was given and has not answered.
    unanswered: usize,
}

/// A request of the server that may belong to several calls.
#[derive(Debug)]
struct HeldRequest {
    request: RpcRequest,
    /// The calls that were under way when it came and still are.
    calls: BTreeSet<u64>,
    /// Whether one of these calls was given up, so that it may have been of that one.
    is_unclear: bool,
}

/// A request of the server for one call.
#[derive(Debug)]
enum ForCall {
    /// Its caller answers.
    Answer(RpcRequest),
    /// It is declined here.
    Decline(RpcRequest, DeclinedInput),
}

/// What a call may do whose time is over.
#[derive(Debug)]
pub(super) enum Overdue {
    /// It has failed.
    Failed,
    /// It may be waiting for its turn while another caller gives input.
    WaitsForTurn,
    /// These requests may be its own, and are declined: they waited for its whole time.
    Declines(Vec<RpcRequest>),
}

/// What comes for one request beside its answer. Dropping it forgets the request.
pub(super) struct Expected<'a, A> {
    all: &'a RequestsUnderWay<A>,
    pub(super) id: u64,
    notes: mpsc::Receiver<Note>,
    requests: mpsc::Receiver<ForCall>,
    is_answered: bool,
}

/// What comes next for a request.
pub(super) enum Arrived<A> {
    /// Its answer.
    Answer(A),
    /// What the server reports to the caller.
    Note(Note),
    /// What the server requests of the caller.
    Request(RpcRequest),
    /// What the server requests and is declined here.
    Declined(RpcRequest, DeclinedInput),
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

    /// The caller of this call has answered a request of the server.
    fn has_answered(&self, id: u64);

    /// What this call may do, whose time is over.
    fn overdue(&self, id: u64) -> Overdue;
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
                () = deadline.passed() => {
                    if !self.may_go_on(io).await? {
                        return Err(deadline.exceeded(self.connection.address()));
                    }
                    deadline.begin_again(self.connection.now());
                    continue;
                }
            };
            match next {
                Arrived::Answer(answer) => return Ok(answer),
                Arrived::Note(note) => note.give(io),
                Arrived::Declined(request, why) => self.decline(&request, why, io).await?,
                Arrived::Request(request) => {
                    let since = self.connection.now();
                    let responding = inputs::response(&request, self.connection.interaction(), io);
                    let response = tokio::select! {
                        biased;
                        response = until_cancelled(responding, io) => response.ok_or(RequestError::Cancelled)?,
                        // It does not wait for the input any more.
                        answer = messages.answer() => return answer,
                    };
                    self.connection.has_answered(self.id);
                    self.connection.respond(response).await?;
                    deadline.exclude(since, self.connection.now());
                }
            }
            deadline.extend(self.connection.now());
        }
    }

    /// Whether a request whose time is over may go on, because it may have waited for its turn to
    /// request input.
    async fn may_go_on(&self, io: &dyn CallIo) -> Result<bool, RequestError> {
        match self.connection.overdue(self.id) {
            Overdue::Failed => Ok(false),
            Overdue::WaitsForTurn => Ok(true),
            Overdue::Declines(requests) => {
                for request in requests {
                    self.decline(&request, DeclinedInput::SeveralCalls, io)
                        .await?;
                }
                Ok(true)
            }
        }
    }

    /// Declines a request of the server without the caller, who learns why.
    async fn decline(
        &self,
        request: &RpcRequest,
        why: DeclinedInput,
        io: &dyn CallIo,
    ) -> Result<(), RequestError> {
        if inputs::is_question(request) {
            io.declined(why);
        }
        let interaction = self.connection.interaction();
        let response = inputs::response_without_caller(request, interaction);
        self.connection.respond(response).await
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
        let table = UnderWayTable {
            pending: BTreeMap::new(),
            held: Vec::new(),
        };
        Self {
            table: Mutex::new(table),
            next_id: AtomicU64::new(1),
        }
    }

    fn table(&self) -> MutexGuard<'_, UnderWayTable<A>> {
        self.table.lock()
    }

    /// The id of a new request.
    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// From now on something may come for a new request, whose answer is given to `answer`. Of a
    /// call, `caller` is what its caller offers.
    pub(super) fn expect(&self, answer: A, caller: Option<CallerOffers>) -> Expected<'_, A> {
        let id = self.next_id();
        let (notes, received_notes) = mpsc::channel(NOTES_MAX);
        // Room for those that waited for their turn, too.
        let (requests, received_requests) = mpsc::channel(2 * REQUESTS_MAX);
        self.table().pending.insert(
            id,
            Pending {
                answer,
                notes,
                requests,
                caller,
                unanswered: 0,
            },
        );
        Expected {
            all: self,
            id,
            notes: received_notes,
            requests: received_requests,
            is_answered: false,
        }
    }

    /// What takes the answer with this id. A server that could not read the id can only mean the
    /// one request under way.
    pub(super) fn take(&self, id: Option<u64>) -> Option<A> {
        let mut table = self.table();
        let only = |table: &UnderWayTable<A>| {
            let mut ids = table.pending.keys().copied();
            ids.next().filter(|_| ids.next().is_none())
        };
        let id = id.or_else(|| only(&table))?;
        table.end(id, true).map(|request| request.answer)
    }

    /// Forgets all requests, and gives what would have taken their answers.
    pub(super) fn take_all(&self) -> Vec<A> {
        let mut table = self.table();
        table.held.clear();
        std::mem::take(&mut table.pending)
            .into_values()
            .map(|request| request.answer)
            .collect()
    }

    /// Gives a note to the caller of the request that it names. One that names none is for the only
    /// call.
    pub(super) fn give_note(&self, about: Option<u64>, note: Note) {
        let table = self.table();
        let only_call = || {
            let calls = table.calls();
            calls.first().copied().filter(|_| calls.len() == 1)
        };
        let request = about.or_else(only_call);
        if let Some(request) = request.and_then(|id| table.pending.get(&id)) {
            let _ = request.notes.try_send(note);
        }
    }

    /// Gives a request of the server, which names no call, to the caller of the only one. With
    /// several calls it waits for its turn. It comes back if no caller will answer it.
    pub(super) fn give_request(
        &self,
        request: RpcRequest,
        interaction: &Interaction,
    ) -> Result<(), RpcRequest> {
        let mut table = self.table();
        let calls = table.calls();
        match calls.first() {
            Some(only) if calls.len() == 1 => table.give(*only, request),
            Some(_) => table.hold(request, calls, interaction),
            None => Err(request),
        }
    }

    /// The caller of this call was given a request of the server on the stream of the call.
    pub(super) fn is_given(&self, id: u64) {
        if let Some(call) = self.table().pending.get_mut(&id) {
            call.unanswered += 1;
        }
    }

    /// The caller of this call has answered a request of the server.
    pub(super) fn has_answered(&self, id: u64) {
        if let Some(call) = self.table().pending.get_mut(&id) {
            call.unanswered = call.unanswered.saturating_sub(1);
        }
    }

    /// What this call may do, whose time is over. While a person answers another one, its time does
    /// not count; else its own request may have waited in vain.
    pub(super) fn overdue(&self, id: u64) -> Overdue {
        let mut table = self.table();
        if !table.held.iter().any(|held| held.calls.contains(&id)) {
            return Overdue::Failed;
        }
        if table.pending.values().any(|call| call.unanswered > 0) {
            return Overdue::WaitsForTurn;
        }
        let own = table
            .held
            .extract_if(.., |held| held.calls.contains(&id))
            .map(|held| held.request);
        Overdue::Declines(own.collect())
    }
}

impl<A> UnderWayTable<A> {
    /// The ids of the calls.
    fn calls(&self) -> BTreeSet<u64> {
        let calls = self.pending.iter();
        let calls = calls.filter(|(_, request)| request.caller.is_some());
        calls.map(|(id, _)| *id).collect()
    }

    /// The calls of these whose callers are not answering a request of the server now. One whose
    /// caller is, most likely waits for that, so another request is not its own.
    fn not_asking(&self, calls: &BTreeSet<u64>) -> Vec<u64> {
        let is_asking = |id: &u64| self.pending.get(id).is_some_and(|call| call.unanswered > 0);
        let calls = calls.iter().copied();
        calls.filter(|id| !is_asking(id)).collect()
    }

    /// Whether none of these calls has a caller that can give what is requested, so that there is
    /// no use in waiting.
    fn none_can_answer(&self, calls: &[u64], request: &RpcRequest) -> bool {
        let offers = |id| self.pending.get(id).and_then(|call| call.caller);
        let can_answer = |id| offers(id).is_some_and(|caller| inputs::is_offered(request, caller));
        !calls.is_empty() && !calls.iter().any(can_answer)
    }

    /// Gives a request of the server to the caller of this call. It comes back if that one has too
    /// many.
    fn give(&mut self, id: u64, request: RpcRequest) -> Result<(), RpcRequest> {
        let Some(call) = self.pending.get_mut(&id) else {
            return Err(request);
        };
        let waiting = call.requests.max_capacity() - call.requests.capacity();
        if waiting >= REQUESTS_MAX {
            if inputs::is_question(&request) {
                let note = Note::Declined(DeclinedInput::TooMany);
                let _ = call.notes.try_send(note);
            }
            return Err(request);
        }
        call.unanswered += 1;
        // There is room, so it is taken.
        let _ = call.requests.try_send(ForCall::Answer(request));
        Ok(())
    }

    /// Keeps a request that may belong to each of these calls until only one of them is left. It
    /// comes back where that would never be, since each of them may wait for input and no person is
    /// answering one, and where no caller that may be meant can answer it.
    fn hold(
        &mut self,
        request: RpcRequest,
        calls: BTreeSet<u64>,
        interaction: &Interaction,
    ) -> Result<(), RpcRequest> {
        let likely = self.not_asking(&calls);
        let one_will_end = likely.len() < calls.len() || self.held.len() + 1 < calls.len();
        let has_room = self.held.len() < REQUESTS_MAX;
        let in_vain = self.none_can_answer(&likely, &request);
        let needs_caller = inputs::needs_caller(&request, interaction);
        if needs_caller && one_will_end && has_room && !in_vain {
            self.held.push(HeldRequest {
                request,
                calls,
                is_unclear: false,
            });
            return Ok(());
        }
        if inputs::is_question(&request) {
            let why = match likely.as_slice() {
                [_] if in_vain => DeclinedInput::NotOffered,
                _ => DeclinedInput::SeveralCalls,
            };
            for call in likely.iter().filter_map(|id| self.pending.get(id)) {
                let _ = call.notes.try_send(Note::Declined(why));
            }
        }
        Err(request)
    }

    /// Forgets a request, and gives what waited for its end to the one call that is left. What may
    /// have been of a call that was given up is declined: no other caller may see it.
    fn end(&mut self, id: u64, is_answered: bool) -> Option<Pending<A>> {
        let ended = self.pending.remove(&id)?;
        for held in &mut self.held {
            if held.calls.remove(&id) {
                held.is_unclear |= !is_answered;
            }
        }
        let settled: Vec<HeldRequest> = self
            .held
            .extract_if(.., |held| held.calls.len() <= 1)
            .collect();
        for held in settled {
            let Some(call) = held
                .calls
                .first()
                .and_then(|left| self.pending.get_mut(left))
            else {
                continue;
            };
            let given = if held.is_unclear {
                ForCall::Decline(held.request, DeclinedInput::SeveralCalls)
            } else {
                call.unanswered += 1;
                ForCall::Answer(held.request)
            };
            // There is room for as many as are held.
            let _ = call.requests.try_send(given);
        }
        Some(ended)
    }
}

impl<A> Expected<'_, A> {
    /// What comes next, notes first. Never completes once the request is forgotten. Cancel-safe.
    pub(super) async fn next<T>(&mut self) -> Arrived<T> {
        tokio::select! {
            biased;
            Some(note) = self.notes.recv() => Arrived::Note(note),
            Some(request) = self.requests.recv() => match request {
                ForCall::Answer(request) => Arrived::Request(request),
                ForCall::Decline(request, why) => Arrived::Declined(request, why),
            },
            else => std::future::pending().await,
        }
    }

    /// The caller was given a request of the server that came with the answer.
    pub(super) fn is_given(&self) {
        self.all.is_given(self.id);
    }

    /// The answer came by another way than through the table.
    pub(super) fn is_answered(&mut self) {
        self.is_answered = true;
    }
}

impl<A> Drop for Expected<'_, A> {
    fn drop(&mut self) {
        self.all.table().end(self.id, self.is_answered);
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
            params: Some(JsonText::known("{}")),
        }
    }

    /// A caller that answers questions.
    fn answers() -> CallerOffers {
        CallerOffers {
            elicitation_form: true,
            ..CallerOffers::default()
        }
    }

    fn give(all: &RequestsUnderWay<()>) -> Result<(), RpcRequest> {
        all.give_request(request(), &Interaction::default())
    }

    /// What came for a call, if something did.
    async fn came(call: &mut Expected<'_, ()>) -> Option<Arrived<()>> {
        tokio::select! {
            biased;
            arrived = call.next() => Some(arrived),
            () = std::future::ready(()) => None,
        }
    }

    /// A request of the server that names no call must not reach the caller of another one.
    #[tokio::test]
    async fn what_names_no_call_is_for_the_only_one() {
        let all = RequestsUnderWay::new();
        assert!(give(&all).is_err());
        let list = all.expect((), None);
        assert!(give(&all).is_err());
        let mut first = all.expect((), Some(answers()));
        give(&all).unwrap();
        assert!(matches!(first.next::<()>().await, Arrived::Request(given) if given == request()));
        all.has_answered(first.id);
        drop(list);
        for _ in 0..REQUESTS_MAX {
            give(&all).unwrap();
        }
        assert!(give(&all).is_err(), "it has too many");
        assert!(matches!(
            first.next::<()>().await,
            Arrived::Note(Note::Declined(DeclinedInput::TooMany))
        ));
    }

    #[tokio::test]
    async fn what_may_belong_to_two_calls_waits_until_one_of_them_is_answered() {
        let all = RequestsUnderWay::new();
        let mut first = all.expect((), Some(answers()));
        give(&all).unwrap();
        assert!(matches!(came(&mut first).await, Some(Arrived::Request(_))));
        let mut second = all.expect((), Some(answers()));
        give(&all).unwrap();
        assert!(came(&mut first).await.is_none());
        assert!(came(&mut second).await.is_none());
        assert!(
            matches!(all.overdue(second.id), Overdue::WaitsForTurn),
            "a person answers the first call"
        );
        // Begun after the request came, so it is not its own.
        let mut third = all.expect((), Some(answers()));
        all.take(Some(first.id)).unwrap();
        assert!(matches!(came(&mut second).await, Some(Arrived::Request(_))));
        assert!(came(&mut third).await.is_none());
    }

    /// A person may take ten minutes to answer another client's question: a client that answers
    /// none must not wait for that.
    #[tokio::test]
    async fn what_no_caller_that_may_be_meant_can_answer_does_not_wait() {
        let all = RequestsUnderWay::new();
        let mut first = all.expect((), Some(answers()));
        give(&all).unwrap();
        assert!(matches!(came(&mut first).await, Some(Arrived::Request(_))));
        let mut second = all.expect((), Some(CallerOffers::default()));
        assert!(give(&all).is_err(), "the second client answers none");
        assert!(matches!(
            came(&mut second).await,
            Some(Arrived::Note(Note::Declined(DeclinedInput::NotOffered)))
        ));
        assert!(came(&mut first).await.is_none());
        let mut third = all.expect((), Some(answers()));
        give(&all).unwrap();
        assert!(
            came(&mut third).await.is_none(),
            "it may be its own: it waits"
        );
    }

    #[tokio::test]
    async fn what_may_be_of_a_call_that_was_given_up_is_declined() {
        let all = RequestsUnderWay::new();
        let mut first = all.expect((), Some(answers()));
        let second = all.expect((), Some(answers()));
        give(&all).unwrap();
        drop(second);
        assert!(matches!(
            came(&mut first).await,
            Some(Arrived::Declined(_, DeclinedInput::SeveralCalls))
        ));
    }

    #[tokio::test]
    async fn calls_that_would_wait_for_each_other_do_not() {
        let all = RequestsUnderWay::new();
        let mut first = all.expect((), Some(answers()));
        let mut second = all.expect((), Some(answers()));
        give(&all).unwrap();
        assert!(give(&all).is_err(), "no call would end");
        for call in [&mut first, &mut second] {
            assert!(matches!(
                came(call).await,
                Some(Arrived::Note(Note::Declined(DeclinedInput::SeveralCalls)))
            ));
        }
        let Overdue::Declines(requests) = all.overdue(second.id) else {
            panic!("its time is over, and no person answers")
        };
        assert_eq!(requests, [request()]);
        assert!(matches!(all.overdue(second.id), Overdue::Failed));
    }

    #[test]
    fn an_answer_without_an_id_is_for_the_only_request() {
        let all = RequestsUnderWay::new();
        let _first = all.expect(1, Some(answers()));
        let second = all.expect(2, Some(answers()));
        assert_eq!(all.take(None), None);
        let id = second.id;
        assert_eq!(all.take(Some(id)), Some(2));
        assert_eq!(all.take(Some(id)), None);
        assert_eq!(all.take(None), Some(1));
    }
}
