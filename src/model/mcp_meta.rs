//! The keys of `_meta` that the Model Context Protocol allows (revision 2025-06-18, "_meta").
//!
//! Clients may refuse a whole list for one key outside the grammar, so such keys are left out of
//! what clients get. All other members keep their text.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::JsonText;
use crate::json::members::MemberTexts;
use crate::json::write::quoted;

/// The member that the keys are of.
pub(crate) const META: &str = "_meta";
/// The key of a tool with the version of its definition, which callsheet writes itself. A call that
/// names a version has it too.
pub(crate) const DEFINITION_VERSION: &str = "callsheet/definition_version";
/// The members of results that hold further objects with `_meta`. What a tool itself defines
/// (`structuredContent`) is none of them.
const CARRIERS: [&str; 5] = ["content", "contents", "messages", "resource", "resources"];
/// Levels of such objects that are looked at: a result, its messages, their content, its resource.
const LEVELS_MAX: usize = 6;

/// Whether the protocol allows a key: a name, perhaps after a prefix of labels and a slash.
pub(crate) fn is_meta_key(key: &str) -> bool {
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = name.is_empty() || (has_plain_ends(name) && name.bytes().all(is_inside));
    is_name && prefix.is_none_or(|prefix| prefix.split('.').all(is_label))
}

fn is_label(label: &str) -> bool {
    let begins = label
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic());
    begins
        && has_plain_ends(label)
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether the first and the last byte are a letter or a digit.
fn has_plain_ends(text: &str) -> bool {
    let mut ends = text.bytes().next().into_iter().chain(text.bytes().last());
    !text.is_empty() && ends.all(|byte| byte.is_ascii_alphanumeric())
}

/// The keys of one `_meta` that the protocol does not allow.
pub(crate) fn refused_meta_keys(meta: &str) -> Vec<String> {
    let Ok(members) = MemberTexts::parse(meta) else {
        return Vec::new();
    };
    members
        .names()
        .filter(|name| !is_meta_key(name))
        .map(str::to_owned)
        .collect()
}

/// One `_meta` with the allowed keys only, apart from those that callsheet writes itself.
fn allowed_meta(meta: &str) -> Cow<'_, str> {
    let is_foreign = |key: &str| is_meta_key(key) && key != DEFINITION_VERSION;
    filtered_meta(meta, is_foreign).map_or(Cow::Borrowed(meta), Cow::Owned)
}

/// The text of a member that clients get of a tool, a category or an offer: `_meta` with the
/// allowed keys only, and every other one as it is. All lists for clients are made of it.
pub(crate) fn client_member<'a>(name: &str, json: &'a str) -> Cow<'a, str> {
    if name == META {
        allowed_meta(json)
    } else {
        Cow::Borrowed(json)
    }
}

/// A result with the allowed keys only in each `_meta` that the protocol has in it.
pub(crate) fn with_allowed_meta(result: JsonText) -> JsonText {
    let text = result.get();
    // A name may be written with escapes.
    if !text.contains(META) && !text.contains("\\u") {
        return result;
    }
    match changed_object(text, LEVELS_MAX) {
        Some(changed) => JsonText::known(changed),
        None => result,
    }
}

/// One `_meta` with the allowed keys only, if it has others.
fn without_refused_keys(meta: &str) -> Option<String> {
    filtered_meta(meta, is_meta_key)
}

/// The members of an object whose keys pass, if any does not.
fn filtered_meta(meta: &str, passes: impl Fn(&str) -> bool) -> Option<String> {
    let members = MemberTexts::parse(meta).ok()?;
    let has_refused = members.names().any(|name| !passes(name));
    has_refused.then(|| members.filtered(passes))
}

/// The text of an object, if any of its keys is left out.
fn changed_object(text: &str, levels: usize) -> Option<String> {
    let below = levels.checked_sub(1)?;
    let members = MemberTexts::parse(text).ok()?;
    let mut is_changed = false;
    let mut written = Vec::new();
    for (name, value) in members.iter() {
        let changed = match name {
            META => without_refused_keys(value),
            _ if CARRIERS.contains(&name) => changed_value(value, below),
            _ => None,
        };
        is_changed |= changed.is_some();
        written.push(format!(
            "{}:{}",
            quoted(name),
            changed.as_deref().unwrap_or(value)
        ));
    }
    is_changed.then(|| format!("{{{}}}", written.join(",")))
}

/// The text of an object or of a list of objects, if any of their keys is left out.
fn changed_value(text: &str, levels: usize) -> Option<String> {
    if !text.starts_with('[') {
        return changed_object(text, levels);
    }
    let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
    let changed: Vec<Option<String>> = items
        .iter()
        .map(|item| changed_object(item.get(), levels))
        .collect();
    if changed.iter().all(Option::is_none) {
        return None;
    }
    let items = items
        .iter()
        .zip(&changed)
        .map(|(item, changed)| changed.as_deref().unwrap_or(item.get()));
    Some(format!("[{}]", items.collect::<Vec<_>>().join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_the_grammar() {
        for key in [
            "a",
            "A-b_c.9",
            "progressToken",
            "io.modelcontextprotocol/x",
            "a-1.b/",
            "callsheet/via",
        ] {
            assert!(is_meta_key(key), "{key}");
        }
        for key in [
            "_fastmcp", "a_", "-a", "/a", "1a/b", "a-/b", "a..b/c", "a/b/c", "a b", "é", "a_b/c",
        ] {
            assert!(!is_meta_key(key), "{key}");
        }
    }

    #[test]
    fn only_refused_keys_of_the_protocol_are_left_out() {
        let result = r#"{"_meta":{"_x":1,"y":2e400},"content":[{"type":"text","text":"_meta","\u005fmeta":{"_z":1}}],"structuredContent":{"_meta":{"_own":1}}}"#;
        let expected = r#"{"_meta":{"y":2e400},"content":[{"type":"text","text":"_meta","_meta":{}}],"structuredContent":{"_meta":{"_own":1}}}"#;
        assert_eq!(
            with_allowed_meta(JsonText::parse(result).unwrap()).get(),
            expected
        );
        for same in [
            r#"{"_meta":7}"#,
            r#"{ "_meta": {"a": 1} }"#,
            "[]",
            r#"{"content":"_meta"}"#,
        ] {
            assert_eq!(
                with_allowed_meta(JsonText::parse(same).unwrap()).get(),
                same
            );
        }
    }
}
