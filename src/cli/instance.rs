//! The files in which a running daemon says where it is: one of this user, so that every command
//! finds it from any folder, and one beside its state, by which the daemon of a configuration is
//! found beside others. That of `callsheet demo` has a file of its own: commands name it where no
//! daemon runs, and do not use it.
//!
//! Both are readable by the user alone. A file that a killed daemon left behind names an address
//! where no program accepts connections; then it counts as absent.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::{LoadOptions, LoadedConfig, StateConfig};
use crate::runtime::open_files::replace_file;

/// The name of the file of a user.
const FILE: &str = "daemon.json";
/// The name of the file of a user's demo.
const DEMO_FILE: &str = "demo.json";
/// The most bytes of the file.
const MAX_FILE: u64 = 64 * 1024;
/// The number of the system's administrator.
const ADMINISTRATOR: u32 = 0;
/// How long a connection on this machine may take.
const CONNECT: Duration = Duration::from_millis(500);

/// Where a daemon is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DaemonRecord {
    /// Its address, as clients on this machine reach it.
    pub(super) url: String,
    /// Its process.
    pub(super) pid: u32,
    /// The configuration file that it follows, absolute.
    pub(super) config: Option<PathBuf>,
    /// The Unix socket by which commands reach it too, absolute. Earlier versions have none.
    #[serde(default)]
    pub(super) socket: Option<PathBuf>,
}

/// A record that is published until it is dropped.
#[derive(Debug)]
pub(super) struct PublishedRecord {
    files: Vec<PathBuf>,
    record: DaemonRecord,
}

impl DaemonRecord {
    /// The daemon of this user that was started last, if it runs.
    pub(super) fn of_user(options: &LoadOptions) -> Option<Self> {
        read(&options.runtime_folder()?.join(FILE)).filter(Self::is_running)
    }

    /// The daemon that has this state, if one runs.
    pub(super) fn of_state(state: &StateConfig) -> Option<Self> {
        read(&state.daemon_record()).filter(Self::is_running)
    }

    /// The daemon of the demo of this user that was started last, if it runs.
    pub(super) fn of_demo(options: &LoadOptions) -> Option<Self> {
        read(&options.runtime_folder()?.join(DEMO_FILE)).filter(Self::is_running)
    }

    /// What a daemon at this address recorded about itself, as any daemon of this user or with this
    /// state does, and the demo.
    pub(super) fn at(address: &str, options: &LoadOptions, state: &StateConfig) -> Option<Self> {
        let records = [
            Self::of_state(state),
            Self::of_user(options),
            Self::of_demo(options),
        ];
        records
            .into_iter()
            .flatten()
            .find(|record| record.url.trim_end_matches('/') == address)
    }

    /// The running daemon that follows this configuration.
    pub(super) fn following(options: &LoadOptions, loaded: &LoadedConfig) -> Option<Self> {
        let follows = |record: &Self| record.follows(loaded.file.as_deref());
        Self::of_user(options)
            .filter(follows)
            .or_else(|| Self::of_state(&loaded.config.state).filter(follows))
    }

    fn is_running(&self) -> bool {
        // While all its connections are in use, it may accept none at its address.
        let is_served = self.socket.as_deref().is_some_and(serves);
        is_served || Url::parse(&self.url).is_ok_and(|url| accepts(&url))
    }

    /// Whether the daemon follows this configuration file. Without a file every daemon does.
    fn follows(&self, file: Option<&Path>) -> bool {
        match (file, &self.config) {
            (None, _) => true,
            (Some(file), Some(other)) => file.canonicalize().ok() == other.canonicalize().ok(),
            (Some(_), None) => false,
        }
    }

    /// Writes the record. Where that fails, commands find the daemon by its configuration only.
    pub(super) fn publish(self, options: &LoadOptions, state: &StateConfig) -> PublishedRecord {
        let of_user = user_file(options, FILE);
        let consequence = "commands find this daemon by its configuration only";
        self.publish_in(
            of_user.into_iter().chain([Ok(state.daemon_record())]),
            consequence,
        )
    }

    /// The same for the daemon of the demo.
    pub(super) fn publish_demo(self, options: &LoadOptions) -> PublishedRecord {
        self.publish_in(
            user_file(options, DEMO_FILE),
            "commands that find no daemon do not name this demo",
        )
    }

    /// Writes the record to these files. `consequence` is what follows where that fails.
    fn publish_in(
        self,
        places: impl IntoIterator<Item = std::io::Result<PathBuf>>,
        consequence: &str,
    ) -> PublishedRecord {
        let mut files = Vec::new();
        for file in places {
            match file.and_then(|file| self.write(&file).map(|()| file)) {
                Ok(file) => files.push(file),
                Err(error) => {
                    tracing::warn!(%error, "{consequence}: its address cannot be written");
                }
            }
        }
        PublishedRecord {
            files,
            record: self,
        }
    }

