//! Requests that may take long: their work runs in a task of its own, reports progress, and may
//! need input of the client.
//!
//! The answer is one document if nothing is sent before the result, and else a stream with what the
//! scenario reports. A modern client that ends its request early cancels the work. A legacy client
//! cancels by a notification; when its connection ends, the work goes on.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use bytes::Bytes;
use futures_util::stream::{empty, unfold};
use http::{StatusCode, Version};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::model::{DEFINITION_VERSION, JsonText, NamedVersion, NotAVersion};
use crate::protocols::{InputRound, TraceContext};
use crate::runtime::tasks::BodyStep;
use crate::runtime::{AnswerBudget, StopTrigger};
use crate::server::SharedState;
use crate::server::http::sse;
use crate::server::mcp::answer::{Answer, envelope, error_envelope, event, last_event};
use crate::server::mcp::call_work::input_required;
use crate::server::mcp::caller::{CallerEvent, McpCaller, log_notification, progress_notification};
use crate::server::mcp::context::{McpClient, McpContext};
use crate::server::mcp::held::{
    CancelOnDrop, HeldCalls, LongRequestEnd, LongRequestResult, OngoingCall, bytes_of,
};
use crate::server::mcp::refusal::Refusal;
use crate::server::mcp::request_state::{LIFETIME, RequestState, StateBinding};

/// Events of one request that wait to be sent. A client that does not keep up misses progress.
const EVENTS: usize = 256;
/// An unexpected failure inside the daemon (JSON-RPC 2.0 section 5.1).
const INTERNAL: i64 = -32_603;
/// The key of the only request for input of a call that waits here.
const KEY: &str = "input";

/// How the answer to one request is written.
pub(super) struct AnswerWriter {
    shared: SharedState,
    id: JsonText,
    /// The client's progress token. Without it no progress is sent.
    token: Option<JsonText>,
    /// The progress that was sent last: it has to grow.
    progress: f64,
    /// What a request state of this request is bound to.
    bound: StateBinding,
    version: Version,
    takes_events: bool,
    keep_alive: Duration,
    /// What its answer is reserved from.
    answers: AnswerBudget,
}

/// The members of a request that are of no subject: its progress token, and the input with which it
/// is sent again.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestParts<'a> {
    #[serde(borrow)]
    input_responses: Option<&'a RawValue>,
    request_state: Option<String>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<PartsMeta<'a>>,
}

#[derive(Deserialize, Default)]
struct PartsMeta<'a> {
    #[serde(borrow, rename = "progressToken")]
    progress_token: Option<&'a RawValue>,
    #[serde(borrow)]
    traceparent: Option<&'a RawValue>,
    #[serde(borrow)]
    tracestate: Option<&'a RawValue>,
    #[serde(borrow)]
    baggage: Option<&'a RawValue>,
    #[serde(borrow, rename = "callsheet/definition_version")]
    definition_version: Option<&'a RawValue>,
}

impl RequestParts<'_> {
    /// The version of the tool's definition that a call was made for, if the request names one.
    pub(super) fn definition_version(&self) -> Result<Option<NamedVersion>, Refusal> {
        let Some(named) = self.meta.as_ref().and_then(|meta| meta.definition_version) else {
            return Ok(None);
        };
        let version = serde_json::from_str::<&str>(named.get())
            .ok()
            .and_then(|text| text.parse().ok());
        let refused = || {
            Refusal::invalid(format!(
                "`{DEFINITION_VERSION}` in `_meta` is not a version: {NotAVersion}"
            ))
        };
        version.ok_or_else(refused).map(Some)
    }
}

impl PartsMeta<'_> {
    /// The trace that the request belongs to, if it says so (MCP 2026-07-28, `_meta`).
    fn trace(&self) -> Option<TraceContext> {
        let text = |value: Option<&RawValue>| serde_json::from_str::<String>(value?.get()).ok();
        let state = text(self.tracestate);
        let baggage = text(self.baggage);
        TraceContext::parse(
            &text(self.traceparent)?,
            state.as_deref(),
            baggage.as_deref(),
        )
    }
}

/// The work of a request that was begun.
enum BegunCall {
    /// By this request.
    Now(OngoingCall),
    /// By an earlier one, with the input that this one gives.
    Before(Box<OngoingCall>, Option<JsonText>),
}

