//! Formats: a view in, the very bytes of its list out, and a finding for whatever changed on the
//! way.

use std::path::{Path, PathBuf};

use callsheet::formats::{self, FORMATS, Format};
use callsheet::model::{Execution, Finding, FindingCode, ViewTool};
use callsheet::views::render;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::format_cases;
use crate::support::view_tools::{extra, offered, part, then, tool, view};

/// Compares with the expected file, byte for byte; `CALLSHEET_BLESS=1` writes it. The version of
/// callsheet stands as `@VERSION@`.
fn check(case: &str, format: &dyn Format, body: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("fixtures/expected/{}/{case}.json", format.id()));
    let version = format!("\"version\":\"{}\"", env!("CARGO_PKG_VERSION"));
    let text =
        std::str::from_utf8(body)
            .unwrap()
            .replacen(&version, "\"version\":\"@VERSION@\"", 1);
    if std::env::var_os("CALLSHEET_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(
        text,
        expected,
        "{} differs; CALLSHEET_BLESS=1 writes it anew",
        path.display()
    );
}

#[test]
fn every_case_gives_the_expected_bytes_in_every_format() {
    for (case, view) in format_cases::cases() {
        for format in format_cases::variants() {
            check(case, format, &render(&view, then(), format).body);
        }
    }
}

fn case(name: &str, format: &str) -> (Value, Vec<Finding>) {
    let view = format_cases::cases()
        .into_iter()
        .find(|(case, _)| *case == name)
        .expect("a case")
        .1;
    let rendered = render(&view, then(), formats::by_id(format).unwrap());
    assert_eq!(rendered.tools + rendered.left_out, view.len());
    (
        serde_json::from_slice(&rendered.body).unwrap(),
        rendered.findings,
    )
}

fn places_of(findings: &[Finding]) -> Vec<(String, &str, &str)> {
    let place = |finding: &Finding| {
        let tool = finding.tool.as_deref().unwrap_or("-");
        format!("{}/{tool}", finding.scenario.as_ref().expect("a scenario"))
    };
    findings
        .iter()
        .map(|f| {
            (
                place(f),
                f.code.as_str(),
                f.pointer.as_deref().unwrap_or(""),
            )
        })
        .collect()
}

#[test]
fn the_native_list_is_a_manifest_that_adds_owner_and_preferences() {
    let (list, findings) = case("fleet", "native");
    assert_eq!(list["protocol_version"], "1.0");
    assert_eq!(list["scenario"]["name"], "callsheet");
    assert_eq!(list["generated_at"], "2026-03-01T09:30:00.25Z");
    let south = &list["tools"][1];
    assert_eq!(south["name"], "depot-south__list_crates");
    assert_eq!(south["scenario"], "depot-south");
    assert_eq!(south["original_name"], "list_crates");
    assert_eq!(south["enabled"], true);
    assert_eq!(south["enabled_source"], "global category:stock");
    assert_eq!(
        list["tools"][0]["approval_source"],
        "chat:7 tool:depot-north/list_crates"
    );
    assert_eq!(south["x_tier"], json!({"level": 2}));
    let categories: Vec<_> = list["categories"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (&c["id"], &c["name"]))
        .collect();
    assert_eq!(
        categories,
        [
            (&json!("stock"), &json!("Stock")),
            (&json!("returns"), &json!("Returns"))
        ]
    );
    assert_eq!(
        places_of(&findings),
        [
            ("depot-south/-".into(), "category-ignored", ""),
            ("depot-south/list_crates".into(), "lossy", ""),
        ]
    );
    assert!(
        findings[1].message.contains("`enabled`, `scenario`"),
        "{}",
        findings[1].message
    );
}

#[test]
fn a_schema_that_needs_no_change_is_embedded_as_it_came() {
    let view = format_cases::cases()
        .into_iter()
        .find(|(case, _)| *case == "plain")
        .unwrap()
        .1;
    let raw = view.parts[0].tools[0].tool.parameters.get();
    // The others have no `default`, or add members.
    for format in FORMATS
        .iter()
        .filter(|format| !["gemini", "ollama", "calls"].contains(&format.id()))
    {
        let rendered = render(&view, then(), *format);
        assert!(
            String::from_utf8(rendered.body).unwrap().contains(raw),
            "{}",
            format.id()
        );
        assert_eq!(rendered.findings, [], "{}", format.id());
    }
}

