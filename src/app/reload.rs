//! Reloads the configuration of a running daemon: reads it when its file may have changed or an
//! operator requests it, and applies it if it is valid.
//!
//! It decides nothing about scenarios: the engine, the sources, the client and the announcement
//! each apply their own part. An equal configuration has no effect. An invalid one only affects
//! findings, `/readyz` and the log.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

use super::Callsheet;
use crate::bundles::BundleStore;
use crate::calls::Calls;
use crate::config::{
    self, Config, ConfigError, EffectiveValue, LoadOptions, LoadedConfig, Reloaded, StaticScenario,
};
use crate::engine::EngineHandle;
use crate::events::Hub;
use crate::model::{ConfigProblem, ConfigState, RefusedConfig, RenamedKey, ScenarioChanges};
use crate::protocols::definitions::DefinitionRegistry;
use crate::runtime::files::FileWatch;
use crate::runtime::service::{ServiceManager, ServiceNotification};
use crate::runtime::signal::Hangups;
use crate::runtime::{Clock, Stop, Tasks};
use crate::transports::http::Client;

/// After a sign of a change, the file is read once there were no further signs for this long:
/// editors empty a file before they write it.
const QUIET: Duration = Duration::from_millis(250);
/// No change waits for longer than this.
const CHANGE_DELAY_MAX: Duration = Duration::from_secs(2);
/// How often the file is read without a sign of a change: network file systems send no events.
const POLL: Duration = Duration::from_secs(60);
/// The largest number of problems that are reported.
const TOLD: usize = 100;

/// Follows the configuration of one daemon.
struct ConfigReloader {
    options: LoadOptions,
    /// The active configuration, as it was loaded: without the identity of this daemon.
    config: Config,
    file: Option<PathBuf>,
    state: ConfigState,
    id: Arc<str>,
    in_force: watch::Sender<Arc<Config>>,
    settings: watch::Sender<Vec<EffectiveValue>>,
    client: Arc<Client>,
    bundles: BundleStore,
    engine: EngineHandle,
    events: Hub,
    calls: Calls,
    definitions: DefinitionRegistry,
    tasks: Tasks,
    clock: Clock,
    /// The service manager to notify of reloads, if there is one.
    manager: Option<ServiceManager>,
    /// Whether the service manager was notified that a reload is under way.
    reloading: bool,
}

impl Callsheet {
    /// Follows the configuration that this daemon was started with: the file is watched, and on
    /// unix SIGHUP makes the daemon read it at once. All layers are then merged again. A valid
    /// configuration is applied as far as that is possible while running
    /// ([`Reload`](crate::config::Reload)); an invalid one changes nothing, and is reported in the
    /// log, by `/readyz` and as findings until it is fixed.
    ///
    /// # Errors
    /// When the process cannot listen to the signal.
    pub fn follow_configuration(
        &self,
        options: LoadOptions,
        loaded: LoadedConfig,
    ) -> std::io::Result<()> {
        // Set once: a daemon follows one configuration.
        let _ = self.load_options.set(Arc::new(options.clone()));
        let follower = ConfigReloader::new(self, options, loaded);
        self.tasks
            .spawn(follower.run(Hangups::new()?, self.stop.clone()));
        Ok(())
    }
}

impl ConfigReloader {
    /// Follows the configuration that `app` was started with.
    fn new(app: &Callsheet, options: LoadOptions, loaded: LoadedConfig) -> Self {
        let LoadedConfig {
            config,
            values,
            file,
            ignored_variables,
        } = loaded;
        if let Some(ignored) = &ignored_variables {
            tracing::warn!(hint = ignored.hint(), "{ignored}");
        }
        let state = ConfigState {
            file: file.as_ref().map(|path| path.display().to_string().into()),
            since: app.clock.wall(),
            reloads: 0,
            changed: Vec::new(),
            scenarios: ScenarioChanges::default(),
            waiting: Vec::new(),
            renamed: config.renamed_keys(),
            ignored_variables,
            refused: None,
        };
        let client = Arc::clone(&app.client);
        let engine = app.engine.clone();
        let tasks = app.tasks.clone();
        let bundles = app.bundles.clone();
        let id = Arc::clone(&app.id);
        let in_force = app.config.clone();
        let settings = app.settings.clone();
        let events = app.events.clone();
        let calls = app.calls.clone();
        let clock = app.clock;
        settings.send_replace(values);
        let manager = ServiceManager::from_environment(tasks.clone(), clock);
        let reloading = false;
        Self {
            options,
            config,
            file,
            state,
            id,
            in_force,
            settings,
            client,
            bundles,
            engine,
            events,
            calls,
            definitions: app.definitions.clone(),
            tasks,
            clock,
            manager,
            reloading,
        }
    }

