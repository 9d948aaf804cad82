//! Stored state that was cut, scribbled over, emptied or replaced: it is moved aside with an error
//! or read for what it still is, never deleted, and the daemon starts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use callsheet::model::{Finding, FindingCode, PreferenceAuthor, Settings};
use callsheet::runtime::Clock;
use callsheet::state::{Restored, Write, sqlite};
use rusqlite::Connection;
use tempfile::TempDir;

use crate::support::daemon::{Daemon, Home, Scenario};

const TRIES: usize = 60;

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("state.db");
    (folder, path)
}

fn preference(n: i32) -> Write {
    let settings = Settings {
        priority: Some(n),
        ..Settings::default()
    };
    let scope = format!("chat:{n}").parse().unwrap();
    Write::Preference(
        scope,
        "tool:kitchen/brew".parse().unwrap(),
        settings,
        PreferenceAuthor::Operator,
    )
}

/// Every file in the folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_file());
    entries
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}

fn restore(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).unwrap();
    }
}

/// A store with 100 preferences as a killed daemon leaves it: most of them in the database, the
/// last ones in the log beside it.
async fn killed() -> BTreeMap<String, Vec<u8>> {
    let (folder, path) = place();
    sqlite::open(&path, Clock::system())
        .unwrap()
        .save((0..60).map(preference).collect())
        .await
        .unwrap();
    let store = sqlite::open(&path, Clock::system()).unwrap();
    for n in 60..100 {
        store.save(vec![preference(n)]).await.unwrap();
    }
    let files = files(folder.path());
    assert!(files["state.db-wal"].len() > 4096 && files["state.db"].len() > 4096);
    files
}

/// Opens what is there, reads it, and stores something, which is there after that.
async fn carry_on(path: &Path) -> Restored {
    let store = sqlite::open(path, Clock::system()).unwrap_or_else(|error| panic!("{error}"));
    let restored = store.load().await.unwrap();
    store
        .save(vec![preference(1_000)])
        .await
        .unwrap_or_else(|error| panic!("{error}: {:?}", restored.findings));
    drop(store);
    let again = sqlite::open(path, Clock::system())
        .unwrap()
        .load()
        .await
        .unwrap();
    assert!(
        again
            .preferences
            .iter()
            .any(|(_, _, settings)| settings.priority == Some(1_000))
    );
    restored
}

fn moved(findings: &[Finding]) -> Option<&Finding> {
    findings.iter().find(|finding| {
        finding.code == FindingCode::StateRepaired && finding.message.contains(".damaged-")
    })
}

/// The bytes of the file of this ending that was moved aside.
fn aside(folder: &Path, ending: &str) -> Option<Vec<u8>> {
    let found = files(folder);
    let is_it = |name: &str| {
        let rest = name.strip_prefix("state.db.damaged-");
        rest.is_some_and(|rest| {
            rest.ends_with(ending) && (!ending.is_empty() || !rest.contains("Z-"))
        })
    };
    found
        .into_iter()
        .find(|(name, _)| is_it(name))
        .map(|(_, bytes)| bytes)
}

#[tokio::test]
async fn what_a_killed_daemon_leaves_is_whole() {
    let (folder, path) = place();
    restore(folder.path(), &killed().await);
    let restored = carry_on(&path).await;
    assert_eq!(restored.preferences.iter().count(), 100);
    assert!(restored.findings.is_empty(), "{:?}", restored.findings);
}

