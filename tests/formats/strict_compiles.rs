//! Every strict export compiles in the engine with which LLM servers hold models to schemas: what
//! it does not take, a vendor refuses.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use callsheet::formats::{self, Format, FormatOptions};
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::ApproximateTokEnv;
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use crate::support::view_tools::tool;

/// The strict modes, each with where a tool has its schema.
const STRICT: &[(&str, &str)] = &[
    ("openai", "/function/parameters"),
    ("openai-responses", "/parameters"),
    ("anthropic", "/input_schema"),
];

fn strict(id: &str) -> &'static dyn Format {
    formats::with_options(
        formats::by_id(id).unwrap(),
        FormatOptions {
            strict: true,
            ..FormatOptions::default()
        },
    )
    .unwrap()
}

/// The strict schema of a tool on its own in a request; nothing when it is not offered strictly.
fn schema(format: &dyn Format, place: &str, parameters: &Value) -> Option<Value> {
    let encoded = format.encode(&tool("s", "t", &parameters.to_string()));
    let findings = encoded.findings.len();
    let tool: Value = encoded
        .json
        .map(|json| serde_json::from_slice(&json).unwrap())?;
    let is_strict =
        tool.pointer("/strict").or(tool.pointer("/function/strict")) == Some(&json!(true));
    assert!(
        is_strict || findings > 0,
        "not strict without a finding: {parameters}"
    );
    is_strict.then(|| tool.pointer(place).unwrap().clone())
}

fn compile(factory: &ParserFactory, schema: Value) -> Result<(), String> {
    let matcher = Matcher::new(factory.create_parser(TopLevelGrammar::from_json_schema(schema)));
    matcher.get_error().map_or(Ok(()), Err)
}

/// How many of the schemas are offered strictly, for each mode; panics when some do not compile.
fn compiled(schemas: &[(String, Value)]) -> Vec<usize> {
    let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    let mut counts = Vec::new();
    let mut refused = Vec::new();
    // The two shapes of OpenAI have the same schemas.
    let mut known = BTreeSet::new();
    for (id, place) in STRICT {
        let format = strict(id);
        let mut count = 0;
        for (name, parameters) in schemas {
            let Some(strict) = schema(format, place, parameters) else {
                continue;
            };
            count += 1;
            if known.insert(strict.to_string())
                && let Err(error) = compile(&factory, strict)
            {
                refused.push(format!(
                    "{id} `{name}`: {}",
                    error.chars().take(300).collect::<String>()
                ));
            }
        }
        counts.push(count);
    }
    assert!(refused.is_empty(), "{refused:#?}");
    counts
}

#[test]
fn hostile_schemas_compile_wherever_they_are_strict() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/validators/hostile.json");
    let manifests: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let tools = manifests
        .iter()
        .flat_map(|manifest| manifest["tools"].as_array().unwrap());
    let schemas: Vec<_> = tools
        .map(|tool| {
            (
                tool["name"].as_str().unwrap().to_owned(),
                tool["parameters"].clone(),
            )
        })
        .collect();
    assert!(schemas.len() >= 60, "{}", schemas.len());
    let counts = compiled(&schemas);
    assert!(counts.iter().all(|count| *count >= 60), "{counts:?}");
}

#[test]
fn real_schemas_compile_wherever_they_are_strict() {
    let corpus = std::env::var_os("CALLSHEET_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    let Ok(text) = std::fs::read_to_string(corpus.join("schemas/livemcpbench.json")) else {
        return;
    };
    let servers: Vec<Value> = serde_json::from_str(&text).unwrap();
    let parts = servers
        .iter()
        .flat_map(|server| server["tools"].as_object().unwrap().values());
    let tools = parts.flat_map(|part| part["tools"].as_array().unwrap());
    let schemas: Vec<_> = tools
        .map(|tool| {
            (
                tool["name"].as_str().unwrap().to_owned(),
                tool["inputSchema"].clone(),
            )
        })
        .collect();
    assert_eq!(schemas.len(), 527);
    let counts = compiled(&schemas);
    assert!(counts.iter().all(|count| *count > 400), "{counts:?}");
}

/// The engine says no to what it does not know, so that the tests above can fail.
#[test]
fn what_no_strict_mode_takes_does_not_compile() {
    let factory = ParserFactory::new_simple(&ApproximateTokEnv::single_byte_env()).unwrap();
    for refused in [
        json!({"type": "object", "properties": {"a": {"not": {"type": "string"}}}}),
        json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(["}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1/a"}}}),
    ] {
        assert!(compile(&factory, refused.clone()).is_err(), "{refused}");
    }
}
