//! Many processes write one folder at once: nothing is lost, and nothing is there twice.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use callsheet::bundles::{
    BundleChange, BundleError, BundleSettings, BundleStore, Functions, ToolContent,
};
use callsheet::runtime::{Clock, Tasks};
use serde_json::{Value, json};

use crate::NET;

/// Says to a process of this program that it is a writer, of which folder and which.
const FOLDER: &str = "CALLSHEET_TEST_BUNDLES";
const NUMBER: &str = "CALLSHEET_TEST_WRITER";
/// Processes at once, tools that each stores alone, and tools that all want to store.
const WRITERS: usize = 40;
const OWN: usize = 3;
const SHARED: usize = 3;

fn store(folder: &str) -> BundleStore {
    let settings = BundleSettings {
        path: Some(folder.into()),
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

fn content(by: usize) -> ToolContent {
    let document =
        json!({"displayName": format!("by {by}"), "type": "go", "impl": {"goFunc": "a.B"}});
    ToolContent::parse(members(&document)).unwrap()
}

/// One of the processes; without the variables it is only an empty test.
#[tokio::test]
async fn one_writer() {
    let (Ok(folder), Ok(number)) = (std::env::var(FOLDER), std::env::var(NUMBER)) else {
        return;
    };
    let store = store(&folder);
    let number: usize = number.parse().unwrap();
    let about =
        BundleChange::parse(&members(&json!({"slug": "net", "displayName": "Net"}))).unwrap();
    let bundle: uuid::Uuid = NET.parse().unwrap();
    store.put_bundle(bundle, about).await.unwrap();
    let key = |slug: String| (bundle, slug.parse().unwrap(), "v1".parse().unwrap());
    for n in 0..OWN {
        store
            .put_tool(key(format!("own-{number}-{n}")), content(number))
            .await
            .unwrap();
    }
    let mut won = 0;
    for n in 0..SHARED {
        match store
            .put_tool(key(format!("shared-{n}")), content(number))
            .await
        {
            Ok(()) => won += 1,
            Err(BundleError::Conflict(..)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    std::fs::write(
        std::path::Path::new(&folder).join(format!("won-{number}")),
        won.to_string(),
    )
    .unwrap();
}

/// S1-43, S1-81: uniqueness holds among processes.
#[test]
fn many_processes_lose_and_repeat_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let writer = |number: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "processes::one_writer"]);
        command
            .env(FOLDER, &path)
            .env(NUMBER, number.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let writers: Vec<_> = (0..WRITERS).map(writer).collect();
    let mut won = 0;
    for writer in writers {
        let ended = writer.wait_with_output().unwrap();
        let text = String::from_utf8(ended.stdout).unwrap();
        assert!(ended.status.success(), "{text}");
    }
    for number in 0..WRITERS {
        let text = std::fs::read_to_string(folder.path().join(format!("won-{number}"))).unwrap();
        won += text.parse::<usize>().unwrap();
    }
    assert_eq!(won, SHARED, "each tool that all wanted was stored once");
    let store = store(&path);
    store.read_now();
    let set = store.set();
    assert!(set.findings.is_empty(), "{:?}", set.findings);
    let bundle = set.bundle(NET.parse().unwrap()).unwrap();
    assert!(bundle.findings.is_empty(), "{:?}", bundle.findings);
    let slugs: BTreeSet<&str> = bundle.tools.iter().map(|tool| tool.slug.as_str()).collect();
    assert_eq!(slugs.len(), WRITERS * OWN + SHARED);
    assert_eq!(bundle.tools.len(), WRITERS * OWN + SHARED);
    let ids: BTreeSet<_> = bundle.tools.iter().map(|tool| tool.id).collect();
    assert_eq!(ids.len(), bundle.tools.len(), "each has an id of its own");
    let names = std::fs::read_dir(folder.path().join(NET))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        !names
            .into_iter()
            .any(|name| name.to_string_lossy().starts_with('.')),
        "no half-written file is left"
    );
}

/// A store may have read the folder before another process changed it.
#[tokio::test]
async fn a_change_is_judged_by_what_is_in_the_folder_now() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let first = store(&path);
    let second = store(&path);
    let about =
        BundleChange::parse(&members(&json!({"slug": "net", "displayName": "Net"}))).unwrap();
    let bundle: uuid::Uuid = NET.parse().unwrap();
    first.put_bundle(bundle, about).await.unwrap();
    second.read_now();
    let key = || (bundle, "shared".parse().unwrap(), "v1".parse().unwrap());
    first.put_tool(key(), content(1)).await.unwrap();
    let refused = second.delete_bundle(bundle).await.unwrap_err();
    assert!(matches!(refused, BundleError::NotEmpty(..)), "{refused}");
    let third = store(&path);
    let refused = third.put_tool(key(), content(3)).await.unwrap_err();
    assert!(matches!(refused, BundleError::Conflict(..)), "{refused}");
}
