//! Hosts on one network, each in a network namespace of its own, joined by a bridge. Needs root,
//! `ip` and what the tests start; nothing of it touches the network of this machine.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on must fail"
)]
#![allow(
    clippy::unused_self,
    reason = "what a test does in its lab reads as such"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "what is waited for here takes real time"
)]

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long anything that is waited for may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two looks at a condition.
const LOOK: Duration = Duration::from_millis(50);

/// A network.
pub(crate) struct Lab {
    switch: String,
    pub(crate) hosts: Vec<Host>,
    folder: TempDir,
}

/// One host on it.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    namespace: String,
    pub(crate) address: Ipv4Addr,
    port: String,
}

/// A program on a host; killed when dropped.
pub(crate) struct Running(Child);

/// A daemon on a host.
pub(crate) struct Daemon {
    pub(crate) running: Running,
    host: Host,
    url: String,
}

impl Lab {
    /// A network with so many hosts: 10.78.0.1, 10.78.0.2, ...
    pub(crate) fn new(count: u8) -> Self {
        let name = |what: &str| format!("callsheet-{}-{what}", std::process::id());
        let switch = name("switch");
        let mut lab = Self {
            switch: switch.clone(),
            hosts: Vec::new(),
            folder: tempfile::tempdir().unwrap(),
        };
        ip(&format!("netns add {switch}"));
        // Without a querier on the bridge, snooping would lose multicast.
        ip(&format!(
            "-n {switch} link add br0 type bridge mcast_snooping 0"
        ));
        ip(&format!("-n {switch} link set br0 up"));
        for number in 1..=count {
            let host = Host {
                namespace: name(&number.to_string()),
                address: Ipv4Addr::new(10, 78, 0, number),
                port: format!("p{number}"),
            };
            let Host {
                namespace,
                address,
                port,
            } = &host;
            ip(&format!("netns add {namespace}"));
            lab.hosts.push(host.clone());
            ip(&format!(
                "link add e0 netns {namespace} type veth peer name {port} netns {switch}"
            ));
            ip(&format!("-n {switch} link set {port} master br0 up"));
            ip(&format!("-n {namespace} link set lo up"));
            ip(&format!("-n {namespace} addr add {address}/24 dev e0"));
            ip(&format!("-n {namespace} link set e0 up"));
            ip(&format!("-n {namespace} route add 224.0.0.0/4 dev e0"));
        }
        lab
    }

    /// Takes a host off the bridge: its own interface stays up, and nobody is told.
    pub(crate) fn cut(&self, host: &Host) {
        ip(&format!(
            "-n {} link set {} nomaster",
            self.switch, host.port
        ));
    }

    /// Puts it back.
    pub(crate) fn heal(&self, host: &Host) {
        ip(&format!(
            "-n {} link set {} master br0",
            self.switch, host.port
        ));
    }

    /// A file of the lab.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a daemon on a host with this configuration besides its own; it listens on the host's
    /// loopback.
    pub(crate) fn daemon(&self, host: &Host, config: &str) -> Daemon {
        let home = self.path(&host.namespace);
        std::fs::create_dir_all(&home).unwrap();
        let file = home.join("callsheet.toml");
        std::fs::write(
            &file,
            format!("{config}\n[discovery.vrooli]\nenabled = false\n"),
        )
        .unwrap();
        let mut command = host.command(env!("CARGO_BIN_EXE_callsheet"));
        command
            .arg("serve")
            .arg("--config")
            .arg(&file)
            .arg("--state")
            .arg(home.join("state.db"));
        command.env("HOME", &home);
        let (running, line) = Running::start(&mut command);
        let url = line.rsplit(' ').next().unwrap().to_owned();
        Daemon {
            running,
            host: host.clone(),
            url,
        }
    }

    /// Announces one scenario of a host with python-zeroconf, its records living for so many
    /// seconds.
    pub(crate) fn zeroconf(
        &self,
        host: &Host,
        name: &str,
        port: u16,
        id: &str,
        ttl: u32,
    ) -> Running {
        let publisher = self.write("publish.py", PUBLISH);
        let mut command = python(host);
        let address = host.address.to_string();
        command
            .arg(&publisher)
            .args([&address, name, &port.to_string(), id, &ttl.to_string()]);
        Running::start(&mut command).0
    }

