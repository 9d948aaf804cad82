//! Every command and request of these documents is run in a shell, in the order of the document,
//! against a real daemon on loopback. Only the ports are replaced by free ones.

use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::markdown::{Block, Directive, Document, Step, documents, root};
use crate::support::command::{Home, Running, is_installed, json, until};

/// The daemon's address in the documents.
const DAEMON: &str = "127.0.0.1:7400";
/// The port of the example provider in the documents.
const PROVIDER_PORT: &str = "15000";
/// Stands in the documents for the identifier of the one call that waits for approval.
const APPROVAL_ID: &str = "APPROVAL_ID";

#[test]
fn the_commands_of_the_readme_work() {
    run_document("README.md");
}

#[test]
fn the_commands_of_getting_started_work() {
    run_document("docs/getting-started.md");
}

#[test]
fn the_commands_of_the_command_line_page_work() {
    run_document("docs/command-line.md");
}

#[test]
fn the_requests_of_the_lists_page_work() {
    run_document("docs/lists.md");
}

#[test]
fn the_requests_of_the_http_page_work() {
    run_document("docs/http.md");
}

#[test]
fn the_request_of_the_turns_page_works() {
    run_document("docs/turns.md");
}

#[test]
fn the_request_of_the_json_rpc_page_works() {
    run_document("docs/protocols/json-rpc.md");
}

#[test]
fn the_commands_of_the_modules_guide_work() {
    run_document("docs/modules.md");
}

/// Continuous integration starts the program by these two commands of the README.
#[test]
fn the_readme_names_the_two_commands() {
    let readme = Document::read("README.md").text;
    assert!(readme.contains("\n```sh\ncargo run --release -- demo\n```\n"));
    assert!(readme.contains("`cargo test`"));
    assert!(
        readme.lines().count() <= 150,
        "the README stays short: {} lines",
        readme.lines().count()
    );
}

#[test]
fn every_printed_configuration_is_valid() {
    let home = Home::new();
    let mut count = 0;
    for block in documents().iter().flat_map(Document::blocks) {
        if block.language == "toml" && block.directive != Directive::NotRun {
            let file = home.write("printed.toml", &block.text);
            let ran = home.run(&["config", "show", "--config", file.to_str().unwrap()]);
            assert_eq!(ran.code, Some(0), "{}: {}", block.location, ran.err);
            count += 1;
        }
    }
    assert!(count > 3, "only {count} configurations were found");
}

/// Runs every block of a document that is not marked otherwise. Skipped, with a message, where a
/// program that the documents use is not installed.
fn run_document(path: &str) {
    if !["curl", "python3"].into_iter().all(is_installed) {
        return;
    }
    let mut session = Session::new();
    let mut commands = 0;
    for step in Document::read(path).steps() {
        match step {
            Step::StopAll => session.running.clear(),
            Step::Block(block) => match &block.directive {
                Directive::WrittenTo(file) => session.write(file, &block.text),
                Directive::KeepsRunning => session.start(&block),
                Directive::Run(code) if block.language == "sh" => {
                    session.run(&block, *code);
                    commands += 1;
                }
                Directive::Run(_) | Directive::NotRun => {}
            },
        }
    }
    assert!(commands > 0, "{path} has no commands to run");
}

/// The working folder of a reader, and the programs that keep running in it.
struct Session {
    /// Comes before the folder, so that the programs end before it is deleted.
    running: Vec<Running>,
    home: Home,
    /// The address that the daemon listens on instead of [`DAEMON`].
    daemon: String,
    provider_port: String,
}

impl Session {
    fn new() -> Self {
        let home = Home::new();
        // The documents name the example programs from the root of the repository.
        symlink(root().join("docs"), home.path("docs")).unwrap();
        let [daemon, provider] = free_ports();
        let daemon = format!("127.0.0.1:{daemon}");
        Self {
            running: Vec::new(),
            home,
            daemon,
            provider_port: provider.to_string(),
        }
    }

    /// A printed text with the ports of this session.
    fn adapt(&self, text: &str) -> String {
        text.replace(DAEMON, &self.daemon)
            .replace(PROVIDER_PORT, &self.provider_port)
    }

    fn write(&self, file: &str, text: &str) {
        self.home.write(file, &self.adapt(text));
    }

    /// A shell in the working folder in which `callsheet` is the program under test.
    fn shell(&self, options: &str, script: &str) -> Command {
        let programs = Path::new(env!("CARGO_BIN_EXE_callsheet")).parent().unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut command = self.home.command(&[]);
        let mut shell = Command::new("sh");
        shell
            .args([options, script])
            .env_clear()
            .current_dir(self.home.path(""));
        for (name, value) in command
            .env("PATH", format!("{}:{path}", programs.display()))
            .get_envs()
        {
            shell.env(name, value.unwrap());
        }
        // Where no address is given, daemon and commands use this one instead of the default.
        shell.env("CALLSHEET_SERVER__LISTEN", &self.daemon);
        shell
    }

    /// Runs a block as one script and fails the test when a command of it fails.
    fn run(&self, block: &Block, code: i32) {
        let script = self.adapt(&block.text);
        let script = if script.contains(APPROVAL_ID) {
            script.replace(APPROVAL_ID, &self.approval())
        } else {
            script
        };
        let output = self.shell("-exc", &script).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{}: {errors}{printed}",
            block.location
        );
        // A request that the daemon refuses does not fail `curl`.
        let refused = printed.contains("\"type\":\"about:blank\"");
        assert!(!refused, "{}: {printed}", block.location);
    }

    /// Starts each line of a block and waits for the first line that it prints, and for a daemon
    /// until it is ready.
    fn start(&mut self, block: &Block) {
        for line in self.adapt(&block.text).lines() {
            let command = line.split('#').next().unwrap().trim();
            let shell = self.shell("-c", &format!("exec {command}"));
            let is_daemon =
                command.starts_with("callsheet serve") || command.starts_with("callsheet demo");
            let running = Running::start(
                shell,
                if is_daemon {
                    "callsheet listens on "
                } else {
                    ""
                },
            );
            if is_daemon {
                until("the daemon is ready", || running.get("/readyz").0 == 200);
                // It is ready after a while although a scenario has not answered yet.
                let scenarios = || String::from_utf8(running.get("/api/v1/scenarios").1).unwrap();
                until("every scenario has answered", || {
                    !scenarios().contains("\"connecting\"")
                });
            }
            self.running.push(running);
        }
    }

    /// The identifier of the call that waits for approval.
    fn approval(&self) -> String {
        let listed = self
            .shell("-c", "callsheet approvals --json")
            .output()
            .unwrap();
        let approvals = json(std::str::from_utf8(&listed.stdout).unwrap());
        approvals["approvals"][0]["id"]
            .as_str()
            .expect("a call waits for approval")
            .to_owned()
    }
}

/// Two ports that were free a moment ago.
fn free_ports() -> [u16; 2] {
    let held = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}
