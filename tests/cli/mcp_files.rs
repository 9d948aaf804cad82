//! Files of MCP clients that are followed: no version of an entry is started or contacted before an
//! operator accepts it.

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::command::{Home, Running, until};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");

/// Follows `.cursor/mcp.json`, which gets these entries.
fn home(entries: &Value) -> Home {
    let home = Home::with("mcp.files = [\"~/.cursor/mcp.json\"]\n");
    fs::create_dir_all(home.path(".cursor")).unwrap();
    write(&home, entries);
    home
}

fn write(home: &Home, entries: &Value) {
    home.write(
        ".cursor/mcp.json",
        &json!({"mcpServers": entries}).to_string(),
    );
}

/// A server that leaves a file behind when it is started.
fn marked(home: &Home, mark: &str) -> Value {
    let mark = home.path(mark).display().to_string();
    let script = format!("touch {mark}; exec python3 {SERVER} modern");
    json!({"command": "sh", "args": ["-c", script], "env": {"PATH": "/usr/local/bin:/usr/bin:/bin", "API_KEY": "topsecret-topsecret"}})
}

fn scenario(running: &Running, name: &str) -> Value {
    serde_json::from_slice(&running.get(&format!("/api/v1/scenarios/{name}")).1).unwrap()
}

fn findings(running: &Running) -> String {
    String::from_utf8(running.get("/api/v1/findings").1).unwrap()
}

#[test]
fn an_entry_is_started_when_an_operator_accepts_it_and_not_before() {
    let home = home(&json!({}));
    let entries = json!({
        "child": marked(&home, "first"),
        "itself": {"command": "/usr/bin/callsheet", "args": ["mcp"]},
        "off": {"command": "x", "disabled": true},
        "unset": {"command": "x", "env": {"A": "${NOT_SET_ANYWHERE}"}},
    });
    write(&home, &entries);
    let mut serve = home.command(&["serve"]);
    serve.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let running = Running::start(serve, "callsheet listens on ");

    until("the entry waits", || {
        scenario(&running, "child")["state"] == "pending"
    });
    let waiting = scenario(&running, "child");
    let reason = waiting["reason"].as_str().unwrap();
    for part in ["sh -c", "first", "API_KEY", "callsheet trust child"] {
        assert!(reason.contains(part), "{part} is missing in {reason}");
    }
    assert!(
        !waiting.to_string().contains("topsecret-topsecret"),
        "{waiting}"
    );
    let found = findings(&running);
    for part in ["callsheet itself", "switched it off", "NOT_SET_ANYWHERE"] {
        assert!(found.contains(part), "{part} is missing in {found}");
    }
    let refused = home.run(&["refresh", "child", "--url", &running.url]);
    assert!(refused.err.contains("waits for approval"), "{refused:?}");
    assert!(!home.path("first").exists(), "it was started");

    home.run(&["trust", "child", "--url", &running.url]).ok();
    until("its tools are listed", || {
        scenario(&running, "child")["tools"]["published"] == 2
    });
    assert!(home.path("first").exists());

    // Another program writes another command into the file.
    write(&home, &json!({"child": marked(&home, "second")}));
    until("the changed entry waits", || {
        scenario(&running, "child")["state"] == "pending"
    });
    let changed = scenario(&running, "child");
    let reason = changed["reason"].as_str().unwrap();
    assert!(
        reason.contains("changed since an operator accepted") && reason.contains("second"),
        "{reason}"
    );
    assert!(
        !String::from_utf8(running.get("/api/v1/tools").1)
            .unwrap()
            .contains("\"read\"")
    );
    assert!(!home.path("second").exists(), "it was started");

    home.run(&["trust", "child", "--url", &running.url]).ok();
    until("its tools are listed again", || {
        scenario(&running, "child")["tools"]["published"] == 2
    });
    assert!(home.path("second").exists());
    // What was accepted stays accepted over a restart, and what is taken out goes.
    drop(running);
    let running = home.serve(&[]);
    until("it is started again", || {
        scenario(&running, "child")["state"] == "live"
    });
    write(&home, &json!({}));
    until("it is removed", || {
        scenario(&running, "child")["state"] == "removed"
    });
}

