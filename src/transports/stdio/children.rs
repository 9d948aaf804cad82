//! Starts child processes, and waits for all of them at the end.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::MutexGuard;
use ring::hmac;
use tokio::process::Command;
use tokio::sync::{Mutex, mpsc, watch};
use url::Url;

use super::cost::{ProgramCosts, ProgramGroups};
use super::end_processes::GRACE;
use super::ending::Supervised;
use super::group::ProcessGroup;
use super::lines::{WAITING, read_stdout};
use super::mark::ProgramMark;
use super::stderr::{StderrTail, read_stderr};
use super::watchdog::{Watchdog, WatchdogCommand};
use super::{ChildProcess, ProcessFault, ProgramMasks, environment, lookup};
use crate::model::text::hexadecimal;
use crate::model::{ProgramCost, Secret, StdioTarget};
use crate::runtime::tasks::Finish;
use crate::runtime::{Clock, Stop, StopTrigger, Tasks};
use crate::transports::TransportError;

/// How long [`Children::close`] waits: all steps of a stop, and a moment.
const CLOSE: Duration = Duration::from_secs(3 * GRACE.as_secs() + 1);

/// What a digest of a program is made for, so that it is no signature of anything else.
const DIGEST_PURPOSE: &str = "callsheet program ";

/// The child processes of one daemon.
#[derive(Debug)]
pub struct Children {
    clock: Clock,
    /// One task for each process until its group has ended, and two for its output.
    tasks: Tasks,
    watchdog: Arc<Watchdog>,
    mark: ProgramMark,
    /// The key of digests of programs.
    key: OnceLock<Secret>,
    /// Programs that were started.
    started: AtomicU64,
    /// Those that have not ended with all that they started.
    running: Arc<RunningPrograms>,
    costs: ProgramCosts,
    closing: StopTrigger,
    closes: Stop,
}

/// Programs by the number of their start.
#[derive(Debug, Default)]
struct RunningPrograms {
    programs: parking_lot::Mutex<BTreeMap<u64, RunningProgram>>,
    /// Changes when a program has ended.
    ends: watch::Sender<()>,
}

/// A program that runs, or of which some process does.
#[derive(Debug)]
struct RunningProgram {
    /// The command line.
    command: Arc<str>,
    /// The address of its target.
    address: Url,
    group: ProcessGroup,
}

impl RunningPrograms {
    fn programs(&self) -> MutexGuard<'_, BTreeMap<u64, RunningProgram>> {
        self.programs.lock()
    }

    fn groups(&self) -> ProgramGroups {
        let programs = self.programs();
        let groups = programs
            .iter()
            .map(|(number, program)| (*number, program.group));
        groups.collect()
    }

    /// The number of the latest start of a program.
    fn latest_of(&self, target: &StdioTarget) -> Option<u64> {
        let programs = self.programs();
        let mut latest = programs.iter().rev();
        latest
            .find(|(_, program)| program.address == *target.url())
            .map(|(number, _)| *number)
    }
}

impl Children {
    /// None yet. Without a watchdog, children outlive this process when it is killed, unless they
    /// take the end of their input for their own.
    pub fn new(clock: Clock) -> Arc<Self> {
        Self::watched(clock, None)
    }

    /// None yet; the watchdog is started with the first.
    pub fn watched(clock: Clock, watchdog: Option<WatchdogCommand>) -> Arc<Self> {
        let (closing, closes) = StopTrigger::new();
        let mark = ProgramMark::of_daemon();
        let watchdog = Arc::new(Watchdog::new(watchdog, mark.clone()));
        let started = AtomicU64::new(0);
        let tasks = Tasks::new();
        Arc::new(Self {
            clock,
            costs: ProgramCosts::new(tasks.clone(), clock),
            tasks,
            watchdog,
            mark,
            key: OnceLock::new(),
            started,
            running: Arc::default(),
            closing,
            closes,
        })
    }

