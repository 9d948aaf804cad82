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
        command
            .current_dir(home.path(folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
        }
    }

    fn request(&mut self, message: &Value) -> Value {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a message without reading its answer.
    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The names of the tools in the answer to the request with this id.
    fn listed(&mut self, id: u64) -> Vec<String> {
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the answer {id} is missing"
            );
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                let tools = answer["result"]["tools"].as_array().unwrap();
                return tools
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned())
                    .collect();
            }
        }
    }

    /// The name of the server that answers.
    fn greet(&mut self) -> Value {
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
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
    let listed = scenarios
        .current_dir(home.path("project"))
        .output()
        .unwrap();
    assert!(listed.status.success(), "{listed:?}");
    let last = fronts.split_off(9);
    drop(fronts);
    let mut last = last.into_iter().next().unwrap();
    assert_eq!(
        last.greet(),
        "callsheet",
        "it goes on for the client that is left"
    );
    drop(last);
    until("the daemon has ended", || record(&home).is_none());
}

/// A server that notes that its list is requested, and gives it once the test says so.
const GATED: &str = r#"
import json, os, sys, time
name = sys.argv[1]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    elif message["method"] == "tools/list":
        open(name + ".requested", "w").close()
        while not os.path.exists(name + ".open"):
            time.sleep(0.01)
        answer["result"] = {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
    else:
        answer["error"] = {"code": -32601, "message": "unknown"}
    print(json.dumps(answer), flush=True)
"#;

/// Servers that are still greeted are awaited also for `callsheet mcp`, and also where their entry
/// came with a reload.
#[test]
fn the_first_list_waits_for_servers_of_the_start_and_of_a_reload() {
    let home = home("1s");
    home.write("gated.py", GATED);
    let file = home.path(".config/callsheet/callsheet.toml");
    let mut config = fs::read_to_string(&file).unwrap();
    let mut front = None;
    let mut expected = Vec::new();
    for (id, name) in [(1, "first"), (2, "second")] {
        let script = home.path("gated.py").display().to_string();
        let cwd = home.path("").display().to_string();
        let entry = format!(
            "[[scenarios]]\nname = \"{name}\"\ncommand = \"python3\"\nargs = [{script:?}, \"{name}\"]\ncwd = {cwd:?}\n\
             env = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n"
        );
        config.push_str(&entry);
        crate::support::config_file::replace(&file, &config);
        let front = front.get_or_insert_with(|| {
            let mut front = Front::start(&home, ".");
            assert_eq!(front.greet(), "callsheet");
            front
        });
        until("the list is requested", || {
            home.path(&format!("{name}.requested")).exists()
        });
        front.send(&json!({"jsonrpc": "2.0", "id": 10 + id, "method": "tools/list"}));
        home.write(&format!("{name}.open"), "");
        expected.push(format!("{name}__read"));
        assert_eq!(front.listed(10 + id), expected);
    }
}

#[test]
fn a_file_of_a_project_decides_nothing() {
    let home = home("1s");
    let mark = home.path("started");
    home.write(
        "project/callsheet.toml",
        &format!(
            "[[scenarios]]\nname = \"bad\"\ncommand = \"touch\"\nargs = [{:?}]\n",
            mark.display().to_string()
        ),
    );
    let mut front = Front::start(&home, "project");
    assert_eq!(front.greet(), "callsheet");
    let config = record(&home).unwrap()["config"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        config.ends_with(".config/callsheet/callsheet.toml"),
        "{config}"
    );
    drop(front);
    until("the daemon has ended", || record(&home).is_none());
    assert!(!mark.exists(), "the project started a program");
}

#[test]
fn a_daemon_that_cannot_start_says_why() {
    let home = home("1s");
    home.write(
        ".config/callsheet/callsheet.toml",
        "server.listen = \"127.0.0.1:0\"\nstate.path = \"/dev/null/x\"\n",
    );
    let ran = home.run(&["mcp"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.err.contains("ended at once") && ran.err.contains("started.log"),
        "{ran:?}"
    );
}
