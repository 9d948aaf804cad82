//! Routes of programs that were there before: the original agent-inbox's, and those of modules. They translate and decide about no tool.

pub(super) mod inbox;
pub(super) mod inbox_wire;
pub(super) mod modules;
