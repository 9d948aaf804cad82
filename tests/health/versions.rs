//! Protocol versions over HTTP: every way in which a scenario may write one, at the first contact
//! and after a good answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::catalog::Snapshot;
use callsheet::model::{AcceptedVersions, Finding, FindingCode, Health, ScenarioState};
use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::in_process::{findings, health, listed, name};
use crate::support::scripted::{Reply, Scripted, manifest};
use crate::support::watched::{HOUR, Setting, ms, setting};

/// What becomes of a manifest with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Published, with these findings about the version.
    Taken(&'static [FindingCode]),
    /// Readable, out of range.
    Incompatible,
    /// Not readable: the document is refused.
    Refused,
}

use Fate::{Incompatible, Refused, Taken};
use FindingCode::{VersionAssumed, VersionNewer, VersionNonconforming, VersionPrerelease};

/// The table: the JSON of `protocol_version` (`-` where it is missing), and what becomes of it.
const TABLE: &[(&str, Fate)] = &[
    ("\"1.0\"", Taken(&[])),
    ("\"1\"", Taken(&[])),
    ("\"1.0.0\"", Taken(&[])),
    ("\"1.0.9\"", Taken(&[])),
    ("\"1.1\"", Taken(&[VersionNewer])),
    ("\"1.7.3\"", Taken(&[VersionNewer])),
    ("\"1.1.0-rc.1\"", Taken(&[VersionPrerelease, VersionNewer])),
    ("\"1.0.0-alpha\"", Taken(&[VersionPrerelease])),
    ("\"1.0.0+build.5\"", Taken(&[])),
    ("\"v1.0\"", Taken(&[VersionNonconforming])),
    ("\" 1.0 \"", Taken(&[VersionNonconforming])),
    ("1.0", Taken(&[VersionNonconforming])),
    ("1", Taken(&[VersionNonconforming])),
    ("1.1", Taken(&[VersionNonconforming, VersionNewer])),
    ("-", Taken(&[VersionAssumed])),
    ("\"2.0\"", Incompatible),
    ("\"2.0.0-alpha\"", Incompatible),
    ("\"0.9\"", Incompatible),
    ("2.0", Incompatible),
    // As a number, 1.10 is 1.1 to most readers and 1.10 to its author.
    ("1.10", Refused),
    ("\"\"", Refused),
    ("\"latest\"", Refused),
    ("\"1.x\"", Refused),
    ("\"1.0.0.0\"", Refused),
    ("\"01.0\"", Refused),
    ("null", Refused),
    ("true", Refused),
    ("[1,0]", Refused),
    ("{\"major\":1}", Refused),
];

/// A manifest of one tool, as text, since not every case survives a tree of values.
fn document(scenario: &str, tool: &str, version: &str) -> String {
    let mut manifest = manifest(scenario, &[tool]);
    if version == "-" {
        manifest.as_object_mut().unwrap().remove("protocol_version");
        return manifest.to_string();
    }
    manifest["protocol_version"] = json!("THE VERSION");
    manifest.to_string().replace("\"THE VERSION\"", version)
}

fn scenario(case: usize) -> String {
    format!("case-{case:02}")
}

fn tool(case: usize) -> String {
    format!("tool_{case:02}")
}

/// A server that plays every case of the table, each below a path of its own. While `good`, all
/// write `1.0`.
fn played(good: Arc<Mutex<bool>>) -> Scripted {
    Scripted::start(move |request| {
        let case: usize = request
            .target()
            .split('/')
            .nth(1)
            .unwrap()
            .trim_start_matches("case-")
            .parse()
            .unwrap();
        let version = if *good.lock().unwrap() {
            "\"1.0\""
        } else {
            TABLE[case].0
        };
        Reply::text(document(&scenario(case), &tool(case), version))
            .header("Cache-Control: no-cache")
    })
}

fn all(server: &Scripted) -> Setting {
    let names: Vec<_> = (0..TABLE.len()).map(scenario).collect();
    let setting = setting(names.iter().map(|name| (name.as_str(), server.below(name))));
    setting.with(|config| config.health.grace = HOUR)
}

fn of(snapshot: &Snapshot, case: usize) -> impl Iterator<Item = &Finding> {
    let name = name(&scenario(case));
    snapshot
        .findings
        .iter()
        .filter(move |finding| finding.scenario.as_ref() == Some(&name))
}

fn codes(snapshot: &Snapshot, case: usize) -> Vec<FindingCode> {
    let mut codes: Vec<_> = of(snapshot, case).map(|finding| finding.code).collect();
    codes.sort();
    codes
}

