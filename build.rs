//! Puts the version that `callsheet --version` prints into the program: in an optimised build with
//! the commit that it was built from.
//!
//! A development build has no commit, so that a commit alone does not have every test program
//! linked again. Sources that come without their repository, as in a package, have none either,
//! unless `CALLSHEET_COMMIT` says it.

use std::env;
use std::path::Path;
use std::process::Command;

/// What the program is built from. Naming some file switches off cargo's own rule, which is to run
/// this after every change.
const SOURCES: [&str; 6] = [
    "build.rs",
    "Cargo.toml",
    "Cargo.lock",
    "config",
    "crates",
    "src",
];

fn main() {
    println!("cargo::rerun-if-env-changed=CALLSHEET_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let optimised = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let version = match commit(optimised) {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=CALLSHEET_VERSION={version}");
}

/// The commit, with `-modified` behind it when the sources were changed since.
fn commit(optimised: bool) -> Option<String> {
    if let Some(commit) = env::var("CALLSHEET_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty())
    {
        return Some(commit);
    }
    // A package may be unpacked inside of another repository, whose commit says nothing about it.
    if !optimised || !Path::new(".git").exists() {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) =
            git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists())
        {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for path in SOURCES {
        println!("cargo::rerun-if-changed={path}");
    }
    let changes = git(&[
        &["status", "--porcelain", "--untracked-files=no", "--"][..],
        &SOURCES,
    ]
    .concat())?;
    Some(if changes.is_empty() {
        commit
    } else {
        commit + "-modified"
    })
}

/// What a git command prints. `None` when it fails or there is no git.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
