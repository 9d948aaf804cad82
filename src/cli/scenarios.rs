//! `callsheet scenarios`: the known scenarios and their health.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use comfy_table::{Cell, CellAlignment};
use jiff::Timestamp;
use serde_json::Value;

use super::client::{DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::watch::{self, EventFollower};
use super::{CommandError, RemoteArgs, output, paragraph};
use crate::model::text::byte_count;
use crate::model::{SESSIONLESS_REVISION, ScenarioState};
use crate::runtime::Clock;

/// The most characters of an address where room is short.
const SHORT_ADDRESS: usize = 24;

/// Arguments of `scenarios`.
#[derive(Debug, Args)]
pub(super) struct ScenariosArgs {
    /// Show all details of this one.
    name: Option<String>,
    /// Only those in this state.
    #[arg(long, value_name = "STATE", conflicts_with = "name", value_parser = states())]
    state: Option<String>,
    /// Show what their programs cost, too: memory and processor time.
    #[arg(long, conflicts_with = "name", help_heading = "Output")]
    wide: bool,
    /// Print them, then each change of state as it happens, until Ctrl-C.
    #[arg(short, long, conflicts_with = "state", help_heading = "Output")]
    watch: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

fn states() -> PossibleValuesParser {
    PossibleValuesParser::new(ScenarioState::ALL.map(ScenarioState::as_str))
}

impl ScenariosArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        if self.watch {
            return self.watch(&daemon).await;
        }
        self.list(&daemon).await
    }

    /// Prints the current scenarios.
    async fn list(&self, daemon: &DaemonClient) -> Result<(), CommandError> {
        let answer = if let Some(name) = &self.name {
            daemon
                .get(&["scenarios", name], QueryPairs::new(), "state")
                .await?
        } else {
            let query = self
                .state
                .iter()
                .map(|state| ("state", state.clone()))
                .collect();
            daemon.get(&["scenarios"], query, "scenarios").await?
        };
        let now = Clock::system().wall();
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else if self.name.is_some() {
            show_one(&answer.value, now);
        } else {
            let shown = ScenarioTableStyle {
                state: self.state.as_deref(),
                is_wide: self.wide,
            };
            show(&answer.value, &shown, now);
        }
        Ok(())
    }

    /// Prints the scenarios, then their changes.
    async fn watch(&self, daemon: &DaemonClient) -> Result<(), CommandError> {
        let mut query = vec![("kind", "scenario".to_owned())];
        query.extend(self.name.iter().map(|name| ("scenario", name.clone())));
        // Subscribes before it lists, so that no change is missed.
        let mut follow = EventFollower::start(daemon, query).await?;
        let mut printed: Option<watch::StateChanges> = None;
        while let Some(event) = follow.next().await? {
            if self.remote.json {
                event.print_json();
                continue;
            }
            if let Some(printed) = &mut printed {
                printed.print(&event);
                continue;
            }
            self.list(daemon).await?;
            printed = Some(watch::StateChanges::from_snapshot(&event.data));
        }
        Ok(())
    }
}

/// How the list of scenarios is shown.
#[derive(Debug, Default)]
pub(super) struct ScenarioTableStyle<'a> {
    /// The state that it is limited to, if it is.
    state: Option<&'a str>,
    /// Whether it shows what programs cost.
    is_wide: bool,
}

