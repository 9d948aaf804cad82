//! What was accepted of a scenario, through the library: what counts as a difference, and for how
//! long.

use std::sync::Arc;
use std::time::Duration;

use callsheet::catalog::pins::{
    AcceptedPin, Baseline, Observation, PinChange, PinDifference, PinSubject, PinVerdict,
    REPORTED_FOR, findings, listed,
};
use callsheet::catalog::{Change, NameLookup, Offer, Visibility};
use callsheet::model::{JsonText, Manifest, NameRef, PinMode, Severity};
use jiff::Timestamp;

use crate::support::assert_empty;
use crate::support::offers::{self, Draft, catalog, finding_lines, names, scenario, tool};

const DAY: Duration = Duration::from_secs(24 * 3600);

fn at(days: u32) -> Timestamp {
    Timestamp::UNIX_EPOCH.saturating_add(DAY * days).unwrap()
}

fn manifest(tools: &[Draft]) -> Arc<Manifest> {
    Arc::new(offers::manifest("bank", tools))
}

fn with_instructions(tools: &[Draft], text: &str) -> Arc<Manifest> {
    let mut manifest = offers::manifest("bank", tools);
    let text = JsonText::parse(&format!("{text:?}")).unwrap();
    manifest.scenario.extra = Box::new([("instructions".into(), text)]);
    Arc::new(manifest.digested())
}

fn look(
    baseline: &mut Baseline,
    manifest: &Arc<Manifest>,
    mode: PinMode,
    now: Timestamp,
) -> PinVerdict {
    baseline.judge(Observation {
        manifest,
        mode,
        is_complete: true,
        is_listing: true,
        now,
    })
}

fn warned(baseline: &mut Baseline, manifest: &Arc<Manifest>, now: Timestamp) -> Vec<String> {
    lines(&look(baseline, manifest, PinMode::Warn, now))
}

fn lines(verdict: &PinVerdict) -> Vec<String> {
    let line = |one: &PinDifference| {
        let what = one.subject.tool().map_or("instructions", AsRef::as_ref);
        let often = if one.is_frequent { " often" } else { "" };
        format!("{what} {:?}{often}", one.change)
    };
    verdict.differences.iter().map(line).collect()
}

#[test]
fn all_differences_of_a_listing_are_one_finding_that_shows_them() {
    let first = with_instructions(&[tool("get").about("Gets it"), tool("old")], "Be kind.");
    let mut baseline = Baseline::first(&first, at(0));
    assert_empty!(warned(&mut baseline, &first, at(0)));
    let next = with_instructions(
        &[tool("get").about("Gets it \u{1b}[1mtwice"), tool("put")],
        "Be quick.",
    );
    let verdict = look(&mut baseline, &next, PinMode::Warn, at(1));
    assert_eq!(
        lines(&verdict),
        [
            "instructions Changed",
            "get Changed",
            "old Removed",
            "put New"
        ]
    );
    let found = findings(&scenario("bank"), PinMode::Warn, &verdict);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].severity(), Severity::Info);
    let message = &found[0].message;
    for part in [
        "changed: `get`",
        "new: `put`",
        "removed: `old`",
        "Be quick",
        "twice",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    assert!(!message.contains('\u{1b}'), "{message:?}");
    assert_empty!(findings(
        &scenario("bank"),
        PinMode::Warn,
        &PinVerdict::default()
    ));
    assert_empty!(warned(&mut baseline, &first, at(2)));
}

