//! Scenarios found on the local network, and announced there: two sides that really speak mDNS, on
//! a port of the loopback interface.

use std::net::SocketAddr;

use callsheet::config::MdnsTrust;
use callsheet::discovery::{Endpoint, EndpointSet, SourceTrust};
use callsheet::model::{FindingCode, ScenarioName};
use callsheet::provide::Announcement;
use callsheet_provide::mdns::{MdnsDaemon, interface_kinds};

use crate::support::daemon::{Daemon, Home, PATIENCE, Scenario, names_of};
use crate::support::mdns::Network;
use crate::support::serving::Answer;
use crate::support::sources::{Running, the_finding};

/// The record of a scenario.
fn record<'a>(id: &'a str, boot: &'a str) -> [(&'a str, &'a str); 5] {
    [
        ("txtvers", "1"),
        ("path", "/api/v1/tools"),
        ("proto", "1.0"),
        ("id", id),
        ("boot", boot),
    ]
}

fn names(set: &EndpointSet) -> Vec<&str> {
    set.endpoints
        .values()
        .filter_map(|endpoint| endpoint.name.as_ref())
        .map(ScenarioName::as_str)
        .collect()
}

fn only(set: &EndpointSet) -> &Endpoint {
    assert_eq!(set.endpoints.len(), 1, "{set:#?}");
    set.endpoints.values().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scenario_comes_restarts_and_leaves() {
    let network = Network::new();
    let mut source = Running::start(network.source());
    let neighbour = network.neighbour();
    neighbour.announce("agent-manager", 15000, &record("id-1", "boot-1"));
    let set = source
        .until("it is found", |set| !set.endpoints.is_empty())
        .await;
    let found = only(&set);
    assert_eq!(
        set.endpoints.keys().next().unwrap().to_string(),
        "id-1 http://127.0.0.1:15000"
    );
    assert_eq!(found.name.as_ref().unwrap().as_str(), "agent-manager");
    assert_eq!(
        found.target.as_ref().unwrap().url().as_str(),
        "http://127.0.0.1:15000/"
    );
    assert_eq!(found.identity.as_deref(), Some("id-1"));
    assert_eq!(found.boot.as_deref(), Some("boot-1"));
    assert_eq!(found.trust, SourceTrust::Trusted);
    assert_eq!(found.target.as_ref().unwrap().http().unwrap().dial, None);

    neighbour.announce("agent-manager", 15000, &record("id-1", "boot-2"));
    let set = source.until("its restart is seen", |set| {
        set.endpoints
            .values()
            .any(|e| e.boot.as_deref() == Some("boot-2"))
    });
    assert_eq!(only(&set.await).identity.as_deref(), Some("id-1"));

    neighbour.take_back("agent-manager");
    let set = source
        .until("its goodbye is heard", |set| set.endpoints.is_empty())
        .await;
    assert!(set.findings.is_empty(), "{set:#?}");
    source
        .until("it has looked everywhere", |set| set.initial_scan_done)
        .await;
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_already_there_is_found_by_asking() {
    let network = Network::new();
    let neighbour = network.neighbour();
    neighbour.announce("early", 15000, &record("id-1", "b"));
    neighbour.announce_as("_vrooli-tools._tcp", "other", 15001, &record("id-2", "b"));
    neighbour.announce_as("_printer._tcp", "printer", 15002, &record("id-3", "b"));
    let types = vec!["_vrooli-tools._tcp".to_owned()];
    let mut source = Running::start(network.source_with(|section| section.types = types));
    let set = source.until("both types and all of the first queries", |set| {
        set.initial_scan_done && set.endpoints.len() >= 2
    });
    assert_eq!(names(&set.await), ["early", "other"]);
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_identity_is_one_scenario_and_a_name_is_nobodys_alone() {
    let network = Network::new();
    let neighbour = network.neighbour();
    neighbour.announce("twice", 15000, &record("id-1", "b"));
    neighbour.announce("twice (2)", 15000, &record("id-1", "b"));
    neighbour.announce("shared", 15001, &record("id-2", "b"));
    let mut source = Running::start(network.source());
    source
        .until("the first are found", |set| set.endpoints.len() == 2)
        .await;
    neighbour.announce("shared (2)", 15002, &record("id-3", "b"));
    let set = source
        .until("the namesake is found", |set| set.endpoints.len() == 3)
        .await;
    // Who of two gets a name that both claim is decided where the operator's decisions are known.
    assert_eq!(names(&set), ["twice", "shared", "shared"]);
    let identities: Vec<_> = set
        .endpoints
        .values()
        .filter_map(|endpoint| endpoint.identity.as_deref())
        .collect();
    assert_eq!(identities, ["id-1", "id-2", "id-3"]);
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_are_counted_in_one_finding() {
    let network = Network::new();
    let neighbour = network.neighbour();
    for index in 0..5_u16 {
        neighbour.announce(
            &format!("s{index}"),
            15000 + index,
            &record(&format!("id-{index}"), "b"),
        );
    }
    let mut source = Running::start(network.source_with(|section| section.max_instances = 2));
    let counts_three = |set: &EndpointSet| {
        set.findings
            .iter()
            .any(|finding| finding.message.starts_with("3 announcements"))
    };
    let set = source
        .until("two are taken and three are counted", |set| {
            set.endpoints.len() == 2 && counts_three(set)
        })
        .await;
    assert_eq!(the_finding(&set).code, FindingCode::EntryIgnored);
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_at_once_are_all_found() {
    let network = Network::new();
    let mut source = Running::start(network.source());
    let neighbour = network.neighbour();
    for index in 0..200_u16 {
        neighbour.announce(
            &format!("s{index}"),
            15000 + index,
            &record(&format!("id-{index}"), "b"),
        );
    }
    let set = source
        .until("all are found", |set| set.endpoints.len() == 200)
        .await;
    assert!(set.findings.is_empty(), "{:#?}", set.findings);
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_or_is_ourselves_is_left_out() {
    let network = Network::new();
    let neighbour = network.neighbour();
    neighbour.announce("ourselves", 15000, &record("our-own-id", "b"));
    neighbour.announce(
        "elsewhere",
        15001,
        &[("txtvers", "1"), ("path", "/admin"), ("id", "id-1")],
    );
    neighbour.announce(
        "behind",
        15002,
        &[
            ("path", "/proxy/api/v1/tools"),
            ("id", "id-2"),
            ("colour", "blue"),
        ],
    );
    let mut source = Running::start(network.source_with(|section| section.trust = MdnsTrust::None));
    let set = source
        .until("all were heard", |set| {
            set.initial_scan_done && !set.endpoints.is_empty()
        })
        .await;
    assert_eq!(
        only(&set).target.as_ref().unwrap().url().as_str(),
        "http://127.0.0.1:15002/proxy"
    );
    assert_eq!(only(&set).trust, SourceTrust::Untrusted);
    assert!(
        the_finding(&set)
            .message
            .contains("its path `/admin` does not end in"),
        "{set:#?}"
    );
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_announces_itself_and_says_goodbye() {
    let network = Network::new();
    let mut source = Running::start(network.source());
    let listen = SocketAddr::from(([127, 0, 0, 1], 15000));
    let announce = || {
        Announcement::new("Ana's library", listen, "lib-1")
            .port(network.port)
            .start()
    };
    let first = announce().await.unwrap();
    let set = source
        .until("it is found", |set| !set.endpoints.is_empty())
        .await;
    let found = only(&set).clone();
    assert_eq!(found.name.as_ref().unwrap().as_str(), "Ana-s-library");
    assert_eq!(
        found.target.as_ref().unwrap().url().as_str(),
        "http://127.0.0.1:15000/"
    );
    assert_eq!(found.identity.as_deref(), Some("lib-1"));
    first.goodbye().await;
    source
        .until("its goodbye is heard", |set| set.endpoints.is_empty())
        .await;
    let second = announce().await.unwrap();
    let set = source
        .until("it is back", |set| !set.endpoints.is_empty())
        .await;
    assert_ne!(only(&set).boot, found.boot, "each start is another boot");
    // Dropped without a goodbye it still says one.
    drop(second);
    source
        .until("its end is heard", |set| set.endpoints.is_empty())
        .await;
    source.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_announced_scenario_is_listed_by_the_daemon_and_leaves_with_its_goodbye() {
    let network = Network::new();
    let home = Home::new();
    let mut scenario = Scenario::of("library", &["find_book"]).await;
    let mut config = home.config(&[]);
    config.discovery.mdns = network.section();
    let daemon = Daemon::start(config).await;
    let announced = Announcement::new("library", scenario.address, "lib-1")
        .port(network.port)
        .start()
        .await
        .unwrap();
    daemon.until_tools(&["find_book"]).await;
    let health = daemon.until_state("library", "live").await;
    assert_eq!(health["source"], "mdns");
    assert_eq!(health["trusted"], true);
    announced.goodbye().await;
    scenario.stop().await;
    daemon.until_tools(&[]).await;
    daemon.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_daemons_that_find_each_other_have_each_others_tools_once() {
    let network = Network::new();
    let homes = [Home::new(), Home::new()];
    let mut daemons = Vec::new();
    let scenarios = [
        Scenario::of("files", &["read_file"]).await,
        Scenario::of("mail", &["send_mail"]).await,
    ];
    for (home, scenario) in homes.iter().zip(&scenarios) {
        let mut config = home.config(&[scenario]);
        config.discovery.mdns = network.section();
        config.discovery.mdns.announce = true;
        config.discovery.mdns.id = None;
        daemons.push(Daemon::start(config).await);
    }
    for daemon in &daemons {
        daemon
            .until("/api/v1/tools", |answer| {
                names_of(&answer.json()).len() == 2
            })
            .await;
        // Several asks later it is still so, and what came back is told.
        let is_reported = |answer: &Answer| {
            String::from_utf8_lossy(&answer.body)
                .contains("1 tools that it has from this daemon are left out")
        };
        daemon.until("/api/v1/findings", is_reported).await;
        assert_eq!(daemon.tools("?include_disabled=true").await.len(), 2);
    }
    let list = daemons[0].json("/api/v1/tools").await;
    let id = std::fs::read_to_string(format!("{}.id", homes[0].state().display())).unwrap();
    assert_eq!(list["via"], serde_json::json!([id.trim()]));
    for daemon in daemons {
        daemon.stop().await;
    }
}

/// What the source opens anew when it grows too large: mdns-sd keeps all of it as long as the
/// announcers say.
#[tokio::test(flavor = "multi_thread")]
async fn the_records_that_are_kept_of_others_are_counted() {
    let network = Network::new();
    let neighbour = network.neighbour();
    let listener = MdnsDaemon::open(network.port, interface_kinds(&["loopback".to_owned()]))
        .await
        .unwrap();
    assert_eq!(listener.cached().await.unwrap(), 0);
    let _events = listener
        .command(|daemon| daemon.browse("_agent-tools._tcp.local."))
        .await
        .unwrap();
    for at in 0..20 {
        neighbour.announce(
            &format!("crowd-{at}"),
            15_000 + at,
            &record(&format!("id-{at}"), "boot"),
        );
    }
    // A pointer, a service and a text of each, and one address of all.
    let mut counted = 0;
    let grown = async {
        while counted < 61 {
            counted = listener.cached().await.unwrap();
        }
    };
    let grown = tokio::time::timeout(PATIENCE, grown).await;
    assert!(grown.is_ok(), "expected 61 records, found {counted}");
    listener.close().await;
}
