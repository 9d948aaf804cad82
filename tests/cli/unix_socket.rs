//! The Unix socket beside the state, by which commands reach a daemon that has no free connection.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::support::command::{Home, Ran, Running, Scenario, tool, until};

/// Where the daemon of a home has its socket.
fn socket_of(home: &Home) -> PathBuf {
    home.path(".state/callsheet/state.db.sock")
}

fn is_served(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

/// The socket of a daemon that has begun to serve, which it does soon after it says its address.
fn served_socket_of(home: &Home) -> PathBuf {
    let socket = socket_of(home);
    until("it listens on the socket", || is_served(&socket));
    socket
}

/// A request under way on a connection to the daemon's address: a stream of events.
fn stream_of_events(daemon: &Running) -> TcpStream {
    let address = daemon.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /api/v1/events HTTP/1.1\r\nHost: {address}\r\n\r\n"
    )
    .unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

/// The answer to a request on the socket.
fn asked(socket: &Path, method: &str, target: &str, headers: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    write!(
        stream,
        "{method} {target} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn commands_are_answered_while_all_connections_are_in_use() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::with(&format!(
        "server.max_connections = 2\n[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n",
        notes.url
    ));
    let mut daemon = home.serve(&[]);
    let socket = served_socket_of(&home);
    let followers = [stream_of_events(&daemon), stream_of_events(&daemon)];
    for _ in 0..3 {
        home.run(&["approvals"]).ok();
        assert!(home.run(&["tools"]).ok().contains("add_note"));
        home.run(&["block", "notes"]).ok();
        home.run(&["block", "notes", "--undo"]).ok();
    }
    let doctor = home.run(&["doctor"]);
    let line = doctor
        .out
        .lines()
        .find(|line| line.starts_with("ok[socket] "))
        .unwrap_or_default();
    assert!(
        line.contains("state.db.sock: a callsheet daemon"),
        "{doctor:?}"
    );
    assert!(doctor.out.contains("[scenarios] notes"), "{doctor:?}");
    drop(followers);
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
    assert!(!socket.exists(), "the file goes with the daemon");
}

/// A program that takes every connection of the socket with streams of events, which never rest.
#[test]
fn commands_are_answered_while_all_connections_of_the_socket_are_streams() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n",
        notes.url
    ));
    let daemon = home.serve(&[]);
    let socket = served_socket_of(&home);
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = UnixStream::connect(&socket).unwrap();
        write!(
            stream,
            "GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        )
        .unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        streams.push(stream);
    }
    for _ in 0..3 {
        assert!(home.run(&["scenarios"]).ok().contains("notes"));
        home.run(&["approvals"]).ok();
    }
    streams[0].set_nonblocking(true).unwrap();
    let mut rest = vec![0; 1 << 16];
    loop {
        match streams[0].read(&mut rest) {
            Ok(0) => panic!("the first stream was closed"),
            Ok(_) => {}
            Err(error) => {
                break assert_eq!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock,
                    "it is still open"
                );
            }
        }
    }
    drop(daemon);
}

/// A socket that takes connections and answers nothing on them; what came is remembered.
fn silent(path: &Path) -> Arc<Mutex<Vec<String>>> {
    fs::remove_file(path).unwrap();
    let listener = UnixListener::bind(path).unwrap();
    let came = Arc::new(Mutex::new(Vec::new()));
    let heads = Arc::clone(&came);
    // It ends with this program, as the connections that it holds do.
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 1_000];
            let bytes = stream.read(&mut head).unwrap_or_default();
            if bytes > 0 {
                heads
                    .lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(&head[..bytes]).into_owned());
            }
            open.push(stream);
        }
    });
    came
}

