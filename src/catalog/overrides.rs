//! Applies what operators replaced of a tool: its description, and texts and values of its
//! parameters.
//!
//! ```text
//! tool as offered, preferences --judge each parameter--> fits: schema as shown, values of calls
//!                                                    `-> does not fit: left out, with its reason
//! ```
//!
//! What is kept true here:
//!
//! - The version of the definition stays that of the tool as offered.
//! - A fixed parameter is not in the schema that is shown, nor required anywhere in it.
//! - An override that does not fit changes no part of the tool. A fixed value that does not fit
//!   withholds the tool: without it, calls would do something else than the operator decided.
//!
//! It never sends a value; `calls/overrides.rs` does.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::prefer::{ActiveOverrides, RuleStack};
use crate::lint;
use crate::model::{
    Effective, JsonText, OverriddenTool, OverrideValue, ParameterOverride, Provenance, Settings,
    Tool, ToolId, UnfitOverride,
};

/// Levels of combined schemas in which a fixed parameter is looked for.
const LEVELS_MAX: usize = 16;

/// A tool as the clients of a scope get it.
pub(super) struct ToolAsShown {
    pub(super) tool: Arc<Tool>,
    pub(super) overridden: Option<Arc<OverriddenTool>>,
    pub(super) effective: Effective,
}

impl RuleStack {
    /// A tool with everything that the preferences want of it.
    pub(super) fn shown(&self, id: &ToolId, offered: &Arc<Tool>) -> ToolAsShown {
        let mut effective = self.effective(id, offered);
        let active = self.overrides(id);
        let Some((tool, overridden)) = applied(&active, offered) else {
            return ToolAsShown {
                tool: Arc::clone(offered),
                overridden: None,
                effective,
            };
        };
        let source = active.parameters.as_ref().map(|(_, rule)| &rule.place);
        if let Some(source) = source.filter(|_| overridden.withheld_reason().is_some()) {
            effective.enabled = false;
            effective.enabled_source = Provenance::UnfitOverride(Arc::clone(source));
        }
        ToolAsShown {
            tool: Arc::new(tool),
            overridden: Some(Arc::new(overridden)),
            effective,
        }
    }
}

/// The tool with its overrides; `None` if it has none.
fn applied(active: &ActiveOverrides<'_>, offered: &Arc<Tool>) -> Option<(Tool, OverriddenTool)> {
    if active.description.is_none() && active.parameters.is_none() {
        return None;
    }
    let description = active.description.map_or_else(
        || Arc::clone(&offered.description),
        |(text, _)| Arc::clone(text),
    );
    let mut schema = ShownSchema::new(&offered.parameters);
    if let Some((parameters, _)) = &active.parameters {
        for (name, parameter) in parameters.iter() {
            schema.apply(name, parameter);
        }
    }
    let ShownSchema {
        schema,
        values,
        unfit,
        is_changed,
    } = schema;
    let parameters = match schema.filter(|_| is_changed) {
        Some(schema) => JsonText::known(schema.to_string()),
        None => offered.parameters.clone(),
    };
    let overridden = OverriddenTool {
        offered: Arc::clone(offered),
        values: values.into(),
        unfit: unfit.into(),
    };
    Some((offered.shown_as(description, parameters), overridden))
}

/// The overrides of one preference that do not fit a tool.
pub(super) fn unfit_parameters(settings: &Settings, offered: &Tool) -> Vec<UnfitOverride> {
    let Some(parameters) = &settings.parameters else {
        return Vec::new();
    };
    let mut schema = ShownSchema::new(&offered.parameters);
    for (name, parameter) in parameters.iter() {
        schema.apply(name, parameter);
    }
    schema.unfit
}

/// The schema of a tool while overrides are applied to it.
struct ShownSchema {
    /// `None` if it cannot be read.
    schema: Option<Value>,
    values: Vec<(Arc<str>, OverrideValue)>,
    unfit: Vec<UnfitOverride>,
    is_changed: bool,
}

impl ShownSchema {
    fn new(parameters: &JsonText) -> Self {
        Self {
            schema: serde_json::from_str(parameters.get()).ok(),
            values: Vec::new(),
            unfit: Vec::new(),
            is_changed: false,
        }
    }

    /// Applies the override of one parameter, or says why it does not fit.
    fn apply(&mut self, name: &Arc<str>, parameter: &ParameterOverride) {
        if let Err(why) = self.applied(name, parameter) {
            self.unfit.push(UnfitOverride {
                parameter: Arc::clone(name),
                why,
                is_fixed: parameter
                    .value
                    .as_ref()
                    .is_some_and(OverrideValue::is_fixed),
            });
        }
    }

