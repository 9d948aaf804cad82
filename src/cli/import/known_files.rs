//! Where the known MCP clients keep their servers. Files of a project folder are not among them:
//! they are read only when they are named.

use std::path::{Path, PathBuf};

/// The files below the home folder, with the name of the client.
const BELOW_HOME: [(&str, &str); 11] = [
    (
        "Claude Desktop",
        ".config/Claude/claude_desktop_config.json",
    ),
    (
        "Claude Desktop",
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    ("Claude Code", ".claude.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".config/Code/User/mcp.json"),
    ("VS Code", "Library/Application Support/Code/User/mcp.json"),
    ("Windsurf", ".codeium/windsurf/mcp_config.json"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("Codex", ".codex/config.toml"),
    ("opencode", ".config/opencode/opencode.json"),
    ("Zed", ".config/zed/settings.json"),
];

/// The files of known clients that exist.
pub(super) fn existing(home: &Path) -> Vec<PathBuf> {
    let files = BELOW_HOME.iter().map(|(_, path)| home.join(path));
    files.filter(|path| path.is_file()).collect()
}

/// The names of the known clients, each once.
pub(super) fn clients() -> String {
    let mut names: Vec<_> = BELOW_HOME.iter().map(|(name, _)| *name).collect();
    names.dedup();
    names.join(", ")
}
