//! What outlives the process: manifests and claims (`archive`), what operators and users decide (`keeper`), and what was stored before
//! (`restore`). The archive writes behind the loop, the keeper before it.

pub(super) mod manifest_writer;
pub(super) mod mutations;
pub(super) mod restore;
