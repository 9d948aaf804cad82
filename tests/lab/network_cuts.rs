//! What cuts of the network do to the list: loud ones, of which a host knows, and silent ones.

use std::time::Duration;

use serde_json::Value;

use crate::support::lab::{Lab, holds_for, now};

const LIBRARY: &str = "3f1c6f0e-4f0b-4a57-9f0b-6f8f6f1f2a11";
const MAIL: &str = "8b8a2f53-95a2-4d2c-8f57-0d7f5c1b8a22";
/// Asked every second, so that what is not announced is noticed soon.
const QUICK: &str = "[discovery.mdns]\ntrust = \"all\"\n[refresh]\nmin_interval = \"1s\"\nmax_interval = \"1s\"\nbackoff_base = \"200ms\"\nbackoff_max = \"1s\"\n";
/// How long until three asks in a row failed, each after a second at most.
const NOTICED: Duration = Duration::from_secs(8);
/// How long until an ask gets through again: the wait between two, and what the system needs to
/// find its neighbours.
const HEALED: Duration = Duration::from_secs(8);
/// mDNS looks for new interfaces every five seconds.
const INTERFACES: Duration = Duration::from_secs(12);

fn reason(health: &Value) -> &str {
    health["reason"].as_str().unwrap_or_default()
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_scenario_whose_host_loses_its_network_stays_until_grace_and_comes_back() {
    let lab = Lab::new(3);
    let daemon = lab.daemon(&lab.hosts[0], &format!("{QUICK}[health]\ngrace = \"5s\"\n"));
    let _library = lab.hosts[1].scenario("library", 15000, Some(LIBRARY));
    let _mail = lab.hosts[2].scenario("mail", 15000, Some(MAIL));
    daemon.until("library", "live");
    daemon.until("mail", "live");

    lab.hosts[1].link(false);
    let cut = now();
    daemon.sees(NOTICED, "library", "failing", |health| {
        health["failures_in_a_row"].as_u64() > Some(0)
    });
    assert_eq!(
        daemon.tools(),
        ["library_find", "mail_find"],
        "one failure takes nothing away"
    );
    let health = daemon.within(Duration::from_secs(15), "library", "down");
    assert!(
        cut.elapsed() >= Duration::from_secs(3),
        "withdrawn after {:?}: {health}",
        cut.elapsed()
    );
    assert_eq!(daemon.tools(), ["mail_find"], "{health}");
    assert_eq!(
        daemon.health("mail")["state"],
        "live",
        "what is lost costs nobody else anything"
    );

    lab.hosts[1].link(true);
    let health = daemon.within(HEALED, "library", "live");
    assert_eq!(health["restarts"], 0, "a cut is no restart: {health}");
    assert_eq!(daemon.tools(), ["library_find", "mail_find"]);
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_daemon_that_loses_its_own_network_finds_everyone_again() {
    let lab = Lab::new(3);
    let daemon = lab.daemon(&lab.hosts[0], QUICK);
    let _library = lab.hosts[1].scenario("library", 15000, Some(LIBRARY));
    let _mail = lab.hosts[2].scenario("mail", 15000, Some(MAIL));
    daemon.until("library", "live");
    daemon.until("mail", "live");

    lab.hosts[0].link(false);
    for name in ["library", "mail"] {
        let health = daemon.sees(INTERFACES, name, "known not to answer", |health| {
            health["state"] != "live"
        });
        assert!(!health["last_error"].is_null(), "{health}");
    }
    lab.hosts[0].link(true);
    let healed = now();
    for name in ["library", "mail"] {
        daemon.within(INTERFACES, name, "live");
    }
    assert!(
        healed.elapsed() < INTERFACES + HEALED,
        "{:?}",
        healed.elapsed()
    );
    assert_eq!(daemon.tools(), ["library_find", "mail_find"]);
    assert_eq!(daemon.scenarios().len(), 2);
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_silent_cut_shorter_than_the_record_lives_takes_nothing_away() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], QUICK);
    let _library = lab.hosts[1].scenario("library", 15000, Some(LIBRARY));
    daemon.until("library", "live");

    // Its records live for two minutes, and nobody is told.
    lab.cut(&lab.hosts[1]);
    let health = daemon.within(NOTICED, "library", "stale");
    assert!(reason(&health).contains("polls failed"), "{health}");
    holds_for(Duration::from_secs(3), "its tools in the list", || {
        daemon.tools() == ["library_find"]
    });
    lab.heal(&lab.hosts[1]);
    let health = daemon.within(HEALED, "library", "live");
    assert_eq!(health["restarts"], 0, "a cut is no restart: {health}");
    assert_eq!(daemon.tools(), ["library_find"]);
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_silent_cut_longer_than_the_record_lives_withdraws_and_heals() {
    let lab = Lab::new(2);
    // Grace is five minutes: what withdraws is the end of the record, confirmed by asking.
    let daemon = lab.daemon(&lab.hosts[0], QUICK);
    let _library = lab.hosts[1].scenario("library", 15000, None);
    let _announcing = lab.zeroconf(&lab.hosts[1], "library", 15000, LIBRARY, 10);
    daemon.until("library", "live");

    lab.cut(&lab.hosts[1]);
    daemon.within(NOTICED, "library", "stale");
    assert_eq!(daemon.tools(), ["library_find"]);
    let health = daemon.within(Duration::from_secs(20), "library", "removed");
    assert!(
        reason(&health).contains("no source names it any more, and it does not answer"),
        "{health}"
    );
    assert!(daemon.tools().is_empty(), "{health}");

    lab.heal(&lab.hosts[1]);
    // Heard again when the browse is renewed, after a minute at the latest.
    daemon.within(Duration::from_secs(70), "library", "live");
    assert_eq!(daemon.tools(), ["library_find"]);
}
