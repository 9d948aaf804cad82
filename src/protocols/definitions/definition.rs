//! One definition: a tool as a schema of the Tool Protocol, without a program that runs it.
//!
//! A schema is judged when it is read, so that a definition in use is whole. It is never judged
//! here whether an activity is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model::{
    ActivityChoice, Extra, Facts, JsonText, META_FIELDS, TOOL_NAME_MAX, Tool, VersionCell,
};

/// The metadata of every definition: preferences say the rest.
const METADATA: &str = r#"{"enabled_by_default":true,"requires_approval":false}"#;

/// A tool that is defined by its schema alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    name: Arc<str>,
    description: Arc<str>,
    parameters: JsonText,
    output: JsonText,
    choice: ActivityChoice,
}

/// Why a schema is no definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The text is no JSON.
    #[error("the schema is no JSON: {0}")]
    NoJson(String),
    /// It is not the schema of an object with properties.
    #[error("the schema {0}")]
    NoObject(&'static str),
    /// The definition does not say what it is called.
    #[error("`_tool` {0}")]
    Tool(String),
    /// It does not say what it produces.
    #[error("`_output` {0}")]
    Output(&'static str),
    /// The activity is no constant text.
    #[error("`_activity` is not the schema of a constant text")]
    Activity,
    /// A property begins with an underscore and is no meta field.
    #[error("the property `{0}` begins with an underscore, and is none of the meta fields")]
    UnknownMetaField(String),
    /// The activity is named twice.
    #[error("the activity is named twice, as `{0}` and in `_activity`")]
    TwoActivities(String),
}

impl DefinitionError {
    /// The next step.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoJson(_) => "write one JSON object",
            Self::NoObject(_) => "write `\"type\": \"object\"` and `\"properties\": {...}`",
            Self::Tool(_) => {
                "write `\"_tool\": {\"type\": \"string\", \"const\": \"NAME\"}` among its properties, with the name of the tool"
            }
            Self::Output(_) => {
                "write `\"_output\": {\"type\": \"object\", \"properties\": {...}}` among its properties"
            }
            Self::Activity => {
                "write `\"_activity\": {\"type\": \"string\", \"const\": \"SCENARIO/TOOL\"}`, or leave it out"
            }
            Self::UnknownMetaField(_) => "give the parameter a name that begins with a letter",
            Self::TwoActivities(_) => "take one of the two out",
        }
    }
}

impl Definition {
    /// Reads a schema of the Tool Protocol. `name` is the name of the tool, if it is written beside
    /// the schema too.
    pub fn parse(name: Option<&str>, schema: &str) -> Result<Self, DefinitionError> {
        let schema: Value = serde_json::from_str(schema)
            .map_err(|error| DefinitionError::NoJson(error.to_string()))?;
        Self::from_schema(name, schema)
    }

    /// The same for a schema that was read already.
    pub fn from_schema(name: Option<&str>, schema: Value) -> Result<Self, DefinitionError> {
        let Value::Object(mut schema) = schema else {
            return Err(DefinitionError::NoObject("is no JSON object"));
        };
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(DefinitionError::NoObject("is not of the type `object`"));
        }
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        let properties = properties.ok_or(DefinitionError::NoObject("has no `properties`"))?;
        let name = tool_name(name, properties.shift_remove("_tool").as_ref())?;
        let output = output(properties.shift_remove("_output").as_ref())?;
        let named = match properties.shift_remove("_activity") {
            Some(field) => Some(
                constant(&field)
                    .ok_or(DefinitionError::Activity)?
                    .to_owned(),
            ),
            None => None,
        };
        properties.shift_remove("_reasoningForCall");
        if let Some(name) = properties.keys().find(|name| name.starts_with('_')) {
            return Err(DefinitionError::UnknownMetaField(name.clone()));
        }
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|name| {
                !name
                    .as_str()
                    .is_some_and(|name| META_FIELDS.contains(&name))
            });
        }
        let description = match schema.shift_remove("description") {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        Ok(Self {
            name: name.into(),
            description: description.into(),
            parameters: JsonText::known(Value::Object(schema).to_string()),
            output,
            choice: ActivityChoice {
                named: named.filter(|named| !named.is_empty()).map(Into::into),
                by_profile: BTreeMap::new(),
            },
        })
    }

    /// Runs it by this activity: `scenario/tool`, or a name that only one tool has.
    pub fn run_by(mut self, activity: &str) -> Result<Self, DefinitionError> {
        if self.choice.named.is_some() {
            return Err(DefinitionError::TwoActivities(activity.to_owned()));
        }
        self.choice.named = Some(activity.into());
        Ok(self)
    }

    /// Runs it by this activity for callers of a profile, whatever runs it for others. It is latent
    /// for them while the activity is not there.
    #[must_use]
    pub fn run_for(mut self, profile: &str, activity: &str) -> Self {
        self.choice
            .by_profile
            .insert(profile.to_owned(), activity.into());
        self
    }

    /// The name of the tool.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it does.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The tool that is listed for it.
    pub(super) fn tool(&self) -> Tool {
        let facts = Facts {
            enabled_by_default: true,
            ..Facts::default()
        };
        Tool {
            name: Arc::clone(&self.name),
            description: Arc::clone(&self.description),
            category: None,
            parameters: self.parameters.clone(),
            metadata: JsonText::known(METADATA),
            facts: Arc::new(facts),
            extra: Extra::from([("outputSchema".into(), self.output.clone())]),
            definition: Some(Arc::new(self.choice.clone())),
            version: VersionCell::default(),
        }
    }
}

