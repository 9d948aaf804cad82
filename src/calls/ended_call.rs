//! What is kept of every call that is over. Its arguments and its result are no part of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::not_approved::Reader;
use super::requester::FULL_ACCESS;
use super::status_numbers::ANSWERED;
use super::{CallEnd, CallResponse, ExecuteError, PreparedCall, Request};
use crate::model::{ApprovalRequest, ApprovalState, CallerInfo, ToolId, short_caller_text};

/// The longest text of an error that is kept, in characters.
const LONGEST_ERROR: usize = 500;

/// Outcomes that are no failure.
const WELL: [&str; 4] = ["ok", "running", "input_required", "approval_required"];

/// A call that is over.
#[derive(Debug, Clone)]
pub struct EndedCall {
    /// When it was requested.
    pub at: Timestamp,
    /// The tool, if one was found.
    pub tool: Option<ToolId>,
    /// The published name of the tool, or the name that the caller used.
    pub name: String,
    /// The conversation.
    pub chat: Option<String>,
    /// The profile.
    pub profile: Option<String>,
    /// The user, as the caller names him.
    pub user: Option<String>,
    /// The client: the name of an MCP client, or the `User-Agent` of another one.
    pub client: Option<String>,
    /// The identity of the access that it belongs to. Calls that an earlier version stored without
    /// it count as made with every right.
    pub access: Arc<str>,
    /// The word for its outcome, as metrics count it.
    pub outcome: Cow<'static, str>,
    /// The error, shortened: of the tool, or why the call was refused.
    pub error: Option<String>,
    /// The code of the error, as the scenario or callsheet wrote it.
    pub code: Option<String>,
    /// The HTTP status that its caller got or would have got; `None` if the caller went away before
    /// it was sent.
    pub status: Option<u16>,
    /// The time from the request to the answer, with all waiting.
    pub took: Duration,
    /// How many times it was sent.
    pub attempts: u32,
    /// The id under which its caller followed it, if it did.
    pub call_id: Option<Arc<str>>,
    /// The approval that it waits for, or with which it was sent.
    pub approval: Option<Arc<str>>,
    /// The version of the definition that it was sent for, whole.
    pub definition_version: Option<String>,
    /// What ran, if the tool is a definition that an activity implements.
    pub activity: Option<ToolId>,
    /// What a person has to know of the outcome beside its word and its error.
    pub note: Option<String>,
}

