//! `callsheet doctor`: what it finds, what it advises, and that it changes nothing.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use callsheet::provide::ToolDefinition;
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::support::command::{Home, Ran, Running, Scenario, json, nobody, office, run, until};
use crate::support::upstream_server::{UpstreamServer, answer};

/// A server that gives one answer to everything, until it is dropped.
pub(super) struct Canned {
    pub(super) url: String,
    _server: UpstreamServer,
    _runtime: Runtime,
}

impl Canned {
    pub(super) fn start(kind: &str, body: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let bytes = answer(
            "200 OK",
            &[&format!("Content-Type: {kind}")],
            body.as_bytes(),
        );
        let server = runtime.block_on(UpstreamServer::answering(move |_| bytes.clone()));
        Self {
            url: format!("http://{}", server.address()),
            _server: server,
            _runtime: runtime,
        }
    }
}

/// A manifest without tools, of this version of the protocol.
fn manifest(version: &str) -> String {
    format!(
        r#"{{"protocol_version":"{version}","scenario":{{"name":"s","version":"1.0.0"}},"tools":[]}}"#
    )
}

/// A port that nobody has a moment after this.
fn free_port() -> String {
    nobody().strip_prefix("http://").unwrap().to_owned()
}

/// A home whose daemon would listen at this address.
fn home_at(listen: &str, rest: &str) -> Home {
    let home = Home::new();
    home.write(
        "callsheet.toml",
        &format!("server.listen = \"{listen}\"\n{rest}"),
    );
    home
}

fn entry(name: &str, url: &str) -> String {
    format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\n")
}

/// What it says of one check: status, subject, message, hint.
fn found(report: &Value, check: &str) -> Vec<[String; 4]> {
    let text = |entry: &Value, member: &str| entry[member].as_str().unwrap_or_default().to_owned();
    let entries = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["check"] == check);
    entries
        .map(|entry| ["status", "subject", "message", "hint"].map(|member| text(entry, member)))
        .collect()
}

