//! A full disk and folders without permission cost the change that was tried, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use callsheet::bundles::{
    BundleChange, BundleError, BundleSettings, BundleStore, Functions, ToolContent,
};
use callsheet::runtime::{Clock, Tasks};
use serde_json::{Value, json};

use crate::archives::{by_hand, definition, everything, zip};
use crate::support::daemon::{Daemon, Home};
use crate::{NET, OTHER, config, expect, folder, http_tool, tool, with_tools};

/// Says to a process of this program that it has a folder to write to, and what it may expect.
const FOLDER: &str = "CALLSHEET_TEST_BUNDLE_DISK";

fn store(folder: &Path) -> BundleStore {
    let settings = BundleSettings {
        path: Some(folder.to_owned()),
        ..BundleSettings::default()
    };
    BundleStore::new(
        settings,
        Functions::default(),
        Clock::system(),
        Tasks::new(),
    )
}

fn members(document: &Value) -> serde_json::Map<String, Value> {
    document.as_object().unwrap().clone()
}

async fn put(store: &BundleStore, slug: &str, description: &str) -> Result<(), BundleError> {
    let document = json!({"displayName": slug, "description": description, "type": "go", "impl": {"goFunc": "a.B"}});
    let key = (
        NET.parse().unwrap(),
        slug.parse().unwrap(),
        "v1".parse().unwrap(),
    );
    store
        .put_tool(key, ToolContent::parse(members(&document)).unwrap())
        .await
}

/// A folder with the bundle `net` and the tool `before` in it.
async fn stored(folder: &Path) -> BundleStore {
    let store = store(folder);
    let about =
        BundleChange::parse(&members(&json!({"slug": "net", "displayName": "Net"}))).unwrap();
    store.put_bundle(NET.parse().unwrap(), about).await.unwrap();
    put(&store, "before", "").await.unwrap();
    store
}

/// Runs one test of this program as a process that a shell prepares.
fn child(test: &str, shell: &str, folder: &Path) {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{shell} \"$0\" \"$@\"")]);
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test])
        .env(FOLDER, folder);
    let ended = command
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stdout)
    );
}

fn slugs(folder: &Path) -> Vec<String> {
    let store = store(folder);
    store.read_now();
    let set = store.set();
    assert!(set.findings.is_empty(), "{:?}", set.findings);
    let bundle = set.bundle(NET.parse().unwrap()).unwrap();
    assert!(bundle.findings.is_empty(), "{:?}", bundle.findings);
    bundle
        .tools
        .iter()
        .map(|tool| tool.slug.to_string())
        .collect()
}

#[tokio::test]
async fn a_full_disk_refuses_a_tool_and_keeps_the_others() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = store(Path::new(&folder));
        store.read_now();
        let refused = put(&store, "large", &"x".repeat(9_000)).await.unwrap_err();
        assert!(
            matches!(
                refused,
                BundleError::Storage {
                    action: "write",
                    ..
                }
            ),
            "{refused}"
        );
        put(&store, "small", "").await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path()).await;
    // A limit on the size of files stands for the full disk; without its signal, writing fails as
    // on one.
    let shell = "trap '' XFSZ; ulimit -f 8; exec";
    child(
        "disk::a_full_disk_refuses_a_tool_and_keeps_the_others",
        shell,
        folder.path(),
    );
    assert_eq!(slugs(folder.path()), ["before", "small"]);
    let names = fs::read_dir(folder.path().join(NET))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        !names
            .into_iter()
            .any(|name| name.to_string_lossy().starts_with('.')),
        "no half-written file is left"
    );
}

/// Bytes that this process has read from files so far.
#[cfg(target_os = "linux")]
fn bytes_read() -> usize {
    let counters = fs::read_to_string("/proc/self/io").unwrap();
    counters
        .lines()
        .find_map(|line| line.strip_prefix("rchar: "))
        .unwrap()
        .parse()
        .unwrap()
}

/// A change of one file reads that file, and not all tools. A file that changed a moment ago is
/// read again, since its time may stand for a later change, too.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_that_are_unchanged_are_not_read_again() {
    const LARGE: usize = 100_000;
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let note = "x".repeat(LARGE);
        let file = |slug: &str, description: &str| {
            let mut document = by_hand(slug);
            (document["x-note"], document["description"]) = (json!(note), json!(description));
            document.to_string()
        };
        (0..20).for_each(|at| {
            fs::write(
                folder.join(NET).join(format!("{at}.json")),
                file(&format!("t{at}"), "old"),
            )
            .unwrap();
        });
        let read_by = |store: &BundleStore| {
            let before = bytes_read();
            store.read_now();
            bytes_read() - before
        };
        let young = store(folder);
        assert!(read_by(&young) > 20 * LARGE && read_by(&young) > 20 * LARGE);
        let (clock, hand) = Clock::with_hand();
        hand.step(jiff::SignedDuration::from_mins(1));
        let settings = BundleSettings {
            path: Some(folder.to_owned()),
            ..BundleSettings::default()
        };
        let store = BundleStore::new(settings, Functions::default(), clock, Tasks::new());
        assert!(read_by(&store) > 20 * LARGE);
        let unchanged = read_by(&store);
        assert!(unchanged < LARGE, "{unchanged}");
        let before = bytes_read();
        put(&store, "small", "").await.unwrap();
        let changed = bytes_read() - before;
        let tools = store.set().count();
        assert!(changed < LARGE, "{changed}");
        assert_eq!(tools, 22);
        // A change that leaves the size and the time as they were is a change.
        let path = folder.join(NET).join("7.json");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, file("t7", "new")).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
        let one = read_by(&store);
        assert!((LARGE..3 * LARGE).contains(&one), "{one}");
        let set = store.set();
        let tools = &set.bundle(NET.parse().unwrap()).unwrap().tools;
        let new: Vec<&str> = tools
            .iter()
            .filter(|tool| tool.description == "new")
            .map(|tool| tool.slug.as_str())
            .collect();
        assert_eq!(new, ["t7"]);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path()).await;
    child(
        "disk::files_that_are_unchanged_are_not_read_again",
        "exec",
        folder.path(),
    );
}

