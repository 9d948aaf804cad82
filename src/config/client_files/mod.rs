//! The files in which MCP clients keep their servers (`mcpServers` and the like), read as entries
//! that can become scenarios.
//!
//! Every spelling of the common clients is read: both top keys, comments, trailing commas,
//! variables, aliases of types, and the TOML of Codex. What has no meaning here is reported, and an
//! entry that cannot be used says why. Nothing is run, contacted or written.

mod connect;
mod entry;
mod servers;
mod variables;

use std::path::Path;

use serde_json::{Map, Value};

pub use connect::{ClientConnection, ClientSnippet, KnownClient};
pub use entry::{ClientEntry, EntryTarget};
pub use servers::{ClientServer, ClientServers, LeftOutEntry, LeftOutReason, MAX_CLIENT_SERVERS};
pub(crate) use servers::{is_own_address, scenario_name};
pub use variables::Variables;

/// The largest file that is read, in bytes.
pub const MAX_CLIENT_FILE: u64 = 16 * 1024 * 1024;
/// The top keys under which clients keep their servers.
const TOP_KEYS: [&str; 5] = [
    "mcpServers",
    "servers",
    "mcp_servers",
    "mcp",
    "context_servers",
];

/// The top key under which a client keeps what belongs to one project each, by its folder.
const PROJECTS: &str = "projects";
/// The servers of one of them.
const OF_PROJECT: &str = "mcpServers";
/// The file of a project from which relative paths of such servers count.
const PROJECT_FILE: &str = ".mcp.json";

/// One entry, or the reason why it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadEntry {
    /// The name of the entry, as it is written.
    pub name: String,
    /// The entry, or a sentence that says why there is none.
    pub entry: Result<ClientEntry, String>,
}

/// Reads one table of servers that stands in another document, such as `mcpServers` of callsheet's
/// own configuration. `path` is the file that it stands in.
pub fn read_servers(
    servers: &Map<String, Value>,
    path: &Path,
    variables: &Variables<'_>,
) -> Vec<ReadEntry> {
    let entries = servers.iter().map(|(name, written)| ReadEntry {
        name: name.clone(),
        entry: entry::read(written, path, variables),
    });
    entries.collect()
}

/// Reads the entries of a client's file. `path` is where relative paths and `${workspaceFolder}`
/// count from, and whether it is TOML or JSON.
///
/// # Errors
/// A sentence: the file cannot be read as JSON or TOML, or has no servers.
pub fn read_client_file(
    text: &str,
    path: &Path,
    variables: &Variables<'_>,
) -> Result<Vec<ReadEntry>, String> {
    let document = parse(text, path)?;
    let of_projects = read_projects(&document, variables);
    let Some(servers) = servers(&document) else {
        if !of_projects.is_empty() {
            return Ok(of_projects);
        }
        return Err(format!(
            "it has no servers under {}",
            TOP_KEYS.map(|key| format!("`{key}`")).join(", ")
        ));
    };
    let mut entries = read_servers(servers, path, variables);
    entries.extend(of_projects);
    Ok(entries)
}

/// Reads the servers that a client keeps for one project each. Those of other projects than the one
/// that is meant are left out: their client starts them in that project only.
fn read_projects(document: &Value, variables: &Variables<'_>) -> Vec<ReadEntry> {
    let mut entries = Vec::new();
    for (folder, project) in document
        .get(PROJECTS)
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let Some(servers) = project.get(OF_PROJECT).and_then(Value::as_object) else {
            continue;
        };
        if variables.is_in(folder) {
            entries.extend(read_servers(
                servers,
                &Path::new(folder).join(PROJECT_FILE),
                variables,
            ));
            continue;
        }
        let why = format!(
            "it belongs to the project {folder}; `callsheet import` in that folder takes it"
        );
        entries.extend(servers.keys().map(|name| ReadEntry {
            name: name.clone(),
            entry: Err(why.clone()),
        }));
    }
    entries
}

fn parse(text: &str, path: &Path) -> Result<Value, String> {
    if path
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        return toml::from_str(text)
            .map_err(|error| format!("it is not TOML: {}", error.message()));
    }
    let parsed =
        jsonc_parser::parse_to_serde_value::<Value>(text, &jsonc_parser::ParseOptions::default());
    parsed.map_err(|error| format!("it is not JSON: {error}"))
}

