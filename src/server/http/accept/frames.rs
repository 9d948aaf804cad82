//! Ends connections of HTTP/2 whose clients send frames without end that request no work: `PING`,
//! `SETTINGS`, `WINDOW_UPDATE`, `PRIORITY`, `RST_STREAM`, unknown ones, and `DATA` without a byte
//! (RFC 9113 section 10.5). hyper answers and counts each of them, and has no limit on most.
//!
//! Each connection has an allowance of such frames. It grows with time, with each request, and with
//! the bytes of answers, whose readers have to send `WINDOW_UPDATE`.
//!
//! Connections of WebSocket have the same allowance for pings, and once more for their bytes: the
//! library reads parts of a message without end, if they are empty, and never returns them.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::connections::ConnectionLoad;
use crate::runtime::Clock;

/// What a client of HTTP/2 sends first (RFC 9113 section 3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of the head of a frame.
const HEAD_BYTES: usize = 9;
/// The types of frames that bring work, which other limits hold for.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
/// The type of the frames that cancel a request.
const RST_STREAM: u8 = 3;

/// Frames without work that a client may send at once.
const FRAMES_AT_ONCE: i64 = 1_000;
/// Those that it may send each second beyond that.
const FRAMES_EACH_SECOND: i64 = 100;
/// Those that come with one request: its priority, its windows, its reset.
const FRAMES_EACH_REQUEST: i64 = 16;
/// For so many bytes that it was sent it may send one. Clients open a window again after some 4 KiB
/// or more, both that of the stream and that of the connection.
const ANSWER_BYTES_EACH_FRAME: usize = 512;
/// The most that can be saved up: a client may take some MiB before it opens its windows again.
const FRAMES_SAVED: i64 = 100_000;
/// So many bytes of a WebSocket count as one frame: its client may send 64 KB at once and 6.4 KB
/// each second beyond that. It has to answer pings only.
const SOCKET_BYTES_EACH_FRAME: usize = 64;
/// After so many bytes of a WebSocket, other connections have their turn. The smallest frame has 6
/// bytes.
const SOCKET_TURN_BYTES: usize = 4 * 1024;

/// A stream whose frames are counted.
pub(super) struct MeteredStream<S> {
    stream: S,
    meter: FrameMeter,
    clock: Clock,
    load: ConnectionLoad,
    /// Bytes of a WebSocket since others had their turn.
    turn_bytes: usize,
}

impl<S> MeteredStream<S> {
    /// Counts the frames that come by this stream. `load` says when it carries a WebSocket.
    pub(super) fn new(stream: S, clock: Clock, load: ConnectionLoad) -> Self {
        Self {
            stream,
            meter: FrameMeter::new(clock.now()),
            clock,
            load,
            turn_bytes: 0,
        }
    }
}

/// Where in the bytes of a client the meter is.
#[derive(Debug)]
enum MeterPosition {
    /// So many bytes of the preface have come.
    Preface(usize),
    /// In the head of a frame, of which so many bytes have come.
    Head([u8; HEAD_BYTES], usize),
    /// In the content of a frame, of which so many bytes are left.
    Content(usize),
    /// It is not HTTP/2.
    Other,
    /// In a WebSocket, of which so many bytes are not yet counted.
    Socket(usize),
}

/// How many frames without work the client of one connection may still send.
#[derive(Debug)]
pub(in crate::server) struct FrameAllowance {
    left: i64,
    refilled: Instant,
}

impl FrameAllowance {
    /// That of a new connection.
    pub(in crate::server) fn new(now: Instant) -> Self {
        Self {
            left: FRAMES_AT_ONCE,
            refilled: now,
        }
    }

    /// Counts one frame without work. Returns whether it was allowed.
    pub(in crate::server) fn take(&mut self, now: Instant) -> bool {
        self.left -= 1;
        self.is_kept(now)
    }

    /// Whether no more frames came than are allowed. Time allows more.
    fn is_kept(&mut self, now: Instant) -> bool {
        self.left >= 0 || self.refill(now)
    }

    fn allow(&mut self, frames: i64) {
        self.left = self.left.saturating_add(frames).min(FRAMES_SAVED);
    }

