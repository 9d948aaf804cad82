//! A daemon that is killed at any moment, or whose disk takes nothing more: the real binary, real
//! files.
//!
//! The kills are a few by default. All of them, as they are run before a release:
//! `CALLSHEET_TEST_KILLS=200 cargo test --test store crash::killed`.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

use crate::support::command::{self, Home, Running, Scenario, tool};
use crate::support::torn::{self, send};

const LISTENS: &str = "callsheet listens on ";
/// Where the home's daemon keeps its state.
const STATE: &str = ".state/callsheet/state.db";

/// A home with a scenario that is gone by now and one that was never there, whose daemon knows the
/// first one's list. Stopped as asked.
fn stored() -> Home {
    let kitchen = Scenario::start(
        "kitchen",
        vec![
            tool("brew", "Brews", "drinks"),
            tool("stir", "Stirs", "drinks"),
        ],
    );
    let home = Home::naming(&[("kitchen", &kitchen.url), ("pantry", &refusing())]);
    let mut daemon = home.serve(&[]);
    command::until("the list is there", || names(&daemon) == ["brew", "stir"]);
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
    home
}

/// An address that refuses connections, and that no other test gets while this one runs: a socket
/// stays bound to it and never listens.
fn refusing() -> String {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket
        .bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into())
        .unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    std::mem::forget(socket);
    format!("http://{address}")
}

/// A daemon as soon as it listens.
fn started(home: &Home) -> Running {
    Running::start(home.command(&["serve"]), LISTENS)
}

fn names(daemon: &Running) -> Vec<String> {
    let list = send(&daemon.url, "GET", "/api/v1/tools", None).unwrap();
    assert_eq!(list.status, 200, "{list:?}");
    list.json()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The priorities in force, by scope.
fn priorities(daemon: &Running) -> BTreeMap<String, i64> {
    let all = send(&daemon.url, "GET", "/api/v1/preferences", None)
        .unwrap()
        .json();
    let one = |each: &Value| {
        (
            each["scope"].as_str().unwrap().to_owned(),
            each["priority"].as_i64().unwrap_or_default(),
        )
    };
    all["preferences"]
        .as_array()
        .unwrap()
        .iter()
        .map(one)
        .collect()
}

fn prefer(scope: &str, priority: i64) -> Value {
    json!({"scope": scope, "target": "tool:kitchen/brew", "priority": priority})
}

fn findings(daemon: &Running, code: &str) -> Vec<Value> {
    let all = send(
        &daemon.url,
        "GET",
        &format!("/api/v1/findings?code={code}"),
        None,
    )
    .unwrap();
    all.json()["findings"].as_array().unwrap().clone()
}

fn blocked(daemon: &Running) -> bool {
    send(&daemon.url, "GET", "/api/v1/scenarios/pantry", None)
        .unwrap()
        .json()["state"]
        == "blocked"
}

/// What was acknowledged so far.
#[derive(Default)]
struct Acknowledged {
    /// By scope.
    priorities: BTreeMap<String, i64>,
    /// Whether `pantry` is blocked; two values when the last change was sent and not answered.
    blocked: Vec<bool>,
}

/// Changes preferences until the daemon is gone.
fn prefer_without_end(url: &str, round: usize, acknowledged: &Mutex<Acknowledged>) {
    for n in 0..400_i64 {
        // Half of them are new, half replace what an earlier round stored.
        let scope = if n % 2 == 0 {
            format!("chat:{round}-{n}")
        } else {
            format!("chat:again-{}", n % 7)
        };
        let priority = i64::try_from(round).unwrap() * 1_000 + n;
        let Ok(answer) = send(
            url,
            "PUT",
            "/api/v1/preferences",
            Some(&prefer(&scope, priority)),
        ) else {
            return;
        };
        assert_eq!(answer.status, 200, "{answer:?}");
        acknowledged
            .lock()
            .unwrap()
            .priorities
            .insert(scope, priority);
    }
}

/// Blocks a scenario and takes it back until the daemon is gone.
fn decide_without_end(url: &str, acknowledged: &Mutex<Acknowledged>) {
    for n in 0..400 {
        let block = n % 2 == 0;
        acknowledged.lock().unwrap().blocked.push(block);
        let answer = send(
            url,
            if block { "POST" } else { "DELETE" },
            "/api/v1/scenarios/pantry/block",
            None,
        );
        let Ok(answer) = answer else { return };
        assert_eq!(answer.status, 200, "{answer:?}");
        acknowledged.lock().unwrap().blocked = vec![block];
    }
}

#[test]
fn killed_at_any_moment_it_keeps_what_it_acknowledged() {
    let kills = std::env::var("CALLSHEET_TEST_KILLS")
        .map_or(20, |kills| kills.parse().expect("a number of kills"));
    let home = stored();
    let acknowledged = Mutex::new(Acknowledged::default());
    acknowledged.lock().unwrap().blocked.push(false);
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..kills {
        let mut daemon = started(&home);
        assert_eq!(
            names(&daemon),
            ["brew", "stir"],
            "the last good list is there at once, round {round}"
        );
        assert_eq!(
            findings(&daemon, "state-repaired"),
            Vec::<Value>::new(),
            "round {round}"
        );
        let before = acknowledged.lock().unwrap().priorities.clone();
        let known = priorities(&daemon);
        let is_blocked = blocked(&daemon);
        for (scope, priority) in before {
            // One that was sent and never answered may have replaced it, as long as it is a later
            // one.
            assert!(
                known.get(&scope) >= Some(&priority),
                "round {round}: {scope} was {priority}: {:?}",
                known.get(&scope)
            );
        }
        let may = std::mem::replace(&mut acknowledged.lock().unwrap().blocked, vec![is_blocked]);
        assert!(
            may.contains(&is_blocked),
            "round {round}: blocked {is_blocked}, acknowledged {may:?}"
        );

        let url = daemon.url.clone();
        let enough = random.usize(0..12);
        thread::scope(|scope| {
            scope.spawn(|| prefer_without_end(&url, round, &acknowledged));
            scope.spawn(|| decide_without_end(&url, &acknowledged));
            let of_round = format!("chat:{round}-");
            command::until("some writes are acknowledged", || {
                let acknowledged = acknowledged.lock().unwrap();
                acknowledged
                    .priorities
                    .keys()
                    .filter(|scope| scope.starts_with(&of_round))
                    .count()
                    >= enough / 2
            });
            daemon.signal("KILL");
            assert_eq!(daemon.ended().0, None, "killed, not ended");
        });
    }
}

/// The daemon of `home` in a shell that lets no file grow beyond so many blocks of 512 bytes.
fn limited(home: &Home, blocks: u32) -> Running {
    let serve = home.command(&["serve"]);
    let mut command = Command::new("sh");
    // Without the signal, writing fails as on a full disk.
    command
        .args([
            "-c",
            &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" serve"),
        ])
        .arg(serve.get_program());
    command
        .env_clear()
        .current_dir(home.path(""))
        .stdin(Stdio::null());
    command
        .envs(
            serve
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", "/usr/bin:/bin");
    Running::start(command, LISTENS)
}

fn assert_refused(answer: &torn::Whole) {
    assert!([503, 507].contains(&answer.status), "{answer:?}");
    assert!(
        answer.head.contains("application/problem+json"),
        "{answer:?}"
    );
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.starts_with("the change could not be stored because ")
            && detail.contains("so it has no effect"),
        "{detail}"
    );
}

