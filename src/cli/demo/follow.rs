//! Follows what is published, and lets a sample go away and come back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::catalog::{CatalogReader, Snapshot, View, ViewQuery};
use crate::model::ScenarioName;
use crate::runtime::{Clock, Stop, Tasks};

use super::super::output;
use super::samples::Sample;

/// What a follower compares.
struct Seen {
    states: BTreeMap<ScenarioName, &'static str>,
    tools: BTreeMap<String, String>,
}

/// Prints each change until `stop`. The sample goes away after one turn and comes back after the next, and so on.
pub(super) async fn follow(
    mut reader: CatalogReader,
    mut sample: Sample,
    clock: Clock,
    tasks: &Tasks,
    stop: Stop,
    turn: Duration,
) {
    output::line("\nfollowing changes until Ctrl-C; the weather station goes away and comes back");
    let mut seen = Seen::of(&reader.snapshot());
    let mut away = false;
    let mut next_turn = clock.now() + turn;
    loop {
        tokio::select! {
            biased;
            () = stop.wait() => return,
            () = clock.sleep_until(next_turn) => {
                next_turn += turn;
                away = turn_over(&mut sample, away, tasks).await;
            }
            snapshot = reader.changed() => {
                let Some(snapshot) = snapshot else { return };
                seen = seen.print_changes(&snapshot, clock);
            }
        }
    }
}

/// Starts or stops the sample; whether it is away now.
async fn turn_over(sample: &mut Sample, away: bool, tasks: &Tasks) -> bool {
    if !away {
        sample.stop();
        return true;
    }
    match sample.restart(tasks).await {
        Ok(()) => false,
        Err(error) => {
            output::line(&format!("{} cannot come back yet: {error}", sample.name));
            true
        }
    }
}

impl Seen {
    fn of(snapshot: &Snapshot) -> Self {
        let states = snapshot.health.values().map(|health| (health.name.clone(), health.state.as_str())).collect();
        let view = View::select(&snapshot.catalog, &ViewQuery::default());
        let tools = view.tools();
        Self { states, tools: tools.map(|tool| (tool.name.to_string(), tool.id.to_string())).collect() }
    }

    fn print_changes(self, snapshot: &Arc<Snapshot>, clock: Clock) -> Self {
        let now = Self::of(snapshot);
        let time = clock.wall().strftime("%H:%M:%S").to_string();
        for (name, state) in &now.states {
            let before = self.states.get(name).copied().unwrap_or("unknown");
            if before != *state {
                let reason = snapshot.health.get(name).map_or("", |health| health.reason.as_str());
                output::line(&format!("{time}  {name}: {before} -> {state} ({reason})"));
            }
        }
        let gone = self.tools.iter().filter(|(name, _)| !now.tools.contains_key(*name));
        let come = now.tools.iter().filter(|(name, _)| !self.tools.contains_key(*name));
        for (sign, (name, id)) in gone.map(|tool| ('-', tool)).chain(come.map(|tool| ('+', tool))) {
            output::line(&format!("{time}  {sign} {name} ({id})"));
        }
        now
    }
}
