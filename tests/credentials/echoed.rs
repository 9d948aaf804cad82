//! Servers and programs that send back the secrets which they got, in each spelling and each place:
//! no secret reaches a caller, a page, a command, an event or a log.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD, Engine as _};
use callsheet::model::{Auth, HttpTarget, Secret};
use callsheet::transports::http::{CallLimits, EventLimits, StreamedResponse, Upstream};
use futures_util::FutureExt as _;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::support::command::{Home, Running, run, until};
use crate::support::scripted::{Reply, Request, Scripted, manifest, tool};
use crate::support::upstream_server::{UpstreamServer, answer, client, limits};

const SECRET: &str = "m4rk3r/0123+ab%41cd\"efghijklm4rk3r";

/// What no output has: a piece of the secret in each spelling.
const PIECES: [&str; 6] = ["m4rk3r", "M4rk3r", "bTRyazNy", "0cmszc", "NHJrM3", "6d3472"];

fn assert_hidden(what: &str, text: &str) {
    for piece in PIECES {
        let line = text.lines().find(|line| line.contains(piece));
        assert!(
            line.is_none(),
            "{what} shows `{piece}`: {}",
            line.unwrap_or_default()
        );
    }
}

/// The secret in each spelling.
fn spellings(secret: &str) -> String {
    let percent = secret.bytes().fold(String::new(), |escaped, byte| {
        escaped + &format!("%{byte:02x}")
    });
    let form: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let pair = format!("a:{secret}");
    let again = |text: &str| text.replace('%', "%25");
    [
        secret.to_owned(),
        percent.to_uppercase(),
        percent,
        again(&form),
        again(&again(&form)),
        form,
        BASE64_STANDARD.encode(secret),
        BASE64_STANDARD.encode(&pair),
        BASE64_URL_SAFE_NO_PAD.encode(format!("{pair}.")),
        serde_json::to_string(secret).unwrap(),
    ]
    .join(" ; ")
}

/// What a server quotes: the credential of the request.
fn sent(request: &Request) -> String {
    let header = request.header("authorization").unwrap_or_default();
    spellings(header.strip_prefix("Bearer ").unwrap_or(header))
}

/// An answer of JSON whose slashes are escaped, as some libraries write them.
fn escaped(json: &Value) -> Reply {
    Reply::json(&Value::Null).with_body(json.to_string().replace('/', "\\/"))
}

/// A Streamable HTTP server of MCP.
fn mcp(request: &Request) -> Reply {
    let Ok(message) = serde_json::from_str::<Value>(&request.text) else {
        return Reply::status("405 No");
    };
    let quoted = sent(request);
    let id = message["id"].clone();
    let result =
        |result: Value| escaped(&json!({"jsonrpc": "2.0", "id": id.clone(), "result": result}));
    let error = |code: i32| {
        let error = json!({"code": code, "message": format!("bad token {quoted}"), "data": {"token": quoted}});
        escaped(&json!({"jsonrpc": "2.0", "id": id.clone(), "error": error}))
    };
    match (
        message["method"].as_str(),
        message["params"]["name"].as_str(),
    ) {
        (Some("initialize"), _) => result(json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "mcp", "version": "1"}, "instructions": quoted,
        })),
        (Some("tools/list"), _) => result(json!({"tools": [
            {"name": "mcp_works", "description": quoted, "inputSchema": {"type": "object"}},
            {"name": "mcp_fails", "description": "d", "inputSchema": {"type": "object", "title": quoted}},
        ]})),
        (Some("tools/call"), Some("mcp_works")) => {
            result(json!({"content": [{"type": "text", "text": format!("it works {quoted}")}]}))
        }
        (Some("tools/call"), _) => error(-32000),
        _ if id.is_null() => Reply::status("202 Accepted"),
        _ => error(-32601),
    }
}