    fn applied(&mut self, name: &Arc<str>, parameter: &ParameterOverride) -> Result<(), String> {
        let unreadable = "cannot be looked for: the schema of the tool cannot be read";
        let root = self.schema.as_mut().ok_or(unreadable)?;
        let own = root
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(&**name))
            .ok_or("is not one of the tool any more")?;
        if let Some(value) = &parameter.value {
            let schema = own.to_string();
            if let Some(what) = lint::value_misfit(&schema, value.json().get()) {
                return Err(format!("cannot have the {} value: it {what}", value.word()));
            }
        }
        match &parameter.value {
            Some(OverrideValue::Fixed(_)) => hide(root, name, 0),
            Some(OverrideValue::Default(value)) => {
                let read = serde_json::from_str(value.get()).unwrap_or_default();
                set_keyword(own, "default", read);
                describe(own, parameter);
                without_required(root, name);
            }
            None => describe(own, parameter),
        }
        self.values.extend(
            parameter
                .value
                .clone()
                .map(|value| (Arc::clone(name), value)),
        );
        self.is_changed = true;
        Ok(())
    }
}

/// Puts the description of an override in place of the parameter's own.
fn describe(schema: &mut Value, parameter: &ParameterOverride) {
    if let Some(text) = &parameter.description {
        set_keyword(schema, "description", Value::from(&**text));
    }
}

/// Sets a keyword of a schema. One that is `true` becomes the object that means the same.
fn set_keyword(schema: &mut Value, keyword: &str, value: Value) {
    if !schema.is_object() {
        *schema = Value::Object(Map::new());
    }
    schema[keyword] = value;
}

/// Takes a parameter out of a schema of the same object, and out of those that are combined with
/// it. It always has a value, so a requirement of it always holds.
fn hide(schema: &mut Value, name: &str, level: usize) {
    if level > LEVELS_MAX || !schema.is_object() {
        return;
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove(name);
    }
    without_required(schema, name);
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let combined = schema.get_mut(keyword).and_then(Value::as_array_mut);
        for schema in combined.into_iter().flatten() {
            hide(schema, name, level + 1);
        }
    }
    for keyword in ["not", "if", "then", "else"] {
        if let Some(schema) = schema.get_mut(keyword) {
            hide(schema, name, level + 1);
        }
    }
    for keyword in ["dependentSchemas", "dependentRequired", "dependencies"] {
        let Some(dependents) = schema.get_mut(keyword).and_then(Value::as_object_mut) else {
            continue;
        };
        for dependent in dependents.values_mut() {
            match dependent.as_array_mut() {
                Some(names) => names.retain(|own| own.as_str() != Some(name)),
                None => hide(dependent, name, level + 1),
            }
        }
    }
}

/// Takes a parameter out of those that are required.
fn without_required(schema: &mut Value, name: &str) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|own| own.as_str() != Some(name));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ParameterOverrides;

    fn shown(schema: &Value, overrides: &Value) -> (Value, Vec<String>) {
        let mut shown = ShownSchema::new(&JsonText::parse(&schema.to_string()).unwrap());
        let overrides = ParameterOverrides::parse(&overrides.to_string()).unwrap();
        for (name, parameter) in overrides.iter() {
            shown.apply(name, parameter);
        }
        let unfit = shown.unfit.iter().map(ToString::to_string).collect();
        (shown.schema.unwrap(), unfit)
    }

    #[test]
    fn a_default_is_shown_and_its_parameter_is_not_required() {
        let schema =
            json!({"properties": {"a": true, "b": {"type": "integer"}}, "required": ["b", "a"]});
        let overrides = json!({"a": {"description": "About a"}, "b": {"default": 7}});
        let expected = json!({"properties": {"a": {"description": "About a"}, "b": {"type": "integer", "default": 7}}, "required": ["a"]});
        assert_eq!(shown(&schema, &overrides), (expected, Vec::new()));
    }

    #[test]
    fn a_fixed_parameter_is_nowhere_in_the_schema() {
        let schema = json!({
            "properties": {"a": {"type": "string"}, "b": {}},
            "required": ["a", "b"],
            "anyOf": [{"required": ["a"], "properties": {"a": {"const": "x"}}}, {"required": ["b"]}],
            "not": {"allOf": [{"required": ["a", "b"]}]},
            "dependentRequired": {"b": ["a"]},
        });
        let (shown, unfit) = shown(&schema, &json!({"a": {"fixed": "x"}}));
        let expected = json!({
            "properties": {"b": {}},
            "required": ["b"],
            "anyOf": [{"required": [], "properties": {}}, {"required": ["b"]}],
            "not": {"allOf": [{"required": ["b"]}]},
            "dependentRequired": {"b": []},
        });
        assert_eq!(shown, expected);
        assert!(unfit.is_empty());
    }

    #[test]
    fn what_does_not_fit_changes_no_part_and_says_why() {
        let schema = json!({"properties": {"a": {"type": "string"}}, "required": ["a"]});
        for (overrides, why) in [
            (
                json!({"gone": {"fixed": 1}}),
                "the parameter `gone` is not one of the tool any more",
            ),
            (
                json!({"a": {"fixed": 7}}),
                "the parameter `a` cannot have the fixed value: it is a number, not of the type `string`",
            ),
            (
                json!({"a": {"default": [], "description": "x"}}),
                "the parameter `a` cannot have the default value: it is a list, not of the type `string`",
            ),
        ] {
            assert_eq!(
                shown(&schema, &overrides),
                (schema.clone(), vec![why.to_owned()])
            );
        }
    }
}
