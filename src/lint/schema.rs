//! Checks the schemas of parameters: the part of JSON Schema that the protocol's text uses, and the
//! further keywords that contain schemas.

use std::collections::HashSet;

use super::fit;
use super::rule_context::RuleContext;
use crate::json::value::{Json, TYPES};
use crate::model::FindingCode;
use crate::model::finding::quoted_excerpt;

/// Keywords that replace `type`.
const INSTEAD_OF_TYPE: [&str; 8] = [
    "$ref", "anyOf", "oneOf", "allOf", "not", "if", "const", "enum",
];
/// Keywords with a list of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords with schemas by name. None of these schemas is a parameter.
const MAPS: [&str; 3] = ["$defs", "definitions", "patternProperties"];
/// Up to this many properties are searched linearly.
const FEW: usize = 12;
/// Pairs of keywords with a number: the lower bound and the upper bound.
const RANGES: [(&str, &str); 4] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
];

/// Checks the outermost schema, which the decoder has made an object with `type` and `properties`.
pub(super) fn judge(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    properties(place, schema);
    keywords(place, schema);
}

/// Checks a nested schema.
fn inner(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    match schema {
        // `true` and `false` are schemas (JSON Schema core, section 4.3.2).
        Json::Bool(_) => return,
        Json::Object(_) => {}
        other => {
            let message = format!("a schema is an object, but this is {}", other.kind());
            return place.report(
                FindingCode::SchemaKeyword,
                message,
                "write it like `{\"type\": \"string\"}`",
            );
        }
    }
    types(place, schema);
    properties(place, schema);
    keywords(place, schema);
    default(place, schema);
}

fn types(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    match schema.get_non_null("type") {
        None if INSTEAD_OF_TYPE
            .iter()
            .all(|keyword| schema.get(keyword).is_none()) =>
        {
            let message = format!("{} has no type", parameter(place));
            place.report(
                FindingCode::SchemaUntyped,
                message,
                "add a `type`, such as `\"string\"`",
            );
        }
        None => {}
        Some(Json::List(types)) if !types.is_empty() => {
            place.within("type", |place| {
                for (index, one) in types.iter().enumerate() {
                    place.at(index, |place| known_type(place, one));
                }
            });
        }
        Some(one) => place.within("type", |place| known_type(place, one)),
    }
    let is_list = schema.get("type").and_then(Json::text) == Some("array");
    let has_items =
        schema.get_non_null("items").is_some() || schema.get_non_null("prefixItems").is_some();
    if is_list && !has_items && !place.is_in_output() {
        let message = "the list parameter has no `items`, and some LLM vendors refuse such a tool";
        place.report(
            FindingCode::ItemsMissing,
            message,
            "add `items` with the schema of one element",
        );
    }
}

/// The parameter at this position, with those around it, such as `orders[].id`.
fn parameter(place: &RuleContext<'_>) -> String {
    let mut name = String::new();
    let mut steps = place.steps().skip_while(|step| step != "properties");
    while let Some(step) = steps.next() {
        match step.as_str() {
            "properties" => {
                let dot = if name.is_empty() { "" } else { "." };
                name.extend([dot, &steps.next().unwrap_or_default()]);
            }
            "items" => name.push_str("[]"),
            _ => {}
        }
    }
    if name.is_empty() {
        "the parameter".to_owned()
    } else {
        format!("the parameter {}", quoted_excerpt(&name))
    }
}

fn known_type(place: &mut RuleContext<'_>, one: &Json<'_>) {
    if one.text().is_some_and(|text| TYPES.contains(&text)) {
        return;
    }
    let message = match one.text() {
        Some(text) => format!("{} is not a type of JSON Schema", quoted_excerpt(text)),
        None => format!("a type must be a string, but this is {}", one.kind()),
    };
    let meant = match one.text().unwrap_or_default().to_ascii_lowercase().as_str() {
        "str" | "text" | "char" | "date" | "datetime" | "uuid" | "uri" | "url" | "email"
        | "string" => "`string`",
        "int" | "int32" | "int64" | "long" | "integer" | "uint" => "`integer`",
        "float" | "float64" | "double" | "decimal" | "number" => "`number`",
        "bool" | "boolean" => "`boolean`",
        "list" | "set" | "slice" | "tuple" | "array" => "`array`",
        "dict" | "map" | "struct" | "json" | "object" => "`object`",
        _ => "`string`, `number`, `integer`, `boolean`, `array` or `object`",
    };
    place.report(FindingCode::SchemaType, message, format!("write {meant}"));
}

