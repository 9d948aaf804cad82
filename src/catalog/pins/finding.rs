//! What findings say about definitions that were not accepted.

use super::PinVerdict;
use super::difference::{PinChange, PinDifference, PinSubject};
use crate::model::finding::{quoted_excerpt, quoted_up_to};
use crate::model::{Finding, FindingCode, HeldTool, PinMode, ScenarioName};

/// Tools of one kind that a finding names; the rest are counted.
const NAMED_TOOLS_MAX: usize = 5;
/// Differences of which a finding shows a part.
const SHOWN_DIFFERENCES_MAX: usize = 3;
/// Characters of one side of a difference.
const SHOWN_CHARACTERS_MAX: usize = 120;

/// The findings about a scenario: one about all differences that are not held, and one about
/// instructions that are. Those about held tools are made by the catalog.
pub fn findings(scenario: &ScenarioName, mode: PinMode, verdict: &PinVerdict) -> Vec<Finding> {
    let is_held = |one: &PinDifference| mode == PinMode::Hold && one.is_held();
    let seen = verdict.differences.iter().filter(|one| !is_held(one));
    let seen: Vec<&PinDifference> = seen.collect();
    let is_instructions = |one: &&PinDifference| one.subject == PinSubject::Instructions;
    let mut findings: Vec<Finding> = changed(scenario, mode, &seen).into_iter().collect();
    let mut held = verdict.differences.iter().filter(|one| is_held(one));
    if held.any(|one| is_instructions(&one)) {
        let message = "its instructions changed, and are not passed on";
        let finding = Finding::new(FindingCode::InstructionsHeld, message);
        findings.push(finding.of_scenario(scenario).hint(look(scenario)));
    }
    findings
}

/// The finding about these differences; `None` if there are none.
fn changed(
    scenario: &ScenarioName,
    mode: PinMode,
    differences: &[&PinDifference],
) -> Option<Finding> {
    if differences.is_empty() {
        return None;
    }
    let of = |change: PinChange| {
        let those = differences.iter();
        let those = those.filter(move |one| one.change == change && !one.is_frequent);
        those.filter_map(|one| one.subject.tool())
    };
    let mut clauses = Vec::new();
    for (change, words) in [
        (PinChange::Changed, "changed"),
        (PinChange::New, "new"),
        (PinChange::Removed, "removed"),
    ] {
        clauses.extend(named(words, of(change).map(AsRef::as_ref)));
    }
    let frequent = differences.iter().filter(|one| one.is_frequent);
    let frequent = frequent.filter_map(|one| one.subject.tool());
    clauses.extend(named("changes often", frequent.map(AsRef::as_ref)));
    if differences
        .iter()
        .any(|one| one.subject == PinSubject::Instructions)
    {
        clauses.push("its instructions changed".to_owned());
    }
    let shown = differences.iter().filter(|one| !one.is_frequent);
    let parts: Vec<String> = shown
        .filter_map(|one| part(one))
        .take(SHOWN_DIFFERENCES_MAX)
        .collect();
    let parts = if parts.is_empty() {
        String::new()
    } else {
        format!(": {}", parts.join("; "))
    };
    let message = format!(
        "it offers something else than was accepted ({}){parts}",
        clauses.join(", ")
    );
    let end = match mode {
        PinMode::Hold => "",
        PinMode::Off | PinMode::Warn => "; after 7 days it counts as accepted",
    };
    let hint = look(scenario) + end;
    let finding = Finding::new(FindingCode::DefinitionsChanged, message);
    Some(finding.of_scenario(scenario).hint(hint))
}

/// The finding about a tool that is held.
pub(in crate::catalog) fn of_held(scenario: &ScenarioName, held: &HeldTool) -> Finding {
    Finding::new(FindingCode::ToolHeld, held.reason())
        .of_scenario(scenario)
        .of_tool(held.name.clone())
        .hint(look(scenario))
}

/// How a person sees the whole difference, and accepts it.
fn look(scenario: &ScenarioName) -> String {
    format!(
        "`callsheet pins {scenario}` shows what differs, and `callsheet pins accept {scenario}` accepts it"
    )
}

/// Some tools with what is the matter with them.
fn named<'a>(words: &str, tools: impl Iterator<Item = &'a str>) -> Option<String> {
    let all: Vec<&str> = tools.collect();
    let names: Vec<String> = all
        .iter()
        .take(NAMED_TOOLS_MAX)
        .map(|name| quoted_excerpt(name))
        .collect();
    let more = match all.len().saturating_sub(NAMED_TOOLS_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!all.is_empty()).then(|| format!("{words}: {}{more}", names.join(" ")))
}

/// The first part in which a definition differs.
fn part(one: &PinDifference) -> Option<String> {
    let difference = one.difference()?;
    let part = difference.parts.first()?;
    let of = match &one.subject {
        PinSubject::Instructions => "instructions".to_owned(),
        PinSubject::Tool(name) => {
            format!("{} {}", quoted_excerpt(name), quoted_excerpt(&part.pointer))
        }
    };
    let side = |text: &Option<String>| {
        text.as_deref().map_or_else(
            || "not there".to_owned(),
            |text| quoted_up_to(text, SHOWN_CHARACTERS_MAX),
        )
    };
    Some(format!(
        "{of} was {}, is {}",
        side(&part.before),
        side(&part.after)
    ))
}
