//! Properties of the merge over random sequences of changes: the incremental way equals the full
//! rebuild, order does not matter, names are unique, follow the written rule and are never taken
//! over, and what does not change is shared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use callsheet::catalog::{
    Catalog, Change, Inputs, NameLookup, NamingStyle, Offer, View, ViewQuery, Visibility, build,
    find_in_scope,
};
use callsheet::model::{
    ApprovalPolicy, NameRef, ParameterOverrides, PreferenceSet, PreferenceTarget, Profile,
    PublishedName, ScenarioName, Scope, Settings, ToolId, ViewTool,
};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::support::offers;

/// Names that meet in every way: as they are, qualified, repaired, cut, and in the reserved shape.
const SCENARIOS: [&str; 6] = ["a", "a__b", "b", "1x", "d.e", "d_e"];

fn tool_names() -> Vec<String> {
    let reserved = PublishedName::unique(&offers::id("a/b__c")).to_string();
    let fixed = [
        "c",
        "b__c",
        "read",
        "read file",
        "a__read",
        "b__read",
        "a__b__c",
        "ping",
    ];
    fixed
        .into_iter()
        .map(str::to_owned)
        .chain(["x".repeat(70), reserved])
        .collect()
}

#[derive(Debug, Clone)]
enum Act {
    Put(ScenarioName, Offer),
    Remove(ScenarioName),
    Prefer(Scope, PreferenceTarget, Settings),
    Name(NamingStyle),
    /// The profile `p` may see these scenarios only.
    Bound(Vec<ScenarioName>),
}

fn drafts() -> impl Strategy<Value = Vec<offers::Draft>> {
    let names = subsequence(tool_names(), 0..=4);
    (names, prop::collection::vec(0..12_u8, 4)).prop_map(|(names, kinds)| {
        let draft = |(name, kind): (String, u8)| {
            let draft = offers::tool(&name);
            match kind {
                0 => draft.off(),
                1 => draft.internal(),
                2 => draft.tag("t").tag("u"),
                3 => draft.tag("u").category("k"),
                4 => draft.about("changed"),
                _ => draft,
            }
        };
        names.into_iter().zip(kinds).map(draft).collect()
    })
}

fn standings() -> impl Strategy<Value = Visibility> {
    prop_oneof![
        6 => Just(Visibility::Published),
        1 => select(vec!["down", "worse"]).prop_map(|why| Visibility::Withdrawn(why.to_owned())),
        1 => Just(Visibility::Hidden("blocked".to_owned())),
    ]
}

fn targets() -> impl Strategy<Value = PreferenceTarget> {
    let tool = (select(SCENARIOS.to_vec()), select(tool_names())).prop_map(|(scenario, tool)| {
        PreferenceTarget::Tool(ToolId::new(offers::scenario(scenario), tool))
    });
    prop_oneof![
        5 => tool,
        1 => select(SCENARIOS.to_vec()).prop_map(|name| PreferenceTarget::Scenario(offers::scenario(name))),
        1 => select(vec!["t", "u"]).prop_map(|tag| PreferenceTarget::Tag(tag.to_owned())),
        1 => Just(PreferenceTarget::Category("k".to_owned())),
    ]
}

