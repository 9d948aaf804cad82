//! What becomes of scenarios when the source that named them fails, or names them no more.

use std::fs;

use callsheet::config::StaticScenario;
use callsheet::engine::EngineError;
use callsheet::model::{FindingCode, ScenarioState, SourceId};
use callsheet::state::Decision;

use crate::support::assert_empty;
use crate::support::in_process::{findings, health, listed, name};
use crate::support::scripted::{Reply, Scripted};
use crate::support::sources::{OFTEN, Processes};
use crate::support::watched::{HOUR, Setting, ms, setting};

/// Only what the processes folder names, asked once an hour unless something happens.
fn following(processes: &Processes) -> Setting {
    follow(setting([]), processes)
}

fn follow(setting: Setting, processes: &Processes) -> Setting {
    setting.seldom().with(|config| {
        config.discovery.vrooli.enabled = true;
        config.discovery.vrooli.path = Some(processes.path.clone());
        config.discovery.vrooli.rescan_interval = OFTEN;
        config.health.grace = HOUR;
    })
}

fn remove(processes: &Processes, scenario: &str) {
    fs::remove_dir_all(processes.path.join(scenario)).unwrap();
}

#[tokio::test]
async fn a_source_that_fails_keeps_its_last_set_and_says_so() {
    let processes = Processes::new();
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    assert_empty!(findings(&sheet.now(), FindingCode::SourceFailed));

    // A file where the folder was cannot be listed, whoever asks.
    let aside = processes.path.with_file_name("aside");
    fs::rename(&processes.path, &aside).unwrap();
    fs::write(&processes.path, "in the way").unwrap();
    let failed = sheet
        .until("a failed source", |now| {
            !findings(now, FindingCode::SourceFailed).is_empty()
        })
        .await;
    let [finding] = &findings(&failed, FindingCode::SourceFailed)[..] else {
        panic!("one finding expected")
    };
    assert!(
        finding.message.contains("what it held before stays"),
        "{finding:?}"
    );
    assert_eq!(listed(&failed), vec!["read".to_owned()]);
    assert_eq!(health(&failed, "files").state, ScenarioState::Live);
    assert_eq!(server.count(), 1, "nobody doubts the scenario");

    fs::remove_file(&processes.path).unwrap();
    fs::rename(&aside, &processes.path).unwrap();
    sheet
        .until("a mended source", |now| {
            findings(now, FindingCode::SourceFailed).is_empty()
        })
        .await;
    assert_eq!(listed(&sheet.now()), ["read"]);
}

#[tokio::test]
async fn a_source_that_never_could_look_takes_nothing_back() {
    let processes = Processes::new();
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    let place = sheet.stop().await.1;
    fs::remove_dir_all(&processes.path).unwrap();
    fs::write(&processes.path, "in the way").unwrap();
    let sheet = follow(place.setting([]), &processes).start().await;
    let failed = sheet
        .until("a failed source", |now| {
            !findings(now, FindingCode::SourceFailed).is_empty()
        })
        .await;
    assert_eq!(listed(&failed), ["read"]);
    let shown = health(&failed, "files");
    assert_eq!(shown.state, ScenarioState::Connecting);
    assert_eq!(shown.source, SourceId::VROOLI);
    assert_eq!(shown.url.as_ref(), None);
    assert!(
        shown.reason.starts_with("no source has named it yet"),
        "{}",
        shown.reason
    );
    let refused = sheet
        .app
        .engine()
        .refresh(vec![name("files")])
        .await
        .unwrap_err();
    assert!(matches!(refused, EngineError::NoAddress(_)), "{refused}");
}

#[tokio::test]
async fn a_restored_scenario_that_no_source_names_is_removed() {
    let processes = Processes::new();
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    let place = sheet.stop().await.1;
    remove(&processes, "files");
    let sheet = follow(place.setting([]), &processes).start().await;
    let removed = sheet.until_state("files", ScenarioState::Removed).await;
    assert_empty!(listed(&removed));
    assert_eq!(
        health(&removed, "files").reason.as_str(),
        "no source names it any more"
    );
    assert_eq!(findings(&removed, FindingCode::Withdrawn).len(), 1);
}

#[tokio::test]
async fn a_scenario_that_left_and_does_not_answer_is_removed_at_once_and_forgotten_later() {
    let processes = Processes::new();
    let mut server = Scripted::saying(Reply::tools("files", &["read"]));
    let other = Scripted::saying(Reply::tools("desk", &["note"]));
    processes.write_live("files", server.port());
    processes.write_live("desk", other.port());
    let sheet = following(&processes)
        .with(|config| config.health.forget = ms(600))
        .start()
        .await;
    sheet.until_listed(&["note", "read"]).await;
    server.close().await;
    remove(&processes, "files");
    // Long before three failures and an hour of grace: the source's word and the failed ask agree.
    let removed = sheet.until_state("files", ScenarioState::Removed).await;
    let shown = health(&removed, "files");
    assert_eq!(listed(&removed), vec!["note".to_owned()]);
    assert_eq!(shown.failures_in_a_row, 1);
    assert!(
        shown.reason.starts_with(
            "no source names it any more, and it does not answer: connection refused by"
        ),
        "{shown:?}"
    );
    assert_eq!(shown.next_attempt, None);
    let [withdrawn] = &findings(&removed, FindingCode::Withdrawn)[..] else {
        panic!("one finding expected")
    };
    assert!(
        withdrawn.message.contains("no source names it any more"),
        "{withdrawn:?}"
    );

    let forgotten = sheet
        .until("it is forgotten", |now| {
            !now.health.contains_key(&name("files"))
        })
        .await;
    assert!(forgotten.catalog.entry(&name("files")).is_none());
    assert_empty!(findings(&forgotten, FindingCode::Withdrawn));
    let unknown = sheet
        .app
        .engine()
        .refresh(vec![name("files")])
        .await
        .unwrap_err();
    assert!(
        matches!(unknown, EngineError::UnknownScenario(_)),
        "{unknown}"
    );
    let stored = sheet.stop().await.1.stored().await;
    let names: Vec<_> = stored
        .manifests
        .iter()
        .map(|manifest| manifest.scenario.as_str())
        .collect();
    assert_eq!(names, ["desk"], "the store forgot it too");
}

