//! Answers that take long to write, such as pages: they are written on other threads, a few at
//! once, so that those that serve requests stay free for answers from memory.
//!
//! A request beyond the short queue is refused at once. Operators have an eighth of it, and a turn,
//! of their own, so that no other client makes them wait. Never decides which answers these are.

use crate::runtime::{QueueFull, WorkQueue};
use crate::server::ServerState;
use crate::server::http::held::ConnectionBytes;

/// So many answers are written at once, for whatever client.
const WRITTEN_AT_ONCE: usize = 2;
/// So many more are written at once for operators.
const WRITTEN_AT_ONCE_FOR_OPERATORS: usize = 1;
/// So many requests wait for theirs.
const WAITING_MAX: usize = 64;
/// Operators get so many eighths of that, besides what all clients get.
const OPERATORS_EIGHTHS: usize = 1;

/// The queues of such answers.
#[derive(Debug)]
pub(in crate::server) struct RenderingQueues {
    clients: WorkQueue,
    /// For operators while others have the turns.
    operators: WorkQueue,
}

impl RenderingQueues {
    pub(in crate::server) fn new() -> Self {
        let operators_waiting_max = WAITING_MAX * OPERATORS_EIGHTHS / 8;
        Self {
            clients: WorkQueue::new(WRITTEN_AT_ONCE, WAITING_MAX - operators_waiting_max),
            operators: WorkQueue::new(WRITTEN_AT_ONCE_FOR_OPERATORS, operators_waiting_max),
        }
    }

    /// The queue for a request whose bytes are held so.
    fn queue_for(&self, bytes: &ConnectionBytes) -> &WorkQueue {
        if bytes.is_for_operator() && !self.clients.has_turn() {
            &self.operators
        } else {
            &self.clients
        }
    }
}

/// Makes an answer when it is its turn, on another thread. While it waits, as for a list or for a
/// check of schemas, others have the turn. `bytes` are those that its request came with.
///
/// # Errors
/// [`QueueFull`] if too many requests wait.
pub(in crate::server) async fn rendered<F>(
    shared: &ServerState,
    bytes: &ConnectionBytes,
    answer: F,
) -> Result<F::Output, QueueFull>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    shared
        .rendering
        .queue_for(bytes)
        .run(&shared.tasks, answer)
        .await
}
