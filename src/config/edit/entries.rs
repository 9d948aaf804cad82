//! The entries of scenarios that a configuration file has: their names, and the lines of each.
//! Pure.

use std::collections::BTreeMap;
use std::ops::Range;

use toml_edit::{Document, Item, Key, Table};

use crate::config::client_files::scenario_name;

/// The tables that name scenarios by their keys.
const BY_KEY: [&str; 2] = ["modules", "mcpServers"];

/// The scenarios of a file.
#[derive(Debug, Default)]
pub(super) struct FileEntries {
    /// The bytes of each entry, by the scenario's name. The entries of a list in brackets have
    /// none: no program can take one out of it without touching its neighbours.
    pub(super) spans: BTreeMap<String, Vec<Range<usize>>>,
    /// Whether the file can get `[[scenarios]]`: it has no list in brackets of that name.
    pub(super) is_open: bool,
}

impl FileEntries {
    /// Reads the text of a file.
    ///
    /// # Errors
    /// A sentence: it is no TOML.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let document = Document::parse(text)
            .map_err(|error| format!("it is not TOML: {}", error.message().trim()))?;
        let mut entries = Self {
            spans: BTreeMap::new(),
            is_open: true,
        };
        match document.get("scenarios") {
            None => {}
            Some(Item::ArrayOfTables(tables)) => {
                for table in tables {
                    let mut spans = Vec::new();
                    spans_of(table, &mut spans);
                    entries.add(table.get("name").and_then(Item::as_str), spans);
                }
            }
            Some(other) => {
                entries.is_open = false;
                for value in other.as_array().into_iter().flatten() {
                    let name = value
                        .as_inline_table()
                        .and_then(|table| table.get("name")?.as_str());
                    entries.add(name, Vec::new());
                }
            }
        }
        for key in BY_KEY {
            let Some(table) = document.get(key).and_then(Item::as_table_like) else {
                continue;
            };
            for (name, item) in table.iter() {
                let name_in_list = scenario_name(name).map(|name| name.to_string());
                entries.add(name_in_list.as_deref(), keyed(table.key(name), item));
            }
        }
        Ok(entries)
    }

    fn add(&mut self, name: Option<&str>, spans: Vec<Range<usize>>) {
        if let Some(name) = name {
            self.spans.entry(name.to_owned()).or_insert(spans);
        }
    }
}

/// The text without these bytes: whole lines, the blank lines between them, and the comment
/// directly above the first of them, which is about the entry. A comment at the very beginning of a
/// file is about the file.
pub(super) fn without(text: &str, spans: &[Range<usize>]) -> String {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        lines.push((
            line,
            spans
                .iter()
                .any(|span| span.start < end && span.end > start),
        ));
        start = end;
    }
    let Some(first) = lines.iter().position(|(_, goes)| *goes) else {
        return text.to_owned();
    };
    let above = lines[..first]
        .iter()
        .rev()
        .take_while(|(line, _)| line.trim_start().starts_with('#'))
        .count();
    let begins = if above == first { first } else { first - above };
    let head: String = lines[..begins].iter().map(|(line, _)| *line).collect();
    let mut tail = String::new();
    let mut rest = &lines[first..];
    while let Some(((line, goes), below)) = rest.split_first() {
        rest = below;
        if !goes {
            tail.push_str(line);
            continue;
        }
        let blank = rest
            .iter()
            .take_while(|(line, _)| line.trim().is_empty())
            .count();
        if rest.get(blank).is_some_and(|(_, goes)| *goes) {
            rest = &rest[blank..];
        }
    }
    // Where an entry was, one blank line is enough.
    let is_after_blank = head.is_empty() || head.ends_with("\n\n");
    match tail.strip_prefix('\n') {
        Some(below) if is_after_blank => head + below,
        None if tail.is_empty() => head
            .strip_suffix('\n')
            .filter(|_| is_after_blank)
            .unwrap_or(&head)
            .to_owned(),
        _ => head + &tail,
    }
}