#[tokio::test]
async fn cut_or_scribbled_over_anywhere_it_starts_and_deletes_nothing() {
    let sound = killed().await;
    let mut random = fastrand::Rng::with_seed(11);
    let mut whole = 0;
    let mut moved_aside = 0;
    let mut salvaged = 0;
    for turn in 0..TRIES {
        let (folder, path) = place();
        let mut files = sound.clone();
        let name = ["state.db", "state.db", "state.db-wal"][turn % 3];
        let bytes = files.get_mut(name).unwrap();
        if turn % 2 == 0 {
            bytes.truncate(random.usize(1..bytes.len()));
        } else {
            for _ in 0..random.usize(1..20) {
                // What says whose file it is and of which version: another one's is refused, and
                // left as it is.
                let at = random.usize(if name == "state.db" { 100 } else { 0 }..bytes.len());
                bytes[at] ^= 1 << random.u32(0..8);
            }
        }
        restore(folder.path(), &files);
        let restored = carry_on(&path).await;
        if let Some(finding) = moved(&restored.findings) {
            moved_aside += 1;
            for (scope, target, settings) in restored.preferences.iter() {
                let author = PreferenceAuthor::Operator;
                let kept =
                    Write::Preference(scope.clone(), target.clone(), settings.clone(), author);
                let expected = preference(settings.priority.unwrap_or_default());
                assert_eq!(
                    format!("{kept:?}"),
                    format!("{expected:?}"),
                    "turn {turn}: what was read is what was stored"
                );
                salvaged += 1;
            }
            assert!(restored.loss.is_some(), "turn {turn}: {finding:?}");
            assert!(finding.hint.is_some(), "{finding:?}");
            let kept = [("state.db", ""), ("state.db-wal", "-wal")]
                .map(|(name, ending)| aside(folder.path(), ending).as_ref() == files.get(name));
            assert_eq!(
                kept,
                [true, true],
                "turn {turn}: file and log are as they were"
            );
        } else {
            // Commits that the log no longer holds whole are gone, as at a loss of power; what came
            // before them is not.
            let count = restored.preferences.iter().count();
            let quarantined = restored.findings.len();
            whole += 1;
            assert_eq!(restored.loss, None, "turn {turn}");
            assert!(
                name == "state.db-wal" && count >= 60 || count + quarantined >= 60,
                "turn {turn}: {count} of {name}"
            );
        }
    }
    assert!(
        whole > 3 && moved_aside > 3 && salvaged > 60,
        "{whole} went on, {moved_aside} were moved aside, {salvaged} preferences were read in those"
    );
}

#[tokio::test]
async fn what_sqlite_would_throw_away_is_moved_aside() {
    let sound = killed().await;
    // Emptied beside its log; gone beside its log, as when moving aside was interrupted; emptied
    // after it was closed.
    for (turn, (keep, log)) in [(true, true), (false, true), (true, false)]
        .into_iter()
        .enumerate()
    {
        let (folder, path) = place();
        let mut files = sound.clone();
        files.remove("state.db-shm");
        files.insert("state.db".to_owned(), Vec::new());
        if !keep {
            files.remove("state.db");
        }
        if !log {
            files.remove("state.db-wal");
        }
        restore(folder.path(), &files);
        let restored = carry_on(&path).await;
        let finding = moved(&restored.findings)
            .unwrap_or_else(|| panic!("turn {turn}: {:?}", restored.findings));
        assert!(
            finding.message.contains("it is empty"),
            "{}",
            finding.message
        );
        if log {
            assert!(
                aside(folder.path(), "-wal").as_ref() == Some(&sound["state.db-wal"]),
                "turn {turn}: the log is as it was"
            );
        }
    }
}