/// A scenario with a list of tools, one of which works.
fn listed(request: &Request) -> Reply {
    let quoted = sent(request);
    let mut tools = manifest("listed", &["list_works", "list_fails", "list_breaks"]);
    tools["tools"][0]["description"] = quoted.clone().into();
    tools["tools"].as_array_mut().unwrap().push(tool(&format!(
        "list_{}",
        BASE64_URL_SAFE_NO_PAD.encode(SECRET)
    )));
    let called: Value = serde_json::from_str(&request.text).unwrap_or_default();
    match called["tool_name"].as_str() {
        None => escaped(&tools),
        Some("list_works") => escaped(&json!({"success": true, "result": {"it works": quoted}})),
        Some("list_fails") => {
            escaped(&json!({"success": false, "error": quoted})).with_status("401 Unauthorized")
        }
        Some(_) => Reply::text(quoted).with_status("500 Broken"),
    }
}

/// A server that refuses its list, and quotes why.
fn refusing(request: &Request) -> Reply {
    let quoted = request
        .header("authorization")
        .unwrap_or_default()
        .replace('"', "");
    let challenge = format!("WWW-Authenticate: Bearer error=\"{quoted}\", scope=\"{quoted}\"");
    Reply::text(sent(request))
        .with_status("401 Unauthorized")
        .header(&challenge)
}

/// A server of plain JSON-RPC.
fn rpc(request: &Request) -> Reply {
    let Ok(message) = serde_json::from_str::<Value>(&request.text) else {
        return Reply::status("405 No");
    };
    let quoted = sent(request);
    let id = message["id"].clone();
    let answer = match (
        message["method"].as_str(),
        message["params"]["name"].as_str(),
    ) {
        (Some("server/identity"), _) => {
            json!({"result": {"server_id": "rpc-1", "tools_count": 2, "protocol_version": "1.0"}})
        }
        (Some("tools/list"), _) => json!({"result": {"tools": [
            {"name": "rpc_works", "description": quoted, "inputSchema": {"type": "object"}},
            {"name": "rpc_fails", "description": "d", "inputSchema": {"type": "object", "title": quoted}},
        ]}}),
        (Some("tools/call"), Some("rpc_works")) => json!({"result": {"it works": quoted}}),
        _ => {
            json!({"error": {"code": -32000, "message": format!("bad token {quoted}"), "data": {"token": quoted}}})
        }
    };
    let mut whole = json!({"jsonrpc": "2.0", "id": id});
    whole
        .as_object_mut()
        .unwrap()
        .extend(answer.as_object().unwrap().clone());
    escaped(&whole)
}

/// A module.
fn desk(request: &Request) -> Reply {
    let quoted = sent(request);
    let called: Value = serde_json::from_str(&request.text).unwrap_or_default();
    let tool = |name: &str, description: &str| json!({"name": name, "description": description, "parameters": []});
    match called["tool_name"].as_str() {
        None => escaped(&json!({"module_name": "desk", "description": quoted,
            "tools": [tool("desk.works", &quoted), tool("desk.fails", "d"), tool("desk.breaks", "d")]})),
        Some("desk.works") => escaped(
            &json!({"tool_name": "desk.works", "success": true, "result": {"it works": quoted}, "error": null}),
        ),
        Some("desk.fails") => escaped(
            &json!({"tool_name": "desk.fails", "success": false, "result": null, "error": quoted}),
        ),
        Some(_) => Reply::text(quoted).with_status("500 Broken"),
    }
}

/// An authorization server that refuses its client, and quotes what it got.
fn refusing_clients(request: &Request) -> Reply {
    let header = request.header("authorization").unwrap_or_default();
    let quoted = [spellings(SECRET), header.to_owned()].join(" ");
    let refusal = json!({"error": quoted, "error_description": quoted, "error_uri": quoted});
    escaped(&refusal)
        .with_status("401 Unauthorized")
        .header(&format!("WWW-Authenticate: {header}"))
}

/// A program that prints its environment and puts it into its errors.
const PROGRAM: &str = r#"
import json, os, sys
key = os.environ["KEY"]
print("banner " + key, flush=True)
print("log " + key, file=sys.stderr, flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "child", "version": "1"}}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "child_fails", "inputSchema": {"type": "object"}}]}
    else:
        answer["error"] = {"code": -32601, "message": "bad key " + key, "data": {"key": key}}
    print(json.dumps(answer), flush=True)
