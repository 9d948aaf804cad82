//! Gives a call the values that an operator decided: fixed ones in any case, defaults where the
//! caller leaves a parameter out.
//!
//! A caller's own value for a fixed parameter is refused. What is sent fits the tool as its
//! scenario offers it. Which values there are, the catalog decided (`catalog/overrides.rs`).

use std::sync::Arc;

use super::validate::{ArgumentValidator, CheckLimits};
use super::{ExecuteError, Violation};
use crate::json::members::MemberTexts;
use crate::model::finding::push_step;
use crate::model::{JsonText, OverrideValue, ViewTool};

/// What a caller reads that gives a value for a fixed parameter.
const IS_FIXED: &str = "is fixed by an operator and cannot be given; leave it out";
/// What a caller reads if a fixed value is why the arguments do not fit.
const FIXED_UNFIT: &str =
    "has a value that an operator fixed, and that does not fit the tool; an operator corrects it";

/// The values of a tool's parameters, if there are any.
fn values(tool: &ViewTool) -> &[(Arc<str>, OverrideValue)] {
    tool.overridden
        .as_ref()
        .map_or(&[][..], |overridden| &*overridden.values)
}

/// Refuses arguments that hold a value of their own for a fixed parameter.
pub(super) fn refuse_fixed(tool: &ViewTool, arguments: &JsonText) -> Result<(), ExecuteError> {
    let values = values(tool);
    if values.is_empty() {
        return Ok(());
    }
    let members = MemberTexts::parse(arguments.get()).ok();
    let is_given = |name: &str| {
        members
            .as_ref()
            .is_some_and(|members| members.get(name).is_some())
    };
    let violations: Vec<Violation> = values
        .iter()
        .filter(|(name, value)| value.is_fixed() && is_given(name))
        .map(|(name, _)| Violation {
            pointer: pointer(name),
            message: IS_FIXED.to_owned(),
        })
        .collect();
    if violations.is_empty() {
        return Ok(());
    }
    Err(ExecuteError::Invalid {
        tool: tool.name.as_str().to_owned(),
        violations,
        more: false,
    })
}

/// The arguments with these values, checked against the tool as it is offered.
pub(super) async fn with_values(
    validators: &ArgumentValidator,
    tool: &ViewTool,
    arguments: JsonText,
    limits: CheckLimits<'_>,
) -> Result<JsonText, ExecuteError> {
    let values = values(tool);
    if values.is_empty() {
        return Ok(arguments);
    }
    let whole = merged(&arguments, values);
    let checked = validators
        .check_against(tool, &tool.offered().parameters, &whole, limits)
        .await;
    match checked {
        Ok(()) => Ok(whole),
        Err(ExecuteError::Invalid {
            tool,
            violations,
            more,
        }) => Err(ExecuteError::Invalid {
            tool,
            violations: violations
                .into_iter()
                .map(|violation| without_fixed_value(violation, values))
                .collect(),
            more,
        }),
        Err(refused) => Err(refused),
    }
}

/// The arguments, and behind them the values of parameters that they leave out.
fn merged(arguments: &JsonText, values: &[(Arc<str>, OverrideValue)]) -> JsonText {
    let given = MemberTexts::parse(arguments.get()).ok();
    let is_given = |name: &str| {
        given
            .as_ref()
            .is_some_and(|members| members.get(name).is_some())
    };
    let added: Vec<String> = values
        .iter()
        .filter(|(name, _)| !is_given(name))
        .map(|(name, value)| {
            let name = serde_json::Value::from(&**name);
            format!("{name}:{}", value.json().get())
        })
        .collect();
    let inner = arguments
        .get()
        .trim()
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'))
        .unwrap_or_default()
        .trim_end();
    let comma = if inner.trim().is_empty() || added.is_empty() {
        ""
    } else {
        ","
    };
    JsonText::known(format!("{{{inner}{comma}{}}}", added.join(",")))
}

/// A violation as the caller reads it, which does not see fixed values.
fn without_fixed_value(violation: Violation, values: &[(Arc<str>, OverrideValue)]) -> Violation {
    let is_of = |name: &str| {
        let pointer = pointer(name);
        let rest = violation.pointer.strip_prefix(&pointer);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of_fixed = values
        .iter()
        .find(|(name, value)| value.is_fixed() && is_of(name));
    match of_fixed {
        Some((name, _)) => Violation {
            pointer: pointer(name),
            message: FIXED_UNFIT.to_owned(),
        },
        None => violation,
    }
}

/// The place of a parameter within the arguments.
fn pointer(name: &str) -> String {
    let mut pointer = String::new();
    push_step(&mut pointer, name);
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ParameterOverrides;

    fn values(json: &str) -> Vec<(Arc<str>, OverrideValue)> {
        let parsed = ParameterOverrides::parse(json).unwrap();
        parsed
            .iter()
            .filter_map(|(name, parameter)| Some((name.clone(), parameter.value.clone()?)))
            .collect()
    }

    #[test]
    fn values_stand_behind_the_arguments_that_leave_them_out() {
        let values = values(r#"{"a":{"default":1},"b/c":{"fixed":{"x":null}}}"#);
        for (arguments, whole) in [
            ("{}", r#"{"a":1,"b/c":{"x":null}}"#),
            (" { \"a\" : 2 } ", r#"{ "a" : 2,"b/c":{"x":null}}"#),
            (r#"{"z":0}"#, r#"{"z":0,"a":1,"b/c":{"x":null}}"#),
        ] {
            let arguments = JsonText::parse(arguments).unwrap();
            assert_eq!(merged(&arguments, &values).get(), whole);
        }
        assert_eq!(merged(&JsonText::known("{ }"), &[]).get(), "{}");
    }

    #[test]
    fn a_fixed_value_is_not_shown_by_what_is_wrong_with_it() {
        let values = values(r#"{"a":{"default":1},"b/c":{"fixed":"vault-7"}}"#);
        let violation = |pointer: &str| Violation {
            pointer: pointer.to_owned(),
            message: "\"vault-7\" is not of type \"number\"".to_owned(),
        };
        for pointer in ["/b~1c", "/b~1c/0"] {
            let shown = without_fixed_value(violation(pointer), &values);
            assert_eq!(shown.pointer, "/b~1c");
            assert_eq!(shown.message, FIXED_UNFIT);
        }
        for pointer in ["/a", "/b~1cd", ""] {
            let shown = without_fixed_value(violation(pointer), &values);
            assert_eq!(shown, violation(pointer));
        }
    }
}
