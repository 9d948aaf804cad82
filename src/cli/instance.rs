//! The files in which a running daemon says where it is: one of this user, so that every command
//! finds it from any folder, and one beside its state, by which the daemon of a configuration is
//! found beside others. That of `callsheet demo` has a file of its own: commands name it where no
//! daemon runs, and do not use it.
//!
//! Both are readable by the user alone. A file that a killed daemon left behind names an address
//! where no program accepts connections; then it counts as absent.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::{LoadOptions, LoadedConfig, StateConfig};

/// The name of the file of a user.
const FILE: &str = "daemon.json";
/// The name of the file of a user's demo.
const DEMO_FILE: &str = "demo.json";
/// The most bytes of the file.
const MAX_FILE: u64 = 64 * 1024;
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
        let records = [Self::of_state(state), Self::of_user(options), Self::of_demo(options)];
        records.into_iter().flatten().find(|record| record.url.trim_end_matches('/') == address)
    }

    /// The running daemon that follows this configuration.
    pub(super) fn following(options: &LoadOptions, loaded: &LoadedConfig) -> Option<Self> {
        let follows = |record: &Self| record.follows(loaded.file.as_deref());
        Self::of_user(options).filter(follows).or_else(|| Self::of_state(&loaded.config.state).filter(follows))
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
        self.publish_in(of_user.into_iter().chain([Ok(state.daemon_record())]), consequence)
    }

    /// The same for the daemon of the demo.
    pub(super) fn publish_demo(self, options: &LoadOptions) -> PublishedRecord {
        self.publish_in(user_file(options, DEMO_FILE), "commands that find no daemon do not name this demo")
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
        PublishedRecord { files, record: self }
    }

    fn write(&self, file: &Path) -> std::io::Result<()> {
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut written = tempfile::NamedTempFile::new_in(folder)?;
        written.write_all(serde_json::to_string(self)?.as_bytes())?;
        written.persist(file)?;
        Ok(())
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

/// Whether something accepts connections at an address of this machine.
pub(super) fn accepts(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let ip = if host == "localhost" { Some(std::net::Ipv4Addr::LOCALHOST.into()) } else { host.parse().ok() };
    let address = ip.zip(url.port_or_known_default()).map(|(ip, port)| SocketAddr::new(ip, port));
    address.is_some_and(|address| TcpStream::connect_timeout(&address, CONNECT).is_ok())
}
