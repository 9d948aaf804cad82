//! `callsheet search`: the tools that fit a text best.

use clap::Args;
use serde_json::Value;

use super::client::{DaemonClient, QueryPairs};
use super::table::{ColumnFit, TextTable, cell};
use super::{CommandError, RemoteArgs, output};

const EXAMPLES: &str = "\
Examples:
  callsheet search send a letter
  callsheet search --limit 3 --profile coder 'run the tests, then deploy'
  callsheet search --typed get_wea";

/// Arguments of `search`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SearchArgs {
    /// What the tool should do.
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Match tool names by prefix, tolerating typos.
    #[arg(short, long)]
    typed: bool,
    /// Maximum number of results.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: Option<u16>,
    /// Only tools of this scenario; may be given more than once.
    #[arg(long, value_name = "NAME")]
    scenario: Vec<String>,
    /// Only tools of this category; may be given more than once.
    #[arg(long, value_name = "ID")]
    category: Vec<String>,
    /// Only tools with this tag; may be given more than once.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// With the preferences of this profile.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// As a caller of this level, which lowers that of the profile.
    #[arg(long, value_name = "LEVEL", value_parser = ["guest", "user", "admin", "owner"], hide_possible_values = true)]
    permission: Option<String>,
    /// With the preferences of this conversation.
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// Include disabled tools.
    #[arg(short, long)]
    all: bool,
    #[command(flatten)]
    remote: RemoteArgs,
}

impl SearchArgs {
    pub(super) async fn run(self) -> Result<(), CommandError> {
        let daemon = DaemonClient::from_args(&self.remote)?;
        let answer = daemon
            .get(&["tools", "search"], self.query(), "results")
            .await?;
        if self.remote.json {
            output::answer(&answer.body, &answer.value);
        } else if output::list(&answer.value, "results").is_empty() {
            output::line(if self.typed {
                "no matching tools"
            } else {
                "no tool has any of these words"
            });
        } else {
            show(&answer.value);
        }
        Ok(())
    }

    fn query(&self) -> QueryPairs<'static> {
        let mut query = QueryPairs::from([("q", self.words.join(" "))]);
        let many = [
            ("scenario", &self.scenario),
            ("category", &self.category),
            ("tag", &self.tag),
        ];
        for (key, values) in many {
            query.extend(values.iter().map(|value| (key, value.clone())));
        }
        let one = [
            ("profile", &self.profile),
            ("permission", &self.permission),
            ("chat_id", &self.chat),
        ];
        query.extend(
            one.into_iter()
                .filter_map(|(key, value)| Some((key, value.clone()?))),
        );
        query.extend(self.limit.map(|limit| ("limit", limit.to_string())));
        query.extend(self.typed.then(|| ("mode", "palette".to_owned())));
        query.extend(self.all.then(|| ("include_disabled", "true".to_owned())));
        query
    }
}

/// Prints the results as a table, best first.
fn show(answer: &Value) {
    let results = output::list(answer, "results");
    let mut sheet = TextTable::new(&[
        ("TOOL", ColumnFit::Whole),
        ("SCENARIO", ColumnFit::Rank(1)),
        ("FOUND IN", ColumnFit::Rank(2)),
        ("NOTE", ColumnFit::Whole),
        ("DESCRIPTION", ColumnFit::Cut),
    ]);
    for result in results {
        let fields: Vec<&str> = output::list(result, "fields")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        sheet.row([
            cell(output::text(result, "/name")),
            cell(output::text(result, "/scenario")),
            cell(fields.join(", ").replace('_', " ")),
            cell(output::notes(result)),
            cell(output::first_line(result, "/description")),
        ]);
    }
    sheet.print();
}
