//! Programs that sleep while no client needs them, as an operator sees them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::command::{Home, Running, json, until};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");

/// A configuration with one program that sleeps soon and has this variable.
fn config(variable: &str) -> String {
    config_with("mcp.sleep_after = \"100ms\"\n", variable)
}

/// The same with these keys in place of the one that has it sleep.
fn config_with(keys: &str, variable: &str) -> String {
    format!(
        "server.listen = \"127.0.0.1:0\"\n{keys}[[scenarios]]\nname = \"child\"\n\
         command = \"./server.sh\"\ncwd = \".\"\nenv = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\", KEY = \"{variable}\" }}\n"
    )
}

/// A home with a program that notes each of its starts.
fn home() -> Home {
    let home = Home::new();
    home.write("callsheet.toml", &config("one"));
    let script = format!("#!/bin/sh\necho $$ >> starts\nexec python3 {SERVER} legacy\n");
    let path = home.write("server.sh", &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    home
}

fn starts(home: &Home) -> usize {
    let text = fs::read_to_string(home.path("starts")).unwrap_or_default();
    text.lines().count()
}

fn until_asleep(daemon: &Running) {
    until("it sleeps", || {
        let (_, body) = daemon.get("/api/v1/scenarios?state=asleep");
        String::from_utf8_lossy(&body).contains("\"child\"")
    });
}

#[test]
fn a_program_that_sleeps_is_not_started_with_the_daemon_unless_its_entry_changed() {
    let home = home();
    let mut daemon = home.serve(&[]);
    until_asleep(&daemon);
    assert_eq!(starts(&home), 1);
    let shown = json(&home.run(&["scenarios", "child", "--json"]).ok());
    let reason = shown["reason"].as_str().unwrap();
    assert!(reason.starts_with("asleep since "), "{reason}");
    assert!(shown["program"].is_null(), "{shown}");
    let metrics = String::from_utf8(daemon.get("/metrics").1).unwrap();
    assert!(
        metrics.contains("callsheet_scenario_up{scenario=\"child\"} 1"),
        "{metrics}"
    );
    home.run(&["call", "read"]).ok();
    assert_eq!(starts(&home), 2);
    until_asleep(&daemon);

    daemon.signal("KILL");
    daemon.ended();
    let mut daemon = home.serve(&[]);
    until_asleep(&daemon);
    assert_eq!(starts(&home), 2);
    let listed = String::from_utf8(daemon.get("/api/v1/tools").1).unwrap();
    assert!(listed.contains("\"write\""), "{listed}");

    daemon.signal("TERM");
    daemon.ended();
    home.write("callsheet.toml", &config("another"));
    let daemon = home.serve(&[]);
    until("its changed entry was started", || starts(&home) == 3);
    until_asleep(&daemon);
    home.run(&["call", "read"]).ok();
    assert_eq!(starts(&home), 4);
}

/// What a program costs is known on Linux only.
#[cfg(target_os = "linux")]
#[test]
fn the_page_advises_to_set_no_key_that_is_set() {
    let home = home();
    let advice = "<code>mcp.sleep_after</code>";
    let later = "sleep_after = \"1h\"\n";
    let of_all = config_with(&format!("mcp.{later}"), "one");
    let of_one = config_with("", "one") + later;
    for (written, is_advised) in [
        (config_with("", "one"), true),
        (of_all, false),
        (of_one, false),
    ] {
        home.write("callsheet.toml", &written);
        let daemon = home.serve(&[]);
        let mut page = String::new();
        until("its cost is shown", || {
            page = String::from_utf8(daemon.get("/dashboard/overview").1).unwrap();
            page.contains("started by callsheet")
        });
        assert_eq!(page.contains(advice), is_advised, "{written}: {page}");
        let listed = home.run(&["scenarios", "--wide"]).ok();
        assert!(
            listed.contains("where `mcp.sleep_after` is set"),
            "{listed}"
        );
    }
}
