//! Which programs the command line sends the operator's token to.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::support::command::{
    Home, Running, Scenario, is_installed, json, nobody, run, tool, until,
};

const TOKEN: &str = "an-operator-token-of-this-test";
/// A user without rights (`nobody` of most systems).
const OTHER_USER: u32 = 65_534;

/// A server that answers everything as a daemon might, and says at `/seen` what came.
const IMPOSTOR: &str = r#"
import http.server, json
seen = []
answer = {"name": "callsheet", "version": "9.9.9", "state": "live", "reason": "", "approvals": [], "operations": [],
          "scenarios": [], "more": False, "awaited": [], "configuration": None}
class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self):
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/seen":
            body = json.dumps(seen).encode()
        else:
            seen.append(f"{self.command} {self.path} {self.headers.get('authorization')}")
            body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = reply
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"listens on http://127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
"#;

/// Such a server of another user, if this test may start one.
#[expect(
    clippy::print_stderr,
    reason = "the log has to show that a test was skipped"
)]
fn impostor() -> Option<Running> {
    if fs::metadata("/proc/self").map_or(true, |about| about.uid() != 0) {
        eprintln!("skipped: only root can start a program of another user");
        return None;
    }
    if !is_installed("python3") {
        return None;
    }
    let mut command = Command::new("python3");
    command
        .args(["-c", IMPOSTOR])
        .current_dir("/")
        .stdin(Stdio::null())
        .uid(OTHER_USER)
        .gid(OTHER_USER);
    Some(Running::start(command, "listens on "))
}

/// The requests that came to it: method, path and `Authorization`.
fn seen(impostor: &Running) -> Vec<String> {
    serde_json::from_slice(&impostor.get("/seen").1).unwrap()
}

/// A home whose daemon, which does not run, has this address.
fn home_at(url: &str) -> Home {
    let home = Home::new();
    let listen = url.strip_prefix("http://").unwrap();
    home.write(
        "callsheet.toml",
        &format!("[server]\nlisten = \"{listen}\"\noperator_token = \"{TOKEN}\"\n"),
    );
    home.write("tools.zip", "");
    home
}

/// Runs what operators do, which fails with this in its error.
fn assert_not_sent(home: &Home, url: &str) {
    for args in [
        &["trust", "notes"][..],
        &["block", "notes", "--undo"],
        &["forget", "notes"],
        &["login", "notes", "--no-browser"],
        &["approvals", "approve", "0190"],
        &["operations", "cancel", "0190"],
        &["prefs", "set", "tool:notes/wipe", "--enabled", "true"],
        &["bundle", "import", "tools.zip"],
        &["logs", "--json"],
    ] {
        let error = home.run(args).failed(3);
        assert!(
            error.contains(&format!("the operator's token is not sent to {url}: ")),
            "{args:?}: {error}"
        );
        assert!(
            error.contains("another user (number 65534) listens there"),
            "{args:?}: {error}"
        );
        assert!(
            error.contains(&format!("--url {url}")) && !error.contains(TOKEN),
            "{args:?}: {error}"
        );
    }
}

#[test]
fn a_program_of_another_user_at_the_address_does_not_get_the_operators_token() {
    let Some(impostor) = impostor() else { return };
    let home = home_at(&impostor.url);
    assert_not_sent(&home, &impostor.url);
    assert_eq!(
        seen(&impostor),
        [] as [&str; 0],
        "they fail before they send anything"
    );
    // What a daemon that was killed has left names its address, and a process that runs by now.
    let record = format!(
        "{{\"url\":\"{}\",\"pid\":{},\"config\":null}}",
        impostor.url,
        std::process::id()
    );
    fs::create_dir_all(home.path(".state/callsheet")).unwrap();
    home.write(".state/callsheet/daemon.json", &record);
    assert_not_sent(&home, &impostor.url);
    // What needs no token is not concerned.
    home.run(&["approvals"]).ok();
    home.run(&["scenarios"]).ok();
    let sent = seen(&impostor);
    assert!(
        sent.len() >= 2 && sent.iter().all(|request| request.ends_with(" None")),
        "{sent:?}"
    );
    // An address that is named on purpose is used.
    home.run(&["trust", "notes", "--url", &impostor.url]).ok();
    let last = seen(&impostor).pop().unwrap();
    assert_eq!(
        last,
        format!("POST /api/v1/scenarios/notes/trust Bearer {TOKEN}")
    );
    let named = run(home
        .command(&["block", "notes"])
        .env("CALLSHEET_URL", &impostor.url));
    named.ok();
    let last = seen(&impostor).pop().unwrap();
    assert_eq!(
        last,
        format!("POST /api/v1/scenarios/notes/block Bearer {TOKEN}")
    );
}

