//! A mark in the environment of every program, by which all that it started is found.
//!
//! A process that makes itself a session of its own (`setsid`) leaves the process group of its
//! program, and one whose parent has ended is the child of another process. Both keep the
//! environment with which their program was started, and the system shows it to the same user
//! (proc(5)). So the mark finds them wherever they are, in the daemon as well as in its watchdog,
//! which is the parent of none of them. A process that was started with an empty environment is
//! not found.
//!
//! A number of a process may be used again at any time. So a process is held open (`pidfd_open(2)`)
//! before its mark is read, and the signal goes to what is held open.

use std::fmt;
use std::sync::Arc;

use super::group::{EndSignal, ProcessGroup};

/// The variable that has the mark.
const NAME: &str = "STARTED_BY_CALLSHEET";

/// Bytes of an environment that are read.
#[cfg(target_os = "linux")]
const READ: u64 = 1 << 20;

/// The mark of one daemon, or of one of its programs. That of the daemon fits all of its programs.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ProgramMark(Arc<str>);

impl ProgramMark {
    /// A new one, which no other daemon has.
    pub(super) fn of_daemon() -> Self {
        Self(format!("{}.", uuid::Uuid::new_v4().simple()).into())
    }

    /// That of the daemon's program with this number.
    pub(super) fn of_program(&self, number: u64) -> Self {
        Self(format!("{}{number}.", self.0).into())
    }

    /// The mark with this text, if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        (text.len() > 32 && text.ends_with('.')).then(|| Self(text.into()))
    }

    /// Its text, which is the value of [`Self::name`].
    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The variable of the environment that has it.
    pub(super) fn name() -> &'static str {
        NAME
    }
}

impl fmt::Debug for ProgramMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(target_os = "linux")]
impl ProgramMark {
    /// Sends a signal, if one is given, to every process with this mark that is in none of these
    /// groups. Returns whether there is one. Takes some milliseconds.
    pub(super) fn signal(&self, signal: Option<EndSignal>, but: &[ProcessGroup]) -> bool {
        use rustix::process::{Pid, PidfdFlags, getpgid, pidfd_open, pidfd_send_signal};

        let Ok(processes) = std::fs::read_dir("/proc") else {
            return false;
        };
        let mut is_any = false;
        for process in processes.flatten() {
            let number = process
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            let Some(id) = number
                .and_then(Pid::from_raw)
                .filter(|_| self.is_in(&process.path()))
            else {
                continue;
            };
            let group = getpgid(Some(id))
                .map(|group| ProcessGroup::led_by(group.as_raw_nonzero().get().cast_unsigned()));
            if group.is_ok_and(|group| but.contains(&group)) {
                continue;
            }
            let Ok(held) = pidfd_open(id, PidfdFlags::empty()) else {
                continue;
            };
            if !self.is_in(&process.path()) {
                continue;
            }
            is_any = true;
            if let Some(signal) = signal {
                let _ = pidfd_send_signal(held, signal.number());
            }
        }
        is_any
    }

    /// Whether it is in the environment of the process with this folder. A process that has ended
    /// has none.
    fn is_in(&self, process: &std::path::Path) -> bool {
        use std::io::Read as _;

        let Ok(file) = std::fs::File::open(process.join("environ")) else {
            return false;
        };
        let mut environment = Vec::new();
        // What was read before an error is looked at.
        let _ = file.take(READ).read_to_end(&mut environment);
        environment.split(|byte| *byte == 0).any(|variable| {
            let value = variable
                .strip_prefix(NAME.as_bytes())
                .and_then(|rest| rest.strip_prefix(b"="));
            value.is_some_and(|value| value.starts_with(self.0.as_bytes()))
        })
    }
}

#[cfg(not(target_os = "linux"))]
impl ProgramMark {
    /// Other systems do not show the environment of a process.
    pub(super) fn signal(&self, _signal: Option<EndSignal>, _but: &[ProcessGroup]) -> bool {
        false
    }
}
