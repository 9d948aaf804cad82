//! `callsheet state export` and `import`: a copy beside a running daemon, its way back, and what is
//! refused.

use std::fs;

use crate::support::command::{Home, Running};

const TARGET: &str = "tool:notes/find_notes";

/// Has a daemon make and leave a state.
fn used(home: &Home) {
    let mut running = home.serve(&["--state", "state.db"]);
    running.signal("TERM");
    assert_eq!(running.ended().0, Some(0));
}

/// The preferences as the daemon on this home has them.
fn preferences(home: &Home) -> String {
    let running = home.serve(&["--state", "state.db"]);
    home.run(&["prefs", "list", "--url", &running.url, "--json"])
        .ok()
}

#[test]
fn an_export_beside_a_running_daemon_brings_its_preferences_to_another_home() {
    let home = Home::with("");
    let running = home.serve(&["--state", "state.db"]);
    home.run(&[
        "prefs",
        "set",
        TARGET,
        "--enabled",
        "false",
        "--url",
        &running.url,
    ])
    .ok();

    let output = home
        .run(&["state", "export", "copy.db", "--state", "state.db"])
        .ok();

    assert_eq!(output, "exported `state.db` to `copy.db`\n");
    let other = Home::with("");
    fs::copy(home.path("copy.db"), other.path("copy.db")).unwrap();
    assert_eq!(
        other
            .run(&["state", "import", "copy.db", "--state", "state.db"])
            .ok(),
        "imported `copy.db` into `state.db`\n"
    );
    let kept = preferences(&other);
    assert!(
        kept.contains(TARGET),
        "the preferences after the import: {kept}"
    );
}

#[test]
fn an_import_keeps_the_state_that_was_there_before() {
    let home = Home::with("");
    used(&home);
    home.run(&["state", "export", "empty.db", "--state", "state.db"])
        .ok();
    let mut running = home.serve(&["--state", "state.db"]);
    home.run(&[
        "prefs",
        "set",
        TARGET,
        "--enabled",
        "false",
        "--url",
        &running.url,
    ])
    .ok();
    running.signal("TERM");
    running.ended();

    let ran = home.run(&["state", "import", "empty.db", "--state", "state.db"]);

    let aside = ran.err.split('`').nth(1).unwrap_or_default().to_owned();
    assert!(aside.starts_with("state.db.replaced-"), "{ran:?}");
    assert!(
        !preferences(&home).contains(TARGET),
        "the imported state has no preference"
    );
}

#[test]
fn an_import_is_refused_while_a_daemon_runs_on_the_state() {
    let home = Home::with("");
    let running = home.serve(&["--state", "state.db"]);
    home.run(&["state", "export", "copy.db", "--state", "state.db"])
        .ok();

    let error = home
        .run(&["state", "import", "copy.db", "--state", "state.db"])
        .failed(1);

    assert!(
        error.contains("another daemon") && error.contains("hint: stop that one"),
        "{error}"
    );
    drop(running);
}

#[test]
fn what_is_no_export_is_refused_and_the_state_stays() {
    let home = Home::with("");
    used(&home);
    let before = fs::read(home.path("state.db")).unwrap();
    home.write(
        "text.db",
        "this is a text and no database, and it is long enough to have a header of its own",
    );
    home.write("empty.db", "");
    fs::write(home.path("half.db"), &before[..before.len() / 2]).unwrap();
    rusqlite::Connection::open(home.path("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE mine (a)")
        .unwrap();

    for (file, why) in [
        ("text.db", "damaged or no database"),
        ("empty.db", "it is empty"),
        ("half.db", "damaged"),
        ("other.db", "another program's database"),
        ("missing.db", "no such file"),
    ] {
        let error = home
            .run(&["state", "import", file, "--state", "state.db"])
            .failed(1);
        assert!(
            error.contains(why) && error.contains(file) && error.contains("hint: "),
            "{file}: {error}"
        );
        assert_eq!(
            fs::read(home.path("state.db")).unwrap(),
            before,
            "the state after {file}"
        );
    }
}

#[test]
fn an_export_writes_over_no_file_and_leaves_none_behind_when_it_fails() {
    let home = Home::with("");
    used(&home);
    home.write("taken.db", "mine");
    home.write(
        "damaged.db",
        "this is a text and no database, and it is long enough to have a header of its own",
    );

    let taken = home
        .run(&["state", "export", "taken.db", "--state", "state.db"])
        .failed(1);
    let damaged = home
        .run(&["state", "export", "new.db", "--state", "damaged.db"])
        .failed(1);
    let missing = home
        .run(&["state", "export", "new.db", "--state", "missing.db"])
        .failed(1);

    assert!(taken.contains("exists already"), "{taken}");
    assert_eq!(fs::read_to_string(home.path("taken.db")).unwrap(), "mine");
    assert!(damaged.contains("not a database"), "{damaged}");
    assert!(missing.contains("no such file"), "{missing}");
    assert!(
        !home.path("new.db").exists(),
        "a failed export leaves no file"
    );
}

#[cfg(unix)]
#[test]
fn an_export_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::with("");
    used(&home);
    home.run(&["state", "export", "copy.db", "--state", "state.db"])
        .ok();

    let mode = fs::metadata(home.path("copy.db"))
        .unwrap()
        .permissions()
        .mode();

    assert_eq!(mode & 0o777, 0o600, "mode {mode:o}");
}

