//! A scenario on another host, found by mDNS: it waits for a yes, is listed, and leaves.

use std::time::Duration;

use crate::support::lab::{Lab, now, wait_for};

const ID: &str = "3f1c6f0e-4f0b-4a57-9f0b-6f8f6f1f2a11";

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_scenario_on_another_host_waits_for_a_yes_is_listed_and_leaves_truthfully() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], "");
    let library = lab.hosts[1].scenario("library", 15000, Some(ID));

    let health = daemon.until("library", "pending");
    assert_eq!(health["source"], "mdns", "{health}");
    assert!(
        health["url"].as_str().unwrap().contains("10.78.0.2:15000"),
        "{health}"
    );
    assert!(
        daemon.tools().is_empty(),
        "a pending scenario's tools do not show"
    );

    let yes = now();
    let said = daemon.run(&["trust", "library"]);
    assert!(
        said.status.success(),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    wait_for("its tools", || {
        (daemon.tools() == ["library_find"]).then_some(())
    });
    assert!(
        yes.elapsed() < Duration::from_secs(2),
        "listed {:?} after the yes",
        yes.elapsed()
    );
    daemon.until("library", "live");

    library.stop();
    let health = daemon.until("library", "removed");
    assert!(daemon.tools().is_empty(), "withdrawn: {health}");
    let findings = daemon.json(&["scenarios", "library"])["findings"].to_string();
    assert!(
        findings.contains("no source names it any more"),
        "{findings}"
    );
    daemon.running.stop();
}