/// Prints the list of scenarios as a table.
pub(super) fn show(list: &Value, shown: &ScenarioTableStyle<'_>, now: Timestamp) {
    if let Some(isolated) = isolated(list, now) {
        output::line(&isolated);
    }
    configuration(list, now);
    let scenarios = output::list(list, "scenarios");
    if scenarios.is_empty() {
        match shown.state {
            Some(state) => output::line(&format!("no scenario is {state}")),
            None => output::line(
                "no scenarios; name some as [[scenarios]] in `callsheet.toml`, or start one",
            ),
        }
        return;
    }
    // The highest rank is left out first where room is short.
    let mut columns = vec![
        ("SCENARIO", ColumnFit::Whole),
        ("STATE", ColumnFit::Whole),
        ("ADDRESS", ColumnFit::Rank(2)),
        ("TOOLS", ColumnFit::Rank(1)),
        ("OFF", ColumnFit::Rank(4)),
        ("BAD", ColumnFit::Rank(5)),
        ("LAST ANSWER", ColumnFit::Rank(3)),
        ("NEXT POLL", ColumnFit::Rank(6)),
        ("FROM", ColumnFit::Rank(7)),
    ];
    if shown.is_wide {
        columns.extend([("MEMORY", ColumnFit::Whole), ("CPU", ColumnFit::Whole)]);
    }
    columns.push(("WHY", ColumnFit::Wrap));
    let mut sheet = TextTable::new(&columns);
    let is_bounded = output::line_width().is_some();
    for (scenario, address) in scenarios.iter().zip(addresses(scenarios, is_bounded)) {
        let number = |pointer| right(output::number(scenario, pointer).to_string());
        let mut cells = vec![
            cell(output::text(scenario, "/name")),
            output::state(&output::text(scenario, "/state")),
            cell(address),
            number("/tools/published"),
            number("/tools/disabled"),
            number("/tools/quarantined"),
            cell(output::relative(scenario, "/last_success", now)),
            cell(output::due(scenario, "/next_attempt", now)),
            cell(output::text(scenario, "/source")),
        ];
        if shown.is_wide {
            cells.push(right(memory(scenario).unwrap_or_default()));
            cells.push(right(processor_time(scenario).unwrap_or_default()));
        }
        cells.push(cell(if is_bounded {
            with_hosts(&why(scenario))
        } else {
            why(scenario)
        }));
        sheet.row(cells);
    }
    sheet.print();
    if shown.is_wide {
        output::wrapped("", &format!("\n{}", whole_cost(scenarios)));
        if let Some(hint) = sleep_hint(scenarios) {
            output::wrapped("", &hint);
        }
    }
    print_pending(scenarios);
}

/// Prints how many scenarios wait for an operator's approval, and what to do, if any do.
fn print_pending(scenarios: &[Value]) {
    let pending: Vec<_> = scenarios
        .iter()
        .filter(|scenario| scenario["state"] == "pending")
        .collect();
    if let [first, ..] = pending[..] {
        let name = output::text(first, "/name");
        let many = if pending.len() == 1 {
            "1 waits".to_owned()
        } else {
            format!("{} wait", pending.len())
        };
        output::line(&format!(
            "\n{many} for your approval: `callsheet scenarios {name}` shows what it claims to be, `callsheet trust {name}` publishes its tools"
        ));
    }
}

/// A cell with a number, or another text that ends at the right.
fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// The memory of its program, if it has one that callsheet started.
fn memory(scenario: &Value) -> Option<String> {
    let bytes = scenario.pointer("/program/memory_bytes")?.as_u64()?;
    Some(byte_count(bytes))
}

/// The processor time of its program, such as `0.4s` or `2h 5m`.
fn processor_time(scenario: &Value) -> Option<String> {
    let seconds = scenario.pointer("/program/cpu_seconds")?.as_f64()?;
    if seconds < 60.0 {
        return Some(format!("{seconds:.1}s"));
    }
    let whole = Duration::try_from_secs_f64(seconds).ok()?;
    Some(output::short(whole.as_secs()))
}

/// What all programs cost together.
fn whole_cost(scenarios: &[Value]) -> String {
    let costs = scenarios
        .iter()
        .filter_map(|scenario| scenario.pointer("/program/memory_bytes")?.as_u64());
    let count = output::count(costs.clone().count(), "program");
    format!(
        "{count} started by callsheet, {} of memory",
        byte_count(costs.sum())
    )
}

