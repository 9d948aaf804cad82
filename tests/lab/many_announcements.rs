//! Many announcements at once, and two for one name.

use std::time::Duration;

use crate::support::lab::{Lab, wait_for};

const LIBRARY: &str = "3f1c6f0e-4f0b-4a57-9f0b-6f8f6f1f2a11";
const OTHER: &str = "8b8a2f53-95a2-4d2c-8f57-0d7f5c1b8a22";
const TRUSTED: &str = "[discovery.mdns]\ntrust = \"all\"\n";
/// How long a start on another host takes to be heard, with a name that has to be given up.
const START: Duration = Duration::from_secs(6);
/// How long one start is given in a flood, and how often it is started at most.
const HEARD: Duration = Duration::from_secs(15);
const STARTS: u32 = 8;

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn two_hosts_that_use_one_name_are_two_scenarios_and_that_is_told() {
    let lab = Lab::new(3);
    let daemon = lab.daemon(&lab.hosts[0], TRUSTED);
    let first = lab.hosts[1].scenario("library", 15000, Some(LIBRARY));
    daemon.until("library", "live");
    let _second = lab.hosts[2].scenario("library", 15000, Some(OTHER));
    let other = wait_for("the second scenario", || {
        daemon
            .scenarios()
            .into_iter()
            .find(|health| health["name"] != "library")
    });
    let name = other["name"].as_str().unwrap();
    assert!(name.starts_with("library-"), "{other}");
    let other = daemon.within(START, name, "live");
    assert_eq!(other["identity"], OTHER);
    assert!(other["url"].as_str().unwrap().contains("10.78.0.3"));
    let health = daemon.health("library");
    assert_eq!(health["state"], "live", "{health}");
    assert_eq!(health["identity"], LIBRARY, "{health}");
    assert_eq!(
        daemon.tools().len(),
        2,
        "neither is lost: {:?}",
        daemon.tools()
    );
    let findings = daemon.json(&["scenarios", name])["findings"].to_string();
    assert!(findings.contains("name-taken"), "{findings}");

    // Who came second keeps what it has, and gets nothing of what the first leaves behind.
    first.stop();
    daemon.within(START, "library", "removed");
    assert_eq!(daemon.health(name)["state"], "live");
    assert_eq!(daemon.tools().len(), 1);
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn two_hundred_at_once_on_one_host_are_all_listed_within_ten_seconds() {
    let lab = Lab::new(2);
    let daemon = lab.daemon(&lab.hosts[0], TRUSTED);
    let crowd = lab.hosts[1].crowd(200, 0);
    daemon.sees(Duration::from_secs(10), "crowd-0199", "known", |health| {
        !health.is_null()
    });
    let live = || {
        daemon
            .scenarios()
            .iter()
            .filter(|health| health["state"] == "live")
            .count()
    };
    wait_for("all of them", || (live() == 200).then_some(()));
    let tools = daemon.tools();
    assert_eq!(tools.len(), 200);
    assert_eq!(tools[0].as_str(), "find_0000");
    assert_eq!(tools[199].as_str(), "find_0199");
    let findings = daemon.findings().join("\n");
    assert!(!findings.contains("announcements"), "{findings}");
    crowd.stop();
}

#[test]
#[ignore = "needs root and network namespaces: run `.ci/lab`"]
fn a_flood_of_five_thousand_is_bounded_counted_and_costs_the_real_scenario_nothing() {
    let lab = Lab::new(3);
    // A goodbye may be lost in a flood as well: then the failing asks tell.
    let asking =
        "[refresh]\nmin_interval = \"3s\"\nmax_interval = \"3s\"\n[health]\ngrace = \"5s\"\n";
    let daemon = lab.daemon(
        &lab.hosts[0],
        &format!("{asking}[discovery.mdns]\ntrust = [\"10.78.0.2\"]\n"),
    );
    let library = lab.hosts[1].scenario("library", 15000, Some(LIBRARY));
    daemon.until("library", "live");
    let before = daemon.memory();

    let flood = lab.hosts[2].crowd(0, 5_000);
    // The first 512 are kept, and the library is one of them. Of the others those are counted that
    // were heard: in a flood packets are lost.
    let count = wait_for("the count of the others", || {
        let findings = daemon.findings();
        let counts = findings
            .iter()
            .filter(|text| text.contains("announcements on the local network beyond"));
        let counts: Vec<u32> = counts
            .map(|text| text.split(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(counts.len() <= 1, "one finding tells of all: {findings:#?}");
        counts.first().copied().filter(|count| *count >= 1_000)
    });
    assert!(count <= 5_001 - 512, "{count} were counted");
    assert_eq!(
        daemon.scenarios().len(),
        512,
        "of those that are kept each is known"
    );
    assert_eq!(daemon.health("library")["state"], "live");
    assert_eq!(daemon.tools(), ["library_find"]);
    let after = daemon.memory();
    assert!(after < before + 100, "{before} MB before, {after} MB after");

    // Who is trusted finds room even now. What it says while the flood is at its height may be lost
    // like any datagram, also what it answers when the browse is renewed; then it is started again,
    // as its owner would.
    let mut mail = None;
    let heard = (0..STARTS).any(|_| {
        drop(mail.take());
        mail = Some(lab.hosts[1].scenario("mail", 15001, Some(OTHER)));
        daemon.becomes(HEARD, "mail", "live")
    });
    assert!(
        heard,
        "a trusted scenario was not heard in {STARTS} starts: {:#?}",
        daemon.findings()
    );
    assert_eq!(daemon.tools(), ["library_find", "mail_find"]);

    // Who leaves is not kept for it.
    flood.kill();
    library.stop();
    daemon.within(Duration::from_secs(30), "library", "removed");
    assert_eq!(daemon.tools(), ["mail_find"]);
}
