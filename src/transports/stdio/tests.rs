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
    tokio::time::timeout(PATIENCE, wanted)
        .await
        .expect("it came in time")
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
    assert!(
        soon(child.lines().recv()).await.is_none(),
        "they are given once"
    );
    let ended = child.ended();
    drop(child);
    assert_eq!(soon(ended).await.to_string(), "the process was stopped");
    assert_eq!(soon(lines.recv()).await, None);
    assert_eq!(
        soon(children.close()).await,
        crate::runtime::tasks::Finish::Clean
    );
}

#[tokio::test]
async fn a_process_that_ends_says_how() {
    let (child, mut lines, _children) =
        start(&script("echo out; echo one >&2; echo two >&2; exit 3"));
    let how = soon(child.ended()).await.to_string();
    assert_eq!(
        how,
        "the process ended with exit code 3; its last lines on stderr: one | two"
    );
    assert_eq!(soon(lines.recv()).await, Some(text("out")));
    assert_eq!(soon(lines.recv()).await, None);
    let error = soon(child.send("x")).await.unwrap_err();
    assert_eq!(error.kind(), "ended", "{error}");
    assert!(error.to_string().contains("exit code 3"), "{error}");

    let crash = "printf 'Traceback (most recent call last):\\n  File \"a.py\", line 1\\n    1/0\\n    ~^~\\nZeroDivisionError: division by zero\\n' >&2; exit 1";
    let (child, ..) = start(&script(crash));
    let how = soon(child.ended()).await.to_string();
    let error = "the process ended with exit code 1: ZeroDivisionError: division by zero; its last lines on stderr: ";
    assert!(how.starts_with(error) && !how.contains("~^~"), "{how}");

    let (child, ..) = start(&script("kill -9 $$"));
    assert_eq!(
        soon(child.ended()).await.to_string(),
        "the process ended by signal: 9 (SIGKILL)"
    );
}

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let children = Children::new(Clock::system());
    let error = |target: StdioTarget| children.start(&target).unwrap_err();
    assert_eq!(
        error(StdioTarget::new("no-such-command")).kind(),
        "command-not-found"
    );
    let refused = error(StdioTarget::new("/etc/passwd"));
    assert_eq!(refused.kind(), "not-started");
    assert_eq!(
        refused.to_string(),
        "`/etc/passwd` cannot be started: it may not be executed".to_owned()
    );
    let homeless = error(StdioTarget::new("cat").with_cwd(Some("/nowhere".into())));
    assert!(homeless.to_string().contains("/nowhere"), "{homeless}");
}

#[tokio::test]
async fn a_child_gets_few_variables_and_its_own() {
    let target = StdioTarget::new("env").with_env([
        ("TOKEN", Secret::new("topsecret")),
        ("HOME", Secret::new("/h")),
    ]);
    let (_child, mut lines, _children) = start(&target.with_cwd(Some("/".into())));
    let mut names = Vec::new();
    while let Some(ChildLine::Text(line)) = soon(lines.recv()).await {
        let (name, value) = line.split_once('=').unwrap_or((&line, ""));
        match name {
            "TOKEN" => assert_eq!(value, "topsecret"),
            "HOME" => assert_eq!(value, "/h"),
            _ => {}
        }
        names.push(name.to_owned());
    }
    assert!(
        names.contains(&"TOKEN".to_owned()) && names.contains(&"PATH".to_owned()),
        "{names:?}"
    );
    // Cargo sets this one for every test.
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some()
            && !names.contains(&"CARGO_MANIFEST_DIR".to_owned())
    );
}

