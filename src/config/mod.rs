//! The configuration, valid by construction.
//!
//! ```text
//! defaults < file < environment < flags     layer: compares each one with the shapes of keys
//!              |  load (figment) merges
//!              v
//! merged values --check, value_reader, rules of each key--> Config    (or every problem at once)
//!                                                            |
//! running daemon <-- reload: key by key, Live or Restart <---+
//! ```
//!
//! What is kept true here:
//!
//! - A [`Config`] that is returned is valid as a whole. All problems are reported at once, each
//!   with its key, its place and a hint.
//! - `keys.rs` has the only list of keys: its shape, its rule, its field, and when a change takes
//!   effect.
//! - Only `edit` writes a file. Only [`LoadOptions::from_process`] reads the process.
//! - No secret leaves unmasked in `effective_values.rs` or in an error.
//! - Reading a configuration contacts and starts no scenario, and runs no command.
//!
//! Read in this order:
//!
//! 1. `keys.rs`, `defaults.rs`, then this file ([`Config`]).
//! 2. `options.rs`, `file.rs`, `layer.rs`, `load.rs`, `check.rs`; with `path.rs`, `shape.rs`,
//!    `value_reader.rs`, `rules.rs`, `units.rs`, `suggest.rs`, `origin.rs` and `error.rs`.
//! 3. `reload.rs`, `renamed_keys.rs`, `effective_values.rs`.
//! 4. One file for each section of many rules: `scenarios.rs` (with `address.rs`, `header.rs`,
//!    `auth.rs`, `secret_value.rs`, `interaction.rs`), `client_servers.rs`, `modules.rs`,
//!    `calls.rs`, `cache.rs`, `bundles.rs`, `definitions.rs`, `profiles.rs`, `preferences.rs`,
//!    `mdns.rs`, `network.rs`, `web.rs`.
//! 5. `client_files/` (files of MCP clients), `edit/` (changes of the file).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::bundles::BundleSettings;
use crate::catalog::NamingStyle;
use crate::model::{
    AcceptedVersions, PinMode, PreferenceSet, Profile, ScenarioName, Secret, Target, UnknownLevel,
};
use crate::protocols::definitions::Definition;
use crate::transports::http::credentials::oauth::LoginSettings;

mod additions;
mod address;
mod auth;
mod bundles;
mod cache;
mod calls;
mod check;
pub mod client_files;
mod client_servers;
mod defaults;
mod definitions;
pub(crate) mod edit;
mod effective_values;
mod error;
mod file;
mod header;
mod interaction;
mod keys;
mod layer;
mod load;
mod mdns;
mod modules;
mod network;
mod options;
mod origin;
mod path;
mod preferences;
mod profiles;
mod reload;
mod renamed_keys;
mod rules;
mod scenarios;
mod secret_value;
mod shape;
mod suggest;
mod units;
mod value_reader;
mod web;

pub use crate::model::Subnet;
pub use additions::{
    ADDITIONS_MAX, ActivityEntry, AddedDefinition, AdditionChange, Additions, DefinitionEntry,
    EntryError, ProfileActivity, ProfileEntry,
};
pub(crate) use address::{web_address, without_route};
pub use cache::CacheConfig;
pub use calls::{CallsConfig, TurnsConfig};
pub use client_servers::McpConfig;
pub use defaults::DEFAULT_TOML;
pub use error::{ConfigError, Diagnostic};
pub use keys::{ConfigKey, KEYS, Reload, keys};
pub(crate) use load::{ClientConfig, load_for_client};
pub use load::{LoadedConfig, load, load_again, load_usable};
pub(crate) use mdns::is_id;
pub use mdns::{MdnsConfig, MdnsTrust, TrustPattern};
pub(crate) use modules::MODULE;
pub use modules::ModulesConfig;
pub use network::{ConfiguredProxy, NetworkConfig};
pub use options::LoadOptions;
pub use origin::{EffectiveValue, Position, ValueOrigin};
pub use reload::Reloaded;
pub use scenarios::MCP;

