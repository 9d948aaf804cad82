//! Prints the daemon's events, and stops and starts a sample.

use std::time::Duration;

use crate::catalog::ToolChange;
use crate::events::{Event, Message, Next, Subscription};
use crate::model::ScenarioState;
use crate::runtime::{Clock, Stop, Tasks};

use super::super::{output, watch};
use super::samples::SampleScenario;

/// Prints each change until `stop`. The sample goes away after one turn and comes back after the
/// next, and so on.
pub(super) async fn follow(
    mut changes: Subscription,
    mut sample: SampleScenario,
    clock: Clock,
    tasks: &Tasks,
    stop: Stop,
    turn: Duration,
) {
    output::line("\nfollowing changes until Ctrl-C; the weather station goes away and comes back");
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
            next = changes.next() => match next {
                Next::Message(message) => print(&message),
                Next::Ended(_) => return,
            }
        }
    }
}

/// Starts or stops the sample; whether it is away now.
async fn turn_over(sample: &mut SampleScenario, away: bool, tasks: &Tasks) -> bool {
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

fn print(message: &Message) {
    match &message.event {
        Event::Scenario(turn) => {
            let [from, to] = [turn.from, turn.to].map(|state| state.map(ScenarioState::as_str));
            watch::print_transition(turn.name.as_str(), from, to, &turn.reason);
        }
        Event::Catalog(change) => {
            let found = &change.difference;
            let tools = |sign: char, tools: &[ToolChange]| {
                for tool in tools {
                    output::line(&format!(
                        "{}  {sign} {} ({})",
                        watch::time(),
                        tool.name,
                        output::sanitize(&tool.reason)
                    ));
                }
            };
            tools('-', &found.removed);
            tools('+', &found.added);
            tools('~', &found.changed);
        }
        // The initial state was printed before; findings are shown only on request.
        Event::Snapshot(_)
        | Event::Finding(_)
        | Event::Approval(_)
        | Event::Operation(_)
        | Event::Call(_) => {}
    }
}
