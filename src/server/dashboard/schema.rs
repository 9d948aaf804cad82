//! A tool's input schema for people: each parameter with its type, whether it is required, and its
//! description.
//!
//! Shows the schema without checking it. Parts that are too deep or too long are cut, and the page
//! says so.

use std::collections::HashSet;

use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::server::dashboard::text::foreign;

/// At most this many levels are shown.
const DEEP: usize = 6;
/// At most this many parameters of one object are shown.
const WIDE: usize = 200;
/// Keywords that are shown beside the type, with their labels.
const BOUNDS: [(&str, &str); 11] = [
    ("minimum", "at least"),
    ("exclusiveMinimum", "more than"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "less than"),
    ("minLength", "characters at least"),
    ("maxLength", "characters at most"),
    ("pattern", "must match"),
    ("format", "format"),
    ("minItems", "elements at least"),
    ("maxItems", "elements at most"),
    ("default", "default"),
];

/// Renders the text of a schema.
pub(super) fn form(text: &str) -> Markup {
    if let Ok(Value::Object(schema)) = serde_json::from_str::<Value>(text) {
        parameters(&schema, DEEP)
    } else {
        html! { p { "This schema cannot be shown as a form." } }
    }
}

fn parameters(schema: &Map<String, Value>, deep: usize) -> Markup {
    let required: HashSet<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = schema.get("properties").and_then(Value::as_object);
    html! {
        @match properties.filter(|properties| !properties.is_empty()) {
            None => p class="quiet" { "No parameters." },
            Some(_) if deep == 0 => p class="quiet" { "Deeper parameters are not shown." },
            Some(properties) => {
                ul class="tree" {
                    @for (name, property) in properties.iter().take(WIDE) {
                        li { code { strong { (foreign(name, 120)) } } " " (kind(property))
                            @if required.contains(name.as_str()) { " " strong { "required" } } @else { " " span class="quiet" { "optional" } }
                            (said(property, deep)) }
                    }
                }
                @if properties.len() > WIDE { p class="quiet" { (properties.len() - WIDE) " more are not shown." } }
            }
        }
    }
}

fn kind(schema: &Value) -> Markup {
    let types = match schema.get("type") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => all
            .iter()
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any value".to_owned(),
    };
    html! { span class="badge" { (foreign(&types, 60)) } }
}

fn said(schema: &Value, deep: usize) -> Markup {
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    html! {
        @if let Some(description) = text("description") { p class="lines" { (foreign(description, 1_000)) } }
        @for (keyword, words) in BOUNDS {
            @if let Some(value) = schema.get(keyword) { p class="quiet" { (words) " " code { (foreign(&value.to_string(), 200)) } } }
        }
        @if let Some(all) = schema.get("enum").and_then(Value::as_array) {
            p class="quiet" { "one of " @for value in all.iter().take(50) { code { (foreign(&value.to_string(), 80)) } " " } }
        }
        @for keyword in ["anyOf", "oneOf", "allOf", "$ref", "not"] {
            @if let Some(value) = schema.get(keyword) { p class="quiet" { code { (keyword) } " " code { (foreign(&value.to_string(), 400)) } } }
        }
        @if let Some(items) = schema.get("items") {
            @if deep > 0 { p class="quiet" { "each element: " (kind(items)) } (said(items, deep - 1)) }
        }
        @if let Some(object) = schema.as_object().filter(|object| object.contains_key("properties")) {
            (parameters(object, deep.saturating_sub(1)))
        }
    }
}
