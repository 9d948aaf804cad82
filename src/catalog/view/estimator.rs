//! What a tool costs in a list.

use crate::model::ViewTool;

/// What a list is for, as far as the choice of tools depends on it.
pub trait Estimator {
    /// How many tokens of a prompt the tool takes, rounded up; nothing when the target cannot say the tool at all, so that it takes
    /// nobody's place.
    fn tokens(&self, tool: &ViewTool) -> Option<usize>;

    /// How many tools may be deferred at most; nothing when the target knows no such thing.
    fn max_deferred(&self) -> Option<usize>;
}

/// A target of which nothing is known: it takes every tool, defers none, and a token has three bytes of a tool's name, description and
/// parameters.
#[derive(Debug, Clone, Copy)]
pub struct Generic;

const TOKEN_BYTES: usize = 3;

impl Estimator for Generic {
    fn tokens(&self, tool: &ViewTool) -> Option<usize> {
        let offered = &tool.tool;
        let bytes = tool.name.as_str().len() + offered.description.len() + offered.parameters.get().len();
        Some(bytes.div_ceil(TOKEN_BYTES))
    }

    fn max_deferred(&self) -> Option<usize> {
        None
    }
}
