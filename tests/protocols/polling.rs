//! Asking a scenario: what is sent, what counts as an answer, and every kind of failure, against
//! real servers on this machine. The limits are in `asking_limits.rs`.

use std::time::{Duration, SystemTime};

use callsheet::runtime::Clock;
use callsheet::transports::TransportError;
use callsheet::transports::http::{ClientLimits, HttpResponse, HttpValidators};
use http::{HeaderValue, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

use crate::support::assert_empty;
use crate::support::upstream_server::{UpstreamServer, answer, client, gzip, limits, upstream};

async fn ask(server: &UpstreamServer) -> Result<HttpResponse, TransportError> {
    upstream(server.url()).get("/tools", None).await
}

#[tokio::test]
async fn a_request_says_who_asks_and_for_what() {
    let server = UpstreamServer::answering(|_| answer("200 OK", &["X-Test: yes"], b"{}")).await;
    let mut base = server.url();
    base.set_path("/prefix/");
    let answered = upstream(base).get("/api/v1/tools?a=1", None).await.unwrap();

    assert_eq!(answered.head.status, StatusCode::OK);
    assert_eq!(answered.head.headers["x-test"], "yes");
    assert_eq!(&answered.body[..], b"{}");
    assert!(answered.head.requested <= answered.head.received);
    let request = &server.requests()[0];
    assert_eq!(request.target(), "/prefix/api/v1/tools?a=1");
    assert_eq!(request.header("accept"), Some("application/json"));
    assert_eq!(
        request.header("user-agent"),
        Some(concat!("callsheet/", env!("CARGO_PKG_VERSION")))
    );
    let codings: Vec<&str> = request
        .header("accept-encoding")
        .unwrap()
        .split(',')
        .map(str::trim)
        .collect();
    assert!(
        codings.contains(&"gzip") && codings.contains(&"br"),
        "{codings:?}"
    );
    assert_eq!(
        codings.len(),
        2,
        "only what is decoded may be accepted: {codings:?}"
    );
    for absent in [
        "authorization",
        "if-none-match",
        "if-modified-since",
        "referer",
    ] {
        assert_eq!(request.header(absent), None, "{absent}");
    }
}

#[tokio::test]
async fn credentials_are_sent_and_never_shown() {
    let server = UpstreamServer::answering(|_| answer("403 Forbidden", &[], b"")).await;
    let mut base = server.url();
    base.set_username("us er").unwrap();
    base.set_password(Some("topsecret:1")).unwrap();
    base.set_query(Some("token=topsecret"));
    let upstream = upstream(base);
    let error = upstream.get("/tools", None).await.unwrap_err();

    // "us er:topsecret:1" in base64.
    assert_eq!(
        server.requests()[0].header("authorization"),
        Some("Basic dXMgZXI6dG9wc2VjcmV0OjE=")
    );
    assert_eq!(upstream.shown(), format!("http://{}/", server.address()));
    for text in [
        format!("{error}"),
        format!("{error:?}"),
        format!("{upstream:?}"),
    ] {
        assert!(
            !text.contains("topsecret") && !text.contains("us%20er"),
            "{text}"
        );
    }
}

/// Credentials take another way out.
#[tokio::test]
async fn with_and_without_credentials_the_same_is_said() {
    let server = UpstreamServer::answering(|_| answer("200 OK", &[], b"{}")).await;
    let mut named = server.url();
    named.set_username("user").unwrap();
    for base in [server.url(), named] {
        upstream(base).get("/tools?a=1", None).await.unwrap();
    }
    let requests = server.requests();
    let mut with = requests[1].lines();
    with.retain(|line| !line.starts_with("authorization:"));
    assert_eq!(requests[0].lines(), with);
    assert_eq!(requests[1].lines().len(), with.len() + 1);
    assert_eq!(requests[0].target(), requests[1].target());
}

#[tokio::test]
async fn an_ipv6_address_is_asked() {
    // A machine without IPv6 cannot show it.
    let Ok(listener) = TcpListener::bind("[::1]:0").await else {
        return;
    };
    let server = UpstreamServer::bound(listener, |_, mut stream| {
        Box::pin(async move {
            stream
                .write_all(&answer("200 OK", &[], b"six"))
                .await
                .unwrap();
        })
    });
    assert_eq!(&ask(&server).await.unwrap().body[..], b"six");
}

#[tokio::test]
async fn only_http_and_https_are_asked() {
    for url in ["ftp://h/", "file:///etc/passwd", "data:,x", "unix:/run/s"] {
        let error = client(limits(), 1)
            .upstream(Url::parse(url).unwrap())
            .unwrap_err();
        assert_eq!(error.kind(), "address", "{url}");
    }
    let server = UpstreamServer::answering(|_| answer("200 OK", &[], b"")).await;
    let mut base = server.url();
    base.set_path("/inside");
    assert_eq!(
        upstream(base)
            .get("/../outside", None)
            .await
            .unwrap_err()
            .kind(),
        "address"
    );
    assert_empty!(server.requests());
}

#[tokio::test]
async fn nobody_there_is_refused() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", gone.local_addr().unwrap());
    drop(gone);
    let error = upstream(Url::parse(&url).unwrap())
        .get("/tools", None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "refused");
    assert_eq!(
        error.to_string(),
        format!("connection refused by {url}tools")
    );
}