/// Whether a case has come to what the table says. What differs between first contact and later is
/// `state`.
fn assert_case(now: &Snapshot, case: usize, refused: ScenarioState) {
    let (version, fate) = TABLE[case];
    let shown = health(now, &scenario(case));
    let found = codes(now, case);
    match fate {
        Taken(expected) => {
            let mut expected = expected.to_vec();
            expected.sort();
            assert_eq!(found, expected, "{version}");
            assert!(
                shown.last_error.is_none() && shown.tools.published == 1,
                "{version}: {shown:?}"
            );
            let written = if version == "-" { "1.0" } else { version };
            assert_eq!(
                shown.protocol_version.as_deref(),
                Some(written.trim_matches('"')),
                "{version}"
            );
        }
        Incompatible => {
            let seen = version.trim_matches('"');
            assert_eq!(shown.state, ScenarioState::Incompatible, "{version}");
            assert_eq!(found, vec![FindingCode::VersionRefused], "{version}");
            let says = format!("speaks protocol version {seen}, but only >=1.0, <2.0 is accepted");
            assert_eq!(shown.reason.as_str(), says.as_str());
            assert_eq!(shown.failures_in_a_row, 0);
            assert_eq!(
                shown.last_error.as_ref().unwrap().kind,
                "incompatible",
                "{version}"
            );
        }
        Refused => {
            assert_eq!(shown.state, refused, "{version}");
            assert_eq!(found, vec![FindingCode::VersionUnreadable], "{version}");
            let error = shown.last_error.as_ref().unwrap();
            assert_eq!(error.kind, "malformed", "{version}");
            let bare = version.trim_matches('"');
            assert!(
                error.message.contains(bare) && error.message.contains("version"),
                "{version}: {}",
                error.message
            );
        }
    }
}

/// Whether the answers of the table have been taken in for every case.
fn is_through(now: &Snapshot, is_new: impl Fn(&Health) -> bool) -> bool {
    (0..TABLE.len()).all(|case| {
        let Some(shown) = now.health.get(&name(&scenario(case))) else {
            return false;
        };
        match TABLE[case].1 {
            Taken(_) => is_new(shown),
            Incompatible | Refused => shown.last_error.is_some(),
        }
    })
}

#[tokio::test]
async fn at_first_contact() {
    let server = played(Arc::new(Mutex::new(false)));
    let sheet = all(&server).start().await;
    let now = sheet
        .until("every case answered", |now| {
            is_through(now, |health| health.last_success.is_some())
        })
        .await;
    for case in 0..TABLE.len() {
        assert_case(&now, case, ScenarioState::Connecting);
    }
    let taken = (0..TABLE.len()).filter(|case| matches!(TABLE[*case].1, Taken(_)));
    assert_eq!(
        listed(&now),
        taken.map(tool).collect::<Vec<_>>(),
        "only what is in range is published"
    );
}

#[tokio::test]
async fn after_a_good_answer_the_last_good_tools_stay() {
    let good = Arc::new(Mutex::new(true));
    let server = played(Arc::clone(&good));
    let sheet = all(&server).start().await;
    let everything: Vec<_> = (0..TABLE.len()).map(tool).collect();
    sheet
        .until("every tool", |now| listed(now) == everything)
        .await;
    *good.lock().unwrap() = false;
    let polls = server.count();
    server.until_asked(polls + 4 * TABLE.len()).await;
    let is_new = |health: &Health| health.protocol_version.is_some();
    let now = sheet
        .until("every case answered anew", |now| {
            is_through(now, is_new)
                && (0..TABLE.len()).all(|case| match TABLE[case].1 {
                    Taken(expected) => codes(now, case).len() == expected.len(),
                    _ => true,
                })
        })
        .await;
    for case in 0..TABLE.len() {
        assert_case(&now, case, ScenarioState::Stale);
    }
    assert_eq!(listed(&now), everything, "nothing is gone");
    assert_empty!(findings(&now, FindingCode::Withdrawn));
}

/// One scenario that writes what the test says.
fn writing(version: &str) -> Scripted {
    Scripted::saying(
        Reply::text(document("files", "read", version)).header("Cache-Control: no-cache"),
    )
}

fn rewrite(server: &Scripted, version: &str) {
    server.say(Reply::text(document("files", "read", version)).header("Cache-Control: no-cache"));
}

fn files(server: &Scripted) -> Setting {
    setting([("files", server.url())])
}

#[tokio::test]
async fn an_incompatible_scenario_is_asked_slowly_and_comes_back() {
    let server = writing("\"2.0\"");
    let slow = Duration::from_secs(540);
    let sheet = files(&server)
        .with(|config| config.protocol.incompatible_interval = slow)
        .start()
        .await;
    let now = sheet
        .until_state("files", ScenarioState::Incompatible)
        .await;
    let shown = health(&now, "files");
    let wait = shown
        .next_attempt
        .unwrap()
        .duration_since(shown.last_error.as_ref().unwrap().at);
    assert_eq!(wait, jiff::SignedDuration::try_from(slow).unwrap());
    rewrite(&server, "\"1.2\"");
    assert_eq!(
        sheet.refresh("files").await.state,
        ScenarioState::Stale,
        "no-cache is stale at once, and published"
    );
    assert_eq!(listed(&sheet.now()), ["read"]);
    assert_empty!(findings(&sheet.now(), FindingCode::VersionRefused));
}

