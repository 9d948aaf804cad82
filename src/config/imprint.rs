//! What of the configuration decides about the list that a start publishes, as one digest.

use xxhash_rust::xxh3::Xxh3;

use super::Config;

impl Config {
    /// A digest that is another one whenever a start with this configuration may publish another list of what is stored than before. How the
    /// daemon is reached, where its state is, and what it does with calls and events changes no list.
    pub fn imprint(&self) -> String {
        let Self {
            server: _,
            scenarios,
            modules,
            unknown_level,
            profiles,
            discovery,
            refresh,
            cache,
            protocol,
            health,
            naming,
            state: _,
            views: _,
            events: _,
            calls: _,
        } = self;
        let mut digest = Xxh3::new();
        let mut text = |text: &str| {
            digest.update(&(text.len() as u64).to_le_bytes());
            digest.update(text.as_bytes());
        };
        // There may be thousands, and printing an address in full takes its time.
        for scenario in scenarios {
            text(scenario.name.as_str());
            text(scenario.url.as_str());
            text(scenario.protocol.as_deref().unwrap_or_default());
        }
        // Of the others, the way in which they are printed tells equal ones from different ones.
        let all: [&dyn std::fmt::Debug; 9] =
            [modules, unknown_level, profiles, discovery, refresh, cache, protocol, health, naming];
        for part in all {
            text(&format!("{part:?}"));
        }
        format!("{:032x}", digest.digest128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::NamingStyle;
    use crate::config::StaticScenario;

    #[test]
    fn what_decides_about_lists_changes_it_and_the_rest_does_not() {
        let plain = || Config::for_state("state.db");
        let changed = |change: fn(&mut Config)| {
            let mut config = plain();
            change(&mut config);
            config.imprint() != plain().imprint()
        };
        assert!(!changed(|_| {}));
        assert!(!changed(|config| config.server.max_body += 1));
        assert!(!changed(|config| config.views.max_bytes += 1));
        assert!(changed(|config| config.naming = NamingStyle::Always));
        assert!(changed(|config| config.discovery.mdns.id = Some("another".to_owned())));
        assert!(changed(|config| config.refresh.max_tools -= 1));
        assert!(changed(|config| {
            let url = "http://127.0.0.1:1".parse().unwrap();
            config.scenarios.push(StaticScenario { name: "one".parse().unwrap(), url, protocol: None });
        }));
    }
}
