//! Applies another configuration while the daemon runs: a reload.
//!
//! Unchanged parts are left alone: a scenario whose settings are equal keeps its schedule, its
//! manifest, its counters and the poll that is under way. Changes apply to known data where that is
//! possible, and otherwise from the next answer on. The sources follow the configuration by
//! themselves (`sources.rs`), and their new sets arrive like every other set.

use std::sync::Arc;

use super::effects::{ChangeKind, Dirty, Effects, PollSet};
use super::now::Now;
use super::run::Core;
use super::scenario::handle::ScenarioInput;
use super::scenario::schedule::{PollGrid, RELOAD_SPREAD};
use crate::config::{Config, RefreshConfig};
use crate::model::ConfigState;

impl Core {
    /// Activates another configuration (`None` when it is the same), and records the state of the
    /// configuration.
    pub(super) fn configure(
        &mut self,
        config: Option<Arc<Config>>,
        state: Arc<ConfigState>,
        now: Now,
    ) {
        self.publisher.configuration(state);
        let Some(config) = config else { return };
        let before = std::mem::replace(&mut self.parts.config, Arc::clone(&config));
        self.poller.configure(&before.refresh, &config.refresh);
        self.publisher.configure(&before, &config);
        let pace = |refresh: &RefreshConfig| (refresh.min_interval, refresh.max_interval);
        let slow = |config: &Config| config.protocol.incompatible_interval;
        if pace(&before.refresh) != pace(&config.refresh) || slow(&before) != slow(&config) {
            self.rounds = PollGrid::new(now.mono, &config.refresh);
            for record in self.fleet.scenarios_mut() {
                let followed = self.sessions.is_followed(&record.name);
                let random = fastrand::f64();
                record.handle(ScenarioInput::Replanned { followed, random }, &config, now);
            }
        }
        for record in self.fleet.scenarios_mut() {
            record.start_if_it_may_not_sleep(&config, now);
        }
        if before.protocol.accept != config.protocol.accept
            || before.manifest_bounds() != config.manifest_bounds()
        {
            // Manifests that were refused or cut may be acceptable now, or the other way round:
            // only the whole manifest can show that.
            for record in self.fleet.scenarios_mut() {
                record.handle(ScenarioInput::Reread, &config, now);
            }
            let all = Effects {
                poll: vec![(PollSet::Trusted, RELOAD_SPREAD)],
                ..Effects::default()
            };
            self.apply(all, now);
        }
        self.parts.configured.send_replace(config);
        self.await_first_lists(Some(&before), now);
        self.reconcile(now);
        // Every state and deadline is evaluated by the active rules.
        let all = self
            .fleet
            .scenarios()
            .keys()
            .cloned()
            .map(|name| Dirty::Scenario(name, ChangeKind::Changed));
        self.apply(
            Effects {
                publish: all.collect(),
                ..Effects::default()
            },
            now,
        );
    }
}
