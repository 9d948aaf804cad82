//! One line of the audit log.

use std::io;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::calls::approval::binding;
use crate::calls::ended_call::EndedCall;
use crate::model::JsonText;

/// A call that is over, with its arguments.
#[derive(Debug)]
pub(in crate::calls) struct AuditEntry {
    /// The call.
    pub(in crate::calls) call: Arc<EndedCall>,
    /// Its arguments, of which the log has a digest at least.
    pub(in crate::calls) arguments: JsonText,
    /// The reason that the caller's model gave for it, shortened.
    pub(in crate::calls) reasoning: Option<String>,
}

/// The written form. `config/default.toml` documents the keys.
#[derive(Serialize)]
struct AuditLine<'a> {
    time: String,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    duration_ms: f64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
    arguments_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
}

impl AuditEntry {
    /// The size of its arguments, in bytes.
    pub(in crate::calls) fn bytes(&self) -> usize {
        self.arguments.get().len()
    }

    /// The line with its line feed, with the arguments themselves or only their digest.
    pub(super) fn line(&self, whole: bool) -> io::Result<Vec<u8>> {
        // JSON may have line breaks between its tokens, and never within them (RFC 8259 section 7).
        let text = self.arguments.get();
        let one_line = whole.then(|| text.replace(['\n', '\r'], " "));
        let arguments: Option<&RawValue> =
            one_line.as_deref().map(serde_json::from_str).transpose()?;
        let call = &self.call;
        let line = AuditLine {
            time: call.at.to_string(),
            id: Uuid::new_v4().to_string(),
            scenario: call.tool.as_ref().map(|id| id.scenario.as_str()),
            tool: call.tool.as_ref().map(|id| &*id.tool),
            name: &call.name,
            chat: call.chat.as_deref(),
            profile: call.profile.as_deref(),
            user: call.user.as_deref(),
            client: call.client.as_deref(),
            outcome: &call.outcome,
            status: call.status,
            duration_ms: (call.took.as_secs_f64() * 1e6).round() / 1e3,
            attempts: call.attempts,
            approval: call.approval.as_deref(),
            note: call.note.as_deref(),
            activity: call.activity.as_ref().map(ToString::to_string),
            reasoning: self.reasoning.as_deref(),
            arguments_digest: format!("sha256:{}", binding::digest(text)),
            arguments,
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        Ok(line)
    }
}
