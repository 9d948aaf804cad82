//! A configuration that a running daemon cannot use, or not before a restart: nothing changes, and
//! everybody can see why.

use std::fs;

use serde_json::json;

use crate::support::command::until;
use crate::support::config_file::{Counted, Following, HEAD, file, replace};

#[test]
fn what_cannot_be_used_changes_nothing_and_is_told_until_it_is_mended() {
    let notes = Counted::offering("notes", &["add_note"]);
    let good = file(&[notes.entry("notes")]);
    let following = Following::start(&good);
    let path = following.path.display().to_string();
    let twice = file(&[notes.entry("notes"), notes.entry("notes")]);
    let cases = [
        (
            format!("{good}\nnot toml"),
            format!("{path}:8:"),
            "this is not TOML",
        ),
        (
            format!("{HEAD}[refresh]\ntimeot = \"3s\"\n"),
            format!("{path}:4:1: refresh.timeot: "),
            "unknown key",
        ),
        (
            format!("refresh.timeout = \"soon\"\n{good}"),
            format!("{path}:1:19: refresh.timeout: "),
            "is not a duration",
        ),
        (
            twice,
            format!("{path}:8:8: scenarios[1].name: "),
            "is already the name of scenarios[0]",
        ),
    ];
    let mut reloads = 0;
    for (text, place, wrong) in cases {
        replace(&following.path, &text);
        let state = following.until_refused(true);
        let problems = state["refused"]["problems"].as_array().unwrap();
        let message = problems[0]["message"].as_str().unwrap();
        assert!(
            message.starts_with(&place) && message.contains(wrong),
            "{message}"
        );
        assert!(!problems[0]["hint"].as_str().unwrap().is_empty());
        assert_eq!(following.daemon.get("/readyz").0, 200);
        assert_eq!(state["reloads"], reloads);

        let findings = following.findings("config-refused");
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0]["severity"], "error", "{findings:?}");
        assert!(
            findings[0]["message"].as_str().unwrap().contains(message),
            "{findings:?}"
        );
        assert_eq!(findings[0]["hint"], problems[0]["hint"]);
        let shown = following
            .home
            .run(&["scenarios", "--url", &following.daemon.url])
            .ok();
        assert!(
            shown.contains("CONFIGURATION NOT RELOADED since ") && shown.contains(message),
            "{shown}"
        );
        assert!(
            following
                .home
                .run(&["config", "show"])
                .failed(4)
                .contains(message)
        );
        let page = String::from_utf8(following.daemon.get("/dashboard/configuration").1).unwrap();
        assert!(
            page.contains("id=\"not-as-written\"") && page.contains(wrong),
            "{page}"
        );
        assert_eq!(following.tools(), ["add_note"]);

        // Mended with another value, so that this counts as a reload.
        reloads += 1;
        replace(
            &following.path,
            &format!("refresh.timeout = \"{reloads}s\"\n{good}"),
        );
        following.until_reloads(reloads);
        following.until_refused(false);
        assert!(following.findings("config-refused").is_empty());
    }
    assert_eq!(notes.asked(), 1);
    let log = following.log();
    assert!(
        log.contains(&format!(
            "the configuration is not reloaded: {path}:4:1: refresh.timeot: unknown key"
        )),
        "{log}"
    );
    assert_eq!(
        log.matches("the configuration can be used again").count(),
        4,
        "{log}"
    );
}

