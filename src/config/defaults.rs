//! The built-in defaults, as values. `config/default.toml` says the same to people; a test compares
//! the two.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::{
    CacheConfig, CallsConfig, Config, DiscoveryConfig, EnvironmentConfig, EventsConfig,
    HealthConfig, McpConfig, McpFaceConfig, MdnsConfig, ModulesConfig, NetworkConfig,
    ProtocolConfig, RefreshConfig, ServerConfig, StateConfig, TurnsConfig, ViewsConfig,
    VrooliConfig,
};
use crate::bundles::BundleSettings;
use crate::catalog::NamingStyle;
use crate::model::{AcceptedVersions, PinMode, PreferenceSet, UnknownLevel};
use crate::transports::http::credentials::oauth::LoginSettings;

/// `config/default.toml`: every key with its default and a sentence on what it does.
pub const DEFAULT_TOML: &str = include_str!("../../config/default.toml");

const MIB: u32 = 1024 * 1024;

impl Config {
    /// The defaults with the database at `state`, for tests and for programs that embed the daemon:
    /// change what should differ. No file is read: `discovery.vrooli.path`, which depends on the
    /// home folder, is absent. The environment is not read either, so no proxy is used. No mDNS
    /// message is sent unless the program wants it: `discovery.mdns.enabled`, which is on for the
    /// daemon, is off here.
    pub fn for_state(state: impl Into<PathBuf>) -> Self {
        let mut discovery = DiscoveryConfig::default();
        discovery.mdns.enabled = false;
        Self {
            server: ServerConfig::default(),
            scenarios: Vec::new(),
            modules: ModulesConfig::default(),
            mcp: McpConfig::default(),
            mcp_face: McpFaceConfig::default(),
            bundles: BundleSettings::default(),
            login: LoginSettings::default(),
            unknown_level: UnknownLevel::default(),
            pins: PinMode::default(),
            assumed_tags: Vec::new(),
            profiles: BTreeMap::new(),
            preferences: PreferenceSet::default(),
            default_profile: None,
            definitions: Vec::new(),
            discovery,
            network: NetworkConfig::default(),
            refresh: RefreshConfig::default(),
            cache: CacheConfig::default(),
            protocol: ProtocolConfig::default(),
            health: HealthConfig::default(),
            naming: NamingStyle::OnCollision,
            state: StateConfig { path: state.into() },
            views: ViewsConfig::default(),
            events: EventsConfig::default(),
            calls: CallsConfig::default(),
        }
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7400)),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body: MIB as usize,
            max_connections: 4_096,
            held_bytes: 256 * MIB as usize,
            list_lifetime: Duration::from_secs(1),
            stop_timeout: Duration::from_secs(10),
            ready_timeout: Duration::from_secs(1),
            rpc_socket: None,
            operator_token: None,
        }
    }
}

impl Default for McpFaceConfig {
    fn default() -> Self {
        Self {
            naming: NamingStyle::Always,
            searches: false,
            page_size: 0,
            max_streams: 100,
            wait: Duration::from_secs(25),
            input_timeout: Duration::from_secs(5 * 60),
            approve_by_elicitation: true,
        }
    }
}

impl Default for DiscoveryConfig {
    fn default() -> Self {
        let vrooli = VrooliConfig {
            enabled: true,
            path: None,
            max_scenarios: 1000,
            rescan_interval: Duration::from_secs(60),
        };
        Self {
            vrooli,
            environment: EnvironmentConfig {
                enabled: true,
                remote: false,
            },
            mdns: MdnsConfig::default(),
        }
    }
}

impl Default for RefreshConfig {
    fn default() -> Self {
        Self {
            min_interval: Duration::from_secs(60),
            max_interval: Duration::from_secs(60 * 60),
            default_lifetime: Duration::from_secs(60),
            forced_gap: Duration::from_secs(1),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(1),
            concurrency: 32,
            max_body: 8 * MIB as usize,
            max_pending_body: 256 * 1024,
            max_redirects: 3,
            max_tools: 10_000,
            max_tool: 256 * 1024,
            backoff_base: Duration::from_secs(1),
            backoff_max: Duration::from_secs(60),
            max_scenarios: 20_000,
        }
    }
}

impl Default for ProtocolConfig {
    fn default() -> Self {
        Self {
            accept: AcceptedVersions::default(),
            incompatible_interval: Duration::from_secs(10 * 60),
            incompatible_grace: Duration::from_secs(24 * 60 * 60),
        }
    }
}

impl Default for HealthConfig {
    fn default() -> Self {
        Self {
            grace: Duration::from_secs(5 * 60),
            failures: 3,
            forget: Duration::from_secs(24 * 3600),
            isolation_count: 2,
            isolation_share: 30,
            isolation_window: Duration::from_secs(15),
            isolation_max: Duration::from_secs(3600),
        }
    }
}

impl Default for ViewsConfig {
    fn default() -> Self {
        Self {
            max_bytes: 64 * u64::from(MIB),
        }
    }
}

impl Default for EventsConfig {
    fn default() -> Self {
        Self {
            ring: 1024,
            ring_bytes: 4 * MIB as usize,
            reader_queue: 256,
            max_subscribers: 1024,
            keep_alive: Duration::from_secs(15),
            linger: Duration::from_secs(120),
        }
    }
}

impl Default for CallsConfig {
    fn default() -> Self {
        Self {
            max_timeout: Duration::from_secs(10 * 60),
            max_body: 4 * MIB as usize,
            concurrency: 32,
            queue: 10_000,
            queue_timeout: Duration::from_secs(30),
            retries: 1,
            reroute_wait: Duration::from_secs(1),
            wake_timeout: Duration::from_secs(60),
            breaker_failures: 5,
            breaker_open: Duration::from_secs(10),
            check_timeout: Duration::from_secs(2),
            check_queue: 1000,
            validators: 1000,
            validators_bytes: 64 * MIB as usize,
            require_approval: Vec::new(),
            unannotated: Vec::new(),
            approval_expiry: Duration::from_secs(3600),
            approval_token: None,
            input_timeout: Duration::from_secs(600),
            approvals_max: 1000,
            operations_max: 1000,
            kept_bytes: 32 * MIB as usize,
            keep: Duration::from_secs(24 * 3600),
            poll_min: Duration::from_secs(1),
            poll_max: Duration::from_secs(60),
            poll_longest: Duration::from_secs(24 * 3600),
            usage_interval: Duration::from_secs(10),
            tool_metrics: false,
            recent: 1_000,
            log_states: 2_000,
            log_keep: Duration::from_secs(7 * 24 * 60 * 60),
            log_payloads: 0,
            audit: None,
            audit_arguments: false,
            audit_max_size: 32 * u64::from(MIB),
            audit_keep: 5,
            turns: TurnsConfig::default(),
        }
    }
}

impl Default for TurnsConfig {
    fn default() -> Self {
        Self {
            keep: Duration::from_secs(3600),
            max: 10_000,
            kept_bytes: 64 * MIB as usize,
            max_calls: 128,
            max_result_bytes: 8 * MIB as usize,
        }
    }
}
