//! Reports that sessions send by themselves.

use crate::model::ScenarioName;
use crate::protocols::{EndReason, Hint};

/// A report of one session.
pub(in crate::engine) struct SessionNews {
    pub(in crate::engine) name: ScenarioName,
    /// The number of the session, which distinguishes it from those before and after it.
    pub(in crate::engine) number: u64,
    pub(in crate::engine) news: News,
}

/// The content of a report.
#[derive(Debug)]
pub(in crate::engine) enum News {
    /// The list may have changed.
    Hint(Hint),
    /// No further hint comes, though the session may live on.
    HintsEnded,
    /// It ended.
    Ended(EndReason),
}
