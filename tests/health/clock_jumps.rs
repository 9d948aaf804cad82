//! Clocks that jump: everybody is asked once, spread, and nothing is stale because of it.

use std::collections::BTreeMap;
use std::time::Duration;

use callsheet::catalog::{Snapshot, StateTransitions};
use callsheet::model::ScenarioState;
use callsheet::runtime::Clock;
use jiff::SignedDuration;

use crate::support::scripted::{Reply, Scripted};
use crate::support::watched::setting;

const SCENARIOS: usize = 40;

/// How often each path was asked.
fn asked(server: &Scripted) -> BTreeMap<String, usize> {
    let mut asked = BTreeMap::new();
    for seen in server.seen() {
        *asked.entry(seen.request.target().to_owned()).or_default() += 1;
    }
    asked
}

#[tokio::test]
async fn a_jump_of_the_wall_clock_asks_everybody_once_and_turns_nothing_stale() {
    let server = Scripted::saying(Reply::tools("files", &["read"]));
    let names: Vec<_> = (0..SCENARIOS).map(|n| format!("s{n:02}")).collect();
    let (clock, hand) = Clock::with_hand();
    // On schedule they are asked once an hour.
    let setting = setting(names.iter().map(|name| (name.as_str(), server.below(name)))).seldom();
    let sheet = setting.start_at(clock).await;
    let live = |now: &Snapshot| {
        now.health
            .values()
            .filter(|health| health.state == ScenarioState::Live)
            .count()
    };
    sheet.until("all live", |now| live(now) == SCENARIOS).await;
    assert_eq!(server.count(), SCENARIOS);
    // Two hours of sleep, which the monotonic clock does not see; then an operator sets the clock
    // back.
    for (round, step) in [
        (2, SignedDuration::from_hours(2)),
        (3, SignedDuration::from_hours(-3)),
    ] {
        let before = server.count();
        hand.step(step);
        server.until_asked(SCENARIOS * round).await;
        let attempts = |health: &callsheet::model::Health| health.last_attempt.unwrap();
        let wall = clock.wall();
        let soon =
            |at: jiff::Timestamp| wall.duration_since(at).unsigned_abs() < Duration::from_secs(30);
        let now = sheet
            .until("all answers are in", |now| {
                now.health
                    .values()
                    .all(|health| soon(attempts(health)) && health.last_success.is_some_and(soon))
            })
            .await;
        assert_eq!(live(&now), SCENARIOS);
        let planned: Vec<_> = now
            .health
            .values()
            .map(|health| health.next_attempt.unwrap().duration_since(wall))
            .collect();
        assert!(
            planned
                .iter()
                .all(|ahead| *ahead > SignedDuration::from_mins(50)),
            "{planned:?}"
        );
        // Each of them once, and not all in the same moment.
        assert!(
            asked(&server).values().all(|times| *times == round),
            "{:?}",
            asked(&server)
        );
        let times: Vec<_> = server.seen()[before..].iter().map(|seen| seen.at).collect();
        let spread = times[times.len() - 1] - times[0];
        assert!(
            spread > Duration::from_secs(1) && spread < Duration::from_secs(6),
            "{spread:?}"
        );
    }
    let turns = sheet
        .now()
        .transitions
        .since(&StateTransitions::default())
        .unwrap();
    let states = turns.iter().filter_map(|turn| turn.to);
    assert!(
        states
            .clone()
            .all(|state| matches!(state, ScenarioState::Connecting | ScenarioState::Live))
    );
    assert!(sheet.now().isolated.is_none());
}
