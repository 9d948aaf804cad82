//! Reads names that web requests carry.

use url::{Host, Url};

use super::origin::refused_address;
use super::units::ValueError;

/// A host name as `Host` headers carry it: lower-case, without port.
pub(super) fn host(text: &str) -> Result<String, ValueError> {
    match Host::parse(text) {
        Ok(host) if !text.contains('*') => Ok(host.to_string()),
        _ => Err(ValueError::new(
            format!("{:?} is not a host name", refused_address(text)),
            "write a whole name or address without port, such as \"tools.example\" or \"[::1]\"",
        )),
    }
}

/// A web origin as `Origin` headers carry it: `scheme://host[:port]`, lower-case, without the
/// scheme's own port.
pub(super) fn web_origin(text: &str) -> Result<String, ValueError> {
    let refused = || {
        ValueError::new(
            format!("{:?} is not a web origin", refused_address(text)),
            "write scheme, host and port only, such as \"https://chat.example\" or \"http://localhost:3000\"",
        )
    };
    let url = Url::parse(text).map_err(|_| refused())?;
    // Pages come by no other scheme, and the guard matches no other.
    let bare = matches!(url.scheme(), "http" | "https")
        && matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match url.host_str() {
        Some(host) if bare && !host.contains('*') => {
            let port = url
                .port()
                .map_or_else(String::new, |port| format!(":{port}"));
            Ok(format!("{}://{host}{port}", url.scheme()))
        }
        _ => Err(refused()),
    }
}

/// The address of a client metadata document, which is the id of a client: https, with a path
/// (draft-ietf-oauth-client-id-metadata-document). An empty text is none.
pub(super) fn client_metadata_url(text: &str) -> Result<Option<Url>, ValueError> {
    if text.is_empty() {
        return Ok(None);
    }
    let refused = || {
        ValueError::new(
            format!(
                "{:?} is not the address of a client metadata document",
                refused_address(text)
            ),
            "write an address with https and a path, such as \"https://tools.example/callsheet.json\"",
        )
    };
    let url = Url::parse(text).map_err(|_| refused())?;
    let is_plain =
        url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if url.scheme() == "https" && url.path() != "/" && is_plain {
        Ok(Some(url))
    } else {
        Err(refused())
    }
}
