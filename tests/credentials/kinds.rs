//! Each kind of credential and each place of a secret, as a scenario's server gets it.

use std::fs;
use std::time::Duration;

use callsheet::model::{Auth, HttpTarget, Secret, SecretSource};
use callsheet::transports::TransportError;
use callsheet::transports::http::Upstream;
use tempfile::TempDir;

use crate::support::assert_empty;
use crate::support::upstream_server::{UpstreamServer, answer, client, limits};

async fn server() -> UpstreamServer {
    UpstreamServer::answering(|_| answer("200 OK", &[], b"here")).await
}

fn upstream(server: &UpstreamServer, auth: Auth) -> Upstream {
    client(limits(), 1)
        .upstream_to(&HttpTarget {
            auth: Some(auth),
            ..HttpTarget::at(server.url())
        })
        .unwrap()
}

fn text(text: &str) -> SecretSource {
    Secret::new(text).into()
}

fn script(text: &str, every: Duration) -> SecretSource {
    SecretSource::Command {
        command: vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()],
        every,
    }
}

/// What the first request to a fresh server carried, and what came of it.
async fn sent(auth: Auth, header: &str) -> (Option<String>, Result<(), TransportError>) {
    let server = server().await;
    let answered = upstream(&server, auth).get("", None).await.map(drop);
    let carried = server
        .requests()
        .first()
        .and_then(|request| request.header(header).map(str::to_owned));
    (carried, answered)
}

/// Why there was no credential to send.
async fn unsent(auth: Auth) -> String {
    let (carried, answered) = sent(auth, "authorization").await;
    assert_eq!(carried, None);
    let error = answered.unwrap_err();
    assert_eq!(error.kind(), "credential");
    error.to_string()
}

