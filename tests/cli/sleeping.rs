//! Programs that sleep while no client needs them, as an operator sees them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use serde_json::json as object;

use crate::support::command::{Home, Running, is_installed, json, until};

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

/// A server in the words of MCP clients, with this time after which it sleeps.
fn of_client(home: &Home, sleep_after: &str) -> serde_json::Value {
    object!({"command": home.path("server.sh"), "cwd": home.path(""), "sleep_after": sleep_after,
        "env": {"PATH": "/usr/local/bin:/usr/bin:/bin"}})
}

#[test]
fn an_entry_in_the_words_of_clients_says_when_its_program_sleeps() {
    let home = home();
    let keys = "server.listen = \"127.0.0.1:0\"\n";
    let entry = |after: &str| {
        let entry = toml::to_string(&object!({"mcpServers": {"child": of_client(&home, after)}}));
        format!("{keys}{}", entry.unwrap())
    };
    home.write("callsheet.toml", &entry("100ms"));
    let daemon = home.serve(&[]);
    until_asleep(&daemon);
    assert_eq!(starts(&home), 1);
    // One that may not sleep any more is started.
    home.write("callsheet.toml", &entry("never"));
    until("it runs", || {
        let (_, body) = daemon.get("/api/v1/scenarios?state=live");
        starts(&home) == 2 && String::from_utf8_lossy(&body).contains("\"child\"")
    });
}

#[test]
fn an_entry_of_a_file_of_clients_says_so_too_and_an_import_keeps_it() {
    let home = home();
    let keys = "server.listen = \"127.0.0.1:0\"\nmcp.files = [\"clients.json\"]\n";
    home.write("callsheet.toml", keys);
    let entries = object!({"mcpServers": {"child": of_client(&home, "100ms")}}).to_string();
    home.write("clients.json", &entries);
    let daemon = home.serve(&[]);
    until("the entry waits", || {
        let (_, body) = daemon.get("/api/v1/scenarios?state=pending");
        String::from_utf8_lossy(&body).contains("\"child\"")
    });
    home.run(&["trust", "child", "--url", &daemon.url]).ok();
    until_asleep(&daemon);
    home.run(&["import", "clients.json", "--write"]).ok();
    let written = fs::read_to_string(home.path("callsheet.toml")).unwrap();
    assert!(written.contains("sleep_after = \"100ms\""), "{written}");
    until("the entry of the configuration counts", || {
        let (_, body) = daemon.get("/api/v1/scenarios/child");
        json(&String::from_utf8(body).unwrap())["source"] == "static"
    });
    until_asleep(&daemon);
}

/// How often the daemon is killed while a program wakes or falls asleep; `CALLSHEET_KILLS` sets
/// another number.
const KILLS: usize = 4;

#[test]
fn a_daemon_that_is_killed_leaves_no_program_and_starts_no_second_one() {
    if !is_installed("flock") {
        return;
    }
    let kills = std::env::var("CALLSHEET_KILLS").map_or(KILLS, |text| text.parse().unwrap());
    let home = home();
    // The lock ends with the process that holds it.
    let script = format!(
        "#!/bin/sh\necho $$ >> starts\nexec 9> lock\nflock -n 9 || echo $$ >> doubles\nexec python3 {SERVER} legacy\n"
    );
    home.write("server.sh", &script);
    for round in 0..kills {
        let mut daemon = home.serve(&[]);
        let mut call = home.command(&["call", "read", "--url", &daemon.url]);
        let mut call = call
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Somewhere between the start of the call and the sleep after it.
        for _ in 0..(round * 7) % 40 {
            daemon.get("/healthz");
        }
        daemon.signal("KILL");
        daemon.ended();
        call.wait().unwrap();
    }
    until("no program is left", || {
        let started = fs::read_to_string(home.path("starts")).unwrap_or_default();
        started.lines().all(|id| !is_alive(id))
    });
    let doubles = fs::read_to_string(home.path("doubles")).unwrap_or_default();
    assert_eq!(doubles, "", "of {} programs", starts(&home));
    assert!(starts(&home) > 0);
}

/// Whether a process runs.
fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with('Z'))
}

/// What a program costs is known on Linux only.
#[cfg(target_os = "linux")]
#[test]
fn servers_that_keep_no_session_are_named_where_sleep_is_advised() {
    let home = home();
    home.write(
        "server.sh",
        &format!("#!/bin/sh\nexec python3 {SERVER} modern\n"),
    );
    home.write("callsheet.toml", &config_with("", "one"));
    let daemon = home.serve(&[]);
    let mut page = String::new();
    until("its cost is shown", || {
        page = String::from_utf8(daemon.get("/dashboard/overview").1).unwrap();
        page.contains("started by callsheet")
    });
    assert!(
        page.contains("Servers without sessions lose none by it: child."),
        "{page}"
    );
    let listed = home.run(&["scenarios", "--wide"]).ok();
    assert!(
        listed.contains("servers without sessions lose none by it: `child`"),
        "{listed}"
    );
}
