//! Many tools are changed at once on the page of the tools: all of them or none, and what is left
//! out is told.

use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::daemon::{Daemon, Home, Scenario, tool};
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A daemon with two scenarios that offer a tool of the same name.
async fn daemon() -> (Home, [Scenario; 2], Daemon) {
    let home = Home::new();
    let files = Scenario::start(
        "files",
        [tool("search"), tool("read").requires_approval(true)],
    )
    .await;
    let mail = Scenario::start("mail", [tool("search"), tool("send")]).await;
    let daemon = Daemon::ready(home.config(&[&files, &mail])).await;
    (home, [files, mail], daemon)
}

async fn bulk(daemon: &Daemon, body: &Value) -> Answer {
    ask(
        daemon.address,
        "POST",
        "/dashboard/tools/preferences",
        &[JSON],
        &body.to_string(),
    )
    .await
}

async fn preferences(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/api/v1/preferences").await.json()["preferences"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn the_ticked_ones_change_together_and_reset_together() {
    let (_home, _scenarios, daemon) = daemon().await;
    let both = json!(["files/search", "mail/send"]);
    let off = json!({"scope": "global", "change": "disable", "tools": both, "rows": "100"});
    let told = bulk(&daemon, &off).await.json();
    assert_eq!(told["changed"], 2);
    assert_eq!(told["told"], "2 tools taken out of the list for global.");
    assert_eq!(daemon.tools("").await, ["read", "mail__search"]);
    let free = json!({"scope": "chat:7", "change": "no-approval", "tools": ["files/read"]});
    assert_eq!(
        bulk(&daemon, &free).await.json()["told"],
        "1 tool set to require no approval for chat:7."
    );
    let set = preferences(&daemon).await;
    assert_eq!(set.len(), 3);
    assert!(
        set.iter()
            .any(|one| one["scope"] == "chat:7" && one["approval"] == "skip"),
        "{set:?}"
    );
    let reset = json!({"scope": "global", "change": "reset", "tools": both});
    assert_eq!(bulk(&daemon, &reset).await.json()["changed"], 2);
    assert_eq!(
        daemon.tools("").await,
        ["read", "files__search", "mail__search", "send"]
    );
    daemon.stop().await;
}

#[tokio::test]
async fn all_that_the_filter_shows_change_if_they_are_as_many_as_was_told() {
    let (_home, _scenarios, daemon) = daemon().await;
    let of_mail = |matching: &str| json!({"scope": "global", "change": "ask-first", "scenario": "mail", "matching": matching});
    let refused = bulk(&daemon, &of_mail("4")).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.problem().contains("the filter shows 2 tools now"),
        "{refused:?}"
    );
    assert_empty!(preferences(&daemon).await);
    assert_eq!(bulk(&daemon, &of_mail("2")).await.json()["changed"], 2);
    let set = preferences(&daemon).await;
    assert!(
        set.len() == 2 && set.iter().all(|one| one["approval"] == "require"),
        "{set:?}"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_not_offered_any_more_is_left_out_and_told() {
    let (_home, _scenarios, daemon) = daemon().await;
    let body =
        json!({"scope": "global", "change": "disable", "tools": ["files/gone", "mail/send"]});
    let told = bulk(&daemon, &body).await.json();
    assert_eq!(told["changed"], 1);
    assert_eq!(told["left_out"], json!(["files/gone"]));
    let words = told["told"].as_str().unwrap();
    assert!(
        words.ends_with("1 left out (not offered any more): files/gone."),
        "{words}"
    );
    assert_eq!(preferences(&daemon).await.len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_whole() {
    let (_home, _scenarios, daemon) = daemon().await;
    for (member, value, part) in [
        ("scope", json!("nowhere"), "unknown scope"),
        ("change", json!("burn"), "`change` cannot be"),
        ("tools", json!([]), "`tools` cannot be"),
        ("tools", json!("mail/send"), "`tools` cannot be"),
        ("tools", json!(["mail/send", 7]), "`tools` cannot be"),
        (
            "tools",
            json!(["mail/send", "nonsense"]),
            "`tools` cannot be",
        ),
        ("enabled", json!(true), "unknown member `enabled`"),
    ] {
        let mut body = json!({"scope": "global", "change": "disable", "tools": ["mail/send"]});
        body[member] = value;
        let refused = bulk(&daemon, &body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.problem().contains(part), "{refused:?}");
    }
    let foreign = [JSON, ("origin", "https://evil.example")];
    let body = json!({"scope": "global", "change": "disable", "tools": ["mail/send"]}).to_string();
    let refused = ask(
        daemon.address,
        "POST",
        "/dashboard/tools/preferences",
        &foreign,
        &body,
    )
    .await;
    assert_eq!(refused.status, 403);
    assert_empty!(preferences(&daemon).await);
    daemon.stop().await;
}

#[tokio::test]
async fn more_than_is_kept_is_refused_whole() {
    let home = Home::new();
    let tools: Vec<_> = (0..6_000).map(|n| tool(&format!("t{n}"))).collect();
    let many = Scenario::start("many", tools).await;
    let daemon = Daemon::ready(home.config(&[&many])).await;
    let all = |scope: &str| json!({"scope": scope, "change": "disable", "matching": "6000"});
    assert_eq!(bulk(&daemon, &all("chat:1")).await.json()["changed"], 6_000);
    let refused = bulk(&daemon, &all("chat:2")).await;
    assert_eq!(refused.status, 409);
    assert!(
        refused.problem().contains("as many as are kept"),
        "{refused:?}"
    );
    assert_eq!(
        preferences(&daemon).await.len(),
        6_000,
        "none of the second was made"
    );
    daemon.stop().await;
}
