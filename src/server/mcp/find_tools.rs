//! `find_tools` and `describe_tools`: the tools of the view that fit a text, as lines or whole, and
//! the whole schemas of those that are named.
//!
//! The ranking is the same in both details. Every answer has a limit in tokens, and names what has
//! no room.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::catalog::{Hit, NameLookup, Snapshot, View, ViewQuery, find_in_scope};
use crate::formats::{
    DESCRIBE_TOOLS, FIND_TOOLS, Format, McpToolList, mcp_name, mcp_tools, signature,
};
use crate::model::{NameRef, ViewTool};
use crate::server::mcp::context::McpContext;
use crate::server::mcp::lists;
use crate::server::mcp::own_answer::{OwnAnswer, read};
use crate::server::rendered::rendered;

/// The tokens of an answer of `find_tools`, if the model does not say how many.
const TOKENS: usize = 2_000;
/// The most tokens of an answer.
const TOKENS_MAX: usize = 50_000;
/// How many tools a search looks at.
const HITS: usize = 50;
/// How many signatures are answered, if the model does not say how many tokens.
const SIGNATURES: usize = 25;
/// How many tools that do not fit are named.
const NAMED: usize = 10;
/// How many tools are described at once.
const DESCRIBED_MAX: usize = 20;

/// What is answered of each tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Detail {
    /// One line.
    #[default]
    Signature,
    /// Its description and its schema.
    Full,
}

/// What the tools of one client are looked up in and written with. Cheap to make.
#[derive(Clone)]
pub(super) struct ClientTools {
    /// All tools that the client may see.
    view: ViewQuery,
    list: McpToolList,
}

impl ClientTools {
    pub(super) fn for_client(context: &McpContext, snapshot: &Snapshot) -> Self {
        Self {
            view: lists::searched(context),
            list: lists::face(context, snapshot),
        }
    }

    fn format(&self) -> &'static dyn Format {
        mcp_tools(self.list)
    }

    /// What a model needs to call a tool. `None` if the format leaves it out.
    fn definition(&self, tool: &ViewTool) -> Option<Value> {
        let whole: Value = serde_json::from_slice(&self.format().encode(tool).json?).ok()?;
        let mut shown = json!({});
        for member in ["name", "description", "inputSchema"] {
            if let Some(value) = whole.get(member) {
                shown[member] = value.clone();
            }
        }
        Some(shown)
    }

    /// The line of a tool. `None` if the format leaves it out.
    fn line(&self, tool: &ViewTool) -> Option<String> {
        self.format().encode(tool).json?;
        Some(signature(mcp_name(tool, self.list).as_str(), tool))
    }

    /// The definition of the tool with this name, if it is one of the view.
    fn named(&self, snapshot: &Snapshot, view: &View, name: &str) -> Option<Value> {
        let found = find_in_scope(&snapshot.catalog, &self.view, &NameRef::parse(name));
        let NameLookup::One(tool) = found else {
            return None;
        };
        let mut parts = view
            .parts
            .iter()
            .filter(|part| part.entry.name == tool.id.scenario);
        let tool = parts.find_map(|part| part.tools.iter().find(|own| own.id == tool.id))?;
        self.definition(tool)
    }

    /// The definition of one tool with at most [`TOKENS_MAX`], if it is one of the view.
    pub(super) fn definition_of(&self, snapshot: &Snapshot, name: &str) -> Option<Value> {
        let view = View::select(&snapshot.catalog, &self.view);
        let definition = self.named(snapshot, &view, name)?;
        (self.tokens(&definition.to_string()) <= TOKENS_MAX).then_some(definition)
    }

    fn tokens(&self, text: &str) -> usize {
        self.format().limits().tokens(text.len())
    }
}

/// The tools that fit into so many tokens, and the names of the next ones.
struct Shown<T> {
    tools: Vec<T>,
    others: Vec<String>,
    left: usize,
}

impl<T> Shown<T> {
    fn within(tokens: usize) -> Self {
        Self {
            tools: Vec::new(),
            others: Vec::new(),
            left: tokens,
        }
    }

    /// Adds a tool that costs so many tokens, or its name.
    fn add(&mut self, tool: T, cost: usize, name: &str) {
        if cost <= self.left {
            self.left -= cost;
            self.tools.push(tool);
        } else if self.others.len() < NAMED {
            self.others.push(name.to_owned());
        }
    }
}

