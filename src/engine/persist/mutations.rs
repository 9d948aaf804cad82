//! Changes by operators and users: each one is made durable first, then sent to the engine, and
//! acknowledged when the engine has published it. A slow disk delays the client that requested a
//! change, never the list.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::mpsc;

use crate::catalog::pins::{Baseline, PinAcceptance};
use crate::config::{AdditionChange, Additions};
use crate::engine::error::EngineError;
use crate::engine::message::{EngineEvent, ReplySender, SavedScenarios};
use crate::engine::persist::kept_preferences::{GaveWay, KeptPreferences};
use crate::model::{
    Health, PreferenceAuthor, PreferenceTarget, ScenarioName, Scope, ScopePattern, Settings,
    SettingsPatch,
};
use crate::protocols::definitions::DefinitionRegistry;
use crate::runtime::{Clock, Stop, Tasks};
use crate::state::{StateError, StateStore, StoredAddition, StoredPins, TrustDecision, Write};

/// A change that a client requested.
#[derive(Debug)]
pub(in crate::engine) enum Mutation {
    Prefer {
        author: PreferenceAuthor,
        changes: Vec<(Scope, PreferenceTarget, SettingsPatch)>,
        reply: ReplySender<Vec<Settings>>,
    },
    /// Has all settings of the stored preferences of these scopes inherit again, or with `preview`
    /// only finds them. Answered with the settings of each afterwards.
    Reset {
        scopes: ScopePattern,
        preview: bool,
        reply: ReplySender<Vec<Settings>>,
    },
    /// Adds a profile or a definition, or takes one away. Answered with whether there was one.
    Add(AdditionChange, ReplySender<bool>),
    Decide(
        ScenarioName,
        Option<TrustDecision>,
        ReplySender<Arc<Health>>,
    ),
    /// Accepts definitions of a scenario, of which this was accepted so far.
    AcceptPins {
        name: ScenarioName,
        baseline: Arc<Baseline>,
        accepted: Vec<PinAcceptance>,
        reply: ReplySender<()>,
    },
}

/// What operators added, for everyone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct AdditionBoard {
    current: Arc<ArcSwap<Additions>>,
    /// Gets the definitions among them.
    definitions: DefinitionRegistry,
}

impl AdditionBoard {
    /// What was added until now. The registry gets the definitions among them.
    pub fn new(additions: Additions, definitions: DefinitionRegistry) -> Self {
        definitions.register(additions.registered());
        Self {
            current: Arc::new(ArcSwap::from_pointee(additions)),
            definitions,
        }
    }

    /// What is durable.
    pub(in crate::engine) fn current(&self) -> Arc<Additions> {
        self.current.load_full()
    }

    fn replace(&self, additions: Arc<Additions>) {
        self.definitions.register(additions.registered());
        self.current.store(additions);
    }
}

