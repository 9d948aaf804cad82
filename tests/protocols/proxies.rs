//! Public hosts behind a proxy. The trusted certificates are named by the environment, so each test
//! runs itself again in a process with others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use callsheet::model::HttpTarget;
use callsheet::runtime::Clock;
use callsheet::transports::http::{CallLimits, Client, ClientLimits, ProxyRules, Upstream};
use http::header::HeaderMap;
use url::Url;

use crate::support::assert_empty;
use crate::support::callee::PATIENCE;
use crate::support::proxy::{Behaviour, Proxy, Requested};
use crate::support::tls_server::{self, TlsServer};
use crate::support::upstream_server::{UpstreamServer, answer, client, limits};
use crate::tls::{run_again, servers};

/// A name that has no address here.
const TOOLS: &str = "https://tools.invalid/";

/// A client whose connections to all but these hosts take this proxy.
fn client_behind(proxy: &str, exceptions: &[&str], limits: ClientLimits) -> Arc<Client> {
    let client = client(limits, 4);
    let exceptions: Vec<String> = exceptions.iter().map(|host| (*host).to_owned()).collect();
    client.use_proxies(&ProxyRules::new(&proxy.parse().unwrap(), &exceptions));
    client
}

/// An address that the operator named.
fn named(client: &Arc<Client>, url: &str) -> Upstream {
    let target = HttpTarget {
        may_use_proxy: true,
        ..HttpTarget::at(url.parse().unwrap())
    };
    client.upstream_to(&target).unwrap()
}

fn call_limits() -> CallLimits {
    CallLimits {
        timeout: PATIENCE,
        max_body: 1024,
        headers: HeaderMap::new(),
        repeatable: false,
    }
}

/// A server whose answer is the host that the request names.
async fn server() -> TlsServer {
    TlsServer::answering(|host, _| tls_server::json(200, &format!("{host:?}"))).await
}