"#;

fn configuration(servers: &[(&str, Scripted)]) -> String {
    let secret = serde_json::to_string(SECRET).unwrap();
    let mut text = "discovery.vrooli.enabled = false\ncalls.log_payloads = \"8 KiB\"\n".to_owned();
    for (name, server) in servers {
        let url = server.url();
        let auth = match *name {
            "oauth" => {
                format!(
                    "{{ oauth = {{ token_url = \"{url}token\", client_id = \"me\", client_secret = {secret} }} }}"
                )
            }
            _ => secret.clone(),
        };
        let entry = format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\nauth = {auth}\n");
        text.push_str(&entry);
        text += match *name {
            "mcp" => "protocol = \"mcp\"\n",
            "rpc" => "protocol = \"json-rpc\"\n",
            "desk" => "protocol = \"module\"\n",
            _ => "",
        };
    }
    text + &format!(
        "[[scenarios]]\nname = \"child\"\ncommand = \"python3\"\nargs = [\"child.py\"]\ncwd = \".\"\n\
         env = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\", KEY = {secret} }}\n"
    )
}

/// What a client of a stream has received.
struct Stream(Arc<Mutex<Vec<u8>>>);

impl Stream {
    /// Sends a request whose answer goes on until the daemon ends.
    fn open(daemon: &Running, target: &str, headers: &str) -> Self {
        let address = daemon.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "GET {target} HTTP/1.1\r\nHost: {address}\r\n{headers}\r\n"
        )
        .unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&received);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                into.lock().unwrap().extend_from_slice(&bytes[..read]);
            }
        });
        Self(received)
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
    }
}

/// The answer to a request with this body.
fn post(url: &str, target: &str, body: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "Host: {address}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}"
    );
    write!(stream, "POST {target} HTTP/1.1\r\n{head}\r\n\r\n{body}").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Calls every tool, over the command line and over plain JSON-RPC.
