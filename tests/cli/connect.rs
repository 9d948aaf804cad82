//! `callsheet connect`: the entry for each client, printed or written into the client's own file.

use std::fs;

use serde_json::Value;

use crate::support::command::Home;

#[test]
fn every_client_gets_an_entry_that_starts_this_program() {
    let home = Home::with("");
    for client in [
        "claude",
        "claude-code",
        "cursor",
        "vscode",
        "windsurf",
        "codex",
        "gemini",
        "inspector",
    ] {
        let shown = home.run(&["connect", client]).ok();
        assert!(
            shown.contains("callsheet") && shown.contains("mcp"),
            "{client}: {shown}"
        );
    }
    let shown: Value =
        serde_json::from_str(&home.run(&["connect", "vscode", "--profile", "work"]).ok()).unwrap();
    let entry = &shown["servers"]["callsheet-work"];
    assert_eq!(
        entry["args"],
        serde_json::json!(["mcp", "--profile", "work"])
    );
    assert!(
        fs::metadata(entry["command"].as_str().unwrap())
            .unwrap()
            .is_file(),
        "{entry}"
    );
    let http = home
        .run(&[
            "connect",
            "gemini",
            "--http",
            "--profile",
            "work",
            "--url",
            "http://127.0.0.1:7",
        ])
        .ok();
    let http: Value = serde_json::from_str(&http).unwrap();
    assert_eq!(
        http["mcpServers"]["callsheet-work"]["httpUrl"],
        "http://127.0.0.1:7/mcp/work"
    );
    let refused = home
        .run(&["connect", "claude", "--http", "--url", "http://127.0.0.1:7"])
        .failed(2);
    assert!(refused.contains("takes no address"), "{refused}");
    let refused = home.run(&["connect", "inspector", "--write"]).failed(2);
    assert!(refused.contains("keeps no entries"), "{refused}");
}

#[test]
fn an_entry_is_written_beside_what_is_there_and_what_was_there_is_kept() {
    let home = Home::with("");
    fs::create_dir_all(home.path(".cursor")).unwrap();
    let before = "{\n  // mine\n  \"mcpServers\": {\n    \"other\": { \"command\": \"x\" }, // stays\n  }\n}\n";
    home.write(".cursor/mcp.json", before);
    let written = home.run(&["connect", "cursor", "--write"]).ok();
    assert!(written.contains("mcp.json.backup"), "{written}");
    assert_eq!(
        fs::read_to_string(home.path(".cursor/mcp.json.backup")).unwrap(),
        before
    );
    let after = fs::read_to_string(home.path(".cursor/mcp.json")).unwrap();
    for part in [
        "// mine",
        "// stays",
        "\"other\": { \"command\": \"x\" }",
        "\"callsheet\"",
    ] {
        assert!(after.contains(part), "{part} is missing in {after}");
    }
    let again = home.run(&["connect", "cursor", "--write"]).ok();
    assert!(again.contains("has this entry already"), "{again}");
    let other = home
        .run(&["connect", "cursor", "--write", "--profile", "work"])
        .ok();
    assert!(other.contains("mcp.json.backup-2"), "{other}");
    assert_eq!(
        fs::read_to_string(home.path(".cursor/mcp.json.backup")).unwrap(),
        before,
        "the first copy stays"
    );
    assert_eq!(
        fs::read_to_string(home.path(".cursor/mcp.json.backup-2")).unwrap(),
        after
    );
    // What was written is read again, and is no server to be taken over.
    let import = home.run(&["import", ".cursor/mcp.json"]).ok();
    assert!(
        import.contains("callsheet itself") && import.contains("other"),
        "{import}"
    );

    let written = home.run(&["connect", "codex", "--write"]).ok();
    assert!(!written.contains("backup"), "there was no file: {written}");
    let codex: toml::Table = fs::read_to_string(home.path(".codex/config.toml"))
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(
        codex["mcp_servers"]["callsheet"]["args"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    home.write(".cursor/mcp.json", "{\"mcpServers\": 7}");
    let refused = home.run(&["connect", "cursor", "--write"]).failed(1);
    assert!(
        refused.contains("`mcpServers` is not an object"),
        "{refused}"
    );
    assert_eq!(
        fs::read_to_string(home.path(".cursor/mcp.json")).unwrap(),
        "{\"mcpServers\": 7}"
    );
}

#[test]
fn the_first_page_of_the_dashboard_names_the_running_program_by_its_whole_path() {
    let home = Home::with("");
    let daemon = home.serve(&[]);
    let (status, _, page) = daemon.send("GET /", "Accept: text/html\r\n", "");
    let page = String::from_utf8(page).unwrap();
    assert_eq!(status, 200, "{page}");
    let entry = page
        .split_once("id=\"connect-claude\">")
        .unwrap()
        .1
        .split_once("</code>")
        .unwrap()
        .0;
    assert!(
        entry.contains(env!("CARGO_BIN_EXE_callsheet")) && entry.contains("mcp"),
        "{entry}"
    );
    let cursor = page
        .split_once("id=\"connect-cursor\">")
        .unwrap()
        .1
        .split_once("</code>")
        .unwrap()
        .0;
    assert!(cursor.contains(&format!("{}/mcp", daemon.url)), "{cursor}");
    let printed = home.run(&["connect", "claude"]).ok();
    assert_eq!(entry.replace("&quot;", "\""), printed.trim_end());
}
