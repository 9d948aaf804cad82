//! Logins at an authorization server: what is requested, what is refused, and how they end.

use std::sync::Arc;
use std::time::Duration;

use callsheet::model::{HttpTarget, ScenarioName};
use callsheet::transports::http::Upstream;
use callsheet::transports::http::credentials::TokenSources;
use callsheet::transports::http::credentials::oauth::{
    LoginError, LoginRedirect, LoginState, OAuthTokens,
};
use serde_json::{Value, json};

use crate::login_server::{LoginServer, MARKER, callback, member, say_yes};
use crate::support::upstream_server::{Request, UpstreamServer, answer, client, limits};

fn name() -> ScenarioName {
    "tickets".parse().unwrap()
}

fn logins(server: &LoginServer) -> (Arc<OAuthTokens>, Upstream) {
    let client = client(limits(), 4);
    let tokens = Arc::new(OAuthTokens::new(&client));
    client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
    let target = HttpTarget {
        login: Some(name()),
        ..HttpTarget::at(server.url())
    };
    (tokens, client.upstream_to(&target).unwrap())
}

async fn finish(tokens: &OAuthTokens) -> Result<(), LoginError> {
    let started = tokens.begin(&name(), &callback()).await?;
    let query = say_yes(&started.authorization_url).await;
    tokens.finish(&LoginRedirect::parse(&query)).await.map(drop)
}

async fn refused(server: &LoginServer) -> String {
    let (tokens, _upstream) = logins(server);
    let text = finish(&tokens).await.unwrap_err().to_string();
    assert!(!text.contains(MARKER), "{text}");
    text
}

#[tokio::test]
async fn a_login_asks_for_one_resource_with_a_proof_key() {
    let server = LoginServer::start().await;
    let (tokens, upstream) = logins(&server);
    upstream.get("", None).await.unwrap_err();
    let started = tokens.begin(&name(), &callback()).await.unwrap();
    let asked = started.authorization_url.query().unwrap().to_owned();
    let resource = server.url().as_str().trim_end_matches('/').to_owned();
    for (key, expected) in [
        ("response_type", "code"),
        ("client_id", "registered"),
        ("redirect_uri", callback().shared.as_str()),
        ("code_challenge_method", "S256"),
        ("resource", &resource),
        ("scope", "read"),
    ] {
        assert_eq!(member(&asked, key).as_deref(), Some(expected), "{key}");
    }
    let query = say_yes(&started.authorization_url).await;
    tokens.finish(&LoginRedirect::parse(&query)).await.unwrap();
    let form = &server.of("/token")[0];
    assert_eq!(member(form, "resource"), Some(resource));
    assert_eq!(
        member(form, "code_verifier").map(|verifier| verifier.len()),
        Some(43)
    );
    let again = tokens
        .finish(&LoginRedirect::parse(&query))
        .await
        .unwrap_err();
    assert!(
        matches!(again, LoginError::NotUnderWay(_)),
        "a code is used once: {again}"
    );
    upstream.get("", None).await.unwrap();
    assert_eq!(tokens.status(&name()).unwrap().state, LoginState::LoggedIn);

    assert!(tokens.logout(&name()).await.unwrap().was_logged_in);
    assert_eq!(tokens.status(&name()).unwrap().state, LoginState::LoggedOut);
    upstream.get("", None).await.unwrap_err();
}

#[tokio::test]
async fn descriptions_are_looked_for_in_the_order_of_the_specification() {
    let server = UpstreamServer::answering(|request| {
        let origin = format!("http://{}", request.header("host").unwrap());
        match request.target() {
            "/.well-known/oauth-protected-resource" => {
                let described =
                    json!({"resource": origin, "authorization_servers": [format!("{origin}/a/b")]});
                answer("200 OK", &[], described.to_string().as_bytes())
            }
            _ => answer("404 Not Found", &[], b""),
        }
    })
    .await;
    let client = client(limits(), 4);
    let tokens = Arc::new(OAuthTokens::new(&client));
    client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
    let target = HttpTarget {
        login: Some(name()),
        ..HttpTarget::at(server.url().join("x/mcp").unwrap())
    };
    let _upstream = client.upstream_to(&target).unwrap();
    let text = tokens
        .begin(&name(), &callback())
        .await
        .unwrap_err()
        .to_string();
    assert!(text.contains("publishes no metadata"), "{text}");
    let requests = server.requests();
    let places: Vec<&str> = requests.iter().map(Request::target).collect();
    assert_eq!(
        places,
        [
            "/.well-known/oauth-protected-resource/x/mcp",
            "/.well-known/oauth-protected-resource",
            "/.well-known/oauth-authorization-server/a/b",
            "/.well-known/openid-configuration/a/b",
            "/a/b/.well-known/openid-configuration",
        ]
    );
}

