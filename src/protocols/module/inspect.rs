//! A module's document judged for its author, with pointers into the document as it was sent. Never
//! refuses, as its sibling of the Tool Discovery Protocol.

use serde_json::Value;

use crate::protocols::document::flaw::tool_index;
use crate::protocols::sent_document::{innermost, left_out, steps, tools};
use crate::protocols::tool_discovery::inspect::{content_findings, refused};
use crate::protocols::tool_discovery::{Decoded, Inspected};

/// Whether a document says that it is a module's.
pub fn is_module(body: &[u8]) -> bool {
    let document = serde_json::from_slice::<Value>(body).unwrap_or_default();
    document.get("module_name").is_some() && document.get("scenario").is_none()
}

/// Judges a document.
pub fn inspect(body: &[u8]) -> Inspected {
    let document = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let (manifest, mut findings) = match super::decode(body) {
        Ok(Decoded {
            manifest, findings, ..
        }) => {
            let mut judged = content_findings(&document, &manifest, &left_out(&findings));
            for finding in &mut judged {
                finding.pointer = finding
                    .pointer
                    .take()
                    .map(|pointer| as_sent(&document, &pointer));
            }
            (Some(manifest), findings.into_iter().chain(judged).collect())
        }
        Err(error) => (None, vec![refused(&error)]),
    };
    // Stable, so that the rules' own order stays within a tool.
    findings.sort_by_key(|finding| {
        finding
            .pointer
            .as_deref()
            .map_or(Some(usize::MAX), tool_index)
    });
    let order = tools(&document)
        .iter()
        .filter_map(|tool| Some(tool.get("name")?.as_str()?.to_owned()))
        .collect();
    Inspected {
        manifest,
        order,
        ..Inspected::refused(findings)
    }
}

/// The same place in the document: what the model has by the name of a property is there by the
/// place of its parameter. Where the model has more than the document, the innermost place around
/// it.
pub(super) fn as_sent(document: &Value, pointer: &str) -> String {
    let mut steps = steps(pointer);
    match steps.first().map(String::as_str) {
        Some("scenario") if steps.get(1).is_some_and(|member| member == "name") => {
            steps = vec!["module_name".to_owned()];
        }
        Some("scenario") => drop(steps.remove(0)),
        _ => {}
    }
    if let [_, index, parameters, properties, name, ..] = steps.as_slice()
        && (parameters.as_str(), properties.as_str()) == ("parameters", "properties")
    {
        let listed = document
            .pointer(&format!("/tools/{index}/parameters"))
            .and_then(Value::as_array);
        let place = listed.and_then(|listed| {
            listed
                .iter()
                .position(|parameter| parameter["name"] == name.as_str())
        });
        if let Some(place) = place {
            steps.splice(3..5, [place.to_string()]);
        }
    }
    innermost(document, steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn finds_the_same_place() {
        let document = json!({"module_name": "a", "tools": [{"parameters": [{"name": "x"}, {"name": "a/b", "items": {}}]}]});
        for (pointer, expected) in [
            ("", ""),
            ("/scenario/name", "/module_name"),
            (
                "/tools/0/parameters/properties/a~1b/items",
                "/tools/0/parameters/1/items",
            ),
            (
                "/tools/0/parameters/properties/x/description",
                "/tools/0/parameters/0",
            ),
            ("/tools/0/parameters/required/0", "/tools/0/parameters"),
            ("/tools/0/metadata/tags", "/tools/0"),
        ] {
            assert_eq!(as_sent(&document, pointer), expected, "{pointer}");
        }
    }
}
