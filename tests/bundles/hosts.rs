//! Which hosts tools and secrets reach: none that the configuration does not name.

use serde_json::{Value, json};

use crate::calls::{Api, secret};
use crate::support::daemon::{Daemon, Home};
use crate::support::upstream_server::answer;
use crate::{NET, by_hand, config, http_tool, invoke, tool, with_tools};

async fn api() -> Api {
    Api::answering(|_, _| answer("200 OK", &[], b"1")).await
}

/// The message of the only finding about a tool that is not available.
async fn reason(daemon: &Daemon) -> String {
    let target = "/api/v1/findings?code=tool-unavailable";
    let found = daemon
        .until(target, |answer| answer.json()["findings"] != json!([]))
        .await
        .json();
    assert_eq!(found["findings"].as_array().unwrap().len(), 1, "{found}");
    found["findings"][0]["message"].as_str().unwrap().to_owned()
}

/// S1-36: without a list no host is reached.
#[tokio::test]
async fn no_host_is_reached_that_is_not_listed() {
    let api = api().await;
    for (allowed, expected) in [
        (&[][..], 503),
        (&["api.example.com"], 503),
        (&["localhost"], 503),
        (&["10.0.0.0/8"], 503),
        (&["127.0.0.0/8"], 200),
    ] {
        let home = Home::new();
        let mut config = config(&home);
        config.bundles.allowed_hosts = allowed.iter().map(|host| host.parse().unwrap()).collect();
        let daemon = with_tools(config, &[]).await;
        let content = http_tool(&json!({"urlTemplate": api.at("/")}));
        let stored = daemon
            .send_json("PUT", &tool(NET, "t", "v1"), &content)
            .await;
        if expected == 503 {
            let refused = stored.json();
            assert_eq!(stored.status, 400, "{allowed:?}: {refused}");
            assert_eq!(refused["code"], "host_not_allowed", "{allowed:?}");
            assert_eq!(refused["pointer"], "/impl/urlTemplate");
            assert!(
                refused["detail"]
                    .to_string()
                    .contains("to `bundles.allowed_hosts`"),
                "{refused}"
            );
            // The file of a person is read, and says why it cannot run.
            by_hand(&home, "t", &content);
            daemon
                .until(&tool(NET, "t", "v1"), |answer| answer.status == 200)
                .await;
        } else {
            assert_eq!(stored.status, 201, "{allowed:?}: {stored:?}");
        }
        let (status, answer) = invoke(&daemon, "t", &json!({})).await;
        assert_eq!(status, expected, "{allowed:?}: {answer}");
        if expected == 503 {
            assert!(
                reason(&daemon)
                    .await
                    .contains("`127.0.0.1`, which is not allowed")
            );
            assert_eq!(daemon.tools("").await, [""; 0]);
        }
        daemon.stop().await;
    }
    assert_eq!(api.server.requests().len(), 1);
}

/// A name is looked up once, and `localhost` may mean this machine.
#[tokio::test]
async fn a_name_is_dialled_at_its_checked_address() {
    let api = api().await;
    let port = api.server.address().port();
    // Where the name means `::1` too, another program has that port.
    let other = std::net::TcpListener::bind(("::1", port)).ok();
    let home = Home::new();
    let mut config = config(&home);
    config.bundles.allowed_hosts = vec!["localhost".parse().unwrap()];
    let content = http_tool(
        &json!({"urlTemplate": format!("http://localhost:{port}/"), "maxRetries": 0,
        "timeoutMs": 5_000}),
    );
    let daemon = with_tools(config, &[("t", content)]).await;
    let (status, answer) = invoke(&daemon, "t", &json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["ok"], true, "{answer}");
    assert_eq!(
        api.server.requests()[0].header("host"),
        Some(format!("localhost:{port}").as_str())
    );
    if let Some(other) = other {
        other.set_nonblocking(true).unwrap();
        assert!(other.accept().is_err(), "no other address is connected to");
    }
    daemon.stop().await;
}

/// S1-35: a secret goes to its hosts, and nothing else of the environment is one.
#[tokio::test]
async fn a_secret_goes_to_its_own_hosts_only() {
    let api = api().await;
    let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
    for (template, told) in [
        (
            "/?k=${THEIRS}",
            "would send the secret `THEIRS` to `127.0.0.1`, and it is not for that host",
        ),
        (
            "/${OURS}",
            "has the secret `OURS` in the path of its address, which messages show",
        ),
        (
            "/?k=${HOME}",
            "uses `${HOME}`, which is neither a parameter nor a secret",
        ),
    ] {
        let home = Home::new();
        let mut config = config(&home);
        config
            .bundles
            .secrets
            .insert("THEIRS".into(), secret("t", "api.example.com"));
        config
            .bundles
            .secrets
            .insert("OURS".into(), secret("o", "127.0.0.1"));
        let mut content = http_tool(&json!({"urlTemplate": api.at(template)}));
        content["argSchema"] = closed.clone();
        let daemon = with_tools(config, &[("t", content)]).await;
        assert_eq!(invoke(&daemon, "t", &json!({})).await.0, 503);
        let reason = reason(&daemon).await;
        assert!(reason.contains(told), "{reason}");
        daemon.stop().await;
    }
    assert!(api.server.requests().is_empty());
}