/// Handles changes one after the other, so that two changes of the same preference cannot overwrite
/// each other.
pub(in crate::engine) struct MutationWriter {
    pub(in crate::engine) store: Arc<dyn StateStore>,
    pub(in crate::engine) preferences: KeptPreferences,
    pub(in crate::engine) gave_way: GaveWay,
    pub(in crate::engine) additions: AdditionBoard,
    pub(in crate::engine) clock: Clock,
    pub(in crate::engine) tasks: Tasks,
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
                Mutation::Prefer {
                    author,
                    changes,
                    reply,
                } => self.prefer(author, changes, reply).await,
                Mutation::Reset {
                    scopes,
                    preview,
                    reply,
                } => self.reset(&scopes, preview, reply).await,
                Mutation::Add(change, reply) => self.add(&change, reply).await,
                Mutation::Decide(name, ruling, reply) => self.decide(name, ruling, reply).await,
                Mutation::AcceptPins {
                    name,
                    baseline,
                    accepted,
                    reply,
                } => self.accept(name, baseline, accepted, reply).await,
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
        let _ = self
            .events
            .send(EngineEvent::Saved(saved.clone(), SavedScenarios::default()))
            .await;
        saved
    }

    /// Makes all of the changes in one write, or none of them.
    async fn prefer(
        &mut self,
        author: PreferenceAuthor,
        changes: Vec<(Scope, PreferenceTarget, SettingsPatch)>,
        reply: ReplySender<Vec<Settings>>,
    ) -> Option<EngineEvent> {
        let mut next = self.preferences.clone();
        let mut writes = Vec::with_capacity(changes.len());
        let mut keys = Vec::with_capacity(changes.len());
        for (scope, target, patch) in changes {
            let key = (scope, target);
            writes.push(next.change(key.clone(), &patch, author));
            keys.push(key);
        }
        let gone = match next.make_room(&self.preferences) {
            Ok(gone) => gone,
            Err(error) => {
                let _ = reply.send(Err(error));
                return None;
            }
        };
        let deletes = gone.iter().cloned();
        writes.extend(deletes.map(|key| {
            Write::Preference(key.0, key.1, Settings::default(), PreferenceAuthor::Client)
        }));
        if let Err(error) = self.save(writes).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        self.gave_way.add(gone);
        let settings = keys
            .iter()
            .map(|key| next.set().get(&key.0, &key.1).cloned().unwrap_or_default())
            .collect();
        self.preferences = next;
        let preferences = Arc::new(self.preferences.set().clone());
        Some(EngineEvent::PreferencesChanged {
            preferences,
            gave_way: self.gave_way.clone(),
            settings,
            reply,
        })
    }

    /// Resets what is stored at this moment, in one write.
    async fn reset(
        &mut self,
        scopes: &ScopePattern,
        preview: bool,
        reply: ReplySender<Vec<Settings>>,
    ) -> Option<EngineEvent> {
        let stored = self
            .preferences
            .set()
            .iter()
            .filter(|(scope, _, _)| scopes.matches(scope));
        if preview {
            let _ = reply.send(Ok(stored
                .map(|(_, _, settings)| settings.clone())
                .collect()));
            return None;
        }
        let changes: Vec<_> = stored
            .map(|(scope, target, _)| (scope.clone(), target.clone(), SettingsPatch::reset()))
            .collect();
        if changes.is_empty() {
            let _ = reply.send(Ok(Vec::new()));
            return None;
        }
        self.prefer(PreferenceAuthor::Operator, changes, reply)
            .await
    }

    /// Makes a change of the additions. One that changes what is there only is not limited.
    async fn add(
        &mut self,
        change: &AdditionChange,
        reply: ReplySender<bool>,
    ) -> Option<EngineEvent> {
        let mut next = Additions::clone(&self.additions.current());
        let was_there = next.change(change);
        if next.is_full() && !was_there {
            let _ = reply.send(Err(EngineError::TooManyAdditions));
            return None;
        }
        let name = change.name().to_owned();
        let write = match change.document() {
            Some(document) => Write::Addition(StoredAddition {
                kind: change.kind(),
                name,
                document: document.into(),
            }),
            None => Write::ForgetAddition(change.kind(), name),
        };
        if let Err(error) = self.save(vec![write]).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        let additions = Arc::new(next);
        self.additions.replace(Arc::clone(&additions));
        Some(EngineEvent::AdditionsChanged {
            additions,
            was_there,
            reply,
        })
    }

    async fn decide(
        &mut self,
        name: ScenarioName,
        ruling: Option<TrustDecision>,
        reply: ReplySender<Arc<Health>>,
    ) -> Option<EngineEvent> {
        if let Err(error) = self
            .save(vec![Write::Decision(name.clone(), ruling.clone())])
            .await
        {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        Some(EngineEvent::Decided(name, ruling, reply))
    }

    async fn accept(
        &mut self,
        name: ScenarioName,
        mut baseline: Arc<Baseline>,
        accepted: Vec<PinAcceptance>,
        reply: ReplySender<()>,
    ) -> Option<EngineEvent> {
        let now = self.clock.wall();
        let scenario = name.clone();
        let texts = accepted.clone();
        // The versions of all definitions take too long for an async thread.
        let written = self.tasks.spawn_blocking(move || {
            Arc::make_mut(&mut baseline).accept(&texts, now);
            let document = baseline.write().into();
            Write::Pins(StoredPins { scenario, document })
        });
        // It fails only when the runtime is shutting down, and then no write is possible.
        let Ok(write) = written.await else {
            return None;
        };
        if let Err(error) = self.save(vec![write]).await {
            let _ = reply.send(Err(error.into()));
            return None;
        }
        Some(EngineEvent::PinsAccepted(name, accepted, reply))
    }
}
