//! Who may be asked, and how an address is shown.
//!
//! It never opens a connection and resolves no name.

use std::fmt;
use std::sync::{Arc, OnceLock};

use url::{Origin, Url};

use super::AskError;
use super::plain::Head;

/// The scheme of what is inside this process: `local:` and a name. Nothing is sent there; its protocol answers by itself.
pub const LOCAL: &str = "local";

/// An address that may be asked: http or https, or [`LOCAL`]. Cheap to clone. Its credentials are sent with every request and never shown: `Display` and `Debug`
/// leave them out, and the query and fragment too, since a query may hold a token.
#[derive(Clone)]
pub struct Address(Arc<Place>);

struct Place {
    url: Url,
    /// Where calls to it go, once there was one: making that anew took longer than all else that a call needs of an address.
    target: OnceLock<Arc<Target>>,
}

/// Where something is posted, ready to be used again.
pub(super) struct Target {
    path: Box<str>,
    pub(super) address: Address,
    /// For a client that knows neither TLS nor credentials; nothing where either is needed.
    pub(super) plain: Option<Head>,
}

impl Address {
    /// Takes an address that may be asked. Fails with [`AskError::Address`] for any other scheme.
    pub fn new(url: Url) -> Result<Self, AskError> {
        match url.scheme() {
            "http" | "https" | LOCAL => Ok(Self::of(url)),
            // Only the scheme is told: what follows it may be anything, credentials included.
            other => Err(AskError::Address(format!(
                "an address with the scheme `{other}` cannot be asked; write one that starts with http:// or https://"
            ))),
        }
    }

    fn of(url: Url) -> Self {
        Self(Arc::new(Place { url, target: OnceLock::new() }))
    }

    /// Where what is posted to `path` below this address goes. Made once for the first path, which is the only one that most have.
    ///
    /// Fails as [`join`](Self::join) does.
    pub(super) fn target(&self, path: &str) -> Result<Arc<Target>, AskError> {
        if let Some(known) = self.0.target.get().filter(|known| *known.path == *path) {
            return Ok(Arc::clone(known));
        }
        let address = self.join(path)?;
        let made = Arc::new(Target { path: path.into(), plain: address.plain().map(Head::new), address });
        let _ = self.0.target.set(Arc::clone(&made));
        Ok(made)
    }

    /// The address of `path` below this one: a path in the base stays as a prefix, its query and fragment do not. `path` may start
    /// with a slash or not and may carry a query; an empty one is the base itself.
    ///
    /// Fails with [`AskError::Address`] when dot segments lead out of the base.
    pub fn join(&self, path: &str) -> Result<Self, AskError> {
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        let mut url = self.url();
        url.set_fragment(None);
        url.set_query(query);
        let prefix = self.0.url.path().trim_end_matches('/');
        if !path.is_empty() {
            url.set_path(&format!("{prefix}/{}", path.trim_start_matches('/')));
        }
        // Setting a path resolves `..`, which another scenario behind the same address must not be reached by.
        let inside = url.path().strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if !inside {
            return Err(AskError::Address(format!("the path `{path}` leads out of {self}")));
        }
        Ok(Self::of(url))
    }

    /// Where a `Location` of this address leads (RFC 9110 section 10.2.2), with the credentials of this address.
    ///
    /// Fails with the shown target when that is of another origin (scheme, host and port) or cannot be read.
    pub(super) fn redirected(&self, location: &http::HeaderValue) -> Result<Self, String> {
        let target = std::str::from_utf8(location.as_bytes()).ok().and_then(|location| self.0.url.join(location).ok());
        let Some(mut target) = target else {
            return Err("an address that cannot be read".to_owned());
        };
        if !self.same_origin(&target.origin()) {
            return Err(shown(&target));
        }
        // Neither can fail for http and https. Credentials in the `Location` are not ours to use.
        let _ = target.set_username(self.0.url.username());
        let _ = target.set_password(self.0.url.password());
        target.set_fragment(None);
        Ok(Self::of(target))
    }

    fn same_origin(&self, other: &Origin) -> bool {
        // Opaque origins (`data:`, `file:`) equal nothing, so they are refused here too.
        self.0.url.origin() == *other
    }

