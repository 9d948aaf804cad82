//! Accepts, limits and closes connections. Knows no routes.
//!
//! hyper-util detects HTTP/1 and HTTP/2 and speaks both. This module adds a limit on the number of
//! connections, of which the longest resting one gives way to a new one, a limit on requests under
//! way over all of them and on the head of each, a deadline for clients that send no request or
//! read no answer (also of one stream), an end for HTTP/2 connections that stay without a request
//! or flood the daemon with frames, a bound on what the client of a WebSocket sends, and a graceful
//! stop with a deadline.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::OptionFuture;
use futures_util::stream::{self, Stream};
use futures_util::{FutureExt as _, StreamExt as _};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio_io_timeout::TimeoutStream;

use crate::runtime::{Clock, Stop, StopTrigger, Tasks};

mod connections;
mod frames;
mod listener;

use connections::OpenRequest;
pub(in crate::server) use connections::{ClientWait, ConnectionLoad, ConnectionTable};
pub(in crate::server) use frames::FrameAllowance;
use frames::MeteredStream;
pub(in crate::server) use listener::Listener;

/// One of so many connections is in the reserve, of which the first is closed for a new one.
const RESERVE_OF: usize = 64;

/// The shortest and the longest wait after the system refused to accept (`EMFILE`, `ENOBUFS`). A
/// retry without a wait would only use CPU.
const ACCEPT_BACKOFF: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// The largest head of a request. Other servers read as much (Node.js), so clients get along with
/// it. hyper may read as much again beyond it, and keeps the buffer while a request is under way.
const HTTP1_HEAD_BYTES: usize = 16 * 1024;
/// The same for HTTP/2, where the fields are counted unpacked.
const HTTP2_HEAD_BYTES: u32 = 16 * 1024;
/// How long a connection that gives way may take to write the answers to requests that waited for a
/// change. They are small, so only a client that does not read them needs longer.
const GIVE_WAY_TIMEOUT: Duration = Duration::from_millis(100);

/// Requests under way at once on one connection of HTTP/2: enough for a page and an agent's calls
/// side by side.
const HTTP2_STREAMS: u32 = 32;
/// What a client of HTTP/2 may send of a body before it is read.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The same for all bodies of a connection. These bytes are held by hyper and not reserved.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 128 * 1024;
/// Answers of HTTP/2 are given to hyper in parts of so many bytes, the size of a frame, so that
/// each part that a client takes is seen.
const HTTP2_PART_BYTES: usize = 16 * 1024;
/// The same for HTTP/1, which asks for the next part when little of the others is unsent: a
/// download is no connection that rests.
const HTTP1_PART_BYTES: usize = 64 * 1024;

/// Marks a request that comes while too many are under way on all connections: it has to be
/// refused at once.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct TooManyRequests;

tokio::task_local! {
    /// What a stream of HTTP/2 waits for; each has a task of its own. Not set for HTTP/1.
    static STREAM: StreamProgress;
}

/// Whether a stream waits until its client takes a part of the answer.
#[derive(Default)]
struct StreamProgress {
    /// Parts that were given to hyper.
    parts: Cell<u64>,
    /// Whether hyper has not come for another one.
    waits: Cell<bool>,
}

/// The limits of connections.
#[derive(Debug, Clone, Copy)]
pub(in crate::server) struct ConnectionLimits {
    /// Connections at once. For a further one the longest resting one is closed; if none rests, the
    /// first of a small reserve. If other parts of the process have all files open that the system
    /// allows, accepting waits until files are free.
    pub(in crate::server) connections: usize,
    /// One of so many connections is in that reserve.
    pub(in crate::server) reserve_of: usize,
    /// How long a client may take for the head of a request, and may keep a connection without any
    /// request. 30 s is what proxies and client pools expect.
    pub(in crate::server) head_timeout: Duration,
    /// How long a client may read no byte of its answer. The same as for a head: a client on a bad
    /// network may still be there after that time.
    pub(in crate::server) read_timeout: Duration,
    /// How long an HTTP/2 connection may stay open without a request under way. Its client shows
    /// that it lives by answering pings, and would keep its slot for ever. One of HTTP/1 ends after
    /// `head_timeout`.
    pub(in crate::server) idle_timeout: Duration,
    /// How long answers that are being sent may take after the stop.
    pub(in crate::server) stop_timeout: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            connections: 4_096,
            reserve_of: RESERVE_OF,
            head_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(300),
            stop_timeout: Duration::from_secs(10),
        }
    }
}

