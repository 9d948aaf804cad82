//! Bounds what a server may send before the head of its answer.
//!
//! A server may send any number of interim responses (1xx) first (RFC 9110 section 15.2). hyper
//! reads those of HTTP/1 in one loop without a limit, so a server that sends them without end would
//! hold a thread of the daemon. They are counted below hyper, and the connection ends beyond the
//! limit. No byte is changed, and what comes with or after the head of the answer is not counted.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes of interim responses to one request. The shortest one has 16 bytes, so this also
/// bounds their number (4,096). A server that sends one each second during a long call sends less.
const MAX_INTERIM_BYTES: usize = 64 * 1024;
/// How an interim response begins. The minor version may be any.
const INTERIM_START: &[u8; 10] = b"HTTP/1.1 1";
/// Where the minor version stands in it.
const MINOR_VERSION: usize = 7;

/// A connection whose interim responses are counted.
pub(super) struct BoundedStream<S> {
    stream: S,
    meter: InterimMeter,
}

impl<S> BoundedStream<S> {
    /// Counts what comes by this connection.
    pub(super) fn new(stream: S) -> Self {
        Self {
            stream,
            meter: InterimMeter {
                position: ResponsePosition::Start(0),
                bytes: 0,
            },
        }
    }
}

/// Where in the bytes of a server the meter is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponsePosition {
    /// At the start of a response, of which so many bytes are those of an interim one.
    Start(usize),
    /// In the head of an interim response.
    Head {
        /// Whether its present line has no byte so far. An empty line ends the head.
        is_line_empty: bool,
    },
    /// Behind the start of the answer. What is no HTTP/1 is here, too.
    Answer,
}

impl ResponsePosition {
    /// Where it is after one more byte. It ends lines, and passes over those before a response, as
    /// hyper's parser does.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Start(0), b'\r' | b'\n') | (Self::Head { .. }, b'\r') => self,
            (Self::Start(matched), _)
                if byte == INTERIM_START[matched] || matched == MINOR_VERSION =>
            {
                let is_whole = matched + 1 == INTERIM_START.len();
                if is_whole {
                    Self::Head {
                        is_line_empty: false,
                    }
                } else {
                    Self::Start(matched + 1)
                }
            }
            (Self::Start(_) | Self::Answer, _) => Self::Answer,
            (
                Self::Head {
                    is_line_empty: true,
                },
                b'\n',
            ) => Self::Start(0),
            (Self::Head { .. }, b'\n') => Self::Head {
                is_line_empty: true,
            },
            (Self::Head { .. }, _) => Self::Head {
                is_line_empty: false,
            },
        }
    }
}

/// Counts bytes of interim responses.
#[derive(Debug)]
struct InterimMeter {
    position: ResponsePosition,
    /// Bytes since the last request that are not the answer's.
    bytes: usize,
}

impl InterimMeter {
    /// Takes what the server sent. Returns whether it stays within the limit.
    fn received(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            if self.position == ResponsePosition::Answer {
                break;
            }
            self.position = self.position.after(*byte);
            self.bytes += 1;
        }
        self.bytes <= MAX_INTERIM_BYTES
    }

    /// Something is sent. After an answer it is the next request.
    fn sent(&mut self) {
        if self.position == ResponsePosition::Answer {
            *self = Self {
                position: ResponsePosition::Start(0),
                bytes: 0,
            };
        }
    }
}

impl<S: Connection> Connection for BoundedStream<S> {
    fn connected(&self) -> Connected {
        self.stream.connected()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if self.meter.received(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        let exceeded = format!("more than {MAX_INTERIM_BYTES} bytes of interim responses (1xx)");
        Poll::Ready(Err(io::Error::other(exceeded)))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.meter.sent();
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.meter.sent();
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINTS: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n";

    fn meter() -> InterimMeter {
        BoundedStream::new(()).meter
    }

    #[test]
    fn interim_responses_are_counted_however_they_are_cut_and_their_lines_end() {
        for one in [
            HINTS,
            b"HTTP/1.0 100 \n\n",
            b"\r\n\nHTTP/1.1 199 x\nA: b\n\r\n",
        ] {
            for part in [1, 7, 4_096] {
                let mut meter = meter();
                let most = one.repeat(MAX_INTERIM_BYTES / one.len());
                assert!(most.chunks(part).all(|part| meter.received(part)), "{part}");
                assert!(!meter.received(one), "{part}");
            }
        }
    }

    #[test]
    fn answers_are_not_counted_and_each_request_may_have_as_many_interim_responses() {
        let mut meter = meter();
        let most = HINTS.repeat(MAX_INTERIM_BYTES / HINTS.len() - 1);
        for _ in 0..3 {
            meter.sent();
            assert!(meter.received(&most));
            // A request that goes on while these come is no next one.
            meter.sent();
            assert!(meter.received(b"HTTP/1.1 200 OK\r\n\r\n"));
            assert!(
                meter.received(&HINTS.repeat(10_000)),
                "a body that looks like them"
            );
        }
        let mut spent = self::meter();
        assert!(spent.received(&most));
        spent.sent();
        assert!(!spent.received(&most));
    }
}
