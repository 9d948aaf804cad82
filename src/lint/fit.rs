//! Checks whether a value fits a schema, by the keywords of the protocol's text. Keywords that
//! combine schemas (`anyOf`, `$ref`, ...) are not evaluated.

use crate::json::value::{Json, TYPES};
use crate::model::finding::{push_step, quoted_excerpt};

/// At most this many steps are spent on the values of one tool, so that a long list of allowed
/// values together with long examples does not take quadratic time.
const STEPS: usize = 20_000;

/// The steps that are left.
pub(super) struct StepBudget(usize);

/// The first reason why a value does not fit its schema.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// JSON pointer within the value.
    pub(super) at: String,
    /// The rest of a sentence whose subject is the value.
    pub(super) what: String,
}

impl StepBudget {
    pub(super) fn new() -> Self {
        Self(STEPS)
    }

    /// Takes `steps` from the budget. `None` if fewer are left; the check then ends.
    fn pay(&mut self, steps: usize) -> Option<()> {
        let left = self.0.checked_sub(steps);
        self.0 = left.unwrap_or(0);
        left.map(|_| ())
    }
}

/// Checks a value. `None` if it fits, or if the budget ends before a misfit is found.
pub(super) fn misfit(
    schema: &Json<'_>,
    value: &Json<'_>,
    budget: &mut StepBudget,
) -> Option<Misfit> {
    let mut at = String::new();
    let what = judge(schema, value, &mut at, budget)?;
    Some(Misfit { at, what })
}

/// The misfit, if there is one; `at` then points to it.
fn judge(
    schema: &Json<'_>,
    value: &Json<'_>,
    at: &mut String,
    budget: &mut StepBudget,
) -> Option<String> {
    budget.pay(1 + schema.members().len())?;
    // An unknown type has a finding of its own, and any value fits it.
    let fits = |kind: &Json<'_>| {
        kind.text()
            .is_none_or(|kind| !TYPES.contains(&kind) || value.is_of(kind))
    };
    let (right, wanted) = match schema.get_non_null("type") {
        Some(Json::List(kinds)) => (kinds.iter().any(fits), "of one of its types".to_owned()),
        Some(kind) => (
            fits(kind),
            format!(
                "of the type {}",
                quoted_excerpt(kind.text().unwrap_or_default())
            ),
        ),
        None => (true, String::new()),
    };
    if !right {
        return Some(format!("is {}, not {wanted}", value.kind()));
    }
    if let Some(allowed) = schema.get_non_null("enum").and_then(Json::list) {
        budget.pay(allowed.len())?;
        if !allowed.contains(value) {
            let shown = value
                .text()
                .map_or_else(|| value.kind().to_owned(), quoted_excerpt);
            return Some(format!("is {shown}, which `enum` does not allow"));
        }
    }
    match value {
        Json::Number(number) => out_of_range(schema, *number, "minimum", "maximum", ""),
        Json::Text(text)
            if schema.get_non_null("minLength").is_some()
                || schema.get_non_null("maxLength").is_some() =>
        {
            budget.pay(text.len() / 16)?;
            #[expect(clippy::cast_precision_loss, reason = "no text is that long")]
            let length = text.chars().count() as f64;
            out_of_range(schema, length, "minLength", "maxLength", " characters long")
        }
        Json::List(items) => {
            let schema = schema
                .get_non_null("items")
                .filter(|items| matches!(items, Json::Object(_)))?;
            items
                .iter()
                .enumerate()
                .find_map(|(index, item)| further(&index.to_string(), schema, item, at, budget))
        }
        Json::Object(_) => members(schema, value, at, budget),
        _ => None,
    }
}

fn further(
    step: &str,
    schema: &Json<'_>,
    value: &Json<'_>,
    at: &mut String,
    budget: &mut StepBudget,
) -> Option<String> {
    let length = at.len();
    push_step(at, step);
    let found = judge(schema, value, at, budget);
    if found.is_none() {
        at.truncate(length);
    }
    found
}

