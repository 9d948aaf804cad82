//! What happens in a call while it runs, for its caller.

use std::sync::Arc;

use jiff::Timestamp;

use super::{CallerInfo, JsonText};

/// Something that happened in a call. Only its caller and operators may see it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEvent {
    /// The id of the call, which only its caller knows.
    pub call_id: Arc<str>,
    /// The identity that the call belongs to.
    pub owner: Arc<str>,
    /// The name of the tool that the caller used.
    pub tool_name: Arc<str>,
    /// Where the call comes from.
    pub caller: CallerInfo,
    /// When it happened.
    pub at: Timestamp,
    /// What happened.
    pub what: CallEventKind,
}

/// What happened in a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEventKind {
    /// The tool reported its progress.
    Progress {
        /// How much is done.
        done: f64,
        /// The amount that is complete.
        total: Option<f64>,
        /// For people.
        message: Option<String>,
    },
    /// The tool sent a log message.
    Log {
        /// How severe it is.
        level: &'static str,
        /// The part of the scenario that wrote it.
        logger: Option<String>,
        /// What it says.
        data: JsonText,
    },
    /// The tool needs input, under this id.
    InputNeeded(Arc<str>),
    /// The tool got its input, or does not wait for it any more.
    InputOver(Arc<str>),
}

impl CallEvent {
    /// Roughly how many bytes it needs in memory.
    pub(crate) fn weight(&self) -> usize {
        self.tool_name.len()
            + match &self.what {
                CallEventKind::Progress { message, .. } => message.as_ref().map_or(0, String::len),
                CallEventKind::Log { data, .. } => data.get().len(),
                CallEventKind::InputNeeded(_) | CallEventKind::InputOver(_) => 0,
            }
    }
}
