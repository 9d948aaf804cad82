//! Addresses as they may be written: of scenarios, hosts and web origins.

use url::{Host, Url};

use super::origin::masked;
use super::units::Wrong;

/// The address of a scenario. What is refused is shown without what may be secret in it.
pub(super) fn address(text: &str) -> Result<Url, Wrong> {
    let whole = "write it whole, such as \"http://127.0.0.1:15000\"";
    let url =
        Url::parse(text).map_err(|error| Wrong::new(format!("{:?} is no address: {error}", masked(text)), whole))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Wrong::new(format!("{:?} is neither http nor https", masked(text)), whole));
    }
    for (part, present, mark) in [("query", url.query().is_some(), '?'), ("fragment", url.fragment().is_some(), '#')] {
        if present {
            return Err(Wrong::new(
                format!("the address of a scenario has no {part}"),
                format!("leave out everything from the `{mark}` on"),
            ));
        }
    }
    Ok(url)
}

/// A host name as `Host` headers carry it: lower-case, without port.
pub(super) fn host(text: &str) -> Result<String, Wrong> {
    match Host::parse(text) {
        Ok(host) if !text.contains('*') => Ok(host.to_string()),
        _ => Err(Wrong::new(
            format!("{:?} is no host name", masked(text)),
            "write a whole name or address without port, such as \"tools.example\" or \"[::1]\"",
        )),
    }
}

/// A web origin as `Origin` headers carry it: `scheme://host[:port]`, lower-case, without the scheme's own port.
pub(super) fn web_origin(text: &str) -> Result<String, Wrong> {
    let refused = || {
        Wrong::new(
            format!("{:?} is no web origin", masked(text)),
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
            let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
            Ok(format!("{}://{host}{port}", url.scheme()))
        }
        _ => Err(refused()),
    }
}
