//! `callsheet check` of MCP servers: commands, files of clients and addresses.

use serde_json::{Value, json};

use crate::support::command::{Home, Ran, run};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
const FAULTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_faults.py");

fn check(home: &Home, args: &[&str]) -> Ran {
    let mut command = home.command(&[&["check"], args].concat());
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin");
    run(&mut command)
}

fn codes(checked: &Value) -> Vec<String> {
    let findings = checked["findings"].as_array().unwrap().iter();
    findings
        .map(|finding| {
            format!(
                "{} {}",
                finding["code"].as_str().unwrap(),
                finding["tool"].as_str().unwrap_or("-")
            )
        })
        .collect()
}

#[test]
fn a_program_gets_the_variables_that_it_needs() {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/mcp_server.py");
    let needs = r#"[ "$ACME_KEY" = zz ] || { echo ACME_KEY required >&2; exit 1; }; exec python3 "$0" legacy"#;
    let home = Home::new();
    let run = |given: &[&str]| {
        let mut words = vec!["check"];
        words.extend(given);
        words.extend(["--", "sh", "-c", needs, server]);
        let mut command = home.command(&words);
        command.env("PATH", std::env::var_os("PATH").unwrap());
        crate::support::command::run(command.env("ACME_KEY", "zz"))
    };
    let without = run(&[]).failed(1);
    assert!(without.contains("ACME_KEY required"), "{without}");
    for given in [["--env", "ACME_KEY=zz"], ["--env", "ACME_KEY"]] {
        let checked = run(&given);
        assert_eq!(checked.code, Some(0), "{given:?}: {checked:?}");
    }
    let missing = run(&["--env", "NOT_SET_ANYWHERE"]).failed(2);
    assert!(
        missing.contains("this shell has no such variable"),
        "{missing}"
    );
}

#[test]
fn faults_of_a_server_are_found_in_its_list_and_in_how_it_lists() {
    let ran = check(&Home::new(), &["--json", "--", "python3", FAULTS, "listed"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let checked: Value = serde_json::from_str(&ran.out).unwrap();
    let codes = codes(&checked);
    for expected in [
        "order-unstable -",
        "paging -",
        "list-changed-missing -",
        "hidden-characters hidden",
        "tool-undescribed silent",
        "schema-type silent",
        "required-unknown silent",
        "tool-quarantined header",
        "tool-name spaced name",
    ] {
        assert!(
            codes.iter().any(|code| code == expected),
            "{expected} is missing in {codes:?}"
        );
    }
    // What a tool returns is no parameter: nobody fills it in, and no vendor gets its schema.
    assert!(
        codes.iter().any(|code| code == "schema-type spaced name"),
        "{codes:?}"
    );
    for absent in [
        "parameter-undescribed spaced name",
        "items-missing spaced name",
    ] {
        assert!(
            !codes.iter().any(|code| code == absent),
            "{absent} is in {codes:?}"
        );
    }
    let silent = checked["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["code"] == "schema-type");
    assert_eq!(
        silent.unwrap()["pointer"],
        "/tools/1/inputSchema/properties/path/type",
        "as sent"
    );
}

#[test]
fn what_is_left_out_of_prompts_and_resources_is_named() {
    let ran = check(&Home::new(), &["--json", "--", "python3", FAULTS, "offers"]);
    let checked: Value = serde_json::from_str(&ran.out).unwrap();
    let left_out: Vec<&str> = checked["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["code"] == "offer-left-out")
        .map(|finding| finding["message"].as_str().unwrap())
        .collect();
    assert_eq!(left_out.len(), 2, "{ran:?}");
    assert!(
        left_out[0].contains("`prompts/list` failed"),
        "{left_out:?}"
    );
    assert!(
        left_out[1].contains("is beyond the first 200 of the list"),
        "{left_out:?}"
    );
}

#[test]
fn a_server_without_faults_passes() {
    let ran = check(&Home::new(), &["--json", "--", "python3", SERVER, "modern"]);
    let checked: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(checked["errors"], 0, "{ran:?}");
    assert_eq!(checked["tools"], 2, "{ran:?}");
}

#[test]
fn a_server_that_cannot_be_listed_says_why() {
    let home = Home::new();
    for (args, parts) in [
        (
            &["python3", FAULTS, "gone"][..],
            &["exit code 1", "the key of the service is missing"][..],
        ),
        (
            &["python3", FAULTS, "endless"],
            &["a cursor came for the second time"],
        ),
        (&["no-such-command"], &["`no-such-command` was not found"]),
    ] {
        let ran = check(&home, &[&["--"], args].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(
            parts.iter().all(|part| ran.err.contains(part)),
            "{args:?}: {ran:?}"
        );
    }
}

#[test]
fn every_server_of_a_client_file_is_checked_by_name() {
    let home = Home::new();
    let servers = json!({"mcpServers": {
        "good": {"command": "python3", "args": [SERVER, "modern"]},
        "bad": {"command": "python3", "args": [FAULTS, "gone"], "env": {"KEY": "topsecret-topsecret"}},
        "unset": {"command": "x", "env": {"A": "${NOT_SET_ANYWHERE}"}},
    }});
    home.write("mcp.json", &servers.to_string());
    let ran = check(&home, &["mcp.json", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let checked: Value = serde_json::from_str(&ran.out).unwrap();
    let of = |name: &str| {
        checked["servers"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["checked"] == name)
            .unwrap()
    };
    assert_eq!(of("good")["errors"], 0, "{}", of("good"));
    assert_eq!(codes(of("bad")), ["manifest-refused -"]);
    assert!(of("unset").to_string().contains("NOT_SET_ANYWHERE"));
    assert!(!ran.out.contains("topsecret-topsecret") && !ran.err.contains("topsecret-topsecret"));
    let table = check(&home, &["mcp.json"]).out;
    assert!(table.contains("good:") && table.contains("bad:"), "{table}");
}
