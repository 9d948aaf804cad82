//! Blocking work of one kind for requests: so much of it runs at once, on threads that hold up no
//! other request, and so many requests wait for their turn. A further one is refused.
//!
//! Work that waits in between lets others work meanwhile: it has a turn only while it works. Never
//! decides what the work is, or what becomes of a request that is refused.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::tasks::Tasks;

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

/// The place of a request, which may have several turns.
#[derive(Debug)]
struct WorkPlace {
    place: Arc<OwnedSemaphorePermit>,
    turns: Arc<Semaphore>,
}

/// Notes that work which waited can go on.
struct WorkWaker(Notify);

impl Wake for WorkWaker {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Too many requests wait for their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{waiting} requests for such an answer wait already; {}",
    Self::NEXT_STEP
)]
pub struct QueueFull {
    /// How many wait.
    pub waiting: usize,
}

impl QueueFull {
    /// What to do next: the end of its text.
    pub const NEXT_STEP: &'static str = "try again soon";
}

impl WorkQueue {
    /// A queue for work of which so much runs at once, while so many requests wait.
    pub fn new(at_once: usize, waiting_max: usize) -> Self {
        let places = Arc::new(Semaphore::new(at_once + waiting_max));
        Self {
            places,
            turns: Arc::new(Semaphore::new(at_once)),
            waiting_max,
        }
    }

    /// Whether a request would have its turn at once: there may be no place for it although no work
    /// has the turn, because all of it waits in between.
    pub fn has_turn(&self) -> bool {
        self.turns.available_permits() > 0 && self.places.available_permits() > 0
    }

    /// Waits for a turn. Requests get theirs in the order in which they came.
    ///
    /// # Errors
    ///
    /// [`QueueFull`], at once, if too many requests wait.
    pub async fn turn(&self) -> Result<WorkTurn, QueueFull> {
        self.place()?.turn().await
    }

    /// Does work that may wait in between, such as for other work: each step of it has a turn of
    /// its own, on a thread of the blocking pool, and while it waits it has none. Once it has its
    /// place it is not refused any more. If this future is dropped, the step under way is the last
    /// one.
    ///
    /// # Errors
    ///
    /// [`QueueFull`], at once, if too many requests wait.
    pub async fn run<F>(&self, tasks: &Tasks, work: F) -> Result<F::Output, QueueFull>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let place = self.place()?;
        let mut work = Box::pin(work);
        let woken = Arc::new(WorkWaker(Notify::new()));
        loop {
            let turn = place.turn().await?;
            let waker = Waker::from(Arc::clone(&woken));
            let step = move || {
                let polled = work.as_mut().poll(&mut Context::from_waker(&waker));
                drop(turn);
                (work, polled)
            };
            let (rest, polled) = tasks.blocking(step).await;
            if let Poll::Ready(output) = polled {
                return Ok(output);
            }
            work = rest;
            woken.0.notified().await;
        }
    }

    fn place(&self) -> Result<WorkPlace, QueueFull> {
        let full = |_| QueueFull {
            waiting: self.waiting_max,
        };
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(full)?;
        Ok(WorkPlace {
            place: Arc::new(place),
            turns: Arc::clone(&self.turns),
        })
    }
}

impl WorkPlace {
    async fn turn(&self) -> Result<WorkTurn, QueueFull> {
        // It is never closed.
        let turn = Arc::clone(&self.turns)
            .acquire_owned()
            .await
            .map_err(|_| QueueFull { waiting: 0 })?;
        Ok(WorkTurn {
            _place: Arc::clone(&self.place),
            _turn: Arc::new(turn),
        })
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

    #[tokio::test]
    async fn work_that_waits_lets_others_work() {
        let queue = WorkQueue::new(1, 1);
        let tasks = Tasks::new();
        let (open, gate) = tokio::sync::oneshot::channel();
        let mut first = Box::pin(queue.run(&tasks, async move { gate.await.unwrap() }));
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(queue.run(&tasks, async { 2 }).await, Ok(2));
        assert!(queue.has_turn());
        let waiting = queue.place().unwrap();
        assert!(
            !queue.has_turn(),
            "no work has the turn, but there is no place for more"
        );
        assert_eq!(
            queue.run(&tasks, async { 3 }).await,
            Err(QueueFull { waiting: 1 })
        );
        drop(waiting);
        assert!(queue.has_turn());
        open.send(1).unwrap();
        assert_eq!(first.await, Ok(1));
    }
}
