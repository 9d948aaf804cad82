//! Which activity runs a definition, through the merge: by its own name, by the name that it gives,
//! for a profile, and what becomes of the activity.

use callsheet::catalog::{
    Catalog, Change, Inputs, NamingStyle, View, ViewQuery, Visibility, build, explain,
};
use callsheet::model::Execution;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use crate::support::offers::{
    self, Draft, alias, change, finding_lines, id, inputs, offer, preferences, put, standing, tool,
};

const DEFINITIONS: &str = "definitions";

/// A catalog with these definitions, beside plain tools of scenarios.
fn defining(definitions: &[Draft], scenarios: &[(&str, &[&str])]) -> Catalog {
    let mut inputs = inputs(scenarios);
    put(&mut inputs, offer(DEFINITIONS, definitions));
    build(&inputs)
}

/// The listed tools with what runs them: `name: execution`.
fn listed(catalog: &Catalog, query: &ViewQuery) -> Vec<String> {
    View::select(catalog, query)
        .tools()
        .map(|tool| format!("{}: {}", tool.name, tool.execution))
        .collect()
}

fn plainly(catalog: &Catalog) -> Vec<String> {
    listed(catalog, &ViewQuery::default())
}

#[test]
fn a_tool_with_the_name_of_a_definition_runs_it_and_is_listed_as_the_definition_only() {
    let rate = [tool("rate").defined(None)];
    let latent = defining(&rate, &[("files", &["read"])]);
    assert_eq!(plainly(&latent), ["rate: latent", "read: own scenario"]);
    let explicit = latent.with(change(offer("ratings", &[tool("rate")])));
    assert_eq!(
        plainly(&explicit),
        [
            "rate: explicit by ratings/rate as rate",
            "read: own scenario"
        ]
    );
    assert_ne!(explicit.revision(), latent.revision());
    assert_eq!(
        finding_lines(&explicit),
        [
            "activity-bound ratings/rate: it is the activity of `definitions/rate`, and is listed as that only"
        ]
    );
    let activity = explicit
        .entry(&offers::scenario("ratings"))
        .unwrap()
        .tool("rate")
        .unwrap()
        .clone();
    assert_eq!(activity.name.as_str(), "ratings__rate");
    let explained = explain(&explicit, &ViewQuery::default(), &activity);
    assert!(!explained.listed);
    assert_eq!(
        explained.verdict,
        "not in the list: it is the activity of definitions/rate, which is listed"
    );
    // And back, with the bytes of before.
    let again = explicit.with(Change::Offer(offers::scenario("ratings"), None));
    assert_eq!(plainly(&again), plainly(&latent));
    assert_eq!(again.revision(), latent.revision());
}

#[test]
fn a_scenario_that_is_down_keeps_its_definition_explicit_and_a_hidden_one_runs_none() {
    let rate = [tool("rate").defined(None)];
    let before = defining(&rate, &[]);
    let ratings = offer("ratings", &[tool("rate")]);
    let down = before.with(change(standing(
        ratings.clone(),
        Visibility::Withdrawn("down".to_owned()),
    )));
    assert_eq!(plainly(&down), ["rate: explicit by ratings/rate as rate"]);
    let pending = before.with(change(standing(
        ratings,
        Visibility::Hidden("pending".to_owned()),
    )));
    assert_eq!(plainly(&pending), ["rate: latent"]);
}

#[test]
fn of_several_tools_with_its_name_none_runs_a_definition_and_a_finding_says_so() {
    let catalog = defining(
        &[tool("rate").defined(None)],
        &[("a", &["rate"]), ("b", &["rate"])],
    );
    assert_eq!(
        plainly(&catalog),
        [
            "a__rate: own scenario",
            "b__rate: own scenario",
            "rate: latent"
        ]
    );
    let lines = finding_lines(&catalog);
    let fallback = "activity-fallback definitions/rate: it is latent: several tools are called `rate`: a/rate, b/rate";
    assert!(lines.iter().any(|line| line == fallback), "{lines:?}");
}

