//! Compares a whole list with what the scenarios say: a fast answer that is wrong is worth nothing.

use std::borrow::Cow;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::manifests;

#[derive(Deserialize)]
struct WholeList<'a> {
    #[serde(borrow)]
    tools: Vec<Tool<'a>>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    scenario: Cow<'a, str>,
    #[serde(borrow)]
    description: Cow<'a, str>,
}

/// A native list must have exactly `tools` tools of each scenario of `scenarios`, those of the
/// edition that it offers now. Scenarios from [`guard::FIRST`](crate::guard::FIRST) on are somebody
/// else's business.
pub(crate) fn check(
    list: &[u8],
    scenarios: std::ops::Range<usize>,
    tools: usize,
    edition: impl Fn(usize) -> u64,
) -> Result<()> {
    let list: WholeList = serde_json::from_slice(list).context("the list is not a list")?;
    let mut listed = list
        .tools
        .iter()
        .filter(|tool| number(tool) < Some(crate::truth_guard::FIRST));
    // Both are in order: by scenario, then by tool.
    let mut names: Vec<(String, usize)> = scenarios.map(|at| (manifests::name(at), at)).collect();
    names.sort();
    for (name, at) in names {
        for index in 0..tools {
            let tool = listed
                .next()
                .with_context(|| format!("the list ends before {name}"))?;
            let wanted = manifests::tool(at, index);
            ensure!(
                tool.scenario == *name && tool.name == *wanted,
                "{}/{} stands for {wanted}",
                tool.scenario,
                tool.name
            );
            let right = tool.description == manifests::description(at, index, edition(at));
            ensure!(
                right,
                "{wanted} is not that of edition {}: {}",
                edition(at),
                tool.description
            );
        }
    }
    let more = listed.next();
    ensure!(
        more.is_none(),
        "{} is listed too",
        more.map_or("", |tool| &tool.name)
    );
    Ok(())
}

fn number(tool: &Tool) -> Option<usize> {
    tool.scenario.rsplit('-').next()?.parse().ok()
}
