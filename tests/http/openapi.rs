//! `/openapi.json` and `/docs` of a whole daemon: the description says what the routes really take
//! and answer.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

use crate::support::api::{Operation, described, lacks, operations};
use crate::support::assert_empty;
use crate::support::daemon::{Daemon, PATIENCE};
use crate::support::serving::ask;

/// Routes that look at no parameters: whoever probes or scrapes must not be turned away for a word
/// too many.
const LENIENT: [&str; 4] = ["listRoutes", "isAlive", "isReady", "scrapeMetrics"];

#[tokio::test]
async fn the_description_is_valid_and_cached() {
    let (_home, daemon, _files, _notes) = described().await;
    let plain = daemon.get("/openapi.json").await;
    assert_eq!(plain.status, 200);
    assert_eq!(plain.header("content-type"), "application/json");
    let document = plain.json();
    assert_eq!(document["openapi"], "3.1.0");
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert!(
            jsonschema::draft202012::meta::is_valid(schema),
            "{name} is not a schema: {schema}"
        );
    }
    let etag = plain.header("etag").to_owned();
    assert!(etag.starts_with('"'), "{etag} is strong");
    let known = ask(
        daemon.address,
        "GET",
        "/openapi.json",
        &[("if-none-match", &etag)],
        "",
    )
    .await;
    assert_eq!(known.status, 304);
    assert_empty!(known.body);
    assert_eq!(known.header("etag"), etag.as_str());
    let coded = ask(
        daemon.address,
        "GET",
        "/openapi.json",
        &[("accept-encoding", "gzip")],
        "",
    )
    .await;
    assert_eq!(coded.header("content-encoding"), "gzip");
    assert_ne!(coded.header("etag"), etag);
    let mut unpacked = Vec::new();
    flate2::read::GzDecoder::new(&coded.body[..])
        .read_to_end(&mut unpacked)
        .unwrap();
    assert_eq!(unpacked, plain.body);
    daemon.stop().await;
}

/// What an answer lacks of what the description promises for its status.
fn unlike(
    document: &Value,
    operation: &Operation<'_>,
    answer: &crate::support::serving::Answer,
) -> Vec<String> {
    let Some(promised) = operation.response(document, answer.status) else {
        return vec![format!("{} is not described", answer.status)];
    };
    let Some(content) = promised.get("content").and_then(Value::as_object) else {
        return if answer.body.is_empty() {
            Vec::new()
        } else {
            vec!["a body that is not described".into()]
        };
    };
    let media = answer.header("content-type");
    let Some(content) = content.get(media) else {
        return vec![format!("`{media}` is not described")];
    };
    if media.contains("json") {
        lacks(document, &content["schema"], &answer.json())
    } else {
        Vec::new()
    }
}

#[tokio::test]
async fn every_read_answers_as_described() {
    let (_home, daemon, _files, _notes) = described().await;
    let document = daemon.json("/openapi.json").await;
    let mut formats = 0;
    for operation in operations(&document)
        .iter()
        .filter(|operation| operation.method == "GET")
    {
        if operation.id() == "followEvents" {
            continue;
        }
        let mut targets = vec![operation.target(|name| name == "q")];
        // Each parameter alone; what only goes with another one is refused as described.
        let names = operation
            .params("query")
            .into_iter()
            .map(|param| param["name"].as_str().unwrap());
        targets.extend(names.map(|name| operation.target(|given| given == name)));
        if let Some(format) = operation
            .params("query")
            .iter()
            .find(|param| param["name"] == "format")
        {
            for id in format["schema"]["enum"].as_array().unwrap() {
                formats += 1;
                let format = format!("format={}&q=read", id.as_str().unwrap());
                let format = if operation.id() == "getTool" {
                    format.replace("&q=read", "")
                } else {
                    format
                };
                targets.push(format!("{}?{format}", operation.target(|_| false)));
            }
        }
        for target in targets {
            let answer = daemon.get(&target).await;
            let unlike = unlike(&document, operation, &answer);
            assert!(
                unlike.is_empty(),
                "GET {target} ({}): {unlike:?}",
                answer.status
            );
        }
    }
    // What is written by hand is as its type says, not only like one of several.
    for (target, name) in [
        ("/api/v1/tools", "ToolManifest"),
        (
            "/api/v1/tools?report=true&format=openai&max_tools=1",
            "ReportedList",
        ),
        ("/api/v1/tools/read_text", "Tool"),
    ] {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        assert_eq!(
            lacks(&document, &schema, &daemon.json(target).await),
            [""; 0],
            "{target}"
        );
    }
    assert!(
        formats > 20,
        "every format of three operations was asked for"
    );
    daemon.stop().await;
}

#[tokio::test]
async fn each_route_takes_the_described_parameters_and_no_others() {
    let (_home, daemon, _files, _notes) = described().await;
    let document = daemon.json("/openapi.json").await;
    for operation in operations(&document) {
        let described: BTreeSet<&str> = operation
            .params("query")
            .iter()
            .map(|param| param["name"].as_str().unwrap())
            .collect();
        if LENIENT.contains(&operation.id()) {
            assert_empty!(described);
            continue;
        }
        let target = operation
            .target(|_| false)
            .split('?')
            .next()
            .unwrap()
            .to_owned()
            + "?no_such_parameter=1";
        let refused = daemon.send(&operation.method, &target).await;
        assert_eq!(refused.status, 400, "{} {target}", operation.method);
        let known = refused.json()["known"].clone();
        let known: BTreeSet<&str> = known
            .as_array()
            .unwrap()
            .iter()
            .map(|name| name.as_str().unwrap())
            .collect();
        assert_eq!(known, described, "{} {target}", operation.method);
        assert_empty!(unlike(&document, &operation, &refused));
    }
    daemon.stop().await;
}