#[tokio::test]
async fn a_description_is_of_the_scenario_or_of_a_path_above_it() {
    for (resource, expected) in [
        ("", "publishes no metadata"),
        ("/", "publishes no metadata"),
        ("/x", "publishes no metadata"),
        ("/x/mcp", "publishes no metadata"),
        ("/x/mc", "which is not"),
        ("/x/mcp2", "which is not"),
        ("/x/mcp/y", "which is not"),
        ("/y", "which is not"),
    ] {
        let server = UpstreamServer::answering(move |request| {
            let origin = format!("http://{}", request.header("host").unwrap());
            if request.target() != "/.well-known/oauth-protected-resource" {
                return answer("404 Not Found", &[], b"");
            }
            let described = json!({"resource": format!("{origin}{resource}"), "authorization_servers": [origin]});
            answer("200 OK", &[], described.to_string().as_bytes())
        })
        .await;
        let client = client(limits(), 4);
        let tokens = Arc::new(OAuthTokens::new(&client));
        client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
        let target = HttpTarget {
            login: Some(name()),
            ..HttpTarget::at(server.url().join("x/mcp").unwrap())
        };
        let _upstream = client.upstream_to(&target).unwrap();
        let text = tokens
            .begin(&name(), &callback())
            .await
            .unwrap_err()
            .to_string();
        assert!(text.contains(expected), "{resource:?}: {text}");
    }
}

#[tokio::test]
async fn each_wrong_member_of_the_metadata_is_named() {
    for (key, value, expected) in [
        ("resource", Value::Null, "`resource` is missing"),
        ("resource", json!("http://127.0.0.2/"), "which is not"),
        ("resource", json!("no address"), "is not an address"),
        ("authorization_servers", json!([]), "names no server"),
        ("authorization_servers", json!("x"), "is not a list"),
        (
            "authorization_servers",
            json!(["http://10.0.0.1/"]),
            "is not https",
        ),
        (
            "authorization_servers",
            json!(["https://10.0.0.1/"]),
            "not a public address",
        ),
        (
            "authorization_servers",
            json!(["https://169.254.169.254/latest"]),
            "not a public address",
        ),
        (
            "authorization_servers",
            json!(["https://[fd00::1]/"]),
            "not a public address",
        ),
        (
            "authorization_servers",
            json!(["file:///etc/passwd"]),
            "not an address that can be used",
        ),
        (
            "authorization_servers",
            json!(["javascript:alert(1)"]),
            "not an address that can be used",
        ),
        ("issuer", Value::Null, "`issuer` is missing"),
        ("issuer", json!("http://other/"), "which is not"),
        ("authorization_endpoint", Value::Null, "is missing"),
        (
            "authorization_endpoint",
            json!("javascript:alert(1)"),
            "is not an address",
        ),
        (
            "authorization_endpoint",
            json!("http://example.com/"),
            "is not https",
        ),
        (
            "authorization_endpoint",
            json!("https://example.com/?a=1&client%5Fid=theirs"),
            "has the parameter `client_id`",
        ),
        ("token_endpoint", json!(7), "is not a text"),
        (
            "token_endpoint",
            json!("https://192.168.0.1/token"),
            "not a public address",
        ),
        (
            "registration_endpoint",
            json!("ftp://127.0.0.1/"),
            "is not https",
        ),
        ("registration_endpoint", Value::Null, "client_id"),
        ("revocation_endpoint", json!(7), "is not a text"),
        (
            "code_challenge_methods_supported",
            json!(["plain"]),
            "does not name S256",
        ),
        (
            "code_challenge_methods_supported",
            Value::Null,
            "does not name S256",
        ),
        (
            "authorization_response_iss_parameter_supported",
            json!("yes"),
            "neither true nor false",
        ),
    ] {
        let server = LoginServer::start().await;
        server.set(|inner| inner.wrong = vec![(key, value.clone())]);
        let text = refused(&server).await;
        assert!(text.contains(expected), "{key} {value}: {text}");
    }
}

#[tokio::test]
async fn an_answer_of_another_server_and_huge_tokens_are_refused() {
    let server = LoginServer::start().await;
    server.set(|inner| inner.named = Some("https://evil.example".to_owned()));
    assert!(
        refused(&server)
            .await
            .contains("of another authorization server")
    );
    server.set(|inner| inner.named = None);
    assert!(refused(&server).await.contains("does not name"));
    assert!(server.of("/token").is_empty(), "no code was sent");

    let server = LoginServer::start().await;
    server.set(|inner| inner.padding = 1 << 20);
    let text = refused(&server).await;
    assert!(text.contains("larger than 131072 bytes"), "{text}");
    server.set(|inner| inner.padding = 70_000);
    let text = refused(&server).await;
    assert!(text.contains("larger than 65536 bytes"), "{text}");
}