/// `properties` with `required`.
fn properties(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    if let Some(properties) = schema.get_non_null("properties") {
        place.within("properties", |place| each_property(place, properties));
    }
    required(place, schema);
}

fn each_property(place: &mut RuleContext<'_>, properties: &Json<'_>) {
    if !matches!(properties, Json::Object(_)) {
        let message = format!(
            "`properties` is an object, but this is {}",
            properties.kind()
        );
        return place.report(
            FindingCode::SchemaKeyword,
            message,
            "give each property a name and a schema",
        );
    }
    for (name, property) in properties.members() {
        place.within(name, |place| {
            if matches!(property, Json::Object(_))
                && property.text_of("description").is_none_or(is_blank)
                && !place.is_in_output()
            {
                let message = format!("the parameter {} has no description", quoted_excerpt(name));
                place.report(
                    FindingCode::ParameterUndescribed,
                    message,
                    "add a `description`",
                );
            }
            inner(place, property);
        });
    }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn required(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    let Some(required) = schema.get_non_null("required") else {
        return;
    };
    let known = schema
        .get_non_null("properties")
        .map(Json::members)
        .unwrap_or_default();
    // For few properties a linear search costs less than hashing.
    let set = (known.len() > FEW).then(|| {
        known
            .iter()
            .map(|(name, _)| name.as_ref())
            .collect::<HashSet<&str>>()
    });
    let known = |name: &str| {
        set.as_ref().map_or_else(
            || known.iter().any(|(own, _)| own == name),
            |set| set.contains(name),
        )
    };
    // A schema without `properties` may require what the schema around it describes.
    let judged =
        schema.get("properties").is_some() || matches!(schema.text_of("type"), Some("object"));
    place.within("required", |place| {
        let Some(names) = required.list() else {
            let message = format!(
                "`required` is a list of names, but this is {}",
                required.kind()
            );
            return place.report(
                FindingCode::SchemaKeyword,
                message,
                "list the names of the required properties",
            );
        };
        for (index, name) in names.iter().enumerate() {
            place.at(index, |place| match name.text() {
                None => {
                    let message = format!("`required` lists names, but this is {}", name.kind());
                    place.report(
                        FindingCode::SchemaKeyword,
                        message,
                        "list the names of the required properties",
                    );
                }
                Some(name) if judged && !known(name) => {
                    let message = format!(
                        "{} is required, but there is no such parameter",
                        quoted_excerpt(name)
                    );
                    place.report(
                        FindingCode::RequiredUnknown,
                        message,
                        "add it to `properties`, or take it out of `required`",
                    );
                }
                Some(_) => {}
            });
        }
    });
}

/// Checks the other keywords, and the schemas in them.
fn keywords(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    for (least, most) in RANGES {
        range(place, schema, least, most);
    }
    for keyword in ["pattern", "format", "description"] {
        if let Some(value) = schema
            .get_non_null(keyword)
            .filter(|value| value.text().is_none())
        {
            wrong(place, keyword, value, "a text");
        }
    }
    if let Some(value) = schema.get_non_null("enum") {
        allowed_values(place, schema, value);
    }
    match schema.get_non_null("items") {
        Some(Json::List(items)) => each(place, "items", items),
        Some(item) => place.within("items", |place| inner(place, item)),
        None => {}
    }
    if let Some(rest) = schema.get_non_null("additionalProperties") {
        place.within("additionalProperties", |place| held(place, rest));
    }
    for keyword in LISTS {
        match schema.get_non_null(keyword) {
            Some(Json::List(items)) => each(place, keyword, items),
            Some(other) => wrong(place, keyword, other, "a list of schemas"),
            None => {}
        }
    }
    for keyword in MAPS {
        let Some(schemas) = schema.get_non_null(keyword) else {
            continue;
        };
        place.within(keyword, |place| {
            for (name, schema) in schemas.members() {
                place.within(name, |place| held(place, schema));
            }
        });
    }
}

fn each(place: &mut RuleContext<'_>, keyword: &str, items: &[Json<'_>]) {
    place.within(keyword, |place| {
        for (index, item) in items.iter().enumerate() {
            place.at(index, |place| held(place, item));
        }
    });
}

