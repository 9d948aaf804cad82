//! Scenarios that sources name, as the whole daemon sees them: they come, meet, go and come back.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, NEVER, Scenario, configured};

fn texts<'a>(list: &'a serde_json::Value, member: &str) -> Vec<&'a str> {
    list.as_array()
        .unwrap()
        .iter()
        .map(|item| item[member].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_configured_and_a_found_scenario_make_one_list() {
    let home = Home::new();
    let fixed = Scenario::of("fixed", &["brew"]).await;
    let found = Scenario::of("found", &["stir"]).await;
    home.write_process("found", found.address.port());
    let daemon = home.start(&[&fixed]).await;
    daemon.until_tools(&["brew", "stir"]).await;
    let scenarios = daemon.json("/api/v1/scenarios").await;
    assert_eq!(texts(&scenarios["scenarios"], "name"), ["fixed", "found"]);
    assert_eq!(
        texts(&scenarios["scenarios"], "source"),
        ["static", "vrooli"]
    );
    assert_eq!(texts(&scenarios["scenarios"], "state"), ["live", "live"]);
    daemon.stop().await;
}

#[tokio::test]
async fn of_two_addresses_for_one_name_the_configured_one_wins() {
    let home = Home::new();
    let fixed = Scenario::of("kitchen", &["brew"]).await;
    let other = Scenario::of("kitchen", &["impostor"]).await;
    home.write_process("kitchen", other.address.port());
    let daemon = home.start(&[&fixed]).await;
    let shadowed = |answer: &crate::support::serving::Answer| {
        !answer.json()["findings"].as_array().unwrap().is_empty()
    };
    let findings = daemon
        .until("/api/v1/findings?code=source-shadowed", shadowed)
        .await
        .json();
    let finding = &findings["findings"][0];
    assert_eq!(finding["scenario"], "kitchen");
    let message = finding["message"].as_str().unwrap();
    for part in [
        fixed.address.port().to_string(),
        other.address.port().to_string(),
        "static".into(),
    ] {
        assert!(message.contains(&part), "{part}: {message}");
    }
    daemon.until_tools(&["brew"]).await;
    let scenarios = daemon.json("/api/v1/scenarios").await;
    assert_eq!(texts(&scenarios["scenarios"], "source"), ["static"]);
    daemon.stop().await;
}

#[tokio::test]
async fn sources_that_agree_are_no_finding() {
    let home = Home::new();
    let fixed = Scenario::of("kitchen", &["brew"]).await;
    let found = Scenario::of("found", &["stir"]).await;
    home.write_process("kitchen", fixed.address.port());
    home.write_process("found", found.address.port());
    let daemon = home.start(&[&fixed]).await;
    // Once the other process file is in the list, this one was read too.
    daemon.until_tools(&["stir", "brew"]).await;
    assert!(daemon.findings("source-shadowed").await.is_empty());
    daemon.stop().await;
}

#[tokio::test]
async fn two_names_for_one_address_are_one_scenario() {
    let home = Home::new();
    let fixed = Scenario::of("mine", &["brew"]).await;
    home.write_process("theirs", fixed.address.port());
    let daemon = home.start(&[&fixed]).await;
    let has_findings = |answer: &crate::support::serving::Answer| {
        !answer.json()["findings"].as_array().unwrap().is_empty()
    };
    let findings = daemon
        .until("/api/v1/findings?code=source-shadowed", has_findings)
        .await
        .json();
    let message = findings["findings"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("`theirs`") && message.contains("`mine`"),
        "{message}"
    );
    daemon.until_tools(&["brew"]).await;
    assert_eq!(
        texts(&daemon.json("/api/v1/scenarios").await["scenarios"], "name"),
        ["mine"]
    );
    daemon.stop().await;
}

/// From the start and later: what has ended is shown with that reason, is not polled, and keeps no
/// tools in the list.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_scenario_whose_process_has_ended_is_down_until_its_file_goes() {
    let home = Home::new();
    let stays = Scenario::of("stays", &["brew"]).await;
    let found = Scenario::of("found", &["stir"]).await;
    let mut child = tokio::process::Command::new("sleep")
        .arg("600")
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let pid = child.id().unwrap();
    home.write_process_of(pid, "found", found.address.port());
    let mut config = home.config(&[&stays]);
    // Only the end of the process can make it go so soon: neither failures nor grace are over, and
    // no rescan comes.
    (config.health.failures, config.health.grace) = (1_000, NEVER);
    config.discovery.vrooli.rescan_interval = NEVER;
    let daemon = Daemon::start(config.clone()).await;
    daemon.until_tools(&["stir", "brew"]).await;

    // Another program keeps the port open.
    child.kill().await.unwrap();
    let reason = |shown: &serde_json::Value| shown["reason"].as_str().unwrap().to_owned();
    let down = daemon.until_state("found", "down").await;
    assert!(
        reason(&down).starts_with(&format!("process {pid} of `"))
            && reason(&down).ends_with("has ended"),
        "{down}"
    );
    assert!(down["next_attempt"].is_null(), "{down}");
    assert_eq!(daemon.tools("").await, ["brew"]);
    let refused = daemon.send("POST", "/api/v1/scenarios/found/refresh").await;
    assert_eq!(refused.status, 409, "{}", refused.problem());
    assert!(
        refused.problem().contains("has ended"),
        "{}",
        refused.problem()
    );
    daemon.stop().await;

    // The next start finds it ended, whether or not it was known before.
    home.write_process_of(pid, "unknown", found.address.port());
    let daemon = Daemon::start(config).await;
    for name in ["found", "unknown"] {
        let down = daemon.until_state(name, "down").await;
        assert!(reason(&down).ends_with("has ended"), "{down}");
    }
    daemon.until_tools(&["brew"]).await;
    home.remove_process("found");
    daemon.until_state("found", "removed").await;
    // It is started again.
    home.write_process("unknown", found.address.port());
    daemon.until_state("unknown", "live").await;
    // The names of the removed one stay reserved.
    daemon.until_tools(&["brew", "unknown__stir"]).await;
    daemon.stop().await;
}

