//! `callsheet service`: the unit that is written, what is never replaced, and what happens without
//! systemd. Whether systemd takes the unit is checked by `.ci/packaging`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::command::{Home, Ran, run};

const UNIT: &str = ".config/systemd/user/callsheet.service";

/// Runs `callsheet service` where `systemctl` is a script of this home. It notes its arguments,
/// and fails while there is a file `refuse`.
fn service(home: &Home, args: &[&str]) -> Ran {
    let folder = home.path("bin");
    fs::create_dir_all(&folder).unwrap();
    let script = "#!/bin/sh\necho \"$*\" >>\"$HOME/systemctl.log\"\n\
                  if [ -e \"$HOME/refuse\" ]; then echo 'Failed to connect to bus' >&2; exit 1; fi\n";
    let program = home.write("bin/systemctl", script);
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    run(home
        .command(&[&["service"], args].concat())
        .env("PATH", format!("{}:/bin:/usr/bin", folder.display())))
}

/// The value of a key of the written unit.
fn value(home: &Home, key: &str) -> Option<String> {
    let unit = fs::read_to_string(home.path(UNIT)).unwrap();
    unit.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
}

#[test]
fn install_writes_a_unit_that_starts_this_program_and_enables_it() {
    let home = Home::with("");
    let output = service(&home, &["install"]).ok();
    assert!(
        output.contains(&home.path(UNIT).display().to_string()),
        "{output}"
    );
    let program = env!("CARGO_BIN_EXE_callsheet");
    assert_eq!(
        value(&home, "ExecStart"),
        Some(format!("\"{program}\" serve"))
    );
    assert_eq!(value(&home, "KillMode").as_deref(), Some("mixed"));
    // These two end Node and hide the folders that MCP servers work in.
    assert_eq!(value(&home, "MemoryDenyWriteExecute"), None);
    assert_eq!(value(&home, "ProtectHome"), None);
    let called = fs::read_to_string(home.path("systemctl.log")).unwrap();
    assert_eq!(
        called,
        "--user daemon-reload\n--user enable --now callsheet.service\n"
    );
}

#[test]
fn install_with_a_configuration_names_it_quoted_for_systemd() {
    let home = Home::with("");
    let config = home.write("100% mine.toml", "");
    service(
        &home,
        &["install", "--config", "100% mine.toml", "--no-start"],
    )
    .ok();
    let start = value(&home, "ExecStart").unwrap();
    let quoted = config.display().to_string().replace('%', "%%");
    assert!(
        start.ends_with(&format!("serve --config \"{quoted}\"")),
        "{start}"
    );
    assert!(
        !home.path("systemctl.log").exists(),
        "`--no-start` calls no systemd"
    );
    let refused = service(&home, &["install", "--config", "absent.toml"]).failed(2);
    assert!(refused.contains("absent.toml"), "{refused}");
}

#[test]
fn uninstall_stops_the_service_and_removes_only_a_unit_of_callsheet() {
    let home = Home::with("");
    let refused = service(&home, &["uninstall"]).failed(1);
    assert!(refused.contains("not installed"), "{refused}");
    service(&home, &["install", "--no-start"]).ok();
    service(&home, &["uninstall"]).ok();
    assert!(!home.path(UNIT).exists());
    let called = fs::read_to_string(home.path("systemctl.log")).unwrap();
    assert_eq!(
        called,
        "--user disable --now callsheet.service\n--user daemon-reload\n"
    );
    home.write(UNIT, "[Service]\nExecStart=/opt/mine\n");
    for action in ["install", "uninstall"] {
        let refused = service(&home, &[action]).failed(1);
        assert!(
            refused.contains("was not written by callsheet"),
            "{refused}"
        );
    }
    assert_eq!(value(&home, "ExecStart").as_deref(), Some("/opt/mine"));
}

#[test]
fn a_systemd_that_refuses_is_quoted_and_the_command_to_run_is_named() {
    let home = Home::with("");
    home.write("refuse", "");
    let ran = service(&home, &["install"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("Failed to connect to bus"), "{}", ran.err);
    assert!(
        ran.err.contains("systemctl --user daemon-reload"),
        "{}",
        ran.err
    );
    let without = run(home
        .command(&["service", "install"])
        .env("PATH", home.path("absent")));
    assert!(
        without.err.contains("systemd is not installed"),
        "{}",
        without.err
    );
    assert!(home.path(UNIT).exists(), "the unit is written all the same");
}
