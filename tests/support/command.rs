//! Runs the real binary like a newcomer does: in a home of its own, without anything of this
//! machine's environment.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use callsheet::provide::{
    self, Parameter, Registry, RegistryConfig, StaticProvider, ToolDefinition,
};
use callsheet::runtime::{Clock, StopTrigger};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// How long anything that is waited for may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a condition is looked at in that time.
const LOOKS: u32 = 1_500;

/// A home folder, which is the working folder too.
pub(crate) struct Home(TempDir);

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With this configuration; it listens on a free port unless it says otherwise.
    pub(crate) fn with(config: &str) -> Self {
        let home = Self::new();
        home.write(
            "callsheet.toml",
            &format!("server.listen = \"127.0.0.1:0\"\n{config}"),
        );
        home
    }

    /// With these scenarios by name and address.
    pub(crate) fn naming(scenarios: &[(&str, &str)]) -> Self {
        let entry = |(name, url): &(&str, &str)| {
            format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\n")
        };
        Self::with(&scenarios.iter().map(entry).collect::<String>())
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.0.path().join(below)
    }

    pub(crate) fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::write(&path, text).unwrap();
        path
    }

    /// The binary with these arguments, not yet started.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_callsheet"));
        command
            .args(args)
            .env_clear()
            .env("HOME", self.0.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("XDG_STATE_HOME", self.path(".state"))
            // No test speaks to the network of the machine it runs on.
            .env("CALLSHEET_DISCOVERY__MDNS__ENABLED", "false")
            .current_dir(self.0.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run(&mut self.command(args))
    }

    /// A daemon on this home, once it has asked every scenario of its configuration.
    pub(crate) fn serve(&self, args: &[&str]) -> Running {
        let running = Running::start(
            self.command(&[&["serve"], args].concat()),
            "callsheet listens on ",
        );
        until("the daemon is ready", || running.get("/readyz").0 == 200);
        running
    }
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran {
        code: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

impl Ran {
    /// What it printed, when all went well.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        self.out
    }

    /// What it said on standard error, when it ended with this code and printed nothing.
    #[track_caller]
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        self.err
    }
}

/// A process that runs until it is told to stop; killed when dropped.
pub(crate) struct Running {
    child: Child,
    lines: Receiver<String>,
    log: Option<JoinHandle<String>>,
    pub(crate) url: String,
}

impl Running {
    /// Starts it and waits for the line with its address.
    pub(crate) fn start(command: Command, before_address: &str) -> Self {
        let mut running = Self::spawn(command);
        let line = running.line(|line| line.starts_with(before_address));
        line.strip_prefix(before_address)
            .unwrap()
            .clone_into(&mut running.url);
        running
    }

    /// Starts it.
    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = sync_channel(10_000);
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            out.lines()
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        let mut err = child.stderr.take().unwrap();
        let log = thread::spawn(move || {
            let mut text = String::new();
            err.read_to_string(&mut text)
                .map(|_| text)
                .unwrap_or_default()
        });
        Self {
            child,
            lines,
            log: Some(log),
            url: String::new(),
        }
    }

    /// The next line of its output that fits. Fails the test when it does not come.
    #[track_caller]
    pub(crate) fn line(&self, fits: impl Fn(&str) -> bool) -> String {
        let clock = Clock::system();
        let mut passed = Vec::new();
        let deadline = clock.now() + PATIENCE;
        loop {
            match self
                .lines
                .recv_timeout(deadline.saturating_duration_since(clock.now()))
            {
                Ok(line) if fits(&line) => return line,
                Ok(line) => passed.push(line),
                Err(error) => panic!("{error}; it printed {passed:#?}"),
            }
        }
    }

    /// Asks by HTTP: the status and the body.
    pub(crate) fn get(&self, target: &str) -> (u16, Vec<u8>) {
        let (status, _, body) = self.ask(target);
        (status, body)
    }

    /// The same, with the head of the answer.
    pub(crate) fn ask(&self, target: &str) -> (u16, String, Vec<u8>) {
        self.send(&format!("GET {target}"), "", "")
    }

    /// Sends a request: its method and target, further lines of its head, and its body.
    pub(crate) fn send(&self, request: &str, head: &str, body: &str) -> (u16, String, Vec<u8>) {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n{head}\r\n{body}"
        )
        .unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes
            .windows(4)
            .position(|window| window == b"\r\n\r\n")
            .expect("a whole head");
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        (
            head.split(' ').nth(1).unwrap().parse().unwrap(),
            head.to_owned(),
            bytes[end + 4..].to_vec(),
        )
    }

    /// Its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success(), "{name} could not be sent");
    }

    /// Waits for its end: the exit code, and what it wrote to standard error.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> (Option<i32>, String) {
        let mut status = None;
        until("the process has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        (
            status.unwrap().code(),
            self.log
                .take()
                .map(|log| log.join().unwrap())
                .unwrap_or_default(),
        )
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether this program is installed. Where it is not, the log says that a test is skipped.
#[expect(
    clippy::print_stderr,
    reason = "the log has to show that a test was skipped"
)]
pub(crate) fn is_installed(name: &str) -> bool {
    let installed = Command::new(name).arg("--version").output().is_ok();
    if !installed {
        eprintln!("skipped: `{name}` is not installed");
    }
    installed
}

