//! What a turn is requested with.

use std::sync::Arc;

use super::read::ReadTurn;
use super::vendors::TurnFormat;
use crate::calls::call_mode::CallMode;
use crate::calls::{Request, Requester};
use crate::catalog::ViewQuery;
use crate::model::{JsonText, Permission};

/// The length of an id that a caller gives: the id of each of its calls is a little longer.
const ID_LENGTH: std::ops::RangeInclusive<usize> = 8..=90;

/// A turn as its caller requests it.
#[derive(Debug)]
pub struct TurnRequest {
    /// The vendor's shape.
    pub format: &'static dyn TurnFormat,
    /// The calls in the response.
    pub read: ReadTurn,
    /// The response as it came.
    pub response: JsonText,
    /// The id that the caller gives it, so that it is never run twice.
    pub id: Option<String>,
    /// The identity of the caller. No other identity may see the turn.
    pub owner: Arc<str>,
    /// The profile.
    pub profile: Option<String>,
    /// The level that the caller says it has.
    pub permission: Option<Permission>,
    /// The chat.
    pub chat: Option<String>,
    /// The user, for protocols that pass it on.
    pub user_id: Option<Arc<str>>,
    /// The list that the names were taken from, as the caller names it.
    pub list: Option<String>,
    /// The revision of that list.
    pub revision: Option<String>,
    /// How many calls are under way at once, at most.
    pub parallel: Option<usize>,
    /// Which of its calls are wanted.
    pub mode: CallMode,
    /// The tools of the calling program itself. With them, any other name that no tool has is a
    /// mistake of the model; without them it may be a tool of the program.
    pub own_tools: Option<Vec<String>>,
    /// Whether the model gets a text that a call waits for approval.
    pub tells_approvals: bool,
    /// The most bytes of text of one result.
    pub text_bytes: Option<usize>,
}

impl TurnRequest {
    /// The scope of its calls.
    pub(super) fn scope(&self) -> ViewQuery {
        ViewQuery {
            profile: self.profile.clone(),
            permission: self.permission,
            chat: self.chat.clone(),
            ..ViewQuery::default()
        }
    }

    /// A call of it, whose tool is looked up elsewhere.
    pub(super) fn call(&self, name: &str, arguments: JsonText) -> Request {
        Request {
            chat: self.chat.clone(),
            profile: self.profile.clone(),
            permission: self.permission,
            user_id: self.user_id.clone(),
            ..Request::new(
                name,
                arguments,
                Requester::with_access(Arc::clone(&self.owner)),
            )
        }
    }

    /// Everything that the calls and messages depend on, as one text. Two requests with the same
    /// text are the same turn.
    pub(super) fn identity(&self) -> String {
        let Self {
            format,
            response,
            owner,
            profile,
            permission,
            chat,
            user_id,
            list,
            mode,
            own_tools,
            tells_approvals,
            ..
        } = self;
        let scope = (owner, profile, chat, user_id);
        format!(
            "{} {scope:?}{} {list:?} {mode} {own_tools:?} {tells_approvals} {:?} {}",
            format.id(),
            // What a turn of an earlier version was is not changed by a level that it has not.
            permission.map_or_else(String::new, |level| format!(" {level}")),
            self.text_bytes,
            response.get()
        )
    }
}

/// Whether a caller may give a turn this id.
pub(super) fn is_id(text: &str) -> bool {
    ID_LENGTH.contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
