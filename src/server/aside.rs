//! Waiting for something beside the work of a task, without looking at it whenever that work goes on.
//!
//! Whatever a task waits for is usually polled each time the task is woken, which for a connection is several times per request. What is
//! waited for through a [`Gate`] is polled only when it was woken itself. Nothing is decided here.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// What one future is polled through.
#[derive(Debug, Default)]
pub(super) struct Gate(Option<(Arc<Woken>, Waker)>);

/// Notes that the future was woken, and wakes the task.
#[derive(Debug)]
struct Woken {
    noted: AtomicBool,
    task: Waker,
}

impl Gate {
    /// Polls the future, which is always the same one, for the first time and whenever it was woken since. Must not be called again
    /// after the future gave its output.
    pub(super) fn poll<F: Future>(&mut self, future: Pin<&mut F>, context: &mut Context<'_>) -> Poll<F::Output> {
        let known = self.0.as_ref().filter(|(woken, _)| woken.task.will_wake(context.waker()));
        if let Some((woken, waker)) = known {
            // Looking first: most of the time there is nothing to take back.
            if !woken.noted.load(Ordering::Acquire) || !woken.noted.swap(false, Ordering::AcqRel) {
                return Poll::Pending;
            }
            return future.poll(&mut Context::from_waker(waker));
        }
        // The first time, or the task is polled by somebody else now, whom the future has to be told of.
        let woken = Arc::new(Woken { noted: AtomicBool::new(false), task: context.waker().clone() });
        let (_, waker) = self.0.insert((Arc::clone(&woken), Waker::from(woken)));
        future.poll(&mut Context::from_waker(waker))
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.noted.store(true, Ordering::Release);
        self.task.wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;

    /// Counts how often it was woken.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_polled_when_it_was_woken_and_not_else() {
        let task = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut context = Context::from_waker(&waker);
        let (polled, given) = (Cell::new(0), Cell::new(None));
        let mut future = pin!(poll_fn(|context: &mut Context<'_>| {
            polled.set(polled.get() + 1);
            given.set(Some(context.waker().clone()));
            if polled.get() == 2 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let mut gate = Gate::default();
        for _ in 0..5 {
            assert!(gate.poll(future.as_mut(), &mut context).is_pending());
        }
        assert_eq!(polled.get(), 1);
        given.take().unwrap().wake();
        assert_eq!(task.0.load(Ordering::Relaxed), 1, "the task is told");
        assert!(gate.poll(future.as_mut(), &mut context).is_ready());
        assert_eq!(polled.get(), 2);
    }

    #[test]
    fn another_task_gets_to_see_it_at_once() {
        let wakers = [Waker::from(Arc::new(Counting::default())), Waker::from(Arc::new(Counting::default()))];
        let mut polled = 0;
        let mut future = pin!(poll_fn(|_: &mut Context<'_>| {
            polled += 1;
            Poll::<()>::Pending
        }));
        let mut gate = Gate::default();
        for waker in &wakers {
            assert!(gate.poll(future.as_mut(), &mut Context::from_waker(waker)).is_pending());
        }
        assert_eq!(polled, 2);
    }
}