/// Waits for a condition.
#[track_caller]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..LOOKS {
        if holds() {
            return;
        }
        thread::sleep(PATIENCE / LOOKS);
    }
    panic!("waited too long until {what}");
}

/// A scenario: a real server that offers what it is given until it is dropped.
pub(crate) struct Scenario {
    pub(crate) url: String,
    stop: StopTrigger,
    _runtime: Runtime,
}

impl Scenario {
    pub(crate) fn start(name: &str, tools: Vec<ToolDefinition>) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let config = RegistryConfig {
            scenario_name: name.into(),
            scenario_version: "1.0.0".into(),
            scenario_description: "Says what the test says".into(),
            ..RegistryConfig::default()
        };
        let registry = Registry::new(config).unwrap();
        registry.register(StaticProvider::new(name).with_tools(tools));
        let (stop, stopping) = StopTrigger::new();
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(provide::serve(listener, registry, async move {
            stopping.wait().await;
        }));
        Self {
            url,
            stop,
            _runtime: runtime,
        }
    }

    /// Stops answering.
    pub(crate) fn stop(&self) {
        self.stop.stop();
        let address = self.url.strip_prefix("http://").unwrap().to_owned();
        until("the scenario is gone", || {
            TcpStream::connect(&address).is_err()
        });
    }
}

/// A tool in a category.
pub(crate) fn tool(name: &str, about: &str, category: &str) -> ToolDefinition {
    let text = Parameter::string("What to work on").required();
    ToolDefinition::new(name, about)
        .unwrap()
        .category(category)
        .parameter("text", text)
}

/// An address at which nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// Two scenarios with a tool of the same name, one that is switched off, and one that needs
/// approval, and their daemon.
pub(crate) fn office() -> (Home, Running, [Scenario; 2]) {
    let notes = Scenario::start(
        "notes",
        vec![
            tool("add_note", "Writes a note down", "writing"),
            tool("search", "Finds notes by their words", "reading"),
            tool("wipe", "Deletes every note", "writing")
                .enabled_by_default(false)
                .requires_approval(true),
        ],
    );
    let mail = Scenario::start(
        "mail",
        vec![
            tool("search", "Finds letters", "reading").tags(["letters"]),
            tool("send_mail", "Sends a letter", "writing")
                .requires_approval(true)
                .tags(["letters"]),
        ],
    );
    let home = Home::naming(&[("notes", &notes.url), ("mail", &mail.url)]);
    let daemon = home.serve(&[]);
    (home, daemon, [notes, mail])
}

/// The cells of a table's rows, cut at two or more blanks.
pub(crate) fn rows(table: &str) -> Vec<Vec<&str>> {
    table
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect()
}

/// JSON that was printed.
#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
