//! What a small message can cost a whole daemon: arguments and schemas that multiply. Each test
//! looks at the process from outside.

#![cfg(target_os = "linux")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Map, Value, json};

use crate::support::callee::{Callee, manifest, tool_with};
use crate::support::command::{Home, Running, json as parsed, until};

/// As many connections are opened at once, few enough for the usual limit of open files.
const CONNECTIONS: usize = 500;
/// The most memory of one of them, as SECURITY.md says.
const CONNECTION_MAX_KILOBYTES: u64 = 64;
/// The most memory that the process may ever have had.
const MOST_KILOBYTES: u64 = 300 * 1024;

/// Parameters that are published, with these members besides.
fn parameters(members: &Value) -> Value {
    let mut all = json!({"type": "object"});
    all.as_object_mut()
        .unwrap()
        .extend(members.as_object().unwrap().clone());
    all
}

fn tool(name: &str, members: &Value) -> Value {
    tool_with(
        name,
        &parameters(members),
        &json!({"enabled_by_default": true}),
    )
}

/// `levels` definitions, each of which refers to the next one twice.
fn doubling(branch: &str, levels: usize) -> Value {
    let mut definitions: Map<String, Value> = (0..levels)
        .map(|level| {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            (format!("l{level}"), json!({branch: [next, next]}))
        })
        .collect();
    definitions.insert(
        format!("l{levels}"),
        json!({"type": "object", "required": ["never"]}),
    );
    json!({"properties": {"x": {"$ref": "#/$defs/l0"}}, "$defs": definitions})
}

/// Expressions as an editor of blocks has them: two kinds of block hold another block under the
/// same name.
fn expressions() -> Value {
    let block = |kind| json!({"type": "object", "properties": {"c": {"$ref": "#/$defs/e"}}, "required": ["c", kind]});
    json!({"properties": {"c": {"$ref": "#/$defs/e"}},
        "$defs": {"e": {"anyOf": [block("not"), block("maybe"), {"type": "string"}]}}})
}

/// A call that is under way.
struct Call(TcpStream);

impl Call {
    fn start(daemon: &Running, name: &str, arguments: &Value) -> Self {
        let address = daemon.url.strip_prefix("http://").unwrap();
        let body = json!({"tool_name": name, "arguments": arguments}).to_string();
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "Host: {address}\r\nContent-Type: application/json\r\nContent-Length: {}",
            body.len()
        );
        write!(
            stream,
            "POST /api/v1/tools/execute HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n{body}"
        )
        .unwrap();
        Self(stream)
    }

    fn is_answered(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let answered = match self.0.peek(&mut [0]) {
            Ok(_) => true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
                false
            }
        };
        self.0.set_nonblocking(false).unwrap();
        answered
    }

    /// The status of the answer.
    fn status(mut self) -> u16 {
        let mut answer = Vec::new();
        self.0.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer)
            .split(' ')
            .nth(1)
            .unwrap()
            .parse()
            .unwrap()
    }
}

fn peak_kilobytes(daemon: &Running) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
}

/// How many files the process has open.
fn open_files(daemon: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", daemon.id()))
        .unwrap()
        .count()
}

