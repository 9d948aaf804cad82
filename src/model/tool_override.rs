//! What an operator puts in place of parts of a tool: texts for the model, and values of
//! parameters.
//!
//! They are part of a preference for one tool. What becomes of them is decided by the catalog,
//! since it depends on the tool as it is offered now.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::next_step::WithNextStep;
use crate::json::JsonText;

/// Bytes of the description of a tool at most.
const DESCRIPTION_BYTES_MAX: usize = 8 * 1024;
/// Bytes of the overrides of all parameters of one tool at most, as JSON.
const PARAMETERS_BYTES_MAX: usize = 16 * 1024;

/// The overrides of a tool's parameters, by their names. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterOverrides(Arc<BTreeMap<Arc<str>, ParameterOverride>>);

/// What replaces parts of one parameter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ParameterOverride {
    /// What the model reads of it.
    pub description: Option<Arc<str>>,
    /// Its value, if the caller gives none, or may give none.
    pub value: Option<OverrideValue>,
}

/// The value that an operator gives a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OverrideValue {
    /// It is sent if the caller leaves the parameter out.
    Default(JsonText),
    /// It is always sent. The model does not see the parameter, and a caller's own value is
    /// refused.
    Fixed(JsonText),
}

const OF_PARAMETERS: &str =
    "write an object of parameters, each with `description`, and with `default` or `fixed`";
const OF_SECRETS: &str =
    "credentials for a scenario belong to `auth` or `headers` of its entry in `[[scenarios]]`";
const OF_LENGTH: &str = "shorten it";

/// Overrides that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOverride {
    /// Not the object that it should be.
    #[error("`parameters` cannot be read: {0}; {OF_PARAMETERS}")]
    Unreadable(String),
    /// A parameter without anything in its place.
    #[error("the override of the parameter `{0}` sets no value; {OF_PARAMETERS}")]
    Empty(String),
    /// Both a default and a fixed value.
    #[error("the parameter `{0}` has a default and a fixed value; {OF_PARAMETERS}")]
    TwoValues(String),
    /// A value that is or may be a secret.
    #[error("the value of the parameter `{0}` looks like a secret; {OF_SECRETS}")]
    Secret(String),
    /// Too long to be kept.
    #[error("`{0}` has {1} bytes, and may have {2}; {OF_LENGTH}")]
    TooLong(&'static str, usize, usize),
    /// A text with characters that no reader expects.
    #[error("the description has control characters; {OF_TEXT}")]
    ControlCharacters,
}

const OF_TEXT: &str = "write plain text, with line ends where needed";

impl WithNextStep for InvalidOverride {
    fn next_step(&self) -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed(match self {
            Self::Unreadable(_) | Self::Empty(_) | Self::TwoValues(_) => OF_PARAMETERS,
            Self::Secret(_) => OF_SECRETS,
            Self::TooLong(..) => OF_LENGTH,
            Self::ControlCharacters => OF_TEXT,
        }))
    }
}

/// One parameter as operators write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenParameter {
    description: Option<String>,
    #[serde(default, deserialize_with = "given")]
    default: Option<Value>,
    #[serde(default, deserialize_with = "given")]
    fixed: Option<Value>,
}

/// A value that is there, also if it is `null`.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The description of a tool as an operator writes it.
pub fn override_description(text: &str) -> Result<Arc<str>, InvalidOverride> {
    if text.len() > DESCRIPTION_BYTES_MAX {
        return Err(InvalidOverride::TooLong(
            "description",
            text.len(),
            DESCRIPTION_BYTES_MAX,
        ));
    }
    if text
        .chars()
        .any(|c| c.is_control() && !matches!(c, '\n' | '\t'))
    {
        return Err(InvalidOverride::ControlCharacters);
    }
    Ok(text.into())
}

impl ParameterOverrides {
    /// Reads overrides from the JSON object in which operators write them.
    pub fn parse(json: &str) -> Result<Self, InvalidOverride> {
        if json.len() > PARAMETERS_BYTES_MAX {
            return Err(InvalidOverride::TooLong(
                "parameters",
                json.len(),
                PARAMETERS_BYTES_MAX,
            ));
        }
        let unreadable = |error: serde_json::Error| InvalidOverride::Unreadable(error.to_string());
        // A struct would be read from a list, too.
        let written: BTreeMap<String, Map<String, Value>> =
            serde_json::from_str(json).map_err(unreadable)?;
        let parameters = written
            .into_iter()
            .map(|(name, members)| {
                let written =
                    WrittenParameter::deserialize(Value::Object(members)).map_err(unreadable)?;
                Ok((Arc::from(&*name), written.checked(name)?))
            })
            .collect::<Result<_, InvalidOverride>>()?;
        Ok(Self(Arc::new(parameters)))
    }

