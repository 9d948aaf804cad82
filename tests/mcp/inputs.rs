//! Requests of servers for input of the caller: what they may request, and what is answered.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{HttpTarget, Interaction, JsonText};
use callsheet::protocols::{CallIo, CallerOffers, InputWanted};
use callsheet::runtime::{Clock, Tasks};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::support::house::{House, request, scenario};
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};

/// A caller that offers everything and answers with the method that was requested.
#[derive(Default)]
struct Obliging {
    requested: Mutex<Vec<String>>,
    takes: Option<Duration>,
}

impl CallIo for Obliging {
    fn offers(&self) -> CallerOffers {
        CallerOffers {
            elicitation_form: true,
            sampling: true,
            roots: true,
            ..CallerOffers::default()
        }
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        Box::pin(async move {
            self.requested
                .lock()
                .unwrap()
                .push(wanted.method.to_string());
            if let Some(takes) = self.takes {
                tokio::time::pause();
                Clock::system().sleep(takes).await;
                tokio::time::resume();
            }
            let result = json!({"method": wanted.method.as_str(), "params": serde_json::from_str::<Value>(wanted.params.get()).unwrap()});
            Some(JsonText::parse(&result.to_string()).unwrap())
        })
    }
}

/// A house with this server, which may request so much.
async fn house(server: &McpServer, interaction: Interaction) -> House {
    let house = House::of(&[]).await;
    let target = HttpTarget {
        interaction,
        ..HttpTarget::at(server.url())
    };
    let endpoint = Endpoint {
        target: Some(target.into()),
        ..Endpoint::at(server.url(), SourceTrust::Trusted)
    };
    house.place_endpoint("server", endpoint);
    house
        .until("the list", |snapshot| {
            snapshot.catalog.entry(&scenario("server")).is_some()
        })
        .await;
    house
}

fn all(folders: &[&str]) -> Interaction {
    let folders = folders
        .iter()
        .map(|folder| folder.parse().unwrap())
        .collect();
    Interaction {
        elicitation: true,
        sampling: true,
        roots: true,
        folders,
        ..Interaction::default()
    }
}

/// A legacy server whose only tool requests these inputs before it answers.
async fn legacy_with(requests: &[&str]) -> McpServer {
    let mut greet = legacy("2025-11-25", &json!([tool("work")]));
    let requests: Vec<String> = requests.iter().map(|method| (*method).to_owned()).collect();
    McpServer::start(move |came: &Came| {
        if came.method() != "tools/call" {
            return greet(came);
        }
        let mut messages: Vec<Value> = requests
            .iter()
            .map(|method| json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {"of": method}}))
            .collect();
        messages.push(json!({"jsonrpc": "2.0", "id": came.message["id"], "result": {"content": []}}));
        Answer::Events(messages)
    })
    .await
}

/// The answers that the server got to its requests, by their ids.
fn answers(server: &McpServer) -> Vec<Value> {
    let posts = server
        .came()
        .into_iter()
        .filter(|came| came.message.get("method").is_none());
    posts
        .map(|came| came.message)
        .filter(Value::is_object)
        .collect()
}

const ALL: [&str; 4] = [
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "tasks/list",
];

#[tokio::test]
async fn a_legacy_server_gets_only_what_its_configuration_allows() {
    let server = legacy_with(&ALL).await;
    let house = house(&server, Interaction::default()).await;
    let caller = Arc::new(Obliging::default());
    house
        .app
        .calls()
        .execute_for(request("work", &json!({})), Some(caller.clone()))
        .await
        .unwrap();
    assert_eq!(*caller.requested.lock().unwrap(), ["elicitation/create"]);
    assert_eq!(
        server.of("initialize")[0].message["params"]["capabilities"],
        json!({"elicitation": {}})
    );
    let answers = answers(&server);
    assert_eq!(answers[0]["result"]["method"], "elicitation/create");
    for refused in &answers[1..] {
        assert_eq!(refused["error"]["code"], -32_601, "{refused}");
    }
    house.finish().await;
}

#[tokio::test]
async fn sampling_and_folders_reach_the_caller_or_the_configuration_where_allowed() {
    let server = legacy_with(&ALL).await;
    let house = house(&server, all(&["file:///srv/files"])).await;
    let caller = Arc::new(Obliging::default());
    house
        .app
        .calls()
        .execute_for(request("work", &json!({})), Some(caller.clone()))
        .await
        .unwrap();
    assert_eq!(
        *caller.requested.lock().unwrap(),
        ["elicitation/create", "sampling/createMessage"]
    );
    let declared = &server.of("initialize")[0].message["params"]["capabilities"];
    assert_eq!(
        *declared,
        json!({"elicitation": {}, "sampling": {}, "roots": {}})
    );
    let answers = answers(&server);
    assert_eq!(
        answers[1]["result"]["params"],
        json!({"of": "sampling/createMessage"})
    );
    assert_eq!(
        answers[2]["result"],
        json!({"roots": [{"uri": "file:///srv/files"}]})
    );
    assert_eq!(answers[3]["error"]["code"], -32_601);

    // A caller that takes no part is asked for nothing, and the tool ends all the same.
    assert!(
        house
            .call("work", &json!({}))
            .await
            .unwrap()
            .outcome
            .success
    );
    let answers = self::answers(&server);
    assert_eq!(answers[4]["result"], json!({"action": "decline"}));
    assert_eq!(answers[5]["error"]["code"], -1);
    assert_eq!(
        answers[6]["result"],
        json!({"roots": [{"uri": "file:///srv/files"}]})
    );
    house.finish().await;
}

