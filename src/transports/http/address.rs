//! Which addresses may be requested, and how an address is shown.
//!
//! This module never opens a connection and never resolves a name.

use std::fmt;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use http::{HeaderValue, Uri};
use percent_encoding::percent_decode_str;
use url::{Origin, Url};

use crate::model::redacted_url;
use crate::transports::TransportError;

/// An address of a scenario: http or https. Cheap to clone. Its credentials are sent with every
/// request and never shown: `Display` and `Debug` leave them out, and the query and fragment too,
/// since a query may hold a token.
#[derive(Clone)]
pub struct Address(Arc<AddressForms>);

/// An address in all forms that are needed of it. They are made with the first use: making them
/// anew for each call took a tenth of what a call costs here.
struct AddressForms {
    url: Url,
    /// As it is shown.
    shown: OnceLock<Box<str>>,
    /// As requests name it.
    uri: OnceLock<Uri>,
    /// The path to which a call went last, and its address.
    called: ArcSwapOption<(Box<str>, Address)>,
}

impl Address {
    /// Checks an address. Fails with [`TransportError::Address`] for a scheme other than http or
    /// https.
    pub fn new(url: Url) -> Result<Self, TransportError> {
        match url.scheme() {
            "http" | "https" => Ok(Self::of(url)),
            // Only the scheme is shown: the rest may be anything, credentials included.
            other => Err(TransportError::Address(format!(
                "an address with the scheme `{other}` cannot be polled; write one that starts with http:// or https://"
            ))),
        }
    }

    fn of(url: Url) -> Self {
        Self(Arc::new(AddressForms {
            url,
            shown: OnceLock::new(),
            uri: OnceLock::new(),
            called: ArcSwapOption::empty(),
        }))
    }

    /// The same as [`Self::join`] for calls, which go to the same path again and again.
    pub(super) fn called(&self, path: &str) -> Result<Self, TransportError> {
        if let Some(last) = &*self.0.called.load()
            && *last.0 == *path
        {
            return Ok(last.1.clone());
        }
        let address = self.join(path)?;
        let last = Arc::new((path.into(), address.clone()));
        self.0.called.store(Some(last));
        Ok(address)
    }

    /// The address of `path` below this one: a path in the base stays as a prefix, its query and
    /// fragment do not. `path` may start with a slash or not and may carry a query; an empty one is
    /// the base itself, with its query.
    ///
    /// Fails with [`TransportError::Address`] when dot segments lead out of the base.
    pub fn join(&self, path: &str) -> Result<Self, TransportError> {
        let mut url = self.url().clone();
        url.set_fragment(None);
        if path.is_empty() {
            return Ok(Self::of(url));
        }
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(path, query)| (path, Some(query)));
        url.set_query(query);
        let prefix = self.url().path().trim_end_matches('/');
        url.set_path(&format!("{prefix}/{}", path.trim_start_matches('/')));
        // Setting a path resolves `..`, which must not lead to another scenario behind the same
        // address.
        let inside = url
            .path()
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if !inside {
            return Err(TransportError::Address(format!(
                "the path `{path}` leads out of {self}"
            )));
        }
        Ok(Self::of(url))
    }

    /// Another address of this origin.
    pub(super) fn sibling(&self, url: Url) -> Result<Self, TransportError> {
        if self.same_origin(&url.origin()) {
            return Ok(Self::of(url));
        }
        Err(TransportError::Address(format!(
            "`{}` is not at {self}",
            redacted_url(&url)
        )))
    }

    /// The target of a `Location` of this address (RFC 9110 section 10.2.2), with the credentials
    /// of this address.
    ///
    /// Fails with the shown target when that is of another origin (scheme, host and port) or cannot
    /// be read.
    pub(super) fn redirected(&self, location: &HeaderValue) -> Result<Self, String> {
        let target = std::str::from_utf8(location.as_bytes())
            .ok()
            .and_then(|location| self.url().join(location).ok());
        let Some(mut target) = target else {
            return Err("an address that cannot be read".to_owned());
        };
        if !self.same_origin(&target.origin()) {
            return Err(redacted_url(&target));
        }
        // Neither can fail for http and https. Credentials in the `Location` are not ours to use.
        let _ = target.set_username(self.url().username());
        let _ = target.set_password(self.url().password());
        target.set_fragment(None);
        Ok(Self::of(target))
    }

    fn same_origin(&self, other: &Origin) -> bool {
        // Opaque origins (`data:`, `file:`) equal nothing, so they are refused here too.
        self.url().origin() == *other
    }

    /// The address as a request names it, without the credentials. Fails with
    /// [`TransportError::Address`] when it cannot be written in a request.
    pub(super) fn uri(&self) -> Result<Uri, TransportError> {
        if let Some(uri) = self.0.uri.get() {
            return Ok(uri.clone());
        }
        let mut url = self.url().clone();
        // Neither can fail for http and https.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        let uri = url.as_str().parse().map_err(|error| {
            TransportError::Address(format!("{self} cannot be polled: {error}"))
        })?;
        Ok(self.0.uri.get_or_init(|| uri).clone())
    }

    /// The address itself, credentials included.
    pub(super) fn url(&self) -> &Url {
        &self.0.url
    }

    /// The header that sends the credentials (RFC 7617 section 2), if the address has any.
    pub(super) fn credentials(&self) -> Option<HeaderValue> {
        let name = self.url().username();
        let password = self.url().password();
        if name.is_empty() && password.is_none() {
            return None;
        }
        let mut pair: Vec<u8> = percent_decode_str(name).collect();
        pair.push(b':');
        pair.extend(percent_decode_str(password.unwrap_or_default()));
        let mut value =
            HeaderValue::try_from(format!("Basic {}", BASE64_STANDARD.encode(pair))).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.url() == other.url()
    }
}

