//! The threads on which arguments are checked, apart from those that serve.
//!
//! A check applies a scenario's schema to a caller's text. Its own budget ends it (see
//! [`super::meter`]), but no caller waits longer than its deadline. There are two threads, of which
//! one scenario holds at most one, and a bounded queue: a check that finds it full, or whose turn
//! does not come in time, is refused. A check whose caller has gone away is not started. The
//! threads are detached: the process ends without waiting for them.
//!
//! Independent of schemas: the work is a closure.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;

use crate::model::ScenarioName;
use crate::runtime::tasks::{self, panic_text};

/// Threads that check. One scenario holds at most one of them, so that the others have one.
const THREADS: usize = 2;
/// Stack of one thread: the validator recurses with the depth of the arguments and of a schema's
/// references.
pub(super) const STACK_BYTES: usize = 16 * 1024 * 1024;

/// Runs checks on threads of its own. Dropping it ends the threads, each after the check that it
/// runs.
#[derive(Debug)]
pub(super) struct CheckPool(Arc<PoolInner>);

/// How long a check may wait and run, and how many may wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolLimits {
    /// The longest wait for a thread, and the longest run.
    pub(super) timeout: Duration,
    /// Checks that wait at once: of all callers, those of this one included.
    pub(super) queue: usize,
    /// Whether it is for an operator: such checks go before the others.
    pub(super) is_for_operator: bool,
}

/// Why a check gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PoolError {
    /// As many checks wait as may.
    QueueFull,
    /// No thread was free in time.
    NotStarted,
    /// It runs, and is past its deadline.
    Overdue,
    /// The system allows no thread.
    NoThread,
    /// It panicked, with this text.
    Panicked(String),
}

#[derive(Default)]
struct PoolInner {
    state: Mutex<PoolState>,
    /// Notified when a check is queued, when one ends, and when the pool is closed.
    changed: Condvar,
}

#[derive(Default)]
struct PoolState {
    queue: VecDeque<QueuedCheck>,
    /// The owners of the checks that run, each once.
    running: Vec<ScenarioName>,
    /// Threads that were started.
    threads: usize,
    closed: bool,
}

/// A queued check. It reports its start by `start`; if the receiver is gone, it is not started.
struct QueuedCheck {
    owner: ScenarioName,
    start: oneshot::Sender<()>,
    work: Box<dyn FnOnce() + Send>,
    limits: PoolLimits,
}

impl CheckPool {
    /// A pool whose threads are started with the first checks.
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Runs `work` for a tool of `owner` and gives its result. Cancel-safe: work that was not
    /// started by then never is.
    pub(super) async fn run<T, F>(
        &self,
        owner: &ScenarioName,
        limits: PoolLimits,
        work: F,
    ) -> Result<T, PoolError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (start, started) = oneshot::channel();
        let (finish, finished) = oneshot::channel();
        let work = Box::new(move || {
            let result = catch_unwind(AssertUnwindSafe(work));
            // The caller may have gone away meanwhile.
            _ = finish.send(result.map_err(|panic| PoolError::Panicked(panic_text(&*panic))));
        });
        self.0.queue(QueuedCheck {
            owner: owner.clone(),
            start,
            work,
            limits,
        })?;
        // A start that is never reported is that of a pool that was closed.
        match tokio::time::timeout(limits.timeout, started).await {
            Ok(Ok(())) => {}
            Ok(Err(_closed)) => return Err(PoolError::NoThread),
            Err(_) => return Err(PoolError::NotStarted),
        }
        match tokio::time::timeout(limits.timeout, finished).await {
            Ok(Ok(result)) => result,
            Ok(Err(_closed)) => Err(PoolError::NoThread),
            Err(_) => Err(PoolError::Overdue),
        }
    }
}

impl Drop for CheckPool {
    fn drop(&mut self) {
        self.0.state().closed = true;
        self.0.changed.notify_all();
    }
}

impl PoolInner {
    fn state(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }

    fn queue(self: &Arc<Self>, check: QueuedCheck) -> Result<(), PoolError> {
        let mut state = self.state();
        state.queue.retain(|check| !check.start.is_closed());
        if state.queue.len() >= check.limits.queue {
            return Err(PoolError::QueueFull);
        }
        let is_first = state.threads == 0;
        if is_first || state.threads < THREADS && !state.running.is_empty() {
            self.start_thread(&mut state);
        }
        if state.threads == 0 {
            return Err(PoolError::NoThread);
        }
        state.add(check);
        self.changed.notify_one();
        Ok(())
    }

