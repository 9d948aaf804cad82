//! `callsheet call`: flags made from a tool's schema, arguments as JSON, and what comes of it, with
//! a real daemon and a real module.

use std::io::{BufRead as _, Read as _, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::command::{Home, Ran, Running, json, until};
use crate::support::module::{Module, tool};
use crate::support::upstream_server::{UpstreamServer, answer};

fn search() -> Value {
    json!({
        "name": "research.web_search", "description": "Looks things up", "required_permission": "guest",
        "parameters": [
            {"name": "query", "type": "string", "description": "What to look for"},
            {"name": "max_results", "type": "integer", "description": "How many", "required": false, "default": 10},
            {"name": "mode", "type": "string", "description": "How", "required": false, "enum": ["fast", "deep"]},
            {"name": "safe", "type": "boolean", "description": "Leave out the rest", "required": false},
            {"name": "sites", "type": "array", "description": "Where", "required": false, "items": {"type": "string"}},
        ],
    })
}

/// A module with a tool for everybody and one for administrators, and a daemon that knows it.
fn research() -> (Home, Running, Module, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let module = runtime.block_on(Module::start(
        "research",
        &[
            search(),
            tool("research.fail", "guest"),
            tool("research.wipe", "admin"),
        ],
    ));
    let config = format!(
        "[modules]\nresearch = \"http://{}\"\n[[profiles]]\nname = \"visitor\"\npermission = \"user\"\n",
        module.address
    );
    let home = Home::with(&config);
    let daemon = home.serve(&[]);
    (home, daemon, module, runtime)
}

fn call(home: &Home, daemon: &Running, args: &[&str]) -> Ran {
    home.run(&[&["call", "--url", &daemon.url], args].concat())
}

fn received(printed: &str) -> Value {
    json(printed)["received"].clone()
}

#[test]
fn flags_come_from_the_schema() {
    let (home, daemon, _module, _runtime) = research();
    let args = [
        "research_web_search",
        "--query",
        "green tea",
        "--max-results",
        "3",
        "--safe",
        "--sites",
        "a",
        "--sites",
        "b",
    ];
    let sent = received(&call(&home, &daemon, &args).ok());
    let expected =
        json!({"query": "green tea", "max_results": 3, "safe": true, "sites": ["a", "b"]});
    assert_eq!(
        sent,
        json!({"tool_name": "research.web_search", "arguments": expected})
    );
    // By every name that it has, with options of the command before it, and with whose call it is.
    for name in ["research.web_search", "research/research.web_search"] {
        let sent = received(
            &call(
                &home,
                &daemon,
                &["--user", "u-1", name, "--query=x", "--mode", "deep"],
            )
            .ok(),
        );
        let expected = json!({"tool_name": "research.web_search", "arguments": {"query": "x", "mode": "deep"}, "user_id": "u-1"});
        assert_eq!(sent, expected, "{name}");
    }
    let help = call(&home, &daemon, &["research_web_search", "--help"]).ok();
    for part in [
        "Looks things up",
        "--query <TEXT>",
        "What to look for [required]",
        "[default: 10]",
        "fast, deep",
    ] {
        assert!(help.contains(part), "{part} is missing in {help}");
    }
}

/// An MCP server with tools of these names, and a daemon that knows it.
fn child(names: &str) -> (Home, Running) {
    child_with(names, "")
}

/// The same with further keys.
fn child_with(names: &str, keys: &str) -> (Home, Running) {
    let home = Home::new();
    home.write("names", names);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    home.write(
        "callsheet.toml",
        &format!(
            "server.listen = \"127.0.0.1:0\"\n{keys}[[scenarios]]\nname = \"child\"\ncommand = \"python3\"\n\
             args = [{server:?}, \"legacy\", \"names\"]\nenv = {{ PATH = \"/usr/local/bin:/usr/bin:/bin\" }}\n"
        ),
    );
    let daemon = home.serve(&[]);
    let first = names.split(' ').next().unwrap();
    until("the tools", || {
        home.run(&["tools"])
            .out
            .lines()
            .any(|line| line.starts_with(first))
    });
    (home, daemon)
}

#[test]
fn what_a_tool_asks_is_no_result_and_what_a_terminal_cannot_show_is_named() {
    let (home, daemon) = child("ask picture");
    let asked = call(&home, &daemon, &["ask"]).failed(6);
    assert!(
        asked.starts_with("error: the call waits for input as ")
            && asked.contains(": Where? (city)\n"),
        "{asked}"
    );
    assert!(
        asked.contains("by `POST /api/v1/interactions/") && !asked.contains("{id}"),
        "{asked}"
    );
    let shown = call(&home, &daemon, &["picture"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert_eq!(shown.out, "see\n");
    assert!(
        shown
            .err
            .contains("note: the result also has 1 image: `callsheet call --json` shows it"),
        "{shown:?}"
    );
}

#[test]
fn a_call_can_wait_for_the_input_that_its_tool_needs() {
    let (home, daemon) = child("ask");
    let mut command = home.command(&["call", "--wait", "--url", &daemon.url, "ask"]);
    let mut called = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut notes = std::io::BufReader::new(called.stderr.take().unwrap());
    let mut note = String::new();
    notes.read_line(&mut note).unwrap();
    let id = note
        .strip_prefix("note: waits for input as ")
        .and_then(|rest| rest.split_once(": Where?; give it at "))
        .unwrap_or_else(|| panic!("{note}"));
    assert_eq!(id.1.trim(), format!("{}/dashboard/calls", daemon.url));
    let request = format!("POST /api/v1/interactions/{}", id.0);
    let given = json!({"action": "accept", "content": {"city": "Paris"}}).to_string();
    let (status, _, body) = daemon.send(&request, "content-type: application/json\r\n", &given);
    assert_eq!(status, 200, "{}", String::from_utf8_lossy(&body));
    let mut out = String::new();
    called
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    assert_eq!(called.wait().unwrap().code(), Some(0));
    assert_eq!(out, "Paris\n");
    let page = String::from_utf8(daemon.get("/dashboard/calls/latest").1).unwrap();
    assert!(
        page.contains("<summary>Result</summary>") && page.contains("Paris"),
        "{page}"
    );
}

#[test]
fn a_line_of_the_log_shows_no_result_of_a_later_call_of_another_access() {
    let token = "an-operator-token-of-this-test";
    let keys = format!("server.operator_token = \"{token}\"\n");
    let (_home, daemon) = child_with("ask picture", &keys);
    let json_head = "content-type: application/json\r\n";
    let operator = format!("authorization: Bearer {token}\r\n");
    let post = |path: &str, head: &str, body: &Value| {
        let head = format!("{json_head}{head}");
        let (status, _, body) = daemon.send(&format!("POST {path}"), &head, &body.to_string());
        (status, json(&String::from_utf8(body).unwrap()))
    };
    let call = |tool: &str| json!({"tool_name": tool, "arguments": {}, "call_id": "job-number-1"});
    let execute = "/api/v1/tools/execute";
    let (status, own) = post(execute, "", &call("picture"));
    assert_eq!(status, 200, "{own}");
    let (status, asked) = post(execute, &operator, &call("ask"));
    assert_eq!(status, 202, "{asked}");
    let id = asked["interaction"]["id"].as_str().unwrap();
    let given = json!({"action": "accept", "content": {"city": "Paris"}});
    let (status, over) = post(&format!("/api/v1/interactions/{id}"), &operator, &given);
    assert_eq!(status, 200, "{over}");
    let page = |head: &str| {
        let answer = daemon.send("GET /dashboard/calls/latest", head, "");
        String::from_utf8(answer.2).unwrap()
    };
    let shown = page("");
    assert!(
        shown.contains("picture") && !shown.contains("Paris"),
        "{shown}"
    );
    let shown = page(&operator);
    assert!(shown.contains("Paris"), "{shown}");
}

/// A script must not take this for a call that was never sent, and send it again.
#[test]
fn a_call_whose_daemon_ends_may_have_run_and_is_not_called_unsent() {
    let (home, daemon) = child("slow");
    let mut command = home.command(&["call", "--progress", "--url", &daemon.url, "slow"]);
    let mut called = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = std::io::BufReader::new(called.stderr.take().unwrap());
    let mut progress = String::new();
    told.read_line(&mut progress).unwrap();
    daemon.signal("KILL");
    let mut rest = String::new();
    told.read_to_string(&mut rest).unwrap();
    assert_eq!(called.wait().unwrap().code(), Some(1), "{progress}{rest}");
    let error = rest
        .lines()
        .find(|line| line.starts_with("error: "))
        .unwrap_or_default();
    assert!(
        error.contains("ended before it answered, and the call may have run"),
        "{progress}{rest}"
    );
    assert!(
        rest.contains("\n  hint: look at what the tool has changed"),
        "{rest}"
    );
}

/// Two of five real scenarios have parameters that are called as options of this command.
#[test]
fn everything_after_the_name_belongs_to_the_tool() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let names = [
        "scenario", "url", "profile", "json", "args", "chat", "config", "help",
    ];
    let parameters: Vec<Value> = names
        .iter()
        .map(|name| json!({"name": name, "type": "string", "description": "d", "required": false}))
        .collect();
    let mut open = tool("web.open", "guest");
    open["parameters"] = parameters.into();
    let module = runtime.block_on(Module::start("web", &[open, tool("web.close", "guest")]));
    let home = Home::with(&format!("[modules]\nweb = \"http://{}\"\n", module.address));
    let daemon = home.serve(&[]);
    let flags: Vec<String> = names
        .iter()
        .map(|name| format!("--{name}=of the tool"))
        .collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let sent = received(&call(&home, &daemon, &[&["web.open"], flags.as_slice()].concat()).ok());
    for name in names {
        assert_eq!(sent["arguments"][name], "of the tool", "{sent}");
    }
    let answer = json(
        &call(
            &home,
            &daemon,
            &["--json", "--scenario", "web", "web.open", "--url", "x"],
        )
        .ok(),
    );
    assert_eq!(
        answer["result"]["received"]["arguments"],
        json!({"url": "x"}),
        "{answer}"
    );

    let refused = call(&home, &daemon, &["web.close", "--json"]).failed(2);
    assert!(
        refused.contains("`web.close` has no parameter `json`"),
        "{refused}"
    );
    assert!(
        refused.contains("write it before the name: `callsheet call --json ... web.close`"),
        "{refused}"
    );
}

#[test]
fn arguments_may_be_json() {
    let (home, daemon, _module, _runtime) = research();
    let given = r#"{"query":"x","max_results":7}"#;
    let expected = json!({"query": "x", "max_results": 7});
    let sent = |ran: Ran| received(&ran.ok())["arguments"].clone();
    assert_eq!(
        sent(call(
            &home,
            &daemon,
            &["--args", given, "research_web_search"]
        )),
        expected
    );
    home.write("given.json", given);
    assert_eq!(
        sent(call(
            &home,
            &daemon,
            &["--args", "@given.json", "research_web_search"]
        )),
        expected
    );
    // Behind the name, too: it is an option of every tool without a parameter of that name.
    assert_eq!(
        sent(call(
            &home,
            &daemon,
            &["research_web_search", "--args", given]
        )),
        expected
    );
    let behind = call(
        &home,
        &daemon,
        &[
            "research_web_search",
            "--max-results",
            "9",
            "--args=@given.json",
        ],
    );
    assert_eq!(sent(behind), json!({"query": "x", "max_results": 9}));
    let twice = call(
        &home,
        &daemon,
        &["--args", given, "research_web_search", "--args", given],
    )
    .failed(2);
    assert!(twice.contains("`--args` is given twice"), "{twice}");
    let mut command = home.command(&[
        "call",
        "--args",
        "-",
        "--url",
        &daemon.url,
        "research_web_search",
    ]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(given.as_bytes())
        .unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(
        received(std::str::from_utf8(&ended.stdout).unwrap())["arguments"],
        expected
    );
    // Flags add to it.
    let both = call(
        &home,
        &daemon,
        &["--args", given, "research_web_search", "--max-results", "8"],
    );
    assert_eq!(sent(both), json!({"query": "x", "max_results": 8}));
    let answer = json(
        &call(
            &home,
            &daemon,
            &["--args", given, "--json", "research_web_search"],
        )
        .ok(),
    );
    assert_eq!(answer["success"], true);
    assert_eq!(answer["scenario"], "research");
}

/// Numbers may have more digits than any number type holds. What is sent is read as bytes.
#[test]
fn numbers_are_sent_with_the_digits_as_written() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let home = Home::with("");
    let kept = Arc::clone(&bodies);
    let listed = json!({"name": "t", "parameters": {"type": "object", "properties": {
        "n": {"type": "integer"}, "x": {"type": "number"}, "l": {"type": "array", "items": {"type": "number"}}, "any": {},
    }}});
    let daemon = runtime.block_on(UpstreamServer::serving(move |request, mut stream| {
        let kept = Arc::clone(&kept);
        let listed = listed.to_string();
        Box::pin(async move {
            let mut body = vec![
                0;
                request
                    .header("content-length")
                    .map_or(0, |length| length.parse().unwrap())
            ];
            stream.read_exact(&mut body).await.unwrap();
            let called = !body.is_empty();
            kept.lock()
                .unwrap()
                .extend(called.then(|| String::from_utf8(body).unwrap()));
            let body = if called {
                r#"{"success":true,"result":null}"#.as_bytes()
            } else {
                listed.as_bytes()
            };
            let _ = stream
                .write_all(&answer(
                    "200 OK",
                    &["Content-Type: application/json", "Connection: close"],
                    body,
                ))
                .await;
        })
    }));
    let url = daemon.url().to_string();
    let object = r#"{"n":12345678901234567890123,"x":[1e2,1.10]}"#;
    for (args, sent) in [
        (&["--args", object, "t"][..], object),
        (&["t", "--args", object], object),
        (
            &["--args", object, "t", "--n", "3"],
            r#"{"x":[1e2,1.10],"n":3}"#,
        ),
        (
            &["t", "--n", "18446744073709551616", "--x", "1e2"],
            r#"{"n":18446744073709551616,"x":1e2}"#,
        ),
        (
            &["t", "--l", "1.10", "--l", "-9223372036854775809"],
            r#"{"l":[1.10,-9223372036854775809]}"#,
        ),
        (
            &["t", "--l", "[1.10]", "--any", r#"{"a":1E400}"#],
            r#"{"l":[1.10],"any":{"a":1E400}}"#,
        ),
        (&["--args", r#"{"n":1,"n":2}"#, "t"], r#"{"n":1,"n":2}"#),
    ] {
        home.run(&[&["call", "--url", &url], args].concat()).ok();
        let body = bodies.lock().unwrap().pop().unwrap();
        assert_eq!(
            body,
            format!(r#"{{"tool_name":"t","arguments":{sent}}}"#),
            "{args:?}"
        );
    }
}

#[test]
fn a_violation_is_shown_once() {
    let (home, daemon, _module, _runtime) = research();
    let refused = call(
        &home,
        &daemon,
        &["--args", r#"{"query":5}"#, "research_web_search"],
    )
    .failed(1);
    assert!(refused.contains("/query: 5 is not of type"), "{refused}");
    assert_eq!(refused.matches("/query").count(), 1, "{refused}");
}

#[test]
fn what_goes_wrong_has_its_exit_code() {
    let (home, daemon, module, _runtime) = research();
    let failed = call(
        &home,
        &daemon,
        &["--args", r#"{"fail":"the web is closed"}"#, "research_fail"],
    )
    .failed(1);
    assert!(failed.contains("the web is closed"), "{failed}");
    for args in [
        &["research_web_search"][..],
        &[
            "research_web_search",
            "--query",
            "a",
            "--max-results",
            "many",
        ],
        &["research_web_search", "--query", "a", "--mode", "odd"],
        &["research_web_search", "--colour", "red"],
        &["--args", "[]", "research_web_search"],
        &["--args", "{", "research_web_search"],
        &["--args", "@nowhere.json", "research_web_search"],
    ] {
        let error = call(&home, &daemon, args).failed(2);
        assert!(
            error.contains("error: ") && error.contains("hint: "),
            "{args:?}: {error}"
        );
    }
    let unknown = call(&home, &daemon, &["research_web_serch", "--query", "a"]).failed(1);
    assert!(unknown.contains("research_web_search"), "{unknown}");
    let denied = call(&home, &daemon, &["--profile", "visitor", "research_wipe"]).failed(1);
    assert!(denied.contains("admin"), "{denied}");
    let nobody = home.run(&["call", "--url", "http://127.0.0.1:9", "--args", "{}", "x"]);
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
    drop(module);
    let gone = call(&home, &daemon, &["research_web_search", "--query", "a"]).failed(1);
    assert!(
        gone.contains("\n  hint: `callsheet scenarios research` shows what is wrong with it\n"),
        "{gone}"
    );
}

#[test]
fn an_option_that_the_command_does_not_have_is_no_name_of_a_tool() {
    let (home, daemon, _module, _runtime) = research();
    let error = call(
        &home,
        &daemon,
        &["--timeout", "1", "research_web_search", "--query", "tea"],
    )
    .failed(2);
    assert!(
        error.starts_with("error: `--timeout` is no option of `callsheet call`\n  hint: "),
        "{error}"
    );
    assert!(
        error.contains("before the name of the tool") && error.contains("`callsheet call --help`"),
        "{error}"
    );
}

#[test]
fn a_call_that_is_left_goes_on_and_the_command_says_so() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let home = Home::with("");
    let called = Arc::new(Mutex::new(0));
    let count = Arc::clone(&called);
    let listed = json!({"name": "t", "parameters": {"type": "object"}}).to_string();
    let daemon = runtime.block_on(UpstreamServer::serving(move |request, mut stream| {
        let count = Arc::clone(&count);
        let listed = listed.clone();
        Box::pin(async move {
            if request
                .header("content-length")
                .is_some_and(|length| length != "0")
            {
                *count.lock().unwrap() += 1;
                std::future::pending::<()>().await;
            }
            let head = ["Content-Type: application/json", "Connection: close"];
            let _ = stream
                .write_all(&answer("200 OK", &head, listed.as_bytes()))
                .await;
        })
    }));
    let mut command = home.command(&["call", "--url", daemon.url().as_str(), "t"]);
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    until("it is called", || *called.lock().unwrap() == 1);
    let sent = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
    let ended = child.wait_with_output().unwrap();
    let told = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{told}");
    assert!(
        told.contains("no longer waiting for `t` (SIGINT); the call goes on in the daemon"),
        "{told}"
    );
    assert!(
        told.contains("`callsheet logs --tool t` shows how it ended"),
        "{told}"
    );
}
