//! A tool in one line, for a model that chooses among many:
//! `convert_length(value: number, from: "mile"|"km", digits?: integer) - Converts a length.`
//!
//! - Every required parameter is named. Optional ones are named while there is room, the others
//!   counted.
//! - Types are written as far as a call needs them: the values of an `enum` up to a limit, the
//!   members of an object one level deep, `name[]` for lists. Beyond [`TYPED_BYTES`] only names.
//! - It is one line, whatever the texts of the tool hold.
//!
//! The part behind the name is made once for each definition. It never decides whether a format can
//! say the tool.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use super::latent;
use crate::model::{Execution, JsonText, Tool, ViewTool};

/// Bytes of the values of an `enum` at most; the others are left to the schema.
const ENUM_BYTES: usize = 80;
/// Alternatives of a type at most.
const ALTERNATIVES: usize = 4;
/// Bytes of the parameters beyond which required ones are named without their types.
const TYPED_BYTES: usize = 600;
/// Bytes of the parameters beyond which optional ones are only counted.
const OPTIONAL_BYTES: usize = 160;
/// Bytes of the members of one object beyond which optional ones are only counted.
const MEMBER_BYTES: usize = 60;
/// Characters of the sentence that says what the tool does.
const SENTENCE_CHARACTERS: usize = 100;
/// Characters of a text that are searched for the end of a sentence.
const SEARCHED_CHARACTERS: usize = 1_000;
/// References that are followed from one place.
const REFERENCES: usize = 8;
/// Bytes of a literal of a schema at most.
const LITERAL_BYTES: usize = 40;
/// Lists within lists that are written as such.
const LIST_LEVELS: usize = 3;

/// The line of a tool under this name.
pub fn signature(name: &str, tool: &ViewTool) -> String {
    let made_for_call = (tool.execution == Execution::Latent)
        .then(|| latent::parameters(&tool.tool).ok())
        .flatten();
    match made_for_call {
        Some(parameters) => format!("{name}{}", behind_name(&tool.tool, &parameters)),
        None => format!("{name}{}", of_definition(&tool.tool)),
    }
}

/// What stands behind the name of a tool, kept with its definition.
fn of_definition(tool: &Tool) -> &str {
    tool.version
        .signature(|| behind_name(tool, &tool.parameters))
}

/// What stands behind the name of a tool with these parameters.
fn behind_name(tool: &Tool, parameters: &JsonText) -> String {
    // A schema that is nested too deeply to be read is no reason to leave the tool out.
    let shown = serde_json::from_str::<Value>(parameters.get()).map_or_else(
        |_| "...".to_owned(),
        |schema| {
            let limits = MemberLimits {
                typed: TYPED_BYTES,
                optional: OPTIONAL_BYTES,
            };
            Writer { root: &schema }.members(&schema, limits, TypeLevel::Parameters)
        },
    );
    let sentence = first_sentence(&tool.description);
    if sentence.is_empty() {
        format!("({shown})")
    } else {
        format!("({shown}) - {sentence}")
    }
}

/// How many bytes of members are written whole.
#[derive(Clone, Copy)]
struct MemberLimits {
    /// Beyond them required members have no types.
    typed: usize,
    /// Beyond them optional members are only counted.
    optional: usize,
}

/// Where a type stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TypeLevel {
    /// Among the parameters.
    Parameters,
    /// Among the members of a parameter.
    Nested,
}

/// Writes the types of one schema.
struct Writer<'a> {
    /// The whole schema, which references point into.
    root: &'a Value,
}