impl EndedCall {
    /// A call that is requested now; the end is set later.
    pub(super) fn of_request(request: &Request, at: Timestamp) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(short_caller_text);
        Self {
            chat: text(&request.chat),
            profile: text(&request.profile),
            user: request.user_id.as_deref().map(short_caller_text),
            client: text(&request.client),
            call_id: request.call_id.clone(),
            ..Self::new(&request.name, &request.requester.access, at)
        }
    }

    /// An approved call.
    pub(super) fn of_approved(ready: &PreparedCall, approval: &Arc<str>, at: Timestamp) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(short_caller_text);
        Self {
            tool: Some(ready.tool.id.clone()),
            chat: text(&ready.scope.chat),
            profile: text(&ready.scope.profile),
            user: ready.user_id.as_deref().map(short_caller_text),
            client: ready.client.as_deref().map(short_caller_text),
            approval: Some(Arc::clone(approval)),
            ..Self::new(ready.tool.name.as_str(), &ready.requester.access, at)
        }
    }

    /// A call that needed approval and got no answer; why is set later.
    pub(super) fn of_approval(request: &ApprovalRequest) -> Self {
        let text = |text: &Option<Arc<str>>| text.as_deref().map(short_caller_text);
        let CallerInfo {
            chat,
            profile,
            permission: _,
            user_id,
            client,
        } = &request.caller;
        let access = request.access.clone().unwrap_or_else(|| FULL_ACCESS.into());
        Self {
            tool: Some(request.tool.clone()),
            chat: text(chat),
            profile: text(profile),
            user: text(user_id),
            client: text(client),
            approval: Some(Arc::clone(&request.id)),
            ..Self::new(&request.name, &access, request.asked_at)
        }
    }

    /// Sets why it has no answer.
    pub(super) fn unanswered(&mut self, code: &str, why: &str) {
        self.code = Some(short_caller_text(code));
        self.error = Some(short_error(why));
    }

    fn new(name: &str, access: &Arc<str>, at: Timestamp) -> Self {
        Self {
            at,
            tool: None,
            name: short_caller_text(name),
            chat: None,
            profile: None,
            user: None,
            client: None,
            access: Arc::clone(access),
            outcome: Cow::Borrowed(""),
            error: None,
            code: None,
            status: None,
            took: Duration::ZERO,
            attempts: 0,
            call_id: None,
            approval: None,
            definition_version: None,
            activity: None,
            note: None,
        }
    }

    /// Whether it failed, or was refused.
    pub fn is_failure(&self) -> bool {
        !WELL.contains(&&*self.outcome)
    }

    /// Sets what its caller was given: the outcome of the same call, about which a person decided
    /// before.
    pub(super) fn collected(&mut self, request: &Arc<ApprovalRequest>) {
        self.approval = Some(Arc::clone(&request.id));
        self.note = Some(short_error(&collected_note(request)));
        match CallEnd::of_approval(Arc::clone(request), Vec::new()) {
            CallEnd::Failed(failure) => {
                self.status = Some(failure.status_number());
                let why = failure.not_approved(Reader::Program);
                let why = why.unwrap_or_else(|| failure.to_string());
                self.unanswered(failure.code.as_str(), &why);
            }
            CallEnd::Answered(answer) => {
                self.status = Some(ANSWERED);
                self.error = answer.error.as_deref().map(short_error);
                self.code = answer.code.as_deref().map(short_caller_text);
            }
            // Only calls that are over have an outcome.
            CallEnd::AwaitsApproval(_) | CallEnd::NeedsInput(_) => {}
        }
    }

    /// Sets what the answer says.
    pub(super) fn answered(&mut self, answered: &Result<CallResponse, ExecuteError>) {
        self.status = Some(match answered {
            Ok(answered) => answered.status_number(),
            Err(refused) => refused.status_number(),
        });
        match answered {
            Ok(answered) => {
                answered.called().name.as_str().clone_into(&mut self.name);
                self.activity = answered
                    .definition
                    .as_ref()
                    .map(|_| answered.tool.id.clone());
                self.definition_version = Some(answered.called().tool.version().to_string());
                self.attempts = answered.attempts;
                self.note = answered.declined.map(|why| short_error(&why.to_string()));
                let outcome = &answered.outcome;
                self.error = outcome
                    .error
                    .as_deref()
                    .filter(|_| !outcome.success)
                    .map(short_error);
                self.code = outcome
                    .code
                    .as_deref()
                    .filter(|_| !outcome.success)
                    .map(short_caller_text);
            }
            Err(refused) => {
                self.error = Some(short_error(&refused.to_string()));
                self.code = Some(refused.kind().to_owned());
            }
        }
        match answered {
            Err(
                ExecuteError::Failed { attempts, .. }
                | ExecuteError::ResultLeftOut { attempts, .. },
            ) => {
                self.attempts = *attempts;
            }
            Err(ExecuteError::ApprovalRequired {
                waiting: Some(waiting),
                ..
            }) => {
                self.approval = Some(Arc::clone(&waiting.id));
            }
            _ => {}
        }
    }
}

/// What its caller was given in place of a call: `the outcome of approval 0f.., approved by Ada`.
fn collected_note(request: &ApprovalRequest) -> String {
    let decided = match (&request.decided, request.state) {
        (None, _) => String::new(),
        (Some(decided), ApprovalState::Rejected) => format!(", rejected by {}", decided.by),
        (Some(decided), ApprovalState::Expired) => format!(", ended by {}", decided.by),
        (Some(decided), _) => format!(", approved by {}", decided.by),
    };
    format!(
        "it was not sent again: its caller was given the outcome of approval {}{decided}",
        request.id
    )
}

/// The text of an error, shortened.
fn short_error(text: &str) -> String {
    text.chars().take(LONGEST_ERROR).collect()
}
