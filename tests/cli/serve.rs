//! `callsheet serve`: how the daemon starts, what keeps it from starting, and how it stops.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;

use crate::support::command::{self, Home, Running, Scenario, json, tool, until};

#[test]
fn serves_until_sigterm_and_ends_with_zero() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::naming(&[("notes", &notes.url)]);
    let state = home.path("elsewhere/state.db");
    let mut daemon = home.serve(&["--state", state.to_str().unwrap()]);
    assert!(
        daemon.url.starts_with("http://127.0.0.1:") && !daemon.url.ends_with(":0"),
        "{}",
        daemon.url
    );
    assert!(state.exists());
    let (status, body) = daemon.get("/api/v1/tools");
    assert_eq!(status, 200);
    assert_eq!(
        json(&String::from_utf8(body).unwrap())["tools"][0]["name"],
        "add_note"
    );

    let address = daemon.url.strip_prefix("http://").unwrap().to_owned();
    // A connection without a request under way is nothing to wait for.
    let mut idle = TcpStream::connect(&address).unwrap();
    write!(idle, "GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    assert!(idle.read(&mut [0; 1_000]).unwrap() > 0);
    daemon.signal("TERM");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(TcpStream::connect(&address).is_err());
    // What is logged goes to standard error, and a file of it holds no colours.
    for part in [
        "started configuration=",
        "stop requested signal=\"SIGTERM\"",
        "stopped",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains('\u{1b}'), "{log}");
}

/// As many idle connections as the system allows open files kept every other client out.
#[test]
fn where_few_files_may_be_open_the_connection_that_rests_longest_gives_way_too() {
    let home = Home::new();
    let serve = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let envs = serve
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    let mut limited = Command::new("/bin/sh");
    limited
        .env_clear()
        .envs(envs)
        .current_dir(home.path(""))
        .args(["-c", "ulimit -n 200 && exec \"$0\" \"$@\""])
        .arg(serve.get_program())
        .args(serve.get_args());
    let mut daemon = Running::start(limited, "callsheet listens on ");
    let address = daemon.url.strip_prefix("http://").unwrap().to_owned();
    let idle: Vec<TcpStream> = (0..250)
        .map(|_| TcpStream::connect(&address).unwrap())
        .collect();
    assert_eq!(daemon.get("/healthz").0, 200);
    drop(idle);
    daemon.signal("TERM");
    let (_, log) = daemon.ended();
    assert!(
        log.contains("fewer connections than `server.max_connections`")
            && log.contains("connections=150"),
        "{log}"
    );
    assert!(!log.contains("cannot accept connections"), "{log}");
}

#[test]
fn it_says_what_there_is_to_do_and_where_the_dashboard_is() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::naming(&[("notes", &notes.url)]);
    let daemon = home.serve(&[]);
    let line = daemon.line(|line| line.ends_with(&format!("; dashboard: {}/", daemon.url)));
    assert!(line.starts_with("1 scenario is configured"), "{line}");

    let home = Home::with("");
    let mut command = home.command(&["serve"]);
    command.env("NOTES_API_URL", &notes.url);
    let found = Running::start(command, "callsheet listens on ");
    let line = found.line(|line| line.contains("; dashboard: http://"));
    assert!(
        line.starts_with("no scenario is configured, 1 scenario was found"),
        "{line}"
    );
    drop(found);

    let empty = home.serve(&[]);
    let line = empty.line(|line| line.contains("; dashboard: http://"));
    assert!(
        line.starts_with("no scenario is configured or found yet"),
        "{line}"
    );
    for command in ["init", "add", "import", "demo"] {
        empty.line(|line| line.starts_with(&format!("  callsheet {command} ")));
    }
}

#[test]
fn it_may_open_as_many_files_as_the_system_allows() {
    let home = Home::with("");
    let serve = home.command(&["serve"]);
    let mut limited = Command::new("/bin/sh");
    limited.args([
        "-c",
        "ulimit -Sn 300 && exec \"$0\" serve",
        env!("CARGO_BIN_EXE_callsheet"),
    ]);
    limited
        .env_clear()
        .envs(
            serve
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .current_dir(home.path(""));
    let daemon = Running::start(limited, "callsheet listens on ");
    let metrics = String::from_utf8(daemon.get("/metrics").1).unwrap();
    let line = metrics
        .lines()
        .find_map(|line| line.strip_prefix("process_max_fds "))
        .unwrap();
    assert!(line.parse::<f64>().unwrap() > 300.0, "{line}");
}

#[test]
fn an_answer_that_never_ends_does_not_hold_the_end_up_for_longer_than_its_deadline() {
    let home = Home::with("server.stop_timeout = \"200ms\"\n");
    let mut daemon = home.serve(&[]);
    let address = daemon.url.strip_prefix("http://").unwrap().to_owned();
    let mut slow = TcpStream::connect(&address).unwrap();
    // The daemon has taken this request on, and waits for a body that does not come.
    let head = "PUT /api/v1/preferences HTTP/1.1\r\nContent-Type: application/json\r\nExpect: 100-continue";
    write!(
        slow,
        "{head}\r\nHost: {address}\r\nContent-Length: 100\r\n\r\n"
    )
    .unwrap();
    let mut first = [0; 12];
    slow.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 100");
    daemon.signal("INT");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("1 connection(s) were cut off"), "{log}");
}

