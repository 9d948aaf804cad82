//! One marker stands in every secret of a daemon, and is searched in everything that a run wrote or
//! answered.

use std::fs;
use std::path::Path;

use crate::support::command::Home;
use crate::support::scripted::{Reply, Scripted};

const MARKER: &str = "m4rk3r";

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if let Ok(bytes) = fs::read(&path) {
            found.push((path.display().to_string(), bytes));
        }
    }
}

/// A scenario for each kind of credential and each place of a secret.
fn configuration(refuses: &Scripted, accepts: &Scripted) -> String {
    let auths = [
        format!("\"{MARKER}-text\""),
        format!("{{ bearer = \"{MARKER}-bearer\" }}"),
        "{ env = \"HIDDEN\" }".to_owned(),
        "{ file = \"token\" }".to_owned(),
        "{ file = \"table.toml\", key = \"a\" }".to_owned(),
        "{ command = [\"/bin/sh\", \"./print\"] }".to_owned(),
        "{ command = [\"/bin/sh\", \"./fail\"] }".to_owned(),
        "{ file = \"two-lines\" }".to_owned(),
        format!("{{ header = \"X-Key\", value = \"{MARKER}-header\" }}"),
        format!("{{ basic = {{ user = \"me\", password = \"{MARKER}-basic\" }} }}"),
        format!(
            "{{ oauth = {{ token_url = \"http://127.0.0.1:9/\", client_id = \"me\", client_secret = \"{MARKER}-oauth\" }} }}"
        ),
    ];
    let mut text =
        "discovery.vrooli.enabled = false\nrefresh.backoff_base = \"10ms\"\nrefresh.backoff_max = \"10ms\"\n"
            .to_owned();
    for (server, kind) in [(refuses, "refused"), (accepts, "taken")] {
        for (i, auth) in auths.iter().enumerate() {
            let url = server.below(&format!("{kind}{i}"));
            text += &entry(&format!("{kind}-{i}"), url.as_ref());
            text += &[
                "auth = ",
                auth.as_str(),
                "\nheaders = { X-Other = \"",
                MARKER,
                "-other\" }\n",
            ]
            .concat();
        }
        let url = server.below(&format!("{kind}-url")).to_string();
        text += &entry(
            &format!("{kind}-url"),
            &url.replace("http://", &format!("http://me:{MARKER}-url@")),
        );
    }
    let module = |name: &str| [name, " = \"", refuses.below(name).as_ref(), "\"\n"].concat();
    text += &["[modules]\n", &module("module"), &module("other-module")].concat();
    text += "[module_settings]\ntoken = { command = [\"/bin/sh\", \"./print\"] }\n";
    text += "tokens = { module = { file = \"token\" } }\n";
    text
}

fn entry(name: &str, url: &str) -> String {
    format!("[[scenarios]]\nname = \"{name}\"\nurl = \"{url}\"\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_in_anything_that_a_run_wrote() {
    let challenge =
        "WWW-Authenticate: Bearer error=\"invalid_token\", resource_metadata=\"https://h/m\"";
    let refuses = Scripted::saying(Reply::status("401 Unauthorized").header(challenge));
    let accepts = Scripted::saying(Reply::tools("files", &["read"]));
    let home = Home::with(&configuration(&refuses, &accepts));
    home.write("token", &format!("{MARKER}-file\n"));
    home.write("two-lines", &format!("{MARKER}-a\n{MARKER}-b\n"));
    home.write("table.toml", &format!("a = \"{MARKER}-table\"\n"));
    home.write(
        "print",
        &format!("echo {MARKER}-printed; echo {MARKER}-aside >&2\n"),
    );
    home.write(
        "fail",
        &format!("echo {MARKER}-printed; echo {MARKER}-aside >&2; exit 1\n"),
    );
    let with = |args: &[&str]| {
        let mut command = home.command(args);
        command
            .env("HIDDEN", format!("{MARKER}-variable"))
            .env("CALLSHEET_LOG", "trace");
        command
    };
    let mut daemon =
        crate::support::command::Running::start(with(&["serve"]), "callsheet listens on ");
    crate::support::command::until("the daemon is ready", || daemon.get("/readyz").0 == 200);
    let is_sent = |server: &Scripted| {
        server
            .seen()
            .iter()
            .any(|seen| seen.request.header("authorization").is_some())
    };
    assert!(
        is_sent(&refuses) && is_sent(&accepts),
        "the credentials were sent"
    );

    let mut written: Vec<(String, Vec<u8>)> = Vec::new();
    for target in [
        "/api/v1/scenarios",
        "/api/v1/scenarios/refused-0",
        "/api/v1/scenarios/taken-3",
        "/api/v1/findings",
        "/api/v1/tools",
        "/api/v1/preferences",
        "/dashboard/overview",
        "/dashboard/scenarios/refused-5",
        "/dashboard/scenarios/refused-6",
        "/dashboard/findings",
        "/dashboard/configuration",
        "/metrics",
        "/readyz",
        "/healthz",
    ] {
        let (status, body) = daemon.get(target);
        assert!(status < 500, "{target}: {status}");
        written.push((target.to_owned(), body));
    }
    let url = daemon.url.clone();
    for args in [
        &["config", "show"][..],
        &["config", "check"],
        &["doctor"],
        &["scenarios"],
        &["scenarios", "refused-6"],
    ] {
        let ran = crate::support::command::run(with(args).env("CALLSHEET_URL", &url));
        written.push((args.join(" "), [ran.out, ran.err].concat().into_bytes()));
    }
    daemon.signal("TERM");
    written.push(("the log".to_owned(), daemon.ended().1.into_bytes()));
    files(&home.path(".state"), &mut written);
    assert!(
        written.iter().any(|(name, _)| name.contains(".state")),
        "no file of state was looked at"
    );
    for (name, bytes) in &written {
        let text = String::from_utf8_lossy(bytes);
        let line = text.lines().find(|line| line.contains(MARKER));
        assert!(line.is_none(), "{name}: {}", line.unwrap_or_default());
    }
    let log = &written[written.len().min(19)].1;
    let findings = &written[3].1;
    assert!(!log.is_empty() && String::from_utf8_lossy(findings).contains("needs-authorization"));
}
