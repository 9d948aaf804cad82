//! A socket of which can be asked whether the other side has closed it.
//!
//! What happens to a socket is told by the runtime between the runs of its tasks, so a connection that nobody waited for may have been
//! closed a while before its reader hears of it.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// See the module.
#[derive(Debug)]
pub(super) struct Line {
    stream: TcpStream,
    look: Look,
}

/// Asks that the next read sees for itself whether the other side is there.
#[derive(Debug, Clone, Default)]
pub(super) struct Look(Arc<AtomicBool>);

impl Look {
    /// The next read is to look at the socket itself.
    pub(super) fn anew(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Line {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, look: Look::default() }
    }

    /// What makes its next read look at the socket itself.
    pub(super) fn look(&self) -> Look {
        self.look.clone()
    }

    /// Whether nothing can come any more.
    fn is_over(&self) -> bool {
        match SockRef::from(&self.stream).peek(&mut [MaybeUninit::uninit()]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        }
    }
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // Plain loads are cheaper than exchanges, and nobody else asks.
        if self.look.0.load(Ordering::Acquire) {
            self.look.0.store(false, Ordering::Release);
            if self.is_over() {
                // Nothing was put into the buffer: the end.
                return Poll::Ready(Ok(()));
            }
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
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
