//! A connection over plain HTTP that is driven by whoever waits for what comes of it.
//!
//! It has no task: the one that sends a request moves the connection on, and then whoever reads the answer's body. So no other task is woken,
//! and dropping either closes the connection at once. Nothing here connects, and nothing decides whether a request may be sent again.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;

use super::line::{Line, Look};

/// What a request is made of that a wire sends. It is at hand as a whole, so that sending it never fails by itself.
pub(super) trait Sent:
    Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static
{
}

impl<B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send + 'static> Sent for B {}

/// A connection until it ends.
#[derive(Debug)]
pub(super) struct Wire<B: Sent> {
    connection: Option<Connection<TokioIo<Line>, B>>,
    sender: SendRequest<B>,
    bell: Arc<Bell>,
    /// The bell, as the connection knows it.
    waker: Waker,
    look: Look,
}

/// No head of an answer came.
#[derive(Debug)]
pub(super) enum Lost<B> {
    /// The connection had ended before the first byte of the request was written: nobody has seen it.
    Unsent(Box<Request<B>>, hyper::Error),
    /// The connection broke.
    Broken(hyper::Error),
}

/// The body of an answer, which moves its connection on while it is read.
#[derive(Debug)]
pub(super) struct Driven<B: Sent, H: Home<B>> {
    body: Incoming,
    wire: Option<Box<Wire<B>>>,
    home: H,
}

/// Where a connection goes whose answer was read to its end.
pub(super) trait Home<B: Sent>: Unpin {
    /// Takes a connection that can take another request.
    fn take_back(&self, wire: Box<Wire<B>>);
}

/// Nobody keeps it: it is closed.
#[derive(Debug)]
pub(super) struct Nowhere;

impl<B: Sent> Home<B> for Nowhere {
    fn take_back(&self, _: Box<Wire<B>>) {}
}

/// Wakes the task that waits for a connection, and only while it does: while that task is moving the connection on, the two ends of hyper's
/// channels wake each other, for which the task would be run once more each time.
#[derive(Debug, Default)]
struct Bell {
    task: AtomicWaker,
    state: AtomicU8,
}

/// Somebody waits.
const AWAITED: u8 = 1;
/// It was rung while nobody did.
const RUNG: u8 = 2;

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.fetch_or(RUNG, Ordering::AcqRel) & AWAITED != 0 {
            self.task.wake();
        }
    }
}

impl Bell {
    /// Everything is looked at now, so what was told before says nothing.
    fn hush(&self) {
        self.state.swap(0, Ordering::AcqRel);
    }

    /// Nothing came of that: the task of `context` waits. What was told meanwhile it hears at once.
    fn listen(&self, context: &Context<'_>) {
        self.task.register(context.waker());
        if self.state.swap(AWAITED, Ordering::AcqRel) & RUNG != 0 {
            context.waker().wake_by_ref();
        }
    }
}

impl<B: Sent + Unpin> Wire<B> {
    /// Begins on a connection that stands.
    pub(super) async fn new(line: Line) -> Result<Box<Self>, hyper::Error> {
        let look = line.look();
        let (sender, connection) = handshake(TokioIo::new(line)).await?;
        let bell = Arc::<Bell>::default();
        let waker = Waker::from(Arc::clone(&bell));
        Ok(Box::new(Self { connection: Some(connection), sender, bell, waker, look }))
    }

    /// Sends a request and waits for the head of its answer. Dropping that closes the connection with it.
    pub(super) async fn send<H: Home<B>>(
        mut self: Box<Self>,
        request: Request<B>,
        home: H,
    ) -> Result<Response<Driven<B, H>>, Lost<B>> {
        let answer = self.answer(request).await?;
        Ok(answer.map(|body| Driven { body, wire: Some(self), home }))
    }

    async fn answer(&mut self, request: Request<B>) -> Result<Response<Incoming>, Lost<B>> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (connection, bell, waker) = (&mut self.connection, &*self.bell, &self.waker);
        let answered = poll_fn(|context| {
            bell.hush();
            let mut own = Context::from_waker(waker);
            advance(connection, &mut own);
            let answered = answer.as_mut().poll(&mut own);
            if answered.is_pending() {
                bell.listen(context);
            }
            answered
        });
        answered.await.map_err(|mut error| match error.take_message() {
            // hyper gives back only what it has not begun to write.
            Some(request) => Lost::Unsent(Box::new(request), error.into_error()),
            None => Lost::Broken(error.into_error()),
        })
    }

    /// Whether another request can be sent now, as far as this side knows.
    pub(super) fn is_free(&mut self) -> bool {
        self.bell.hush();
        advance(&mut self.connection, &mut Context::from_waker(&self.waker));
        self.connection.is_some() && self.sender.is_ready()
    }

    /// The same after it was left alone for a while: what the other side has done since is looked for, for nobody was told of it.
    pub(super) fn is_still_free(&mut self) -> bool {
        self.look.anew();
        self.is_free()
    }
}

/// Moves a connection on. How it ends, the one who waits for the answer is told by the answer.
fn advance<B: Sent>(connection: &mut Option<Connection<TokioIo<Line>, B>>, context: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|open| Pin::new(open).poll(context).is_ready());
    if ended {
        *connection = None;
    }
}

impl<B: Sent + Unpin, H: Home<B>> Body for Driven<B, H> {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(wire) = &mut this.wire else { return Poll::Ready(None) };
        wire.bell.hush();
        let mut own = Context::from_waker(&wire.waker);
        // What is there already comes first; asking for more lets the connection read on.
        let mut frame = Pin::new(&mut this.body).poll_frame(&mut own);
        if frame.is_pending() {
            advance(&mut wire.connection, &mut own);
            frame = Pin::new(&mut this.body).poll_frame(&mut own);
        }
        match &frame {
            Poll::Pending => wire.bell.listen(context),
            Poll::Ready(None) => {
                if let Some(wire) = this.wire.take_if(|wire| wire.is_free()) {
                    this.home.take_back(wire);
                }
                this.wire = None;
            }
            Poll::Ready(Some(_)) => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