/// Everything that can be configured. Each field stands in `config/default.toml` with its default
/// and one sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `[server]`
    pub server: ServerConfig,
    /// `[[scenarios]]`, names unique, in the order written.
    pub scenarios: Vec<StaticScenario>,
    /// `[modules]` and `[module_settings]`
    pub modules: ModulesConfig,
    /// `[mcp]`, as far as it is about the daemon as an MCP server.
    pub mcp_face: McpFaceConfig,
    /// `[mcp]` and `mcpServers`
    pub mcp: McpConfig,
    /// `[bundles]`
    pub bundles: BundleSettings,
    /// `[login]`
    pub login: LoginSettings,
    /// `pins.default`: what happens with definitions that were not accepted.
    pub pins: PinMode,
    /// `[permissions]`: how an unknown level is treated; each of the profiles has it too.
    pub unknown_level: UnknownLevel,
    /// `permissions.unannotated`: the tags that a tool of an MCP server without hints counts as
    /// having, for all settings of preferences.
    pub assumed_tags: Vec<String>,
    /// `[[profiles]]`, by name.
    pub profiles: BTreeMap<String, Profile>,
    /// `[[preferences]]`: they hold where no stored preference of the same scope and target says
    /// otherwise.
    pub preferences: PreferenceSet,
    /// `permissions.default_profile`: the profile of clients that name none.
    pub default_profile: Option<String>,
    /// `[[definitions]]`, names unique, in the order written.
    pub definitions: Vec<Definition>,
    /// `[discovery]`
    pub discovery: DiscoveryConfig,
    /// `[network]`
    pub network: NetworkConfig,
    /// `[refresh]`
    pub refresh: RefreshConfig,
    /// `[cache]`
    pub cache: CacheConfig,
    /// `[protocol]`
    pub protocol: ProtocolConfig,
    /// `[health]`
    pub health: HealthConfig,
    /// `[naming]`
    pub naming: NamingStyle,
    /// `[state]`
    pub state: StateConfig,
    /// `[views]`
    pub views: ViewsConfig,
    /// `[events]`
    pub events: EventsConfig,
    /// `[calls]`
    pub calls: CallsConfig,
}

/// The HTTP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerConfig {
    /// `listen`: where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// `allowed_hosts`: further `Host` names (without port) that are answered, besides loopback
    /// names and the listen address.
    pub allowed_hosts: Vec<String>,
    /// `allowed_origins`: further web origins (`scheme://host[:port]`) that may change state.
    pub allowed_origins: Vec<String>,
    /// `max_body`: bytes of a request body.
    pub max_body: usize,
    /// `max_connections`: how many connections are open at once; for a further one the longest
    /// resting one is closed.
    pub max_connections: usize,
    /// `held_bytes`: bytes that are held for clients at once: bodies being read, calls that wait,
    /// turns, results, answers being written.
    pub held_bytes: usize,
    /// `list_lifetime`: how long clients may use the list of tools without a request, in whole
    /// seconds.
    pub list_lifetime: Duration,
    /// `stop_timeout`: how long requests that are being answered may take after a stop was
    /// requested.
    pub stop_timeout: Duration,
    /// `ready_timeout`: after this long `/readyz` is ready even if a static scenario was not polled
    /// yet.
    pub ready_timeout: Duration,
    /// `rpc_socket`: the Unix socket that answers JSON-RPC, absolute; none without it.
    pub rpc_socket: Option<PathBuf>,
    /// `operator_token`: the bearer token that operators have to show; without it every caller has
    /// every right. What counts is [`Config::operator_token`].
    pub operator_token: Option<Secret>,
}

/// One `[[scenarios]]` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaticScenario {
    /// `name`
    pub name: ScenarioName,
    /// `url` with `headers` and `auth`, or `command` with `args`, `env` and `cwd`. An address has
    /// neither query nor fragment.
    pub target: Target,
    /// `protocol`: probed when absent; of a command it is [`MCP`].
    pub protocol: Option<String>,
    /// `sleep_after`: when its program sleeps, `Some(None)` for never; `None` as all others.
    pub sleep_after: Option<Option<Duration>>,
}

/// Where scenarios are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryConfig {
    /// `[discovery.vrooli]`
    pub vrooli: VrooliConfig,
    /// `[discovery.environment]`
    pub environment: EnvironmentConfig,
    /// `[discovery.mdns]`
    pub mdns: MdnsConfig,
}

/// The Vrooli process files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VrooliConfig {
    /// `enabled`
    pub enabled: bool,
    /// `path`: the folder with one folder per scenario; `~/.vrooli/processes/scenarios` by default,
    /// absent when there is no home.
    pub path: Option<PathBuf>,
    /// `max_scenarios`: folders read at most.
    pub max_scenarios: usize,
    /// `rescan_interval`: how often the folder is read again even without a change event.
    pub rescan_interval: Duration,
}

/// `<NAME>_API_URL` in the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentConfig {
    /// `enabled`
    pub enabled: bool,
    /// `remote`: whether addresses of other hosts are accepted. Programs that are no scenarios set
    /// such variables too, so other hosts are polled only if an operator enables it.
    pub remote: bool,
}