/// A daemon whose socket hangs is still reached, and what changes something is sent once.
#[test]
fn a_socket_that_takes_connections_and_does_not_answer_gives_way_to_the_address() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n",
        notes.url
    ));
    let daemon = home.serve(&[]);
    let came = silent(&served_socket_of(&home));
    let blocked = home.run(&["block", "notes"]);
    assert_eq!(blocked.code, Some(0), "{blocked:?}");
    assert!(
        blocked
            .err
            .contains("the socket of the daemon does not answer; its address is used"),
        "{blocked:?}"
    );
    assert!(home.run(&["scenarios"]).ok().contains("blocked"));
    home.run(&["unblock", "notes"]).ok();
    let came = came.lock().unwrap().clone();
    assert!(
        came.len() >= 3 && came.iter().all(|head| head.starts_with("GET /healthz ")),
        "{came:?}"
    );
    let doctor = home.run(&["doctor"]);
    assert!(!doctor.out.contains("ok[socket] "), "{doctor:?}");
    drop(daemon);
}

#[test]
fn the_socket_carries_no_right_and_names_this_machine() {
    let token = "an-operator-token-of-this-test";
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let home = Home::with(&format!(
        "server.operator_token = \"{token}\"\n[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n",
        notes.url
    ));
    let daemon = home.serve(&[]);
    let socket = served_socket_of(&home);
    let block = "/api/v1/scenarios/notes/block";
    let refused = asked(&socket, "POST", block, "Host: localhost\r\n");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let wrong = asked(
        &socket,
        "POST",
        block,
        "Host: localhost\r\nAuthorization: Bearer another-token\r\n",
    );
    assert!(wrong.starts_with("HTTP/1.1 401"), "{wrong}");
    let allowed = asked(
        &socket,
        "POST",
        block,
        &format!("Host: localhost\r\nAuthorization: Bearer {token}\r\n"),
    );
    assert!(allowed.starts_with("HTTP/1.1 200"), "{allowed}");
    home.run(&["unblock", "notes"]).ok();
    // A page whose name points here has no way to a socket, and the rule is the same.
    let other = asked(&socket, "GET", "/healthz", "Host: pages.example\r\n");
    assert!(other.starts_with("HTTP/1.1 403"), "{other}");
    drop(daemon);
}

#[test]
fn only_the_user_of_the_daemon_can_connect_whatever_the_umask_is() {
    for umask in ["000", "077"] {
        let home = Home::with("");
        let serve = home.command(&["serve"]);
        let mut shell = Command::new("/bin/sh");
        shell.args([
            "-c",
            &format!("umask {umask} && exec \"$0\" serve"),
            env!("CARGO_BIN_EXE_callsheet"),
        ]);
        shell
            .env_clear()
            .envs(
                serve
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .current_dir(home.path(""));
        let _daemon = Running::start(shell, "callsheet listens on ");
        let mode = fs::metadata(served_socket_of(&home))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "with umask {umask}");
        let folder = fs::read_dir(home.path(".state/callsheet")).unwrap();
        let hidden = folder.filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with('.')
        });
        assert_eq!(hidden.count(), 0, "the folder that it was made in is gone");
    }
}

#[test]
fn the_file_of_a_daemon_that_was_killed_is_replaced() {
    let home = Home::with("");
    let mut killed = home.serve(&[]);
    let socket = served_socket_of(&home);
    killed.signal("KILL");
    assert_eq!(killed.ended().0, None);
    assert!(socket.exists() && !is_served(&socket));
    let error = home.run(&["tools"]).failed(3);
    assert!(
        error.starts_with("error: no daemon of this user runs"),
        "{error}"
    );
    let daemon = home.serve(&[]);
    served_socket_of(&home);
    assert!(home.run(&["tools"]).ok().starts_with("no tools; "));
    drop(daemon);
}

