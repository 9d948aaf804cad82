//! Calls of MCP tools: what is sent, what a result means, and what a caller hears meanwhile.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use callsheet::calls::Request;
use callsheet::config::Config;
use callsheet::model::JsonText;
use callsheet::protocols::{
    CallIo, CallLog, CallProgress, CallerOffers, Cancelled, InputRound, InputWanted, LogLevel,
};
use callsheet::runtime::{Stop, StopTrigger, Tasks};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::support::house::{House, request};
use crate::support::mcp_server::{Answer, Came, McpServer, legacy, modern, tool};

/// What a server answers to a message.
type Reply = fn(&Came) -> Answer;

/// A caller that takes part.
#[derive(Default)]
struct Partner {
    heard: Mutex<Vec<String>>,
    answer: Option<&'static str>,
    offers: CallerOffers,
    cancel: Option<Stop>,
}

impl CallIo for Partner {
    fn offers(&self) -> CallerOffers {
        CallerOffers {
            elicitation_form: true,
            log_level: Some(LogLevel::Info),
            ..self.offers
        }
    }

    fn progress(&self, progress: CallProgress) {
        self.heard.lock().unwrap().push(progress.to_string());
    }

    fn log(&self, line: CallLog) {
        self.heard
            .lock()
            .unwrap()
            .push(format!("{}: {}", line.level.as_str(), line.text()));
    }

    fn input<'a>(&'a self, wanted: &'a InputWanted) -> BoxFuture<'a, Option<JsonText>> {
        self.heard.lock().unwrap().push(wanted.message());
        let given = self
            .answer
            .map(|answer| InputWanted::accepted(&JsonText::parse(answer).unwrap()));
        Box::pin(std::future::ready(given))
    }

    fn cancelled(&self) -> BoxFuture<'static, Cancelled> {
        match self.cancel.clone() {
            Some(cancel) => Box::pin(async move {
                cancel.wait().await;
                Cancelled::ByCaller
            }),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// A server with one tool, whose calls are answered so.
async fn server_with(
    mut own: impl FnMut(&Came) -> Answer + Send + 'static,
    mut call: impl FnMut(&Came) -> Answer + Send + 'static,
) -> McpServer {
    McpServer::start(move |came: &Came| {
        if came.method() == "tools/call" {
            call(came)
        } else {
            own(came)
        }
    })
    .await
}

#[tokio::test]
async fn a_call_carries_its_arguments_its_name_and_the_headers_that_the_schema_wants() {
    let schema = json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}}});
    let server = McpServer::start(modern(
        &json!([{"name": "gruß.laden", "inputSchema": schema}]),
    ))
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let name = house.names().remove(0);
    let called = house
        .call(&name, &json!({"region": "eu", "n": 7}))
        .await
        .unwrap();
    assert_eq!(
        called.outcome.result.unwrap().get(),
        r#"{"arguments":{"region":"eu","n":7}}"#
    );
    let came = server.of("tools/call").remove(0);
    assert_eq!(came.message["params"]["name"], "gruß.laden");
    assert_eq!(came.header("mcp-name"), Some("=?base64?Z3J1w58ubGFkZW4=?="));
    assert_eq!(came.header("mcp-param-region"), Some("eu"));
    house.finish().await;
}

#[tokio::test]
async fn a_failure_of_the_tool_and_an_error_of_the_protocol_are_answers() {
    let answers: [(Reply, &str, &str); 2] = [
        (
            |came| {
                came.result(&json!({"isError": true, "content": [{"type": "text", "text": "no such city"}]}))
            },
            "no such city",
            "tool_error",
        ),
        (
            |came| came.error(200, -32_602, "Unknown tool"),
            "Unknown tool",
            "-32602",
        ),
    ];
    for (answer, error, code) in answers {
        let server = server_with(legacy("2025-11-25", &json!([tool("weather")])), answer).await;
        let house = House::of(&[("files", server.url())]).await;
        let outcome = house.call("weather", &json!({})).await.unwrap().outcome;
        assert!(!outcome.success);
        assert_eq!(outcome.error.as_deref(), Some(error));
        assert_eq!(outcome.code.as_deref(), Some(code));
        house.finish().await;
    }
}

