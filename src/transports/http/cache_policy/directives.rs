//! Reads `Cache-Control` (RFC 9111 section 5.2): tolerant of junk, and never longer-lived than the
//! header means.

use std::time::Duration;

use http::HeaderValue;

/// The largest number of seconds; anything above means the same (RFC 9111 section 1.2.2).
pub(super) const DELTA_SECONDS_MAX: Duration = Duration::from_secs(1 << 31);

/// The response directives that matter to us (RFC 9111 section 5.2.2, RFC 5861). Others are ignored
/// (section 5.2.3); of these also `must-understand`, so that a `no-store` beside it stands, and
/// `immutable`, which speaks of reloads by people.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a directive of its own, and any may stand beside any other"
)]
pub(super) struct Directives {
    pub(super) max_age: Option<Duration>,
    pub(super) s_maxage: Option<Duration>,
    pub(super) no_store: bool,
    pub(super) no_cache: bool,
    pub(super) private: bool,
    pub(super) must_revalidate: bool,
    pub(super) proxy_revalidate: bool,
    pub(super) stale_while_revalidate: Option<Duration>,
    pub(super) stale_if_error: Option<Duration>,
}

/// Reads all lines of the header as one list (RFC 9110 section 5.3).
pub(super) fn parse<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> Directives {
    let mut directives = Directives::default();
    for line in lines {
        for member in (DirectiveIter {
            rest: line.as_bytes(),
            quotes: true,
        }) {
            directives.take(member);
        }
    }
    directives
}

impl Directives {
    fn take(&mut self, member: &[u8]) {
        let member = member.trim_ascii();
        let (name, argument) = match member.iter().position(|byte| *byte == b'=') {
            Some(at) => (&member[..at], Some(&member[at + 1..])),
            None => (member, None),
        };
        // Space around `=` is no valid argument, but the name still says what was meant.
        let seconds = if name.ends_with(b" ") || name.ends_with(b"\t") {
            None
        } else {
            argument.and_then(seconds)
        };
        match name.trim_ascii().to_ascii_lowercase().as_slice() {
            // An invalid lifetime makes the answer stale, and of several the smallest counts (RFC
            // 9111 section 4.2.1).
            b"max-age" => shorten(&mut self.max_age, seconds.unwrap_or_default()),
            b"s-maxage" => shorten(&mut self.s_maxage, seconds.unwrap_or_default()),
            b"no-store" => self.no_store = true,
            // The forms with field names are read as those without, which RFC 9111 sections 5.2.2.4
            // and 5.2.2.7 leave to the cache.
            b"no-cache" => self.no_cache = true,
            b"private" => self.private = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            // An invalid window allows nothing: here that is the same as not having been sent.
            b"stale-while-revalidate" => seconds
                .iter()
                .for_each(|it| shorten(&mut self.stale_while_revalidate, *it)),
            b"stale-if-error" => seconds
                .iter()
                .for_each(|it| shorten(&mut self.stale_if_error, *it)),
            _ => {}
        }
    }
}

fn shorten(known: &mut Option<Duration>, seconds: Duration) {
    *known = Some(known.map_or(seconds, |known| known.min(seconds)));
}

/// An argument in seconds, also in the quoted form that RFC 9111 section 5.2 asks recipients to
/// accept.
fn seconds(argument: &[u8]) -> Option<Duration> {
    let quoted = argument
        .strip_prefix(b"\"")
        .and_then(|rest| rest.strip_suffix(b"\""));
    delta_seconds(quoted.unwrap_or(argument))
}

/// delta-seconds: digits only, saturating at [`DELTA_SECONDS_MAX`] (RFC 9111 section 1.2.2).
pub(super) fn delta_seconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut seconds: u64 = 0;
    for byte in text {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        seconds = seconds.saturating_mul(10).saturating_add(digit);
    }
    Some(Duration::from_secs(seconds).min(DELTA_SECONDS_MAX))
}

/// Splits a line at the commas outside of quoted strings (RFC 9110 section 5.6.4).
struct DirectiveIter<'a> {
    rest: &'a [u8],
    /// Whether quotes still open strings. After one that is never closed they do not: the rest of
    /// the line would be lost in it, and looking for its end again from each later quote would cost
    /// the square of the line.
    quotes: bool,
}

impl<'a> Iterator for DirectiveIter<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        let mut at = 0;
        while at < self.rest.len() && self.rest[at] != b',' {
            at += 1;
            if self.quotes && self.rest[at - 1] == b'"' {
                match closing_quote(&self.rest[at..]) {
                    Some(length) => at += length + 1,
                    None => self.quotes = false,
                }
            }
        }
        let member = &self.rest[..at];
        self.rest = self.rest.get(at + 1..).unwrap_or_default();
        Some(member)
    }
}

fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    })
}
