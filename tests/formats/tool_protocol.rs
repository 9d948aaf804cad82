//! Tools that are written as the Tool Protocol has them: what is decoded of them, and what each
//! format shows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use callsheet::formats::{self, FORMATS};
use callsheet::model::{AcceptedVersions, Execution, FindingCode, Tool, ViewTool};
use callsheet::protocols::tool_discovery::decode;
use serde_json::{Value, json};

use crate::support::view_tools::{extra, offered, tool};

/// A schema as the protocol's own document writes one.
fn rating() -> Value {
    json!({
        "type": "object",
        "description": "Rates a text",
        "properties": {
            "_tool": {"type": "string", "const": "rateText"},
            "text": {"type": "string", "description": "Text to rate"},
            "_output": {"type": "object", "properties": {"stars": {"type": "number"}, "why": {"type": "string"}}},
        },
    })
}

/// The tool that a scenario offers with this schema, and how many findings decoding had about its
/// schema.
fn decoded(name: &str, parameters: &Value) -> Arc<Tool> {
    let tool = json!({"name": name, "description": parameters["description"], "parameters": parameters,
        "metadata": {"enabled_by_default": true}});
    let document = json!({"protocol_version": "1.0", "scenario": {"name": "ratings", "version": "1.0.0",
        "description": "Rates"}, "tools": [tool], "generated_at": "2026-03-01T09:30:00Z"});
    let decoded = decode(
        document.to_string().as_bytes(),
        &AcceptedVersions::default(),
    )
    .unwrap();
    assert_eq!(
        decoded
            .findings
            .iter()
            .map(|finding| &*finding.message)
            .collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
    Arc::clone(&decoded.manifest.tools[0])
}

fn seen(name: &str, parameters: &Value, execution: Execution) -> ViewTool {
    ViewTool {
        tool: decoded(name, parameters),
        execution,
        ..tool("ratings", name, "{}")
    }
}

fn encoded(tool: &ViewTool, format: &str) -> Value {
    let encoded = formats::by_id(format).unwrap().encode(tool);
    assert_eq!(
        encoded
            .findings
            .iter()
            .map(|finding| &*finding.message)
            .collect::<Vec<_>>(),
        Vec::<&str>::new()
    );
    serde_json::from_slice(&encoded.json.unwrap()).unwrap()
}

#[test]
fn meta_fields_in_a_schema_are_no_parameters_in_any_format_and_no_finding() {
    let tool = seen("rateText", &rating(), Execution::Own);
    assert_eq!(
        serde_json::from_str::<Value>(tool.tool.parameters.get()).unwrap()["properties"],
        json!({"text": {"type": "string", "description": "Text to rate"}})
    );
    for format in FORMATS.iter().filter(|format| format.id() != "calls") {
        let text = encoded(&tool, format.id()).to_string();
        assert!(
            !text.contains("_tool\"") && !text.contains("_output\""),
            "{}: {text}",
            format.id()
        );
    }
    let output = &rating()["properties"]["_output"];
    assert_eq!(&encoded(&tool, "native")["outputSchema"], output);
    assert_eq!(&encoded(&tool, "mcp")["outputSchema"], output);
    assert_eq!(&encoded(&tool, "calls")["properties"]["_output"], output);
}

#[test]
fn the_result_is_required_of_latent_calls_only_and_meta_fields_come_first() {
    for (execution, activity, required) in [
        (
            Execution::Latent,
            "",
            json!(["_tool", "_activity", "_output"]),
        ),
        (Execution::Own, "rateText", json!(["_tool", "_activity"])),
    ] {
        let tool = seen("rateText", &rating(), execution);
        let call = encoded(&tool, "calls");
        let keys: Vec<_> = call["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["_tool", "_activity", "_reasoningForCall", "_output", "text"]
        );
        assert_eq!(call["description"], "Rates a text");
        assert_eq!(call["properties"]["text"], rating()["properties"]["text"]);
        assert_eq!(
            call["properties"]["_tool"],
            json!({"type": "string", "const": "rateText"})
        );
        assert_eq!(
            call["properties"]["_activity"],
            json!({"type": "string", "const": activity})
        );
        assert_eq!(call["required"], required);
    }
}

#[test]
fn a_latent_tool_says_so_in_the_native_list_where_another_daemon_reads_it() {
    let latent = encoded(&seen("rateText", &rating(), Execution::Latent), "native");
    assert_eq!(latent["_activity"], "");
    let read = decoded("rateText", &json!({"type": "object", "properties": {}}));
    assert!(!read.is_latent());
    let again = offered(tool("s", "rateText", "{}"), |tool| {
        tool.extra = extra(&[("_activity", "\"\"")]);
    });
    assert!(again.tool.is_latent());
    assert_eq!(
        encoded(&seen("rateText", &rating(), Execution::Own), "native").get("_activity"),
        None
    );
}

#[test]
fn parameters_that_only_begin_with_an_underscore_stay() {
    let schema = json!({"type": "object", "properties": {"_output": {"type": "string"}, "_tool": {"type": "string"}},
        "required": ["_output"]});
    let tool = decoded("write", &schema);
    assert_eq!(
        serde_json::from_str::<Value>(tool.parameters.get()).unwrap(),
        schema
    );
    assert_eq!(tool.output(), None);
}

#[test]
fn every_spelling_of_a_result_schema_is_the_tools_own_and_what_mcp_cannot_show_is_a_finding() {
    let empty = r#"{"type":"object","properties":{}}"#;
    for name in ["outputSchema", "output_schema", "_output"] {
        let tool = offered(tool("s", "t", empty), |tool| {
            tool.extra = extra(&[(name, r#"{"type":"object"}"#)]);
        });
        assert_eq!(
            encoded(&tool, "mcp")["outputSchema"],
            json!({"type": "object"}),
            "{name}"
        );
        assert_eq!(
            encoded(&tool, "calls")["properties"]["_output"]["type"],
            "object",
            "{name}"
        );
    }
    // A number that no double holds, and what is no object.
    let unreadable = format!(
        r#"{{"type":"object","maxProperties":1{}}}"#,
        "0".repeat(400)
    );
    for (schema, why) in [
        (&*unreadable, "common JSON readers refuse it"),
        (r#"{"type":"string"}"#, "an output that is no object"),
        (r#"{"properties":{}}"#, "an output that is no object"),
    ] {
        let tool = offered(tool("s", "t", empty), |tool| {
            tool.extra = extra(&[("outputSchema", schema)]);
        });
        let encoded = formats::by_id("mcp").unwrap().encode(&tool);
        let shown: Value = serde_json::from_slice(&encoded.json.unwrap()).unwrap();
        assert_eq!(shown.get("outputSchema"), None);
        let [finding] = &encoded.findings[..] else {
            panic!("{:?}", encoded.findings)
        };
        assert_eq!(finding.code, FindingCode::Lossy);
        assert!(finding.message.contains(why), "{}", finding.message);
    }
}

/// The samples that the protocol's own document was recorded with, where they are.
#[test]
fn recorded_schemas_give_no_finding() {
    let Some(corpus) = std::env::var_os("CALLSHEET_CORPUS").map(PathBuf::from) else {
        return;
    };
    for name in ["sentimentAnalysis", "weatherCheck"] {
        let path: &Path = &corpus.join(format!("tool-protocol/tool_{name}.json"));
        let Ok(text) = std::fs::read_to_string(path) else {
            continue;
        };
        let tool = seen(
            name,
            &serde_json::from_str(&text).unwrap(),
            Execution::Latent,
        );
        for format in FORMATS {
            encoded(&tool, format.id());
        }
    }
}