/// The same of files that name no port, at the start and later: nothing was ever listed there.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_scenario_without_a_port_is_down_once_its_process_has_ended() {
    let sleeper = || {
        tokio::process::Command::new("sleep")
            .arg("600")
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    let file = |pid: u32, port: Value| json!({ "pid": pid, "port": port, "started_at": "2016-01-05T10:00:00Z" });
    let home = Home::new();
    let stays = Scenario::of("stays", &["brew"]).await;
    let mut gone = sleeper();
    let mut zombie = sleeper();
    let gone_id = gone.id().unwrap();
    let zombie_id = zombie.id().unwrap();
    gone.kill().await.unwrap();
    zombie.start_kill().unwrap();
    home.write_process_file("gone", &file(gone_id, Value::Null));
    home.write_process_file("zombie", &file(zombie_id, Value::Null));
    home.write_process_file("reused", &file(std::process::id(), Value::Null));
    // A port that cannot be one, and no word of a port.
    home.write_process_file("odd", &file(gone_id, json!("none")));
    home.write_process_file("silent", &json!({ "pid": gone_id }));
    let mut config = home.config(&[&stays]);
    config.discovery.vrooli.rescan_interval = NEVER;
    let daemon = Daemon::start(config).await;
    daemon.until_tools(&["brew"]).await;
    for (name, ends) in [
        ("gone", "has ended"),
        (
            "zombie",
            "has ended and is a zombie: its parent did not collect it",
        ),
        (
            "reused",
            "has ended, and its id belongs to another process that began later",
        ),
        ("odd", "has ended"),
        ("silent", "has ended"),
    ] {
        let down = daemon.until_state(name, "down").await;
        let reason = down["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("process ") && reason.ends_with(ends),
            "{name}: {down}"
        );
        assert!(
            down["url"].is_null() && down["next_attempt"].is_null(),
            "{name}: {down}"
        );
        let refused = daemon
            .send("POST", &format!("/api/v1/scenarios/{name}/refresh"))
            .await;
        assert_eq!(refused.status, 409, "{name}: {}", refused.problem());
        assert!(
            refused.problem().contains("has ended"),
            "{name}: {}",
            refused.problem()
        );
    }
    zombie.wait().await.unwrap();

    // One that runs while the daemon does. A file without a port is a finding as long as it runs.
    let mut later = sleeper();
    home.write_process_file(
        "later",
        &json!({ "pid": later.id().unwrap(), "port": null }),
    );
    let is_reported = |answer: &crate::support::serving::Answer| {
        answer.json()["findings"][0]["scenario"] == "later"
    };
    daemon
        .until("/api/v1/findings?code=entry-ignored", is_reported)
        .await;
    later.kill().await.unwrap();
    let down = daemon.until_state("later", "down").await;
    assert!(
        down["reason"].as_str().unwrap().ends_with("has ended"),
        "{down}"
    );
    assert_eq!(daemon.findings("entry-ignored").await, [] as [Value; 0]);

    // Its file goes, and one is started again, now with a port.
    home.remove_process("later");
    daemon.until_state("later", "removed").await;
    let found = Scenario::of("found", &["stir"]).await;
    home.write_process("gone", found.address.port());
    daemon.until_state("gone", "live").await;
    daemon.until_tools(&["stir", "brew"]).await;
    daemon.stop().await;
}

