//! The only spawner of tasks and threads, so that stopping can wait for all of them.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// Starts a named thread for work that blocks until the process ends, such as the only writer of a
/// file. The caller joins it: unlike a task it is in no [`Tasks`] set. Fails when the system allows
/// no further thread.
pub fn start_thread<F>(name: &str, work: F) -> std::io::Result<std::thread::JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
}

/// Starts a named thread with a stack of so many bytes for work that cannot be cancelled and that
/// no stop may wait for. It is never joined: the process ends without it. Fails when the system
/// allows no further thread.
pub fn start_detached_thread<F>(name: &str, stack: usize, work: F) -> std::io::Result<()>
where
    F: FnOnce() + Send + 'static,
{
    std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(stack)
        .spawn(work)
        .map(drop)
}

/// With fewer items than this, another thread is not worth its start.
const SHARE: usize = 32;

/// Does the same work for each item, on all cores, and blocks until it is done. For the start of a
/// program, when no other work is delayed. The results are in the order of the items. A panic in
/// the work continues here.
pub fn in_parallel<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = items.len().div_ceil(cores).max(SHARE);
    if items.len() <= share {
        return items.into_iter().map(work).collect();
    }
    let count = items.len();
    let mut items = items.into_iter();
    let shares = std::iter::from_fn(|| {
        let share: Vec<T> = items.by_ref().take(share).collect();
        (!share.is_empty()).then_some(share)
    });
    let done = each_on_its_own(shares.collect(), |share: Vec<T>| {
        share.into_iter().map(&work).collect::<Vec<R>>()
    });
    let mut results = Vec::with_capacity(count);
    for share in done {
        results.extend(share);
    }
    results
}

/// Does the work for each share on its own thread, except the last share, which is done on this
/// thread.
fn each_on_its_own<T: Send, R: Send>(mut shares: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let Some(own) = shares.pop() else {
        return Vec::new();
    };
    let work = &work;
    std::thread::scope(|scope| {
        let others: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(move || work(share)))
            .collect();
        let own = work(own);
        let joined = others.into_iter().map(|share| {
            share
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        joined.chain([own]).collect()
    })
}

/// The message of a caught panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a text"))
}

/// How much nicer than the daemon a thread of [`Tasks::in_background`] is: it gets about a tenth of
/// the share of another thread.
#[cfg(target_os = "linux")]
const BACKGROUND: i32 = 10;

/// Bytes of the stack of such a thread: as much as a thread of the blocking pool has.
#[cfg(target_os = "linux")]
const BACKGROUND_STACK: usize = 2 * 1024 * 1024;

/// Lowers the priority of the calling thread, for good: raising it again takes a right. On Linux
/// each thread has its own (nice(2), "C library/kernel differences"). If that fails, the work is
/// as urgent as other work.
#[cfg(target_os = "linux")]
fn lower_priority() {
    let _ = rustix::process::nice(BACKGROUND);
}

/// Tasks of the current runtime that have not ended, those of libraries included. Panics outside a
/// runtime.
pub fn alive() -> usize {
    tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks()
}

/// So much work of [`Tasks::in_background`] runs at once. Each of its threads has a tenth of the
/// share of another thread, so that many of them would have as much as those that serve requests.
const BACKGROUND_AT_ONCE: usize = 4;

/// A body of at most so many bytes is worked on by the thread that has it: that takes about as long
/// as another thread needs to begin.
pub(crate) const BRIEF_BODY_BYTES: usize = 64 * 1024;
/// Work on so many longer bodies is done at once. Each MiB of one takes some 20 ms, and the threads
/// that serve requests need the other cores.
const BODIES_AT_ONCE: usize = 2;

/// Starts tasks and waits for them at the end. Clones share the same set.
#[derive(Debug, Clone)]
pub struct Tasks {
    tracker: TaskTracker,
    /// For the work in the background.
    background: Arc<Semaphore>,
    bodies: Arc<BodyTurns>,
}

/// How far work on a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyStep {
    /// It has just come.
    First,
    /// It was begun before. Of those that have just come only one competes with these for a turn,
    /// so that few are between their first step and their last one: these are held more than once.
    Further,
}