fn settings() -> impl Strategy<Value = Settings> {
    let aliases: Vec<_> = tool_names()
        .iter()
        .filter_map(|name| PublishedName::alias(name).ok())
        .collect();
    let approval = prop::option::of(select(vec![ApprovalPolicy::Require, ApprovalPolicy::Skip]));
    (
        prop::option::of(any::<bool>()),
        approval,
        prop::option::of(select(aliases)),
        prop::option::of(-1..2_i32),
        prop::option::of(any::<bool>()),
        prop::option::of(any::<bool>()),
    )
        .prop_map(
            |(enabled, approval, alias, priority, pinned, overrides)| Settings {
                enabled,
                approval,
                alias,
                priority,
                pinned,
                pins: None,
                description: overrides.map(|_| "Says something else".into()),
                // A fixed value for a parameter that no tool has withholds the tool.
                parameters: overrides
                    .filter(|withheld| *withheld)
                    .map(|_| ParameterOverrides::parse(r#"{"gone":{"fixed":1}}"#).unwrap()),
            },
        )
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let put =
        (select(SCENARIOS.to_vec()), drafts(), standings()).prop_map(|(name, drafts, standing)| {
            Act::Put(
                offers::scenario(name),
                offers::standing(offers::offer(name, &drafts), standing),
            )
        });
    let scopes = select(vec!["global", "global", "profile:p", "chat:7"])
        .prop_map(|text| text.parse().unwrap());
    let bounds = subsequence(SCENARIOS.map(offers::scenario).to_vec(), 0..=6);
    let act = prop_oneof![
        5 => put,
        1 => select(SCENARIOS.to_vec()).prop_map(|name| Act::Remove(offers::scenario(name))),
        4 => (scopes, targets(), settings()).prop_map(|(scope, target, s)| Act::Prefer(scope, target, s)),
        1 => styles().prop_map(Act::Name),
        1 => bounds.prop_map(Act::Bound),
    ];
    prop::collection::vec(act, 1..25)
}

fn styles() -> impl Strategy<Value = NamingStyle> {
    prop_oneof![4 => Just(NamingStyle::OnCollision), 1 => Just(NamingStyle::Always)]
}

/// Applies an act both to the inputs and, as a change, to the catalog.
fn apply(inputs: &mut Inputs, catalog: &Catalog, act: &Act) -> Catalog {
    match act {
        Act::Put(name, offer) => {
            inputs.offers.insert(name.clone(), offer.clone());
            catalog.with(Change::Offer(name.clone(), Some(offer.clone())))
        }
        Act::Remove(name) => {
            inputs.offers.remove(name);
            catalog.with(Change::Offer(name.clone(), None))
        }
        Act::Prefer(scope, target, settings) => {
            let mut set = PreferenceSet::clone(&inputs.preferences);
            set.set(scope.clone(), target.clone(), settings.clone());
            inputs.preferences = Arc::new(set);
            catalog.with(Change::Preferences(Arc::clone(&inputs.preferences)))
        }
        Act::Name(style) => {
            inputs.naming = *style;
            catalog.with(Change::Naming(*style))
        }
        Act::Bound(scenarios) => {
            let bounds = Profile {
                scenarios: Some(scenarios.iter().cloned().collect()),
                ..Profile::default()
            };
            inputs.profiles = Arc::new(BTreeMap::from([("p".to_owned(), bounds)]).into());
            catalog.with(Change::Profiles(Arc::clone(&inputs.profiles)))
        }
    }
}

fn queries() -> Vec<ViewQuery> {
    let scoped = |profile: Option<&str>, chat: Option<&str>| ViewQuery {
        profile: profile.map(str::to_owned),
        chat: chat.map(str::to_owned),
        include_disabled: true,
        include_internal: true,
        ..ViewQuery::default()
    };
    vec![
        ViewQuery::default(),
        scoped(None, None),
        scoped(Some("p"), None),
        scoped(None, Some("7")),
        scoped(Some("p"), Some("7")),
    ]
}

/// What a lookup answers, by value.
fn found(found: NameLookup) -> Vec<ViewTool> {
    match found {
        NameLookup::One(tool) => vec![ViewTool::clone(&tool)],
        NameLookup::Ambiguous(tools) => tools.iter().map(|tool| ViewTool::clone(tool)).collect(),
        NameLookup::None => Vec::new(),
    }
}

/// Asking for some findings gives just those of all that are asked for.
fn assert_filters(catalog: &Catalog) {
    let all = catalog.findings();
    for each in &all {
        let of_code: Vec<_> = all
            .iter()
            .filter(|finding| finding.code == each.code)
            .cloned()
            .collect();
        assert_eq!(
            catalog.findings_where(None, |code| code == each.code),
            of_code
        );
        if let Some(scenario) = &each.scenario {
            let of_both: Vec<_> = of_code
                .into_iter()
                .filter(|finding| finding.scenario.as_ref() == Some(scenario))
                .collect();
            assert_eq!(
                catalog.findings_where(Some(scenario), |code| code == each.code),
                of_both
            );
        }
    }
    assert_eq!(catalog.findings_where(None, |_| false), []);
}

/// Everything that can be seen of a catalog, by value.
fn seen(catalog: &Catalog) -> String {
    let mut all = vec![format!("{}", catalog.revision())];
    for entry in catalog.entries() {
        all.push(format!(
            "{} {:?} {} {:?} {:?}",
            entry.name, entry.visibility, entry.digest, entry.tools, entry.listed
        ));
    }
    all.push(format!("{:?}", catalog.findings()));
    assert_filters(catalog);
    for query in queries() {
        let view = View::select(catalog, &query);
        let parts: Vec<_> = view
            .parts
            .iter()
            .map(|part| (&part.entry.name, part.whole, &part.tools))
            .collect();
        all.push(format!("{} {parts:?}", catalog.revision_for(&query)));
        let tools = catalog.entries().flat_map(|entry| entry.tools.iter());
        let published: Vec<String> = tools.map(|tool| tool.name.to_string()).collect();
        for name in tool_names().into_iter().chain(published) {
            all.push(format!(
                "{:?}",
                found(find_in_scope(catalog, &query, &NameRef::parse(&name)))
            ));
        }
    }
    all.join("\n")
}

/// The first line that differs, cut from the first different character on: both texts have up to
/// 32,000 characters.
fn difference(one: &str, other: &str) -> Option<(String, String)> {
    let lines = one.lines().map(Some).chain(std::iter::repeat(None));
    let others = other.lines().map(Some).chain(std::iter::repeat(None));
    let both = lines
        .zip(others)
        .take_while(|(one, other)| one.is_some() || other.is_some());
    let (one, other) = both
        .map(|(one, other)| (one.unwrap_or("(no line)"), other.unwrap_or("(no line)")))
        .find(|(one, other)| one != other)?;
    let same = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other)
        .count();
    let part = |line: &str| {
        line.chars()
            .skip(same.saturating_sub(60))
            .take(200)
            .collect()
    };
    Some((part(one), part(other)))
}

/// The tools that claim names, with the ones they have.
fn named(catalog: &Catalog) -> BTreeMap<ToolId, PublishedName> {
    let entries = catalog
        .entries()
        .filter(|entry| !matches!(entry.visibility, Visibility::Hidden(_)));
    entries
        .flat_map(|entry| entry.tools.iter())
        .map(|tool| (tool.id.clone(), tool.name.clone()))
        .collect()
}

/// The rule of names written out the slow way, over all tools at once.
fn expected_names(inputs: &Inputs) -> BTreeMap<ToolId, PublishedName> {
    let offers = inputs
        .offers
        .iter()
        .filter(|(_, offer)| !matches!(offer.visibility, Visibility::Hidden(_)));
    let ids: Vec<ToolId> = offers
        .flat_map(|(name, offer)| {
            offer
                .manifest
                .tools
                .iter()
                .map(|tool| ToolId::new(name.clone(), Arc::clone(&tool.name)))
        })
        .collect();
    let alias = |id: &ToolId| {
        inputs
            .preferences
            .get(&Scope::Global, &PreferenceTarget::Tool(id.clone()))?
            .alias
            .clone()
    };
    let plain = |id: &ToolId| {
        let wants = alias(id).is_none() && inputs.naming == NamingStyle::OnCollision;
        wants.then(|| PublishedName::plain(&id.tool))
    };
    let name = |id: &ToolId| {
        let others = || ids.iter().filter(|other| *other != id);
        let gets = |name: &PublishedName| {
            !name.is_reserved()
                && others().all(|other| PublishedName::qualified(other) != *name)
                && others().all(|other| alias(other).as_ref() != Some(name))
                && (alias(id).is_some()
                    || others().all(|other| plain(other).as_ref() != Some(name)))
        };
        let qualified = PublishedName::qualified(id);
        let claims = |other: &ToolId| {
            [
                alias(other),
                plain(other),
                Some(PublishedName::qualified(other)),
            ]
        };
        let undisputed = others().all(|other| !claims(other).contains(&Some(qualified.clone())));
        let fallback = || {
            if undisputed {
                qualified.clone()
            } else {
                PublishedName::unique(id)
            }
        };
        alias(id)
            .or_else(|| plain(id))
            .filter(gets)
            .unwrap_or_else(fallback)
    };
    ids.iter().map(|id| (id.clone(), name(id))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changing_equals_rebuilding(acts in acts(), naming in styles()) {
        let mut inputs = Inputs { naming, ..Inputs::default() };
        let mut catalog = build(&inputs);
        for act in &acts {
            catalog = apply(&mut inputs, &catalog, act);
            prop_assert_eq!(difference(&seen(&catalog), &seen(&build(&inputs))), None, "changed, and built anew");
        }
    }

    #[test]
    fn names_follow_the_rule_and_are_unique_in_every_scope(acts in acts(), naming in styles()) {
        let mut inputs = Inputs { naming, ..Inputs::default() };
        let mut catalog = build(&inputs);
        for act in &acts {
            catalog = apply(&mut inputs, &catalog, act);
        }
        let names = named(&catalog);
        prop_assert_eq!(&names, &expected_names(&inputs));
        prop_assert_eq!(names.values().collect::<BTreeSet<_>>().len(), names.len());
        for (id, name) in &names {
            let found = found(catalog.find(&NameRef::Bare(name.to_string())));
            prop_assert_eq!(found.iter().map(|tool| &tool.id).collect::<Vec<_>>(), vec![id]);
        }
        for query in queries() {
            let view = View::select(&catalog, &query);
            let names: BTreeSet<_> = view.tools().map(|tool| &tool.name).collect();
            prop_assert_eq!(names.len(), view.len());
            for tool in view.tools() {
                let found = found(find_in_scope(&catalog, &query, &NameRef::Bare(tool.name.to_string())));
                prop_assert_eq!(found, vec![ViewTool::clone(tool)]);
            }
        }
    }

    #[test]
    fn the_order_of_changes_does_not_matter(
        offers in prop::collection::btree_map(select(SCENARIOS.to_vec()), (drafts(), standings()), 0..6),
        wanted in prop::collection::vec((targets(), settings()), 0..6),
        order in Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let mut inputs = Inputs::default();
        for (target, settings) in wanted {
            Arc::make_mut(&mut inputs.preferences).set(Scope::Global, target, settings);
        }
        let mut changes = vec![Change::Preferences(Arc::clone(&inputs.preferences))];
        for (name, (drafts, standing)) in offers {
            let offer = offers::standing(offers::offer(name, &drafts), standing);
            inputs.offers.insert(offers::scenario(name), offer.clone());
            changes.push(offers::change(offer));
        }
        let shuffled = order.iter().filter_map(|at| changes.get(*at).cloned());
        let catalog = shuffled.fold(Catalog::default(), |catalog, change| catalog.with(change));
        prop_assert_eq!(difference(&seen(&catalog), &seen(&build(&inputs))), None, "changed, and built anew");
        let preferences = build(&Inputs { offers: BTreeMap::new(), ..inputs.clone() });
        let together = inputs.offers.iter().map(|(name, offer)| (name.clone(), Some(offer.clone()))).collect();
        prop_assert_eq!(difference(&seen(&preferences.with(Change::Offers(together))), &seen(&catalog)), None, "at once, and one by one");
    }

    #[test]
    fn no_newcomer_takes_a_name_over(acts in acts(), newcomer in drafts()) {
        let mut inputs = Inputs::default();
        let mut catalog = Catalog::default();
        // An alias is a user's decision to take a name, so the newcomer comes without one.
        let of_newcomer = |act: &Act| matches!(act, Act::Put(name, _) if name.as_str() == "b")
            || matches!(act, Act::Prefer(_, PreferenceTarget::Tool(id), _) if id.scenario.as_str() == "b");
        for act in acts.iter().filter(|act| !of_newcomer(act)) {
            catalog = apply(&mut inputs, &catalog, act);
        }
        let before = named(&catalog);
        let after = named(&catalog.with(offers::change(offers::offer("b", &newcomer))));
        let owners: BTreeMap<_, _> = after.iter().map(|(id, name)| (name, id)).collect();
        for (id, name) in &before {
            prop_assert!(owners.get(name).is_none_or(|owner| *owner == id), "{} went from {} to {:?}", name, id, owners.get(name));
        }
    }

    #[test]
    fn what_does_not_change_is_shared(acts in acts()) {
        let mut inputs = Inputs::default();
        let mut catalog = Catalog::default();
        for act in &acts {
            let next = apply(&mut inputs, &catalog, act);
            for (old, new) in catalog.entries().filter_map(|old| Some((old, next.entry(&old.name)?))) {
                let equal = old.digest == new.digest && old.visibility == new.visibility;
                prop_assert_eq!(Arc::ptr_eq(old, new), equal, "{}", &old.name);
            }
            catalog = next;
        }
    }
}
