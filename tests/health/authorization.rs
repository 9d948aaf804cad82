//! Scenarios that answer 401 or 403: what is published of them meanwhile, and what is said about
//! the credential.

use callsheet::model::{FindingCode, ScenarioState};

use crate::support::assert_empty;
use crate::support::in_process::{findings, health, listed};
use crate::support::scripted::{Reply, Scripted};
use crate::support::watched::{HOUR, ms, one, setting};

#[tokio::test]
async fn within_grace_a_scenario_that_wants_a_credential_keeps_its_tools() {
    for status in ["401 Unauthorized", "403 Forbidden"] {
        let server = Scripted::saying(Reply::tools("files", &["read"]));
        let sheet = one("files", &server)
            .with(|config| config.health.grace = HOUR)
            .start()
            .await;
        let before = sheet.until_listed(&["read"]).await;
        server.say(Reply::status(status));
        let asking = sheet
            .until_state("files", ScenarioState::NeedsAuthorization)
            .await;
        let shown = health(&asking, "files");
        assert!(shown.reason.contains(&status[..3]), "{}", shown.reason);
        assert_eq!(shown.last_error.as_ref().unwrap().kind, "status");
        assert_eq!(listed(&asking), listed(&before));
        assert_eq!(asking.catalog.revision(), before.catalog.revision());
        let [finding] = &findings(&asking, FindingCode::NeedsAuthorization)[..] else {
            panic!("{status}")
        };
        assert!(
            finding.message.contains(&status[..3]) && finding.message.contains("no credential"),
            "{finding:?}"
        );
        let hint = finding.hint.as_ref().unwrap();
        assert!(
            hint.contains("without a credential") && hint.contains("http://name:password@host"),
            "{finding:?}"
        );

        // However often it repeats that: it answers, so it is not down.
        sheet
            .until_health("files", "repeats it", |health| {
                health.failures_in_a_row >= 5
            })
            .await;
        assert_eq!(
            sheet.health("files").state,
            ScenarioState::NeedsAuthorization
        );

        server.say(Reply::tools("files", &["read"]));
        let back = sheet.until_state("files", ScenarioState::Live).await;
        assert_empty!(findings(&back, FindingCode::NeedsAuthorization));
    }
}

#[tokio::test]
async fn a_wrong_password_in_an_address_is_what_is_said_to_be_wrong() {
    let server = Scripted::saying(Reply::status("401 Unauthorized"));
    let mut url = server.url();
    url.set_username("me").unwrap();
    url.set_password(Some("wrong")).unwrap();
    let sheet = setting([("files", url)]).start().await;
    let asking = sheet
        .until_state("files", ScenarioState::NeedsAuthorization)
        .await;
    let [finding] = &findings(&asking, FindingCode::NeedsAuthorization)[..] else {
        panic!("one finding expected")
    };
    assert!(
        finding
            .message
            .contains("does not accept the name and password of its address"),
        "{finding:?}"
    );
    assert_eq!(finding.hint.as_deref(), Some("correct its `url`"));
    assert!(!format!("{finding:?}").contains("wrong"), "{finding:?}");
}

#[tokio::test]
async fn after_grace_its_tools_are_withdrawn_and_it_still_needs_authorization() {
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = ms(300))
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status("401 Unauthorized"));
    let withdrawn = sheet.until_listed(&[]).await;
    assert_eq!(
        health(&withdrawn, "files").state,
        ScenarioState::NeedsAuthorization
    );
    assert_eq!(findings(&withdrawn, FindingCode::Withdrawn).len(), 1);
    assert_eq!(
        findings(&withdrawn, FindingCode::NeedsAuthorization).len(),
        1
    );
    server.say(Reply::tools("files", &["read"]));
    sheet.until_listed(&["read"]).await;
}

#[tokio::test]
async fn a_scenario_that_needs_authorization_and_falls_silent_is_down() {
    let mut server = Scripted::saying(Reply::status("401 Unauthorized"));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = HOUR)
        .start()
        .await;
    sheet
        .until_state("files", ScenarioState::NeedsAuthorization)
        .await;
    server.close().await;
    // There are no tools that grace could keep.
    sheet.until_state("files", ScenarioState::Down).await;
    server.open();
    sheet
        .until_state("files", ScenarioState::NeedsAuthorization)
        .await;
}

#[tokio::test]
async fn a_refusal_of_the_host_name_is_not_taken_for_a_missing_credential() {
    for (status, said) in [
        (
            "403 Forbidden",
            "\r\n  Forbidden: only localhost may call this  \nmore",
        ),
        (
            "403 Forbidden",
            r#"{"error": {"code": -32000, "message": "Invalid Host: 127.0.0.1"}}"#,
        ),
    ] {
        let server = Scripted::saying(Reply::text(said).with_status(status));
        let sheet = one("files", &server).start().await;
        let refused = sheet
            .until_state("files", ScenarioState::NeedsAuthorization)
            .await;
        let [finding] = &findings(&refused, FindingCode::NeedsAuthorization)[..] else {
            panic!("{said}")
        };
        let line = said.trim().lines().next().unwrap().trim();
        assert!(
            finding.message.contains("403 Forbidden") && finding.message.contains(line),
            "{finding:?}"
        );
        assert!(
            finding
                .message
                .contains("it refuses the host name in its address"),
            "{finding:?}"
        );
        assert!(
            !finding.message.contains("credential") && !finding.message.contains("more"),
            "{finding:?}"
        );
        assert!(
            finding
                .hint
                .as_ref()
                .unwrap()
                .contains("an address that it allows"),
            "{finding:?}"
        );
        let shown = health(&refused, "files");
        assert!(shown.reason.contains(line), "{}", shown.reason);
    }
}

#[tokio::test]
async fn the_first_line_of_a_403_is_shown_and_no_web_page() {
    for (said, shown) in [
        (
            "quota of the day is used up\nnext line",
            "(`quota of the day is used up`)",
        ),
        ("<html>no</html>", ""),
    ] {
        let server = Scripted::saying(Reply::text(said).with_status("403 Forbidden"));
        let sheet = one("files", &server).start().await;
        let refused = sheet
            .until_state("files", ScenarioState::NeedsAuthorization)
            .await;
        let [finding] = &findings(&refused, FindingCode::NeedsAuthorization)[..] else {
            panic!("{said}")
        };
        let expected = format!("HTTP 403 Forbidden from {}api/v1/tools", server.url());
        assert!(finding.message.starts_with(&expected), "{finding:?}");
        assert!(
            finding.message.contains(shown) && !finding.message.contains("html"),
            "{finding:?}"
        );
        assert!(
            finding
                .message
                .contains("it refuses this client, and no credential is configured"),
            "{finding:?}"
        );
    }
}
