//! A socket that a client has to read from: when what is written to it does not move for too long, writing fails.
//!
//! Without that, a client that asks and never reads keeps its connection, and the answer that waits for it, for ever.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::idle::Idle;
use super::version::Ahead;

/// See the module. Any progress starts the time anew, so that a slow reader is served.
pub(super) struct Impatient {
    stream: TcpStream,
    /// Was read before, and comes first.
    ahead: Ahead,
    idle: Arc<Idle>,
    patience: Duration,
    /// Runs while something waits to be written.
    waited: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Impatient {
    /// Waits so long at most for the other side to take something, and notes in `idle` when that is waited for.
    pub(super) fn new(stream: TcpStream, ahead: Ahead, idle: Arc<Idle>, patience: Duration) -> Self {
        Self { stream, ahead, idle, patience, waited: None }
    }

    fn write(
        &mut self,
        context: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(written) = write(Pin::new(&mut self.stream), context) {
            if self.waited.take().is_some() {
                self.idle.taken();
            }
            return Poll::Ready(written);
        }
        let (idle, patience) = (&self.idle, self.patience);
        let waited = self.waited.get_or_insert_with(|| {
            idle.stuck();
            let clock = idle.clock();
            Box::pin(async move { clock.sleep(patience).await })
        });
        ready!(waited.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

impl AsyncRead for Impatient {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let ahead = self.ahead.take(buffer.remaining());
        buffer.put_slice(ahead);
        let fresh = ahead.is_empty();
        // What was read ahead is no reason to wait for more.
        match Pin::new(&mut self.stream).poll_read(context, buffer) {
            Poll::Pending if !fresh => Poll::Ready(Ok(())),
            read => read,
        }
    }
}

impl AsyncWrite for Impatient {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write(context, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(context, |stream, context| stream.poll_write_vectored(context, pieces))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
