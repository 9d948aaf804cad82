//! Addresses as people type them.

use url::Url;

/// An address of a server. `http://` may be left out where a port is named: `localhost:7400`.
/// `None` if the text is no such address.
pub(super) fn web_address(text: &str) -> Option<Url> {
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
    address.ok().filter(|address| matches!(address.scheme(), "http" | "https"))
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
            ("127.0.0.1:7400/api/v1/tools", Some("http://127.0.0.1:7400/api/v1/tools")),
            ("[::1]:7400", Some("http://[::1]:7400/")),
            ("localhost", None),
            ("manifest.json", None),
            ("folder:1.json", None),
            ("c:/manifest.json", None),
            (":7400", None),
            ("h:99999", None),
            ("ftp://h", None),
        ] {
            assert_eq!(web_address(text).as_ref().map(Url::as_str), address, "{text}");
        }
    }
}