/// How programs sleep, if some run and none sleeps. The key may be set already, which the list of
/// scenarios does not say. A server of the newest revision keeps no session that it could lose.
fn sleep_hint(scenarios: &[Value]) -> Option<String> {
    let runs = scenarios
        .iter()
        .any(|scenario| scenario["program"].is_object());
    let sleeps = scenarios
        .iter()
        .any(|scenario| scenario["state"] == "asleep");
    if !runs || sleeps {
        return None;
    }
    let sessionless = scenarios.iter().filter(|scenario| {
        scenario["program"].is_object() && scenario["protocol_version"] == SESSIONLESS_REVISION
    });
    let names: Vec<String> = sessionless
        .map(|scenario| format!("`{}`", output::text(scenario, "/name")))
        .collect();
    let unharmed = if names.is_empty() {
        String::new()
    } else {
        format!(
            "; servers without sessions lose none by it: {}",
            names.join(", ")
        )
    };
    Some(format!(
        "where `mcp.sleep_after` is set, such as to `\"10m\"`, programs that no client used for so long end, and start for the next call{unharmed}"
    ))
}

/// What its program costs, for the details of a scenario.
fn program(scenario: &Value) -> String {
    let parts = memory(scenario).zip(processor_time(scenario));
    let Some((memory, time)) = parts else {
        return String::new();
    };
    let processes = match output::number(scenario, "/program/processes") {
        1 => "1 process".to_owned(),
        several => format!("{several} processes"),
    };
    let measure = if scenario["program"]["memory_measure"] == "resident" {
        " (memory that processes share is counted in each)"
    } else {
        ""
    };
    format!("{memory} in {processes}{measure}, {time} of processor time")
}

/// The addresses, cut where room is short and they are long: a program to start is a whole command.
/// Where two would look the same, each shows the part in which it differs.
/// The details of a scenario, a pipe and `--json` have the whole address.
fn addresses(scenarios: &[Value], is_short: bool) -> Vec<String> {
    let most = if is_short { SHORT_ADDRESS } else { usize::MAX };
    let whole = |scenario: &Value| {
        let url = output::text(scenario, "/url");
        let url = url.trim_end_matches('/');
        url.strip_prefix("http://")
            .filter(|_| is_short)
            .unwrap_or(url)
            .to_owned()
    };
    let all: Vec<String> = scenarios.iter().map(whole).collect();
    let mut looking_alike: HashMap<String, Vec<&str>> = HashMap::new();
    for text in &all {
        looking_alike
            .entry(output::cut(text, most))
            .or_default()
            .push(text);
    }
    let shown = |text: &String| {
        let cut = output::cut(text, most);
        let alike = looking_alike.get(&cut).into_iter().flatten();
        let begins_to_differ = alike
            .filter(|other| *other != text)
            .map(|other| common_beginning(text, other))
            .max();
        begins_to_differ.map_or(cut, |at| with_difference(text, at, most))
    };
    all.iter().map(shown).collect()
}

/// How many characters two texts have in common at their beginning.
fn common_beginning(one: &str, other: &str) -> usize {
    one.chars()
        .zip(other.chars())
        .take_while(|pair| pair.0 == pair.1)
        .count()
}

/// A text of at most so many characters: its beginning, and what stands around the character `at`,
/// from the beginning of its word if that is near.
fn with_difference(text: &str, at: usize, most: usize) -> String {
    let before: Vec<char> = text.chars().take(at).collect();
    let word = before
        .iter()
        .rposition(|c| *c == ' ')
        .map_or(0, |blank| blank + 1);
    let near = at.saturating_sub(most / 4);
    let rest: String = text.chars().skip(word.max(near).max(most / 2)).collect();
    format!(
        "{}{}",
        output::cut(text, most / 2),
        output::cut(&rest, most - most / 2)
    )
}

/// Prints a line if the daemon considers itself cut off from the network.
fn isolated(list: &Value, now: Timestamp) -> Option<String> {
    let isolated = list.get("isolated")?;
    let since = output::when(isolated, "/since", now);
    let reason = output::first_line(isolated, "/reason");
    Some(format!("ISOLATED since {since}: {reason}\n"))
}

