//! Search on real tools and questions: the in-domain part of Seal-Tools, when the corpus is there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a helper that panics fails the test that called it")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use callsheet::catalog::{Inputs, Offer, View, ViewQuery, Visibility, build};
use callsheet::model::{JsonText, Manifest, Tool};
use serde_json::{Value, json};

use crate::support::view_tools;

fn lines(name: &str) -> Option<Vec<Value>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus");
    let corpus = std::env::var_os("CALLSHEET_CORPUS").map_or_else(beside, PathBuf::from);
    let text = std::fs::read_to_string(corpus.join("search").join(name)).ok()?;
    Some(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn tool(tool: &Value) -> Arc<Tool> {
    let text = |name: &str| tool[name].as_str().unwrap();
    let parameters = json!({"type": "object", "properties": tool["parameters"]});
    let made = view_tools::offered(view_tools::tool("seal", text("api_name"), "{}"), |made| {
        made.description = text("api_description").into();
        made.category = Some(text("field").into());
        made.parameters = JsonText::parse(&parameters.to_string()).unwrap();
    });
    made.tool
}

#[test]
fn nine_of_ten_right_tools_are_among_the_first_five() {
    let (Some(tools), Some(queries)) = (lines("sealtools-tools.jsonl"), lines("sealtools-in-domain.jsonl")) else {
        return;
    };
    let mut tools: Vec<_> = tools.iter().map(tool).collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest: Manifest = view_tools::manifest("seal", tools, Vec::new());
    let offer = Offer { manifest: Arc::new(manifest), visibility: Visibility::Published };
    let inputs = Inputs { offers: [("seal".parse().unwrap(), offer)].into(), ..Inputs::default() };
    let view = View::select(&build(&inputs), &ViewQuery::default());
    let (mut recall, mut first) = (0.0, 0.0);
    for query in &queries {
        let calls = query["calling"].as_array().unwrap();
        let right: BTreeSet<&str> = calls.iter().map(|call| call["api"].as_str().unwrap()).collect();
        let hits = view.rank(query["query"].as_str().unwrap(), 5);
        let found = hits.iter().filter(|hit| right.contains(&*hit.tool.id.tool)).count();
        recall += f64::from(u32::try_from(found).unwrap()) / f64::from(u32::try_from(right.len()).unwrap());
        first += f64::from(u8::from(hits.first().is_some_and(|hit| right.contains(&*hit.tool.id.tool))));
    }
    let count = f64::from(u32::try_from(queries.len()).unwrap());
    let (recall, first) = (recall / count, first / count);
    assert!(recall >= 0.93 && first >= 0.95, "recall among the first five {recall:.4}, the first is right {first:.4}");
}
