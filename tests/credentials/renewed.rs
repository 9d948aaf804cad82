//! Tokens that change while the daemon runs: renewed once after a refusal, and what is sent again
//! then.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use callsheet::model::{HttpTarget, Secret};
use callsheet::transports::http::credentials::{
    Challenge, CredentialError, Token, TokenSource, TokenSources,
};
use callsheet::transports::http::{CallLimits, Upstream};
use futures_util::future::BoxFuture;
use http::HeaderMap;

use crate::support::assert_empty;
use crate::support::in_process::PATIENCE;
use crate::support::upstream_server::{Request, UpstreamServer, answer, client, limits};

/// Gives the tokens of a list, one after the other.
#[derive(Debug)]
struct Tokens {
    all: Vec<&'static str>,
    at: AtomicUsize,
    challenges: Mutex<Vec<Challenge>>,
}

#[derive(Debug)]
struct Sources(Arc<Tokens>);

impl Tokens {
    fn new(all: &[&'static str]) -> Arc<Self> {
        Arc::new(Self {
            all: all.to_vec(),
            at: AtomicUsize::new(0),
            challenges: Mutex::default(),
        })
    }

    fn renewals(&self) -> usize {
        self.challenges.lock().unwrap().len()
    }
}

impl TokenSource for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<Option<Token>, CredentialError>> {
        let token = self
            .all
            .get(self.at.load(Ordering::SeqCst))
            .map(|text| Token::new(Secret::new(*text)));
        Box::pin(async move { token.transpose() })
    }

    fn renew<'a>(
        &'a self,
        refused: Option<&'a Token>,
        challenge: &'a Challenge,
    ) -> BoxFuture<'a, Result<Token, CredentialError>> {
        self.challenges.lock().unwrap().push(challenge.clone());
        let next = refused.and_then(|_| self.all.get(self.at.fetch_add(1, Ordering::SeqCst) + 1));
        let token = match next {
            Some(text) => Token::new(Secret::new(*text)),
            None => Err(CredentialError::LoginNeeded("not logged in".to_owned())),
        };
        Box::pin(async move { token })
    }
}

impl TokenSources for Sources {
    fn source(&self, _: &HttpTarget) -> Option<Arc<dyn TokenSource>> {
        Some(Arc::clone(&self.0) as Arc<dyn TokenSource>)
    }
}

/// A server that accepts this token only.
async fn guarded(token: &'static str) -> UpstreamServer {
    let refused = "WWW-Authenticate: Bearer error=\"invalid_token\", scope=\"a b\", resource_metadata=\"https://h/m\"";
    UpstreamServer::answering(move |request| match request.header("authorization") {
        Some(shown) if shown == format!("Bearer {token}") => answer("200 OK", &[], b"{}"),
        _ => answer("401 Unauthorized", &[refused], b"{}"),
    })
    .await
}

fn upstream(server: &UpstreamServer, tokens: &Arc<Tokens>) -> Upstream {
    let client = client(limits(), 1);
    client.set_token_sources(Arc::new(Sources(Arc::clone(tokens))));
    let login = Some("tickets".parse().unwrap());
    client
        .upstream_to(&HttpTarget {
            login,
            ..HttpTarget::at(server.url())
        })
        .unwrap()
}

fn shown(requests: &[Request]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request.header("authorization").unwrap_or("-"))
        .collect()
}

#[tokio::test]
async fn a_refused_token_is_renewed_once_and_a_safe_request_sent_again() {
    let server = guarded("new").await;
    let tokens = Tokens::new(&["old", "new"]);
    upstream(&server, &tokens).get("", None).await.unwrap();
    assert_eq!(shown(&server.requests()), ["Bearer old", "Bearer new"]);
    let challenge = tokens.challenges.lock().unwrap()[0].clone();
    assert_eq!(challenge.scope.as_deref(), Some("a b"));
    assert_eq!(challenge.resource_metadata.as_deref(), Some("https://h/m"));

    let server = guarded("third").await;
    let tokens = Tokens::new(&["first", "second", "third"]);
    let error = upstream(&server, &tokens).get("", None).await.unwrap_err();
    assert_eq!(error.kind(), "status", "{error}");
    assert_eq!(shown(&server.requests()), ["Bearer first", "Bearer second"]);
    assert_eq!(tokens.renewals(), 1);
}

#[tokio::test]
async fn a_call_is_never_sent_again_but_the_next_one_has_the_new_token() {
    let server = guarded("new").await;
    let tokens = Tokens::new(&["old", "new"]);
    let upstream = upstream(&server, &tokens);
    let limits = |repeatable| CallLimits {
        timeout: PATIENCE,
        max_body: 1_024,
        headers: HeaderMap::new(),
        repeatable,
    };
    let refused = upstream.post("", "{}", &limits(false)).await.unwrap();
    assert_eq!(refused.head.status, 401);
    assert_eq!(shown(&server.requests()), ["Bearer old"]);
    assert_eq!(
        upstream
            .post("", "{}", &limits(false))
            .await
            .unwrap()
            .head
            .status,
        200
    );

    let server = guarded("new").await;
    let tokens = Tokens::new(&["old", "new"]);
    let upstream = self::upstream(&server, &tokens);
    upstream.post_streamed("{}", &limits(true)).await.unwrap();
    assert_eq!(shown(&server.requests()), ["Bearer old", "Bearer new"]);
}

#[tokio::test]
async fn without_a_token_the_refusal_is_told_and_nothing_is_repeated() {
    let server = guarded("new").await;
    let tokens = Tokens::new(&[]);
    let error = upstream(&server, &tokens).get("", None).await.unwrap_err();
    assert!(error.to_string().contains("401"), "{error}");
    assert_eq!(shown(&server.requests()), ["-"]);
    assert_eq!(tokens.renewals(), 1);
}

#[tokio::test]
async fn a_renewal_that_is_refused_says_so() {
    let server = guarded("new").await;
    let tokens = Tokens::new(&["old"]);
    let error = upstream(&server, &tokens).get("", None).await.unwrap_err();
    assert_eq!(error.kind(), "credential");
    assert!(error.to_string().contains("not logged in"), "{error}");
}

#[tokio::test]
async fn too_little_scope_renews_and_a_plain_403_does_not() {
    for (challenge, expected) in [
        ("error=\"insufficient_scope\", scope=\"more\"", 1),
        ("error=\"other\"", 0),
    ] {
        let header = format!("WWW-Authenticate: Bearer {challenge}");
        let server =
            UpstreamServer::answering(move |_| answer("403 Forbidden", &[&header], b"")).await;
        let tokens = Tokens::new(&["old", "new"]);
        assert!(upstream(&server, &tokens).get("", None).await.is_err());
        assert_eq!(tokens.renewals(), expected, "{challenge}");
    }
}

#[tokio::test]
async fn no_token_goes_to_another_origin() {
    let elsewhere = guarded("old").await;
    let away = format!("Location: {}taken", elsewhere.url());
    let server = UpstreamServer::answering(move |_| answer("302 Found", &[&away], b"")).await;
    let tokens = Tokens::new(&["old"]);
    assert_eq!(
        upstream(&server, &tokens)
            .get("", None)
            .await
            .unwrap_err()
            .kind(),
        "redirect"
    );
    assert_empty!(elsewhere.requests());

    // A scenario that no operator named is shown none.
    let client = client(limits(), 1);
    client.set_token_sources(Arc::new(Sources(tokens)));
    let found = client
        .upstream_to(&HttpTarget::at(elsewhere.url()))
        .unwrap();
    assert!(found.get("", None).await.is_err());
    assert_eq!(shown(&elsewhere.requests()), ["-"]);
}