#[test]
fn openai_prunes_unknown_required_names_and_keeps_nested_ones() {
    let (list, findings) = case("noise", "openai");
    let chart = &list[0]["function"]["parameters"];
    assert_eq!(chart["properties"]["area"]["required"], json!(["left"]));
    assert_eq!(chart["properties"]["maybe"]["default"], Value::Null);
    assert!(chart["properties"]["maybe"].get("default").is_some());
    assert!(chart.get("required").is_none());
    assert_eq!(
        list[1]["function"]["parameters"]["required"],
        json!(["seen"])
    );
    assert_eq!(
        places_of(&findings),
        [("survey/haunt".into(), "lossy", "/parameters/required")]
    );
    assert!(findings[0].hint.is_some());
}

#[test]
fn openai_folds_roots_and_leaves_out_what_takes_no_object() {
    let (list, findings) = case("roots", "openai");
    let names: Vec<_> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["fetch", "look_up", "switch"]);
    assert_eq!(
        places_of(&findings),
        [
            ("mixed/fetch".into(), "lossy", "/parameters/oneOf"),
            ("mixed/look_up".into(), "lossy", "/parameters/$ref"),
            ("mixed/switch".into(), "lossy", "/parameters/not"),
            ("mixed/switch".into(), "lossy", "/parameters/type"),
            ("mixed/tell".into(), "tool-quarantined", "/parameters"),
        ]
    );
}

#[test]
fn one_malformed_tool_costs_that_tool_only() {
    for format in ["native", "openai"] {
        let (list, findings) = case("malformed", format);
        let tools = list.get("tools").unwrap_or(&list).as_array().unwrap();
        assert_eq!(tools.len(), 1, "{format}");
        let name = tools[0]
            .get("name")
            .unwrap_or(&tools[0]["function"]["name"]);
        assert!(
            name.as_str().unwrap().starts_with("guess_what_"),
            "{format}"
        );
        for lost in ["careless/dig", "careless/halve"] {
            assert!(
                places_of(&findings).iter().any(|finding| finding.0 == lost
                    && ["lossy", "tool-quarantined"].contains(&finding.1)),
                "{format} {lost}"
            );
        }
    }
}