    /// The JSON object in which operators write them.
    pub fn to_json(&self) -> Value {
        let parameters = self
            .iter()
            .map(|(name, parameter)| (name.to_string(), parameter.to_json()));
        Value::Object(parameters.collect())
    }

    /// Every parameter with what replaces parts of it, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &ParameterOverride)> {
        self.0.iter()
    }

    /// What replaces parts of one parameter.
    pub fn get(&self, name: &str) -> Option<&ParameterOverride> {
        self.0.get(name)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// These, and those of `lower` where these say nothing of a part of a parameter.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        let mut merged = BTreeMap::clone(&self.0);
        for (name, below) in lower.iter() {
            let own = merged.entry(Arc::clone(name)).or_default();
            if own.description.is_none() {
                own.description.clone_from(&below.description);
            }
            if own.value.is_none() {
                own.value.clone_from(&below.value);
            }
        }
        Self(Arc::new(merged))
    }
}

impl ParameterOverride {
    fn to_json(&self) -> Value {
        let mut members = Map::new();
        if let Some(description) = &self.description {
            members.insert("description".to_owned(), Value::from(&**description));
        }
        if let Some(value) = &self.value {
            let read = serde_json::from_str(value.json().get()).unwrap_or_default();
            members.insert(value.word().to_owned(), read);
        }
        Value::Object(members)
    }
}

impl OverrideValue {
    /// The value itself.
    pub fn json(&self) -> &JsonText {
        match self {
            Self::Default(json) | Self::Fixed(json) => json,
        }
    }

    /// Whether it is always sent.
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Fixed(_))
    }

    /// The member in which operators write it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Default(_) => "default",
            Self::Fixed(_) => "fixed",
        }
    }
}

impl WrittenParameter {
    fn checked(self, name: String) -> Result<ParameterOverride, InvalidOverride> {
        let description = self
            .description
            .map(|text| override_description(&text))
            .transpose()?;
        let text = |value: &Value| JsonText::known(value.to_string());
        let value = match (&self.default, &self.fixed) {
            (Some(_), Some(_)) => return Err(InvalidOverride::TwoValues(name)),
            (Some(value), None) | (None, Some(value)) if may_be_secret(&name, value) => {
                return Err(InvalidOverride::Secret(name));
            }
            (Some(value), None) => Some(OverrideValue::Default(text(value))),
            (None, Some(value)) => Some(OverrideValue::Fixed(text(value))),
            (None, None) => None,
        };
        if description.is_none() && value.is_none() {
            return Err(InvalidOverride::Empty(name));
        }
        Ok(ParameterOverride { description, value })
    }
}

/// The last words of parameters that take secrets.
const SECRET_NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "credentials",
    "authorization",
];
/// The last two words of such parameters.
const SECRET_PAIRS: [&str; 5] = [
    "api key",
    "access key",
    "private key",
    "secret key",
    "auth key",
];
/// How texts begin that are secrets whatever their parameter is called.
const SECRET_BEGINNINGS: [&str; 13] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "-----BEGIN",
    "Bearer ",
    "Basic ",
    "eyJhbGciOi",
];
/// The members by which a configuration says where a secret is.
const SECRET_REFERENCES: [&str; 3] = ["env", "file", "command"];

