//! Reading server-sent events (WHATWG HTML, section 9.2): one request whose answer does not end.
//!
//! It never reconnects and knows no kind of event. However much a server sends, no more of one
//! event is held than its limits allow; the rest of it is dropped, and the event says so.

use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::connections::request;
use super::credentials::Credentials;
use super::{Address, Upstream, failure, status};
use crate::runtime::tasks::BodyStep;
use crate::runtime::{Clock, Tasks};
use crate::transports::TransportError;
use crate::transports::mask::Mask;

/// Over how long the bytes of a stream are counted; comments and events that have no use count too.
const WINDOW: Duration = Duration::from_secs(60);

/// The longest id of an event that is kept, in bytes.
const MAX_ID: usize = 1024;
/// How long a stream that ended is not opened again: by default, at least and at most.
const REOPEN: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_millis(50),
    Duration::from_secs(60),
];

/// What one stream may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// Bytes of one event that are kept.
    pub max_event: usize,
    /// A stream without a byte for so long counts as broken; a comment is enough.
    pub silence: Duration,
    /// A stream that sends more bytes than this in a minute counts as broken.
    pub per_minute: usize,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEvent {
    /// Its kind; `message` where it names none.
    pub event: String,
    /// Its data. What is not UTF-8 is replaced.
    pub data: String,
    /// Whether some of it was dropped because it is too large.
    pub cut: bool,
}

/// Where a stream that ended can be continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResumePoint {
    /// The id of the last event (`Last-Event-ID`).
    pub(crate) id: String,
    /// How long the server wants to be left alone (`retry`).
    pub(crate) after: Duration,
}

/// A stream of events. Dropping it closes its connection.
#[derive(Debug)]
pub struct EventStream {
    address: String,
    body: Incoming,
    /// What came and was not read yet.
    rest: Bytes,
    parser: EventParser,
    silence: Duration,
    rate: StreamRate,
    /// Those of its origin, which are masked in events.
    credentials: Credentials,
    tasks: Tasks,
    /// The event that is being masked. It is kept, so that none is lost.
    masking: Option<MaskedEvent>,
}

/// An event that will be without secrets.
struct MaskedEvent(BoxFuture<'static, ServerEvent>);

impl std::fmt::Debug for MaskedEvent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MaskedEvent").finish_non_exhaustive()
    }
}

impl Upstream {
    /// Opens the stream of events at `path` below the base address. It takes no place among the
    /// requests under way, for it does not end.
    ///
    /// `None` when the answer is good and no stream of events. Fails as every request does.
    pub async fn events(
        &self,
        path: &str,
        limits: EventLimits,
    ) -> Result<Option<EventStream>, TransportError> {
        self.events_with(path, limits, HeaderMap::new()).await
    }

    /// The same with these headers besides those of every request.
    pub async fn events_with(
        &self,
        path: &str,
        limits: EventLimits,
        headers: HeaderMap,
    ) -> Result<Option<EventStream>, TransportError> {
        let address = self.address.join(path)?;
        let (connect, whole) = {
            let settings = self.client.settings.load();
            (settings.limits.connect, settings.limits.whole)
        };
        let opening = async {
            let mut attempt = self.attempt(&address, true).await?;
            loop {
                let mut all = attempt.headers().clone();
                all.extend(headers.clone());
                all.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
                let request = request(Method::GET, &address, &all, Bytes::new())?;
                let requested = self.client.now();
                // Without content coding: what is packed together arrives together.
                let answer = self.connections.call(request).await;
                let answer = answer.map_err(|error| failure::explain(&address, &error, connect))?;
                let (body, head) = self.received(answer, requested);
                if !attempt.is_refused(head.status, &head.headers).await? {
                    return Ok((body, head));
                }
            }
        };
        let timeout = |_| {
            Err(TransportError::Timeout {
                url: address.to_string(),
                limit: whole,
            })
        };
        let cover = |error: TransportError| error.masked(&self.credentials.mask());
        let opened = tokio::time::timeout(whole, opening)
            .await
            .unwrap_or_else(timeout);
        let (body, head) = opened.map_err(cover)?;
        if head.status != StatusCode::OK {
            return Err(cover(status::refused(address.to_string(), &head, b"")));
        }
        if !is_event_stream(&head.headers) {
            return Ok(None);
        }
        Ok(Some(EventStream::new(self, &address, body, limits)))
    }

