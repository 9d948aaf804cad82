//! Headers that a tool cannot set.

use http::HeaderName;

/// Headers that the connection or the client sets, so a tool cannot.
pub(super) fn is_reserved(name: &HeaderName) -> bool {
    const RESERVED: [&str; 13] = [
        "host",
        "content-length",
        "connection",
        "keep-alive",
        "transfer-encoding",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
        "http2-settings",
        "proxy-connection",
        "proxy-authorization",
    ];
    RESERVED.contains(&name.as_str())
}
