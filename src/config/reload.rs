//! What of another configuration a running daemon can take: one table says it for every key.
//!
//! What is applied live holds from the reload on; an answer that was judged before it stays as it was judged. What is not keeps the value
//! that it had at the start: the address is bound, the database open, the cache of prepared lists made.

use super::{Cache, Config};
use crate::model::Bounds;
use crate::transports::http::{Limits, Rules};

/// What a reload does with one key.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The key as `config/default.toml` has it; a list of tables is one key.
    pub key: &'static str,
    /// Whether a running daemon takes another value; else it waits for a restart.
    pub live: bool,
    same: fn(&Config, &Config) -> bool,
    keep: fn(&Config, &mut Config),
}

/// Another configuration, as far as a running daemon can take it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reloaded {
    /// What is to be in force now.
    pub config: Config,
    /// The keys that have another value in it.
    pub changed: Vec<&'static str>,
    /// The keys that were written otherwise, but keep their value until a restart.
    pub waiting: Vec<&'static str>,
}

macro_rules! rules {
    ($($key:literal $when:ident $($field:ident).+;)+) => {
        /// Every key, in the order of `config/default.toml`.
        pub const RULES: &[Rule] = &[$(Rule {
            key: $key,
            live: rules!($when),
            same: |one, other| one.$($field).+ == other.$($field).+,
            keep: |from, to| to.$($field).+.clone_from(&from.$($field).+),
        },)+];
    };
    (live) => { true };
    (restart) => { false };
}

rules! {
    "server.listen" restart server.listen;
    "server.allowed_hosts" restart server.allowed_hosts;
    "server.allowed_origins" restart server.allowed_origins;
    "server.max_body" restart server.max_body;
    "server.max_connections" restart server.max_connections;
    "server.stop_timeout" restart server.stop_timeout;
    "server.ready_timeout" restart server.ready_timeout;
    "server.operator_token" live server.operator_token;
    "scenarios" live scenarios;
    "modules" live modules.services;
    "module_settings.slow_modules" live modules.slow;
    "module_settings.tool_execution_timeout" live modules.slow_timeout;
    "module_settings.default_timeout" live modules.timeout;
    "module_settings.token" live modules.token;
    "module_settings.tokens" live modules.tokens;
    "profiles" live profiles;
    "permissions.unknown" live unknown_level;
    "discovery.vrooli.enabled" live discovery.vrooli.enabled;
    "discovery.vrooli.path" live discovery.vrooli.path;
    "discovery.vrooli.max_scenarios" live discovery.vrooli.max_scenarios;
    "discovery.vrooli.rescan_interval" live discovery.vrooli.rescan_interval;
    "discovery.environment.enabled" live discovery.environment.enabled;
    "discovery.environment.remote" live discovery.environment.remote;
    "discovery.mdns.enabled" live discovery.mdns.enabled;
    "discovery.mdns.trust" live discovery.mdns.trust;
    "discovery.mdns.types" live discovery.mdns.types;
    "discovery.mdns.max_instances" live discovery.mdns.max_instances;
    "discovery.mdns.port" live discovery.mdns.port;
    "discovery.mdns.interfaces" live discovery.mdns.interfaces;
    "discovery.mdns.announce" live discovery.mdns.announce;
    "discovery.mdns.name" live discovery.mdns.name;
    "discovery.mdns.id" restart discovery.mdns.id;
    "refresh.min_interval" live refresh.min_interval;
    "refresh.max_interval" live refresh.max_interval;
    "refresh.default_lifetime" live refresh.default_lifetime;
    "refresh.forced_gap" live refresh.forced_gap;
    "refresh.timeout" live refresh.timeout;
    "refresh.connect_timeout" live refresh.connect_timeout;
    "refresh.concurrency" live refresh.concurrency;
    "refresh.max_body" live refresh.max_body;
    "refresh.max_pending_body" live refresh.max_pending_body;
    "refresh.max_redirects" live refresh.max_redirects;
    "refresh.max_tools" live refresh.max_tools;
    "refresh.max_tool" live refresh.max_tool;
    "refresh.backoff_base" live refresh.backoff_base;
    "refresh.backoff_max" live refresh.backoff_max;
    "refresh.max_scenarios" live refresh.max_scenarios;
    "cache.scope" live cache.scope;
    "cache.last_good" live cache.last_good;
    "protocol.accept" live protocol.accept;
    "protocol.incompatible_interval" live protocol.incompatible_interval;
    "protocol.incompatible_grace" live protocol.incompatible_grace;
    "health.grace" live health.grace;
    "health.failures" live health.failures;
    "health.forget" live health.forget;
    "health.isolation_count" live health.isolation_count;
    "health.isolation_share" live health.isolation_share;
    "health.isolation_window" live health.isolation_window;
    "health.isolation_max" live health.isolation_max;
    "naming.style" live naming;
    "state.path" restart state.path;
    "views.max_bytes" restart views.max_bytes;
    "events.ring" live events.ring;
    "events.ring_bytes" live events.ring_bytes;
    "events.reader_queue" live events.reader_queue;
    "events.max_subscribers" restart events.max_subscribers;
    "events.keep_alive" live events.keep_alive;
    "events.linger" live events.linger;
    "calls.max_timeout" live calls.max_timeout;
    "calls.max_body" live calls.max_body;
    "calls.concurrency" live calls.concurrency;
    "calls.queue" live calls.queue;
    "calls.queue_timeout" live calls.queue_timeout;
    "calls.retries" live calls.retries;
    "calls.reroute_wait" live calls.reroute_wait;
    "calls.breaker_failures" live calls.breaker_failures;
    "calls.breaker_open" live calls.breaker_open;
    "calls.check_timeout" live calls.check_timeout;
    "calls.check_queue" live calls.check_queue;
    "calls.validators" live calls.validators;
    "calls.validators_bytes" live calls.validators_bytes;
    "calls.approval_expiry" live calls.approval_expiry;
    "calls.approval_token" live calls.approval_token;
    "calls.approvals_max" live calls.approvals_max;
    "calls.operations_max" live calls.operations_max;
    "calls.kept_bytes" live calls.kept_bytes;
    "calls.keep" live calls.keep;
    "calls.poll_min" live calls.poll_min;
    "calls.poll_max" live calls.poll_max;
    "calls.poll_longest" live calls.poll_longest;
    "calls.usage_interval" live calls.usage_interval;
    "calls.tool_metrics" live calls.tool_metrics;
    "calls.audit" live calls.audit;
    "calls.audit_arguments" live calls.audit_arguments;
    "calls.audit_max_size" live calls.audit_max_size;
    "calls.audit_keep" live calls.audit_keep;
}

