//! Forgetting scenarios on an operator's request: one, or all that are removed or down.

use tokio::sync::oneshot;

use super::message::EngineCommand;
use super::persist::mutations::Mutation;
use super::{EngineError, EngineHandle, Forgotten};
use crate::model::{ScenarioName, ScenarioState};

impl EngineHandle {
    /// Removes everything known of a scenario that is removed or down: its health, its tools with
    /// their names, its stored manifest, and for a removed one the trust that an operator gave it.
    /// A scenario that a source still names is polled as a new one.
    ///
    /// # Errors
    ///
    /// [`EngineError::NotForgettable`] for a scenario in any other state,
    /// [`EngineError::UnknownScenario`] for an unknown one.
    pub async fn forget(&self, name: ScenarioName) -> Result<Forgotten, EngineError> {
        let this = self.clone();
        // If the client went away between the steps, the operator's decision would stay.
        self.tasks
            .run_to_completion(async move { this.forget_whole(name).await })
            .await
    }

    /// The scenarios that could be forgotten now: removed or down.
    pub fn forgettable(&self) -> Vec<ScenarioName> {
        let snapshot = self.reader.snapshot();
        let gone = snapshot
            .health
            .values()
            .filter(|health| matches!(health.state, ScenarioState::Removed | ScenarioState::Down));
        gone.map(|health| health.name.clone()).collect()
    }

    /// Forgets all of them, one after the other. One that answered meanwhile is left alone.
    pub async fn forget_all(&self) -> Result<Vec<Forgotten>, EngineError> {
        let mut forgotten = Vec::new();
        for name in self.forgettable() {
            match self.forget(name).await {
                Ok(done) => forgotten.push(done),
                Err(EngineError::NotForgettable(..) | EngineError::UnknownScenario(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(forgotten)
    }

    async fn forget_whole(&self, name: ScenarioName) -> Result<Forgotten, EngineError> {
        let (reply, answer) = oneshot::channel();
        self.commands
            .send(EngineCommand::Forget(name.clone(), reply))
            .await
            .map_err(|_| EngineError::Stopping)?;
        let forgotten = answer.await.map_err(|_| EngineError::Stopping)??;
        if forgotten.approval_ended {
            match self
                .operate(|reply| Mutation::Decide(name.clone(), None, reply))
                .await
            {
                // There is no health left to show.
                Ok(_) | Err(EngineError::UnknownScenario(_)) => {}
                Err(error) => {
                    // Fails only when the loop is gone.
                    let _ = self.commands.send(EngineCommand::Unforget(name)).await;
                    return Err(error);
                }
            }
        }
        Ok(forgotten)
    }
}
