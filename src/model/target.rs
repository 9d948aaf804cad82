//! Where a scenario is, and how it is reached.
//!
//! A target is plain data: having one resolves, opens and starts no connection or process. What it
//! holds that may be secret is never shown.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;
use sha2::{Digest as _, Sha256};
use url::{Host, Url};
use uuid::Uuid;

use super::credential::feed;
use super::text::hexadecimal;
use super::{Auth, Interaction, ScenarioName, SecretSource, StdioTarget};

/// The scheme of addresses inside this process: `local:` and a name.
const LOCAL: &str = "local";
/// The scheme of addresses of bundles: `bundle:` and a UUID.
const BUNDLE: &str = "bundle";

/// Where a scenario is, and how it is reached. Cheap to clone. Equal targets are reached in the
/// same way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A server that speaks HTTP.
    Http(Arc<HttpTarget>),
    /// A program that is started as a child process. Only the operator's own files and the
    /// embedding program may name one; no source that reads the network or the environment makes
    /// it.
    Stdio(Arc<StdioTarget>),
    /// A target inside this process.
    InProcess(InProcessId),
    /// A bundle of stored tools. Only the source of bundles names one.
    Bundle(BundleId),
}

/// A server that speaks HTTP.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpTarget {
    /// The base address; a path in it is a prefix.
    pub url: Url,
    /// Where to connect instead of looking up the host of `url`.
    pub dial: Option<SocketAddr>,
    /// Whether the way there may be the proxy of the configuration: the operator named the address.
    /// What was only discovered is reached directly.
    pub may_use_proxy: bool,
    /// The credential that every request carries.
    pub auth: Option<Auth>,
    /// Further headers that go with every request.
    pub headers: Vec<(HeaderName, SecretSource)>,
    /// The name under which an operator named it; the tokens of a login under this name are shown
    /// to it. `None` where it was only discovered: it is shown no token of a login.
    pub login: Option<ScenarioName>,
    /// The time that a call of one of its tools may take which does not say so itself.
    pub call_timeout: Option<Duration>,
    /// What it may request of its callers.
    pub interaction: Interaction,
    /// The revision of MCP that it is greeted in first, instead of the newest.
    pub revision: Option<Arc<str>>,
}

/// The name of a target inside this process, as an address of the scheme `local`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InProcessId(Arc<Url>);

/// The identity of a bundle of stored tools, as an address of the scheme `bundle`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleId(Arc<Url>, Uuid);

impl Target {
    /// The server at this address. An address of the scheme `local` names a target inside this
    /// process.
    pub fn at(url: Url) -> Self {
        HttpTarget::at(url).into()
    }

    /// Its address. Targets at different addresses are reached in different ways.
    pub fn url(&self) -> &Url {
        match self {
            Self::Http(target) => &target.url,
            Self::Stdio(target) => target.url(),
            Self::InProcess(id) => &id.0,
            Self::Bundle(id) => &id.0,
        }
    }

    /// The server, if it is one that speaks HTTP.
    pub fn http(&self) -> Option<&HttpTarget> {
        match self {
            Self::Http(target) => Some(target),
            Self::Stdio(_) | Self::InProcess(_) | Self::Bundle(_) => None,
        }
    }

    /// The revision of MCP that it is greeted in first, instead of the newest.
    pub fn revision(&self) -> Option<&str> {
        match self {
            Self::Http(target) => target.revision.as_deref(),
            Self::Stdio(target) => target.revision(),
            Self::InProcess(_) | Self::Bundle(_) => None,
        }
    }

    /// `scheme://host:port` that is connected to. All names of this machine count as one host.
    ///
    /// Of a program that is started here: all of its command line and environment, with 0 for the
    /// port, so that an approval never counts for another command.
    pub(crate) fn origin(&self) -> String {
        let url = self.url();
        if let Self::Stdio(_) = self {
            return format!("{url}:0");
        }
        if let Some(dial) = self.http().and_then(|target| target.dial) {
            // Any host on the network can influence a name that only the source can resolve; the
            // address is what is connected to.
            let text = dial.to_string();
            let host = text
                .rsplit_once(':')
                .map_or(text.as_str(), |(host, _)| host);
            let host = if is_localhost(dial.ip()) {
                "localhost"
            } else {
                host
            };
            return format!("{}://{host}:{}", url.scheme(), dial.port());
        }
        let own = match url.host() {
            Some(Host::Domain(domain)) => domain.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => is_localhost(address.into()),
            Some(Host::Ipv6(address)) => is_localhost(address.into()),
            None => false,
        };
        let host = if own {
            "localhost"
        } else {
            url.host_str().unwrap_or_default()
        };
        format!(
            "{}://{host}:{}",
            url.scheme(),
            url.port_or_known_default().unwrap_or_default()
        )
    }

    /// One key for all spellings of the same address.
    pub(crate) fn address_key(&self) -> String {
        match self {
            Self::Stdio(_) => self.origin(),
            Self::Http(_) | Self::InProcess(_) | Self::Bundle(_) => {
                format!(
                    "{}{}",
                    self.origin(),
                    self.url().path().trim_end_matches('/')
                )
            }
        }
    }

