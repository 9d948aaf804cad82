//! Entity tags of the exact bytes, so equal lists have equal tags in every process and after a
//! restart.

use http::HeaderValue;
use xxhash_rust::xxh3::xxh3_128;

use super::Coding;

/// The strong entity tag of a body in a coding: 32 hexadecimal digits of the XXH3 of its identity
/// bytes, and except for identity, a dash and the coding (RFC 9110 section 8.8.3.3: two codings of
/// one view are two representations).
pub fn strong(identity: &[u8], coding: Coding) -> HeaderValue {
    let digest = xxh3_128(identity);
    let tag = match coding {
        Coding::Identity => format!("\"{digest:032x}\""),
        other => format!("\"{digest:032x}-{other}\""),
    };
    // Digits, letters, a dash and quotes are always a valid header value. A weak tag here would
    // make every client fetch the list again.
    HeaderValue::try_from(tag).unwrap_or_else(|_| HeaderValue::from_static("W/\"\""))
}