#[test]
fn a_disk_that_fills_up_costs_changes_and_nothing_else() {
    let home = stored();
    let mut daemon = limited(&home, 400);
    let mut kept = BTreeMap::new();
    let refused = (0..2_000).find_map(|n| {
        let scope = format!("chat:{n}");
        let answer = send(
            &daemon.url,
            "PUT",
            "/api/v1/preferences",
            Some(&prefer(&scope, n)),
        )
        .unwrap();
        if answer.status == 200 {
            kept.insert(scope, n);
            return None;
        }
        Some((scope, answer))
    });
    let (scope, answer) = refused.expect("the disk is full at some time");
    assert!(kept.len() > 3, "{kept:?}");
    assert_refused(&answer);
    assert_refused(&send(&daemon.url, "POST", "/api/v1/scenarios/pantry/block", None).unwrap());
    assert!(!blocked(&daemon));
    assert_eq!(names(&daemon), ["brew", "stir"]);
    assert_eq!(priorities(&daemon), kept, "{scope} is not in force");
    assert_eq!(
        send(&daemon.url, "GET", "/healthz", None).unwrap().status,
        200
    );
    daemon.signal("TERM");
    let (code, log) = daemon.ended();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("a change could not be stored"), "{log}");
    assert_eq!(priorities(&started(&home)), kept);
}

/// What a daemon does that cannot write from its start on.
fn assert_frozen(daemon: &Running, priority: i64) {
    assert_eq!(names(daemon), ["brew", "stir"]);
    assert_eq!(
        priorities(daemon),
        BTreeMap::from([("global".to_owned(), priority)])
    );
    assert_refused(
        &send(
            &daemon.url,
            "PUT",
            "/api/v1/preferences",
            Some(&prefer("chat:1", 1)),
        )
        .unwrap(),
    );
    let found = findings(daemon, "state-failed");
    let message = found.first().expect("a finding")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("state.db")
            && message.contains("changes of preferences and decisions are refused"),
        "{message}"
    );
    assert_eq!(
        send(&daemon.url, "GET", "/healthz", None).unwrap().status,
        200
    );
}

