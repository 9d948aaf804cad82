//! What is seen in Vrooli's processes folder: real files, real processes, real links.
//!
//! Links and pipes are part of it, so that it is for Unix systems.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use callsheet::config::VrooliConfig;
use callsheet::discovery::vrooli::VrooliFiles;
use callsheet::discovery::{EndpointId, EndpointSet};
use callsheet::model::FindingCode;
use callsheet::runtime::Clock;
use tokio::process::{Child, Command};

use crate::support::assert_empty;
use crate::support::sources::{NEVER, OFTEN, Processes, Running, ports, process_file, the_finding};

fn sleeper() -> Child {
    Command::new("sleep")
        .arg("600")
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test]
async fn a_scenario_appears_moves_and_goes_as_its_file_does() {
    let processes = Processes::new();
    let mut running = processes.start(NEVER);
    running.until_ports(&[]).await;
    processes.write_live("files", 15000);
    let set = running.until_ports(&[("files", 15000)]).await;
    let endpoint = &set.endpoints[&EndpointId("files".into())];
    assert_eq!(
        endpoint.target.as_ref().unwrap().url().as_str(),
        "http://127.0.0.1:15000/"
    );
    assert_eq!(
        endpoint.boot.as_deref(),
        Some(format!("{} 2126-01-05T10:00:00Z", std::process::id()).as_str())
    );
    processes.write_live("files", 15001);
    running.until_ports(&[("files", 15001)]).await;
    processes.write_live("notes", 15002);
    running
        .until_ports(&[("files", 15001), ("notes", 15002)])
        .await;
    fs::remove_file(processes.path.join("files/start-api.json")).unwrap();
    running.until_ports(&[("notes", 15002)]).await;
    running.end().await;
}

#[tokio::test]
async fn a_restart_on_the_same_port_is_seen() {
    let processes = Processes::new();
    processes.write_live("files", 15000);
    let mut running = processes.start(NEVER);
    let before = running.until_ports(&[("files", 15000)]).await;
    let text = process_file(std::process::id(), "files", 15000).replace("10:00:00", "10:00:07");
    processes.write("files", "start-api.json", &text);
    let after = running.until("another boot", |set| *set != before).await;
    assert_eq!(ports(&after), [("files", 15000)]);
    running.end().await;
}

#[tokio::test]
async fn the_folder_may_come_later_and_come_again() {
    let processes = Processes::absent();
    let mut running = processes.start(NEVER);
    let nothing = running.until_ports(&[]).await;
    assert!(
        nothing.findings.is_empty(),
        "a system without Vrooli is no fault: {nothing:#?}"
    );
    for port in [15000, 15001, 15002] {
        processes.write_live("files", port);
        running.until_ports(&[("files", port)]).await;
        processes.write_live("files", port + 100);
        running.until_ports(&[("files", port + 100)]).await;
        // Once the folder itself, then all that holds it.
        let gone = processes
            .path
            .ancestors()
            .nth(usize::from(port) % 3)
            .unwrap();
        fs::remove_dir_all(gone).unwrap();
        let set = running.until_ports(&[]).await;
        assert!(set.findings.is_empty(), "{set:#?}");
    }
    running.end().await;
}

/// Faster than the folder is looked at, so that only the events tell that it is another one.
#[tokio::test]
async fn a_folder_that_is_made_anew_at_once_is_watched_anew() {
    let processes = Processes::new();
    processes.write_live("files", 15000);
    let mut running = processes.start(NEVER);
    running.until_ports(&[("files", 15000)]).await;
    for (port, gone) in [
        (15001, processes.path.join("files")),
        (15003, processes.path.clone()),
    ] {
        fs::remove_dir_all(gone).unwrap();
        processes.write_live("files", port);
        running.until_ports(&[("files", port)]).await;
        processes.write_live("files", port + 1);
        running.until_ports(&[("files", port + 1)]).await;
    }
    running.end().await;
}

#[tokio::test]
async fn a_swapped_folder_is_watched_anew() {
    let processes = Processes::new();
    processes.write_live("files", 15000);
    let mut running = processes.start(NEVER);
    running.until_ports(&[("files", 15000)]).await;
    let aside = processes.path.with_file_name("aside");
    fs::rename(&processes.path, &aside).unwrap();
    running.until_ports(&[]).await;
    fs::rename(&aside, &processes.path).unwrap();
    running.until_ports(&[("files", 15000)]).await;
    processes.write_live("files", 15001);
    running.until_ports(&[("files", 15001)]).await;
    running.end().await;
}