    /// Starts a process. Fails with [`TransportError::CommandNotFound`] or
    /// [`TransportError::NotStarted`].
    pub(in crate::transports) fn start(
        &self,
        target: &StdioTarget,
    ) -> Result<ChildProcess, TransportError> {
        let program = lookup::program(target, std::env::var_os("PATH"))?;
        let line = target.to_string();
        let failed = |message: String| TransportError::NotStarted {
            command: line.clone(),
            message,
        };
        if let Some(cwd) = target.cwd().filter(|cwd| !cwd.is_dir()) {
            return Err(failed(format!(
                "its working folder {} is not a folder",
                cwd.display()
            )));
        }
        let mut command = Command::new(program);
        command
            .args(target.args())
            .env_clear()
            .envs(environment::passed(std::env::vars_os()));
        command.envs(
            target
                .env()
                .iter()
                .map(|(name, value)| (name, value.expose())),
        );
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let mark = self.mark.of_program(number);
        command.env(ProgramMark::name(), mark.text());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = target.cwd() {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        self.watchdog.start();
        let child = command.spawn().map_err(|error| failed(why_not(&error)))?;
        self.supervised(child, number, mark, target)
            .ok_or_else(|| failed("it ended at once".to_owned()))
    }

    /// Takes the key of digests of programs; the first one counts.
    pub fn set_key(&self, key: Secret) {
        let _ = self.key.set(key);
    }

    /// See [`Transports::program_digest`](crate::transports::Transports::program_digest).
    pub(in crate::transports) fn digest_of(&self, target: &StdioTarget) -> Option<Arc<str>> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.key.get()?.expose().as_bytes());
        // The address has a digest of every field.
        let signed = format!("{DIGEST_PURPOSE}{}", target.url());
        let tag = hmac::sign(&key, signed.as_bytes());
        Some(format!("program {}", hexadecimal(tag.as_ref())).into())
    }

    /// Completes when no program of this target runs. A stop has a limit, and so has this.
    pub(in crate::transports) async fn ended(&self, target: &StdioTarget) {
        let mut changes = self.running.ends.subscribe();
        let ended = async {
            while self.running.latest_of(target).is_some() {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        };
        // What did not end by then does not even end after SIGKILL.
        let _ = tokio::time::timeout(CLOSE, ended).await;
    }

    /// The command lines of the programs that run, or of which some process does.
    pub fn running(&self) -> Vec<Arc<str>> {
        let programs = self.running.programs();
        let commands = programs.values().map(|program| &program.command);
        commands.cloned().collect()
    }

    /// What the program of a target costs, of several runs the latest. `None` if none runs, and
    /// where the system does not show it.
    pub(in crate::transports) async fn cost_of(&self, target: &StdioTarget) -> Option<ProgramCost> {
        let number = self.running.latest_of(target)?;
        let table = self.costs.current(|| self.running.groups()).await;
        table.get(&number).copied()
    }

    /// Starts what watches over a new process.
    fn supervised(
        &self,
        mut child: tokio::process::Child,
        number: u64,
        mark: ProgramMark,
        target: &StdioTarget,
    ) -> Option<ChildProcess> {
        let group = ProcessGroup::led_by(child.id()?);
        self.watchdog.watch(group);
        let stdout = child.stdout.take()?;
        let stderr = child.stderr.take()?;
        let input = Arc::new(Mutex::new(child.stdin.take()));
        let (out, lines) = mpsc::channel(WAITING);
        let (cut, uncut) = StopTrigger::new();
        let tail = StderrTail::default();
        let masks = ProgramMasks::of(target);
        let reads_stderr = self.tasks.spawn(read_stderr(
            stderr,
            tail.clone(),
            masks.lines.clone(),
            uncut.clone(),
            self.clock,
        ));
        let (end, ended) = watch::channel(None);
        let fault = ProcessFault::new(&self.closes);
        let reads_stdout =
            self.tasks
                .spawn(read_stdout(stdout, out, fault.clone(), uncut, self.clock));
        let supervised = Supervised {
            child,
            group,
            mark,
            input: Arc::clone(&input),
            fault: fault.clone(),
            stderr: tail.clone(),
            reads_stderr,
            reads_stdout,
            cut,
            end,
            started: self.clock.now(),
            watchdog: Arc::clone(&self.watchdog),
            tasks: self.tasks.clone(),
            clock: self.clock,
        };
        let command: Arc<str> = target.to_string().into();
        let program = RunningProgram {
            command: Arc::clone(&command),
            address: target.url().clone(),
            group,
        };
        self.running.programs().insert(number, program);
        let running = Arc::clone(&self.running);
        self.tasks.spawn(async move {
            supervised.run().await;
            running.programs().remove(&number);
            running.ends.send_replace(());
        });
        let tasks = self.tasks.clone();
        Some(ChildProcess {
            command,
            input,
            lines: Some(lines),
            stderr: tail,
            masks,
            end: ended,
            fault,
            tasks,
        })
    }

    /// Stops every process and waits until all have ended, for a limited time. One that is started
    /// after it is stopped at once.
    pub async fn close(&self) -> Finish {
        self.closing.stop();
        self.tasks.finish(CLOSE).await
    }
}

/// Why a program that is there was not started.
fn why_not(error: &std::io::Error) -> String {
    match error.kind() {
        // The program itself was found before.
        ErrorKind::NotFound => "the interpreter that its first line names was not found".to_owned(),
        ErrorKind::PermissionDenied => "it may not be executed".to_owned(),
        _ => error.to_string(),
    }
}
