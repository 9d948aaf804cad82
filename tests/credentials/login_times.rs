//! Logins over restarts: with a clock that is wrong, with lifetimes that cannot be, and at a
//! scenario that names another authorization server than before.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::model::{Auth, HttpTarget, LoginCallback, OAuthClient, ScenarioName, Secret};
use callsheet::runtime::{Clock, Tasks};
use callsheet::transports::http::credentials::TokenSources;
use callsheet::transports::http::credentials::oauth::{
    LoginError, LoginRedirect, LoginState, LoginStore, OAuthTokens,
};
use callsheet::transports::http::{Client, Upstream};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use serde_json::json;

use crate::login_server::{LoginServer, MARKER, callback, member, say_yes};
use crate::support::upstream_server::limits;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn name() -> ScenarioName {
    "tickets".parse().unwrap()
}

/// Keeps one login, as the store of a daemon does.
#[derive(Debug, Clone, Default)]
struct Kept(Arc<Mutex<Option<Secret>>>);

impl LoginStore for Kept {
    fn save(&self, _: &ScenarioName, login: Option<Secret>) -> BoxFuture<'_, Result<(), String>> {
        *self.0.lock().unwrap() = login;
        Box::pin(std::future::ready(Ok(())))
    }
}

fn target(server: &LoginServer, auth: Option<Auth>) -> HttpTarget {
    HttpTarget {
        login: Some(name()),
        auth,
        ..HttpTarget::at(server.url())
    }
}

/// A client that the operator registered.
fn own_client(secret: &str, issuer: Option<&str>) -> Auth {
    Auth::OAuth(Box::new(OAuthClient {
        token_url: None,
        client_id: "mine".to_owned(),
        client_secret: Some(Secret::new(secret).into()),
        scopes: Vec::new(),
        resource: None,
        issuer: issuer.map(str::to_owned),
        callback: LoginCallback::Shared,
        token_hosts: None,
    }))
}

/// The logins of one run of a daemon.
struct Run {
    client: Arc<Client>,
    tokens: Arc<OAuthTokens>,
    upstream: Upstream,
}

impl Run {
    fn start(server: &LoginServer, kept: &Kept, clock: Clock, auth: Option<Auth>) -> Self {
        let client = Client::new(limits(), 4, Duration::from_secs(60), clock, Tasks::new());
        let tokens = Arc::new(OAuthTokens::new(&client));
        let stored = kept.0.lock().unwrap().clone();
        tokens.keep_in(
            Arc::new(kept.clone()),
            stored.map(|login| (name(), login)).into_iter().collect(),
        );
        client.set_token_sources(Arc::clone(&tokens) as Arc<dyn TokenSources>);
        let upstream = client.upstream_to(&target(server, auth)).unwrap();
        Self {
            client,
            tokens,
            upstream,
        }
    }

    async fn login(&self) -> Result<(), LoginError> {
        let started = self.tokens.begin(&name(), &callback()).await?;
        let query = say_yes(&started.authorization_url).await;
        self.tokens
            .finish(&LoginRedirect::parse(&query))
            .await
            .map(drop)
    }
}

#[tokio::test]
async fn a_wrong_clock_costs_one_renewal_at_most() {
    // The clock after the restart, as seen from the one of the login; and how many tokens come.
    for (step, given) in [
        (SignedDuration::ZERO, 1),
        (DAY, 2),
        (-DAY, 2),
        (DAY * 3650, 2),
        (-DAY * 3650, 2),
    ] {
        let server = LoginServer::start().await;
        let kept = Kept::default();
        let (clock, hand) = Clock::with_hand();
        let first = Run::start(&server, &kept, clock, None);
        first.login().await.unwrap();
        // While the daemon runs, a clock that is set changes nothing.
        hand.step(step);
        first.upstream.get("", None).await.unwrap();
        assert_eq!(server.of("/token").len(), 1, "{step}");
        drop(first);

        let second = Run::start(&server, &kept, clock, None);
        for _ in 0..2 {
            second.upstream.get("", None).await.unwrap();
        }
        assert_eq!(server.of("/token").len(), given, "{step}");
        let status = second.tokens.status(&name()).unwrap();
        assert_eq!(status.state, LoginState::LoggedIn);
        let left = status.expires_at.unwrap().duration_since(clock.wall());
        assert!(
            left > SignedDuration::from_mins(59) && left <= SignedDuration::from_hours(1),
            "{step}: {left}"
        );
    }
}

#[tokio::test]
async fn a_token_that_cannot_be_renewed_is_judged_by_its_server_and_by_no_clock() {
    for step in [DAY, -DAY] {
        let server = LoginServer::start().await;
        let kept = Kept::default();
        let (clock, hand) = Clock::with_hand();
        server.set(|inner| inner.renews = false);
        Run::start(&server, &kept, clock, None)
            .login()
            .await
            .unwrap();
        hand.step(step);
        let run = Run::start(&server, &kept, clock, None);
        run.upstream.get("", None).await.unwrap();
        server.set(|inner| inner.tokens = 7);
        let text = run.upstream.get("", None).await.unwrap_err().to_string();
        assert!(
            text.contains("cannot be renewed") && text.contains("callsheet login tickets"),
            "{text}"
        );
        assert_eq!(server.of("/token").len(), 1, "{step}");
    }
}

