//! Files, archives, answers and neighbours that mean harm: each costs its own tool at most.

use std::fs;

use callsheet::bundles::BundleSecret;
use callsheet::model::SecretSource;
use serde_json::{Value, json};

use crate::calls::Api;
use crate::support::daemon::{Daemon, Home};
use crate::support::upstream_server::answer;
use crate::{
    NET, about, bundle, by_hand, config, expect, folder, http_tool, invoke, tool, with_tools,
};

/// An HTTP tool at an address where no server is.
fn nowhere(further: &Value) -> Value {
    let mut implementation = json!({"urlTemplate": "http://127.0.0.1:9/", "maxRetries": 0});
    implementation
        .as_object_mut()
        .unwrap()
        .extend(further.as_object().unwrap().clone());
    http_tool(&implementation)
}

/// A path can be written so that reading it would take for ever, or more stack than there is.
#[tokio::test]
async fn paths_that_cannot_be_read_in_time_cost_their_tool() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("good", nowhere(&json!({})))]).await;
    let long = format!("${}{}", "[?@".repeat(60), "]".repeat(60));
    let deep = format!("$[?{}@.a{}]", "(".repeat(1_900), ")".repeat(1_900));
    for (slug, path) in [("long", &long), ("deep", &deep)] {
        let content = nowhere(&json!({"extractExpr": path}));
        let refused = expect(&daemon, 400, "PUT", &tool(NET, slug, "v1"), &content)
            .await
            .json();
        assert_eq!(refused["pointer"], "/impl/extractExpr", "{refused}");
        by_hand(&home, slug, &content);
    }
    daemon
        .until("/api/v1/findings?code=tool-quarantined", |answer| {
            answer.json()["findings"][1] != Value::Null
        })
        .await;
    daemon.stop().await;
    let daemon = Daemon::start(config(&home)).await;
    daemon.until_tools(&["good_v1"]).await;
    daemon.stop().await;
}

/// A path can give the same nodes many times, and all that is below each of them.
#[tokio::test]
async fn a_path_gives_no_more_than_an_answer_may_have() {
    let chain = format!(
        "{}\"{}\"{}",
        r#"{"a":"#.repeat(60),
        "x".repeat(200_000),
        "}".repeat(60)
    );
    let api = Api::answering(move |target, _| match target {
        "/chain" => answer("200 OK", &[], chain.as_bytes()),
        _ => answer(
            "200 OK",
            &[],
            format!("{}1{}", "[".repeat(60), "]".repeat(60)).as_bytes(),
        ),
    })
    .await;
    let home = Home::new();
    let of = |path: &str, extract: &str| {
        http_tool(&json!({"urlTemplate": api.at(path), "extractExpr": extract}))
    };
    let doubling = format!("${}", "[0,0]".repeat(50));
    let tools = [
        ("below", of("/chain", "$..a")),
        ("doubled", of("/", &doubling)),
        ("good", of("/", "$[0]..[0]")),
    ];
    let daemon = with_tools(config(&home), &tools).await;
    for (slug, why) in [
        ("below", "larger than 4194304 bytes"),
        ("doubled", "too large for its `extractExpr`"),
    ] {
        let (status, refused) = invoke(&daemon, slug, &json!({})).await;
        assert_eq!(status, 200, "{refused}");
        assert_eq!(refused["code"], "bad_answer", "{refused}");
        assert!(
            refused["error"].as_str().unwrap().contains(why),
            "{refused}"
        );
    }
    assert_eq!(invoke(&daemon, "good", &json!({})).await.1["ok"], true);
    daemon.stop().await;
}

/// The content type decides how values are escaped, so no argument decides it.
#[tokio::test]
async fn no_argument_decides_how_it_is_escaped() {
    let home = Home::new();
    let daemon = with_tools(config(&home), &[]).await;
    let body = |headers: &Value| json!({"method": "POST", "headers": headers, "body": "{\"a\": \"${a}\"}"});
    let mut by_auth = body(&json!({}));
    by_auth["auth"] = json!({"type": "apiKey", "name": "Content-Type", "valueTemplate": "${type}"});
    for (content, pointer) in [
        (
            body(&json!({"Content-Type": "text/plain${type}"})),
            "/impl/headers/Content-Type",
        ),
        (
            body(&json!({"content-type": "text/plain", "Content-Type": "application/json"})),
            "/impl/headers/content-type",
        ),
        (by_auth, "/impl/auth/name"),
    ] {
        let refused = expect(
            &daemon,
            400,
            "PUT",
            &tool(NET, "t", "v1"),
            &nowhere(&content),
        )
        .await
        .json();
        assert_eq!(refused["pointer"], pointer, "{refused}");
    }
    daemon.stop().await;
}

