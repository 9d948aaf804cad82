//! The names and wrappings of the other spellings, and how they become the seed's spelling.
//!
//! | spelling | recognised by |
//! |---|---|
//! | protojson | `protocolVersion` or `generatedAt` in the document, or known camelCase metadata |
//! | Go structs | `{"Kind":{"StringValue":...}}` where a value is expected; no other spelling does this |
//! | seed | everything else |
//!
//! A zero value (`null`, `""`, `[]`, `{}`, `false`, `0`) of a member that the protocol knows means
//! "not set" only in protojson, because protojson with all fields written uses it that way. In the
//! seed's spelling `"default": null` and `"default": ""` are real values. In every spelling `null`
//! in place of a schema keyword other than `default` means "not set": JSON Schema gives it no
//! meaning, and Go writes it for empty lists and maps.

use std::borrow::Cow;
use std::collections::HashSet;

use super::envelope::Members;
use crate::json::names::COMPARED_MAX;
use crate::json::tree::Node;

/// The manifest's own members that the protocol knows: camelCase name, seed name.
pub(super) const MANIFEST: &[(&str, &str)] = &[
    ("protocolVersion", "protocol_version"),
    ("generatedAt", "generated_at"),
];
/// Members of the scenario: camelCase name, seed name.
pub(super) const SCENARIO: &[(&str, &str)] = &[
    ("baseUrl", "base_url"),
    ("healthEndpoint", "health_endpoint"),
    ("executeEndpointTemplate", "execute_endpoint_template"),
];
/// Members of a category: camelCase name, seed name.
pub(super) const CATEGORY: &[(&str, &str)] = &[("displayOrder", "display_order")];
/// Members of a tool's metadata: camelCase name, seed name.
pub(super) const METADATA: &[(&str, &str)] = &[
    ("asyncBehavior", "async_behavior"),
    ("costEstimate", "cost_estimate"),
    ("enabledByDefault", "enabled_by_default"),
    ("internalOnly", "internal_only"),
    ("longRunning", "long_running"),
    ("modifiesState", "modifies_state"),
    ("rateLimitPerMinute", "rate_limit_per_minute"),
    ("requiresApproval", "requires_approval"),
    ("sensitiveOutput", "sensitive_output"),
    ("timeoutSeconds", "timeout_seconds"),
];
/// Schema keywords that Go structs write in `snake_case`: Go name, seed name (the JSON Schema
/// keyword).
const KEYWORDS: &[(&str, &str)] = &[
    ("additional_properties", "additionalProperties"),
    ("max_length", "maxLength"),
    ("min_length", "minLength"),
];

/// How values are wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrapping {
    /// `{"stringValue":"x"}`.
    Protojson,
    /// `{"Kind":{"StringValue":"x"}}`.
    Go,
}

/// The `snake_case` name from which protojson made a camelCase name. `None` if `name` is not
/// camelCase.
pub(super) fn snake(name: &str) -> Option<Cow<'static, str>> {
    let camel = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|c| c.is_ascii_alphanumeric())
        && name.bytes().any(|c| c.is_ascii_uppercase());
    camel.then(|| {
        let mut out = String::with_capacity(name.len() + 4);
        for c in name.chars() {
            if c.is_ascii_uppercase() {
                out.push('_');
            }
            out.push(c.to_ascii_lowercase());
        }
        Cow::Owned(out)
    })
}

/// Whether a name in parameters or metadata needs the tree, even in a document of the seed's
/// spelling.
pub(super) fn is_foreign(name: &str) -> bool {
    // A `match` and not a search in the table, because this runs for every name. A test checks that
    // it agrees with the table.
    matches!(
        name,
        "Kind" | "additional_properties" | "max_length" | "min_length"
    )
}

/// Whether a name is a known member of a tool's metadata, in camelCase.
pub(super) fn is_camel_metadata(name: &str) -> bool {
    name.bytes().any(|byte| byte.is_ascii_uppercase())
        && METADATA.iter().any(|(camel, _)| *camel == name)
}