    /// Adds what time has allowed. Returns whether that is enough.
    fn refill(&mut self, now: Instant) -> bool {
        let seconds = i64::try_from((now - self.refilled).as_secs()).unwrap_or(i64::MAX);
        if seconds > 0 {
            self.refilled = now;
            self.allow(
                seconds
                    .saturating_mul(FRAMES_EACH_SECOND)
                    .min(FRAMES_AT_ONCE),
            );
        }
        self.left >= 0
    }
}

/// Counts frames.
#[derive(Debug)]
struct FrameMeter {
    position: MeterPosition,
    allowance: FrameAllowance,
    /// Bytes that were sent and not yet counted.
    sent: usize,
}

impl FrameMeter {
    fn new(now: Instant) -> Self {
        Self {
            position: MeterPosition::Preface(0),
            allowance: FrameAllowance::new(now),
            sent: 0,
        }
    }

    /// Takes what the client sent. Returns whether it stays within its allowance.
    fn received(&mut self, mut bytes: &[u8], now: Instant) -> bool {
        while let Some(first) = bytes.first() {
            match &mut self.position {
                MeterPosition::Other => return true,
                MeterPosition::Preface(matched) => {
                    let is_next = PREFACE[*matched] == *first;
                    *matched += 1;
                    let is_whole = *matched == PREFACE.len();
                    bytes = &bytes[1..];
                    if !is_next {
                        self.position = MeterPosition::Other;
                    } else if is_whole {
                        self.position = MeterPosition::Head([0; HEAD_BYTES], 0);
                    }
                }
                MeterPosition::Head(head, filled) => {
                    let taken = bytes.len().min(HEAD_BYTES - *filled);
                    head[*filled..*filled + taken].copy_from_slice(&bytes[..taken]);
                    *filled += taken;
                    bytes = &bytes[taken..];
                    if *filled == HEAD_BYTES {
                        let head = *head;
                        let length = usize::from(head[0]) << 16
                            | usize::from(head[1]) << 8
                            | usize::from(head[2]);
                        self.count(head[3], length);
                        self.position = MeterPosition::Content(length);
                    }
                }
                MeterPosition::Socket(uncounted) => {
                    *uncounted += bytes.len();
                    let frames = *uncounted / SOCKET_BYTES_EACH_FRAME;
                    *uncounted %= SOCKET_BYTES_EACH_FRAME;
                    self.allowance.left -= i64::try_from(frames).unwrap_or(FRAMES_SAVED);
                    bytes = &[];
                }
                MeterPosition::Content(left) => {
                    let taken = bytes.len().min(*left);
                    *left -= taken;
                    bytes = &bytes[taken..];
                }
            }
            if matches!(self.position, MeterPosition::Content(0)) {
                self.position = MeterPosition::Head([0; HEAD_BYTES], 0);
            }
        }
        self.allowance.is_kept(now)
    }

    /// Counts one frame.
    fn count(&mut self, kind: u8, length: usize) {
        match kind {
            HEADERS => self.allowance.allow(FRAMES_EACH_REQUEST),
            CONTINUATION => {}
            DATA if length > 0 => {}
            // A request that is cancelled brings no work that other limits hold for.
            RST_STREAM => self.allowance.left -= FRAMES_EACH_REQUEST + 1,
            _ => self.allowance.left -= 1,
        }
    }

    /// Counts bytes from here on, with an allowance of their own.
    fn becomes_socket(&mut self, now: Instant) {
        *self = Self {
            position: MeterPosition::Socket(0),
            ..Self::new(now)
        };
    }