impl<'a> Writer<'a> {
    /// The members of an object: required ones first, each by its name.
    fn members(&self, schema: &'a Value, limits: MemberLimits, level: TypeLevel) -> String {
        let schema = self.followed(schema);
        let properties = schema["properties"].as_object();
        let required = required_names(schema);
        let mut out = String::new();
        for name in &required {
            let is_typed = out.len() < limits.typed;
            let kind = properties
                .and_then(|properties| properties.get(*name))
                .map_or(Cow::Borrowed("any"), |member| self.kind(member, level));
            separate(&mut out);
            out.push_str(&member_name(name));
            if is_typed {
                let _ = write!(out, ": {kind}");
            }
        }
        let mut left_out = 0;
        let optional = properties
            .into_iter()
            .flatten()
            .filter(|(name, _)| !required.contains(&name.as_str()));
        for (name, member) in optional {
            if out.len() >= limits.optional {
                left_out += 1;
                continue;
            }
            let written = format!("{}?: {}", member_name(name), self.kind(member, level));
            // One long type does not take the room of all others.
            if out.len() + written.len() > 2 * limits.optional {
                left_out += 1;
                continue;
            }
            separate(&mut out);
            out.push_str(&written);
        }
        if left_out > 0 {
            separate(&mut out);
            let _ = write!(out, "...{left_out} more optional");
        }
        out
    }

    /// The type of a value.
    fn kind(&self, schema: &'a Value, level: TypeLevel) -> Cow<'static, str> {
        self.kind_within(schema, level, LIST_LEVELS)
    }

    fn kind_within(&self, schema: &'a Value, level: TypeLevel, lists: usize) -> Cow<'static, str> {
        let schema = self.followed(schema);
        if let Some(value) = schema.get("const") {
            return literal(value).map_or(Cow::Borrowed("any"), Cow::Owned);
        }
        if let Some(values) = schema["enum"].as_array() {
            return allowed(values).into();
        }
        let alternatives = ["anyOf", "oneOf"]
            .iter()
            .find_map(|keyword| schema[*keyword].as_array());
        if let Some(alternatives) = alternatives {
            let kinds = alternatives
                .iter()
                .map(|one| self.kind_within(one, level, lists));
            return either(kinds);
        }
        if let Some([only]) = schema["allOf"].as_array().map(Vec::as_slice) {
            return self.kind_within(only, level, lists);
        }
        match &schema["type"] {
            Value::String(kind) => self.of_type(kind, schema, level, lists),
            Value::Array(kinds) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                either(kinds.map(|kind| self.of_type(kind, schema, level, lists)))
            }
            _ if schema["properties"].is_object() => self.of_type("object", schema, level, lists),
            _ => Cow::Borrowed("any"),
        }
    }

    fn of_type(
        &self,
        kind: &str,
        schema: &'a Value,
        level: TypeLevel,
        lists: usize,
    ) -> Cow<'static, str> {
        match kind {
            "array" => self.list(schema, level, lists).into(),
            "object" if level == TypeLevel::Parameters => self.object(schema).into(),
            "string" => Cow::Borrowed("string"),
            "number" => Cow::Borrowed("number"),
            "integer" => Cow::Borrowed("integer"),
            "boolean" => Cow::Borrowed("boolean"),
            "null" => Cow::Borrowed("null"),
            "object" => Cow::Borrowed("object"),
            _ => Cow::Borrowed("any"),
        }
    }

    fn list(&self, schema: &'a Value, level: TypeLevel, lists: usize) -> String {
        let items = schema.get("items").filter(|items| items.is_object());
        let Some(items) = items.filter(|_| lists > 0) else {
            return "any[]".to_owned();
        };
        let kind = self.kind_within(items, level, lists - 1);
        if kind.contains('|') && !kind.ends_with('}') {
            format!("({kind})[]")
        } else {
            format!("{kind}[]")
        }
    }

    fn object(&self, schema: &'a Value) -> String {
        let limits = MemberLimits {
            typed: MEMBER_BYTES,
            optional: MEMBER_BYTES,
        };
        let members = self.members(schema, limits, TypeLevel::Nested);
        if members.is_empty() {
            "object".to_owned()
        } else {
            format!("{{{members}}}")
        }
    }

