//! Search on real tools and questions, when the corpus is there: the in-domain part of Seal-Tools,
//! and `MetaTool`.

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
    Some(
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect(),
    )
}

fn seal_tool(tool: &Value) -> Arc<Tool> {
    let text = |name: &str| tool[name].as_str().unwrap();
    let parameters = json!({"type": "object", "properties": tool["parameters"]});
    let made = view_tools::offered(view_tools::tool("seal", text("api_name"), "{}"), |made| {
        made.description = text("api_description").into();
        made.category = Some(text("field").into());
        made.parameters = JsonText::parse(&parameters.to_string()).unwrap();
    });
    made.tool
}

fn meta_tool(tool: &Value) -> Arc<Tool> {
    let text = |name: &str| tool[name].as_str().unwrap();
    let described = |made: &mut Tool| made.description = text("description").into();
    view_tools::offered(view_tools::tool("meta", text("name"), "{}"), described).tool
}

/// A view of these tools.
fn view_of(mut tools: Vec<Arc<Tool>>) -> View {
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let manifest: Manifest = view_tools::manifest("corpus", tools, Vec::new());
    let offer = Offer {
        manifest: Arc::new(manifest),
        visibility: Visibility::Published,
    };
    let inputs = Inputs {
        offers: [("corpus".parse().unwrap(), offer)].into(),
        ..Inputs::default()
    };
    View::select(&build(&inputs), &ViewQuery::default())
}

/// What share of the right tools is among the first five hits of a question, and for which share of
/// questions the first hit is right.
fn scores<'a>(
    view: &View,
    questions: impl Iterator<Item = (&'a str, BTreeSet<&'a str>)>,
) -> (f64, f64) {
    let mut recall = 0.0;
    let mut first = 0.0;
    let mut count = 0.0;
    for (question, right) in questions {
        let hits = view.rank(question, 5);
        let found = hits
            .iter()
            .filter(|hit| right.contains(&*hit.tool.id.tool))
            .count();
        recall += f64::from(u32::try_from(found).unwrap())
            / f64::from(u32::try_from(right.len()).unwrap());
        first += f64::from(u8::from(
            hits.first()
                .is_some_and(|hit| right.contains(&*hit.tool.id.tool)),
        ));
        count += 1.0;
    }
    (recall / count, first / count)
}

#[test]
fn nine_of_ten_right_tools_are_among_the_first_five() {
    let (Some(tools), Some(queries)) = (
        lines("sealtools-tools.jsonl"),
        lines("sealtools-in-domain.jsonl"),
    ) else {
        return;
    };
    let questions = queries.iter().map(|query| {
        let calls = query["calling"].as_array().unwrap();
        (
            query["query"].as_str().unwrap(),
            calls
                .iter()
                .map(|call| call["api"].as_str().unwrap())
                .collect(),
        )
    });
    let (recall, first) = scores(&view_of(tools.iter().map(seal_tool).collect()), questions);

    assert!(
        recall >= 0.93 && first >= 0.95,
        "recall among the first five {recall:.4}, the first is right {first:.4}"
    );
}

#[test]
fn three_of_five_right_tools_are_among_the_first_five_for_everyday_questions() {
    let (Some(tools), Some(queries)) = (
        lines("metatool-tools.jsonl"),
        lines("metatool-queries.jsonl"),
    ) else {
        return;
    };
    let view = view_of(tools.iter().map(meta_tool).collect());
    for kind in ["single-", "multi-"] {
        let questions = queries
            .iter()
            .filter(|query| query["id"].as_str().unwrap().starts_with(kind))
            .map(|query| {
                let right = query["tools"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|tool| tool.as_str().unwrap());
                (query["query"].as_str().unwrap(), right.collect())
            });

        let (recall, first) = scores(&view, questions);
        assert!(
            recall >= 0.61,
            "{kind}: recall among the first five {recall:.4}, the first is right {first:.4}"
        );
    }
}
