//! Every key of the configuration, one row each: when another value takes effect, what may be
//! written, and the field of [`Config`] that holds it. It reads no file and decides no value.
//!
//! This is the only list of keys. A new key is a row here, a field, its default in `defaults`, and
//! a line with a sentence in `config/default.toml`; a test compares that file with this list.

use std::sync::LazyLock;

use super::rules::{
    mcp_mode, naming_style, operator_token, pin_mode, scenario_name, socket_address, state_path,
    versions,
};
use super::shape::Shape;
use super::units::{duration, positive_duration, sleep_after};
use super::value_reader::ValueReader;
use super::web::{client_metadata_url, host, web_origin};
use super::{
    Config, bundles, cache, client_servers, definitions, mdns, modules, network, preferences,
    profiles, scenarios,
};

/// A key of the configuration.
#[derive(Debug, Clone, Copy)]
pub struct ConfigKey {
    /// Its path as in `config/default.toml`. A list of tables is one key.
    pub path: &'static str,
    /// When another value takes effect.
    pub reload: Reload,
    /// What may be written.
    pub(super) shape: Shape,
    /// Puts what is written into the configuration.
    pub(super) read: fn(&mut ValueReader<'_>, &mut Config),
    /// Whether two configurations have the same value.
    pub(super) same: fn(&Config, &Config) -> bool,
    /// Puts the value of the first configuration into the second one.
    pub(super) keep: fn(&Config, &mut Config),
}

/// When another value of a key takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// As soon as the daemon has read it.
    Live,
    /// When the daemon is restarted.
    Restart,
}

/// Bounds on concurrency and on kept items: more than is needed, and far below the number at which
/// a semaphore or a table of this size fails.
const MAX_CONCURRENT: u64 = 10_000;
const MAX_KEPT: u64 = 1_000_000;
/// With less, hardly any request could be read.
const MIN_HELD_BYTES: u64 = 1024 * 1024;
/// All arguments and results in the log together have 64 MiB: some dozens of the largest.
const MAX_LOG_PAYLOAD: u64 = 1024 * 1024;
/// Bodies are held in memory whole.
const MAX_BODY: u64 = 1024 * 1024 * 1024;
/// The largest size that the database can hold.
const MAX_STORED_SIZE: u64 = i64::MAX.unsigned_abs();

/// Writes [`KEYS`]. Each row names a method of [`ValueReader`], which gets the field and what
/// stands in the brackets; a `custom` row names its shape and a function instead.
macro_rules! keys {
    ($($path:literal $reload:ident $kind:ident($($rule:expr),*) $($field:ident).+;)+) => {
        /// Every key, in the order of `config/default.toml`.
        pub static KEYS: &[ConfigKey] = &[$(ConfigKey {
            path: $path,
            reload: Reload::$reload,
            shape: keys!(shape $kind $($rule),*),
            read: keys!(read $kind ($($field).+) $($rule),*),
            same: |one, other| one.$($field).+ == other.$($field).+,
            keep: |from, to| to.$($field).+.clone_from(&from.$($field).+),
        },)+];
    };
    (shape custom $shape:expr, $read:expr) => { $shape };
    (shape text $rule:expr) => { Shape::Text };
    (shape texts $rule:expr) => { Shape::TEXTS };
    (shape words $rule:expr) => { Shape::Words };
    (shape secret $rule:expr) => { Shape::Secret };
    (shape path) => { Shape::Text };
    (shape path_or_none) => { Shape::Text };
    (shape number $range:expr) => { Shape::Number };
    (shape size $range:expr) => { Shape::Size };
    (shape switch) => { Shape::Switch };
    (read custom ($($field:tt)+) $shape:expr, $read:expr) => { $read };
    (read $kind:ident ($($field:tt)+) $($rule:expr),*) => {
        |written, config| written.$kind(&mut config.$($field)+, $($rule),*)
    };
}

