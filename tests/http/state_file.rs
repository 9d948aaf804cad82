//! The file of the state is moved, deleted or replaced while the daemon runs: no change is
//! acknowledged that the next start would not find.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, Home, Scenario};
use crate::support::serving::Answer;

async fn prefer(daemon: &Daemon, priority: u32) -> Answer {
    let body = json!({"scope": "global", "target": "tool:files/look", "priority": priority});
    daemon.send_json("PUT", "/api/v1/preferences", &body).await
}

/// The priority of the preference; null if there is none.
async fn priority(daemon: &Daemon) -> Value {
    daemon.json("/api/v1/preferences").await["preferences"][0]["priority"].clone()
}

/// A change is refused, which a finding says with what to do.
async fn assert_refused(daemon: &Daemon, file: &Path, what: &str) {
    let refused = prefer(daemon, 2).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(
        refused
            .problem()
            .contains("the stored state cannot be written"),
        "{refused:?}"
    );
    assert_eq!(priority(daemon).await, 1, "a refused change has no effect");
    let target = "/api/v1/findings?code=state-failed";
    let found = daemon
        .until(target, |answer| {
            String::from_utf8_lossy(&answer.body).contains(what)
        })
        .await;
    let found = String::from_utf8(found.body).unwrap();
    for part in [
        &file.display().to_string(),
        what,
        "move the same file back, or restart callsheet",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert_eq!(
        daemon.get("/api/v1/tools").await.status,
        200,
        "lists are served all the same"
    );
}

/// A change is taken again, and the finding goes.
async fn assert_taken(daemon: &Daemon) {
    let taken = prefer(daemon, 1).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    daemon
        .until("/api/v1/findings?code=state-failed", |answer| {
            answer.json()["findings"] == json!([])
        })
        .await;
}

#[tokio::test]
async fn a_change_is_refused_while_the_file_of_the_state_is_not_at_its_path() {
    let home = Home::new();
    let scenario = Scenario::of("files", &["look"]).await;
    let daemon = home.start(&[&scenario]).await;
    daemon.until_tools(&["look"]).await;
    assert_eq!(prefer(&daemon, 1).await.status, 200);
    let log = PathBuf::from(format!("{}-wal", home.state().display()));
    for file in [home.state(), log] {
        let aside = file.with_extension("aside");
        fs::rename(&file, &aside).unwrap();
        assert_refused(&daemon, &file, "was moved or deleted").await;
        fs::write(&file, "").unwrap();
        assert_refused(&daemon, &file, "was replaced by another file").await;
        fs::rename(&aside, &file).unwrap();
        assert_taken(&daemon).await;
    }
    daemon.stop().await;
    let again = home.start(&[&scenario]).await;
    assert_eq!(priority(&again).await, 1);
    again.stop().await;
}
