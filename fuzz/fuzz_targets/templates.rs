//! The templates of stored tools: the input is the document of an HTTP tool and the arguments of a
//! call, one line each. Whatever they are, the request goes to the host that the template names, and
//! has as many segments in its path.

#![no_main]

use std::collections::BTreeMap;

use callsheet::bundles::{
    CallValues, StoredDocument, StoredTool, ToolImplementation, WrittenValue,
};
use callsheet::model::JsonText;
use callsheet::runtime::Clock;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let (implementation, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let Ok(implementation) = serde_json::from_str::<Value>(implementation) else {
        return;
    };
    let Ok(arguments) = JsonText::parse(arguments).and_then(|text| WrittenValue::parse(&text))
    else {
        return;
    };
    let document = json!({
        "schemaVersion": "2025-07-01", "slug": "t", "version": "v1", "displayName": "T", "type": "http",
        "createdAt": "2024-05-14T13:44:00Z", "impl": implementation,
    });
    let Value::Object(document) = document else {
        return;
    };
    let Ok(document) = StoredDocument::from_members(&document) else {
        return;
    };
    let Ok(tool) = StoredTool::parse(document, uuid::Uuid::nil()) else {
        return;
    };
    let ToolImplementation::Http(http) = &tool.implementation else {
        return;
    };
    let secrets = BTreeMap::new();
    let values = CallValues {
        arguments: &arguments,
        declared: &tool.declared,
        secrets: &secrets,
        tool: ("t", "v1"),
    };
    let Ok(request) = http.prepare(&values, 1 << 20, Clock::system().wall()) else {
        return;
    };
    assert_eq!(request.url.origin(), http.url.origin().origin());
    assert!(request.url.username().is_empty() && request.url.fragment().is_none());
    let template = implementation["urlTemplate"].as_str().unwrap_or_default();
    let path = template
        .split('?')
        .next()
        .unwrap_or_default()
        .splitn(4, '/')
        .nth(3);
    let expected = path.map_or(1, |path| path.split('/').count());
    assert_eq!(
        request.url.path_segments().map_or(0, Iterator::count),
        expected,
        "{template} {}",
        request.url
    );
    for value in request.headers.values() {
        assert!(
            value
                .as_bytes()
                .iter()
                .all(|byte| (b' '..=b'~').contains(byte)),
            "{value:?}"
        );
    }
});
