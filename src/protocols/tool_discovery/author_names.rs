//! How the author of a document writes the protocol's names, for findings: a message that names
//! `generated_at` helps no author whose document has `generatedAt`.

use serde_json::Value;

use super::sent_pointer::camel;
use super::spelling;
use crate::model::Finding;

/// Members of `async_behavior` that messages name.
const OF_ASYNC_BEHAVIOR: [&str; 9] = [
    "cancel_tool",
    "cancel_tool_id_param",
    "completion_conditions",
    "operation_id_field",
    "status_field",
    "status_polling",
    "status_tool",
    "status_tool_id_param",
    "success_values",
];

/// The spelling of the names of members in one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AuthorNames {
    /// As the protocol's text has them.
    #[default]
    SnakeCase,
    /// As protojson has them.
    CamelCase,
}

impl AuthorNames {
    /// Those of a document.
    pub(super) fn in_document(document: &Value) -> Self {
        let is_camel = spelling::MANIFEST
            .iter()
            .any(|(camel, _)| document.get(camel).is_some());
        if is_camel {
            Self::CamelCase
        } else {
            Self::SnakeCase
        }
    }

    /// Writes the protocol's names in the texts of a finding as the document has them.
    pub fn write_in(self, finding: &mut Finding) {
        if self == Self::SnakeCase {
            return;
        }
        finding.message = in_camel_case(&finding.message);
        finding.hint = finding.hint.as_deref().map(in_camel_case);
        // Pointers into the document are those of the document already; one about how it is served
        // names a member of the outermost object.
        let outermost = finding
            .pointer
            .as_deref()
            .and_then(|pointer| pointer.strip_prefix('/'));
        if let Some(name) = outermost.filter(|name| is_member(name)) {
            finding.pointer = Some(format!("/{}", camel(name)));
        }
    }
}

/// A text with the protocol's names between backticks in camelCase.
fn in_camel_case(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let written = parts.map(|(at, part)| {
        if at % 2 == 1 && is_member(part) {
            camel(part)
        } else {
            part.to_owned()
        }
    });
    written.collect::<Vec<String>>().join("`")
}

fn is_member(name: &str) -> bool {
    let mut tables = [
        spelling::MANIFEST,
        spelling::SCENARIO,
        spelling::CATEGORY,
        spelling::METADATA,
    ]
    .into_iter()
    .flatten();
    tables.any(|(_, own)| *own == name) || OF_ASYNC_BEHAVIOR.contains(&name)
}
