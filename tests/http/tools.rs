//! The list, single tools and explanations over HTTP.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;

use callsheet::catalog::{Inputs, Visibility};
use callsheet::model::Profile;
use serde_json::{Value, json};

use crate::support::assert_empty;
use crate::support::offers::{inputs, offer, put, standing, tool};
use crate::support::serving::{Answer, Served, serve_inputs};

/// Two scenarios that both have `get`, one that is withdrawn, one with names that routes use.
fn fleet() -> Inputs {
    let mut all = inputs(&[
        ("genie", &["get", "run"]),
        ("odd", &["explain", "search", "set"]),
    ]);
    put(
        &mut all,
        offer(
            "files",
            &[
                tool("get"),
                tool("read").off(),
                tool("secret").internal(),
                tool("write").tag("disk"),
            ],
        ),
    );
    let gone = offer("gone", &[tool("lost")]);
    put(
        &mut all,
        standing(gone, Visibility::Withdrawn("3 failures in a row".into())),
    );
    all
}

async fn served() -> Served {
    serve_inputs(&fleet()).await
}

fn names(list: &Answer) -> Vec<String> {
    let list = list.json();
    let tools = list
        .get("tools")
        .unwrap_or(&list)
        .as_array()
        .unwrap()
        .clone();
    let name = |tool: &Value| {
        tool.get("function").unwrap_or(tool)["name"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn the_list_is_what_is_enabled_in_order() {
    let server = served().await;
    let native = server.get("/api/v1/tools").await;
    assert_eq!(native.status, 200);
    assert_eq!(native.header("content-type"), "application/json");
    assert_eq!(
        names(&native),
        [
            "files__get",
            "write",
            "genie__get",
            "run",
            "explain",
            "search",
            "set"
        ]
    );
    assert_eq!(native.header("callsheet-tools"), "7");
    assert_eq!(native.header("callsheet-left-out"), "");
    assert_eq!(native.header("callsheet-revision").len(), 16);
    assert_eq!(native.header("cache-control"), "private, max-age=1");
    let openai = server.get("/api/v1/tools?format=openai&max_tools=2").await;
    assert!(openai.json().is_array());
    assert_eq!(names(&openai), ["files__get", "write"]);
    assert_eq!(openai.header("callsheet-left-out"), "5");
}

#[tokio::test]
async fn filters_narrow_it_and_match_nothing_without_error() {
    let server = served().await;
    let list = |query: &'static str| server.get(query);
    assert_eq!(
        names(&list("/api/v1/tools?scenario=genie,files&q=get").await),
        ["files__get", "genie__get"]
    );
    assert_eq!(names(&list("/api/v1/tools?tag=disk").await), ["write"]);
    assert_eq!(
        names(&list("/api/v1/tools?scenario=files&include_disabled=true").await),
        ["files__get", "read", "write"]
    );
    assert_eq!(
        names(&list("/api/v1/tools?scenario=files&include_internal=true").await),
        ["files__get", "secret", "write"]
    );
    let none = list("/api/v1/tools?scenario=nobody").await;
    assert_eq!(none.status, 200);
    assert_empty!(names(&none));
    assert_eq!(none.header("callsheet-tools"), "0");
}

#[tokio::test]
async fn a_profile_gets_no_tool_outside_its_bounds() {
    let mut all = fleet();
    let bounds = Profile {
        scenarios: Some(["odd".parse().unwrap()].into()),
        ..Profile::default()
    };
    all.profiles = Arc::new(BTreeMap::from([("narrow".to_owned(), bounds)]).into());
    let server = serve_inputs(&all).await;
    assert_eq!(
        names(&server.get("/api/v1/tools?profile=narrow").await),
        ["explain", "search", "set"]
    );
    let outside = server.get("/api/v1/tools/run?profile=narrow").await;
    assert_eq!(outside.status, 404);
    assert!(
        outside
            .problem()
            .contains("the profile may not see scenario genie"),
        "{}",
        outside.problem()
    );
    assert_eq!(server.get("/api/v1/tools/run").await.status, 200);
}

#[tokio::test]
async fn parameters_that_cannot_be_are_refused_with_what_is_known() {
    let server = served().await;
    let unknown = server.get("/api/v1/tools?frmat=openai").await;
    assert_eq!(unknown.status, 400);
    assert!(
        unknown.json()["known"]
            .as_array()
            .unwrap()
            .contains(&json!("format"))
    );
    let format = server.get("/api/v1/tools?format=opneai").await;
    assert!(format.problem().contains("`openai`"));
    let one = server.get("/api/v1/tools/run?max_tools=1").await;
    assert_eq!(one.status, 400);
}

#[tokio::test]
async fn a_list_that_is_known_is_not_sent_again() {
    let server = served().await;
    let first = server.get("/api/v1/tools?format=openai").await;
    let etag = first.header("etag").to_owned();
    for tag in [
        etag.clone(),
        format!("W/{etag}"),
        format!("\"x\", {etag}"),
        "*".into(),
    ] {
        let again = server
            .ask(
                "GET",
                "/api/v1/tools?format=openai",
                &[("if-none-match", &tag)],
                "",
            )
            .await;
        assert_eq!(again.status, 304, "{tag}");
        assert!(again.body.is_empty(), "{tag}");
        assert_eq!(again.header("etag"), etag);
        assert_eq!(again.header("vary"), "accept-encoding");
    }
    let other = server
        .ask("GET", "/api/v1/tools", &[("if-none-match", &etag)], "")
        .await;
    assert_eq!(other.status, 200, "another format is another thing");
}

#[tokio::test]
async fn codings_are_the_clients_choice() {
    let server = served().await;
    let plain = server.get("/api/v1/tools").await;
    let mut etags = vec![plain.header("etag").to_owned()];
    for (accepted, expected) in [
        ("gzip", "gzip"),
        ("gzip, br", "br"),
        ("zstd;q=1, br;q=0.1", "zstd"),
    ] {
        let answer = server
            .ask("GET", "/api/v1/tools", &[("accept-encoding", accepted)], "")
            .await;
        assert_eq!(answer.header("content-encoding"), expected);
        assert_eq!(answer.header("vary"), "accept-encoding");
        let mut decoded = Vec::new();
        match expected {
            "gzip" => drop(
                flate2::read::GzDecoder::new(&answer.body[..])
                    .read_to_end(&mut decoded)
                    .unwrap(),
            ),
            "br" => drop(
                brotli::Decompressor::new(&answer.body[..], 4096)
                    .read_to_end(&mut decoded)
                    .unwrap(),
            ),
            _ => decoded = zstd::decode_all(&answer.body[..]).unwrap(),
        }
        assert_eq!(decoded, plain.body, "{expected}");
        etags.push(answer.header("etag").to_owned());
    }
    etags.sort();
    etags.dedup();
    assert_eq!(etags.len(), 4, "each coding has a tag of its own");
}

#[tokio::test]
async fn head_tells_what_get_would() {
    let server = served().await;
    for target in [
        "/api/v1/tools",
        "/api/v1/tools/run",
        "/api/v1/tools/nobody",
        "/healthz",
        "/api/v1/tools/run/explain",
    ] {
        let get = server.get(target).await;
        let head = server.ask("HEAD", target, &[], "").await;
        assert_eq!(head.status, get.status, "{target}");
        assert!(head.body.is_empty(), "{target}");
        for name in ["content-length", "content-type", "etag", "callsheet-tools"] {
            assert_eq!(head.header(name), get.header(name), "{target} {name}");
        }
    }
}

#[tokio::test]
async fn one_tool_is_found_by_each_of_its_names() {
    let server = served().await;
    for (target, expected) in [
        ("run", "genie/run"),
        ("genie/run", "genie/run"),
        ("genie%2Frun", "genie/run"),
        ("files__get", "files/get"),
        ("genie/get", "genie/get"),
        ("files/read", "files/read"),
        ("secret", "files/secret"),
        ("explain", "odd/explain"),
        ("odd/set", "odd/set"),
        ("odd/search", "odd/search"),
        ("odd/explain", "odd/explain"),
    ] {
        let answer = server.get(&format!("/api/v1/tools/{target}")).await;
        assert_eq!(answer.status, 200, "{target}: {answer:?}");
        let tool = answer.json();
        let id = format!(
            "{}/{}",
            tool["scenario"].as_str().unwrap(),
            tool["original_name"].as_str().unwrap()
        );
        assert_eq!(id, expected, "{target}");
        let known = [("if-none-match", answer.header("etag"))];
        let again = server
            .ask("GET", &format!("/api/v1/tools/{target}"), &known, "")
            .await;
        assert_eq!(again.status, 304);
    }
    assert_eq!(
        server.get("/api/v1/tools/files/read").await.json()["enabled"],
        false
    );
    assert_eq!(
        server.get("/api/v1/tools/run?format=openai").await.json()["function"]["name"],
        "run"
    );
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_explained() {
    let server = served().await;
    let near = server.get("/api/v1/tools/wriet").await;
    assert_eq!(near.status, 404);
    assert_eq!(near.json()["candidates"], json!(["write"]));
    assert!(near.problem().contains("did you mean write?"));
    let elsewhere = server.get("/api/v1/tools/nobody/run").await;
    assert_eq!(elsewhere.status, 404);
    assert_eq!(elsewhere.json()["candidates"], json!(["genie/run"]));
    let ambiguous = server.get("/api/v1/tools/get").await;
    assert_eq!(ambiguous.status, 409);
    assert_eq!(
        ambiguous.json()["candidates"],
        json!(["files/get", "genie/get"])
    );
    let withdrawn = server.get("/api/v1/tools/gone/lost").await;
    assert_eq!(withdrawn.status, 404);
    assert!(withdrawn.problem().contains("3 failures in a row"));
    let reserved = server.get("/api/v1/tools/search").await;
    assert_eq!(reserved.status, 400);
    assert!(
        reserved.problem().contains("`scenario/search`"),
        "{}",
        reserved.problem()
    );
    for hidden in ["secret", "files/read"] {
        let refused = server
            .get(&format!("/api/v1/tools/{hidden}?format=openai"))
            .await;
        assert_eq!(refused.status, 404, "{hidden}");
        assert!(refused.problem().contains("format=openai"));
    }
}

#[tokio::test]
async fn every_decision_about_a_tool_is_told() {
    let server = served().await;
    for target in ["files/read", "files%2Fread", "read"] {
        let explained = server
            .get(&format!("/api/v1/tools/{target}/explain"))
            .await
            .json();
        assert_eq!(explained["id"], "files/read");
        assert_eq!(explained["name"], "read");
        assert_eq!(explained["listed"], false);
        let steps = explained["steps"].as_array().unwrap();
        assert!(
            steps
                .iter()
                .any(|step| step["subject"] == "enabled" && step["source"] == "manifest"),
            "{explained}"
        );
        assert!(!explained["findings"].as_array().unwrap().is_empty());
    }
    let withdrawn = server.get("/api/v1/tools/gone/lost/explain").await;
    assert_eq!(withdrawn.status, 200);
    assert_eq!(withdrawn.json()["listed"], false);
    assert_eq!(server.get("/api/v1/tools/nobody/explain").await.status, 404);
    assert_eq!(
        server
            .get("/api/v1/tools/run/explain?format=openai")
            .await
            .status,
        400
    );
}
