//! What becomes of child processes when the daemon is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test's helpers fail by panicking, like the test itself")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use callsheet::model::StdioTarget;
use callsheet::runtime::Clock;
use callsheet::transports::Transports;
use callsheet::transports::stdio::Children;
use callsheet::transports::stdio::watchdog::WatchdogCommand;

use crate::support::upstream_server::{client, limits};

/// Names the folder in which a process of this test is the daemon that is killed.
const FOLDER: &str = "CALLSHEET_TEST_FOLDER";

/// A wrapper, as `npx` is one: the server is its child, and ignores the end of its input and SIGTERM.
const WRAPPER: &str = "#!/bin/sh\n\
    sh -c 'trap \"\" TERM HUP; echo $$ > server; while :; do sleep 1; done' &\n\
    echo $$ > wrapper\n\
    wait\n";

/// Looks again until it is so, for half a minute.
fn until(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..1_500 {
        if is_so() {
            return;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("not in time: {what}");
}

/// The process id in a file, once it is whole.
fn id(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    text.ends_with('\n').then(|| text.trim().to_owned())
}

/// Whether a process is there and has not ended; one that has ended may wait for its parent.
fn is_running(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Starts the wrapper as a daemon does, and waits to be killed.
async fn be_a_daemon(folder: &Path) {
    let watchdog = WatchdogCommand { program: env!("CARGO_BIN_EXE_callsheet").into(), args: vec!["watchdog".into()] };
    let children = Children::watched(Clock::system(), Some(watchdog));
    let transports = Transports::new(client(limits(), 1)).with_children(children);
    let target = StdioTarget::new("./wrapper.sh").with_cwd(Some(folder.to_owned()));
    let _child = transports.stdio(&target).unwrap();
    std::future::pending::<()>().await;
}

/// This test runs itself again as the daemon.
#[tokio::test]
async fn a_daemon_that_is_killed_leaves_no_child_behind() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return be_a_daemon(Path::new(&folder)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("wrapper.sh");
    fs::write(&script, WRAPPER).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut daemon = Command::new(std::env::current_exe().unwrap());
    daemon.args(["--exact", "child_processes::a_daemon_that_is_killed_leaves_no_child_behind"]);
    let mut daemon = daemon.env(FOLDER, folder.path()).stdout(Stdio::null()).spawn().unwrap();
    let files = ["wrapper", "server"].map(|name| folder.path().join(name));
    until("both processes have started", || files.iter().all(|file| id(file).is_some()));
    let ids = files.map(|file| id(&file).unwrap());
    assert!(ids.iter().all(|id| is_running(id)), "{ids:?}");
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    until("both processes have ended", || !ids.iter().any(|id| is_running(id)));
}

/// Signals that stop a service come to the watchdog, too, while the daemon may still need it.
#[test]
fn the_watchdog_ends_with_the_daemon_and_not_before() {
    let mut watchdog = Command::new(env!("CARGO_BIN_EXE_callsheet"));
    let mut watchdog = watchdog.arg("watchdog").stdin(Stdio::piped()).spawn().unwrap();
    let id = watchdog.id().to_string();
    let catches_signals = || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        // SIGTERM is the fifteenth.
        caught.is_some_and(|caught| u64::from_str_radix(caught.trim(), 16).unwrap_or_default() & (1 << 14) != 0)
    };
    until("it catches signals", catches_signals);
    for signal in ["-TERM", "-INT", "-HUP"] {
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }
    sleep(Duration::from_millis(200));
    assert!(watchdog.try_wait().unwrap().is_none(), "it was ended by a signal");
    drop(watchdog.stdin.take());
    assert!(watchdog.wait().unwrap().success());
}
