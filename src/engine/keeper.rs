//! The keeper of what operators and users decide: each change is made durable first, then told to the engine, and acknowledged when
//! the engine has published it. A slow disk holds up the one who asked for a change, never the list.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::{EngineError, Event};
use crate::model::{Health, PreferenceSet, ScenarioName, Scope, Settings, SettingsPatch, Target};
use crate::runtime::Stop;
use crate::state::{PREFERENCES_MAX, Ruling, StateStore, Write};

/// Where the answer to a change goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, EngineError>>;

/// A change that somebody asked for.
#[derive(Debug)]
pub(super) enum Operation {
    Prefer(Scope, Target, SettingsPatch, Reply<Settings>),
    Decide(ScenarioName, Option<Ruling>, Reply<Arc<Health>>),
}

/// Works off operations one after the other, so that two changes of the same preference cannot lose each other.
pub(super) struct Keeper {
    pub(super) store: Arc<dyn StateStore>,
    pub(super) preferences: Arc<PreferenceSet>,
    pub(super) operations: mpsc::Receiver<Operation>,
    pub(super) events: mpsc::Sender<Event>,
}

impl Keeper {
    /// Runs until `stop`, or until nobody can ask any more. An operation that was taken is finished.
    pub(super) async fn run(mut self, stop: Stop) {
        loop {
            let operation = tokio::select! {
                biased;
                () = stop.wait() => return,
                operation = self.operations.recv() => operation,
            };
            let Some(operation) = operation else { return };
            let event = match operation {
                Operation::Prefer(scope, target, patch, reply) => self.prefer(scope, target, &patch, reply).await,
                Operation::Decide(name, ruling, reply) => self.decide(name, ruling, reply).await,
            };
            let Some(event) = event else { continue };
            if self.events.send(event).await.is_err() {
                return;
            }
        }
    }

    async fn prefer(
        &mut self,
        scope: Scope,
        target: Target,
        patch: &SettingsPatch,
        reply: Reply<Settings>,
    ) -> Option<Event> {
        let before = self.preferences.get(&scope, &target);
        let settings = before.cloned().unwrap_or_default().patched(patch);
        if before.is_none() && !settings.is_empty() && self.preferences.iter().count() >= PREFERENCES_MAX {
            let _ = reply.send(Err(EngineError::TooManyPreferences));
            return None;
        }
        let write = Write::Preference(scope.clone(), target.clone(), settings.clone());
        if let Err(error) = self.store.save(vec![write]).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        Arc::make_mut(&mut self.preferences).set(scope, target, settings.clone());
        Some(Event::Preferred(Arc::clone(&self.preferences), settings, reply))
    }

    async fn decide(&mut self, name: ScenarioName, ruling: Option<Ruling>, reply: Reply<Arc<Health>>) -> Option<Event> {
        if let Err(error) = self.store.save(vec![Write::Decision(name.clone(), ruling.clone())]).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        Some(Event::Decided(name, ruling, reply))
    }
}
