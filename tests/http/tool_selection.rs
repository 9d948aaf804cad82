//! Budgets, reports, conversations and deferred tools over HTTP.

use std::collections::BTreeSet;

use callsheet::catalog::{Inputs, Visibility};
use callsheet::model::Settings;
use serde_json::{Value, json};

use crate::support::offers::{Draft, inherit, inputs, offer, preferences, put, standing, tool};
use crate::support::serving::{Answer, Served, serve_inputs, snapshot};

fn desk() -> [Draft; 3] {
    [
        tool("file").about("Files a letter in a folder"),
        tool("send").about("Sends a letter to somebody, with a copy to the archive and whatever else a letter needs"),
        tool("shred").about("Destroys a letter").off(),
    ]
}

fn fleet() -> Inputs {
    let mut all = inputs(&[]);
    put(&mut all, offer("desk", &desk()));
    put(
        &mut all,
        offer(
            "music",
            &[
                tool("play").about("Plays a song"),
                tool("stop").about("Stops the song"),
            ],
        ),
    );
    put(
        &mut all,
        offer(
            "zoo",
            &[
                tool("feed").about("Feeds an animal"),
                tool("inner").internal(),
            ],
        ),
    );
    put(
        &mut all,
        standing(
            offer("gone", &[tool("lost")]),
            Visibility::Withdrawn("3 failures in a row".into()),
        ),
    );
    let pin = Settings {
        pinned: Some(true),
        ..inherit()
    };
    all.preferences = preferences(&[("chat:pinning", "tool:zoo/feed", pin)]);
    all
}

async fn served() -> Served {
    serve_inputs(&fleet()).await
}

/// The names in a list of whatever shape.
fn names(list: &Value) -> Vec<String> {
    let tools = list.get("tools").unwrap_or(list).as_array().unwrap();
    let name = |tool: &Value| {
        tool.get("function").unwrap_or(tool)["name"]
            .as_str()
            .map(str::to_owned)
    };
    tools.iter().filter_map(name).collect()
}