/// A person approves a call with the request that it makes then.
#[tokio::test]
async fn an_approval_counts_for_the_request_that_was_there() {
    let api = Api::answering(|_, _| answer("200 OK", &[], b"1")).await;
    let home = Home::new();
    let of = |path: &str| http_tool(&json!({"urlTemplate": api.at(path)}));
    let daemon = with_tools(config(&home), &[("read", of("/read"))]).await;
    let approve = json!({"scope": "global", "target": "tool:net/read_v1", "approval": "require"});
    expect(&daemon, 200, "PUT", "/api/v1/preferences", &approve).await;
    let requested = async || {
        let (status, waits) = invoke(&daemon, "read", &json!({})).await;
        assert_eq!(status, 202, "{waits}");
        let waiting = daemon.json("/api/v1/approvals?state=waiting").await;
        format!(
            "/api/v1/approvals/{}/approve",
            waiting["approvals"][0]["id"].as_str().unwrap()
        )
    };
    let before = requested().await;
    let digest = async || {
        let tool = daemon.json("/api/v1/tools/read_v1").await;
        tool["metadata"]["implementation_digest"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = digest().await;
    fs::remove_file(folder(&home).join(NET).join("read_v1.json")).unwrap();
    by_hand(&home, "read", &of("/erase"));
    daemon
        .until("/api/v1/tools/read_v1", |answer| {
            answer.status == 200
                && answer.json()["metadata"]["implementation_digest"] != first.as_str()
        })
        .await;
    let refused = expect(&daemon, 409, "POST", &before, &json!({"by": "ana"}))
        .await
        .json();
    assert_eq!(refused["code"], "changed", "{refused}");
    assert!(api.server.requests().is_empty());
    daemon.stop().await;
}

/// A bundle with a lower id, as an archive may have one, takes no name of a bundle that was there.
#[tokio::test]
async fn a_newcomer_with_a_low_id_takes_no_name() {
    let low = "00000000-0000-7000-8000-000000000001";
    let home = Home::new();
    let daemon = with_tools(config(&home), &[("good", nowhere(&json!({})))]).await;
    let other = expect(&daemon, 201, "PUT", &bundle(low), &about("net"))
        .await
        .json();
    assert_eq!(other["scenario"], format!("net-{low}"));
    let known = daemon
        .json(&format!("/tools/bundles?bundleIDs={NET}"))
        .await;
    assert_eq!(known["bundles"][0]["scenario"], "net", "{known}");
    daemon.stop().await;
}

#[cfg(unix)]
fn pipe(path: &std::path::Path) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap()
            .success()
    );
}

/// A pipe has no end before its writer comes.
#[cfg(unix)]
#[tokio::test]
async fn pipes_are_not_waited_for() {
    let home = Home::new();
    let mut config = config(&home);
    let token = home.state().with_file_name("token");
    let shared = home.state().with_file_name("shared");
    pipe(&token);
    fs::create_dir(&shared).unwrap();
    pipe(&shared.join("p"));
    let source = SecretSource::File {
        path: token,
        key: None,
    };
    config.bundles.secrets.insert(
        "KEY".into(),
        BundleSecret {
            source,
            hosts: vec!["127.0.0.1".parse().unwrap()],
        },
    );
    (config.bundles.built_in, config.bundles.folders) = (true, vec![shared]);
    let secret = nowhere(&json!({"headers": {"X-Key": "${KEY}"}}));
    let daemon = with_tools(config.clone(), &[("secret", secret)]).await;
    pipe(&folder(&home).join(NET).join("p.json"));
    pipe(&folder(&home).join("built-in.json"));
    daemon
        .until("/api/v1/findings?code=tool-quarantined", |answer| {
            answer.json().to_string().contains("p.json")
        })
        .await;
    let (_, refused) = invoke(&daemon, "secret", &json!({})).await;
    assert_eq!(refused["code"], "unavailable", "{refused}");
    // It is read, and what it switches is not known.
    daemon.until_tools(&["secret_v1"]).await;
    fs::remove_file(folder(&home).join("built-in.json")).unwrap();
    daemon
        .until_tools(&[
            "fetch-url_v1",
            "list-folder_v1",
            "read-file_v1",
            "search-files_v1",
            "secret_v1",
        ])
        .await;
    let read =
        "/tools/bundles/01980000-0000-7000-8000-000000000001/tools/read-file/version/v1/invoke";
    let refused = expect(&daemon, 200, "POST", read, &json!({"args": {"path": "p"}}))
        .await
        .json();
    assert_eq!(refused["error"], "it is not a file");
    daemon.stop().await;
    let lock = folder(&home).join(".lock");
    fs::remove_file(&lock).unwrap();
    pipe(&lock);
    let daemon = Daemon::start(config).await;
    let refused = daemon
        .send_json("PUT", &tool(NET, "t", "v1"), &nowhere(&json!({})))
        .await;
    assert_eq!(refused.status, 500, "{refused:?}");
    daemon.stop().await;
}

/// Every user that can open the lock can hold it.
#[cfg(unix)]
#[tokio::test]
async fn only_its_owner_can_lock_the_folder() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let daemon = with_tools(config(&home), &[]).await;
    let mode = fs::metadata(folder(&home).join(".lock"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    daemon.stop().await;
}

/// A search that takes too long does not go on behind its call.
#[tokio::test]
async fn a_search_ends_with_its_call() {
    let home = Home::new();
    let mut config = config(&home);
    let shared = home.state().with_file_name("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(
        shared.join("0"),
        format!("{}\n", "ab".repeat(100)).repeat(5_000),
    )
    .unwrap();
    (1..2_000).for_each(|n| fs::hard_link(shared.join("0"), shared.join(n.to_string())).unwrap());
    (config.bundles.built_in, config.bundles.folders) = (true, vec![shared]);
    config.calls.max_timeout = std::time::Duration::from_millis(300);
    let daemon = with_tools(config, &[]).await;
    let search =
        "/tools/bundles/01980000-0000-7000-8000-000000000001/tools/search-files/version/v1/invoke";
    let args = json!({"path": ".", "expression": "a[ab]{60}[^ab]"});
    let late = expect(&daemon, 200, "POST", search, &json!({"args": args}))
        .await
        .json();
    assert!(
        late["error"].as_str().unwrap().contains("took longer"),
        "{late}"
    );
    // It waits for everything that was begun.
    daemon.stop().await;
}
