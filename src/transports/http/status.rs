//! Which answers are answers, and when to come back after the others.

use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, LOCATION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use jiff::Timestamp;

use super::cache_policy::ResponseHead;
use super::credentials::Challenge;
use super::http_date;
use crate::model::finding::quoted_up_to;
use crate::transports::TransportError;

/// The shortest wait, however soon a scenario wants the next request.
const SOONEST: Duration = Duration::from_secs(1);
/// However late, it is not forgotten: a wrong header must not cost a scenario for days.
const LATEST: Duration = Duration::from_secs(600);
/// Bytes of the body of a refusal that are read for its first line.
pub(super) const REFUSAL_BYTES: usize = 16 * 1024;
/// Characters of that line in messages.
const LINE_CHARACTERS: usize = 200;

/// What to do with the head of an answer.
#[derive(Debug)]
pub(super) enum ResponseAction<'a> {
    /// Use it: 2xx except 206, or a 304 to a conditional request.
    Take,
    /// Ask there instead (RFC 9110 section 15.4).
    Follow(&'a HeaderValue),
    /// A 304, although the request was not conditional: there is no stored answer that it could
    /// stand for (RFC 9110 section 15.4.5).
    Unasked,
    /// No success.
    Refuse,
}

/// Judges the head of an answer to a request that was or was not conditional.
pub(super) fn judge(
    status: StatusCode,
    headers: &HeaderMap,
    conditional: bool,
) -> ResponseAction<'_> {
    match status {
        StatusCode::NOT_MODIFIED if conditional => ResponseAction::Take,
        StatusCode::NOT_MODIFIED => ResponseAction::Unasked,
        // No range was requested, so what is there is not the whole of it (RFC 9110 section
        // 15.3.7).
        StatusCode::PARTIAL_CONTENT => ResponseAction::Refuse,
        _ if status.is_success() => ResponseAction::Take,
        StatusCode::MOVED_PERMANENTLY
        | StatusCode::FOUND
        | StatusCode::SEE_OTHER
        | StatusCode::TEMPORARY_REDIRECT
        | StatusCode::PERMANENT_REDIRECT => headers
            .get(LOCATION)
            .map_or(ResponseAction::Refuse, ResponseAction::Follow),
        _ => ResponseAction::Refuse,
    }
}

/// Whether the body of a refusal says what is refused, which the status alone does not.
pub(super) fn explains(status: StatusCode) -> bool {
    status == StatusCode::FORBIDDEN || status == StatusCode::MISDIRECTED_REQUEST
}

/// The first line of a body that is no web page, quoted.
fn first_line(body: &[u8]) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * LINE_CHARACTERS)]);
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .filter(|line| !line.starts_with('<'));
    line.map(|line| quoted_up_to(line, LINE_CHARACTERS).into())
}

/// The error for an answer that is no success, with as much of its body as was read.
pub(super) fn refused(url: String, head: &ResponseHead, body: &[u8]) -> TransportError {
    TransportError::Status {
        url,
        status: head.status.as_u16(),
        retry_after: retry_after(&head.headers, head.received_at),
        challenge: Challenge::parse(head.status, &head.headers).map(Box::new),
        said: explains(head.status).then(|| first_line(body)).flatten(),
    }
}

/// `Retry-After` (RFC 9110 section 10.2.3): seconds, or a date as seen from `now`; between one
/// second and ten minutes. Anything else counts as not sent.
pub(super) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?;
    let text = value.to_str().ok()?.trim();
    let wait = if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that do not fit are a very long time.
        Duration::from_secs(text.parse().unwrap_or(u64::MAX))
    } else {
        let date = http_date::parse(value)?;
        date.duration_since(SystemTime::from(now))
            .unwrap_or(Duration::ZERO)
    };
    Some(wait.clamp(SOONEST, LATEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_and_clamped() {
        let now: Timestamp = "1994-11-06T08:49:37Z".parse().unwrap();
        let cases = [
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("0", Some(1)),
            ("601", Some(600)),
            ("99999999999999999999999999", Some(600)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", Some(30)),
            ("Sun Nov  6 08:50:07 1994", Some(30)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(1)),
            ("Sat, 06 Nov 2094 08:49:36 GMT", Some(600)),
            ("soon", None),
            ("-1", None),
            ("1.5", None),
            ("+1", None),
            ("", None),
            ("Sun, 99 Nov 1994 08:50:07 GMT", None),
        ];
        for (text, expected) in cases {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text))]);
            assert_eq!(
                retry_after(&headers, now),
                expected.map(Duration::from_secs),
                "`{text}`"
            );
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