/// The only thing it says of a check.
#[track_caller]
fn only(report: &Value, check: &str) -> [String; 4] {
    let mut all = found(report, check);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn doctor(home: &Home, code: i32) -> Value {
    judged(&home.run(&["doctor", "--json"]), code)
}

#[track_caller]
fn judged(ran: &Ran, code: i32) -> Value {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_eq!(ran.err.as_str(), "", "{ran:?}");
    let report = json(&ran.out);
    let errors = report["checks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["status"] == "error")
        .count();
    assert_eq!(report["errors"], errors, "{report}");
    for entry in report["checks"].as_array().unwrap() {
        let well = entry["status"] == "ok";
        assert_eq!(
            entry["hint"].is_null(),
            well,
            "what is not well has an advice, and nothing else: {entry}"
        );
    }
    report
}

/// Every file below a folder with its time of change.
fn look(folder: &Path) -> Vec<(String, i64, i64)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let held = entry.metadata().unwrap();
            found.push((
                entry.path().display().to_string(),
                held.mtime(),
                held.mtime_nsec(),
            ));
            if held.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_healthy_daemon_is_well_and_ends_with_zero() {
    let (home, daemon, _scenarios) = office();
    let address = daemon.url.strip_prefix("http://").unwrap();
    let ran = run(home
        .command(&["doctor", "--json"])
        .env("CALLSHEET_SERVER__LISTEN", address));
    let report = judged(&ran, 0);
    let [status, subject, message, _] = only(&report, "port");
    assert_eq!(status.as_str(), "ok");
    assert_eq!(subject.as_str(), address);
    assert!(
        message.starts_with(&format!(
            "a callsheet daemon {} answers",
            env!("CARGO_PKG_VERSION")
        )),
        "{message}"
    );
    let [status, subject, message, _] = only(&report, "state");
    assert_eq!(status.as_str(), "ok");
    assert_eq!(
        subject,
        home.path(".state/callsheet/state.db").display().to_string()
    );
    assert!(
        message.contains("in use by the running daemon (process "),
        "{message}"
    );
    assert_eq!(only(&report, "mdns")[2], "switched off");
    let [status, subject, message, _] = only(&report, "configuration");
    assert_eq!(status.as_str(), "ok");
    assert_eq!(subject, home.path("callsheet.toml").display().to_string());
    assert_eq!(
        message,
        "4 values from the file, 2 values from the environment, all else by default"
    );
    let scenarios = found(&report, "scenarios");
    let names: Vec<&str> = scenarios.iter().map(|entry| entry[1].as_str()).collect();
    assert_eq!(names, ["mail", "notes"]);
    assert!(report["errors"] == 0, "{report}");
}

#[test]
fn people_get_what_is_well_in_a_line_and_each_problem_in_a_paragraph() {
    let home = home_at(&free_port(), &entry("gone", &nobody()));
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.err.as_str(), "");
    assert!(
        ran.out.starts_with(&format!(
            "ok[configuration] {}: ",
            home.path("callsheet.toml").display()
        )),
        "{}",
        ran.out
    );
    let problem = ran
        .out
        .split("\n\n")
        .find(|part| part.starts_with("error[scenarios] gone\n  connection refused by "));
    let problem = problem.unwrap_or_else(|| panic!("{}", ran.out));
    assert!(
        problem.ends_with("\n  hint: start it, or fix its `url` in the configuration"),
        "{problem}"
    );
    assert_eq!(ran.out.lines().last(), Some("1 error"));
    let narrow = run(home.command(&["doctor"]).env("COLUMNS", "80"));
    // How much is free changes from one moment to the next.
    let free = regex::Regex::new("[0-9.]+ [kMGT]?B free").unwrap();
    let words = |text: &str| {
        free.replace(
            &text.split_whitespace().collect::<Vec<_>>().join(" "),
            "free",
        )
        .into_owned()
    };
    assert_eq!(words(&narrow.out), words(&ran.out), "names stay whole");
    let long = |line: &&str| line.chars().count() > 80 && line.trim_start().split(' ').count() > 2;
    assert_eq!(narrow.out.lines().find(long), None, "{}", narrow.out);
}

#[test]
fn a_home_without_anything_is_told_how_to_begin() {
    let home = Home::new();
    let before = look(&home.path(""));
    let ran = run(home
        .command(&["doctor", "--json"])
        .env("CALLSHEET_SERVER__LISTEN", free_port()));
    let report = judged(&ran, 0);
    assert_eq!(only(&report, "configuration")[1], "no file");
    assert_eq!(only(&report, "port")[2], "free; no daemon runs there");
    assert!(
        only(&report, "state")[2].starts_with("created at the first start, "),
        "{report}"
    );
    let [status, _, message, hint] = only(&report, "scenarios");
    assert_eq!(status.as_str(), "warning");
    assert_eq!(message.as_str(), "there are no scenarios");
    assert!(hint.contains("`callsheet init`"), "{hint}");
    assert_eq!(look(&home.path("")), before, "it changed something");
}

#[test]
fn a_port_that_a_stranger_has_is_an_error_that_names_him() {
    // Takes connections, and says nothing that a daemon would say.
    let stranger = Canned::start("text/plain", "hello");
    let listen = stranger.url.strip_prefix("http://").unwrap().to_owned();
    let home = home_at(&listen, "");
    let report = doctor(&home, 1);
    let [status, subject, message, hint] = only(&report, "port");
    assert_eq!(status.as_str(), "error");
    assert_eq!(subject, listen);
    assert!(message.contains("is not a callsheet daemon"), "{message}");
    assert!(
        message.contains(&format!("process {})", std::process::id())),
        "{message}"
    );
    assert_eq!(hint, "stop it, or set `server.listen` to another address");
    // One that never says a word is not waited for long.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let report = doctor(&home_at(&silent.local_addr().unwrap().to_string(), ""), 1);
    assert!(
        only(&report, "port")[2].contains("did not answer"),
        "{report}"
    );
}

#[test]
fn an_address_that_this_machine_does_not_have_is_an_error() {
    let report = doctor(&home_at("192.0.2.1:7400", ""), 1);
    let [status, _, message, hint] = only(&report, "port");
    assert_eq!(status, "error");
    assert!(
        message.starts_with("cannot be listened on: ") && hint.contains("no such address"),
        "{message} {hint}"
    );
}

#[test]
fn a_state_that_cannot_be_written_is_an_error() {
    let home = home_at(&free_port(), "state.path = \"kept/state.db\"\n");
    // A file where the folder should be.
    let file = home.write("kept", "");
    let [status, _, message, hint] = only(&doctor(&home, 1), "state");
    assert_eq!(status.as_str(), "error");
    assert_eq!(message, format!("`{}` is not a folder", file.display()));
    assert!(hint.contains("`state.path`"), "{hint}");
    fs::remove_file(&file).unwrap();
    // A folder where the file should be.
    fs::create_dir_all(home.path("kept/state.db")).unwrap();
    assert_eq!(
        only(&doctor(&home, 1), "state")[2],
        "a folder is in its place"
    );
    fs::remove_dir(home.path("kept/state.db")).unwrap();
    // A folder that this user may not write to. The superuser may write everywhere, so he looks as
    // somebody else.
    for (path, mode) in [("", 0o755), ("callsheet.toml", 0o644), ("kept", 0o555)] {
        fs::set_permissions(home.path(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let [status, _, message, hint] = only(&judged(&run(&mut as_somebody(&home)), 1), "state");
    assert_eq!(status, "error");
    assert!(
        message.starts_with(&format!("`{}` cannot be written to: ", file.display())),
        "{message}"
    );
    assert!(hint.starts_with("make it writable for this user"), "{hint}");
    assert_eq!(look(&home.path("kept")), [], "it made something");
}

/// What `serve` would move aside is not called well before.
#[test]
fn a_damaged_state_is_an_error_and_the_start_says_what_became_of_it() {
    let home = home_at(&free_port(), "");
    let mut daemon = home.serve(&[]);
    daemon.signal("TERM");
    daemon.ended();
    let state = home.path(".state/callsheet/state.db");
    let sound = fs::read(&state).unwrap();
    let mut damaged = sound.clone();
    damaged[100..120].fill(b'x');
    fs::write(&state, &damaged).unwrap();
    let before = look(&home.path(".state/callsheet"));
    let [status, _, message, hint] = only(&doctor(&home, 1), "state");
    assert_eq!(status, "error");
    assert!(message.starts_with("it is damaged: "), "{message}");
    assert!(hint.contains("`callsheet state import FILE`"), "{hint}");
    assert_eq!(
        look(&home.path(".state/callsheet")),
        before,
        "it changed something"
    );
    let mut daemon = home.serve(&[]);
    daemon.signal("TERM");
    let (_, log) = daemon.ended();
    assert!(
        log.contains("was damaged") && log.contains(".damaged-"),
        "{log}"
    );
    fs::write(&state, &sound).unwrap();
    assert_eq!(only(&doctor(&home, 0), "state")[0], "ok");
}

/// The command as a user without privileges.
fn as_somebody(home: &Home) -> Command {
    let command = home.command(&["doctor", "--json"]);
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return command;
    }
    // Where it is built, others may have no way to it.
    let binary = home.path("callsheet");
    fs::copy(command.get_program(), &binary).unwrap();
    let mut somebody = Command::new(binary);
    somebody
        .args(command.get_args())
        .env_clear()
        .current_dir(home.path(""))
        .uid(65_534)
        .gid(65_534);
    for (name, value) in command.get_envs() {
        somebody.env(name, value.unwrap());
    }
    somebody
}

#[test]
fn a_daemon_at_a_free_port_is_found_where_it_says_that_it_is() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let home = Home::naming(&[("notes", &notes.url)]);
    let [status, _, message, _] = only(&doctor(&home, 0), "port");
    assert_eq!(status, "ok");
    assert!(
        message.ends_with("no daemon of this configuration runs"),
        "{message}"
    );
    let daemon = home.serve(&[]);
    crate::support::command::until("the tool", || home.run(&["tools"]).out.contains("add_note"));
    let report = doctor(&home, 0);
    let [status, subject, message, _] = only(&report, "port");
    assert_eq!(status, "ok");
    assert_eq!(subject.trim_end_matches('/'), daemon.url);
    assert!(
        message.starts_with("a callsheet daemon ") && message.ends_with("took when it started"),
        "{message}"
    );
    assert_eq!(
        only(&report, "scenarios")[..3],
        ["ok", "notes", "live, 1 tool"],
        "as the daemon has it"
    );
}

#[test]
fn a_daemon_that_was_started_for_another_address_is_found_as_by_every_command() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let listen = free_port();
    let home = home_at(&listen, &entry("notes", &notes.url));
    let daemon = home.serve(&["--listen", "127.0.0.1:0"]);
    until("the tool", || home.run(&["tools"]).out.contains("add_note"));
    let report = doctor(&home, 0);
    let [status, subject, message, _] = only(&report, "port");
    assert_eq!(
        [status.as_str(), subject.trim_end_matches('/')],
        ["ok", &daemon.url]
    );
    assert!(
        message.ends_with(&format!(
            "it was started for this address, not for {listen}"
        )),
        "{message}"
    );
    let [status, _, message, _] = only(&report, "state");
    assert!(
        status == "ok" && message.contains("in use by the running daemon"),
        "{status}: {message}"
    );
    assert_eq!(
        only(&report, "scenarios")[..3],
        ["ok", "notes", "live, 1 tool"],
        "as the daemon has it"
    );
    home.write(
        "callsheet.toml",
        &format!("server.listen = \"{listen}\"\nhealt.grace = \"1s\"\n"),
    );
    let report = judged(&home.run(&["doctor", "--json"]), 4);
    assert_eq!(
        only(&report, "port")[0],
        "ok",
        "also with a mistake in the configuration: {report}"
    );
}

#[test]
fn a_state_that_another_daemon_has_is_an_error_that_names_it() {
    let home = Home::with("");
    let _daemon = home.serve(&["--listen", "127.0.0.1:0"]);
    // Nobody can tell where it listens.
    for file in ["daemon.json", "state.db.daemon.json", "state.db.sock"] {
        until("the file", || {
            fs::remove_file(home.path(".state/callsheet").join(file)).is_ok()
        });
    }
    let ran = run(home
        .command(&["doctor", "--json"])
        .env("CALLSHEET_SERVER__LISTEN", free_port()));
    let [status, _, message, hint] = only(&judged(&ran, 1), "state");
    assert_eq!(status, "error");
    assert!(
        message.starts_with("a daemon (process ")
            && message.ends_with("none of this configuration answers"),
        "{message}"
    );
    assert!(hint.contains("`--url`"), "{hint}");
}

#[test]
fn a_broken_configuration_is_told_with_file_and_line_and_code_four() {
    let home = Home::new();
    let file = home.write(
        "callsheet.toml",
        "[server]\nlistn = \"x\"\n\n[refresh]\ntimeout = \"soon\"\n",
    );
    let ran = run(home
        .command(&["doctor", "--json"])
        .env("CALLSHEET_HEALTH__GRACE", "never"));
    let report = judged(&ran, 4);
    let problems = found(&report, "configuration");
    let at = |line: &str| format!("{}:{line}", file.display());
    let places: Vec<&str> = problems.iter().map(|problem| problem[1].as_str()).collect();
    assert_eq!(
        places,
        [
            at("2:1").as_str(),
            &at("5:11"),
            "environment CALLSHEET_HEALTH__GRACE"
        ]
    );
    assert_eq!(
        problems[0][2..],
        ["server.listn: unknown key", "did you mean `listen`?"]
    );
    for check in ["port", "state", "mdns", "scenarios"] {
        assert_eq!(only(&report, check)[0], "skipped");
    }
    let ran = home.run(&["doctor"]);
    assert_eq!(ran.code, Some(4));
    assert_eq!(ran.err.as_str(), "");
    assert_eq!(ran.out.lines().last(), Some("2 errors"));
}

/// The daemon runs on with the configuration that it read, and so do its clients.
#[test]
fn a_mistake_in_the_configuration_stops_neither_the_doctor_nor_the_clients_of_a_running_daemon() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let listen = free_port();
    let home = home_at(&listen, &entry("notes", &notes.url));
    let daemon = home.serve(&[]);
    crate::support::command::until("the tool", || home.run(&["tools"]).out.contains("add_note"));
    let broken = format!(
        "server.listen = \"{listen}\"\nhealt.grace = \"1s\"\n{}",
        entry("notes", &notes.url)
    );
    home.write("callsheet.toml", &broken);

    for args in [
        &["tools"][..],
        &["scenarios"],
        &["explain", "add_note"],
        &["prefs", "list"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert!(
            ran.err.contains("the configuration cannot be used") && ran.err.contains("healt"),
            "{ran:?}"
        );
    }
    let report = doctor(&home, 4);
    // The daemon may have seen the mistake, too, and say so.
    assert!(
        found(&report, "configuration")
            .iter()
            .all(|problem| problem[0] == "error" && problem[2].contains("healt"))
    );
    let port = only(&report, "port");
    assert!(
        port[0] == "ok" && port[2].contains("runs with the configuration that it read before"),
        "{port:?}"
    );
    assert_eq!(
        only(&report, "scenarios")[..3],
        ["ok", "notes", "live, 1 tool"]
    );

    crate::support::command::until("a banner", || {
        let pages = [
            "/dashboard/tools",
            "/dashboard/preferences",
            "/dashboard/findings",
        ];
        pages.iter().all(|page| {
            String::from_utf8(daemon.get(page).1)
                .unwrap()
                .contains("id=\"config-refused\"")
        })
    });
}

#[test]
fn the_doctor_gives_the_reason_that_holds() {
    let broken = Canned::start("text/html", "<html>no list</html>");
    let twins = ["one", "two"].map(|name| {
        Scenario::start(
            name,
            vec![ToolDefinition::new("same_name", "Does the same").unwrap()],
        )
    });
    let home = Home::naming(&[
        ("gone", &nobody()),
        ("page", &broken.url),
        ("one", &twins[0].url),
        ("two", &twins[1].url),
    ]);
    let daemon = home.serve(&[]);
    let report = judged(&home.run(&["doctor", "--json", "--url", &daemon.url]), 1);
    let all = found(&report, "scenarios");
    let of = |name: &str| all.iter().find(|entry| entry[1] == name).unwrap();
    assert!(
        of("gone")[3].starts_with("start it, or fix its address"),
        "{all:?}"
    );
    assert!(
        of("page")[3].starts_with("`callsheet check "),
        "what answers need not be started: {all:?}"
    );
    for name in ["one", "two"] {
        assert_eq!(
            of(name)[..3],
            ["ok", name, "live, 1 tool"],
            "a name that two have is no fault of a manifest"
        );
    }
}

#[test]
fn profiles_that_clients_may_leave_out_are_a_warning() {
    let bounds = "[[profiles]]\nname = \"narrow\"\nscenarios = []\n";
    let warnings = |rest: &str| {
        let report = doctor(&home_at(&free_port(), rest), 0);
        found(&report, "configuration")
            .into_iter()
            .filter(|entry| entry[0] == "warning")
            .collect::<Vec<_>>()
    };
    let rows = warnings(bounds);
    assert!(
        rows.len() == 1 && rows[0][3].contains("permissions.default_profile"),
        "{rows:?}"
    );
    assert!(
        warnings(&format!(
            "{bounds}[permissions]\ndefault_profile = \"narrow\"\n"
        ))
        .is_empty()
    );
}

#[test]
fn scenarios_are_asked_directly_when_no_daemon_runs() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let future = Canned::start("application/json", &manifest("7.0"));
    let page = Canned::start("text/html", "<html>no list</html>");
    let scenarios = [
        entry("notes", &notes.url),
        entry("gone", &nobody()),
        entry("future", &future.url),
        entry("page", &page.url),
        entry("server", &format!("{}/mcp", nobody())),
    ];
    let report = doctor(&home_at(&free_port(), &scenarios.concat()), 1);
    let all = found(&report, "scenarios");
    let of = |name: &str| all.iter().find(|entry| entry[1] == name).unwrap();
    assert_eq!(of("notes")[..3], ["ok", "notes", "live, 1 tool"]);
    assert!(
        of("gone")[0] == "error" && of("gone")[2].contains("refused"),
        "{all:?}"
    );
    assert!(
        of("future")[0] == "error"
            && of("future")[2].starts_with("incompatible: ")
            && of("future")[2].contains("7.0"),
        "{all:?}"
    );
    let server = of("server");
    assert!(
        server[0] == "error" && server[2].contains("refused"),
        "{all:?}"
    );
    assert!(
        !server.concat().contains("/api/v1/tools"),
        "its address is that of an MCP server: {all:?}"
    );
    assert!(of("future")[3].contains("`protocol.accept`"), "{all:?}");
    assert!(
        of("page")[0] == "error"
            && of("page")[2].starts_with("its answer is not a list of tools: "),
        "{all:?}"
    );
    assert_eq!(of("others")[0], "skipped");
}

