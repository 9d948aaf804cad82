//! The files of MCP clients that `[mcp] files` names, such as `~/.cursor/mcp.json`.
//!
//! The files are watched, and read again when they change. Clients and other programs write them,
//! so what stands there is only proposed: an operator accepts each version of an entry. A file that
//! cannot be read now keeps its last entries, with a finding; one that is gone has none.
//!
//! It never starts, contacts or writes what the files name.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::client_entries::{endpoint, findings, unusable};
use super::{EndpointSet, Source, SourceError, SourceFactory, SourceTrust, announce};
use crate::config::client_files::{
    ClientServer, ClientServers, EntryTarget, MAX_CLIENT_FILE, ReadEntry, Variables,
    read_client_file,
};
use crate::config::{Config, StaticScenario};
use crate::model::{Finding, FindingCode, SourceAbsence, SourceId, SourceSpec, Target};
use crate::runtime::files::FileWatch;
use crate::runtime::open_files::read_regular;
use crate::runtime::{Clock, Stop, Tasks};

/// After a sign of a change, the files are read once there were no further signs for this long:
/// editors empty a file before they write it.
const QUIET: Duration = Duration::from_millis(250);
/// How often the files are read without a sign of a change: network file systems send no events.
const POLL: Duration = Duration::from_secs(60);

/// The source of the files of MCP clients.
#[derive(Debug)]
pub struct McpFiles {
    reader: FileReader,
    clock: Clock,
}

impl SourceId {
    /// The files of MCP clients that `[mcp] files` names.
    pub const MCP_FILES: Self = Self::new(&SourceSpec {
        name: "mcp-files",
        rank: 50,
        found: "in a file of an MCP client",
        absence: SourceAbsence::Decision("no file of an MCP client names it any more"),
        is_announced: false,
        has_entries: false,
    });
}

/// How the source is made.
pub const FACTORY: SourceFactory = SourceFactory {
    id: SourceId::MCP_FILES,
    make,
    same_settings,
};

/// The source, when any file is named.
fn make(config: &Config, clock: Clock) -> Option<Box<dyn Source>> {
    (!config.mcp.files.is_empty())
        .then(|| Box::new(McpFiles::new(config, clock)) as Box<dyn Source>)
}

/// What the configuration has is not proposed again.
fn same_settings(one: &Config, other: &Config) -> bool {
    one.mcp.files == other.mcp.files && one.scenarios == other.scenarios
}

impl McpFiles {
    /// The source over the files of this configuration.
    pub fn new(config: &Config, clock: Clock) -> Self {
        let files = config
            .mcp
            .files
            .iter()
            .map(|file| (file.clone(), Vec::new()))
            .collect();
        let own = config.server.listen;
        let configured = config.scenarios.clone();
        Self {
            reader: FileReader {
                order: config.mcp.files.clone(),
                files,
                own,
                configured,
            },
            clock,
        }
    }

    async fn follow(self, out: watch::Sender<EndpointSet>, stop: &Stop) -> Result<(), SourceError> {
        let tasks = Tasks::new();
        let clock = self.clock;
        let mut watch = FileWatch::new(self.reader.order.clone());
        let mut reader = self.reader;
        loop {
            // The watch starts before the files are read, so that no change between the two is
            // missed.
            let looked = tasks.spawn_blocking(move || {
                let watched = watch.renew();
                let set = reader.look();
                (reader, watch, watched, set)
            });
            let (reader_back, watch_back, watched, mut set) = tokio::select! {
                () = stop.wait() => return Ok(()),
                looked = looked => looked.map_err(|error| failed(&error))?,
            };
            (reader, watch) = (reader_back, watch_back);
            if let Err(why) = watched {
                let message = format!(
                    "the files of MCP clients cannot be watched, so they are read every {POLL:?}: {why}"
                );
                set.findings
                    .push(Finding::new(FindingCode::SourceFailed, message));
            }
            announce(&out, set);
            tokio::select! {
                () = stop.wait() => return Ok(()),
                () = watch.changed() => {}
                () = clock.sleep(POLL) => continue,
            }
            tokio::select! {
                () = stop.wait() => return Ok(()),
                () = clock.sleep(QUIET) => {}
            }
        }
    }
}