#[tokio::test]
async fn a_public_host_is_polled_and_called_through_the_proxy_which_looks_it_up() {
    if let Some(servers) = servers() {
        for proxy in servers {
            let proxy = format!("http://user:pass%40word@{proxy}");
            let client = client_behind(&proxy, &[], limits());
            for url in [TOOLS, "https://1.1.1.1:8443/"] {
                let upstream = named(&client, url);
                let polled = upstream.get("/tools", None).await.unwrap();
                let host = url.trim_start_matches("https://").trim_end_matches('/');
                assert_eq!(polled.body[..], *format!("{host:?}").as_bytes());
                for _ in 0..2 {
                    let called = upstream.post("/execute", "{}", &call_limits()).await;
                    assert_eq!(called.unwrap().head.status, 200);
                }
            }
        }
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(Behaviour::Tunnel(server.address)).await;
    let test = "proxies::a_public_host_is_polled_and_called_through_the_proxy_which_looks_it_up";
    run_again("ca.pem", test, &[proxy.address]).await;
    let requested = |host: &str| Requested {
        host: host.to_owned(),
        authorization: Some("Basic dXNlcjpwYXNzQHdvcmQ=".to_owned()),
    };
    // A poll has a connection of its own, and calls share one.
    let expected = ["tools.invalid:443", "1.1.1.1:8443"].map(requested);
    let expected: Vec<_> = expected
        .into_iter()
        .flat_map(|requested| [requested.clone(), requested])
        .collect();
    assert_eq!(proxy.requested(), expected);
    assert_eq!(server.seen().len(), 6, "{:?}", server.seen());
}

#[tokio::test]
async fn a_proxy_is_spoken_to_over_tls_where_its_address_says_so() {
    if let Some(servers) = servers() {
        let client = client_behind(&format!("https://{}", servers[0]), &[], limits());
        named(&client, TOOLS).get("/tools", None).await.unwrap();
        return;
    }
    let server = server().await;
    let proxy = Proxy::start(Behaviour::TlsTunnel(server.address)).await;
    let test = "proxies::a_proxy_is_spoken_to_over_tls_where_its_address_says_so";
    run_again("ca.pem", test, &[proxy.address]).await;
    assert_eq!(proxy.hosts(), ["tools.invalid:443"]);
    assert_eq!(server.seen(), ["GET tools.invalid/tools"]);
}

#[tokio::test]
async fn a_socks_proxy_gets_the_name_of_the_host_and_its_own_credentials() {
    if let Some(servers) = servers() {
        let open = client_behind(&format!("socks5://{}", servers[0]), &[], limits());
        named(&open, TOOLS).get("/tools", None).await.unwrap();
        let closed = format!("socks5h://user:secret@{}", servers[1]);
        let closed = client_behind(&closed, &[], limits());
        named(&closed, TOOLS).get("/tools", None).await.unwrap();
        for wrong in ["user:wrong-secret@", ""] {
            let refused = format!("socks5://{wrong}{}", servers[1]);
            let refused = client_behind(&refused, &[], limits());
            let error = named(&refused, TOOLS)
                .get("/tools", None)
                .await
                .unwrap_err();
            assert_eq!(error.kind(), "proxy", "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        return;
    }
    let server = server().await;
    let open = Proxy::start(Behaviour::Socks(server.address, None)).await;
    let closed = Behaviour::Socks(server.address, Some(("user", "secret")));
    let closed = Proxy::start(closed).await;
    let test = "proxies::a_socks_proxy_gets_the_name_of_the_host_and_its_own_credentials";
    run_again("ca.pem", test, &[open.address, closed.address]).await;
    assert_eq!(open.hosts(), ["tools.invalid:443"]);
    let expected = Requested {
        host: "tools.invalid:443".to_owned(),
        authorization: Some("user:secret".to_owned()),
    };
    assert_eq!(closed.requested(), [expected]);
    assert_eq!(server.seen().len(), 2, "{:?}", server.seen());
}

/// This machine, private addresses, plain http, exceptions, and what was only discovered.
#[tokio::test]
async fn what_takes_no_proxy_is_reached_directly() {
    if let Some(servers) = servers() {
        let [proxy, secure, plain] = servers[..] else {
            panic!("{servers:?}")
        };
        let client = client_behind(&format!("http://{proxy}"), &["excepted.invalid"], limits());
        let secure = format!("https://{secure}/");
        named(&client, &secure).get("/tools", None).await.unwrap();
        let called = named(&client, &secure)
            .post("/execute", "{}", &call_limits())
            .await;
        assert_eq!(called.unwrap().head.status, 200);
        let plain = format!("http://localhost:{}/", plain.port());
        named(&client, &plain).get("/tools", None).await.unwrap();
        for url in ["http://tools.invalid/", "https://sub.excepted.invalid/"] {
            let error = named(&client, url).get("/tools", None).await.unwrap_err();
            assert_eq!(error.kind(), "unresolved", "{url}: {error}");
        }
        let discovered = client.upstream(TOOLS.parse().unwrap()).unwrap();
        let error = discovered.get("/tools", None).await.unwrap_err();
        assert_eq!(error.kind(), "unresolved", "{error}");
        return;
    }
    let secure = server().await;
    let plain = UpstreamServer::answering(|_| answer("200 OK", &[], b"{}")).await;
    let proxy = Proxy::start(Behaviour::Tunnel(secure.address)).await;
    let test = "proxies::what_takes_no_proxy_is_reached_directly";
    let servers = [proxy.address, secure.address, plain.address()];
    run_again("ca.pem", test, &servers).await;
    assert_empty!(proxy.requested());
    assert_eq!(secure.seen().len(), 2, "{:?}", secure.seen());
    assert_eq!(plain.requests().len(), 1);
}

/// The reason that a poll and a call of a public host give behind this proxy.
async fn reason(proxy: SocketAddr, limits: ClientLimits) -> String {
    let client = client_behind(&format!("http://user:secret@{proxy}"), &[], limits);
    let upstream = named(&client, TOOLS);
    let error = upstream.get("/tools", None).await.unwrap_err();
    assert_eq!(error.kind(), "proxy", "{error}");
    let called = upstream.post("/tools", "{}", &call_limits()).await;
    let unanswered = called.unwrap_err();
    assert_eq!(unanswered.error.kind(), "proxy", "{unanswered}");
    assert!(!unanswered.sent, "no server has seen the call");
    let text = error.to_string();
    assert_eq!(text, unanswered.to_string());
    assert!(text.contains(&format!("http://{proxy}")), "{text}");
    assert!(text.contains(TOOLS), "{text}");
    assert!(!text.contains("secret"), "{text}");
    text
}

#[tokio::test]
async fn a_proxy_that_makes_no_connection_is_named_in_the_reason_without_its_credentials() {
    for (answer, expected) in [
        (
            &b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n"[..],
            "requires a name and password",
        ),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "refused the connection"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\nno", "refused the connection"),
        (b"\0\x01 this is something else\r\n\r\n", "refused the connection"),
        (b"HTTP/1.1 200", "closed the connection"),
        (b"", "closed the connection"),
    ] {
        let proxy = Proxy::start(Behaviour::Answer(answer)).await;
        let text = reason(proxy.address, limits()).await;
        assert!(text.contains(expected), "{expected}: {text}");
        // The poll and the call; neither is repeated.
        assert_eq!(proxy.requested().len(), 2, "{text}");
    }
    let endless: &'static [u8] = Box::leak(b"x-header: more\r\n".repeat(2_000).into_boxed_slice());
    let endless = [&b"HTTP/1.1 200 OK\r\n"[..], endless].concat();
    let proxy = Proxy::start(Behaviour::Answer(Box::leak(endless.into_boxed_slice()))).await;
    reason(proxy.address, limits()).await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nowhere = free.local_addr().unwrap();
    drop(free);
    let text = reason(nowhere, limits()).await;
    assert!(text.contains("cannot be reached"), "{text}");
}

#[tokio::test]
async fn a_proxy_that_never_answers_costs_the_limit_for_connecting() {
    let proxy = Proxy::start(Behaviour::Silence).await;
    let connect = Duration::from_millis(200);
    let limits = ClientLimits {
        connect,
        ..limits()
    };
    let whole = limits.whole;
    let clock = Clock::system();
    let begun = clock.now();
    let text = reason(proxy.address, limits).await;
    assert!(text.contains("no answer within 200ms"), "{text}");
    assert!(clock.now() - begun < whole);
}

#[tokio::test]
async fn a_proxy_that_cannot_be_used_fails_what_would_have_gone_through_it() {
    let client = client(limits(), 4);
    let why = "a proxy with the scheme `socks4` is not supported".to_owned();
    client.use_proxies(&ProxyRules::unusable("of `ALL_PROXY`", why, &[]));
    let error = named(&client, TOOLS).get("/tools", None).await.unwrap_err();
    assert_eq!(error.kind(), "proxy");
    assert!(error.to_string().contains("of `ALL_PROXY`"), "{error}");
    assert!(error.to_string().contains("socks4"), "{error}");
    let server = UpstreamServer::answering(|_| answer("200 OK", &[], b"{}")).await;
    let url: Url = server.url();
    named(&client, url.as_str())
        .get("/tools", None)
        .await
        .unwrap();
}

/// A configuration that is read again applies to the next connection.
#[tokio::test]
async fn other_rules_apply_to_the_next_connection() {
    let proxy = Proxy::start(Behaviour::Answer(b"HTTP/1.1 502 Bad Gateway\r\n\r\n")).await;
    let client = client_behind(&format!("http://{}", proxy.address), &[], limits());
    let upstream = named(&client, TOOLS);
    let kind = async || upstream.get("/tools", None).await.unwrap_err().kind();
    assert_eq!(kind().await, "proxy");
    client.use_proxies(&ProxyRules::default());
    assert_eq!(kind().await, "unresolved");
    assert_eq!(proxy.hosts(), ["tools.invalid:443"]);
}
