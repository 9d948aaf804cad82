//! Estimates how many tokens a tool takes in a list.

use crate::model::ViewTool;

/// The target of a list, as far as the choice of tools depends on it.
pub trait Estimator {
    /// How many tokens of a prompt the tool takes, rounded up. `None` if the target cannot express
    /// the tool, which then takes no place.
    fn tokens(&self, tool: &ViewTool) -> Option<usize>;

    /// How many tools may be deferred at most; `None` if the target does not support deferring.
    fn max_deferred(&self) -> Option<usize>;
}

/// The target of an unknown format: it takes every tool, defers none, and a token has three bytes
/// of a tool's name, description and parameters.
#[derive(Debug, Clone, Copy)]
pub struct Generic;

const TOKEN_BYTES: usize = 3;

impl Estimator for Generic {
    fn tokens(&self, tool: &ViewTool) -> Option<usize> {
        let offered = &tool.tool;
        let bytes =
            tool.name.as_str().len() + offered.description.len() + offered.parameters.get().len();
        Some(bytes.div_ceil(TOKEN_BYTES))
    }

    fn max_deferred(&self) -> Option<usize> {
        None
    }
}