/// Whether a value is a secret as far as that can be seen: values of overrides are shown to every
/// client that may read preferences, and to people that approve calls.
fn may_be_secret(name: &str, value: &Value) -> bool {
    match value {
        Value::String(text) => {
            (!text.is_empty() && names_secret(name))
                || SECRET_BEGINNINGS
                    .iter()
                    .any(|beginning| text.starts_with(beginning))
        }
        Value::Array(items) => items.iter().any(|item| may_be_secret(name, item)),
        Value::Object(members) => {
            let is_reference = members.len() == 1
                && members
                    .keys()
                    .any(|key| SECRET_REFERENCES.contains(&key.as_str()));
            (is_reference && names_secret(name))
                || members
                    .iter()
                    .any(|(member, value)| may_be_secret(member, value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether a parameter of this name takes a secret.
fn names_secret(name: &str) -> bool {
    let words = words(name);
    let last = words.last().map_or("", String::as_str);
    let pair = words
        .len()
        .checked_sub(2)
        .map(|at| words[at..].join(" "))
        .unwrap_or_default();
    SECRET_NAMES.contains(&last) || SECRET_PAIRS.contains(&pair.as_str())
}

/// The words of a name, whatever its style, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_after_lower = false;
    for c in name.chars() {
        let begins = !c.is_alphanumeric() || (c.is_uppercase() && is_after_lower);
        if begins {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        is_after_lower = c.is_lowercase() || c.is_ascii_digit();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(json: &str) -> InvalidOverride {
        ParameterOverrides::parse(json).unwrap_err()
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        let text = r#"{"a":{"description":"Where","default":null},"b":{"fixed":{"x":[1]}}}"#;
        let overrides = ParameterOverrides::parse(text).unwrap();
        assert_eq!(overrides.to_json().to_string(), text);
        assert!(
            overrides
                .get("b")
                .unwrap()
                .value
                .as_ref()
                .unwrap()
                .is_fixed()
        );
        assert!(overrides.get("c").is_none());
    }

    #[test]
    fn the_narrower_override_wins_part_by_part() {
        let narrow = ParameterOverrides::parse(r#"{"a":{"description":"narrow"}}"#).unwrap();
        let wide =
            ParameterOverrides::parse(r#"{"a":{"description":"wide","fixed":1},"b":{"fixed":2}}"#)
                .unwrap();
        assert_eq!(
            narrow.over(&wide).to_json().to_string(),
            r#"{"a":{"description":"narrow","fixed":1},"b":{"fixed":2}}"#
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        assert!(matches!(refused("[]"), InvalidOverride::Unreadable(_)));
        assert!(matches!(
            refused(r#"{"a":{"value":1}}"#),
            InvalidOverride::Unreadable(_)
        ));
        assert!(matches!(
            refused(r#"{"a":["text",1]}"#),
            InvalidOverride::Unreadable(_)
        ));
        assert_eq!(refused(r#"{"a":{}}"#), InvalidOverride::Empty("a".into()));
        assert_eq!(
            refused(r#"{"a":{"default":1,"fixed":null}}"#),
            InvalidOverride::TwoValues("a".into())
        );
        let long = format!(
            r#"{{"a":{{"fixed":"{}"}}}}"#,
            "x".repeat(PARAMETERS_BYTES_MAX)
        );
        assert!(matches!(
            refused(&long),
            InvalidOverride::TooLong("parameters", ..)
        ));
        assert!(override_description(&"x".repeat(DESCRIPTION_BYTES_MAX + 1)).is_err());
        assert_eq!(
            override_description("a\u{1b}[1m"),
            Err(InvalidOverride::ControlCharacters)
        );
        assert!(override_description("two\nlines").is_ok());
    }

    #[test]
    fn secrets_are_refused_as_values() {
        for (name, value) in [
            ("password", r#""hunter2""#),
            ("api_key", r#""x""#),
            ("apiKey", r#""x""#),
            ("GITHUB-TOKEN", r#""x""#),
            ("where", r#""sk-abcdef""#),
            ("where", r#"["ghp_abc"]"#),
            ("options", r#"{"passwd":"x"}"#),
            ("secret", r#"{"env":"HOME"}"#),
        ] {
            for word in ["default", "fixed"] {
                assert_eq!(
                    refused(&format!(r#"{{"{name}":{{"{word}":{value}}}}}"#)),
                    InvalidOverride::Secret(name.into())
                );
            }
        }
        for (name, value) in [
            ("max_tokens", "100"),
            ("token", "5"),
            ("tokenizer", r#""bpe""#),
            ("author", r#""me""#),
            ("password", r#""""#),
            ("key", r#""name""#),
            ("path", r#""/srv/sk-notes""#),
        ] {
            assert!(
                ParameterOverrides::parse(&format!(r#"{{"{name}":{{"fixed":{value}}}}}"#)).is_ok(),
                "{name}"
            );
        }
    }
}
