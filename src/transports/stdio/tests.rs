//! Child processes as their users see them, with small scripts.

use std::time::Duration;

use super::*;
use crate::model::{Secret, StdioTarget};
use crate::runtime::Clock;

/// More than any of these tests should wait.
const PATIENCE: Duration = Duration::from_secs(30);

fn script(text: &str) -> StdioTarget {
    StdioTarget::new("/bin/sh").with_args(["-c", text])
}

fn start(target: &StdioTarget) -> (ChildProcess, mpsc::Receiver<ChildLine>, Arc<Children>) {
    let children = Children::new(Clock::system());
    let mut child = children.start(target).unwrap();
    let lines = child.lines();
    (child, lines, children)
}

async fn soon<T>(wanted: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wanted).await.expect("it came in time")
}

fn text(line: &str) -> ChildLine {
    ChildLine::Text(line.to_owned())
}

#[tokio::test]
async fn lines_go_in_and_come_out() {
    let (mut child, mut lines, children) = start(&StdioTarget::new("cat"));
    for line in ["{\"id\":1}", "zwei \u{1f600}"] {
        soon(child.send(line)).await.unwrap();
        assert_eq!(soon(lines.recv()).await, Some(text(line)));
    }
    assert_eq!(child.send("a\nb").await.unwrap_err().kind(), "broken");
    assert!(soon(child.lines().recv()).await.is_none(), "they are given once");
    let ended = child.ended();
    drop(child);
    assert_eq!(soon(ended).await, "the process was stopped");
    assert_eq!(soon(lines.recv()).await, None);
    assert_eq!(soon(children.close()).await, crate::runtime::tasks::Finish::Clean);
}

#[tokio::test]
async fn a_process_that_ends_says_how() {
    let (child, mut lines, _children) = start(&script("echo out; echo one >&2; echo two >&2; exit 3"));
    let how = soon(child.ended()).await;
    assert_eq!(how, "the process ended with exit code 3; its last lines on stderr: one | two");
    assert_eq!((soon(lines.recv()).await, soon(lines.recv()).await), (Some(text("out")), None));
    let error = soon(child.send("x")).await.unwrap_err();
    assert_eq!((error.kind(), error.to_string().contains("exit code 3")), ("ended", true), "{error}");

    let (child, ..) = start(&script("kill -9 $$"));
    assert_eq!(soon(child.ended()).await, "the process ended by signal: 9 (SIGKILL)");
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let children = Children::new(Clock::system());
    let error = |target: StdioTarget| children.start(&target).unwrap_err();
    assert_eq!(error(StdioTarget::new("no-such-command")).kind(), "command-not-found");
    let refused = error(StdioTarget::new("/etc/passwd"));
    assert_eq!(
        (refused.kind(), refused.to_string()),
        ("not-started", "`/etc/passwd` cannot be started: it may not be executed".to_owned())
    );
    let homeless = error(StdioTarget::new("cat").with_cwd(Some("/nowhere".into())));
    assert!(homeless.to_string().contains("/nowhere"), "{homeless}");
}

#[tokio::test]
async fn a_child_gets_few_variables_and_its_own() {
    let target = StdioTarget::new("env").with_env([("TOKEN", Secret::new("hush")), ("HOME", Secret::new("/h"))]);
    let (_child, mut lines, _children) = start(&target.with_cwd(Some("/".into())));
    let mut names = Vec::new();
    while let Some(ChildLine::Text(line)) = soon(lines.recv()).await {
        let (name, value) = line.split_once('=').unwrap_or((&line, ""));
        match name {
            "TOKEN" => assert_eq!(value, "hush"),
            "HOME" => assert_eq!(value, "/h"),
            _ => {}
        }
        names.push(name.to_owned());
    }
    assert!(names.contains(&"TOKEN".to_owned()) && names.contains(&"PATH".to_owned()), "{names:?}");
    // Cargo sets this one for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !names.contains(&"CARGO_MANIFEST_DIR".to_owned()));
}
