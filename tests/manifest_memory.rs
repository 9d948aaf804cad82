//! What reading a manifest or a stored tool costs in memory at its worst, whatever it holds, and
//! what catalogs with many preferences hold. In a program of its own, since it counts what the
//! whole process asks the allocator for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod support;

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use callsheet::bundles::{StoredDocument, StoredTool};
use callsheet::catalog::revision_history::KEPT;
use callsheet::catalog::{Change, Inputs, build};
use callsheet::model::{AcceptedVersions, Bounds, PreferenceSet, ScenarioState, Scope, Settings};
use callsheet::protocols::{ListError, module, tool_discovery};
use callsheet::state;
use serde_json::json;

use support::allocated::{Counted, Took, took};
use support::found::{Home, announced};
use support::listener::Listener;
use support::offers::inputs;
use support::scripted::{Reply, Scripted};
use support::serving;
use support::upstream_server::gzip;

/// What one test takes must not show in another.
static ALONE: Mutex<()> = Mutex::new(());

#[global_allocator]
static ALLOCATOR: Counted = Counted;

const MIB: usize = 1024 * 1024;
/// The largest answer that is read.
const LARGE: usize = 8 * MIB;
/// All of it may be in one part of the manifest, and small parts weigh most.
const SMALL: usize = 250 * 1024;
/// The bounds of the defaults.
const DEFAULT: Bounds = Bounds {
    tools: 10_000,
    part: 256 * 1024,
};

/// What is odd about a document, and the document.
type Case = (String, String);

/// A document of `size` bytes or little more: what stands before, what `item` writes over and over,
/// and whatever has to be closed.
fn document(size: usize, before: &str, item: impl Fn(&mut String, usize)) -> Case {
    let mut behind = String::new();
    for bracket in before.chars() {
        match bracket {
            '{' => behind.insert(0, '}'),
            '[' => behind.insert(0, ']'),
            '}' | ']' => _ = behind.remove(0),
            _ => {}
        }
    }
    let mut text = before.to_owned();
    let mut at = 0;
    while at == 0 || text.len() + behind.len() < size {
        if at > 0 {
            text.push(',');
        }
        item(&mut text, at);
        at += 1;
    }
    let shown: String = text
        .chars()
        .skip(before.len().saturating_sub(60))
        .take(100)
        .collect();
    (shown, text + &behind)
}

/// A short text, each number another one.
fn short(mut number: usize) -> String {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyzABCDEF";
    let mut text = String::new();
    loop {
        text.push(char::from(LETTERS[number % LETTERS.len()]));
        number /= LETTERS.len();
        if number == 0 {
            return text;
        }
    }
}

fn same(item: &str) -> impl Fn(&mut String, usize) {
    move |text, _| text.push_str(item)
}

/// A member with a name of its own.
fn member(value: &str) -> impl Fn(&mut String, usize) {
    move |text, at| write!(text, "\"{}\":{value}", short(at)).unwrap()
}

/// The beginnings of documents, in two spellings, and of one whose tools are still to come.
const OPENS: [&str; 2] = [
    r#"{"protocol_version":"1.0","scenario":{"name":"hostile"},"generated_at":"2026-01-02T03:04:05Z","#,
    r#"{"protocolVersion":"1.0","scenario":{"name":"hostile"},"generatedAt":"2026-01-02T03:04:05Z","#,
];

