//! Input that a tool needs of its caller while a call runs.
//!
//! A scenario may request it of callers that offered to give it. A request and its reply are kept
//! as the JSON that they came in. This module never decides whether a scenario may request input.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::call_log::LogLevel;
use crate::model::JsonText;

/// What a caller can do while its call runs. By default nothing.
#[expect(clippy::struct_excessive_bools, reason = "each is an offer by itself")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallerOffers {
    /// It fills in forms (`elicitation/create`).
    pub elicitation_form: bool,
    /// It sends its user to an address (`elicitation/create` with the mode `url`).
    pub elicitation_url: bool,
    /// It samples its model (`sampling/createMessage`).
    pub sampling: bool,
    /// It names its root folders (`roots/list`).
    pub roots: bool,
    /// The least severe log messages that it wants. `None`: it wants none.
    pub log_level: Option<LogLevel>,
    /// It takes `input_required` as the answer and sends the call again with the input, so that the
    /// call does not have to wait for it.
    pub resumes: bool,
}

/// The kinds of input, by the method of MCP that requests it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMethod {
    /// `elicitation/create`: a question to the user.
    Elicitation,
    /// `sampling/createMessage`: a message of the caller's model.
    Sampling,
    /// `roots/list`: the folders that the caller works in.
    Roots,
}

/// What a tool needs of its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputWanted {
    /// What is requested.
    pub method: InputMethod,
    /// The parameters of the request as they came: one JSON object.
    pub params: JsonText,
}

/// Input of a call that its caller sends again: what its tool needs before it can continue, and
/// then what the caller gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRound {
    /// One JSON object with a member for each request: the requests as they came, and with the same
    /// keys their results. `{}` if there are none.
    pub by_key: JsonText,
    /// What the scenario wants back unchanged with the results.
    pub state: Option<String>,
}

/// Why a question of a tool was declined without its user. Its text ends with the next step. Its
/// names are stored with turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclinedInput {
    /// Several calls were under way, and it may be a question of each.
    #[error(
        "callsheet declined a question of the tool's server, and no user did: several calls of the server were under way, and it does not say which of them asks; if this call failed for that, make it again when no other one is under way"
    )]
    SeveralCalls,
    /// Too many other questions wait for the same caller.
    #[error(
        "callsheet declined a question of the tool, and no user did: too many questions of its server wait already; call it again when they are answered"
    )]
    TooMany,
    /// The client of the call gives no such input.
    #[error(
        "callsheet declined a question of the tool, and no user did: the client of this call answers no questions; use one that does, such as `callsheet call`"
    )]
    NotOffered,
    /// The configuration does not let the server request it.
    #[error(
        "callsheet declined a question of the tool, and no user did: the configuration does not let its server ask; add \"elicitation\" to `interaction` of its scenario"
    )]
    NotAllowed,
    /// The client of the call gave no answer.
    #[error(
        "callsheet declined a question of the tool, and no user did: the client of the call gave no answer in time; call it again, and answer within `calls.input_timeout` (`mcp.input_timeout` for MCP clients)"
    )]
    NotGiven,
}

/// The parts of a question to the user that are shown.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ElicitationForm<'a> {
    message: Option<String>,
    mode: Option<String>,
    #[serde(borrow)]
    requested_schema: Option<&'a RawValue>,
    url: Option<String>,
}

impl InputMethod {
    /// The kind of input that this method requests.
    pub fn parse(method: &str) -> Option<Self> {
        [Self::Elicitation, Self::Sampling, Self::Roots]
            .into_iter()
            .find(|known| known.as_str() == method)
    }

    /// The method.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }
}

impl fmt::Display for InputMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl InputWanted {
    /// A question to the user with this message and the JSON Schema of the answer.
    pub fn question(message: &str, schema: &JsonText) -> Self {
        let message = serde_json::Value::from(message);
        let params = format!(
            r#"{{"message":{message},"requestedSchema":{}}}"#,
            schema.get()
        );
        Self {
            method: InputMethod::Elicitation,
            params: JsonText::known(params),
        }
    }