/// A pipe has no end before its writer comes.
#[cfg(unix)]
fn pipe(home: &Home, name: &str) {
    assert!(
        std::process::Command::new("mkfifo")
            .arg(home.path(name))
            .status()
            .unwrap()
            .success()
    );
}

#[cfg(unix)]
fn device(home: &Home, name: &str) {
    std::os::unix::fs::symlink("/dev/zero", home.path(name)).unwrap();
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_in_the_place_of_the_state_refuses_the_start() {
    for (name, is_pipe) in [
        ("state.db", true),
        ("state.db", false),
        ("state.db.lock", true),
    ] {
        let home = Home::with("state.path = \"state.db\"\n");
        if is_pipe {
            pipe(&home, name);
        } else {
            device(&home, name);
        }
        let mut doctor = Running::spawn(home.command(&["doctor"]));
        if name == "state.db" {
            doctor.line(|line| line.contains("a pipe or a device is in its place"));
        }
        doctor.ended();
        let refused = Running::spawn(home.command(&["serve"])).ended();
        assert!(
            refused.0.is_some_and(|code| code != 0),
            "{name}: {refused:?}"
        );
        assert!(
            refused
                .1
                .contains(&format!("{name}` cannot be used: it is not a file")),
            "{name}: {refused:?}"
        );
        assert!(refused.1.contains("move it away"), "{name}: {refused:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_or_a_device_in_the_place_of_the_id_is_not_waited_for() {
    let cases: [fn(&Home, &str); 2] = [pipe, device];
    for put in cases {
        let home = Home::with("");
        put(&home, "state.db.id");
        let mut running = home.serve(&["--state", "state.db"]);
        assert_eq!(running.get("/healthz").0, 200);
        running.signal("TERM");
        let log = running.ended().1;
        assert!(
            log.contains("the daemon's id cannot be kept") && log.contains("state.db.id"),
            "{log}"
        );
        assert!(log.contains("move what is there away"), "{log}");
    }
}

#[cfg(unix)]
#[test]
fn an_import_waits_for_no_pipe_in_the_place_of_an_id() {
    let home = Home::with("");
    used(&home);
    home.run(&["state", "export", "copy.db", "--state", "state.db"])
        .ok();
    let import = |home: &Home| {
        Running::spawn(home.command(&["state", "import", "copy.db", "--state", "new.db"])).ended()
    };
    pipe(&home, "new.db.id");
    let imported = import(&home);
    assert_eq!(imported.0, Some(0), "{imported:?}");
    let id = |name: &str| fs::read_to_string(home.path(name)).unwrap();
    assert_eq!(id("new.db.id"), id("state.db.id"));
    fs::remove_file(home.path("copy.db.id")).unwrap();
    pipe(&home, "copy.db.id");
    let refused = import(&home);
    assert!(refused.0.is_some_and(|code| code != 0), "{refused:?}");
    assert!(
        refused.1.contains("copy.db.id") && refused.1.contains("it is not a file"),
        "{refused:?}"
    );
}