/// For work on long bodies.
#[derive(Debug)]
struct BodyTurns {
    /// The one place in front of those that have just come.
    front: Semaphore,
    turns: Arc<Semaphore>,
    /// How often there was some.
    begun: AtomicU64,
}

impl Default for Tasks {
    fn default() -> Self {
        Self {
            tracker: TaskTracker::new(),
            background: Arc::new(Semaphore::new(BACKGROUND_AT_ONCE)),
            bodies: Arc::new(BodyTurns {
                front: Semaphore::new(1),
                turns: Arc::new(Semaphore::new(BODIES_AT_ONCE)),
                begun: AtomicU64::new(0),
            }),
        }
    }
}

impl BodyTurns {
    /// Waits for a turn. Until it has come the place in front may be taken, so what waits must be
    /// polled.
    async fn turn(self: Arc<Self>, step: BodyStep) -> Option<OwnedSemaphorePermit> {
        // The semaphores are never closed, so a turn always comes.
        let front = match step {
            BodyStep::First => self.front.acquire().await.ok(),
            BodyStep::Further => None,
        };
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        drop(front);
        turn
    }
}

/// How [`Tasks::finish`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Every task ended by itself.
    Clean,
    /// The deadline came first; this many tasks were left running.
    Cut(usize),
}

impl Finish {
    /// How both ended together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Clean, other) => other,
            (cut, Self::Clean) => cut,
            (Self::Cut(some), Self::Cut(others)) => Self::Cut(some + others),
        }
    }
}

/// See [`Tasks::run_to_completion`].
#[must_use = "nothing is done before it is waited for or dropped"]
pub struct RunToCompletion<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    /// Taken out while it is polled, so that a future that panicked is not polled again.
    future: Option<Pin<Box<F>>>,
    tasks: Tasks,
}

impl<F> Future for RunToCompletion<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // A completed future must not be polled again; a caller that does so waits for ever.
        let Some(mut future) = self.future.take() else {
            return Poll::Pending;
        };
        let polled = future.as_mut().poll(context);
        if polled.is_pending() {
            self.future = Some(future);
        }
        polled
    }
}

impl<F> Drop for RunToCompletion<F>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn drop(&mut self) {
        let Some(future) = self.future.take() else {
            return;
        };
        // Outside a runtime there is no executor to run it.
        if tokio::runtime::Handle::try_current().is_ok() {
            self.tasks.spawn(future);
        }
    }
}

/// What a task made. A panic in it continues here. Never completes if the task was cancelled.
async fn joined<T>(task: impl Future<Output = Result<T, JoinError>>) -> T {
    match task.await {
        Ok(made) => made,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_cancelled) => std::future::pending().await,
        },
    }
}

