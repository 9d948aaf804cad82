//! Headers that may be configured for the requests to a scenario.

use http::header::{self, HeaderName, HeaderValue};

use super::units::ValueError;
use crate::model::Secret;

/// Headers that the daemon sets itself, or that belong to a connection.
const RESERVED: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::EXPECT,
    header::HOST,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// The beginnings of further ones. `last-event-id` says where a stream goes on.
const RESERVED_PREFIXES: &[&str] = &["mcp-", "proxy-", "keep-alive", "last-event-id"];

/// A header that may be set.
pub(super) fn header_name(text: &str, has_auth: bool) -> Result<HeaderName, ValueError> {
    let name: HeaderName = text.parse().map_err(|_| {
        ValueError::new(
            format!("{text:?} is not a name of a header"),
            "use letters, digits and `-`, such as `X-Api-Key`",
        )
    })?;
    if RESERVED.contains(&name)
        || RESERVED_PREFIXES
            .iter()
            .any(|prefix| name.as_str().starts_with(prefix))
    {
        return Err(ValueError::new(
            format!("the header `{text}` is set by the daemon itself"),
            "take it out",
        ));
    }
    if has_auth && name == header::AUTHORIZATION {
        return Err(ValueError::new(
            "`auth` sets this header too",
            "take one of the two out",
        ));
    }
    Ok(name)
}

/// A value that a header can have.
pub(super) fn header_value(secret: Secret) -> Result<Secret, ValueError> {
    match HeaderValue::from_str(secret.expose()) {
        Ok(_) => Ok(secret),
        Err(_) => Err(ValueError::new(
            "it can be no value of a header",
            "write visible ASCII characters",
        )),
    }
}
