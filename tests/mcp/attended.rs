//! Callers over HTTP that take part in their calls: ids, events, input and cancelling.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{Interaction, Secret, StdioTarget, Target};
use callsheet::runtime::Tasks;
use serde_json::{Value, json};

use crate::support::command::{Home, is_installed};
use crate::support::house::{House, scenario};
use crate::support::in_process::PATIENCE;
use crate::support::listener::Listener;
use crate::support::mcp_client::McpClient;
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};
use crate::support::serving;

const TOKEN: &str = "0123456789abcdef-topsecret";

async fn send(address: SocketAddr, method: &str, target: &str, body: &Value) -> (u16, Value) {
    let body = if method == "GET" {
        String::new()
    } else {
        body.to_string()
    };
    let answer = serving::ask(
        address,
        method,
        target,
        &[("content-type", "application/json")],
        &body,
    )
    .await;
    (
        answer.status,
        serde_json::from_slice(&answer.body).unwrap_or_default(),
    )
}

async fn execute(address: SocketAddr, body: Value) -> (u16, Value) {
    send(address, "POST", "/api/v1/tools/execute", &body).await
}

/// A legacy server with one tool, whose calls are answered so.
async fn server(mut call: impl FnMut(&Came) -> Answer + Send + 'static) -> McpServer {
    let mut own = legacy("2025-11-25", &json!([tool("work")]));
    McpServer::start(move |came: &Came| {
        if came.method() == "tools/call" {
            call(came)
        } else {
            own(came)
        }
    })
    .await
}

/// Progress, a log message that is wanted and one that is not, and the result.
fn busy(came: &Came) -> Answer {
    let token = &came.message["params"]["_meta"]["progressToken"];
    let notice =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    Answer::Events(vec![
        notice(
            "notifications/progress",
            json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"}),
        ),
        notice(
            "notifications/message",
            json!({"level": "debug", "data": "noise"}),
        ),
        notice(
            "notifications/message",
            json!({"level": "warning", "logger": "disk", "data": {"left": 3}}),
        ),
        json!({"jsonrpc": "2.0", "id": came.message["id"], "result": {"content": [{"type": "text", "text": "done"}]}}),
    ])
}

/// A question to the user; the result comes later.
fn asking(_: &Came) -> Answer {
    Answer::Stream(vec![
        json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
            "message": "Name?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}}),
    ])
}

/// A server whose tool asks for a name and gives it back.
async fn asker() -> Arc<McpServer> {
    let server = Arc::new(server(asking).await);
    let replying = Arc::downgrade(&server);
    let mut own = legacy("2025-11-25", &json!([tool("work")]));
    let mut call_id = Value::Null;
    server.script(move |came: &Came| {
        if came.method() == "tools/call" {
            call_id = came.message["id"].clone();
            return asking(came);
        }
        if let (Some(result), Some(server)) = (came.message.get("result"), replying.upgrade()) {
            let result = json!({"content": [], "structuredContent": result});
            server.push(json!({"jsonrpc": "2.0", "id": call_id, "result": result}));
        }
        own(came)
    });
    server
}

#[tokio::test]
async fn progress_and_log_messages_are_events_of_their_caller_only() {
    let server = server(busy).await;
    let house = House::with(&[("files", server.url())], |config| {
        config.server.operator_token = Some(Secret::new(TOKEN));
    })
    .await;
    let address = house.serve().await;
    let (mut mine, _) = Listener::begin(address, "?kind=call&call_id=my-call-1").await;
    let (mut other, _) = Listener::begin(address, "?kind=call").await;
    let body = json!({"tool_name": "work", "call_id": "my-call-1", "log_level": "info"});
    let (status, answer) = execute(address, body).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["call_id"], "my-call-1");
    let progress = mine.next().await;
    assert_eq!(progress.event, "call");
    assert_eq!(progress.data["what"], "progress");
    assert_eq!(progress.data["progress"], 1.0);
    assert_eq!(progress.data["message"], "half");
    let log = mine.next().await;
    assert_eq!(
        log.data["level"], "warning",
        "less severe ones are not wanted"
    );
    assert_eq!(log.data["logger"], "disk");
    assert_eq!(log.data["data"], json!({"left": 3}));

    // A reader that knows another call's id only hears of that one.
    let (status, answer) = execute(address, json!({"tool_name": "work"})).await;
    assert_eq!(status, 200);
    let made = answer["call_id"].as_str().unwrap().to_owned();
    assert_eq!(made.len(), 36, "{made}");
    drop(mine);
    house.finish().await;
    assert_eq!(other.next().await.event, "end", "nothing before the end");
}

