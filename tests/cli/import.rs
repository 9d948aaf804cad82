//! `callsheet import`: the servers of MCP clients become scenarios that are called, their secrets
//! go to a file of their own, and what is left out is said.

use std::fs;

use serde_json::json;

use crate::support::command::{Home, json as json_of, until};

/// The file of a client with these entries.
fn client_file(home: &Home, entries: &serde_json::Value) {
    fs::create_dir_all(home.path(".cursor")).unwrap();
    let text = json!({"mcpServers": entries}).to_string();
    home.write(".cursor/mcp.json", &format!("// of a person\n{text}"));
}

fn server() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py").to_owned()
}

#[test]
fn servers_of_a_client_are_shown_then_written_and_then_called() {
    let home = Home::with("");
    client_file(
        &home,
        &json!({
            "child": {"command": "python3", "args": [server(), "legacy"], "env": {"API_KEY": "topsecret-topsecret"}, "alwaysAllow": ["read"]},
            "callsheet": {"command": "callsheet", "args": ["mcp"]},
            "off": {"command": "x", "disabled": true},
            "unset": {"command": "x", "env": {"A": "${NOT_SET_ANYWHERE}"}},
        }),
    );
    let before = fs::read_to_string(home.path("callsheet.toml")).unwrap();

    let mut import = home.command(&["import"]);
    let shown = import
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();

    for part in [
        "python3",
        "1 server can be taken",
        "callsheet itself",
        "switched it off",
        "`${NOT_SET_ANYWHERE}` has no value",
        "alwaysAllow has no meaning here",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    let report = json_of(&home.run(&["import", "--json"]).ok());
    assert_eq!(report["servers"][0]["name"], "child", "{report:#}");
    assert_eq!(
        report["servers"][0]["ignored"],
        json!(["alwaysAllow"]),
        "{report:#}"
    );
    assert_eq!(
        report["left_out"].as_array().unwrap().len(),
        3,
        "{report:#}"
    );
    assert_eq!(report["written"], false, "{report:#}");
    assert!(
        !report.to_string().contains("topsecret-topsecret"),
        "{report:#}"
    );
    assert_eq!(
        fs::read_to_string(home.path("callsheet.toml")).unwrap(),
        before,
        "nothing is written unasked"
    );

    let mut import = home.command(&["import", "--write"]);
    let written = import
        .env("PATH", std::env::var_os("PATH").unwrap())
        .output()
        .unwrap();
    assert!(written.status.success(), "{written:?}");
    let configured = fs::read_to_string(home.path("callsheet.toml")).unwrap();
    assert!(
        configured.starts_with(&before) && !configured.contains("topsecret-topsecret"),
        "{configured}"
    );
    assert!(
        configured.contains("# From ~/"),
        "two servers of one name can be told apart: {configured}"
    );
    assert!(
        fs::read_to_string(home.path("secrets.toml"))
            .unwrap()
            .contains("topsecret-topsecret")
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(home.path("secrets.toml"))
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }
    let again = home.run(&["import"]).ok();
    assert!(
        again.contains("the configuration has a scenario `child` already"),
        "{again}"
    );

    let running = home.serve(&["--state", "state.db"]);
    until("the tool is called", || {
        let called = home.run(&[
            "call",
            "--args",
            r#"{"a":1}"#,
            "--url",
            &running.url,
            "read",
        ]);
        called.code == Some(0) && called.out.contains("\"a\": 1")
    });
}

/// Their names say only that they are two.
#[test]
fn servers_of_one_name_are_told_apart_by_what_differs() {
    let home = Home::with("");
    let memory = |file: &str| json!({"command": "npx", "args": ["-y", "server-memory"], "env": {"LANG": "C", "MEMORY_FILE": file}});
    client_file(
        &home,
        &json!({
            "memory": memory("/home/ada/topsecret-first.json"),
            "memory ": memory("/home/ada/topsecret-other.json"),
            "other": {"command": "npx", "args": ["-y", "server-other"], "env": {"A": "b"}},
        }),
    );
    let shown = home.run(&["import"]).ok();
    let row = |name: &str| {
        shown
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{shown}"))
    };
    for name in ["memory ", "memory-2 "] {
        assert!(
            row(name).contains("npx -y server-memory (its own `MEMORY_FILE`)"),
            "{shown}"
        );
    }
    assert!(
        row("other ").contains("npx -y server-other") && !row("other ").contains("its own"),
        "{shown}"
    );
    assert!(!shown.contains("topsecret"), "{shown}");
    home.run(&["import", "--write"]).ok();
    let again = home.run(&["import"]).ok();
    assert_eq!(
        again,
        "left out: 3 servers that the configuration has already: memory, memory-2, other\nno server can be taken\n"
    );
    let report = json_of(&home.run(&["import", "--json"]).ok());
    assert_eq!(
        report["left_out"].as_array().unwrap().len(),
        3,
        "{report:#}"
    );
}

#[test]
fn a_file_that_is_none_of_a_client_is_refused_with_the_reason() {
    let home = Home::with("");
    for (text, part) in [
        ("{", "not JSON"),
        ("{\"a\": 1}", "no servers under `mcpServers`"),
    ] {
        home.write("other.json", text);
        let ran = home.run(&["import", "other.json"]);
        assert!(ran.code == Some(2) && ran.err.contains(part), "{ran:?}");
    }
    let ran = home.run(&["import", "missing.json"]);
    assert!(
        ran.code == Some(2) && ran.err.contains("missing.json"),
        "{ran:?}"
    );
    let ran = home.run(&["import"]);
    assert!(
        ran.code == Some(1) && ran.err.contains("no file of a known client"),
        "{ran:?}"
    );
}

/// The default of `claude mcp add` keeps a server for one project.
#[test]
fn servers_of_the_present_project_are_taken_and_those_of_others_are_named() {
    let home = Home::with("[[scenarios]]\nname = \"known\"\nurl = \"http://127.0.0.1:9/mcp\"\n");
    let here = fs::canonicalize(home.path("")).unwrap();
    let projects = json!({
        here.to_str().unwrap(): {"mcpServers": {
            "own": {"url": "http://127.0.0.1:8/mcp"}, "same": {"url": "http://localhost:9/mcp"}}},
        "/home/ada/there": {"mcpServers": {"far": {"url": "http://127.0.0.1:7/mcp"}}},
    });
    home.write(
        ".claude.json",
        &json!({"numStartups": 1, "projects": projects}).to_string(),
    );
    let shown = home.run(&["import"]).ok();
    assert!(
        shown.contains("1 server can be taken") && shown.contains("own  "),
        "{shown}"
    );
    assert!(
        shown.contains("left out: far (")
            && shown.contains("it belongs to the project /home/ada/there; "),
        "{shown}"
    );
    assert!(
        shown.contains("left out: same (") && shown.contains("has it already, as `known`"),
        "{shown}"
    );
    home.run(&["import", "--write"]).ok();
    let written = fs::read_to_string(home.path("callsheet.toml")).unwrap();
    assert!(
        written.contains("url = \"http://127.0.0.1:8/mcp\"\nprotocol = \"mcp\"\n"),
        "no entry of such a file is probed: {written}"
    );
}

/// A file of a client is written by other programs, and a person reads what is left out of it on a
/// terminal.
#[test]
fn what_is_left_out_cannot_control_a_terminal() {
    let home = Home::with("");
    client_file(
        &home,
        &json!({
            "a\u{1b}]0;title\u{7}": {"url": "http://\u{1b}[31m/"},
            "b\u{202e}": {"command": "no-such-command\u{9b}31m", "odd\u{1b}[2J": 1},
        }),
    );
    for arguments in [&["import"][..], &["init", ".cursor/mcp.json"]] {
        let ran = home.run(arguments);
        let shown = format!("{}{}", ran.out, ran.err);
        assert!(shown.contains("left out: a]0;title"), "{shown}");
        let steers = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(!shown.contains(steers), "{shown:?}");
    }
}