#[tokio::test]
async fn a_name_without_address_is_unresolved() {
    // A label of more than 63 characters is no name in the DNS, which every resolver knows without
    // asking anyone.
    let url = format!("http://{}.test/", "a".repeat(64));
    let error = upstream(Url::parse(&url).unwrap())
        .get("/tools", None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "unresolved", "{error}");
}

#[tokio::test]
async fn a_damaged_or_unasked_coding_is_broken() {
    let server = UpstreamServer::answering(|request| match request.target() {
        "/cut" => answer(
            "200 OK",
            &["Content-Encoding: gzip"],
            &gzip(&[7; 4096])[..20],
        ),
        "/junk" => answer("200 OK", &["Content-Encoding: gzip"], b"not gzip at all"),
        _ => answer("200 OK", &["Content-Encoding: zstd"], b"whatever"),
    })
    .await;
    let upstream = upstream(server.url());
    for path in ["/cut", "/junk", "/zstd"] {
        let error = upstream.get(path, None).await.unwrap_err();
        assert_eq!(error.kind(), "broken", "{path}: {error}");
    }
    assert!(
        upstream
            .get("/zstd", None)
            .await
            .unwrap_err()
            .to_string()
            .contains("zstd")
    );
}

#[tokio::test]
async fn a_body_cut_short_is_broken_and_not_repeated() {
    let server =
        UpstreamServer::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{".to_vec())
            .await;
    assert_eq!(ask(&server).await.unwrap_err().kind(), "broken");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn what_is_no_http_is_broken() {
    let server = UpstreamServer::answering(|_| b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()).await;
    assert_eq!(ask(&server).await.unwrap_err().kind(), "broken");
}

#[tokio::test]
async fn a_connection_closed_before_the_answer_is_tried_once_more() {
    let server = UpstreamServer::answering(|request| match request.number {
        1 => Vec::new(),
        _ => answer("200 OK", &[], b"second"),
    })
    .await;
    assert_eq!(&ask(&server).await.unwrap().body[..], b"second");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_connection_reset_before_the_answer_is_tried_once_more() {
    let server = UpstreamServer::serving(|request, mut stream| {
        Box::pin(async move {
            if request.number > 1 {
                stream
                    .write_all(&answer("200 OK", &[], b"second"))
                    .await
                    .unwrap();
            } else {
                // Closing without lingering sends a reset in place of an orderly end.
                stream.set_zero_linger().unwrap();
            }
        })
    })
    .await;
    assert_eq!(&ask(&server).await.unwrap().body[..], b"second");
}

#[tokio::test]
async fn a_server_that_always_closes_is_broken_after_two_connections() {
    let server = UpstreamServer::answering(|_| Vec::new()).await;
    let error = ask(&server).await.unwrap_err();
    assert_eq!(error.kind(), "broken", "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn no_connection_is_kept_for_the_next_poll() {
    let (closed, mut ends) = watch::channel(0);
    let server = UpstreamServer::serving(move |_, mut stream| {
        let closed = closed.clone();
        Box::pin(async move {
            stream
                .write_all(&answer("200 OK", &[], b"{}"))
                .await
                .unwrap();
            // The server would keep it; the end comes from the client.
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            closed.send_modify(|count| *count += 1);
        })
    })
    .await;
    let upstream = upstream(server.url());
    for asked in 1..=2 {
        upstream.get("/tools", None).await.unwrap();
        let end = ends.wait_for(|count| *count == asked);
        tokio::time::timeout(Duration::from_secs(30), end)
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn other_statuses_are_errors_with_their_retry_after() {
    let server = UpstreamServer::answering(|request| {
        let status = format!("{} Status", &request.target()[1..4]);
        let date = httpdate::fmt_http_date(
            SystemTime::from(Clock::system().wall()) + Duration::from_secs(120),
        );
        let retry = match &request.target()[4..] {
            "-seconds" => "Retry-After: 17".to_owned(),
            "-long" => "Retry-After: 86400".to_owned(),
            "-date" => format!("Retry-After: {date}"),
            "-junk" => "Retry-After: in a while".to_owned(),
            _ => "X-None: 1".to_owned(),
        };
        answer(&status, &[retry.as_str()], b"some text")
    })
    .await;
    let upstream = upstream(server.url());
    let seconds = Duration::from_secs;
    for (path, expected) in [("/429-seconds", seconds(17)), ("/503-long", seconds(600))] {
        let error = upstream.get(path, None).await.unwrap_err();
        assert_eq!(error.retry_after(), Some(expected), "{path}");
    }
    let by_date = upstream
        .get("/503-date", None)
        .await
        .unwrap_err()
        .retry_after()
        .unwrap();
    assert!(
        (seconds(60)..=seconds(120)).contains(&by_date),
        "{by_date:?}"
    );
    for path in ["/302", "/400", "/404", "/500-junk", "/599"] {
        let error = upstream.get(path, None).await.unwrap_err();
        assert_eq!(error.kind(), "status", "{path}: {error:?}");
        assert_eq!(error.retry_after(), None, "{path}");
        let code = &path[1..4];
        assert!(
            matches!(&error, TransportError::Status { status, .. } if status.to_string() == code),
            "{error:?}"
        );
    }
    for path in ["/200", "/203"] {
        assert_eq!(
            &upstream.get(path, None).await.unwrap().body[..],
            b"some text"
        );
    }
}

#[tokio::test]
async fn redirects_are_followed_within_the_origin_only() {
    let other = UpstreamServer::answering(|_| answer("200 OK", &[], b"other")).await;
    let away = format!(
        "Location: http://x:topsecret@{}/there?token=topsecret",
        other.address()
    );
    let server = UpstreamServer::answering(move |request| match request.target() {
        "/tools" => answer("301 Moved Permanently", &["Location: /one"], b""),
        "/one" => answer("307 Temporary Redirect", &["Location: two?x=1#f"], b""),
        "/two?x=1" => answer("200 OK", &[], b"two"),
        "/away" => answer("302 Found", &[away.as_str()], b""),
        "/tls" => answer(
            "308 Permanent Redirect",
            &["Location: https://127.0.0.1/"],
            b"",
        ),
        "/junk" => answer("303 See Other", &["Location: http://["], b""),
        _ => answer("302 Found", &["Location: /loop"], b""),
    })
    .await;
    let mut base = server.url();
    base.set_username("me").unwrap();
    let upstream = upstream(base);
    let known = HttpValidators {
        etag: Some(HeaderValue::from_static("\"1\"")),
        last_modified: None,
    };
    assert_eq!(
        &upstream.get("/tools", Some(&known)).await.unwrap().body[..],
        b"two"
    );
    for request in server.requests() {
        assert!(
            request.header("authorization").is_some() && request.header("if-none-match").is_some(),
            "{request:?}"
        );
    }

    let target = |error: TransportError| match error {
        TransportError::Redirect { target, .. } => target,
        error => panic!("{error:?}"),
    };
    let refused = async |path| target(upstream.get(path, None).await.unwrap_err());
    assert_eq!(
        refused("/away").await,
        format!("http://{}/there", other.address())
    );
    assert_eq!(refused("/tls").await, "https://127.0.0.1/");
    assert_eq!(refused("/junk").await, "an address that cannot be read");
    assert_empty!(other.requests());

    let before = server.requests().len();
    assert_eq!(
        refused("/loop").await,
        format!("http://{}/loop", server.address())
    );
    assert_eq!(server.requests().len() - before, limits().max_redirects + 1);
}

#[tokio::test]
async fn no_redirect_is_followed_with_a_limit_of_none() {
    let server = UpstreamServer::answering(|_| answer("302 Found", &["Location: /one"], b"")).await;
    let client = client(
        ClientLimits {
            max_redirects: 0,
            ..limits()
        },
        1,
    );
    let error = client
        .upstream(server.url())
        .unwrap()
        .get("/tools", None)
        .await
        .unwrap_err();
    assert_eq!(error.kind(), "redirect");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn conditional_requests_carry_validators_and_a_304_renews() {
    let server = UpstreamServer::answering(|request| {
        if request.header("if-none-match") == Some("W/\"one\"") {
            return b"HTTP/1.1 304 Not Modified\r\nLast-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\n\r\n".to_vec();
        }
        let headers = [
            "ETag: W/\"one\"",
            "Last-Modified: Tue, 31 Dec 2024 00:00:00 GMT",
            "Cache-Control: max-age=600, stale-if-error=9",
        ];
        answer("200 OK", &headers, b"{}")
    })
    .await;
    let upstream = upstream(server.url());
    let first = upstream.freshness(&upstream.get("/tools", None).await.unwrap());
    assert_eq!(first.validators.etag.as_ref().unwrap(), "W/\"one\"");
    assert!(
        first.lifetime > Duration::from_secs(590) && first.lifetime <= Duration::from_secs(600)
    );

    let answered = upstream
        .get("/tools", Some(&first.validators))
        .await
        .unwrap();
    assert_eq!(answered.head.status, StatusCode::NOT_MODIFIED);
    assert_empty!(answered.body);
    let request = &server.requests()[1];
    assert_eq!(request.header("if-none-match"), Some("W/\"one\""));
    assert_eq!(
        request.header("if-modified-since"),
        Some("Tue, 31 Dec 2024 00:00:00 GMT")
    );

    let second = upstream.freshness(&answered).renewing(&first);
    assert_eq!(second.validators.etag.as_ref().unwrap(), "W/\"one\"");
    assert_eq!(
        second.validators.last_modified.as_ref().unwrap(),
        "Wed, 01 Jan 2025 00:00:00 GMT"
    );
    assert!(
        second.lifetime > Duration::from_secs(590),
        "the stored lifetime stays: {:?}",
        second.lifetime
    );
    assert_eq!(second.stale_if_error, Some(Duration::from_secs(9)));
    assert!(second.received > first.received);
}

#[tokio::test]
async fn a_304_that_was_not_asked_for_is_broken() {
    let server = UpstreamServer::answering(|_| answer("304 Not Modified", &[], b"")).await;
    let upstream = upstream(server.url());
    for validators in [None, Some(&HttpValidators::default())] {
        let error = upstream.get("/tools", validators).await.unwrap_err();
        assert_eq!(error.kind(), "broken");
        assert!(error.to_string().contains("304"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_says_nothing_has_the_default_lifetime() {
    let server = UpstreamServer::answering(|_| answer("200 OK", &[], b"{}")).await;
    let upstream = upstream(server.url());
    let freshness = upstream.freshness(&upstream.get("/tools", None).await.unwrap());
    assert!(
        freshness.lifetime > Duration::from_secs(50)
            && freshness.lifetime <= Duration::from_secs(60)
    );
    assert_eq!(
        freshness.fresh_until(),
        freshness.received + freshness.lifetime
    );
    assert_eq!(freshness.validators, HttpValidators::default());
}

/// What the environment of the process could spoil is tried in a process of its own: this test runs
/// itself again with that environment.
#[tokio::test]
async fn the_environment_has_no_say() {
    const TARGET: &str = "CALLSHEET_TEST_TARGET";
    if let Ok(target) = std::env::var(TARGET) {
        let answered = upstream(Url::parse(&target).unwrap())
            .get("/tools", None)
            .await
            .unwrap();
        assert_eq!(&answered.body[..], b"direct");
        return;
    }
    let server = UpstreamServer::answering(|_| answer("200 OK", &[], b"direct")).await;
    let proxy = UpstreamServer::answering(|_| answer("200 OK", &[], b"by proxy")).await;
    let no_certificates = tempfile::tempdir().unwrap();
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "polling::the_environment_has_no_say"])
        .env(TARGET, server.url().as_str());
    for name in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        child.env(name, proxy.url().as_str());
    }
    // A machine without CA certificates, such as a bare container, still asks over http.
    child
        .env("SSL_CERT_DIR", no_certificates.path())
        .env("SSL_CERT_FILE", no_certificates.path().join("none"));
    let output = child.kill_on_drop(true).output().await.unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert_eq!(server.requests().len(), 1);
    assert_empty!(proxy.requests());
}

#[tokio::test]
async fn a_name_that_only_a_source_can_resolve_is_asked_where_it_says() {
    let answering =
        |body: &'static [u8]| UpstreamServer::answering(move |_| answer("200 OK", &[], body));
    let one = answering(b"one").await;
    let other = answering(b"other").await;
    // The same name means another machine on another network.
    let base = |server: &UpstreamServer| {
        format!("http://host-a.local:{}/", server.address().port())
            .parse()
            .unwrap()
    };
    let client = client(limits(), 4);
    let dialled = |server| {
        client
            .upstream(base(server))
            .unwrap()
            .with_dial(Some(server.address()))
    };
    let first = dialled(&one);
    let second = dialled(&other);
    let (first, second) = tokio::join!(first.get("/tools", None), second.get("/tools", None));
    assert_eq!(first.unwrap().body[..], b"one"[..]);
    assert_eq!(second.unwrap().body[..], b"other"[..]);
    let host = format!("host-a.local:{}", one.address().port());
    assert_eq!(one.requests()[0].header("host"), Some(host.as_str()));
}
