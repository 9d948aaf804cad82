//! The forms of a call: as it is requested, as it is ready to be sent, and as it was answered.

use std::sync::Arc;
use std::time::Duration;

use super::held::CallerKey;
use super::requester::Requester;
use super::status_numbers::{ANSWERED, GOES_ON};
use super::track::FollowUp;
use super::{ExecuteError, FailureCode};
use crate::catalog::ViewQuery;
use crate::model::{
    ApprovalRequest, ApprovalState, CallerInfo, JsonText, NamedVersion, PeerIdentity, Permission,
    ScenarioName, StoredAnswer, ToolId, ViewTool, short_caller_text,
};
use crate::protocols::{DeclinedInput, InputRound, Outcome};
use crate::runtime::ReservedBytes;

/// The code of a stored answer whose tool goes on and cannot be followed.
pub(super) const UNTRACKED: &str = "untracked";
/// The beginning of the error of such an answer; the reason follows.
pub(super) const UNTRACKED_ERROR: &str = "it goes on, and cannot be followed: ";

/// The request of a caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A published name, `scenario/tool`, or an original name that only one scenario has.
    pub name: String,
    /// The text of one JSON object.
    pub arguments: JsonText,
    /// The scenario, if the caller names it. Then `name` may be the tool's original name.
    pub scenario: Option<ScenarioName>,
    /// The chat.
    pub chat: Option<String>,
    /// The profile.
    pub profile: Option<String>,
    /// The level that the caller says it has. It lowers that of the profile and never raises it.
    pub permission: Option<Permission>,
    /// The user, for protocols that pass it on.
    pub user_id: Option<Arc<str>>,
    /// The revision of the list that the name was taken from. Without it the name is looked up in
    /// the current list.
    pub revision: Option<String>,
    /// The version of the tool's definition that the call was made for. With another one now, the
    /// call is refused.
    pub definition_version: Option<NamedVersion>,
    /// Whether a name that means no tool, or several, in the current list means what it meant in
    /// the latest remembered list in which it meant one. For callers that cannot say a revision.
    pub remembered: bool,
    /// The input with which a call is sent again that needed some.
    pub resumed: Option<InputRound>,
    /// The name of the client that sent it, for the logs and for those that decide about it.
    pub client: Option<String>,
    /// Whether the outcome of the same call is handed out, once, if a human decided about it
    /// meanwhile.
    pub collects: bool,
    /// On whose behalf it is made.
    pub requester: Requester,
    /// The tool, if what `name` means was looked up before.
    pub resolved: Option<ToolId>,
    /// The id under which its caller follows it, if it does.
    pub call_id: Option<Arc<str>>,
}

/// A call that passed all checks and still has to get a permit.
#[derive(Debug, Clone)]
pub struct PreparedCall {
    /// The tool that runs the call, as the caller's scope has it.
    pub tool: Arc<ViewTool>,
    /// The definition that was called, if the tool is its activity.
    pub definition: Option<Arc<ViewTool>>,
    /// The caller's scope.
    pub scope: ViewQuery,
    /// The text of one JSON object, which fits the tool's schema.
    pub arguments: JsonText,
    /// The user, for protocols that pass it on.
    pub user_id: Option<Arc<str>>,
    /// The version of the called tool's definition that the call was made for.
    pub made_for: Option<NamedVersion>,
    /// The version of the tool's definition that a person approved.
    pub approved: Option<NamedVersion>,
    /// The peer that the call is for: it is sent to no other. Without it, the call goes to the peer
    /// that answers for the scenario at that time.
    pub owner: Option<PeerIdentity>,
    /// The limit for the call, instead of the one that the tool declares.
    pub timeout: Option<Duration>,
    /// Whether an operation that continues after the answer is followed.
    pub follow: bool,
    /// JSON pointers to members that were `null` for "not set" and were taken out of the arguments.
    pub adjusted: Vec<String>,
    /// The input with which the call is sent again.
    pub resumed: Option<InputRound>,
    /// Whether the outcome of the same call is handed out if a human decided about it meanwhile.
    pub collects: bool,
    /// On whose behalf it is made.
    pub requester: Requester,
    /// The name of the client that sent it.
    pub client: Option<Arc<str>>,
}

/// A call that its scenario answered.
#[derive(Debug, Clone)]
pub struct CallResponse {
    /// The tool that ran.
    pub tool: Arc<ViewTool>,
    /// The definition that was called, if the tool is its activity.
    pub definition: Option<Arc<ViewTool>>,
    /// The answer of the scenario. It may be a failure, or say that the run continues.
    pub outcome: Outcome,
    /// The URL that it was sent to, without credentials. Empty if the call is latent, which is sent
    /// nowhere.
    pub url: String,
    /// The time from the request to the answer, with all waiting.
    pub took: Duration,
    /// How many times it was sent. 0 if the call is latent. More than once only if the tool is
    /// idempotent, or if no scenario can have seen it before.
    pub attempts: u32,
    /// JSON pointers to members that were `null` for "not set" and were taken out before the call
    /// was checked and sent.
    pub adjusted: Vec<String>,
    /// Why a question of the tool was declined without its user, if one was.
    pub declined: Option<DeclinedInput>,
    /// The operation that continues after the answer, if there is one.
    pub going: FollowUp,
    /// What is reserved for the outcome, until the answer is made of it. `None` if the call is
    /// latent: its outcome is a part of its arguments.
    pub(super) _held: Option<Arc<ReservedBytes>>,
}

