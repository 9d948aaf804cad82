//! Whether a human must say yes to a call before it is made.

use crate::model::ViewTool;

/// Whether a call of this tool, as its asker's scope has it, needs a human's yes.
pub(super) fn needed(tool: &ViewTool) -> bool {
    tool.effective.requires_approval
}
