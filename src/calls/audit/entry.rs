//! One line of the audit log.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::calls::approval::binding;
use crate::calls::{CallResponse, ExecuteError, PreparedCall, Request};
use crate::model::{JsonText, ToolId};

/// The longest text of a caller that is written, in characters.
const LONGEST: usize = 200;

/// The data of a call that is over.
#[derive(Debug)]
pub(in crate::calls) struct AuditEntry {
    at: Timestamp,
    tool: Option<ToolId>,
    name: String,
    chat: Option<String>,
    profile: Option<String>,
    user: Option<String>,
    client: Option<String>,
    outcome: &'static str,
    status: Option<u16>,
    took: Duration,
    attempts: u32,
    approval: Option<Arc<str>>,
    arguments: JsonText,
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
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    duration_ms: f64,
    attempts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<&'a str>,
    arguments_digest: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<&'a RawValue>,
}

impl AuditEntry {
    /// The entry of a call that is requested.
    pub(in crate::calls) fn of_request(request: &Request) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(short);
        Self {
            chat: text(&request.chat),
            profile: text(&request.profile),
            user: request.user_id.as_deref().map(short),
            client: text(&request.client),
            ..Self::new(&request.name, &request.arguments)
        }
    }

    /// The entry of an approved call.
    pub(in crate::calls) fn of_approved(ready: &PreparedCall, approval: &Arc<str>) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(short);
        Self {
            chat: text(&ready.scope.chat),
            profile: text(&ready.scope.profile),
            user: ready.user_id.as_deref().map(short),
            approval: Some(Arc::clone(approval)),
            ..Self::new(ready.tool.name.as_str(), &ready.arguments)
        }
    }

    fn new(name: &str, arguments: &JsonText) -> Self {
        Self {
            at: Timestamp::UNIX_EPOCH,
            tool: None,
            name: short(name),
            chat: None,
            profile: None,
            user: None,
            client: None,
            outcome: "",
            status: None,
            took: Duration::ZERO,
            attempts: 0,
            approval: None,
            arguments: arguments.clone(),
        }
    }

    /// Sets the outcome.
    pub(in crate::calls) fn answered(&mut self, answered: &Result<CallResponse, ExecuteError>) {
        self.status = Some(match answered {
            Ok(answered) => answered.status().as_u16(),
            Err(refused) => refused.status().as_u16(),
        });
        match answered {
            Ok(answered) => {
                answered.tool.name.as_str().clone_into(&mut self.name);
                self.attempts = answered.attempts;
            }
            Err(ExecuteError::Failed { attempts, .. }) => self.attempts = *attempts,
            Err(ExecuteError::ApprovalRequired { waiting: Some(waiting), .. }) => {
                self.approval = Some(Arc::clone(&waiting.id));
            }
            Err(_) => {}
        }
    }

    /// Sets the end: the time of the request, the tool if one was found, and the outcome.
    pub(in crate::calls) fn over(&mut self, at: Timestamp, id: Option<&ToolId>, outcome: &'static str, took: Duration) {
        (self.at, self.tool, self.outcome, self.took) = (at, id.cloned(), outcome, took);
    }

    /// The size of its arguments, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.arguments.get().len()
    }

    /// The line with its line feed, with the arguments themselves or only their digest.
    pub(super) fn line(&self, whole: bool) -> io::Result<Vec<u8>> {
        // JSON may have line breaks between its tokens, and never within them (RFC 8259 section 7).
        let text = self.arguments.get();
        let one_line = whole.then(|| text.replace(['\n', '\r'], " "));
        let arguments: Option<&RawValue> = one_line.as_deref().map(serde_json::from_str).transpose()?;
        let line = AuditLine {
            time: self.at.to_string(),
            id: Uuid::new_v4().to_string(),
            scenario: self.tool.as_ref().map(|id| id.scenario.as_str()),
            tool: self.tool.as_ref().map(|id| &*id.tool),
            name: &self.name,
            chat: self.chat.as_deref(),
            profile: self.profile.as_deref(),
            user: self.user.as_deref(),
            client: self.client.as_deref(),
            outcome: self.outcome,
            status: self.status,
            duration_ms: (self.took.as_secs_f64() * 1e6).round() / 1e3,
            attempts: self.attempts,
            approval: self.approval.as_deref(),
            arguments_digest: format!("sha256:{}", binding::digest(text)),
            arguments,
        };
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        Ok(line)
    }
}

fn short(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}