#[test]
fn a_named_activity_is_used_as_it_is_and_one_that_is_not_there_is_an_error() {
    let scenarios: &[(&str, &[&str])] = &[("a", &["rate", "judge"]), ("b", &["rate"])];
    for (named, runs) in [
        ("b/rate", "explicit by b/rate as b/rate"),
        ("judge", "explicit by a/judge as judge"),
    ] {
        let catalog = defining(&[tool("rate").defined(Some(named))], scenarios);
        assert!(
            plainly(&catalog).contains(&format!("rate: {runs}")),
            "{:?}",
            plainly(&catalog)
        );
    }
    let missing = defining(&[tool("rate").defined(Some("c/rate"))], scenarios);
    assert!(plainly(&missing).contains(&"rate: missing c/rate".to_owned()));
    let error = "activity-missing definitions/rate: it cannot be called: no scenario offers the activity `c/rate`";
    assert!(
        finding_lines(&missing).iter().any(|line| line == error),
        "{:?}",
        finding_lines(&missing)
    );
}

#[test]
fn a_profile_may_have_an_activity_of_its_own_and_is_latent_without_it() {
    let for_profile = |profile: &str| ViewQuery {
        profile: Some(profile.to_owned()),
        ..ViewQuery::default()
    };
    let definitions = [tool("rate").defined_for("dev", "mocks/rate_mock")];
    let catalog = defining(
        &definitions,
        &[("mocks", &["rate_mock"]), ("real", &["rate"])],
    );
    let real = "rate: explicit by real/rate as rate";
    // The profile has the tool as the definition that it runs; others have it as it is.
    let mock = "rate_mock: own scenario";
    assert_eq!(plainly(&catalog), [real, mock]);
    assert_eq!(
        listed(&catalog, &for_profile("dev")),
        ["rate: explicit by mocks/rate_mock as mocks/rate_mock"]
    );
    assert_eq!(listed(&catalog, &for_profile("prod")), [real, mock]);
    let bound = "activity-bound definitions/rate: the profile `dev` has `mocks/rate_mock` listed as this tool only, which it runs";
    assert!(
        finding_lines(&catalog).iter().any(|line| line == bound),
        "{:?}",
        finding_lines(&catalog)
    );
    let mock = catalog
        .entry(&offers::scenario("mocks"))
        .unwrap()
        .tool("rate_mock")
        .unwrap()
        .clone();
    let explained = explain(&catalog, &for_profile("dev"), &mock);
    assert_eq!(
        explained.verdict,
        "not in the list: it is the activity of definitions/rate, which is listed"
    );
    assert!(explain(&catalog, &ViewQuery::default(), &mock).listed);
    assert_ne!(
        catalog.revision_for(&for_profile("dev")),
        catalog.revision_for(&for_profile("prod"))
    );
    let without = catalog.with(Change::Offer(offers::scenario("mocks"), None));
    assert_eq!(listed(&without, &for_profile("dev")), ["rate: latent"]);
    assert_ne!(
        without.revision_for(&for_profile("dev")),
        catalog.revision_for(&for_profile("dev"))
    );
    let fallback = "activity-fallback definitions/rate: it is latent for the profile `dev`: no scenario offers the activity `mocks/rate_mock`";
    assert!(
        finding_lines(&without).iter().any(|line| line == fallback),
        "{:?}",
        finding_lines(&without)
    );
}

#[test]
fn every_tool_that_can_run_is_an_activity_and_none_that_is_latent_or_a_definition() {
    let catalog = defining(&[tool("rate").defined(None)], &[("a", &["read"])]);
    let catalog = catalog.with(change(offer(
        "b",
        &[tool("think").tag("latent"), tool("act")],
    )));
    let names: Vec<String> = catalog.activities().map(ToString::to_string).collect();
    assert_eq!(names, ["a/read", "b/act"]);
    let think = catalog
        .entry(&offers::scenario("b"))
        .unwrap()
        .tool("think")
        .unwrap();
    assert_eq!(think.execution, Execution::Latent);
}

