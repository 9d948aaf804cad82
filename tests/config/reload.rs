//! Another configuration for a running daemon, through the real binary: how the change is noticed,
//! and what it leaves alone.

use std::fs;
use std::os::unix::fs::symlink;

use crate::support::command::{Home, until};
use crate::support::config_file::{Counted, Following, HEAD, file, replace};

#[test]
fn a_file_that_is_replaced_is_read_and_equal_scenarios_are_left_alone() {
    let notes = Counted::offering("notes", &["add_note"]);
    let mail = Counted::offering("mail", &["send_mail"]);
    let following = Following::start(&file(&[notes.entry("notes")]));
    let started = following.configuration();
    assert_eq!(started["file"], following.path.to_str().unwrap());
    assert_eq!(started["reloads"], 0);
    assert!(started["refused"].is_null());
    let before = following.health("notes");
    let list = following.daemon.get("/api/v1/tools?format=openai").1;
    assert_eq!(notes.asked(), 1);

    replace(
        &following.path,
        &file(&[notes.entry("notes"), mail.entry("mail")]),
    );
    following.until_tools(&["send_mail", "add_note"]);
    let state = following.configuration();
    assert_eq!(state["reloads"], 1);
    assert_eq!(state["changed"], serde_json::json!(["scenarios"]));
    assert_eq!(
        state["scenarios"],
        serde_json::json!({"added": 1, "removed": 0, "changed": 0})
    );

    replace(&following.path, &file(&[notes.entry("notes")]));
    following.until_tools(&["add_note"]);
    let gone = following.health("mail");
    assert_eq!(gone["state"], "removed");
    assert_eq!(gone["next_attempt"], serde_json::Value::Null);
    assert_eq!(
        gone["reason"],
        "the configuration does not name it any more"
    );
    let withdrawn = following.findings("withdrawn");
    assert_eq!(withdrawn.len(), 1, "{withdrawn:?}");
    assert_eq!(withdrawn[0]["scenario"], "mail", "{withdrawn:?}");
    assert!(
        withdrawn[0]["message"]
            .as_str()
            .unwrap()
            .ends_with("the configuration does not name it any more")
    );

    // Through both reloads: not asked, not replanned, and not a byte of the list is another one.
    let after = following.health("notes");
    for same in [
        "last_attempt",
        "last_success",
        "next_attempt",
        "since",
        "restarts",
        "failures_in_a_row",
        "freshness",
    ] {
        let before = &before[same];
        let after = &after[same];
        assert!(
            before == after || same == "freshness" && before["received_at"] == after["received_at"],
            "{same}"
        );
    }
    assert_eq!(notes.asked(), 1);
    assert_eq!(mail.asked(), 1);
    assert_eq!(following.daemon.get("/api/v1/tools?format=openai").1, list);
    let log = following.log();
    assert_eq!(
        log.matches("the configuration was reloaded").count(),
        2,
        "{log}"
    );
}

#[test]
fn a_file_that_is_written_in_place_is_read() {
    let notes = Counted::offering("notes", &["add_note"]);
    let mail = Counted::offering("mail", &["send_mail"]);
    let following = Following::start(&file(&[notes.entry("notes")]));
    // Emptied and written, as editors do it.
    fs::write(&following.path, file(&[mail.entry("mail")])).unwrap();
    following.until_tools(&["send_mail"]);
    assert_eq!(
        following.configuration()["scenarios"],
        serde_json::json!({"added": 1, "removed": 1, "changed": 0})
    );
    assert_eq!(notes.asked(), 1);
}

#[test]
fn a_folder_of_links_is_followed() {
    let notes = Counted::offering("notes", &["add_note"]);
    let mail = Counted::offering("mail", &["send_mail"]);
    let home = Home::new();
    fs::create_dir_all(home.path("mounted/..1")).unwrap();
    home.write("mounted/..1/callsheet.toml", &file(&[notes.entry("notes")]));
    symlink("..1", home.path("mounted/..data")).unwrap();
    symlink("..data/callsheet.toml", home.path("mounted/callsheet.toml")).unwrap();
    let daemon = home.serve(&["--config", "mounted/callsheet.toml"]);
    let following = Following {
        path: home.path("mounted/callsheet.toml"),
        home,
        daemon,
    };
    following.until_tools(&["add_note"]);
    for (turn, entries, tools) in [
        (2, [mail.entry("mail")], ["send_mail"]),
        (3, [notes.entry("notes")], ["add_note"]),
    ] {
        let home = &following.home;
        fs::create_dir(home.path(&format!("mounted/..{turn}"))).unwrap();
        home.write(&format!("mounted/..{turn}/callsheet.toml"), &file(&entries));
        symlink(format!("..{turn}"), home.path("mounted/..data_tmp")).unwrap();
        fs::rename(home.path("mounted/..data_tmp"), home.path("mounted/..data")).unwrap();
        fs::remove_dir_all(home.path(&format!("mounted/..{}", turn - 1))).unwrap();
        following.until_tools(&tools);
    }
}