#[tokio::test]
async fn a_request_outside_of_a_call_is_answered_at_once() {
    let server = legacy_with(&[]).await;
    let house = house(&server, all(&["file:///srv/files"])).await;
    server.until("GET", 1).await;
    for method in [
        "ping",
        "roots/list",
        "elicitation/create",
        "sampling/createMessage",
    ] {
        server.push(json!({"jsonrpc": "2.0", "id": method, "method": method}));
    }
    server.until("POST", 4).await;
    let answers = answers(&server);
    assert_eq!(
        answers[0],
        json!({"jsonrpc": "2.0", "id": "ping", "result": {}})
    );
    assert_eq!(
        answers[1]["result"],
        json!({"roots": [{"uri": "file:///srv/files"}]})
    );
    assert_eq!(answers[2]["result"], json!({"action": "decline"}));
    assert_eq!(answers[3]["error"]["code"], -1);
    house.finish().await;
}

#[tokio::test]
async fn what_is_requested_before_the_answer_is_answered_though_both_come_together() {
    let mut greet = legacy("2025-11-25", &json!([tool("work")]));
    let server = McpServer::start(move |came: &Came| {
        if came.method() != "tools/call" {
            return greet(came);
        }
        let question =
            json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}});
        let answer = json!({"jsonrpc": "2.0", "id": came.message["id"], "result": {"content": []}});
        Answer::Events(vec![json!([question, answer])])
    })
    .await;
    let house = house(&server, Interaction::default()).await;
    for calls in 1..=10 {
        let caller = Arc::new(Obliging::default());
        house
            .app
            .calls()
            .execute_for(request("work", &json!({})), Some(caller))
            .await
            .unwrap();
        assert_eq!(answers(&server).len(), calls);
    }
    house.finish().await;
}

/// A legacy server that signals no changes. Its only tool requests input, on the stream of the call
/// or on the server's own one, and answers when it has the input.
async fn waiting(on_own_stream: bool) -> Arc<McpServer> {
    let mut own = legacy("2025-11-25", &json!([tool("work")]));
    let server = Arc::new(McpServer::start(|_: &Came| Answer::Silence).await);
    let pushing = Arc::downgrade(&server);
    let mut call_id = Value::Null;
    server.script(move |came: &Came| {
        let question =
            json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "Name?"}});
        let Some(server) = pushing.upgrade() else { return Answer::Silence };
        match came.method() {
            "initialize" => without_signals(own(came)),
            "tools/call" => {
                call_id = came.message["id"].clone();
                if !on_own_stream {
                    return Answer::Stream(vec![question]);
                }
                server.push(question);
                Answer::Later
            }
            _ => {
                if let Some(given) = came.message.get("result") {
                    let result = json!({"content": [], "structuredContent": given});
                    server.push(json!({"jsonrpc": "2.0", "id": call_id, "result": result}));
                }
                own(came)
            }
        }
    });
    server
}

/// The greeting of a server that does not say that it signals changes.
fn without_signals(greeting: Answer) -> Answer {
    match greeting {
        Answer::With(name, value, answer) => {
            Answer::With(name, value, Box::new(without_signals(*answer)))
        }
        Answer::Json(status, mut message) => {
            message["result"]["capabilities"] = json!({"tools": {}});
            Answer::Json(status, message)
        }
        other => other,
    }
}

#[tokio::test]
async fn input_that_a_silent_server_requests_on_its_own_stream_reaches_the_caller_of_its_only_call()
{
    let server = waiting(true).await;
    let house = house(&server, Interaction::default()).await;
    server.until("GET", 1).await;
    let caller = Arc::new(Obliging::default());
    let answered = house
        .app
        .calls()
        .execute_for(request("work", &json!({})), Some(caller.clone()))
        .await;
    let given: Value =
        serde_json::from_str(answered.unwrap().outcome.result.unwrap().get()).unwrap();
    assert_eq!(given["params"]["message"], "Name?");
    assert_eq!(*caller.requested.lock().unwrap(), ["elicitation/create"]);
    house.finish().await;
}

