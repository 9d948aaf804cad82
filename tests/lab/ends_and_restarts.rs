//! How a scenario on another host ends and starts again, and what is seen of it by when.

use std::time::Duration;

use serde_json::Value;

use crate::support::lab::{Daemon, Lab, holds_for, now};

const ID: &str = "3f1c6f0e-4f0b-4a57-9f0b-6f8f6f1f2a11";
const TRUSTED: &str = "[discovery.mdns]\ntrust = \"all\"\n";
/// Asked every second, and withdrawn four seconds after the last good answer.
const QUICK: &str = "[discovery.mdns]\ntrust = \"all\"\n[refresh]\nmin_interval = \"1s\"\nmax_interval = \"1s\"\nbackoff_base = \"200ms\"\nbackoff_max = \"1s\"\n[health]\ngrace = \"4s\"\n";

/// A goodbye is heard a second after it was said (RFC 6762 section 10.1); then the address is asked
/// once more.
const GOODBYE: Duration = Duration::from_secs(4);
/// A start is heard once its name was looked for on the network, three quarters of a second, and
/// its addresses are gathered.
const START: Duration = Duration::from_secs(3);

fn reason(health: &Value) -> &str {
    health["reason"].as_str().unwrap_or_default()
}

fn lists_it(daemon: &Daemon) -> bool {
    daemon.tools() == ["library_find"]
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_goodbye_withdraws_long_before_grace_and_a_new_start_brings_it_back() {
    let lab = Lab::new(2);
    // Grace is five minutes: it is not what is waited for.
    let daemon = lab.daemon(&lab.hosts[0], TRUSTED);
    let library = lab.hosts[1].scenario("library", 15000, Some(ID));
    daemon.until("library", "live");
    assert!(lists_it(&daemon));

    library.stop();
    let health = daemon.within(GOODBYE, "library", "removed");
    assert!(
        reason(&health).contains("no source names it any more, and it does not answer"),
        "{health}"
    );
    assert!(daemon.tools().is_empty(), "{health}");

    let _library = lab.hosts[1].scenario("library", 15000, Some(ID));
    daemon.within(START, "library", "live");
    assert!(lists_it(&daemon));
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_killed_scenario_is_withdrawn_when_grace_is_over_and_not_before() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], QUICK);
    let library = lab.hosts[1].scenario("library", 15000, Some(ID));
    daemon.until("library", "live");

    // Nothing is heard of it: the failing asks are all that tells.
    library.kill();
    let killed = now();
    let health = daemon.within(Duration::from_secs(4), "library", "stale");
    assert_eq!(health["last_error"]["kind"], "refused", "{health}");
    assert!(
        lists_it(&daemon),
        "a failing scenario's tools stay until grace is over: {health}"
    );
    let health = daemon.within(Duration::from_secs(8), "library", "down");
    let after = killed.elapsed();
    // The last good answer was at most one ask before the end.
    assert!(
        after >= Duration::from_secs(2),
        "withdrawn {after:?} after its end: {health}"
    );
    assert!(reason(&health).contains("polls failed"), "{health}");
    assert!(daemon.tools().is_empty(), "{health}");
    let findings = daemon.findings().join("\n");
    assert!(
        findings.contains("polls failed"),
        "nothing leaves the list without a finding: {findings}"
    );
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_crash_and_a_restart_on_the_same_or_another_port_are_followed() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], TRUSTED);
    let library = lab.hosts[1].scenario("library", 15000, Some(ID));
    daemon.until("library", "live");

    // Nothing but the `boot` of its record is new.
    library.kill();
    let library = lab.hosts[1].scenario("library", 15000, Some(ID));
    let health = daemon.sees(
        START,
        "library",
        "live and known to be restarted",
        |health| health["state"] == "live" && health["restarts"] == 1,
    );
    assert!(lists_it(&daemon), "{health}");

    library.kill();
    let _library = lab.hosts[1].scenario("library", 15001, Some(ID));
    let health = daemon.sees(START, "library", "live at the new port", |health| {
        health["state"] == "live"
            && health["url"]
                .as_str()
                .is_some_and(|url| url.contains(":15001"))
    });
    assert_eq!(health["restarts"], 2, "{health}");
    assert_eq!(
        daemon.scenarios().len(),
        1,
        "one scenario, wherever it runs"
    );
    // The record of the old port does not come back.
    holds_for(Duration::from_secs(2), "its tools in the list", || {
        lists_it(&daemon)
    });
}
