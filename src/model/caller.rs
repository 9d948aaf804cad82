//! The client that requests a call.

use std::sync::Arc;

use super::profile::Permission;

/// Where a call comes from, as far as its caller says. An approval is bound to all of it but the
/// client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallerInfo {
    /// The conversation.
    pub chat: Option<Arc<str>>,
    /// The profile (a persona, a role).
    pub profile: Option<Arc<str>>,
    /// The level that it says it has.
    pub permission: Option<Permission>,
    /// The user, as the caller names him.
    pub user_id: Option<Arc<str>>,
    /// The client: the name of an MCP client, or the `User-Agent` of another one.
    pub client: Option<Arc<str>>,
}

/// The longest text of a caller that is kept, in characters.
const CALLER_TEXT_CHARACTERS_MAX: usize = 200;

/// A text of a caller, shortened: people are shown all of it.
pub(crate) fn short_caller_text(text: &str) -> String {
    text.chars().take(CALLER_TEXT_CHARACTERS_MAX).collect()
}

/// Whether what came of a call that belongs to the access `owner` belongs to this access too.
/// `None` for what an earlier version stored: that belongs to every access.
pub(crate) fn belongs_to_access(owner: Option<&str>, access: &str) -> bool {
    owner.is_none_or(|owner| owner == access)
}

impl CallerInfo {
    /// Whether a subscriber to a chat or a profile (`None`: all of them) gets the events of this
    /// caller.
    pub fn is_within(&self, chat: Option<&str>, profile: Option<&str>) -> bool {
        let covers = |wanted: Option<&str>, own: &Option<Arc<str>>| {
            wanted.is_none_or(|wanted| own.as_deref() == Some(wanted))
        };
        covers(chat, &self.chat) && covers(profile, &self.profile)
    }
}
