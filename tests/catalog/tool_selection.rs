//! Who gets the places when tools compete for them: relevance, budgets, what is pinned, carried and
//! deferred. Through the library.

use std::collections::BTreeSet;

use callsheet::catalog::{
    Catalog, Defer, Estimator, Generic, Inputs, StickyTools, ToolMark, View, ViewNote, ViewQuery,
    Visibility, build,
};
use callsheet::model::{Settings, ToolId, ViewTool};
use proptest::prelude::*;
use proptest::sample::select;

use crate::support::offers::{
    enabled, inherit, inputs, offer, preferences, priority, put, standing, tool,
};

/// A target that can defer so many, and cannot say tools called `unsaid`.
struct Deferring(usize);

impl Estimator for Deferring {
    fn tokens(&self, tool: &ViewTool) -> Option<usize> {
        (*tool.id.tool != *"unsaid")
            .then(|| Generic.tokens(tool))
            .flatten()
    }

    fn max_deferred(&self) -> Option<usize> {
        Some(self.0)
    }
}

fn pinned() -> Settings {
    Settings {
        pinned: Some(true),
        ..inherit()
    }
}

fn office() -> Inputs {
    let mut inputs = Inputs::default();
    let long = "Sends an electronic letter to somebody, with copies, attachments and everything else that a letter may have";
    put(
        &mut inputs,
        offer(
            "files",
            &[
                tool("read").about("Reads a file"),
                tool("wipe").about("Removes a file"),
            ],
        ),
    );
    put(
        &mut inputs,
        offer(
            "mail",
            &[
                tool("send").about(long),
                tool("sort").about("Sorts letters into folders"),
            ],
        ),
    );
    put(
        &mut inputs,
        offer(
            "music",
            &[
                tool("play").about("Plays a song"),
                tool("stop").about("Stops the song"),
            ],
        ),
    );
    inputs
}

fn query(change: impl FnOnce(&mut ViewQuery)) -> ViewQuery {
    let mut query = ViewQuery::default();
    change(&mut query);
    query
}

/// The tools in order, those that are deferred in brackets.
fn shown(view: &View) -> Vec<String> {
    let text = |tool: &ViewTool| {
        if view.is_deferred(tool) {
            format!("({})", tool.id)
        } else {
            tool.id.to_string()
        }
    };
    view.tools().map(|tool| text(tool)).collect()
}

fn select_in(inputs: &Inputs, change: impl FnOnce(&mut ViewQuery)) -> View {
    View::select(&build(inputs), &query(change))
}

fn left_out(view: &View) -> Vec<(String, &'static str)> {
    view.left_out
        .iter()
        .map(|left| (left.tool.id.to_string(), left.why.code()))
        .collect()
}

#[test]
fn a_budget_of_tools_goes_to_the_relevant_ones_and_the_list_keeps_its_order() {
    let view = select_in(&office(), |query| {
        query.q = Some("play a song or stop it, maybe read".into());
        query.max_tools = Some(2);
    });
    assert_eq!(shown(&view), ["music/play", "music/stop"]);
    let left = left_out(&view);
    assert!(
        left.contains(&("files/read".into(), "over-max-tools")),
        "{left:?}"
    );
    assert!(
        left.contains(&("mail/sort".into(), "irrelevant")),
        "{left:?}"
    );
}

#[test]
fn a_budget_of_tokens_skips_what_is_too_big() {
    let catalog = build(&office());
    let all = View::select(&catalog, &ViewQuery::default());
    let sizes: Vec<usize> = all
        .tools()
        .map(|tool| Generic.tokens(tool).unwrap())
        .collect();
    // Room for the two before the long one, and for one behind it.
    let budget = sizes[0] + sizes[1] + sizes[3];
    assert!(sizes[2] > sizes[3]);
    let view = View::select(&catalog, &query(|query| query.max_tokens = Some(budget)));
    assert_eq!(shown(&view), ["files/read", "files/wipe", "mail/sort"]);
    assert_eq!(left_out(&view)[0], ("mail/send".into(), "over-max-tokens"));
}

