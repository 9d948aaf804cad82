//! Finds the texts of a manifest that a model or a person is shown, and applies the rules about
//! texts to each of them.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::hidden;
use super::rule_context::RuleContext;
use super::suspicious;
use crate::json::JsonText;
use crate::json::value::Json;
use crate::model::finding::quoted_up_to;
use crate::model::{CappedFindings, FindingCode, Manifest, RelayedKind, Tool};

/// Characters of a text that a finding quotes at most.
const QUOTED_CHARACTERS_MAX: usize = 160;
/// The members of a tool with texts, beside its name, its description and its parameters.
const MEMBERS: [&str; 4] = ["title", "annotations", "outputSchema", "output_schema"];

/// Where a protocol has what a provider says of itself, as JSON pointers.
pub(super) struct OwnTexts {
    /// What the model calls the description of the scenario.
    pub(super) description: &'static str,
    pub(super) instructions: &'static str,
}

/// Checks the texts that stand beside the tools: what the provider says of itself, its
/// instructions, prompts and resources.
pub(super) fn document(manifest: &Manifest, texts: &OwnTexts, findings: &mut CappedFindings) {
    let mut place = RuleContext::of_document(findings);
    let own = OwnNames::new(manifest, None);
    let scenario = &manifest.scenario;
    place.below(texts.description, |place| {
        text(place, &scenario.description, false, &own);
    });
    if let Some((_, instructions)) = scenario
        .extra
        .iter()
        .find(|(name, _)| &**name == "instructions")
    {
        place.below(texts.instructions, |place| {
            member(place, instructions, &own);
        });
    }
    for kind in RelayedKind::ALL {
        place.within(kind.member(), |place| {
            for offer in manifest.relayed.of(kind).iter() {
                // Providers list them in their own order, so no index leads to one.
                place.named(&offer.key, |place| {
                    text(place, &offer.key, true, &own);
                    offer
                        .members
                        .iter()
                        .for_each(|(_, json)| member(place, json, &own));
                });
            }
        });
    }
}

/// Checks the texts of a tool. `schema` is the member with its parameters, which were parsed.
pub(super) fn tool(
    place: &mut RuleContext<'_>,
    tool: &Tool,
    schema: &str,
    parameters: Option<&Json<'_>>,
    manifest: &Manifest,
) {
    let own = OwnNames::new(manifest, parameters);
    place.within("name", |place| text(place, &tool.name, true, &own));
    place.within("description", |place| {
        text(place, &tool.description, false, &own);
    });
    if let Some(parameters) = parameters {
        place.within(schema, |place| value(place, parameters, &own));
    }
    for name in MEMBERS {
        if let Some((_, json)) = tool.extra.iter().find(|(known, _)| &**known == name) {
            place.within(name, |place| member(place, json, &own));
        }
    }
}

/// The names that a provider may speak of as its own.
struct OwnNames<'m> {
    manifest: &'m Manifest,
    parameters: Option<&'m Json<'m>>,
    /// What the parameters name: gathered once for a tool, and only where a rule needs it.
    of_parameters: OnceCell<HashSet<&'m str>>,
}

impl<'m> OwnNames<'m> {
    fn new(manifest: &'m Manifest, parameters: Option<&'m Json<'m>>) -> Self {
        Self {
            manifest,
            parameters,
            of_parameters: OnceCell::new(),
        }
    }

    /// Whether one of its tools has this name or begins with it, or the tool a parameter or a value
    /// of this name.
    fn has(&self, name: &str) -> bool {
        let tools = &self.manifest.tools;
        let at = tools.partition_point(|tool| *tool.name < *name);
        let is_tool = tools
            .get(at)
            .is_some_and(|tool| tool.name.starts_with(name));
        is_tool || self.of_parameters().contains(name)
    }

    fn of_parameters(&self) -> &HashSet<&'m str> {
        self.of_parameters.get_or_init(|| {
            let mut names = HashSet::new();
            if let Some(parameters) = self.parameters {
                gather_names(parameters, &mut names);
            }
            names
        })
    }
}

/// Adds the names of all members, and the texts of all lists.
fn gather_names<'m>(json: &'m Json<'m>, names: &mut HashSet<&'m str>) {
    for item in json.list().unwrap_or_default() {
        names.extend(item.text());
        gather_names(item, names);
    }
    for (name, member) in json.members() {
        names.insert(name);
        gather_names(member, names);
    }
}

fn member(place: &mut RuleContext<'_>, json: &JsonText, own: &OwnNames<'_>) {
    if let Some(json) = Json::parse(json.get()) {
        value(place, &json, own);
    }
}

fn value(place: &mut RuleContext<'_>, json: &Json<'_>, own: &OwnNames<'_>) {
    match json {
        Json::Text(written) => text(place, written, false, own),
        Json::List(items) => {
            for (index, item) in items.iter().enumerate() {
                place.at(index, |place| value(place, item, own));
            }
        }
        Json::Object(members) => {
            for (name, member) in members {
                place.within(name, |place| {
                    text(place, name, true, own);
                    value(place, member, own);
                });
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

/// Checks one text. Words of a name are joined by underscores.
fn text(place: &mut RuleContext<'_>, text: &str, is_name: bool, own: &OwnNames<'_>) {
    let hidden = hidden::characters(text);
    if let Some(first) = hidden.first() {
        let code = u32::from(*first);
        let message = format!(
            "it has {} hidden characters, the first is U+{code:04X}",
            hidden.len()
        );
        let hint = "take them out: people do not see them, and models read them";
        place.report(FindingCode::HiddenCharacters, message, hint);
    }
    for suspicion in suspicious::judge(text, is_name, &|name| own.has(name)) {
        let quoted = quoted_up_to(&text[suspicion.part], QUOTED_CHARACTERS_MAX);
        let message = format!("it {}: {quoted}", suspicion.what);
        let hint = "read the whole text before a model does; switch the tool off, or remove its provider, if you do not trust it";
        place.report(FindingCode::SuspiciousText, message, hint);
    }
}