/// How many connections are open. Clones share the number.
#[derive(Debug, Clone, Default)]
pub struct OpenConnections(watch::Sender<usize>);

/// One open connection; dropping it counts it as closed.
struct CountedConnection(watch::Sender<usize>);

impl OpenConnections {
    /// Follows the number. It also signals a connection that was opened and closed meanwhile.
    pub fn subscribe(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }

    fn count(&self) -> CountedConnection {
        self.0.send_modify(|open| *open += 1);
        CountedConnection(self.0.clone())
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

/// Spawns the tasks of HTTP/2 streams among the daemon's own tasks, and ends those whose client
/// takes no part of the answer for long. hyper has no such deadline: for a client that answers
/// pings it would hold the answer for ever. Dropping the task resets the stream.
#[derive(Debug, Clone)]
struct TaskExecutor {
    tasks: Tasks,
    clock: Clock,
    longest: Duration,
}

impl<F> Executor<F> for TaskExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        let clock = self.clock;
        let longest = self.longest;
        self.tasks
            .spawn(STREAM.scope(StreamProgress::default(), async move {
                let mut future = pin!(future);
                let mut deadline = pin!(OptionFuture::from(None));
                let mut waits_for = None;
                poll_fn(|context| {
                    if future.as_mut().poll(context).is_ready() {
                        return Poll::Ready(());
                    }
                    let part =
                        STREAM.with(|progress| progress.waits.get().then(|| progress.parts.get()));
                    if part != waits_for {
                        waits_for = part;
                        deadline.set(OptionFuture::from(part.map(|_| clock.sleep(longest))));
                    }
                    match deadline.as_mut().poll(context) {
                        Poll::Ready(Some(())) => {
                            tracing::debug!("stream reset: its client takes no part of the answer");
                            Poll::Ready(())
                        }
                        Poll::Ready(None) | Poll::Pending => Poll::Pending,
                    }
                })
                .await;
            }));
    }
}

/// Accepts connections until `stop`, and answers each with the service that `service` makes for it.
/// Returns how many connections had to be cut. `service` also gets what is under way on its
/// connection, and a trigger that cuts it at once, even while the client is sending or reading.
pub(in crate::server) async fn serve<L, M, S, B>(
    listener: L,
    service: M,
    limits: ConnectionLimits,
    clock: Clock,
    tasks: &Tasks,
    open: &OpenConnections,
    stop: &Stop,
) -> usize
where
    L: Listener,
    M: Fn(&L::Stream, StopTrigger, &ConnectionLoad) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (cut_trigger, cut) = StopTrigger::new();
    let builder = builder(limits, clock, tasks);
    let table = ConnectionTable::new(limits.connections, limits.reserve_of, clock);
    while let Some((stream, slot)) = next_connection(&listener, &table, clock, stop).await {
        let (disconnect, disconnected) = cut.child();
        let admitted = table.admit(slot, disconnect.clone());
        let service = service(&stream, disconnect, &admitted.load);
        let ends = ConnectionEnds {
            disconnected,
            stop: stop.clone(),
        };
        let load = admitted.load.clone();
        let connection =
            serve_connection(builder.clone(), stream, service, limits, clock, load, ends);
        let counted = open.count();
        tasks.spawn(async move {
            connection.await;
            drop(counted);
            // The slot is held until the connection ends.
            drop(admitted);
        });
    }
    // The port is free from here on: another process may bind it while this one finishes.
    drop(listener);
    drain(limits, clock, &cut_trigger, &table).await
}

