//! Accepts, limits and closes connections. Knows no routes.
//!
//! hyper-util detects HTTP/1 and HTTP/2 and speaks both. This module adds a limit on the number of
//! connections, a deadline for clients that send no request or read no answer (also of one stream), an end for HTTP/2
//! connections that stay without a request, and a graceful stop with a deadline.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::OptionFuture;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::Executor;
use hyper::service::{Service, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio_io_timeout::TimeoutStream;

use crate::runtime::{Clock, Stop, StopTrigger, Tasks};

/// The shortest and the longest wait after the system refused to accept (`EMFILE`, `ENOBUFS`). A
/// retry without a wait would only use CPU.
const ACCEPT_BACKOFF: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Requests under way at once on one connection of HTTP/2: enough for a page and an agent's calls
/// side by side.
const HTTP2_STREAMS: u32 = 32;
/// What a client of HTTP/2 may send of a body before it is read.
const HTTP2_STREAM_WINDOW_BYTES: u32 = 64 * 1024;
/// The same for all bodies of a connection. These bytes are held by hyper and not reserved.
const HTTP2_CONNECTION_WINDOW_BYTES: u32 = 128 * 1024;
/// Answers of HTTP/2 are given to hyper in parts of so many bytes, the size of a frame, so that each
/// part that a client takes is seen.
const HTTP2_PART_BYTES: usize = 16 * 1024;

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
    /// Connections at once; further ones wait in the queue of the kernel. If the system allows
    /// fewer open files, that limit is reached first, and accepting waits until files are free.
    pub(in crate::server) connections: usize,
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
/// takes no part of the answer for long. hyper has no such deadline: for a client that answers pings
/// it would hold the answer for ever. Dropping the task resets the stream.
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
        self.tasks.spawn(STREAM.scope(StreamProgress::default(), async move {
            let mut future = pin!(future);
            let mut deadline = pin!(OptionFuture::from(None));
            let mut waits_for = None;
            poll_fn(|context| {
                if future.as_mut().poll(context).is_ready() {
                    return Poll::Ready(());
                }
                let part = STREAM.with(|progress| progress.waits.get().then(|| progress.parts.get()));
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
/// Returns how many connections had to be cut. `service` also gets a trigger that cuts its
/// connection at once, even while the client is sending or reading.
pub(in crate::server) async fn serve<M, S, B>(
    listener: TcpListener,
    service: M,
    limits: ConnectionLimits,
    clock: Clock,
    tasks: &Tasks,
    (open, stop): (&OpenConnections, &Stop),
) -> usize
where
    M: Fn(&TcpStream, StopTrigger) -> S,
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (cut_trigger, cut) = StopTrigger::new();
    let builder = builder(limits, clock, tasks);
    let slots = Arc::new(Semaphore::new(limits.connections));
    while let Some((stream, slot)) = next_connection(&listener, &slots, clock, stop).await {
        let (disconnect, disconnected) = cut.child();
        let service = service(&stream, disconnect);
        let ends = (disconnected, stop.clone());
        let connection = serve_connection(builder.clone(), stream, service, limits, clock, ends);
        let counted = open.count();
        tasks.spawn(async move {
            connection.await;
            drop(counted);
            // The slot is held until the connection ends.
            drop(slot);
        });
    }
    // The port is free from here on: another process may bind it while this one finishes.
    drop(listener);
    drain(limits, clock, &cut_trigger, &slots).await
}

fn builder(limits: ConnectionLimits, clock: Clock, tasks: &Tasks) -> auto::Builder<TaskExecutor> {
    let executor = TaskExecutor { tasks: tasks.clone(), clock, longest: limits.read_timeout };
    let mut builder = auto::Builder::new(executor);
    builder.http1().timer(TokioTimer::new()).header_read_timeout(limits.head_timeout);
    // Pings detect a peer that disappeared without closing the connection.
    let pings = limits.head_timeout;
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(pings).keep_alive_timeout(pings);
    let mut http2 = builder.http2();
    http2.max_concurrent_streams(HTTP2_STREAMS);
    http2.initial_stream_window_size(HTTP2_STREAM_WINDOW_BYTES);
    http2.initial_connection_window_size(HTTP2_CONNECTION_WINDOW_BYTES);
    http2.max_send_buf_size(HTTP2_PART_BYTES);
    builder
}

/// Answers one client until its connection ends or has to end. After `stop` only requests that have
/// begun are finished.
async fn serve_connection<S, B>(
    builder: auto::Builder<TaskExecutor>,
    stream: TcpStream,
    service: S,
    limits: ConnectionLimits,
    clock: Clock,
    (disconnected, stop): (Stop, Stop),
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(limits.read_timeout));
    let (requested, open) = (Notify::new(), watch::Sender::new(0_usize));
    let service = service_fn(|request| {
        requested.notify_one();
        let under_way = OpenRequest::begin(&open);
        let answer = service.call(request);
        async move {
            answer.await.map(|response| response.map(|body| OpenBody { body, rest: Bytes::new(), _request: under_way }))
        }
    });
    let mut connection = pin!(builder.serve_connection_with_upgrades(TokioIo::new(Box::pin(stream)), service));
    let mut first_request = pin!(tokio::time::timeout(limits.head_timeout, requested.notified()));
    let mut idle = pin!(without_requests(open.subscribe(), limits.idle_timeout, clock));
    let mut cut = pin!(OptionFuture::from(None));
    let (mut may_be_silent, mut stopping) = (true, false);
    let ended = loop {
        tokio::select! {
            biased;
            () = disconnected.wait() => return tracing::debug!("connection closed: its client does not read"),
            // hyper has no deadline of its own until it knows the version of HTTP.
            first = &mut first_request, if may_be_silent => match first {
                Ok(()) => may_be_silent = false,
                Err(_) => return tracing::debug!("connection closed: no request came"),
            },
            () = stop.wait(), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            () = &mut idle, if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
                // A client that does not answer to that is cut.
                cut.set(OptionFuture::from(Some(clock.sleep(limits.read_timeout))));
            }
            Some(()) = &mut cut => return tracing::debug!("connection closed: it had no request for long"),
            ended = &mut connection => break ended,
        }
    };
    if let Err(error) = ended {
        tracing::debug!(error = %error, "connection ended early");
    }
}

/// Waits until there was no request under way for so long.
async fn without_requests(mut open: watch::Receiver<usize>, longest: Duration, clock: Clock) {
    loop {
        let ended = open.wait_for(|count| *count == 0).await.is_err();
        tokio::select! {
            () = clock.sleep(longest) => return,
            // The sender lives as long as the connection.
            changed = open.changed() => if changed.is_err() || ended { return },
        }
    }
}

/// A request under way, until its answer was sent or dropped.
struct OpenRequest(watch::Sender<usize>);

impl OpenRequest {
    fn begin(open: &watch::Sender<usize>) -> Self {
        open.send_modify(|count| *count += 1);
        Self(open.clone())
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// The body of an answer; its request is under way as long as it is there.
struct OpenBody<B> {
    body: B,
    /// What follows the part that was given to hyper last.
    rest: Bytes,
    _request: OpenRequest,
}

impl<B: Body<Data = Bytes> + Unpin> Body for OpenBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let of_stream = STREAM.try_with(|progress| progress.waits.set(false)).is_ok();
        if self.rest.is_empty() {
            match Pin::new(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) if of_stream => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                other => return other,
            }
        }
        let most = self.rest.len().min(HTTP2_PART_BYTES);
        let part = self.rest.split_to(most);
        // It is set, because `rest` is used for HTTP/2 only.
        let _ = STREAM.try_with(|progress| {
            progress.parts.set(progress.parts.get() + 1);
            progress.waits.set(true);
        });
        Poll::Ready(Some(Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        // hyper reads it before the first part only.
        self.body.size_hint()
    }
}

/// The next connection with its slot; `None` after the stop.
async fn next_connection(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
    clock: Clock,
    stop: &Stop,
) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let accepted = async {
        // The semaphore is never closed.
        let slot = Arc::clone(slots).acquire_owned().await.ok()?;
        Some((accept(listener, clock).await, slot))
    };
    tokio::select! {
        biased;
        () = stop.wait() => None,
        accepted = accepted => accepted,
    }
}

async fn accept(listener: &TcpListener, clock: Clock) -> TcpStream {
    let [mut wait, longest] = ACCEPT_BACKOFF;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Answers are written whole; waiting to fill a packet only delays them. If this
                // fails, only that delay remains.
                let _ = stream.set_nodelay(true);
                return stream;
            }
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
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Lets answers finish that are being sent, and cuts the rest at the deadline. Returns how many
/// connections were cut.
async fn drain(limits: ConnectionLimits, clock: Clock, cut: &StopTrigger, slots: &Semaphore) -> usize {
    let deadline = clock.now() + limits.stop_timeout;
    // Every connection returns its slot when it ends; if all slots are free, no connection still
    // writes.
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    tokio::select! {
        biased;
        _ = slots.acquire_many(all) => 0,
        () = clock.sleep_until(deadline) => {
            let open = limits.connections - slots.available_permits();
            cut.stop();
            let _ = slots.acquire_many(all).await;
            open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use hyper::service::service_fn;
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::JoinHandle;

    /// A server that answers `/` at once, and `/slow` after a `release`. `entered` counts requests.
    struct Fake {
        address: SocketAddr,
        release: Arc<Notify>,
        entered: watch::Receiver<usize>,
        stop: StopTrigger,
        ended: JoinHandle<usize>,
    }

    async fn fake(limits: ConnectionLimits) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (release, (count, entered)) = (Arc::new(Notify::new()), watch::channel(0));
        let (stop, stopping) = StopTrigger::new();
        let (count, notify, tasks) = (Arc::new(count), Arc::clone(&release), Tasks::new());
        let service = move |_: &TcpStream, _| {
            let (count, notify) = (Arc::clone(&count), Arc::clone(&notify));
            service_fn(move |request: Request<Incoming>| {
                let (count, notify) = (Arc::clone(&count), Arc::clone(&notify));
                async move {
                    count.send_modify(|count| *count += 1);
                    if request.uri().path() == "/slow" {
                        notify.notified().await;
                    }
                    // More than the buffers of two sockets hold.
                    let body = if request.uri().path() == "/large" { vec![b'.'; 32 << 20] } else { b"done".to_vec() };
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(body))))
                }
            })
        };
        let served = tasks.clone();
        let ended = tasks.spawn(async move {
            {
                let ways = (&OpenConnections::default(), &stopping);
                serve(listener, service, limits, Clock::system(), &served, ways).await
            }
        });
        Fake { address, release, entered, stop, ended }
    }

    impl Fake {
        async fn connect_and_get(&self, path: &str) -> TcpStream {
            let mut stream = TcpStream::connect(self.address).await.unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            stream
        }

        /// Waits until so many requests have come in.
        async fn entered(&mut self, count: usize) {
            self.entered.wait_for(|entered| *entered >= count).await.unwrap();
        }
    }

    async fn read_until(stream: &mut TcpStream, end: &str) -> String {
        let mut text = Vec::new();
        while !text.ends_with(end.as_bytes()) {
            match stream.read_u8().await {
                Ok(byte) => text.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(text).unwrap()
    }

    #[tokio::test]
    async fn an_idle_connection_does_not_hold_up_the_stop() {
        let server = fake(ConnectionLimits::default()).await;
        let mut idle = server.connect_and_get("/").await;
        assert!(read_until(&mut idle, "done").await.starts_with("HTTP/1.1 200"));
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
        assert!(TcpStream::connect(server.address).await.is_err(), "still listening");
    }

    #[tokio::test]
    async fn an_answer_under_way_is_finished_after_the_stop() {
        let mut server = fake(ConnectionLimits::default()).await;
        let mut slow = server.connect_and_get("/slow").await;
        server.entered(1).await;
        server.stop.stop();
        server.release.notify_one();
        assert!(read_until(&mut slow, "done").await.ends_with("done"));
        assert_eq!(server.ended.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn what_does_not_end_in_time_is_cut_and_counted() {
        let mut server =
            fake(ConnectionLimits { stop_timeout: Duration::from_millis(20), ..ConnectionLimits::default() }).await;
        let mut slow = [server.connect_and_get("/slow").await, server.connect_and_get("/slow").await];
        server.entered(2).await;
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 2);
        assert_eq!(read_until(&mut slow[0], "done").await, "");
    }

    #[tokio::test]
    async fn a_client_that_asks_nothing_is_let_go() {
        let server =
            fake(ConnectionLimits { head_timeout: Duration::from_millis(20), ..ConnectionLimits::default() }).await;
        // The second holds hyper in doubt about the version of HTTP.
        for beginning in ["", "P", "GET / HTTP/1.1\r\n"] {
            let mut silent = TcpStream::connect(server.address).await.unwrap();
            silent.write_all(beginning.as_bytes()).await.unwrap();
            let mut rest = Vec::new();
            // Ends only when the server closes.
            let _ = silent.read_to_end(&mut rest).await;
        }
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_loses_its_slot() {
        let read_timeout = Duration::from_millis(50);
        let mut server = fake(ConnectionLimits { connections: 1, read_timeout, ..ConnectionLimits::default() }).await;
        let stuck = server.connect_and_get("/large").await;
        server.entered(1).await;
        // Only one connection is accepted, so this one is answered once the other one was cut.
        let mut second = server.connect_and_get("/").await;
        let answer = tokio::time::timeout(Duration::from_secs(30), read_until(&mut second, "done")).await;
        assert!(answer.expect("the slot is free").ends_with("done"));
        drop(stuck);
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn further_connections_wait_for_a_slot() {
        let mut server = fake(ConnectionLimits { connections: 1, ..ConnectionLimits::default() }).await;
        let mut first = server.connect_and_get("/slow").await;
        server.entered(1).await;
        let mut second = server.connect_and_get("/").await;
        // No signal says that a request is *not* accepted; without the limit it would be answered
        // well within this time.
        let early = tokio::time::timeout(Duration::from_millis(100), second.read_u8()).await;
        assert!(early.is_err(), "the second came in beside the first");
        server.release.notify_one();
        assert!(read_until(&mut first, "done").await.ends_with("done"));
        drop(first);
        assert!(read_until(&mut second, "done").await.ends_with("done"));
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
    }

    /// The preface of HTTP/2, settings, and a request for `/` or `/slow` (RFC 7541 appendix A has
    /// the indices of the fields).
    fn http2(path: &[u8]) -> Vec<u8> {
        let mut fields = b"\x82\x86\x41\x09localhost\x04".to_vec();
        fields.push(u8::try_from(path.len()).unwrap());
        fields.extend_from_slice(path);
        let head = [0, 0, u8::try_from(fields.len()).unwrap(), 1, 5, 0, 0, 0, 1];
        [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"[..], &head, &fields].concat()
    }

    /// Reads frames to the end of the connection and answers pings. Gives the types of the frames.
    async fn frames(stream: &mut TcpStream) -> Vec<u8> {
        let (mut types, mut head) = (Vec::new(), [0; 9]);
        while stream.read_exact(&mut head).await.is_ok() {
            let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
            if stream.read_exact(&mut payload).await.is_err() {
                break;
            }
            types.push(head[3]);
            if head[3] == 6 && head[4] == 0 {
                head[4] = 1;
                let _ = stream.write_all(&[&head[..], &payload].concat()).await;
            }
        }
        types
    }

    #[tokio::test]
    async fn an_http2_connection_without_requests_ends_and_one_with_a_slow_answer_stays() {
        let mut server =
            fake(ConnectionLimits { idle_timeout: Duration::from_millis(50), ..ConnectionLimits::default() }).await;
        let mut slow = TcpStream::connect(server.address).await.unwrap();
        slow.write_all(&http2(b"/slow")).await.unwrap();
        server.entered(1).await;
        let mut idle = TcpStream::connect(server.address).await.unwrap();
        idle.write_all(&http2(b"/")).await.unwrap();
        let seen = tokio::time::timeout(Duration::from_secs(30), frames(&mut idle)).await;
        let seen = seen.expect("it answers pings and is let go all the same");
        assert!(seen.contains(&0) && seen.contains(&7), "its answer and a GOAWAY: {seen:?}");
        server.release.notify_one();
        let seen = tokio::time::timeout(Duration::from_secs(30), frames(&mut slow)).await.unwrap();
        assert!(seen.contains(&0), "it was idle for no longer, and is answered: {seen:?}");
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_stream_whose_client_takes_no_part_of_the_answer_is_reset() {
        let read_timeout = Duration::from_millis(50);
        let mut server = fake(ConnectionLimits { read_timeout, ..ConnectionLimits::default() }).await;
        let mut stuck = TcpStream::connect(server.address).await.unwrap();
        let mut asked = http2(b"/large");
        // SETTINGS_INITIAL_WINDOW_SIZE (4) is 0, in place of the empty SETTINGS frame.
        asked.splice(24..33, *b"\0\0\x06\x04\0\0\0\0\0\0\x04\0\0\0\0");
        stuck.write_all(&asked).await.unwrap();
        server.entered(1).await;
        let mut head = [0; 9];
        let mut streams = None;
        let reset = async {
            while head[3] != 3 {
                stuck.read_exact(&mut head).await.unwrap();
                let mut payload = vec![0; usize::from(head[1]) << 8 | usize::from(head[2])];
                stuck.read_exact(&mut payload).await.unwrap();
                if head[3] == 4 && head[4] == 0 {
                    let all = payload.chunks(6).find(|setting| setting[..2] == [0, 3]);
                    streams = all.map(|setting| setting[5]);
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(30), reset).await.expect("RST_STREAM comes");
        assert_eq!(streams, Some(32), "so many requests at once");
        drop(stuck);
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
    }

    #[tokio::test]
    async fn http2_with_prior_knowledge_is_spoken() {
        let server = fake(ConnectionLimits::default()).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // RFC 9113 section 3.4: the preface, then a SETTINGS frame, here an empty one.
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let mut frame = [0; 9];
        stream.read_exact(&mut frame).await.unwrap();
        assert_eq!(frame[3], 4, "the server's first frame is SETTINGS");
        drop(stream);
        server.stop.stop();
        assert_eq!(server.ended.await.unwrap(), 0);
    }
}
