//! The process group of a child: the child and everything that it started and that did not leave
//! it.
//!
//! Signals go to whole groups, because many commands (`npx`, `uvx`) are wrappers whose servers are
//! their children.

use std::time::Duration;

use super::mark::ProgramMark;
use crate::runtime::{Clock, Tasks};

/// A process group that was made for a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessGroup(u32);

/// How a group is ended: by request or by force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EndSignal {
    /// SIGTERM.
    Terminate,
    /// SIGKILL.
    Kill,
}

impl ProcessGroup {
    /// The group that a child leads, by its process id.
    pub(super) fn led_by(id: u32) -> Self {
        Self(id)
    }

    /// Its number.
    pub(super) fn id(self) -> u32 {
        self.0
    }
}

/// The time between the steps of a stop.
pub(super) const GRACE: Duration = Duration::from_secs(3);

/// How often groups are looked at while they end.
const LOOK: Duration = Duration::from_millis(50);

/// Ends all that is left in some groups, and all processes with the mark outside of them: SIGTERM,
/// and after [`GRACE`] SIGKILL.
pub(super) async fn end_processes(groups: &[ProcessGroup], mark: Option<&ProgramMark>, tasks: &Tasks, clock: Clock) {
    for signal in [EndSignal::Terminate, EndSignal::Kill] {
        let living: Vec<_> = groups.iter().copied().filter(|group| group.is_alive()).collect();
        for group in &living {
            group.signal(signal);
        }
        let deadline = clock.now() + GRACE;
        // A process may start others while it is ended, so killing is repeated.
        let again = Some(signal).filter(|signal| *signal == EndSignal::Kill);
        let mut is_marked_left = signal_marked(mark, Some(signal), groups, tasks).await;
        while (is_marked_left || living.iter().any(|group| group.is_alive())) && clock.now() < deadline {
            clock.sleep(LOOK).await;
            is_marked_left = is_marked_left && signal_marked(mark, again, groups, tasks).await;
        }
    }
}

/// Sends a signal, if one is given, to all processes with the mark outside of these groups. Returns
/// whether there is one.
async fn signal_marked(
    mark: Option<&ProgramMark>,
    signal: Option<EndSignal>,
    but: &[ProcessGroup],
    tasks: &Tasks,
) -> bool {
    let Some(mark) = mark.cloned() else { return false };
    let but = but.to_vec();
    tasks.blocking(move || mark.signal(signal, &but)).await
}

#[cfg(unix)]
impl EndSignal {
    /// As the system knows it.
    pub(super) fn number(self) -> rustix::process::Signal {
        match self {
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
        }
    }
}

#[cfg(unix)]
impl ProcessGroup {
    /// Whether any process is in it.
    pub(super) fn is_alive(self) -> bool {
        // One that may not be signalled is one.
        self.number().is_some_and(|group| {
            !matches!(rustix::process::test_kill_process_group(group), Err(rustix::io::Errno::SRCH))
        })
    }

    /// Sends a signal to all of its processes. There may be none.
    pub(super) fn signal(self, signal: EndSignal) {
        if let Some(group) = self.number() {
            let _ = rustix::process::kill_process_group(group, signal.number());
        }
    }

    /// Numbers that stand for other groups or for this process's own one are none.
    fn number(self) -> Option<rustix::process::Pid> {
        let number = i32::try_from(self.0).ok().filter(|number| *number > 1)?;
        rustix::process::Pid::from_raw(number)
    }
}

#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn is_alive(self) -> bool {
        false
    }

    pub(super) fn signal(self, _signal: EndSignal) {}
}
