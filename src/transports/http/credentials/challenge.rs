//! Reading `WWW-Authenticate` (RFC 9110 section 11.6.1): what a server says is missing.
//!
//! Whatever a server sends, a bounded part of it is read, and nothing of it is taken for an
//! instruction.

use http::header::{HeaderMap, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

use crate::transports::Mask;

/// Bytes of all headers of this name that are read.
const MAX_READ: usize = 16 * 1024;
/// Bytes of a parameter that is kept; a longer one counts as not sent.
const MAX_VALUE: usize = 2 * 1024;

/// Why a server refused a request: the first challenge of the scheme `Bearer`, or else the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// The status, 401 or 403.
    pub status: u16,
    /// The scheme in small letters; empty when the server sent no challenge.
    pub scheme: String,
    /// `resource_metadata`: where the server describes itself (RFC 9728 section 5.1).
    pub resource_metadata: Option<String>,
    /// `scope`: what the token must allow.
    pub scope: Option<String>,
    /// `error`: a code of RFC 6750 section 3.1.
    pub error: Option<String>,
}

impl Challenge {
    /// The challenge of an answer; `None` for a status other than 401 and 403.
    pub fn parse(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
            return None;
        }
        let mut found: Vec<Self> = Vec::new();
        let mut left = MAX_READ;
        for value in headers.get_all(WWW_AUTHENTICATE) {
            let Some(rest) = left.checked_sub(value.len()) else {
                break;
            };
            left = rest;
            read(value, status.as_u16(), &mut found);
        }
        let bearer = found
            .iter()
            .position(|challenge| challenge.scheme == "bearer")
            .unwrap_or(0);
        let none = || Self::of_scheme(status.as_u16(), "");
        Some(if found.is_empty() {
            none()
        } else {
            found.swap_remove(bearer)
        })
    }

    /// Masks the secrets in what the server sent.
    pub(in crate::transports) fn mask(&mut self, mask: &Mask) {
        for text in [
            &mut self.resource_metadata,
            &mut self.scope,
            &mut self.error,
        ] {
            *text = text.take().map(|text| mask.text(text));
        }
        self.scheme = mask.text(std::mem::take(&mut self.scheme));
    }

    /// Whether the server refused the credential itself, so that another one may be accepted: every
    /// 401, and a 403 for a token that allows too little (RFC 6750 section 3.1).
    pub fn wants_another(&self) -> bool {
        self.status == 401 || self.lacks_scope()
    }

    /// Whether the token allows too little.
    pub fn lacks_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    /// Whether the server takes bearer tokens.
    pub fn is_bearer(&self) -> bool {
        self.scheme == "bearer"
    }

    fn of_scheme(status: u16, scheme: &str) -> Self {
        let scheme = scheme.to_ascii_lowercase();
        Self {
            status,
            scheme,
            resource_metadata: None,
            scope: None,
            error: None,
        }
    }

    /// Takes a parameter. The first one of a name counts.
    fn take(&mut self, name: &str, value: String) {
        let place = match &*name.to_ascii_lowercase() {
            "resource_metadata" => &mut self.resource_metadata,
            "scope" => &mut self.scope,
            "error" => &mut self.error,
            _ => return,
        };
        // Values come into messages, so nothing but visible ASCII and blanks is kept.
        let is_kept = value.len() <= MAX_VALUE
            && value
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic());
        if is_kept && place.is_none() {
            *place = Some(value);
        }
    }
}

/// Reads the challenges of one header. What cannot be read ends it.
fn read(value: &HeaderValue, status: u16, found: &mut Vec<Challenge>) {
    let Ok(mut rest) = std::str::from_utf8(value.as_bytes()) else {
        return;
    };
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let Some((word, after)) = token(rest) else {
            return;
        };
        let bare = after.trim_start_matches([' ', '\t']);
        match (bare.strip_prefix('='), found.last_mut()) {
            // `name = value` belongs to the challenge before it.
            (Some(raw), Some(challenge)) => {
                let Some((value, after)) = parameter(raw.trim_start_matches([' ', '\t'])) else {
                    return;
                };
                challenge.take(word, value);
                rest = after;
            }
            (Some(_), None) => return,
            (None, _) => {
                found.push(Challenge::of_scheme(status, word));
                rest = without_token68(bare);
            }
        }
    }
}