async fn list(server: &Served, query: &str) -> Answer {
    let answer = server.get(&format!("/api/v1/tools?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {answer:?}");
    answer
}

#[tokio::test]
async fn lists_tell_their_tokens_and_keep_within_a_budget_of_them() {
    let server = served().await;
    for format in [
        "native",
        "openai",
        "openai-responses",
        "anthropic",
        "gemini",
        "bedrock",
        "calls",
        "mcp",
        "ollama",
    ] {
        let all = list(&server, &format!("format={format}")).await;
        let whole: usize = all.header("callsheet-tokens").parse().unwrap();
        assert!(
            whole * 2 > all.body.len() / 4 && whole < all.body.len(),
            "{format}: {whole} of {} bytes",
            all.body.len()
        );
        for budget in [1, whole / 3, whole / 2, whole - 1] {
            let part = list(
                &server,
                &format!("format={format}&max_tokens={}", budget.max(1)),
            )
            .await;
            let tokens: usize = part.header("callsheet-tokens").parse().unwrap();
            assert!(tokens <= budget.max(1), "{format}: {tokens} of {budget}");
            let left: usize = part.header("callsheet-left-out").parse().unwrap();
            let here: usize = part.header("callsheet-tools").parse().unwrap();
            assert_eq!(left + here, 5, "{format}");
        }
        assert_eq!(
            list(&server, &format!("format={format}&max_tokens={whole}"))
                .await
                .header("callsheet-tools"),
            "5"
        );
    }
}

#[tokio::test]
async fn a_report_holds_the_very_list_and_one_reason_for_each_other_tool() {
    let server = served().await;
    for query in [
        "format=openai&q=letter&max_tools=1&chat_id=pinning",
        "format=anthropic&defer=relevance&q=song",
        "format=gemini&defer=preference",
        "format=native&tag=none",
        "format=mcp&scenario=desk",
        "format=calls",
        "q=submarine",
    ] {
        let plain = list(&server, query).await;
        let reported = list(&server, &format!("{query}&report=true")).await;
        for name in [
            "callsheet-tools",
            "callsheet-tokens",
            "callsheet-left-out",
            "callsheet-selection",
            "callsheet-notes",
        ] {
            assert_eq!(reported.header(name), plain.header(name), "{query} {name}");
        }
        assert_ne!(reported.header("etag"), plain.header("etag"));
        let begin = br#"{"tools":"#;
        assert!(reported.body.starts_with(begin), "{query}");
        assert!(
            reported.body[begin.len()..].starts_with(&plain.body),
            "{query}: the very bytes"
        );
        let report = reported.json()["report"].clone();
        let ids = |key: &str| -> Vec<String> {
            report[key]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| tool["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let mut all = [ids("listed"), ids("left_out")].concat();
        all.sort();
        let known = [
            "desk/file",
            "desk/send",
            "desk/shred",
            "gone/lost",
            "music/play",
            "music/stop",
            "zoo/feed",
            "zoo/inner",
        ];
        assert_eq!(all, known, "{query}");
        let tokens = |tool: &Value| {
            if tool["deferred"] == true {
                0
            } else {
                tool["tokens"].as_u64().unwrap()
            }
        };
        let sum: u64 = report["listed"]
            .as_array()
            .unwrap()
            .iter()
            .map(tokens)
            .sum();
        assert_eq!(sum.to_string(), plain.header("callsheet-tokens"), "{query}");
        for left in report["left_out"].as_array().unwrap() {
            assert_ne!(left["code"], "", "{left}");
            assert_ne!(left["reason"], "", "{left}");
        }
        let again = [("if-none-match", reported.header("etag"))];
        let again = server
            .ask(
                "GET",
                &format!("/api/v1/tools?{query}&report=true"),
                &again,
                "",
            )
            .await;
        assert_eq!(again.status, 304, "{query}");
        assert!(again.body.is_empty(), "{query}");
    }
}

#[tokio::test]
async fn a_report_names_the_reason_for_each_tool() {
    let server = served().await;
    let report = list(&server, "q=letter&max_tools=1&chat_id=pinning&report=true")
        .await
        .json()["report"]
        .clone();
    let member_of = |key: &str, id: &str, what: &str| {
        let tools = report[key].as_array().unwrap();
        tools
            .iter()
            .find(|tool| tool["id"] == id)
            .unwrap_or_else(|| panic!("{id} in {report}"))[what]
            .clone()
    };
    assert_eq!(member_of("listed", "zoo/feed", "why"), "pinned");
    assert_eq!(member_of("listed", "zoo/feed", "rank"), 1);
    for (id, code) in [
        ("desk/send", "over-max-tools"),
        ("desk/shred", "disabled"),
        ("music/play", "irrelevant"),
        ("gone/lost", "withdrawn"),
        ("zoo/inner", "internal-only"),
    ] {
        assert_eq!(member_of("left_out", id, "code"), code, "{id}");
    }
}

/// Publishes the fleet with another desk.
fn change(server: &mut Served, sequence: u64, desk: &[Draft]) {
    let mut all = fleet();
    put(&mut all, offer("desk", desk));
    let mut next = snapshot(&all, Vec::new(), Vec::new());
    next.sequence = sequence;
    server.writer.publish(next);
}

#[tokio::test]
async fn a_conversation_keeps_its_prefix_while_the_catalog_changes() {
    let mut server = served().await;
    for format in [
        "openai",
        "anthropic",
        "openai-responses",
        "mistral",
        "ollama",
        "native",
    ] {
        change(&mut server, 10, &desk());
        let first = list(
            &server,
            &format!("format={format}&q=song&max_tools=2&sticky="),
        )
        .await;
        assert_eq!(names(&first.json()), ["play", "stop"], "{format}");
        let close = if format == "native" {
            br#"],"categories""#.to_vec()
        } else {
            b"]".to_vec()
        };
        let end = first
            .body
            .windows(close.len())
            .rposition(|window| window == close)
            .unwrap();
        let carried = &first.body[..end];

        // A newcomer sorts before what is carried, and the conversation speaks of something else
        // now.
        let mut more = desk().to_vec();
        more.push(tool("annotate").about("Annotates a letter"));
        change(&mut server, 11, &more);
        let query = format!(
            "format={format}&q=letter&max_tools=4&sticky={}",
            first.header("callsheet-selection")
        );
        let second = list(&server, &query).await;
        assert!(
            second.body.starts_with(carried),
            "{format}: {}",
            String::from_utf8_lossy(&second.body)
        );
        assert_eq!(second.header("callsheet-tools"), "4");
        assert_eq!(second.header("callsheet-notes"), "", "{format}");
        let again = [("if-none-match", second.header("etag"))];
        assert_eq!(
            server
                .ask("GET", &format!("/api/v1/tools?{query}"), &again, "")
                .await
                .status,
            304
        );

        // What comes behind is carried from then on.
        let query = format!(
            "format={format}&q=animal&max_tools=5&sticky={}",
            second.header("callsheet-selection")
        );
        let third = list(&server, &query).await;
        let end = second
            .body
            .windows(close.len())
            .rposition(|window| window == close)
            .unwrap();
        assert!(third.body.starts_with(&second.body[..end]), "{format}");
        assert_eq!(names(&third.json()).last().unwrap(), "feed");
    }
}

#[tokio::test]
async fn what_breaks_a_prefix_is_told() {
    let mut server = served().await;
    let first = list(&server, "format=openai&q=letter&sticky=").await;
    let selection = first.header("callsheet-selection").to_owned();
    assert_eq!(selection.len(), 24);
    assert_eq!(
        names(&first.json()),
        vec!["file".to_owned(), "send".to_owned()]
    );
    let query = format!("format=openai&q=letter&report=true&sticky={selection}");
    let [file, send, _] = desk();
    change(
        &mut server,
        10,
        &[file.clone(), send.about("Sends a letter otherwise")],
    );
    let changed = list(&server, &query).await;
    assert_eq!(changed.header("callsheet-notes"), "prefix-broken");
    let sticky = changed.json()["report"]["sticky"].clone();
    assert_eq!(sticky["carried"], 2);
    assert_eq!(sticky["prefix"], 1);
    assert!(
        sticky["broken"].as_str().unwrap().contains("`send`"),
        "{sticky}"
    );

    change(&mut server, 11, &[file]);
    let gone = list(&server, &query).await;
    assert_eq!(gone.header("callsheet-notes"), "sticky-gone, prefix-broken");
    assert_eq!(gone.json()["report"]["sticky"]["prefix"], 1);

    let odd = list(&server, "format=openai&sticky=0123456789abcdef").await;
    assert_eq!(odd.header("callsheet-notes"), "sticky-unknown");
    assert_eq!(odd.header("callsheet-tools"), "4");
}

#[tokio::test]
async fn vendors_that_can_get_deferred_tools_and_their_search_and_others_a_shorter_list() {
    let server = served().await;
    let query = "defer=relevance&q=song&format=";
    let anthropic = list(&server, &format!("{query}anthropic")).await;
    let tools = anthropic.json();
    assert_eq!(
        names(&tools),
        [
            "file",
            "send",
            "play",
            "stop",
            "feed",
            "tool_search_tool_bm25"
        ]
    );
    let deferred = |tools: &Value| -> Vec<bool> {
        tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool.get("defer_loading") == Some(&json!(true)))
            .collect()
    };
    assert_eq!(deferred(&tools), [true, true, false, false, true, false]);
    assert_eq!(tools[5]["type"], "tool_search_tool_bm25_20251119");
    assert_eq!(anthropic.header("callsheet-deferred"), "3");
    assert_eq!(anthropic.header("callsheet-tools"), "5");
    assert_eq!(anthropic.header("callsheet-left-out"), "");

    let cached = list(&server, &format!("{query}anthropic&cache=true&strict=true"))
        .await
        .json();
    for tool in cached.as_array().unwrap() {
        assert!(
            tool.get("cache_control").is_none() || tool.get("defer_loading").is_none(),
            "{tool}"
        );
    }
    assert_eq!(cached[5]["cache_control"], json!({"type": "ephemeral"}));

    let responses = list(&server, &format!("{query}openai-responses"))
        .await
        .json();
    assert_eq!(
        deferred(&responses),
        [true, true, false, false, true, false]
    );
    assert_eq!(responses[5], json!({"type": "tool_search"}));

    for format in [
        "openai", "gemini", "bedrock", "mistral", "cohere", "ollama", "mcp", "calls", "native",
    ] {
        let shorter = list(&server, &format!("{query}{format}")).await;
        assert_eq!(shorter.header("callsheet-tools"), "2", "{format}");
        assert_eq!(shorter.header("callsheet-left-out"), "3", "{format}");
        assert!(
            !String::from_utf8_lossy(&shorter.body).contains("defer_loading"),
            "{format}"
        );
    }

    // Nothing is deferred: it is the plain list. Nothing is relevant: one is loaded all the same.
    let all = list(
        &server,
        "format=anthropic&defer=relevance&q=song,+letter+or+animal",
    )
    .await;
    assert_eq!(all.body, list(&server, "format=anthropic").await.body);
    let none = list(
        &server,
        &format!("{}anthropic", query.replace("song", "submarine")),
    )
    .await;
    assert_eq!(
        deferred(&none.json()),
        [false, true, true, true, true, false]
    );
    assert_eq!(none.header("callsheet-notes"), "one-loaded");
}

#[tokio::test]
async fn deferred_newcomers_leave_the_loaded_prefix_alone() {
    let server = served().await;
    let first = list(
        &server,
        "format=anthropic&defer=relevance&q=song&max_tools=2&sticky=",
    )
    .await;
    let next = format!(
        "format=anthropic&defer=relevance&q=animal&max_tools=2&sticky={}",
        first.header("callsheet-selection")
    );
    let second = list(&server, &next).await;
    assert_eq!(second.header("callsheet-notes"), "");
    let loaded = |answer: &Answer| -> Vec<Value> {
        let tools = answer.json().as_array().unwrap().clone();
        tools
            .into_iter()
            .filter(|tool| tool.get("defer_loading").is_none())
            .collect()
    };
    assert_eq!(loaded(&second), loaded(&first));
}

#[tokio::test]
async fn equal_requests_have_equal_bytes_at_any_daemon() {
    let here = served().await;
    let there = served().await;
    let first = list(&here, "format=openai&q=letter+song&max_tools=3&sticky=").await;
    let sticky = first.header("callsheet-selection");
    for query in [
        "format=openai&q=letter+song&max_tools=3".to_owned(),
        "format=anthropic&defer=preference&max_tokens=60".to_owned(),
        format!("format=openai&q=animal&sticky={sticky}"),
    ] {
        let a = list(&here, &query).await;
        let b = list(&there, &query).await;
        assert_eq!(a.header("etag"), b.header("etag"), "{query}");
        assert_eq!(a.body, b.body, "{query}");
    }
}

#[tokio::test]
async fn what_contradicts_itself_is_refused_by_name() {
    let server = served().await;
    for (query, named) in [
        ("defer=relevance", "`defer=relevance`"),
        ("defer=preference&q=x", "`defer=preference`"),
        ("defer=never", "`defer`"),
        ("max_tokens=0", "`max_tokens`"),
        ("max_tokens=many", "`max_tokens`"),
        ("report=1", "`report`"),
        ("sticky=a&sticky=b", "`sticky`"),
    ] {
        let answer = server.get(&format!("/api/v1/tools?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert!(
            answer.problem().contains(named),
            "{query}: {}",
            answer.problem()
        );
    }
    let long = server
        .get(&format!("/api/v1/tools?sticky={}", "0".repeat(9_000)))
        .await;
    assert_eq!(long.status, 400);
    let followed = server.get("/api/v1/events?sticky=").await;
    assert_eq!(
        followed.status, 400,
        "a list that is followed has no prompt"
    );
}

#[tokio::test]
async fn a_long_list_hands_out_no_selection() {
    let names: Vec<String> = (0..450).map(|number| format!("tool_{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let server = serve_inputs(&inputs(&[("many", &names)])).await;
    let all = list(&server, "format=anthropic&sticky=").await;
    assert_eq!(all.header("callsheet-tools"), "450");
    assert_eq!(all.header("callsheet-selection"), "");
    let few = list(&server, "format=anthropic&sticky=&max_tools=400").await;
    assert_eq!(few.header("callsheet-selection").len(), 4_800);
    let distinct: BTreeSet<_> = few
        .header("callsheet-selection")
        .as_bytes()
        .chunks(12)
        .collect();
    assert_eq!(distinct.len(), 400);
}