#[test]
fn findings_of_a_hostile_schema_are_bounded() {
    let properties: Vec<_> = (0..5_000).map(|n| format!(r#""p{n}":7"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{{}}}}}"#,
        properties.join(",")
    );
    let encoded = formats::openai::OpenAiFormat.encode(&tool("s", "t", &schema));
    assert_eq!(encoded.findings.len(), 17);
    assert!(
        encoded.findings[16]
            .message
            .starts_with("4984 further places"),
        "{}",
        encoded.findings[16].message
    );
    assert!(
        encoded
            .findings
            .iter()
            .all(|finding| finding.code == FindingCode::Lossy)
    );
}

fn body(name: &str, format: &dyn Format) -> Value {
    let view = format_cases::cases()
        .into_iter()
        .find(|(case, _)| *case == name)
        .expect("a case")
        .1;
    serde_json::from_slice(&render(&view, then(), format).body).unwrap()
}

#[test]
fn the_end_of_a_list_is_marked_for_prompt_caches() {
    let cached = formats::FormatOptions {
        cache: true,
        ..formats::FormatOptions::default()
    };
    for (id, tools) in [("anthropic", ""), ("bedrock", "/tools")] {
        let plain = formats::by_id(id).unwrap();
        let marked = formats::with_options(plain, cached).unwrap();
        let without = body("plain", plain);
        let with = body("plain", marked);
        let without = without.pointer(tools).unwrap().clone();
        let mut with = with.pointer(tools).unwrap().clone();
        let list = with.as_array_mut().unwrap();
        if id == "anthropic" {
            let end = list.last_mut().unwrap().as_object_mut().unwrap();
            assert_eq!(
                end.shift_remove("cache_control"),
                Some(json!({"type": "ephemeral"}))
            );
        } else {
            assert_eq!(list.pop(), Some(json!({"cachePoint": {"type": "default"}})));
        }
        assert_eq!(with, without, "{id}");
        assert_eq!(body("empty", marked), body("empty", plain), "{id}");
    }
    assert!(formats::with_options(formats::by_id("openai").unwrap(), cached).is_none());
}

#[test]
fn a_parameter_with_the_name_of_a_meta_field_is_left_out_of_calls_and_told() {
    let schema = r#"{"type":"object","properties":{"_tool":{"type":"string"},"_reasoningForCall":{"type":"number"},"_output":{"type":"object"},"text":{"type":"string"}},"required":["_tool","text"]}"#;
    let encoded = formats::by_id("calls")
        .unwrap()
        .encode(&tool("s", "write", schema));
    let places: Vec<_> = encoded
        .findings
        .iter()
        .map(|f| (f.code.as_str(), f.pointer.as_deref().unwrap_or("")))
        .collect();
    let expected = ["_tool", "_reasoningForCall", "_output"]
        .map(|name| format!("/parameters/properties/{name}"));
    assert_eq!(
        places,
        expected
            .each_ref()
            .map(|pointer| ("lossy", pointer.as_str()))
    );
    let call: Value = serde_json::from_slice(&encoded.json.unwrap()).unwrap();
    assert_eq!(call["properties"]["_tool"]["const"], "write");
    assert_eq!(call["properties"]["_reasoningForCall"]["type"], "string");
    assert_eq!(call["required"], json!(["_tool", "_activity", "text"]));
}

#[test]
fn calls_are_explicit_or_latent_and_meta_fields_come_first() {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let empty = r#"{"type":"object","properties":{}}"#;
    let own = offered(tool("s", "kept", empty), |tool| {
        tool.extra = extra(&[("_activity", "\"other\"")]);
    });
    let latent = ViewTool {
        execution: Execution::Latent,
        ..tool("s", "think", schema)
    };
    let calls = formats::by_id("calls").unwrap();
    let encode =
        |tool| serde_json::from_slice::<Value>(&calls.encode(&tool).json.unwrap()).unwrap();
    for (tool, activity, required) in [
        (own, "other", json!(["_tool", "_activity"])),
        (
            tool("s", "read", schema),
            "read",
            json!(["_tool", "_activity", "text"]),
        ),
        (latent, "", json!(["_tool", "_activity", "text", "_output"])),
    ] {
        let name = tool.id.tool.to_string();
        let call = encode(tool);
        assert_eq!(
            call["properties"]["_activity"],
            json!({"type": "string", "const": activity}),
            "{name}"
        );
        assert_eq!(call["properties"]["_tool"]["const"], json!(name));
        assert_eq!(call["required"], required, "{name}");
        let keys: Vec<_> = call["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            keys[..4],
            ["_tool", "_activity", "_reasoningForCall", "_output"],
            "{name}"
        );
    }
    assert_eq!(
        body("empty", calls)["properties"]["calls"]["maxItems"],
        json!(0)
    );
}

#[test]
fn a_long_description_is_sent_whole_and_told_of_where_servers_differ() {
    let long = offered(tool("s", "t", "{}"), |tool| {
        tool.description = "ü".repeat(1_025).into();
    });
    let fitting = offered(tool("s", "t", "{}"), |tool| {
        tool.description = "ü".repeat(1_024).into();
    });
    for format in format_cases::variants()
        .into_iter()
        .filter(|format| format.for_llm())
    {
        let outcome = |tool| {
            let encoded = format.encode(tool);
            let text = String::from_utf8(encoded.json.unwrap()).unwrap();
            let codes: Vec<_> = encoded
                .findings
                .iter()
                .map(|finding| finding.code)
                .collect();
            (text.contains(&*tool.tool.description), codes)
        };
        let codes = if format.id().starts_with("openai") {
            vec![FindingCode::DescriptionLong]
        } else {
            Vec::new()
        };
        assert_eq!(outcome(&long), (true, codes), "{}", format.id());
        assert_eq!(outcome(&fitting), (true, Vec::new()), "{}", format.id());
    }
}

#[test]
fn a_list_without_tools_is_one_that_a_request_can_leave_out() {
    for format in format_cases::variants()
        .into_iter()
        .filter(|format| format.for_llm())
    {
        let empty = body("empty", format);
        match format.id() {
            // Converse takes no configuration without tools.
            "bedrock" | "bedrock+cache" => assert_eq!(empty, Value::Null),
            "mcp" => assert_eq!(empty["tools"], json!([])),
            "calls" => assert_eq!(empty["properties"]["calls"]["maxItems"], 0),
            other => assert_eq!(empty, json!([]), "{other}"),
        }
    }
}

#[test]
fn a_reference_to_elsewhere_costs_that_tool_in_every_format_for_llms() {
    for target in ["http://127.0.0.1/secret", "#/$defs/none"] {
        let schema = json!({"type": "object", "properties": {"a": {"$ref": target}}}).to_string();
        for format in FORMATS.iter().filter(|format| format.for_llm()) {
            let encoded = format.encode(&tool("s", "t", &schema));
            assert_eq!(encoded.json, None, "{} {target}", format.id());
            assert_eq!(encoded.findings[0].code, FindingCode::ToolQuarantined);
            assert!(
                encoded.findings[0].message.contains(target),
                "{}",
                encoded.findings[0].message
            );
        }
    }
}

#[test]
fn strict_schemas_are_closed_and_what_cannot_be_is_offered_as_it_is() {
    let strict = formats::FormatOptions {
        strict: true,
        ..formats::FormatOptions::default()
    };
    let schema = r#"{"type":"object","properties":{"a":{"type":"string","minLength":2},"b":{"type":"integer"}},"required":["b"]}"#;
    let free = r#"{"type":"object","properties":{"any":{"type":"object"}}}"#;
    for (id, place) in [
        ("openai", "/function"),
        ("openai-responses", ""),
        ("anthropic", ""),
    ] {
        let format = formats::with_options(formats::by_id(id).unwrap(), strict).unwrap();
        let encode = |schema| {
            let encoded = format.encode(&tool("s", "t", schema));
            let tool: Value = serde_json::from_slice(&encoded.json.unwrap()).unwrap();
            (tool.pointer(place).unwrap().clone(), encoded.findings)
        };
        let (closed, findings) = encode(schema);
        let arguments = closed.get("parameters").unwrap_or(&closed["input_schema"]);
        assert_eq!(closed["strict"], true, "{id}");
        assert_eq!(arguments["additionalProperties"], false, "{id}");
        assert_eq!(
            arguments["properties"]["a"]["description"], "minLength: 2",
            "{id}"
        );
        assert_eq!(findings.len(), 1, "{id}: {findings:?}");
        let all = if id == "anthropic" {
            json!(["b"])
        } else {
            json!(["a", "b"])
        };
        assert_eq!(arguments["required"], all, "{id}");
        let (open, findings) = encode(free);
        assert_eq!(open.get("strict"), None, "{id}");
        assert_eq!(findings.len(), 1, "{id}");
        assert!(
            findings[0]
                .message
                .starts_with(&format!("not strict in `{id}+strict`: ")),
            "{}",
            findings[0].message
        );
    }
    assert!(formats::with_options(formats::by_id("gemini").unwrap(), strict).is_none());
}

#[test]
fn strict_tools_of_one_request_get_their_places_in_order() {
    let strict = formats::FormatOptions {
        strict: true,
        ..formats::FormatOptions::default()
    };
    let format = formats::with_options(formats::by_id("anthropic").unwrap(), strict).unwrap();
    let schema = r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#;
    let tools: Vec<_> = (10..40)
        .map(|n| tool("s", &format!("t{n}"), schema))
        .collect();
    let rendered = render(&view(vec![part("s", tools, Vec::new())]), then(), format);
    let list: Vec<Value> = serde_json::from_slice(&rendered.body).unwrap();
    let strict: Vec<bool> = list
        .iter()
        .map(|tool| tool.get("strict").is_some())
        .collect();
    assert_eq!(strict.iter().filter(|strict| **strict).count(), 20);
    assert!(strict[..20].iter().all(|strict| *strict));
    assert_eq!(
        rendered.findings.len(),
        10,
        "each that is not strict is told"
    );
}

/// Whether each of these tools is offered as strict, in order.
fn strict_marks(id: &str, schemas: &[Value]) -> Vec<bool> {
    let strict = formats::FormatOptions {
        strict: true,
        ..formats::FormatOptions::default()
    };
    let format = formats::with_options(formats::by_id(id).unwrap(), strict).unwrap();
    let tools = schemas
        .iter()
        .zip(10..)
        .map(|(schema, n)| tool("s", &format!("t{n}"), &schema.to_string()));
    let rendered = render(
        &view(vec![part("s", tools.collect(), Vec::new())]),
        then(),
        format,
    );
    let list: Vec<Value> = serde_json::from_slice(&rendered.body).unwrap();
    list.iter()
        .map(|tool| tool.get("function").unwrap_or(tool).get("strict").is_some())
        .collect()
}

/// Anthropic takes 16 parameters with alternatives in the strict tools of one request.
#[test]
fn the_strict_tools_of_one_request_have_sixteen_unions_at_most() {
    let union = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
    let properties = |count: u32| {
        (0..count)
            .map(|n| (format!("p{n}"), union.clone()))
            .collect::<serde_json::Map<_, _>>()
    };
    let schema = |count| {
        let properties = properties(count);
        let required: Vec<_> = properties.keys().collect();
        json!({"type": "object", "required": required, "properties": &properties})
    };
    assert_eq!(
        strict_marks("anthropic", &[schema(10), schema(6)]),
        [true, true],
        "16 unions"
    );
    assert_eq!(
        strict_marks("anthropic", &[schema(10), schema(7)]),
        [true, false],
        "17 unions"
    );
}

/// Anthropic takes 24 parameters that are not required in the strict tools of one request.
#[test]
fn the_strict_tools_of_one_request_have_twenty_four_optional_parameters_at_most() {
    let schema = |count: u32| {
        let properties: serde_json::Map<_, _> = (0..count)
            .map(|n| (format!("p{n}"), json!({"type": "string"})))
            .collect();
        json!({"type": "object", "properties": properties})
    };
    assert_eq!(
        strict_marks("anthropic", &[schema(20), schema(4)]),
        [true, true],
        "24 optional ones"
    );
    assert_eq!(
        strict_marks("anthropic", &[schema(20), schema(5)]),
        [true, false],
        "25 optional ones"
    );
}

/// OpenAI takes 5,000 properties and ten levels in one schema.
#[test]
fn a_strict_schema_of_openai_is_bounded_in_properties_and_levels() {
    let wide = |count: u32| {
        let properties: serde_json::Map<_, _> = (0..count)
            .map(|n| (format!("p{n}"), json!({"type": "string"})))
            .collect();
        json!({"type": "object", "required": properties.keys().collect::<Vec<_>>(), "properties": properties})
    };
    assert_eq!(
        strict_marks("openai", &[wide(5_000), wide(5_001)]),
        [true, false],
        "properties"
    );
    let deep = |levels: u32| {
        let leaf = json!({"type": "string"});
        (0..levels).fold(
            leaf,
            |inner, _| json!({"type": "object", "required": ["p"], "properties": {"p": inner}}),
        )
    };
    assert_eq!(
        strict_marks("openai", &[deep(8), deep(14)]),
        [true, false],
        "levels"
    );
}

/// OpenAI takes 15,000 characters in an `enum` of more than 250 values, and more in a shorter one.
#[test]
fn a_strict_enum_of_many_values_has_fifteen_thousand_characters_at_most() {
    let schema = |count: u32, width: usize| {
        let values: Vec<_> = (0..count).map(|n| format!("{n:0width$}")).collect();
        json!({"type": "object", "required": ["p"], "properties": {"p": {"type": "string", "enum": values}}})
    };
    for (count, width, strict) in [(250, 70, true), (251, 59, true), (251, 60, false)] {
        assert_eq!(
            strict_marks("openai", &[schema(count, width)]),
            [strict],
            "{count} values of {width} characters"
        );
    }
}

/// What OpenAI refuses, looked for in a schema that was made for it.
fn acceptable_to_openai(schema: &Value) -> Result<(), String> {
    let root = schema.as_object().ok_or("no object")?;
    if root.get("type") != Some(&json!("object"))
        || !root.get("properties").is_some_and(Value::is_object)
    {
        return Err("the root is not an object with properties".into());
    }
    for barred in ["oneOf", "anyOf", "allOf", "enum", "const", "not"] {
        if root.contains_key(barred) {
            return Err(format!("{barred} at the root"));
        }
    }
    if let Some(required) = root.get("required") {
        let names = required
            .as_array()
            .filter(|names| !names.is_empty())
            .ok_or("required is not a list of names")?;
        if !root.contains_key("patternProperties")
            && !names.iter().all(|name| {
                root["properties"]
                    .get(name.as_str().unwrap_or(""))
                    .is_some()
            })
        {
            return Err(format!("{required} names an absent property"));
        }
    }
    let mut fault = None;
    let visit = |schema: &mut Value, place: &formats::schema::walk::SchemaLocation<'_>| {
        let array = schema["type"] == "array"
            || schema["type"]
                .as_array()
                .is_some_and(|t| t.contains(&json!("array")));
        if schema.is_object()
            && array
            && !schema
                .get("items")
                .is_some_and(|items| items.is_object() || items.is_boolean())
        {
            fault = Some(format!("array without items at {}", place.pointer));
        }
        if schema
            .get("enum")
            .is_some_and(|e| e.as_array().is_none_or(Vec::is_empty))
        {
            fault = Some(format!("odd enum at {}", place.pointer));
        }
        Ok(())
    };
    formats::schema::walk::each_schema(&mut schema.clone(), visit).unwrap();
    fault.map_or(Ok(()), Err)
}

