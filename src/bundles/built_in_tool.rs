//! Which built-in tools there are, and what they are to callers.

use serde_json::{Value, json};

use super::BundleSettings;

/// A built-in tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltInTool {
    /// Reads a file as text.
    ReadFile,
    /// Lists a folder, by a pattern.
    ListFolder,
    /// Searches files by a regular expression.
    SearchFiles,
    /// Fetches an address as text.
    FetchUrl,
}

impl BuiltInTool {
    /// All of them.
    pub(super) const ALL: [Self; 4] = [
        Self::ReadFile,
        Self::ListFolder,
        Self::SearchFiles,
        Self::FetchUrl,
    ];

    /// Its slug, its name for people, what it does, and its parameters.
    pub(super) fn about(self) -> (&'static str, &'static str, &'static str, Value) {
        let path =
            json!({"type": "string", "description": "The path, below one of the shared folders"});
        match self {
            Self::ReadFile => (
                "read-file",
                "Read a file",
                "Reads a text file of the shared folders",
                json!({"type": "object", "properties": {"path": path}, "required": ["path"], "additionalProperties": false}),
            ),
            Self::ListFolder => (
                "list-folder",
                "List a folder",
                "Lists the files of a shared folder, those below it too where the pattern has `**`",
                json!({"type": "object", "properties": {
                    "path": path,
                    "pattern": {"type": "string", "description": "What the names below `path` look like: `*`, `?` and `**`; `*` by default", "maxLength": 200},
                }, "required": ["path"], "additionalProperties": false}),
            ),
            Self::SearchFiles => (
                "search-files",
                "Search files",
                "Searches the lines of text files below a shared folder by a regular expression",
                json!({"type": "object", "properties": {
                    "path": path,
                    "expression": {"type": "string", "description": "The regular expression", "maxLength": 1000},
                    "pattern": {"type": "string", "description": "Which files, as of list-folder; `**` by default", "maxLength": 200},
                }, "required": ["path", "expression"], "additionalProperties": false}),
            ),
            Self::FetchUrl => (
                "fetch-url",
                "Fetch an address",
                "Fetches an address of an allowed host as text",
                json!({"type": "object", "properties": {
                    "url": {"type": "string", "description": "An address of http or https", "maxLength": 8000},
                }, "required": ["url"], "additionalProperties": false}),
            ),
        }
    }

    /// Whether the settings give it something to reach.
    pub fn is_usable(self, settings: &BundleSettings) -> bool {
        match self {
            Self::ReadFile | Self::ListFolder | Self::SearchFiles => !settings.folders.is_empty(),
            Self::FetchUrl => !settings.allowed_hosts.is_empty(),
        }
    }
}