#[tokio::test]
async fn the_last_good_tools_of_an_incompatible_scenario_go_after_their_own_grace() {
    let server = writing("\"1.0\"");
    let grace = ms(700);
    let setting = files(&server).with(|config| {
        config.health.grace = ms(1);
        config.protocol.incompatible_grace = grace;
        config.protocol.incompatible_interval = ms(50);
    });
    let sheet = setting.start().await;
    sheet.until_listed(&["read"]).await;
    rewrite(&server, "\"2.0\"");
    let refused = sheet
        .until_state("files", ScenarioState::Incompatible)
        .await;
    assert_eq!(listed(&refused), ["read"]);
    let polls = server.count();
    let withdrawn = sheet.until_listed(&[]).await;
    // Asked again and again meanwhile, which neither counts as failing nor begins the grace anew.
    assert!(
        server.count() >= polls + 3,
        "{} to {}",
        polls,
        server.count()
    );
    let shown = health(&withdrawn, "files");
    assert_eq!(shown.state, ScenarioState::Incompatible);
    assert_eq!(shown.failures_in_a_row, 0);
    let [finding] = &findings(&withdrawn, FindingCode::Withdrawn)[..] else {
        panic!("one finding expected")
    };
    assert!(
        finding.message.contains("speaks protocol version 2.0"),
        "{finding:?}"
    );
    assert_eq!(findings(&withdrawn, FindingCode::VersionRefused).len(), 1);
    rewrite(&server, "\"1.0\"");
    sheet.until_listed(&["read"]).await;
}

#[tokio::test]
async fn an_incompatible_scenario_that_dies_is_down() {
    let mut server = writing("\"1.0\"");
    let setting = files(&server).with(|config| {
        config.health.grace = ms(1);
        config.protocol.incompatible_interval = ms(50);
    });
    let sheet = setting.start().await;
    sheet.until_listed(&["read"]).await;
    rewrite(&server, "\"2.0\"");
    sheet
        .until_state("files", ScenarioState::Incompatible)
        .await;
    server.close().await;
    // Its first failures leave in place why its tools are as they are.
    let failing = sheet
        .until_health("files", "fails", |health| health.failures_in_a_row >= 1)
        .await;
    assert_eq!(findings(&failing, FindingCode::VersionRefused).len(), 1);
    let down = sheet.until_state("files", ScenarioState::Down).await;
    assert_empty!(listed(&down));
    assert!(
        health(&down, "files")
            .reason
            .contains("connection refused by http://"),
        "{:?}",
        health(&down, "files")
    );
}

#[tokio::test]
async fn a_scenario_that_comes_back_from_down_with_another_version_gets_no_tools_back() {
    let mut server = writing("\"1.0\"");
    let setting = files(&server).with(|config| {
        config.health.grace = ms(1);
        config.protocol.incompatible_interval = ms(50);
    });
    let sheet = setting.start().await;
    sheet.until_listed(&["read"]).await;
    server.close().await;
    sheet.until_state("files", ScenarioState::Down).await;
    rewrite(&server, "\"2.0\"");
    server.open();
    let refused = sheet
        .until_state("files", ScenarioState::Incompatible)
        .await;
    assert!(
        listed(&refused).is_empty(),
        "only a good answer brings them back"
    );
    server.close().await;
    let down = sheet.until_state("files", ScenarioState::Down).await;
    assert!(
        health(&down, "files")
            .reason
            .contains("polls failed: connection refused by"),
        "{:?}",
        health(&down, "files")
    );
    rewrite(&server, "\"1.0\"");
    server.open();
    sheet.until_listed(&["read"]).await;
}

#[tokio::test]
async fn the_range_is_the_configurations() {
    let server = writing("\"2.3\"");
    let accept = AcceptedVersions::parse(">=2.1, <3.0").unwrap();
    let sheet = files(&server)
        .with(|config| config.protocol.accept = accept)
        .start()
        .await;
    let now = sheet.until_listed(&["read"]).await;
    assert_eq!(
        health(&now, "files").protocol_version.as_deref(),
        Some("2.3")
    );
}

#[tokio::test]
async fn what_a_newer_minor_version_adds_is_passed_on() {
    let mut newer = manifest("files", &["read"]);
    newer["protocol_version"] = json!("1.4");
    newer["tools"][0]["x_weight"] = json!({"grams": 3});
    let server = Scripted::saying(Reply::json(&newer));
    let sheet = files(&server).start().await;
    let now = sheet.until_listed(&["read"]).await;
    let entry = now.catalog.entry(&name("files")).unwrap();
    let extra = &entry.tools[0].tool.extra;
    let kept: Vec<(String, Value)> = extra
        .iter()
        .map(|(key, raw)| (key.to_string(), serde_json::from_str(raw.get()).unwrap()))
        .collect();
    assert_eq!(kept, [("x_weight".to_owned(), json!({"grams": 3}))]);
}