#[test]
fn pinned_tools_stay_whatever_is_searched_and_however_small_the_budget_but_not_beyond_the_cap() {
    let mut inputs = office();
    inputs.preferences = preferences(&[
        ("global", "scenario:mail", pinned()),
        ("global", "tool:files/wipe", priority(9)),
    ]);
    let searched = select_in(&inputs, |query| query.q = Some("song".into()));
    assert_eq!(
        shown(&searched),
        ["mail/send", "mail/sort", "music/play", "music/stop"]
    );
    let small = select_in(&inputs, |query| query.max_tools = Some(1));
    assert_eq!(shown(&small), ["mail/send", "mail/sort"]);
    assert_eq!(small.notes, [ViewNote::PinnedOverBudget]);
    let tokens = select_in(&inputs, |query| query.max_tokens = Some(1));
    assert_eq!(shown(&tokens), shown(&small));
    assert_eq!(tokens.notes, small.notes.clone());
    let more = select_in(&inputs, |query| query.max_tools = Some(3));
    assert_eq!(
        shown(&more),
        ["files/wipe", "mail/send", "mail/sort"],
        "then comes the highest priority"
    );
    assert_eq!(more.notes, []);
    let capped = select_in(&inputs, |query| query.cap = Some(1));
    assert_eq!(shown(&capped), ["mail/send"]);
    assert!(left_out(&capped).contains(&("mail/sort".into(), "over-cap")));
}

#[test]
fn a_chat_can_unpin_what_the_global_scope_pins() {
    let mut inputs = office();
    let off = Settings {
        pinned: Some(false),
        ..inherit()
    };
    inputs.preferences = preferences(&[
        ("global", "tool:mail/send", pinned()),
        ("chat:7", "tool:mail/send", off),
    ]);
    let chosen = |chat: Option<&str>| {
        shown(&select_in(&inputs, |query| {
            query.q = Some("song".into());
            query.chat = chat.map(str::to_owned);
        }))
    };
    assert_eq!(chosen(None), ["mail/send", "music/play", "music/stop"]);
    assert_eq!(chosen(Some("7")), ["music/play", "music/stop"]);
}

#[test]
fn tools_are_deferred_by_relevance_or_preference_and_never_all() {
    let catalog = build(&office());
    let by = |target: &dyn Estimator, change: &dyn Fn(&mut ViewQuery)| {
        View::select_for(&catalog, &query(change), target)
    };
    let relevance = |query: &mut ViewQuery| {
        query.defer = Some(Defer::Relevance);
        query.q = Some("song".into());
    };
    let all = [
        "(files/read)",
        "(files/wipe)",
        "(mail/send)",
        "(mail/sort)",
        "music/play",
        "music/stop",
    ];
    assert_eq!(shown(&by(&Deferring(100), &relevance)), all);
    let few = by(&Deferring(3), &relevance);
    assert_eq!(
        shown(&few),
        [
            "(files/read)",
            "(files/wipe)",
            "(mail/send)",
            "music/play",
            "music/stop"
        ]
    );
    assert_eq!(left_out(&few), [("mail/sort".into(), "over-deferred")]);
    let shorter = by(&Generic, &relevance);
    assert_eq!(shown(&shorter), ["music/play", "music/stop"]);
    assert_eq!(left_out(&shorter)[0], ("files/read".into(), "deferred"));
    let small = by(&Deferring(100), &|query| {
        relevance(query);
        query.max_tools = Some(1);
    });
    assert_eq!(
        shown(&small)
            .iter()
            .filter(|tool| !tool.starts_with('('))
            .count(),
        1
    );

    let nothing = by(&Deferring(100), &|query| {
        query.defer = Some(Defer::Relevance);
        query.q = Some("submarine".into());
    });
    assert_eq!(
        shown(&nothing)[..2],
        ["files/read", "(files/wipe)"],
        "one is loaded all the same"
    );
    assert_eq!(nothing.notes, [ViewNote::OneLoaded]);
    let preference = by(&Deferring(100), &|query| {
        query.defer = Some(Defer::Preference);
    });
    assert_eq!(
        shown(&preference)
            .iter()
            .filter(|tool| !tool.starts_with('('))
            .count(),
        1
    );

    let mut inputs = office();
    inputs.preferences = preferences(&[
        ("global", "tool:mail/sort", priority(1)),
        ("global", "tool:music/stop", pinned()),
    ]);
    let preferred = |most| {
        let query = query(|query| (query.defer, query.max_tools) = (Some(Defer::Preference), most));
        let view = View::select_for(&build(&inputs), &query, &Deferring(100));
        shown(&view)
            .into_iter()
            .filter(|tool| !tool.starts_with('('))
            .collect::<Vec<_>>()
    };
    assert_eq!(preferred(None), ["mail/sort", "music/stop"]);
    assert_eq!(
        preferred(Some(3)),
        ["files/read", "mail/sort", "music/stop"]
    );
}

