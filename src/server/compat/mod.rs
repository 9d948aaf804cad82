//! Routes for clients of earlier programs: of the original agent-inbox, of modules, and of
//! bundles. They only translate, and make no decisions about tools.

pub(super) mod agent_inbox;
pub(super) mod bundles;
pub(super) mod inbox_json;
pub(super) mod modules;
