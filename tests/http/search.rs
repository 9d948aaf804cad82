//! `GET /api/v1/tools/search` over HTTP.

use callsheet::catalog::{Inputs, Visibility};
use serde_json::{Value, json};

use crate::support::offers::{alias, offer, preferences, put, standing, tool};
use crate::support::serving::{Answer, Served, serve_inputs};

async fn served() -> Served {
    let mut all = Inputs::default();
    let files = [
        tool("read_file").about("Reads one file").tag("disk"),
        tool("write_file")
            .about("Writes a file")
            .category("disk")
            .risky(),
        tool("old_file").about("Read as before").off(),
        tool("probe_file").about("Read the table").internal(),
    ];
    put(&mut all, offer("files", &files));
    put(
        &mut all,
        offer(
            "mail",
            &[
                tool("readLetter").about("Opens a letter"),
                tool("search").about("Finds letters"),
            ],
        ),
    );
    put(
        &mut all,
        standing(
            offer("gone", &[tool("read_gone")]),
            Visibility::Withdrawn("down".into()),
        ),
    );
    all.preferences = preferences(&[("chat:7", "tool:mail/search", alias("post_office"))]);
    serve_inputs(&all).await
}

fn ids(answer: &Answer) -> Vec<String> {
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    let body = answer.json();
    body["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_best_comes_first_with_why() {
    let server = served().await;
    let answer = server.get("/api/v1/tools/search?q=read%20file").await;
    assert_eq!(
        ids(&answer),
        ["files/read_file", "files/write_file", "mail/readLetter"]
    );
    let body = answer.json();
    assert_eq!(body["query"], "read file");
    assert_eq!(body["mode"], "rank");
    let first = &body["results"][0];
    assert_eq!(first["name"], "read_file");
    assert_eq!(first["fields"], json!(["name", "description", "scenario"]));
    assert_eq!(first["tier"], Value::Null);
    assert_eq!(first["enabled"], true);
    assert!(first["score"].as_f64().unwrap() > body["results"][1]["score"].as_f64().unwrap());
    assert!(first.get("definition").is_none());
    assert_eq!(
        ids(&server
            .get("/api/v1/tools/search?q=read%20file&limit=1")
            .await)
        .len(),
        1
    );
}

#[tokio::test]
async fn signatures_are_lines_in_the_same_order() {
    let server = served().await;
    for query in ["q=read%20file", "q=letter&chat_id=7", "q=fil&mode=palette"] {
        let whole = server
            .get(&format!("/api/v1/tools/search?{query}&detail=full"))
            .await
            .json();
        let short = server
            .get(&format!("/api/v1/tools/search?{query}&detail=signature"))
            .await
            .json();
        let names: Vec<&str> = whole["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["name"].as_str().unwrap())
            .collect();
        let lines: Vec<&str> = short["signatures"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap())
            .collect();
        let of_lines: Vec<&str> = lines
            .iter()
            .filter_map(|line| Some(line.split_once('(')?.0))
            .collect();
        assert_eq!(of_lines, names, "{query}");
        assert!(!names.is_empty(), "{query}");
        for member in ["query", "mode", "revision"] {
            assert_eq!(short[member], whole[member], "{query} {member}");
        }
        assert!(short.get("results").is_none());
    }
    let first = server
        .get("/api/v1/tools/search?q=read%20file&detail=signature&limit=1")
        .await
        .json();
    assert_eq!(first["signatures"], json!(["read_file() - Reads one file"]));
    for refused in ["detail=some", "detail=signature&format=openai"] {
        let answer = server
            .get(&format!("/api/v1/tools/search?q=read&{refused}"))
            .await;
        assert_eq!(answer.status, 400, "{refused}");
    }
}

#[tokio::test]
async fn filters_and_scopes_hold() {
    let server = served().await;
    for (query, expected) in [
        ("q=read&scenario=mail", &["mail/readLetter"][..]),
        ("q=file&tag=disk", &["files/read_file"]),
        ("q=file&category=disk", &["files/write_file"]),
        ("q=before&include_disabled=true", &["files/old_file"]),
        ("q=before", &[]),
        ("q=table&include_disabled=true", &[]),
        ("q=gone", &[]),
        ("q=office", &[]),
        ("q=office&chat_id=7", &["mail/search"]),
    ] {
        assert_eq!(
            ids(&server.get(&format!("/api/v1/tools/search?{query}")).await),
            expected,
            "{query}"
        );
    }
}

#[tokio::test]
async fn a_palette_tells_its_tiers() {
    let server = served().await;
    let tiers = async |query: &str| {
        let answer = server
            .get(&format!("/api/v1/tools/search?mode=palette&{query}"))
            .await;
        let body = answer.json();
        let line = |hit: &Value| {
            format!(
                "{} {}",
                hit["tier"].as_str().unwrap(),
                hit["id"].as_str().unwrap()
            )
        };
        body["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(line)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        tiers("q=read").await,
        ["prefix files/read_file", "prefix mail/readLetter"]
    );
    assert_eq!(
        tiers("q=file").await[..2],
        ["word files/read_file", "word files/write_file"]
    );
    assert_eq!(tiers("q=leter").await, ["fuzzy mail/readLetter"]);
    assert_eq!(
        tiers("q=read&recent=mail/readLetter").await[0],
        "prefix mail/readLetter"
    );
    assert_eq!(
        tiers("recent=mail/search,files/read_file,gone/read_gone").await,
        ["recent mail/search", "recent files/read_file"]
    );
}

#[tokio::test]
async fn results_come_in_any_format() {
    let server = served().await;
    let body = server
        .get("/api/v1/tools/search?q=write&format=openai")
        .await
        .json();
    assert_eq!(
        body["results"][0]["definition"]["function"]["name"],
        "write_file"
    );
    let same = server
        .get("/api/v1/tools/search?q=write&format=openai")
        .await;
    assert_eq!(same.json(), body);
    assert!(same.header("etag").starts_with('"'));
}

#[tokio::test]
async fn a_question_that_is_too_long_is_cut_and_not_refused() {
    let server = served().await;
    let words_after = |blanks: usize| format!("write{}zebra", "+".repeat(blanks));
    for route in ["/api/v1/tools", "/api/v1/tools/search"] {
        let cut = server
            .get(&format!("{route}?q={}", words_after(10_000)))
            .await;
        let short = server.get(&format!("{route}?q=write")).await;
        assert_eq!(cut.status, 200, "{route}");
        assert_eq!(cut.json()["count"], short.json()["count"], "{route}");
        assert_eq!(
            cut.json().get("tools"),
            short.json().get("tools"),
            "{route}"
        );
    }
}

#[tokio::test]
async fn a_list_ranks_a_question_as_it_was_sent() {
    let server = served().await;
    let listed = server.get("/api/v1/tools?q=writeFile").await.json();
    let names: Vec<_> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert!(names.contains(&"write_file".into()), "{names:?}");
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_name() {
    let server = served().await;
    for (query, word) in [
        ("", "`q`"),
        ("q=%20", "`q`"),
        ("q=a&limit=0", "`limit`"),
        ("q=a&limit=1001", "`limit`"),
        ("q=a&mode=guess", "`mode`"),
        ("q=a&recent=a/b", "`recent`"),
        ("mode=palette&recent=ab", "`recent`"),
        ("q=a&format=papyrus", "`format`"),
        (
            "q=a&format=openai&include_disabled=true",
            "`include_disabled=true`",
        ),
        ("q=a&scenario=a/b", "`scenario`"),
        ("q=a&max_tools=3", "`max_tools`"),
        ("q=a&q=b", "`q`"),
    ] {
        let answer = server.get(&format!("/api/v1/tools/search?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(
            answer.header("content-type"),
            "application/problem+json",
            "{query}"
        );
        let detail = answer.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(word), "{query}: {detail}");
    }
}