fn call_all(home: &Home, url: &str) {
    for (name, expected) in [
        ("mcp_works", "it works ***"),
        ("mcp_fails", "bad token ***"),
        ("list_works", "it works"),
        ("list_fails", "***"),
        ("list_breaks", "***"),
        ("rpc_works", "it works"),
        ("rpc_fails", "bad token ***"),
        ("desk_works", "it works"),
        ("desk_fails", "***"),
        ("desk_breaks", ""),
        ("child_fails", "bad key ***"),
    ] {
        let called = home.run(&["call", "--json", "--url", url, name]);
        let said = [called.out, called.err].concat();
        assert!(said.contains(expected), "{name}: {said}");
        assert_hidden(name, &said);
        let params = json!({"name": name, "arguments": {}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            .to_string();
        let said = post(url, "/rpc", &message);
        assert!(said.contains(expected), "{name}: {said}");
        assert_hidden(name, &said);
    }
}

/// The pages and lists that may show what was sent back.
const TARGETS: [&str; 17] = [
    "/api/v1/tools",
    "/api/v1/tools?format=mcp",
    "/api/v1/scenarios",
    "/api/v1/scenarios/child",
    "/api/v1/scenarios/refusing",
    "/api/v1/scenarios/oauth",
    "/api/v1/findings",
    "/api/v1/log",
    "/api/modules",
    "/dashboard/overview",
    "/dashboard/calls",
    "/dashboard/calls/now",
    "/dashboard/tools/rows",
    "/dashboard/scenarios/child",
    "/dashboard/scenarios/refusing",
    "/dashboard/scenarios/oauth",
    "/dashboard/findings",
];

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_that_comes_back_is_shown_anywhere() {
    let servers = [
        ("mcp", Scripted::start(mcp)),
        ("listed", Scripted::start(listed)),
        ("refusing", Scripted::start(refusing)),
        ("rpc", Scripted::start(rpc)),
        ("desk", Scripted::start(desk)),
        ("oauth", Scripted::start(refusing_clients)),
    ];
    let home = Home::with(&configuration(&servers));
    home.write("child.py", PROGRAM);
    let mut serve = home.command(&["serve"]);
    serve.env("CALLSHEET_LOG", "debug");
    let mut daemon = Running::start(serve, "callsheet listens on ");
    let url = daemon.url.clone();
    let handshake = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
        Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let streams = [
        Stream::open(&daemon, "/api/v1/events", ""),
        Stream::open(&daemon, "/api/v1/ws", handshake),
    ];
    let all = [
        "mcp_fails",
        "list_works",
        "rpc_works",
        "desk_works",
        "child_fails",
    ];
    let has_all = |tools: &str| all.iter().all(|name| tools.contains(name));
    until("the tools", || {
        has_all(&home.run(&["tools", "--url", &url]).out)
    });
    let refused = || String::from_utf8(daemon.get("/api/v1/scenarios/oauth").1).unwrap();
    until("the refusal", || {
        refused().contains("refused the client: ***")
    });
    call_all(&home, &url);
    assert_hidden_in_log(&home, &daemon);
    for target in TARGETS {
        let (status, body) = daemon.get(target);
        assert_eq!(status, 200, "{target}");
        assert_hidden(target, &String::from_utf8_lossy(&body));
    }
    let findings = String::from_utf8(daemon.get("/api/v1/findings").1).unwrap();
    assert!(findings.contains("banner ***"), "{findings}");
    let commands: [&[&str]; 7] = [
        &["scenarios"],
        &["scenarios", "child"],
        &["explain", "mcp_works"],
        &["tools", "--json"],
        &["findings"],
        &["findings", "--json"],
        &["logs"],
    ];
    for args in commands {
        let ran = run(home.command(args).env("CALLSHEET_URL", &url));
        assert!(!ran.out.is_empty(), "{args:?}: {}", ran.err);
        assert_hidden(&args.join(" "), &[ran.out, ran.err].concat());
    }
    for stream in &streams {
        until("the events of the last call", || {
            stream.text().contains("child_fails")
        });
        assert_hidden("a stream", &stream.text());
    }
    daemon.signal("TERM");
    assert_hidden("the log", &daemon.ended().1);
    for file in walk(&home.path(".state")) {
        assert_hidden(
            &file.display().to_string(),
            &String::from_utf8_lossy(&fs::read(&file).unwrap()),
        );
    }
}

/// A caller that sends the credential itself: it is not in the arguments that the log keeps.
fn assert_hidden_in_log(home: &Home, daemon: &Running) {
    let arguments = json!({"note": SECRET}).to_string();
    home.run(&[
        "call",
        "--url",
        &daemon.url,
        "--args",
        &arguments,
        "list_works",
    ])
    .ok();
    let log = String::from_utf8(daemon.get("/api/v1/log?kind=call").1).unwrap();
    assert!(log.contains(r#""text":"{\"note\":\"***\"}""#), "{log}");
}

/// Every file below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path]
            }
        })
        .filter(|path| path.is_file())
        .collect()
}

/// The token that a server quotes in the head of its answers.
const QUOTED: &str = "m4rk3r-0123456789-abcdef";

/// An answer that quotes what came with the request in every part of its head.
fn quoting_head(request: &crate::support::upstream_server::Request) -> Vec<u8> {
    let sent = request.header("authorization").unwrap_or_default();
    let quoted = sent
        .split_once(' ')
        .map_or(sent, |(_, credential)| credential);
    let secret = format!("{QUOTED}+{quoted}");
    let location = format!("Location: /moved/{secret}");
    let away = format!("Location: http://127.0.0.9/{secret}");
    let headers = [
        format!("ETag: \"{secret}\""),
        format!("Cache-Control: max-age=1, private=\"{secret}\""),
        format!("Content-Type: text/{secret}"),
        format!("Last-Modified: {secret}"),
        format!("Retry-After: {secret}"),
        format!("Age: {secret}"),
        format!("Link: <http://127.0.0.1/{secret}>; rel=\"next\""),
        format!("WWW-Authenticate: Bearer error=\"{secret}\""),
    ];
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let body = manifest("quoting", &["quoting_tool"]).to_string();
    match request.target() {
        "/quoting/api/v1/tools" => answer(&format!("200 {secret}"), &headers, body.as_bytes()),
        "/moved/api/v1/tools" => answer(&format!("302 {secret}"), &[&location], b""),
        "/away/api/v1/tools" => answer(&format!("302 {secret}"), &[&away], b""),
        "/coded/api/v1/tools" => answer("200 OK", &[&format!("Content-Encoding: {secret}")], b""),
        _ => answer(&format!("404 {secret}"), &headers, b"{}"),
    }
}

