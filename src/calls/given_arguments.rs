//! The arguments of a call as clients and LLM vendors write them: an object, or a text that holds
//! one.

use serde_json::value::RawValue;

use crate::model::JsonText;

/// Why arguments cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GivenArgumentsError {
    /// The text is not JSON; holds the reader's words.
    #[error("they are not JSON: {0}")]
    NotJson(String),
    /// They are JSON, but no object; holds their text.
    #[error("they are no JSON object")]
    NotAnObject(String),
}

/// The arguments as the text of one object, as it was written. It is empty if they are left out,
/// `null` or an empty text.
pub fn parse(given: Option<&RawValue>) -> Result<JsonText, GivenArgumentsError> {
    let unreadable = |error: serde_json::Error| GivenArgumentsError::NotJson(error.to_string());
    let text = given.map_or("{}", RawValue::get);
    if text.starts_with('"') {
        let inner: String = serde_json::from_str(text).map_err(unreadable)?;
        let inner = if inner.trim().is_empty() {
            "{}"
        } else {
            &inner
        };
        return object(JsonText::parse(inner).map_err(unreadable)?);
    }
    // The text was validated together with what it stands in, and has no blanks around it.
    object(JsonText::known(text))
}

fn object(arguments: JsonText) -> Result<JsonText, GivenArgumentsError> {
    match arguments.get() {
        text if text.starts_with('{') => Ok(arguments),
        "null" => Ok(JsonText::known("{}")),
        text => Err(GivenArgumentsError::NotAnObject(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<String, GivenArgumentsError> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        parse(Some(raw)).map(|arguments| arguments.get().to_owned())
    }

    #[test]
    fn an_object_may_stand_in_a_text() {
        assert_eq!(parse(None).unwrap().get(), "{}");
        for (text, expected) in [
            (
                r#"{"n":123456789012345678901234567890}"#,
                r#"{"n":123456789012345678901234567890}"#,
            ),
            (r#""{\"a\": 1}""#, r#"{"a": 1}"#),
            (r#""""#, "{}"),
            (r#""null""#, "{}"),
            ("null", "{}"),
        ] {
            assert_eq!(parsed(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        assert_eq!(
            parsed("[1]"),
            Err(GivenArgumentsError::NotAnObject("[1]".into()))
        );
        assert_eq!(
            parsed(r#""7""#),
            Err(GivenArgumentsError::NotAnObject("7".into()))
        );
        assert!(matches!(
            parsed(r#""{\"a\":""#),
            Err(GivenArgumentsError::NotJson(_))
        ));
    }
}