/// Checks a subschema. It is combined with the schema around it, so it may have no `type`.
fn held(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    if matches!(schema, Json::Object(_)) && schema.get_non_null("type").is_none() {
        properties(place, schema);
        keywords(place, schema);
        default(place, schema);
    } else {
        inner(place, schema);
    }
}

fn allowed_values(place: &mut RuleContext<'_>, schema: &Json<'_>, value: &Json<'_>) {
    let Some(values) = value.list().filter(|values| !values.is_empty()) else {
        let found = if value.list().is_some() {
            "an empty list"
        } else {
            value.kind()
        };
        let message = format!("`enum` is a list of values, but this is {found}");
        return place.report_at(
            "/enum",
            FindingCode::SchemaKeyword,
            message,
            "list what is allowed, or leave it out",
        );
    };
    let Some(kind) = schema.text_of("type").filter(|kind| TYPES.contains(kind)) else {
        return;
    };
    place.within("enum", |place| {
        for (index, value) in values
            .iter()
            .enumerate()
            .filter(|(_, value)| !value.is_of(kind))
        {
            place.at(index, |place| {
                let message = format!("`enum` allows {}, but the type is `{kind}`", value.kind());
                place.report(
                    FindingCode::SchemaKeyword,
                    message,
                    "write values of the type, or change the type",
                );
            });
        }
    });
}

fn range(place: &mut RuleContext<'_>, schema: &Json<'_>, least: &str, most: &str) {
    let whole = least != "minimum";
    let mut bound = |keyword: &str| {
        let value = schema.get_non_null(keyword)?;
        let number = value
            .number()
            .filter(|number| !whole || *number >= 0.0 && number.fract() == 0.0);
        if number.is_none() {
            wrong(
                place,
                keyword,
                value,
                if whole {
                    "a whole number, 0 or more"
                } else {
                    "a number"
                },
            );
        }
        number
    };
    if let (Some(low), Some(high)) = (bound(least), bound(most))
        && low > high
    {
        let message = format!("`{least}` is {low} and `{most}` is {high}, so no value is allowed");
        place.report_at(
            &format!("/{least}"),
            FindingCode::SchemaKeyword,
            message,
            "swap or change them",
        );
    }
}

fn wrong(place: &mut RuleContext<'_>, keyword: &str, value: &Json<'_>, wanted: &str) {
    let message = match value {
        Json::Number(number) => format!("`{keyword}` is {wanted}, but this is {number}"),
        other => format!("`{keyword}` is {wanted}, but this is {}", other.kind()),
    };
    place.report_at(
        &format!("/{keyword}"),
        FindingCode::SchemaKeyword,
        message,
        &format!("make it {wanted}"),
    );
}

fn default(place: &mut RuleContext<'_>, schema: &Json<'_>) {
    // Many providers write `null` for "no default".
    let Some(value) = schema.get_non_null("default") else {
        return;
    };
    if let Some(misfit) = fit::misfit(schema, value, &mut fit::StepBudget::new()) {
        let message = format!("the default {}", misfit.what);
        place.report_at(
            &format!("/default{}", misfit.at),
            FindingCode::DefaultUnfit,
            message,
            "give a default that the schema allows, or none",
        );
    }
}
