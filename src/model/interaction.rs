//! What a scenario may request of its callers, and give to their models.

use url::Url;

/// What a scenario may request of its callers while a call runs, and give to their models. A caller
/// gets only requests that it offers to answer, too.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a permission by itself"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interaction {
    /// Questions to the user.
    pub elicitation: bool,
    /// Messages of the caller's model, which the caller pays for.
    pub sampling: bool,
    /// The folders to work in.
    pub roots: bool,
    /// The folders that the configuration names, instead of those of the caller: addresses of the
    /// scheme `file`.
    pub folders: Vec<Url>,
    /// Whether its instructions are given to the models of MCP clients.
    pub instructions: bool,
}

impl Default for Interaction {
    /// Questions to the user only.
    fn default() -> Self {
        Self {
            elicitation: true,
            sampling: false,
            roots: false,
            folders: Vec::new(),
            instructions: false,
        }
    }
}
