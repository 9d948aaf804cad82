//! What outlives the process: manifests and claims (`manifest_writer`), changes by operators and
//! users (`mutations`), and the data stored before (`restore`). Manifests are written after the
//! loop has applied them, mutations before.

pub(super) mod kept_preferences;
pub(super) mod manifest_writer;
pub(super) mod mutations;
pub(super) mod restore;