#[test]
fn a_file_that_is_removed_withdraws_nothing() {
    let notes = Counted::offering("notes", &["add_note"]);
    let good = file(&[notes.entry("notes")]);
    let following = Following::start(&good);
    fs::remove_file(&following.path).unwrap();
    let state = following.until_refused(true);
    let message = state["refused"]["problems"][0]["message"].as_str().unwrap();
    assert_eq!(
        message,
        format!(
            "{}: the configuration is not there any more",
            following.path.display()
        )
    );
    assert_eq!(following.tools(), ["add_note"]);
    // As it was before: nothing to be put in force, but nothing is wrong any more.
    fs::write(&following.path, &good).unwrap();
    let state = following.until_refused(false);
    assert_eq!(state["reloads"], 0);
    assert_eq!(notes.asked(), 1);
    // A folder in its place cannot be read.
    fs::remove_file(&following.path).unwrap();
    fs::create_dir(&following.path).unwrap();
    until("it cannot be read", || {
        let state = following.configuration();
        let message = state["refused"]["problems"][0]["message"]
            .as_str()
            .unwrap_or_default();
        message.contains("the configuration cannot be read")
    });
    fs::remove_dir(&following.path).unwrap();
    fs::write(&following.path, file(&[])).unwrap();
    following.until_tools(&[]);
}

#[test]
fn what_waits_for_a_restart_is_named() {
    let notes = Counted::offering("notes", &["add_note"]);
    let good = file(&[notes.entry("notes")]);
    let following = Following::start(&good);
    replace(
        &following.path,
        &format!("state.path = \"other.db\"\nhealth.grace = \"9s\"\n{good}")
            .replace(":0\"", ":9\""),
    );
    following.until_reloads(1);
    let state = following.configuration();
    assert_eq!(state["changed"], json!(["health.grace"]));
    assert_eq!(
        state["waiting_for_restart"],
        json!(["server.listen", "state.path"])
    );
    let findings = following.findings("config-waiting");
    assert_eq!(findings.len(), 2, "{findings:?}");
    assert_eq!(findings[0]["hint"], "restart the daemon", "{findings:?}");
    assert!(
        findings[0]["message"]
            .as_str()
            .unwrap()
            .starts_with("`server.listen` keeps its value")
    );
    let shown = following
        .home
        .run(&["scenarios", "--url", &following.daemon.url])
        .ok();
    assert!(
        shown.contains(
            "`server.listen`, `state.path` changed in the configuration: restart the daemon"
        ),
        "{shown}"
    );
    assert!(!following.home.path("other.db").exists());

    replace(&following.path, &good);
    following.until_reloads(2);
    assert_eq!(following.configuration()["waiting_for_restart"], json!([]));
    assert!(following.findings("config-waiting").is_empty());
    assert!(
        following
            .json("/api/v1/scenarios")
            .get("configuration")
            .is_none()
    );
    let log = following.log();
    assert_eq!(
        log.matches("this key keeps its value until the daemon is restarted")
            .count(),
        2,
        "{log}"
    );
}

/// A pipe has no end before its writer comes.
#[cfg(unix)]
#[test]
fn a_pipe_in_the_place_of_a_file_is_refused_and_ends_no_reload() {
    let pipe = |path: &std::path::Path| {
        let made = std::process::Command::new("mkfifo")
            .arg(path)
            .status()
            .unwrap();
        assert!(made.success());
    };
    let notes = Counted::offering("notes", &["add_note"]);
    let good = file(&[notes.entry("notes")]);
    let following = Following::start(&good);
    let schema = following.path.with_file_name("schema.json");
    pipe(&schema);
    replace(
        &following.path,
        &format!("{good}\n[[definitions]]\nfile = \"{}\"\n", schema.display()),
    );
    let state = following.until_refused(true);
    let message = state["refused"]["problems"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("definitions[0].file") && message.contains("it is not a file"),
        "{message}"
    );

    fs::remove_file(&following.path).unwrap();
    pipe(&following.path);
    let is_of_file = || {
        let state = following.configuration();
        state["refused"]["problems"][0]["message"]
            .as_str()
            .unwrap_or_default()
            .contains("the configuration cannot be read")
    };
    until("the file itself is refused", is_of_file);
    let shown = following.home.run(&["config", "show"]).failed(4);
    assert!(shown.contains("it is not a file"), "{shown}");

    replace(
        &following.path,
        &format!("refresh.timeout = \"7s\"\n{good}"),
    );
    following.until_reloads(1);
    following.until_refused(false);
    assert_eq!(following.tools(), ["add_note"]);
}