/// Prints which part of the written configuration is not active, if any.
fn configuration(list: &Value, now: Timestamp) {
    let Some(configuration) = list.get("configuration") else {
        return;
    };
    if let Some(refused) = configuration
        .get("refused")
        .filter(|refused| !refused.is_null())
    {
        let since = output::when(refused, "/since", now);
        output::line(&format!(
            "CONFIGURATION NOT RELOADED since {since}; the previous one stays active:"
        ));
        for problem in output::list(refused, "problems") {
            output::line(&format!("  {}", output::first_line(problem, "/message")));
            output::line(&format!(
                "    hint: {}",
                output::first_line(problem, "/hint")
            ));
        }
        output::line("");
    }
    let waiting = output::list(configuration, "waiting_for_restart");
    if !waiting.is_empty() {
        let keys: Vec<_> = waiting
            .iter()
            .map(|key| format!("`{}`", output::text(key, "")))
            .collect();
        output::line(&format!(
            "{} changed in the configuration: restart the daemon to apply it\n",
            keys.join(", ")
        ));
    }
}

/// The reason for the state. Includes a failure that has not changed the state yet.
fn why(scenario: &Value) -> String {
    let reason = output::first_line(scenario, "/reason");
    let error = output::first_line(scenario, "/last_error/message");
    // What is removed is not polled any more.
    if error.is_empty() || reason.contains(&error) || scenario["state"] == "removed" {
        reason
    } else {
        format!("{reason}, but the last poll failed: {error}")
    }
}