    fn write(&self, file: &Path) -> std::io::Result<()> {
        replace_file(file, &serde_json::to_vec(self)?)
    }
}

impl Drop for PublishedRecord {
    fn drop(&mut self) {
        for file in &self.files {
            // Another daemon may have written its own record meanwhile.
            if read(file).as_ref() == Some(&self.record) {
                // It may be gone with its folder.
                let _ = std::fs::remove_file(file);
            }
        }
    }
}

/// The files that the daemon of a configuration makes. Their owners are the users whose program it
/// may be.
#[derive(Debug)]
pub(super) struct DaemonFiles {
    records: Vec<PathBuf>,
    socket: PathBuf,
}

impl DaemonFiles {
    /// Those of this user, and those beside this state. They need not be there.
    pub(super) fn new(options: &LoadOptions, state: &StateConfig) -> Self {
        let of_user = options.runtime_folder().map(|folder| folder.join(FILE));
        Self {
            records: of_user.into_iter().chain([state.daemon_record()]).collect(),
            socket: state.command_socket(),
        }
    }

    /// The numbers of the users whose programs may get the operator's token: this user, the
    /// system's administrator, and for that one also the user whose daemon made these files.
    pub(super) fn trusted_users(&self) -> Vec<u32> {
        let owners = self
            .records
            .iter()
            .chain([&self.socket])
            .filter_map(|file| trusted_owner(file));
        owners.chain([own_number(), ADMINISTRATOR]).collect()
    }

    /// Whether the record of a daemon whose process runs names this address.
    pub(super) fn names_address(&self, url: &Url) -> bool {
        let trusted = self
            .records
            .iter()
            .filter(|file| trusted_owner(file).is_some());
        let mut records = trusted.filter_map(|file| read(file));
        records.any(|record| {
            Url::parse(&record.url).is_ok_and(|named| named == *url) && may_signal(record.pid)
        })
    }
}

/// The path of a file in the runtime folder of this user, which is made; `None` without a home.
fn user_file(options: &LoadOptions, name: &str) -> Option<std::io::Result<PathBuf>> {
    let folder = options.runtime_folder()?;
    Some(private_folder(&folder).map(|()| folder.join(name)))
}

/// Makes a folder that only this user can enter, unless it is there.
pub(super) fn private_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn read(path: &Path) -> Option<DaemonRecord> {
    let about = std::fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > MAX_FILE {
        return None;
    }
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// Whether a daemon listens on this socket, which is trusted with a token.
#[cfg(unix)]
pub(super) fn serves(socket: &Path) -> bool {
    use crate::runtime::socket_file;
    socket_file::is_trusted(socket) && socket_file::is_served(socket)
}

/// There are no such sockets.
#[cfg(not(unix))]
pub(super) fn serves(_socket: &Path) -> bool {
    false
}

/// The owner of this file, if it is a user that is trusted with a token.
#[cfg(unix)]
fn trusted_owner(file: &Path) -> Option<u32> {
    crate::runtime::user::trusted_owner(file)
}

/// This system has no numbers of users.
#[cfg(not(unix))]
fn trusted_owner(_file: &Path) -> Option<u32> {
    None
}

/// The number of this user.
#[cfg(unix)]
fn own_number() -> u32 {
    crate::runtime::user::number()
}

/// This system has no numbers of users, and shows no sockets with them.
#[cfg(not(unix))]
fn own_number() -> u32 {
    ADMINISTRATOR
}

/// Whether a process with this number runs that is of this user.
#[cfg(unix)]
fn may_signal(process: u32) -> bool {
    crate::runtime::user::may_signal(process)
}

/// It is not known here.
#[cfg(not(unix))]
fn may_signal(_process: u32) -> bool {
    false
}

/// Whether something accepts connections at an address of this machine.
pub(super) fn accepts(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let ip = if host == "localhost" {
        Some(std::net::Ipv4Addr::LOCALHOST.into())
    } else {
        host.parse().ok()
    };
    let address = ip
        .zip(url.port_or_known_default())
        .map(|(ip, port)| SocketAddr::new(ip, port));
    address.is_some_and(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_an_address_while_its_process_runs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.db.daemon.json");
        let files = DaemonFiles {
            records: vec![file.clone()],
            socket: folder.path().join("state.db.sock"),
        };
        let names = |url: &str| files.names_address(&Url::parse(url).unwrap());
        assert!(!names("http://127.0.0.1:7400"), "there is no record");
        let record = |pid| DaemonRecord {
            url: "http://127.0.0.1:7400".to_owned(),
            pid,
            config: None,
            socket: None,
        };
        record(std::process::id()).write(&file).unwrap();
        assert!(names("http://127.0.0.1:7400/") && !names("http://127.0.0.1:7401"));
        // No process has the largest number.
        record(i32::MAX.unsigned_abs()).write(&file).unwrap();
        assert!(!names("http://127.0.0.1:7400"));
    }
}
