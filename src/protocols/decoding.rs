//! On which thread a document is read, so that a large one holds up no other work.
//!
//! Never here: what a document means.

use crate::runtime::Tasks;

/// Bytes of a manifest that is decoded on the thread that received it: at most two milliseconds
/// even in the slowest spelling, while most manifests take a tenth of one. A larger one goes to
/// another thread.
const MANIFEST_AT_ONCE_BYTES: usize = 256 * 1024;

/// Reads a manifest of so many bytes, or does other work in proportion to it, where that holds up
/// no other work. With a large one that is a thread of low priority, so that lists and calls keep
/// their speed meanwhile. An answer keeps its priority, because a caller may wait for it:
/// [`Tasks::work_on_body`].
pub(crate) async fn decode_manifest<T: Send + 'static>(
    tasks: &Tasks,
    bytes: usize,
    work: impl Fn() -> T + Clone + Send + 'static,
) -> T {
    if bytes <= MANIFEST_AT_ONCE_BYTES {
        work()
    } else {
        tasks.in_background(work).await
    }
}