#[test]
fn the_front_of_mcp_does_not_send_the_token_to_a_program_of_another_user() {
    let Some(impostor) = impostor() else { return };
    let home = home_at(&impostor.url);
    let config = home.path("callsheet.toml").display().to_string();
    let mut command = home.command(&["mcp", "--config", &config]);
    let mut front = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = front.stdin.take().unwrap();
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).unwrap();
    drop(input);
    let ended = front.wait_with_output().unwrap();
    let answer = json(std::str::from_utf8(&ended.stdout).unwrap());
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the operator's token is not sent to ")
            && message.contains("another user"),
        "{answer}"
    );
    let sent = seen(&impostor);
    assert!(
        sent.iter().all(|request| request.ends_with(" None")),
        "{sent:?}"
    );
}

/// The service of a machine runs as a user of its own, whose state has its record.
#[test]
fn the_administrator_sends_the_token_to_the_user_whose_folder_has_the_record() {
    let Some(service) = impostor() else { return };
    let home = home_at(&service.url);
    let folder = home.path(".state/callsheet");
    fs::create_dir_all(&folder).unwrap();
    let record = format!(
        "{{\"url\":\"{}\",\"pid\":{},\"config\":null}}",
        service.url,
        service.id()
    );
    let record = home.write(".state/callsheet/state.db.daemon.json", &record);
    chown(&record, Some(OTHER_USER), None).unwrap();
    // Any user may have put it into a folder that is not its own.
    assert_not_sent(&home, &service.url);
    chown(&folder, Some(OTHER_USER), None).unwrap();
    home.run(&["trust", "notes"]).ok();
    assert_eq!(
        seen(&service),
        [format!("POST /api/v1/scenarios/notes/trust Bearer {TOKEN}")]
    );
}

#[test]
fn an_own_daemon_without_its_socket_gets_the_token_at_its_address() {
    let notes = Scenario::start(
        "notes",
        vec![tool("add_note", "Writes a note down", "writing")],
    );
    for listen in ["127.0.0.1:0", "0.0.0.0:0", "[::]:0"] {
        if listen.starts_with('[') && TcpListener::bind("[::1]:0").is_err() {
            continue;
        }
        let home = Home::new();
        home.write(
            "callsheet.toml",
            &format!(
                "[server]\nlisten = \"{listen}\"\noperator_token = \"{TOKEN}\"\n[[scenarios]]\nname = \"notes\"\nurl = \"{}\"\n",
                notes.url
            ),
        );
        let daemon = Running::start(home.command(&["serve"]), "callsheet listens on ");
        let socket = home.path(".state/callsheet/state.db.sock");
        until("the socket is there", || socket.exists());
        fs::remove_file(&socket).unwrap();
        until("the scenario is known", || {
            home.run(&["scenarios", "notes"]).code == Some(0)
        });
        home.run(&["block", "notes"]).ok();
        assert!(
            home.run(&["scenarios"]).ok().contains("blocked"),
            "{listen}"
        );
        home.run(&["unblock", "notes"]).ok();
        drop(daemon);
    }
}

#[test]
fn without_a_daemon_the_error_says_so_also_where_a_token_is_configured() {
    let url = nobody();
    let home = home_at(&url);
    let error = home.run(&["trust", "notes"]).failed(3);
    assert!(
        error.starts_with(&format!(
            "error: no daemon answers at {url}: no program listens there"
        )),
        "{error}"
    );
    assert!(error.contains("`callsheet serve`"), "{error}");
}
