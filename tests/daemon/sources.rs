//! The sources of endpoints: the contract that each of them keeps, and what the configuration and
//! the environment tell.
//!
//! Variables that are no text are part of it, so that it is for Unix systems.

#![cfg(unix)]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use callsheet::config::{Config, StaticScenario};
use callsheet::discovery::mcp_files::McpFiles;
use callsheet::discovery::static_list::StaticList;
use callsheet::discovery::vrooli::environment::EnvironmentSource;
use callsheet::discovery::{EndpointId, EndpointSet, SOURCES, Source, SourceTrust};
use callsheet::model::{FindingCode, SourceId};
use callsheet::runtime::{Clock, Stop, StopTrigger};
use tokio::sync::watch;

use crate::support::assert_empty;
use crate::support::sources::{OFTEN, PATIENCE, Processes, Running, ports, the_finding};

// The contract, for every source.

fn every_source(processes: &Processes) -> Vec<Box<dyn Source>> {
    let scenario = StaticScenario {
        name: "files".parse().unwrap(),
        target: callsheet::model::Target::at("http://127.0.0.1:15000".parse().unwrap()),
        protocol: None,
        sleep_after: None,
    };
    processes.write_live("files", 15000);
    vec![
        Box::new(StaticList::new(vec![scenario])),
        Box::new(EnvironmentSource::new(
            variables(&[("FILES_API_URL", "http://127.0.0.1:15000")]),
            false,
        )),
        Box::new(processes.source(OFTEN)),
        Box::new(mcp_files(processes)),
    ]
}

fn mcp_files(processes: &Processes) -> McpFiles {
    let file = processes.path.with_file_name("mcp.json");
    std::fs::write(
        &file,
        r#"{"mcpServers": {"files": {"url": "http://127.0.0.1:15000/"}}}"#,
    )
    .unwrap();
    let mut config = Config::for_state("state.db");
    config.mcp.files = vec![file];
    McpFiles::new(&config, Clock::system())
}

#[test]
fn the_conformance_tests_know_every_source() {
    let processes = Processes::new();
    let tested: Vec<SourceId> = every_source(&processes)
        .iter()
        .map(|source| source.id())
        .collect();
    let known: Vec<SourceId> = SOURCES.iter().map(|factory| factory.id).collect();
    // mDNS needs somebody who announces: `discovery_mdns.rs`.
    let here: Vec<SourceId> = known
        .iter()
        .copied()
        .filter(|id| *id != SourceId::MDNS)
        .collect();
    assert_eq!(tested, here);
    assert!(
        known.is_sorted(),
        "the order of `SourceId` is the order of precedence"
    );
}

#[tokio::test]
async fn the_first_set_is_whole() {
    let processes = Processes::new();
    for source in every_source(&processes) {
        let id = source.id();
        let mut running = Running::start(source);
        tokio::time::timeout(PATIENCE, running.sets.changed())
            .await
            .expect("tells something")
            .unwrap();
        let first = running.sets.borrow().clone();
        assert!(first.initial_scan_done, "{id}: {first:#?}");
        assert_eq!(ports(&first), [("files", 15000)], "{id}");
        assert!(first.findings.is_empty(), "{id}: {first:#?}");
        let endpoint = &first.endpoints[&EndpointId("files".into())];
        assert_eq!(endpoint.name.as_ref().unwrap().as_str(), "files", "{id}");
        let trust = if id == SourceId::MCP_FILES {
            SourceTrust::Proposed
        } else {
            SourceTrust::Trusted
        };
        assert_eq!(endpoint.trust, trust, "{id}");
        running.end().await;
    }
}

/// In paused time many rescans pass, and the blocking work of each is waited for.
#[tokio::test(start_paused = true)]
async fn an_unchanged_world_is_told_once() {
    let processes = Processes::new();
    for source in every_source(&processes) {
        let id = source.id();
        let mut running = Running::start(source);
        running
            .until("a settled set", |set| set.initial_scan_done)
            .await;
        running.sets.mark_unchanged();
        tokio::time::sleep(OFTEN * 50).await;
        assert!(
            !running.sets.has_changed().unwrap(),
            "{id} told an equal set again"
        );
        running.end().await;
    }
}

#[tokio::test]
async fn a_stop_ends_every_source() {
    let processes = Processes::new();
    // Before it ran at all.
    for source in every_source(&processes) {
        let (out, _sets) = watch::channel(EndpointSet::default());
        let (trigger, stop): (StopTrigger, Stop) = StopTrigger::new();
        trigger.stop();
        tokio::time::timeout(PATIENCE, source.run(out, stop))
            .await
            .expect("ends on stop")
            .unwrap();
    }
    // While it waits.
    for source in every_source(&processes) {
        let mut running = Running::start(source);
        running
            .until("a settled set", |set| set.initial_scan_done)
            .await;
        running.end().await;
    }
}

// The static list.

#[tokio::test]
async fn the_static_list_tells_what_is_configured() {
    let entry = |name: &str, url: &str, protocol: Option<&str>| StaticScenario {
        name: name.parse().unwrap(),
        target: callsheet::model::Target::at(url.parse().unwrap()),
        protocol: protocol.map(str::to_owned),
        sleep_after: None,
    };
    let entries = vec![
        entry("notes", "https://notes.example/base/", Some("mcp")),
        entry("files", "http://127.0.0.1:15000", None),
    ];
    let mut running = Running::start(Box::new(StaticList::new(entries)));
    let set = running
        .until_ports(&[("files", 15000), ("notes", 443)])
        .await;
    let notes = &set.endpoints[&EndpointId("notes".into())];
    assert_eq!(
        notes.target.as_ref().unwrap().url().as_str(),
        "https://notes.example/base/"
    );
    assert_eq!(notes.protocol.as_deref(), Some("mcp"));
    assert_eq!(notes.boot, None);
    running.end().await;
}