#[tokio::test]
async fn a_caller_hears_progress_and_log_lines_and_answers_questions() {
    let message =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let server = server_with(legacy("2025-11-25", &json!([tool("slow")])), move |came| {
        let token = &came.message["params"]["_meta"]["progressToken"];
        Answer::Events(vec![
            message("notifications/progress", json!({"progressToken": token, "progress": 1, "total": 2, "message": "half"})),
            message("notifications/progress", json!({"progressToken": "another", "progress": 9})),
            message("notifications/message", json!({"level": "info", "data": "working"})),
            json!({"jsonrpc": "2.0", "id": "q-1", "method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object"}}}),
            json!({"jsonrpc": "2.0", "id": 5, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 6, "method": "sampling/createMessage", "params": {}}),
            json!({"jsonrpc": "2.0", "id": 999, "result": {"content": []}}),
            json!({"jsonrpc": "2.0", "id": came.message["id"], "result": {"content": [{"type": "text", "text": "done"}]}}),
        ])
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let partner = Arc::new(Partner {
        answer: Some(r#"{"name":"Ada"}"#),
        ..Partner::default()
    });
    let called = house
        .app
        .calls()
        .execute_for(request("slow", &json!({})), Some(partner.clone()))
        .await
        .unwrap();
    assert_eq!(called.outcome.result.unwrap().get(), "\"done\"");
    assert_eq!(
        *partner.heard.lock().unwrap(),
        ["1 of 2: half", "info: working", "Name?"]
    );
    let answers: Vec<_> = server
        .came()
        .into_iter()
        .filter(|came| came.message.get("method").is_none() && came.http == http::Method::POST)
        .map(|came| came.message)
        .collect();
    assert_eq!(
        answers[0],
        json!({"jsonrpc": "2.0", "id": "q-1", "result": {"action": "accept", "content": {"name": "Ada"}}})
    );
    assert_eq!(answers[1], json!({"jsonrpc": "2.0", "id": 5, "result": {}}));
    assert_eq!(answers[2]["error"]["code"], -32_601);
    house.finish().await;
}

#[tokio::test]
async fn a_call_goes_on_with_the_input_that_a_modern_server_needs() {
    let server = server_with(modern(&json!([tool("greet")])), |came| {
        let params = &came.message["params"];
        if params.get("requestState").is_none() {
            return came.result(&json!({"resultType": "input_required", "requestState": "sé\u{1}\"", "inputRequests": {
                "who": {"method": "elicitation/create", "params": {"mode": "form", "message": "Name?", "requestedSchema": {"type": "object"}}}}}));
        }
        came.result(&json!({"resultType": "complete", "content": [], "structuredContent": {"state": params["requestState"], "replies": params["inputResponses"]}}))
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let partner = Arc::new(Partner {
        answer: Some(r#"{"name":"Ada"}"#),
        ..Partner::default()
    });
    let called = house
        .app
        .calls()
        .execute_for(request("greet", &json!({})), Some(partner))
        .await
        .unwrap();
    let result: Value = serde_json::from_str(called.outcome.result.unwrap().get()).unwrap();
    assert_eq!(
        result,
        json!({"state": "sé\u{1}\"", "replies": {"who": {"action": "accept", "content": {"name": "Ada"}}}})
    );
    let ids: Vec<_> = server
        .of("tools/call")
        .into_iter()
        .map(|came| came.message["id"].clone())
        .collect();
    assert_ne!(ids[0], ids[1]);
    let declared = &server.of("tools/call")[0].message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(*declared, json!({"elicitation": {}}));
    house.finish().await;
}

#[tokio::test]
async fn a_caller_that_resumes_gets_the_requests_and_sends_the_call_again_with_the_input() {
    let requests = json!({"who": {"method": "elicitation/create", "params": {"message": "Name?"}}});
    let server = server_with(modern(&json!([tool("greet")])), move |came| {
        let params = &came.message["params"];
        if params.get("inputResponses").is_none() {
            let result = json!({"resultType": "input_required", "requestState": "sealed", "inputRequests": requests});
            return came.result(&result);
        }
        let given = json!({"state": params["requestState"], "replies": params["inputResponses"]});
        came.result(&json!({"resultType": "complete", "content": [], "structuredContent": given}))
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let offers = CallerOffers {
        resumes: true,
        ..CallerOffers::default()
    };
    let partner = Arc::new(Partner {
        offers,
        ..Partner::default()
    });
    let call = |request| {
        house
            .app
            .calls()
            .execute_for(request, Some(partner.clone()))
    };
    let outcome = call(request("greet", &json!({}))).await.unwrap().outcome;
    assert!(!outcome.success);
    assert_eq!(outcome.code.as_deref(), Some("input_required"));
    let required = outcome.input_required.unwrap();
    assert_eq!(required.state.as_deref(), Some("sealed"));
    let sent: Value = serde_json::from_str(required.by_key.get()).unwrap();
    assert_eq!(sent["who"]["params"]["message"], "Name?");
    assert!(
        partner.heard.lock().unwrap().is_empty(),
        "nobody is asked meanwhile"
    );

    let responses = JsonText::parse(r#"{"who":{"action":"cancel"}}"#).unwrap();
    let resumed = Some(InputRound {
        by_key: responses,
        state: required.state,
    });
    let outcome = call(Request {
        resumed,
        ..request("greet", &json!({}))
    })
    .await
    .unwrap()
    .outcome;
    let result: Value = serde_json::from_str(outcome.result.unwrap().get()).unwrap();
    assert_eq!(
        result,
        json!({"state": "sealed", "replies": {"who": {"action": "cancel"}}})
    );
    house.finish().await;
}

#[tokio::test]
async fn a_server_that_needs_input_without_end_ends_its_call() {
    let server = server_with(modern(&json!([tool("nag")])), |came| {
        came.result(&json!({"resultType": "input_required", "requestState": "more"}))
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let outcome = house.call("nag", &json!({})).await.unwrap().outcome;
    assert_eq!(outcome.code.as_deref(), Some("input_required"));
    assert!(outcome.error.unwrap().contains("16 times"));
    assert_eq!(server.of("tools/call").len(), 16);
    house.finish().await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_a_legacy_server() {
    let server = server_with(legacy("2025-11-25", &json!([tool("slow")])), |_| {
        Answer::Stream(Vec::new())
    })
    .await;
    let house = House::of(&[("files", server.url())]).await;
    let (trigger, stop) = StopTrigger::new();
    let partner = Arc::new(Partner {
        cancel: Some(stop),
        ..Partner::default()
    });
    let app = Arc::clone(&house.app);
    let calling = Tasks::new().spawn(async move {
        app.calls()
            .execute_for(request("slow", &json!({})), Some(partner))
            .await
    });
    server.until("tools/call", 1).await;
    trigger.stop();
    assert!(calling.await.unwrap().is_err());
    server.until("notifications/cancelled", 1).await;
    let id = server.of("tools/call")[0].message["id"].clone();
    assert_eq!(
        server.of("notifications/cancelled")[0].message["params"]["requestId"],
        id
    );
    house.finish().await;
}

/// Otherwise the server goes on with work that no caller waits for.
#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled_at_a_legacy_server() {
    let server = server_with(legacy("2025-11-25", &json!([tool("slow")])), |_| {
        Answer::Stream(Vec::new())
    })
    .await;
    let limit = |config: &mut Config| config.calls.max_timeout = Duration::from_millis(50);
    let house = House::with(&[("files", server.url())], limit).await;
    assert_eq!(house.refusal(request("slow", &json!({}))).await, "timeout");
    server.until("notifications/cancelled", 1).await;
    let id = server.of("tools/call")[0].message["id"].clone();
    assert_eq!(
        server.of("notifications/cancelled")[0].message["params"]["requestId"],
        id
    );
    house.finish().await;
}

#[tokio::test]
async fn a_call_whose_stream_broke_is_not_sent_again() {
    let server = server_with(
        modern(&json!([tool("pay")])),
        |_| Answer::Events(Vec::new()),
    )
    .await;
    let house = House::of(&[("files", server.url())]).await;
    assert_eq!(house.refusal(request("pay", &json!({}))).await, "broken");
    assert_eq!(server.of("tools/call").len(), 1);
    house.finish().await;
}

/// MCP 2025-11-25 has this for servers that keep no stream open while a tool runs.
#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_continued_after_its_last_event() {
    let events = |text: String| {
        Answer::With(
            "content-type",
            "text/event-stream".to_owned(),
            Box::new(Answer::Text(200, text)),
        )
    };
    let mut own = legacy("2025-11-25", &json!([tool("slow")]));
    let mut call = Value::Null;
    let server =
        McpServer::start(
            move |came| match (came.method(), came.header("last-event-id")) {
                ("tools/call", _) => {
                    call = came.message["id"].clone();
                    events("id: 1\nretry: 50\ndata:\n\n".to_owned())
                }
                ("GET", Some("1")) => events(
                    "id: 2\nretry: 50\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"other\"}\n\n"
                        .to_owned(),
                ),
                ("GET", Some("2")) => {
                    let result = json!({"content": [{"type": "text", "text": "at last"}]});
                    events(format!(
                        "data: {}\n\n",
                        json!({"jsonrpc": "2.0", "id": call, "result": result})
                    ))
                }
                _ => own(came),
            },
        )
        .await;
    let house = House::of(&[("legacy", server.url())]).await;
    let outcome = house.call("slow", &json!({})).await.unwrap().outcome;
    assert_eq!(outcome.result.unwrap().get(), "\"at last\"");
    assert_eq!(server.of("tools/call").len(), 1);
    house.finish().await;
}
