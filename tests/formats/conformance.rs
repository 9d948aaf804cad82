//! What every format of the table must do. A newcomer is picked up from [`FORMATS`] without new
//! test code.

use std::collections::BTreeSet;
use std::path::Path;

use callsheet::formats::{self, FORMATS, Format};
use callsheet::model::name::is_legal;
use callsheet::views::render;
use serde_json::Value;

use crate::support::format_cases;
use crate::support::serving;
use crate::support::view_tools::{self, extra, offered, part, raw, then, tool, view};

#[test]
fn ids_of_formats_are_unique_and_find_their_format() {
    let ids: BTreeSet<_> = FORMATS.iter().map(|format| format.id()).collect();
    assert_eq!(ids.len(), FORMATS.len());
    for id in ids {
        assert!(
            !id.is_empty()
                && id
                    .bytes()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-'),
            "{id}"
        );
        assert_eq!(formats::by_id(id).map(Format::id), Some(id));
    }
    assert!(formats::by_id("no such format").is_none());
}

#[test]
fn every_format_has_an_expected_file_for_every_case_and_no_other() {
    let cases: BTreeSet<_> = format_cases::cases()
        .iter()
        .map(|(case, _)| format!("{case}.json"))
        .collect();
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/expected");
    for format in format_cases::variants() {
        let names = |entry: std::io::Result<std::fs::DirEntry>| {
            entry.unwrap().file_name().into_string().unwrap()
        };
        let files: BTreeSet<_> = std::fs::read_dir(expected.join(format.id()))
            .unwrap()
            .map(names)
            .collect();
        assert_eq!(files, cases, "{}", format.id());
    }
}

/// The tools of a list, whatever its shape.
fn tools(list: &Value) -> &[Value] {
    let places = [
        "",
        "/tools",
        "/0/functionDeclarations",
        "/properties/calls/items/anyOf",
    ];
    let found = places
        .iter()
        .rev()
        .filter_map(|place| list.pointer(place))
        .find_map(Value::as_array);
    found.map_or(&[], Vec::as_slice)
}

/// The names of the tools in a list: the first text called `name` in each, or the constant of the
/// Tool Protocol.
fn names(list: &Value) -> Vec<&str> {
    fn name(tool: &Value) -> Option<&str> {
        let members = tool.as_object()?;
        members
            .get("name")
            .and_then(Value::as_str)
            .or_else(|| members.values().find_map(name))
    }
    fn one(tool: &Value) -> &str {
        let constant = tool
            .pointer("/properties/_tool/const")
            .and_then(Value::as_str);
        constant.or_else(|| name(tool)).expect("a name")
    }
    let tools = tools(list)
        .iter()
        .filter(|tool| tool.get("cachePoint").is_none());
    tools.map(one).collect()
}

#[test]
fn every_list_is_json_with_legal_names_and_nothing_is_lost_silently() {
    for (case, view) in format_cases::cases() {
        for format in FORMATS {
            let rendered = render(&view, then(), *format);
            let list: Value = serde_json::from_slice(&rendered.body).unwrap();
            let names = names(&list);
            assert!(
                names.iter().all(|name| is_legal(name)),
                "{case} in {}: {names:?}",
                format.id()
            );
            assert_eq!(names.len(), rendered.tools, "{case} in {}", format.id());
            assert_eq!(
                rendered.tools + rendered.left_out,
                view.len(),
                "{case} in {}",
                format.id()
            );
            assert!(
                rendered.findings.len() >= rendered.left_out,
                "{case} in {}",
                format.id()
            );
            assert!(rendered.findings.is_sorted(), "{case} in {}", format.id());
            assert_eq!(
                render(&view, then(), *format),
                rendered,
                "{case} in {} is not stable",
                format.id()
            );
        }
    }
}