keys! {
    "server.listen"                          Restart text(socket_address)         server.listen;
    "server.allowed_hosts"                   Restart texts(host)                  server.allowed_hosts;
    "server.allowed_origins"                 Restart texts(web_origin)            server.allowed_origins;
    "server.max_body"                        Restart size(1..=MAX_BODY)       server.max_body;
    "server.max_connections"                 Restart number(1..=MAX_KEPT)             server.max_connections;
    "server.held_bytes"                      Live    size(MIN_HELD_BYTES..=MAX_STORED_SIZE) server.held_bytes;
    "server.list_lifetime"                   Restart text(duration)               server.list_lifetime;
    "server.stop_timeout"                    Restart text(duration)               server.stop_timeout;
    "server.ready_timeout"                   Restart text(duration)               server.ready_timeout;
    "server.rpc_socket"                      Restart path_or_none()               server.rpc_socket;
    "server.operator_token"                  Live    secret(operator_token)       server.operator_token;
    "scenarios"                              Live    custom(scenarios::SHAPE, scenarios::read) scenarios;
    "modules"                                Live    custom(Shape::Map(&Shape::Text), modules::services) modules.services;
    "module_settings.slow_modules"           Live    words(scenario_name)         modules.slow;
    "module_settings.tool_execution_timeout" Live    text(positive_duration)               modules.slow_timeout;
    "module_settings.default_timeout"        Live    text(positive_duration)               modules.timeout;
    "module_settings.token"                  Live    custom(modules::TOKEN, modules::token) modules.token;
    "module_settings.tokens"                 Live    custom(Shape::Map(&modules::TOKEN), modules::tokens) modules.tokens;
    "mcpServers"                             Live    custom(client_servers::SERVERS, client_servers::read_servers) mcp.servers;
    "mcp.files"                              Live    custom(Shape::TEXTS, client_servers::read_files) mcp.files;
    "mcp.linger"                             Live    text(positive_duration)               mcp.linger;
    "mcp.sleep_after"                        Live    text(sleep_after)            mcp.sleep_after;
    "mcp.wake_timeout"                       Live    text(positive_duration)               calls.wake_timeout;
    "mcp.relist_after"                       Live    text(positive_duration)               mcp.relist_after;
    "mcp.naming"                             Live    text(naming_style)           mcp_face.naming;
    "mcp.mode"                               Live    text(mcp_mode)               mcp_face.searches;
    "mcp.page_size"                          Live    number(0..=MAX_KEPT)             mcp_face.page_size;
    "mcp.max_streams"                        Live    number(1..=MAX_KEPT)             mcp_face.max_streams;
    "mcp.wait"                               Live    text(duration)               mcp_face.wait;
    "mcp.input_timeout"                      Live    text(positive_duration)               mcp_face.input_timeout;
    "mcp.approve_by_elicitation"             Live    switch()                     mcp_face.approve_by_elicitation;
    "bundles.path"                           Restart path_or_none()               bundles.path;
    "bundles.allowed_hosts"                  Live    texts(bundles::host_rule)    bundles.allowed_hosts;
    "bundles.secrets"                        Live    custom(bundles::SECRETS, bundles::secrets) bundles.secrets;
    "bundles.built_in"                       Live    switch()                     bundles.built_in;
    "bundles.folders"                        Live    custom(Shape::TEXTS, bundles::folders) bundles.folders;
    "bundles.max_tools"                      Live    number(1..=MAX_KEPT)             bundles.max_tools;
    "bundles.max_bundles"                    Live    number(1..=MAX_KEPT)             bundles.max_bundles;
    "bundles.max_bytes"                      Live    size(1..=MAX_BODY)       bundles.max_bytes;
    "bundles.max_request"                    Live    size(1..=MAX_BODY)       bundles.max_request;
    "login.client_metadata_url"              Restart   text(client_metadata_url)    login.client_metadata_url;
    "login.hosts"                            Restart texts(host)                  login.hosts;
    "profiles"                               Live    custom(profiles::SHAPE, profiles::read) profiles;
    "preferences"                            Live    custom(preferences::SHAPE, preferences::read) preferences;
    "definitions"                            Live    custom(definitions::SHAPE, definitions::read) definitions;
    "pins.default"                           Live    text(pin_mode)               pins;
    "permissions.unknown"                    Live    text(profiles::unknown_level) unknown_level;
    "permissions.unannotated"                Live    texts(preferences::tag)      assumed_tags;
    "permissions.default_profile"            Live    text(profiles::default_name)   default_profile;
    "discovery.vrooli.enabled"               Live    switch()                     discovery.vrooli.enabled;
    "discovery.vrooli.path"                  Live    path()                       discovery.vrooli.path;
    "discovery.vrooli.max_scenarios"         Live    number(1..=MAX_KEPT)             discovery.vrooli.max_scenarios;
    "discovery.vrooli.rescan_interval"       Live    text(positive_duration)               discovery.vrooli.rescan_interval;
    "discovery.environment.enabled"          Live    switch()                     discovery.environment.enabled;
    "discovery.environment.remote"           Live    switch()                     discovery.environment.remote;
    "discovery.mdns.enabled"                 Live    switch()                     discovery.mdns.enabled;
    "discovery.mdns.trust"                   Live    custom(Shape::Words, mdns::read_trust) discovery.mdns.trust;
    "discovery.mdns.types"                   Live    texts(mdns::service_type)    discovery.mdns.types;
    "discovery.mdns.max_instances"           Live    number(1..=MAX_CONCURRENT)     discovery.mdns.max_instances;
    "discovery.mdns.port"                    Live    number(1..=u64::from(u16::MAX)) discovery.mdns.port;
    "discovery.mdns.interfaces"              Live    texts(mdns::interface)       discovery.mdns.interfaces;
    "discovery.mdns.announce"                Live    switch()                     discovery.mdns.announce;
    "discovery.mdns.name"                    Live    text(mdns::instance_name)    discovery.mdns.name;
    "discovery.mdns.id"                      Restart text(mdns::id)               discovery.mdns.id;
    "network.proxy"                          Live    custom(Shape::Text, network::proxy) network.proxy;
    "network.no_proxy"                       Live    custom(Shape::TEXTS, network::no_proxy) network.no_proxy;
    "refresh.min_interval"                   Live    text(positive_duration)               refresh.min_interval;
    "refresh.max_interval"                   Live    text(positive_duration)               refresh.max_interval;
    "refresh.default_lifetime"               Live    text(duration)               refresh.default_lifetime;
    "refresh.forced_gap"                     Live    text(duration)               refresh.forced_gap;
    "refresh.timeout"                        Live    text(positive_duration)               refresh.timeout;
    "refresh.connect_timeout"                Live    text(positive_duration)               refresh.connect_timeout;
    "refresh.concurrency"                    Live    number(1..=MAX_CONCURRENT)     refresh.concurrency;
    "refresh.max_body"                       Live    size(1..=MAX_BODY)       refresh.max_body;
    "refresh.max_pending_body"               Live    size(1..=MAX_BODY)       refresh.max_pending_body;
    "refresh.max_redirects"                  Live    number(0..=20)               refresh.max_redirects;
    "refresh.max_tools"                      Live    number(1..=MAX_KEPT)             refresh.max_tools;
    "refresh.max_tool"                       Live    size(1..=MAX_BODY)       refresh.max_tool;
    "refresh.backoff_base"                   Live    text(positive_duration)               refresh.backoff_base;
    "refresh.backoff_max"                    Live    text(positive_duration)               refresh.backoff_max;
    "refresh.max_scenarios"                  Live    number(1..=MAX_KEPT)             refresh.max_scenarios;
    "cache.scope"                            Live    text(cache::scope)           cache.scope;
    "cache.last_good"                        Live    switch()                     cache.last_good;
    "protocol.accept"                        Live    text(versions)               protocol.accept;
    "protocol.incompatible_interval"         Live    text(positive_duration)               protocol.incompatible_interval;
    "protocol.incompatible_grace"            Live    text(duration)               protocol.incompatible_grace;
    "health.grace"                           Live    text(duration)               health.grace;
    "health.failures"                        Live    number(1..=1000)             health.failures;
    "health.forget"                          Live    text(duration)               health.forget;
    "health.isolation_count"                 Live    number(2..=MAX_KEPT)             health.isolation_count;
    "health.isolation_share"                 Live    number(1..=99)               health.isolation_share;
    "health.isolation_window"                Live    text(positive_duration)               health.isolation_window;
    "health.isolation_max"                   Live    text(duration)               health.isolation_max;
    "naming.style"                           Live    text(naming_style)           naming;
    "state.path"                             Restart custom(Shape::Text, state_path) state.path;
    "views.max_bytes"                        Restart size(0..=MAX_STORED_SIZE)            views.max_bytes;
    "events.ring"                            Live    number(1..=MAX_KEPT)             events.ring;
    "events.ring_bytes"                      Live    size(1..=MAX_BODY)       events.ring_bytes;
    "events.reader_queue"                    Live    number(1..=MAX_KEPT)             events.reader_queue;
    "events.max_subscribers"                 Restart number(0..=MAX_KEPT)             events.max_subscribers;
    "events.keep_alive"                      Live    text(positive_duration)               events.keep_alive;
    "events.linger"                          Live    text(duration)               events.linger;
    "calls.max_timeout"                      Live    text(positive_duration)               calls.max_timeout;
    "calls.max_body"                         Live    size(1..=MAX_BODY)       calls.max_body;
    "calls.concurrency"                      Live    number(1..=MAX_CONCURRENT)     calls.concurrency;
    "calls.queue"                            Live    number(0..=MAX_KEPT)             calls.queue;
    "calls.queue_timeout"                    Live    text(duration)               calls.queue_timeout;
    "calls.retries"                          Live    number(0..=10)               calls.retries;
    "calls.reroute_wait"                     Live    text(duration)               calls.reroute_wait;
    "calls.breaker_failures"                 Live    number(1..=1000)             calls.breaker_failures;
    "calls.breaker_open"                     Live    text(positive_duration)               calls.breaker_open;
    "calls.check_timeout"                    Live    text(positive_duration)               calls.check_timeout;
    "calls.check_queue"                      Live    number(1..=MAX_KEPT)             calls.check_queue;
    "calls.validators"                       Live    number(1..=MAX_KEPT)             calls.validators;
    "calls.validators_bytes"                 Live    size(1..=MAX_BODY)       calls.validators_bytes;
    "calls.require_approval"                 Live    texts(preferences::tag)      calls.require_approval;
    "calls.unannotated"                      Live    texts(preferences::tag)      calls.unannotated;
    "calls.approval_expiry"                  Live    text(positive_duration)               calls.approval_expiry;
    "calls.approval_token"                   Live    secret(operator_token)       calls.approval_token;
    "calls.input_timeout"                    Live    text(positive_duration)               calls.input_timeout;
    "calls.approvals_max"                    Live    number(1..=MAX_CONCURRENT)     calls.approvals_max;
    "calls.operations_max"                   Live    number(1..=MAX_CONCURRENT)     calls.operations_max;
    "calls.kept_bytes"                       Live    size(1..=MAX_BODY)       calls.kept_bytes;
    "calls.keep"                             Live    text(duration)               calls.keep;
    "calls.poll_min"                         Live    text(positive_duration)               calls.poll_min;
    "calls.poll_max"                         Live    text(positive_duration)               calls.poll_max;
    "calls.poll_longest"                     Live    text(positive_duration)               calls.poll_longest;
    "calls.usage_interval"                   Live    text(positive_duration)               calls.usage_interval;
    "calls.tool_metrics"                     Live    switch()                     calls.tool_metrics;
    "calls.recent"                           Live    number(0..=MAX_KEPT)             calls.recent;
    "calls.log_states"                       Live    number(0..=MAX_KEPT)             calls.log_states;
    "calls.log_keep"                         Live    text(positive_duration)               calls.log_keep;
    "calls.log_payloads"                     Live    size(0..=MAX_LOG_PAYLOAD)    calls.log_payloads;
    "calls.audit"                            Live    path_or_none()               calls.audit;
    "calls.audit_arguments"                  Live    switch()                     calls.audit_arguments;
    "calls.audit_max_size"                   Live    size(1..=MAX_STORED_SIZE)            calls.audit_max_size;
    "calls.audit_keep"                       Live    number(0..=1000)             calls.audit_keep;
    "turns.keep"                             Live    text(duration)               calls.turns.keep;
    "turns.max"                              Live    number(1..=MAX_KEPT)             calls.turns.max;
    "turns.kept_bytes"                       Live    size(1..=MAX_BODY)       calls.turns.kept_bytes;
    "turns.max_calls"                        Live    number(1..=MAX_CONCURRENT)     calls.turns.max_calls;
    "turns.max_result_bytes"                 Live    size(1..=MAX_BODY)       calls.turns.max_result_bytes;
}