    /// Starts avahi on a host without a message bus: it announces what stands in the service files
    /// of `services`.
    pub(crate) fn avahi(&self, host: &Host, services: &Path) -> Running {
        let config = self.write(
            &format!("{}.conf", host.namespace),
            "[server]\nenable-dbus=no\nallow-interfaces=e0\nhost-name=avahi-host\n[publish]\npublish-hinfo=no\npublish-workstation=no\n[rlimits]\n",
        );
        let script = format!(
            "mount -t tmpfs tmpfs /run && mount --bind {} /etc/avahi/services && exec avahi-daemon -f {} --no-drop-root --no-chroot --no-rlimits",
            services.display(),
            config.display()
        );
        let mut command = host.command("unshare");
        command.args(["--mount", "--propagation", "private", "bash", "-c", &script]);
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .stdin(Stdio::null());
        Running(command.spawn().unwrap())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for namespace in self
            .hosts
            .iter()
            .map(|host| &host.namespace)
            .chain([&self.switch])
        {
            let _ = Command::new("ip")
                .args(["netns", "del", namespace])
                .status();
        }
    }
}

impl Host {
    /// A program in this host's network.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, program]);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CALLSHEET_"))
        {
            command.env_remove(name);
        }
        command
    }

    /// Starts the example scenario here, announced by itself when it has an `id`.
    pub(crate) fn scenario(&self, name: &str, port: u16, id: Option<&str>) -> Running {
        let mut command = self.command(example("scenario").to_str().unwrap());
        command
            .arg(name)
            .arg(format!("{}:{port}", self.address))
            .args(id);
        Running::start(&mut command).0
    }

    /// Starts the example crowd here: so many scenarios, and so many announcements behind which
    /// nothing is.
    pub(crate) fn crowd(&self, served: usize, empty: usize) -> Running {
        let mut command = self.command(example("crowd").to_str().unwrap());
        command
            .arg(self.address.to_string())
            .args([served, empty].map(|count| count.to_string()));
        Running::start(&mut command).0
    }

    /// Takes this host's interface down, or up again: the host knows.
    pub(crate) fn link(&self, up: bool) {
        let Self { namespace, .. } = self;
        ip(&format!(
            "-n {namespace} link set e0 {}",
            if up { "up" } else { "down" }
        ));
        if up {
            ip(&format!("-n {namespace} route replace 224.0.0.0/4 dev e0"));
        }
    }
}

impl Running {
    /// Starts a program and waits for its first line.
    pub(crate) fn start(command: &mut Command) -> (Self, String) {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "{command:?} ended early");
        // Read on, so that the program never waits for a reader.
        thread::spawn(
            move || while out.read_line(&mut String::new()).is_ok_and(|read| read > 0) {},
        );
        (Self(child), line.trim().to_owned())
    }

    /// Asks it to stop, and waits until it did.
    pub(crate) fn stop(mut self) {
        self.signal("-TERM");
        wait_for("the program to stop", || self.0.try_wait().unwrap());
    }

    pub(crate) fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(
            Command::new("kill")
                .args([signal, &self.0.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    /// Runs a command of the command line against it.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.host.command(env!("CARGO_BIN_EXE_callsheet"));
        command
            .args(arguments)
            .args(["--url", &self.url])
            .output()
            .unwrap()
    }

    /// What a command answers as JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let output = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
            panic!(
                "{arguments:?}: {error}\n{}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }

    /// The names of the tools in its list.
    pub(crate) fn tools(&self) -> Vec<String> {
        let list = self.json(&["tools"]);
        let tools = list["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The health of all scenarios.
    pub(crate) fn scenarios(&self) -> Vec<Value> {
        self.json(&["scenarios"])["scenarios"]
            .as_array()
            .unwrap()
            .clone()
    }

    /// The health of one scenario; null when there is none of that name.
    pub(crate) fn health(&self, scenario: &str) -> Value {
        self.scenarios()
            .into_iter()
            .find(|health| health["name"] == scenario)
            .unwrap_or_default()
    }

    /// Waits for a scenario to be in a state; its health then.
    pub(crate) fn until(&self, scenario: &str, state: &str) -> Value {
        self.within(PATIENCE, scenario, state)
    }

    /// The same with a deadline: what comes later fails the test.
    pub(crate) fn within(&self, limit: Duration, scenario: &str, state: &str) -> Value {
        self.sees(limit, scenario, state, |health| health["state"] == state)
    }

    /// Waits until something is seen in the health of a scenario, which must not take longer than
    /// `limit`.
    pub(crate) fn sees(
        &self,
        limit: Duration,
        scenario: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        self.look(limit, scenario, is)
            .unwrap_or_else(|last| panic!("`{scenario}` is not {what} after {limit:?}: {last:#}"))
    }

    /// Whether a scenario gets into a state within so long.
    pub(crate) fn becomes(&self, limit: Duration, scenario: &str, state: &str) -> bool {
        self.look(limit, scenario, |health| health["state"] == state)
            .is_ok()
    }

    /// Looks at the health of a scenario until it is as asked; what was seen last, when that takes
    /// longer than `limit`.
    fn look(
        &self,
        limit: Duration,
        scenario: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value, Value> {
        let end = Instant::now() + limit;
        let mut last = Value::Null;
        loop {
            // What is seen late was still there in time when the look began in time.
            let late = Instant::now() >= end;
            last = self
                .scenarios()
                .into_iter()
                .find(|health| health["name"] == scenario)
                .unwrap_or(last);
            if is(&last) {
                return Ok(last);
            }
            if late {
                return Err(last);
            }
            thread::sleep(LOOK);
        }
    }

    /// The messages of all open findings.
    pub(crate) fn findings(&self) -> Vec<String> {
        let authority = self.url.trim_start_matches("http://").trim_end_matches('/');
        let (host, port) = authority.rsplit_once(':').unwrap();
        let ask = format!(
            "exec 3<>/dev/tcp/{host}/{port}; printf 'GET /api/v1/findings HTTP/1.1\r\nhost: {authority}\r\nconnection: close\r\n\r\n' >&3; cat <&3"
        );
        let output = self
            .host
            .command("bash")
            .args(["-c", &ask])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (_, body) = text
            .split_once("\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {text}"));
        let value: Value = serde_json::from_str(body).unwrap();
        let findings = value["findings"].as_array().unwrap().iter();
        findings
            .map(|finding| finding["message"].as_str().unwrap().to_owned())
            .collect()
    }

    /// The memory that it holds, in MB.
    pub(crate) fn memory(&self) -> u64 {
        // `ip netns exec` becomes the program that it starts.
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.running.0.id())).unwrap();
        assert!(status.starts_with("Name:\tcallsheet"), "{status}");
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
    }
}

/// The time, for what may not take long.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until something is there, at most as long as patience goes.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        thread::sleep(LOOK);
    }
}

