//! A second process that ends the children of a daemon that was killed.
//!
//! A killed process cannot end its children. The system can end a child when its parent dies, but
//! not the children of that child, and many commands (`npx`, `uvx`) are wrappers around the server.
//! So one further process holds the read end of a pipe from the daemon and knows the process groups
//! of all children and their mark. When the pipe ends, however the daemon ended, it ends what is
//! left of them.
//!
//! ```text
//! daemon --"=MARK", "+4711", "-4711", ... over a pipe--> watchdog --SIGTERM, SIGKILL--> groups
//! ```
//!
//! The watchdog is the same program, started with the first child ([`WatchdogCommand`]). It runs
//! [`run`] only. A child that is started in the moment in which the daemon is killed may be unknown
//! to it, where the system does not show its mark.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io::{BufRead, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use parking_lot::Mutex;

use super::end_processes::end_processes;
use super::group::ProcessGroup;
use super::mark::ProgramMark;
use crate::runtime::{Clock, Tasks, signal};

/// How the watchdog is started: a program that calls [`run`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchdogCommand {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl WatchdogCommand {
    /// The program of this process with these arguments. `None` if it is not known where that is.
    pub fn of_this_program(args: &[&str]) -> Option<Self> {
        // This one is the running program even if its file was replaced since.
        let running = PathBuf::from("/proc/self/exe");
        let program = if running.exists() {
            running
        } else {
            std::env::current_exe().ok()?
        };
        Some(Self {
            program,
            args: args.iter().map(OsString::from).collect(),
        })
    }
}

/// The daemon's end of the pipe.
pub(super) struct Watchdog {
    command: Option<WatchdogCommand>,
    mark: ProgramMark,
    state: Mutex<WatchdogState>,
}

/// The running watchdog, and what it knows.
#[derive(Default)]
struct WatchdogState {
    running: Option<Child>,
    groups: BTreeSet<ProcessGroup>,
}

impl Watchdog {
    pub(super) fn new(command: Option<WatchdogCommand>, mark: ProgramMark) -> Self {
        Self {
            command,
            mark,
            state: Mutex::default(),
        }
    }

    /// Starts the watchdog, unless it runs. Failing at that is no reason not to start a child.
    pub(super) fn start(&self) {
        self.state().start(self.command.as_ref(), &self.mark);
    }

    /// Has a group ended when this process ends.
    pub(super) fn watch(&self, group: ProcessGroup) {
        let mut state = self.state();
        state.groups.insert(group);
        if !state.send('+', group.id()) {
            // It was killed itself. A new one is given all groups.
            state.start(self.command.as_ref(), &self.mark);
        }
    }

    /// Takes a group back that has ended: its number may soon be another one's.
    pub(super) fn forget(&self, group: ProcessGroup) {
        let mut state = self.state();
        state.groups.remove(&group);
        state.send('-', group.id());
    }

    fn state(&self) -> parking_lot::MutexGuard<'_, WatchdogState> {
        self.state.lock()
    }
}

impl WatchdogState {
    /// Starts it with the mark and all groups, unless it runs.
    fn start(&mut self, command: Option<&WatchdogCommand>, mark: &ProgramMark) {
        let Some(command) = command.filter(|_| self.running.is_none()) else {
            return;
        };
        match spawn(command) {
            Ok(child) => self.running = Some(child),
            Err(error) => {
                tracing::warn!(%error, "no watchdog: child processes may outlive this process if it is killed");
            }
        }
        self.send('=', mark.text());
        for group in self.groups.clone() {
            self.send('+', group.id());
        }
    }

    /// Writes one line. The pipe holds thousands of them. Returns whether there is a watchdog.
    fn send(&mut self, sign: char, what: impl fmt::Display) -> bool {
        let pipe = self
            .running
            .as_mut()
            .and_then(|running| running.stdin.as_mut());
        if pipe.is_some_and(|pipe| pipe.write_all(format!("{sign}{what}\n").as_bytes()).is_ok()) {
            return true;
        }
        if let Some(mut ended) = self.running.take() {
            // It has ended, so this does not wait.
            let _ = ended.kill();
            let _ = ended.wait();
        }
        false
    }
}

impl Drop for WatchdogState {
    /// Ends the watchdog and, by that, what it still knows.
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            drop(running.stdin.take());
        }
    }
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watchdog")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

fn spawn(command: &WatchdogCommand) -> std::io::Result<Child> {
    let mut program = Command::new(&command.program);
    program.args(&command.args).env_clear().current_dir("/");
    program
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt as _;

        // In a group of its own, Ctrl-C in a terminal does not end it before the daemon.
        program.process_group(0).arg0("callsheet");
    }
    program.spawn()
}

/// The watchdog itself: reads the mark and groups from standard input until it ends, and then ends
/// what is left of them. Signals that stop a service do not end it, because the daemon may still
/// need it then.
pub async fn run() -> std::io::Result<()> {
    signal::ignore_stop_signals()?;
    let tasks = Tasks::new();
    let left = tasks.blocking(|| read_input(std::io::stdin().lock())).await;
    end_processes(&left.groups, left.mark.as_ref(), &tasks, Clock::system()).await;
    Ok(())
}

/// What is to be ended.
struct LeftProcesses {
    /// Groups that were not taken back.
    groups: Vec<ProcessGroup>,
    mark: Option<ProgramMark>,
}

/// Reads lines until the input ends.
fn read_input(input: impl BufRead) -> LeftProcesses {
    let mut groups = BTreeSet::new();
    let mut mark = None;
    for line in input.lines().map_while(Result::ok) {
        let group = line
            .get(1..)
            .and_then(|number| number.parse().ok())
            .map(ProcessGroup::led_by);
        match (line.as_bytes().first(), group) {
            (Some(b'+'), Some(group)) => _ = groups.insert(group),
            (Some(b'-'), Some(group)) => _ = groups.remove(&group),
            (Some(b'='), _) => mark = ProgramMark::parse(&line[1..]),
            _ => {}
        }
    }
    LeftProcesses {
        groups: groups.into_iter().collect(),
        mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_were_taken_back_are_not_ended() {
        let left = read_input(&b"+7\n+8\nx\n-7\n+9\n+\n-10\n=\n"[..]);
        assert_eq!(
            left.groups
                .iter()
                .map(|group| group.id())
                .collect::<Vec<_>>(),
            [8, 9]
        );
        assert_eq!(left.mark, None, "an empty mark would fit every process");
    }
}
