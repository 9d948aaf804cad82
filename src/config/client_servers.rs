//! `mcpServers`, written as MCP clients write it, and `[mcp] files`, the clients' own files that
//! are followed. No file is read and no program started here.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Value;

use super::Config;
use super::client_files::{self, ReadEntry, Variables};
use super::path::KeyPath;
use super::shape::Shape;
use super::units::ValueError;
use super::value_reader::ValueReader;

/// The shortest time without a client after which a program sleeps.
const SHORTEST_SLEEP_AFTER: Duration = Duration::from_millis(10);
/// The shortest age of the list of a program that sleeps at which it is looked at.
const SHORTEST_RELIST_AFTER: Duration = Duration::from_secs(1);

/// The key with servers.
pub(super) const KEY: &str = "mcpServers";
/// The key with the files to follow.
pub(super) const FILES: &str = "mcp.files";

/// The shape of the servers: each has the members that its client has.
pub(super) const SERVERS: Shape = Shape::Map(&Shape::Foreign);

/// The Model Context Protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct McpConfig {
    /// `files`: the files of MCP clients whose servers are followed, absolute.
    pub files: Vec<PathBuf>,
    /// `mcpServers`: servers in the words of MCP clients, as they are read now.
    pub servers: Vec<ReadEntry>,
    /// `linger`: how long a daemon that `callsheet mcp` started goes on without any client.
    pub linger: Duration,
    /// `sleep_after`: a program that no client used for so long is ended until it is needed;
    /// `None` for never.
    pub sleep_after: Option<Duration>,
    /// `relist_after`: how old the list of a program that sleeps may become before the program is
    /// started to see whether it changed.
    pub relist_after: Duration,
}

impl Default for McpConfig {
    fn default() -> Self {
        Self {
            files: Vec::new(),
            servers: Vec::new(),
            linger: Duration::from_secs(600),
            sleep_after: None,
            relist_after: Duration::from_secs(24 * 3_600),
        }
    }
}

impl Config {
    /// Whether a key says when programs sleep, for all or for one scenario.
    pub(crate) fn decides_sleep(&self) -> bool {
        let mut scenarios = self.scenarios.iter();
        let entries = self.mcp.servers.iter();
        let mut entries = entries.filter_map(|server| server.entry.as_ref().ok());
        self.mcp.sleep_after.is_some()
            || scenarios.any(|known| known.sleep_after.is_some())
            || entries.any(|entry| entry.sleep_after.is_some())
    }

    /// After how long without a client a program sleeps whose entry says this; `None` for never.
    pub fn sleep_after(&self, own: Option<Option<Duration>>) -> Option<Duration> {
        let after = own.unwrap_or(self.mcp.sleep_after)?;
        // A program may give zero, and then the loop would look at a used program all the time.
        Some(after.max(SHORTEST_SLEEP_AFTER))
    }

    /// How old the list of a program that sleeps may become before it is looked at.
    pub fn relist_after(&self) -> Duration {
        // A shorter time would start and end the program all the time.
        self.mcp.relist_after.max(SHORTEST_RELIST_AFTER)
    }
}

/// Reads the servers. One that cannot be used is kept with the reason, and is a finding later: it
/// costs that server only.
pub(super) fn read_servers(written: &mut ValueReader<'_>, config: &mut Config) {
    let Some(Value::Table(table)) = written.value else {
        return;
    };
    let to_path = written.surroundings.to_path;
    let variable = written.surroundings.variable;
    // Relative paths count from the folder of the file that the key stands in.
    let file = to_path(&KeyPath::dotted(KEY), "callsheet.toml").unwrap_or_default();
    let servers = table
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), serde_json::to_value(value).ok()?)));
    let servers = servers.collect();
    config.mcp.servers = client_files::read_servers(&servers, &file, &Variables::new(variable));
}

/// Reads the paths of the files.
pub(super) fn read_files(written: &mut ValueReader<'_>, config: &mut Config) {
    let mut files: Vec<PathBuf> = Vec::new();
    written.each(|_, mut at| {
        let mut file = PathBuf::new();
        at.path(&mut file);
        if file.as_os_str().is_empty() {
            return;
        }
        if files.contains(&file) {
            at.reject(ValueError::new(
                format!("{} is listed twice", Path::display(&file)),
                "take one of the two out",
            ));
        } else {
            files.push(file);
        }
    });
    config.mcp.files = files;
}