/// Long lists, wherever a list may be.
fn lists(size: usize) -> Vec<Case> {
    const LISTS: [&str; 12] = [
        r#""tools":["#,
        r#""tools":[],"categories":["#,
        r#""tools":[],"capabilities":["#,
        r#""tools":[],"via":["#,
        r#""tools":[{"name":"a","x":["#,
        r#""tools":[{"name":"a","parameters":["#,
        r#""tools":[{"name":"a","parameters":{"required":["#,
        r#""tools":[{"name":"a","parameters":{"enum":["#,
        r#""tools":[{"name":"a","parameters":{"default":["#,
        r#""tools":[{"name":"a","metadata":{"tags":["#,
        r#""tools":[{"name":"a","metadata":{"examples":["#,
        r#""tools":[{"name":"a","metadata":{"examples":[{"input":{"fields":{"a":{"listValue":{"values":["#,
    ];
    let items = [
        "0",
        "{}",
        "null",
        r#"{"a":0}"#,
        r#"{"Kind":{"IntValue":1}}"#,
        r#"{"intValue":"1"}"#,
    ];
    let mut cases = Vec::new();
    for list in LISTS {
        for (item, open) in items.iter().zip(OPENS.iter().cycle()) {
            cases.push(document(size, &format!("{open}{list}"), same(item)));
        }
    }
    cases.push(document(
        size,
        &format!("{}{}", OPENS[0], LISTS[9]),
        |text, at| {
            write!(text, "\"{}\"", short(at)).unwrap();
        },
    ));
    cases
}