    /// The schema that a reference into the same document means, as far as it can be followed.
    fn followed(&self, schema: &'a Value) -> &'a Value {
        let mut found = schema;
        for _ in 0..REFERENCES {
            let pointer = found["$ref"]
                .as_str()
                .and_then(|reference| reference.strip_prefix('#'));
            match pointer.and_then(|pointer| self.root.pointer(pointer)) {
                Some(next) => found = next,
                None => break,
            }
        }
        found
    }
}

/// The required names of an object, each once, in their order.
fn required_names(schema: &Value) -> Vec<&str> {
    let names = schema["required"].as_array().into_iter().flatten();
    let mut seen = std::collections::BTreeSet::new();
    names
        .filter_map(Value::as_str)
        .filter(|name| seen.insert(*name))
        .collect()
}

fn separate(out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
}

/// The name of a member: as it is where it is one word, else as JSON writes it.
fn member_name(name: &str) -> Cow<'_, str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_-.$@".contains(c);
    if !name.is_empty() && name.chars().all(is_word) {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(Value::from(name).to_string())
    }
}

/// The allowed values, those that have room; further ones are shown by dots.
fn allowed(values: &[Value]) -> String {
    let mut out = String::new();
    for value in values {
        let written = literal(value).filter(|written| out.len() + written.len() < ENUM_BYTES);
        let Some(written) = written else {
            let dots = if out.is_empty() { "any" } else { "|..." };
            out.push_str(dots);
            break;
        };
        if !out.is_empty() {
            out.push('|');
        }
        out.push_str(&written);
    }
    if out.is_empty() {
        "any".to_owned()
    } else {
        out
    }
}