/// The name of a tool, from its meta field and from what stands beside the schema.
fn tool_name(beside: Option<&str>, field: Option<&Value>) -> Result<String, DefinitionError> {
    let refuse = |why: String| DefinitionError::Tool(why);
    let field = field.ok_or_else(|| refuse("is missing".to_owned()))?;
    let name =
        constant(field).ok_or_else(|| refuse("is not the schema of a constant text".to_owned()))?;
    if let Some(beside) = beside.filter(|beside| *beside != name) {
        return Err(refuse(format!(
            "is `{name}`, but the definition is called `{beside}`"
        )));
    }
    if !(1..=TOOL_NAME_MAX).contains(&name.len()) {
        return Err(refuse(format!(
            "has {} bytes, and a name has 1 to {TOOL_NAME_MAX}",
            name.len()
        )));
    }
    Ok(name.to_owned())
}

/// The schema of the results.
fn output(field: Option<&Value>) -> Result<JsonText, DefinitionError> {
    let schema = field.ok_or(DefinitionError::Output("is missing"))?;
    let is_object =
        |schema: &Map<String, Value>| schema.get("type").and_then(Value::as_str) == Some("object");
    if !schema.as_object().is_some_and(is_object) {
        return Err(DefinitionError::Output("is not the schema of an object"));
    }
    Ok(JsonText::known(schema.to_string()))
}

fn constant(field: &Value) -> Option<&str> {
    field.get("const")?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "description": "Rates a text", "properties": {
            "_tool": {"type": "string", "const": "rate"}, "text": {"type": "string"},
            "_output": {"type": "object", "properties": {"stars": {"type": "number"}}}}})
    }

    #[test]
    fn meta_fields_are_no_parameters() {
        let tool = Definition::from_schema(Some("rate"), schema())
            .unwrap()
            .tool();
        assert_eq!(&*tool.name, "rate");
        assert_eq!(&*tool.description, "Rates a text");
        assert_eq!(
            tool.parameters.get(),
            r#"{"type":"object","properties":{"text":{"type":"string"}}}"#
        );
        assert_eq!(
            tool.output().unwrap().get(),
            r#"{"type":"object","properties":{"stars":{"type":"number"}}}"#
        );
        assert_eq!(tool.definition.unwrap().named, None);
    }

    #[test]
    fn an_activity_is_named_once_in_the_schema_or_beside_it() {
        let with = |activity: Value| {
            let mut schema = schema();
            schema["properties"]["_activity"] = activity;
            Definition::from_schema(None, schema)
        };
        let named = |definition: &Definition| definition.tool().definition.unwrap().named.clone();
        let judged = with(json!({"type": "string", "const": "ratings/judge"})).unwrap();
        assert_eq!(named(&judged).as_deref(), Some("ratings/judge"));
        assert!(!judged.tool().parameters.get().contains("_activity"));
        let twice = DefinitionError::TwoActivities("others/judge".to_owned());
        assert_eq!(judged.run_by("others/judge"), Err(twice));
        // An empty one names none, so that the name of the tool may bind.
        let open = with(json!({"type": "string", "const": ""})).unwrap();
        assert_eq!(named(&open), None);
        assert_eq!(
            named(&open.run_by("others/judge").unwrap()).as_deref(),
            Some("others/judge")
        );
        assert_eq!(
            with(json!({"type": "string"})),
            Err(DefinitionError::Activity)
        );
        assert_eq!(with(json!({"const": 7})), Err(DefinitionError::Activity));
    }

    #[test]
    fn what_is_not_whole_is_refused_with_the_place() {
        let with = |pointer: &str, value: Value| {
            let mut schema = schema();
            *schema.pointer_mut(pointer).unwrap() = value;
            Definition::from_schema(Some("rate"), schema)
                .unwrap_err()
                .to_string()
        };
        assert!(
            with("/properties/_tool/const", json!("other"))
                .contains("is `other`, but the definition is called")
        );
        assert!(with("/properties/_tool", json!({"type": "string"})).contains("constant text"));
        assert!(
            with("/properties/_output", json!({"type": "string"})).contains("schema of an object")
        );
        assert!(with("/type", json!("array")).contains("not of the type"));
        assert!(with("/properties", json!([])).contains("no `properties`"));
        let mut unknown = schema();
        unknown["properties"]["_speed"] = json!({});
        let refused = Definition::from_schema(None, unknown).unwrap_err();
        assert_eq!(
            refused,
            DefinitionError::UnknownMetaField("_speed".to_owned())
        );
        let missing = json!({"type": "object", "properties": {"_tool": {"const": "rate"}}});
        assert_eq!(
            Definition::from_schema(None, missing),
            Err(DefinitionError::Output("is missing"))
        );
        assert!(matches!(
            Definition::parse(None, "{"),
            Err(DefinitionError::NoJson(_))
        ));
    }
}
