//! Stored tools: bundles as folders of files, their routes under `/tools`, and requests to real
//! servers on loopback.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on must fail"
)]

#[path = "../support/mod.rs"]
mod support;

mod archives;
mod built_in;
mod calls;
#[cfg(unix)]
mod disk;
mod files;
mod hostile;
mod hosts;
mod page;
mod processes;
mod proxies;
mod repeats;
mod routes;
mod templates;
mod turns;

use std::path::PathBuf;

use callsheet::config::Config;
use serde_json::{Value, json};

use support::daemon::{Daemon, Home, NEVER};
use support::serving::Answer;

/// A bundle.
const NET: &str = "018faf50-b7b6-7a01-9a05-a22a6e0af101";
/// One that was made later.
const OTHER: &str = "018faf51-b7b6-7a01-9a05-a22a6e0af102";

/// The folder of the bundles of a home.
fn folder(home: &Home) -> PathBuf {
    home.state().with_file_name("bundles")
}

/// A configuration with a folder of bundles whose tools may reach this machine. No scenario is
/// asked again by itself, so that what changes is signalled.
fn config(home: &Home) -> Config {
    let mut config = home.config(&[]);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.bundles.path = Some(folder(home));
    config.bundles.allowed_hosts = vec!["127.0.0.1".parse().unwrap()];
    config
}

/// The target of a bundle.
fn bundle(id: &str) -> String {
    format!("/tools/bundles/{id}")
}

/// The target of a version of a tool.
fn tool(id: &str, slug: &str, version: &str) -> String {
    format!("/tools/bundles/{id}/tools/{slug}/version/{version}")
}

/// What is sent to add a bundle.
fn about(slug: &str) -> Value {
    json!({"slug": slug, "displayName": format!("{slug} tools"), "isEnabled": true})
}

/// What is sent to add an HTTP tool.
fn http_tool(implementation: &Value) -> Value {
    json!({
        "displayName": "Tool", "description": "Does something", "type": "http",
        "argSchema": {}, "impl": implementation,
    })
}

/// Writes the file of a tool of the bundle `net` by hand, with version `v1`.
fn by_hand(home: &Home, slug: &str, content: &Value) {
    let mut document = content.clone();
    for (name, value) in [
        ("schemaVersion", "2025-07-01"),
        ("slug", slug),
        ("version", "v1"),
        ("createdAt", "2026-03-01T09:00:00Z"),
    ] {
        document[name] = json!(value);
    }
    std::fs::write(
        folder(home).join(NET).join(format!("{slug}.json")),
        document.to_string(),
    )
    .unwrap();
}

/// Sends a request whose status must be this.
async fn expect(daemon: &Daemon, status: u16, method: &str, target: &str, body: &Value) -> Answer {
    let answer = daemon.send_json(method, target, body).await;
    assert_eq!(
        answer.status, status,
        "{method} {target} {body}: {answer:?}"
    );
    answer
}

/// A daemon with the bundle `net` and these tools of it, by slug, all of version `v1`.
async fn with_tools(config: Config, tools: &[(&str, Value)]) -> Daemon {
    let daemon = Daemon::start(config).await;
    expect(&daemon, 201, "PUT", &bundle(NET), &about("net")).await;
    for (slug, content) in tools {
        expect(&daemon, 201, "PUT", &tool(NET, slug, "v1"), content).await;
    }
    daemon
}

/// What a call of a tool of the bundle `net` gives.
async fn invoke(daemon: &Daemon, slug: &str, args: &Value) -> (u16, Value) {
    let answer = daemon
        .send_json(
            "POST",
            &format!("{}/invoke", tool(NET, slug, "v1")),
            &json!({"args": args}),
        )
        .await;
    (answer.status, answer.json())
}