/// A value as JSON; `None` if it is no plain value, or long.
fn literal(value: &Value) -> Option<String> {
    let is_plain = match value {
        Value::String(text) => text.len() <= LITERAL_BYTES,
        Value::Array(_) | Value::Object(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    };
    is_plain.then(|| value.to_string())
}

/// Several types, each once.
fn either(kinds: impl Iterator<Item = Cow<'static, str>>) -> Cow<'static, str> {
    let mut distinct: Vec<Cow<'static, str>> = Vec::new();
    for kind in kinds {
        if kind == "any" {
            return kind;
        }
        if distinct.contains(&kind) {
            continue;
        }
        if distinct.len() == ALTERNATIVES {
            distinct.push(Cow::Borrowed("..."));
            break;
        }
        distinct.push(kind);
    }
    match distinct.len() {
        0 => Cow::Borrowed("any"),
        1 => distinct.swap_remove(0),
        _ => Cow::Owned(distinct.join("|")),
    }
}

/// The first sentence of a text as one line of limited length.
fn first_sentence(text: &str) -> String {
    let beginning: String = text
        .trim_start()
        .chars()
        .take(SEARCHED_CHARACTERS)
        .collect();
    let words = beginning.split('\n').next().unwrap_or_default();
    let mut sentence = String::new();
    for word in words.split(|c: char| c.is_whitespace() || c.is_control()) {
        if word.is_empty() {
            continue;
        }
        if !sentence.is_empty() {
            sentence.push(' ');
        }
        sentence.push_str(word);
        if word.ends_with(['.', '!', '?', '。']) && !is_abbreviated(word) {
            break;
        }
    }
    match sentence.char_indices().nth(SENTENCE_CHARACTERS) {
        Some((end, _)) => {
            let kept = &sentence[..end];
            let whole = kept.rfind(' ').map_or(kept, |space| &kept[..space]);
            format!("{}...", whole.trim_end_matches(['.', ',', ' ']))
        }
        None => sentence,
    }
}

/// Whether a word that ends with a dot does not end a sentence: `e.g.`, `i.e.`, `etc.` within one.
fn is_abbreviated(word: &str) -> bool {
    let word = word.trim_start_matches('(');
    word.len() <= 2 || word.trim_end_matches('.').contains('.')
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn shown(schema: &Value) -> String {
        let limits = MemberLimits {
            typed: TYPED_BYTES,
            optional: OPTIONAL_BYTES,
        };
        Writer { root: schema }.members(schema, limits, TypeLevel::Parameters)
    }

    #[test]
    fn the_parameters_are_named_with_their_types() {
        let unit = json!({"enum": ["mile", "km"]});
        for (schema, written) in [
            (
                json!({"properties": {"digits": {"type": "integer"}, "value": {"type": "number"}, "from": unit, "to": unit},
                    "required": ["value", "from", "to"]}),
                r#"value: number, from: "mile"|"km", to: "mile"|"km", digits?: integer"#,
            ),
            (
                json!({"properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}, "deep": {"type": "object", "properties": {"y": {}}}}, "required": ["x"]}}}),
                "at?: {x: number, deep?: object}",
            ),
            (
                json!({"properties": {"a": {"type": "array", "items": {"type": ["string", "null"]}}, "b": {"type": "array"}}}),
                "a?: (string|null)[], b?: any[]",
            ),
            (
                json!({"properties": {"a": {"$ref": "#/$defs/a"}, "b": {"$ref": "#/$defs/b"}},
                    "$defs": {"a": {"anyOf": [{"type": "integer"}, {"const": "all"}]}, "b": {"$ref": "#/$defs/b"}}}),
                r#"a?: integer|"all", b?: any"#,
            ),
            (
                json!({"properties": {"two words": true}, "required": ["not there", "not there"]}),
                r#""not there": any, "two words"?: any"#,
            ),
            (json!({"type": "object"}), ""),
        ] {
            assert_eq!(shown(&schema), written, "{schema}");
        }
    }

    #[test]
    fn every_required_parameter_of_four_hundred_is_named() {
        let names: Vec<String> = (0..400).map(|n| format!("parameter_{n}")).collect();
        let of = |required: &[String]| {
            let properties: Map<String, Value> = names
                .iter()
                .map(|name| (name.clone(), json!({"type": "string"})))
                .collect();
            shown(&json!({"properties": properties, "required": required}))
        };
        let whole = of(&names);
        assert!(names.iter().all(|name| whole.contains(name.as_str())));
        assert!(
            whole.len() < 8_000,
            "types end after {TYPED_BYTES} bytes: {}",
            whole.len()
        );
        let optional = of(&names[390..]);
        assert!(
            names[390..]
                .iter()
                .all(|name| optional.contains(name.as_str()))
        );
        assert!(
            optional.ends_with(", ...390 more optional") && optional.len() < 300,
            "{optional}"
        );
    }

    #[test]
    fn an_enum_of_ten_thousand_and_long_values_have_a_limit() {
        let values: Vec<String> = (0..10_000).map(|n| format!("value-{n}")).collect();
        let written = shown(&json!({"properties": {"a": {"enum": values}}, "required": ["a"]}));
        assert!(
            written.starts_with(r#"a: "value-0"|"value-1""#) && written.ends_with("|..."),
            "{written}"
        );
        assert!(written.len() < 2 * ENUM_BYTES, "{written}");
        let long = json!({"properties": {"a": {"enum": ["x".repeat(50)]}, "b": {"const": "x".repeat(50)}, "c": {"enum": []}}});
        assert_eq!(shown(&long), "a?: any, b?: any, c?: any");
    }

    #[test]
    fn the_first_sentence_is_one_line() {
        for (text, sentence) in [
            ("Converts a length. It is exact.", "Converts a length."),
            (
                "Reads a file, e.g. a note, i.e. text.\nMore",
                "Reads a file, e.g. a note, i.e. text.",
            ),
            ("  Lists\u{7}all\tfiles\n\nArgs:", "Lists all files"),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text), sentence);
        }
        let long = first_sentence(&"word ".repeat(20_000));
        assert!(
            long.len() <= SENTENCE_CHARACTERS + 3 && long.ends_with("word..."),
            "{long}"
        );
        let unbroken = first_sentence(&"長".repeat(40_000));
        assert_eq!(unbroken.chars().count(), SENTENCE_CHARACTERS + 3);
    }
}