impl PreparedCall {
    /// A call of this requester in this scope, for the peer that answers for the scenario at that
    /// time.
    pub fn new(
        tool: Arc<ViewTool>,
        scope: ViewQuery,
        arguments: JsonText,
        requester: Requester,
    ) -> Self {
        Self {
            tool,
            definition: None,
            scope,
            arguments,
            user_id: None,
            made_for: None,
            approved: None,
            owner: None,
            timeout: None,
            follow: true,
            adjusted: Vec::new(),
            resumed: None,
            collects: false,
            requester,
            client: None,
        }
    }

    /// The tool as it was called: the definition, or else the tool that runs it.
    pub(super) fn called(&self) -> &Arc<ViewTool> {
        self.definition.as_ref().unwrap_or(&self.tool)
    }

    /// Where it comes from.
    pub(super) fn caller(&self) -> CallerInfo {
        let text = |text: &Option<String>| text.as_deref().map(Into::into);
        CallerInfo {
            chat: text(&self.scope.chat),
            profile: text(&self.scope.profile),
            permission: self.scope.permission,
            user_id: self.user_id.clone(),
            client: self.client.clone(),
        }
    }

    /// Whose share of permits and bytes it uses.
    pub(super) fn caller_key(&self) -> CallerKey {
        CallerKey::of(&self.requester, &self.scope)
    }
}

impl Request {
    /// A call in the global scope. A face gives the access that the request was judged to have; a
    /// program that embeds the library has [`Requester::full_access`].
    pub fn new(name: impl Into<String>, arguments: JsonText, requester: Requester) -> Self {
        Self {
            name: name.into(),
            arguments,
            scenario: None,
            chat: None,
            profile: None,
            permission: None,
            user_id: None,
            revision: None,
            definition_version: None,
            remembered: false,
            resumed: None,
            client: None,
            collects: false,
            requester,
            resolved: None,
            call_id: None,
        }
    }

    /// The scope of the call.
    pub fn scope(&self) -> ViewQuery {
        ViewQuery {
            profile: self.profile.clone(),
            permission: self.permission,
            chat: self.chat.clone(),
            ..ViewQuery::default()
        }
    }

    /// The name of the client, shortened: people are shown all of it.
    pub(super) fn shown_client(&self) -> Option<Arc<str>> {
        self.client
            .as_deref()
            .map(|client| short_caller_text(client).into())
    }
}

impl CallResponse {
    /// The tool as it was called: the definition, or else the tool that ran.
    pub fn called(&self) -> &ViewTool {
        self.definition.as_ref().unwrap_or(&self.tool)
    }

    /// The same, without what is reserved for its outcome: another table counts it.
    pub(super) fn without_reservation(self) -> Self {
        Self {
            _held: None,
            ..self
        }
    }

    /// Whether work goes on after the answer, as far as the scenario said so.
    fn goes_on(&self) -> bool {
        self.outcome.running.is_some() || !matches!(self.going, FollowUp::Over)
    }

    /// The number of the HTTP status that a call over HTTP gets.
    pub(super) fn status_number(&self) -> u16 {
        if self.goes_on() { GOES_ON } else { ANSWERED }
    }

    /// How long the call took, in milliseconds.
    pub fn took_ms(&self) -> u64 {
        u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX)
    }

    /// What is kept of it for a caller that gets it later.
    pub(super) fn to_stored(&self) -> StoredAnswer {
        let Outcome {
            success,
            result,
            content,
            error,
            code,
            ..
        } = &self.outcome;
        let text = |text: &Option<String>| text.as_deref().map(Arc::<str>::from);
        let answer = StoredAnswer {
            success: *success,
            result: result.clone(),
            content: content.clone(),
            error: text(error),
            code: text(code),
            took_ms: self.took_ms(),
            operation: None,
        };
        match &self.going {
            FollowUp::Over => answer,
            FollowUp::Followed(operation) => StoredAnswer {
                operation: Some(Arc::clone(&operation.id)),
                ..answer
            },
            FollowUp::Untracked(why) => {
                let why: Arc<str> = format!("{UNTRACKED_ERROR}{why}").into();
                let error = answer.error.or(Some(why));
                StoredAnswer {
                    error,
                    code: answer.code.or(Some(UNTRACKED.into())),
                    ..answer
                }
            }
        }
    }
}

/// The approval whose outcome the caller is given, because it made the same call again after a
/// person had decided about it.
pub(super) fn collected(
    answered: &Result<CallResponse, ExecuteError>,
) -> Option<&Arc<ApprovalRequest>> {
    match answered {
        Err(ExecuteError::ApprovalRequired {
            waiting: Some(request),
            ..
        }) => Some(request).filter(|request| request.state.is_over()),
        _ => None,
    }
}

/// The word for the outcome of an approval that is over.
fn collected_outcome(request: &ApprovalRequest) -> &'static str {
    match request.state {
        ApprovalState::Rejected => FailureCode::Rejected.as_str(),
        ApprovalState::Expired => FailureCode::ApprovalExpired.as_str(),
        ApprovalState::Unknown => FailureCode::UnknownOutcome.as_str(),
        _ if request.answer.as_ref().is_some_and(|answer| answer.success) => "ok",
        _ => "failed",
    }
}

/// The word for the outcome in the metrics.
pub(super) fn outcome(answered: &Result<CallResponse, ExecuteError>) -> &'static str {
    if let Some(request) = collected(answered) {
        return collected_outcome(request);
    }
    match answered {
        Ok(answered) if answered.outcome.running.is_some() => "running",
        Ok(answered) if answered.outcome.input_required.is_some() => "input_required",
        Ok(answered) if answered.outcome.success => "ok",
        Ok(_) => "failed",
        Err(refused) => refused.kind(),
    }
}