#[test]
fn a_burst_of_writes_is_one_reload() {
    let notes = Counted::offering("notes", &["add_note"]);
    let following = Following::start(&file(&[notes.entry("notes")]));
    // Stopped meanwhile, so that all of them come together however slow this machine is.
    following.daemon.signal("STOP");
    for seconds in 1..=50 {
        fs::write(
            &following.path,
            format!(
                "refresh.timeout = \"{seconds}s\"\n{}",
                file(&[notes.entry("notes")])
            ),
        )
        .unwrap();
    }
    following.daemon.signal("CONT");
    until("it is read", || {
        following.configuration()["changed"] == serde_json::json!(["refresh.timeout"])
    });
    assert_eq!(following.configuration()["reloads"], 1);
    // The first value that could be read was the last one: writing it again is no change.
    following.daemon.signal("HUP");
    let log = following.log();
    assert_eq!(
        log.matches("the configuration was reloaded").count(),
        1,
        "{log}"
    );
    assert_eq!(notes.asked(), 1);
}

#[test]
fn approval_by_tags_follows_the_file() {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    let entry = format!(
        "[[scenarios]]\nname = \"files\"\ncommand = \"python3\"\nargs = [{server:?}, \"modern\"]\n\
         env = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n"
    );
    let entries = file(&[entry]);
    let following = Following::start(&entries);
    following.until_tools(&["read", "write"]);
    let needing = || {
        let list = following.json("/api/v1/tools");
        list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|tool| tool["requires_approval"] == true)
            .count()
    };
    assert_eq!(needing(), 0);
    let required = format!("calls.require_approval = [\"risky\"]\n{entries}");
    replace(
        &following.path,
        &format!("calls.unannotated = [\"risky\"]\n{required}"),
    );
    until("both need approval", || needing() == 2);
    replace(&following.path, &required);
    until("none does", || needing() == 0);
}

#[test]
fn a_hangup_has_the_file_read_at_once() {
    let notes = Counted::offering("notes", &["add_note"]);
    let following = Following::start(&file(&[notes.entry("notes")]));
    fs::write(
        &following.path,
        format!(
            "naming.style = \"always\"\n{}",
            file(&[notes.entry("notes")])
        ),
    )
    .unwrap();
    following.daemon.signal("HUP");
    following.until_tools(&["notes__add_note"]);
    following.daemon.signal("HUP");
    fs::write(&following.path, file(&[notes.entry("notes")])).unwrap();
    following.until_tools(&["add_note"]);
    assert_eq!(notes.asked(), 1);
    assert_eq!(following.health("notes")["state"], "live");
}

#[test]
fn a_file_that_is_emptied_to_be_written_withdraws_nothing() {
    let notes = Counted::offering("notes", &["add_note"]);
    let following = Following::start(&file(&[notes.entry("notes")]));
    for turn in 1..=10 {
        // Read at once, at whatever moment that falls into.
        following.daemon.signal("HUP");
        fs::write(
            &following.path,
            format!(
                "refresh.timeout = \"{turn}s\"\n{}",
                file(&[notes.entry("notes")])
            ),
        )
        .unwrap();
        following.until_reloads(turn);
    }
    assert_eq!(notes.asked(), 1);
    assert_eq!(following.tools(), vec!["add_note".to_owned()]);
    // What stays empty is meant.
    fs::write(&following.path, "").unwrap();
    following.until_tools(&[]);
}

#[test]
fn a_file_that_comes_later_is_read() {
    let notes = Counted::offering("notes", &["add_note"]);
    let home = Home::new();
    let daemon = home.serve(&["--listen", "127.0.0.1:0"]);
    let following = Following {
        path: home.path(".config/callsheet/callsheet.toml"),
        home,
        daemon,
    };
    assert!(following.configuration()["file"].is_null());
    fs::create_dir_all(following.path.parent().unwrap()).unwrap();
    fs::write(&following.path, file(&[notes.entry("notes")])).unwrap();
    following.until_tools(&["add_note"]);
    assert_eq!(
        following.configuration()["file"],
        following.path.to_str().unwrap()
    );
    // What stands before it in the order of places takes over, as at a start.
    following.home.write("callsheet.toml", HEAD);
    following.until_tools(&[]);
    assert_eq!(
        following.configuration()["file"],
        following.home.path("callsheet.toml").to_str().unwrap()
    );
}

#[test]
fn a_scenario_that_moves_is_asked_where_it_is_now() {
    let old = Counted::offering("notes", &["add_note"]);
    let new = Counted::offering("notes", &["find_note"]);
    let following = Following::start(&file(&[old.entry("notes")]));
    replace(&following.path, &file(&[new.entry("notes")]));
    following.until_tools(&["find_note"]);
    assert_eq!(old.asked(), 1);
    assert_eq!(new.asked(), 1);
    assert_eq!(following.configuration()["scenarios"]["changed"], 1);
    // Called otherwise, it is another scenario at the same address, and the old name holds no names
    // of tools.
    replace(&following.path, &file(&[new.entry("memos")]));
    until("the old name is gone", || {
        following.daemon.get("/api/v1/scenarios/notes").0 == 404
    });
    following.until_tools(&["find_note"]);
    assert_eq!(following.health("memos")["state"], "live");
    // It comes back at the first good answer.
    replace(&following.path, &file(&[]));
    following.until_tools(&[]);
    replace(&following.path, &file(&[new.entry("memos")]));
    following.until_tools(&["find_note"]);
    assert!(following.findings("withdrawn").is_empty());
}