/// Renames members. A member keeps its name if the new name is in use, so that no member gets lost.
/// No new name may itself be a name that `target` renames.
pub(super) fn rename<V>(
    members: &mut [(Cow<'_, str>, V)],
    target: impl Fn(&str) -> Option<Cow<'static, str>>,
) {
    if members.len() <= COMPARED_MAX {
        for at in 0..members.len() {
            if let Some(new) = target(&members[at].0)
                && members.iter().all(|(name, _)| *name != new)
            {
                members[at].0 = new;
            }
        }
    } else if members.iter().any(|(name, _)| target(name).is_some()) {
        let mut taken: HashSet<String> = members.iter().map(|(name, _)| name.to_string()).collect();
        for (name, _) in members {
            if let Some(new) = target(name).filter(|new| taken.insert(new.to_string())) {
                *name = new;
            }
        }
    }
}

/// The seed's name for a member. Known members are looked up in `known`. In a protojson document
/// every other camelCase name is converted too, because protojson made it from a `snake_case` name
/// by a fixed rule. The value of an unknown member does not change.
pub(super) fn seed_name(
    name: &str,
    known: &[(&str, &'static str)],
    protojson: bool,
) -> Option<Cow<'static, str>> {
    let listed = known
        .iter()
        .find(|(camel, _)| *camel == name)
        .map(|(_, seed)| Cow::Borrowed(*seed));
    listed.or_else(|| if protojson { snake(name) } else { None })
}

impl Members<'_> {
    /// Gives the members the seed's names; see [`seed_name`].
    pub(super) fn rename(&mut self, known: &[(&str, &'static str)], protojson: bool) {
        rename(self.all_mut(), |name| seed_name(name, known, protojson));
    }

    /// Like [`Self::rename`], but first removes the known members that are not set, so that they do
    /// not take the name of a member that is set. `null` and `""` mean "not set" in every spelling,
    /// `0` only in protojson.
    pub(super) fn rename_set(&mut self, known: &[(&str, &'static str)], protojson: bool) {
        let is_known = |name: &str| {
            known
                .iter()
                .any(|(camel, seed)| *camel == name || *seed == name)
        };
        let unset = |json: &str| matches!(json, "null" | "\"\"") || protojson && json == "0";
        self.all_mut()
            .retain(|(name, raw)| !(is_known(name) && unset(raw.get())));
        self.rename(known, protojson);
    }
}

/// Converts a schema to the seed's spelling. Names of parameters never change.
pub(super) fn schema(node: Node<'_>, protojson: bool, root: bool) -> Node<'_> {
    let Node::Object(mut members) = node else {
        return node;
    };
    let seed = |name: &str| {
        KEYWORDS
            .iter()
            .find(|(go, _)| *go == name)
            .map(|(_, seed)| Cow::Borrowed(*seed))
    };
    // Members that are not set are removed first, so that they do not take the name of a member
    // that is set.
    members.retain(|(name, value)| {
        !is_unset(
            seed(name).as_deref().unwrap_or(name),
            value,
            protojson,
            root,
        )
    });
    rename(&mut members, seed);
    let members = members.into_iter().map(|(name, value)| {
        let value = match (name.as_ref(), value) {
            ("properties", Node::Object(parameters)) => Node::Object(
                parameters
                    .into_iter()
                    .map(|(name, value)| (name, schema(value, protojson, false)))
                    .collect(),
            ),
            ("items", Node::List(items)) => Node::List(
                items
                    .into_iter()
                    .map(|item| schema(item, protojson, false))
                    .collect(),
            ),
            ("items" | "additionalProperties", value) => schema(value, protojson, false),
            ("default", value) => value_of(value, protojson),
            (_, value) => value,
        };
        (name, value)
    });
    Node::Object(members.collect())
}

/// Whether a keyword is written although it is not set. A bound of zero counts as set: bounds are
/// optional in the schema of the wire format, so protojson writes them only when they are set.
fn is_unset(keyword: &str, value: &Node<'_>, protojson: bool, root: bool) -> bool {
    let known = matches!(
        keyword,
        "type"
            | "description"
            | "enum"
            | "items"
            | "properties"
            | "required"
            | "format"
            | "pattern"
            | "minimum"
            | "maximum"
            | "minLength"
            | "maxLength"
            | "additionalProperties"
    );
    if known && is_scalar(value, "null") {
        return true;
    }
    protojson
        && match keyword {
            "type" | "description" | "format" | "pattern" => is_scalar(value, "\"\""),
            "enum" | "required" => matches!(value, Node::List(items) if items.is_empty()),
            "properties" => !root && matches!(value, Node::Object(members) if members.is_empty()),
            "default" => is_scalar(value, "null"),
            "additionalProperties" => is_scalar(value, "false"),
            _ => false,
        }
}

fn is_scalar(value: &Node<'_>, text: &str) -> bool {
    value.as_scalar() == Some(text)
}

/// Converts a protojson message of the protocol, such as `async_behavior`. For messages without
/// names that a user chose.
pub(super) fn message(node: Node<'_>) -> Node<'_> {
    match node {
        Node::Object(mut members) => {
            members.retain(|(_, value)| !is_zero(value));
            rename(&mut members, snake);
            Node::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, message(value)))
                    .collect(),
            )
        }
        Node::List(items) => Node::List(items.into_iter().map(message).collect()),
        scalar @ Node::Scalar(_) => scalar,
    }
}

/// Whether protojson writes this value for a member that is not set.
pub(super) fn is_zero(value: &Node<'_>) -> bool {
    match value {
        Node::Scalar(text) => matches!(text.as_ref(), "null" | "\"\"" | "false" | "0"),
        Node::List(items) => items.is_empty(),
        Node::Object(_) => false,
    }
}

/// The value without its wrapping. A value that is not wrapped does not change.
///
/// Go wrappings are removed until none is left, so that decoding the result again changes nothing.
pub(super) fn value_of(node: Node<'_>, protojson: bool) -> Node<'_> {
    let mut value = if protojson {
        unwrap_or_keep(node, Wrapping::Protojson)
    } else {
        node
    };
    while wrapped(&value, Wrapping::Go).is_some() {
        value = unwrap_or_keep(value, Wrapping::Go);
    }
    value
}

/// The value of an example's input: the other spellings put its members under `fields`.
pub(super) fn example_input(node: Node<'_>, protojson: bool) -> Node<'_> {
    let mut value = node;
    if protojson && fields_of(&value).is_some() {
        value = unwrap_members(only_value(value), Wrapping::Protojson);
    }
    // A parameter may be called `fields` as well, so `fields` counts as the Go layer only when all
    // its members are wrapped.
    while let Some(fields) = fields_of(&value)
        && !fields.is_empty()
        && fields
            .iter()
            .all(|(_, inner)| wrapped(inner, Wrapping::Go).is_some())
    {
        value = unwrap_members(only_value(value), Wrapping::Go);
    }
    value
}

/// The value of an example's expected output: any value, or members under `fields`. The value there
/// may be wrapped once more.
pub(super) fn example_output(node: Node<'_>, protojson: bool) -> Node<'_> {
    let mut value = example_input(value_of(node, protojson), protojson);
    while wrapped(&value, Wrapping::Go).is_some() {
        value = example_input(value_of(value, false), false);
    }
    value
}

fn fields_of<'n, 'a>(node: &'n Node<'a>) -> Option<&'n Vec<(Cow<'a, str>, Node<'a>)>> {
    match only_member(node)? {
        ("fields", Node::Object(fields)) => Some(fields),
        _ => None,
    }
}

fn only_member<'n, 'a>(node: &'n Node<'a>) -> Option<(&'n str, &'n Node<'a>)> {
    match node {
        Node::Object(members) if members.len() == 1 => Some((members[0].0.as_ref(), &members[0].1)),
        _ => None,
    }
}

/// The value of an object's only member. Any other node is returned as it is.
fn only_value(node: Node<'_>) -> Node<'_> {
    match node {
        Node::Object(mut members) if members.len() == 1 => members.remove(0).1,
        other => other,
    }
}

/// What a wrapping contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wrapped {
    Null,
    /// The inner value without changes.
    AsItIs,
    Number,
    /// Its members are under `fields`, unless it is empty.
    Object,
    /// Its items are under `values`, unless it is empty.
    List,
}

/// What a value with this wrapping contains. `None` if it is not wrapped in this way.
fn wrapped(node: &Node<'_>, wrapping: Wrapping) -> Option<Wrapped> {
    let (name, inner) = match wrapping {
        Wrapping::Protojson => only_member(node)?,
        Wrapping::Go => {
            let ("Kind", kind) = only_member(node)? else {
                return None;
            };
            if is_scalar(kind, "null") {
                return Some(Wrapped::Null);
            }
            only_member(kind)?
        }
    };
    let is = |protojson: &str, go: &str| {
        name == if wrapping == Wrapping::Go {
            go
        } else {
            protojson
        }
    };
    let is_empty = matches!(inner, Node::Object(members) if members.is_empty());
    let (holds, what) = if is("stringValue", "StringValue") || is("bytesValue", "BytesValue") {
        (inner.as_string().is_some(), Wrapped::AsItIs)
    } else if is("boolValue", "BoolValue") {
        (
            matches!(inner.as_scalar(), Some("true" | "false")),
            Wrapped::AsItIs,
        )
    } else if is("intValue", "IntValue") || is("doubleValue", "DoubleValue") {
        (number(inner).is_some(), Wrapped::Number)
    } else if is("nullValue", "NullValue") {
        (inner.as_scalar().is_some(), Wrapped::Null)
    } else if is("objectValue", "ObjectValue") {
        (is_empty || fields_of(inner).is_some(), Wrapped::Object)
    } else if is("listValue", "ListValue") {
        (
            is_empty || matches!(only_member(inner), Some(("values", Node::List(_)))),
            Wrapped::List,
        )
    } else {
        return None;
    };
    holds.then_some(what)
}

/// Removes one wrapping, at every level of the value.
fn unwrap_or_keep(node: Node<'_>, wrapping: Wrapping) -> Node<'_> {
    let Some(what) = wrapped(&node, wrapping) else {
        return node;
    };
    let inner = match wrapping {
        Wrapping::Protojson => only_value(node),
        Wrapping::Go => only_value(only_value(node)),
    };
    match what {
        Wrapped::Null => Node::scalar("null"),
        Wrapped::AsItIs => inner,
        Wrapped::Number => number(&inner).unwrap_or(inner),
        Wrapped::Object => unwrap_members(only_value(inner), wrapping),
        Wrapped::List => match only_value(inner) {
            Node::List(items) => Node::List(
                items
                    .into_iter()
                    .map(|item| unwrap_or_keep(item, wrapping))
                    .collect(),
            ),
            _ => Node::List(Vec::new()),
        },
    }
}

/// Removes one wrapping from each member of an object.
fn unwrap_members(node: Node<'_>, wrapping: Wrapping) -> Node<'_> {
    let Node::Object(members) = node else {
        return node;
    };
    Node::Object(
        members
            .into_iter()
            .map(|(name, value)| (name, unwrap_or_keep(value, wrapping)))
            .collect(),
    )
}

/// A number, or the number in a text (protojson writes 64-bit integers as texts). `NaN` and the
/// infinities stay texts.
pub(super) fn number<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    let Some(text) = node.as_string() else {
        return (node.kind() == "a number").then(|| node.clone());
    };
    let is_json = text.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        && serde_json::from_str::<serde_json::Number>(text).is_ok();
    Some(if is_json {
        Node::scalar(text.to_owned())
    } else {
        node.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_keyword_of_go_is_foreign() {
        assert!(
            KEYWORDS
                .iter()
                .all(|(go, seed)| is_foreign(go) && !is_foreign(seed))
        );
        assert!(is_foreign("Kind") && !is_foreign("kind"));
    }
}