/// What a server quotes in a header, in its words for a status or in the address that it redirects
/// to is masked as in a body.
#[tokio::test(flavor = "multi_thread")]
async fn no_secret_in_the_head_of_an_answer_is_shown_anywhere() {
    let server = UpstreamServer::answering(quoting_head).await;
    let names = ["quoting", "moved", "away", "coded", "unknown"];
    let scenarios = names.map(|name| {
        let url = format!("{}{name}", server.url());
        format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\nauth = \"{QUOTED}\"\n")
    });
    let home = Home::with(&format!(
        "discovery.vrooli.enabled = false\n{}",
        scenarios.concat()
    ));
    let mut serve = home.command(&["serve"]);
    serve.env("CALLSHEET_LOG", "debug");
    let mut daemon = Running::start(serve, "callsheet listens on ");
    let url = daemon.url.clone();
    until("the tool", || {
        home.run(&["tools", "--url", &url])
            .out
            .contains("quoting_tool")
    });
    for (name, shown) in [
        ("quoting", "<dt>etag</dt>"),
        ("moved", "404 Not Found"),
        ("away", "redirects to http://127.0.0.9/***"),
        ("coded", "its content coding"),
        ("unknown", "404 Not Found"),
    ] {
        let page = post(&url, &format!("/dashboard/scenarios/{name}/raw"), "{}");
        assert!(page.contains(shown), "{name}: {page}");
        assert!(page.contains("***"), "{name}: {page}");
        assert_hidden(name, &page);
        for target in [
            format!("/api/v1/scenarios/{name}"),
            format!("/dashboard/scenarios/{name}"),
        ] {
            assert_hidden(&target, &String::from_utf8_lossy(&daemon.get(&target).1));
        }
    }
    let moved = String::from_utf8(daemon.get("/api/v1/scenarios/moved").1).unwrap();
    assert!(moved.contains("/moved/***"), "{moved}");
    assert_hidden(
        "/api/v1/findings",
        &String::from_utf8_lossy(&daemon.get("/api/v1/findings").1),
    );
    for args in [
        &["scenarios"][..],
        &["explain", "quoting_tool"],
        &["findings", "--json"],
        &["logs"],
    ] {
        let ran = run(home.command(args).env("CALLSHEET_URL", &url));
        assert_hidden(&args.join(" "), &[ran.out, ran.err].concat());
    }
    for name in names {
        let address =
            format!("{}{name}", server.url()).replace("http://", &format!("http://me:{QUOTED}@"));
        let checked = home.run(&["check", &address]);
        assert_hidden(
            &format!("check of {name}"),
            &[checked.out, checked.err].concat(),
        );
    }
    daemon.signal("TERM");
    assert_hidden("the log", &daemon.ended().1);
    for file in walk(&home.path(".state")) {
        assert_hidden(
            &file.display().to_string(),
            &String::from_utf8_lossy(&fs::read(&file).unwrap()),
        );
    }
}

fn upstream(server: &UpstreamServer, secret: &str) -> Upstream {
    let auth = Some(Auth::Bearer(Secret::new(secret).into()));
    client(limits(), 1)
        .upstream_to(&HttpTarget {
            auth,
            ..HttpTarget::at(server.url())
        })
        .unwrap()
}

fn call() -> CallLimits {
    let timeout = std::time::Duration::from_secs(10);
    CallLimits {
        timeout,
        max_body: 1 << 20,
        headers: HeaderMap::new(),
        repeatable: false,
    }
}

