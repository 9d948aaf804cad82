//! The servers that client files name, as scenarios: which are taken and under which names, which
//! are left out and why, and what of the taken ones is ignored. Reads no file.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use url::Url;

use super::{ClientEntry, EntryTarget, ReadEntry};
use crate::model::ScenarioName;

/// The most servers that are taken.
pub const MAX_CLIENT_SERVERS: usize = 1_000;
/// The most servers of one name that get a number each.
const MOST_OF_A_NAME: usize = 1_000;

/// One server that can be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientServer {
    /// Its name as a scenario; no other server has it.
    pub name: ScenarioName,
    /// Its entry.
    pub entry: ClientEntry,
    /// The file that names it.
    pub from: PathBuf,
}

/// An entry that is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutEntry {
    /// The name of the entry, as it is written.
    pub name: String,
    /// The file that has it.
    pub from: PathBuf,
    /// Why.
    pub why: LeftOutReason,
}

/// Why an entry is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeftOutReason {
    /// It cannot be used; a sentence says why.
    Unusable(String),
    /// Its client has switched it off.
    SwitchedOff,
    /// It is callsheet, which would list itself.
    Itself,
    /// No name of a scenario can be made of its name.
    Unnamable,
    /// As many servers as are taken are there before it.
    TooMany,
    /// The same server is taken under another name, or from another file.
    SameAs(ScenarioName, PathBuf),
}

/// The servers of some client files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientServers {
    /// Those that are taken, in the order they came.
    pub taken: Vec<ClientServer>,
    /// Entries that are not taken.
    pub left_out: Vec<LeftOutEntry>,
    /// The address that callsheet itself listens on, if it is known.
    pub own: Option<SocketAddr>,
    /// Whether servers are taken that their client has switched off.
    pub with_disabled: bool,
}

impl ClientServers {
    /// Adds the entries of one file.
    pub fn add(&mut self, entries: impl IntoIterator<Item = ReadEntry>, from: &Path) {
        for ReadEntry { name, entry } in entries {
            match self.judge(&name, entry) {
                Ok((name, entry)) => self.taken.push(ClientServer {
                    name,
                    entry,
                    from: from.to_owned(),
                }),
                Err(why) => self.left_out.push(LeftOutEntry {
                    name,
                    from: from.to_owned(),
                    why,
                }),
            }
        }
    }

    fn judge(
        &self,
        written: &str,
        entry: Result<ClientEntry, String>,
    ) -> Result<(ScenarioName, ClientEntry), LeftOutReason> {
        let entry = entry.map_err(LeftOutReason::Unusable)?;
        if self.taken.len() >= MAX_CLIENT_SERVERS {
            return Err(LeftOutReason::TooMany);
        }
        if entry.disabled && !self.with_disabled {
            return Err(LeftOutReason::SwitchedOff);
        }
        if self.is_callsheet(&entry.target) {
            return Err(LeftOutReason::Itself);
        }
        let own = scenario_name(written).ok_or(LeftOutReason::Unnamable)?;
        if let Some(same) = self
            .taken
            .iter()
            .find(|known| known.entry.target == entry.target)
        {
            return Err(LeftOutReason::SameAs(same.name.clone(), same.from.clone()));
        }
        entry.target.to_target().map_err(LeftOutReason::Unusable)?;
        Ok((self.free_name(own).ok_or(LeftOutReason::Unnamable)?, entry))
    }

    /// The name, or the name with a number where another server has it.
    fn free_name(&self, own: ScenarioName) -> Option<ScenarioName> {
        let is_free = |name: &ScenarioName| self.taken.iter().all(|known| known.name != *name);
        if is_free(&own) {
            return Some(own);
        }
        (2..=MOST_OF_A_NAME)
            .filter_map(|number| format!("{own}-{number}").parse().ok())
            .find(is_free)
    }

    /// Whether an entry starts this program, or is this daemon.
    fn is_callsheet(&self, target: &EntryTarget) -> bool {
        match target {
            EntryTarget::Program { command, .. } => Path::new(command)
                .file_stem()
                .is_some_and(|name| name == env!("CARGO_PKG_NAME")),
            EntryTarget::Address { url, .. } => {
                self.own.is_some_and(|own| is_own_address(url, own))
            }
        }
    }
}

/// Whether a request to an address reaches a daemon on this machine that listens at `own`.
pub(crate) fn is_own_address(url: &Url, own: SocketAddr) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    let is_own = host == "localhost"
        || host
            .parse()
            .is_ok_and(|ip: IpAddr| ip.is_loopback() || ip == own.ip());
    is_own && url.port_or_known_default() == Some(own.port())
}

/// The name of an entry as that of a scenario: characters that it cannot have become `-`.
pub(crate) fn scenario_name(name: &str) -> Option<ScenarioName> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String = name
        .trim()
        .chars()
        .take(100)
        .map(|c| if allowed(c) { c } else { '-' })
        .collect();
    name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric())
        .parse()
        .ok()
}

impl fmt::Display for LeftOutReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unusable(why) => f.write_str(why),
            Self::SwitchedOff => f.write_str("its client has switched it off"),
            Self::Itself => f.write_str("it is callsheet itself"),
            Self::Unnamable => f.write_str("its name cannot be that of a scenario"),
            Self::TooMany => write!(
                f,
                "there are {MAX_CLIENT_SERVERS} servers before it, as many as are taken"
            ),
            Self::SameAs(name, from) => {
                write!(f, "the same server as `{name}` of {}", from.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_without_end_are_taken_up_to_a_limit() {
        let entry = |number: usize| {
            let target = EntryTarget::Program {
                command: format!("/bin/{number}"),
                args: Vec::new(),
                env: Vec::new(),
                cwd: None,
            };
            let entry = ClientEntry {
                target,
                disabled: false,
                sleep_after: None,
                ignored: Vec::new(),
            };
            ReadEntry {
                name: format!("same {}", number % 2),
                entry: Ok(entry),
            }
        };
        let mut servers = ClientServers::default();
        servers.add(
            (0..MAX_CLIENT_SERVERS + 2).map(entry),
            Path::new("/mcp.json"),
        );
        assert_eq!(servers.taken.len(), MAX_CLIENT_SERVERS);
        assert_eq!(servers.taken[2].name.as_str(), "same-0-2");
        assert_eq!(servers.left_out.len(), 2);
        assert_eq!(servers.left_out[0].why, LeftOutReason::TooMany);
    }

    #[test]
    fn callsheet_itself_is_known_by_its_name_and_by_its_address() {
        let own = ClientServers {
            own: "127.0.0.1:7400".parse().ok(),
            ..ClientServers::default()
        };
        let program = |command: &str| EntryTarget::Program {
            command: command.to_owned(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
        };
        let address = |url: &str| EntryTarget::Address {
            url: url.parse().unwrap(),
            headers: Vec::new(),
        };
        for (target, is_own) in [
            (program("/usr/bin/callsheet"), true),
            (program("callsheet-server"), false),
            (address("http://localhost:7400/mcp"), true),
            (address("http://[::1]:7400/mcp/work"), true),
            (address("http://127.0.0.1:7401/mcp"), false),
            (address("http://tools.example:7400/mcp"), false),
        ] {
            assert_eq!(own.is_callsheet(&target), is_own, "{target}");
        }
    }
}