#[test]
fn an_address_is_not_contacted_before_it_is_accepted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let entry = |path: &str| json!({"web": {"url": format!("http://{address}/{path}"), "headers": {"X-Key": "topsecret-topsecret"}, "timeout": 60}});
    let home = home(&entry("mcp"));
    let running = home.serve(&[]);

    until("the entry waits", || {
        scenario(&running, "web")["state"] == "pending"
    });
    let waiting = scenario(&running, "web");
    assert!(
        waiting["reason"]
            .as_str()
            .unwrap()
            .contains(&format!("would contact http://{address}/mcp")),
        "{waiting}"
    );
    assert!(
        !waiting.to_string().contains("topsecret-topsecret")
            && findings(&running).contains("timeout"),
        "{waiting}"
    );
    let before = waiting["origin"].as_str().unwrap().to_owned();
    assert!(listener.accept().is_err(), "it was contacted");

    // Another path of the same server is another version of the entry.
    write(&home, &entry("other"));
    until("the change is seen", || {
        scenario(&running, "web")["origin"] != before.as_str()
    });
    let late = home.run(&["trust", "web", "--at", &before, "--url", &running.url]);
    assert!(
        late.code == Some(1) && late.err.contains("now"),
        "an old look accepts nothing new: {late:?}"
    );
    home.run(&["trust", "web", "--url", &running.url]).ok();
    until("it is contacted", || listener.accept().is_ok());
}

#[test]
fn an_import_accepts_an_entry_by_writing_it_into_the_configuration() {
    let home = home(&json!({}));
    write(&home, &json!({"child": marked(&home, "first")}));
    let path = "/usr/local/bin:/usr/bin:/bin";
    let mut serve = home.command(&["serve"]);
    serve.env("PATH", path);
    let running = Running::start(serve, "callsheet listens on ");
    until("the entry waits", || {
        scenario(&running, "child")["state"] == "pending"
    });

    let mut import = home.command(&["import", ".cursor/mcp.json", "--write"]);
    assert!(import.env("PATH", path).output().unwrap().status.success());
    until("its tools are listed", || {
        scenario(&running, "child")["tools"]["published"] == 2
    });
    assert_eq!(scenario(&running, "child")["source"], "static");
    assert!(
        !findings(&running).contains("source-shadowed"),
        "the file says the same"
    );

    // What the file says from now on is a finding, and starts nothing.
    write(&home, &json!({"child": marked(&home, "second")}));
    until("the difference is said", || {
        findings(&running).contains("source-shadowed")
    });
    assert_eq!(scenario(&running, "child")["tools"]["published"], 2);
    assert!(!home.path("second").exists(), "it was started");
}

#[test]
fn servers_can_be_written_into_the_configuration_as_clients_write_them() {
    let config = format!(
        "[mcpServers.child]\ncommand = \"python3\"\nargs = [{SERVER:?}, \"modern\"]\nalwaysAllow = [\"read\"]\n\
         env = {{ API_KEY = \"topsecret-topsecret\", PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n\
         [mcpServers.unset]\ncommand = \"x\"\nenv = {{ A = \"${{NOT_SET_ANYWHERE}}\" }}\n"
    );
    let home = Home::with(&config);
    let mut serve = home.command(&["serve"]);
    serve.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let running = Running::start(serve, "callsheet listens on ");

    until("its tools are listed", || {
        scenario(&running, "child")["tools"]["published"] == 2
    });
    let found = findings(&running);
    assert!(
        found.contains("alwaysAllow") && found.contains("NOT_SET_ANYWHERE"),
        "{found}"
    );
    let shown = home.run(&["config", "show"]).ok();
    assert!(
        shown.contains("mcpServers.child") && !shown.contains("topsecret-topsecret"),
        "{shown}"
    );
    let mut foreign = home.command(&["config", "show"]);
    foreign.env("CALLSHEET_MCP__FILES", "[/tmp/mcp.json]");
    let refused = foreign.output().unwrap();
    assert!(
        String::from_utf8(refused.stderr)
            .unwrap()
            .contains("configuration file only"),
        "a variable named programs"
    );
}