    /// The present time, by the client's clock.
    pub(crate) fn now(&self) -> Instant {
        self.client.now()
    }
}

impl EventStream {
    /// The events in the body of an answer.
    pub(super) fn new(
        upstream: &Upstream,
        address: &Address,
        body: Incoming,
        limits: EventLimits,
    ) -> Self {
        Self {
            address: address.to_string(),
            body,
            rest: Bytes::new(),
            parser: EventParser::new(limits.max_event),
            silence: limits.silence,
            rate: StreamRate::new(limits.per_minute, upstream.client.clock),
            credentials: upstream.credentials.clone(),
            tasks: upstream.client.tasks.clone(),
            masking: None,
        }
    }

    /// The same stream with other limits; for one that was opened by a request with limits of its
    /// own.
    #[must_use]
    pub fn within(mut self, limits: EventLimits) -> Self {
        self.parser.most = limits.max_event;
        self.rate.per_minute = limits.per_minute;
        Self {
            silence: limits.silence,
            ..self
        }
    }

    /// The next event; `None` when the server ended the stream. Cancel-safe.
    ///
    /// Fails with [`TransportError::Broken`] for a server that sends more in a minute than its
    /// limit: reading on would cost a processor.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, TransportError> {
        loop {
            if let Some(masking) = &mut self.masking {
                let event = (&mut masking.0).await;
                self.masking = None;
                return Ok(Some(event));
            }
            if let Some(event) = self.parser.read(&mut self.rest) {
                let mask = self.credentials.mask();
                // An address that the server names for requests is not shown and stays as it is.
                if mask.is_empty() || event.event == "endpoint" {
                    return Ok(Some(event));
                }
                self.masking = Some(masked(&self.tasks, mask, event));
                continue;
            }
            let timed_out = |_| TransportError::Timeout {
                url: self.address.clone(),
                limit: self.silence,
            };
            let broken = |error: hyper::Error| TransportError::Broken {
                url: self.address.clone(),
                message: error.to_string(),
            };
            let frame = tokio::time::timeout(self.silence, self.body.frame())
                .await
                .map_err(timed_out)?;
            match frame {
                Some(frame) => self.rest = frame.map_err(broken)?.into_data().unwrap_or_default(),
                None => return Ok(None),
            }
            if !self.rate.count(self.rest.len()) {
                let message = format!(
                    "it sent more than {} bytes of events in a minute",
                    self.rate.per_minute
                );
                return Err(TransportError::Broken {
                    url: self.address.clone(),
                    message,
                });
            }
        }
    }

    /// Where the stream can be continued after its end, if the server gave its events ids.
    pub(crate) fn resume_point(&self) -> Option<ResumePoint> {
        self.parser.place.resume_point()
    }
}

/// An event without the secrets that were sent to its server. Masked is the whole event, since a
/// secret may be in two pieces of a body.
fn masked(tasks: &Tasks, mask: Mask, event: ServerEvent) -> MaskedEvent {
    let tasks = tasks.clone();
    MaskedEvent(Box::pin(async move {
        let bytes = event.data.len();
        let without_secrets = move || ServerEvent {
            data: mask.document_text(event.data),
            ..event
        };
        tasks
            .work_on_body(BodyStep::First, bytes, without_secrets)
            .await
    }))
}

/// How much a stream sends in a minute.
#[derive(Debug)]
struct StreamRate {
    per_minute: usize,
    clock: Clock,
    window_began: Instant,
    /// What was read since then.
    bytes: usize,
}

impl StreamRate {
    fn new(per_minute: usize, clock: Clock) -> Self {
        Self {
            per_minute,
            clock,
            window_began: clock.now(),
            bytes: 0,
        }
    }

    /// Counts what has just come. Returns whether it is within the limit.
    fn count(&mut self, bytes: usize) -> bool {
        let now = self.clock.now();
        if now.saturating_duration_since(self.window_began) >= WINDOW {
            self.window_began = now;
            self.bytes = 0;
        }
        self.bytes += bytes;
        self.bytes <= self.per_minute
    }
}

pub(super) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// From bytes to events. Lines end in LF, CR or CRLF, wherever chunks are cut.
#[derive(Debug)]
pub(crate) struct EventParser {
    most: usize,
    line: Vec<u8>,
    before: Before,
    event: Vec<u8>,
    /// Absent before the first line of data, which may be empty.
    data: Option<Vec<u8>>,
    cut: bool,
    place: Box<StreamPlace>,
}