/// At the start, and when the second file comes later. It is none any more once one of them goes.
#[tokio::test]
async fn two_process_files_with_one_port_are_a_finding_at_both() {
    let home = Home::new();
    let found = Scenario::of("found", &["stir"]).await;
    for name in ["first", "second"] {
        home.write_process(name, found.address.port());
    }
    let daemon = home.start(&[]).await;
    for look in ["at the start", "later"] {
        let are_reported = |answer: &crate::support::serving::Answer| {
            answer.json()["findings"].as_array().unwrap().len() == 2
        };
        let findings = daemon
            .until("/api/v1/findings?code=source-shadowed", are_reported)
            .await
            .json();
        assert_eq!(
            texts(&findings["findings"], "scenario"),
            ["first", "second"],
            "{look}"
        );
        for (finding, other) in findings["findings"]
            .as_array()
            .unwrap()
            .iter()
            .zip(["`second`", "`first`"])
        {
            assert!(
                finding["message"].as_str().unwrap().contains(other),
                "{look}: {finding}"
            );
        }
        home.remove_process("second");
        let none = |answer: &crate::support::serving::Answer| {
            answer.json()["findings"].as_array().unwrap().is_empty()
        };
        daemon
            .until("/api/v1/findings?code=source-shadowed", none)
            .await;
        home.write_process("second", found.address.port());
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_scenario_whose_process_file_goes_is_asked_once_more_and_comes_back() {
    let home = Home::new();
    let stays = Scenario::of("stays", &["brew"]).await;
    let mut found = Scenario::of("found", &["stir"]).await;
    home.write_process("found", found.address.port());
    let mut config = home.config(&[&stays]);
    // Only the end of its process file can make it go so soon: neither failures nor grace are over.
    config.health.failures = 1_000;
    let daemon = Daemon::start(config).await;
    daemon.until_tools(&["stir", "brew"]).await;

    found.stop().await;
    home.remove_process("found");
    let removed = daemon.until_state("found", "removed").await;
    let reason = removed["reason"].as_str().unwrap();
    assert!(
        reason.contains("no source names it any more") && reason.contains("does not answer"),
        "{reason}"
    );
    assert_eq!(removed["last_error"]["kind"], "refused");
    assert!(removed["next_attempt"].is_null(), "{removed}");
    assert_eq!(daemon.tools("").await, ["brew"]);
    let withdrawn = daemon.findings("withdrawn").await;
    assert_eq!(withdrawn.len(), 1);
    assert_eq!(withdrawn[0]["scenario"], "found");
    let refused = daemon.send("POST", "/api/v1/scenarios/found/refresh").await;
    assert_eq!(refused.status, 409, "{}", refused.problem());

    found.run_elsewhere().await;
    home.write_process("found", found.address.port());
    let live = daemon.until_state("found", "live").await;
    assert_eq!(live["restarts"], 1);
    assert_eq!(live["url"], format!("http://{}/", found.address));
    assert_eq!(daemon.tools("").await, ["stir", "brew"]);
    assert!(daemon.findings("withdrawn").await.is_empty());
    daemon.stop().await;
}

#[tokio::test]
async fn a_scenario_that_still_answers_outlives_its_process_file() {
    let home = Home::new();
    let found = Scenario::of("found", &["stir"]).await;
    home.write_process("found", found.address.port());
    let daemon = home.start(&[]).await;
    daemon.until_state("found", "live").await;
    home.remove_process("found");
    let outlives = |answer: &crate::support::serving::Answer| {
        let health = answer.json();
        health["state"] == "live"
            && health["reason"]
                .as_str()
                .unwrap()
                .contains("no source names it")
    };
    daemon.until("/api/v1/scenarios/found", outlives).await;
    assert_eq!(daemon.tools("").await, ["stir"]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_scenario_that_moves_is_asked_at_its_new_address() {
    let home = Home::new();
    let mut found = Scenario::of("found", &["stir"]).await;
    home.write_process("found", found.address.port());
    let daemon = home.start(&[]).await;
    daemon.until_tools(&["stir"]).await;
    found.stop().await;
    found.run_elsewhere().await;
    found.offer([crate::support::daemon::tool("pour")]);
    home.write_process("found", found.address.port());
    daemon.until_tools(&["pour"]).await;
    assert_eq!(daemon.json("/api/v1/scenarios/found").await["restarts"], 1);
    daemon.stop().await;
}

#[tokio::test]
async fn what_speaks_no_known_protocol_says_what_was_tried() {
    let home = Home::new();
    let good = Scenario::of("good", &["brew"]).await;
    // A path below which nothing lists tools.
    let mut config = home.config(&[&good]);
    let mut odd = configured("odd", good.address);
    let mut url = odd.target.url().clone();
    url.set_path("/nowhere");
    odd.target = callsheet::model::Target::at(url);
    config.scenarios.push(odd);
    let daemon = Daemon::ready(config).await;
    let odd = daemon.json("/api/v1/scenarios/odd").await;
    assert_eq!(odd["state"], "connecting");
    let message = odd["last_error"]["message"].as_str().unwrap();
    assert!(
        message.contains("tried tool-discovery")
            && message.contains("HTTP 404 Not Found from")
            && message.contains("/nowhere/api/v1/tools"),
        "{message}"
    );
    assert_eq!(daemon.tools("").await, ["brew"]);
    daemon.stop().await;
}
