//! Who was merely found on the network waits for an operator's yes, and the yes is kept for whom it
//! was given.

use callsheet::catalog::Snapshot;
use callsheet::discovery::{Endpoint, SourceTrust};
use callsheet::model::{Auth, FindingCode, HttpTarget, PeerIdentity, ScenarioState, Secret};
use callsheet::runtime::{Clock, Tasks};
use callsheet::state::{Decision, TrustDecision, Write, sqlite};
use serde_json::{Value, json};
use url::Url;

use crate::support::assert_empty;
use crate::support::found::{Found, Home, announced};
use crate::support::in_process::{findings, listed};
use crate::support::scripted::{PATIENCE, Reply, Scripted, manifest};

const OTHER_HOST: [u8; 4] = [127, 0, 0, 2];

fn pantry() -> Reply {
    Reply::tools("pantry", &["stock"]).header("Cache-Control: max-age=3600")
}

/// The real command line against this daemon.
async fn command(daemon: &Found, args: &[&str]) -> crate::support::command::Ran {
    let url = format!("http://{}", daemon.address);
    let args: Vec<String> = args
        .iter()
        .map(ToString::to_string)
        .chain(["--url".to_owned(), url])
        .collect();
    let ran = Tasks::new().spawn_blocking(move || {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        crate::support::command::Home::new().run(&args)
    });
    tokio::time::timeout(PATIENCE, ran).await.unwrap().unwrap()
}

/// The name under which a second one that announces a taken name is known.
fn other(daemon: &Found, name: &str) -> String {
    let prefix = format!("{name}-");
    let mut names = daemon
        .names()
        .into_iter()
        .filter(|known| known.starts_with(&prefix));
    let found = names
        .next()
        .unwrap_or_else(|| panic!("only {:?}", daemon.names()));
    assert_eq!(names.next(), None);
    found
}

#[tokio::test]
async fn what_takes_a_name_over_is_not_taken_for_what_had_it() {
    let mut first = Scripted::saying(pantry());
    let second = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &first.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    daemon.until_listed(&["stock"]).await;
    let generation = || {
        daemon
            .engine
            .route(&"pantry".parse().unwrap())
            .unwrap()
            .generation
    };
    let before = generation();
    first.close().await;
    daemon.hears([]);
    daemon.until_state("pantry", ScenarioState::Removed).await;
    let vouched = Endpoint {
        trust: SourceTrust::Trusted,
        ..announced("pantry", &second.url(), Some("id-2"))
    };
    daemon.hears([vouched]);
    daemon
        .until_health("pantry", "is the other", |health| {
            health.party.identity.as_deref() == Some("id-2") && health.last_success.is_some()
        })
        .await;
    assert!(
        generation() > before + 1_000,
        "an answer or a call of the one before counts for nothing"
    );
    daemon.stop().await;
}

/// A probe of MCP does more than look, and a credential is meant for one server only.
#[tokio::test]
async fn some_are_not_contacted_before_an_operator_trusts_them() {
    let mcp = Scripted::saying(pantry());
    let keyed = Scripted::saying(pantry());
    let home = Home::new();
    let announced_mcp = Endpoint {
        protocol: Some("mcp".into()),
        ..announced("desk", &mcp.url(), None)
    };
    let token = HttpTarget {
        auth: Some(Auth::Bearer(Secret::new("topsecret-topsecret").into())),
        ..HttpTarget::at(keyed.url())
    };
    let with_token = Endpoint {
        target: Some(token.into()),
        ..announced("safe", &keyed.url(), None)
    };
    let daemon = home.start([announced_mcp, with_token]).await;
    for name in ["desk", "safe"] {
        daemon.until_state(name, ScenarioState::Pending).await;
        let refused = daemon
            .send("POST", &format!("/api/v1/scenarios/{name}/refresh"))
            .await;
        assert_eq!(refused.status, 409, "{name}");
    }
    assert_eq!(mcp.count() + keyed.count(), 0, "one was contacted");
    daemon.decide("POST", "desk", "trust").await;
    daemon
        .until_health("desk", "was contacted", |health| {
            health.last_error.is_some()
        })
        .await;
    assert!(mcp.count() > 0, "it is contacted now");
    daemon.stop().await;
}

