//! What is known of a server before it is greeted.

use std::sync::Arc;

use super::eras::Era;
use super::revision::McpRevision;
use crate::model::{Interaction, Target};

/// What is known of a server before it is greeted: from its configuration, and from an earlier
/// connection.
#[derive(Debug)]
pub(super) struct ServerSetup {
    /// The input that it may request of callers.
    pub(super) interaction: Arc<Interaction>,
    /// The revision that it is greeted in first.
    pub(super) revision: Option<McpRevision>,
}

impl ServerSetup {
    pub(super) fn new(target: &Target) -> Self {
        let interaction = Arc::new(target.interaction().cloned().unwrap_or_default());
        Self { interaction, revision: target.revision().and_then(McpRevision::parse) }
    }

    /// The era in which it is greeted first, if that is configured.
    pub(super) fn era(&self) -> Option<Era> {
        self.revision.map(Era::of)
    }

    /// The revision of a handshake.
    pub(super) fn handshake(&self) -> McpRevision {
        self.revision.filter(|revision| !revision.is_modern()).unwrap_or(McpRevision::LEGACY)
    }
}
