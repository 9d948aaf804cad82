//! The headers that keep a page to itself.

use http::header::{
    CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Pages load no resources from other hosts, run no inline scripts or styles, and cannot be framed
/// (CSP level 3).
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'",
);

const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// The headers that keep a page to itself.
pub(super) fn add_security_headers(fields: &mut HeaderMap) {
    fields.insert(CONTENT_SECURITY_POLICY, POLICY);
    fields.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    fields.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // Pages of other sites cannot embed them as images or scripts (Fetch standard, section 3.7).
    fields.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    fields.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
}