#[tokio::test]
async fn time_in_which_a_person_is_waited_for_is_not_the_tools() {
    for on_own_stream in [false, true] {
        let server = waiting(on_own_stream).await;
        let house = house(&server, Interaction::default()).await;
        server.until("GET", 1).await;
        // Longer than any call may take (`calls.max_timeout`).
        let caller = Arc::new(Obliging {
            takes: Some(Duration::from_secs(3_000)),
            ..Obliging::default()
        });
        let answered = house
            .app
            .calls()
            .execute_for(request("work", &json!({})), Some(caller))
            .await;
        assert!(
            answered
                .as_ref()
                .is_ok_and(|answered| answered.outcome.success),
            "{on_own_stream}: {answered:?}"
        );
        house.finish().await;
    }
}

#[tokio::test]
async fn a_modern_server_gets_the_folders_of_the_configuration_within_the_call() {
    let mut own = modern(&json!([tool("work")]));
    let server = McpServer::start(move |came: &Came| {
        let params = &came.message["params"];
        if came.method() == "tools/call" && params.get("inputResponses").is_none() {
            let requests = json!({"where": {"method": "roots/list"}, "sample": {"method": "sampling/createMessage", "params": {"max": 1}}});
            return came.result(&json!({"resultType": "input_required", "inputRequests": requests}));
        }
        if came.method() == "tools/call" {
            let given = params["inputResponses"].clone();
            return came.result(&json!({"resultType": "complete", "content": [], "structuredContent": given}));
        }
        own(came)
    })
    .await;
    let house = house(&server, all(&["file:///srv/files"])).await;
    let called = house
        .app
        .calls()
        .execute_for(
            request("work", &json!({})),
            Some(Arc::new(Obliging::default())),
        )
        .await;
    let given: Value = serde_json::from_str(called.unwrap().outcome.result.unwrap().get()).unwrap();
    assert_eq!(
        given["where"],
        json!({"roots": [{"uri": "file:///srv/files"}]})
    );
    assert_eq!(given["sample"]["params"], json!({"max": 1}));
    let outcome = house.call("work", &json!({})).await.unwrap().outcome;
    assert_eq!(outcome.code.as_deref(), Some("input_required"));
    assert!(outcome.error.unwrap().contains("sampling/createMessage"));
    house.finish().await;
}

/// A caller that gives its input when the test lets it.
struct Slow(watch::Receiver<bool>);

impl CallIo for Slow {
    fn offers(&self) -> CallerOffers {
        CallerOffers {
            elicitation_form: true,
            ..CallerOffers::default()
        }
    }

    fn input<'a>(&'a self, _: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        let mut may_answer = self.0.clone();
        Box::pin(async move {
            may_answer.wait_for(|may| *may).await.unwrap();
            Some(JsonText::parse(r#"{"action":"accept","content":{}}"#).unwrap())
        })
    }
}

#[tokio::test]
async fn every_request_of_a_server_is_answered_however_much_comes_while_the_caller_is_waited_for() {
    let mut own = legacy("2025-11-25", &json!([tool("work")]));
    let server = Arc::new(McpServer::start(|_: &Came| Answer::Silence).await);
    let pushing = Arc::downgrade(&server);
    let mut call_id = Value::Null;
    let mut answered = 0;
    server.script(move |came: &Came| {
        let request = |id: usize| json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": "Name?"}});
        let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
        if came.method() == "tools/call" {
            call_id = came.message["id"].clone();
            let mut messages = vec![request(0)];
            messages.extend(std::iter::repeat_n(note, 100));
            messages.push(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"}));
            messages.extend((1..=20).map(request));
            return Answer::Stream(messages);
        }
        answered += usize::from(came.message.get("result").is_some());
        if answered == 22
            && let Some(server) = pushing.upgrade()
        {
            server.push(json!({"jsonrpc": "2.0", "id": call_id, "result": {"content": []}}));
        }
        own(came)
    });
    let house = house(&server, Interaction::default()).await;
    let (may_answer, caller) = watch::channel(false);
    let calls = house.app.calls().clone();
    let call = Tasks::new().spawn(async move {
        calls
            .execute_for(request("work", &json!({})), Some(Arc::new(Slow(caller))))
            .await
    });
    // The ping and four requests are answered while the caller is waited for, and 16 wait for it.
    server.until("POST", 5).await;
    let mut ids: Vec<_> = answers(&server)
        .iter()
        .map(|answer| answer["id"].clone())
        .collect();
    assert_eq!(
        ids,
        [json!("ping"), json!(17), json!(18), json!(19), json!(20)]
    );
    assert_eq!(answers(&server)[1]["result"], json!({"action": "decline"}));
    may_answer.send_replace(true);
    assert!(call.await.unwrap().unwrap().outcome.success);
    let answers = answers(&server);
    ids.extend((0..=16).map(|id| json!(id)));
    assert_eq!(
        answers
            .iter()
            .map(|answer| answer["id"].clone())
            .collect::<Vec<_>>(),
        ids
    );
    assert_eq!(answers[5]["result"]["action"], "accept");
    house.finish().await;
}