#[test]
fn a_running_daemon_tells_of_its_scenarios() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let future = Canned::start("application/json", &manifest("7.0"));
    let home = Home::naming(&[
        ("notes", &notes.url),
        ("gone", &nobody()),
        ("future", &future.url),
    ]);
    let daemon = home.serve(&[]);
    // Not the file that the daemon runs with.
    let other = home.write("other.toml", &entry("late", &nobody()));
    let arguments = [
        "doctor",
        "--json",
        "--url",
        &daemon.url,
        "--config",
        other.to_str().unwrap(),
    ];
    let report = judged(
        &run(home
            .command(&arguments)
            .env("CALLSHEET_SERVER__LISTEN", free_port())),
        1,
    );
    assert_eq!(only(&report, "daemon")[0], "ok");
    let all = found(&report, "scenarios");
    let of = |name: &str| all.iter().find(|entry| entry[1] == name).unwrap();
    assert_eq!(of("notes")[..3], ["ok", "notes", "live, 1 tool"]);
    assert_eq!(of("gone")[0].as_str(), "error", "{all:?}");
    assert_eq!(of("future")[0].as_str(), "error", "{all:?}");
    assert!(
        of("gone")[2].starts_with("connecting: ")
            && of("gone")[3].starts_with("start it, or fix its address"),
        "{all:?}"
    );
    assert!(
        of("future")[2].starts_with("incompatible: ")
            && of("future")[3].contains("`protocol.accept`"),
        "{all:?}"
    );
    assert!(
        of("late")[0] == "warning" && of("late")[2].contains("does not know it"),
        "{all:?}"
    );
}