#[tokio::test]
async fn servers_learn_from_which_level_on_log_messages_are_wanted() {
    let mut own = modern(&json!([tool("work")]));
    let server = McpServer::start(move |came: &Came| own(came)).await;
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    execute(
        address,
        json!({"tool_name": "work", "log_level": "warning"}),
    )
    .await;
    let meta = server.of("tools/call")[0].message["params"]["_meta"].clone();
    assert_eq!(
        meta["io.modelcontextprotocol/logLevel"], "warning",
        "{meta}"
    );
    house.call("work", &json!({})).await.unwrap();
    let meta = server.of("tools/call")[1].message["params"]["_meta"].clone();
    assert!(
        meta.get("io.modelcontextprotocol/logLevel").is_none(),
        "{meta}"
    );
    house.finish().await;

    let mut own = legacy("2025-11-25", &json!([tool("work")]));
    let server = McpServer::start(move |came: &Came| match came.method() {
        "initialize" => match own(came) {
            Answer::With(name, id, answer) => {
                let Answer::Json(status, mut body) = *answer else {
                    unreachable!("a greeting is a document")
                };
                body["result"]["capabilities"]["logging"] = json!({});
                Answer::With(name, id, Box::new(Answer::Json(status, body)))
            }
            other => other,
        },
        "logging/setLevel" => came.result(&json!({})),
        _ => own(came),
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    for level in ["warning", "error", "debug", "info"] {
        let (status, _) = execute(address, json!({"tool_name": "work", "log_level": level})).await;
        assert_eq!(status, 200);
    }
    let set: Vec<_> = server
        .of("logging/setLevel")
        .into_iter()
        .map(|came| came.message["params"]["level"].clone())
        .collect();
    assert_eq!(
        set,
        ["warning", "debug"],
        "only what is less severe than before"
    );
    house.finish().await;
}

#[tokio::test]
async fn ids_of_calls_are_checked_and_used_once() {
    let server = server(|_| Answer::Stream(Vec::new())).await;
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    for id in ["a blank", "seven77", &"x".repeat(101)] {
        let (status, answer) = execute(address, json!({"tool_name": "work", "call_id": id})).await;
        assert_eq!(status, 400, "{id}: {answer}");
        assert_eq!(answer["code"], "invalid_call_id", "{id}");
    }
    let (status, answer) =
        execute(address, json!({"tool_name": "work", "log_level": "loud"})).await;
    assert_eq!(status, 400, "{answer}");

    let body = json!({"tool_name": "work", "call_id": "my-call-1"});
    let call = Tasks::new().spawn(execute(address, body.clone()));
    server.until("tools/call", 1).await;
    let (status, answer) = execute(address, body).await;
    assert_eq!(status, 409, "{answer}");
    assert_eq!(answer["code"], "call_id_taken");
    let (status, answer) = send(address, "GET", "/api/v1/calls/my-call-1", &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(answer["status"], "running");

    let (status, answer) = send(address, "DELETE", "/api/v1/calls/my-call-1", &json!({})).await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["status"], "cancelling");
    let (status, answer) = call.await.unwrap();
    assert_eq!(status, 502, "{answer}");
    assert!(
        answer["error"].as_str().unwrap().contains("cancelled"),
        "{answer}"
    );
    server.until("notifications/cancelled", 1).await;
    let (status, _) = send(address, "DELETE", "/api/v1/calls/my-call-1", &json!({})).await;
    assert_eq!(status, 404);
    house.finish().await;
}

#[tokio::test]
async fn a_tool_that_needs_input_gets_it_from_its_caller() {
    let server = asker().await;
    let house = House::of(&[("files", server.url())]).await;
    let address = house.serve().await;
    let (status, answer) = execute(
        address,
        json!({"tool_name": "work", "call_id": "my-call-1"}),
    )
    .await;
    assert_eq!(status, 202, "{answer}");
    assert_eq!(answer["code"], "input_required");
    assert_eq!(answer["interaction"]["message"], "Name?");
    assert_eq!(
        answer["interaction"]["schema"]["properties"]["name"]["type"],
        "string"
    );
    let (_, state) = send(address, "GET", "/api/v1/calls/my-call-1", &Value::Null).await;
    assert_eq!(state["status"], "waiting_for_input");
    let page = serving::ask(address, "GET", "/dashboard/calls/now", &[], "").await;
    let page = String::from_utf8(page.body).unwrap();
    assert!(
        page.contains("Name?") && page.contains("Give this input"),
        "{page}"
    );

    let id = answer["interaction"]["id"].as_str().unwrap();
    let target = format!("/api/v1/interactions/{id}");
    let (status, refused) = send(address, "POST", &target, &json!({"action": "shrug"})).await;
    assert_eq!(status, 400, "{refused}");
    let (status, answer) = send(
        address,
        "POST",
        &target,
        &json!({"action": "accept", "content": "{\"name\": \"Ada\"}"}),
    )
    .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        answer["result"],
        json!({"action": "accept", "content": {"name": "Ada"}})
    );
    let (status, _) = send(address, "POST", &target, &json!({"action": "cancel"})).await;
    assert_eq!(status, 404, "it was given");
    let (status, kept) = send(address, "GET", "/api/v1/calls/my-call-1", &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(kept["result"], answer["result"]);
    let (status, _) = send(address, "DELETE", "/api/v1/calls/my-call-1", &json!({})).await;
    assert_eq!(status, 409);
    house.finish().await;
}

/// Sends a request as an operator does.
async fn operate(address: SocketAddr, method: &str, target: &str, body: &Value) -> (u16, Value) {
    let token = format!("Bearer {TOKEN}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", token.as_str()),
    ];
    let body = if method == "GET" {
        String::new()
    } else {
        body.to_string()
    };
    let answer = serving::ask(address, method, target, &headers, &body).await;
    (
        answer.status,
        serde_json::from_slice(&answer.body).unwrap_or_default(),
    )
}

#[tokio::test]
async fn the_question_of_a_call_is_shown_to_and_answered_by_its_caller_and_operators_only() {
    let server = asker().await;
    let house = House::with(&[("files", server.url())], |config| {
        config.server.operator_token = Some(Secret::new(TOKEN));
    })
    .await;
    let address = house.serve().await;
    let call = json!({"tool_name": "work", "call_id": "call-of-the-operator"});
    let (status, answer) = operate(address, "POST", "/api/v1/tools/execute", &call).await;
    assert_eq!(status, 202, "{answer}");
    let id = answer["interaction"]["id"].as_str().unwrap();
    for target in [
        "/dashboard/calls",
        "/dashboard/calls/now",
        "/dashboard",
        "/dashboard/overview/calls",
    ] {
        let page =
            String::from_utf8(serving::ask(address, "GET", target, &[], "").await.body).unwrap();
        assert!(
            !page.contains(id) && !page.contains("Name?"),
            "{target}: {page}"
        );
    }
    let token = format!("Bearer {TOKEN}");
    let page = serving::ask(
        address,
        "GET",
        "/dashboard/calls/now",
        &[("authorization", &token)],
        "",
    )
    .await;
    assert!(
        String::from_utf8(page.body).unwrap().contains("Name?"),
        "operators see it"
    );

    let interaction = format!("/api/v1/interactions/{id}");
    let accept = json!({"action": "accept", "content": {"name": "Eve"}});
    let (status, refused) = send(address, "POST", &interaction, &accept).await;
    assert_eq!(status, 404, "{refused}");
    assert_eq!(refused["code"], "unknown_interaction");
    let (_, unknown) = send(address, "POST", "/api/v1/interactions/no-such", &accept).await;
    assert_eq!(
        refused["detail"], unknown["detail"],
        "it looks like an unknown one"
    );
    for method in ["GET", "DELETE"] {
        let (status, refused) = send(
            address,
            method,
            "/api/v1/calls/call-of-the-operator",
            &json!({}),
        )
        .await;
        assert_eq!(status, 404, "{method}: {refused}");
        assert_eq!(refused["code"], "unknown_call");
    }
    let accept = json!({"action": "accept", "content": {"name": "Ada"}});
    let (status, answer) = operate(address, "POST", &interaction, &accept).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["content"]["name"], "Ada");

    // A caller without the token answers its own question, and an operator may.
    let call = json!({"tool_name": "work", "call_id": "call-of-a-client"});
    let (_, answer) = execute(address, call).await;
    let id = answer["interaction"]["id"].as_str().unwrap();
    let (status, _) = operate(
        address,
        "GET",
        "/api/v1/calls/call-of-a-client",
        &Value::Null,
    )
    .await;
    assert_eq!(status, 200);
    let (status, answer) = send(
        address,
        "POST",
        &format!("/api/v1/interactions/{id}"),
        &accept,
    )
    .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["content"]["name"], "Ada");
    house.finish().await;
}