#[tokio::test]
async fn every_kind_is_sent_as_its_specification_says() {
    let key = "x-api-key".parse().unwrap();
    for (auth, header, expected) in [
        (Auth::Bearer(text("t0ken")), "authorization", "Bearer t0ken"),
        (Auth::Header(key, text("k3y")), "x-api-key", "k3y"),
        // RFC 7617 section 2.
        (
            Auth::Basic("Aladdin".to_owned(), text("open sesame")),
            "authorization",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ),
    ] {
        let (carried, answered) = sent(auth, header).await;
        answered.unwrap();
        assert_eq!(carried.as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn a_changed_file_is_used_by_the_next_request() {
    let folder = TempDir::new().unwrap();
    let server = server().await;
    let path = folder.path().join("token");
    fs::write(&path, "first\n").unwrap();
    let upstream = upstream(
        &server,
        Auth::Bearer(SecretSource::File {
            path: path.clone(),
            key: None,
        }),
    );
    upstream.get("", None).await.unwrap();
    fs::write(&path, "second\r\n").unwrap();
    upstream.get("", None).await.unwrap();
    let shown: Vec<_> = server
        .requests()
        .iter()
        .map(|request| request.header("authorization").map(str::to_owned))
        .collect();
    assert_eq!(
        shown,
        [
            Some("Bearer first".to_owned()),
            Some("Bearer second".to_owned())
        ]
    );

    fs::remove_file(&path).unwrap();
    let error = upstream.get("", None).await.unwrap_err();
    assert!(
        error.to_string().contains("its `auth`")
            && error.to_string().contains("token cannot be used"),
        "{error}"
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn files_that_hold_no_secret_are_refused_by_name_and_never_quoted() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let file = |path, key: Option<&str>| {
        Auth::Bearer(SecretSource::File {
            path,
            key: key.map(str::to_owned),
        })
    };
    for (auth, expected) in [
        (file(write("empty", b"\n"), None), "it is empty"),
        (
            file(write("large", "x".repeat(65_537).as_bytes()), None),
            "larger than 65536 bytes",
        ),
        (
            file(write("bytes", b"topsecret\xff"), None),
            "cannot be used",
        ),
        (
            file(write("lines", b"topsecret\ntopsecret"), None),
            "no header can have",
        ),
        (
            file(write("table", b"a = 'topsecret'"), Some("b")),
            "no text under `b`",
        ),
        (
            file(write("broken", b"a = topsecret topsecret"), Some("a")),
            "no text under `a`",
        ),
        (file(folder.path().to_owned(), None), "it is not a file"),
    ] {
        let error = unsent(auth).await;
        assert!(
            error.contains(expected) && !error.contains("topsecret"),
            "{error}"
        );
    }
    let table = write("keys.toml", b"[a]\nb = 'found'");
    let (carried, _) = sent(file(table, Some("a.b")), "authorization").await;
    assert_eq!(carried.as_deref(), Some("Bearer found"));
}

#[tokio::test]
async fn a_program_is_run_once_for_all_requests_of_its_time() {
    let folder = TempDir::new().unwrap();
    let server = server().await;
    let runs = folder.path().join("runs");
    let source = script(
        &format!("echo ran >> {0}; echo printed", runs.display()),
        Duration::from_secs(3600),
    );
    let upstream = upstream(&server, Auth::Bearer(source));
    for _ in 0..3 {
        upstream.get("", None).await.unwrap();
    }
    assert_eq!(fs::read_to_string(&runs).unwrap(), "ran\n");
    let requests = server.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.header("authorization") == Some("Bearer printed"))
    );
}

#[tokio::test]
async fn a_program_gets_a_small_environment_and_no_shell() {
    let all = vec!["/usr/bin/env".to_owned()];
    let folder = TempDir::new().unwrap();
    let path = std::env::var("PATH").unwrap();
    let kept = folder.path().join("environment");
    let source = script(
        &format!("env > {0}; echo printed", kept.display()),
        Duration::from_secs(1),
    );
    let (carried, _) = sent(Auth::Bearer(source), "authorization").await;
    assert_eq!(carried.as_deref(), Some("Bearer printed"));
    let variables = fs::read_to_string(&kept).unwrap();
    assert!(variables.contains(&format!("PATH={path}")), "{variables}");
    assert_empty!(
        variables
            .lines()
            .filter(|line| line.starts_with("CARGO"))
            .collect::<Vec<_>>()
    );
    // A shell would split this.
    let quoted = vec!["/bin/echo".to_owned(), "a;b$(c)".to_owned()];
    let source = |command| SecretSource::Command {
        command,
        every: Duration::from_secs(1),
    };
    let (carried, _) = sent(Auth::Bearer(source(quoted)), "authorization").await;
    assert_eq!(carried.as_deref(), Some("Bearer a;b$(c)"));
    // Several lines are no token.
    assert!(
        unsent(Auth::Bearer(source(all)))
            .await
            .contains("no header can have")
    );
}

#[tokio::test]
async fn a_program_that_fails_is_named_and_what_it_printed_is_not() {
    let hour = Duration::from_secs(3600);
    let bearer = |text: &str| Auth::Bearer(script(text, hour));
    for (auth, expected) in [
        (
            bearer("echo topsecret; exit 3"),
            "it failed (exit status: 3)",
        ),
        (bearer("true"), "printed nothing"),
        (
            bearer("head -c 70000 /dev/zero | tr '\\\\0' x"),
            "it printed more than 65536 bytes",
        ),
        (
            bearer("sleep 600 & exec sleep 600"),
            "it did not end within 5s",
        ),
    ] {
        let error = unsent(auth).await;
        let why = error.rsplit("`: ").next().unwrap();
        assert!(
            error.contains(expected) && !why.contains("topsecret"),
            "{error}"
        );
    }
    let nowhere = SecretSource::Command {
        command: vec!["no-such-program".to_owned()],
        every: hour,
    };
    assert!(
        unsent(Auth::Bearer(nowhere))
            .await
            .contains("was not found")
    );
}
