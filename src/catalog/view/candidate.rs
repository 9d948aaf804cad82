//! A tool that competes for a place in a view.

use std::sync::Arc;

use super::Why;
use crate::model::ViewTool;

/// A tool that may be in the list.
pub(super) struct ViewCandidate {
    pub(super) tool: Arc<ViewTool>,
    /// Where it stands in the usual order.
    pub(super) at: usize,
    pub(super) score: Option<f32>,
    /// Where the conversation carries it.
    pub(super) carried: Option<usize>,
    pub(super) why: Why,
}
