//! One connection from its first byte to its end. Knows nothing of routes, and accepts none.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::Service;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use super::Io;
use super::aside::Gate;
use super::idle::{Idle, noting};
use super::stuck::Impatient;
use super::version::{self, Spoken};
use crate::runtime::{Clock, Stop, Tasks};

/// How connections are spoken on, and how long their clients may take.
#[derive(Debug)]
pub(super) struct Manner {
    http1: http1::Builder,
    http2: http2::Builder<TaskExecutor>,
    head_timeout: Duration,
    read_timeout: Duration,
    clock: Clock,
}

/// Runs the tasks that HTTP/2 streams need where all tasks run.
#[derive(Debug, Clone)]
struct TaskExecutor(Tasks);

impl<F> Executor<F> for TaskExecutor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.0.spawn(future);
    }
}

/// What ends a connection, beside its client and its own end.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    /// The answer under way is the last one.
    pub(super) stop: Stop,
    /// Fired when its client is not wanted any more, and at the deadline of stopping.
    pub(super) unwanted: Stop,
    /// Fired at the latter only.
    pub(super) cut: Stop,
    /// How many were cut off by it.
    pub(super) cut_off: Arc<AtomicUsize>,
}

impl Manner {
    /// A client may take `head_timeout` for the head of a request and keep a connection as long without any, and may take nothing of its
    /// answer for `read_timeout`.
    pub(super) fn new(head_timeout: Duration, read_timeout: Duration, clock: Clock, tasks: Tasks) -> Self {
        let mut http1 = http1::Builder::new();
        // Clients that take too long for a head are found out beside the connection: hyper's own timer is made and registered anew for
        // each request, which was a tenth of what a small answer costs.
        http1.header_read_timeout(None);
        let mut http2 = http2::Builder::new(TaskExecutor(tasks));
        // A peer that vanished without a word is found out by pings.
        http2.timer(TokioTimer::new()).keep_alive_interval(head_timeout).keep_alive_timeout(head_timeout);
        Self { http1, http2, head_timeout, read_timeout, clock }
    }

    /// Answers the client with `service` until the connection ends, or has to.
    pub(super) async fn keep<S, B>(self: Arc<Self>, stream: TcpStream, service: S, ends: Ends)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let idle = Arc::new(Idle::new(self.clock));
        let mut due = pin!(ends.due(Arc::clone(&idle), self.head_timeout));
        let mut spoken = pin!(self.speak(stream, service, idle, &ends.stop));
        let mut gate = Gate::default();
        poll_fn(|context| {
            // Dropping the connection ends it, whatever its client does.
            if gate.poll(due.as_mut(), context).is_ready() { Poll::Ready(()) } else { spoken.as_mut().poll(context) }
        })
        .await;
    }

    async fn speak<S, B>(&self, mut stream: TcpStream, service: S, idle: Arc<Idle>, stop: &Stop)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Send + Sync + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let told = tokio::select! {
            biased;
            () = stop.wait() => return,
            told = version::told(&mut stream) => told,
        };
        let (spoken, ahead) = match told {
            Ok(told) => told,
            Err(error) => return tracing::debug!(error = %error, "connection ended before a request"),
        };
        let service = noting(service, Arc::clone(&idle));
        let io: Io = TokioIo::new(Impatient::new(stream, ahead, idle, self.read_timeout));
        let ended = match spoken {
            Spoken::Http1 => {
                let connection = self.http1.serve_connection(io, service).with_upgrades();
                until_over(connection, stop, http1::UpgradeableConnection::graceful_shutdown).await
            }
            Spoken::Http2 => {
                let connection = self.http2.serve_connection(io, service);
                // In a box: the other version is the usual one.
                Box::pin(until_over(connection, stop, http2::Connection::graceful_shutdown)).await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error = %error, "connection ended early");
        }
    }
}

/// Drives the connection to its end. From `stop` on it only finishes what is under way, as `finish` tells it.
async fn until_over<C>(connection: C, stop: &Stop, finish: impl FnOnce(Pin<&mut C>)) -> hyper::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let (mut connection, mut stop) = (pin!(connection), pin!(stop.wait()));
    let (mut gate, mut finish) = (Gate::default(), Some(finish));
    poll_fn(|context| {
        if finish.is_some()
            && gate.poll(stop.as_mut(), context).is_ready()
            && let Some(finish) = finish.take()
        {
            finish(connection.as_mut());
        }
        connection.as_mut().poll(context)
    })
    .await
}

impl Ends {
    /// Completes when the client takes too long for a request, when it is unwanted, and when it is cut off.
    fn due(&self, idle: Arc<Idle>, head_timeout: Duration) -> impl Future<Output = ()> + use<> {
        let Self { unwanted, cut, cut_off, .. } = self.clone();
        async move {
            tokio::select! {
                biased;
                () = unwanted.wait() => {
                    if cut.is_stopped() {
                        cut_off.fetch_add(1, Ordering::Relaxed);
                    } else {
                        tracing::debug!("connection closed: its client does not read");
                    }
                }
                () = idle.for_so_long(head_timeout) => tracing::debug!("connection closed: no request came"),
            }
        }
    }
}
