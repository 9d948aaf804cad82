//! Many scenarios lost at once: the daemon takes itself to be cut off, keeps what it lists, says
//! so, and gets over it.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use callsheet::catalog::{Snapshot, StateTransitions};
use callsheet::config::StaticScenario;
use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{FindingCode, ScenarioState};
use callsheet::runtime::{Clock, Tasks};
use callsheet::state::Decision;

use crate::support::assert_empty;
use crate::support::found::{self, Found};
use crate::support::in_process::{findings, listed, name};
use crate::support::scripted::{PATIENCE, Reply, Scripted};
use crate::support::sources::{OFTEN, Processes};
use crate::support::watched::{HOUR, Setting, ms, setting};

/// Long enough for a few asks of everybody, and soon over.
const GRACE: Duration = Duration::from_secs(1);
/// So many failed asks take longer than the grace.
const LONG: u32 = 30;

const NAMES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// So many scenarios, each with a tool of its name.
fn servers(count: usize) -> Vec<Scripted> {
    NAMES[..count]
        .iter()
        .map(|name| Scripted::saying(Reply::tools(name, &[name])))
        .collect()
}

fn watching(servers: &[Scripted]) -> Setting {
    let setting = setting(NAMES.into_iter().zip(servers.iter().map(Scripted::url)));
    setting.with(|config| config.health.grace = GRACE)
}

/// Every state that a scenario came to be in, in order.
fn states(snapshot: &Snapshot, scenario: &str) -> Vec<ScenarioState> {
    let turns = snapshot
        .transitions
        .since(&StateTransitions::default())
        .unwrap();
    turns
        .iter()
        .filter(|turn| turn.name.as_str() == scenario)
        .filter_map(|turn| turn.to)
        .collect()
}

fn withdrawn(snapshot: &Snapshot) -> Vec<&'static str> {
    let gone =
        |state: &ScenarioState| matches!(state, ScenarioState::Down | ScenarioState::Removed);
    NAMES
        .into_iter()
        .filter(|name| states(snapshot, name).iter().any(gone))
        .collect()
}