    /// The result with which a user accepts a question: `content` is the text of one JSON object.
    pub fn accepted(content: &JsonText) -> JsonText {
        JsonText::known(format!(
            r#"{{"action":"accept","content":{}}}"#,
            content.get()
        ))
    }

    /// The message for the user; empty if there is none.
    pub fn message(&self) -> String {
        self.read()
            .and_then(|question| question.message)
            .unwrap_or_default()
    }

    /// The JSON Schema of the answer, if the request has one.
    pub fn schema(&self) -> Option<JsonText> {
        self.read()?
            .requested_schema
            .map(|schema| JsonText::known(schema.get()))
    }

    /// The address to which the user is sent, if the request does that instead of a form.
    pub fn url(&self) -> Option<String> {
        let question = self.read()?;
        question
            .url
            .filter(|_| question.mode.as_deref() == Some("url"))
    }

    /// Whether a caller with these offers can answer it.
    pub fn is_offered(&self, offers: CallerOffers) -> bool {
        match self.method {
            InputMethod::Elicitation => match self.read().map(|question| question.mode).as_ref() {
                Some(None) => offers.elicitation_form,
                Some(Some(mode)) if mode == "form" => offers.elicitation_form,
                Some(Some(mode)) if mode == "url" => offers.elicitation_url,
                _ => false,
            },
            InputMethod::Sampling => offers.sampling,
            InputMethod::Roots => offers.roots,
        }
    }

    fn read(&self) -> Option<ElicitationForm<'_>> {
        serde_json::from_str(self.params.get()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(method: InputMethod, params: &str) -> InputWanted {
        InputWanted {
            method,
            params: JsonText::parse(params).unwrap(),
        }
    }

    #[test]
    fn a_question_shows_its_message_and_schema_and_is_offered_by_its_mode() {
        let form = CallerOffers {
            elicitation_form: true,
            ..CallerOffers::default()
        };
        let url = CallerOffers {
            elicitation_url: true,
            ..CallerOffers::default()
        };
        let question = InputWanted::question(
            "Name \"x\"?",
            &JsonText::parse(r#"{"type": "object"}"#).unwrap(),
        );
        assert_eq!(&*question.message(), "Name \"x\"?");
        assert_eq!(question.schema().unwrap().get(), r#"{"type": "object"}"#);
        assert!(question.is_offered(form) && !question.is_offered(url));
        let sent = wanted(
            InputMethod::Elicitation,
            r#"{"mode":"url","message":"Go","url":"https://x.test/"}"#,
        );
        assert_eq!(sent.url().as_deref(), Some("https://x.test/"));
        assert!(sent.is_offered(url) && !sent.is_offered(form));
        for unusable in [r#"{"mode":"dance"}"#, "[]", "7"] {
            let unusable = wanted(InputMethod::Elicitation, unusable);
            assert!(
                !unusable.is_offered(form) && !unusable.is_offered(url),
                "{unusable:?}"
            );
            assert!(unusable.message().is_empty());
            assert_eq!(unusable.schema(), None);
            assert_eq!(unusable.url(), None);
        }
    }

    #[test]
    fn other_kinds_are_offered_each_by_itself() {
        let sampling = wanted(InputMethod::Sampling, "{}");
        let roots = wanted(InputMethod::Roots, "{}");
        let offers = CallerOffers {
            sampling: true,
            ..CallerOffers::default()
        };
        assert!(sampling.is_offered(offers) && !roots.is_offered(offers));
        for method in [
            InputMethod::Elicitation,
            InputMethod::Sampling,
            InputMethod::Roots,
        ] {
            assert_eq!(InputMethod::parse(method.as_str()), Some(method));
        }
        assert_eq!(InputMethod::parse("tools/call"), None);
    }
}
