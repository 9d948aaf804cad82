//! `callsheet mcp` without a daemon: one is started for all clients, and ends after the last of
//! them.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::support::command::{Home, until};

/// A client that started `callsheet mcp`.
struct Front {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<std::process::ChildStdout>,
}

impl Front {
    /// Starts it in this folder.
    fn start(home: &Home, folder: &str) -> Self {
        let mut command = home.command(&["mcp"]);
        command.current_dir(home.path(folder)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output }
    }

    fn request(&mut self, message: &Value) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// The name of the server that answers.
    fn greet(&mut self) -> Value {
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        self.request(&message)["result"]["serverInfo"]["name"].clone()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// The configuration of this user, in the place where it is found from any folder.
fn home(linger: &str) -> Home {
    let home = Home::new();
    fs::create_dir_all(home.path(".config/callsheet")).unwrap();
    fs::create_dir_all(home.path("project")).unwrap();
    home.write(
        ".config/callsheet/callsheet.toml",
        &format!("server.listen = \"127.0.0.1:0\"\nmcp.linger = \"{linger}\"\n"),
    );
    home
}

/// What the daemon says of itself in the runtime folder.
fn record(home: &Home) -> Option<Value> {
    serde_json::from_slice(&fs::read(home.path(".state/callsheet/daemon.json")).ok()?).ok()
}

#[test]
fn ten_clients_start_one_daemon_which_ends_after_the_last_of_them() {
    let home = home("1s");
    let mut fronts: Vec<Front> = (0..10).map(|_| Front::start(&home, ".")).collect();
    let mut daemons = Vec::new();
    for front in &mut fronts {
        assert_eq!(front.greet(), "callsheet");
        daemons.push(record(&home).unwrap()["pid"].clone());
    }
    assert!(daemons.iter().all(|pid| *pid == daemons[0]), "{daemons:?}");
    // A command in any folder finds it.
    let mut scenarios = home.command(&["scenarios"]);
    let listed = scenarios.current_dir(home.path("project")).output().unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let last = fronts.split_off(9);
    drop(fronts);
    let mut last = last.into_iter().next().unwrap();
    assert_eq!(last.greet(), "callsheet", "it goes on for the client that is left");
    drop(last);
    until("the daemon has ended", || record(&home).is_none());
}

#[test]
fn a_file_of_a_project_decides_nothing() {
    let home = home("1s");
    let mark = home.path("started");
    home.write(
        "project/callsheet.toml",
        &format!("[[scenarios]]\nname = \"bad\"\ncommand = \"touch\"\nargs = [{:?}]\n", mark.display().to_string()),
    );
    let mut front = Front::start(&home, "project");
    assert_eq!(front.greet(), "callsheet");
    let config = record(&home).unwrap()["config"].as_str().unwrap().to_owned();
    assert!(config.ends_with(".config/callsheet/callsheet.toml"), "{config}");
    drop(front);
    until("the daemon has ended", || record(&home).is_none());
    assert!(!mark.exists(), "the project started a program");
}

#[test]
fn a_daemon_that_cannot_start_says_why() {
    let home = home("1s");
    home.write(".config/callsheet/callsheet.toml", "server.listen = \"127.0.0.1:0\"\nstate.path = \"/dev/null/x\"\n");
    let ran = home.run(&["mcp"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.err.contains("ended at once") && ran.err.contains("started.log"), "{ran:?}");
}
