//! Keeps web pages out of a daemon that listens on the user's own machine.
//!
//! - `Host` must name this daemon. A page that points its own name at 127.0.0.1 (DNS rebinding)
//!   still sends its own name.
//! - A request that changes state must not come from another site: `Origin` (RFC 6454 section 7)
//!   and `Sec-Fetch-Site` (W3C Fetch Metadata).
//! - The same holds for a WebSocket, which a page of any site may open and read.
//! - A page of another site may not have the browser send requests in its name at all
//!   (`Sec-Fetch-Site: cross-site`), so that it cannot make the daemon work; following a link to
//!   the dashboard is no such request (`Sec-Fetch-Mode: navigate`).
//! - A body that changes state must be JSON, or what its route takes instead: the simple forms that
//!   a page may post without a preflight request cannot have these content types.
//! - No CORS header is sent, so a page cannot read answers, except for `server.allowed_origins`.
//!
//! Pure: checks the heads of requests, reads no body. Never identifies a user; that needs tokens.

use std::net::IpAddr;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, UPGRADE};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};

use crate::config;
use crate::server::http::error::{Problem, excerpt};

/// The content type of bodies where no rule says otherwise.
pub(in crate::server) const JSON: &str = "application/json";
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// A path whose bodies are not JSON of at most `server.max_body` bytes.
#[derive(Debug)]
pub(in crate::server) struct BodyRule {
    /// The whole path.
    pub(in crate::server) path: &'static str,
    /// The content type, not one of those that a page may post without a preflight request.
    pub(in crate::server) media: &'static str,
    /// Bytes at most.
    pub(in crate::server) max: usize,
}

/// The hosts and origins that the configuration allows, beside those of this machine.
#[derive(Debug)]
pub(in crate::server) struct Guard {
    bodies: Vec<BodyRule>,
    hosts: Vec<String>,
    origins: Vec<WebOrigin>,
    max_body: usize,
}

/// The result for a request that may pass.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::server) struct Pass {
    /// The configured origin of the request, for the CORS headers of the answer.
    pub(in crate::server) origin: Option<HeaderValue>,
}

/// The headers that are checked, found in one pass: one lookup for each took as long as all the
/// rest.
#[derive(Debug, Default)]
struct GuardHeaders<'a> {
    /// The first `Host`.
    host: Option<&'a HeaderValue>,
    /// Whether there is more than one `Host`.
    several_hosts: bool,
    origin: Option<&'a HeaderValue>,
    length: Option<&'a HeaderValue>,
    upgrade: bool,
    /// `Sec-Fetch-Site`: the relation of the page to this daemon.
    site: Option<&'a HeaderValue>,
}

/// `scheme://host[:port]`, lower case, with the port always filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WebOrigin {
    scheme: &'static str,
    host: String,
    port: u16,
}

impl Guard {
    /// The rules of `[server]`, and those of routes with other bodies. An invalid origin is logged
    /// and never matches.
    pub(in crate::server) fn new(config: &config::ServerConfig, bodies: Vec<BodyRule>) -> Self {
        let origin = |text: &String| {
            let origin = WebOrigin::parse(text);
            if origin.is_none() {
                tracing::warn!(origin = %text, "`server.allowed_origins`: not `scheme://host[:port]`, ignored");
            }
            origin
        };
        let hosts = config
            .allowed_hosts
            .iter()
            .map(|host| normalize_host(host))
            .collect();
        let origins = config.allowed_origins.iter().filter_map(origin).collect();
        Self {
            bodies,
            hosts,
            origins,
            max_body: config.max_body,
        }
    }

    /// Whether answers differ by `Origin`, which caches have to know (`Vary`).
    pub(in crate::server) fn varies_by_origin(&self) -> bool {
        !self.origins.is_empty()
    }

    /// Checks the head of a request that came to the address `local`. `has_body` is whether a body
    /// follows.
    pub(in crate::server) fn check(
        &self,
        head: &Parts,
        local: IpAddr,
        has_body: bool,
    ) -> Result<Pass, Problem> {
        let lines = GuardHeaders::from_headers(&head.headers);
        // A safe request from another site is harmless: it changes no state, and the browser keeps
        // its answer from the page. This does not hold for a WebSocket: browsers let any page open
        // one and read it, and leave it to the server to check the `Origin` (RFC 6455 section
        // 10.2).
        let harmless = is_safe(&head.method) && !lines.upgrade;
        let host = self.host(head, &lines, local, harmless)?;
        let origin = self.origin(head, &lines, host.as_ref(), harmless)?;
        self.body(head, &lines, has_body)?;
        Ok(Pass { origin })
    }