// The environment.

fn variables(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    pairs
        .iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

async fn told_of(variables: Vec<(OsString, OsString)>) -> EndpointSet {
    let mut running = Running::start(Box::new(EnvironmentSource::new(variables, true)));
    let set = running
        .until("a settled set", |set| set.initial_scan_done)
        .await;
    running.end().await;
    set
}

#[tokio::test]
async fn addresses_of_other_hosts_are_left_out_unless_wanted() {
    let variables = variables(&[
        ("FILES_API_URL", "http://localhost:15000"),
        ("GITHUB_API_URL", "https://api.forge.example"),
        ("MAIL_API_URL", "http://[::1]:15001"),
    ]);
    let mut running = Running::start(Box::new(EnvironmentSource::new(variables, false)));
    let set = running
        .until("a settled set", |set| set.initial_scan_done)
        .await;
    running.end().await;
    let names: Vec<_> = set
        .endpoints
        .values()
        .map(|endpoint| endpoint.name.as_ref().unwrap().as_str())
        .collect();
    assert_eq!(names, ["files", "mail"]);
    assert_eq!(set.findings.len(), 1);
    let message = &set.findings[0].message;
    assert!(
        message.contains("`GITHUB_API_URL`") && message.contains("discovery.environment.remote"),
        "{message}"
    );
}

#[tokio::test]
async fn the_environment_names_scenarios() {
    let set = told_of(variables(&[
        ("AGENT_MANAGER_API_URL", "http://127.0.0.1:15000"),
        (
            "NOTES2_API_URL",
            " https://lab:pw@notes.example:8443/apps/notes/ ",
        ),
        ("CALLSHEET_API_URL", "http://127.0.0.1:1"),
        ("CALLSHEET_SERVER_API_URL", "nonsense"),
        ("API_URL", "http://127.0.0.1:2"),
        ("AGENT_MANAGER_API_URL_OLD", "http://127.0.0.1:3"),
        ("PATH", "/bin"),
    ]))
    .await;
    let found = set
        .endpoints
        .iter()
        .map(|(id, endpoint)| (&*id.0, endpoint.target.as_ref().unwrap().url().as_str()));
    let found: Vec<_> = found.collect();
    let expected = [
        ("agent-manager", "http://127.0.0.1:15000/"),
        ("notes2", "https://lab:pw@notes.example:8443/apps/notes/"),
    ];
    assert_eq!(found, expected);
    assert!(set.findings.is_empty(), "{:#?}", set.findings);
    assert!(
        set.endpoints
            .values()
            .all(|endpoint| endpoint.trust == SourceTrust::Trusted && endpoint.protocol.is_none())
    );
}

#[tokio::test]
async fn a_bad_variable_is_named_and_its_value_never_shown() {
    for (name, value, says) in [
        ("FILES_API_URL", "s3cret nonsense", "it is not an address"),
        (
            "FILES_API_URL",
            "s3cret:15000",
            "it is neither http nor https",
        ),
        (
            "FILES_API_URL",
            "ftp://s3cret@files.example",
            "it is neither http nor https",
        ),
        (
            "FILES_API_URL",
            "s3cret://x",
            "it is neither http nor https",
        ),
        (
            "FILES_API_URL",
            "http://u:s3cret@127.0.0.1:15000/?token=s3cret",
            "a query or a fragment",
        ),
        (
            "FILES_API_URL",
            "http://127.0.0.1:15000/#s3cret",
            "a query or a fragment",
        ),
        (
            "FILES_API_URL",
            "http://u:s3cret@:15000",
            "it is not an address",
        ),
        (
            "FILES_API_URL",
            "http://u:s3cret@127.0.0.1:99999",
            "it is not an address",
        ),
        (
            "FILES_API_URL",
            "http://u:s3cret@127.0.0.1:0",
            "its port is 0",
        ),
        ("FILES_API_URL", "", "it is empty"),
        (
            "_API_URL",
            "http://u:s3cret@127.0.0.1:15000",
            "makes no scenario name",
        ),
        (
            "_X_API_URL",
            "http://u:s3cret@127.0.0.1:15000",
            "makes no scenario name",
        ),
        (
            "Files_API_URL",
            "http://u:s3cret@127.0.0.1:15000",
            "makes no scenario name",
        ),
    ] {
        let set = told_of(variables(&[
            (name, value),
            ("NOTES_API_URL", "http://127.0.0.1:15001"),
        ]))
        .await;
        assert_eq!(ports(&set), [("notes", 15001)], "{name}={value}");
        let finding = the_finding(&set);
        assert_eq!(finding.code, FindingCode::EntryIgnored);
        assert!(
            finding.message.contains(&format!("`{name}`")) && finding.message.contains(says),
            "{value}: {finding:?}"
        );
        assert!(finding.hint.is_some());
        assert!(!format!("{finding:?}").contains("s3cret"), "{finding:?}");
    }
}

#[tokio::test]
async fn variables_that_are_no_text_do_no_harm() {
    let broken = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let set = told_of(vec![
        ("FILES_API_URL".into(), broken(b"http://127.0.0.1/\xff")),
        (broken(b"A\xff_API_URL"), "http://127.0.0.1:15000".into()),
        (broken(b"\xff"), broken(b"\xff")),
    ])
    .await;
    assert_empty!(set.endpoints);
    assert_eq!(set.findings.len(), 2, "{:#?}", set.findings);
}
