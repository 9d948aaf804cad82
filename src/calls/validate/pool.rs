//! The threads on which arguments are checked, apart from those that serve.
//!
//! A check applies a scenario's schema to a caller's text, and once started it cannot be cancelled.
//! So there are few threads, a bounded queue and a deadline. A check past its deadline keeps its
//! thread, which is replaced, at most [`MAX_OVERDUE`] times, and until it ends no other check of
//! the same scenario is run, so that one scenario cannot take every thread. A check whose caller
//! has gone away is not started. The threads are detached: the process ends without waiting for
//! them.
//!
//! Independent of schemas: the work is a closure.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::model::ScenarioName;
use crate::runtime::Clock;
use crate::runtime::tasks::{self, panic_text};

/// Threads that may be past a deadline at once. Each keeps a core busy, so there are few; while all
/// of them are, none is replaced.
const MAX_OVERDUE: usize = 2;
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
    /// Another check of the same scenario is past its deadline.
    OwnerOverdue,
    /// No thread is left: all are past their deadline, with checks of other scenarios, or the
    /// system allows no more.
    NoThread,
    /// It panicked, with this text.
    Panicked(String),
}

struct PoolInner {
    state: Mutex<PoolState>,
    /// Notified when a check is queued and when the pool is closed.
    changed: Condvar,
    threads: usize,
    clock: Clock,
}

#[derive(Default)]
struct PoolState {
    queue: VecDeque<QueuedCheck>,
    /// Checks that run, by number.
    running: HashMap<u64, RunningCheck>,
    /// Checks started so far; the number of the next one.
    started: u64,
    /// Threads that take checks from the queue.
    live: usize,
    /// The owners of checks past their deadline, by number. A thread that comes back takes checks
    /// again if its place is free.
    overdue: HashMap<u64, ScenarioName>,
    closed: bool,
}

struct RunningCheck {
    owner: ScenarioName,
    deadline: Instant,
}

/// A queued check. It reports its start by `start`; if the receiver is gone, it is not started.
struct QueuedCheck {
    owner: ScenarioName,
    start: oneshot::Sender<()>,
    work: Box<dyn FnOnce() + Send>,
    limits: PoolLimits,
}

impl CheckPool {
    /// A pool of as many threads as half the cores, at least one. Threads are started with the
    /// first checks.
    pub(super) fn new(clock: Clock) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads((cores / 2).max(1), clock)
    }

    fn with_threads(threads: usize, clock: Clock) -> Self {
        Self(Arc::new(PoolInner {
            state: Mutex::default(),
            changed: Condvar::new(),
            threads,
            clock,
        }))
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
        let result = match tokio::time::timeout(limits.timeout, started).await {
            Ok(Ok(())) => tokio::time::timeout(limits.timeout, finished)
                .await
                .map_err(|_| PoolError::Overdue),
            // What is taken from the queue and not started is that of an owner with one past its
            // deadline.
            Ok(Err(_closed)) => return Err(PoolError::OwnerOverdue),
            Err(_) => Err(PoolError::NotStarted),
        };
        if result.is_err() {
            self.0.replace_overdue(&mut self.0.state());
        }
        result?.unwrap_or(Err(PoolError::NoThread))
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
        // The caller of a check that runs may have gone away, and then this is where its deadline
        // is noticed.
        self.replace_overdue(&mut state);
        state.queue.retain(|check| !check.start.is_closed());
        if state.queue.len() >= check.limits.queue {
            return Err(PoolError::QueueFull);
        }
        if state.is_overdue(&check.owner) {
            return Err(PoolError::OwnerOverdue);
        }
        if state.live < self.threads && state.live == state.running.len() {
            self.start_thread(&mut state);
        }
        if state.live == 0 {
            return Err(PoolError::NoThread);
        }
        state.add(check);
        self.changed.notify_one();
        Ok(())
    }

    /// Gives up the threads whose check is past its deadline and starts others in their places.
    fn replace_overdue(self: &Arc<Self>, state: &mut PoolState) {
        let now = self.clock.now();
        let late: Vec<u64> = state
            .running
            .iter()
            .filter(|(_, check)| check.deadline <= now)
            .map(|(number, _)| *number)
            .collect();
        for (number, check) in late
            .into_iter()
            .filter_map(|number| Some((number, state.running.remove(&number)?)))
        {
            state.live -= 1;
            state.overdue.insert(number, check.owner);
        }
        let missing = usize::from(
            !state.queue.is_empty() && state.live == 0 && state.overdue.len() <= MAX_OVERDUE,
        );
        (0..missing).for_each(|_| self.start_thread(state));
    }

    fn start_thread(self: &Arc<Self>, state: &mut PoolState) {
        if state.overdue.len() > MAX_OVERDUE {
            return;
        }
        let shared = Arc::clone(self);
        match tasks::start_detached_thread("check", STACK_BYTES, move || shared.run_checks()) {
            Ok(()) => state.live += 1,
            Err(error) => tracing::warn!(%error, "no thread could be started to check arguments"),
        }
    }

    /// What one thread does until the pool is closed or its place was given to another.
    fn run_checks(&self) {
        while let Some((number, check)) = self.next() {
            // An error means that the caller has gone away.
            if check.start.send(()).is_ok() {
                (check.work)();
            }
            if !self.ended(number) {
                return;
            }
        }
    }

    /// The next check, under its number. `None` once the pool is closed.
    fn next(&self) -> Option<(u64, QueuedCheck)> {
        let mut state = self.state();
        loop {
            if state.closed {
                return None;
            }
            if let Some(check) = state.queue.pop_front() {
                if state.is_overdue(&check.owner) {
                    continue;
                }
                let number = state.started;
                state.started += 1;
                let deadline = self.clock.now() + check.limits.timeout;
                state.running.insert(
                    number,
                    RunningCheck {
                        owner: check.owner.clone(),
                        deadline,
                    },
                );
                return Some((number, check));
            }
            self.changed.wait(&mut state);
        }
    }

    /// A check ended. Whether its thread takes further ones.
    fn ended(&self, number: u64) -> bool {
        let mut state = self.state();
        if state.running.remove(&number).is_some() {
            return true;
        }
        state.overdue.remove(&number);
        let returns = state.live < self.threads;
        state.live += usize::from(returns);
        returns
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

    fn is_overdue(&self, owner: &ScenarioName) -> bool {
        self.overdue.values().any(|overdue| overdue == owner)
    }
}