/// The table of servers. One without a top key is a table of entries itself.
fn servers(document: &Value) -> Option<&Map<String, Value>> {
    let found = TOP_KEYS
        .iter()
        .find_map(|key| document.get(key)?.as_object());
    // Some files nest them: `{"mcp": {"servers": {...}}}`.
    match found {
        Some(table) => match table.get("servers").and_then(Value::as_object) {
            Some(inner) if table.len() <= 2 => Some(inner),
            _ => Some(table),
        },
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<ReadEntry> {
        let variable = |name: &str| match name {
            "TOKEN" => Some("topsecret".to_owned()),
            "INPUT_API_KEY" => Some("typed".to_owned()),
            "HOME" => Some("/home/ada".to_owned()),
            _ => None,
        };
        read_client_file(
            text,
            Path::new("/home/ada/work/.cursor/mcp.json"),
            &Variables::new(&variable),
        )
        .unwrap()
    }

    fn one(entry: &str) -> Result<ClientEntry, String> {
        read(&format!("{{\"mcpServers\": {{\"x\": {entry}}}}}"))
            .remove(0)
            .entry
    }

    #[test]
    fn comments_trailing_commas_and_both_top_keys_are_read() {
        let text = "{ // of a person\n \"servers\": { \"a\": { \"command\": \"npx\", \"args\": [\"-y\", \"p\",], }, }, /* end */ }";
        let entries = read(text);
        assert_eq!(entries.len(), 1);
        let entry = entries[0].entry.clone().unwrap();
        assert_eq!(
            entry.target,
            EntryTarget::Program {
                command: "npx".into(),
                args: vec!["-y".into(), "p".into()],
                env: Vec::new(),
                cwd: None
            }
        );
        let other =
            read(r#"{"numStartups": 3, "mcpServers": {"b": {"url": "http://127.0.0.1:1/mcp"}}}"#);
        assert!(matches!(
            other[0].entry.as_ref().unwrap().target,
            EntryTarget::Address { .. }
        ));
    }

    #[test]
    fn servers_of_the_present_project_are_read_and_those_of_others_are_named() {
        let text = r#"{"mcpServers": {"all": {"command": "a"}}, "projects": {
            "/home/ada/here": {"mcpServers": {"own": {"command": "./own.sh"}}, "history": []},
            "/home/ada/there": {"mcpServers": {"far": {"command": "b"}}}, "/home/ada/none": {}}}"#;
        let none = |_: &str| None;
        let file = Path::new("/home/ada/.claude.json");
        let variables = Variables::new(&none).in_project(Path::new("/home/ada/here"));
        let entries = read_client_file(text, file, &variables).unwrap();
        let named: Vec<_> = entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.entry.is_ok()))
            .collect();
        assert_eq!(named, [("all", true), ("own", true), ("far", false)]);
        let EntryTarget::Program { command, .. } = &entries[1].entry.as_ref().unwrap().target
        else {
            panic!()
        };
        assert_eq!(command, "/home/ada/here/./own.sh");
        assert!(
            entries[2]
                .entry
                .as_ref()
                .unwrap_err()
                .contains("the project /home/ada/there")
        );
        let alone =
            r#"{"projects": {"/home/ada/there": {"mcpServers": {"far": {"command": "b"}}}}}"#;
        assert_eq!(
            read_client_file(alone, file, &Variables::new(&none))
                .unwrap()
                .len(),
            1
        );
    }

    #[test]
    fn variables_are_expanded_and_an_unknown_one_stops_its_entry() {
        let entry = one(r#"{"command": "${userHome}/bin/x", "args": ["${workspaceFolder}", "${NONE:-none}"], "env": {"T": "${env:TOKEN}"}}"#).unwrap();
        let EntryTarget::Program {
            command, args, env, ..
        } = entry.target
        else {
            panic!("a program")
        };
        assert_eq!(command.as_str(), "/home/ada/bin/x");
        assert_eq!(args, vec!["/home/ada/work".to_owned(), "none".to_owned()]);
        assert_eq!(env, [("T".to_owned(), "topsecret".to_owned())]);
        let entry = one(r#"{"command": "x", "env": {"T": "${input:api-key}"}}"#).unwrap();
        let EntryTarget::Program { env, .. } = entry.target else {
            panic!("a program")
        };
        assert_eq!(env, [("T".to_owned(), "typed".to_owned())]);
        for text in [
            r#"{"command": "x", "env": {"T": "${NONE}"}}"#,
            r#"{"url": "http://h/", "headers": {"A": "${input:key}"}}"#,
        ] {
            let why = one(text).unwrap_err();
            assert!(
                why.contains("${NONE}") || why.contains("${input:key}"),
                "{why}"
            );
        }
    }

    #[test]
    fn the_spellings_of_the_clients_mean_the_same() {
        for (entry, is_program) in [
            (
                r#"{"type": "local", "command": ["npx", "p"], "environment": {"A": "1"}}"#,
                true,
            ),
            (
                r#"{"type": "streamable-http", "url": "https://h.example/mcp"}"#,
                false,
            ),
            (r#"{"serverUrl": "https://h.example/mcp"}"#, false),
            (
                r#"{"httpUrl": "https://h.example/mcp", "headers": {"X-Key": "1"}}"#,
                false,
            ),
            (r#"{"type": "sse", "url": "https://h.example/sse"}"#, false),
        ] {
            let read = one(entry).unwrap_or_else(|why| panic!("{entry}: {why}"));
            assert_eq!(
                matches!(read.target, EntryTarget::Program { .. }),
                is_program,
                "{entry}"
            );
        }
        let codex = "[mcp_servers.docs]\ncommand = \"docs\"\nargs = []\n";
        let variable = |_: &str| None;
        let entries = read_client_file(
            codex,
            Path::new("/home/ada/.codex/config.toml"),
            &Variables::new(&variable),
        )
        .unwrap();
        assert_eq!(entries[0].name, "docs");
    }

    #[test]
    fn what_is_ignored_and_what_cannot_be_used_is_said() {
        let entry =
            one(r#"{"command": "x", "alwaysAllow": ["a"], "timeout": 60, "surprise": 1}"#).unwrap();
        assert_eq!(entry.ignored, ["alwaysAllow", "timeout", "surprise"]);
        assert!(
            one(r#"{"command": "x", "disabled": true}"#)
                .unwrap()
                .disabled
        );
        assert!(
            one(r#"{"command": "x", "enabled": false}"#)
                .unwrap()
                .disabled
        );
        assert!(
            !one(r#"{"command": "x", "enabled": true}"#)
                .unwrap()
                .disabled
        );
        for (entry, part) in [
            ("{}", "neither a `command` nor a `url`"),
            ("7", "is not an object"),
            (r#"{"command": 7}"#, "`command`"),
            (r#"{"command": "x", "args": "y"}"#, "`args`"),
            (r#"{"command": "x", "env": {"A": {}}}"#, "`env`"),
            (r#"{"type": "ws", "url": "ws://h/"}"#, "`ws`"),
            (r#"{"url": "not an address"}"#, "`url`"),
        ] {
            let why = one(entry).unwrap_err();
            assert!(why.contains(part), "{entry}: {why}");
        }
        let variable = |_: &str| None;
        let variables = Variables::new(&variable);
        for text in ["{", "[]", "{\"other\": 1}"] {
            assert!(
                read_client_file(text, Path::new("/x.json"), &variables).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn servers_are_found_one_level_deeper_beside_one_other_member() {
        let entries = read(r#"{"mcp": {"inputs": [], "servers": {"a": {"command": "x"}}}}"#);
        assert_eq!(
            entries
                .iter()
                .map(|entry| entry.name.as_str())
                .collect::<Vec<_>>(),
            ["a"]
        );
        let named_so = read(
            r#"{"mcp": {"servers": {"command": "x"}, "a": {"command": "x"}, "b": {"command": "x"}}}"#,
        );
        assert_eq!(
            named_so
                .iter()
                .map(|entry| entry.name.as_str())
                .collect::<Vec<_>>(),
            ["servers", "a", "b"]
        );
    }
}