/// A house with a program whose tool `ask` needs the name of its user. Its questions name no call.
async fn asking_program() -> House {
    asking_program_that_may(Interaction::default()).await
}

/// The same, with the input that it may request.
async fn asking_program_that_may(interaction: Interaction) -> House {
    let upstream = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_upstream.py");
    let program = StdioTarget::new("python3")
        .with_args([upstream, "stdio-legacy"])
        .with_interaction(interaction);
    let house = House::of(&[]).await;
    let endpoint = Endpoint::at("http://127.0.0.1:1/".parse().unwrap(), SourceTrust::Trusted);
    house.place_endpoint(
        "files",
        Endpoint {
            target: Some(Target::from(program)),
            ..endpoint
        },
    );
    house
        .until("listed", |snapshot| {
            snapshot.catalog.entry(&scenario("files")).is_some()
        })
        .await;
    house
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_question_of_a_second_call_waits_until_the_first_is_answered() {
    let house = asking_program().await;
    let address = house.serve().await;
    let ask = |id: &str| json!({"tool_name": "ask", "call_id": id});
    let (status, first) = execute(address, ask("my-call-1")).await;
    assert_eq!(status, 202, "{first}");
    let second = Tasks::new().spawn(execute(address, ask("my-call-2")));
    let asked = json!({"tool_name": "cancelled", "arguments": {"count": "asked"}});
    let both_ask = async { while execute(address, asked.clone()).await.1["result"] != "2" {} };
    tokio::time::timeout(PATIENCE, both_ask)
        .await
        .expect("two questions");
    let answer = async |waiting: &Value| {
        let id = waiting["interaction"]["id"].as_str().unwrap();
        let given = json!({"action": "accept", "content": {"name": "Ada"}});
        send(
            address,
            "POST",
            &format!("/api/v1/interactions/{id}"),
            &given,
        )
        .await
    };
    let (status, done) = answer(&first).await;
    assert_eq!(status, 200, "{done}");
    assert_eq!(done["result"], "Ada");
    let (status, second) = second.await.unwrap();
    assert_eq!(status, 202, "it is asked in its turn: {second}");
    let (_, done) = answer(&second).await;
    assert_eq!(done["result"], "Ada", "{done}");
    assert_eq!(done["declined"], Value::Null, "{done}");
    house.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_callsheet_declines_is_no_answer_of_a_user() {
    let house = asking_program().await;
    let address = house.serve().await;
    let client = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let done = client
        .result("tools/call", json!({"name": "files__ask"}))
        .await;
    let texts: Vec<_> = done["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect();
    let why = "callsheet declined a question of the tool, and no user did: the client of this call answers no questions; use one that does, such as `callsheet call`";
    assert_eq!(texts, ["decline", why], "{done}");
    let (_, log) = send(address, "GET", "/api/v1/calls", &Value::Null).await;
    assert_eq!(log["calls"][0]["note"], why, "{log}");
    let page = serving::ask(address, "GET", "/dashboard/calls/latest", &[], "").await;
    let page = String::from_utf8(page.body).unwrap();
    assert!(
        page.contains("the client of this call answers no questions"),
        "{page}"
    );
    house.finish().await;
}

/// A person may take minutes to answer the question of another client's call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_answers_no_questions_does_not_wait_for_the_person_of_another_one() {
    let house = asking_program().await;
    let address = house.serve().await;
    let (status, first) =
        execute(address, json!({"tool_name": "ask", "call_id": "my-call-1"})).await;
    assert_eq!(status, 202, "{first}");
    let client = McpClient::legacy(address, "2025-11-25", json!({})).await;
    let calling = client.result("tools/call", json!({"name": "files__ask"}));
    let done = tokio::time::timeout(PATIENCE, calling)
        .await
        .expect("an answer while the first call waits for its person");
    assert_eq!(done["content"][0]["text"], "decline", "{done}");
    let why = done["content"][1]["text"].as_str().unwrap_or_default();
    assert!(
        why.contains("the client of this call answers no questions"),
        "{done}"
    );
    let id = first["interaction"]["id"].as_str().unwrap();
    let given = json!({"action": "accept", "content": {"name": "Ada"}});
    let target = format!("/api/v1/interactions/{id}");
    let (_, answered) = send(address, "POST", &target, &given).await;
    assert_eq!(answered["result"], "Ada", "{answered}");
    assert_eq!(answered["declined"], Value::Null, "{answered}");
    house.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_rpc_and_turns_say_that_no_user_declined() {
    let house = asking_program_that_may(Interaction {
        elicitation: false,
        ..Interaction::default()
    })
    .await;
    let address = house.serve().await;
    let why = "callsheet declined a question of the tool, and no user did: the configuration does not let its server ask; add \"elicitation\" to `interaction` of its scenario";

    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "ask"}});
    let (_, answer) = send(address, "POST", "/rpc", &call).await;
    let expected = json!({"jsonrpc": "2.0", "id": 7, "result": "decline", "declined": why});
    assert_eq!(answer, expected);
    let (_, batch) = send(address, "POST", "/rpc", &json!([call])).await;
    assert_eq!(batch, json!([expected]));

    let tool_call =
        json!({"id": "c", "type": "function", "function": {"name": "ask", "arguments": "{}"}});
    let response = json!({"role": "assistant", "content": null, "tool_calls": [tool_call]});
    let body = json!({"response": response, "turn_id": "declined-1"});
    let target = "/api/v1/turns?format=openai";
    let (status, turn) = send(address, "POST", target, &body).await;
    assert_eq!(status, 200, "{turn}");
    assert_eq!(turn["calls"][0]["declined"], why, "{turn}");
    let said = turn["messages"][0]["content"].as_str().unwrap_or_default();
    assert!(said.starts_with("decline") && said.contains(why), "{turn}");
    let (_, kept) = send(address, "GET", "/api/v1/turns/declined-1", &Value::Null).await;
    assert_eq!(kept["calls"][0]["declined"], why, "{kept}");
    house.finish().await;
}