#[test]
fn programs_that_do_not_work_are_named_with_the_reason_and_what_they_wrote() {
    let faults = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_faults.py");
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"missing\"\ncommand = \"no-such-command\"\n\
         [[scenarios]]\nname = \"gone\"\ncommand = \"python3\"\nargs = [{faults:?}, \"gone\"]\n\
         env = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n\
         [[scenarios]]\nname = \"closed\"\nprotocol = \"mcp\"\nurl = \"{}/mcp\"\n",
        nobody()
    ));
    let daemon = home.serve(&[]);
    let look = || {
        found(
            &json(&home.run(&["doctor", "--json", "--url", &daemon.url]).out),
            "scenarios",
        )
    };
    let mut all = look();
    until("all were tried", || {
        all = look();
        all.iter().filter(|entry| entry[0] == "error").count() == 3
    });
    let of = |name: &str| all.iter().find(|entry| entry[1] == name).unwrap();
    assert!(
        of("missing")[2].contains("`no-such-command` was not found"),
        "{all:?}"
    );
    assert!(of("missing")[3].contains("whole path"), "{all:?}");
    assert!(
        of("gone")[2].contains("exit code 1") && of("gone")[2].contains("the key of the service"),
        "{all:?}"
    );
    assert!(
        of("gone")[3].contains("callsheet scenarios gone"),
        "{all:?}"
    );
    assert!(
        of("closed")[3].starts_with("start it, or fix its address"),
        "{all:?}"
    );
    // The lines that it wrote stay readable.
    let shown = home.run(&["scenarios", "gone", "--url", &daemon.url]).ok();
    assert!(shown.contains("last lines on standard error"), "{shown}");
}

