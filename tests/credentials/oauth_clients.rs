//! `auth = { oauth = ... }`: tokens that a client gets without a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callsheet::model::{Auth, HttpTarget, LoginCallback, OAuthClient, Secret};
use callsheet::transports::http::Upstream;
use callsheet::transports::http::credentials::oauth::OAuthTokens;

use crate::support::upstream_server::{Request, UpstreamServer, answer, client, limits};

fn upstream(scenario: &UpstreamServer, server: &UpstreamServer) -> Upstream {
    upstream_within(scenario, server, None)
}

/// The same for tokens from these hosts only.
fn upstream_within(
    scenario: &UpstreamServer,
    server: &UpstreamServer,
    hosts: Option<&[&str]>,
) -> Upstream {
    let auth = OAuthClient {
        token_url: Some(server.url()),
        client_id: "me:1".to_owned(),
        client_secret: Some(Secret::new("topsecret/+").into()),
        scopes: vec!["a".to_owned()],
        resource: None,
        issuer: None,
        callback: LoginCallback::Shared,
        token_hosts: hosts.map(|hosts| hosts.iter().map(|host| host.parse().unwrap()).collect()),
    };
    let client = client(limits(), 4);
    client.set_token_sources(Arc::new(OAuthTokens::new(&client)));
    let target = HttpTarget {
        auth: Some(Auth::OAuth(Box::new(auth))),
        ..HttpTarget::at(scenario.url())
    };
    client.upstream_to(&target).unwrap()
}

/// Gives `t1`, `t2` and so on.
async fn counting(lifetime: u64) -> UpstreamServer {
    let given = AtomicUsize::new(0);
    UpstreamServer::answering(move |_| {
        let number = given.fetch_add(1, Ordering::SeqCst) + 1;
        let body = format!(
            r#"{{"access_token":"t{number}","token_type":"Bearer","expires_in":{lifetime}}}"#
        );
        answer("200 OK", &[], body.as_bytes())
    })
    .await
}

async fn guarded(token: &'static str) -> UpstreamServer {
    UpstreamServer::answering(move |request| match request.header("authorization") {
        Some(shown) if shown == format!("Bearer {token}") => answer("200 OK", &[], b"{}"),
        _ => answer("401 Unauthorized", &["WWW-Authenticate: Bearer"], b""),
    })
    .await
}

fn shown(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.header("authorization").unwrap_or("-"))
        .collect()
}

#[tokio::test]
async fn one_token_serves_all_requests_of_its_lifetime() {
    let server = counting(3600).await;
    let scenario = guarded("t1").await;
    let upstream = upstream(&scenario, &server);
    let all = (0..4).map(|_| upstream.get("", None));
    for answered in futures_util::future::join_all(all).await {
        answered.unwrap();
    }
    let [request] = &server.requests()[..] else {
        panic!("one request for a token")
    };
    // RFC 6749 section 2.3.1: both parts are encoded as in a form, `me%3A1:topsecret%2F%2B`.
    assert_eq!(
        request.header("authorization"),
        Some("Basic bWUlM0ExOnRvcHNlY3JldCUyRiUyQg==")
    );
    assert_eq!(
        request.header("content-type"),
        Some("application/x-www-form-urlencoded")
    );
    assert_eq!(scenario.requests().len(), 4);
}

#[tokio::test]
async fn a_lapsed_token_is_replaced_and_a_refused_one_is_renewed_once() {
    let server = counting(0).await;
    let scenario = guarded("t1").await;
    let upstream = upstream(&scenario, &server);
    upstream.get("", None).await.unwrap();
    upstream.get("", None).await.unwrap_err();
    assert_eq!(shown(&scenario.requests())[..2], ["Bearer t1", "Bearer t2"]);

    let server = counting(3600).await;
    let scenario = guarded("t2").await;
    let upstream = self::upstream(&scenario, &server);
    upstream.get("", None).await.unwrap();
    assert_eq!(shown(&scenario.requests()), ["Bearer t1", "Bearer t2"]);

    let server = counting(3600).await;
    let scenario = guarded("none").await;
    let upstream = self::upstream(&scenario, &server);
    assert_eq!(upstream.get("", None).await.unwrap_err().kind(), "status");
    assert_eq!(
        upstream.get("", None).await.unwrap_err().kind(),
        "credential"
    );
    assert_eq!(
        server.requests().len(),
        2,
        "no storm of requests for tokens"
    );
}

#[tokio::test]
async fn a_server_that_gives_no_token_is_told_and_left_alone() {
    for (status, body, expected) in [
        (
            "401 Unauthorized",
            r#"{"error":"invalid_client","x":"topsecret"}"#,
            "refused the client: invalid_client",
        ),
        ("500 Internal Server Error", "topsecret", "it answered 500"),
        ("200 OK", "topsecret", "and no token"),
        (
            "200 OK",
            r#"{"access_token":"topsecret","token_type":"mac"}"#,
            "of another kind than bearer",
        ),
        (
            "200 OK",
            r#"{"access_token":"topsecret topsecret"}"#,
            "no header can have",
        ),
        ("200 OK", r#"{"access_token":""}"#, "the token is empty"),
    ] {
        let server = UpstreamServer::answering(move |_| answer(status, &[], body.as_bytes())).await;
        let scenario = guarded("t1").await;
        let upstream = upstream(&scenario, &server);
        for _ in 0..2 {
            let error = upstream.get("", None).await.unwrap_err();
            assert_eq!(error.kind(), "credential");
            let text = error.to_string();
            assert!(
                text.contains(expected) && !text.contains("topsecret"),
                "{text}"
            );
        }
        assert_eq!(server.requests().len(), 1);
        assert_eq!(
            scenario.requests().len(),
            0,
            "nothing is sent without a token"
        );
    }
}

/// What a stored tool names is requested only at hosts that its operator allowed.
#[tokio::test]
async fn tokens_are_requested_from_the_allowed_hosts_only() {
    for (hosts, expected) in [
        (&[][..], 0),
        (&["localhost", "10.0.0.0/8"], 0),
        (&["127.0.0.0/8"], 1),
    ] {
        let server = counting(3600).await;
        let scenario = guarded("t1").await;
        let answered = upstream_within(&scenario, &server, Some(hosts))
            .get("", None)
            .await;
        assert_eq!(server.requests().len(), expected, "{hosts:?}");
        assert_eq!(scenario.requests().len(), expected, "{hosts:?}");
        if expected == 0 {
            let error = answered.unwrap_err();
            assert_eq!(error.kind(), "credential");
            assert!(
                error
                    .to_string()
                    .contains("no token can be requested: requests to `http://127.0.0.1:"),
                "{error}"
            );
        } else {
            answered.unwrap();
        }
    }
}
