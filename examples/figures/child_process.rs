//! Processes of this same program in another role.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child as Process, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::hostile_mcp;

/// The program whose daemon is measured, if it is not this one.
pub(crate) static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// A running role; killed when dropped.
pub(crate) struct Child {
    process: Process,
    out: BufReader<ChildStdout>,
}

impl Child {
    /// Starts a role. On a machine with `taskset` it is held on `core`, if one is given.
    pub(crate) fn start(core: Option<usize>, arguments: &[String]) -> Result<Self> {
        Self::of(&std::env::current_exe()?, core, arguments)
    }

    /// Starts a role that stands for programs of other machines: it gets the processor after all
    /// others, on a system with `nice`, so that its own work is not measured as the daemon's.
    pub(crate) fn start_last(arguments: &[String]) -> Result<Self> {
        let program = std::env::current_exe()?;
        if !Path::new("/usr/bin/nice").exists() {
            return Self::of(&program, None, arguments);
        }
        let mut command = Command::new("/usr/bin/nice");
        command.args(["-n", "19"]).arg(program);
        Self::run(command, arguments)
    }

    /// Starts a program, held on `core` in the same way.
    fn of(program: &Path, core: Option<usize>, arguments: &[String]) -> Result<Self> {
        let command = match core {
            Some(core) if Path::new("/usr/bin/taskset").exists() => {
                let mut command = Command::new("/usr/bin/taskset");
                command.args(["-c", &core.to_string()]).arg(program);
                command
            }
            _ => Command::new(program),
        };
        Self::run(command, arguments)
    }

    fn run(mut command: Command, arguments: &[String]) -> Result<Self> {
        let mut process = command
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start a child")?;
        let out = process.stdout.take().context("a child without output")?;
        Ok(Self {
            process,
            out: BufReader::new(out),
        })
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.out.read_line(&mut line)?;
        anyhow::ensure!(!line.is_empty(), "a child ended early");
        Ok(line.trim_end().to_owned())
    }

    /// Keeps it from doing anything, while what it listens at stays taken.
    pub(crate) fn freeze(&self) -> Result<()> {
        let status = Command::new("kill")
            .args(["-STOP", &self.process.id().to_string()])
            .status()?;
        anyhow::ensure!(status.success(), "a child cannot be stopped");
        Ok(())
    }

    /// What it prints until it ends.
    pub(crate) fn rest(mut self) -> Result<String> {
        let mut text = String::new();
        self.out.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Processor time that it has used, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        // Behind the name in parentheses, which may hold blanks: state is field 3, utime and stime
        // are 14 and 15, in ticks of 10 ms.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or_default()
        };
        Ok((ticks(11) + ticks(12)) / 100.0)
    }

    /// How often its threads gave up the processor to wait for something, since it started.
    pub(crate) fn waits(&self) -> Result<u64> {
        let mut waits = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let status = std::fs::read_to_string(thread?.path().join("status"))?;
            let line = status
                .lines()
                .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            waits += line.context("no such line")?.trim().parse::<u64>()?;
        }
        Ok(waits)
    }

    /// How many of the processes that it started, and that run, have this argument.
    pub(crate) fn children(&self, argument: &str) -> Result<usize> {
        let mut count = 0;
        for thread in std::fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let ids = std::fs::read_to_string(thread?.path().join("children"))?;
            let is_meant = |id: &&str| {
                let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
                line.split(|byte| *byte == 0)
                    .any(|part| part == argument.as_bytes())
            };
            count += ids.split_whitespace().filter(is_meant).count();
        }
        Ok(count)
    }

    /// Entries of a folder of `/proc/<pid>`: open files (`fd`), threads (`task`).
    pub(crate) fn entries(&self, folder: &str) -> Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/{folder}", self.process.id()))?.count())
    }

    /// A line of `/proc/<pid>/status` in MB of 1,000,000 bytes.
    pub(crate) fn memory(&self, line: &str) -> Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let value = status
            .lines()
            .find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        let kib: f64 = value
            .and_then(|text| text.split_whitespace().next()?.parse().ok())
            .context("no such line")?;
        Ok(kib * 1024.0 / 1e6)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A daemon, as `callsheet serve` runs it, with its own empty state.