/// Whether a process is there and has not ended; one that has ended may wait for its parent.
fn is_running(id: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    status
        .rsplit_once(')')
        .is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_comes() {
    let (_child, mut lines, _children) = start(&script(
        "head -c 17825792 /dev/zero | tr '\\0' x; echo; printf 'a\\377b\\n'; echo after",
    ));
    assert_eq!(soon(lines.recv()).await, Some(ChildLine::TooLong));
    assert_eq!(
        soon(lines.recv()).await,
        Some(ChildLine::NotText("a\u{fffd}b".to_owned()))
    );
    assert_eq!(soon(lines.recv()).await, Some(text("after")));
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_no_process_and_only_its_end_is_kept() {
    let flood = "yes \"$(printf '%0600d' 0)\" | head -c 5000000 >&2; echo >&2; echo \"the token is $TOKEN\" >&2; echo done";
    let (child, mut lines, _children) =
        start(&script(flood).with_env([("TOKEN", Secret::new("topsecret-topsecret"))]));
    assert_eq!(soon(lines.recv()).await, Some(text("done")));
    let how = soon(child.ended()).await.to_string();
    let tail = child.stderr().lines();
    assert_eq!(tail.len(), 100);
    assert_eq!(tail[0].len(), 500);
    assert_eq!(tail[99].as_str(), "the token is ***");
    assert!(how.ends_with(" | the token is ***"), "{how}");
}

#[tokio::test]
async fn what_a_process_leaves_of_its_group_is_ended() {
    let (child, mut lines, children) = start(&script("sleep 1000 & echo $!"));
    let Some(ChildLine::Text(left)) = soon(lines.recv()).await else {
        panic!("a process id expected")
    };
    assert_eq!(
        soon(child.ended()).await.to_string(),
        "the process ended with exit code 0"
    );
    // It holds the output open as long as it lives.
    assert_eq!(soon(lines.recv()).await, None);
    soon(children.close()).await;
    assert!(!is_running(&left));
}

#[tokio::test]
#[cfg(target_os = "linux")]
async fn what_a_process_leaves_in_a_session_of_its_own_is_ended() {
    let away =
        "setsid sleep 1000 > /dev/null 2>&1 & echo $!; sleep 1000 > /dev/null 2>&1 & echo $!";
    let (other, mut lines, others) = start(&script(&format!("{away}; exec cat")));
    let Some(ChildLine::Text(not_ours)) = soon(lines.recv()).await else {
        panic!("a process id expected")
    };
    let (child, mut lines, children) = start(&script(away));
    let Some(ChildLine::Text(left)) = soon(lines.recv()).await else {
        panic!("a process id expected")
    };
    assert_eq!(
        soon(child.ended()).await.to_string(),
        "the process ended with exit code 0"
    );
    soon(children.close()).await;
    assert!(!is_running(&left));
    assert!(
        is_running(&not_ours),
        "it belongs to a program that goes on"
    );
    drop(other);
    soon(others.close()).await;
    assert!(!is_running(&not_ours));
}

#[tokio::test]
async fn the_watchdog_is_informed_of_groups_that_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("lines");
    let keep = format!("cat > '{}'", file.display());
    let command = watchdog::WatchdogCommand {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), keep.into()],
    };
    let children = Children::watched(Clock::system(), Some(command));
    let mut child = children.start(&script("echo $$")).unwrap();
    let mut lines = child.lines();
    let Some(ChildLine::Text(id)) = soon(lines.recv()).await else {
        panic!("a process id expected")
    };
    soon(children.close()).await;
    // The number may be used for another process now, which a watchdog must not end.
    let known = || std::fs::read_to_string(&file).unwrap_or_default();
    let informed = async {
        while !known().ends_with(&format!("+{id}\n-{id}\n")) {
            tokio::task::yield_now().await;
        }
    };
    soon(informed).await;
}

#[tokio::test]
async fn a_group_that_ignores_every_request_to_end_is_killed() {
    let stubborn = "trap '' TERM; while :; do sleep 1; done";
    let (child, mut lines, children) = start(&script(&format!(
        "(echo $$; {stubborn}) & echo $!; {stubborn}"
    )));
    let mut ids = Vec::new();
    for _ in 0..2 {
        let Some(ChildLine::Text(id)) = soon(lines.recv()).await else {
            panic!("a process id expected")
        };
        ids.push(id);
    }
    assert!(ids.iter().all(|id| is_running(id)), "{ids:?}");
    drop(child);
    assert_eq!(
        soon(children.close()).await,
        crate::runtime::tasks::Finish::Clean
    );
    assert!(!ids.iter().any(|id| is_running(id)), "{ids:?}");
}

#[tokio::test]
async fn a_line_is_written_whole_also_when_its_sender_is_gone() {
    let (child, mut lines, _children) = start(&StdioTarget::new("cat"));
    // More than a pipe holds.
    let long = "x".repeat(1 << 20);
    let mut sending = Box::pin(child.send(&long));
    assert!(futures_util::poll!(sending.as_mut()).is_pending());
    drop(sending);
    soon(child.send("next")).await.unwrap();
    assert_eq!(soon(lines.recv()).await, Some(text(&long)));
    assert_eq!(soon(lines.recv()).await, Some(text("next")));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_does_not_read_its_input_is_stopped() {
    let (child, ..) = start(&script("trap '' TERM; while :; do sleep 1; done"));
    let line = "x".repeat(1 << 20);
    // Its own limit has to pass first, on a clock that may stand still.
    let error = tokio::time::timeout(2 * PATIENCE, child.send(&line))
        .await
        .expect("it is stopped")
        .unwrap_err();
    assert_eq!(error.kind(), "ended", "{error}");
    assert!(
        error
            .to_string()
            .contains("did not read its input for 30 s"),
        "{error}"
    );
    let how = child.ended().await.to_string();
    assert_eq!(how, "it did not read its input for 30 s, and was stopped");
    assert_eq!(child.send("x").await.unwrap_err().kind(), "ended");
}
