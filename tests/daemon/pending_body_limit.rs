//! Of a scenario that waits for a yes no more is read than `refresh.max_pending_body`, and all of
//! it once it has one.

use callsheet::model::ScenarioState;
use serde_json::json;

use crate::support::found::{Home, announced};
use crate::support::in_process::listed;
use crate::support::scripted::{Reply, Scripted, manifest};

/// A manifest of more than 300 KB, in parts that are small enough.
fn large() -> Reply {
    let mut large = manifest("large", &["alpha", "beta"]);
    for tool in large["tools"].as_array_mut().unwrap() {
        tool["description"] = json!("It does what its name says. ".repeat(6_000));
    }
    let reply = Reply::json(&large).header("Cache-Control: max-age=3600");
    assert!(large.to_string().len() > 300_000);
    reply
}

#[tokio::test]
async fn a_large_answer_waits_with_its_reason_and_is_read_once_it_is_trusted() {
    let server = Scripted::saying(large());
    let home = Home::new();
    let daemon = home
        .start([announced("large", &server.url(), Some("id-1"))])
        .await;
    let shown = daemon
        .until_health("large", "says why", |health| health.last_error.is_some())
        .await;
    assert_eq!(shown.state, ScenarioState::Pending);
    assert_eq!(shown.failures_in_a_row, 0);
    assert_eq!(shown.tools.offered, 0);
    let error = shown.last_error.clone().unwrap();
    assert_eq!(error.kind, "too-large");
    let parts = [
        "larger than 262144 bytes",
        "`refresh.max_pending_body`",
        "`callsheet trust large`",
    ];
    for part in parts {
        assert!(
            error.message.contains(part),
            "{part} is missing in {}",
            error.message
        );
    }
    let health = daemon.send("GET", "/api/v1/scenarios/large").await.json();
    let reason = health["reason"].as_str().unwrap();
    for part in [
        &parts[..],
        &[
            "waits for an operator's approval",
            "`callsheet block large`",
        ],
    ]
    .concat()
    {
        assert!(reason.contains(part), "{part} is missing in {reason}");
    }
    assert_eq!(server.count(), 1, "it is not asked again soon");

    daemon.decide("POST", "large", "trust").await;
    daemon.until_listed(&["alpha", "beta"]).await;
    let shown = daemon.health("large");
    assert_eq!(shown.state, ScenarioState::Live);
    assert!(shown.last_error.is_none());
    daemon.stop().await;
}

#[tokio::test]
async fn the_bound_is_a_setting_and_holds_for_nobody_else() {
    let stranger = Scripted::saying(large());
    let known = Scripted::saying(large());
    let mut home = Home::new();
    home.list("known", &known.url());
    home.config.refresh.max_pending_body = 1 << 20;
    let daemon = home
        .start([announced("large", &stranger.url(), Some("id-1"))])
        .await;
    assert_eq!(daemon.until_pending("large").await.tools.offered, 2);
    daemon.until_listed(&["alpha", "beta"]).await;
    daemon.stop().await;

    home.config.refresh.max_pending_body = 1_000;
    let daemon = home
        .start([announced("large", &stranger.url(), Some("id-1"))])
        .await;
    let shown = daemon
        .until_health("large", "says why", |health| health.last_error.is_some())
        .await;
    assert!(
        shown
            .last_error
            .as_ref()
            .unwrap()
            .message
            .contains("larger than 1000 bytes")
    );
    // An answer that was begun while it waited is not taken for all of it.
    daemon.decide("POST", "large", "trust").await;
    daemon
        .until("both are listed", |now| listed(now).len() == 4)
        .await;
    daemon.stop().await;
}