/// Waits until `limit` has passed, and looks all the while: what must hold until then.
pub(crate) fn holds_for(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while Instant::now() < end {
        assert!(holds(), "{what} did not hold");
        thread::sleep(LOOK);
    }
}

/// The python that has zeroconf, on a host.
pub(crate) fn python(host: &Host) -> Command {
    host.command(
        &std::env::var("LAB_PYTHON").expect("run `.ci/lab`, which says where python-zeroconf is"),
    )
}

/// An example program, which `cargo test` builds beside the tests.
fn example(name: &str) -> PathBuf {
    let here = std::env::current_exe().unwrap();
    here.parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples")
        .join(name)
}

/// Runs `ip` with these words; what it says when it cannot is what the test fails with.
fn ip(words: &str) {
    let output = Command::new("ip")
        .args(words.split(' '))
        .output()
        .expect("`ip` of iproute2 is needed");
    assert!(
        output.status.success(),
        "ip {words}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Announces one scenario until it is asked to stop; at `SIGUSR1` its record says that it was
/// started anew.
const PUBLISH: &str = r#"
import signal, socket, sys, threading
from zeroconf import IPVersion, ServiceInfo, Zeroconf

address, name, port, identity, ttl = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4], int(sys.argv[5])
zeroconf = Zeroconf(interfaces=[address], ip_version=IPVersion.V4Only)

def service(boot):
    return ServiceInfo(
        "_agent-tools._tcp.local.",
        f"{name}._agent-tools._tcp.local.",
        addresses=[socket.inet_aton(address)],
        port=port,
        properties={"txtvers": "1", "path": "/api/v1/tools", "proto": "1.0", "id": identity, "boot": boot},
        server=f"{name}-host.local.",
        host_ttl=ttl,
        other_ttl=ttl,
    )

changed, stop = threading.Event(), threading.Event()
signal.signal(signal.SIGUSR1, lambda *_: changed.set())
signal.signal(signal.SIGTERM, lambda *_: stop.set())
info = service("first")
zeroconf.register_service(info)
print("announced", flush=True)
while not stop.wait(0.1):
    if changed.is_set():
        changed.clear()
        info = service("second")
        zeroconf.update_service(info)
zeroconf.unregister_service(info)
zeroconf.close()
"#;