    fn start_thread(self: &Arc<Self>, state: &mut PoolState) {
        let shared = Arc::clone(self);
        match tasks::start_detached_thread("check", STACK_BYTES, move || shared.run_checks()) {
            Ok(()) => state.threads += 1,
            Err(error) => tracing::warn!(%error, "no thread could be started to check arguments"),
        }
    }

    /// What one thread does until the pool is closed.
    fn run_checks(&self) {
        while let Some(check) = self.next() {
            // An error means that the caller has gone away.
            if check.start.send(()).is_ok() {
                (check.work)();
            }
            self.state().running.retain(|owner| *owner != check.owner);
            self.changed.notify_one();
        }
    }

    /// The next check of a scenario of which none runs. `None` once the pool is closed.
    fn next(&self) -> Option<QueuedCheck> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(check) = state.take() {
                state.running.push(check.owner.clone());
                return Some(check);
            }
            self.changed.wait(&mut state);
        }
    }
}

impl PoolState {
    /// Queues a check, behind those that came before, but one for an operator before all others.
    fn add(&mut self, check: QueuedCheck) {
        let behind = if check.limits.is_for_operator {
            self.queue
                .partition_point(|queued| queued.limits.is_for_operator)
        } else {
            self.queue.len()
        };
        self.queue.insert(behind, check);
    }

    /// Takes the first check whose turn it may be.
    fn take(&mut self) -> Option<QueuedCheck> {
        let may_run = |check: &QueuedCheck| !self.running.contains(&check.owner);
        let position = self.queue.iter().position(may_run)?;
        self.queue.remove(position)
    }
}