/// Its address is the configured one, and its state another one: it has a socket elsewhere.
#[test]
fn a_demo_at_the_configured_address_does_not_lack_a_socket() {
    let address = free_port();
    let home = home_at(&address, "");
    let demo = Running::start(
        home.command(&["demo", "--listen", &address]),
        "callsheet listens on ",
    );
    demo.line(|line| line.starts_with("following changes until Ctrl-C"));
    let [status, _, message, _] = only(&doctor(&home, 0), "socket");
    assert_eq!(status, "ok");
    assert_eq!(
        message,
        format!("not used: the daemon at http://{address} has another state")
    );
}

#[test]
fn who_may_say_yes_is_told_where_a_tool_asks_for_it() {
    let careful = ToolDefinition::new("wipe", "Wipes a disk")
        .unwrap()
        .requires_approval(true);
    let disks = Scenario::start("disks", vec![careful]);
    let notes = Scenario::start("notes", vec![ToolDefinition::new("add", "Adds").unwrap()]);
    let look = |scenario: &Scenario, rest: &str| {
        let home = Home::with(&format!("{rest}\n{}", entry("only", &scenario.url)));
        let daemon = home.serve(&[]);
        let mut doctor = home.command(&["doctor", "--json"]);
        let address = daemon.url.strip_prefix("http://").unwrap();
        found(
            &judged(&run(doctor.env("CALLSHEET_SERVER__LISTEN", address)), 0),
            "approvals",
        )
    };
    let open = look(&disks, "");
    assert_eq!(open[0][0], "warning");
    assert!(
        open[0][2].starts_with("1 tool needs approval, but any caller"),
        "{open:?}"
    );
    assert!(open[0][3].contains("`server.operator_token`"), "{open:?}");
    for key in ["server.operator_token", "calls.approval_token"] {
        let closed = look(&disks, &format!("{key} = \"0123456789abcdef\""));
        assert_eq!(closed.len(), 1, "{key}");
        assert_eq!(closed[0][0].as_str(), "ok", "{key}");
    }
    assert!(look(&notes, "").is_empty(), "no tool needs approval");
}