#[tokio::test]
async fn input_that_is_not_given_in_time_is_declined() {
    let server = asker().await;
    let house = House::with(&[("files", server.url())], |config| {
        config.calls.input_timeout = Duration::from_millis(50);
    })
    .await;
    let address = house.serve().await;
    let (status, _) = execute(
        address,
        json!({"tool_name": "work", "call_id": "my-call-1"}),
    )
    .await;
    assert_eq!(status, 202);
    let over = async {
        loop {
            let (_, state) = send(address, "GET", "/api/v1/calls/my-call-1", &Value::Null).await;
            if state["result"].is_object() {
                return state;
            }
        }
    };
    let state = tokio::time::timeout(PATIENCE, over).await.unwrap();
    assert_eq!(state["result"], json!({"action": "decline"}));
    let declined = state["declined"].as_str().unwrap_or_default();
    assert!(declined.contains("and no user did"), "{state}");
    house.finish().await;
}

/// A server whose tool reports its progress and ends when it is told to.
async fn reporting() -> McpServer {
    server(|came| {
        let Answer::Events(mut messages) = busy(came) else {
            unreachable!("it answers with events")
        };
        messages.pop();
        Answer::Stream(messages)
    })
    .await
}

/// Ends the tool of a server that reports its progress.
fn finish(server: &McpServer) {
    let id = server.of("tools/call")[0].message["id"].clone();
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    server.push(json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

#[test]
fn a_terminal_shows_a_bar_until_the_result_is_there() {
    // It makes a terminal.
    if !is_installed("script") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(reporting());
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"files\"\nurl = \"{}\"\n",
        server.url()
    ));
    let daemon = home.serve(&[]);
    let call = format!(
        "{} call --url {} work",
        env!("CARGO_BIN_EXE_callsheet"),
        daemon.url
    );
    let mut terminal = Command::new("script");
    terminal
        .args(["-qec", &call, "/dev/null"])
        .env("TERM", "xterm")
        .env("HOME", home.path(""));
    let mut ran = terminal
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = ran.stdout.take().unwrap();
    let mut shown = String::new();
    let mut bytes = [0; 1_000];
    // The tool ends when all that it said was seen.
    while !(shown.contains("50% 1 of 2: half") && shown.contains("warning: {\"left\":3}")) {
        let read = out.read(&mut bytes).unwrap();
        assert!(read > 0, "it ended without a bar: {shown}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
    }
    finish(&server);
    out.read_to_string(&mut shown).unwrap();
    assert!(shown.contains("warning: {\"left\":3}"), "{shown}");
    assert!(
        shown.contains("\u{1b}[2K"),
        "the bar is taken away: {shown:?}"
    );
    assert!(
        shown.trim_end().ends_with(" ms") && shown.contains("done"),
        "{shown:?}"
    );
    assert!(ran.wait().unwrap().success());
}

#[test]
fn the_command_line_shows_progress() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(reporting());
    let home = Home::with(&format!(
        "[[scenarios]]\nname = \"files\"\nurl = \"{}\"\n",
        server.url()
    ));
    let daemon = home.serve(&[]);
    let mut command = home.command(&["call", "--url", &daemon.url, "--progress", "work"]);
    let mut ran = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The tool ends when its progress was seen.
    let lines = BufReader::new(ran.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let seen: Vec<String> = lines.take(2).collect();
    assert!(seen[0].ends_with("1 of 2: half"), "{seen:?}");
    assert!(seen[1].ends_with(r#"warning: {"left":3}"#), "{seen:?}");
    finish(&server);
    let ended = ran.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(ended.stdout).unwrap(), "done\n");
}
