//! What was decoded is written so that it decodes to the same again, whatever it held.

use callsheet::model::AcceptedVersions;
use callsheet::protocols::tool_discovery::decode;
use callsheet::state::manifest::{read, write};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Names that mean something in one place or another, and some that mean nothing.
fn name() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "default",
        "enum",
        "required",
        "format",
        "pattern",
        "additionalProperties",
        "additional_properties",
        "min_length",
        "minLength",
        "Kind",
        "StringValue",
        "stringValue",
        "intValue",
        "fields",
        "values",
        "objectValue",
        "ObjectValue",
        "fooBar",
        "foo_bar",
        "requiresApproval",
        "requires_approval",
        "tags",
        "timeoutSeconds",
        "examples",
        "input",
        "expectedOutput",
        "asyncBehavior",
        "name",
        "description",
        "capabilities",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["", "object", "string", "30", "true"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner.clone()), 0..4).prop_map(object),
            inner
                .clone()
                .prop_map(|value| json!({"Kind": {"StringValue": value}})),
            inner.prop_map(|value| json!({"objectValue": {"fields": {"a": value}}})),
        ]
    })
}

fn object(members: Vec<(String, Value)>) -> Value {
    Value::Object(members.into_iter().collect::<Map<_, _>>())
}

fn any_object() -> impl Strategy<Value = Value> {
    prop::collection::vec((name(), any_value()), 0..5).prop_map(object)
}

fn tool() -> impl Strategy<Value = Value> {
    let schema = prop::collection::vec((name(), any_object()), 0..4)
        .prop_map(|parameters| json!({"type": "object", "properties": object(parameters)}));
    let parameters = prop_oneof![4 => schema, 1 => any_object()];
    ("[a-d]{1,3}", "\\PC{0,9}", parameters, any_object(), any_object(), any_value()).prop_map(
        |(name, description, parameters, mut metadata, extra, input)| {
            metadata["examples"] = json!([{"input": input.clone(), "expected_output": input}]);
            let mut tool =
                json!({"name": name, "description": description, "parameters": parameters, "metadata": metadata});
            for (name, value) in extra.as_object().unwrap() {
                tool.as_object_mut().unwrap().entry(name.clone()).or_insert_with(|| value.clone());
            }
            tool
        },
    )
}

fn manifest() -> impl Strategy<Value = Value> {
    let category = ("[a-c]{0,2}", any_object()).prop_map(|(id, mut category)| {
        category["id"] = id.into();
        category
    });
    let parts = (
        any::<bool>(),
        prop::collection::vec(tool(), 0..5),
        prop::collection::vec(category, 0..3),
        any_object(),
    );
    parts.prop_map(|(camel, tools, categories, mut extra)| {
        extra[if camel {
            "protocolVersion"
        } else {
            "protocol_version"
        }] = "1.0".into();
        let mut scenario = extra.clone();
        scenario["name"] = "generated".into();
        scenario["version"] = "1".into();
        scenario["description"] = "".into();
        scenario["baseUrl"] = "http://127.0.0.1:1".into();
        extra["scenario"] = scenario;
        extra["tools"] = tools.into();
        extra["categories"] = categories.into();
        extra["generated_at"] = "2026-01-01T00:00:00Z".into();
        extra
    })
}

/// Found by the property below: once `fields` is gone, what stands there looks wrapped to the next
/// reader.
#[test]
fn an_output_that_is_wrapped_within_its_fields_reads_the_same() {
    let example = json!({"expectedOutput": {"fields": {"Kind": {"StringValue": "x"}}}});
    let document = json!({
        "protocolVersion": "1.0",
        "scenario": {"name": "generated", "version": "1", "description": ""},
        "tools": [{"name": "a", "description": "", "parameters": {}, "metadata": {"examples": [example]}}],
        "categories": [],
        "generatedAt": "2026-01-01T00:00:00Z",
    });
    let accept = AcceptedVersions::parse("^1").unwrap();
    let first = decode(document.to_string().as_bytes(), &accept)
        .unwrap()
        .manifest;
    let again = decode(write(&first).as_bytes(), &accept).unwrap().manifest;
    assert_eq!(again.digest, first.digest);
    assert_eq!(write(&again), write(&first));
}

/// How many documents are tried.
const CASES: u32 = 256;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: CASES, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_reads_the_same(document in manifest(), pretty in any::<bool>()) {
        let accept = AcceptedVersions::parse("^1").unwrap();
        let body = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) }.unwrap();
        let first = decode(body.as_bytes(), &accept).map_err(|error| TestCaseError::fail(error.to_string()))?;
        let written = write(&first.manifest);
        let restored = read(&written).map_err(|error| TestCaseError::fail(format!("{error}: {written}")))?;
        prop_assert_eq!(format!("{restored:?}"), format!("{:?}", first.manifest));
        let again = decode(written.as_bytes(), &accept).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&again.manifest.digest, &first.manifest.digest, "{}", written);
        prop_assert_eq!(&again.manifest.tools, &first.manifest.tools);
        prop_assert_eq!(again.manifest.generated_at, first.manifest.generated_at);
        prop_assert_eq!(write(&again.manifest), written);
        prop_assert_eq!(again.quarantined, 0);
        prop_assert!(again.manifest.tools.windows(2).all(|pair| pair[0].name < pair[1].name));
        prop_assert_eq!(first.quarantined + first.manifest.tools.len()
            + first.findings.iter().filter(|f| f.code.as_str() == "duplicate-tool").count(), document["tools"].as_array().unwrap().len());
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), cut in 0_usize..200, document in manifest()) {
        let accept = AcceptedVersions::parse("^1").unwrap();
        let _ = decode(&body, &accept);
        let mut text = document.to_string().into_bytes();
        text.truncate(text.len().saturating_sub(cut));
        if let Some(byte) = text.get_mut(cut * 3) {
            *byte = body.first().copied().unwrap_or(b'"');
        }
        let _ = decode(&text, &accept);
    }
}
