//! What operators do about scenarios: ask them now, trust them, block them.

use std::time::Duration;

use crate::support::daemon::{Daemon, Home, NEVER, Scenario, tool};

/// A daemon that asks only when it is told to, with two scenarios.
async fn two() -> (Home, Daemon, Scenario, Scenario) {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew", "list"]).await;
    let pantry = Scenario::of("pantry", &["stock", "list"]).await;
    let mut config = home.config(&[&kitchen, &pantry]);
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    let daemon = Daemon::ready(config).await;
    (home, daemon, kitchen, pantry)
}

#[tokio::test]
async fn a_refresh_polls_at_once_and_answers_its_outcome() {
    let (_home, daemon, mut kitchen, _pantry) = two().await;
    kitchen.offer([tool("pour")]);
    let health = daemon
        .send("POST", "/api/v1/scenarios/kitchen/refresh")
        .await;
    assert_eq!(health.status, 200);
    assert_eq!(health.json()["tools"]["published"], 1);
    assert_eq!(daemon.tools("").await, ["pour", "list", "stock"]);
    kitchen.stop().await;
    let health = daemon
        .send("POST", "/api/v1/scenarios/kitchen/refresh")
        .await;
    assert_eq!(health.status, 200);
    assert_eq!(health.json()["last_error"]["kind"], "refused");
    assert_eq!(
        daemon.tools("").await,
        ["pour", "list", "stock"],
        "a failed refresh takes nothing away"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn unknown_scenarios_are_404_with_near_names() {
    let (_home, daemon, _kitchen, _pantry) = two().await;
    for (method, action) in [
        ("GET", ""),
        ("POST", "/refresh"),
        ("POST", "/trust"),
        ("DELETE", "/trust"),
        ("POST", "/block"),
        ("DELETE", "/block"),
    ] {
        let answer = daemon
            .send(method, &format!("/api/v1/scenarios/kitchn{action}"))
            .await;
        assert_eq!(answer.status, 404, "{method} {action}");
        assert!(answer.problem().contains("`kitchn`"));
        let answer = daemon
            .send(method, &format!("/api/v1/scenarios/-x{action}"))
            .await;
        assert_eq!(answer.status, 400, "{method} {action}: {answer:?}");
    }
    let problem = daemon
        .send("POST", "/api/v1/scenarios/kitchn/refresh")
        .await
        .problem();
    assert!(problem.contains("kitchen"), "{problem}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_block_hides_the_tools_at_once_and_taking_it_back_shows_them_again() {
    let (_home, daemon, _kitchen, _pantry) = two().await;
    let all = ["brew", "kitchen__list", "pantry__list", "stock"];
    assert_eq!(daemon.tools("").await, all);
    let etag = daemon.get("/api/v1/tools").await.header("etag").to_owned();

    let blocked = daemon.send("POST", "/api/v1/scenarios/pantry/block").await;
    assert_eq!(blocked.status, 200);
    assert_eq!(blocked.json()["state"].as_str(), Some("blocked"));
    // A blocked scenario does not even collide.
    assert_eq!(daemon.tools("").await, ["brew", "list"]);
    assert_eq!(daemon.tools("?format=openai").await, ["brew", "list"]);
    assert_ne!(daemon.get("/api/v1/tools").await.header("etag"), etag);
    let findings = daemon.findings("withdrawn").await;
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0]["scenario"], "pantry");
    assert!(findings[0]["message"].as_str().unwrap().contains("blocked"));
    let tool = daemon.get("/api/v1/tools/pantry/stock").await;
    assert_eq!(tool.status, 404);
    assert!(tool.problem().contains("an operator blocked it"));
    let explained = daemon.json("/api/v1/tools/pantry%2Fstock/explain").await;
    assert_eq!(explained["listed"], false);
    assert!(
        explained.to_string().contains("an operator blocked it"),
        "{explained}"
    );
    let refused = daemon
        .send("POST", "/api/v1/scenarios/pantry/refresh")
        .await;
    assert_eq!(refused.status, 409);
    assert!(
        refused
            .problem()
            .contains("DELETE /api/v1/scenarios/pantry/block")
    );
    let refused = daemon
        .send("DELETE", "/api/v1/scenarios/pantry/trust")
        .await;
    assert_eq!(
        refused.status, 409,
        "taking trust back must not lift a block"
    );

    let back = daemon
        .send("DELETE", "/api/v1/scenarios/pantry/block")
        .await;
    assert_eq!(back.status, 200);
    assert_eq!(
        daemon.tools("").await,
        all,
        "its last good answer is in force at once"
    );
    assert_eq!(daemon.get("/api/v1/tools").await.header("etag"), etag);
    daemon.until_state("pantry", "live").await;
    assert!(daemon.findings("withdrawn").await.is_empty());
    assert_eq!(
        daemon
            .send("DELETE", "/api/v1/scenarios/pantry/block")
            .await
            .status,
        200,
        "again changes nothing"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_block_before_the_first_answer_is_kept_and_lifted() {
    let home = Home::new();
    let mut kitchen = Scenario::of("kitchen", &["brew"]).await;
    kitchen.stop().await;
    let daemon = Daemon::ready(home.config(&[&kitchen])).await;
    assert_eq!(
        daemon
            .send("POST", "/api/v1/scenarios/kitchen/block")
            .await
            .status,
        200
    );
    kitchen.run().await;
    let trusted = daemon.send("POST", "/api/v1/scenarios/kitchen/trust").await;
    assert_eq!(trusted.status, 200);
    assert_eq!(trusted.json()["trusted"].as_bool(), Some(true));
    daemon.until_tools(&["brew"]).await;
    let untrusted = daemon
        .send("DELETE", "/api/v1/scenarios/kitchen/trust")
        .await
        .json();
    assert_eq!(untrusted["trusted"], true, "its source vouches for it");
    assert_eq!(daemon.tools("").await, ["brew"]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_refresh_that_waits_ends_when_the_scenario_is_blocked() {
    let home = Home::new();
    let kitchen = Scenario::of("kitchen", &["brew"]).await;
    let mut config = home.config(&[&kitchen]);
    // It was just asked, so a forced ask is due only long after this test.
    config.refresh.min_interval = NEVER;
    config.refresh.max_interval = NEVER;
    config.refresh.forced_gap = NEVER;
    let daemon = Daemon::ready(config).await;
    let before = daemon.json("/api/v1/scenarios/kitchen").await["next_attempt"].clone();
    let waiting = daemon.send("POST", "/api/v1/scenarios/kitchen/refresh");
    let everything = daemon.send("POST", "/api/v1/tools/sync");
    let blocking = async {
        // The refresh that waits has moved the next ask.
        let forced =
            |answer: &crate::support::serving::Answer| answer.json()["next_attempt"] != before;
        daemon.until("/api/v1/scenarios/kitchen", forced).await;
        daemon.send("POST", "/api/v1/scenarios/kitchen/block").await
    };
    let all = async { tokio::join!(waiting, everything, blocking) };
    let (waiting, everything, blocking) = tokio::time::timeout(Duration::from_secs(30), all)
        .await
        .expect("nobody waits for what never comes");
    assert_eq!(blocking.status, 200);
    assert_eq!(waiting.status, 409, "{waiting:?}");
    assert_eq!(everything.status, 200, "{everything:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn cross_origin_operator_actions_are_refused() {
    let (_home, daemon, _kitchen, _pantry) = two().await;
    let foreign = [("origin", "https://evil.example")];
    let block = "/api/v1/scenarios/kitchen/block";
    assert_eq!(
        crate::support::serving::ask(daemon.address, "POST", block, &foreign, "")
            .await
            .status,
        403
    );
    let rebound = [("host", "evil.example")];
    let list =
        crate::support::serving::ask(daemon.address, "GET", "/api/v1/tools", &rebound, "").await;
    assert!((400..500).contains(&list.status), "{list:?}");
    assert_eq!(
        daemon.json("/api/v1/scenarios/kitchen").await["state"],
        "live"
    );
    daemon.stop().await;
}