/// How scenarios are polled.
#[derive(Debug, Clone, PartialEq)]
pub struct RefreshConfig {
    /// `min_interval`: a scenario is not polled more often, except by a forced refresh.
    pub min_interval: Duration,
    /// `max_interval`: a scenario is polled at least this often, however long its answer may be
    /// used.
    pub max_interval: Duration,
    /// `default_lifetime`: how long an answer without caching headers counts as fresh.
    pub default_lifetime: Duration,
    /// `forced_gap`: the least time between two forced refreshes of the same scenario.
    pub forced_gap: Duration,
    /// `timeout`: for a whole request.
    pub timeout: Duration,
    /// `connect_timeout`
    pub connect_timeout: Duration,
    /// `concurrency`: requests under way at once.
    pub concurrency: usize,
    /// `max_body`: bytes of an answer after decoding.
    pub max_body: usize,
    /// `max_pending_body`: the same for a scenario that waits for an operator's approval.
    pub max_pending_body: usize,
    /// `max_redirects`: redirects followed within the origin.
    pub max_redirects: usize,
    /// `max_tools`: tools taken from one scenario; what is beyond is a finding.
    pub max_tools: usize,
    /// `max_tool`: bytes of one tool, and of every other member of a manifest.
    pub max_tool: usize,
    /// `backoff_base`: the first wait after a failure.
    pub backoff_base: Duration,
    /// `backoff_max`: the longest wait after failures.
    pub backoff_max: Duration,
    /// `max_scenarios`: scenarios known at once; what is beyond is a finding.
    pub max_scenarios: usize,
}

/// The daemon as an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpFaceConfig {
    /// `naming`: when a tool is called `scenario__tool` there.
    pub naming: NamingStyle,
    /// `mode`: whether clients get tools that search in place of the whole list.
    pub searches: bool,
    /// `page_size`: tools of one page of a list; zero for one page.
    pub page_size: usize,
    /// `max_streams`: streams that one client may have open.
    pub max_streams: usize,
    /// `wait`: how long a call waits for the end of an operation that goes on after the answer.
    pub wait: Duration,
    /// `input_timeout`: how long a call waits for input of its client.
    pub input_timeout: Duration,
    /// `approve_by_elicitation`: whether clients that show forms may approve calls in them.
    pub approve_by_elicitation: bool,
}

/// Which protocol versions are accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolConfig {
    /// `accept`: a semver range.
    pub accept: AcceptedVersions,
    /// `incompatible_interval`: how often an incompatible scenario is polled.
    pub incompatible_interval: Duration,
    /// `incompatible_grace`: how long the last good tools of a scenario that became incompatible
    /// stay.
    pub incompatible_grace: Duration,
}

/// When a scenario counts as down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthConfig {
    /// `grace`: how long after the last good answer its tools stay.
    pub grace: Duration,
    /// `failures`: failures in a row before it may count as down.
    pub failures: u32,
    /// `forget`: how long a scenario that no source names any more, and that does not answer, stays
    /// in the list of scenarios.
    pub forget: Duration,
    /// `isolation_count`: so many scenarios have to be lost at once before the daemon may take
    /// itself to be cut off.
    pub isolation_count: usize,
    /// `isolation_share`: and more than so many percent of those that answered.
    pub isolation_share: u32,
    /// `isolation_window`: how far apart losses may be to count as one.
    pub isolation_window: Duration,
    /// `isolation_max`: the longest delay of withdrawals; zero never delays them.
    pub isolation_max: Duration,
}

/// The persistent state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateConfig {
    /// `path`: the database file; `$XDG_STATE_HOME/callsheet/state.db` or
    /// `~/.local/state/callsheet/state.db` by default.
    pub path: PathBuf,
}

impl StateConfig {
    /// The Unix socket by which the command line reaches the daemon that has this state.
    pub(crate) fn command_socket(&self) -> PathBuf {
        self.beside(".sock")
    }

    /// The file in which the daemon that has this state says where it is.
    pub(crate) fn daemon_record(&self) -> PathBuf {
        self.beside(".daemon.json")
    }

    /// The path of the state with this at its end.
    fn beside(&self, end: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(end);
        name.into()
    }
}

/// Prepared answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewsConfig {
    /// `max_bytes`: of prepared bodies kept.
    pub max_bytes: u64,
}

/// The events sent to subscribers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventsConfig {
    /// `ring`: events remembered for each filter that is followed, so that a reader can resume.
    pub ring: usize,
    /// `ring_bytes`: of what is remembered for each filter, roughly.
    pub ring_bytes: usize,
    /// `reader_queue`: messages that a reader may be behind before it is disconnected.
    pub reader_queue: usize,
    /// `max_subscribers`: readers at once.
    pub max_subscribers: usize,
    /// `keep_alive`: how often an idle stream sends a sign of life.
    pub keep_alive: Duration,
    /// `linger`: how long a filter without subscribers is still remembered.
    pub linger: Duration,
}
