//! `callsheet tools`: the list.

mod cost;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use super::client::{DaemonAnswer, DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::watch::{self, EventFollower};
use super::{CommandError, RemoteArgs, output};
use crate::formats::FORMATS;

/// Arguments of `tools`.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    choice: BudgetArgs,
    /// Print the list for programs: exactly the bytes of the daemon's answer.
    #[arg(long, value_name = "FORMAT", value_parser = formats(), help_heading = "Output")]
    format: Option<String>,
    /// Print the list, then each change of it as it happens, until Ctrl-C.
    #[arg(short, long, conflicts_with_all = ["format", "report", "max_tokens", "defer", "sticky"], help_heading = "Output")]
    watch: bool,
    /// Show for each tool why it is or is not in the list.
    #[arg(long, help_heading = "Output")]
    report: bool,
    /// Show what the list costs in tokens, by scenario and by tool, and what would save some.
    #[arg(long, conflicts_with_all = ["watch", "report"], help_heading = "Output")]
    cost: bool,
    /// Show each tool with its whole description and the schema of its arguments.
    #[arg(long, conflicts_with_all = ["format", "watch", "report", "cost"], help_heading = "Output")]
    schemas: bool,
    /// With the vendor's strict mode, where the format has one.
    #[arg(long, requires = "format", help_heading = "Output")]
    strict: bool,
    /// With the end of the list marked for the vendor's prompt cache, where the format has such a
    /// mark.
    #[arg(long, requires = "format", help_heading = "Output")]
    cache: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

/// What to list.
#[derive(Debug, Args)]
struct FilterArgs {
    /// Only tools of this scenario; may be given more than once.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Only tools of this category; may be given more than once.
    #[arg(long, value_name = "ID")]
    category: Vec<String>,
    /// Only tools with this tag; may be given more than once.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only tools that are relevant to this text, and those that are always listed.
    #[arg(short, long, value_name = "WORDS")]
    q: Option<String>,
    /// With the preferences of this profile.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// With the preferences of this conversation.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// Maximum number of tools; 0 removes the limit of the format.
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    /// Include disabled tools.
    #[arg(short, long)]
    all: bool,
}

/// Which of them, when there are too many.
#[derive(Debug, Args)]
#[command(next_help_heading = "Choice")]
struct BudgetArgs {
    /// Maximum number of tokens, estimated.
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Defer tools that are not needed at once; formats without deferred tools get a shorter list.
    #[arg(long, value_name = "BY", value_parser = PossibleValuesParser::new(["relevance", "preference"]))]
    defer: Option<String>,
    /// Keep the tools of this selection in their order; an empty one begins a conversation. The
    /// selection of the new list is printed on stderr.
    #[arg(long, value_name = "SELECTION")]
    sticky: Option<String>,
}

impl BudgetArgs {
    fn add_to(&self, query: &mut QueryPairs<'static>) {
        query.extend(self.max_tokens.map(|most| ("max_tokens", most.to_string())));
        let texts = [("defer", &self.defer), ("sticky", &self.sticky)];
        query.extend(
            texts
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.clone()?))),
        );
    }
}

fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(FORMATS.iter().map(|format| format.id()))
}

