//! Changes by operators and users: each one is made durable first, then sent to the engine, and
//! acknowledged when the engine has published it. A slow disk delays the client that requested a
//! change, never the list.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::engine::error::EngineError;
use crate::engine::message::{EngineEvent, ReplySender};
use crate::model::{Health, PreferenceSet, PreferenceTarget, ScenarioName, Scope, Settings, SettingsPatch};
use crate::runtime::Stop;
use crate::state::{PREFERENCES_MAX, StateError, StateStore, TrustDecision, Write};

/// A change that a client requested.
#[derive(Debug)]
pub(in crate::engine) enum Mutation {
    Prefer(Vec<(Scope, PreferenceTarget, SettingsPatch)>, ReplySender<Vec<Settings>>),
    Decide(ScenarioName, Option<TrustDecision>, ReplySender<Arc<Health>>),
}

/// Handles changes one after the other, so that two changes of the same preference cannot overwrite
/// each other.
pub(in crate::engine) struct MutationWriter {
    pub(in crate::engine) store: Arc<dyn StateStore>,
    pub(in crate::engine) preferences: Arc<PreferenceSet>,
    pub(in crate::engine) operations: mpsc::Receiver<Mutation>,
    pub(in crate::engine) events: mpsc::Sender<EngineEvent>,
}

impl MutationWriter {
    /// Runs until `stop`, or until all senders are gone. A change that was begun is finished.
    pub(in crate::engine) async fn run(mut self, stop: Stop) {
        loop {
            let operation = tokio::select! {
                biased;
                () = stop.wait() => return,
                operation = self.operations.recv() => operation,
            };
            let Some(operation) = operation else { return };
            let event = match operation {
                Mutation::Prefer(changes, reply) => self.prefer(changes, reply).await,
                Mutation::Decide(name, ruling, reply) => self.decide(name, ruling, reply).await,
            };
            let Some(event) = event else { continue };
            if self.events.send(event).await.is_err() {
                return;
            }
        }
    }

    /// Stores a change, and has the engine report if it could not be stored.
    async fn save(&self, writes: Vec<Write>) -> Result<(), StateError> {
        let saved = self.store.save(writes).await;
        // If the engine has ended, no client reads its findings any more.
        let _ = self.events.send(EngineEvent::Saved(saved.clone(), Vec::new())).await;
        saved
    }

    /// Makes all of the changes in one write, or none of them.
    async fn prefer(
        &mut self,
        changes: Vec<(Scope, PreferenceTarget, SettingsPatch)>,
        reply: ReplySender<Vec<Settings>>,
    ) -> Option<EngineEvent> {
        let mut preferences = PreferenceSet::clone(&self.preferences);
        let (mut settings, mut writes) = (Vec::with_capacity(changes.len()), Vec::with_capacity(changes.len()));
        let kept = preferences.iter().count();
        for (scope, target, patch) in changes {
            let patched = preferences.get(&scope, &target).cloned().unwrap_or_default().patched(&patch);
            writes.push(Write::Preference(scope.clone(), target.clone(), patched.clone()));
            preferences.set(scope, target, patched.clone());
            settings.push(patched);
        }
        let keeps = preferences.iter().count();
        if keeps > kept && keeps > PREFERENCES_MAX {
            let _ = reply.send(Err(EngineError::TooManyPreferences));
            return None;
        }
        if let Err(error) = self.save(writes).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        self.preferences = Arc::new(preferences);
        Some(EngineEvent::PreferencesChanged(Arc::clone(&self.preferences), settings, reply))
    }

    async fn decide(
        &mut self,
        name: ScenarioName,
        ruling: Option<TrustDecision>,
        reply: ReplySender<Arc<Health>>,
    ) -> Option<EngineEvent> {
        if let Err(error) = self.save(vec![Write::Decision(name.clone(), ruling.clone())]).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        Some(EngineEvent::Decided(name, ruling, reply))
    }
}