#[test]
fn a_connection_without_a_whole_request_takes_little_memory() {
    let json = "Content-Type: application/json\r\nContent-Length: 1000";
    for (what, sent) in [
        (
            "idle after a request",
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        ),
        (
            "half a head",
            "GET /healthz HTTP/1.1\r\nHost: loc".to_owned(),
        ),
        (
            "half a body",
            format!("POST /api/v1/tools/execute HTTP/1.1\r\nHost: localhost\r\n{json}\r\n\r\n{{"),
        ),
    ] {
        let home = Home::with("");
        let daemon = home.serve(&[]);
        assert_eq!(daemon.get("/healthz").0, 200);
        let before = peak_kilobytes(&daemon);
        let files = open_files(&daemon);
        let address = daemon.url.strip_prefix("http://").unwrap();
        let connect = |_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(sent.as_bytes()).unwrap();
            stream
        };
        let held: Vec<TcpStream> = (0..CONNECTIONS).map(connect).collect();
        // Connections of the requests before may have been open still.
        until("nearly all were accepted", || {
            open_files(&daemon) + 10 >= files + CONNECTIONS
        });
        // The last request is answered after those before it were read.
        assert_eq!(daemon.get("/healthz").0, 200);
        let each = (peak_kilobytes(&daemon) - before) / CONNECTIONS as u64;
        assert!(each < CONNECTION_MAX_KILOBYTES, "{what}: {each} KB each");
        drop(held);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_that_multiply_cost_neither_memory_nor_answers_and_calls_go_on_unchecked() {
    let tools = [
        tool("plain", &json!({"properties": {"n": {"type": "integer"}}})),
        tool("expressions", &expressions()),
        tool("doubled_any", &doubling("anyOf", 26)),
        tool("doubled_all", &doubling("allOf", 60)),
        tool(
            "matched",
            &json!({"properties": {"x": {"pattern": "a[ab]{1000}[c-z]"}}}),
        ),
    ];
    let files = Callee::echo(manifest("files", &tools)).await;
    let home = Home::naming(&[("files", files.url().as_str())]);
    let mut daemon = home.serve(&[]);
    let hostile = json!({"x": {}});
    // More callers than the daemon has threads for blocking work, all of whom go away.
    drop(
        (0..520)
            .map(|_| Call::start(&daemon, "doubled_all", &hostile))
            .collect::<Vec<_>>(),
    );

    let nested = (0..40).fold(json!(5), |inner, _| json!({"c": inner}));
    let long = json!({"x": "ab".repeat(200_000)});
    for (name, arguments) in [
        ("matched", &long),
        ("doubled_any", &hostile),
        ("doubled_all", &hostile),
        ("plain", &json!({"n": 1})),
    ] {
        assert_eq!(
            Call::start(&daemon, name, arguments).status(),
            200,
            "{name}"
        );
        // Calls of those who went away may still arrive between these.
        let ran = files.ran();
        assert_eq!(
            ran.iter().rfind(|ran| ran.tool == name).unwrap().arguments,
            *arguments,
            "{name}"
        );
    }
    assert_eq!(
        Call::start(&daemon, "plain", &json!({"n": "one"})).status(),
        400
    );
    assert_eq!(
        Call::start(&daemon, "expressions", &json!({"c": {"c": 5}})).status(),
        400,
        "shallow ones are checked"
    );
    assert_eq!(
        Call::start(&daemon, "expressions", &nested).status(),
        400,
        "and so are deep ones"
    );
    assert_eq!(daemon.get("/healthz").0, 200);
    assert_eq!(daemon.get("/api/v1/tools").0, 200);

    let (status, findings) = daemon.get("/api/v1/findings?code=schema-unchecked");
    let findings = parsed(&String::from_utf8(findings).unwrap());
    let tools: Vec<&str> = findings["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["tool"].as_str().unwrap())
        .collect();
    assert_eq!(status, 200, "{findings:#}");
    assert_eq!(
        tools,
        vec!["doubled_all", "doubled_any", "matched"],
        "{findings:#}"
    );
    let peak = peak_kilobytes(&daemon);
    assert!(peak < MOST_KILOBYTES, "{peak} kB");
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_answered_and_the_process_ends_while_arguments_are_checked() {
    // Each element is compared with each value: as much as a check may cost.
    let values: Vec<Value> = (0..15_000).map(|n| json!([n, [n]])).collect();
    let compare = tool(
        "compare",
        &json!({"properties": {"x": {"type": "array", "items": {"enum": values}}}}),
    );
    let files = Callee::echo(manifest("files", &[compare])).await;
    let entry = format!(
        "[[scenarios]]\nname = \"files\"\nurl = \"{}\"\n",
        files.url()
    );
    let home = Home::with(&format!(
        "server.stop_timeout = \"200ms\"\ncalls.check_timeout = \"1h\"\nrefresh.max_body = \"8 MiB\"\n{entry}"
    ));
    let mut daemon = home.serve(&[]);
    let arguments = json!({"x": vec![json!([-1, [-1]]); 200]});
    let calls: Vec<Call> = (0..100)
        .map(|_| Call::start(&daemon, "compare", &arguments))
        .collect();
    until("a check has ended, so that the next one runs", || {
        calls.iter().any(Call::is_answered)
    });
    assert_eq!(daemon.get("/healthz").0, 200);
    assert_eq!(daemon.get("/api/v1/tools").0, 200);
    assert!(
        !calls.iter().all(Call::is_answered),
        "the last check was over before the list was answered"
    );
    daemon.signal("TERM");
    assert_eq!(daemon.ended().0, Some(0));
}