/// A text with hosts in place of whole addresses, where room is short. The details of the scenario
/// have the address.
fn with_hosts(text: &str) -> String {
    let host = |word: &str| {
        let rest = word
            .strip_prefix("http://")
            .or_else(|| word.strip_prefix("https://"))?;
        let bare = rest.trim_end_matches([')', ',', ';', ':']);
        let host = bare.split('/').next().unwrap_or_default();
        Some(format!("{host}{}", &rest[bare.len()..]))
    };
    text.split(' ')
        .map(|word| host(word).unwrap_or_else(|| word.to_owned()))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Prints all details of one scenario.
fn show_one(scenario: &Value, now: Timestamp) {
    let text = |pointer| output::text(scenario, pointer);
    let number = |pointer: &str| output::number(scenario, pointer).to_string();
    let when = |pointer| output::when(scenario, pointer, now);
    let error = match text("/last_error/message") {
        message if message.is_empty() => message,
        message => format!("{message} ({})", text("/last_error/kind")),
    };
    let trusted = if scenario["trusted"] == Value::Bool(true) {
        "yes"
    } else {
        "no"
    };
    let tools =
        ["published", "disabled", "quarantined"].map(|kind| number(&format!("/tools/{kind}")));
    let own_name = match text("/own_name") {
        own if own == text("/name") => String::new(),
        own => own,
    };
    let failures = if output::number(scenario, "/failures_in_a_row") == 0 {
        ""
    } else {
        " in a row"
    };
    let latency = if scenario["latency_ms"].is_null() {
        String::new()
    } else {
        number("/latency_ms") + " ms"
    };
    let restarts = match when("/last_restart") {
        last if last.is_empty() => number("/restarts"),
        last => format!("{}, the last {last}", number("/restarts")),
    };
    let next_poll = match output::due(scenario, "/next_attempt", now) {
        due if due == "now" => due,
        _ => when("/next_attempt"),
    };
    let offers = if text("/state") == "pending" {
        number("/tools/offered") + " tools"
    } else {
        String::new()
    };
    let rows = [
        ("name", text("/name")),
        ("state", format!("{}: {}", text("/state"), text("/reason"))),
        ("since", when("/since")),
        ("own name", own_name),
        ("description", text("/description")),
        ("version", text("/version")),
        ("address", text("/url")),
        ("origin", origin(&text("/url"), text("/origin"))),
        ("identity", text("/identity")),
        ("found by", text("/source")),
        ("trusted", trusted.into()),
        (
            "protocol",
            format!("{} {}", text("/protocol"), text("/protocol_version"))
                .trim()
                .to_owned(),
        ),
        (
            "tools",
            format!(
                "{} published, {} off, {} quarantined",
                tools[0], tools[1], tools[2]
            ),
        ),
        ("offers", offers),
        ("generated", when("/freshness/generated_at")),
        ("fresh until", when("/freshness/fresh_until")),
        ("last answer", when("/last_success")),
        ("last poll", when("/last_attempt")),
        ("next poll", next_poll),
        ("last error", error),
        ("failures", number("/failures_in_a_row") + failures),
        ("latency", latency),
        ("restarts", restarts),
        ("program", program(scenario)),
    ];
    output::details(&rows);
    paragraph::print_findings(scenario);
    print_stderr(scenario);
}

/// Prints what its program wrote to standard error last, and which run of it.
fn print_stderr(scenario: &Value) {
    let lines = output::list(scenario, "stderr");
    if lines.is_empty() {
        return;
    }
    let end = output::text(scenario, "/stderr_end");
    let heading = if end.is_empty() {
        "its last lines on standard error:".to_owned()
    } else {
        format!("the last lines on standard error of the run that ended last ({end}):")
    };
    output::line("");
    output::wrapped("", &heading);
    for line in lines {
        output::line(&format!("  {}", output::first_line(line, "")));
    }
}

/// The origin that trust counts for, unless the address says the same. All names of this machine
/// are one host in it.
fn origin(url: &str, origin: String) -> String {
    let own = ["127.0.0.1", "[::1]"]
        .into_iter()
        .fold(url.to_owned(), |url, host| {
            url.replacen(&format!("//{host}"), "//localhost", 1)
        });
    let rest = own.strip_prefix(origin.as_str());
    if rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
        String::new()
    } else {
        origin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_that_the_address_contains_is_left_out() {
        let shown = |url, of: &str| origin(url, of.to_owned());
        for url in [
            "http://127.0.0.1:7431/",
            "http://localhost:7431/api",
            "http://[::1]:7431",
        ] {
            assert_eq!(shown(url, "http://localhost:7431"), "", "{url}");
        }
        for url in ["http://127.0.0.1:74310/", "http://10.0.0.1:7431/", ""] {
            assert_eq!(
                shown(url, "http://localhost:7431"),
                "http://localhost:7431",
                "{url}"
            );
        }
    }

    #[test]
    fn addresses_are_shortened_to_their_hosts() {
        let text =
            "refused by http://127.0.0.1:7438/api/v1/tools (https://a.example/x), http://[::1]:9";
        assert_eq!(
            with_hosts(text),
            "refused by 127.0.0.1:7438 (https://a.example/x), [::1]:9"
        );
    }

    #[test]
    fn addresses_that_would_look_the_same_show_where_they_differ() {
        let commands = [
            "npx -y @modelcontextprotocol/server-memory --storage /home/ada/first",
            "npx -y @modelcontextprotocol/server-memory --storage /home/ada/other",
            "npx -y @modelcontextprotocol/server-everything",
            "uvx short",
        ];
        let scenarios = commands.map(|command| serde_json::json!({"url": command}));
        let short = addresses(&scenarios, true);
        assert_eq!(
            short,
            [
                "npx -y @mod…e/ada/first",
                "npx -y @mod…e/ada/other",
                "npx -y @mod…erver-every…",
                "uvx short"
            ]
        );
        assert_eq!(
            addresses(&scenarios, false),
            commands,
            "where there is room they are whole"
        );
        let equal = addresses(&[scenarios[0].clone(), scenarios[0].clone()], true);
        assert_eq!(equal, ["npx -y @modelcontextpro…"; 2]);
    }
}
