//! Reads one bearer token from a request (RFC 6750 section 2.1) and compares it with the configured
//! one, in a time that does not depend on the value sent.
//!
//! Never decides what the token is for, and never logs or stores it.

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::model::Secret;

/// The result of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenCheck {
    /// The configured token.
    Valid,
    /// Another token, more than one, or something that is no bearer token.
    Invalid,
    /// No `Authorization` header.
    Missing,
}

/// Compares the token of a request with the configured one.
pub(super) fn check_token(headers: &HeaderMap, token: &Secret) -> TokenCheck {
    match bearer(headers) {
        None => TokenCheck::Missing,
        Some(bearer) if constant_time_eq(&bearer, token.expose().as_bytes()) => TokenCheck::Valid,
        Some(_) => TokenCheck::Invalid,
    }
}

/// The bearer token of a request. `None` without `Authorization`; an empty one, which is never
/// valid, if it is malformed or there are several.
fn bearer(headers: &HeaderMap) -> Option<Vec<u8>> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let line = lines.next()?;
    let (scheme, token) = line
        .as_bytes()
        .split_at_checked("Bearer ".len())
        .unwrap_or_default();
    let proper = lines.next().is_none() && scheme.eq_ignore_ascii_case(b"Bearer ");
    Some(if proper {
        token.trim_ascii().to_vec()
    } else {
        Vec::new()
    })
}

/// Compares digests, which all have one length, so the time does not depend on the length of the
/// token either.
fn constant_time_eq(bearer: &[u8], token: &[u8]) -> bool {
    Sha256::digest(bearer).ct_eq(&Sha256::digest(token)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(lines: &[&str]) -> TokenCheck {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(AUTHORIZATION, line.parse().unwrap());
        }
        check_token(&headers, &Secret::new("topsecret"))
    }

    #[test]
    fn only_one_bearer_token_is_one() {
        assert_eq!(with(&[]), TokenCheck::Missing);
        for line in ["Bearer topsecret", "bearer topsecret", "BEARER  topsecret "] {
            assert_eq!(with(&[line]), TokenCheck::Valid, "{line}");
        }
        for lines in [
            &["Basic topsecret"][..],
            &["topsecret"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer topsecret", "Bearer topsecret"],
        ] {
            assert_eq!(with(lines), TokenCheck::Invalid, "{lines:?}");
        }
    }

    #[test]
    fn token_comparison_accepts_only_equal_tokens() {
        assert!(constant_time_eq(b"topsecret", b"topsecret"));
        for other in [&b""[..], b"topsecre", b"topsecrett", b"Topsecret"] {
            assert!(!constant_time_eq(other, b"topsecret"));
        }
    }
}
