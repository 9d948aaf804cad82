//! Routes of programs that were there before: the original agent-inbox's, and those of modules. They translate and decide about no tool.

pub(super) mod agent_inbox;
pub(super) mod inbox_json;
pub(super) mod modules;
