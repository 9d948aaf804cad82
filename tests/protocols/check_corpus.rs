//! The defects that real scenarios are known to have are found in their real manifests, and nothing
//! else that matters.
//!
//! The manifests are not part of the project: `CALLSHEET_CORPUS` names their folder, else
//! `../shared/corpus` is looked at.

use std::path::{Path, PathBuf};

use callsheet::model::{AcceptedVersions, Severity};
use callsheet::protocols::tool_discovery::inspect;
use serde_json::Value;

/// Manifest, code and tool of every warning and error.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "agent-manager.gen1",
        "long-running-untracked",
        "spawn_coding_agent",
    ),
    (
        "browser-automation-studio",
        "async-tool-missing",
        "create_recording_session",
    ),
    (
        "browser-automation-studio",
        "long-running-untracked",
        "generate_workflow_from_recording",
    ),
    (
        "browser-automation-studio",
        "async-tool-missing",
        "ai_navigate",
    ),
    // Their answers hold the id of a run, which goes to the parameter for a deployment.
    ("scenario-to-cloud", "async-arguments", "execute_deployment"),
    ("scenario-to-cloud", "async-arguments", "execute_deployment"),
    ("scenario-to-cloud", "async-arguments", "start_deployment"),
    ("test-genie", "long-running-untracked", "run_scenario_tests"),
    ("test-genie", "long-running-untracked", "run_ui_smoke"),
];

fn corpus() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    std::env::var_os("CALLSHEET_CORPUS")
        .map_or_else(beside, PathBuf::from)
        .join("vrooli")
}

#[test]
fn known_defects_are_found_and_nothing_else() {
    let Ok(entries) = std::fs::read_dir(corpus()) else {
        return;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let body = std::fs::read(&path).unwrap();
        let document: Value = serde_json::from_slice(&body).unwrap();
        let manifest = path.file_stem().unwrap().to_str().unwrap().to_owned();
        for finding in inspect(&body, &AcceptedVersions::default()).findings {
            assert!(
                document
                    .pointer(finding.pointer.as_deref().unwrap())
                    .is_some(),
                "{manifest}: {finding:?}"
            );
            if finding.severity() > Severity::Info {
                found.push((
                    manifest.clone(),
                    finding.code.as_str(),
                    finding.tool.unwrap().to_string(),
                ));
            }
        }
    }
    let found: Vec<_> = found
        .iter()
        .map(|(manifest, code, tool)| (manifest.as_str(), *code, tool.as_str()))
        .collect();
    assert_eq!(found, KNOWN);
}