/// Encodes, checks what came out, and that doing it again changes nothing.
fn check_openai(schema: &str) -> Result<(), String> {
    let openai = formats::by_id("openai").unwrap();
    let encoded = openai.encode(&tool("s", "t", schema));
    let Some(json) = encoded.json else {
        return if encoded.findings.is_empty() {
            Err("left out without a finding".into())
        } else {
            Ok(())
        };
    };
    let parsed: Value = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
    let parameters = &parsed["function"]["parameters"];
    acceptable_to_openai(parameters)?;
    if parsed["function"].get("strict").is_some() {
        return Err("a strict key".into());
    }
    let again = openai.encode(&tool("s", "t", &parameters.to_string()));
    let settled = again.findings.is_empty()
        && again
            .json
            .is_some_and(|json| serde_json::from_slice(&json).ok() == Some(parsed));
    if settled {
        Ok(())
    } else {
        Err(format!("a second pass finds more: {:?}", again.findings))
    }
}

#[test]
fn real_schemas_become_acceptable_and_few_change_their_meaning() {
    let corpus = std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    let Ok(text) = std::fs::read_to_string(corpus.join("schemas/livemcpbench.json")) else {
        return;
    };
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut schemas = Vec::new();
    find_schemas(&document, &mut schemas);
    assert!(schemas.len() >= 500, "{}", schemas.len());
    for schema in &schemas {
        check_openai(&schema.to_string()).unwrap_or_else(|fault| panic!("{fault}: {schema}"));
    }
    let openai = formats::by_id("openai").unwrap();
    let changed = schemas
        .iter()
        .filter(|s| {
            !openai
                .encode(&tool("s", "t", &s.to_string()))
                .findings
                .is_empty()
        })
        .count();
    assert!(
        changed * 20 < schemas.len(),
        "{changed} of {} changed",
        schemas.len()
    );
}