/// What comes next of a request.
enum CallTurn {
    Event(CallerEvent),
    Done(LongRequestEnd),
    /// The client cancelled it and gets no answer.
    Cancelled,
    /// Nothing for a while.
    Silent,
}

/// Whether this may be a progress token: a text or a number.
fn is_token(token: &str) -> bool {
    matches!(token.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

/// The input in the answers to the requests for it.
fn input(responses: Option<&str>) -> Option<JsonText> {
    #[derive(Deserialize)]
    struct Responses<'a> {
        #[serde(borrow)]
        input: Option<&'a RawValue>,
    }
    let sent = serde_json::from_str::<Responses<'_>>(responses?).ok()?;
    sent.input.map(|input| JsonText::known(input.get()))
}

/// Begins the work of a request. It runs in a task of its own, since it may outlive the request.
fn start<W, F>(
    context: &McpContext,
    client: McpClient,
    trace: Option<TraceContext>,
    id: &JsonText,
    work: W,
) -> Result<OngoingCall, Refusal>
where
    W: FnOnce(Arc<McpCaller>) -> F,
    F: Future<Output = LongRequestEnd> + Send + 'static,
{
    let shared = &context.shared;
    let (events, received) = mpsc::channel(EVENTS);
    let (on_drop, cancelled, running) = match &client {
        McpClient::Modern(_) => {
            let (trigger, cancelled) = StopTrigger::new();
            (Some(CancelOnDrop(trigger)), cancelled, None)
        }
        McpClient::Legacy(session) => {
            let running = session.begin(id.get())?;
            (None, running.cancelled.clone(), Some(running))
        }
    };
    let by_notification = running.as_ref().map(|running| running.cancelled.clone());
    let caller = Arc::new(McpCaller {
        client,
        trace,
        has_stream: context.takes_events(),
        events,
        cancelled,
        clock: shared.clock,
        input_timeout: shared.config.borrow().mcp_face.input_timeout,
    });
    let work = work(caller);
    let end = shared.tasks.spawn(async move {
        let end = work.await;
        // The id is free again.
        drop(running);
        end
    });
    Ok(OngoingCall {
        events: received,
        end,
        _on_drop: on_drop,
        cancelled: by_notification,
        input: None,
    })
}

impl AnswerWriter {
    /// For a request whose state is bound so.
    pub(super) fn new(
        context: &McpContext,
        id: &JsonText,
        parts: &RequestParts<'_>,
        bound: StateBinding,
    ) -> Self {
        let token = parts.meta.as_ref().and_then(|meta| meta.progress_token);
        Self {
            shared: Arc::clone(&context.shared),
            id: id.clone(),
            token: token
                .filter(|token| is_token(token.get()))
                .map(|token| JsonText::known(token.get())),
            progress: f64::NEG_INFINITY,
            bound,
            version: context.version,
            takes_events: context.takes_events(),
            keep_alive: context.shared.events.keep_alive(),
            answers: context.bytes.answers().clone(),
        }
    }

    /// Answers a request: with the rest of work that was held for input, or with what `work` does
    /// with the input. The future holds no part of the request.
    pub(super) fn run<W, F>(
        self,
        context: &McpContext,
        client: McpClient,
        parts: RequestParts<'_>,
        work: W,
    ) -> impl Future<Output = Result<Answer, Refusal>> + use<W, F>
    where
        W: FnOnce(Arc<McpCaller>, Option<InputRound>) -> F,
        F: Future<Output = LongRequestEnd> + Send + 'static,
    {
        let begun = self.begin(context, client, parts, work);
        async move {
            match begun? {
                BegunCall::Now(call) => self.answer(call).await,
                BegunCall::Before(held, input) => self.go_on(*held, input).await,
            }
        }
    }

    /// Begins the work of a request, or finds the work that was held for its input.
    fn begin<W, F>(
        &self,
        context: &McpContext,
        client: McpClient,
        parts: RequestParts<'_>,
        work: W,
    ) -> Result<BegunCall, Refusal>
    where
        W: FnOnce(Arc<McpCaller>, Option<InputRound>) -> F,
        F: Future<Output = LongRequestEnd> + Send + 'static,
    {
        let responses = parts
            .input_responses
            .map(RawValue::get)
            .filter(|responses| responses.starts_with('{'));
        let state = match parts.request_state.filter(|_| client.is_modern()) {
            Some(state) => {
                let sealer = &self.shared.mcp.sealer;
                let now = self.shared.clock.wall();
                Some(RequestState::open(&state, sealer, &self.bound, now)?)
            }
            None => None,
        };
        let resumed = match state {
            Some(RequestState::Held(handle)) => {
                let held = self.shared.mcp.held.take(&handle);
                let held = held.ok_or_else(|| {
                    Refusal::invalid(
                        "the call does not wait any more; make it without `requestState`",
                    )
                })?;
                return Ok(BegunCall::Before(Box::new(held), input(responses)));
            }
            Some(RequestState::Server(state)) => Some((responses.unwrap_or("{}"), state)),
            None => responses
                .filter(|_| client.is_modern())
                .map(|responses| (responses, None)),
        };
        let resumed = resumed.map(|(responses, state)| InputRound {
            by_key: JsonText::known(responses),
            state,
        });
        let trace = parts.meta.as_ref().and_then(PartsMeta::trace);
        start(context, client, trace, &self.id, |caller| {
            work(caller, resumed)
        })
        .map(BegunCall::Now)
    }

    async fn turn(&self, call: &mut OngoingCall) -> CallTurn {
        let cancelled = call.cancelled.clone();
        let by_client = async {
            match cancelled {
                Some(cancelled) => cancelled.wait().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = by_client => CallTurn::Cancelled,
            Some(event) = call.events.recv() => CallTurn::Event(event),
            end = &mut call.end => CallTurn::Done(end.unwrap_or_else(|_| {
                let why = "the call failed unexpectedly; the daemon's log says why";
                Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, INTERNAL, why))
            })),
            () = self.shared.clock.sleep(self.keep_alive) => CallTurn::Silent,
        }
    }

    /// Waits until it is known whether the answer is a document or a stream.
    async fn answer(mut self, mut call: OngoingCall) -> Result<Answer, Refusal> {
        loop {
            match self.turn(&mut call).await {
                CallTurn::Done(Ok(LongRequestResult::Complete(result))) => {
                    return Ok(Answer::Result(result.into()));
                }
                CallTurn::Done(end) => {
                    let tasks = self.shared.tasks.clone();
                    let bytes = bytes_of(&end);
                    let ended =
                        tasks.work_on_body(BodyStep::Further, bytes, move || self.ended(end));
                    return Box::pin(ended)
                        .await
                        .map(|result| Answer::Result(result.into()));
                }
                CallTurn::Cancelled => {
                    return Ok(Answer::Stream(sse::response(empty(), self.version)));
                }
                CallTurn::Event(CallerEvent::Input(input)) => {
                    call.input = Some(input);
                    match self.hold(call) {
                        Ok(result) => return Ok(Answer::Result(result.into())),
                        Err(going) => call = *going,
                    }
                }
                CallTurn::Event(event) => {
                    if let Some(first) = self.message(event).filter(|_| self.takes_events) {
                        return Ok(Answer::Stream(self.stream(call, first)));
                    }
                }
                CallTurn::Silent if self.takes_events => {
                    return Ok(Answer::Stream(self.stream(call, sse::ALIVE)));
                }
                CallTurn::Silent => {}
            }
        }
    }

    /// The answer as a stream that begins so.
    fn stream(self, call: OngoingCall, first: Bytes) -> Response {
        let version = self.version;
        sse::response(unfold(Some((self, call, Some(first))), next), version)
    }

    /// The call goes on with the input that its client sent.
    async fn go_on(
        self,
        mut held: OngoingCall,
        result: Option<JsonText>,
    ) -> Result<Answer, Refusal> {
        let Some(result) = result else {
            // Without the answer it is requested again.
            return match self.hold(held) {
                Ok(result) => Ok(Answer::Result(result.into())),
                Err(going) => Box::pin(self.answer(*going)).await,
            };
        };
        if let Some(input) = held.input.take() {
            input.give(result);
        }
        self.answer(held).await
    }

    /// Keeps a call that waits for input, and gives what its client gets. If that is not possible,
    /// the input is refused and the call goes on.
    fn hold(&self, mut call: OngoingCall) -> Result<String, Box<OngoingCall>> {
        let Some(input) = call.input.take() else {
            return Err(Box::new(call));
        };
        let face = &self.shared.mcp;
        let clock = self.shared.clock;
        let limit = self.shared.config.borrow().mcp_face.input_timeout;
        let handle = HeldCalls::handle();
        let state =
            RequestState::Held(handle.clone()).seal(&face.sealer, &self.bound, clock.wall(), limit);
        let Some(state) = state else {
            return Err(Box::new(call));
        };
        let method = input.wanted.method;
        let requests = format!(
            r#"{{"{KEY}":{{"method":"{method}","params":{}}}}}"#,
            input.wanted.params.get()
        );
        call.input = Some(input);
        let tasks = &self.shared.tasks;
        let stop = self.shared.stop.clone();
        face.held
            .hold(handle, call, limit, clock, tasks, stop)
            .map_err(|call| {
                Box::new(OngoingCall {
                    input: None,
                    ..*call
                })
            })?;
        Ok(input_required(&requests, Some(&state)))
    }

    /// The text of a result, with the state of an MCP server sealed.
    fn ended(&self, end: LongRequestEnd) -> Result<String, Refusal> {
        match end? {
            LongRequestResult::Complete(result) => Ok(result),
            LongRequestResult::NeedsInput(InputRound { by_key, state }) => {
                let now = self.shared.clock.wall();
                let state = RequestState::Server(state).seal(
                    &self.shared.mcp.sealer,
                    &self.bound,
                    now,
                    LIFETIME,
                );
                Ok(input_required(by_key.get(), state.as_deref()))
            }
        }
    }

    /// The last event of a stream. A long one takes a while.
    fn last(&self, end: LongRequestEnd) -> Bytes {
        let last = match self.ended(end) {
            Ok(result) => envelope(self.id.get(), result.as_bytes()),
            Err(refusal) => error_envelope(Some(self.id.get()), &refusal.error),
        };
        last_event(self.id.get(), &last, &self.answers)
    }

    /// The event of a stream for what a tool sent; `None` if the client does not want it.
    fn message(&mut self, event_of_call: CallerEvent) -> Option<Bytes> {
        match event_of_call {
            CallerEvent::Progress(progress) => {
                let token = self.token.as_ref()?;
                if progress.done <= self.progress {
                    return None;
                }
                self.progress = progress.done;
                Some(event(
                    progress_notification(&progress, token.get()).as_bytes(),
                ))
            }
            CallerEvent::Log(line) => Some(event(log_notification(&line).as_bytes())),
            CallerEvent::Request(message) => Some(message),
            // Dropping it declines.
            CallerEvent::Input(_) => None,
        }
    }
}