/// Runs a program bound by the permissions of files, which does not go without saying for root.
fn as_anyone() -> &'static str {
    let user = Command::new("id").arg("-u").output().unwrap();
    if user.stdout == b"0\n" {
        "exec setpriv --bounding-set -dac_override,-dac_read_search --inh-caps -dac_override,-dac_read_search"
    } else {
        "exec"
    }
}

#[tokio::test]
async fn a_folder_without_write_permission_refuses_changes_and_is_read_on() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let store = store(Path::new(&folder));
        store.read_now();
        let refused = put(&store, "new", "").await.unwrap_err();
        let text = refused.to_string();
        assert!(
            matches!(
                refused,
                BundleError::Storage {
                    kind: std::io::ErrorKind::PermissionDenied,
                    ..
                }
            ),
            "{text}"
        );
        assert!(text.contains(NET), "it names the place: {text}");
        let set = store.set();
        assert_eq!(set.bundle(NET.parse().unwrap()).unwrap().tools.len(), 1);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path()).await;
    let bundle = folder.path().join(NET);
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o555)).unwrap();
    child(
        "disk::a_folder_without_write_permission_refuses_changes_and_is_read_on",
        as_anyone(),
        folder.path(),
    );
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(slugs(folder.path()), ["before"]);
}

/// The archive of a bundle with a tool that does not fit on the disk.
fn too_large(id: &str) -> Vec<u8> {
    let mut large = by_hand("large");
    large["description"] = json!("x".repeat(9_000));
    let files = [
        ("bundle.json", definition(id)),
        ("a.json", by_hand("first")),
        ("b.json", large),
    ];
    zip(&files.map(|(name, document)| (name, document.to_string(), 0o100_644)))
}

#[tokio::test]
async fn an_import_onto_a_full_disk_leaves_no_part_of_it() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let store = store(folder);
        store.read_now();
        let before = everything(folder);
        for id in [NET, OTHER] {
            let refused = store.import(too_large(id).into(), false).await.unwrap_err();
            assert!(
                matches!(
                    refused,
                    BundleError::Storage {
                        action: "write",
                        ..
                    }
                ),
                "{refused}"
            );
            assert_eq!(everything(folder), before, "{id}");
        }
        put(&store, "small", "").await.unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    stored(folder.path()).await;
    let shell = "trap '' XFSZ; ulimit -f 8; exec";
    child(
        "disk::an_import_onto_a_full_disk_leaves_no_part_of_it",
        shell,
        folder.path(),
    );
    assert_eq!(slugs(folder.path()), ["before", "small"]);
    // Where there is room, the same archives come in.
    let store = store(folder.path());
    for id in [NET, OTHER] {
        assert_eq!(
            store
                .import(too_large(id).into(), false)
                .await
                .unwrap()
                .tools,
            2
        );
    }
    assert_eq!(slugs(folder.path()), ["before", "first", "large", "small"]);
}

/// What was being written when the machine stopped is no tool and no finding.
#[tokio::test]
async fn a_file_that_was_not_written_to_its_end_is_not_read() {
    let home = Home::new();
    let daemon = with_tools(
        config(&home),
        &[(
            "one",
            http_tool(&json!({"urlTemplate": "http://127.0.0.1:9/"})),
        )],
    )
    .await;
    daemon.until_tools(&["one_v1"]).await;
    daemon.stop().await;
    let rest = folder(&home).join(NET).join(".new-a1b2c3");
    fs::write(&rest, "{\"schemaVersion\": \"2025-0").unwrap();
    let daemon = Daemon::start(config(&home)).await;
    daemon.until_tools(&["one_v1"]).await;
    let found = daemon.json("/api/v1/findings?scenario=net").await;
    assert_eq!(found["findings"], json!([]), "{found}");
    expect(
        &daemon,
        204,
        "DELETE",
        &tool(NET, "one", "v1"),
        &Value::Null,
    )
    .await;
    daemon.stop().await;
}