/// `find_tools`: the best tools of the view within the budget.
pub(super) async fn found(context: &McpContext, arguments: &str) -> Result<OwnAnswer, String> {
    #[derive(Deserialize)]
    struct FindArguments {
        query: String,
        max_tokens: Option<usize>,
        #[serde(default)]
        detail: Detail,
    }
    let FindArguments {
        query,
        max_tokens,
        detail,
    } = read(FIND_TOOLS, arguments)?;
    if query.trim().is_empty() {
        return Err("`query` is empty: say in a few words what the tool should do".to_owned());
    }
    let tokens = max_tokens.unwrap_or(TOKENS).min(TOKENS_MAX);
    let snapshot = context.shared.reader.snapshot();
    let tools = ClientTools::for_client(context, &snapshot);
    // If there is no index yet, it is built now, and the definitions of many tools are large: a few
    // answers are made at once.
    let search = async move {
        let hits = View::select(&snapshot.catalog, &tools.view).rank(&query, HITS);
        match detail {
            Detail::Signature => {
                let most = max_tokens.map_or(SIGNATURES, |_| HITS);
                signatures(&hits, &tools, tokens, most)
            }
            Detail::Full => definitions(&hits, &tools, tokens),
        }
    };
    let found = rendered(&context.shared, &context.bytes, search).await;
    found.map_err(|full| full.to_string())
}

/// The lines of the best tools.
fn signatures(hits: &[Hit], tools: &ClientTools, tokens: usize, most: usize) -> OwnAnswer {
    let mut shown = Shown::within(tokens);
    for hit in hits {
        if shown.tools.len() == most {
            break;
        }
        let Some(line) = tools.line(&hit.tool) else {
            continue;
        };
        // In the answer each stands in quotes, with a comma behind it.
        let cost = tools.tokens(&line) + 1;
        let name = mcp_name(&hit.tool, tools.list);
        shown.add(line, cost, name.as_str());
    }
    let mut text = shown.tools.join("\n");
    let mut value = json!({"signatures": shown.tools});
    for note in notes(&mut value, &shown.others, hits.is_empty()) {
        text.push_str(if text.is_empty() { "" } else { "\n" });
        text.push_str(&note);
    }
    OwnAnswer { text, value }
}

/// The definitions of the best tools.
fn definitions(hits: &[Hit], tools: &ClientTools, tokens: usize) -> OwnAnswer {
    let mut shown = Shown::within(tokens);
    for hit in hits {
        let Some(tool) = tools.definition(&hit.tool) else {
            continue;
        };
        let cost = tools.tokens(&tool.to_string());
        let name = mcp_name(&hit.tool, tools.list);
        shown.add(tool, cost, name.as_str());
    }
    let mut value = json!({"tools": shown.tools});
    notes(&mut value, &shown.others, hits.is_empty());
    OwnAnswer::of_value(value)
}

/// Adds what else is to be known of the answer. Gives it as lines, too.
fn notes(value: &mut Value, others: &[String], is_empty: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if !others.is_empty() {
        let note = "`others` fit too, but not within `max_tokens`; raise it to see them";
        value["others"] = json!(others);
        value["note"] = note.into();
        lines.push(format!("others: {}", others.join(", ")));
        lines.push(note.to_owned());
    }
    if is_empty {
        let note = "no matching tools; try other words";
        value["note"] = note.into();
        lines.push(note.to_owned());
    }
    lines
}

/// `describe_tools`: the definitions of the tools with these names.
pub(super) async fn described(context: &McpContext, arguments: &str) -> Result<OwnAnswer, String> {
    #[derive(Deserialize)]
    struct DescribeArguments {
        names: Vec<String>,
    }
    let DescribeArguments { names } = read(DESCRIBE_TOOLS, arguments)?;
    if names.is_empty() || names.len() > DESCRIBED_MAX {
        return Err(format!(
            "`names` has {} names: name 1 to {DESCRIBED_MAX} tools",
            names.len()
        ));
    }
    let snapshot = context.shared.reader.snapshot();
    let tools = ClientTools::for_client(context, &snapshot);
    let describe = async move {
        let view = View::select(&snapshot.catalog, &tools.view);
        let mut shown = Shown::within(TOKENS_MAX);
        let mut unknown = Vec::new();
        for name in &names {
            match tools.named(&snapshot, &view, name) {
                Some(tool) => {
                    let cost = tools.tokens(&tool.to_string());
                    shown.add(tool, cost, name);
                }
                None => unknown.push(name),
            }
        }
        let mut value = json!({"tools": shown.tools});
        if !shown.others.is_empty() {
            value["others"] = json!(shown.others);
            value["note"] =
                format!("`others` have no room within {TOKENS_MAX} tokens; describe them alone")
                    .into();
        }
        if !unknown.is_empty() {
            value["unknown"] = json!(unknown);
        }
        OwnAnswer::of_value(value)
    };
    let described = rendered(&context.shared, &context.bytes, describe).await;
    described.map_err(|full| full.to_string())
}