fn builder(limits: ConnectionLimits, clock: Clock, tasks: &Tasks) -> auto::Builder<TaskExecutor> {
    let executor = TaskExecutor {
        tasks: tasks.clone(),
        clock,
        longest: limits.read_timeout,
    };
    let mut builder = auto::Builder::new(executor);
    let mut http1 = builder.http1();
    http1
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(HTTP1_HEAD_BYTES);
    // Pings detect a peer that disappeared without closing the connection.
    let pings = limits.head_timeout;
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(pings)
        .keep_alive_timeout(pings);
    let mut http2 = builder.http2();
    http2.max_concurrent_streams(HTTP2_STREAMS);
    http2.max_header_list_size(HTTP2_HEAD_BYTES);
    http2.initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES);
    http2.initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES);
    http2.max_send_buf_size(HTTP2_PART_BYTES);
    builder
}

/// What ends a connection from outside.
struct ConnectionEnds {
    /// It is cut at once: its client does not read, or it gives way.
    disconnected: Stop,
    /// The daemon stops, and requests that were begun are finished.
    stop: Stop,
}

/// Answers one client until its connection ends or has to end. After `stop` only requests that have
/// begun are finished.
async fn serve_connection<I, S, B>(
    builder: auto::Builder<TaskExecutor>,
    stream: I,
    service: S,
    limits: ConnectionLimits,
    clock: Clock,
    load: ConnectionLoad,
    ends: ConnectionEnds,
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut stream = TimeoutStream::new(MeteredStream::new(stream, clock, load.clone()));
    stream.set_write_timeout(Some(limits.read_timeout));
    let requested = Notify::new();
    let service = service_fn(|request| {
        requested.notify_one();
        let begun = load
            .begin()
            .map(|under_way| (service.call(marked(request, &under_way)), under_way));
        async move {
            // The connection is being closed for another one, and the request was not begun.
            let Some((answer, request)) = begun else {
                return std::future::pending().await;
            };
            answer.await.map(|response| {
                response.map(|body| OpenBody {
                    body,
                    rest: Bytes::new(),
                    request,
                })
            })
        }
    });
    let mut connection =
        pin!(builder.serve_connection_with_upgrades(TokioIo::new(Box::pin(stream)), service));
    let mut first_request = pin!(tokio::time::timeout(
        limits.head_timeout,
        requested.notified()
    ));
    let mut has_to_end = pin!(has_to_end(&load, limits, clock));
    let mut cut = pin!(OptionFuture::from(None));
    let mut may_be_silent = true;
    let mut stopping = false;
    let ended = loop {
        tokio::select! {
            biased;
            () = ends.disconnected.wait() => return tracing::debug!("connection closed: its client does not read, or it gives way"),
            // hyper has no deadline of its own until it knows the version of HTTP.
            first = &mut first_request, if may_be_silent => match first {
                Ok(()) => may_be_silent = false,
                Err(_) => return tracing::debug!("connection closed: no request came"),
            },
            () = ends.stop.wait(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            Some(longest) = has_to_end.next() => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
                // A client that does not answer to that is cut.
                cut.set(OptionFuture::from(Some(clock.sleep(longest))));
            }
            Some(()) = &mut cut => return tracing::debug!("connection closed: it had no request for long, or it gives way"),
            ended = &mut connection => break ended,
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "connection ended early");
    }
}

/// The request, marked if it is one too many.
fn marked(mut request: Request<Incoming>, under_way: &OpenRequest) -> Request<Incoming> {
    if under_way.is_too_many {
        request.extensions_mut().insert(TooManyRequests);
    }
    request
}