    /// The name behind [`LOCAL`].
    pub(super) fn local(&self) -> Option<&str> {
        (self.0.url.scheme() == LOCAL).then(|| self.0.url.path())
    }

    /// Whether a client that knows neither TLS nor credentials will do.
    pub(super) fn is_plain(&self) -> bool {
        let url = &self.0.url;
        url.scheme() == "http" && url.username().is_empty() && url.password().is_none()
    }

    /// The address for such a client; nothing where one is needed that knows more, or what cannot be written in a request.
    pub(super) fn plain(&self) -> Option<http::Uri> {
        self.is_plain().then(|| self.0.url.as_str().parse().ok()).flatten()
    }

    /// The address with its credentials, for sending.
    pub(super) fn url(&self) -> Url {
        self.0.url.clone()
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Self) -> bool {
        self.0.url == other.0.url
    }
}

impl Eq for Address {}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0.url))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

/// Any address without what may be secret in it: credentials, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    if url.cannot_be_a_base() && url.scheme() != LOCAL {
        // `data:` and `mailto:` carry content or people where others carry a host.
        return format!("{}:...", url.scheme());
    }
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if plain && url.fragment().is_none() {
        return url.as_str().to_owned();
    }
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
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
            ("http://h:1/x/", "/api/v1/tools", "http://h:1/x/api/v1/tools"),
            ("http://h:1/x", "api/v1/tools", "http://h:1/x/api/v1/tools"),
            ("http://h:1/x?a=1#f", "/y", "http://h:1/x/y"),
            ("http://h:1/x/", "", "http://h:1/x/"),
            ("http://h:1/x", "/y?scenario=a b", "http://h:1/x/y?scenario=a%20b"),
            ("http://h:1/x", "/y#f", "http://h:1/x/y%23f"),
            ("http://h:1/x", "http://evil/", "http://h:1/x/http://evil/"),
            ("http://h:1/x", "//evil/y", "http://h:1/x/evil/y"),
            ("http://[::1]:8080", "/y", "http://[::1]:8080/y"),
            ("http://h:1/x", "/y/../z", "http://h:1/x/z"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(address(base).join(path).unwrap().url().as_str(), expected, "{base} and {path}");
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
    fn what_needs_tls_or_credentials_is_not_plain() {
        assert_eq!(address("http://h:1/x?y").plain().unwrap().to_string(), "http://h:1/x?y");
        for other in ["https://h/", "http://u@h/", "http://u:p@h/", "http://:p@h/"] {
            assert_eq!(address(other).plain(), None, "{other}");
        }
    }

    #[test]
    fn each_path_has_its_own_target() {
        let base = address("http://h:1/x");
        for path in ["/y", "/z", "/y"] {
            let target = base.target(path).unwrap();
            assert_eq!((target.address.url().as_str(), &*target.path), (&*format!("http://h:1/x{path}"), path));
            assert!(target.plain.is_some());
        }
        assert!(base.target("../z").is_err());
        assert!(address("http://u@h/").target("/y").unwrap().plain.is_none());
    }

    #[test]
    fn redirects_keep_the_origin_and_the_credentials() {
        let from = address("http://u:p@h/a/b?q");
        let to = |location: &str| from.redirected(&http::HeaderValue::from_bytes(location.as_bytes()).unwrap());
        assert_eq!(to("c").unwrap().url().as_str(), "http://u:p@h/a/c");
        assert_eq!(to("/c#f").unwrap().url().as_str(), "http://u:p@h/c");
        assert_eq!(to("http://x:y@H:80/c").unwrap().url().as_str(), "http://u:p@h/c");
        assert_eq!(to("https://h/c").unwrap_err(), "https://h/c");
        assert_eq!(to("//other/c").unwrap_err(), "http://other/c");
        assert_eq!(to("http://x:y@h:81/c?token=1").unwrap_err(), "http://h:81/c");
        assert_eq!(to("data:text/plain,secret").unwrap_err(), "data:...");
        assert_eq!(to("file:///etc/passwd").unwrap_err(), "file:///etc/passwd");
        assert_eq!(to("http://[").unwrap_err(), "an address that cannot be read");
        assert_eq!(to("\u{e9}").unwrap().url().path(), "/a/%C3%A9");
    }
}