    /// Runs until `stop`.
    async fn run(mut self, mut hangups: Hangups, stop: Stop) {
        let mut files = FileWatch::new(self.options.candidate_files());
        log_renamed(&self.state.renamed);
        // Fails only when the engine is gone.
        let _ = self
            .engine
            .configure(None, Arc::new(self.state.clone()))
            .await;
        let mut requested = false;
        let mut watched = true;
        while !stop.is_stopped() {
            // The watch starts before the file is read, so that no change between the two is
            // missed.
            let renewed = self
                .tasks
                .spawn_blocking(move || (files.renew(), files))
                .await;
            let Ok((renewed, back)) = renewed else { return };
            files = back;
            if let Err(error) = &renewed
                && watched
            {
                tracing::warn!(
                    "the configuration cannot be watched, so it is read every {POLL:?} and on SIGHUP: {error}"
                );
            }
            watched = renewed.is_ok();
            tokio::select! {
                () = stop.wait() => return,
                () = self.look(requested) => {}
            }
            requested = tokio::select! {
                () = stop.wait() => return,
                () = hangups.next() => true,
                () = files.changed() => tokio::select! {
                    () = stop.wait() => return,
                    () = hangups.next() => true,
                    () = self.quiet(&mut files) => false,
                },
                () = self.clock.sleep(POLL) => false,
            };
        }
    }

    /// Waits until the file has not changed for a moment.
    async fn quiet(&self, files: &mut FileWatch) {
        let end = self.clock.now() + CHANGE_DELAY_MAX;
        loop {
            tokio::select! {
                () = files.changed() => {}
                () = self.clock.sleep(QUIET) => return,
                () = self.clock.sleep_until(end) => return,
            }
        }
    }

    /// Reads the configuration, and applies or refuses it. `asked` is whether an operator requested
    /// that; the result is then logged in any case.
    async fn look(&mut self, requested: bool) {
        if requested {
            self.begin().await;
        }
        match self.read().await {
            Some(Ok(loaded)) => self.take(loaded, requested).await,
            Some(Err(error)) => self.refuse(problems(&error), requested).await,
            // The runtime is shutting down.
            None => {}
        }
        // Also after a refused configuration: the service manager waits for it.
        if let Some(manager) = self
            .manager
            .as_ref()
            .filter(|_| std::mem::take(&mut self.reloading))
        {
            manager.tell(vec![ServiceNotification::Ready]).await;
        }
    }

    /// Notifies the service manager that a reload is under way, once per reload.
    async fn begin(&mut self) {
        if let Some(manager) = self
            .manager
            .as_ref()
            .filter(|_| !std::mem::replace(&mut self.reloading, true))
        {
            manager.tell(vec![ServiceNotification::Reloading]).await;
        }
    }

    /// Reads the configuration when no program is writing it. A file that was just emptied is
    /// valid, and would withdraw every scenario that it named before.
    async fn read(&self) -> Option<Result<LoadedConfig, ConfigError>> {
        let mut earlier = None;
        loop {
            let options = self.options.clone();
            let file = self.file.clone();
            let reading = self.tasks.spawn_blocking(move || {
                let before = look_of(&options);
                let loaded = config::load_again(&options, file.as_deref());
                let still = before == look_of(&options);
                (before, loaded, still)
            });
            let (look, loaded, still) = reading.await.ok()?;
            let empty = look.iter().flatten().any(|(length, _)| *length == 0);
            // A file that stays empty is meant to be empty.
            if still && (!empty || earlier.as_ref() == Some(&look)) {
                return Some(loaded);
            }
            earlier = Some(look);
            self.clock.sleep(QUIET).await;
        }
    }