    /// Takes how many bytes the client was sent. Events of a WebSocket have no answer.
    fn sent(&mut self, bytes: usize) {
        if matches!(self.position, MeterPosition::Socket(_)) {
            return;
        }
        self.sent += bytes;
        let frames = self.sent / ANSWER_BYTES_EACH_FRAME;
        self.sent %= ANSWER_BYTES_EACH_FRAME;
        self.allowance
            .allow(i64::try_from(frames).unwrap_or(FRAMES_SAVED));
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.turn_bytes >= SOCKET_TURN_BYTES {
            self.turn_bytes = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let is_other = matches!(self.meter.position, MeterPosition::Other);
        if is_other && !self.load.is_socket() {
            return Poll::Ready(Ok(()));
        }
        let now = self.clock.now();
        if is_other {
            self.meter.becomes_socket(now);
        }
        let received = &buffer.filled()[before..];
        if matches!(self.meter.position, MeterPosition::Socket(_)) {
            self.turn_bytes += received.len();
        }
        let is_within = self.meter.received(received, now);
        Poll::Ready(if is_within {
            Ok(())
        } else {
            Err(io::Error::other("too many frames that request no work"))
        })
    }
}

impl<S: AsyncWrite + Unpin> MeteredStream<S> {
    /// Counts what was written.
    fn written(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &written {
            self.meter.sent(*bytes);
        }
        written
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written)
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
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.written(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn frames(kind: u8, content: &[u8], count: usize) -> Vec<u8> {
        let length = u8::try_from(content.len()).unwrap();
        [&[0, 0, length, kind, 0, 0, 0, 0, 0][..], content]
            .concat()
            .repeat(count)
    }

    fn meter(now: Instant) -> FrameMeter {
        let mut meter = FrameMeter::new(now);
        assert!(meter.received(PREFACE, now));
        meter
    }

    #[test]
    fn frames_without_work_use_up_an_allowance_however_they_are_cut_into_parts() {
        let now = Clock::system().now();
        let at_once = usize::try_from(FRAMES_AT_ONCE).unwrap();
        for (kind, content) in [
            (6, &b"12345678"[..]),
            (4, b"\0\x04\0\0\xff\xff"),
            (8, b"\0\0\0\x01"),
            (DATA, b""),
        ] {
            for part in [1, 7, 4_096] {
                let mut meter = meter(now);
                let allowed = frames(kind, content, at_once);
                assert!(
                    allowed.chunks(part).all(|part| meter.received(part, now)),
                    "{kind} in parts of {part}"
                );
                assert!(
                    !meter.received(&frames(kind, content, 1), now),
                    "one more of {kind}"
                );
            }
        }
    }

    #[test]
    fn work_time_and_answers_allow_more() {
        let now = Clock::system().now();
        let at_once = usize::try_from(FRAMES_AT_ONCE).unwrap();
        let pings = frames(6, b"12345678", at_once);
        let mut spent = meter(now);
        assert!(spent.received(&pings, now));
        assert!(
            spent.received(&frames(DATA, b"x", 10 * at_once), now),
            "bodies are limited by their windows"
        );
        assert!(spent.received(&frames(HEADERS, b"", 1), now));
        assert!(
            spent.received(&frames(6, b"12345678", 16), now),
            "a request allows as many"
        );
        spent.sent(600 * ANSWER_BYTES_EACH_FRAME);
        assert!(
            spent.received(&frames(8, b"\0\0\0\x01", 600), now),
            "what was sent allows as many"
        );
        assert!(!spent.received(&frames(6, b"12345678", 1), now));
        assert!(
            spent.received(&frames(6, b"12345678", 50), now + Duration::from_secs(1)),
            "and so does time"
        );
        assert!(!spent.received(&pings, now + Duration::from_secs(1)));
    }

    #[test]
    fn bytes_of_a_websocket_use_up_an_allowance_that_only_time_renews() {
        let now = Clock::system().now();
        let at_once = usize::try_from(FRAMES_AT_ONCE).unwrap() * SOCKET_BYTES_EACH_FRAME;
        let empty = [0x80, 0x80, 0, 0, 0, 0].repeat(at_once / 6);
        let mut meter = FrameMeter::new(now);
        assert!(meter.received(b"GET / HTTP/1.1\r\n", now));
        meter.sent(1024 * 1024);
        meter.becomes_socket(now);
        assert!(empty.chunks(7).all(|part| meter.received(part, now)));
        meter.sent(1024 * 1024);
        assert!(!meter.received(&[0; 2 * SOCKET_BYTES_EACH_FRAME], now));
        assert!(meter.received(
            &[0; 90 * SOCKET_BYTES_EACH_FRAME],
            now + Duration::from_secs(1)
        ));
        assert!(!meter.received(&empty, now + Duration::from_secs(2)));
    }

    #[test]
    fn other_protocols_are_not_counted() {
        let now = Clock::system().now();
        let mut meter = FrameMeter::new(now);
        assert!(meter.received(b"PRI * HTTP/1.1\r\n", now));
        assert!(meter.received(&frames(6, b"12345678", 100_000), now));
    }
}
