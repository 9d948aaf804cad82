//! The built-in tools: what they read, and what they do not.

use std::fs;

use serde_json::{Value, json};

use crate::calls::Api;
use crate::support::daemon::{Daemon, Home};
use crate::support::upstream_server::answer;
use crate::{about, bundle, config, expect, http_tool, tool};

/// The bundle of built-in tools.
const BUILT_IN: &str = "01980000-0000-7000-8000-000000000001";

/// A daemon that shares one folder.
async fn sharing(home: &Home) -> Daemon {
    let shared = home.state().with_file_name("shared");
    fs::create_dir_all(shared.join("sub/deep")).unwrap();
    fs::write(shared.join("a.txt"), "first\nsecond line\n").unwrap();
    fs::write(shared.join("sub/b.md"), "a line of b\n").unwrap();
    fs::write(shared.join("sub/deep/c.txt"), "line c\n").unwrap();
    fs::write(shared.join("raw.bin"), b"\xff\xfe line").unwrap();
    let mut config = config(home);
    config.bundles.built_in = true;
    config.bundles.folders = vec![shared];
    Daemon::start(config).await
}

async fn call(daemon: &Daemon, slug: &str, args: &Value) -> Value {
    let target = format!("{}/invoke", tool(BUILT_IN, slug, "v1"));
    expect(daemon, 200, "POST", &target, &json!({"args": args}))
        .await
        .json()
}

/// S1-06: files are read, listed and searched, and none outside of the folders.
#[tokio::test]
async fn files_are_read_below_the_shared_folders_only() {
    let home = Home::new();
    let outside = home.state().with_file_name("secret.txt");
    fs::write(&outside, "topsecret").unwrap();
    let daemon = sharing(&home).await;
    let read = async |path: &str| call(&daemon, "read-file", &json!({"path": path})).await;
    assert_eq!(read("a.txt").await["value"], "first\nsecond line\n");
    assert_eq!(read("sub/../sub/b.md").await["value"], "a line of b\n");
    #[cfg(unix)]
    {
        let shared = home.state().with_file_name("shared");
        std::os::unix::fs::symlink(&outside, shared.join("link.txt")).unwrap();
        std::os::unix::fs::symlink(outside.parent().unwrap(), shared.join("up")).unwrap();
    }
    let absolute = outside.display().to_string();
    for path in [
        "../secret.txt",
        "sub/../../secret.txt",
        "link.txt",
        "up/secret.txt",
        &absolute,
        "/etc/passwd",
        "nope",
    ] {
        let refused = read(path).await;
        assert_eq!(refused["ok"], false, "{path}: {refused}");
        assert!(!refused.to_string().contains("topsecret"), "{refused}");
    }
    assert_eq!(read("raw.bin").await["error"], "the file is no text");
    assert_eq!(read("sub").await["error"], "it is not a file");
    let list = async |args: Value| call(&daemon, "list-folder", &args).await["value"].clone();
    assert_eq!(
        list(json!({"path": ""})).await,
        json!(["a.txt", "raw.bin", "sub/"])
    );
    assert_eq!(
        list(json!({"path": ".", "pattern": "**/*.txt"})).await,
        json!(["a.txt", "sub/deep/c.txt"])
    );
    assert_eq!(
        list(json!({"path": "sub", "pattern": "?.md"})).await,
        json!(["b.md"])
    );
    let found = call(
        &daemon,
        "search-files",
        &json!({"path": ".", "expression": "line( c)?$"}),
    )
    .await;
    let expected = json!([
        {"path": "a.txt", "line": 2, "text": "second line"},
        {"path": "sub/deep/c.txt", "line": 1, "text": "line c"},
    ]);
    assert_eq!(found["value"], expected, "{found}");
    let refused = call(
        &daemon,
        "search-files",
        &json!({"path": "..", "expression": "topsecret"}),
    )
    .await;
    assert_eq!(refused["ok"], false, "{refused}");
    daemon.stop().await;
}

/// S1-06: an address is fetched from allowed hosts only.
#[tokio::test]
async fn addresses_are_fetched_from_allowed_hosts_only() {
    let api = Api::answering(|target, _| match target {
        "/moved" => answer("302 Found", &["Location: http://127.0.0.1/"], b""),
        _ => answer(
            "200 OK",
            &["Content-Type: text/html"],
            "<p>Gr\u{fc}\u{df}e</p>".as_bytes(),
        ),
    })
    .await;
    let home = Home::new();
    let daemon = sharing(&home).await;
    let fetch = async |url: &str| call(&daemon, "fetch-url", &json!({"url": url})).await;
    assert_eq!(
        fetch(&api.at("/x?y=1")).await["value"],
        "<p>Gr\u{fc}\u{df}e</p>"
    );
    for url in [
        &api.at("/moved"),
        "http://localhost/",
        "file:///etc/passwd",
        "http://169.254.169.254/",
        "http://u@127.0.0.1/",
        "x",
    ] {
        let refused = fetch(url).await;
        assert_eq!(refused["ok"], false, "{url}: {refused}");
    }
    assert_eq!(api.server.requests().len(), 2);
    daemon.stop().await;
}

/// S1-63, S1-64, S1-82: they are off by default, and their content cannot be changed.
#[tokio::test]
async fn built_in_tools_can_only_be_switched() {
    let home = Home::new();
    let daemon = Daemon::start(config(&home)).await;
    assert_eq!(
        daemon.json("/tools/bundles?includeDisabled=true").await,
        json!({"bundles": []})
    );
    daemon.stop().await;
    let daemon = sharing(&home).await;
    let names = [
        "fetch-url_v1",
        "list-folder_v1",
        "read-file_v1",
        "search-files_v1",
    ];
    daemon.until_tools(&names).await;
    let content = http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/"}));
    for (method, target, body) in [
        ("PUT", bundle(BUILT_IN), about("mine")),
        ("DELETE", bundle(BUILT_IN), json!({})),
        ("PUT", tool(BUILT_IN, "mine", "v1"), content.clone()),
        ("PUT", tool(BUILT_IN, "read-file", "v1"), content.clone()),
        ("DELETE", tool(BUILT_IN, "read-file", "v1"), json!({})),
    ] {
        let refused = expect(&daemon, 403, method, &target, &body).await.json();
        assert_eq!(refused["code"], "built_in", "{method} {target}");
    }
    expect(
        &daemon,
        200,
        "PATCH",
        &tool(BUILT_IN, "read-file", "v1"),
        &json!({"isEnabled": false}),
    )
    .await;
    daemon
        .until_tools(&["fetch-url_v1", "list-folder_v1", "search-files_v1"])
        .await;
    let shown = daemon.json(&tool(BUILT_IN, "read-file", "v1")).await;
    assert_eq!(shown["isBuiltIn"], true);
    assert_eq!(shown["isEnabled"], false);
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(BUILT_IN),
        &json!({"isEnabled": false}),
    )
    .await;
    daemon.until_tools(&[]).await;
    daemon.stop().await;
    // The switches outlive the daemon.
    let daemon = sharing(&home).await;
    let listed = daemon.json("/tools/bundles?includeDisabled=true").await;
    assert_eq!(listed["bundles"][0]["isEnabled"], false, "{listed}");
    expect(
        &daemon,
        200,
        "PATCH",
        &bundle(BUILT_IN),
        &json!({"isEnabled": true}),
    )
    .await;
    daemon
        .until_tools(&["fetch-url_v1", "list-folder_v1", "search-files_v1"])
        .await;
    daemon.stop().await;
}
