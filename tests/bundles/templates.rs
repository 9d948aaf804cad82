//! Whatever the arguments are, the request that a real server gets is the one of the template, with
//! the values in their places.

use percent_encoding::percent_decode_str;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use url::form_urlencoded;

use crate::calls::Api;
use crate::support::daemon::{Daemon, Home};
use crate::support::upstream_server::answer;
use crate::{config, http_tool, invoke, with_tools};

/// Bytes of an address or of a header at most.
const LONGEST: usize = 8 * 1024;

/// What an attacker would try, and anything.
fn hostile() -> impl Strategy<Value = String> {
    let known = [
        "",
        ".",
        "..",
        "../..",
        "..\\x",
        "%2e%2e",
        "%2E.",
        "．．",
        "。。",
        "\u{2024}\u{2024}",
        "/",
        "//evil.example/x",
        "http://evil.example",
        "@evil.example",
        "user:pass@evil.example",
        ":81",
        "?x=1",
        "#f",
        "&admin=1",
        "a\r\nX-Evil: 1",
        "a\nHost: evil.example",
        "\r\n\r\nGET / HTTP/1.1",
        "\0",
        "\u{85}",
        "\u{2028}",
        "${KEY}",
        "$.a",
        "\",\"admin\":true,\"",
        "\\u0022",
        " ",
        "\t",
        "é",
        "天气",
        "\u{202e}x",
        "%",
        "%zz",
        ";",
    ];
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        3 => any::<String>(),
        2 => (prop::sample::select(known.to_vec()), any::<String>()).prop_map(|(known, any)| format!("{any}{known}{any}")),
        1 => (8_000_usize..9_000).prop_map(|length| "x".repeat(length)),
    ]
}

/// Whether a header can hold it.
fn is_visible(text: &str) -> bool {
    text.len() <= LONGEST && text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// S1-26 to S1-28, S1-35: CRLF, `../`, `@`, `//host`, dots of Unicode, and what is too long.
#[test]
fn arguments_change_neither_host_nor_path_nor_headers_nor_structure() {
    let runtime = Runtime::new().unwrap();
    let home = Home::new();
    let (api, daemon) = runtime.block_on(async {
        let api = Api::answering(|_, _| answer("200 OK", &[], b"1")).await;
        let content = http_tool(&json!({
            "method": "POST", "urlTemplate": api.at("/items/${id}/x-${id}?q=${q}&fixed=1"),
            "query": {"further": "<${q}>"}, "headers": {"X-Trace": "${trace}"},
            "bodyTemplate": "{\"text\": \"<${text}>\", \"whole\": ${text}, \"fixed\": 1}", "maxRetries": 0,
        }));
        let daemon = with_tools(config(&home), &[("t", content)]).await;
        (api, daemon)
    });
    let mut runner = TestRunner::new(Config {
        cases: 192,
        failure_persistence: None,
        ..Config::default()
    });
    let arguments = (hostile(), hostile(), hostile(), hostile());
    runner
        .run(&arguments, |(id, q, trace, text)| {
            let args = json!({"id": id, "q": q, "trace": trace, "text": text});
            runtime.block_on(check(&api, &daemon, &args));
            Ok(())
        })
        .unwrap();
    assert!(api.server.requests().len() > 20, "enough of them were sent");
    runtime.block_on(daemon.stop());
}

async fn check(api: &Api, daemon: &Daemon, args: &Value) {
    let before = api.server.requests().len();
    let (status, answer) = invoke(daemon, "t", args).await;
    assert_eq!(status, 200, "{args}: {answer}");
    let text = |name: &str| args[name].as_str().unwrap();
    let requests = api.server.requests();
    let bodies = api.bodies();
    if answer["ok"] == false {
        let dots: Vec<u8> = percent_decode_str(text("id")).collect();
        let long = ["id", "q"]
            .iter()
            .map(|name| text(name).len())
            .sum::<usize>()
            > 1_000;
        let refusable = text("id").is_empty()
            || dots == text("id").as_bytes() && [".", ".."].contains(&text("id"));
        assert!(
            refusable || long || !is_visible(text("trace")),
            "{args}: {answer}"
        );
        assert_eq!(answer["code"], "refused_argument", "{answer}");
        assert_eq!(requests.len(), before, "nothing was sent for {args}");
        return;
    }
    assert_eq!(requests.len(), before + 1);
    let request = &requests[before];
    let body = &bodies[before];
    let (path, query) = request.target().split_once('?').unwrap();
    let decode = |part: &str| percent_decode_str(part).decode_utf8().unwrap().into_owned();
    let segments: Vec<String> = path.split('/').skip(1).map(decode).collect();
    assert_eq!(
        segments,
        ["items", text("id"), &format!("x-{}", text("id"))]
    );
    assert!(
        request.target().bytes().all(|byte| byte.is_ascii_graphic()),
        "{}",
        request.target()
    );
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect();
    let expected = [
        ("q", text("q").to_owned()),
        ("fixed", "1".to_owned()),
        ("further", format!("<{}>", text("q"))),
    ];
    assert_eq!(
        pairs,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
    assert_eq!(
        request.header("host"),
        Some(api.server.address().to_string().as_str())
    );
    assert_eq!(request.header("x-trace"), Some(text("trace").trim()));
    let names: Vec<&str> = request
        .lines()
        .iter()
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "accept",
            "content-length",
            "content-type",
            "host",
            "user-agent",
            "x-trace"
        ]
    );
    let sent: Value = serde_json::from_str(body).unwrap();
    assert_eq!(
        sent,
        json!({"text": format!("<{}>", text("text")), "whole": text("text"), "fixed": 1})
    );
}

/// A value stays within the text or the attribute of XML that it stands in.
#[tokio::test]
async fn a_value_ends_no_attribute_of_xml() {
    let api = Api::answering(|_, _| answer("200 OK", &[], b"1")).await;
    let home = Home::new();
    let content = http_tool(&json!({
        "method": "POST", "urlTemplate": api.at("/"), "headers": {"Content-Type": "text/xml"},
        "bodyTemplate": "<a b=\"${q}\" c='${q}'>${q}</a>",
    }));
    let daemon = with_tools(config(&home), &[("t", content)]).await;
    let (_, answer) = invoke(&daemon, "t", &json!({"q": "\"'><x/>&"})).await;
    assert_eq!(answer["ok"], true, "{answer}");
    let q = "&quot;&apos;&gt;&lt;x/&gt;&amp;";
    assert_eq!(api.bodies(), [format!("<a b=\"{q}\" c='{q}'>{q}</a>")]);
    daemon.stop().await;
}

/// Without the last segment, a request would go to another resource.
#[tokio::test]
async fn no_value_takes_the_last_segment_away() {
    let api = Api::answering(|_, _| answer("200 OK", &[], b"1")).await;
    let home = Home::new();
    let daemon = with_tools(
        config(&home),
        &[(
            "t",
            http_tool(&json!({"urlTemplate": api.at("/items/${id}")})),
        )],
    )
    .await;
    for id in ["", ".", ".."] {
        let (_, answer) = invoke(&daemon, "t", &json!({"id": id})).await;
        assert_eq!(answer["code"], "refused_argument", "{id:?}: {answer}");
    }
    assert!(api.server.requests().is_empty());
    assert_eq!(
        invoke(&daemon, "t", &json!({"id": "..."})).await.1["ok"],
        true
    );
    assert_eq!(api.server.requests()[0].target(), "/items/...");
    daemon.stop().await;
}