#[test]
fn an_alias_and_the_naming_style_go_before_the_name_of_a_definition() {
    let mut inputs = inputs(&[("ratings", &["rate"])]);
    put(
        &mut inputs,
        offer(DEFINITIONS, &[tool("rate").defined(None)]),
    );
    let always = build(&Inputs {
        naming: NamingStyle::Always,
        ..inputs.clone()
    });
    assert_eq!(
        plainly(&always),
        ["definitions__rate: explicit by ratings/rate as rate"]
    );
    let renamed = preferences(&[("global", "tool:definitions/rate", alias("stars"))]);
    let aliased = build(&Inputs {
        preferences: renamed,
        ..inputs
    });
    assert_eq!(
        plainly(&aliased),
        ["stars: explicit by ratings/rate as rate"]
    );
    assert_eq!(
        aliased
            .entry(&offers::scenario("ratings"))
            .unwrap()
            .tool("rate")
            .unwrap()
            .name
            .as_str(),
        "rate"
    );
}

#[derive(Debug, Clone)]
enum Act {
    Put(&'static str, Vec<&'static str>, Visibility),
    Remove(&'static str),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    const SCENARIOS: [&str; 3] = ["a", "b", DEFINITIONS];
    let standings = select(vec![
        Visibility::Published,
        Visibility::Published,
        Visibility::Withdrawn("down".to_owned()),
        Visibility::Hidden("blocked".to_owned()),
    ]);
    let tools = subsequence(vec!["read", "rate", "think"], 0..=3);
    let put = (select(SCENARIOS.to_vec()), tools, standings)
        .prop_map(|(name, tools, how)| Act::Put(name, tools, how));
    prop::collection::vec(
        prop_oneof![4 => put, 1 => select(SCENARIOS.to_vec()).prop_map(Act::Remove)],
        1..20,
    )
}

/// Of the definitions, one is run by its name, one by the name it gives, one for a profile.
fn drafts(scenario: &str, tools: &[&str]) -> Vec<Draft> {
    let draft = |name: &&str| match (scenario, *name) {
        (DEFINITIONS, "read") => tool(name).defined(None),
        (DEFINITIONS, "rate") => tool(name).defined(Some("a/think")),
        (DEFINITIONS, _) => tool(name).defined_for("dev", "b/rate"),
        _ => tool(name),
    };
    tools.iter().map(draft).collect()
}

proptest! {
    #[test]
    fn changes_one_by_one_decide_as_a_whole_build_does(acts in acts()) {
        let mut inputs = Inputs::default();
        let mut catalog = build(&Inputs::default());
        for act in acts {
            let (name, new) = match act {
                Act::Put(name, tools, how) => (name, Some(standing(offer(name, &drafts(name, &tools)), how))),
                Act::Remove(name) => (name, None),
            };
            let scenario = offers::scenario(name);
            match &new {
                Some(offer) => _ = inputs.offers.insert(scenario.clone(), offer.clone()),
                None => _ = inputs.offers.remove(&scenario),
            }
            catalog = catalog.with(Change::Offer(scenario, new));
            let whole = build(&inputs);
            prop_assert_eq!(plainly(&catalog), plainly(&whole));
            prop_assert_eq!(offers::names(&catalog), offers::names(&whole));
            prop_assert_eq!(catalog.revision(), whole.revision());
            prop_assert_eq!(finding_lines(&catalog), finding_lines(&whole));
        }
    }
}

#[test]
fn a_scenario_that_only_has_the_name_of_the_definitions_takes_over_no_name() {
    let catalog = build(&inputs(&[(DEFINITIONS, &["rate"]), ("ratings", &["rate"])]));
    assert_eq!(
        offers::names(&catalog),
        [
            "definitions__rate = definitions/rate",
            "ratings__rate = ratings/rate"
        ]
    );
    assert_eq!(id("definitions/rate").scenario.as_str(), DEFINITIONS);
}