#[tokio::test]
async fn what_an_operator_decided_about_is_not_forgotten() {
    let processes = Processes::new();
    let mut server = Scripted::saying(Reply::tools("files", &["read"]));
    let other = Scripted::saying(Reply::tools("desk", &["note"]).header("Cache-Control: no-cache"));
    processes.write_live("files", server.port());
    let scenarios = [("desk", other.url())];
    let sheet = follow(setting(scenarios), &processes)
        .with(|config| config.health.forget = ms(1))
        .start()
        .await;
    sheet.until_listed(&["note", "read"]).await;
    sheet
        .app
        .engine()
        .decide(name("files"), Some(Decision::Trusted))
        .await
        .unwrap();
    server.close().await;
    remove(&processes, "files");
    sheet.until_state("files", ScenarioState::Removed).await;
    // Some turns of the loop later it is still there.
    for _ in 0..5 {
        sheet.refresh("desk").await;
    }
    assert!(sheet.now().health.contains_key(&name("files")));
    // Without the decision nothing holds it.
    let _ = sheet.app.engine().decide(name("files"), None).await;
    sheet
        .until("it is forgotten", |now| {
            !now.health.contains_key(&name("files"))
        })
        .await;
}

#[tokio::test]
async fn a_scenario_that_left_and_is_busy_is_not_dead() {
    let processes = Processes::new();
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status("429 Too Many Requests"));
    remove(&processes, "files");
    server.until_asked(4).await;
    let busy = sheet
        .until_health("files", "is busy", |health| health.last_error.is_some())
        .await;
    assert_eq!(listed(&busy), vec!["read".to_owned()]);
    assert_eq!(health(&busy, "files").state, ScenarioState::Live);
    server.say(Reply::status("404 Not Found"));
    let removed = sheet.until_state("files", ScenarioState::Removed).await;
    assert_empty!(listed(&removed));
}

#[tokio::test]
async fn a_removed_scenario_that_is_named_again_is_down_until_it_answers() {
    let processes = Processes::new();
    let mut server = Scripted::saying(Reply::tools("files", &["read"]));
    processes.write_live("files", server.port());
    let sheet = following(&processes).start().await;
    sheet.until_listed(&["read"]).await;
    server.close().await;
    remove(&processes, "files");
    sheet.until_state("files", ScenarioState::Removed).await;
    // The same file as before: its source knows of nothing new, but that it is named is no answer.
    processes.write_live("files", server.port());
    let named = sheet
        .until_health("files", "is named again", |health| {
            health.failures_in_a_row >= 2
        })
        .await;
    let shown = health(&named, "files");
    assert_eq!(shown.state, ScenarioState::Down);
    assert_empty!(listed(&named));
    assert!(
        shown.reason.starts_with(
            "a source names it again, but it has given no good answer yet: connection"
        ),
        "{shown:?}"
    );
    // A decision that is taken back says nothing of what it offers now.
    let engine = sheet.app.engine().clone();
    for decision in [Some(Decision::Blocked), None] {
        engine.decide(name("files"), decision).await.unwrap();
    }
    let now = sheet.now();
    assert_eq!(health(&now, "files").state, ScenarioState::Down);
    assert_empty!(listed(&now));
    server.open();
    let back = sheet.until_state("files", ScenarioState::Live).await;
    assert_eq!(listed(&back), vec!["read".to_owned()]);
    assert_eq!(health(&back, "files").restarts, 1);
}

#[tokio::test]
async fn the_list_wins_over_the_folder_and_says_so() {
    let processes = Processes::new();
    let listed_at = Scripted::saying(Reply::tools("files", &["read"]));
    let found_at = Scripted::saying(Reply::tools("files", &["write"]));
    processes.write_live("files", found_at.port());
    let fixed = StaticScenario {
        name: name("files"),
        target: callsheet::model::Target::at(listed_at.url()),
        protocol: None,
        sleep_after: None,
    };
    let sheet = following(&processes)
        .with(|config| config.scenarios.push(fixed))
        .start()
        .await;
    let now = sheet
        .until("both sources told", |now| {
            listed(now) == ["read"] && !findings(now, FindingCode::SourceShadowed).is_empty()
        })
        .await;
    assert_eq!(health(&now, "files").source, SourceId::STATIC);
    let [finding] = &findings(&now, FindingCode::SourceShadowed)[..] else {
        panic!("one finding expected")
    };
    assert!(
        finding.message.contains(&found_at.port().to_string()),
        "{finding:?}"
    );
}