/// What a conversation hands back that has this list.
fn carried(view: &View) -> StickyTools {
    let loaded = view.tools().filter(|tool| !view.is_deferred(tool));
    let marks: Vec<ToolMark> = loaded
        .map(|tool| ToolMark::new(&tool.id, tool.tool.description.as_bytes()))
        .collect();
    StickyTools::parse(&StickyTools::text(&marks).unwrap())
}

#[test]
fn what_a_conversation_carries_stays_first_in_its_order_and_newcomers_come_behind() {
    let catalog = build(&office());
    let first = View::select(
        &catalog,
        &query(|query| (query.q, query.max_tools) = (Some("song".into()), Some(2))),
    );
    assert_eq!(shown(&first), ["music/play", "music/stop"]);
    let next = |most, sticky: &StickyTools| {
        let query = query(|query| {
            (query.q, query.max_tools) = (Some("a file".into()), Some(most));
            query.sticky = Some(sticky.clone());
        });
        View::select(&catalog, &query)
    };
    let second = next(3, &carried(&first));
    assert_eq!(shown(&second), ["music/play", "music/stop", "files/read"]);
    assert_eq!(
        shown(&next(4, &carried(&second))),
        ["music/play", "music/stop", "files/read", "files/wipe"]
    );
    assert_eq!(
        shown(&next(2, &carried(&first))),
        ["music/play", "music/stop"],
        "no room for newcomers"
    );

    let mut fewer = office();
    put(
        &mut fewer,
        offer("music", &[tool("stop").about("Stops the song")]),
    );
    let query =
        query(|query| (query.sticky, query.q) = (Some(carried(&second)), Some("letter".into())));
    let after = View::select(&build(&fewer), &query);
    assert_eq!(
        shown(&after),
        ["music/stop", "files/read", "mail/send", "mail/sort"]
    );
    assert_eq!(after.notes, [ViewNote::StickyGone(1)]);
}

#[test]
fn what_the_target_cannot_say_is_not_the_one_that_is_loaded() {
    let mut inputs = Inputs::default();
    put(&mut inputs, offer("files", &[tool("read"), tool("unsaid")]));
    inputs.preferences = preferences(&[("global", "tool:files/unsaid", pinned())]);
    let query = query(|query| query.defer = Some(Defer::Relevance));
    let view = View::select_for(&build(&inputs), &query, &Deferring(1));
    assert_eq!(shown(&view), ["files/read", "files/unsaid"]);
    assert_eq!(view.notes, [ViewNote::OneLoaded]);
}

#[test]
fn what_cannot_be_read_carries_nothing() {
    let view = select_in(&office(), |query| {
        query.sticky = Some(StickyTools::parse("no selection"));
    });
    assert_eq!(view.notes, [ViewNote::StickyUnknown]);
    assert_eq!(shown(&view), shown(&select_in(&office(), |_| {})));
}

const WORDS: [&str; 6] = ["file", "letter", "song", "folder", "read", "other"];

fn catalogs() -> impl Strategy<Value = Catalog> {
    let draft = (
        0..12_usize,
        prop::collection::vec(select(WORDS.to_vec()), 0..6),
        0..8_u8,
    );
    let drafts = prop::collection::vec(prop::collection::vec(draft, 0..6), 1..5);
    let pin = (
        select(vec![
            "scenario:s0",
            "tool:s1/t3",
            "tool:s2/unsaid",
            "scenario:s3",
        ]),
        0..4_u8,
    );
    (drafts, prop::collection::vec(pin, 0..4), 0..5_usize).prop_map(|(scenarios, pins, gone)| {
        let mut inputs = inputs(&[]);
        for (number, drafts) in scenarios.iter().enumerate() {
            let mut names = BTreeSet::new();
            let drafts = drafts.iter().filter(|(name, ..)| names.insert(*name)).map(
                |(name, words, kind)| {
                    let name = if *name == 0 {
                        "unsaid".to_owned()
                    } else {
                        format!("t{name}")
                    };
                    let draft = tool(&name).about(&words.join(" ")).tag(if kind % 2 == 0 {
                        "even"
                    } else {
                        "odd"
                    });
                    match kind {
                        6 => draft.off(),
                        7 => draft.internal(),
                        _ => draft,
                    }
                },
            );
            let offer = offer(&format!("s{number}"), &drafts.collect::<Vec<_>>());
            let state = if number == gone {
                Visibility::Withdrawn("down".into())
            } else {
                Visibility::Published
            };
            put(&mut inputs, standing(offer, state));
        }
        let settings = |kind| match kind {
            0 => enabled(false),
            1 => priority(3),
            _ => pinned(),
        };
        let wanted: Vec<_> = pins
            .into_iter()
            .map(|(target, kind)| ("global", target, settings(kind)))
            .collect();
        inputs.preferences = preferences(&wanted);
        build(&inputs)
    })
}