impl Tasks {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs a future on the current runtime and counts it until it ends.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        // Boxed, so that all futures with the same output are one type to the runtime. It would
        // compile all of its handling of a task for each type of future, up to four times.
        let future: BoxFuture<'static, F::Output> = Box::pin(future);
        self.tracker.spawn(future)
    }

    /// A future that always runs to its end: if it is dropped before, a new task continues it.
    /// Until then it needs no task and wakes no other thread. A panic in it continues here, or ends
    /// that task.
    pub fn run_to_completion<F>(&self, future: F) -> RunToCompletion<F>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        RunToCompletion {
            future: Some(Box::pin(future)),
            tasks: self.clone(),
        }
    }

    /// Runs blocking work on the blocking pool and counts it until it ends.
    pub fn spawn_blocking<F, T>(&self, work: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // Boxed for the same reason as futures are.
        let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
        self.tracker.spawn_blocking(work)
    }

    /// Runs work that would block an async thread on the blocking pool, and waits for it. When the
    /// runtime is shutting down and accepts no more work, it runs on this thread. A panic in it
    /// continues here.
    pub async fn off_thread<T: Send + 'static>(
        &self,
        work: impl Fn() -> T + Clone + Send + 'static,
    ) -> T {
        match self.spawn_blocking(work.clone()).await {
            Ok(made) => made,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_cancelled) => work(),
            },
        }
    }

    /// Runs long work that may take its time on a thread of its own with a low priority, and waits
    /// for it: while cores are scarce, other work goes first, and only some of it runs at once.
    /// Where a thread has no priority of its own (other systems than Linux), or none can be
    /// started, it is [`Self::off_thread`]. A panic in it continues here. If this future is
    /// dropped, such as at a stop, the result is not needed, and [`Self::finish`] does not wait for
    /// the thread.
    pub async fn in_background<T: Send + 'static>(
        &self,
        work: impl Fn() -> T + Clone + Send + 'static,
    ) -> T {
        // The semaphore is never closed, so a permit always comes.
        let turn = Arc::clone(&self.background).acquire_owned().await.ok();
        #[cfg(not(target_os = "linux"))]
        {
            let made = self.off_thread(work).await;
            drop(turn);
            made
        }
        #[cfg(target_os = "linux")]
        self.on_a_slower_thread(turn, work).await
    }

    /// See [`Self::in_background`]. The thread has the turn until its work ends.
    #[cfg(target_os = "linux")]
    async fn on_a_slower_thread<T: Send + 'static>(
        &self,
        turn: Option<OwnedSemaphorePermit>,
        work: impl Fn() -> T + Clone + Send + 'static,
    ) -> T {
        let (sender, made) = tokio::sync::oneshot::channel();
        let own = work.clone();
        let started = start_detached_thread("background", BACKGROUND_STACK, move || {
            lower_priority();
            let made = std::panic::catch_unwind(AssertUnwindSafe(own));
            drop(turn);
            // The future that waits for it may have been dropped.
            let _ = sender.send(made);
        });
        match (started, made.await) {
            (Ok(()), Ok(Ok(made))) => made,
            (Ok(()), Ok(Err(panic))) => std::panic::resume_unwind(panic),
            _ => self.off_thread(work).await,
        }
    }

    /// Does work on a body of so many bytes, such as reading or writing it, where it holds up no
    /// brief request: a short one on this thread, a longer one on the blocking pool, a few at once
    /// and each step in the order in which it came. No more wait than there are calls and requests
    /// under way, each as long as its own deadline allows. If this future is kept and not polled,
    /// no other work waits for it. If it is dropped, work that has not begun is not done. Never
    /// completes when the runtime shuts down before that. A panic in the work continues here.
    pub(crate) async fn work_on_body<T: Send + 'static>(
        &self,
        step: BodyStep,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if bytes <= BRIEF_BODY_BYTES {
            return work();
        }
        // Boxed, as it is rare, so that short bodies need no room for it.
        Box::pin(self.in_body_turn(step, work)).await
    }

    async fn in_body_turn<T: Send + 'static>(
        &self,
        step: BodyStep,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.bodies.begun.fetch_add(1, Ordering::Relaxed);
        let in_turn = |turn: Option<OwnedSemaphorePermit>| {
            move || {
                let made = work();
                drop(turn);
                made
            }
        };
        let mut waiting = Box::pin(Arc::clone(&self.bodies).turn(step));
        // Polled here once, so that it has its place in the order in which bodies came.
        if let Some(turn) = (&mut waiting).now_or_never() {
            return self.blocking(in_turn(turn)).await;
        }
        // The caller may keep this future and not poll it for a while, such as during another
        // request. No other body could use a turn that came meanwhile, so a task waits for it.
        let tasks = self.clone();
        let task = self.spawn(async move {
            let turn = waiting.await;
            tasks.blocking(in_turn(turn)).await
        });
        joined(AbortOnDropHandle::new(task)).await
    }

    /// How often there was work on a body that is too long for the threads that serve requests.
    pub(crate) fn long_bodies(&self) -> u64 {
        self.bodies.begun.load(Ordering::Relaxed)
    }

    /// Runs blocking work once, on the blocking pool, and waits for it. Never completes when the
    /// runtime shuts down before that. A panic in it continues here.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        joined(self.spawn_blocking(work)).await
    }

    /// Waits until every task has ended, for at most `limit`.
    pub async fn finish(&self, limit: Duration) -> Finish {
        self.tracker.close();
        match tokio::time::timeout(limit, self.tracker.wait()).await {
            Ok(()) => Finish::Clean,
            Err(_) => Finish::Cut(self.tracker.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_on_all_cores_gives_everything_in_order() {
        for count in [0, 1, SHARE, 10 * SHARE + 1] {
            let results = in_parallel((0..count).collect(), |item| item * 2);
            assert_eq!(results, (0..count).map(|item| item * 2).collect::<Vec<_>>());
        }
        let panicked = std::panic::catch_unwind(|| {
            in_parallel((0..10 * SHARE).collect(), |item| assert!(item < SHARE))
        });
        assert!(panicked.is_err());
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn background_work_has_a_low_priority_of_its_own_and_no_stop_waits_for_it() {
        let tasks = Tasks::new();
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let ours = nice();
        assert_eq!(tasks.in_background(nice).await, (ours + BACKGROUND).min(19));
        assert_eq!(nice(), ours, "only that thread is slower");
        assert_eq!(
            tasks.off_thread(nice).await,
            ours,
            "no thread of the pool is"
        );

        let background = tasks.clone();
        let panicked = tasks.spawn(async move {
            background
                .in_background(|| panic!("in the background"))
                .await
        });
        assert_eq!(
            panic_text(&*panicked.await.unwrap_err().into_panic()),
            "panic: in the background"
        );

        let (go, gone) = std::sync::mpsc::sync_channel::<()>(1);
        let gone = std::sync::Arc::new(parking_lot::Mutex::new(gone));
        let mut begun = Box::pin(tasks.in_background(move || gone.lock().recv()));
        assert!(futures_util::poll!(begun.as_mut()).is_pending());
        drop(begun);
        assert_eq!(
            tasks.finish(Duration::from_secs(10)).await,
            Finish::Clean,
            "its result is not needed"
        );
        go.send(()).unwrap();
    }

    #[tokio::test]
    async fn only_some_background_work_runs_at_once_also_when_its_futures_were_dropped() {
        let tasks = Tasks::new();
        let (go, gone) = std::sync::mpsc::sync_channel::<()>(BACKGROUND_AT_ONCE);
        let gone = Arc::new(parking_lot::Mutex::new(gone));
        for _ in 0..BACKGROUND_AT_ONCE {
            let gone = Arc::clone(&gone);
            let mut begun = Box::pin(tasks.in_background(move || gone.lock().recv().is_ok()));
            assert!(futures_util::poll!(begun.as_mut()).is_pending());
        }
        let mut next = Box::pin(tasks.in_background(|| 1));
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        assert_eq!(tasks.background.available_permits(), 0);
        go.send(()).unwrap();
        assert_eq!(next.await, 1);
    }

    #[tokio::test]
    async fn only_some_long_bodies_are_worked_on_at_once_and_short_ones_wait_for_none() {
        fn unwanted() {
            panic!("its request has gone away");
        }
        let tasks = Tasks::new();
        let long = BRIEF_BODY_BYTES + 1;
        let (go, gone) = std::sync::mpsc::sync_channel::<()>(BODIES_AT_ONCE);
        let gone = Arc::new(parking_lot::Mutex::new(gone));
        let held = |step| {
            let gone = Arc::clone(&gone);
            let wait = move || gone.lock().recv().is_ok();
            let mut begun = Box::pin(tasks.work_on_body(step, long, wait));
            assert!(begun.as_mut().now_or_never().is_none());
            begun
        };
        let first = [BodyStep::First; BODIES_AT_ONCE].map(held);
        let ours = std::thread::current().id();
        let thread = || std::thread::current().id();
        let mut next = Box::pin(tasks.work_on_body(BodyStep::First, long, thread));
        assert!(next.as_mut().now_or_never().is_none());
        let left = tasks.work_on_body(BodyStep::Further, long, unwanted);
        assert!(left.now_or_never().is_none());
        assert_eq!(tasks.bodies.turns.available_permits(), 0);
        let brief = tasks.work_on_body(BodyStep::First, BRIEF_BODY_BYTES, thread);
        assert_eq!(brief.now_or_never(), Some(ours));
        for _ in &first {
            go.send(()).unwrap();
        }
        assert_ne!(next.await, ours);
        assert_eq!(tasks.long_bodies(), 4);
    }

    #[tokio::test]
    async fn further_work_on_a_long_body_waits_for_one_that_has_just_come_at_most() {
        let tasks = Tasks::new();
        let long = BRIEF_BODY_BYTES + 1;
        let turns = Arc::clone(&tasks.bodies.turns);
        let held = turns.acquire_many_owned(2).await.unwrap();
        let order = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let begin = |name: &'static str, step| {
            let order = Arc::clone(&order);
            let note = move || order.lock().push(name);
            let mut begun = Box::pin(tasks.work_on_body(step, long, note));
            assert!(begun.as_mut().now_or_never().is_none());
            begun
        };
        let came = begin("came", BodyStep::First);
        let later = begin("came later", BodyStep::First);
        let last = begin("came last", BodyStep::First);
        let further = begin("further", BodyStep::Further);
        tasks.bodies.turns.add_permits(1);
        came.await;
        futures_util::future::join3(further, later, last).await;
        assert_eq!(
            *order.lock(),
            ["came", "further", "came later", "came last"]
        );
        drop(held);
    }

    /// Such as the next event of a stream, while an answer to the server of the stream is sent.
    #[tokio::test]
    async fn a_long_body_that_is_kept_and_not_polled_holds_up_no_other() {
        let tasks = Tasks::new();
        let long = BRIEF_BODY_BYTES + 1;
        let turns = Arc::clone(&tasks.bodies.turns);
        let held = turns.acquire_many_owned(2).await.unwrap();
        let begin = |step| {
            let mut begun = Box::pin(tasks.work_on_body(step, long, || 7));
            assert!(begun.as_mut().now_or_never().is_none());
            begun
        };
        // As many as there are turns, and one that is in front.
        let further = [BodyStep::Further; BODIES_AT_ONCE].map(begin);
        let first = begin(BodyStep::First);
        drop(held);
        for step in [BodyStep::First, BodyStep::Further] {
            let other = tasks.work_on_body(step, long, || 8);
            let limit = Duration::from_secs(10);
            assert_eq!(tokio::time::timeout(limit, other).await, Ok(8), "{step:?}");
        }
        assert_eq!(first.await, 7);
        assert_eq!(futures_util::future::join_all(further).await, [7, 7]);
    }

    /// No stop waits for work whose caller has gone away while it waited for a turn.
    #[tokio::test]
    async fn a_long_body_whose_future_was_dropped_gives_its_place_up() {
        fn unwanted() {
            panic!("its request has gone away");
        }
        let tasks = Tasks::new();
        let turns = Arc::clone(&tasks.bodies.turns);
        let held = turns.acquire_many_owned(2).await.unwrap();
        let left = tasks.work_on_body(BodyStep::First, BRIEF_BODY_BYTES + 1, unwanted);
        assert!(left.now_or_never().is_none());
        assert_eq!(tasks.finish(Duration::from_secs(10)).await, Finish::Clean);
        assert_eq!(tasks.bodies.front.available_permits(), 1);
        drop(held);
        assert_eq!(tasks.bodies.turns.available_permits(), BODIES_AT_ONCE);
    }

    #[tokio::test]
    async fn what_is_begun_goes_to_its_end_also_when_nobody_waits_any_more() {
        let tasks = Tasks::new();
        let (go, gone) = tokio::sync::oneshot::channel();
        assert_eq!(tasks.run_to_completion(std::future::ready(7)).await, 7);
        assert!(tasks.tracker.is_empty(), "no task was needed");

        let (sender, hears) = tokio::sync::oneshot::channel();
        let mut begun = Box::pin(tasks.run_to_completion(async move { sender.send(gone.await) }));
        assert!(futures_util::poll!(begun.as_mut()).is_pending());
        drop(begun);
        go.send(8).unwrap();
        assert_eq!(hears.await.unwrap(), Ok(8));
        assert_eq!(tasks.finish(Duration::from_secs(10)).await, Finish::Clean);
    }
}