    /// What it may request of its callers. `None` where there are no such requests.
    pub fn interaction(&self) -> Option<&Interaction> {
        match self {
            Self::Http(target) => Some(&target.interaction),
            Self::Stdio(target) => Some(target.interaction()),
            Self::InProcess(_) | Self::Bundle(_) => None,
        }
    }
}

/// Whether it is one of the two addresses that `localhost` stands for. The rest of 127.0.0.0/8 are
/// separate addresses.
fn is_localhost(address: IpAddr) -> bool {
    address == Ipv4Addr::LOCALHOST || address == Ipv6Addr::LOCALHOST
}

impl HttpTarget {
    /// The server at this address, without any other facts.
    pub fn at(url: Url) -> Self {
        Self {
            url,
            dial: None,
            may_use_proxy: false,
            auth: None,
            headers: Vec::new(),
            login: None,
            call_timeout: None,
            interaction: Interaction::default(),
            revision: None,
        }
    }

    /// Whether requests carry what may be secret by configuration.
    pub fn has_credentials(&self) -> bool {
        self.auth.is_some() || !self.headers.is_empty() || !self.url.username().is_empty()
    }

    /// The address without what may be secret, and a digest of the whole address and all headers as
    /// fragment.
    pub fn fingerprinted(&self) -> String {
        let mut hash = Sha256::new();
        feed(&mut hash, self.url.as_str().as_bytes());
        match &self.auth {
            Some(auth) => auth.add_to(&mut hash),
            None => feed(&mut hash, &[]),
        }
        for (name, value) in &self.headers {
            feed(&mut hash, name.as_str().as_bytes());
            value.add_to(&mut hash);
        }
        let digits = hexadecimal(&hash.finalize()[..16]);
        format!("{}#{digits}", redacted_url(&self.url))
    }
}

impl From<HttpTarget> for Target {
    fn from(mut target: HttpTarget) -> Self {
        if target.url.scheme() != LOCAL {
            return Self::Http(Arc::new(target));
        }
        target.url.set_query(None);
        target.url.set_fragment(None);
        Self::InProcess(InProcessId(Arc::new(target.url)))
    }
}

impl From<StdioTarget> for Target {
    fn from(target: StdioTarget) -> Self {
        Self::Stdio(Arc::new(target))
    }
}

impl From<BundleId> for Target {
    fn from(id: BundleId) -> Self {
        Self::Bundle(id)
    }
}

impl BundleId {
    /// The bundle with this UUID. A UUID is always a part of an address, so `None` does not occur.
    pub fn new(id: Uuid) -> Option<Self> {
        Url::parse(&format!("{BUNDLE}:{id}"))
            .ok()
            .map(|url| Self(Arc::new(url), id))
    }

    /// The UUID.
    pub fn uuid(&self) -> Uuid {
        self.1
    }
}

impl InProcessId {
    /// The name.
    pub fn as_str(&self) -> &str {
        self.0.path()
    }
}

/// The address without what may be secret in it, or the exact command line.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(target) => f.write_str(&redacted_url(&target.url)),
            Self::Stdio(target) => target.fmt(f),
            Self::InProcess(id) => write!(f, "{LOCAL}:{}", id.as_str()),
            Self::Bundle(id) => write!(f, "{BUNDLE}:{}", id.1),
        }
    }
}

impl fmt::Debug for HttpTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = redacted_url(&self.url);
        f.debug_struct("HttpTarget")
            .field("url", &url)
            .field("dial", &self.dial)
            .finish_non_exhaustive()
    }
}

/// Any address without what may be secret in it: credentials, query and fragment.
pub(crate) fn redacted_url(url: &Url) -> String {
    if url.cannot_be_a_base() && ![LOCAL, BUNDLE].contains(&url.scheme()) {
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
    use crate::model::Secret;

    #[test]
    fn what_may_be_secret_is_not_shown() {
        for (url, expected) in [
            ("http://u:secret@h:1/x?token=secret#f", "http://h:1/x"),
            ("http://h:1/x", "http://h:1/x"),
            ("data:text/plain,secret", "data:..."),
            ("local:dice", "local:dice"),
            ("local:dice?token=secret#f", "local:dice"),
        ] {
            let target = Target::at(url.parse().unwrap());
            assert_eq!(target.to_string(), expected);
            assert!(!format!("{target:?}").contains("secret"), "{target:?}");
        }
    }

    #[test]
    fn no_address_is_a_command_or_a_bundle() {
        for url in [
            "stdio:sh",
            "stdio:/bin/sh%20-c%20true",
            "STDIO:sh",
            "bundle:018faf50-b7b6-7a01-9a05-a22a6e0af101",
        ] {
            assert!(
                matches!(Target::at(url.parse().unwrap()), Target::Http(_)),
                "{url}"
            );
        }
    }

    #[test]
    fn equal_targets_are_reached_in_the_same_way() {
        let at = |port: u16, token: Option<&str>| {
            let url = format!("http://h:{port}/").parse().unwrap();
            let auth = token.map(|token| Auth::Bearer(Secret::new(token).into()));
            Target::from(HttpTarget {
                auth,
                ..HttpTarget::at(url)
            })
        };
        assert_eq!(at(1, None), at(1, None));
        assert_ne!(at(1, None), at(2, None));
        assert_ne!(at(1, None), at(1, Some("t")));
    }
}