#[test]
fn a_daemon_that_is_named_and_does_not_answer_is_an_error() {
    let home = home_at(&free_port(), "");
    let report = judged(&home.run(&["doctor", "--json", "--url", &nobody()]), 1);
    let [status, _, message, hint] = only(&report, "daemon");
    assert_eq!(status, "error");
    assert!(
        message.starts_with("no daemon answers at ") && hint.contains("callsheet serve"),
        "{message}"
    );
}

#[test]
fn the_network_is_looked_at_on_the_chosen_interfaces_only() {
    // A port of its own on the loopback interface: nothing of this reaches a network.
    let home = home_at(&free_port(), "");
    let at = |interfaces: &str| {
        let mut command = home.command(&["doctor", "--json"]);
        command
            .env("CALLSHEET_DISCOVERY__MDNS__ENABLED", "true")
            .env("CALLSHEET_DISCOVERY__MDNS__PORT", "45353");
        run(command.env("CALLSHEET_DISCOVERY__MDNS__INTERFACES", interfaces))
    };
    let [status, subject, message, _] = only(&judged(&at("[loopback]"), 0), "mdns");
    assert_eq!(status.as_str(), "ok");
    assert_eq!(subject.as_str(), "UDP port 45353");
    assert_eq!(message, "listening works on loopback");
    let [status, _, message, hint] = only(&judged(&at("[loopback, nosuch0]"), 0), "mdns");
    assert_eq!(status, "warning");
    assert!(
        message.contains("nosuch0: there is no such interface"),
        "{message}"
    );
    assert!(hint.contains("`discovery.mdns.interfaces`"), "{hint}");
    assert_eq!(only(&judged(&at("[nosuch0]"), 1), "mdns")[0], "error");
}

