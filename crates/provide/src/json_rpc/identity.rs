//! What tells one list of tools from another.

use serde::Serialize;
use uuid::Uuid;

/// The namespace of both ids.
const NAMESPACE: Uuid = Uuid::from_u128(0x6c1b_60a1_0f5d_4c52_9f0e_3a7d_61c4_8b2e);

/// One tool of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct IdentifiedTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its description.
    pub description: &'a str,
    /// The JSON text of its schema.
    pub schema: &'a str,
}

/// The result of `server/identity`.
///
/// `server_id` is a UUID of version 5 (RFC 9562 section 5.5) over the names and descriptions of the
/// tools, sorted by name; `schema_id` over their schemas, too. Each text has its length before it,
/// so no two lists give the same bytes. Both follow from the list alone: every program that
/// publishes it gives the same ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ListIdentity {
    server_id: Uuid,
    tools_count: usize,
    protocol_version: &'static str,
    schema_id: Uuid,
}

impl ListIdentity {
    /// The identity of these tools, in any order.
    pub fn of(mut tools: Vec<IdentifiedTool<'_>>) -> Self {
        tools.sort_unstable();
        let mut named = Vec::new();
        let mut whole = Vec::new();
        for tool in &tools {
            for text in [tool.name, tool.description] {
                add(&mut named, text);
                add(&mut whole, text);
            }
            add(&mut whole, tool.schema);
        }
        Self {
            server_id: Uuid::new_v5(&NAMESPACE, &named),
            tools_count: tools.len(),
            protocol_version: "1.0",
            schema_id: Uuid::new_v5(&NAMESPACE, &whole),
        }
    }
}

/// Adds a text: its length in bytes as 8 bytes, the highest first, and its UTF-8.
fn add(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tools: &[(&'static str, &'static str, &'static str)]) -> ListIdentity {
        let tool = |(name, description, schema): &(&'static str, &'static str, &'static str)| {
            IdentifiedTool {
                name,
                description,
                schema,
            }
        };
        ListIdentity::of(tools.iter().map(tool).collect())
    }

    #[test]
    fn the_order_of_the_list_does_not_matter() {
        assert_eq!(
            of(&[("a", "1", "{}"), ("b", "2", "{}")]),
            of(&[("b", "2", "{}"), ("a", "1", "{}")])
        );
    }

    #[test]
    fn names_and_descriptions_make_the_server_id_and_schemas_only_the_other() {
        let known = of(&[("a", "1", "{}")]);
        for other in [
            &[("b", "1", "{}")][..],
            &[("a", "2", "{}")],
            &[("a1", "", "{}")],
            &[],
            &[("a", "1", "{}"); 2],
        ] {
            assert_ne!(of(other).server_id, known.server_id);
        }
        let other = of(&[("a", "1", r#"{"type":"object"}"#)]);
        assert_eq!(other.server_id, known.server_id);
        assert_ne!(other.schema_id, known.schema_id);
    }

    #[test]
    fn the_ids_of_a_list_never_change() {
        // Computed by a program of its own from the rule above.
        let known = of(&[("a", "1", "{}")]);
        assert_eq!(
            known.server_id.to_string(),
            "3e41d33c-bc17-536e-b4c9-a147c50ff017"
        );
        assert_eq!(
            known.schema_id.to_string(),
            "7ab7b14e-0bf5-5270-9345-009b9abe9edb"
        );
    }
}
