//! How MCP clients are configured to use callsheet: the entry that each of them takes, and the file
//! where it keeps its entries. Reads and writes no file.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// An MCP client whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownClient {
    /// Claude Desktop.
    Claude,
    /// Claude Code.
    ClaudeCode,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Windsurf.
    Windsurf,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    OpenCode,
    /// Zed.
    Zed,
    /// MCP Inspector, which keeps no entries.
    Inspector,
}

/// How a client reaches callsheet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientConnection {
    /// It starts this program with these arguments.
    Command {
        /// The path of the program, or its name.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It sends requests to this address.
    Address(String),
}

/// What is written into the configuration of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientSnippet {
    /// A member of a JSON document: the key of the table with all servers, and the entry in it.
    Json(&'static str, Value),
    /// A table of a TOML document.
    Toml(&'static str, Value),
    /// A command line; nothing is written.
    Shell(String),
}

impl KnownClient {
    /// Every client, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Claude,
        Self::ClaudeCode,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::Gemini,
        Self::OpenCode,
        Self::Zed,
        Self::Inspector,
    ];

    /// Its name on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudeCode => "claude-code",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Zed => "zed",
            Self::Inspector => "inspector",
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Desktop",
            Self::ClaudeCode => "Claude Code",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "opencode",
            Self::Zed => "Zed",
            Self::Inspector => "MCP Inspector",
        }
    }

    /// Where its file may be below the home folder, the usual place of this system first.
    fn places(self) -> &'static [&'static str] {
        match self {
            Self::Claude if cfg!(target_os = "macos") => {
                &["Library/Application Support/Claude/claude_desktop_config.json"]
            }
            Self::Claude => &[".config/Claude/claude_desktop_config.json"],
            Self::ClaudeCode => &[".claude.json"],
            Self::Cursor => &[".cursor/mcp.json"],
            Self::VsCode if cfg!(target_os = "macos") => {
                &["Library/Application Support/Code/User/mcp.json"]
            }
            Self::VsCode => &[".config/Code/User/mcp.json"],
            Self::Windsurf => &[".codeium/windsurf/mcp_config.json"],
            Self::Codex => &[".codex/config.toml"],
            Self::Gemini => &[".gemini/settings.json"],
            Self::OpenCode => &[".config/opencode/opencode.json"],
            Self::Zed => &[".config/zed/settings.json"],
            Self::Inspector => &[],
        }
    }

    /// The file where it keeps its entries for this user. `None` if it keeps none.
    pub fn file(self, home: &Path) -> Option<PathBuf> {
        self.places().first().map(|below| home.join(below))
    }

    /// The entry that gives the client callsheet's tools.
    pub fn snippet(self, connection: &ClientConnection) -> ClientSnippet {
        match (self, connection) {
            (Self::Inspector, ClientConnection::Address(url)) => ClientSnippet::Shell(format!(
                "npx @modelcontextprotocol/inspector --cli {url} --transport http --method tools/list"
            )),
            (Self::Inspector, ClientConnection::Command { program, args }) => {
                ClientSnippet::Shell(format!(
                    "npx @modelcontextprotocol/inspector --cli {program} {} --method tools/list",
                    args.join(" ")
                ))
            }
            (Self::Codex, ClientConnection::Address(url)) => {
                ClientSnippet::Toml("mcp_servers", json!({"url": url}))
            }
            (Self::Codex, ClientConnection::Command { program, args }) => {
                ClientSnippet::Toml("mcp_servers", json!({"command": program, "args": args}))
            }
            (Self::OpenCode, ClientConnection::Command { program, args }) => {
                let words: Vec<&String> = std::iter::once(program).chain(args).collect();
                ClientSnippet::Json(
                    self.key(),
                    json!({"type": "local", "command": words, "enabled": true}),
                )
            }
            (Self::Zed, ClientConnection::Command { program, args }) => ClientSnippet::Json(
                self.key(),
                json!({"source": "custom", "command": program, "args": args}),
            ),
            (_, ClientConnection::Command { program, args }) => {
                ClientSnippet::Json(self.key(), json!({"command": program, "args": args}))
            }
            (_, ClientConnection::Address(url)) => {
                ClientSnippet::Json(self.key(), self.address_entry(url))
            }
        }
    }

    /// Whether it takes an address in its file.
    pub fn takes_address(self) -> bool {
        self != Self::Claude
    }

    fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::OpenCode => "mcp",
            Self::Zed => "context_servers",
            _ => "mcpServers",
        }
    }

    fn address_entry(self, url: &str) -> Value {
        match self {
            Self::Cursor | Self::Zed => json!({"url": url}),
            Self::OpenCode => json!({"type": "remote", "url": url, "enabled": true}),
            Self::Windsurf => json!({"serverUrl": url}),
            Self::Gemini => json!({"httpUrl": url}),
            _ => json!({"type": "http", "url": url}),
        }
    }
}