/// Gives how long the connection may take to end: once there was no request for long, and once it
/// gives way to another one. The latter also while it ends already, since then a new connection
/// waits for its slot.
fn has_to_end(
    load: &ConnectionLoad,
    limits: ConnectionLimits,
    clock: Clock,
) -> impl Stream<Item = Duration> + use<> {
    let is_idle = is_idle_for_long(load.clone(), limits, clock).map(move |()| limits.read_timeout);
    let is_idle = is_idle.into_stream().take_until(load.gives_way());
    let gives_way = load.gives_way().map(|()| GIVE_WAY_TIMEOUT);
    stream::select(is_idle, gives_way.into_stream())
}

/// Waits until there was no request for long. It looks when that may be, and is not woken by each
/// request.
async fn is_idle_for_long(load: ConnectionLoad, limits: ConnectionLimits, clock: Clock) {
    let mut since = clock.now();
    while clock.now() < since + limits.idle_timeout {
        clock.sleep_until(since + limits.idle_timeout).await;
        since = load.idle_since().unwrap_or_else(|| clock.now());
    }
}

/// The body of an answer; its request is under way as long as it is there.
struct OpenBody<B> {
    body: B,
    /// What follows the part that was given to hyper last.
    rest: Bytes,
    /// It rests while the client takes a part.
    request: OpenRequest,
}

impl<B: Body<Data = Bytes> + Unpin> Body for OpenBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.request.rests(false);
        let part = self.as_mut().poll_part(context);
        self.request.rests(matches!(part, Poll::Ready(Some(Ok(_)))));
        part
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // hyper reads it before the first part only.
        self.body.size_hint()
    }
}

impl<B: Body<Data = Bytes> + Unpin> OpenBody<B> {
    /// The next part of the answer.
    fn poll_part(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let of_stream = STREAM
            .try_with(|progress| progress.waits.set(false))
            .is_ok();
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let most = if of_stream {
            HTTP2_PART_BYTES
        } else {
            HTTP1_PART_BYTES
        };
        let most = self.rest.len().min(most);
        let part = self.rest.split_to(most);
        // It is set for HTTP/2 only.
        let _ = STREAM.try_with(|progress| {
            progress.parts.set(progress.parts.get() + 1);
            progress.waits.set(true);
        });
        Poll::Ready(Some(Ok(Frame::data(part))))
    }
}

/// The next connection with its slot; `None` after the stop.
pub(in crate::server) async fn next_connection<L: Listener>(
    listener: &L,
    table: &ConnectionTable,
    clock: Clock,
    stop: &Stop,
) -> Option<(L::Stream, OwnedSemaphorePermit)> {
    let accepted = async {
        // A connection gives way only to one that is there.
        let stream = accept(listener, clock).await;
        Some((stream, table.slot().await?))
    };
    tokio::select! {
        biased;
        () = stop.wait() => None,
        accepted = accepted => accepted,
    }
}

async fn accept<L: Listener>(listener: &L, clock: Clock) -> L::Stream {
    let [mut wait, longest] = ACCEPT_BACKOFF;
    loop {
        match listener.next().await {
            Ok(stream) => return stream,
            Err(error) if is_client_gone(&error) => {}
            Err(error) => {
                tracing::warn!(error = %error, wait_ms = wait.as_millis(), "cannot accept connections");
                clock.sleep(wait).await;
                wait = longest.min(wait * 2);
            }
        }
    }
}

/// Whether the error means that a client left before it was accepted, and not that this process has
/// a problem.
fn is_client_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}

/// Lets answers finish that are being sent, and cuts the rest at the deadline. Returns how many
/// connections were cut.
async fn drain(
    limits: ConnectionLimits,
    clock: Clock,
    cut: &StopTrigger,
    table: &ConnectionTable,
) -> usize {
    let deadline = clock.now() + limits.stop_timeout;
    tokio::select! {
        biased;
        () = table.ended() => 0,
        () = clock.sleep_until(deadline) => {
            let open = table.len();
            cut.stop();
            table.ended().await;
            open
        }
    }
}

#[cfg(test)]
mod tests;