impl fmt::Debug for PoolInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("CheckPool")
            .field("threads", &state.threads)
            .field("running", &state.running)
            .field("queue", &state.queue.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const PATIENT: PoolLimits = PoolLimits {
        timeout: Duration::from_secs(60),
        queue: 10,
        is_for_operator: false,
    };
    const BRIEF: PoolLimits = PoolLimits {
        timeout: Duration::from_millis(20),
        queue: 10,
        is_for_operator: false,
    };

    fn owner(number: usize) -> ScenarioName {
        format!("owner-{number}").parse().unwrap()
    }

    fn pool() -> Arc<CheckPool> {
        Arc::new(CheckPool::new())
    }

    /// Starts work that lasts until the sender is dropped, and waits until it runs.
    async fn occupy(
        pool: &Arc<CheckPool>,
        number: usize,
        limits: PoolLimits,
    ) -> (
        mpsc::SyncSender<()>,
        tokio::task::JoinHandle<Result<(), PoolError>>,
    ) {
        // On a busy machine a brief limit may be over before a thread is free.
        for _ in 0..1_000 {
            let (gate, open) = mpsc::sync_channel::<()>(0);
            let (runs, running) = oneshot::channel();
            let pool = Arc::clone(pool);
            let check = crate::runtime::Tasks::new().spawn(async move {
                pool.run(&owner(number), limits, move || {
                    _ = runs.send(());
                    _ = open.recv();
                })
                .await
            });
            if running.await.is_ok() {
                return (gate, check);
            }
        }
        unreachable!("no thread was free in time");
    }

    #[tokio::test]
    async fn work_gives_its_result_and_a_panic_costs_that_work_only() {
        let pool = pool();
        assert_eq!(pool.run(&owner(0), PATIENT, || 7).await, Ok(7));
        let panicked = pool
            .run(&owner(0), PATIENT, || {
                assert!(std::hint::black_box(false), "as expected");
            })
            .await;
        assert_eq!(
            panicked,
            Err(PoolError::Panicked("panic: as expected".to_owned()))
        );
        assert_eq!(pool.run(&owner(0), PATIENT, || 8).await, Ok(8));
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_caller_that_left_has_its_work_never_started() {
        let pool = pool();
        let (gate, running) = occupy(&pool, 0, PATIENT).await;
        let ran = Arc::new(AtomicUsize::new(0));
        let waiting: Vec<_> = (0..PATIENT.queue)
            .map(|_| {
                let pool = Arc::clone(&pool);
                let ran = Arc::clone(&ran);
                let work = move || _ = ran.fetch_add(1, Ordering::SeqCst);
                let mut check = Box::pin(async move { pool.run(&owner(0), PATIENT, work).await });
                assert!(futures_util::FutureExt::now_or_never(check.as_mut()).is_none());
                check
            })
            .collect();
        assert_eq!(
            pool.run(&owner(0), PATIENT, || ()).await,
            Err(PoolError::QueueFull)
        );
        drop(waiting);
        let last = Arc::clone(&pool);
        let pool = pool;
        let last = crate::runtime::Tasks::new()
            .spawn(async move { last.run(&owner(0), PATIENT, || ()).await });
        drop(gate);
        assert_eq!(running.await.unwrap(), Ok(()));
        assert_eq!(last.await.unwrap(), Ok(()), "those that left make room");
        assert_eq!(ran.load(Ordering::SeqCst), 0);
        drop(pool);
    }

    #[tokio::test]
    async fn an_operators_check_has_a_place_beside_the_others_and_goes_before_them() {
        let pool = pool();
        let (gate, running) = occupy(&pool, 0, PATIENT).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let begin = |name: &'static str, limits: PoolLimits| {
            let pool = Arc::clone(&pool);
            let order = Arc::clone(&order);
            let work = move || order.lock().push(name);
            let mut check = Box::pin(async move { pool.run(&owner(0), limits, work).await });
            assert!(futures_util::FutureExt::now_or_never(check.as_mut()).is_none());
            check
        };
        let waiting: Vec<_> = (0..PATIENT.queue)
            .map(|_| begin("client", PATIENT))
            .collect();
        let full = pool.run(&owner(0), PATIENT, || ()).await;
        assert_eq!(full, Err(PoolError::QueueFull));
        let for_operator = PoolLimits {
            queue: PATIENT.queue + 2,
            is_for_operator: true,
            ..PATIENT
        };
        let operators = [begin("first", for_operator), begin("second", for_operator)];
        drop(gate);
        assert_eq!(running.await.unwrap(), Ok(()));
        for check in operators.into_iter().chain(waiting) {
            assert_eq!(check.await, Ok(()));
        }
        assert_eq!(order.lock()[..3], ["first", "second", "client"]);
    }

    #[tokio::test]
    async fn one_scenario_holds_one_thread_and_the_others_have_the_second() {
        let pool = pool();
        let (gate, running) = occupy(&pool, 0, BRIEF).await;
        assert_eq!(running.await.unwrap(), Err(PoolError::Overdue));
        assert_eq!(
            pool.run(&owner(0), BRIEF, || ()).await,
            Err(PoolError::NotStarted),
            "its turn is after the one that runs"
        );
        for number in 1..5 {
            assert_eq!(pool.run(&owner(number), PATIENT, || ()).await, Ok(()));
        }
        let (second, waits) = occupy(&pool, 1, PATIENT).await;
        assert_eq!(
            pool.run(&owner(2), BRIEF, || ()).await,
            Err(PoolError::NotStarted)
        );
        assert_eq!(pool.0.state().threads, THREADS);
        drop(second);
        assert_eq!(waits.await.unwrap(), Ok(()));
        drop(gate);
        assert_eq!(pool.run(&owner(0), PATIENT, || ()).await, Ok(()));
    }

    #[tokio::test]
    async fn a_check_that_waits_for_its_own_scenario_lets_others_pass() {
        let pool = pool();
        let (gate, running) = occupy(&pool, 0, PATIENT).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let begin = |number: usize| {
            let pool = Arc::clone(&pool);
            let order = Arc::clone(&order);
            let work = move || order.lock().push(number);
            let mut check = Box::pin(async move { pool.run(&owner(number), PATIENT, work).await });
            assert!(futures_util::FutureExt::now_or_never(check.as_mut()).is_none());
            check
        };
        let behind = begin(0);
        assert_eq!(begin(1).await, Ok(()));
        drop(gate);
        assert_eq!(running.await.unwrap(), Ok(()));
        assert_eq!(behind.await, Ok(()));
        assert_eq!(*order.lock(), [1, 0]);
    }
}