fn find_schemas<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if key == "inputSchema" {
                    found.push(value);
                } else {
                    find_schemas(value, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| find_schemas(value, found)),
        _ => {}
    }
}

/// Trees of keywords with values that fit and values that do not.
fn any_schema() -> impl Strategy<Value = Value> {
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "prefixItems",
        "enum",
        "const",
        "default",
        "anyOf",
        "allOf",
        "oneOf",
        "not",
        "$ref",
        "$defs",
        "additionalProperties",
        "patternProperties",
        "minimum",
        "exclusiveMinimum",
        "examples",
        "if",
        "a",
        "b",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9i64).prop_map(Value::from),
        prop::sample::select(vec![
            "object",
            "array",
            "string",
            "a",
            "b",
            "",
            "#",
            "#/$defs/a",
            "#/properties/b"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            2 => prop::collection::vec((keyword.clone(), inner.clone()), 0..5)
                .prop_map(|members| Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())),
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::Array),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_schema_becomes_acceptable_or_is_left_out(schema in any_schema(), members in prop::collection::vec(any_schema(), 0..4)) {
        let mut root = json!({"type": "object"});
        let keywords = ["properties", "anyOf", "allOf", "$defs"];
        for (keyword, member) in keywords.iter().zip(members) {
            root[*keyword] = member;
        }
        for schema in [schema, root] {
            prop_assert_eq!(check_openai(&schema.to_string()), Ok(()), "{}", schema);
        }
    }

    #[test]
    fn any_text_survives_the_way_into_a_list(description in any::<String>()) {
        let tool = offered(tool("s", "t", "{}"), |tool| tool.description = description.as_str().into());
        let rendered = render(&view(vec![part("s", vec![tool], Vec::new())]), then(), formats::by_id("native").unwrap());
        let list: Value = serde_json::from_slice(&rendered.body).unwrap();
        prop_assert_eq!(list["tools"][0]["description"].as_str(), Some(description.as_str()));
    }
}
