//! Cases for HTTP caches, replayed against the daemon's own policy under paused time: a set of our
//! own, and the public ones when they are there. Nothing vanishes: a case is replayed and met, or
//! stands in a table here with its reason, and all are counted.

use std::collections::BTreeSet;
use std::time::Duration;

use callsheet::runtime::Clock;
use callsheet::transports::http::{CacheRules, CacheScope};
use serde_json::Value;

use CacheScope::{Private, Shared};

use crate::support::cache_replay::replay;

const NO_GUESS: &str = "no lifetime is guessed from `Last-Modified`: the protocol's default lifetime stands in its place";
const NO_ERROR: &str = "an error is not a list of tools, however long it says that it may be kept";
const OWN_LIST: &str = "about a reader of our own list, not about a scenario";
const DEFAULT_LIFETIME: &str =
    "`refresh.default_lifetime`: an answer that says nothing is fresh for a minute";
const LAST_GOOD: &str = "`cache.last_good`: the last good answer outlives what it said";

/// Cases that may be met or not, and are not, with the reason. The same table is in
/// docs/design/caching.md.
const OTHERWISE: [(&str, &str); 16] = [
    (
        "freshness-max-age-date",
        "`Date` is not compared with our clock: a scenario whose clock is slow would never be fresh",
    ),
    (
        "freshness-max-age-two-fresh-stale-sepline",
        "of lifetimes that contradict each other the shortest counts",
    ),
    (
        "freshness-max-age-a100",
        "a lifetime that is not a number is none",
    ),
    (
        "freshness-max-age-100a",
        "a lifetime that is not a number is none",
    ),
    (
        "age-parse-numeric-parameter",
        "an `Age` that is not a number counts as not sent",
    ),
    ("heuristic-200-cached", NO_GUESS),
    ("heuristic-delta-60", NO_GUESS),
    ("heuristic-delta-600", NO_GUESS),
    ("heuristic-delta-86400", NO_GUESS),
    ("status-404-fresh", NO_ERROR),
    ("status-410-fresh", NO_ERROR),
    ("status-500-fresh", NO_ERROR),
    ("status-503-fresh", NO_ERROR),
    ("status-599-fresh", NO_ERROR),
    (
        "pragma-response-no-cache-heuristic",
        "`Pragma: no-cache` counts where `Cache-Control` is missing",
    ),
    (
        "conditional-etag-strong-generate-unquoted",
        "a tag without quotes is sent back as it came",
    ),
];

/// Cases that speak of something else than how an answer is kept and used, with the reason.
const ELSEWHERE: [(&str, &str); 7] = [
    ("conditional-304-etag", OWN_LIST),
    ("conditional-etag-precedence", OWN_LIST),
    ("conditional-etag-weak-respond", OWN_LIST),
    ("conditional-etag-strong-respond-multiple-first", OWN_LIST),
    ("conditional-etag-strong-respond-multiple-last", OWN_LIST),
    (
        "query-args-different",
        "a scenario is polled at one address, without a query",
    ),
    (
        "other-age-delay",
        "only about the `Age` of an answer that is served again, and none is",
    ),
];

/// What comes out otherwise once the product's own rules are on, with the rule that does it. The
/// same table is in docs/design/caching.md.
const OWN_RULES: [(&str, &str); 8] = [
    ("freshness-none", DEFAULT_LIFETIME),
    ("heuristic-200-cached", DEFAULT_LIFETIME),
    ("heuristic-delta-60", DEFAULT_LIFETIME),
    ("heuristic-delta-600", DEFAULT_LIFETIME),
    ("heuristic-delta-86400", DEFAULT_LIFETIME),
    ("stale-close-must-revalidate", LAST_GOOD),
    ("stale-close-no-cache", LAST_GOOD),
    ("stale-close-proxy-revalidate", LAST_GOOD),
];

/// Only one scope knows what such a case speaks of.
fn scopes(id: &str) -> &'static [CacheScope] {
    let shared = [
        "stale-close-proxy-revalidate",
        "other-authorization-must-revalidate",
    ];
    if id.contains("-shared") || shared.contains(&id) {
        &[Shared]
    } else if id.contains("-private") {
        &[Private]
    } else {
        &[Private, Shared]
    }
}

