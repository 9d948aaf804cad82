//! A scenario that wants a credential: its state, its finding with the next step, and how seldom it
//! is asked meanwhile.

use std::fs;
use std::sync::Arc;

use callsheet::model::{Auth, FindingCode, HttpTarget, ScenarioState, SecretSource, Target};
use serde_json::json;
use tempfile::TempDir;

use crate::support::in_process::{findings, health, listed};
use crate::support::mcp_server::{self, McpServer, modern};
use crate::support::scripted::{Reply, Scripted};
use crate::support::watched::{HOUR, ms, one, setting};

/// The target with something changed.
fn changed(target: &Target, change: impl FnOnce(&mut HttpTarget)) -> Target {
    let mut target = HttpTarget::clone(target.http().unwrap());
    change(&mut target);
    Target::Http(Arc::new(target))
}

#[tokio::test]
async fn a_bearer_challenge_names_the_key_that_is_missing() {
    let challenge = "WWW-Authenticate: Bearer resource_metadata=\"https://h/m\"";
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    let sheet = one("files", &server).with(|config| {
        config.health.grace = HOUR;
        let scenario = &mut config.scenarios[0];
        scenario.target = changed(&scenario.target, |target| {
            target.login = Some(scenario.name.clone());
        });
    });
    let sheet = sheet.start().await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status("401 Unauthorized").header(challenge));
    let now = sheet
        .until_state("files", ScenarioState::NeedsAuthorization)
        .await;
    assert_eq!(listed(&now), ["read"]);
    let [finding] = &findings(&now, FindingCode::NeedsAuthorization)[..] else {
        panic!("one finding")
    };
    assert!(
        finding.hint.as_ref().unwrap().contains("`auth`"),
        "{finding:?}"
    );
    assert!(
        finding.message.contains("wants a bearer token"),
        "{finding:?}"
    );
}

#[tokio::test]
async fn polls_of_a_scenario_that_refuses_back_off() {
    let server = Scripted::saying(Reply::status("401 Unauthorized"));
    let sheet = one("files", &server).with(|config| {
        config.refresh.backoff_base = HOUR;
        config.refresh.backoff_max = HOUR;
        config.refresh.forced_gap = ms(1);
    });
    let sheet = sheet.start().await;
    sheet
        .until_state("files", ScenarioState::NeedsAuthorization)
        .await;
    assert_eq!(server.count(), 1, "one request, and an hour of back-off");
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_costs_its_scenario_only_and_returns_by_itself() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    let server = Scripted::start(|request| match request.header("authorization") {
        Some("Bearer right") => Reply::tools("files", &["read"]),
        _ => Reply::status("401 Unauthorized"),
    });
    let sheet = one("files", &server).with(|config| {
        let auth = Auth::Bearer(SecretSource::File {
            path: path.clone(),
            key: None,
        });
        let scenario = &mut config.scenarios[0];
        scenario.target = changed(&scenario.target, |target| target.auth = Some(auth));
    });
    let sheet = sheet.start().await;
    let now = sheet
        .until_state("files", ScenarioState::NeedsAuthorization)
        .await;
    let shown = health(&now, "files");
    assert!(
        shown.reason.contains("token cannot be used"),
        "{}",
        shown.reason
    );
    assert_eq!(shown.last_error.as_ref().unwrap().kind, "credential");
    assert_eq!(server.count(), 0, "nothing is sent without it");

    fs::write(&path, "wrong").unwrap();
    let now = sheet
        .until_health("files", "is refused", |health| {
            health.reason.contains("401")
        })
        .await;
    let [finding] = &findings(&now, FindingCode::NeedsAuthorization)[..] else {
        panic!("one finding")
    };
    assert!(
        finding.message.contains("does not accept the credential"),
        "{finding:?}"
    );
    assert!(
        finding.hint.as_ref().unwrap().contains("`auth`"),
        "{finding:?}"
    );

    fs::write(&path, "right").unwrap();
    sheet.until_listed(&["read"]).await;
}

/// Gateways write a JSON-RPC error into their 401; the head decides.
#[tokio::test]
async fn an_mcp_server_that_refuses_wants_a_credential_whatever_its_body_says() {
    let mut own = modern(&json!([mcp_server::tool("find")]));
    let server = McpServer::start(move |came| match came.header("authorization") {
        Some("Bearer right") => own(came),
        _ => came.error(401, -32_001, "who are you?"),
    })
    .await;
    let folder = TempDir::new().unwrap();
    let sheet = setting([("docs", server.url())]);
    let path = folder.path().join("token");
    fs::write(&path, "wrong").unwrap();
    let sheet = sheet.with(|config| {
        let auth = Auth::Bearer(SecretSource::File {
            path: path.clone(),
            key: None,
        });
        let scenario = &mut config.scenarios[0];
        scenario.protocol = Some("mcp".to_owned());
        scenario.target = changed(&scenario.target, |target| target.auth = Some(auth));
    });
    let sheet = sheet.start().await;
    sheet
        .until_state("docs", ScenarioState::NeedsAuthorization)
        .await;
    fs::write(&path, "right").unwrap();
    sheet.until_listed(&["find"]).await;
    assert!(
        server
            .of("tools/list")
            .iter()
            .any(|came| came.header("authorization") == Some("Bearer right"))
    );
}