impl ToolsArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        if self.watch {
            return self.watch(&daemon).await;
        }
        let mut query = self.filter.query();
        self.choice.add_to(&mut query);
        if let Some(format) = &self.format {
            query.push(("format", format.clone()));
        }
        let flags = [
            ("strict", self.strict),
            ("cache", self.cache),
            ("report", self.report || self.cost),
        ];
        query.extend(
            flags
                .into_iter()
                .filter(|(_, given)| *given)
                .map(|(name, _)| (name, "true".into())),
        );
        let answer = daemon.list(query).await?;
        let mut out_of_list = Vec::new();
        // The answer of another format does not show whether it is empty.
        if self.format.is_some() || output::list(&answer.value, "tools").is_empty() {
            for name in &self.filter.scenario {
                out_of_list.extend(why_out_of_list(&daemon.require_scenario(name).await?));
            }
        }
        if self.cost && !self.remote.json {
            cost::show(&answer.value["report"]);
        } else if self.format.is_some() {
            output::raw_json(&answer.body);
        } else if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else if self.report {
            show_report(&answer.value);
        } else if output::list(&answer.value, "tools").is_empty() {
            match out_of_list.as_slice() {
                [] => output::line(self.filter.text_without_tools()),
                reasons => reasons
                    .iter()
                    .for_each(|reason| output::wrapped("", reason)),
            }
        } else if self.schemas {
            show_schemas(&answer.value);
        } else {
            show(&answer.value);
        }
        note_left_out(&answer, self.filter.max, self.choice.max_tokens);
        if let Some(notes) = &answer.notes {
            output::note(&format!("{notes}; `--report` shows details"));
        }
        if let Some(selection) = answer
            .selection
            .as_ref()
            .filter(|_| self.choice.sticky.is_some())
        {
            output::note(&format!("for the next turn: --sticky {selection}"));
        }
        Ok(())
    }

    /// Prints the list, then its changes.
    async fn watch(&self, daemon: &DaemonClient) -> Result<(), CommandError> {
        let mut query = self.filter.query();
        query.push(("kind", "catalog".into()));
        // Subscribes before it lists, so that no change is missed.
        let mut follow = EventFollower::start(daemon, query).await?;
        let mut printed: Option<watch::ToolChanges> = None;
        while let Some(event) = follow.next().await? {
            if self.remote.json {
                event.print_json();
                continue;
            }
            if let Some(printed) = &mut printed {
                printed.print(&event);
                continue;
            }
            let answer = daemon.list(self.filter.query()).await?;
            show(&answer.value);
            note_left_out(&answer, self.filter.max, None);
            printed = Some(watch::ToolChanges::from_snapshot(&event.data));
        }
        Ok(())
    }
}

/// Why no tool of a scenario can be in a list, if that is due to its state.
fn why_out_of_list(health: &Value) -> Option<String> {
    let [name, state, reason] =
        ["/name", "/state", "/reason"].map(|pointer| output::text(health, pointer));
    let is_listed = matches!(state.as_str(), "live" | "stale" | "asleep")
        || output::number(health, "/tools/published") > 0;
    let hint = format!("`callsheet scenarios {name}` shows more");
    (!is_listed).then(|| format!("no tools: {name} is {state}: {reason}; {hint}"))
}

/// Prints how many tools a list left out, with the limits that may be the reason.
fn note_left_out(answer: &DaemonAnswer, max: Option<usize>, max_tokens: Option<usize>) {
    if answer.left_out == 0 {
        return;
    }
    let tools = output::count(answer.left_out, "tool");
    let of_tokens = max_tokens.map(|most| format!("`--max-tokens {most}`"));
    let of_tools = match max {
        Some(0) => None,
        Some(most) => Some(format!("`--max {most}`")),
        None if of_tokens.is_some() => None,
        None => Some("a limit (`--max 0` removes it)".to_owned()),
    };
    let limits: Vec<String> = of_tokens.into_iter().chain(of_tools).collect();
    let by = if limits.is_empty() {
        String::new()
    } else {
        format!("by {} or ", limits.join(", "))
    };
    output::note(&format!(
        "{tools} left out, {by}because the format cannot express them"
    ));
}

impl FilterArgs {
    fn query(&self) -> QueryPairs<'static> {
        let mut query = QueryPairs::new();
        let many = [
            ("scenario", &self.scenario),
            ("category", &self.category),
            ("tag", &self.tag),
        ];
        for (key, values) in many {
            query.extend(values.iter().map(|value| (key, value.clone())));
        }
        let one = [
            ("q", &self.q),
            ("profile", &self.profile),
            ("permission", &self.permission),
            ("chat_id", &self.chat),
        ];
        query.extend(
            one.into_iter()
                .filter_map(|(key, value)| Some((key, value.clone()?))),
        );
        query.extend(self.max.map(|max| ("max_tools", max.to_string())));
        if self.all {
            query.push(("include_disabled", "true".into()));
        }
        query
    }

    /// The text for an empty list.
    fn text_without_tools(&self) -> &'static str {
        let filtered = [&self.scenario, &self.category, &self.tag]
            .iter()
            .any(|values| !values.is_empty());
        match (filtered || self.q.is_some(), self.all) {
            (true, false) => "no matching tools; `--all` includes disabled ones",
            (true, true) => "no matching tools",
            (false, false) => {
                "no tools; `callsheet scenarios` lists the known scenarios, `--all` includes disabled tools"
            }
            (false, true) => "no tools; `callsheet scenarios` lists the known scenarios",
        }
    }
}

