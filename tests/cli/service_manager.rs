//! What a service manager is told by the real daemon, over a real socket (`sd_notify(3)`), and what
//! the unit in `config/systemd` promises.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use callsheet::provide::ToolDefinition;
use callsheet::runtime::Clock;

use crate::support::command::{Home, Running, Scenario};

const PATIENCE: Duration = Duration::from_secs(30);
const UNIT: &str = include_str!("../../config/systemd/callsheet.service");

/// The manager's end, with every line that it was told.
struct Manager {
    socket: UnixDatagram,
    heard: Vec<String>,
}

impl Manager {
    fn of(home: &Home) -> Self {
        let socket = UnixDatagram::bind(home.path("notify")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            socket,
            heard: Vec::new(),
        }
    }

    /// Where the first such line is, from `from` on. Fails the test when it does not come.
    #[track_caller]
    fn until(&mut self, from: usize, fits: impl Fn(&str) -> bool) -> usize {
        let clock = Clock::system();
        let end = clock.now() + PATIENCE;
        let mut at = from;
        loop {
            if let Some(found) = self.heard.iter().skip(at).position(|line| fits(line)) {
                return at + found;
            }
            at = self.heard.len().max(from);
            assert!(
                clock.now() < end,
                "it was not told behind {from}: {:#?}",
                self.heard
            );
            let mut bytes = [0; 4_096];
            let length = match self.socket.recv(&mut bytes) {
                Ok(length) => length,
                // A signal, as of a child of another test that ended: a receive with a timeout is
                // never restarted (signal(7)).
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => panic!("it was not told behind {from}: {error}: {:#?}", self.heard),
            };
            let text = std::str::from_utf8(&bytes[..length]).unwrap();
            self.heard.extend(text.lines().map(str::to_owned));
        }
    }

    /// Where a whole reload begins and ends, and when it began by the monotonic clock in
    /// microseconds.
    #[track_caller]
    fn reload(&mut self, from: usize) -> (usize, usize, u64) {
        let begun = self.until(from, |line| line == "RELOADING=1");
        let ended = self.until(begun, |line| line == "READY=1");
        let again = self.heard[begun + 1..ended]
            .iter()
            .any(|line| line == "RELOADING=1");
        assert!(!again, "each reload begins once: {:#?}", self.heard);
        let at = self.heard[begun + 1]
            .strip_prefix("MONOTONIC_USEC=")
            .unwrap();
        (begun, ended, at.parse().unwrap())
    }
}

fn serve(home: &Home, watchdog: &str) -> Running {
    let mut command = home.command(&["serve"]);
    command
        .env("NOTIFY_SOCKET", home.path("notify"))
        .env("WATCHDOG_USEC", watchdog);
    Running::start(command, "callsheet listens on ")
}

#[test]
fn a_manager_is_told_of_a_whole_life() {
    let notes = Scenario::start(
        "notes",
        vec![ToolDefinition::new("add_note", "Writes a note down").unwrap()],
    );
    let home = Home::naming(&[("notes", &notes.url)]);
    let mut manager = Manager::of(&home);
    let mut daemon = serve(&home, "");
    // The first telling of all is that it is ready; it listens by then.
    let start = manager.until(0, |line| line.starts_with("STATUS=scenarios: "));
    assert_eq!(start, 1);
    assert_eq!(manager.heard[0].as_str(), "READY=1");
    assert_eq!(daemon.get("/healthz").0, 200);
    let start = manager.until(start, |line| line == "STATUS=scenarios: 1 live; tools: 1");

    // Asked for, it is told even when nothing changed.
    daemon.signal("HUP");
    let (_, ended, first) = manager.reload(start);
    // Not asked for, when something did.
    home.write(
        "callsheet.toml",
        "server.listen = \"127.0.0.1:0\"\nhealth.grace = \"1m\"\n",
    );
    let (begun, ended, second) = manager.reload(ended);
    assert!(first > 0 && second > first, "{first} {second}");
    let quiet = manager
        .until(begun, |line| {
            line == "STATUS=scenarios: 1 removed; tools: 0"
        })
        .max(ended);
    // What cannot be used ends as well, and is told.
    home.write("callsheet.toml", "health.grace = \"soon\"\n");
    daemon.signal("HUP");
    let (_, ended, _) = manager.reload(quiet);
    manager.until(quiet, |line| {
        line == "STATUS=scenarios: 1 removed; tools: 0; configuration refused"
    });

    daemon.signal("TERM");
    let last = manager.until(ended, |line| line == "STOPPING=1");
    assert_eq!(
        manager.until(last, |line| line == "STATUS=stopping"),
        last + 1
    );
    assert_eq!(daemon.ended().0, Some(0));
}

#[test]
fn a_watchdog_hears_that_it_is_alive_and_nobody_else_does() {
    let home = Home::with("");
    let mut manager = Manager::of(&home);
    let daemon = serve(&home, "300000");
    let clock = Clock::system();
    let mut at = manager.until(0, |line| line == "WATCHDOG=1");
    let from = clock.now();
    for _ in 0..4 {
        at = manager.until(at + 1, |line| line == "WATCHDOG=1");
    }
    // Twice in each interval.
    assert!(
        from.elapsed() > Duration::from_millis(300),
        "{:?}",
        from.elapsed()
    );
    drop(daemon);

    let quiet = Home::with("");
    let mut manager = Manager::of(&quiet);
    let daemon = serve(&quiet, "");
    manager.until(0, |line| line == "READY=1");
    daemon.signal("TERM");
    manager.until(0, |line| line == "STOPPING=1");
    assert!(
        !manager
            .heard
            .iter()
            .any(|line| line.starts_with("WATCHDOG")),
        "{:#?}",
        manager.heard
    );
}

#[test]
fn a_manager_that_is_gone_keeps_nobody_from_serving() {
    let home = Home::with("");
    drop(Manager::of(&home));
    let mut daemon = serve(&home, "100000");
    assert_eq!(daemon.get("/healthz").0, 200);
    daemon.signal("TERM");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(
        log.contains("notifying the service manager failed"),
        "{log}"
    );
}

#[test]
fn the_unit_says_what_the_daemon_does() {
    let value = |key: &str| {
        UNIT.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    assert_eq!(value("Type"), Some("notify"));
    assert!(
        value("WatchdogSec").is_some()
            && value("ExecReload").is_some_and(|reload| reload.contains("-HUP"))
    );
    // The arguments are those of the command line.
    let arguments: Vec<&str> = value("ExecStart").unwrap().split(' ').skip(1).collect();
    let home = Home::with("");
    assert!(
        home.run(&[&arguments[..], &["--help"]].concat())
            .ok()
            .contains("Usage: callsheet serve")
    );
    // A restart helps against nothing that these codes mean.
    assert_eq!(value("RestartPreventExitStatus"), Some("2 4"));
    let help = home.run(&["--help"]).ok();
    assert!(
        help.contains("2  wrong usage") && help.contains("4  the configuration is wrong"),
        "{help}"
    );
    // The state is where the sandbox lets it be written.
    let folder = value("StateDirectory").unwrap();
    assert_eq!(
        value("Environment"),
        Some(format!("CALLSHEET_STATE__PATH=%S/{folder}/state.db").as_str())
    );
}
