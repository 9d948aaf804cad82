//! `callsheet config show`: the effective configuration, and where each value comes from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{CommandError, output};
use crate::config::{self, LoadOptions};

/// A longer setting does not move the comments of all others to the right.
const ALIGNED_MAX: usize = 60;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub(super) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Print every effective value, or the problems of the configuration.
    Show(ShowConfigArgs),
}

#[derive(Debug, Args)]
struct ShowConfigArgs {
    /// Configuration file, instead of the one that `CALLSHEET_CONFIG` names or that is in the usual
    /// places.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Show where each value comes from.
    #[arg(long)]
    origin: bool,
    /// Print JSON, with where each value comes from.
    #[arg(long)]
    json: bool,
}

impl ConfigArgs {
    pub(super) fn run(self) -> Result<(), CommandError> {
        let ConfigCommand::Show(show) = self.command;
        let mut options = LoadOptions::from_process();
        options.file = show.config;
        let loaded = config::load(&options)?;
        if show.json {
            let values = loaded.values.iter().map(
                |shown| json!({ "key": shown.key, "value": typed(&shown.value), "origin": shown.origin.to_string() }),
            );
            output::json(&json!({ "file": loaded.file, "values": values.collect::<Vec<_>>() }));
            return Ok(());
        }
        if let Some(ignored) = &loaded.ignored_variables {
            output::note(&format!("{ignored}; {}", ignored.hint()));
        }
        let room = output::line_width().map_or(usize::MAX, usize::from);
        let longest = loaded
            .values
            .iter()
            .map(|value| value.key.len() + value.value.len() + 3)
            .max()
            .unwrap_or(0);
        let column = longest.min(room / 2).min(ALIGNED_MAX);
        for value in &loaded.values {
            let setting = format!("{} = {}", value.key, value.value);
            if !show.origin {
                for row in broken(&value.key, &value.value, room) {
                    output::line(&row);
                }
                continue;
            }
            let comment = format!("# {}", value.origin);
            let both = format!("{setting:column$}  {comment}");
            if both.chars().count() <= room {
                output::line(&both);
            } else {
                // A comment in TOML may stand above what it is about.
                for row in output::rows("", &value.origin.to_string(), Some(narrowed(room, 2))) {
                    output::line(&format!("# {row}"));
                }
                for row in broken(&value.key, &value.value, room) {
                    output::line(&row);
                }
            }
        }
        Ok(())
    }
}

/// A width without some columns, as the printing of rows takes it.
fn narrowed(room: usize, columns: usize) -> u16 {
    u16::try_from(room.saturating_sub(columns)).unwrap_or(u16::MAX)
}

/// A setting in as many lines as it needs in this width, as TOML breaks lists, tables and texts.
fn broken(key: &str, value: &str, room: usize) -> Vec<String> {
    let whole = format!("{key} = {value}");
    if whole.chars().count() <= room {
        return vec![whole];
    }
    let table = format!("value = {value}").parse::<toml::Table>();
    match table.ok().and_then(|mut table| table.remove("value")) {
        Some(toml::Value::Array(items)) => {
            let items = items.iter().map(|item| format!("  {item},"));
            let head = format!("{key} = [");
            [head]
                .into_iter()
                .chain(items)
                .chain(["]".to_owned()])
                .collect()
        }
        Some(toml::Value::Table(members)) => members
            .iter()
            .flat_map(|(name, member)| broken(&format!("{key}.{name}"), &member.to_string(), room))
            .collect(),
        Some(toml::Value::String(text)) => broken_text(key, &text, room),
        _ => vec![whole],
    }
}

/// A text over several lines. A backslash at the end of a line takes out the line break and the
/// white space behind it.
fn broken_text(key: &str, text: &str, room: usize) -> Vec<String> {
    const INDENT: &str = "  ";
    // The escapes of JSON are those of TOML, which has one more character to escape.
    let quoted = Value::from(text).to_string().replace('\u{7f}', "\\u007f");
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    // A space at the beginning would be taken out too.
    let escaped = match escaped.strip_prefix(' ') {
        Some(further) => format!("\\u0020{further}"),
        None => escaped,
    };
    let mut rest = escaped.as_str();
    let width = room.saturating_sub(INDENT.len() + 1);
    let mut lines = vec![format!("{key} = \"\"\"\\")];
    while !rest.is_empty() {
        let (line, further) = rest.split_at(line_end(rest, width));
        lines.push(format!("{INDENT}{line}\\"));
        rest = further;
    }
    lines.push(format!("{INDENT}\"\"\""));
    lines
}

/// Where the first line of an escaped text ends: behind the last `:`, `,`, `/` or space that is
/// within the width, or else at the width. It ends neither within an escape nor before white space.
fn line_end(text: &str, width: usize) -> usize {
    let mut last = None;
    let mut good = None;
    let mut end = 0;
    while end < text.len() {
        let unit = first_unit(&text[end..]);
        if last.is_some() && end + unit.len() > width {
            break;
        }
        end += unit.len();
        if text[end..].starts_with([' ', '\t']) {
            continue;
        }
        last = Some(end);
        if matches!(unit, ":" | "," | "/" | " ") {
            good = last;
        }
    }
    match (last, good) {
        (Some(last), _) if last == text.len() => last,
        (_, Some(good)) => good,
        (last, None) => last.unwrap_or(text.len()),
    }
}

/// The first character of an escaped text, or its first escape.
fn first_unit(text: &str) -> &str {
    let length = match text.chars().next() {
        Some('\\') if text[1..].starts_with('u') => "\\u0000".len(),
        Some('\\') => "\\n".len(),
        first => first.map_or(0, char::len_utf8),
    };
    text.get(..length).unwrap_or(text)
}

/// A value that is written as in TOML, as JSON has it.
fn typed(value: &str) -> Value {
    let table = format!("value = {value}").parse::<toml::Table>();
    // A value that would not read back is still shown, as its text.
    table
        .ok()
        .and_then(|table| serde_json::to_value(table.get("value")?).ok())
        .unwrap_or_else(|| value.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_broken_as_toml_reads_it() {
        for text in [
            "/usr/local/bin:/usr/bin:/home/ada/.cargo/bin:/home/ada/.local/bin:/opt/tools/bin",
            " a text of several words with   spaces, a \"quotation\", a \\ backslash, and a\ttab",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "\u{1}\u{2}\u{3}\u{1}\u{2}\u{3}\u{1}\u{2}\u{3}\u{e9}\u{e9}\u{e9}\u{e9}",
        ] {
            let value = toml::Value::from(text).to_string();
            let lines = broken("value", &value, 40);
            assert!(lines.len() > 2, "{lines:?}");
            let wide = lines.iter().find(|line| line.chars().count() > 40);
            assert_eq!(wide, None, "{lines:?}");
            let read: toml::Table = lines.join("\n").parse().unwrap();
            assert_eq!(read["value"].as_str(), Some(text), "{lines:?}");
        }
    }

    #[test]
    fn a_long_table_is_written_by_its_members() {
        let value = r#"{ file = "/run/secrets/the-token-of-a-server", key = "memory.token" }"#;
        assert_eq!(
            broken("env.TOKEN", value, 60),
            [
                r#"env.TOKEN.file = "/run/secrets/the-token-of-a-server""#,
                r#"env.TOKEN.key = "memory.token""#
            ]
        );
    }
}