/// The bytes of a table from its header to its last value, and of the tables below it.
fn spans_of(table: &Table, spans: &mut Vec<Range<usize>>) {
    let mut own = Vec::from_iter(table.span());
    let mut below = Vec::new();
    for (name, item) in table {
        match item {
            Item::Table(inner) if !inner.is_dotted() => spans_of(inner, &mut below),
            Item::ArrayOfTables(tables) => {
                tables.iter().for_each(|inner| spans_of(inner, &mut below));
            }
            item => own.extend(keyed(table.key(name), item)),
        }
    }
    let start = own.iter().map(|span| span.start).min();
    let end = own.iter().map(|span| span.end).max();
    spans.extend(start.zip(end).map(|(start, end)| start..end));
    spans.append(&mut below);
}

/// The bytes of `key = value`, of `key.inner = value`, or of a table `[list.key]`.
fn keyed(key: Option<&Key>, item: &Item) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    match item {
        Item::Table(table) if !table.is_dotted() => spans_of(table, &mut spans),
        Item::Table(table) => {
            table
                .iter()
                .for_each(|(name, inner)| spans.extend(keyed(table.key(name), inner)));
        }
        other => {
            let key = key.and_then(Key::span);
            let value = other.span();
            let start = key.or(value.clone()).map(|span| span.start);
            spans.extend(
                start
                    .zip(value.map(|span| span.end))
                    .map(|(start, end)| start..end),
            );
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"# My tools.
server.listen = "127.0.0.1:0" # here

# The notes.
# They are mine.
[[scenarios]]
name = "notes"
# the old one
url = "http://127.0.0.1:1"

[scenarios.headers]
"X-Key" = "1"

# Letters.

[[scenarios]]
name = "mail" # of Ada
command = "mail"
args = [
  "a",
]

[refresh]
concurrency = 4

[modules]
dice = "http://127.0.0.1:2" # throws
coins = "http://127.0.0.1:3"

[mcpServers."my files"]
command = "files"
env = { A = "1" }

[mcpServers.fetch]
command = "fetch"
"#;

    fn removed(name: &str) -> String {
        let entries = FileEntries::parse(FILE).unwrap();
        without(FILE, &entries.spans[name])
    }

    #[test]
    fn every_entry_is_known_by_the_name_of_its_scenario() {
        let entries = FileEntries::parse(FILE).unwrap();
        let names: Vec<_> = entries.spans.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            ["coins", "dice", "fetch", "mail", "my-files", "notes"]
        );
        assert!(entries.is_open);
        let inline =
            FileEntries::parse("scenarios = [{ name = \"a\", url = \"http://h\" }]\n").unwrap();
        assert!(!inline.is_open && inline.spans["a"].is_empty());
        assert!(FileEntries::parse("a = [").is_err());
    }

    #[test]
    fn an_entry_goes_with_its_own_comment_and_nothing_else() {
        for (name, before, after) in [
            (
                "notes",
                "# here\n\n# The notes.",
                "# here\n\n# Letters.\n\n[[scenarios]]\nname = \"mail\"",
            ),
            (
                "mail",
                "# Letters.\n\n[[scenarios]]\nname = \"mail\"",
                "# Letters.\n\n[refresh]",
            ),
            ("dice", "[modules]\ndice", "[modules]\ncoins"),
            (
                "my-files",
                "\n\n[mcpServers.\"my files\"]",
                "http://127.0.0.1:3\"\n\n[mcpServers.fetch]",
            ),
            (
                "fetch",
                "env = { A = \"1\" }\n\n[mcpServers.fetch]",
                "env = { A = \"1\" }\n",
            ),
        ] {
            assert!(FILE.contains(before), "{before}");
            let text = removed(name);
            assert!(text.contains(after), "{name}: {text}");
            assert!(
                text.starts_with("# My tools.\nserver.listen = \"127.0.0.1:0\" # here\n"),
                "{name}: {text}"
            );
            let left = FileEntries::parse(&text).unwrap();
            assert_eq!(left.spans.len(), 5, "{name}: {text}");
            assert!(!left.spans.contains_key(name), "{name}: {text}");
        }
    }

    #[test]
    fn a_comment_at_the_beginning_of_a_file_stays() {
        let file = "# Of Ada.\n[[scenarios]]\nname = \"a\"\nurl = \"http://h\"\n";
        let entries = FileEntries::parse(file).unwrap();
        assert_eq!(without(file, &entries.spans["a"]), "# Of Ada.\n");
    }
}