    async fn take(&mut self, loaded: LoadedConfig, requested: bool) {
        let Reloaded {
            config,
            changed,
            waiting,
        } = self.config.reloaded(loaded.config);
        let waiting: Vec<Arc<str>> = waiting.into_iter().map(Into::into).collect();
        let same = changed.is_empty() && waiting == self.state.waiting && loaded.file == self.file;
        if same && self.state.refused.is_none() {
            if requested {
                tracing::info!("the configuration was read again, and is the same");
            } else {
                tracing::debug!("the configuration was read again, and is the same");
            }
            return;
        }
        if !changed.is_empty() {
            self.begin().await;
        }
        if self.state.refused.take().is_some() {
            self.engine.counts().loads.mark_valid();
            tracing::info!("the configuration can be used again");
        }
        for key in waiting
            .iter()
            .filter(|key| !self.state.waiting.contains(*key))
        {
            tracing::warn!(
                key = &**key,
                "this key keeps its value until the daemon is restarted"
            );
        }
        self.settings.send_replace(loaded.values);
        self.bundles
            .set_other_root_waits(waiting.iter().any(|key| &**key == "bundles.path"));
        self.state.waiting = waiting;
        let renamed = config.renamed_keys();
        if renamed != self.state.renamed {
            log_renamed(&renamed);
        }
        self.state.renamed = renamed;
        self.state.file = loaded
            .file
            .as_ref()
            .map(|path| path.display().to_string().into());
        self.file = loaded.file;
        let next = (!changed.is_empty()).then(|| self.exchange(config, &changed));
        let reloaded = next.is_some();
        // Fails only when the engine is gone.
        let _ = self
            .engine
            .configure(next, Arc::new(self.state.clone()))
            .await;
        if reloaded {
            let ScenarioChanges {
                added,
                removed,
                changed: moved,
            } = self.state.scenarios;
            let keys = changed.join(", ");
            tracing::info!(
                keys,
                added,
                removed,
                changed = moved,
                "the configuration was reloaded"
            );
        }
    }

    /// Replaces the active configuration by another one.
    fn exchange(&mut self, config: Config, changed: &[&str]) -> Arc<Config> {
        self.state.since = self.clock.wall();
        self.state.reloads += 1;
        self.engine.counts().loads.applied(self.state.since);
        self.state.changed = changed.iter().map(|key| (*key).into()).collect();
        self.state.scenarios = between(&self.config.static_scenarios(), &config.static_scenarios());
        self.config = config.clone();
        let mut config = config;
        config.discovery.mdns.id = Some(self.id.to_string());
        let config = Arc::new(config);
        self.client.adjust(
            config.http_limits(),
            config.refresh.concurrency,
            config.cache_rules(),
        );
        self.client.use_proxies(&config.network.proxy_rules());
        self.bundles.adjust(config.bundles.clone());
        self.events.configure(&config.events);
        self.calls.adjust(
            config
                .calls
                .within_connections(config.server.max_connections),
        );
        self.calls.held().set_limit(config.server.held_bytes);
        self.definitions.configure(&config.definitions);
        self.in_force.send_replace(Arc::clone(&config));
        config
    }

    async fn refuse(&mut self, problems: Vec<ConfigProblem>, requested: bool) {
        let before = self.state.refused.as_ref();
        if !requested && before.is_some_and(|refused| refused.problems == problems) {
            return;
        }
        self.engine.counts().loads.refused();
        for problem in &problems {
            tracing::error!(
                hint = &*problem.hint,
                "the configuration is not reloaded: {}",
                problem.message
            );
        }
        let since = before.map_or_else(|| self.clock.wall(), |refused| refused.since);
        self.state.refused = Some(RefusedConfig { since, problems });
        // Fails only when the engine is gone.
        let _ = self
            .engine
            .configure(None, Arc::new(self.state.clone()))
            .await;
    }
}

/// Logs which keys are written under an old name.
fn log_renamed(keys: &[RenamedKey]) {
    for key in keys {
        tracing::warn!(key = key.old, hint = key.hint(), "{key}");
    }
}

/// Length and modification time of every file that may be read; they show whether a file is being
/// written.
fn look_of(options: &LoadOptions) -> Vec<Option<(u64, Option<SystemTime>)>> {
    let look = |path: PathBuf| {
        let found = std::fs::metadata(path)
            .ok()
            .filter(std::fs::Metadata::is_file)?;
        Some((found.len(), found.modified().ok()))
    };
    options.candidate_files().into_iter().map(look).collect()
}

/// The problems, each with its place.
fn problems(error: &ConfigError) -> Vec<ConfigProblem> {
    let problems = error.problems.iter().take(TOLD);
    problems
        .map(|problem| ConfigProblem {
            message: problem.line().into(),
            hint: problem.hint.as_str().into(),
        })
        .collect()
}

/// The differences between two lists of scenarios.
fn between(before: &[StaticScenario], after: &[StaticScenario]) -> ScenarioChanges {
    let by_name = |list: &[StaticScenario]| -> BTreeMap<_, _> {
        list.iter()
            .map(|entry| (entry.name.clone(), entry.clone()))
            .collect()
    };
    let before = by_name(before);
    let after = by_name(after);
    ScenarioChanges {
        added: after
            .keys()
            .filter(|name| !before.contains_key(*name))
            .count(),
        removed: before
            .keys()
            .filter(|name| !after.contains_key(*name))
            .count(),
        changed: after
            .iter()
            .filter(|(name, entry)| before.get(*name).is_some_and(|old| old != *entry))
            .count(),
    }
}