/// A service has variables that the shell of its operator lacks.
#[test]
fn what_only_this_shell_lacks_is_no_error_for_commands_of_a_running_daemon() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let listen = free_port();
    let secrets =
        "[bundles.secrets.key]\nvalue = { env = \"NOTES_KEY\" }\nhosts = [\"127.0.0.1\"]\n";
    let auth = "auth = { env = \"NOTES_TOKEN\" }\n";
    let home = home_at(
        &listen,
        &format!("{}{auth}{secrets}", entry("notes", &notes.url)),
    );
    let mut serve = home.command(&["serve"]);
    serve
        .env("NOTES_KEY", "a-key-of-the-service")
        .env("NOTES_TOKEN", "a-token-of-the-service");
    let _daemon = Running::start(serve, "callsheet listens on ");
    until("the tool", || home.run(&["tools"]).out.contains("add_note"));

    for args in [
        &["tools"][..],
        &["scenarios"],
        &["explain", "add_note"],
        &["prefs", "list"],
    ] {
        let ran = home.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        assert_eq!(ran.err.as_str(), "", "{args:?}: {ran:?}");
    }
    let report = doctor(&home, 0);
    let checks = found(&report, "configuration");
    assert!(
        checks
            .iter()
            .all(|check| matches!(check[0].as_str(), "ok" | "skipped")),
        "{checks:?}"
    );
    assert_eq!(
        only(&report, "scenarios")[..3],
        ["ok", "notes", "live, 1 tool"]
    );

    // What the daemon itself refuses is shown in its words, although this shell could not judge it.
    let worse = "[bundles.secrets.other]\nvalue = { env = \"ABSENT_EVERYWHERE\" }\nhosts = [\"127.0.0.1\"]\n";
    home.write(
        "callsheet.toml",
        &format!(
            "server.listen = \"{listen}\"\n{}{auth}{secrets}{worse}",
            entry("notes", &notes.url)
        ),
    );
    until("the daemon's own judgement", || {
        let ran = home.run(&["tools"]);
        ran.code == Some(0)
            && ran.err.contains("earlier one")
            && ran.err.contains("ABSENT_EVERYWHERE")
    });
}

/// They may be files that could not be written; the lock of the state says that a daemon has it.
#[test]
fn a_daemon_whose_records_are_gone_still_has_its_state() {
    let address = free_port();
    let home = home_at(&address, "");
    let daemon = Running::start(home.command(&["serve"]), "callsheet listens on ");
    for file in ["state.db.sock", "state.db.daemon.json", "daemon.json"] {
        until("the file", || {
            fs::remove_file(home.path(".state/callsheet").join(file)).is_ok()
        });
    }
    let [status, _, message, _] = only(&doctor(&home, 0), "socket");
    assert_eq!(status, "warning", "{message}");
    assert!(
        message.starts_with("the running daemon does not listen there"),
        "{message}"
    );
    drop(daemon);
}