#[test]
fn hostile_tools_never_break_the_list() {
    let deep = |open: &str, close: &str, times: usize| {
        format!("{}{}", open.repeat(times), close.repeat(times))
    };
    let schemas = [
        "{}".to_owned(),
        "null".to_owned(),
        "[]".to_owned(),
        r#"{"type":"object","type":"string"}"#.to_owned(),
        r#"{"type":"object","properties":[]}"#.to_owned(),
        r#"{"type":"object","properties":{"":{"$ref":""},"/~":{"enum":null}},"required":"all"}"#
            .to_owned(),
        r#"{"maximum":1e999}"#.to_owned(),
        format!(r#"{{"minimum":{}}}"#, "9".repeat(500)),
        r#"{"description":"\udfff"}"#.to_owned(),
        format!("{}{}{}", r#"{"items":"#.repeat(120), "{}", "}".repeat(120)),
        format!(
            "{}{}{}",
            r#"{"anyOf":["#.repeat(5_000),
            "1",
            "]}".repeat(5_000)
        ),
        deep("[", "]", 100_000),
    ];
    let hostile = schemas.iter().enumerate().map(|(index, schema)| {
        offered(
            tool(
                "hostile",
                &format!("tool {index} \u{0}\"\\\u{202e}"),
                schema,
            ),
            |tool| {
                tool.description = "</script>\u{0}\u{feff}\u{202e}\"".into();
                tool.metadata = raw(r#"{"tags":null}"#);
                tool.extra = extra(&[
                    ("", "null"),
                    ("name", "\"other\""),
                    ("function", "{}"),
                    ("a\"b", "[]"),
                ]);
            },
        )
    });
    let good = tool(
        "polite",
        "greet",
        r#"{"type":"object","properties":{"whom":{"type":"string"}}}"#,
    );
    let view = view(vec![
        part("hostile", hostile.collect(), Vec::new()),
        part("polite", vec![good], Vec::new()),
    ]);
    for format in FORMATS {
        let rendered = render(&view, then(), *format);
        let list: Value = serde_json::from_slice(&rendered.body)
            .unwrap_or_else(|error| panic!("{}: {error}", format.id()));
        let names = names(&list);
        assert!(names.contains(&"greet"), "{}: {names:?}", format.id());
        assert!(
            names.iter().all(|name| is_legal(name)),
            "{}: {names:?}",
            format.id()
        );
        assert_eq!(rendered.tools + rendered.left_out, view.len());
        assert_eq!(
            faults(*format, &list),
            Vec::<String>::new(),
            "{}",
            format.id()
        );
    }
}

/// The description and the schema of a tool in a list.
fn content(tool: &Value) -> (Option<&Value>, Option<&Value>) {
    let tool = tool
        .get("function")
        .or_else(|| tool.get("toolSpec"))
        .unwrap_or(tool);
    let keys = [
        "/parameters",
        "/input_schema",
        "/inputSchema/json",
        "/inputSchema",
        "/parametersJsonSchema",
    ];
    let schema = keys.iter().find_map(|key| tool.pointer(key));
    let composed = tool.pointer("/properties/_tool").is_some();
    (
        tool.get("description"),
        if composed { Some(tool) } else { schema },
    )
}

/// What in a list is beyond the limits of its format.
fn faults(format: &dyn Format, list: &Value) -> Vec<String> {
    let limits = format.limits();
    let mut faults = Vec::new();
    if format.id() == "native" {
        return faults;
    }
    let listed = names(list);
    faults.extend(
        listed
            .iter()
            .filter(|n| limits.name.is_some_and(|rule| !rule.allow(n)))
            .map(|n| format!("name {n}")),
    );
    if listed.iter().collect::<BTreeSet<_>>().len() != listed.len() {
        faults.push("a name twice".into());
    }
    for (tool, name) in tools(list).iter().zip(listed) {
        let (description, schema) = content(tool);
        if !limits.empty_description
            && description.is_some_and(|d| d.as_str().is_none_or(str::is_empty))
        {
            faults.push(format!("{name}: empty description"));
        }
        let Some(schema) = schema else { continue };
        // A valid schema of the same draft is passed on as it is.
        let as_is = format.id() == "mcp" && schema.get("properties").is_none();
        if schema["type"] != "object" || !(schema["properties"].is_object() || as_is) {
            faults.push(format!("{name}: no object"));
        }
        let barred = limits
            .root_barred
            .iter()
            .filter(|keyword| schema.get(**keyword).is_some());
        faults.extend(barred.map(|keyword| format!("{name}: {keyword} at the root")));
        let mut seen: Vec<Value> = Vec::new();
        let visit = |schema: &mut Value, _: &formats::schema::walk::SchemaLocation<'_>| {
            seen.push(schema.clone());
            Ok(())
        };
        formats::schema::walk::each_schema(&mut schema.clone(), visit).unwrap();
        for members in seen.iter().filter_map(Value::as_object) {
            if limits.unions == formats::limits::Unions::AnyOf && members.contains_key("oneOf") {
                faults.push(format!("{name}: oneOf"));
            }
            faults.extend(
                limits
                    .barred
                    .iter()
                    .filter(|k| members.contains_key(**k))
                    .map(|k| format!("{name}: {k}")),
            );
            let keys = members
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flat_map(|p| p.keys());
            faults.extend(
                keys.filter(|k| limits.key.is_some_and(|rule| !rule.allow(k)))
                    .map(|k| format!("{name}: key {k}")),
            );
        }
    }
    faults
}

/// The real and the poisoned tools of the corpus, if it is there.
fn corpus() -> Vec<(String, String, String)> {
    fn collect(value: &Value, found: &mut Vec<(String, String, String)>) {
        let Some(members) = value.as_object() else {
            value
                .as_array()
                .into_iter()
                .flatten()
                .for_each(|inner| collect(inner, found));
            return;
        };
        let schema = members
            .get("inputSchema")
            .or_else(|| members.get("input_schema"));
        if let (Some(name), Some(text)) = (
            members.get("name").and_then(Value::as_str),
            members.get("description"),
        ) && (schema.is_some() || members.contains_key("label"))
        {
            let schema = schema.map_or_else(|| r#"{"type":"object"}"#.to_owned(), Value::to_string);
            found.push((
                name.to_owned(),
                text.as_str().unwrap_or_default().to_owned(),
                schema,
            ));
            return;
        }
        members.values().for_each(|inner| collect(inner, found));
    }
    let folder = std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        Into::into,
    );
    let mut found = Vec::new();
    for file in ["schemas/livemcpbench.json", "poison/cisco.json"] {
        if let Ok(text) = std::fs::read_to_string(folder.join(file)) {
            collect(&serde_json::from_str(&text).unwrap(), &mut found);
        }
    }
    found
}

#[test]
fn real_and_poisoned_tools_stay_within_the_limits_of_every_format() {
    let known = corpus();
    let named = known.iter().enumerate().map(|(index, (_, text, schema))| {
        offered(tool("known", &format!("tool_{index:05}"), schema), |tool| {
            tool.description = text.as_str().into();
        })
    });
    let view = view(vec![part("known", named.collect(), Vec::new())]);
    let plain = formats::FormatOptions::default();
    let with = |change: fn(&mut formats::FormatOptions)| {
        let mut options = plain;
        change(&mut options);
        options
    };
    let options = [
        plain,
        with(|o| o.strict = true),
        with(|o| o.cache = true),
        with(|o| o.deferring = true),
    ];
    let variants = FORMATS
        .iter()
        .flat_map(|format| options.map(|options| formats::with_options(*format, options)));
    for format in variants.flatten() {
        let rendered = render(&view, then(), format);
        let list: Value = serde_json::from_slice(&rendered.body).unwrap();
        assert_eq!(
            faults(format, &list),
            Vec::<String>::new(),
            "{}",
            format.id()
        );
        assert_eq!(rendered.tools + rendered.left_out, known.len());
        let quarantined: BTreeSet<_> = rendered
            .findings
            .iter()
            .filter(|f| f.code.as_str() == "tool-quarantined")
            .collect();
        assert_eq!(
            quarantined.len(),
            rendered.left_out,
            "{}: each with its reason",
            format.id()
        );
        assert!(
            rendered.left_out * 20 <= known.len(),
            "{}: {} left out",
            format.id(),
            rendered.left_out
        );
    }
}

#[test]
fn what_comes_behind_changes_no_byte_before() {
    let first = format_cases::cases()
        .into_iter()
        .find(|(case, _)| *case == "fleet")
        .unwrap()
        .1
        .parts;
    let last = tool(
        "zoo",
        "feed",
        r#"{"type":"object","properties":{"what":{"type":"string"}}}"#,
    );
    for format in FORMATS {
        let before = render(&view(first.clone()), then(), *format).body;
        let mut more = first.clone();
        more.push(part("zoo", vec![last.clone()], Vec::new()));
        let after = render(&view(more), then(), *format).body;
        let close = format.encode(&last).json.unwrap();
        let at = after
            .windows(close.len())
            .position(|window| window == close)
            .unwrap();
        assert_eq!(after[..at - 1], before[..at - 1], "{}", format.id());
        assert_eq!(after[at - 1], b',', "{}", format.id());
    }
}

/// Tools whose names vendors would not take, collide, look alike or are those of routes and of our
/// own words.
fn hostile_fleet() -> callsheet::catalog::Inputs {
    let long = "x".repeat(200);
    let names = [
        "read",
        "Read",
        "re ad",
        "re_ad",
        "re-ad",
        "re.ad",
        "re/ad",
        "1read",
        "-read",
        " ",
        "_tool",
        "_activity",
        "calls",
        "search",
        "set",
        "scenarios",
        "config",
        "explain",
        "sync",
        "execute",
        "config/approval",
        "tool_search",
        "tool_search_tool_bm25",
        "читать",
        "読む",
        "\u{202e}daer",
        "r\u{e9}ad",
        "re\u{301}ad",
        "a__read",
        "b__read",
        "..",
        "a%2Fread",
        "a/read",
        "\"quoted\"",
        "new\nline",
        "nul\u{0}",
        "emoji \u{1f980}",
        &long,
        &long[..64],
        &long[..65],
    ];
    let mut inputs = callsheet::catalog::Inputs::default();
    for scenario in ["a", "b", "a__b", "search", "calls"] {
        let tools = names.iter().map(|name| {
            let tool = tool(
                scenario,
                "any",
                r#"{"type":"object","properties":{"text":{"type":"string"}}}"#,
            );
            let mut tool = (*tool.tool).clone();
            tool.name = (*name).into();
            std::sync::Arc::new(tool)
        });
        let mut tools: Vec<_> = tools.collect();
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let manifest = std::sync::Arc::new(view_tools::manifest(scenario, tools, Vec::new()));
        let standing = callsheet::catalog::Visibility::Published;
        inputs.offers.insert(
            scenario.parse().unwrap(),
            callsheet::catalog::Offer {
                manifest,
                visibility: standing,
            },
        );
    }
    inputs
}

/// Each byte written as an escape: a name that is also a route (`search`) is asked for as a name
/// that way.
fn escaped(name: &str) -> String {
    name.bytes().fold(String::new(), |mut text, byte| {
        text.extend([
            '%',
            char::from_digit(u32::from(byte >> 4), 16).unwrap(),
            char::from_digit(u32::from(byte & 15), 16).unwrap(),
        ]);
        text
    })
}

#[tokio::test]
async fn every_name_that_any_format_publishes_finds_its_way_back() {
    let inputs = hostile_fleet();
    let catalog = callsheet::catalog::build(&inputs);
    let view =
        callsheet::catalog::View::select(&catalog, &callsheet::catalog::ViewQuery::default());
    let server = serving::serve_inputs(&inputs).await;
    let mut back: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for options in [
        [false, false, false],
        [true, false, false],
        [false, true, false],
        [false, false, true],
        [true, true, true],
    ] {
        let [strict, cache, deferring] = options;
        let options = formats::FormatOptions {
            strict,
            cache,
            deferring,
        };
        for format in FORMATS
            .iter()
            .filter_map(|format| formats::with_options(*format, options))
        {
            let rendered = render(&view, then(), format);
            let list: Value = serde_json::from_slice(&rendered.body).unwrap();
            let published = names(&list);
            assert_eq!(
                published.iter().collect::<BTreeSet<_>>().len(),
                published.len(),
                "{}: a name twice",
                format.id()
            );
            assert!(
                published.len() * 10 >= view.len() * 9,
                "{}: {} of {}",
                format.id(),
                published.len(),
                view.len()
            );
            // What is left out has no line in the list, so the names stand in the order of the
            // tools that are said.
            let listed = view
                .tools()
                .filter(|tool| published.contains(&tool.name.as_str()));
            for (tool, name) in listed.zip(&published) {
                if !back.contains_key(*name) {
                    let answer = server
                        .get(&format!("/api/v1/tools/{}", escaped(name)))
                        .await;
                    assert_eq!(answer.status, 200, "{name} of {}: {answer:?}", tool.id);
                    let found = answer.json();
                    let id = format!(
                        "{}/{}",
                        found["scenario"].as_str().unwrap(),
                        found["original_name"].as_str().unwrap()
                    );
                    back.insert((*name).to_owned(), id);
                }
                assert_eq!(
                    back[*name],
                    tool.id.to_string(),
                    "{} in {}",
                    name,
                    format.id()
                );
            }
        }
    }
    assert_eq!(back.len(), view.len());
}