#[tokio::test]
async fn each_path_takes_the_described_methods_and_no_others() {
    let (_home, daemon, _files, _notes) = described().await;
    let document = daemon.json("/openapi.json").await;
    for (path, item) in document["paths"].as_object().unwrap() {
        let mut methods: BTreeSet<String> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|name| name.to_uppercase())
            .collect();
        if methods.contains("GET") {
            methods.insert("HEAD".into());
        }
        let target = path
            .replace("{name}", "files")
            .replace("{id}", "1")
            .replace("{module}", "desk");
        for method in ["PATCH", "TRACE", "OPTIONS"]
            .into_iter()
            .filter(|method| !methods.contains(*method))
        {
            let refused = daemon.send(method, &target).await;
            assert_eq!(refused.status, 405, "{method} {target}");
            let allowed: BTreeSet<String> = refused
                .header("allow")
                .split(',')
                .map(|m| m.trim().to_owned())
                .collect();
            assert_eq!(allowed, methods, "{method} {target}");
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_stream_of_events_tells_what_is_described() {
    let (_home, daemon, _files, _notes) = described().await;
    let document = daemon.json("/openapi.json").await;
    let mut stream = TcpStream::connect(daemon.address).await.unwrap();
    let ask = format!(
        "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n",
        daemon.address
    );
    stream.write_all(ask.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(stream).lines();
    let first = async {
        let mut head = Vec::new();
        let mut event = Vec::new();
        while let Some(line) = lines.next_line().await.unwrap() {
            head.push(line.clone());
            if let Some(data) = line.strip_prefix("data: ") {
                event.push(data.to_owned());
                break;
            }
        }
        (head, event)
    };
    let (head, data) = tokio::time::timeout(PATIENCE, first)
        .await
        .expect("a snapshot comes at once");
    assert!(
        head.iter()
            .any(|line| line == "content-type: text/event-stream"),
        "{head:?}"
    );
    let id = head
        .iter()
        .find_map(|line| line.strip_prefix("id: "))
        .unwrap();
    let data: Value = serde_json::from_str(&data[0]).unwrap();
    let event = json!({"id": id, "event": "snapshot", "data": data});
    let lacking = lacks(
        &document,
        &json!({"$ref": "#/components/schemas/Event"}),
        &event,
    );
    assert!(lacking.is_empty(), "{lacking:?}");
    let streamed = json!({"id": id, "event": "snapshot", "data": data.to_string()});
    assert_eq!(
        lacks(
            &document,
            &json!({"$ref": "#/components/schemas/StreamedEvent"}),
            &streamed
        ),
        [""; 0]
    );
    let exact = lacks(
        &document,
        &json!({"$ref": "#/components/schemas/EventSnapshot"}),
        &data,
    );
    assert!(exact.is_empty(), "{exact:?}");
    drop(lines);
    daemon.stop().await;
}

/// Everything that odd askers may write into the routes that Schemathesis leaves out, because a
/// good answer of theirs never ends.
#[tokio::test]
async fn odd_questions_to_endless_routes_are_refused() {
    let (_home, daemon, _files, _notes) = described().await;
    for path in ["/api/v1/events", "/api/v1/ws"] {
        for query in [
            "kind=",
            "kind=x",
            "format=x",
            "max_tools=-1",
            "scenario=%00",
            "profile=%0A",
            "q=a&q=b",
            "%ff=%ff",
        ] {
            let response = tokio::time::timeout(
                Duration::from_secs(20),
                daemon.get(&format!("{path}?{query}")),
            )
            .await;
            let answer = response.unwrap_or_else(|_| panic!("{path}?{query} was not refused"));
            assert_eq!(answer.status, 400, "{path}?{query}");
        }
    }
    daemon.stop().await;
}

async fn page(daemon: &Daemon, path: &str) -> String {
    let answer = ask(daemon.address, "GET", path, &[("accept", "text/html")], "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert!(
        answer
            .header("content-security-policy")
            .contains("default-src 'none'")
    );
    String::from_utf8(answer.body).unwrap()
}

#[tokio::test]
async fn the_reference_shows_every_operation_on_one_page() {
    let (_home, daemon, _files, _notes) = described().await;
    let document = daemon.json("/openapi.json").await;
    let page = page(&daemon, "/docs").await;
    for operation in operations(&document) {
        let id = operation.id();
        assert!(page.contains(&format!("id=\"{id}\"")), "{id} has a section");
        assert!(
            page.contains(&format!("href=\"#{id}\"")),
            "{id} is in the table of contents"
        );
        for param in operation.params("query") {
            assert!(page.contains(&format!("<code>{}</code>", param["name"].as_str().unwrap())));
        }
    }
    assert!(
        page.contains("curl -X POST &#39;") || page.contains("curl -X POST '"),
        "examples can be tried"
    );
    // What a link on the page points to is there, and nothing is loaded from anywhere else.
    let targets: BTreeSet<&str> = page
        .split("id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    for link in page
        .split("href=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
    {
        assert!(
            link.starts_with('/') || link.starts_with('#'),
            "{link} is ours"
        );
        if let Some(anchor) = link.strip_prefix('#') {
            assert!(targets.contains(anchor), "#{anchor} is on the page");
        }
    }
    for name in ["src=\"http", "src=\"//", "<script>", "style=\""] {
        assert!(!page.contains(name), "{name}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn the_dashboard_links_the_reference() {
    let (_home, daemon, _files, _notes) = described().await;
    assert!(page(&daemon, "/").await.contains("href=\"/docs\""));
    let refused = ask(
        daemon.address,
        "GET",
        "/docs?x=1",
        &[("accept", "text/html")],
        "",
    )
    .await;
    assert_eq!(refused.status, 400);
    daemon.stop().await;
}