/// A token (RFC 9110 section 5.6.2) and the rest.
fn token(text: &str) -> Option<(&str, &str)> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let end = text
        .bytes()
        .position(|byte| !is_part(byte))
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The value of a parameter, quoted (RFC 9110 section 5.6.4) or not, and the rest.
fn parameter(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        // Some servers do not quote addresses: everything up to a comma or blank is taken.
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut is_escaped = false;
    for (at, letter) in quoted.char_indices() {
        match letter {
            _ if is_escaped => {
                value.push(letter);
                is_escaped = false;
            }
            '\\' => is_escaped = true,
            '"' => return Some((value, &quoted[at + 1..])),
            _ => value.push(letter),
        }
    }
    None
}

/// What follows the data of a scheme that has no parameters (`token68`): all up to a comma, if that
/// is one word which is no `name=value`.
fn without_token68(text: &str) -> &str {
    let end = text.find([',', ' ', '\t', '"']).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let is_parameter = word.trim_end_matches('=').contains('=') || rest.starts_with('"');
    let rest_begins_parameter = rest.trim_start_matches([' ', '\t']).starts_with('=');
    if is_parameter || rest_begins_parameter || word.is_empty() {
        text
    } else {
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(values: &[&str]) -> Challenge {
        let headers = values
            .iter()
            .map(|value| (WWW_AUTHENTICATE, value.parse().unwrap()))
            .collect();
        Challenge::parse(StatusCode::UNAUTHORIZED, &headers).unwrap()
    }

    /// The scheme and the three parameters.
    fn shown(challenge: &Challenge) -> String {
        let or = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let metadata = &challenge.resource_metadata;
        let scope = &challenge.scope;
        let error = &challenge.error;
        format!(
            "{}|{}|{}|{}",
            challenge.scheme,
            or(metadata),
            or(scope),
            or(error)
        )
    }

    #[test]
    fn challenges_are_read_in_every_spelling() {
        for (values, expected) in [
            (&[][..], "|-|-|-"),
            (&["Bearer"], "bearer|-|-|-"),
            (
                &[r#"Bearer resource_metadata="https://h/x", scope="a b""#],
                "bearer|https://h/x|a b|-",
            ),
            (
                &[r#"bearer  SCOPE = "a" ,error=invalid_token"#],
                "bearer|-|a|invalid_token",
            ),
            (
                &[r#"Basic realm="a, Bearer scope=\"x\"", Bearer scope="y""#],
                "bearer|-|y|-",
            ),
            (
                &[r#"Basic realm="x""#, r#"Bearer error="insufficient_scope""#],
                "bearer|-|-|insufficient_scope",
            ),
            (&["Negotiate YWJj==, Bearer scope=s"], "bearer|-|s|-"),
            (&["Negotiate YWJj==", "NTLM"], "negotiate|-|-|-"),
            (
                &["Bearer resource_metadata=https://h/y, scope=z"],
                "bearer|https://h/y|z|-",
            ),
            (
                &[r#"Bearer scope="first", scope="second""#],
                "bearer|-|first|-",
            ),
            (&[r#"Bearer scope="never closed"#], "bearer|-|-|-"),
            (&[r#"scope="of nothing""#], "|-|-|-"),
            (&[r#"Bearer scope="a\tb""#], "bearer|-|atb|-"),
            (&["Bearer scope=\"a\tb\""], "bearer|-|-|-"),
            (&[", ,, Bearer ,scope=a"], "bearer|-|a|-"),
        ] {
            assert_eq!(shown(&parse(values)), expected, "{values:?}");
        }
    }

    #[test]
    fn no_more_than_a_bounded_part_is_kept() {
        let long = format!(r#"Bearer scope="{}", error="e""#, "x".repeat(3_000));
        assert_eq!(shown(&parse(&[&long])), "bearer|-|-|e");
        let huge = "y".repeat(20_000);
        assert_eq!(shown(&parse(&[&huge, "Bearer"])), "|-|-|-");
    }

    #[test]
    fn only_a_refused_credential_is_renewed() {
        let wanted = |status, value: &'static str| {
            let headers =
                HeaderMap::from_iter([(WWW_AUTHENTICATE, HeaderValue::from_static(value))]);
            Challenge::parse(status, &headers).map(|challenge| challenge.wants_another())
        };
        assert_eq!(wanted(StatusCode::UNAUTHORIZED, "Basic"), Some(true));
        assert_eq!(wanted(StatusCode::FORBIDDEN, "Bearer"), Some(false));
        assert_eq!(
            wanted(StatusCode::FORBIDDEN, "Bearer error=\"insufficient_scope\""),
            Some(true)
        );
        assert_eq!(wanted(StatusCode::OK, "Bearer"), None);
    }
}