    /// Refuses a body of another content type, or that is announced as too large.
    fn body(&self, head: &Parts, lines: &GuardHeaders<'_>, has_body: bool) -> Result<(), Problem> {
        if is_safe(&head.method) && lines.length.is_none() {
            return Ok(());
        }
        let rule = self.bodies.iter().find(|rule| rule.path == head.uri.path());
        let announced = lines
            .length
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok())
            .unwrap_or_default();
        match rule {
            Some(rule) if announced > rule.max as u64 => {
                return Err(Problem::larger_than_taken(rule.max));
            }
            None if announced > self.max_body as u64 => {
                return Err(Problem::too_large(self.max_body));
            }
            _ => {}
        }
        if is_safe(&head.method) {
            return Ok(());
        }
        require_media(
            rule.map_or(JSON, |rule| rule.media),
            &head.headers,
            has_body,
        )
    }

    /// The host that the client addresses, if it names this daemon. HTTP/1.0 clients may omit it.
    fn host(
        &self,
        head: &Parts,
        lines: &GuardHeaders<'_>,
        local: IpAddr,
        harmless: bool,
    ) -> Result<Option<Authority>, Problem> {
        let line = lines.host;
        // RFC 9112 section 3.2: exactly one, even if the target names the host, too.
        if lines.several_hosts || (line.is_none() && head.version == Version::HTTP_11) {
            return Err(Problem::bad_request(
                "an HTTP/1.1 request needs exactly one `Host` header",
            ));
        }
        // The header of nearly every client needs no further check, and the name is only needed
        // where an `Origin` is compared with it.
        if harmless && head.uri.authority().is_none() && line.is_some_and(is_plainly_loopback) {
            return Ok(None);
        }
        let written = line
            .map(|line| parse_authority(line.as_bytes()))
            .transpose()?;
        for authority in [written.as_ref(), head.uri.authority()]
            .into_iter()
            .flatten()
        {
            if !self.is_ours(authority.host(), local) {
                return Err(refused_host(authority.host()));
            }
        }
        Ok(head.uri.authority().cloned().or(written))
    }

    fn is_ours(&self, host: &str, local: IpAddr) -> bool {
        let host = normalize_host(host);
        if let Ok(address) = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
        {
            let address = address.to_canonical();
            if address.is_loopback() || address == local.to_canonical() {
                return true;
            }
        }
        host == "localhost" || host.ends_with(".localhost") || self.hosts.contains(&host)
    }

    /// The configured origin that the request comes from, if any. Refuses other origins on requests
    /// that change state.
    fn origin(
        &self,
        head: &Parts,
        lines: &GuardHeaders<'_>,
        host: Option<&Authority>,
        harmless: bool,
    ) -> Result<Option<HeaderValue>, Problem> {
        let written = lines.origin;
        let site = lines.site.map(HeaderValue::as_bytes);
        let origin = written.and_then(|origin| WebOrigin::parse(origin.to_str().ok()?));
        if origin
            .as_ref()
            .is_some_and(|origin| self.origins.contains(origin))
        {
            return Ok(written.cloned());
        }
        if harmless {
            let follows_link = || {
                head.headers
                    .get(SEC_FETCH_MODE)
                    .is_some_and(|mode| mode == "navigate")
            };
            return if site == Some(b"cross-site") && !follows_link() {
                Err(refused_origin(written))
            } else {
                Ok(None)
            };
        }
        let own_origin = match (written, &origin) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(_), Some(origin)) => host.is_some_and(|host| origin.matches_host(host)),
        };
        if !own_origin {
            return Err(refused_origin(written));
        }
        match site {
            Some(b"cross-site" | b"same-site") => Err(refused_origin(written)),
            _ => Ok(None),
        }
    }
}

impl<'a> GuardHeaders<'a> {
    fn from_headers(headers: &'a HeaderMap) -> Self {
        let mut lines = Self::default();
        for (name, value) in headers {
            if *name == HOST {
                lines.several_hosts = lines.host.is_some();
                lines.host = lines.host.or(Some(value));
            } else if *name == ORIGIN {
                lines.origin = lines.origin.or(Some(value));
            } else if *name == CONTENT_LENGTH {
                lines.length = lines.length.or(Some(value));
            } else if *name == UPGRADE {
                lines.upgrade = true;
            } else if *name == SEC_FETCH_SITE {
                lines.site = lines.site.or(Some(value));
            }
        }
        lines
    }
}