#[tokio::test]
async fn who_was_found_waits_with_what_it_claims_to_be() {
    let server = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    let shown = daemon.until_pending("pantry").await;
    assert_eq!(shown.version.as_deref(), Some("1.0.0"));
    assert_eq!(shown.tools.offered, 1);
    assert_eq!(shown.tools.published, 0);
    assert!(!shown.trusted);
    assert!(
        shown.reason.contains("callsheet trust pantry"),
        "{}",
        shown.reason
    );
    let answer = daemon.send("GET", "/api/v1/scenarios/pantry").await.json();
    assert_eq!(answer["identity"], "id-1");
    assert_eq!(answer["own_name"], "pantry");
    assert_eq!(
        answer["origin"],
        json!(format!("http://localhost:{}", server.port()))
    );
    assert_empty!(listed(&daemon.now()));

    let table = command(&daemon, &["scenarios"]).await.ok();
    assert!(
        table.contains("pending") && table.contains("1 waits for your approval"),
        "{table}"
    );
    let trusted = command(&daemon, &["trust", "pantry"]).await.ok();
    let decision = format!(
        "trusted: identity id-1 at http://localhost:{}, found by mdns",
        server.port()
    );
    assert!(trusted.contains(&decision), "{trusted}");
    // What it said while it waited is in the list as soon as the yes is acknowledged.
    assert_eq!(listed(&daemon.now()), ["stock"]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_yes_holds_over_restarts_of_both_sides_on_the_same_host() {
    let server = Scripted::saying(pantry());
    let moved = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    daemon.hears([announced("pantry", &moved.url(), Some("id-1"))]);
    daemon
        .until_health("pantry", "moved", |health| health.restarts == 1)
        .await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    daemon.stop().await;

    let daemon = home.start([]).await;
    daemon.hears([announced("pantry", &server.url(), Some("id-1"))]);
    let shown = daemon.until_state("pantry", ScenarioState::Live).await;
    assert!(shown.trusted);
    // Renamed by the network (its name was taken there for a while), it is the same scenario.
    daemon.hears([announced("pantry-2", &server.url(), Some("id-1"))]);
    daemon.hears([
        announced("pantry-2", &server.url(), Some("id-1")),
        announced("new", &moved.url(), Some("id-2")),
    ]);
    daemon.until_pending("new").await;
    assert_eq!(daemon.names(), ["new", "pantry"]);
    assert_eq!(listed(&daemon.now()), ["stock"]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_copied_identity_on_another_host_waits_and_takes_nothing_over() {
    let mut server = Scripted::saying(pantry());
    let copy = Scripted::on(OTHER_HOST, Reply::tools("pantry", &["steal"]));
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    // Beside the real one, and after the real one's goodbye was forged.
    let real = announced("pantry", &server.url(), Some("id-1"));
    daemon.hears([announced("pantry", &copy.url(), Some("id-1")), real]);
    daemon
        .until("it is told", |now| {
            !findings(now, FindingCode::SourceShadowed).is_empty()
        })
        .await;
    let polls = server.count();
    daemon.hears([announced("pantry", &copy.url(), Some("id-1"))]);
    server.until_asked(polls + 1).await;
    let stays = daemon
        .until_health("pantry", "stays", |health| {
            health.reason.contains("no source names it")
        })
        .await;
    assert_eq!(stays.state, ScenarioState::Live);
    assert_eq!(listed(&daemon.now()), vec!["stock".to_owned()]);
    assert_eq!(copy.count(), 0, "nobody asked the copy");

    // Only when the real one is gone is it the scenario at a new place, and that needs another yes.
    server.close().await;
    is_polled_again(&daemon).await;
    let waits = daemon.until_pending("pantry").await;
    assert_empty!(listed(&daemon.now()));
    assert!(
        waits.reason.contains("127.0.0.2") && waits.reason.contains("localhost"),
        "{}",
        waits.reason
    );
    let withheld = findings(&daemon.now(), FindingCode::TrustWithheld);
    assert_eq!(withheld.len(), 1, "{withheld:?}");
    // Back where it was it needs none.
    server.open();
    daemon.hears([
        announced("pantry", &copy.url(), Some("id-1")),
        announced("pantry", &server.url(), Some("id-1")),
    ]);
    daemon.until_listed(&["stock"]).await;
    daemon.hears([announced("pantry", &copy.url(), Some("id-1"))]);
    server.close().await;
    is_polled_again(&daemon).await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    assert_eq!(
        listed(&daemon.now()),
        ["steal"],
        "an operator may say yes to the new place"
    );
    daemon.stop().await;
}

/// Waits for a poll of the pantry that begins from now on. The first refresh may join one that is
/// under way.
async fn is_polled_again(daemon: &Found) {
    for _ in 0..2 {
        let _ = daemon.engine.refresh(vec!["pantry".parse().unwrap()]).await;
    }
}

#[tokio::test]
async fn another_one_of_the_same_name_gets_a_name_of_its_own_in_every_order() {
    let server = Scripted::saying(pantry());
    let newcomer = Scripted::on(OTHER_HOST, Reply::tools("pantry", &["steal"]));
    let home = Home::new();
    let known = announced("pantry", &server.url(), Some("id-1"));
    let stranger = announced("pantry", &newcomer.url(), Some("id-2"));
    let daemon = home.start([known.clone()]).await;
    daemon.until_pending("pantry").await;
    daemon.hears([stranger.clone(), known.clone()]);
    daemon
        .until("both are known", |now| now.health.len() == 2)
        .await;
    let second = other(&daemon, "pantry");
    daemon.until_pending(&second).await;
    let taken = findings(&daemon.now(), FindingCode::NameTaken);
    assert!(
        taken[0].message.contains("id-1") && taken[0].message.contains("id-2"),
        "{taken:?}"
    );
    daemon.decide("POST", "pantry", "trust").await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    daemon.stop().await;

    // After a restart the stranger is heard first.
    let daemon = home.start([stranger.clone()]).await;
    daemon.until_pending(&second).await;
    let restored = daemon.health("pantry");
    assert_ne!(restored.state, ScenarioState::Pending, "{restored:?}");
    daemon.hears([stranger, known]);
    daemon.until_state("pantry", ScenarioState::Live).await;
    assert_eq!(daemon.names().len(), 2);
    assert_eq!(listed(&daemon.now()), vec!["stock".to_owned()]);
    daemon.stop().await;
}

#[tokio::test]
async fn who_waits_keeps_its_name_over_a_restart() {
    let server = Scripted::saying(pantry());
    let newcomer = Scripted::on(OTHER_HOST, pantry());
    let home = Home::new();
    let first = announced("pantry", &server.url(), Some("id-1"));
    let second = announced("pantry", &newcomer.url(), Some("id-2"));
    let daemon = home.start([first.clone()]).await;
    daemon.until_pending("pantry").await;
    daemon.stop().await;
    let stored = sqlite::open(&home.state(), Clock::system())
        .unwrap()
        .load()
        .await
        .unwrap();
    assert!(stored.manifests.is_empty(), "nothing it said is stored");
    assert_eq!(stored.claims.len(), 1, "nothing it said is stored");
    let daemon = home.start([second.clone()]).await;
    daemon
        .until("the newcomer", |now| now.health.len() == 1)
        .await;
    assert_ne!(daemon.names(), ["pantry"]);
    daemon.hears([second, first]);
    let shown = daemon.until_pending("pantry").await;
    assert_eq!(shown.party.identity.as_deref(), Some("id-1"));
    daemon.stop().await;
}

#[tokio::test]
async fn another_identity_at_the_same_address_waits_again() {
    let server = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    daemon.hears([announced("pantry", &server.url(), Some("id-2"))]);
    daemon.until_pending("pantry").await;
    assert_empty!(listed(&daemon.now()));
    let withheld = findings(&daemon.now(), FindingCode::TrustWithheld);
    assert!(
        withheld[0].message.contains("id-1") && withheld[0].message.contains("id-2"),
        "{withheld:?}"
    );
    daemon.hears([announced("pantry", &server.url(), Some("id-1"))]);
    daemon.until_listed(&["stock"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn without_an_identity_a_yes_is_for_the_exact_address() {
    let mut server = Scripted::saying(pantry());
    let moved = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home.start([announced("pantry", &server.url(), None)]).await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    server.close().await;
    daemon.hears([announced("pantry", &moved.url(), None)]);
    daemon
        .until("it waits at the new port", |now| {
            now.health.values().any(|health| {
                health.state == ScenarioState::Pending
                    && health.url.as_deref() == Some(moved.url().as_str())
            })
        })
        .await;
    // The old port is asked once more before its tools go.
    daemon.until_listed(&[]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_decision_of_an_earlier_version_is_for_nobody() {
    let server = Scripted::saying(pantry());
    let home = Home::new();
    let store = sqlite::open(&home.state(), Clock::system()).unwrap();
    let bare = |decision| {
        Some(TrustDecision {
            decision,
            party: PeerIdentity::default(),
            source: None,
        })
    };
    let writes = vec![
        Write::Decision("pantry".parse().unwrap(), bare(Decision::Trusted)),
        Write::Decision("cellar".parse().unwrap(), bare(Decision::Blocked)),
    ];
    store.save(writes).await.unwrap();
    drop(store);
    let cellar = Scripted::saying(pantry());
    let daemon = home
        .start([
            announced("pantry", &server.url(), Some("id-1")),
            announced("cellar", &cellar.url(), None),
        ])
        .await;
    daemon.until_pending("pantry").await;
    assert!(
        findings(&daemon.now(), FindingCode::TrustWithheld)[0]
            .message
            .contains("earlier version")
    );
    daemon.until_state("cellar", ScenarioState::Blocked).await;
    assert_eq!(cellar.count(), 0);
    daemon.stop().await;
}

#[tokio::test]
async fn a_block_is_not_escaped_by_another_name_and_is_taken_back() {
    let server = Scripted::saying(pantry());
    let moved = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    let blocked = command(&daemon, &["block", "pantry"]).await.ok();
    assert!(
        blocked.contains("pantry is blocked") && blocked.contains("blocked: identity id-1 at"),
        "{blocked}"
    );
    let polls = server.count();
    // Another identity and name at the same address; the same identity elsewhere; the same name
    // from someone else.
    daemon.hears([announced("larder", &server.url(), Some("id-2"))]);
    daemon
        .until("the address stays blocked", |now| {
            blocked_ones(now) == now.health.len()
        })
        .await;
    daemon.hears([announced("larder", &moved.url(), Some("id-1"))]);
    daemon
        .until("the identity stays blocked", |now| {
            blocked_ones(now) == now.health.len()
        })
        .await;
    daemon.hears([announced("pantry", &moved.url(), Some("id-3"))]);
    daemon
        .until("the name stays blocked", |now| {
            blocked_ones(now) == now.health.len() && now.health.len() == 2
        })
        .await;
    assert_eq!(server.count(), polls);
    assert_eq!(moved.count(), 0);

    let undone = command(&daemon, &["block", "pantry", "--undo"]).await.ok();
    assert!(
        undone.contains("decision taken back: identity id-1"),
        "{undone}"
    );
    daemon
        .until("nothing is blocked", |now| blocked_ones(now) == 0)
        .await;
    daemon.stop().await;
}

fn blocked_ones(snapshot: &Snapshot) -> usize {
    snapshot
        .health
        .values()
        .filter(|health| health.state == ScenarioState::Blocked)
        .count()
}

#[tokio::test]
async fn a_yes_is_taken_back() {
    let server = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    let undone = command(&daemon, &["trust", "pantry", "--undo"]).await.ok();
    assert!(
        undone.starts_with("pantry is pending") && undone.contains("decision taken back"),
        "{undone}"
    );
    assert_empty!(listed(&daemon.now()));
    daemon.stop().await;
    let stored = sqlite::open(&home.state(), Clock::system())
        .unwrap()
        .load()
        .await
        .unwrap();
    assert_empty!(stored.manifests);
    assert_empty!(stored.decisions);
}

#[tokio::test]
async fn a_pending_scenario_is_not_polled_again_and_gets_no_credentials() {
    let server = Scripted::saying(pantry().header("Cache-Control: no-cache"));
    let marker =
        Scripted::saying(Reply::tools("desk", &["note"]).header("Cache-Control: no-cache"));
    let mut home = Home::new();
    home.list("desk", &marker.url());
    home.config.refresh.max_interval = std::time::Duration::from_millis(300);
    home.config.refresh.min_interval = std::time::Duration::from_millis(40);
    let mut url = server.url();
    url.set_username("operator").unwrap();
    url.set_password(Some("secret")).unwrap();
    url.set_query(Some("token=secret"));
    let daemon = home.start([announced("pantry", &url, Some("id-1"))]).await;
    daemon.until_pending("pantry").await;
    // It comes and goes while a trusted one is asked ten times.
    let from = (server.count(), marker.count());
    while marker.count() < from.1 + 10 {
        daemon.hears([]);
        marker.until_asked(marker.count() + 1).await;
        daemon.hears([announced("pantry", &url, Some("id-1"))]);
        marker.until_asked(marker.count() + 1).await;
    }
    let polls = server.count() - from.0;
    let others = marker.count() - from.1;
    assert!(
        polls * 2 <= others,
        "asked {polls} times, a trusted one {others} times"
    );
    for seen in server.seen() {
        assert_eq!(seen.request.target(), "/api/v1/tools");
        assert_eq!(seen.request.header("authorization"), None);
    }
    assert_eq!(listed(&daemon.now()), ["note"]);
    daemon.stop().await;
}

#[tokio::test]
async fn who_waits_does_not_say_how_often_it_is_polled() {
    let server =
        Scripted::saying(Reply::tools("pantry", &["stock"]).header("Cache-Control: no-cache"));
    let marker =
        Scripted::saying(Reply::tools("desk", &["note"]).header("Cache-Control: no-cache"));
    let mut home = Home::new();
    home.list("desk", &marker.url());
    home.config.refresh.max_interval = std::time::Duration::from_secs(3_600);
    home.config.refresh.min_interval = std::time::Duration::from_millis(20);
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    let polls = server.count();
    marker.until_asked(marker.count() + 10).await;
    assert_eq!(server.count(), polls, "its list only has to be known");
    daemon.stop().await;
}

#[tokio::test]
async fn tools_of_who_waits_do_not_collide() {
    let server = Scripted::saying(Reply::tools("pantry", &["note"]));
    let desk = Scripted::saying(Reply::tools("desk", &["note"]));
    let mut home = Home::new();
    home.list("desk", &desk.url());
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    daemon.until_listed(&["note"]).await;
    assert_empty!(findings(&daemon.now(), FindingCode::NameCollision));
    daemon.decide("POST", "pantry", "trust").await;
    assert_eq!(listed(&daemon.now()), ["desk__note", "pantry__note"]);
    daemon.stop().await;
}

#[tokio::test]
async fn the_static_list_wins_over_the_network_by_name_and_address() {
    let server = Scripted::saying(pantry());
    let stranger = Scripted::on(OTHER_HOST, pantry());
    let mut home = Home::new();
    home.list("pantry", &server.url());
    let announcements = [
        announced("elsewhere", &server.url(), Some("id-1")),
        announced("pantry", &stranger.url(), Some("id-2")),
    ];
    let daemon = home.start(announcements).await;
    daemon.until_listed(&["stock"]).await;
    // Whichever source is heard first.
    daemon
        .until("both are known", |now| {
            now.health.len() == 2 && listed(now) == ["stock"]
        })
        .await;
    let second = other(&daemon, "pantry");
    daemon.until_pending(&second).await;
    assert_eq!(
        findings(&daemon.now(), FindingCode::SourceShadowed).len(),
        1
    );
    daemon.stop().await;
}

#[tokio::test]
async fn what_leads_to_another_host_is_refused() {
    let elsewhere = Scripted::on(OTHER_HOST, pantry());
    let leads = format!("Location: {}api/v1/tools", elsewhere.url());
    let redirecting = Scripted::saying(Reply::status("302 Found").header(&leads));
    let mut based = manifest("based", &["stock"]);
    based["scenario"]["base_url"] = Value::from(elsewhere.url().as_str());
    let found = Scripted::saying(Reply::json(&based));
    let written = Scripted::saying(Reply::json(&based));
    let mut home = Home::new();
    home.list("written", &written.url());
    let announcements = [
        announced("leads", &redirecting.url(), Some("id-1")),
        announced("based", &found.url(), Some("id-2")),
    ];
    let daemon = home.start(announcements).await;
    daemon.until_pending("based").await;
    daemon.until_state("written", ScenarioState::Live).await;
    let refused = daemon
        .until_health("leads", "was asked", |health| health.last_error.is_some())
        .await;
    assert_eq!(refused.last_error.as_ref().unwrap().kind, "redirect");
    let refused = findings(&daemon.now(), FindingCode::BaseUrlRefused);
    let about: Vec<_> = refused
        .iter()
        .filter_map(|finding| finding.scenario.as_ref())
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        about,
        ["based"],
        "what an operator wrote down may be elsewhere"
    );
    assert_eq!(elsewhere.count(), 0);
    daemon.stop().await;
}

#[tokio::test]
async fn a_goodbye_is_a_hint() {
    let server = Scripted::saying(pantry());
    let home = Home::new();
    let announcement = announced("pantry", &server.url(), Some("id-1"));
    let daemon = home.start([announcement.clone()]).await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    let asked = server.count();
    daemon.hears([]);
    server.until_asked(asked + 1).await;
    daemon
        .until_health("pantry", "stays", |health| {
            health.reason.contains("answers, although")
        })
        .await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    let planned = daemon.health("pantry").next_attempt;
    assert!(planned.is_some(), "it is asked on as usual");
    daemon.hears([announcement]);
    let back = daemon
        .until_health("pantry", "is named again", |health| {
            health.reason == "up to date"
        })
        .await;
    assert_eq!(back.state, ScenarioState::Live);
    assert_eq!(back.restarts, 0);
    daemon.stop().await;
}

#[tokio::test]
async fn long_texts_are_cut_where_they_are_shown() {
    let mut long = manifest("pantry", &["stock"]);
    for member in ["version", "description"] {
        long["scenario"][member] = Value::from("\u{e9}".repeat(5000));
    }
    let server = Scripted::saying(Reply::json(&long));
    let home = Home::new();
    let daemon = home.start([announced("pantry", &server.url(), None)]).await;
    let shown = daemon.until_pending("pantry").await;
    let count = |text: &Option<String>| text.as_ref().unwrap().chars().count();
    assert_eq!(count(&shown.version), 120);
    assert_eq!(count(&shown.description), 1000);
    daemon.stop().await;
}

#[tokio::test]
async fn a_decision_is_seen_and_taken_back_while_nobody_is_there() {
    let server = Scripted::saying(pantry());
    let other = Scripted::saying(Reply::tools("desk", &["note"]));
    let home = Home::new();
    let announcements = [
        announced("pantry", &server.url(), Some("id-1")),
        announced("desk", &other.url(), Some("id-2")),
    ];
    let daemon = home.start(announcements).await;
    daemon.until_pending("pantry").await;
    daemon.until_pending("desk").await;
    daemon.decide("POST", "pantry", "block").await;
    daemon.decide("POST", "desk", "trust").await;
    daemon.stop().await;

    let daemon = home.start([]).await;
    let blocked = daemon.until_state("pantry", ScenarioState::Blocked).await;
    assert_eq!(blocked.party.identity.as_deref(), Some("id-1"));
    daemon.until_state("desk", ScenarioState::Removed).await;
    assert_eq!(
        daemon.decide("DELETE", "pantry", "block").await["state"],
        "pending"
    );
    assert_eq!(
        daemon.decide("DELETE", "desk", "trust").await["state"],
        "pending"
    );
    daemon.stop().await;
    let stored = sqlite::open(&home.state(), Clock::system())
        .unwrap()
        .load()
        .await
        .unwrap();
    assert_eq!(stored.decisions, []);
}

#[tokio::test]
async fn a_yes_may_say_whom_it_means() {
    let server = Scripted::saying(pantry());
    let home = Home::new();
    let daemon = home
        .start([announced("pantry", &server.url(), Some("id-1"))])
        .await;
    daemon.until_pending("pantry").await;
    let error = command(&daemon, &["trust", "pantry", "--at", "http://10.0.0.5:80"])
        .await
        .failed(1);
    assert!(
        error.contains("is at http://localhost:") && error.contains("callsheet scenarios pantry"),
        "{error}"
    );
    assert_empty!(listed(&daemon.now()));
    let here = format!("http://localhost:{}", server.port());
    command(&daemon, &["trust", "pantry", "--at", &here])
        .await
        .ok();
    assert_eq!(listed(&daemon.now()), ["stock"]);
    daemon.stop().await;
}

/// Any program of this machine may announce the identity of another one, which is no secret.
#[tokio::test]
async fn a_copy_of_an_identity_on_the_same_host_waits_while_the_known_one_answers() {
    let mut server = Scripted::saying(pantry());
    let copies = [0; 6].map(|_| Scripted::saying(Reply::tools("pantry", &["steal"])));
    let home = Home::new();
    let local = |server: &Scripted| {
        let endpoint = announced("pantry", &server.url(), Some("id-1"));
        Endpoint {
            trust: SourceTrust::Trusted,
            ..endpoint
        }
    };
    let daemon = home.start([local(&server)]).await;
    daemon.until_listed(&["stock"]).await;
    // Before it in the order of the source, and after its goodbye was forged.
    let all = || copies.iter().map(local);
    daemon.hears(all().chain([local(&server)]));
    daemon
        .until("it is told", |now| {
            !findings(now, FindingCode::SourceShadowed).is_empty()
        })
        .await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    let polls = server.count();
    daemon.hears(all());
    server.until_asked(polls + 1).await;
    daemon
        .until_health("pantry", "stays", |health| {
            health.reason.contains("no source names it")
        })
        .await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    assert_eq!(
        copies.iter().map(Scripted::count).sum::<usize>(),
        0,
        "expected no request to a copy"
    );
    // A restart on another port is the same scenario once the known address does not answer.
    server.close().await;
    is_polled_again(&daemon).await;
    daemon.until_listed(&["steal"]).await;
    daemon.stop().await;
}

#[tokio::test]
async fn another_port_announced_beside_the_real_one_does_not_displace_it() {
    let server = Scripted::saying(pantry());
    let dead = Scripted::absent();
    let home = Home::new();
    let real = announced("pantry", &server.url(), Some("id-1"));
    let daemon = home.start([real.clone()]).await;
    daemon.until_pending("pantry").await;
    daemon.decide("POST", "pantry", "trust").await;
    daemon.hears([announced("pantry", &dead.url(), Some("id-1")), real]);
    daemon
        .until("it is told", |now| {
            !findings(now, FindingCode::SourceShadowed).is_empty()
        })
        .await;
    assert_eq!(
        daemon.health("pantry").url.as_deref(),
        Some(server.url().as_str())
    );
    daemon.stop().await;
}

#[tokio::test]
async fn a_name_of_the_network_counts_for_the_address_it_is_connected_to() {
    let server = Scripted::saying(pantry());
    let copy = Scripted::on(OTHER_HOST, pantry());
    let home = Home::new();
    // The host name is what the announcer says it is; only the source knows where it leads.
    let named = |server: &Scripted| {
        let url: Url = format!("http://pantry.local:{}/", server.port())
            .parse()
            .unwrap();
        let announced = announced("pantry", &url, Some("id-1"));
        let target = HttpTarget {
            dial: Some(server.address()),
            ..HttpTarget::at(url)
        };
        Endpoint {
            target: Some(target.into()),
            ..announced
        }
    };
    let daemon = home.start([named(&server)]).await;
    let shown = daemon.until_pending("pantry").await;
    assert_eq!(
        shown.party.origin.as_deref(),
        Some(format!("http://localhost:{}", server.port()).as_str())
    );
    daemon.decide("POST", "pantry", "trust").await;
    assert_eq!(listed(&daemon.now()), ["stock"]);
    daemon.stop().await;

    let daemon = home.start([named(&copy)]).await;
    daemon.until_pending("pantry").await;
    assert_empty!(listed(&daemon.now()));
    daemon.hears([named(&server)]);
    daemon.until_listed(&["stock"]).await;
    daemon.stop().await;
}