#[tokio::test]
async fn a_later_login_replaces_the_earlier_and_none_waits_for_ever() {
    let server = LoginServer::start().await;
    let (tokens, _upstream) = logins(&server);
    let first = tokens.begin(&name(), &callback()).await.unwrap();
    let second = tokens.begin(&name(), &callback()).await.unwrap();
    let late = LoginRedirect::parse(&say_yes(&first.authorization_url).await);
    let text = tokens.finish(&late).await.unwrap_err().to_string();
    assert!(
        text.contains("another login for `tickets` was begun after this one"),
        "{text}"
    );
    let query = say_yes(&second.authorization_url).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(601)).await;
    tokio::time::resume();
    let text = tokens
        .finish(&LoginRedirect::parse(&query))
        .await
        .unwrap_err()
        .to_string();
    assert!(text.contains("took longer than 600 s"), "{text}");
    assert!(server.of("/token").is_empty(), "no code was sent");
}

#[tokio::test]
async fn a_lapsed_token_is_renewed_once_for_all_requests() {
    let server = LoginServer::start().await;
    let (tokens, upstream) = logins(&server);
    server.set(|inner| inner.lifetime = json!(0));
    finish(&tokens).await.unwrap();
    server.set(|inner| inner.lifetime = json!(3600));
    let all = (0..4).map(|_| upstream.get("", None));
    for answered in futures_util::future::join_all(all).await {
        answered.unwrap();
    }
    let forms = server.of("/token");
    assert_eq!(forms.len(), 2, "the code, and one renewal");
    assert_eq!(
        member(&forms[1], "resource"),
        member(&forms[0], "resource"),
        "a renewal is for the same resource"
    );

    server.set(|inner| (inner.tokens, inner.refuses_renewal) = (7, true));
    let text = upstream.get("", None).await.unwrap_err().to_string();
    assert!(
        text.contains("just renewed") && text.contains("callsheet login tickets"),
        "{text}"
    );
}

#[tokio::test]
async fn a_renewal_that_fails_is_tried_once_for_all_requests_and_ends_no_login() {
    for (status, body) in [
        (500, json!({})),
        (429, json!({"error": "slow_down"})),
        (200, json!({"access_token": 7})),
    ] {
        let server = LoginServer::start().await;
        let (tokens, upstream) = logins(&server);
        server.set(|inner| inner.lifetime = json!(0));
        finish(&tokens).await.unwrap();
        server.set(|inner| inner.trouble = Some((status, body.clone())));
        let all = (0..4).map(|_| upstream.get("", None));
        for answered in futures_util::future::join_all(all).await {
            let error = answered.unwrap_err();
            assert!(
                error.kind() == "credential" && error.to_string().contains("and no token"),
                "{error}"
            );
        }
        assert_eq!(
            server.of("/token").len(),
            2,
            "{status}: the code, and one renewal"
        );
        let now = tokens.status(&name()).unwrap();
        assert!(
            now.state == LoginState::LoggedIn && now.reason.is_some(),
            "{now:?}"
        );

        server.set(|inner| (inner.trouble, inner.lifetime) = (None, json!(3600)));
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        tokio::time::resume();
        upstream.get("", None).await.unwrap();
        assert_eq!(tokens.status(&name()).unwrap().reason, None);
    }
}

#[tokio::test]
async fn a_server_whose_tokens_live_for_no_time_is_not_asked_for_each_request() {
    let server = LoginServer::start().await;
    let (tokens, upstream) = logins(&server);
    server.set(|inner| inner.lifetime = json!(0));
    finish(&tokens).await.unwrap();
    for _ in 0..30 {
        upstream.get("", None).await.unwrap();
    }
    assert!(
        server.of("/token").len() < 15,
        "{}",
        server.of("/token").len()
    );
}

#[tokio::test]
async fn a_refused_renewal_ends_the_login() {
    let server = LoginServer::start().await;
    let (tokens, upstream) = logins(&server);
    server.set(|inner| (inner.lifetime, inner.refuses_renewal) = (json!(0), true));
    finish(&tokens).await.unwrap();
    let text = upstream.get("", None).await.unwrap_err().to_string();
    assert!(
        text.contains("refused to renew the login: invalid_grant"),
        "{text}"
    );
    assert!(
        text.contains("callsheet login tickets") && !text.contains(MARKER),
        "{text}"
    );
    assert_eq!(tokens.status(&name()).unwrap().state, LoginState::Ended);
}

#[tokio::test]
async fn missing_scopes_are_requested_a_few_times_and_then_named() {
    let server = LoginServer::start().await;
    let (tokens, upstream) = logins(&server);
    finish(&tokens).await.unwrap();
    server.set(|inner| inner.wants = Some("write"));
    for _ in 0..3 {
        let text = upstream.get("", None).await.unwrap_err().to_string();
        assert!(text.contains("wanted are: write"), "{text}");
        let started = tokens.begin(&name(), &callback()).await.unwrap();
        let scope = member(started.authorization_url.query().unwrap(), "scope").unwrap();
        assert!(scope.contains("read") && scope.contains("write"), "{scope}");
        tokens
            .finish(&LoginRedirect::parse(
                &say_yes(&started.authorization_url).await,
            ))
            .await
            .unwrap();
    }
    upstream.get("", None).await.unwrap_err();
    let text = tokens
        .begin(&name(), &callback())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        text.contains("3 logins did not give the scopes") && text.contains("write"),
        "{text}"
    );
}
