//! A call on its way: as it is asked for, as it is ready to be sent, and as it was answered.

use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;

use super::ExecuteError;
use super::track::FollowUp;
use crate::catalog::ViewQuery;
use crate::model::{JsonText, PeerIdentity, ScenarioName, ViewTool};
use crate::protocols::Outcome;

/// What an asker wants to have called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// A published name, `scenario/tool`, or an original name that only one scenario has.
    pub name: String,
    /// The text of one JSON object.
    pub arguments: JsonText,
    /// Whose tool it is, if the asker says so; then `name` may be the tool's own.
    pub scenario: Option<ScenarioName>,
    /// For which conversation.
    pub chat: Option<String>,
    /// For which profile.
    pub profile: Option<String>,
    /// For whom, where a protocol passes that on.
    pub user_id: Option<Arc<str>>,
    /// The revision of the list that the name was taken from. Without it the name is looked up in the present list.
    pub revision: Option<String>,
}

/// A call for which everything is decided but whether it gets its turn.
#[derive(Debug, Clone)]
pub struct PreparedCall {
    /// The tool, as the asker's scope has it.
    pub tool: Arc<ViewTool>,
    /// The asker's scope.
    pub scope: ViewQuery,
    /// The text of one JSON object, which fits the tool's schema.
    pub arguments: JsonText,
    /// For whom.
    pub user_id: Option<Arc<str>>,
    /// The party that the call is for: it is sent to no other. Without it, to the party that the scenario has now.
    pub owner: Option<PeerIdentity>,
    /// What it may take, instead of what the tool says.
    pub timeout: Option<Duration>,
    /// Whether what goes on after the answer is followed.
    pub follow: bool,
}

/// What came of a call that its scenario answered.
#[derive(Debug, Clone)]
pub struct CallResponse {
    /// The tool that was called.
    pub tool: Arc<ViewTool>,
    /// Its scenario's answer, which may be that it failed, or that it goes on.
    pub outcome: Outcome,
    /// Where it went, without credentials.
    pub url: String,
    /// From the request to the answer, waiting included.
    pub took: Duration,
    /// How often it was sent; more than once only for an idempotent tool, or when nobody had seen it before.
    pub attempts: u32,
    /// What goes on in the scenario.
    pub going: FollowUp,
}

impl PreparedCall {
    /// A call in this scope, of whoever answers for the scenario.
    pub fn new(tool: Arc<ViewTool>, scope: ViewQuery, arguments: JsonText, user_id: Option<Arc<str>>) -> Self {
        Self { tool, scope, arguments, user_id, owner: None, timeout: None, follow: true }
    }
}

impl Request {
    /// A call in the global scope.
    pub fn new(name: impl Into<String>, arguments: JsonText) -> Self {
        Self { name: name.into(), arguments, scenario: None, chat: None, profile: None, user_id: None, revision: None }
    }

    /// The scope it is made in.
    pub fn scope(&self) -> ViewQuery {
        ViewQuery { profile: self.profile.clone(), chat: self.chat.clone(), ..ViewQuery::default() }
    }
}

impl CallResponse {
    /// The status by which `POST /api/v1/tools/execute` answers it.
    pub fn status(&self) -> StatusCode {
        let goes_on = self.outcome.running.is_some() || !matches!(self.going, FollowUp::Over);
        if goes_on { StatusCode::ACCEPTED } else { StatusCode::OK }
    }
}

/// The word under which it is counted.
pub(super) fn outcome(answered: &Result<CallResponse, ExecuteError>) -> &'static str {
    match answered {
        Ok(answered) if answered.outcome.running.is_some() => "running",
        Ok(answered) if answered.outcome.success => "ok",
        Ok(_) => "failed",
        Err(refused) => refused.kind(),
    }
}
