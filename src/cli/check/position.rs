//! Where in the text of a JSON document JSON pointers (RFC 6901) lead.

use std::collections::HashMap;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged as _;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

/// The lines of the values that pointers lead to, from 1 on; of the nearest value around it where
/// the document has none there. Empty for a text that is not JSON.
pub(super) fn lines_of<'a>(
    text: &str,
    pointers: impl Iterator<Item = &'a str>,
) -> HashMap<String, usize> {
    let Ok(parsed) = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default())
    else {
        return HashMap::new();
    };
    let Some(root) = &parsed.value else {
        return HashMap::new();
    };
    let line = |at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
    pointers
        .map(|pointer| (pointer.to_owned(), line(offset(root, pointer))))
        .collect()
}

/// Where the value begins, in bytes; a member with its name.
fn offset(root: &Value<'_>, pointer: &str) -> usize {
    let mut value = root;
    let mut at = root.start();
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let next = match value {
            Value::Object(object) => {
                let member = object
                    .properties
                    .iter()
                    .find(|member| member.name.as_str() == step);
                member.map(|member| (&member.value, member.start()))
            }
            Value::Array(array) => {
                let element = step
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| array.elements.get(index));
                element.map(|element| (element, element.start()))
            }
            _ => None,
        };
        let Some(next) = next else { break };
        (value, at) = next;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_the_lines_of_their_values() {
        let text = "{\n  \"tools\": [\n    {},\n    {\n      \"a/b\": {\"ü\": 1}\n    }\n  ]\n}";
        for (pointer, line) in [
            ("", 1),
            ("/tools", 2),
            ("/tools/0", 3),
            ("/tools/1", 4),
            ("/tools/1/a~1b/ü", 5),
            ("/tools/1/missing/x", 4),
            ("/tools/9", 2),
        ] {
            assert_eq!(
                lines_of(text, [pointer].into_iter()).get(pointer),
                Some(&line),
                "{pointer}"
            );
        }
        assert!(lines_of("no json", ["/a"].into_iter()).is_empty());
    }
}
