//! Answers that take long to write, such as pages: they are written on other threads, a few at
//! once, so that those that serve requests stay free for answers from memory.
//!
//! A request beyond the short queue is refused at once. Never decides which answers these are.

use crate::runtime::{QueueFull, WorkQueue};
use crate::server::ServerState;

/// So many answers are written at once.
const WRITTEN_AT_ONCE: usize = 2;
/// So many requests wait for theirs.
const WAITING_MAX: usize = 64;

/// The queue of such answers.
pub(in crate::server) fn queue() -> WorkQueue {
    WorkQueue::new(WRITTEN_AT_ONCE, WAITING_MAX)
}

/// Makes an answer when it is its turn, on another thread. While it waits, as for a list or for a
/// check of schemas, others have the turn.
///
/// # Errors
/// [`QueueFull`] if too many requests wait.
pub(in crate::server) async fn rendered<F>(shared: &ServerState, answer: F) -> Result<F::Output, QueueFull>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    shared.rendering.run(&shared.tasks, answer).await
}