impl WebOrigin {
    /// `None` for `null` and for a text that is not a web origin.
    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
            "http" => ("http", 80),
            "https" => ("https", 443),
            _ => return None,
        };
        let authority = parse_authority(authority.as_bytes()).ok()?;
        Some(Self {
            scheme,
            host: normalize_host(authority.host()),
            port: authority.port_u16().unwrap_or(default_port),
        })
    }

    /// Whether this is the origin of the server at `host`. Behind a proxy that ends TLS the scheme
    /// is that of the proxy, so it only determines the default port.
    fn matches_host(&self, host: &Authority) -> bool {
        let default_port = if self.scheme == "https" { 443 } else { 80 };
        self.host == normalize_host(host.host())
            && self.port == host.port_u16().unwrap_or(default_port)
    }
}

/// Lower case, without the dot that ends a fully qualified name.
fn normalize_host(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Whether the header is exactly `localhost` or `127.0.0.1`, with or without a port.
fn is_plainly_loopback(line: &HeaderValue) -> bool {
    let line = line.as_bytes();
    let rest = line
        .strip_prefix(b"localhost")
        .or_else(|| line.strip_prefix(b"127.0.0.1"));
    match rest {
        Some([]) => true,
        Some([b':', port @ ..]) => !port.is_empty() && is_port(port),
        _ => false,
    }
}

/// Whether this is a port as in an address: the digits of a number up to 65535, or no digit at all
/// (RFC 3986 section 3.2.3).
fn is_port(text: &[u8]) -> bool {
    let digits = text.iter().all(u8::is_ascii_digit);
    digits
        && (text.is_empty()
            || std::str::from_utf8(text).is_ok_and(|text| text.parse::<u16>().is_ok()))
}

/// Parses `host[:port]`; user names are refused (RFC 9110 section 7.2).
fn parse_authority(text: &[u8]) -> Result<Authority, Problem> {
    let authority = Authority::try_from(text)
        .ok()
        .filter(|authority| !authority.as_str().contains('@'));
    let refused = || {
        let text = excerpt(&String::from_utf8_lossy(text));
        Problem::bad_request(format!(
            "the `Host` header is `{text}`, which is not `host[:port]`"
        ))
    };
    // `Authority` accepts any text as a port, and text behind the bracket of an IPv6 address.
    let is_exact =
        |authority: &Authority| match authority.as_str().as_bytes().get(authority.host().len()..) {
            Some([]) => true,
            Some([b':', port @ ..]) => is_port(port),
            _ => false,
        };
    authority
        .filter(|authority| !authority.host().is_empty() && is_exact(authority))
        .ok_or_else(refused)
}

/// Whether the method is safe: it changes no state (RFC 9110 section 9.2.1).
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn require_media(media: &str, headers: &HeaderMap, has_body: bool) -> Result<(), Problem> {
    let written = headers
        .get(CONTENT_TYPE)
        .map(|value| value.to_str().unwrap_or_default());
    let essence = written.map(|value| {
        value
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase()
    });
    match essence.as_deref() {
        Some(essence) if essence == media => Ok(()),
        None if !has_body => Ok(()),
        _ => Err(other_media(media, written)),
    }
}

/// 415: the body has to be `media`; `written` is its `Content-Type`, if it has one.
pub(in crate::server) fn other_media(media: &str, written: Option<&str>) -> Problem {
    let got = written.map_or_else(
        || "none".to_owned(),
        |written| format!("`{}`", excerpt(written)),
    );
    let needed = if media == JSON {
        "bodies of requests that change something need"
    } else {
        "this body needs"
    };
    Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        format!("{needed} `Content-Type: {media}`, got {got}"),
    )
}

/// 403: the request is meant for another host.
pub(in crate::server) fn refused_host(host: &str) -> Problem {
    let host = excerpt(host);
    let next = format!("if `{host}` is a name of this machine, add it to `server.allowed_hosts`");
    Problem::new(
        StatusCode::FORBIDDEN,
        format!("requests for the host `{host}` are not answered here"),
    )
    .and_next(&next)
}