/// How far a stream was read, as the server names it.
#[derive(Debug, Default)]
struct StreamPlace {
    /// The id of the last event that ended; empty without one.
    id: Vec<u8>,
    /// The id that was sent last, which holds for the next events too.
    next_id: Vec<u8>,
    retry: Option<Duration>,
}

impl StreamPlace {
    fn resume_point(&self) -> Option<ResumePoint> {
        let id = std::str::from_utf8(&self.id)
            .ok()
            .filter(|id| !id.is_empty())?
            .to_owned();
        let [by_default, least, most] = REOPEN;
        Some(ResumePoint {
            id,
            after: self.retry.unwrap_or(by_default).clamp(least, most),
        })
    }
}

/// What comes before the line that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// No line, so that it may begin with a byte order mark.
    Start,
    /// A line that ended in CR, so that an LF belongs to that one.
    Cr,
    /// Any other line.
    Line,
}

impl EventParser {
    /// A parser that keeps so many bytes of one event.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            line: Vec::new(),
            before: Before::Start,
            event: Vec::new(),
            data: None,
            cut: false,
            place: Box::default(),
        }
    }

    /// Reads on until an event is whole or the bytes are used up.
    pub(crate) fn read(&mut self, bytes: &mut Bytes) -> Option<ServerEvent> {
        while !bytes.is_empty() {
            if self.before == Before::Cr {
                self.before = Before::Line;
                if bytes[0] == b'\n' {
                    bytes.advance(1);
                    continue;
                }
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.add(bytes);
                bytes.clear();
                return None;
            };
            let part = bytes.split_to(end);
            self.add(&part);
            let ends_in_cr = bytes[0] == b'\r';
            bytes.advance(1);
            let event = self.end_line();
            self.before = if ends_in_cr { Before::Cr } else { Before::Line };
            if let Some(event) = event {
                return Some(event);
            }
        }
        None
    }

    /// The id of the last event that ended; empty without one.
    pub(crate) fn last_id(&self) -> String {
        String::from_utf8_lossy(&self.place.id).into_owned()
    }

    fn add(&mut self, part: &[u8]) {
        let room = self.most.saturating_sub(self.line.len());
        self.cut |= part.len() > room;
        self.line.extend_from_slice(&part[..part.len().min(room)]);
    }

    fn end_line(&mut self) -> Option<ServerEvent> {
        let line = std::mem::take(&mut self.line);
        let mut line = line.as_slice();
        if self.before == Before::Start {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (
                &line[..at],
                line[at + 1..].strip_prefix(b" ").unwrap_or(&line[at + 1..]),
            ),
            None => (line, &[][..]),
        };
        match name {
            b"event" => self.event = value.to_vec(),
            b"data" => {
                let most = self.most;
                let data = match &mut self.data {
                    Some(data) => {
                        data.extend_from_slice(if data.len() < most { b"\n" } else { b"" });
                        data
                    }
                    none => none.insert(Vec::new()),
                };
                let room = most.saturating_sub(data.len());
                self.cut |= value.len() > room;
                data.extend_from_slice(&value[..value.len().min(room)]);
            }
            b"id" if value.len() <= MAX_ID && !value.contains(&0) => {
                self.place.next_id = value.to_vec();
            }
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value)
                    .ok()
                    .and_then(|digits| digits.parse().ok());
                self.place.retry = digits.map(Duration::from_millis);
            }
            // Comments, and what this program has no use for.
            _ => {}
        }
        None
    }

    /// An empty line ends an event; without data there is none.
    fn dispatch(&mut self) -> Option<ServerEvent> {
        let place = &mut *self.place;
        place.id.clone_from(&place.next_id);
        let event = std::mem::take(&mut self.event);
        let data = self.data.take();
        let cut = std::mem::take(&mut self.cut);
        let data = data.filter(|data| !data.is_empty())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let event = if event.is_empty() {
            "message".to_owned()
        } else {
            text(&event)
        };
        Some(ServerEvent {
            event,
            data: text(&data),
            cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]], most: usize) -> Vec<(String, String, bool)> {
        let mut parser = EventParser::new(most);
        let mut events = Vec::new();
        for chunk in chunks {
            let mut bytes = Bytes::copy_from_slice(chunk);
            while let Some(event) = parser.read(&mut bytes) {
                events.push((event.event, event.data, event.cut));
            }
        }
        events
    }

    fn event(kind: &str, data: &str) -> (String, String, bool) {
        (kind.to_owned(), data.to_owned(), false)
    }

    #[test]
    fn events_are_the_same_however_they_are_cut_and_whatever_ends_their_lines() {
        let sent = "\u{feff}retry: 10\n\n: alive\n\nid: 1\nevent: catalog\ndata: {\"ä\":1}\ndata:  two\n\ndata\n\nevent: x\n\ndata:3\nother: y\n\ndata: lost";
        let expected = [event("catalog", "{\"ä\":1}\n two"), event("message", "3")];
        for end in ["\n", "\r", "\r\n"] {
            let sent = sent.replace('\n', end);
            assert_eq!(read(&[sent.as_bytes()], 1_000), expected, "{end:?}");
            for at in 0..sent.len() {
                let (before, after) = sent.as_bytes().split_at(at);
                assert_eq!(
                    read(&[before, after], 1_000),
                    expected,
                    "{end:?} cut at {at}"
                );
            }
            let bytes: Vec<_> = sent.as_bytes().chunks(1).collect();
            assert_eq!(read(&bytes, 1_000), expected, "{end:?} byte by byte");
        }
    }

    #[test]
    fn the_id_counts_when_its_event_ended_and_stays_until_the_next_one() {
        let mut parser = EventParser::new(64);
        let mut id = |sent: &'static str| {
            parser.read(&mut Bytes::from_static(sent.as_bytes()));
            (
                String::from_utf8(parser.place.id.clone()).unwrap(),
                parser.place.retry,
            )
        };
        assert_eq!(
            id("id: a\nretry: 500\ndata:\n"),
            (String::new(), Some(Duration::from_millis(500)))
        );
        assert_eq!(id("\n").0, "a");
        assert_eq!(id("data: no id\n\n").0, "a");
        assert_eq!(
            id("id: b\0\nretry: soon\n\n"),
            ("a".to_owned(), Some(Duration::from_millis(500)))
        );
        assert_eq!(id("id\n\n").0, "");
    }

    #[test]
    fn no_more_of_an_event_is_held_than_its_limit() {
        let line = format!("data: {}\n\ndata: next\n\n", "x".repeat(1_000_000));
        let mut parser = EventParser::new(64);
        for chunk in line.as_bytes().chunks(1_000) {
            let mut bytes = Bytes::copy_from_slice(chunk);
            while let Some(event) = parser.read(&mut bytes) {
                assert!(
                    event.cut == (event.data != "next") && event.data.len() <= 64,
                    "{event:?}"
                );
            }
            assert!(
                parser.line.len() <= 64 && parser.data.as_ref().is_none_or(|data| data.len() <= 64)
            );
        }
        let lines = "data: 0123456789\n".repeat(100_000) + "\n";
        let events = read(&[lines.as_bytes()], 64);
        assert!(
            events.len() == 1 && events[0].2 && events[0].1.len() <= 64,
            "{events:?}"
        );
    }

    /// A server that wants its stream opened again at once would be connected to without a pause.
    #[test]
    fn a_stream_is_opened_again_neither_at_once_nor_never() {
        let [by_default, least, most] = REOPEN;
        let after = |sent: &'static str| {
            let mut parser = EventParser::new(64);
            parser.read(&mut Bytes::from_static(sent.as_bytes()));
            parser.place.resume_point().map(|point| point.after)
        };
        assert_eq!(after("id: a\ndata:\n\n"), Some(by_default));
        assert_eq!(after("id: a\nretry: 0\ndata:\n\n"), Some(least));
        assert_eq!(after("id: a\nretry: 999999999\ndata:\n\n"), Some(most));
        assert_eq!(after("retry: 100\ndata:\n\n"), None, "it gave no id");
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_are_counted_for_a_minute() {
        let mut rate = StreamRate::new(100, Clock::system());
        assert!(rate.count(60) && rate.count(40));
        let last = Duration::from_millis(1);
        tokio::time::advance(WINDOW.saturating_sub(last)).await;
        assert!(!rate.count(1));
        tokio::time::advance(last).await;
        assert!(rate.count(100));
        assert!(!rate.count(1));
    }
}
