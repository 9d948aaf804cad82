//! What of another configuration a running daemon can take, by the `reload` of each of the
//! [`KEYS`].
//!
//! A live change applies from the reload on; an answer that was checked before stays as it is.
//! Other keys keep the value that they had at the start: the address is bound, the database is
//! open, the cache of prepared lists exists.

use super::keys::{KEYS, Reload};
use super::{CacheConfig, Config};
use crate::model::Bounds;
use crate::transports::http::{CacheRules, ClientLimits};

/// Another configuration, as far as a running daemon can take it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reloaded {
    /// The configuration that becomes active now.
    pub config: Config,
    /// The keys that have another value in it.
    pub changed: Vec<&'static str>,
    /// The keys that were written otherwise, but keep their value until a restart.
    pub waiting: Vec<&'static str>,
}

impl Config {
    /// The active configuration after reading `next`.
    pub fn reloaded(&self, mut next: Self) -> Reloaded {
        let mut changed = Vec::new();
        let mut waiting = Vec::new();
        for key in KEYS {
            if (key.same)(self, &next) {
                continue;
            }
            match key.reload {
                Reload::Live => changed.push(key.path),
                Reload::Restart => {
                    waiting.push(key.path);
                    (key.keep)(self, &mut next);
                }
            }
        }
        Reloaded {
            config: next,
            changed,
            waiting,
        }
    }

    /// The limits of one request to a scenario.
    pub fn http_limits(&self) -> ClientLimits {
        ClientLimits {
            connect: self.refresh.connect_timeout,
            whole: self.refresh.timeout,
            max_body: self.refresh.max_body,
            max_redirects: self.refresh.max_redirects,
        }
    }

    /// How long the answers of scenarios may be used.
    pub fn cache_rules(&self) -> CacheRules {
        let CacheConfig { scope, last_good } = self.cache;
        CacheRules {
            scope,
            default_lifetime: self.refresh.default_lifetime,
            last_good,
        }
    }

    /// How much of a manifest is taken.
    pub fn manifest_bounds(&self) -> Bounds {
        Bounds {
            tools: self.refresh.max_tools,
            part: self.refresh.max_tool,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;
    use crate::config::DEFAULT_TOML;

    #[test]
    fn the_file_says_which_keys_wait_for_a_restart() {
        let (_, text) = DEFAULT_TOML
            .split_once("keep their value until a restart: ")
            .unwrap();
        let (text, _) = text.split_once(".\n").unwrap();
        // Alternately what stands before a key, and the key.
        let parts: Vec<&str> = text.split('`').collect();
        let (excepted, listed): (Vec<&[&str]>, Vec<&[&str]>) = parts
            .chunks_exact(2)
            .partition(|part| part[0].trim_end().ends_with("except"));
        let [excepted, listed] =
            [excepted, listed].map(|all| all.iter().map(|part| part[1]).collect::<BTreeSet<_>>());
        let mut sections = BTreeSet::new();
        for key in KEYS {
            let whole = format!(
                "{}.*",
                key.path.split_once('.').map_or("", |(section, _)| section)
            );
            let named = listed.contains(key.path) || listed.contains(whole.as_str());
            let waits = named && !excepted.contains(key.path);
            assert_eq!(waits, key.reload == Reload::Restart, "{}", key.path);
            sections.extend([key.path.to_owned(), whole]);
        }
        assert!(
            listed
                .union(&excepted)
                .all(|named| sections.contains(*named)),
            "{text}"
        );
    }

    #[test]
    fn what_cannot_be_taken_keeps_its_value() {
        let mut before = Config::for_state("/a.db");
        before.discovery.mdns.id = Some("me".into());
        let same = before.reloaded(before.clone());
        assert_eq!(same.changed.len(), 0, "there is nothing in it");
        assert_eq!(same.waiting.len(), 0, "there is nothing in it");
        let mut next = Config::for_state("/b.db");
        next.server.max_body += 1;
        next.refresh.timeout = Duration::from_secs(77);
        next.naming = crate::catalog::NamingStyle::Always;
        let Reloaded {
            config,
            changed,
            waiting,
        } = before.reloaded(next.clone());
        assert_eq!(changed, ["refresh.timeout", "naming.style"]);
        assert_eq!(
            waiting,
            ["server.max_body", "discovery.mdns.id", "state.path"]
        );
        assert_eq!(config.server, before.server);
        assert_eq!(config.state, before.state);
        assert_eq!(config.refresh, next.refresh);
        assert_eq!(config.naming, next.naming);
        assert_eq!(config.discovery, before.discovery);
    }
}
