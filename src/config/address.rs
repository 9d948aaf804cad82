//! Addresses of scenarios as they may be written, and as people type them.

use url::Url;

use super::origin::refused_address;
use super::units::ValueError;
use crate::protocols::{module, tool_discovery};

/// An address without the route of a list of tools at its end, which people copy with it.
pub(crate) fn without_route(mut url: Url) -> Url {
    let path = url.path().trim_end_matches('/');
    let base = [tool_discovery::PATH, module::PATH]
        .iter()
        .find_map(|route| path.strip_suffix(route))
        .map(str::to_owned);
    if let Some(base) = base {
        url.set_path(&base);
    }
    url
}

/// An address of a server. `http://` may be left out where a port is named: `localhost:7400`.
/// `None` if the text is no such address.
pub(crate) fn web_address(text: &str) -> Option<Url> {
    let address = if text.contains("://") {
        Url::parse(text)
    } else {
        let host = text.split('/').next().unwrap_or_default();
        let (name, port) = host.rsplit_once(':')?;
        if name.is_empty() || port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Url::parse(&format!("http://{text}"))
    };
    address
        .ok()
        .filter(|address| matches!(address.scheme(), "http" | "https"))
}

/// The address of a scenario. What is refused is shown without what may be secret in it.
pub(super) fn address(text: &str) -> Result<Url, ValueError> {
    let whole = "write it whole, such as \"http://127.0.0.1:15000\"";
    let url = Url::parse(text).map_err(|error| {
        ValueError::new(
            format!("{:?} is not an address: {error}", refused_address(text)),
            whole,
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(ValueError::new(
            format!("{:?} is neither http nor https", refused_address(text)),
            whole,
        ));
    }
    for (part, present, mark) in [
        ("query", url.query().is_some(), '?'),
        ("fragment", url.fragment().is_some(), '#'),
    ] {
        if present {
            return Err(ValueError::new(
                format!("the address of a scenario has no {part}"),
                format!("leave out everything from the `{mark}` on"),
            ));
        }
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_may_be_left_out_where_a_port_is_named() {
        for (text, address) in [
            ("http://h", Some("http://h/")),
            ("https://h:1/x", Some("https://h:1/x")),
            ("localhost:7400", Some("http://localhost:7400/")),
            (
                "127.0.0.1:7400/api/v1/tools",
                Some("http://127.0.0.1:7400/api/v1/tools"),
            ),
            ("[::1]:7400", Some("http://[::1]:7400/")),
            ("localhost", None),
            ("manifest.json", None),
            ("folder:1.json", None),
            ("c:/manifest.json", None),
            (":7400", None),
            ("h:99999", None),
            ("ftp://h", None),
        ] {
            assert_eq!(
                web_address(text).as_ref().map(Url::as_str),
                address,
                "{text}"
            );
        }
    }
}