fn cases(text: &str) -> Vec<Value> {
    let suites: Vec<Value> = serde_json::from_str(text).unwrap();
    suites
        .iter()
        .flat_map(|suite| suite["tests"].as_array().unwrap().clone())
        .collect()
}

/// The public cases, if they are there: they are no part of the project.
fn public_cases() -> Option<Vec<Value>> {
    let corpus = std::env::var("CALLSHEET_CORPUS")
        .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus").to_owned());
    std::fs::read_to_string(format!("{corpus}/http-cache/cases.json"))
        .ok()
        .map(|text| cases(&text))
}

fn id(case: &Value) -> &str {
    case["id"].as_str().unwrap()
}

fn clock() -> Clock {
    Clock::following("2026-01-01T00:00:00Z".parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn our_own_cases_are_met_by_the_letter() {
    let cases = cases(include_str!("../../fixtures/http-cache/own-cases.json"));
    assert_eq!(
        cases.iter().map(id).collect::<BTreeSet<_>>().len(),
        cases.len(),
        "an id is there twice"
    );
    assert_eq!(cases.len(), 40);
    let mut wrong = Vec::new();
    for case in &cases {
        for scope in scopes(id(case)) {
            let report = replay(case, CacheRules::strict(*scope), clock()).await;
            assert_eq!(
                report.left_out,
                usize::from(report.left_out > 0 && id(case).starts_with("own-close"))
            );
            wrong.extend(
                report
                    .wrong
                    .map(|wrong| format!("{} {scope:?}: {wrong}", id(case))),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(start_paused = true)]
async fn the_public_cases_are_met_by_the_letter() {
    let Some(cases) = public_cases() else { return };
    let mut replayed = [0, 0];
    let mut elsewhere = 0;
    let mut left_out = 0;
    let mut otherwise = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in &cases {
        if ELSEWHERE.iter().any(|(each, _)| *each == id(case)) {
            elsewhere += 1;
            continue;
        }
        for scope in scopes(id(case)) {
            let report = replay(case, CacheRules::strict(*scope), clock()).await;
            replayed[usize::from(*scope == Shared)] += 1;
            left_out += report.left_out;
            let Some(what) = report.wrong else { continue };
            let required = case["kind"].as_str().unwrap_or("required") == "required";
            if required || !OTHERWISE.iter().any(|(each, _)| *each == id(case)) {
                wrong.push(format!("{} {scope:?}: {what}", id(case)));
            }
            otherwise.insert(id(case));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert_eq!(
        otherwise,
        OTHERWISE.iter().map(|(id, _)| *id).collect(),
        "those listed are those not met"
    );
    assert_eq!(cases.len(), 124);
    assert_eq!(elsewhere, 7);
    assert_eq!(ELSEWHERE.len(), 7);
    assert_eq!(replayed, [108, 114]);
    assert_eq!(left_out, 42);
}

#[tokio::test(start_paused = true)]
async fn with_our_own_rules_on_only_what_they_are_for_differs() {
    let Some(cases) = public_cases() else { return };
    let rules = CacheRules::from(Duration::from_secs(60));
    let mut changed = BTreeSet::new();
    for case in cases
        .iter()
        .filter(|case| ELSEWHERE.iter().all(|(each, _)| *each != id(case)))
    {
        for scope in scopes(id(case)) {
            let strict = replay(case, CacheRules::strict(*scope), clock()).await;
            let own = replay(
                case,
                CacheRules {
                    scope: *scope,
                    ..rules
                },
                clock(),
            )
            .await;
            if strict.wrong.is_some() != own.wrong.is_some() {
                changed.insert(id(case));
            }
        }
    }
    assert_eq!(changed, OWN_RULES.iter().map(|(id, _)| *id).collect());
}

#[test]
fn what_is_not_met_is_told_to_readers() {
    let text = include_str!("../../docs/design/caching.md");
    for (id, why) in OTHERWISE.iter().chain(&OWN_RULES).chain(&ELSEWHERE) {
        assert!(
            text.contains(&format!("| `{id}` | {why} |")),
            "docs/design/caching.md has no row for {id}: {why}"
        );
    }
}
