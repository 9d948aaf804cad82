//! What became of one call, in a form that is stored with its turn.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::calls::{GoingOn, ToolAnswer, Violation};
use crate::model::JsonText;
use crate::protocols::DeclinedInput;

/// The state of a call in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnCallStatus {
    /// It waits for its turn: `parallel` of this turn are under way.
    Queued,
    /// It is under way.
    Running,
    /// Its tool waits for input of its caller.
    WaitingForInput,
    /// It waits until a person approves it.
    WaitingForApproval,
    /// Its tool goes on as an operation.
    Operation,
    /// Its tool succeeded.
    Result,
    /// Its tool failed, or no valid answer came.
    Failed,
    /// It was not sent.
    Refused,
    /// Its tool is none of callsheet's: the calling program answers it.
    NotOurs,
    /// Another call of its turn was enough.
    NotNeeded,
    /// It had begun when an earlier daemon ended. It is not sent again.
    #[serde(rename = "unknown-outcome")]
    UnknownOutcome,
}

impl TurnCallStatus {
    /// All states, in the order in which a call may pass through them.
    pub const ALL: [Self; 11] = [
        Self::Queued,
        Self::Running,
        Self::WaitingForInput,
        Self::WaitingForApproval,
        Self::Operation,
        Self::Result,
        Self::Failed,
        Self::Refused,
        Self::NotOurs,
        Self::NotNeeded,
        Self::UnknownOutcome,
    ];

    /// Its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::WaitingForInput => "waiting_for_input",
            Self::WaitingForApproval => "waiting_for_approval",
            Self::Operation => "operation",
            Self::Result => "result",
            Self::Failed => "failed",
            Self::Refused => "refused",
            Self::NotOurs => "not_ours",
            Self::NotNeeded => "not_needed",
            Self::UnknownOutcome => "unknown-outcome",
        }
    }

    /// Whether the answer to the model is marked as an error.
    pub fn is_error(self) -> bool {
        matches!(self, Self::Failed | Self::Refused | Self::UnknownOutcome)
    }
}

/// What became of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    /// Its state.
    pub status: TurnCallStatus,
    /// What the model gets in place of a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// What the model gets behind the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The result, any JSON value.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_text")]
    pub result: Option<JsonText>,
    /// The whole result of an MCP server, with its content blocks.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "json_text")]
    pub content: Option<JsonText>,
    /// The short word for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How the arguments do not fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The names of tools that may be meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    /// The approval that it waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Arc<str>>,
    /// The operation that goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation_id: Option<Arc<str>>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<u64>,
    /// JSON pointers to members that were `null` for "not set" and were taken out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adjusted: Vec<String>,
    /// The definition that was called, if an activity ran it, as `scenario/tool`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    /// Why a question of the tool was declined without its user, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declined: Option<DeclinedInput>,
}

impl From<&Settled> for ToolAnswer {
    /// The answer of a call that is over, as it is kept for its caller.
    fn from(settled: &Settled) -> Self {
        let going = settled
            .operation_id
            .clone()
            .filter(|_| settled.status == TurnCallStatus::Operation);
        Self {
            success: matches!(
                settled.status,
                TurnCallStatus::Result | TurnCallStatus::Operation
            ),
            result: settled.result.clone(),
            content: settled.content.clone(),
            error: settled.said.as_deref().map(Into::into),
            code: settled.code.as_deref().map(Into::into),
            took_ms: settled.took_ms,
            going: going.map_or(GoingOn::No, GoingOn::As),
            approval: settled.approval_id.clone(),
            adjusted: settled.adjusted.clone(),
            declined: settled.declined,
            ..Self::failed()
        }
    }
}

impl Settled {
    /// A call of which only the state is known yet.
    pub(super) fn new(status: TurnCallStatus) -> Self {
        Self {
            status,
            said: None,
            note: None,
            result: None,
            content: None,
            code: None,
            violations: Vec::new(),
            candidates: Vec::new(),
            approval_id: None,
            operation_id: None,
            took_ms: None,
            adjusted: Vec::new(),
            definition: None,
            declined: None,
        }
    }

    /// A call for which the model gets this text.
    pub(super) fn with_text(status: TurnCallStatus, code: &str, text: impl Into<String>) -> Self {
        Self {
            said: Some(text.into()),
            code: Some(code.to_owned()),
            ..Self::new(status)
        }
    }

    /// The bytes of what is kept of it, roughly. Results count as JSON texts, with their escapes.
    pub(super) fn weight(&self) -> usize {
        let json = [&self.result, &self.content]
            .into_iter()
            .flatten()
            .map(|json| json.get().len());
        let texts = [&self.said, &self.note]
            .into_iter()
            .flatten()
            .map(String::len);
        let violations = self
            .violations
            .iter()
            .map(|violation| violation.pointer.len() + violation.message.len());
        let names = self
            .candidates
            .iter()
            .chain(&self.adjusted)
            .map(String::len);
        json.chain(texts).chain(violations).chain(names).sum()
    }
}

/// A JSON text within a JSON document, as it was written.
mod json_text {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer, de, ser};
    use serde_json::value::RawValue;

    use crate::model::JsonText;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        text: &Option<JsonText>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let raw = text
            .as_ref()
            .map(|text| serde_json::from_str::<&RawValue>(text.get()))
            .transpose();
        raw.map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<JsonText>, D::Error> {
        let raw = Option::<Box<RawValue>>::deserialize(deserializer)?;
        raw.map(|raw| JsonText::parse(raw.get()))
            .transpose()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_as_it_was_and_states_have_their_names() {
        let result = JsonText::parse(r#"{"n":123456789012345678901234567890}"#).unwrap();
        let settled = Settled {
            result: Some(result),
            violations: vec![Violation {
                pointer: "/a".into(),
                message: "is no number".into(),
            }],
            declined: Some(DeclinedInput::NotGiven),
            ..Settled::with_text(
                TurnCallStatus::UnknownOutcome,
                "unknown_outcome",
                "it may have run",
            )
        };
        let stored = serde_json::to_string(&settled).unwrap();
        assert!(
            stored.contains("123456789012345678901234567890"),
            "{stored}"
        );
        assert_eq!(serde_json::from_str::<Settled>(&stored).unwrap(), settled);
        for status in TurnCallStatus::ALL {
            assert_eq!(serde_json::to_value(status).unwrap(), status.as_str());
        }
    }
}
