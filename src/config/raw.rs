//! What may be written: every key, all optional, nothing judged yet.
//!
//! The one list of keys. The order here is the order of `config/default.toml`; what a key means stands there and on [`super::Config`].

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use crate::model;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Raw {
    pub(super) server: Server,
    pub(super) scenarios: Vec<Scenario>,
    pub(super) modules: BTreeMap<String, String>,
    pub(super) module_settings: ModuleSettings,
    pub(super) profiles: Vec<Profile>,
    pub(super) permissions: Permissions,
    pub(super) discovery: Discovery,
    pub(super) refresh: Refresh,
    pub(super) cache: Cache,
    pub(super) protocol: Protocol,
    pub(super) health: Health,
    pub(super) naming: Naming,
    pub(super) state: State,
    pub(super) views: Views,
    pub(super) events: Events,
    pub(super) calls: Calls,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Server {
    pub(super) listen: Option<String>,
    pub(super) allowed_hosts: Option<Vec<String>>,
    pub(super) allowed_origins: Option<Vec<String>>,
    pub(super) max_body: Option<Size>,
    pub(super) max_connections: Option<u64>,
    pub(super) stop_timeout: Option<String>,
    pub(super) ready_timeout: Option<String>,
    pub(super) operator_token: Option<Secret>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Scenario {
    pub(super) name: Option<String>,
    pub(super) url: Option<String>,
    pub(super) protocol: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ModuleSettings {
    pub(super) slow_modules: Option<Words>,
    pub(super) tool_execution_timeout: Option<String>,
    pub(super) default_timeout: Option<String>,
    pub(super) token: Option<Secret>,
    pub(super) tokens: BTreeMap<String, Secret>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Profile {
    pub(super) name: Option<String>,
    pub(super) scenarios: Option<Vec<String>>,
    pub(super) allowed_modules: Option<Words>,
    pub(super) permission: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Permissions {
    pub(super) unknown: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Discovery {
    pub(super) vrooli: Vrooli,
    pub(super) environment: Environment,
    pub(super) mdns: Mdns,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Vrooli {
    pub(super) enabled: Option<bool>,
    pub(super) path: Option<String>,
    pub(super) max_scenarios: Option<u64>,
    pub(super) rescan_interval: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Environment {
    pub(super) enabled: Option<bool>,
    pub(super) remote: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Mdns {
    pub(super) enabled: Option<bool>,
    pub(super) trust: Option<Words>,
    pub(super) types: Option<Vec<String>>,
    pub(super) max_instances: Option<u64>,
    pub(super) port: Option<u64>,
    pub(super) interfaces: Option<Vec<String>>,
    pub(super) announce: Option<bool>,
    pub(super) name: Option<String>,
    pub(super) id: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Refresh {
    pub(super) min_interval: Option<String>,
    pub(super) max_interval: Option<String>,
    pub(super) default_lifetime: Option<String>,
    pub(super) forced_gap: Option<String>,
    pub(super) timeout: Option<String>,
    pub(super) connect_timeout: Option<String>,
    pub(super) concurrency: Option<u64>,
    pub(super) max_body: Option<Size>,
    pub(super) max_pending_body: Option<Size>,
    pub(super) max_redirects: Option<u64>,
    pub(super) max_tools: Option<u64>,
    pub(super) max_tool: Option<Size>,
    pub(super) backoff_base: Option<String>,
    pub(super) backoff_max: Option<String>,
    pub(super) max_scenarios: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Cache {
    pub(super) scope: Option<String>,
    pub(super) last_good: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Protocol {
    pub(super) accept: Option<String>,
    pub(super) incompatible_interval: Option<String>,
    pub(super) incompatible_grace: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Health {
    pub(super) grace: Option<String>,
    pub(super) failures: Option<u64>,
    pub(super) forget: Option<String>,
    pub(super) isolation_count: Option<u64>,
    pub(super) isolation_share: Option<u64>,
    pub(super) isolation_window: Option<String>,
    pub(super) isolation_max: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Naming {
    pub(super) style: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct State {
    pub(super) path: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Views {
    pub(super) max_bytes: Option<Size>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Events {
    pub(super) ring: Option<u64>,
    pub(super) ring_bytes: Option<Size>,
    pub(super) reader_queue: Option<u64>,
    pub(super) max_subscribers: Option<u64>,
    pub(super) keep_alive: Option<String>,
    pub(super) linger: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Calls {
    pub(super) max_timeout: Option<String>,
    pub(super) max_body: Option<Size>,
    pub(super) concurrency: Option<u64>,
    pub(super) queue: Option<u64>,
    pub(super) queue_timeout: Option<String>,
    pub(super) retries: Option<u64>,
    pub(super) reroute_wait: Option<String>,
    pub(super) breaker_failures: Option<u64>,
    pub(super) breaker_open: Option<String>,
    pub(super) check_timeout: Option<String>,
    pub(super) check_queue: Option<u64>,
    pub(super) validators: Option<u64>,
    pub(super) validators_bytes: Option<Size>,
    pub(super) approval_expiry: Option<String>,
    pub(super) approval_token: Option<Secret>,
    pub(super) approvals_max: Option<u64>,
    pub(super) operations_max: Option<u64>,
    pub(super) kept_bytes: Option<Size>,
    pub(super) keep: Option<String>,
    pub(super) poll_min: Option<String>,
    pub(super) poll_max: Option<String>,
    pub(super) poll_longest: Option<String>,
    pub(super) usage_interval: Option<String>,
    pub(super) tool_metrics: Option<bool>,
    pub(super) audit: Option<String>,
    pub(super) audit_arguments: Option<bool>,
    pub(super) audit_max_size: Option<Size>,
    pub(super) audit_keep: Option<u64>,
}

/// A size: a number of bytes, or a text such as `8 MiB`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum Size {
    Bytes(u64),
    Text(String),
}

/// One text, or a list of texts.
#[derive(Debug, Clone)]
pub(super) enum Words {
    Text(String),
    List(Vec<String>),
}

/// One text that is never shown.
#[derive(Debug, Clone)]
pub(super) struct Secret(pub(super) model::Secret);

impl<'de> Deserialize<'de> for Secret {
    // Asked for as a newtype, by whose name the shape of keys tells it from others.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(SECRET, ReadSecret)
    }
}

/// The name by which a secret is asked for.
pub(super) const SECRET: &str = "Secret";

struct ReadSecret;

impl<'de> Visitor<'de> for ReadSecret {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Secret, D::Error> {
        deserializer.deserialize_str(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret(model::Secret::new(text)))
    }
}

impl<'de> Deserialize<'de> for Words {
    // Asked for as a newtype, by which the shape of keys tells it from a size.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct("Words", ReadWords)
    }
}

struct ReadWords;

impl<'de> Visitor<'de> for ReadWords {
    type Value = Words;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of texts")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Words, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Words, E> {
        Ok(Words::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Words, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(Words::List(texts))
    }
}
