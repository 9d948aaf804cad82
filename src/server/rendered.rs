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

/// Makes an answer when it is its turn, on another thread. It is made to its end, also when its
/// request is gone.
///
/// # Errors
/// [`QueueFull`] if too many requests wait.
pub(in crate::server) async fn rendered<F>(shared: &ServerState, answer: F) -> Result<F::Output, QueueFull>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let turn = shared.rendering.turn().await?;
    let made = async move {
        let answer = answer.await;
        drop(turn);
        answer
    };
    Ok(shared.tasks.future_off_thread(made).await)
}
