//! Blocking work of one kind for requests: so much of it runs at once, on threads that hold up no
//! other request, and so many requests wait for their turn. A further one is refused.
//!
//! Never decides what the work is, or what becomes of a request that is refused.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The queue of one kind of work. Clones share it.
#[derive(Debug, Clone)]
pub struct WorkQueue {
    /// For the work that runs and the requests that wait.
    places: Arc<Semaphore>,
    /// For the work that runs.
    turns: Arc<Semaphore>,
    waiting_max: usize,
}

/// A request may work now. Another one may when the last clone is dropped, so the work itself holds
/// one: it also runs on when its request has gone away.
#[derive(Debug, Clone)]
pub struct WorkTurn {
    _place: Arc<OwnedSemaphorePermit>,
    _turn: Arc<OwnedSemaphorePermit>,
}

/// Too many requests wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{waiting} requests for such an answer wait already; try again soon")]
pub struct QueueFull {
    /// How many wait.
    pub waiting: usize,
}

impl WorkQueue {
    /// A queue for work of which so much runs at once, while so many requests wait.
    pub fn new(at_once: usize, waiting_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(at_once + waiting_max));
        Self { places, turns: Arc::new(Semaphore::new(at_once)), waiting_max }
    }

    /// Waits for a turn. Requests get theirs in the order in which they came.
    ///
    /// # Errors
    ///
    /// [`QueueFull`], at once, if too many requests wait.
    pub async fn turn(&self) -> Result<WorkTurn, QueueFull> {
        let full = |_| QueueFull { waiting: self.waiting_max };
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(full)?;
        // It is never closed.
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|_| QueueFull { waiting: 0 })?;
        Ok(WorkTurn { _place: Arc::new(place), _turn: Arc::new(turn) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[tokio::test]
    async fn a_request_waits_for_its_turn_or_is_refused() {
        let queue = WorkQueue::new(1, 1);
        let first = queue.turn().await.unwrap();
        let work = first.clone();
        let mut second = Box::pin(queue.turn());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(queue.turn().await.unwrap_err(), QueueFull { waiting: 1 });
        drop(first);
        assert!((&mut second).now_or_never().is_none(), "its work goes on");
        drop(work);
        let second = second.await.unwrap();
        let third = Box::pin(queue.turn());
        drop(third);
        drop(second);
        assert!(queue.turn().await.is_ok());
    }
}