/// A caller cannot name a secret, and a secret is not shown in what a call answers.
#[tokio::test]
async fn a_secret_is_neither_named_nor_shown_by_a_caller() {
    let api = Api::answering(|_, _| answer("500 Broken", &[], b"sorry")).await;
    let home = Home::new();
    let mut config = config(&home);
    config
        .bundles
        .secrets
        .insert("KEY".into(), secret("s3cr3t", "127.0.0.1"));
    let content = http_tool(&json!({"urlTemplate": api.at("/?k=${KEY}&q=${q}"), "maxRetries": 0}));
    let daemon = with_tools(config, &[("t", content)]).await;
    let (_, answer): (u16, Value) =
        invoke(&daemon, "t", &json!({"q": "${KEY}", "KEY": "mine"})).await;
    assert_eq!(
        api.server.requests()[0].target(),
        "/?k=s3cr3t&q=%24%7BKEY%7D"
    );
    assert!(!answer.to_string().contains("s3cr3t"), "{answer}");
    daemon.stop().await;
}

/// An API that sends back the secret which it got gives it to no caller, whatever it answers.
#[tokio::test]
async fn a_secret_that_an_api_sends_back_is_masked() {
    const KEY: &str = "s3cr3t/0123456789";
    for status in ["200 OK", "401 Unauthorized", "500 Broken"] {
        let body = format!(
            "[\"{KEY}\", \"s3cr3t\\/0123456789\", \"czNjcjN0LzAxMjM0NTY3ODk=\", \"s3cr3t%2F0123456789\"]"
        );
        let api = Api::answering(move |_, _| answer(status, &[], body.as_bytes())).await;
        let home = Home::new();
        let mut config = config(&home);
        config
            .bundles
            .secrets
            .insert("KEY".into(), secret(KEY, "127.0.0.1"));
        let content = http_tool(&json!({"urlTemplate": api.at("/?k=${KEY}"), "maxRetries": 0}));
        let daemon = with_tools(config, &[("t", content)]).await;
        let (_, answer): (u16, Value) = invoke(&daemon, "t", &json!({})).await;
        let answer = answer.to_string();
        assert!(
            answer.contains("***") && !answer.contains("s3cr3t") && !answer.contains("czNjc"),
            "{answer}"
        );
        for target in [
            "/api/v1/findings",
            "/api/v1/scenarios",
            "/dashboard/overview",
        ] {
            let shown = daemon.get(target).await;
            assert!(
                !String::from_utf8_lossy(&shown.body).contains("s3cr3t"),
                "{target}"
            );
        }
        daemon.stop().await;
    }
}

/// What a secret is exchanged for goes to the hosts of that secret only.
#[tokio::test]
async fn a_token_goes_to_no_host_that_its_secret_is_not_for() {
    let home = Home::new();
    let mut config = config(&home);
    config
        .bundles
        .allowed_hosts
        .push("localhost".parse().unwrap());
    config
        .bundles
        .secrets
        .insert("CLIENT".into(), secret("s3cr3t", "127.0.0.1"));
    let content = http_tool(
        &json!({"urlTemplate": "http://localhost:9/", "auth": {"type": "oauth2",
        "tokenUrl": "http://127.0.0.1:9/token", "clientId": "me", "clientSecret": "${CLIENT}"}}),
    );
    let daemon = with_tools(config, &[("t", content)]).await;
    assert_eq!(invoke(&daemon, "t", &json!({})).await.0, 503);
    let why = reason(&daemon).await;
    assert!(
        why.contains("a token for the secret `CLIENT` to `localhost`"),
        "{why}"
    );
    daemon.stop().await;
}

/// The secret of a client goes to no token address that it is not for.
#[tokio::test]
async fn the_secret_of_a_client_goes_to_its_own_hosts_only() {
    let home = Home::new();
    let mut config = config(&home);
    config
        .bundles
        .allowed_hosts
        .push("localhost".parse().unwrap());
    config
        .bundles
        .secrets
        .insert("CLIENT".into(), secret("s3cr3t", "127.0.0.1"));
    let content = http_tool(
        &json!({"urlTemplate": "http://127.0.0.1:9/", "auth": {"type": "oauth2",
        "tokenUrl": "http://localhost:9/token", "clientId": "me", "clientSecret": "${CLIENT}"}}),
    );
    let daemon = with_tools(config, &[("t", content)]).await;
    assert_eq!(invoke(&daemon, "t", &json!({})).await.0, 503);
    let why = reason(&daemon).await;
    assert!(
        why.contains("would send the secret `CLIENT` to `localhost`"),
        "{why}"
    );
    daemon.stop().await;
}
