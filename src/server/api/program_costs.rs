//! What the programs of scenarios cost, in answers and for metrics. Reads no process itself; the
//! session of a scenario knows its program.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use crate::model::{MemoryMeasure, ProgramCost, ScenarioName};
use crate::server::ServerState;

/// What the program of a scenario costs now: the process that callsheet started, and all others of
/// its process group.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ProgramCost")]
pub(in crate::server) struct ProgramCostJson {
    /// How many processes there are.
    processes: usize,
    /// Their memory in RAM.
    memory_bytes: u64,
    /// `proportional`: memory that processes share is divided between them. `resident`: it is
    /// counted in each of them, because the system does not show more.
    #[schemars(schema_with = "measures")]
    memory_measure: &'static str,
    /// The processor time that they took since the program was started.
    cpu_seconds: f64,
}

fn measures(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": MemoryMeasure::ALL.map(MemoryMeasure::as_str)})
}

impl From<ProgramCost> for ProgramCostJson {
    fn from(cost: ProgramCost) -> Self {
        Self {
            processes: cost.processes,
            memory_bytes: cost.memory_bytes,
            memory_measure: cost.memory_measure.as_str(),
            cpu_seconds: cost.processor_time.as_secs_f64(),
        }
    }
}

/// What the program of a scenario costs; `None` where callsheet started none, or it is not known.
/// Figures are a few seconds old at most, unless the system takes long to give them.
pub(in crate::server) async fn program_cost(
    shared: &ServerState,
    name: &ScenarioName,
) -> Option<ProgramCost> {
    let route = shared.engine.route(name)?;
    route.session.cost().await
}

/// The same of several scenarios, at once: they wait for one reading together.
pub(in crate::server) async fn program_costs(
    shared: &ServerState,
    names: Vec<ScenarioName>,
) -> BTreeMap<ScenarioName, ProgramCost> {
    let costs = names.into_iter().map(|name| async move {
        let cost = program_cost(shared, &name).await?;
        Some((name, cost))
    });
    join_all(costs).await.into_iter().flatten().collect()
}