type CallStream = Option<(AnswerWriter, OngoingCall, Option<Bytes>)>;

async fn next(stream: CallStream) -> Option<(Result<Bytes, Infallible>, CallStream)> {
    let (mut answer, mut call, first) = stream?;
    if let Some(first) = first {
        return Some((Ok(first), Some((answer, call, None))));
    }
    loop {
        match answer.turn(&mut call).await {
            CallTurn::Done(end) => {
                let tasks = answer.shared.tasks.clone();
                let bytes = bytes_of(&end);
                let last = tasks.work_on_body(BodyStep::Further, bytes, move || answer.last(end));
                return Some((Ok(Box::pin(last).await), None));
            }
            CallTurn::Cancelled => return None,
            CallTurn::Event(CallerEvent::Input(input)) => {
                call.input = Some(input);
                match answer.hold(call) {
                    Ok(result) => {
                        let message = event(&envelope(answer.id.get(), result.as_bytes()));
                        return Some((Ok(message), None));
                    }
                    Err(going) => call = *going,
                }
            }
            CallTurn::Event(sent) => {
                if let Some(message) = answer.message(sent) {
                    return Some((Ok(message), Some((answer, call, None))));
                }
            }
            CallTurn::Silent => return Some((Ok(sse::ALIVE), Some((answer, call, None)))),
        }
    }
}
