//! Properties of search over random changes: what an index has grown into is what a new one would
//! be, in whatever order scenarios came.

use std::collections::BTreeMap;

use callsheet::catalog::{Catalog, Change, Hit, Inputs, View, ViewQuery, Visibility, build};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::offers::{self, Draft, alias, enabled, offer, preferences, standing, tool};

const SCENARIOS: [&str; 4] = ["mail", "files", "notes", "web-search"];
const TEXTS: [&str; 6] = [
    "read a file",
    "sendLetter",
    "Café größe. Then list notes!",
    "search",
    "listt nots",
    "送信 メール 天",
];

fn drafts() -> impl Strategy<Value = Vec<Draft>> {
    let names = prop::collection::btree_set(
        select(vec![
            "read",
            "readFile",
            "list_notes",
            "send letter",
            "search",
            "天気予報",
            "Größe",
        ]),
        0..5,
    );
    let about = select(vec![
        "",
        "Reads a file",
        "sends a café letter; lists notes",
        "メールを送信する",
    ]);
    (names, about).prop_map(|(names, about)| {
        names
            .into_iter()
            .map(|name| tool(name).about(about))
            .collect()
    })
}

fn change() -> impl Strategy<Value = Change> {
    let scenario = select(SCENARIOS.to_vec());
    prop_oneof![
        6 => (scenario.clone(), drafts(), 0..5_u8).prop_map(|(name, drafts, kind)| {
            let held = offer(name, &drafts);
            let held = match kind {
                0 => standing(held, Visibility::Withdrawn("down".into())),
                1 => standing(held, Visibility::Hidden("blocked".into())),
                _ => held,
            };
            offers::change(held)
        }),
        1 => scenario.prop_map(|name| Change::Offer(name.parse().unwrap(), None)),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(on, named)| {
            let settings = if named { alias("rewind") } else { enabled(on) };
            Change::Preferences(preferences(&[("global", "tool:mail/read", settings)]))
        }),
    ]
}

fn answers(catalog: &Catalog) -> Vec<Vec<Hit>> {
    let view = View::select(catalog, &ViewQuery::default());
    TEXTS
        .iter()
        .flat_map(|text| [view.rank(text, 5), view.palette(text, &[], 5)])
        .collect()
}

/// The catalog built anew from what is in `grown`, and the same put in one by one from behind.
fn anew(grown: &Catalog) -> [Catalog; 2] {
    let offers: BTreeMap<_, _> = grown
        .entries()
        .map(|entry| {
            let manifest = entry.manifest.clone();
            let standing = entry.visibility.clone();
            (
                entry.name.clone(),
                callsheet::catalog::Offer {
                    manifest,
                    visibility: standing,
                },
            )
        })
        .collect();
    let empty = Inputs {
        preferences: grown.preferences().clone().into(),
        ..Inputs::default()
    };
    let backwards = offers
        .iter()
        .rev()
        .fold(build(&empty), |catalog, (name, offer)| {
            catalog.with(Change::Offer(name.clone(), Some(offer.clone())))
        });
    [build(&Inputs { offers, ..empty }), backwards]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_grown_index_answers_like_a_new_one(changes in prop::collection::vec(change(), 1..10)) {
        let mut catalog = Catalog::default();
        for change in changes {
            catalog = catalog.with(change);
            let grown = answers(&catalog);
            for other in anew(&catalog) {
                prop_assert_eq!(&grown, &answers(&other));
            }
            for hit in grown.iter().flatten() {
                let entry = catalog.entry(&hit.tool.id.scenario).unwrap();
                prop_assert!(entry.is_published() && hit.tool.effective.enabled);
                prop_assert!(hit.score > 0.0);
            }
        }
    }

    #[test]
    fn no_text_is_too_much(name in "\\PC{1,40}", about in "\\PC{0,200}", text in "(\\PC|\\p{Cc}|[a-z ]){0,80}") {
        let mut inputs = Inputs::default();
        offers::put(&mut inputs, offer("odd", &[tool(&name).about(&about)]));
        let view = View::select(&build(&inputs), &ViewQuery::default());
        prop_assert!(view.rank(&text, 5).len() <= 1);
        prop_assert!(view.palette(&text, &[], 5).len() <= 1);
    }
}
