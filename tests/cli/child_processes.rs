//! What becomes of child processes when the daemon ends.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::command::{Home, Running, until};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");

/// A wrapper, as `npx` is one: the server is its child. Both outlive SIGTERM and the end of their
/// input, and so does a process in a session of its own, which leaves their group.
fn wrapper() -> String {
    format!(
        "#!/bin/sh\necho $$ > wrapper\n\
         setsid sh -c 'trap \"\" TERM HUP; echo $$ > away; while :; do sleep 1; done' < /dev/null > /dev/null 2>&1 &\n\
         while [ ! -s away ]; do sleep 0.1; done\n\
         sh -c 'trap \"\" TERM HUP; echo $$ > server; python3 {SERVER} modern; while :; do sleep 1; done'\n\
         while :; do sleep 1; done\n"
    )
}

/// Whether a process is there and has not ended; one that has ended may wait for its parent.
fn is_running(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status
        .rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// A daemon with that child, and the ids of the processes.
fn with_child() -> (Home, Running, [String; 3]) {
    let home = Home::with(
        "[[scenarios]]\nname = \"child\"\ncommand = \"./wrapper.sh\"\ncwd = \".\"\n\
         env = { PATH = \"/usr/local/bin:/usr/bin:/bin\" }\n",
    );
    let script = home.write("wrapper.sh", &wrapper());
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = home.serve(&[]);
    until("its tools are listed", || {
        String::from_utf8_lossy(&daemon.get("/api/v1/tools").1).contains("\"write\"")
    });
    let ids = ["wrapper", "server", "away"].map(|name| {
        fs::read_to_string(home.path(name))
            .unwrap()
            .trim()
            .to_owned()
    });
    assert!(ids.iter().all(|id| is_running(id)), "{ids:?}");
    (home, daemon, ids)
}

/// Ends a daemon with a child by a signal; returns its exit code and log.
fn ended_by(signal: &str) -> (Option<i32>, String) {
    let (_home, mut daemon, ids) = with_child();
    daemon.signal(signal);
    let ended = daemon.ended();
    until("all processes have ended", || {
        !ids.iter().any(|id| is_running(id))
    });
    ended
}

#[test]
fn a_daemon_that_is_killed_leaves_no_child_behind() {
    assert_eq!(ended_by("KILL").0, None);
}

#[test]
fn a_daemon_that_is_stopped_waits_for_stubborn_children() {
    let (code, log) = ended_by("TERM");
    assert_eq!(code, Some(0), "{log}");
    let line = log
        .lines()
        .find(|line| line.contains("still stopping"))
        .unwrap_or_default();
    assert!(
        line.contains("waiting for the program of `child`; a second Ctrl-C"),
        "{log}"
    );
}

#[test]
fn a_second_signal_ends_a_daemon_that_waits_for_them_at_once_and_leaves_none_behind() {
    let (_home, mut daemon, ids) = with_child();
    daemon.signal("INT");
    let daemon_id = daemon.id().to_string();
    // One that comes before the first was seen counts as the first.
    until("it has ended", || {
        daemon.signal("INT");
        !is_running(&daemon_id)
    });
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(5), "{log}");
    assert!(
        log.contains(
            "ended at once by a second SIGINT, without waiting for the program of `child`"
        ),
        "{log}"
    );
    until("all processes have ended", || {
        !ids.iter().any(|id| is_running(id))
    });
}

