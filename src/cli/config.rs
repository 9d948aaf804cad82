//! `callsheet config show`: the effective configuration, and where each value comes from.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{CommandError, output};
use crate::config::{self, LoadOptions};

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
        let room = output::line_width().map_or(usize::MAX, usize::from);
        let longest = loaded
            .values
            .iter()
            .map(|value| value.key.len() + value.value.len() + 3)
            .max()
            .unwrap_or(0);
        let column = longest.min(room / 2);
        for value in &loaded.values {
            let setting = format!("{} = {}", value.key, value.value);
            if !show.origin {
                output::line(&setting);
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

/// A setting in as many lines as it needs in this width: TOML breaks lists only.
fn broken(key: &str, value: &str, room: usize) -> Vec<String> {
    let whole = format!("{key} = {value}");
    if whole.chars().count() <= room {
        return vec![whole];
    }
    let table = format!("value = {value}").parse::<toml::Table>();
    let Some(toml::Value::Array(items)) = table.ok().and_then(|mut table| table.remove("value"))
    else {
        return vec![whole];
    };
    let items = items.iter().map(|item| format!("  {item},"));
    let head = format!("{key} = [");
    [head]
        .into_iter()
        .chain(items)
        .chain(["]".to_owned()])
        .collect()
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