/// The end of a process is signalled on Linux only; elsewhere it is looked for every two seconds.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_dies_takes_its_scenario_along() {
    let processes = Processes::new();
    let mut reaped = sleeper();
    let mut unreaped = sleeper();
    processes.write(
        "files",
        "start-api.json",
        &process_file(reaped.id().unwrap(), "files", 15000),
    );
    processes.write(
        "notes",
        "api.json",
        &process_file(unreaped.id().unwrap(), "notes", 15001),
    );
    processes.write_live("tasks", 15002);
    // No rescan shows it: the end of a process is signalled.
    let mut running = processes.start(NEVER);
    running
        .until_ports(&[("files", 15000), ("notes", 15001), ("tasks", 15002)])
        .await;
    assert_eq!(ended(&running.sets.borrow()), [] as [(&str, &str); 0]);
    let pid = reaped.id().unwrap();
    reaped.kill().await.unwrap();
    let set = running.until("an end", |set| ended(set).len() == 1).await;
    let file = processes.path.join("files/start-api.json");
    assert_eq!(
        ended(&set),
        [(
            "files",
            format!("process {pid} of `{}` has ended", file.display()).as_str()
        )]
    );
    // A zombie: killed, but its parent did not ask for its end.
    unreaped.start_kill().unwrap();
    let set = running.until("two ends", |set| ended(set).len() == 2).await;
    assert!(ended(&set)[1].1.contains("is a zombie"), "{set:#?}");
    assert!(
        set.findings.is_empty(),
        "a stopped scenario is no fault: {set:#?}"
    );
    unreaped.wait().await.unwrap();
    // Its file goes, and with it all that is known of it.
    fs::remove_dir_all(processes.path.join("files")).unwrap();
    running
        .until_ports(&[("notes", 15001), ("tasks", 15002)])
        .await;
    running.end().await;
}

/// The id of a process that has ended may be given to another one.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_that_began_after_its_file_was_written_is_another_one() {
    let processes = Processes::new();
    let text = process_file(std::process::id(), "files", 15000).replace("2126", "2016");
    processes.write("files", "start-api.json", &text);
    processes.write_live("tasks", 15002);
    let mut running = processes.start(NEVER);
    let set = running
        .until_ports(&[("files", 15000), ("tasks", 15002)])
        .await;
    let [("files", why)] = ended(&set)[..] else {
        panic!("only `files` has ended: {set:#?}")
    };
    assert!(
        why.ends_with("has ended, and its id belongs to another process that began later"),
        "{why}"
    );
    running.end().await;
}

