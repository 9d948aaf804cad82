//! Reads server-sent events (WHATWG HTML, section 9.2.6) from bytes as they come. Pure.

/// An event as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct SseEvent {
    /// The latest id that the stream gave; empty when none.
    pub(super) id: String,
    /// Its name.
    pub(super) event: String,
    /// Its data.
    pub(super) data: String,
}

/// Parses bytes into events.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    buffer: Vec<u8>,
    next: SseEvent,
}

impl SseParser {
    /// Takes bytes in.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// How many bytes wait for the end of their line.
    pub(super) fn buffered(&self) -> usize {
        self.buffer.len() + self.next.data.len()
    }

    /// The next whole event.
    pub(super) fn next(&mut self) -> Option<SseEvent> {
        let mut used = 0;
        let mut whole = None;
        while let Some(length) = self.buffer[used..].iter().position(|byte| *byte == b'\n') {
            let line = String::from_utf8_lossy(&self.buffer[used..used + length]).into_owned();
            used += length + 1;
            whole = self.line(line.strip_suffix('\r').unwrap_or(&line));
            if whole.is_some() {
                break;
            }
        }
        self.buffer.drain(..used);
        whole
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let id = self.next.id.clone();
            let whole = std::mem::replace(
                &mut self.next,
                SseEvent {
                    id,
                    ..SseEvent::default()
                },
            );
            return (!whole.data.is_empty()).then_some(whole);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.next.id),
            "event" => value.clone_into(&mut self.next.event),
            "data" => {
                if !self.next.data.is_empty() {
                    self.next.data.push('\n');
                }
                self.next.data.push_str(value);
            }
            // Comments have no name, and how soon to reconnect is decided here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(id: &str, event: &str, data: &str) -> SseEvent {
        SseEvent {
            id: id.into(),
            event: event.into(),
            data: data.into(),
        }
    }

    #[test]
    fn events_come_whole_however_the_bytes_are_cut() {
        let text = "retry: 1000\n\n: alive\n\nid: a.1\r\nevent: catalog\ndata: {\"ä\":1}\ndata:2\n\nevent: end\ndata: x\n\nid: b";
        for cut in 1..text.len() {
            let mut reader = SseParser::default();
            let mut all = Vec::new();
            for bytes in text.as_bytes().chunks(cut) {
                reader.push(bytes);
                all.extend(std::iter::from_fn(|| reader.next()));
            }
            let expected = [
                received("a.1", "catalog", "{\"ä\":1}\n2"),
                received("a.1", "end", "x"),
            ];
            assert_eq!(all, expected, "{cut}");
            assert_eq!(reader.buffered(), 5);
        }
    }
}