/// A secret that is cut by two chunks of a stream is found, and the address for messages stays.
#[tokio::test]
async fn events_are_masked_whole() {
    const TOKEN: &str = "m4rk3r-0123456789";
    let server = UpstreamServer::answering(|_| {
        let events = format!("data: <{TOKEN}>\n\nevent: endpoint\ndata: /to?key={TOKEN}\n\ndata: m4rk3r-0123\n\n");
        let (first, second) = events.split_at(12);
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let chunks = [chunk(first), chunk(second), chunk("")].concat();
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}")
            .into_bytes()
    })
    .await;
    let server = upstream(&server, TOKEN);
    let one = EventLimits {
        max_event: 1000,
        silence: call().timeout,
        per_minute: 1 << 20,
    };
    let mut opened = server.events("", one).await.unwrap().unwrap();
    let StreamedResponse::Events(_, mut streamed) =
        server.post_streamed("{}", &call()).await.unwrap()
    else {
        panic!("no events")
    };
    for stream in [&mut opened, &mut streamed] {
        let mut data = Vec::new();
        while let Some(event) = stream.next().await.unwrap() {
            data.push(event.data);
        }
        assert_eq!(data, ["<***>", &format!("/to?key={TOKEN}"), "m4rk3r-0123"]);
    }
}

/// A long event is masked beside other work, and is not lost when its reader stops waiting for it.
#[tokio::test]
async fn long_events_are_masked_though_their_reader_looks_elsewhere_meanwhile() {
    const TOKEN: &str = "m4rk3r-0123456789";
    let long = "y".repeat(100_000);
    let body = format!("data: {long}{TOKEN}\n\ndata: {TOKEN}\n\n");
    let server = UpstreamServer::answering(move |_| {
        answer(
            "200 OK",
            &["Content-Type: text/event-stream"],
            body.as_bytes(),
        )
    })
    .await;
    let limits = EventLimits {
        max_event: 200_000,
        silence: call().timeout,
        per_minute: 1 << 20,
    };
    let upstream = upstream(&server, TOKEN);
    let mut events = upstream.events("", limits).await.unwrap().unwrap();
    let mut data = Vec::new();
    let read = async {
        loop {
            match events.next().now_or_never() {
                Some(Ok(Some(event))) => data.push(event.data),
                Some(end) => return end.unwrap(),
                None => tokio::task::yield_now().await,
            }
        }
    };
    let end = tokio::time::timeout(call().timeout, read).await.unwrap();
    assert!(end.is_none());
    assert_eq!(
        data,
        [format!("{}***", "y".repeat(100_000)), "***".to_owned()]
    );
}

/// A token that was replaced is still masked, a short one never is, and an address in an error is.
#[tokio::test]
async fn old_tokens_are_masked_and_short_ones_are_words() {
    let old = "m4rk3r-0123456789";
    let new = "9876543210-m4rk3r";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, old).unwrap();
    let body = format!("{old} {new} short-token");
    let server = UpstreamServer::answering(move |_| answer("200 OK", &[], body.as_bytes())).await;
    let source = callsheet::model::SecretSource::File {
        path: path.clone(),
        key: None,
    };
    let target = HttpTarget {
        auth: Some(Auth::Bearer(source)),
        ..HttpTarget::at(server.url())
    };
    let scenario = client(limits(), 1).upstream_to(&target).unwrap();
    assert_eq!(
        scenario.get("", None).await.unwrap().body,
        format!("*** {new} short-token")
    );
    fs::write(&path, new).unwrap();
    assert_eq!(
        scenario.post("", "{}", &call()).await.unwrap().body,
        "*** *** short-token"
    );
    assert_eq!(
        upstream(&server, "short-token")
            .get("", None)
            .await
            .unwrap()
            .body
            .len(),
        47
    );

    let moved = format!("Location: http://127.0.0.9/{old}");
    let server = UpstreamServer::answering(move |_| answer("302 Found", &[&moved], b"")).await;
    let error = upstream(&server, old).get("", None).await.unwrap_err();
    assert_eq!(error.kind(), "redirect");
    assert!(
        error
            .to_string()
            .contains("redirects to http://127.0.0.9/***"),
        "{error}"
    );
}
