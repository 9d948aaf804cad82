//! What answers there is no use for are told as, what they cost, and that the probe says what it
//! tried.

use callsheet::model::{FindingCode, ScenarioState};
use serde_json::json;

use crate::support::assert_empty;
use crate::support::in_process::{findings, health, listed, name};
use crate::support::scripted::{Reply, Scripted, manifest};
use crate::support::watched::{HOUR, ms, one};

#[tokio::test]
async fn the_probe_says_what_it_tried_and_goes_on_trying() {
    let bare = r#"[{"scenario": "files", "tool": {"name": "read"}, "enabled": true}]"#;
    let cases = [
        (
            Reply::text("<!doctype html><title>A page</title>").header("Content-Type: text/html"),
            "web page",
        ),
        (Reply::status("404 Not Found"), "404"),
        (Reply::status("405 Method Not Allowed"), "405"),
        (Reply::text(bare), "a bare JSON list"),
        (
            Reply::text(r#"{"status": "ok"}"#),
            "neither `tools` nor `scenario`",
        ),
        (Reply::text(""), "the body is empty"),
    ];
    for (reply, says) in cases {
        let server = Scripted::saying(reply);
        let sheet = one("files", &server)
            .with(|config| config.health.grace = HOUR)
            .start()
            .await;
        let tried = sheet
            .until_health("files", "was tried", |health| health.failures_in_a_row >= 2)
            .await;
        let shown = health(&tried, "files");
        let expected = if shown.failures_in_a_row < 3 {
            ScenarioState::Connecting
        } else {
            ScenarioState::Down
        };
        assert_eq!(shown.state, expected);
        assert_eq!(shown.protocol, None);
        let error = shown.last_error.as_ref().unwrap();
        assert_eq!(error.kind, "unknown-protocol");
        for part in ["tried tool-discovery on /api/v1/tools", says] {
            assert!(
                error.message.contains(part) && shown.reason.contains(part),
                "`{part}` in {}",
                error.message
            );
        }
        let [finding] = &findings(&tried, FindingCode::ManifestRefused)[..] else {
            panic!("{says}: one finding expected")
        };
        assert_eq!(finding.scenario, Some(name("files")));
        assert_eq!(finding.message.as_str(), error.message.as_str());
        assert!(server.seen().iter().all(|seen| {
            ["/api/v1/tools", "/manifest", "/", "/rpc"].contains(&seen.request.target())
        }));

        server.say(Reply::tools("files", &["read"]));
        let live = sheet.until_state("files", ScenarioState::Live).await;
        assert_eq!(health(&live, "files").protocol, Some("tool-discovery"));
        assert_eq!(listed(&live), vec!["read".to_owned()]);
        assert_empty!(findings(&live, FindingCode::ManifestRefused));
    }
}

/// No range was requested, so a part of a list is all that can have come.
#[tokio::test]
async fn a_part_of_a_list_is_no_list_and_other_successes_are() {
    for (status, taken) in [
        ("201 Created", true),
        ("203 Non-Authoritative Information", true),
        ("206 Partial Content", false),
    ] {
        let server = Scripted::saying(Reply::tools("files", &["read"]).with_status(status));
        let sheet = one("files", &server).start().await;
        if taken {
            sheet.until_listed(&["read"]).await;
            continue;
        }
        let tried = sheet
            .until_health("files", "was tried", |health| health.failures_in_a_row > 0)
            .await;
        assert!(listed(&tried).is_empty(), "{status}");
        assert!(
            health(&tried, "files").reason.contains("206"),
            "{}",
            health(&tried, "files").reason
        );
    }
}

#[tokio::test]
async fn a_version_that_cannot_be_read_has_a_finding_of_its_own() {
    let mut odd = manifest("files", &["read"]);
    odd["protocol_version"] = json!("latest");
    let server = Scripted::saying(Reply::json(&odd));
    let sheet = one("files", &server).start().await;
    let now = sheet
        .until("a finding", |now| {
            !findings(now, FindingCode::VersionUnreadable).is_empty()
        })
        .await;
    assert!(
        findings(&now, FindingCode::VersionUnreadable)[0]
            .message
            .contains("latest")
    );
    assert_empty!(findings(&now, FindingCode::ManifestRefused));
}

#[tokio::test]
async fn a_malformed_tool_costs_that_tool() {
    let mut broken = manifest("files", &["read", "write", "list"]);
    broken["tools"][1]["parameters"] = json!("none");
    broken["tools"].as_array_mut().unwrap().push(json!(7));
    let server = Scripted::saying(Reply::json(&broken).header("Cache-Control: no-cache"));
    let sheet = one("files", &server).start().await;
    let now = sheet.until_listed(&["list", "read"]).await;
    let counts = health(&now, "files").tools;
    assert_eq!(counts.published, 2);
    assert_eq!(counts.quarantined, 2);
    let quarantined = findings(&now, FindingCode::ToolQuarantined);
    assert_eq!(quarantined.len(), 2);
    assert!(
        quarantined
            .iter()
            .all(|finding| finding.scenario == Some(name("files"))),
        "{quarantined:?}"
    );
    let named = quarantined
        .iter()
        .find(|finding| finding.tool.as_deref() == Some("write"))
        .unwrap();
    assert_eq!(named.pointer.as_deref(), Some("/tools/1/parameters"));

    server.say(Reply::tools("files", &["read", "write", "list"]));
    let mended = sheet.until_listed(&["list", "read", "write"]).await;
    assert_eq!(health(&mended, "files").tools.quarantined, 0);
    assert_empty!(findings(&mended, FindingCode::ToolQuarantined));
}

#[tokio::test]
async fn a_manifest_that_is_malformed_as_a_whole_leaves_the_last_good_tools() {
    let cut = manifest("files", &["read", "write"]).to_string();
    let cases = [
        (
            Reply::text(&cut[..cut.len() - 40]),
            "malformed",
            "ends in the middle",
        ),
        (
            Reply::json(&json!({"protocol_version": "1.0", "scenario": 5, "tools": []})),
            "malformed",
            "scenario",
        ),
        (
            Reply::json(
                &json!({"protocol_version": "1.0", "scenario": {"name": "files"}, "tools": "all"}),
            ),
            "malformed",
            "tools",
        ),
        (Reply::text("<html>"), "unknown-protocol", "web page"),
    ];
    for (reply, kind, says) in cases {
        let good = Reply::tools("files", &["read"])
            .header("ETag: \"v1\"")
            .header("Cache-Control: no-cache");
        let server = Scripted::saying(good);
        let sheet = one("files", &server)
            .with(|config| config.health.grace = HOUR)
            .start()
            .await;
        let before = sheet.until_listed(&["read"]).await;
        server.say(reply.header("ETag: \"v2\""));
        let refused = sheet
            .until_health("files", "refused", |health| health.failures_in_a_row >= 4)
            .await;
        let shown = health(&refused, "files");
        assert_eq!(shown.state, ScenarioState::Stale, "{says}");
        assert_eq!(
            shown.last_error.as_ref().unwrap().kind.as_str(),
            kind,
            "{says}"
        );
        assert!(shown.reason.contains(says), "{says}: {}", shown.reason);
        assert_eq!(refused.catalog.revision(), before.catalog.revision());
        let [finding] = &findings(&refused, FindingCode::ManifestRefused)[..] else {
            panic!("{says}: one finding expected")
        };
        assert!(
            finding.message.contains(says) && finding.hint.is_some(),
            "{finding:?}"
        );
        // What could not be read is not known: only what is in force is asked for conditionally.
        assert_eq!(server.last().header("if-none-match"), Some("\"v1\""));
    }
}

#[tokio::test]
async fn a_manifest_that_stays_malformed_is_withdrawn_after_grace_and_says_why() {
    let server =
        Scripted::saying(Reply::tools("files", &["read"]).header("Cache-Control: no-cache"));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = ms(1))
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::text(r#"{"protocol_version": "1.0", "tools": ["#));
    let down = sheet.until_state("files", ScenarioState::Down).await;
    assert_empty!(listed(&down));
    let [withdrawn] = &findings(&down, FindingCode::Withdrawn)[..] else {
        panic!("one finding expected")
    };
    assert!(
        withdrawn.message.contains("ends in the middle"),
        "{withdrawn:?}"
    );
    let [refused] = &findings(&down, FindingCode::ManifestRefused)[..] else {
        panic!("one finding expected")
    };
    assert!(
        refused.hint.as_ref().unwrap().contains("health.grace"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn no_tools_is_an_offer_like_any_other() {
    let server =
        Scripted::saying(Reply::tools("files", &["read"]).header("Cache-Control: no-cache"));
    let sheet = one("files", &server).start().await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::tools("files", &[]));
    let empty = sheet.until_listed(&[]).await;
    assert_eq!(health(&empty, "files").state, ScenarioState::Live);
}

#[tokio::test]
async fn internal_tools_are_not_counted_as_published() {
    let mut mixed = manifest("files", &["read", "write", "secret"]);
    mixed["tools"][1]["metadata"] = json!({"enabled_by_default": false});
    mixed["tools"][2]["metadata"] = json!({"enabled_by_default": true, "internal_only": true});
    let server = Scripted::saying(Reply::json(&mixed));
    let sheet = one("files", &server).start().await;
    let now = sheet.until_listed(&["read"]).await;
    let counts = health(&now, "files").tools;
    assert_eq!(counts.published, 1);
    assert_eq!(counts.disabled, 1);
    assert_eq!(counts.quarantined, 0);
}

#[tokio::test]
async fn a_scenario_that_calls_itself_otherwise_is_filed_as_it_was_found() {
    let server = Scripted::saying(Reply::tools("archive", &["read"]));
    let sheet = one("files", &server).start().await;
    let now = sheet.until_listed(&["read"]).await;
    assert!(
        now.catalog.entry(&name("files")).is_some()
            && now.catalog.entry(&name("archive")).is_none()
    );
    let [finding] = &findings(&now, FindingCode::NameMismatch)[..] else {
        panic!("one finding expected")
    };
    assert_eq!(finding.scenario, Some(name("files")));
    assert_eq!(finding.pointer.as_deref(), Some("/scenario/name"));
    assert!(finding.message.contains("`archive`"), "{finding:?}");
    server.say(Reply::tools("files", &["read"]));
    sheet.refresh("files").await;
    assert_empty!(findings(&sheet.now(), FindingCode::NameMismatch));
}
