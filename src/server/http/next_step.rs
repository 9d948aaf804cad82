//! Next steps as data: what the text of a problem tells a person to request. Programs that have
//! words of their own, such as the command line, need not read the text for it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// A next step that the text of a problem quotes: a request, a parameter or an argument.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(in crate::server) struct NextStep {
    /// The step as `detail` quotes it.
    text: String,
    /// The method of a request that helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    /// The path and the query of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// The body of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Value>,
    /// The name of a parameter that is quoted with its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'static str>,
    /// The value of that parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// The name of an argument of the tool that has to be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    argument: Option<&'static str>,
}

impl NextStep {
    /// A request without a body.
    pub(in crate::server) fn request(method: &'static str, path: impl Into<String>) -> Self {
        let path = path.into();
        Self {
            text: format!("`{method} {path}`"),
            method: Some(method),
            path: Some(path),
            ..Self::default()
        }
    }

    /// The request that enables what a preference has as its target.
    pub(in crate::server) fn enable(scope: &str, target: &str) -> Self {
        let request = Self::request("PUT", "/api/v1/preferences");
        Self {
            text: format!("{request} with scope `{scope}` and target `{target}`"),
            body: Some(json!({"scope": scope, "target": target, "enabled": true})),
            ..request
        }
    }

    /// A parameter with its value.
    pub(in crate::server) fn parameter(name: &'static str, value: impl Into<String>) -> Self {
        let value = value.into();
        Self {
            text: format!("`{name}={value}`"),
            parameter: Some(name),
            value: Some(value),
            ..Self::default()
        }
    }

    /// An argument of the tool, in the words of the problem.
    pub(in crate::server) fn argument(name: &'static str, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            argument: Some(name),
            ..Self::default()
        }
    }

    /// Whether a text quotes the step.
    pub(in crate::server) fn is_quoted_in(&self, text: &str) -> bool {
        text.contains(&self.text)
    }
}

impl fmt::Display for NextStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
