//! The audit log: a line for each call, in files that are rotated, and that no call depends on.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use callsheet::calls::WaitLimits;
use callsheet::config::CallsConfig;
use callsheet::runtime::{Clock, Tasks};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, answer, done, manifest, tool, tool_with};
use crate::support::house::{House, request};
use crate::support::scrape::Scrape;
use crate::support::serving::{Answer, ask};

const JSON: (&str, &str) = ("content-type", "application/json");
/// `printf '{"path":"hunter2"}' | sha256sum`.
const DIGEST: &str = "sha256:cb77c6b82fc3c7051120486e8c10d7fd79566fa51ac379f3d4248c6f0b024422";

struct Office {
    house: House,
    address: SocketAddr,
    callee: Callee,
    folder: TempDir,
}

impl Office {
    /// With an audit log, kept as `change` says.
    async fn of(change: impl FnOnce(&mut CallsConfig, &Path)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let any = json!({"type": "object", "properties": {}});
        let wipe = json!({"enabled_by_default": true, "requires_approval": true});
        let tools = [tool("read"), tool_with("wipe", &any, &wipe)];
        let callee = Callee::start(manifest("files", &tools), |ran| async move {
            match &ran.arguments["fail"] {
                Value::Null => done(&json!("RESULT")),
                error => answer(
                    200,
                    &json!({"success": false, "error": error, "code": "broken"}),
                ),
            }
        })
        .await;
        let path = folder.path().join("audit.jsonl");
        let house = House::with(&[("files", callee.url())], |config| {
            config.calls.audit = Some(path);
            change(&mut config.calls, folder.path());
        })
        .await;
        let address = house.serve().await;
        Self {
            house,
            address,
            callee,
            folder,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("audit.jsonl")
    }

    async fn call(&self, body: &str) -> Answer {
        ask(self.address, "POST", "/api/v1/tools/execute", &[JSON], body).await
    }

    async fn read(&self, text: &str) {
        let body = json!({"tool_name": "read", "arguments": {"text": text}});
        assert_eq!(self.call(&body.to_string()).await.status, 200);
    }

    /// Waits until so many lines have become of the calls in some way.
    async fn until(&self, outcome: &str, lines: u32) {
        let deadline = Clock::system().now() + PATIENCE;
        loop {
            let scrape = Scrape::parse(
                &ask(
                    self.address,
                    "GET",
                    "/metrics",
                    &[("accept", "text/plain")],
                    "",
                )
                .await,
            );
            let counted = scrape.value(&format!(
                "callsheet_audit_lines_total{{outcome=\"{outcome}\"}}"
            ));
            if counted >= f64::from(lines) {
                return;
            }
            assert!(
                Clock::system().now() < deadline,
                "{counted} lines {outcome}, not {lines}"
            );
        }
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'));
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn every_call_has_a_line_without_arguments_and_results() {
    let office = Office::of(|_, _| ()).await;
    let body =
        r#"{"tool_name":"read","arguments":{"path":"hunter2"},"chat_id":"7","user_id":"ada"}"#;
    assert_eq!(office.call(body).await.status, 200);
    office
        .call(r#"{"tool_name":"read","arguments":{"fail":"SECRET"}}"#)
        .await;
    assert_eq!(office.call(r#"{"tool_name":"reed"}"#).await.status, 404);
    let waiting = office.call(r#"{"tool_name":"wipe"}"#).await.json();
    let approval = waiting["approval_id"].as_str().unwrap();
    office
        .house
        .app
        .calls()
        .approve(approval, "a test", WaitLimits::within(PATIENCE))
        .await
        .unwrap();
    office.until("written", 5).await;

    let text = fs::read_to_string(office.path()).unwrap();
    let secrets = ["hunter2", "SECRET", "RESULT", "127.0.0.1"];
    assert!(
        secrets.iter().all(|secret| !text.contains(secret)),
        "{text}"
    );
    let lines = lines(&office.path());
    let mut first = lines[0].clone();
    let time: jiff::Timestamp = first["time"].take().as_str().unwrap().parse().unwrap();
    assert!(time <= Clock::system().wall());
    assert_eq!(first["id"].take().as_str().unwrap().len(), 36);
    assert!(first["duration_ms"].take().as_f64().unwrap() > 0.0);
    let expected = json!({
        "time": null, "id": null, "scenario": "files", "tool": "read", "name": "read", "chat": "7", "user": "ada",
        "outcome": "ok", "status": 200, "duration_ms": null, "attempts": 1, "arguments_digest": DIGEST,
    });
    assert_eq!(first, expected);
    let outcomes: Vec<_> = lines
        .iter()
        .map(|line| (line["outcome"].as_str().unwrap(), line["status"].clone()))
        .collect();
    let expected = [
        ("ok", 200),
        ("failed", 200),
        ("unknown_tool", 404),
        ("approval_required", 202),
        ("ok", 200),
    ];
    assert_eq!(
        outcomes,
        expected.map(|(outcome, status)| (outcome, json!(status)))
    );
    assert_eq!(lines[2]["name"], "reed");
    assert_eq!(lines[2].get("scenario"), None);
    // What waited and what ran then name the same yes, and are two lines.
    assert_eq!(lines[3]["approval"], json!(approval));
    assert_eq!(lines[4]["approval"], json!(approval));
    assert_ne!(lines[3]["id"], lines[4]["id"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            fs::metadata(office.path()).unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
    office.house.finish().await;
}

#[tokio::test]
async fn why_a_model_made_a_call_stands_in_its_line() {
    let office = Office::of(|_, _| ()).await;
    let arguments = json!({"_tool": "read", "_reasoningForCall": format!("they asked {}", "x".repeat(300)), "path": "a"});
    office
        .call(&json!({"tool_name": "read", "arguments": arguments}).to_string())
        .await;
    office.until("written", 1).await;
    let reasoning = lines(&office.path())[0]["reasoning"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        reasoning.starts_with("they asked xxx") && reasoning.chars().count() <= 201,
        "{reasoning}"
    );
    assert_eq!(office.callee.ran()[0].arguments, json!({"path": "a"}));
    // The same for the calls of a turn.
    let turn = json!({"calls": [{"_tool": "read", "_reasoningForCall": "still", "path": "b"}]});
    let target = "/api/v1/turns?format=calls";
    assert_eq!(
        ask(office.address, "POST", target, &[JSON], &turn.to_string())
            .await
            .status,
        200
    );
    office.until("written", 2).await;
    assert_eq!(lines(&office.path())[1]["reasoning"], "still");
    assert_eq!(office.callee.ran()[1].arguments, json!({"path": "b"}));
    office.house.finish().await;
}

#[tokio::test]
async fn arguments_stand_there_as_they_came_where_that_is_asked_for() {
    let office = Office::of(|calls, _| calls.audit_arguments = true).await;
    let body = "{\"tool_name\":\"read\",\"arguments\":{\"a\":\r\n 123456789012345678901234567890,\n\"b\":\"x\\ny\"}}";
    assert_eq!(office.call(body).await.status, 200);
    office.until("written", 1).await;
    let text = fs::read_to_string(office.path()).unwrap();
    assert!(text.contains("123456789012345678901234567890"), "{text}");
    assert_eq!(lines(&office.path())[0]["arguments"]["b"], "x\ny");
    assert_eq!(text.lines().count(), 1);
    // Taken out of the configuration while it runs.
    let off = CallsConfig {
        audit_arguments: false,
        audit: Some(office.path()),
        ..CallsConfig::default()
    };
    office.house.app.calls().adjust(off);
    office.read("again").await;
    office.until("written", 2).await;
    assert_eq!(lines(&office.path())[1].get("arguments"), None);
    office.house.app.calls().adjust(CallsConfig::default());
    office.read("unseen").await;
    assert_eq!(lines(&office.path()).len(), 2);
    office.house.finish().await;
}

#[tokio::test]
async fn files_are_rotated_by_size_and_only_so_many_are_kept() {
    let office = Office::of(|calls, _| (calls.audit_max_size, calls.audit_keep) = (700, 2)).await;
    for n in 1..=12 {
        office.read(&n.to_string()).await;
        office.until("written", n).await;
    }
    let mut names: Vec<_> = fs::read_dir(office.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"]);
    let mut times = Vec::new();
    for name in names.iter().rev() {
        let path = office.folder.path().join(name);
        assert!(fs::metadata(&path).unwrap().len() <= 700);
        times.extend(
            lines(&path)
                .iter()
                .map(|line| line["time"].as_str().unwrap().to_owned()),
        );
    }
    assert!(
        times.len() >= 4 && times.len() < 12 && times.is_sorted(),
        "{times:?}"
    );
    office.house.finish().await;
}

#[tokio::test]
async fn a_call_that_ends_while_the_daemon_stops_has_its_line() {
    let (open, gate) = watch::channel(false);
    let files = Callee::start(manifest("files", &[tool("read")]), move |ran| {
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|open| *open).await.unwrap();
            done(&ran.arguments)
        }
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let house = House::with(&[("files", files.url())], |config| {
        config.calls.audit = Some(path.clone());
    })
    .await;
    let calls = house.app.calls().clone();
    let calling =
        Tasks::new().spawn(async move { calls.execute(request("read", &json!({}))).await });
    files.until_ran(1).await;
    // Asked in this order: it stops before the scenario answers.
    let ((), _) = tokio::join!(biased; house.finish(), async { open.send_replace(true) });
    assert!(calling.await.unwrap().is_ok());
    assert_eq!(lines(&path).len(), 1);
}

#[tokio::test]
async fn a_file_that_is_moved_away_is_begun_anew_and_half_a_line_spoils_no_other() {
    let office =
        Office::of(|_, folder| fs::write(folder.join("audit.jsonl"), "{\"half").unwrap()).await;
    office.read("one").await;
    office.until("written", 1).await;
    let text = fs::read_to_string(office.path()).unwrap();
    let (half, whole) = text.split_once('\n').unwrap();
    assert_eq!(half, "{\"half");
    assert_eq!(
        serde_json::from_str::<Value>(whole).unwrap()["outcome"],
        "ok"
    );
    let moved = office.folder.path().join("moved");
    fs::rename(office.path(), &moved).unwrap();
    office.read("two").await;
    office.until("written", 2).await;
    assert_eq!(lines(&office.path()).len(), 1);
    assert_eq!(fs::read_to_string(&moved).unwrap(), text);
    office.house.finish().await;
}

#[tokio::test]
async fn no_call_fails_with_a_log_that_cannot_be_written() {
    let office =
        Office::of(|calls, folder| calls.audit = Some(folder.join("missing/audit.jsonl"))).await;
    office.read("one").await;
    office.read("two").await;
    office.until("failed", 2).await;
    assert_eq!(office.callee.ran().len(), 2);
    fs::create_dir(office.folder.path().join("missing")).unwrap();
    office.read("three").await;
    office.until("written", 1).await;
    assert_eq!(
        lines(&office.folder.path().join("missing/audit.jsonl")).len(),
        1,
        "no half lines of those before"
    );
    office.house.finish().await;
}

#[tokio::test]
#[cfg(unix)]
async fn no_call_waits_for_a_pipe_that_nobody_reads() {
    let office = Office::of(|calls, folder| {
        let pipe = folder.join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        calls.audit = Some(pipe);
    })
    .await;
    office.read("one").await;
    office.until("failed", 1).await;
    office.house.finish().await;
}
