//! The process group of a child: the child and everything that it started and that did not leave
//! it.
//!
//! Signals go to whole groups, because many commands (`npx`, `uvx`) are wrappers whose servers are
//! their children.

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
            !matches!(
                rustix::process::test_kill_process_group(group),
                Err(rustix::io::Errno::SRCH)
            )
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
