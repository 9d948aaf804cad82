//! The difference between two catalogs: whatever changed, what an asker knew plus what it is told
//! is what it would be shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use callsheet::catalog::{
    Catalog, Change, Offer, Touched, View, ViewQuery, Visibility, build, difference,
};
use callsheet::model::{PreferenceSet, ViewTool};
use proptest::prelude::*;

use crate::support::offers::{
    Draft, alias, enabled, inherit, inputs, offer, priority, scenario, standing, tool,
};

/// What may happen.
#[derive(Debug, Clone)]
enum Step {
    Offer(usize, Vec<(usize, usize)>, usize),
    Gone(usize),
    Prefer(usize, usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let tools = proptest::collection::vec((0_usize..5, 0_usize..6), 0..4);
    prop_oneof![
        4 => (0_usize..4, tools, 0_usize..4).prop_map(|(at, tools, standing)| Step::Offer(at, tools, standing)),
        1 => (0_usize..4).prop_map(Step::Gone),
        4 => (0_usize..3, 0_usize..7, 0_usize..6).prop_map(|(scope, target, what)| Step::Prefer(scope, target, what)),
    ]
}

const SCENARIOS: [&str; 4] = ["a", "b", "c", "a__b"];
const TOOLS: [&str; 5] = ["x", "y", "z", "b__x", "not legal"];

fn drafted((name, kind): (usize, usize)) -> Draft {
    let tool = tool(TOOLS[name]);
    match kind {
        0 => tool.off(),
        1 => tool.internal(),
        2 => tool.category("k").tag("t"),
        3 => tool.about("other words"),
        4 => tool.risky(),
        _ => tool,
    }
}

fn apply(catalog: &Catalog, preferences: &mut PreferenceSet, step: Step) -> Catalog {
    match step {
        Step::Gone(at) => catalog.with(Change::Offer(scenario(SCENARIOS[at]), None)),
        Step::Offer(at, mut tools, stands) => {
            tools.sort_unstable();
            tools.dedup_by_key(|tool| tool.0);
            let drafts: Vec<_> = tools.into_iter().map(drafted).collect();
            let made = offer(SCENARIOS[at], &drafts);
            let made: Offer = match stands {
                0 => standing(made, Visibility::Withdrawn("it is down".into())),
                1 => standing(made, Visibility::Hidden("it waits".into())),
                _ => made,
            };
            catalog.with(Change::Offer(scenario(SCENARIOS[at]), Some(made)))
        }
        Step::Prefer(scope, target, what) => {
            let scope = ["global", "profile:p", "chat:c"][scope].parse().unwrap();
            let targets = [
                "tool:a/x",
                "tool:b/x",
                "tool:c/y",
                "scenario:a",
                "scenario:b",
                "category:k",
                "tag:t",
            ];
            let of_tool = targets[target].starts_with("tool:");
            let settings = match what {
                0 => enabled(false),
                1 => enabled(true),
                2 if of_tool => alias("x"),
                3 if of_tool => alias("other"),
                4 => priority(7),
                _ => inherit(),
            };
            preferences.set(scope, targets[target].parse().unwrap(), settings);
            catalog.with(Change::Preferences(Arc::new(preferences.clone())))
        }
    }
}

fn queries() -> Vec<ViewQuery> {
    let base = ViewQuery::default;
    let text = |text: &str| Some(text.to_owned());
    let one = |word: &str| [word.to_owned()].into();
    vec![
        base(),
        ViewQuery {
            profile: text("p"),
            ..base()
        },
        ViewQuery {
            chat: text("c"),
            profile: text("p"),
            ..base()
        },
        ViewQuery {
            scenarios: [scenario("a"), scenario("b")].into(),
            ..base()
        },
        ViewQuery {
            categories: one("k"),
            ..base()
        },
        ViewQuery {
            tags: one("t"),
            chat: text("c"),
            ..base()
        },
        ViewQuery {
            q: Some("other".into()),
            ..base()
        },
        ViewQuery {
            include_disabled: true,
            include_internal: true,
            profile: text("p"),
            ..base()
        },
        ViewQuery {
            max_tools: Some(2),
            profile: text("p"),
            ..base()
        },
    ]
}

fn shown(catalog: &Catalog, query: &ViewQuery) -> BTreeMap<String, ViewTool> {
    let view = View::select(catalog, query);
    view.tools()
        .map(|tool| (tool.name.to_string(), ViewTool::clone(tool)))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_told_is_exactly_what_differs(steps in proptest::collection::vec((step(), any::<bool>()), 1..16)) {
        let first = build(&inputs(&[("a", &["x", "y"]), ("b", &["x"])]));
        let mut reported = first.clone();
        let mut now = first;
        let mut preferences = PreferenceSet::default();
        for (step, look) in steps {
            now = apply(&now, &mut preferences, step);
            // Several changes are often told together.
            if !look {
                continue;
            }
            let touched = Touched::between(&reported, &now);
            for query in queries() {
                let before = shown(&reported, &query);
                let after = shown(&now, &query);
                let found = difference(&reported, &now, &touched, &query);
                let names = |named: &[callsheet::catalog::ToolChange]| -> Vec<String> {
                    named.iter().map(|named| named.name.to_string()).collect()
                };
                let added: Vec<_> = after.keys().filter(|name| !before.contains_key(*name)).cloned().collect();
                let removed: Vec<_> = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
                let changed = after.iter().filter(|(name, tool)| before.get(*name).is_some_and(|old| old != *tool));
                let changed: Vec<_> = changed.map(|(name, _)| name.clone()).collect();
                prop_assert_eq!(names(&found.added), added, "{:?}", query);
                prop_assert_eq!(names(&found.removed), removed, "{:?}", query);
                prop_assert_eq!(names(&found.changed), changed, "{:?}", query);
                let all = [&found.added, &found.removed, &found.changed];
                prop_assert!(all.into_iter().flatten().all(|named| !named.reason.is_empty()));
                if query == ViewQuery::default() {
                    prop_assert_eq!(found.is_empty(), reported.revision() == now.revision());
                }
            }
            reported = now.clone();
        }
    }
}