#[tokio::test]
async fn a_lifetime_that_cannot_be_is_not_believed() {
    for (lifetime, most) in [
        (json!(1e300), Some(365)),
        (json!("99999999999999999999"), Some(365)),
        (json!(-5), Some(0)),
        (json!("NaN"), Some(0)),
        (json!("soon"), None),
        (json!([3600]), None),
        (json!(null), None),
    ] {
        let server = LoginServer::start().await;
        let kept = Kept::default();
        server.set(|inner| inner.lifetime = lifetime.clone());
        let run = Run::start(&server, &kept, Clock::system(), None);
        run.login().await.unwrap();
        let expires = run.tokens.status(&name()).unwrap().expires_at;
        let days = expires.map(|at| at.duration_since(Clock::system().wall()).as_hours() / 24);
        // What is left of a whole day is a moment less.
        assert!(
            days == most || days.map(|days| days + 1) == most,
            "{lifetime}: {days:?}"
        );
        run.upstream.get("", None).await.unwrap();
    }
}

#[tokio::test]
async fn another_issuer_gets_nothing_of_the_one_before() {
    let server = LoginServer::start().await;
    let kept = Kept::default();
    let run = Run::start(&server, &kept, Clock::system(), None);
    run.login().await.unwrap();
    let other = server.url().join("other").unwrap().to_string();
    server.set(|inner| (inner.issuer, inner.named) = (other.clone(), Some(other.clone())));
    run.upstream.get("", None).await.unwrap();
    run.login().await.unwrap();
    assert_eq!(
        run.tokens.status(&name()).unwrap().issuer.as_ref(),
        Some(&other)
    );
    assert_eq!(
        server.of("/register").len(),
        2,
        "it is another client there"
    );
    let forms = server.of("/token");
    assert_eq!(forms.len(), 2);
    assert_eq!(
        member(&forms[1], "grant_type").as_deref(),
        Some("authorization_code")
    );
    assert!(!forms[1].contains(&format!("{MARKER}-r1")), "{}", forms[1]);

    // What the metadata says of itself has to be what led to it.
    server.set(|inner| inner.wrong = vec![("issuer", json!(format!("{other}/")))]);
    let text = run.login().await.unwrap_err().to_string();
    assert!(
        text.contains("`issuer`") && text.contains("which is not"),
        "{text}"
    );
    run.upstream.get("", None).await.unwrap();
}

#[tokio::test]
async fn the_secret_of_a_configured_client_goes_to_the_server_of_its_first_login_only() {
    let server = LoginServer::start().await;
    let kept = Kept::default();
    server.set(|inner| {
        inner.wrong = vec![(
            "token_endpoint_auth_methods_supported",
            json!(["client_secret_post"]),
        )];
    });
    let auth = Some(own_client("topsecret", None));
    Run::start(&server, &kept, Clock::system(), auth.clone())
        .login()
        .await
        .unwrap();
    assert_eq!(
        member(&server.of("/token")[0], "client_secret").as_deref(),
        Some("topsecret")
    );

    let evil = server.url().join("evil").unwrap().to_string();
    server.set(|inner| (inner.issuer, inner.named) = (evil.clone(), Some(evil)));
    let run = Run::start(&server, &kept, Clock::system(), auth);
    let text = run.login().await.unwrap_err().to_string();
    assert!(
        text.contains("names another authorization server")
            && text.contains("callsheet logout tickets"),
        "{text}"
    );
    assert!(!text.contains("topsecret"), "{text}");
    assert_eq!(server.of("/token").len(), 1, "no secret was sent");
    run.tokens.logout(&name()).await.unwrap();
    run.login().await.unwrap();
}

#[tokio::test]
async fn a_login_outlives_a_new_secret_of_its_client_and_not_a_new_address() {
    let server = LoginServer::start().await;
    let kept = Kept::default();
    let run = Run::start(
        &server,
        &kept,
        Clock::system(),
        Some(own_client("topsecret", None)),
    );
    run.login().await.unwrap();
    let renewed = run
        .client
        .upstream_to(&target(&server, Some(own_client("other-client", None))))
        .unwrap();
    renewed.get("", None).await.unwrap();
    let moved = HttpTarget {
        url: server.url().join("moved").unwrap(),
        ..target(&server, Some(own_client("other-client", None)))
    };
    let error = run
        .client
        .upstream_to(&moved)
        .unwrap()
        .get("", None)
        .await
        .unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    assert_eq!(
        run.tokens.status(&name()).unwrap().state,
        LoginState::LoggedOut
    );
}

#[tokio::test]
async fn a_configured_issuer_is_the_only_one_at_which_its_client_logs_in() {
    let server = LoginServer::start().await;
    let kept = Kept::default();
    let issuer = server.url().join("as").unwrap().to_string();
    for other in [
        format!("{issuer}/"),
        server.url().join("evil").unwrap().to_string(),
    ] {
        let run = Run::start(
            &server,
            &kept,
            Clock::system(),
            Some(own_client("topsecret", Some(&other))),
        );
        let text = run.login().await.unwrap_err().to_string();
        assert!(
            text.contains("which is not the `issuer`") && text.contains(&other),
            "{text}"
        );
        assert_eq!(server.of("/token").len(), 0, "no secret was sent");
    }
    let run = Run::start(
        &server,
        &kept,
        Clock::system(),
        Some(own_client("topsecret", Some(&issuer))),
    );
    run.login().await.unwrap();
    run.upstream.get("", None).await.unwrap();
}
