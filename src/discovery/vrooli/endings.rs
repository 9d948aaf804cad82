//! Waits for the end of processes.
//!
//! On Linux each process is held by a pidfd (`pidfd_open(2)`), which becomes readable when it ends.
//! Where there is none (another system, an older kernel, a sandbox), the processes have to be
//! looked at every [`UNWATCHED`]. Signals no process.

use std::collections::BTreeSet;
use std::time::Duration;

/// How often processes are looked at whose end is not signalled.
const UNWATCHED: Duration = Duration::from_secs(2);

/// The processes whose end is waited for.
#[derive(Debug, Default)]
pub(super) struct Endings {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    held: std::collections::BTreeMap<u32, tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
    /// Whether there are processes whose end is not signalled.
    unwatched: bool,
}

impl Endings {
    /// Waits for the end of exactly these processes from now on.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn watch(&mut self, pids: &BTreeSet<u32>) {
        use rustix::process::{Pid, PidfdFlags, pidfd_open};
        use tokio::io::Interest;
        use tokio::io::unix::AsyncFd;

        self.held.retain(|pid, _| pids.contains(pid));
        self.unwatched = false;
        for pid in pids {
            if self.held.contains_key(pid) {
                continue;
            }
            let raw = i32::try_from(*pid).ok().and_then(Pid::from_raw);
            let opened = raw.and_then(|raw| pidfd_open(raw, PidfdFlags::empty()).ok());
            #[expect(
                deprecated,
                reason = "the danger is a descriptor that is closed meanwhile, and this one is owned"
            )]
            let held =
                opened.and_then(|opened| AsyncFd::with_interest(opened, Interest::READABLE).ok());
            match held {
                Some(held) => _ = self.held.insert(*pid, held),
                None => self.unwatched = true,
            }
        }
    }

    /// Waits for the end of exactly these processes from now on.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn watch(&mut self, pids: &BTreeSet<u32>) {
        self.unwatched = !pids.is_empty();
    }

    /// How long a look at the processes may be put off, when it is done every `rescan` anyway.
    pub(super) fn pause(&self, rescan: Duration) -> Duration {
        if self.unwatched {
            rescan.min(UNWATCHED)
        } else {
            rescan
        }
    }

    /// Waits until one of the processes ends. It is not waited for again unless it is watched anew.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) async fn next(&mut self) {
        let ended = std::future::poll_fn(|context| {
            let ended = self
                .held
                .iter()
                .find(|(_, held)| held.poll_read_ready(context).is_ready());
            ended.map_or(std::task::Poll::Pending, |(pid, _)| {
                std::task::Poll::Ready(*pid)
            })
        });
        let ended = ended.await;
        self.held.remove(&ended);
    }

    /// Waits until one of the processes ends, which this system does not signal.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) async fn next(&mut self) {
        std::future::pending().await
    }
}