/// Prints what was decided about each tool.
fn show_report(answer: &Value) {
    let report = &answer["report"];
    let mut sheet = TextTable::new(&[
        ("TOOL", ColumnFit::Whole),
        ("LISTED", ColumnFit::Whole),
        ("RANK", ColumnFit::Rank(2)),
        ("SCORE", ColumnFit::Rank(1)),
        ("TOKENS", ColumnFit::Whole),
        ("WHY", ColumnFit::Cut),
    ]);
    let number = |value: &Value| {
        if value.is_null() {
            String::new()
        } else {
            value.to_string()
        }
    };
    // The best first, as the models of the search do; a list without one has no ranks.
    let mut ranked: Vec<&Value> = output::list(report, "listed").iter().collect();
    ranked.sort_by_key(|tool| tool["rank"].as_u64().unwrap_or(u64::MAX));
    for tool in ranked {
        sheet.row([
            cell(output::text(tool, "/id")),
            cell(if tool["deferred"] == Value::Bool(true) {
                "deferred"
            } else {
                "yes"
            }),
            cell(number(&tool["rank"])),
            cell(number(&tool["score"])),
            cell(number(&tool["tokens"])),
            cell(output::text(tool, "/why")),
        ]);
    }
    for tool in output::list(report, "left_out") {
        let empty = || cell(String::new());
        sheet.row([
            cell(output::text(tool, "/id")),
            cell("no"),
            empty(),
            empty(),
            empty(),
            cell(output::first_line(tool, "/reason")),
        ]);
    }
    sheet.print();
    let listed = output::count(output::list(report, "listed").len(), "tool");
    let tokens = output::count(
        usize::try_from(output::number(report, "/tokens")).unwrap_or_default(),
        "token",
    );
    output::wrapped(
        "",
        &format!(
            "{listed} in the list, about {tokens} as `format={}`; `--format NAME --report` counts those of another format",
            output::text(report, "/format")
        ),
    );
}

/// Prints each tool with its description and its schema.
fn show_schemas(list: &Value) {
    let tools = output::list(list, "tools");
    for tool in tools {
        output::line(&output::text(tool, "/name"));
        let about = output::lines(tool["description"].as_str().unwrap_or_default().trim());
        // A value can always be written as text.
        let schema = serde_json::to_string_pretty(&tool["parameters"]).unwrap_or_default();
        for line in about.lines().chain(output::lines(&schema).lines()) {
            output::line(format!("  {line}").trim_end());
        }
        output::line("");
    }
    output::line(&output::count(tools.len(), "tool"));
}

/// The column of the scenario's name.
const SCENARIO: usize = 1;

/// Prints a native list as a table. Where there is no room for the names of the scenarios beside
/// the tools, each stands above its tools.
pub(super) fn show(list: &Value) {
    let tools = output::list(list, "tools");
    let beside = table(tools, false);
    if beside.leaves_out(SCENARIO) {
        table(tools, true)
    } else {
        beside
    }
    .print();
    let off = tools
        .iter()
        .filter(|tool| tool["enabled"] == Value::Bool(false))
        .count();
    let off = if off > 0 {
        format!(", {off} of them off")
    } else {
        String::new()
    };
    output::line(&format!("{}{off}", output::count(tools.len(), "tool")));
}

/// The table of the tools. With `grouped` each scenario has a line of its own above its tools.
fn table(tools: &[Value], grouped: bool) -> TextTable {
    // The highest rank is left out first where room is short.
    let mut sheet = TextTable::new(&[
        ("TOOL", ColumnFit::Whole),
        ("SCENARIO", ColumnFit::Rank(1)),
        ("CATEGORY", ColumnFit::Rank(2)),
        ("NOTE", ColumnFit::Whole),
        ("DESCRIPTION", ColumnFit::Cut),
    ]);
    let mut above = None;
    for tool in tools {
        let name = output::text(tool, "/name");
        let scenario = output::text(tool, "/scenario");
        if grouped && above.as_ref() != Some(&scenario) {
            sheet.row([
                cell(format!("{scenario}:")),
                cell(""),
                cell(""),
                cell(""),
                cell(""),
            ]);
            above = Some(scenario.clone());
        }
        sheet.row([
            cell(if grouped { format!("  {name}") } else { name }),
            cell(scenario),
            cell(output::text(tool, "/category")),
            cell(output::notes(tool)),
            cell(output::first_line(tool, "/description")),
        ]);
    }
    sheet
}