impl Config {
    /// What becomes of this configuration, which is in force, when `next` is read.
    pub fn reloaded(&self, mut next: Self) -> Reloaded {
        let (mut changed, mut waiting) = (Vec::new(), Vec::new());
        for rule in RULES.iter().filter(|rule| !(rule.same)(self, &next)) {
            if rule.live {
                changed.push(rule.key);
            } else {
                waiting.push(rule.key);
            }
        }
        for rule in RULES.iter().filter(|rule| !rule.live) {
            (rule.keep)(self, &mut next);
        }
        Reloaded { config: next, changed, waiting }
    }

    /// The limits of one request to a scenario.
    pub fn limits(&self) -> Limits {
        Limits {
            connect: self.refresh.connect_timeout,
            whole: self.refresh.timeout,
            max_body: self.refresh.max_body,
            max_redirects: self.refresh.max_redirects,
        }
    }

    /// How long the answers of scenarios may be used.
    pub fn caching(&self) -> Rules {
        let Cache { scope, last_good } = self.cache;
        Rules { scope, default_lifetime: self.refresh.default_lifetime, last_good }
    }

    /// How much of a manifest is taken.
    pub fn bounds(&self) -> Bounds {
        Bounds { tools: self.refresh.max_tools, part: self.refresh.max_tool }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::config::{DEFAULT_TOML, keys};

    #[test]
    fn every_key_has_a_rule_in_the_order_of_the_file() {
        let mut written: Vec<String> = keys()
            .iter()
            .map(|key| key.split_once("[]").map_or(key.as_str(), |(list, _)| list))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|key| key.trim_end_matches(".*").to_owned())
            .collect();
        written.dedup();
        assert_eq!(RULES.iter().map(|rule| rule.key).collect::<Vec<_>>(), written);
    }

    #[test]
    fn the_file_says_which_keys_wait_for_a_restart() {
        let (_, told) = DEFAULT_TOML.split_once("keep their value until a restart: ").unwrap();
        let (told, _) = told.split_once(".\n").unwrap();
        let told: BTreeSet<&str> = told.split('`').skip(1).step_by(2).collect();
        let mut sections = BTreeSet::new();
        for rule in RULES {
            let whole = format!("{}.*", rule.key.split_once('.').map_or("", |(section, _)| section));
            let named = told.contains(rule.key) || told.contains(whole.as_str());
            assert_eq!(named, !rule.live, "{}", rule.key);
            sections.extend([rule.key.to_owned(), whole]);
        }
        assert!(told.iter().all(|told| sections.contains(*told)), "{told:?}");
    }

    #[test]
    fn what_cannot_be_taken_keeps_its_value() {
        let mut before = Config::for_state("/a.db");
        before.discovery.mdns.id = Some("me".into());
        assert_eq!(before.reloaded(before.clone()).changed.len() + before.reloaded(before.clone()).waiting.len(), 0);
        let mut next = Config::for_state("/b.db");
        next.server.max_body += 1;
        next.refresh.timeout = Duration::from_secs(77);
        next.naming = crate::catalog::NamingStyle::Always;
        let Reloaded { config, changed, waiting } = before.reloaded(next.clone());
        assert_eq!(changed, ["refresh.timeout", "naming.style"]);
        assert_eq!(waiting, ["server.max_body", "discovery.mdns.id", "state.path"]);
        assert_eq!((&config.server, &config.state), (&before.server, &before.state));
        assert_eq!((config.refresh, config.naming), (next.refresh, next.naming));
        assert_eq!(config.discovery, before.discovery);
    }
}
