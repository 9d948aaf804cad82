//! Servers that want to harm whoever logs in: with huge, slow, nested and redirected answers, and
//! with addresses of a private network.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callsheet::model::{HttpTarget, ScenarioName};
use callsheet::transports::http::credentials::TokenSources;
use callsheet::transports::http::credentials::oauth::{LoginError, OAuthTokens};
use callsheet::transports::http::{ClientLimits, Upstream};
use tokio::io::AsyncWriteExt as _;

use crate::login_server::callback;
use crate::support::assert_empty;
use crate::support::upstream_server::{UpstreamServer, answer, client, gzip, hang, limits};

const RESOURCE: &str = "/.well-known/oauth-protected-resource";

fn logins(server: &UpstreamServer, limits: ClientLimits) -> (Arc<OAuthTokens>, Upstream) {
    let client = client(limits, 4);
    let tokens = Arc::new(OAuthTokens::new(&client));
    client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
    let target = HttpTarget {
        login: Some("tickets".parse().unwrap()),
        ..HttpTarget::at(server.url())
    };
    (tokens, client.upstream_to(&target).unwrap())
}

async fn begin(tokens: &OAuthTokens) -> String {
    let name: ScenarioName = "tickets".parse().unwrap();
    let error = tokens.begin(&name, &callback()).await.unwrap_err();
    assert!(matches!(error, LoginError::Unusable(_)), "{error:?}");
    error.to_string()
}

/// Why no login begins at a server that describes itself so.
async fn refused(described: Vec<u8>) -> String {
    let server = UpstreamServer::answering(move |_| described.clone()).await;
    let (tokens, _upstream) = logins(&server, limits());
    let why = begin(&tokens).await;
    assert_eq!(server.requests().len(), 1, "{why}");
    why
}

#[tokio::test]
async fn answers_that_are_no_description_are_refused_by_address() {
    let nested = format!("{{\"a\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
    let packed = gzip(&vec![b' '; 4 << 20]);
    for (described, expected) in [
        (
            answer("200 OK", &[], &vec![b' '; 300_000]),
            "larger than 262144 bytes",
        ),
        (
            answer("200 OK", &["Content-Encoding: gzip"], &packed),
            "larger than 262144 bytes",
        ),
        (
            answer("200 OK", &[], nested.as_bytes()),
            "has no JSON object",
        ),
        (answer("200 OK", &[], b"<html>"), "has no JSON object"),
        (answer("200 OK", &[], b"[]"), "has no JSON object"),
        (
            answer("200 OK", &[], b"\"https://h/\""),
            "has no JSON object",
        ),
        (answer("204 No Content", &[], b""), "has no JSON object"),
        (
            answer("500 Internal Server Error", &[], b"{}"),
            "answered 500",
        ),
        (answer("429 Too Many Requests", &[], b"{}"), "answered 429"),
    ] {
        let why = refused(described).await;
        assert!(why.contains(expected) && why.contains(RESOURCE), "{why}");
        let what = "it cannot be found where to log in for `tickets`: ";
        assert!(why.starts_with(what), "{why}");
    }
}

#[tokio::test]
async fn no_description_is_fetched_from_where_a_redirect_leads_to() {
    let other = UpstreamServer::answering(|_| answer("200 OK", &[], b"{}")).await;
    for place in [
        other.url().to_string(),
        format!("//{}/", other.address()),
        "http://169.254.169.254/".to_owned(),
    ] {
        let why = refused(answer("302 Found", &[&format!("Location: {place}")], b"")).await;
        assert!(why.contains("redirects to"), "{why}");
    }
    assert_empty!(other.requests());
}

#[tokio::test]
async fn addresses_in_a_challenge_are_judged_like_all_others() {
    for (place, expected) in [
        ("https://10.0.0.1/meta", "not a public address"),
        (
            "https://[::ffff:169.254.169.254]/meta",
            "not a public address",
        ),
        ("http://192.168.0.1/meta", "is not https"),
        ("http://example.com/meta", "is not https"),
        (
            "https://u:p@example.com/meta",
            "has a name or password in it",
        ),
        ("file:///etc/passwd", "is not https"),
        ("//169.254.169.254/latest", "is not https"),
    ] {
        let challenge = format!("WWW-Authenticate: Bearer resource_metadata=\"{place}\"");
        let server =
            UpstreamServer::answering(move |_| answer("401 Unauthorized", &[&challenge], b""))
                .await;
        let (tokens, upstream) = logins(&server, limits());
        upstream.get("", None).await.unwrap_err();
        let why = begin(&tokens).await;
        assert!(why.contains(expected), "{place}: {why}");
        assert_eq!(server.requests().len(), 1, "{place}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_named() {
    let server = UpstreamServer::serving(|_, stream| hang(stream)).await;
    let whole = Duration::from_millis(200);
    let (tokens, _upstream) = logins(&server, ClientLimits { whole, ..limits() });
    let why = begin(&tokens).await;
    assert!(why.contains(RESOURCE) && why.contains("200ms"), "{why}");
}

/// Each answer comes within the limit of one, and all together never end.
#[tokio::test]
async fn servers_that_are_slow_all_along_end_with_one_limit() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let server = UpstreamServer::serving(move |_, mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_secs(25)).await;
            let _ = stream.write_all(&answer("404 Not Found", &[], b"")).await;
        })
    })
    .await;
    let (tokens, _upstream) = logins(&server, limits());
    tokio::time::pause();
    let why = begin(&tokens).await;
    assert!(why.contains("took longer than 60 s"), "{why}");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}
