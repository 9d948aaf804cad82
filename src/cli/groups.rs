//! `callsheet --help`: the commands in groups, by what a person wants to do.

use clap::Command;

use super::output;

/// The groups and their commands, each in the order in which a person meets them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Begin",
        &["demo", "init", "import", "connect", "serve", "service"],
    ),
    (
        "Use the list",
        &[
            "tools", "search", "explain", "history", "identity", "call", "turn", "bundle", "mcp",
        ],
    ),
    (
        "Tool providers (scenarios)",
        &[
            "scenarios",
            "add",
            "remove",
            "block",
            "trust",
            "forget",
            "refresh",
            "login",
            "logout",
        ],
    ),
    (
        "Decide and follow",
        &[
            "prefs",
            "profiles",
            "pins",
            "approvals",
            "operations",
            "findings",
            "logs",
        ],
    ),
    ("Check and repair", &["check", "doctor", "config", "state"]),
    ("Shell", &["completions"]),
];
/// Characters of a line of help at most.
const WIDTH: u16 = 100;
/// Characters of the column with the names.
const NAMES: usize = 12;

/// The command with its help in groups.
pub(super) fn grouped(command: Command) -> Command {
    let width = output::line_width().map_or(WIDTH, |width| width.min(WIDTH));
    let mut listed = String::from("Commands:\n");
    for (title, names) in GROUPS {
        listed.extend([" ", title, ":\n"]);
        for name in names {
            let below = command.find_subcommand(name);
            let about = below
                .and_then(Command::get_about)
                .map(ToString::to_string)
                .unwrap_or_default();
            for row in output::rows(&format!("  {name:NAMES$} "), &about, Some(width)) {
                listed.push_str(&row);
                listed.push('\n');
            }
        }
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listed}\nOptions:\n{{options}}{{after-help}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_that_is_shown_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        grouped.sort_unstable();
        let command = Cli::command();
        let mut shown: Vec<&str> = command
            .get_subcommands()
            .filter(|below| !below.is_hide_set())
            .map(Command::get_name)
            .collect();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
    }
}