fn out_of_range(
    schema: &Json<'_>,
    number: f64,
    least: &str,
    most: &str,
    unit: &str,
) -> Option<String> {
    let bound = |keyword| schema.get_non_null(keyword).and_then(Json::number);
    if let Some(low) = bound(least).filter(|low| number < *low) {
        return Some(format!("is {number}{unit}, and `{least}` is {low}"));
    }
    bound(most)
        .filter(|high| number > *high)
        .map(|high| format!("is {number}{unit}, and `{most}` is {high}"))
}

fn members(
    schema: &Json<'_>,
    value: &Json<'_>,
    at: &mut String,
    budget: &mut StepBudget,
) -> Option<String> {
    let properties = schema.get_non_null("properties");
    let others = schema.get("additionalProperties");
    // Members that another keyword may describe are not checked here.
    let closed = properties.is_some()
        && matches!(others, None | Some(Json::Bool(false) | Json::Null))
        && ["patternProperties", "anyOf", "oneOf", "allOf", "$ref"]
            .iter()
            .all(|keyword| schema.get(keyword).is_none());
    for (name, member) in value.members() {
        budget.pay(properties.map_or(0, |properties| properties.members().len()))?;
        let found = match properties
            .and_then(|properties| properties.get(name))
            .or(others)
        {
            Some(schema @ Json::Object(_)) => further(name, schema, member, at, budget),
            Some(Json::Bool(true)) => None,
            _ if closed => {
                push_step(at, name);
                Some(format!(
                    "has {}, which the schema does not know",
                    quoted_excerpt(name)
                ))
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    for name in schema
        .get_non_null("required")
        .and_then(Json::list)
        .unwrap_or_default()
        .iter()
        .filter_map(Json::text)
    {
        budget.pay(value.members().len())?;
        if value.get(name).is_none() {
            return Some(format!("lacks {}, which is required", quoted_excerpt(name)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(schema: &str, value: &str) -> Option<(String, String)> {
        let schema = Json::parse(schema).unwrap();
        let value = Json::parse(value).unwrap();
        misfit(&schema, &value, &mut StepBudget::new()).map(|misfit| (misfit.at, misfit.what))
    }

    #[test]
    fn values_that_fit_are_let_pass() {
        for (schema, value) in [
            (r#"{"type":"integer"}"#, "3.0"),
            (r#"{"type":["string","null"]}"#, "null"),
            (r#"{"enum":[1,"a"]}"#, "\"a\""),
            (r#"{"type":"string","minLength":2,"maxLength":2}"#, "\"öß\""),
            (
                r#"{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":true}"#,
                r#"{"a":1,"b":2}"#,
            ),
            (r#"{"type":"array","items":{"type":"boolean"}}"#, "[true]"),
            (r#"{"type":"int"}"#, "\"x\""),
            (r#"{"anyOf":[{"type":"string"}]}"#, "3"),
            ("{}", "[{}]"),
        ] {
            assert_eq!(judged(schema, value), None, "{schema} {value}");
        }
    }

    #[test]
    fn the_first_misfit_is_reported_with_its_pointer() {
        let schema = r#"{"type":"object","properties":{"a/b":{"type":"array","items":{"type":"integer","maximum":9}},"c":{"enum":["x"]}},"required":["c"]}"#;
        for (value, at, part) in [
            ("[]", "", "is a list, not of the type `object`"),
            ("{}", "", "lacks `c`, which is required"),
            (
                r#"{"a/b":[1,2.5]}"#,
                "/a~1b/1",
                "is a number, not of the type `integer`",
            ),
            (r#"{"a/b":[10]}"#, "/a~1b/0", "is 10, and `maximum` is 9"),
            (r#"{"c":"y"}"#, "/c", "is `y`, which `enum` does not allow"),
            (
                r#"{"c":"x","d":1}"#,
                "/d",
                "has `d`, which the schema does not know",
            ),
        ] {
            assert_eq!(
                judged(schema, value),
                Some((at.into(), part.into())),
                "{value}"
            );
        }
    }

    #[test]
    fn what_would_cost_too_much_is_not_judged() {
        let allowed: Vec<String> = (0..STEPS / 4).map(|n| n.to_string()).collect();
        let schema = format!(r#"{{"items":{{"enum":[{}]}}}}"#, allowed.join(","));
        assert!(judged(&schema, "[1,2,-1]").is_some());
        assert_eq!(judged(&schema, "[1,2,3,4,5,6,7,8,9,-1]"), None);
    }
}
