//! How long a client has kept its connection without a request.
//!
//! Whoever asks over HTTP/1 is answered one request after the other, so what a connection waits for is noted in passing: a request's head is
//! there, its answer's body is done, the client is slow to take it. The time is judged from outside, now and then. Connections of HTTP/2 tell
//! by pings that their client is there, so they are only ever idle until their first request. Nothing is ended here.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::TryFutureExt as _;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::{Service, service_fn};
use hyper::{Request, Response, Version};
use tokio::time::Instant;

use crate::runtime::Clock;

/// What is noted of one connection.
#[derive(Debug)]
pub(super) struct Idle {
    clock: Clock,
    begun: Instant,
    /// Since when nothing is owed to the client, in nanoseconds from the beginning.
    since: AtomicU64,
    /// An answer is made, or its body is.
    answering: AtomicBool,
    /// What was answered waits for the client to take it.
    stuck: AtomicBool,
    /// Idleness ends nothing here any more.
    pinged: AtomicBool,
}

impl Idle {
    /// A connection that begins now.
    pub(super) fn new(clock: Clock) -> Self {
        let [answering, stuck, pinged] = [false; 3].map(AtomicBool::new);
        Self { clock, begun: clock.now(), since: AtomicU64::new(0), answering, stuck, pinged }
    }

    /// Completes when the client has sent no request for so long.
    pub(super) async fn for_so_long(&self, patience: Duration) {
        let mut look = self.begun + patience;
        loop {
            self.clock.sleep_until(look).await;
            let now = self.clock.now();
            // Whatever is under way now ends later than now, so that it need not be looked at before this.
            look = self.since().unwrap_or(now) + patience;
            if look <= now {
                return;
            }
        }
    }

    /// Since when it is idle, if it is.
    fn since(&self) -> Option<Instant> {
        let busy = [&self.answering, &self.stuck, &self.pinged];
        if busy.iter().any(|busy| busy.load(Ordering::Acquire)) {
            return None;
        }
        Some(self.begun + Duration::from_nanos(self.since.load(Ordering::Acquire)))
    }

    /// The client is slow to take what was written.
    pub(super) fn stuck(&self) {
        self.stuck.store(true, Ordering::Release);
    }

    /// It took something after all.
    pub(super) fn taken(&self) {
        self.begins_now();
        self.stuck.store(false, Ordering::Release);
    }

    /// The clock it goes by.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    fn asked(&self, version: Version) {
        if version == Version::HTTP_2 {
            self.pinged.store(true, Ordering::Release);
        }
        self.answering.store(true, Ordering::Release);
    }

    fn answered(&self) {
        self.begins_now();
        self.answering.store(false, Ordering::Release);
    }

    fn begins_now(&self) {
        // Room for 580 years.
        let since = u64::try_from((self.clock.now() - self.begun).as_nanos()).unwrap_or(u64::MAX);
        self.since.store(since, Ordering::Release);
    }
}

/// `service`, noting when it is asked and when its answers are done.
pub(super) fn noting<S, B>(
    service: S,
    idle: Arc<Idle>,
) -> impl Service<Request<Incoming>, Response = Response<Answering<B>>, Error = Infallible, Future: Send>
where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible, Future: Send>,
    B: Body + Unpin,
{
    service_fn(move |request: Request<Incoming>| {
        idle.asked(request.version());
        let idle = Arc::clone(&idle);
        service.call(request).map_ok(move |answer| answer.map(|body| Answering { body, idle }))
    })
}

/// The body of an answer, which notes when it is done: nobody needs it any more.
#[derive(Debug)]
pub(super) struct Answering<B> {
    body: B,
    idle: Arc<Idle>,
}

impl<B: Body + Unpin> Body for Answering<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Answering<B> {
    fn drop(&mut self) {
        self.idle.answered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http_body_util::Full;

    const PATIENCE: Duration = Duration::from_secs(30);
    const SECOND: Duration = Duration::from_secs(1);

    fn answering(idle: &Arc<Idle>, version: Version) -> Answering<Full<Bytes>> {
        idle.asked(version);
        Answering { body: Full::default(), idle: Arc::clone(idle) }
    }

    /// How long it lasts from now on until the client has been idle for too long; nothing within an hour.
    async fn lasts(idle: &Idle) -> Option<Duration> {
        let clock = Clock::system();
        let begun = clock.now();
        tokio::time::timeout(3_600 * SECOND, idle.for_so_long(PATIENCE)).await.ok()?;
        Some(clock.now() - begun)
    }

    /// Timers fire at the next whole millisecond.
    fn assert_lasts(found: Option<Duration>, seconds: u32) {
        let found = found.expect("it ends");
        assert!(found >= seconds * SECOND && found < seconds * SECOND + SECOND / 100, "{found:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_has_the_same_time_for_the_first_request_and_for_each_further_one() {
        let idle = Arc::new(Idle::new(Clock::system()));
        assert_lasts(lasts(&idle).await, 30);
        let idle = Arc::new(Idle::new(Clock::system()));
        tokio::time::advance(29 * SECOND).await;
        drop(answering(&idle, Version::HTTP_11));
        tokio::time::advance(29 * SECOND).await;
        assert_lasts(lasts(&idle).await, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_ends_while_an_answer_is_made_or_waits_to_be_taken() {
        let idle = Arc::new(Idle::new(Clock::system()));
        let answer = answering(&idle, Version::HTTP_11);
        assert_eq!(lasts(&idle).await, None);
        idle.stuck();
        drop(answer);
        assert_eq!(lasts(&idle).await, None, "its last bytes are not taken yet");
        idle.taken();
        assert_lasts(lasts(&idle).await, 30);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_http2_tell_by_pings_that_their_client_is_there() {
        let idle = Arc::new(Idle::new(Clock::system()));
        drop(answering(&idle, Version::HTTP_2));
        assert_eq!(lasts(&idle).await, None);
    }
}
