//! From a pointer in the protocol's spelling to the same place in a document as it was sent.

use serde_json::Value;

use crate::model::finding::push_step;

/// Members that only wrap a value, in whatever spelling.
const WRAPPERS: [&str; 7] = [
    "fields",
    "values",
    "objectValue",
    "listValue",
    "ObjectValue",
    "ListValue",
    "Kind",
];

/// The same place in `document`, or the innermost one around it that is there.
pub(super) fn sent_pointer(document: &Value, pointer: &str) -> String {
    let mut place = document;
    let mut sent = String::new();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        loop {
            if let Some((name, inner)) = member(place, &step) {
                push_step(&mut sent, &name);
                place = inner;
                break;
            }
            let Some((name, inner)) = wrapped(place) else {
                return sent;
            };
            push_step(&mut sent, name);
            place = inner;
        }
    }
    sent
}

/// The member or element of this name: as it is, in camelCase, or as Go writes the keywords of
/// schemas.
fn member<'v>(place: &'v Value, step: &str) -> Option<(String, &'v Value)> {
    match place {
        Value::Array(items) => Some((step.to_owned(), items.get(step.parse::<usize>().ok()?)?)),
        Value::Object(members) => {
            let named = |name: String| members.get(&name).map(|value| (name, value));
            named(step.to_owned())
                .or_else(|| named(camel(step)))
                .or_else(|| named(snake(step)))
        }
        _ => None,
    }
}

fn wrapped(place: &Value) -> Option<(&str, &Value)> {
    let members = place.as_object().filter(|members| members.len() == 1)?;
    let (name, value) = members.iter().next()?;
    WRAPPERS.contains(&name.as_str()).then_some((name, value))
}

pub(super) fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        out.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    out
}

fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_same_place_in_every_spelling() {
        let document = json!({
            "protocolVersion": "1.0",
            "tools": [{
                "parameters": {"properties": {"max_length": {"max_length": 3, "default": {"Kind": {"ListValue": {"values": [1]}}}}}},
                "metadata": {"asyncBehavior": {"statusPolling": {"statusTool": "x"}}, "examples": [
                    {"input": {"fields": {"a/b": {"listValue": {"values": [{"intValue": "1"}]}}}}}
                ]}
            }]
        });
        for (pointer, expected) in [
            ("", ""),
            ("/protocol_version", "/protocolVersion"),
            ("/generated_at", ""),
            (
                "/tools/0/metadata/async_behavior/status_polling/status_tool",
                "/tools/0/metadata/asyncBehavior/statusPolling/statusTool",
            ),
            (
                "/tools/0/metadata/async_behavior/cancellation",
                "/tools/0/metadata/asyncBehavior",
            ),
            (
                "/tools/0/parameters/properties/max_length/maxLength",
                "/tools/0/parameters/properties/max_length/max_length",
            ),
            (
                "/tools/0/parameters/properties/max_length/default/0",
                "/tools/0/parameters/properties/max_length/default/Kind/ListValue/values/0",
            ),
            (
                "/tools/0/metadata/examples/0/input/a~1b/0",
                "/tools/0/metadata/examples/0/input/fields/a~1b/listValue/values/0",
            ),
            ("/tools/1/name", "/tools"),
        ] {
            assert_eq!(sent_pointer(&document, pointer), expected, "{pointer}");
            assert!(document.pointer(expected).is_some(), "{expected}");
        }
    }
}