fn queries() -> impl Strategy<Value = ViewQuery> {
    let q = prop::option::of(prop::collection::vec(select(WORDS.to_vec()), 1..3));
    let budgets = (
        prop::option::of(0..6_usize),
        prop::option::of(1..120_usize),
        prop::option::of(0..8_usize),
    );
    let defer = prop::option::of(select(vec![Defer::Relevance, Defer::Preference]));
    (q, budgets, defer, any::<(bool, bool)>()).prop_map(
        |(q, (max_tools, max_tokens, cap), defer, (tagged, disabled))| {
            let tags = tagged.then(|| "even".to_owned()).into_iter().collect();
            let q = q.map(|words| words.join(" "));
            ViewQuery {
                q,
                max_tools,
                max_tokens,
                cap,
                defer,
                tags,
                include_disabled: disabled,
                ..ViewQuery::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_choice_is_within_its_budgets_and_explains_itself(
        catalog in catalogs(), query in queries(), most in 0..4_usize, again in queries(),
    ) {
        let target = Deferring(most);
        let view = View::select_for(&catalog, &query, &target);
        let expressible: Vec<_> = view.tools().filter(|tool| target.tokens(tool).is_some()).collect();
        let loaded: Vec<&ViewTool> = expressible.iter().map(|tool| &***tool).filter(|tool| !view.is_deferred(tool)).collect();
        let pinned = loaded.iter().filter(|tool| tool.effective.pinned).count();
        let others = loaded.len() - pinned;
        let tokens: usize = loaded.iter().map(|tool| target.tokens(tool).unwrap()).sum();
        let within = query.max_tools.is_none_or(|most| loaded.len() <= most)
            && query.max_tokens.is_none_or(|most| tokens <= most);
        let one = view.notes.contains(&ViewNote::OneLoaded) && loaded.len() == 1;
        prop_assert!(within || others == 0 || one, "{:?} {:?}", query, shown(&view));
        prop_assert_eq!(view.notes.contains(&ViewNote::PinnedOverBudget), !within && pinned > 0);
        let deferred = view.tools().filter(|tool| view.is_deferred(tool)).count();
        prop_assert!(deferred <= most);
        // What the target cannot say may be among those deferred, and is never the one that is
        // loaded.
        prop_assert!(deferred == 0 || !loaded.is_empty() || expressible.iter().all(|tool| target.tokens(tool).is_none()));
        prop_assert!(query.cap.is_none_or(|cap| loaded.len() + deferred <= cap || one));

        // Each published or withdrawn tool once, in the list or with its one reason.
        let absences = view.absences(&catalog, &query);
        let mut accounted: Vec<ToolId> = view.tools().map(|tool| tool.id.clone()).collect();
        accounted.extend(absences.iter().map(|left| left.tool.id.clone()));
        accounted.sort();
        let all: Vec<ToolId> = catalog.entries().flat_map(|entry| entry.tools.iter()).map(|tool| tool.id.clone()).collect();
        prop_assert_eq!(accounted, all);
        prop_assert!(absences.iter().all(|left| !left.why.to_string().is_empty()));

        // Equal queries, equal views.
        let same = View::select_for(&catalog, &query, &target);
        prop_assert_eq!(shown(&same), shown(&view));
        prop_assert_eq!(same.left_out, view.left_out.clone());

        // Whatever is asked next, what is carried comes first and in its order.
        let next = ViewQuery { sticky: Some(carried(&view)), cap: None, max_tools: None, max_tokens: None, ..again };
        let followed = View::select_for(&catalog, &next, &target);
        let here: BTreeSet<_> = followed.tools().map(|tool| &tool.id).collect();
        let before: Vec<_> = view.tools().filter(|tool| !view.is_deferred(tool) && here.contains(&tool.id)).collect();
        let after: Vec<_> = followed.tools().take(before.len()).collect();
        prop_assert_eq!(after, before);
    }
}