pub(crate) struct Daemon {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    core: Option<usize>,
    arguments: Vec<String>,
    // The folder goes when the daemon has ended.
    folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts a daemon for these scenarios. `ready` is its `server.ready_timeout`; `settings` are
    /// further ones.
    pub(crate) fn start(
        core: Option<usize>,
        scenarios: &[(String, SocketAddr)],
        ready: &str,
        settings: &str,
    ) -> Result<Self> {
        let off = "discovery.mdns.enabled = false\ndiscovery.vrooli.enabled = false\n";
        Self::configured(
            core,
            scenarios,
            &format!("server.ready_timeout = \"{ready}\"\n{settings}{off}"),
        )
    }

    /// Starts a daemon that also listens to announcements on this UDP port of the loopback
    /// interface, and nowhere else.
    pub(crate) fn listening(scenarios: &[(String, SocketAddr)], port: u16) -> Result<Self> {
        let text =
            format!("discovery.mdns.port = {port}\ndiscovery.mdns.interfaces = [\"loopback\"]\n");
        Self::configured(
            None,
            scenarios,
            &(text + "discovery.vrooli.enabled = false\n"),
        )
    }

    /// Starts a daemon with these settings for these scenarios.
    pub(crate) fn configured(
        core: Option<usize>,
        scenarios: &[(String, SocketAddr)],
        settings: &str,
    ) -> Result<Self> {
        let mut tables = String::new();
        for (name, address) in scenarios {
            writeln!(
                tables,
                "[[scenarios]]\nname = \"{name}\"\nurl = \"http://{address}\""
            )?;
            if name.starts_with(hostile_mcp::PREFIX) {
                writeln!(tables, "protocol = \"mcp\"")?;
            }
        }
        Self::with_tables(core, settings, &tables)
    }

    /// Starts a daemon with these settings, and then these tables of the configuration.
    pub(crate) fn with_tables(core: Option<usize>, settings: &str, tables: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // Apart, as where it is installed: a change in the folder of the configuration is looked
        // into.
        let apart = ["etc", "lib"].map(|name| folder.path().join(name));
        apart.iter().try_for_each(std::fs::create_dir)?;
        let [config, state] = [apart[0].join("callsheet.toml"), apart[1].join("state.db")];
        std::fs::write(
            &config,
            format!("{settings}discovery.environment.enabled = false\n{tables}"),
        )?;
        let [config, state] = [config, state].map(|path| path.display().to_string());
        let arguments = [
            "--listen",
            "127.0.0.1:0",
            "--log",
            "error",
            "--config",
            &config,
            "--state",
            &state,
        ];
        let arguments = arguments.map(str::to_owned).to_vec();
        let (child, address) = listening(core, &arguments)?;
        Ok(Self {
            child,
            address,
            core,
            arguments,
            folder,
        })
    }

    /// Ends it without a word.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.process.kill()?;
        self.child.process.wait()?;
        Ok(())
    }

    /// How large its database is, with what is not merged into it yet.
    pub(crate) fn stored(&self) -> Result<u64> {
        let files = std::fs::read_dir(self.folder.path().join("lib"))?;
        files.map(|file| Ok(file?.metadata()?.len())).sum()
    }

    /// Starts it again on what it stored; returns when it listens.
    pub(crate) fn again(&mut self) -> Result<()> {
        (self.child, self.address) = listening(self.core, &self.arguments)?;
        Ok(())
    }
}

/// A daemon, once it says where it listens.
fn listening(core: Option<usize>, arguments: &[String]) -> Result<(Child, SocketAddr)> {
    let mut child = match PROGRAM.get() {
        Some(program) => Child::of(program, core, &[&["serve".to_owned()], arguments].concat())?,
        None => Child::start(core, &[&["daemon".to_owned()], arguments].concat())?,
    };
    let line = child.line()?;
    let address = line
        .rsplit("http://")
        .next()
        .unwrap_or_default()
        .parse()
        .with_context(|| line.clone())?;
    Ok((child, address))
}