#[test]
fn a_disk_that_is_full_at_the_start_costs_changes_and_nothing_else() {
    let home = stored();
    // Once with nothing but the file, and once with a log beside it, as a killed daemon leaves it.
    for (priority, signal) in [(5, "TERM"), (6, "KILL")] {
        let mut daemon = started(&home);
        assert_eq!(
            send(
                &daemon.url,
                "PUT",
                "/api/v1/preferences",
                Some(&prefer("global", priority))
            )
            .unwrap()
            .status,
            200
        );
        daemon.signal(signal);
        daemon.ended();
        let mut full = limited(&home, 0);
        assert_frozen(&full, priority);
        full.signal("TERM");
        full.ended();
        let daemon = started(&home);
        assert_eq!(
            priorities(&daemon),
            BTreeMap::from([("global".to_owned(), priority)]),
            "after {signal}"
        );
        assert!(findings(&daemon, "state-failed").is_empty());
    }
}

/// The columns that the last steps of the schema added are not there yet.
#[test]
fn calls_and_operations_in_the_state_of_an_earlier_version_are_there_on_a_full_disk() {
    let home = stored();
    let earlier = rusqlite::Connection::open(home.path(STATE)).unwrap();
    earlier
        .execute_batch(
            "ALTER TABLE preferences DROP COLUMN by_client;
             ALTER TABLE approvals DROP COLUMN access;
             ALTER TABLE approvals DROP COLUMN client;
             ALTER TABLE operations DROP COLUMN access;
             ALTER TABLE approvals DROP COLUMN called;
             ALTER TABLE approvals DROP COLUMN called_version;
             PRAGMA user_version = 12;
             INSERT INTO operations (id, tool, behaviour, reference, state, started_at, deadline_at, ended_at)
                VALUES ('8', 'kitchen/brew', '{}', '1', 'succeeded', '2026-03-04T05:06:07Z', '2999-03-04T05:06:07Z',
                    '2999-03-04T05:06:07Z');
             INSERT INTO approvals (id, tool, name, arguments, definition, digest, idempotent, asked_at, expires_at, state)
                VALUES ('7', 'kitchen/brew', 'brew', '{}', 'd0', 'd1', 0, '2026-03-04T05:06:07Z',
                    '2999-03-04T05:06:07Z', 'waiting');
             INSERT INTO preferences (scope, target, priority, updated_at)
                VALUES ('global', 'tool:kitchen/brew', 5, '2026-03-04T05:06:07Z');",
        )
        .unwrap();
    drop(earlier);
    let daemon = limited(&home, 0);
    assert_frozen(&daemon, 5);
    assert_eq!(findings(&daemon, "state-repaired"), Vec::<Value>::new());
    let approvals = send(&daemon.url, "GET", "/api/v1/approvals", None)
        .unwrap()
        .json();
    assert_eq!(approvals["approvals"][0]["id"], "7", "{approvals}");
    let operations = send(&daemon.url, "GET", "/api/v1/operations", None)
        .unwrap()
        .json();
    assert_eq!(operations["operations"][0]["id"], "8", "{operations}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_read_only_state_is_served() {
    let home = stored();
    let mut daemon = started(&home);
    assert_eq!(
        send(
            &daemon.url,
            "PUT",
            "/api/v1/preferences",
            Some(&prefer("global", 5))
        )
        .unwrap()
        .status,
        200
    );
    daemon.signal("TERM");
    daemon.ended();
    let folder = home.path(STATE).parent().unwrap().to_owned();
    for entry in fs::read_dir(&folder).unwrap() {
        set_mode(&entry.unwrap().path(), 0o444);
    }
    for above in [home.path(""), home.path(".state")] {
        set_mode(&above, 0o755);
    }
    set_mode(&folder, 0o555);
    let serve = home.command(&["serve"]);
    let mut command = home.command(&["serve"]);
    if fs::write(folder.join("probe"), "").is_ok() {
        // Permissions bind no administrator, so the daemon runs as nobody in particular.
        command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(serve.get_program())
            .arg("serve");
        command
            .env_clear()
            .current_dir(home.path(""))
            .stdin(Stdio::null());
        command
            .envs(
                serve
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", "/usr/bin:/bin");
    }
    let daemon = Running::start(command, LISTENS);
    assert_frozen(&daemon, 5);
    drop(daemon);
    // Or nothing could remove it.
    set_mode(&folder, 0o755);
}