/// Reads the files, and remembers the entries of each.
#[derive(Debug)]
struct FileReader {
    /// The files in the order of the configuration.
    order: Vec<PathBuf>,
    /// The entries that each file had when it was last read.
    files: BTreeMap<PathBuf, Vec<ReadEntry>>,
    /// The address that this daemon listens on.
    own: SocketAddr,
    /// The scenarios of the configuration; one of the same name was accepted by being written
    /// there.
    configured: Vec<StaticScenario>,
}

impl FileReader {
    fn look(&mut self) -> EndpointSet {
        let mut servers = ClientServers {
            own: Some(self.own),
            ..ClientServers::default()
        };
        let mut problems = Vec::new();
        for file in &self.order {
            match read(file) {
                Ok(entries) => _ = self.files.insert(file.clone(), entries),
                Err(FileProblem::Missing) => {
                    self.files.remove(file);
                    problems.push(unusable(
                        file,
                        "there is no such file",
                        "make it, or take it out of `mcp.files`",
                    ));
                }
                Err(FileProblem::Unreadable(why)) => {
                    problems.push(unusable(
                        file,
                        &why,
                        "correct it; its last entries stay as they are",
                    ));
                }
            }
            servers.add(self.files.get(file).cloned().unwrap_or_default(), file);
        }
        problems.extend(findings(&servers));
        let mut endpoints = BTreeMap::new();
        for server in &servers.taken {
            match self
                .configured
                .iter()
                .find(|scenario| scenario.name == server.name)
            {
                None => endpoints.extend(endpoint(server, SourceTrust::Proposed)),
                Some(scenario) => problems.extend(differs(scenario, server)),
            }
        }
        EndpointSet {
            initial_scan_done: true,
            endpoints,
            findings: problems,
        }
    }
}

/// The finding for an entry that is not what the configuration has under its name.
fn differs(scenario: &StaticScenario, server: &ClientServer) -> Option<Finding> {
    let is_same = match (&scenario.target, &server.entry.target) {
        // An import writes the absolute path of the command.
        (Target::Stdio(known), EntryTarget::Program { command, args, .. }) => {
            known.args() == args
                && Path::new(known.command()).file_name() == Path::new(command).file_name()
        }
        (Target::Http(known), EntryTarget::Address { url, .. }) => known.url == *url,
        _ => false,
    };
    let message = || {
        format!(
            "the configuration has another scenario of this name; that of {} is `{}`, and is left out",
            server.from.display(),
            server.entry.target
        )
    };
    (!is_same)
        .then(|| Finding::new(FindingCode::SourceShadowed, message()).of_scenario(&scenario.name))
}

/// Why a file gives no entries.
enum FileProblem {
    Missing,
    /// It may be in the middle of being written.
    Unreadable(String),
}

fn read(file: &Path) -> Result<Vec<ReadEntry>, FileProblem> {
    let unreadable = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => FileProblem::Missing,
        _ => FileProblem::Unreadable(error.to_string()),
    };
    let text = read_regular(file, MAX_CLIENT_FILE).map_err(unreadable)?;
    let environment = |name: &str| std::env::var(name).ok();
    read_client_file(&text, file, &Variables::new(&environment)).map_err(FileProblem::Unreadable)
}

impl Source for McpFiles {
    fn id(&self) -> SourceId {
        SourceId::MCP_FILES
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        async move { self.follow(out, &stop).await }.boxed()
    }
}

fn failed(error: &tokio::task::JoinError) -> SourceError {
    SourceError {
        id: SourceId::MCP_FILES,
        message: format!("reading the files of MCP clients broke off: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::Ipv4Addr;

    use super::*;

    /// Programs empty a file before they write it.
    #[test]
    fn a_file_that_is_half_written_keeps_its_entries_and_one_that_is_gone_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let whole = r#"{"mcpServers": {"notes": {"url": "http://127.0.0.1:9/mcp"}}}"#;
        fs::write(&file, whole).unwrap();
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let files = BTreeMap::new();
        let mut reader = FileReader {
            order: vec![file.clone()],
            files,
            own,
            configured: Vec::new(),
        };
        assert_eq!(reader.look().endpoints.len(), 1);
        for half in [&whole[..20], ""] {
            fs::write(&file, half).unwrap();
            let set = reader.look();
            assert_eq!(set.endpoints.len(), 1, "{half:?}");
            assert_eq!(set.findings.len(), 1, "{half:?}");
        }
        fs::remove_file(&file).unwrap();
        assert!(reader.look().endpoints.is_empty());
    }
}
