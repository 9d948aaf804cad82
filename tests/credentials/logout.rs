//! What becomes of the tokens of a login that ends: they are deleted here, and revoked at their
//! server where that can be done.

use std::sync::Arc;

use callsheet::model::{HttpTarget, ScenarioName, Secret};
use callsheet::transports::http::Upstream;
use callsheet::transports::http::credentials::TokenSources;
use callsheet::transports::http::credentials::oauth::{
    LoginError, LoginRedirect, LoginState, LoginStore, Logout, OAuthTokens, Revocation,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::login_server::{self, LoginServer, MARKER, callback, member, say_yes};
use crate::support::assert_empty;
use crate::support::upstream_server::{client, limits};

fn name() -> ScenarioName {
    "tickets".parse().unwrap()
}

async fn logged_in(server: &LoginServer) -> (Arc<OAuthTokens>, Upstream) {
    let client = client(limits(), 4);
    let tokens = Arc::new(OAuthTokens::new(&client));
    client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
    let target = HttpTarget {
        login: Some(name()),
        ..HttpTarget::at(server.url())
    };
    let upstream = client.upstream_to(&target).unwrap();
    let started = tokens.begin(&name(), &callback()).await.unwrap();
    tokens
        .finish(&LoginRedirect::parse(
            &say_yes(&started.authorization_url).await,
        ))
        .await
        .unwrap();
    (tokens, upstream)
}

async fn unrevoked(tokens: &OAuthTokens) -> String {
    let Logout {
        was_logged_in,
        revocation,
    } = tokens.logout(&name()).await.unwrap();
    assert!(was_logged_in);
    assert_eq!(tokens.status(&name()).unwrap().state, LoginState::LoggedOut);
    let Revocation::NotRevoked(why) = revocation else {
        panic!("{revocation:?}")
    };
    assert!(!why.contains(MARKER), "{why}");
    why
}

#[tokio::test]
async fn both_tokens_are_revoked_the_one_that_renews_first() {
    let server = LoginServer::start().await;
    let (tokens, upstream) = logged_in(&server).await;
    let done = tokens.logout(&name()).await.unwrap();
    assert_eq!(
        done,
        Logout {
            was_logged_in: true,
            revocation: Revocation::Revoked
        }
    );
    let [first, second] = &server.of("/revoke")[..] else {
        panic!("two tokens")
    };
    assert_eq!(member(first, "token"), Some(format!("{MARKER}-r1")));
    assert_eq!(
        member(first, "token_type_hint").as_deref(),
        Some("refresh_token")
    );
    assert_eq!(member(second, "token"), Some(format!("{MARKER}-a1")));
    assert_eq!(member(second, "client_id").as_deref(), Some("registered"));
    let error = upstream.get("", None).await.unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");

    let again = tokens.logout(&name()).await.unwrap();
    assert_eq!(
        again,
        Logout {
            was_logged_in: false,
            revocation: Revocation::NotNeeded
        }
    );
    assert_eq!(server.of("/revoke").len(), 2);
}

#[tokio::test]
async fn tokens_that_cannot_be_revoked_are_deleted_all_the_same_and_the_reason_is_named() {
    for (endpoint, expected) in [
        (Value::Null, "offers no revocation"),
        (json!("https://10.0.0.1/revoke"), "not a public address"),
        (json!("http://169.254.169.254/revoke"), "is not https"),
        (json!("javascript:alert(1)"), "is not https"),
        (json!("nowhere"), "is not an address"),
    ] {
        let server = LoginServer::start().await;
        server.set(|inner| inner.wrong = vec![("revocation_endpoint", endpoint.clone())]);
        let (tokens, _upstream) = logged_in(&server).await;
        let why = unrevoked(&tokens).await;
        assert!(why.contains(expected), "{endpoint}: {why}");
        assert_empty!(server.of("/revoke"));
    }
    let server = LoginServer::start().await;
    server.set(|inner| inner.revocation = login_server::Revocation::RenewingOnly);
    let (tokens, _upstream) = logged_in(&server).await;
    let why = unrevoked(&tokens).await;
    assert!(
        why.contains("400 Bad Request (unsupported_token_type) for the access token"),
        "{why}"
    );
}

#[tokio::test]
async fn a_server_that_does_not_answer_keeps_nobody_logged_in() {
    let server = LoginServer::start().await;
    server.set(|inner| inner.revocation = login_server::Revocation::Silence);
    let (tokens, _upstream) = logged_in(&server).await;
    tokio::time::pause();
    let why = unrevoked(&tokens).await;
    assert!(why.contains("did not answer within 5 s"), "{why}");
}

/// Keeps nothing.
#[derive(Debug)]
struct FullStore;

impl LoginStore for FullStore {
    fn save(&self, _: &ScenarioName, _: Option<Secret>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::ready(Err("no room".to_owned())))
    }
}

#[tokio::test]
async fn what_cannot_be_stored_is_said() {
    let server = LoginServer::start().await;
    let client = client(limits(), 4);
    let tokens = Arc::new(OAuthTokens::new(&client));
    tokens.keep_in(Arc::new(FullStore), Vec::new());
    client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
    let target = HttpTarget {
        login: Some(name()),
        ..HttpTarget::at(server.url())
    };
    let upstream = client.upstream_to(&target).unwrap();
    let started = tokens.begin(&name(), &callback()).await.unwrap();
    let query = say_yes(&started.authorization_url).await;
    let error = tokens
        .finish(&LoginRedirect::parse(&query))
        .await
        .unwrap_err();
    assert!(
        matches!(&error, LoginError::NotStored(why) if why.to_string().contains("until the daemon ends")),
        "{error}"
    );
    upstream.get("", None).await.unwrap();

    let error = tokens.logout(&name()).await.unwrap_err();
    assert!(
        matches!(&error, LoginError::NotStored(why) if why.to_string().contains("callsheet logout tickets")),
        "{error}"
    );
    assert_eq!(
        server.of("/revoke").len(),
        2,
        "its tokens are revoked all the same"
    );
    upstream.get("", None).await.unwrap_err();
}