#[tokio::test]
async fn an_empty_file_is_a_loss_where_there_was_a_state() {
    for beside in [
        "state.db-wal",
        "state.db-shm",
        "state.db-journal",
        "state.db.damaged-20261126T020000Z",
    ] {
        let (folder, path) = place();
        fs::create_dir_all(folder.path()).unwrap();
        fs::write(&path, "").unwrap();
        fs::write(path.with_file_name(beside), "").unwrap();
        let restored = carry_on(&path).await;
        assert!(
            moved(&restored.findings)
                .unwrap()
                .message
                .contains("it is empty"),
            "{:?}",
            restored.findings
        );
        assert!(restored.loss.is_some(), "{beside}");
    }

    // Made before the first start, and used from then on.
    let (_folder, path) = place();
    fs::write(&path, "").unwrap();
    fs::write(path.with_file_name("other.db-wal"), "").unwrap();
    let restored = carry_on(&path).await;
    assert_eq!(restored.findings, []);
    assert_eq!(restored.loss, None);
    fs::write(&path, "").unwrap();
    assert!(carry_on(&path).await.loss.is_some());

    // Gone, with files of SQLite beside it that hold no change.
    for beside in ["state.db-wal", "state.db-shm"] {
        let (_folder, path) = place();
        fs::write(path.with_file_name(beside), "").unwrap();
        let restored = carry_on(&path).await;
        assert_eq!(restored.findings, [], "{beside}");
        assert_eq!(restored.loss, None, "{beside}");
    }

    // A daemon was killed between making the file and writing its first table.
    let (folder, path) = place();
    fs::create_dir_all(folder.path()).unwrap();
    fs::write(&path, "").unwrap();
    fs::write(path.with_extension("db.lock"), "123\n").unwrap();
    let restored = carry_on(&path).await;
    assert_eq!(restored.findings, []);
    assert_eq!(restored.loss, None);
}

/// The text of a schema is not checked by SQLite: a name may have any bytes, and a table may lack a
/// column.
#[tokio::test]
async fn a_damaged_schema_is_a_loss_and_no_panic() {
    for (from, to) in [
        (&b"enabled "[..], &b"en\xFFbled "[..]),
        (b"pinned INTEGER", b"pXnned INTEGER"),
    ] {
        let (_folder, path) = place();
        let store = sqlite::open(&path, Clock::system()).unwrap();
        store.save(vec![preference(1)]).await.unwrap();
        drop(store);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes
            .windows(from.len())
            .position(|found| found == from)
            .unwrap();
        bytes[at..at + to.len()].copy_from_slice(to);
        fs::write(&path, bytes).unwrap();
        let restored = carry_on(&path).await;
        assert!(restored.loss.is_some(), "{:?}", restored.findings);
        assert!(
            moved(&restored.findings)
                .unwrap()
                .message
                .contains("has no column"),
            "{:?}",
            restored.findings
        );
    }
}

#[tokio::test]
async fn a_stored_manifest_that_cannot_be_read_costs_its_scenario_alone() {
    let home = Home::new();
    let mut kitchen = Scenario::of("kitchen", &["brew"]).await;
    let mut pantry = Scenario::of("pantry", &["stock"]).await;
    let config = home.config(&[&kitchen, &pantry]);
    let daemon = Daemon::ready(config.clone()).await;
    daemon.until_tools(&["brew", "stock"]).await;
    daemon.stop().await;
    kitchen.stop().await;
    pantry.stop().await;
    let flag = r#"'"enabled_by_default":true'"#;
    let long = r#"'"enabled_by_default":"' || hex(zeroblob(5000)) || '"'"#;
    let change = format!(
        "UPDATE manifests SET document = replace(document, {flag}, {long}) WHERE scenario = 'kitchen'"
    );
    assert_eq!(
        Connection::open(home.state())
            .unwrap()
            .execute(&change, [])
            .unwrap(),
        1
    );

    let daemon = Daemon::start(config).await;
    assert_eq!(daemon.tools("").await, ["stock"]);
    let findings = daemon.findings("state-repaired").await;
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(findings[0]["scenario"], "kitchen");
    let message = findings[0]["message"].as_str().unwrap();
    assert!(
        message.contains("`metadata`: `enabled_by_default`: invalid type: string"),
        "{message}"
    );
    assert!(
        message.len() < 500,
        "the value is not quoted whole: {} bytes",
        message.len()
    );
    daemon.stop().await;
}

#[tokio::test]
async fn an_empty_folder_in_its_place_is_moved_aside() {
    let (folder, path) = place();
    fs::create_dir(&path).unwrap();
    let restored = carry_on(&path).await;
    let finding = moved(&restored.findings).unwrap();
    assert!(
        finding.message.contains("it is a folder"),
        "{}",
        finding.message
    );
    let mut entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    assert!(
        entries.any(|entry| entry.path().is_dir()),
        "it is still there"
    );
}