/// The shape of a whole configuration, put together from [`KEYS`].
pub(super) static ROOT_SHAPE: LazyLock<Shape> = LazyLock::new(|| section(""));

/// The shape of the table whose keys have paths that begin with `prefix`.
fn section(prefix: &str) -> Shape {
    let mut keys: Vec<(&'static str, Shape)> = Vec::new();
    for key in KEYS {
        let Some(rest) = key.path.strip_prefix(prefix) else {
            continue;
        };
        match rest.split_once('.') {
            None => keys.push((rest, key.shape)),
            Some((table, _)) if keys.last().is_none_or(|(name, _)| *name != table) => {
                keys.push((table, section(&format!("{prefix}{table}."))));
            }
            Some(_) => {}
        }
    }
    // The shape is made once and is needed as long as the process runs.
    Shape::Table(keys.leak())
}

/// Every key that may be written, in the order of `config/default.toml`, such as `server.listen`,
/// `scenarios[].name` and `modules.*`.
pub fn keys() -> Vec<String> {
    let mut keys = Vec::new();
    for key in KEYS {
        match key.shape {
            Shape::List(Shape::Table(entry)) => {
                keys.extend(
                    entry
                        .iter()
                        .map(|(name, _)| format!("{}[].{name}", key.path)),
                );
            }
            // Any key may stand in such a section. Such a table further in is written as one value.
            Shape::Map(_) if !key.path.contains('.') => keys.push(format!("{}.*", key.path)),
            _ => keys.push(key.path.to_owned()),
        }
    }
    keys
}