/// The real command line against this daemon.
async fn command(daemon: &Found, command: &'static str) -> String {
    let url = format!("http://{}", daemon.address);
    let ran = Tasks::new().spawn_blocking(move || {
        crate::support::command::Home::new()
            .run(&[command, "--url", &url])
            .ok()
    });
    tokio::time::timeout(PATIENCE, ran).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_scenario_that_never_answered_is_not_stale_while_the_daemon_is_cut_off() {
    let mut servers = servers(4);
    let never = Scripted::absent();
    let mut sheet = watching(&servers).with(|config| {
        let entry = StaticScenario {
            name: name("never"),
            target: callsheet::model::Target::at(never.url()),
            protocol: None,
            sleep_after: None,
        };
        config.scenarios.push(entry);
    });
    sheet.config.health.grace = HOUR;
    let sheet = sheet.start().await;
    sheet.until_listed(&NAMES[..4]).await;
    for server in &mut servers[1..] {
        server.close().await;
    }
    sheet.until("isolated", |now| now.isolated.is_some()).await;
    sheet
        .until_health("never", "failed often", |health| {
            health.failures_in_a_row >= 5
        })
        .await;
    // It is judged anew, after more failures than a scenario is allowed.
    let engine = sheet.app.engine().clone();
    for decision in [Some(Decision::Blocked), None] {
        engine.decide(name("never"), decision).await.unwrap();
    }
    let shown = sheet.health("never");
    assert_eq!(shown.state, ScenarioState::Connecting, "{}", shown.reason);
}

#[tokio::test]
async fn what_is_lost_together_stays_until_it_answers_again() {
    let mut servers = servers(4);
    let sheet = watching(&servers).start().await;
    sheet.until_listed(&NAMES[..4]).await;
    for server in &mut servers[1..] {
        server.close().await;
    }
    sheet.until("isolated", |now| now.isolated.is_some()).await;
    for lost in &NAMES[1..4] {
        sheet
            .until_health(lost, "failed for long", |health| {
                health.failures_in_a_row >= LONG
            })
            .await;
    }
    let now = sheet.now();
    assert_eq!(listed(&now), NAMES[..4]);
    let shown = crate::support::in_process::health(&now, "b");
    assert_eq!(shown.state, ScenarioState::Stale);
    assert!(
        shown
            .reason
            .ends_with("it is kept while the daemon is isolated"),
        "{}",
        shown.reason
    );
    let [finding] = &findings(&now, FindingCode::Isolated)[..] else {
        panic!("one finding expected")
    };
    assert!(
        finding
            .message
            .contains("of the 4 scenarios that answered were lost within 15s"),
        "{finding:?}"
    );

    for server in &mut servers[1..] {
        server.open();
    }
    let healed = sheet
        .until("not isolated any more", |now| now.isolated.is_none())
        .await;
    assert_empty!(findings(&healed, FindingCode::Isolated));
    for lost in &NAMES[1..4] {
        sheet.until_state(lost, ScenarioState::Live).await;
    }
    let after = sheet.now();
    assert_empty!(withdrawn(&after));
    assert_eq!(listed(&after), NAMES[..4]);
}

#[tokio::test]
async fn it_ends_at_the_cap() {
    let mut servers = servers(2);
    let max = Duration::from_secs(2);
    let sheet = watching(&servers)
        .with(|config| config.health.isolation_max = max)
        .start()
        .await;
    sheet.until_listed(&NAMES[..2]).await;
    for server in &mut servers {
        server.close().await;
    }
    let isolated = sheet
        .until("isolated", |now| now.isolated.is_some())
        .await
        .isolated
        .clone()
        .unwrap();
    assert_eq!(isolated.until, isolated.since.saturating_add(max).unwrap());
    assert_eq!(isolated.lost, 2);
    assert_eq!(isolated.of, 2);
    for lost in &NAMES[..2] {
        let down = sheet.until_state(lost, ScenarioState::Down).await;
        assert!(down.isolated.is_none());
        let since = crate::support::in_process::health(&down, lost).since;
        assert!(
            since >= isolated.until.saturating_sub(ms(50)).unwrap(),
            "{since} {isolated:?}"
        );
    }
    assert_empty!(listed(&sheet.now()));
    servers[0].open();
    sheet.until_listed(&["a"]).await;
}

#[tokio::test]
async fn too_few_are_just_down() {
    // Of how many, how many are lost: one, and no more than thirty percent.
    for (of, lost) in [(2, 1), (10, 3)] {
        let mut servers = servers(of);
        let sheet = watching(&servers).start().await;
        sheet.until_listed(&NAMES[..of]).await;
        for server in &mut servers[..lost] {
            server.close().await;
        }
        let mut isolated = false;
        sheet
            .until("all of them are down", |now| {
                isolated |= now.isolated.is_some();
                withdrawn(now) == NAMES[..lost]
            })
            .await;
        assert!(!isolated);
        assert_eq!(listed(&sheet.now()), NAMES[lost..of]);
    }
}

#[tokio::test]
async fn those_who_answer_something_are_not_lost() {
    let servers = servers(3);
    let sheet = watching(&servers).start().await;
    sheet.until_listed(&NAMES[..3]).await;
    for server in &servers {
        server.say(Reply::status("500 Internal Server Error"));
    }
    let down = sheet
        .until("all of them are down", |now| withdrawn(now).len() == 3)
        .await;
    assert!(down.isolated.is_none(), "whoever says 500 can be reached");
}

#[tokio::test]
async fn who_never_answered_since_the_start_is_not_lost() {
    let mut servers = servers(3);
    let sheet = watching(&servers).start().await;
    sheet.until_listed(&NAMES[..3]).await;
    let place = sheet.stop().await.1;
    for server in &mut servers {
        server.close().await;
    }
    let scenarios = NAMES.into_iter().zip(servers.iter().map(Scripted::url));
    let sheet = place
        .setting(scenarios)
        .with(|config| config.health.grace = GRACE)
        .start()
        .await;
    assert_eq!(listed(&sheet.now()), NAMES[..3], "restored");
    let down = sheet
        .until("all of them are down", |now| withdrawn(now).len() == 3)
        .await;
    assert_eq!(down.isolated, None);
    assert_empty!(findings(&down, FindingCode::Isolated));
}

#[tokio::test]
async fn a_loss_makes_others_be_asked_ahead_of_their_schedule() {
    let window = ms(400);
    let mut servers = servers(5);
    let setting = watching(&servers).seldom().with(|config| {
        config.health.isolation_window = window;
        // Long beside what three failures take, also on a busy machine.
        config.health.grace = ms(5_000);
    });
    let sheet = setting.start().await;
    sheet.until_listed(&NAMES[..5]).await;
    let clock = Clock::system();
    let later = clock.now() + window + ms(100);
    while clock.now() < later {
        sheet.refresh("e").await;
    }
    for server in &mut servers[..4] {
        server.close().await;
    }
    // The others would be asked in an hour.
    assert_eq!(sheet.refresh("a").await.failures_in_a_row, 1);
    let isolated = sheet.until("isolated", |now| now.isolated.is_some()).await;
    assert!(isolated.isolated.as_ref().unwrap().lost >= 2);
    sheet
        .until("all four were asked", |now| {
            NAMES[..4]
                .iter()
                .all(|n| now.health[&name(n)].failures_in_a_row > 0)
        })
        .await;
    for server in &mut servers[..4] {
        server.open();
    }
    // One that answers makes the others be asked too.
    sheet
        .until("all four answer", |now| {
            NAMES[..4]
                .iter()
                .all(|n| now.health[&name(n)].failures_in_a_row == 0)
        })
        .await;
    assert_empty!(withdrawn(&sheet.now()));
}

#[tokio::test]
async fn scenarios_that_their_source_took_back_together_are_gone() {
    let processes = Processes::new();
    let mut servers = servers(3);
    for (scenario, server) in NAMES.iter().zip(&servers) {
        processes.write_live(scenario, server.port());
    }
    let sheet = setting([])
        .seldom()
        .with(|config| {
            config.discovery.vrooli.enabled = true;
            config.discovery.vrooli.path = Some(processes.path.clone());
            config.discovery.vrooli.rescan_interval = OFTEN;
            config.health.grace = HOUR;
        })
        .start()
        .await;
    sheet.until_listed(&NAMES[..3]).await;
    for (scenario, server) in NAMES.iter().zip(&mut servers) {
        server.close().await;
        fs::remove_dir_all(processes.path.join(scenario)).unwrap();
    }
    // No network lies between: the files are as good as a goodbye.
    let gone = sheet.until_listed(&[]).await;
    assert!(gone.isolated.is_none());
}

// --- on the local network ---

fn announced(servers: &[Scripted], which: &[usize]) -> Vec<Endpoint> {
    let endpoint = |at: &usize| Endpoint {
        name: Some(name(NAMES[*at])),
        ..Endpoint::at(servers[*at].url(), SourceTrust::Trusted)
    };
    which.iter().map(endpoint).collect()
}

fn home() -> found::Home {
    let mut home = found::Home::new();
    home.config.health.grace = GRACE;
    home
}

/// Asked all the time; nothing of it is fresh.
fn often(name: &str) -> Reply {
    Reply::tools(name, &[name]).header("Cache-Control: no-cache")
}

#[tokio::test]
async fn goodbyes_of_everybody_at_once_are_none() {
    let mut servers = servers(4);
    let daemon = home().start(announced(&servers, &[0, 1, 2, 3])).await;
    daemon.until_listed(&NAMES[..4]).await;
    for server in &mut servers[..3] {
        server.close().await;
    }
    // What the library tells when an interface goes down.
    daemon.hears(announced(&servers, &[3]));
    daemon.until("isolated", |now| now.isolated.is_some()).await;
    for lost in &NAMES[..3] {
        daemon
            .until_health(lost, "failed for long", |health| {
                health.failures_in_a_row >= LONG
            })
            .await;
    }
    assert_eq!(listed(&daemon.now()), NAMES[..4]);
    assert_empty!(withdrawn(&daemon.now()));
    for server in &mut servers[..3] {
        server.open();
    }
    daemon.hears(announced(&servers, &[0, 1, 2, 3]));
    daemon
        .until("not isolated any more", |now| now.isolated.is_none())
        .await;
    for lost in &NAMES[..3] {
        daemon.until_state(lost, ScenarioState::Live).await;
    }
    assert_empty!(withdrawn(&daemon.now()));
    daemon.stop().await;
}

#[tokio::test]
async fn a_goodbye_of_its_own_counts_also_while_isolated() {
    let mut servers = servers(5);
    for (server, name) in servers[..3].iter().zip(NAMES) {
        server.say(often(name));
    }
    let daemon = home().start(announced(&servers, &[0, 1, 2, 3, 4])).await;
    daemon.until_listed(&NAMES[..5]).await;
    for server in &mut servers[..3] {
        server.close().await;
    }
    daemon.until("isolated", |now| now.isolated.is_some()).await;
    for lost in &NAMES[..3] {
        daemon
            .until_health(lost, "fails", |health| health.failures_in_a_row > 0)
            .await;
    }
    // This one still answers when the others do not; then it leaves as it should.
    servers[3].close().await;
    daemon.hears(announced(&servers, &[0, 1, 2, 4]));
    let gone = daemon.until_state("d", ScenarioState::Removed).await;
    assert!(
        gone.reason
            .starts_with("no source names it any more, and it does not answer"),
        "{}",
        gone.reason
    );
    // The lost ones' announcements run out, one by one.
    daemon.hears(announced(&servers, &[1, 2, 4]));
    daemon.hears(announced(&servers, &[2, 4]));
    daemon
        .until_health("b", "failed for long", |health| {
            health.failures_in_a_row >= LONG
        })
        .await;
    assert_eq!(listed(&daemon.now()), ["a", "b", "c", "e"]);
    assert_eq!(withdrawn(&daemon.now()), ["d"]);
    daemon.stop().await;
}

#[tokio::test]
async fn everybody_can_see_that_it_is_isolated() {
    let mut servers = servers(2);
    for (server, name) in servers.iter().zip(NAMES) {
        server.say(often(name));
    }
    let daemon = home().start(announced(&servers, &[0, 1])).await;
    daemon.until_listed(&NAMES[..2]).await;
    for target in ["/readyz", "/api/v1/scenarios"] {
        assert_eq!(
            daemon.send("GET", target).await.json().get("isolated"),
            None
        );
    }
    assert!(!command(&daemon, "scenarios").await.contains("ISOLATED"));
    for server in &mut servers {
        server.close().await;
    }
    let isolated: Arc<Snapshot> = daemon.until("isolated", |now| now.isolated.is_some()).await;
    let expected = isolated.isolated.clone().unwrap();
    for target in ["/readyz", "/api/v1/scenarios"] {
        let answer = daemon.send("GET", target).await;
        assert_eq!(answer.status, 200, "the list is served all the same");
        let shown = &answer.json()["isolated"];
        assert_eq!(shown["since"], expected.since.to_string());
        assert_eq!(shown["until"], expected.until.to_string());
        assert_eq!(shown["lost"].as_u64(), Some(2));
        assert_eq!(shown["of"].as_u64(), Some(2));
        assert!(
            shown["reason"]
                .as_str()
                .unwrap()
                .contains("it is probably the daemon that is cut off"),
            "{shown}"
        );
    }
    let table = command(&daemon, "scenarios").await;
    assert!(table.starts_with("ISOLATED since "), "{table}");
    let answer = daemon
        .send("GET", "/api/v1/findings?code=isolated")
        .await
        .json();
    assert_eq!(answer["findings"].as_array().unwrap().len(), 1, "{answer}");
    daemon.stop().await;
}