fn refused_origin(written: Option<&HeaderValue>) -> Problem {
    let origin = written.map_or_else(
        || "another site".to_owned(),
        |origin| {
            format!(
                "the origin `{}`",
                excerpt(&String::from_utf8_lossy(origin.as_bytes()))
            )
        },
    );
    let next = "if you trust it, add it to `server.allowed_origins`";
    Problem::new(
        StatusCode::FORBIDDEN,
        format!("web pages of {origin} may not change, follow or request anything here"),
    )
    .and_next(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 168, 1, 5));

    fn guard() -> Guard {
        let config = config::ServerConfig {
            listen: "192.168.1.5:7400".parse().unwrap(),
            allowed_hosts: vec!["Tools.Example".into()],
            allowed_origins: vec!["https://ui.example".into(), "nonsense".into()],
            max_body: 100,
            max_connections: 1,
            held_bytes: 1 << 20,
            list_lifetime: Duration::ZERO,
            stop_timeout: Duration::ZERO,
            ready_timeout: Duration::ZERO,
            rpc_socket: None,
            operator_token: None,
        };
        Guard::new(
            &config,
            vec![BodyRule {
                path: "/archive",
                media: "application/zip",
                max: 200,
            }],
        )
    }

    fn status(method: &str, headers: &[(&str, &str)], has_body: bool) -> u16 {
        status_at("/api/v1/preferences", method, headers, has_body)
    }

    fn status_at(path: &str, method: &str, headers: &[(&str, &str)], has_body: bool) -> u16 {
        let mut request = http::Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        match guard().check(&head, LOCAL, has_body) {
            Ok(_) => 200,
            Err(problem) => problem.into_full_response().status().as_u16(),
        }
    }

    #[test]
    fn answers_loopback_names_the_listen_address_and_configured_names() {
        for host in [
            "localhost",
            "LOCALHOST:7400",
            "localhost.:1",
            "callsheet.localhost",
            "127.0.0.1:7400",
            "127.8.8.8",
            "[::1]:7400",
            "[::ffff:127.0.0.1]",
            "192.168.1.5:80",
            "tools.example",
            "TOOLS.example.:443",
        ] {
            assert_eq!(status("GET", &[("host", host)], false), 200, "{host}");
        }
    }

    #[test]
    fn refuses_other_hosts() {
        for host in [
            "evil.example",
            "localhost.evil.example",
            "192.168.1.6",
            "evillocalhost",
            "[::2]",
            "0.0.0.0",
        ] {
            assert_eq!(status("GET", &[("host", host)], false), 403, "{host}");
        }
        for headers in [
            &[][..],
            &[("host", "")],
            &[("host", "a b")],
            &[("host", "u@localhost")],
        ] {
            assert_eq!(status("GET", headers, false), 400, "{headers:?}");
        }
        assert_eq!(
            status(
                "GET",
                &[("host", "localhost"), ("host", "localhost")],
                false
            ),
            400
        );
    }

    #[test]
    fn a_host_is_a_name_and_a_port_and_no_more_for_every_method() {
        for (host, good) in [
            ("localhost:7400", true),
            ("localhost:65535", true),
            ("localhost:", true),
            ("[::1]:80", true),
            ("localhost:65536", false),
            ("localhost:99999", false),
            ("localhost:evil", false),
            ("127.0.0.1:99999999999", false),
            ("127.0.0.1:80:80", false),
            ("[::1]evil", false),
            ("[::1].evil", false),
            ("[::1]:evil", false),
        ] {
            let expected = if good { 200 } else { 400 };
            for method in ["GET", "DELETE"] {
                assert_eq!(
                    status(method, &[("host", host)], false),
                    expected,
                    "{method} with `Host: {host}`"
                );
            }
        }
    }

    #[test]
    fn a_target_that_names_a_foreign_host_is_refused_whatever_host_says() {
        let request = http::Request::builder()
            .uri("http://evil.example/")
            .header("host", "localhost");
        let (head, ()) = request.body(()).unwrap().into_parts();
        assert!(guard().check(&head, LOCAL, false).is_err());
    }

    #[test]
    fn http2_names_the_host_in_the_target() {
        for (uri, passes) in [
            ("http://localhost:7400/", true),
            ("http://evil.example/", false),
        ] {
            let request = http::Request::builder().uri(uri).version(Version::HTTP_2);
            let (head, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(guard().check(&head, LOCAL, false).is_ok(), passes, "{uri}");
        }
    }

    #[test]
    fn foreign_origins_may_not_change_state() {
        let host = ("host", "localhost:7400");
        for (origin, expected) in [
            ("http://localhost:7400", 200),
            ("http://localhost:5173", 403),
            ("http://127.0.0.1:7400", 403),
            ("https://evil.example", 403),
            ("https://ui.example", 200),
            ("https://UI.example:443", 200),
            ("http://ui.example", 403),
            ("null", 403),
            ("", 403),
        ] {
            assert_eq!(
                status("DELETE", &[host, ("origin", origin)], false),
                expected,
                "{origin}"
            );
            assert_eq!(
                status("GET", &[host, ("origin", origin)], false),
                200,
                "{origin}"
            );
        }
        assert_eq!(
            status(
                "POST",
                &[
                    ("host", "tools.example"),
                    ("origin", "https://tools.example")
                ],
                false
            ),
            200
        );
    }

    #[test]
    fn fetch_metadata_of_other_sites_may_not_change_state() {
        let host = ("host", "localhost:7400");
        for (site, expected) in [
            ("cross-site", 403),
            ("same-site", 403),
            ("same-origin", 200),
            ("none", 200),
        ] {
            assert_eq!(
                status("POST", &[host, ("sec-fetch-site", site)], false),
                expected,
                "{site}"
            );
            let read = if site == "cross-site" { 403 } else { 200 };
            assert_eq!(
                status("GET", &[host, ("sec-fetch-site", site)], false),
                read,
                "{site}"
            );
            let link = [
                host,
                ("sec-fetch-site", site),
                ("sec-fetch-mode", "navigate"),
            ];
            assert_eq!(
                status("GET", &link, false),
                200,
                "a link on a page that is {site}"
            );
        }
        let configured = [
            host,
            ("origin", "https://ui.example"),
            ("sec-fetch-site", "cross-site"),
        ];
        assert_eq!(status("POST", &configured, false), 200);
        assert_eq!(status("GET", &configured, false), 200);
    }

    #[test]
    fn sockets_are_for_our_own_pages() {
        let host = ("host", "localhost:7400");
        let upgrade = ("upgrade", "websocket");
        assert_eq!(
            status("GET", &[host, upgrade], false),
            200,
            "no page sends it"
        );
        for (origin, expected) in [
            ("http://localhost:7400", 200),
            ("https://ui.example", 200),
            ("https://evil.example", 403),
            ("null", 403),
        ] {
            assert_eq!(
                status("GET", &[host, upgrade, ("origin", origin)], false),
                expected,
                "{origin}"
            );
        }
        assert_eq!(
            status(
                "GET",
                &[host, upgrade, ("sec-fetch-site", "cross-site")],
                false
            ),
            403
        );
    }

    #[test]
    fn bodies_that_change_state_are_json() {
        let host = ("host", "localhost");
        for (kind, expected) in [
            ("application/json", 200),
            ("Application/JSON; charset=utf-8", 200),
            ("text/plain", 415),
            ("application/x-www-form-urlencoded", 415),
            ("application/jsonx", 415),
        ] {
            assert_eq!(
                status("POST", &[host, ("content-type", kind)], true),
                expected,
                "{kind}"
            );
        }
        assert_eq!(status("POST", &[host], true), 415);
        assert_eq!(status("POST", &[host], false), 200);
    }

    #[test]
    fn a_body_announced_too_large_is_refused_unread() {
        let headers = [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("content-length", "101"),
        ];
        assert_eq!(status("PUT", &headers, true), 413);
        assert_eq!(status("GET", &headers, true), 413);
    }

    #[test]
    fn a_route_may_take_another_body_with_a_limit_of_its_own() {
        for (kind, length, expected) in [
            ("application/zip", "200", 200),
            ("application/zip", "201", 413),
            ("application/json", "2", 415),
            ("text/plain", "2", 415),
            ("multipart/form-data", "2", 415),
        ] {
            let headers = [
                ("host", "localhost"),
                ("content-type", kind),
                ("content-length", length),
            ];
            assert_eq!(
                status_at("/archive", "POST", &headers, true),
                expected,
                "{kind} {length}"
            );
        }
        let zip = [
            ("host", "localhost"),
            ("content-type", "application/zip"),
            ("content-length", "2"),
        ];
        for other in ["/", "/archive/", "/Archive", "/%61rchive", "/archive/x"] {
            assert_eq!(status_at(other, "POST", &zip, true), 415, "{other}");
        }
        let foreign = [zip[0], zip[1], ("origin", "https://evil.example")];
        assert_eq!(status_at("/archive", "POST", &foreign, true), 403);
    }

    #[test]
    fn a_configured_origin_is_distinguished() {
        let request = http::Request::builder()
            .header("host", "localhost")
            .header("origin", "https://ui.example");
        let (head, ()) = request.body(()).unwrap().into_parts();
        let pass = guard().check(&head, LOCAL, false).unwrap();
        assert_eq!(pass.origin.unwrap(), "https://ui.example");
    }
}