#[test]
fn how_a_definition_is_written_is_no_difference() {
    let taking = |json: &str| manifest(&[tool("get").taking(json)]);
    let first = taking(r#"{"type":"object","required":["a","b"],"properties":{}}"#);
    let mut baseline = Baseline::first(&first, at(0));
    let same = taking(r#"{"properties":{}, "required":["b","a"],"type":"object"}"#);
    assert_empty!(warned(&mut baseline, &same, at(1)));
    // The same after a restart, when only versions are known.
    let mut restored = Baseline::read(&baseline.write()).unwrap();
    assert_empty!(warned(&mut restored, &first, at(1)));
    let other = taking(r#"{"type":"object","required":["a"],"properties":{}}"#);
    assert_eq!(warned(&mut restored, &other, at(1)), ["get Changed"]);
}

#[test]
fn what_differs_is_reported_for_seven_days_where_it_is_not_held() {
    let mut baseline = Baseline::first(&manifest(&[tool("get"), tool("old")]), at(0));
    let next = manifest(&[tool("get").about("New"), tool("put")]);
    let all = ["get Changed", "old Removed", "put New"];
    assert_eq!(warned(&mut baseline, &next, at(1)), all);
    let verdict = look(&mut baseline, &next, PinMode::Warn, at(7));
    assert_eq!(lines(&verdict), all);
    assert_eq!(verdict.until, Some(at(8)));
    // The time counts over restarts.
    let mut held = Baseline::read(&baseline.write()).unwrap();
    let mut restored = held.clone();
    assert_empty!(warned(&mut restored, &next, at(8)));
    assert_empty!(warned(&mut restored, &next, at(9)));
    let lasting = look(&mut held, &next, PinMode::Hold, at(100));
    assert_eq!(
        lines(&lasting),
        all,
        "held definitions are never accepted by time"
    );
    assert_eq!(REPORTED_FOR, DAY * 7);
}

#[test]
fn the_time_under_hold_does_not_count_towards_the_seven_days() {
    let mut baseline = Baseline::first(&manifest(&[tool("get"), tool("old")]), at(0));
    let next = manifest(&[tool("get").about("New"), tool("put")]);
    let all = ["get Changed", "old Removed", "put New"];
    assert_eq!(
        lines(&look(&mut baseline, &next, PinMode::Hold, at(1))),
        all
    );
    let verdict = look(&mut baseline, &next, PinMode::Warn, at(10));
    assert_eq!(lines(&verdict), all);
    assert_eq!(verdict.until, Some(at(17)));
    assert!(verdict.is_changed, "the time has to be stored");
    // The time counts over restarts, and begins anew after it was held again.
    let mut restored = Baseline::read(&baseline.write()).unwrap();
    let mut held = restored.clone();
    assert_eq!(warned(&mut restored, &next, at(16)), all);
    assert_empty!(warned(&mut restored, &next, at(17)));
    assert_eq!(lines(&look(&mut held, &next, PinMode::Hold, at(16))), all);
    let again = look(&mut held, &next, PinMode::Warn, at(20));
    assert_eq!(lines(&again), all);
    assert_eq!(again.until, Some(at(27)));
}

#[test]
fn a_tool_that_changes_often_is_one_line() {
    let texts = ["One", "Two"].map(|text| manifest(&[tool("clock").about(text)]));
    let mut baseline = Baseline::first(&texts[0], at(0));
    let now = |hour: u64| {
        Timestamp::UNIX_EPOCH
            .saturating_add(Duration::from_secs(3600 * hour))
            .unwrap()
    };
    for round in 1..=10_000_u64 {
        let text = &texts[usize::try_from(round % 2).unwrap()];
        let verdict = look(&mut baseline, text, PinMode::Warn, now(round / 60));
        if round >= 4 {
            assert_eq!(lines(&verdict), ["clock Changed often"], "{round}");
            let found = findings(&scenario("bank"), PinMode::Warn, &verdict);
            assert!(
                found[0].message.contains("changes often: `clock`"),
                "{found:?}"
            );
        }
    }
    assert!(baseline.write().len() < 2_000, "{}", baseline.write());
    assert_empty!(warned(&mut baseline, &texts[0], now(24 * 30)));
}

#[test]
fn what_half_a_listing_lacks_is_not_shown_for_acceptance() {
    let texts = ["One", "Two"].map(|text| manifest(&[tool("clock").about(text), tool("get")]));
    let mut baseline = Baseline::first(&texts[0], at(0));
    for text in [&texts[1], &texts[0], &texts[1], &texts[0]] {
        warned(&mut baseline, text, at(1));
    }
    assert_eq!(
        warned(&mut baseline, &texts[0], at(1)),
        ["clock Changed often"]
    );
    let half = manifest(&[tool("get").about("Other")]);
    let starting = Observation {
        manifest: &half,
        mode: PinMode::Warn,
        is_complete: false,
        is_listing: true,
        now: at(1),
    };
    let verdict = baseline.judge(starting);
    assert_eq!(lines(&verdict), ["get Changed"]);
    let differences = verdict.differences.iter();
    let shown: Vec<AcceptedPin> = differences.map(PinDifference::as_shown).collect();
    Baseline::acceptance(&half, &shown).unwrap();
    assert_eq!(
        warned(&mut baseline, &texts[0], at(1)),
        ["clock Changed often"]
    );
}

#[test]
fn tools_that_come_and_go_leave_no_trace() {
    let steady = manifest(&[tool("get")]);
    let mut baseline = Baseline::first(&steady, at(0));
    for round in 0..1_000 {
        let noisy = manifest(&[tool("get"), tool(&format!("t{round}"))]);
        look(&mut baseline, &noisy, PinMode::Hold, at(1));
    }
    look(&mut baseline, &steady, PinMode::Hold, at(1));
    assert_eq!(baseline.accepted_tools(), 1);
    assert!(baseline.write().len() < 500, "{}", baseline.write());
}

#[test]
fn half_a_listing_removes_no_tool() {
    let whole = manifest(&[tool("get"), tool("put")]);
    let half = manifest(&[tool("get")]);
    let mut baseline = Baseline::first(&whole, at(0));
    let starting = Observation {
        manifest: &half,
        mode: PinMode::Warn,
        is_complete: false,
        is_listing: true,
        now: at(1),
    };
    assert_empty!(lines(&baseline.judge(starting)));
    assert_empty!(warned(&mut baseline, &whole, at(1)));
    assert_eq!(warned(&mut baseline, &half, at(1)), ["put Removed"]);
}

#[test]
fn new_tools_join_at_the_listing_after_an_operators_act_and_changed_ones_do_not() {
    let mut baseline = Baseline::first(&manifest(&[tool("get")]), at(0));
    baseline.await_new_tools();
    let mut baseline = Baseline::read(&baseline.write()).unwrap();
    let next = manifest(&[tool("get").about("Other"), tool("put")]);
    let quiet = Observation {
        manifest: &next,
        mode: PinMode::Hold,
        is_complete: true,
        is_listing: false,
        now: at(1),
    };
    assert_eq!(lines(&baseline.judge(quiet)), ["get Changed", "put New"]);
    let joined = look(&mut baseline, &next, PinMode::Hold, at(1));
    assert_eq!(lines(&joined), ["get Changed"]);
    let later = manifest(&[tool("get"), tool("put"), tool("third")]);
    let verdict = look(&mut baseline, &later, PinMode::Hold, at(1));
    assert_eq!(lines(&verdict), ["third New"]);
}

#[test]
fn an_acceptance_names_the_versions_that_were_shown() {
    let mut baseline = Baseline::first(&manifest(&[tool("get"), tool("old")]), at(0));
    let next = manifest(&[tool("get").about("Other"), tool("put")]);
    let verdict = look(&mut baseline, &next, PinMode::Hold, at(1));
    let shown: Vec<AcceptedPin> = verdict
        .differences
        .iter()
        .map(PinDifference::as_shown)
        .collect();
    let third = manifest(&[tool("get").about("Third"), tool("put")]);
    let refused = Baseline::acceptance(&third, &shown).unwrap_err();
    assert_eq!(refused.what, "the definition of `get`");
    let one = Baseline::acceptance(&next, &shown[..1]).unwrap();
    baseline.accept(&one, at(1));
    let rest = look(&mut baseline, &next, PinMode::Hold, at(1));
    assert_eq!(lines(&rest), ["old Removed", "put New"]);
    let all = Baseline::acceptance(&next, &shown).unwrap();
    baseline.accept(&all, at(1));
    assert_empty!(lines(&look(&mut baseline, &next, PinMode::Hold, at(1))));
    let back = manifest(&[tool("get"), tool("put"), tool("old")]);
    let verdict = look(&mut baseline, &back, PinMode::Hold, at(2));
    assert_eq!(lines(&verdict), ["get Changed", "old New"]);
    assert_eq!(verdict.differences[0].change, PinChange::Changed);
    assert_eq!(
        verdict.differences[1].subject,
        PinSubject::Tool("old".into())
    );
}

#[test]
fn what_is_held_is_in_no_list_and_a_changed_tool_keeps_its_name() {
    let first = with_instructions(&[tool("read"), tool("write")], "Be kind.");
    let mut baseline = Baseline::first(&first, at(0));
    let next = with_instructions(
        &[tool("read").about("Other"), tool("write"), tool("list")],
        "Obey.",
    );
    let verdict = look(&mut baseline, &next, PinMode::Hold, at(1));
    let offered = listed(&next, PinMode::Hold, &verdict);
    assert!(
        offered.scenario.extra.is_empty(),
        "{:?}",
        offered.scenario.extra
    );
    let offer = |manifest| Offer {
        manifest,
        visibility: Visibility::Published,
    };
    let before = catalog(&[("mail", &["read", "list"])], &[]).with(Change::Offer(
        scenario("bank"),
        Some(offer(Arc::clone(&first))),
    ));
    let after = before.with(Change::Offer(scenario("bank"), Some(offer(offered))));
    assert_eq!(
        names(&after),
        [
            "write = bank/write",
            "list = mail/list",
            "mail__read = mail/read"
        ]
    );
    for name in ["bank/read", "bank__read", "read"] {
        let found = after.find(&NameRef::parse(name));
        assert!(matches!(found, NameLookup::None), "{name}: {found:?}");
        let held = after.find_held(&NameRef::parse(name)).unwrap();
        assert!(held.message.contains("changed"), "{held:?}");
        assert!(held.hint.unwrap().contains("callsheet pins accept bank"));
    }
    let found = after.find(&NameRef::parse("list"));
    assert!(
        matches!(found, NameLookup::One(_)),
        "a new one claims no name"
    );
    assert!(after.find_held(&NameRef::parse("bank/list")).is_some());
    let lines = finding_lines(&after);
    let held = lines.iter().filter(|line| line.starts_with("tool-held"));
    assert_eq!(held.count(), 2, "{lines:#?}");
    // Accepted, it is there again under its name.
    let again = after.with(Change::Offer(scenario("bank"), Some(offer(next))));
    let all = names(&again);
    assert!(
        all.contains(&"bank__read = bank/read".to_owned()),
        "{all:?}"
    );
}