#[test]
fn the_configuration_and_flags_say_where_it_listens() {
    let home = Home::new();
    // No daemon of a test can listen there.
    home.write("callsheet.toml", "server.listen = \"192.0.2.1:1\"\n");
    let error = home.run(&["serve"]).failed(5);
    assert!(
        error.starts_with("error: cannot listen on 192.0.2.1:1: "),
        "{error}"
    );
    assert!(
        error.contains("\n  hint: this machine has no such address; use `--listen`"),
        "{error}"
    );
    assert!(
        home.serve(&["--listen", "127.0.0.1:0"])
            .url
            .starts_with("http://127.0.0.1:")
    );
    let file = home.write("other.toml", "server.listen = \"127.0.0.1:0\"\n");
    let file = file.to_str().unwrap();
    assert!(
        home.serve(&["--config", file])
            .url
            .starts_with("http://127.0.0.1:")
    );
    let mut command = home.command(&["serve"]);
    command
        .env("CALLSHEET_CONFIG", file)
        .env("CALLSHEET_LOG", "off");
    let mut by_variable = Running::start(command, "callsheet listens on ");
    until("it is alive", || by_variable.get("/healthz").0 == 200);
    by_variable.signal("TERM");
    assert_eq!(
        by_variable.ended(),
        (Some(0), String::new()),
        "nothing is logged when nothing should be"
    );
}

#[test]
fn a_port_in_use_is_told_with_the_way_out() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let error = home.run(&["serve", "--listen", &address]).failed(5);
    let (first, hint) = error.split_once("\n  hint: ").unwrap();
    assert!(
        first.starts_with(&format!("error: cannot listen on {address}: ")),
        "{error}"
    );
    assert!(
        hint.contains("perhaps a callsheet daemon") && hint.contains("`--listen`"),
        "{error}"
    );
}

#[test]
fn a_state_file_that_another_daemon_holds_is_named() {
    let home = Home::with("");
    let _first = home.serve(&[]);
    let second = home.run(&["serve"]);
    let error = second.failed(5);
    let file = home.path(".state/callsheet/state.db");
    let error = error.lines().collect::<Vec<_>>();
    let expected = format!(
        "error: cannot open the stored state in `{}`: another daemon (process ",
        file.display()
    );
    assert!(error[0].starts_with(&expected), "{error:?}");
    assert_eq!(
        error[1],
        "  hint: stop that one, or set `state.path` to another file"
    );
    assert_eq!(error.len(), 2);
}

#[test]
fn a_wrong_configuration_is_told_with_its_places() {
    let home = Home::new();
    let file = home.write(
        "callsheet.toml",
        "[server]\nlistn = \"x\"\n\n[refresh]\ntimeout = \"soon\"\n",
    );
    let error = home.run(&["serve"]).failed(4);
    let lines: Vec<&str> = error.lines().collect();
    let file = file.display();
    assert_eq!(
        lines[0],
        format!("error: {file}:2:1: server.listn: unknown key")
    );
    assert_eq!(lines[1], "  hint: did you mean `listen`?");
    assert_eq!(
        lines[2],
        format!("error: {file}:5:11: refresh.timeout: \"soon\" is not a duration")
    );
    assert!(
        lines[3].starts_with("  hint: write a number and a unit"),
        "{error}"
    );
    assert_eq!(lines.len(), 4);

    let error = home.run(&["serve", "--config", "missing.toml"]).failed(4);
    assert!(
        error.contains("missing.toml: the configuration cannot be read: "),
        "{error}"
    );
    let error = Home::new().run(&["serve", "--listen", "here"]).failed(4);
    assert!(
        error.starts_with("error: flag --listen: server.listen: "),
        "{error}"
    );
}

#[test]
fn a_log_filter_that_cannot_be_is_wrong_usage() {
    let home = Home::with("");
    let error = home.run(&["serve", "--log", "a=b=c"]).failed(2);
    assert!(
        error.starts_with("error: `--log` or `CALLSHEET_LOG` cannot be `a=b=c`: "),
        "{error}"
    );
    assert!(
        error.contains("\n  hint: write a level such as `info`"),
        "{error}"
    );
    let mut by_variable = home.command(&["serve"]);
    assert_eq!(
        command::run(by_variable.env("CALLSHEET_LOG", "callsheet=loud"))
            .failed(2)
            .lines()
            .count(),
        2
    );
}