/// Objects with many members, wherever an object may be: each with another name, and all with the
/// same.
fn objects(size: usize) -> Vec<Case> {
    const OBJECTS: [&str; 9] = [
        "",
        r#""scenario":{"#,
        r#""tools":{"#,
        r#""tools":[{"name":"a","#,
        r#""tools":[{"name":"a","parameters":{"#,
        r#""tools":[{"name":"a","parameters":{"properties":{"#,
        r#""tools":[{"name":"a","parameters":{"default":{"Kind":{"ObjectValue":{"fields":{"#,
        r#""tools":[{"name":"a","metadata":{"#,
        r#""tools":[{"name":"a","metadata":{"async_behavior":{"#,
    ];
    let mut cases = Vec::new();
    for object in OBJECTS {
        for open in OPENS {
            let before = format!("{open}{object}");
            cases.push(document(size, &before, member("0")));
            cases.push(document(
                size,
                &before,
                member(r#"{"Kind":{"IntValue":1}}"#),
            ));
            cases.push(document(size, &before, same(r#""tools":[]"#)));
        }
    }
    cases
}

/// Many tools and many categories that are well-formed, and as small as they can be beside one
/// thing.
fn parts(size: usize) -> Vec<Case> {
    let all = |count: usize, item: fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(",")
    };
    let unknown = |count| all(count, |at| format!("\"{}\":0", short(at)));
    let own = all(900, |at| format!("\"{}\"", short(at)));
    let tags = |own: &str| {
        format!(
            r#""metadata":{{"enabled_by_default":true,"requires_approval":true,"tags":[{own}]}}"#
        )
    };
    let beside = [
        String::new(),
        r#","metadata":{},"parameters":{}"#.to_owned(),
        r#","category":"NAME""#.to_owned(),
        r#","metadata":{"timeout_seconds":NUMBER}"#.to_owned(),
        r#","via":["NAME"]"#.to_owned(),
        r#","parameters":0"#.to_owned(),
        r#","b":0"#.to_owned(),
        format!(",{}", unknown(50)),
        format!(",{}", unknown(900)),
        format!(",{}", unknown(2_000)),
        format!(",{}", tags(&own)),
        format!(",{}", tags(&own.replace("\",", "NUMBER\","))),
        format!(
            r#","parameters":{{"default":[null{}]}}"#,
            ",0".repeat(30_000)
        ),
        format!(r#","{}":"\ud800""#, "~".repeat(30_000)),
    ];
    let mut cases = Vec::new();
    for (beside, open) in beside.iter().zip(OPENS.iter().cycle()) {
        for list in [r#""tools":[{"name""#, r#""tools":[],"categories":[{"id""#] {
            let (list, name) = list.split_once('{').unwrap();
            cases.push(document(size, &format!("{open}{list}"), |text, at| {
                let own = short(at);
                let number = at.to_string();
                write!(
                    text,
                    "{{{name}:\"{own}\"{}}}",
                    beside.replace("NAME", &own).replace("NUMBER", &number)
                )
                .unwrap();
            }));
        }
    }
    cases
}

/// Deep, long, or cut off.
fn extremes(size: usize) -> Vec<Case> {
    let open = OPENS[0];
    let mut cases = Vec::new();
    let mut put =
        |text: String| cases.push((text.chars().skip(open.len()).take(60).collect(), text));
    for (bracket, close) in [("[", "]"), ("{\"a\":", "}")] {
        let levels = size / (bracket.len() + close.len());
        let deep = bracket.repeat(levels);
        let end = close.repeat(levels);
        put(format!("{open}\"tools\":[],\"x\":{deep}0{end}}}"));
        put(format!(
            "{open}\"tools\":[{{\"name\":\"a\",\"x\":{deep}0{end}}}]}}"
        ));
        put(format!(
            "{open}\"tools\":{}",
            bracket.repeat(size / bracket.len())
        ));
    }
    let long = "\\u0061".repeat(size / 6);
    put(format!("{open}\"tools\":[],\"{long}\":0}}"));
    put(format!("{open}\"tools\":[{{\"name\":\"{long}\"}}]}}"));
    put(format!(
        "{open}\"tools\":[{{\"name\":\"a\",\"description\":\"{long}\"}}]}}"
    ));
    put(format!(
        "{open}\"tools\":[{{\"name\":\"a\",\"metadata\":{{{}}}}}]}}",
        " ".repeat(size)
    ));
    put(format!(
        "{{\"protocol_version\":\"9.0.0-{}\",\"scenario\":{{}},\"tools\":[]}}",
        "a".repeat(size)
    ));
    // Half of it many small parts, half of it one that takes a large tree.
    let (_, tags) = document(size / 2, &format!("{}\"tools\":[", OPENS[1]), |text, at| {
        write!(text, "{{\"name\":\"{0}\",\"category\":\"{0}\"}}", short(at)).unwrap();
    });
    let (_, tree) = document(
        size / 2,
        r#"{"name":"z","metadata":{"examples":["#,
        same("[]"),
    );
    put(format!("{},{tree}]}}", tags.strip_suffix("]}").unwrap()));
    cases
}

/// The same of the protocol of modules.
fn modules(size: usize) -> Vec<Case> {
    const LISTS: [&str; 5] = [
        r#"{"module_name":"a","tools":["#,
        r#"{"module_name":"a","tools":[{"name":"a","parameters":["#,
        r#"{"module_name":"a","tools":[{"name":"a","parameters":[{"name":"a","type":["#,
        r#"{"module_name":"a","tools":[{"name":"a","parameters":[{"name":"a","type":"","enum":["#,
        r#"{"module_name":"a","tools":[{"name":"a","parameters":[{"name":"a","type":"","x":["#,
    ];
    const OBJECTS: [&str; 4] = [
        r#"{"module_name":"a","tools":[],"#,
        r#"{"module_name":"a","tools":{"#,
        r#"{"module_name":"a","tools":[{"name":"a","#,
        r#"{"module_name":"a","tools":[{"name":"a","parameters":[{"name":"a","type":"","#,
    ];
    let mut cases = Vec::new();
    for list in LISTS {
        for item in ["0", "{}", "null", r#"{"name":"a","type":""}"#] {
            cases.push(document(size, list, same(item)));
        }
        cases.push(document(size, list, |text, at| {
            write!(
                text,
                "{{\"name\":\"{0}\",\"type\":\"\",\"required_permission\":\"{0}\"}}",
                short(at)
            )
            .unwrap();
        }));
    }
    for object in OBJECTS {
        cases.extend([
            document(size, object, member("0")),
            document(size, object, same("\"name\":\"a\"")),
        ]);
    }
    cases
}

/// Reads a document, and holds what it costs to the promise: eight times its bytes and one MiB.
fn judge(
    case: &Case,
    most: usize,
    read: impl FnOnce(&[u8]) -> Result<tool_discovery::Decoded, ListError>,
) {
    let (what, text) = case;
    let (decoded, Took { peak, .. }) = took(|| read(text.as_bytes()));
    assert!(
        peak <= 8 * text.len() + MIB,
        "{peak} bytes for {} of {what}",
        text.len()
    );
    let tools = decoded.map_or(0, |decoded| decoded.manifest.tools.len());
    assert!(tools <= most, "{tools} tools of {what}");
}

/// What was taken of a document is stored, and read again at the same cost for each byte that is
/// stored.
fn judge_stored((what, text): &Case, accept: &AcceptedVersions) {
    let bounds = Bounds {
        tools: 100,
        ..DEFAULT
    };
    let Ok(decoded) = tool_discovery::decode_within(text.as_bytes(), accept, bounds) else {
        return;
    };
    let stored = state::manifest::write(&decoded.manifest);
    let (read, Took { peak, .. }) = took(|| state::manifest::read(&stored));
    assert!(
        peak <= 8 * stored.len() + MIB,
        "{peak} bytes for {} stored of {what}",
        stored.len()
    );
    assert_eq!(
        read.map(|manifest| manifest.digest).ok(),
        Some(decoded.manifest.digest),
        "{what}"
    );
}

#[test]
fn a_document_costs_eight_times_its_bytes_whatever_it_holds() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let accept = AcceptedVersions::default();
    for case in [lists(SMALL), objects(SMALL), parts(SMALL), extremes(SMALL)].concat() {
        judge(&case, DEFAULT.tools, |body| {
            tool_discovery::decode_within(body, &accept, DEFAULT)
        });
        judge_stored(&case, &accept);
    }
    // What was worst, in full size, and as large as it may be.
    for item in ["{}", r#"{"name":"a"}"#] {
        let case = document(LARGE, &format!("{}\"tools\":[", OPENS[0]), same(item));
        judge(&case, usize::MAX, |body| {
            tool_discovery::decode(body, &accept)
        });
    }
    for case in modules(SMALL) {
        judge(&case, DEFAULT.tools, |body| {
            module::decode_within(body, DEFAULT)
        });
        judge(&case, usize::MAX, module::decode);
    }
}

/// A stored tool, as large as its file may be or at its longest, with one part that is written to
/// take much memory.
fn stored_tools() -> Vec<Case> {
    const OPEN: &str = r#"{"schemaVersion":"2025-07-01","slug":"a","version":"v1","displayName":"a","createdAt":"2026-01-02T03:04:05Z","type":"http","#;
    const PLAIN: &str = r#""impl":{"urlTemplate":"http://a"},"#;
    const POST: &str = r#""impl":{"urlTemplate":"http://a","method":"POST","#;
    let size = 250 * 1024;
    let place = format!("${{a{}}}", ".a".repeat(90));
    let text = |before: &str, part: &str, most: usize| {
        (
            format!("{before} {part}"),
            format!("{OPEN}{before}{}\"}}}}", part.repeat(most / part.len())),
        )
    };
    let form = format!(
        r#"{POST}"headers":{{"Content-Type":"application/x-www-form-urlencoded"}},"body":""#
    );
    let mut cases = vec![
        text(r#""impl":{"urlTemplate":"http://a"#, "/a", 8_000),
        text(r#""impl":{"urlTemplate":"http://a"#, "/${a}", 8_000),
        text(r#""impl":{"urlTemplate":"http://a?x=1"#, "&a=b", 8_000),
        text(&format!("{POST}\"body\":\""), "${a}", 60_000),
        text(
            &format!("{POST}\"headers\":{{\"Content-Type\":\"text/plain\"}},\"body\":\""),
            "${a}",
            60_000,
        ),
        text(
            &format!("{POST}\"headers\":{{\"Content-Type\":\"text/plain\"}},\"body\":\""),
            &place,
            60_000,
        ),
        text(&form, "a=b&", 200_000),
        text(&form, "a=${a}&", 200_000),
        text(&format!("{POST}\"extractExpr\":\"$"), "[0,0]", 4_000),
        text(&format!("{POST}\"extractExpr\":\"$"), ".a", 4_000),
        text(&format!("{POST}\"extractExpr\":\"re:"), r"\\w{9}", 350),
        text(
            r#""impl":{"urlTemplate":"http://a"},"x":{"note":""#,
            "x",
            200_000,
        ),
    ];
    for part in [
        "[]",
        r#"{"a":0}"#,
        r#""a""#,
        r#""${a}""#,
        "0",
        r#"{"a":"${a}"}"#,
        r#"["${a}"]"#,
    ] {
        for before in [
            format!("{POST}\"body\":["),
            format!("{PLAIN}\"x\":["),
            format!("{PLAIN}\"argSchema\":{{\"enum\":["),
        ] {
            cases.extend(
                [size, size / 20]
                    .map(|size| document(size, &format!("{OPEN}{before}"), same(part))),
            );
        }
    }
    for before in [
        PLAIN.to_owned(),
        format!("{PLAIN}\"argSchema\":{{\"properties\":{{"),
        format!("{POST}\"query\":{{"),
    ] {
        cases.extend(
            [size, 700].map(|size| document(size, &format!("{OPEN}{before}"), member("\"\""))),
        );
    }
    cases
}

/// What `bundles.max_bytes` limits is what is taken, and one file that is read takes a few MiB.
#[test]
fn a_stored_tool_takes_no_more_than_it_is_counted_for() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let bundle = "018faf50-b7b6-7a01-9a05-a22a6e0af101".parse().unwrap();
    let mut read = 0;
    let mut problems = Vec::new();
    for (what, text) in stored_tools() {
        // What is made once for the whole process is none of it.
        drop(
            StoredDocument::parse(&text)
                .map(|document| StoredTool::parse(document, bundle).map(drop)),
        );
        let (tool, Took { peak, held, .. }) =
            took(|| StoredTool::parse(StoredDocument::parse(&text).unwrap(), bundle));
        if peak > 64 * text.len() + 8 * MIB {
            problems.push(format!("{peak} bytes for {} of {what}", text.len()));
        }
        let tool = match tool {
            Ok(tool) => tool,
            Err(why) => {
                assert!(!why.to_string().contains("missing"), "{what}: {why}");
                continue;
            }
        };
        read += 1;
        if held > tool.bytes || tool.bytes > 3 * held + 8 * 1024 {
            problems.push(format!(
                "{held} bytes are held, and {} are counted for {what}",
                tool.bytes
            ));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(read > 35, "{read}");
}

/// Scenarios of the configuration, and others that were found and wait for a yes.
const TRUSTED: usize = 16;
const STRANGERS: usize = 12;
/// Bytes of the answer of each: some hundred when it is packed. More than
/// `refresh.max_pending_body`.
const ANSWER: usize = MIB / 2;
/// The buffer of an answer while it grows, three times its bytes, and what it is read with, for
/// each that is trusted; a quarter of a MiB for each of the others, and the daemon. Without bounds
/// it takes four GB.
const MOST: usize = TRUSTED * 5 * ANSWER + STRANGERS * MIB;

#[test]
fn many_small_answers_that_become_large_are_borne() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (_, empty) = document(ANSWER, &format!("{}\"tools\":[", OPENS[0]), same("{}"));
    let packed = gzip(empty.as_bytes());
    assert!(packed.len() < 3_000, "{} bytes", packed.len());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let ((), Took { peak, .. }) = took(|| {
        runtime.block_on(async {
            let reply = Reply::text(packed)
                .header("Content-Encoding: gzip")
                .header("Cache-Control: max-age=3600");
            let servers: Vec<_> = (0..TRUSTED + STRANGERS)
                .map(|_| Scripted::saying(reply.clone()))
                .collect();
            let (trusted, strangers) = servers.split_at(TRUSTED);
            let good = Scripted::saying(Reply::tools("good", &["brew"]));
            let mut home = Home::new();
            home.config.refresh.timeout = Duration::from_secs(120);
            home.list("good", &good.url());
            trusted
                .iter()
                .enumerate()
                .for_each(|(at, server)| home.list(&format!("trusted-{at}"), &server.url()));
            let found = strangers.iter().enumerate();
            let daemon = home
                .start(
                    found
                        .map(|(at, server)| announced(&format!("found-{at}"), &server.url(), None)),
                )
                .await;
            daemon.until_listed(&["brew"]).await;
            for at in 0..STRANGERS {
                let large = |health: &callsheet::model::Health| health.last_error.is_some();
                let health = daemon
                    .until_health(&format!("found-{at}"), "is too large", large)
                    .await;
                assert_eq!(health.last_error.as_ref().unwrap().kind, "too-large");
            }
            for at in 0..TRUSTED {
                // Answers all the while.
                let answer = daemon.send("GET", "/api/v1/tools").await.json();
                assert_eq!(answer["tools"][0]["name"], json!("brew"));
                let read = |health: &callsheet::model::Health| health.tools.quarantined > 0;
                daemon
                    .until_health(&format!("trusted-{at}"), "is read", read)
                    .await;
            }
            daemon.stop().await;
        });
    });
    assert!(peak < MOST, "{peak} bytes");
}

/// The last catalogs are remembered, and each has the preferences of its time.
#[test]
fn remembered_catalogs_share_the_preferences_that_did_not_change() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for scopes in [1, 100, 10_000] {
        let place = |at: usize| -> (Scope, _) {
            let scope = if scopes == 1 {
                Scope::Global
            } else {
                Scope::Chat(format!("{:0150}", at % scopes))
            };
            (scope, format!("tool:files/{at:0100}").parse().unwrap())
        };
        let with_priority = |at: usize| Settings {
            priority: i32::try_from(at).ok(),
            ..Settings::default()
        };
        let all = || {
            let mut preferences = PreferenceSet::default();
            for at in 0..10_000 {
                let (scope, target) = place(at);
                preferences.set(scope, target, with_priority(at));
            }
            build(&Inputs {
                preferences: Arc::new(preferences),
                ..Inputs::default()
            })
        };
        let (first, Took { held: one, .. }) = took(all);
        let mut remembered = vec![first];
        let change = || {
            for at in 0..KEPT {
                let last = remembered.last().unwrap();
                let mut preferences = last.preferences().clone();
                let (scope, target) = place(at * 100);
                preferences.set(scope, target, with_priority(at + 1));
                let next = last.with(Change::Preferences(Arc::new(preferences)));
                remembered.push(next);
            }
        };
        let ((), Took { held: further, .. }) = took(change);
        assert!(
            further < one,
            "{KEPT} further catalogs hold {further} bytes, the first one {one}"
        );
    }
}

/// Each of 10,000 tools has a finding that names others. A request that needs few of them, or only
/// their number, does not have all of them made again.
#[test]
fn requests_do_not_have_all_findings_made_again() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tools: Vec<String> = (0..500).map(|at| format!("t{at}")).collect();
    let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
    let names: Vec<String> = (0..20).map(|at| format!("s{at:02}")).collect();
    let offers: Vec<(&str, &[&str])> = names.iter().map(|name| (name.as_str(), &*tools)).collect();
    let health = vec![serving::health("s00", ScenarioState::Live)];
    let snapshot = serving::snapshot(&inputs(&offers), health, Vec::new());
    let (made, Took { total: all, .. }) = took(|| snapshot.catalog.findings().len());
    assert!(made >= 10_000);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(serving::serve(snapshot));
    let explain = || runtime.block_on(server.get("/api/v1/tools/s00/explain"));
    assert_eq!(explain().json()["kind"], "scenario");
    let (explained, Took { total, .. }) = took(explain);
    assert_eq!(explained.json()["findings"], json!([]));
    assert!(
        total < all / 20 / 4,
        "{total} bytes for one explanation, {all} for all findings"
    );

    let first = |query: &str| {
        runtime
            .block_on(Listener::begin(server.address, query))
            .1
            .data
    };
    assert_eq!(first("?max_tools=1")["findings"], made);
    let (event, Took { total, .. }) = took(|| first("?max_tools=2"));
    assert_eq!(event["findings"], made);
    assert!(
        total < all / 2,
        "{total} bytes for one stream, {all} for all findings"
    );
    assert_eq!(first("?scenario=s01")["findings"], 500);
}