#[test]
fn each_state_has_a_socket_of_its_own_and_one_daemon() {
    let home = Home::with("");
    let state = |name: &str| home.path(name).display().to_string();
    let first = home.serve(&["--state", &state("first.db")]);
    let second = home.serve(&["--state", &state("second.db")]);
    for socket in ["first.db.sock", "second.db.sock"] {
        until("it listens on the socket", || is_served(&home.path(socket)));
    }
    let refused = home.run(&["serve", "--state", &state("first.db")]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert!(
        refused.err.contains("another daemon") && is_served(&home.path("first.db.sock")),
        "{refused:?}"
    );
    drop(second);
    // The user's record was of the second, and it is gone: the first is named by its address.
    assert!(
        home.run(&["tools", "--url", &first.url])
            .ok()
            .starts_with("no tools; ")
    );
}

#[test]
fn each_of_two_daemons_is_found_by_its_configuration() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    let tasks = Scenario::start(
        "tasks",
        vec![tool("add_task", "Writes a task down", "planning")],
    );
    let home = Home::with("");
    let config = |name: &str, scenario: &Scenario| {
        let text = format!(
            "server.listen = \"127.0.0.1:0\"\nstate.path = \"{}\"\n[[scenarios]]\nname = \"{name}\"\nurl = \"{}\"\n",
            home.path(&format!("{name}.db")).display(),
            scenario.url
        );
        home.write(&format!("{name}.toml"), &text)
            .display()
            .to_string()
    };
    let of_notes = config("notes", &notes);
    let of_tasks = config("tasks", &tasks);
    let first = home.serve(&["--config", &of_notes]);
    let mut second = home.serve(&["--config", &of_tasks]);
    for (config, daemon, tool) in [
        (&of_notes, &first, "add_note"),
        (&of_tasks, &second, "add_task"),
    ] {
        until("the tool is listed", || {
            home.run(&["tools", "--config", config]).out.contains(tool)
        });
        // What is answered by the socket and what is answered at the address is of one daemon.
        let called = home.run(&["call", "--config", config, tool]);
        assert!(!called.err.contains("no tool"), "{called:?}");
        let connect = home.run(&["doctor", "--config", config]);
        assert!(
            connect
                .out
                .contains(daemon.url.trim_start_matches("http://")),
            "{connect:?}"
        );
    }
    let record = home.path("tasks.db.daemon.json");
    assert!(record.exists());
    second.signal("TERM");
    assert_eq!(second.ended().0, Some(0));
    assert!(!record.exists(), "the record goes with its daemon");
    assert!(
        home.run(&["tools", "--config", &of_notes])
            .ok()
            .contains("add_note")
    );
}

/// A daemon whose socket cannot be made runs all the same, and says why.
fn serves_without_socket(home: &Home, state: &str) -> (Ran, String) {
    let mut daemon = home.serve(&["--state", state]);
    assert!(
        home.run(&["tools"]).ok().starts_with("no tools; "),
        "by its address"
    );
    let mut doctor = home.command(&["doctor"]);
    let doctor = crate::support::command::run(doctor.env("CALLSHEET_STATE__PATH", state));
    daemon.signal("TERM");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    (doctor, log)
}

#[test]
fn what_keeps_the_socket_from_being_made_is_said_and_keeps_no_daemon_from_running() {
    let home = Home::with("");
    let long_path = home
        .path(&format!("{}/state.db", "long".repeat(25)))
        .display()
        .to_string();
    let (doctor, log) = serves_without_socket(&home, &long_path);
    assert!(
        log.contains("no socket for the command line") && log.contains("has 107 at most"),
        "{log}"
    );
    assert!(
        doctor.out.contains("warning[socket]") && doctor.out.contains("state.path"),
        "{doctor:?}"
    );

    let taken = home.write("taken.db.sock", "mine");
    let (_, log) = serves_without_socket(&home, &home.path("taken.db").display().to_string());
    assert!(
        log.contains("something else than a socket is there"),
        "{log}"
    );
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");

    let served = home.path("served.db.sock");
    let other = UnixListener::bind(&served).unwrap();
    let daemon = home.serve(&["--state", &home.path("served.db").display().to_string()]);
    other.set_nonblocking(true).unwrap();
    until("it looked whether it is served", || other.accept().is_ok());
    drop(daemon);
    assert!(served.exists(), "the file of another process stays");
}