/// A file may name no address. What has ended under one start does not come back under it, whatever
/// process has its id by then.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_process_without_a_port_is_known_by_its_end() {
    let processes = Processes::new();
    let mut sleeper = sleeper();
    let pid = sleeper.id().unwrap();
    let without_port =
        |pid: u32| process_file(pid, "files", 1).replace(r#""port": 1,"#, r#""port": null,"#);
    processes.write("files", "start-api.json", &without_port(pid));
    // No rescan shows it: the end of a process is signalled, whatever its file says of a port.
    let mut running = processes.start(NEVER);
    running
        .until("a finding", |set| !set.findings.is_empty())
        .await;
    sleeper.kill().await.unwrap();
    let set = running.until("an end", |set| ended(set).len() == 1).await;
    assert_empty!(set.findings);
    assert_eq!(
        set.endpoints[&EndpointId("files".into())].target,
        None,
        "{set:#?}"
    );
    // Of two that have ended, the one with an address says more.
    processes.write("files", "app.json", &process_file(pid, "files", 15000));
    running.until_ports(&[("files", 15000)]).await;
    assert_eq!(ended(&running.sets.borrow()).len(), 1);
    // A living one goes before both.
    processes.write(
        "files",
        "api.json",
        &process_file(std::process::id(), "files", 15001),
    );
    let set = running.until_ports(&[("files", 15001)]).await;
    assert_eq!(ended(&set), [] as [(&str, &str); 0]);
    running.end().await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_first_file_with_a_living_process_wins() {
    let processes = Processes::new();
    let mut sleeper = sleeper();
    processes.write(
        "files",
        "start-api.json",
        &process_file(sleeper.id().unwrap(), "files", 15000),
    );
    processes.write(
        "files",
        "app.json",
        &process_file(std::process::id(), "files", 15003),
    );
    let mut running = processes.start(OFTEN);
    running.until_ports(&[("files", 15000)]).await;
    sleeper.kill().await.unwrap();
    running.until_ports(&[("files", 15003)]).await;
    running.end().await;
}

#[tokio::test]
async fn a_half_written_file_keeps_its_last_address_while_the_process_lives() {
    let processes = Processes::new();
    let mut sleeper = sleeper();
    let whole = process_file(sleeper.id().unwrap(), "files", 15000);
    processes.write("files", "start-api.json", &whole);
    let mut running = processes.start(OFTEN);
    let before = running.until_ports(&[("files", 15000)]).await;
    processes.write("files", "start-api.json", &whole[..whole.len() / 2]);
    let torn = running
        .until("a finding", |set| !set.findings.is_empty())
        .await;
    assert_eq!(torn.endpoints, before.endpoints);
    let finding = the_finding(&torn);
    assert_eq!(finding.code, FindingCode::EntryIgnored);
    assert_eq!(finding.scenario.as_ref().unwrap().as_str(), "files");
    assert!(
        finding.message.contains("files/start-api.json")
            && finding.message.contains("not valid JSON"),
        "{finding:?}"
    );
    // Its end in full takes the finding away again.
    processes.write("files", "start-api.json", &whole);
    running
        .until("the same as before", |set| *set == before)
        .await;
    if cfg!(target_os = "linux") {
        processes.write("files", "start-api.json", "");
        running
            .until("a finding", |set| !set.findings.is_empty())
            .await;
        sleeper.kill().await.unwrap();
        // Its file is still there, and its process is known.
        let gone = running.until("an end", |set| ended(set).len() == 1).await;
        assert!(ended(&gone)[0].1.ends_with("has ended"), "{gone:#?}");
        assert!(
            the_finding(&gone).message.contains("was left out"),
            "{gone:#?}"
        );
    }
    running.end().await;
}

#[tokio::test]
async fn what_cannot_be_used_is_named_and_the_rest_goes_on() {
    let own = std::process::id();
    let large = format!(
        "{}{}",
        process_file(own, "files", 15000),
        " ".repeat(64 * 1024)
    );
    let null = process_file(own, "files", 1).replace(r#""port": 1"#, r#""port": null"#);
    for (folder, text, says, scenario) in [
        ("files", large, "it is larger than 64 KiB", Some("files")),
        (
            "files",
            "{]".to_owned(),
            "it is not valid JSON",
            Some("files"),
        ),
        (
            "files",
            "[]".to_owned(),
            "it is not a JSON object",
            Some("files"),
        ),
        (
            "files",
            process_file(own, "files", 0),
            "its field `port` is 0",
            Some("files"),
        ),
        (
            "files",
            r#"{"port": 15000}"#.to_owned(),
            "its field `pid` is missing",
            Some("files"),
        ),
        ("files", null, "its `port` is null", Some("files")),
        (
            "no name",
            process_file(own, "files", 15000),
            "its name is not a scenario name",
            None,
        ),
    ] {
        let processes = Processes::new();
        processes.write(folder, "start-api.json", &text);
        processes.write_live("notes", 15001);
        // Neither a stray file nor a link that leads nowhere is an entry.
        fs::write(processes.path.join("README"), "notes").unwrap();
        symlink("/nowhere/at/all", processes.path.join("gone")).unwrap();
        let mut running = processes.start(NEVER);
        let set = running.until_ports(&[("notes", 15001)]).await;
        let finding = the_finding(&set);
        assert_eq!(finding.code, FindingCode::EntryIgnored, "{says}");
        assert_eq!(
            finding
                .scenario
                .as_ref()
                .map(callsheet::model::ScenarioName::as_str),
            scenario,
            "{says}"
        );
        assert!(finding.message.contains(says), "{says}: {finding:?}");
        assert!(
            finding
                .message
                .contains(&*processes.path.join(folder).to_string_lossy()),
            "{says}: {finding:?}"
        );
        assert!(finding.hint.is_some(), "{says}");
        running.end().await;
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_a_finding_and_keeps_its_last_address() {
    let processes = Processes::new();
    processes.write_live("files", 15000);
    let mut running = processes.start(NEVER);
    let before = running.until_ports(&[("files", 15000)]).await;
    let file = processes.path.join("files/start-api.json");
    // A pipe would make a reader wait, a link to itself cannot be followed; neither depends on who
    // runs the test.
    fs::remove_file(&file).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&file)
            .status()
            .await
            .unwrap()
            .success()
    );
    let pipe = running
        .until("a pipe", |set| {
            set.findings
                .iter()
                .any(|f| f.message.contains("regular file"))
        })
        .await;
    assert_eq!(pipe.endpoints, before.endpoints);
    fs::remove_file(&file).unwrap();
    symlink(&file, &file).unwrap();
    let looped = running
        .until("a loop", |set| {
            set.findings
                .iter()
                .any(|f| f.message.contains("cannot be read"))
        })
        .await;
    assert_eq!(looped.endpoints, before.endpoints);
    running.end().await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_listed_keeps_the_last_whole_set() {
    let processes = Processes::new();
    processes.write_live("files", 15000);
    processes.write("notes", "api.json", "{");
    // A link takes the folder's place in one step, so that it is never simply gone; one to itself
    // can never be listed.
    let aside = processes.path.with_file_name("aside");
    fs::rename(&processes.path, &aside).unwrap();
    let point_at = |target: &Path| {
        let link = processes.path.with_file_name("link");
        symlink(target, &link).unwrap();
        fs::rename(&link, &processes.path).unwrap();
    };
    point_at(&aside);
    let mut running = processes.start(NEVER);
    let before = running.until_ports(&[("files", 15000)]).await;
    point_at(&processes.path);
    let failed = |set: &EndpointSet| {
        set.findings
            .iter()
            .any(|finding| finding.code == FindingCode::SourceFailed)
    };
    let set = running.until("a failed source", failed).await;
    assert!(set.initial_scan_done, "{set:#?}");
    assert_eq!(set.endpoints, before.endpoints, "{set:#?}");
    assert_eq!(set.findings.len(), 2, "{set:#?}");
    let finding = set
        .findings
        .iter()
        .find(|finding| finding.code == FindingCode::SourceFailed)
        .unwrap();
    assert!(
        finding
            .message
            .contains("cannot be listed, so what it held before stays"),
        "{finding:?}"
    );
    assert!(
        finding
            .hint
            .as_ref()
            .unwrap()
            .contains("discovery.vrooli.path"),
        "{finding:?}"
    );
    point_at(&aside);
    running
        .until("the same as before", |set| *set == before)
        .await;
    // The folder that the link leads to now is watched, not the one it led to before.
    processes.write_live("files", 15001);
    running.until_ports(&[("files", 15001)]).await;
    running.end().await;
}

/// Permissions do not bind the superuser, for whom this test shows only that nothing changes.
#[tokio::test]
async fn a_folder_without_permission_keeps_the_last_whole_set() {
    let processes = Processes::new();
    processes.write_live("files", 15000);
    let mut running = processes.start(NEVER);
    let before = running.until_ports(&[("files", 15000)]).await;
    let permit =
        |mode| fs::set_permissions(&processes.path, fs::Permissions::from_mode(mode)).unwrap();
    permit(0o000);
    if fs::read_dir(&processes.path).is_err() {
        let set = running
            .until("a finding", |set| !set.findings.is_empty())
            .await;
        assert!(set.initial_scan_done);
        assert_eq!(set.endpoints, before.endpoints);
        let finding = the_finding(&set);
        assert_eq!(finding.code, FindingCode::SourceFailed);
        assert!(
            finding
                .hint
                .as_ref()
                .unwrap()
                .contains("let the user that runs callsheet"),
            "{finding:?}"
        );
    }
    permit(0o700);
    running
        .until("the same as before", |set| *set == before)
        .await;
    processes.write_live("files", 15001);
    running.until_ports(&[("files", 15001)]).await;
    running.end().await;
}

#[tokio::test]
async fn a_folder_that_could_never_be_listed_says_nothing() {
    let processes = Processes::absent();
    let above = processes.path.parent().unwrap();
    fs::create_dir_all(above).unwrap();
    fs::write(&processes.path, "no folder").unwrap();
    let mut running = processes.start(NEVER);
    let set = running
        .until("a finding", |set| !set.findings.is_empty())
        .await;
    assert!(
        !set.initial_scan_done && set.endpoints.is_empty(),
        "{set:#?}"
    );
    assert_eq!(the_finding(&set).code, FindingCode::SourceFailed);
    fs::remove_file(&processes.path).unwrap();
    processes.write_live("files", 15000);
    let set = running.until_ports(&[("files", 15000)]).await;
    assert!(set.findings.is_empty(), "{set:#?}");
    running.end().await;
}

#[tokio::test]
async fn linked_folders_are_read_and_never_walked() {
    let processes = Processes::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let text = process_file(std::process::id(), "files", 15000);
    fs::write(elsewhere.path().join("start-api.json"), &text).unwrap();
    symlink(elsewhere.path(), processes.path.join("files")).unwrap();
    // Links that lead back up, to everything, and to themselves.
    symlink(&processes.path, processes.path.join("up")).unwrap();
    symlink("/", processes.path.join("root")).unwrap();
    symlink("loop", processes.path.join("loop")).unwrap();
    let mut running = processes.start(NEVER);
    let set = running.until_ports(&[("files", 15000)]).await;
    let finding = the_finding(&set);
    assert_eq!(finding.scenario.as_ref().unwrap().as_str(), "loop");
    assert!(finding.message.contains("cannot be read"), "{finding:?}");
    fs::write(
        elsewhere.path().join("start-api.json"),
        text.replace("15000", "15001"),
    )
    .unwrap();
    running.until_ports(&[("files", 15001)]).await;
    running.end().await;
}

#[tokio::test]
async fn no_more_folders_are_read_than_allowed() {
    let processes = Processes::new();
    for (name, port) in [
        ("a", 15000),
        ("b", 15001),
        ("c", 15002),
        ("d", 15003),
        ("e", 15004),
        ("f", 15005),
    ] {
        processes.write_live(name, port);
    }
    let mut running = Running::start(Box::new(processes.limited(NEVER, 2)));
    let set = running.until_ports(&[("a", 15000), ("b", 15001)]).await;
    let finding = the_finding(&set);
    assert!(
        finding
            .message
            .contains("the last 4 were not read: `c`, `d`, `e`, `...`"),
        "{finding:?}"
    );
    assert!(
        finding
            .hint
            .as_ref()
            .unwrap()
            .contains("discovery.vrooli.max_scenarios"),
        "{finding:?}"
    );
    fs::remove_dir_all(processes.path.join("a")).unwrap();
    running.until_ports(&[("b", 15001), ("c", 15002)]).await;
    running.end().await;
}

#[tokio::test]
async fn without_a_home_there_is_nothing_to_find() {
    let section = VrooliConfig {
        enabled: true,
        path: None,
        max_scenarios: 10,
        rescan_interval: OFTEN,
    };
    let mut running = Running::start(Box::new(VrooliFiles::new(section, Clock::system())));
    let set = running.until_ports(&[]).await;
    assert_empty!(set.findings);
    running.end().await;
}

#[tokio::test]
async fn a_relative_path_is_watched_too() {
    let processes = Processes::new();
    let relative = relative_to_here(&processes.path);
    let section = VrooliConfig {
        enabled: true,
        path: Some(relative),
        max_scenarios: 10,
        rescan_interval: NEVER,
    };
    let mut running = Running::start(Box::new(VrooliFiles::new(section, Clock::system())));
    running.until_ports(&[]).await;
    processes.write_live("files", 15000);
    running.until_ports(&[("files", 15000)]).await;
    running.end().await;
}

/// The scenarios whose processes have ended, and why they count as ended.
fn ended(set: &EndpointSet) -> Vec<(&str, &str)> {
    let endpoints = set.endpoints.iter();
    endpoints
        .filter_map(|(id, endpoint)| Some((&*id.0, endpoint.ended.as_deref()?)))
        .collect()
}

fn relative_to_here(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap();
    let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
    up.join(path.strip_prefix("/").unwrap())
}