impl Eq for Address {}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.shown.get_or_init(|| redacted_url(self.url()).into());
        f.write_str(shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::new(Url::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn a_base_path_stays_as_prefix() {
        let cases = [
            ("http://h:1/", "/api/v1/tools", "http://h:1/api/v1/tools"),
            (
                "http://h:1/x/",
                "/api/v1/tools",
                "http://h:1/x/api/v1/tools",
            ),
            ("http://h:1/x", "api/v1/tools", "http://h:1/x/api/v1/tools"),
            ("http://h:1/x?a=1#f", "/y", "http://h:1/x/y"),
            ("http://h:1/x/", "", "http://h:1/x/"),
            ("http://h:1/x?a=1#f", "", "http://h:1/x?a=1"),
            (
                "http://h:1/x",
                "/y?scenario=a b",
                "http://h:1/x/y?scenario=a%20b",
            ),
            ("http://h:1/x", "/y#f", "http://h:1/x/y%23f"),
            ("http://h:1/x", "http://evil/", "http://h:1/x/http://evil/"),
            ("http://h:1/x", "//evil/y", "http://h:1/x/evil/y"),
            ("http://[::1]:8080", "/y", "http://[::1]:8080/y"),
            ("http://h:1/x", "/y/../z", "http://h:1/x/z"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(
                address(base).join(path).unwrap().url().as_str(),
                expected,
                "{base} and {path}"
            );
        }
    }

    #[test]
    fn calls_of_one_path_share_an_address_and_others_have_their_own() {
        let base = address("http://u:p@h:1/x?a=1");
        let first = base.called("/call").unwrap();
        assert_eq!(first, base.join("/call").unwrap());
        assert!(Arc::ptr_eq(&first.0, &base.called("/call").unwrap().0));
        let other = base.called("/other").unwrap();
        assert_eq!(other.to_string(), "http://h:1/x/other");
        assert_eq!(base.called("/call").unwrap(), first);
        assert_eq!(base.called("").unwrap(), base.join("").unwrap());
        assert!(base.called("/../../y").is_err());
        for _ in 0..2 {
            assert_eq!(
                first.uri().unwrap(),
                "http://h:1/x/call",
                "without the credentials"
            );
            assert_eq!(first.to_string(), "http://h:1/x/call");
        }
    }

    #[test]
    fn dot_segments_do_not_leave_the_base() {
        for path in ["../z", "/../z", "/%2e%2e/z", "/../xy", "\\..\\..\\z"] {
            let error = address("http://u:secret@h:1/x").join(path).unwrap_err();
            assert_eq!(error.kind(), "address", "{path}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_request_names_the_address_without_its_credentials() {
        let basic = |address: &Address| Some(address.credentials()?.to_str().unwrap().to_owned());
        for (text, uri, credentials) in [
            ("http://h:1/x?y#z", "http://h:1/x?y", None),
            ("https://h/", "https://h/", None),
            ("http://u@h/", "http://h/", Some("Basic dTo=")),
            ("http://:p@h/", "http://h/", Some("Basic OnA=")),
            (
                "http://u%20v:%C3%BC:@h/",
                "http://h/",
                Some("Basic dSB2OsO8Og=="),
            ),
        ] {
            let address = address(text);
            assert_eq!(address.uri().unwrap().to_string(), uri, "{text}");
            assert_eq!(basic(&address).as_deref(), credentials, "{text}");
        }
    }

    #[test]
    fn redirects_keep_the_origin_and_the_credentials() {
        let from = address("http://u:p@h/a/b?q");
        let to = |location: &str| {
            from.redirected(&HeaderValue::from_bytes(location.as_bytes()).unwrap())
        };
        assert_eq!(to("c").unwrap().url().as_str(), "http://u:p@h/a/c");
        assert_eq!(to("/c#f").unwrap().url().as_str(), "http://u:p@h/c");
        assert_eq!(
            to("http://x:y@H:80/c").unwrap().url().as_str(),
            "http://u:p@h/c"
        );
        assert_eq!(to("https://h/c").unwrap_err(), "https://h/c");
        assert_eq!(to("//other/c").unwrap_err(), "http://other/c");
        assert_eq!(
            to("http://x:y@h:81/c?token=1").unwrap_err(),
            "http://h:81/c"
        );
        assert_eq!(to("data:text/plain,secret").unwrap_err(), "data:...");
        assert_eq!(to("file:///etc/passwd").unwrap_err(), "file:///etc/passwd");
        assert_eq!(
            to("http://[").unwrap_err(),
            "an address that cannot be read"
        );
        assert_eq!(to("\u{e9}").unwrap().url().path(), "/a/%C3%A9");
    }
}