/// Runs that wrote why they ended, as many as one greeting starts, and one after them that is
/// silent.
#[test]
fn lines_of_a_run_that_ended_are_marked_beside_its_successor() {
    let script = format!(
        "#!/bin/sh\nn=$(cat ran 2>/dev/null || echo 0)\n\
         if [ \"$n\" -lt 2 ]; then echo $((n + 1)) > ran; echo no key >&2; exit 3; fi\n\
         exec python3 {SERVER} modern 2>/dev/null\n"
    );
    let home = Home::with(
        "[[scenarios]]\nname = \"child\"\ncommand = \"./server.sh\"\ncwd = \".\"\n\
         env = { PATH = \"/usr/local/bin:/usr/bin:/bin\" }\n",
    );
    let path = home.write("server.sh", &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let daemon = home.serve(&[]);
    until("its tools are listed", || {
        String::from_utf8_lossy(&daemon.get("/api/v1/tools").1).contains("\"write\"")
    });
    let shown = crate::support::command::json(&home.run(&["scenarios", "child", "--json"]).ok());
    assert_eq!(shown["state"], "live", "{shown}");
    assert_eq!(shown["stderr"], serde_json::json!(["no key"]), "{shown}");
    assert_eq!(
        shown["stderr_end"], "the process ended with exit code 3",
        "{shown}"
    );
    let shown = home
        .run(&["scenarios", "child"])
        .ok()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let heading = "the last lines on standard error of the run that ended last (the process ended with exit code 3): no key";
    assert!(shown.contains(heading), "{shown}");
}

/// The sum of a number in a file of each process, in bytes.
fn kib_of(ids: &[String], file: &str, name: &str) -> u64 {
    let of = |id: &String| {
        let text = fs::read_to_string(format!("/proc/{id}/{file}")).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.unwrap().split_whitespace().next().unwrap();
        number.parse::<u64>().unwrap() << 10
    };
    ids.iter().map(of).sum()
}

/// The processes of a group, as the system shows them.
fn group_of(leader: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ids = processes.filter_map(|process| process.file_name().into_string().ok());
    let is_in_group = |id: &String| {
        let stat = fs::read(format!("/proc/{id}/stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat).into_owned();
        let rest = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned());
        rest.is_some_and(|rest| rest.split_whitespace().nth(2) == Some(leader))
    };
    ids.filter(is_in_group).collect()
}

/// The whole group counts, of which the program that was started is the smallest part.
#[test]
#[cfg(target_os = "linux")]
fn what_a_program_costs_is_shown() {
    let (home, daemon, ids) = with_child();
    let shown = crate::support::command::json(&home.run(&["scenarios", "child", "--json"]).ok());
    let program = &shown["program"];
    let group = group_of(&ids[0]);
    // The wrapper, the shell below it and the server; what left the group is not counted.
    assert_eq!(program["processes"], 3, "{program} of {group:?}");
    assert_eq!(program["memory_measure"], "proportional", "{program}");
    let memory = program["memory_bytes"].as_u64().unwrap();
    let server = group.into_iter().find(|id| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).starts_with("python3")
    });
    let server = [server.unwrap()];
    let least = kib_of(&server, "smaps_rollup", "Pss:") / 2;
    let most = 4 * kib_of(&server, "status", "VmRSS:");
    assert!((least..most).contains(&memory), "{memory}: {least}..{most}");
    let time = program["cpu_seconds"].as_f64().unwrap();
    assert!((0.005..60.0).contains(&time), "{program}");

    let (code, listed) = daemon.get("/api/v1/scenarios");
    assert_eq!(code, 200);
    let listed = crate::support::command::json(&String::from_utf8(listed).unwrap());
    // At most a few seconds old, so it may be the same reading.
    let again = &listed["scenarios"][0]["program"];
    assert!(again["memory_bytes"].is_u64(), "{listed}");
    assert!(again["cpu_seconds"].as_f64().unwrap() >= time, "{listed}");
    let metrics = String::from_utf8(daemon.get("/metrics").1).unwrap();
    for name in [
        "callsheet_program_memory_bytes",
        "callsheet_program_cpu_seconds_total",
    ] {
        let line = format!("{name}{{scenario=\"child\"}} ");
        let value = metrics.lines().find_map(|text| text.strip_prefix(&line));
        let value = value.unwrap_or_else(|| panic!("{name} in {metrics}"));
        assert!(value.parse::<f64>().unwrap() > 0.0, "{name} {value}");
    }

    let wide = home.run(&["scenarios", "--wide"]).ok();
    let head = wide.lines().next().unwrap();
    assert!(head.contains("MEMORY") && head.contains("CPU"), "{wide}");
    assert!(wide.contains("1 program started by callsheet, "), "{wide}");
    assert!(wide.contains(" MB"), "{wide}");
    let plain = home.run(&["scenarios"]).ok();
    assert!(!plain.contains("MEMORY"), "{plain}");
    let details = home.run(&["scenarios", "child"]).ok();
    let line = details.lines().find(|line| line.contains("program  "));
    assert!(
        line.is_some_and(|line| line.contains(" of processor time")),
        "{details}"
    );
    let page = String::from_utf8(daemon.get("/dashboard/scenarios/child").1).unwrap();
    assert!(page.contains("of processor time"), "{page}");
}

/// The system would show the cost of any process, but callsheet knows only those that it started.
#[test]
fn a_provider_that_callsheet_did_not_start_has_no_cost() {
    let (home, daemon, _scenarios) = crate::support::command::office();
    let listed = String::from_utf8(daemon.get("/api/v1/scenarios").1).unwrap();
    assert!(!listed.contains("\"program\""), "{listed}");
    let wide = home
        .run(&["scenarios", "--wide", "--url", &daemon.url])
        .ok();
    assert!(wide.contains("0 programs started by callsheet"), "{wide}");
}

/// Signals that stop a service come to the watchdog, too, while the daemon may still need it.
#[test]
fn the_watchdog_ends_with_the_daemon_and_not_before() {
    let mut watchdog = Command::new(env!("CARGO_BIN_EXE_callsheet"));
    let mut watchdog = watchdog
        .arg("watchdog")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let id = watchdog.id().to_string();
    let signals = |line: &str| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let mask = status
            .lines()
            .find_map(|text| text.strip_prefix(line)?.strip_prefix(':'))
            .unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    // SIGTERM is the fifteenth.
    until("it catches signals", || signals("SigCgt") & (1 << 14) != 0);
    for signal in ["-TERM", "-INT", "-HUP"] {
        assert!(
            Command::new("kill")
                .args([signal, &id])
                .status()
                .unwrap()
                .success()
        );
    }
    until("they have been delivered", || {
        signals("SigPnd") == 0 && signals("ShdPnd") == 0
    });
    // It still takes note of a child, and ends it when the daemon is gone.
    let mut child = Command::new("sleep")
        .arg("600")
        .process_group(0)
        .spawn()
        .unwrap();
    let mut input = watchdog.stdin.take().unwrap();
    writeln!(input, "+{}", child.id()).unwrap();
    drop(input);
    until("the child has been ended", || {
        child.try_wait().unwrap().is_some()
    });
    assert!(watchdog.wait().unwrap().success());
}