impl fmt::Debug for PoolInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("CheckPool")
            .field("threads", &self.threads)
            .field("live", &state.live)
            .field("overdue", &state.overdue.len())
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
        Arc::new(CheckPool::with_threads(1, Clock::system()))
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
        assert_eq!(pool.0.state().live, 1);
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
    async fn overdue_threads_are_replaced_a_few_times_and_come_back() {
        let pool = pool();
        let mut gates = Vec::new();
        for number in 0..=MAX_OVERDUE {
            let (gate, running) = occupy(&pool, number, BRIEF).await;
            assert_eq!(running.await.unwrap(), Err(PoolError::Overdue));
            gates.push(gate);
        }
        assert_eq!(
            pool.run(&owner(9), BRIEF, || ()).await,
            Err(PoolError::NoThread)
        );
        assert_eq!(
            pool.run(&owner(0), BRIEF, || ()).await,
            Err(PoolError::OwnerOverdue)
        );
        drop(gates);
        while pool.0.state().live == 0 {
            std::thread::yield_now();
        }
        assert_eq!(pool.run(&owner(9), PATIENT, || ()).await, Ok(()));
    }

    #[tokio::test]
    async fn an_owner_with_a_check_past_its_deadline_has_no_other_until_it_ends() {
        let pool = pool();
        let (gate, running) = occupy(&pool, 0, BRIEF).await;
        assert_eq!(running.await.unwrap(), Err(PoolError::Overdue));
        assert_eq!(
            pool.run(&owner(0), PATIENT, || ()).await,
            Err(PoolError::OwnerOverdue)
        );
        assert_eq!(pool.run(&owner(1), PATIENT, || ()).await, Ok(()));
        drop(gate);
        while !pool.0.state().overdue.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(pool.run(&owner(0), PATIENT, || ()).await, Ok(()));
    }

    #[tokio::test]
    async fn a_running_check_whose_caller_left_is_still_held_to_its_deadline() {
        let pool = pool();
        let (_gate, running) = occupy(&pool, 0, BRIEF).await;
        running.abort();
        assert!(running.await.is_err());
        // The first of these waits as long as the deadline, and the next finds it passed.
        assert_eq!(
            pool.run(&owner(1), BRIEF, || ()).await,
            Err(PoolError::NotStarted)
        );
        assert_eq!(pool.run(&owner(1), PATIENT, || ()).await, Ok(()));
    }
}