impl ClientSnippet {
    /// The text that a person pastes, with callsheet's entry under `name`.
    pub fn text(&self, name: &str) -> String {
        match self {
            Self::Json(key, entry) => {
                let servers = Map::from_iter([(name.to_owned(), entry.clone())]);
                let document = Map::from_iter([((*key).to_owned(), Value::Object(servers))]);
                serde_json::to_string_pretty(&document).unwrap_or_default()
            }
            Self::Toml(key, entry) => {
                let members = entry.as_object().into_iter().flatten();
                let lines =
                    members.map(|(member, value)| format!("{member} = {}\n", in_toml(value)));
                format!("[{key}.{name}]\n{}", lines.collect::<String>())
                    .trim_end()
                    .to_owned()
            }
            Self::Shell(line) => line.clone(),
        }
    }
}

/// A text or a list of texts as TOML writes it.
fn in_toml(value: &Value) -> String {
    toml::Value::try_from(value)
        .map(|value| value.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_gets_what_its_file_takes() {
        let command = ClientConnection::Command {
            program: "/bin/callsheet".into(),
            args: vec!["mcp".into()],
        };
        let address = ClientConnection::Address("http://127.0.0.1:7400/mcp".into());
        for (client, connection, parts) in [
            (
                KnownClient::Claude,
                &command,
                &["\"mcpServers\"", "\"command\": \"/bin/callsheet\""][..],
            ),
            (
                KnownClient::VsCode,
                &address,
                &["\"servers\"", "\"type\": \"http\""],
            ),
            (
                KnownClient::Windsurf,
                &address,
                &["\"serverUrl\": \"http://127.0.0.1:7400/mcp\""],
            ),
            (KnownClient::Gemini, &address, &["\"httpUrl\""]),
            (
                KnownClient::Codex,
                &command,
                &[
                    "[mcp_servers.callsheet]",
                    "command = \"/bin/callsheet\"",
                    "args = [\"mcp\"]",
                ],
            ),
            (
                KnownClient::OpenCode,
                &command,
                &["\"mcp\"", "\"type\": \"local\"", "\"/bin/callsheet\",\n"],
            ),
            (KnownClient::OpenCode, &address, &["\"type\": \"remote\""]),
            (
                KnownClient::Zed,
                &command,
                &["\"context_servers\"", "\"command\": \"/bin/callsheet\""],
            ),
            (
                KnownClient::Inspector,
                &address,
                &["--cli http://127.0.0.1:7400/mcp --transport http"],
            ),
        ] {
            let text = client.snippet(connection).text("callsheet");
            assert!(
                parts.iter().all(|part| text.contains(part)),
                "{client:?}: {text}"
            );
        }
    }

    #[test]
    fn what_is_pasted_is_read_by_import_as_callsheet_itself() {
        use crate::config::client_files::{
            ClientServers, LeftOutReason, Variables, read_client_file,
        };
        let command = ClientConnection::Command {
            program: "/bin/callsheet".into(),
            args: vec!["mcp".into()],
        };
        for client in KnownClient::ALL {
            let Some(file) = client.file(Path::new("/home/ada")) else {
                continue;
            };
            let text = client.snippet(&command).text("callsheet");
            let none = |_: &str| None;
            let entries = read_client_file(&text, &file, &Variables::new(&none)).unwrap();
            let mut servers = ClientServers::default();
            servers.add(entries, &file);
            assert_eq!(servers.left_out[0].why, LeftOutReason::Itself, "{client:?}");
        }
    }
}
