//! How long an answer may be used: the caching rules, branch by branch. Nothing is asked here;
//! `asking.rs` does that.

use std::time::{Duration, SystemTime};

use callsheet::runtime::Clock;
use callsheet::transports::http::cache_policy::{
    self, Meanwhile, Plan, Stale, Verdict, after_failure, after_response, before_request,
};
use callsheet::transports::http::{
    CacheRules, CacheScope, HttpFreshness, HttpValidators, ResponseHead,
};
use http::StatusCode;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use jiff::Timestamp;
use proptest::prelude::*;

use CacheScope::{Private, Shared};

/// When every answer of these tests is received.
const NOW: &str = "2026-01-01T00:00:00Z";
const DEFAULT: Duration = Duration::from_secs(60);
const LONGEST: u64 = 1 << 31;

fn head(status: u16, headers: HeaderMap) -> ResponseHead {
    let received = Clock::system().now();
    let received_at: Timestamp = NOW.parse().unwrap();
    ResponseHead {
        status: StatusCode::from_u16(status).unwrap(),
        headers,
        requested: received,
        received,
        received_at,
    }
}

/// Headers from lines such as `Age: 5`. `{+60}` stands for the HTTP date 60 s after [`NOW`].
fn headers(lines: &[&str]) -> HeaderMap {
    let now = SystemTime::from(NOW.parse::<Timestamp>().unwrap());
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap();
        let value = match value
            .trim()
            .strip_prefix("{+")
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(seconds) => {
                httpdate::fmt_http_date(now + Duration::from_secs(seconds.parse().unwrap()))
            }
            None => value.trim().to_owned(),
        };
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(&value).unwrap(),
        );
    }
    headers
}

fn freshness(head: &ResponseHead, default_lifetime: Duration, scope: CacheScope) -> HttpFreshness {
    cache_policy::freshness(
        head,
        CacheRules {
            scope,
            ..CacheRules::from(default_lifetime)
        },
    )
}

/// What is stored after a 304.
fn after_not_modified(
    stored: &HttpFreshness,
    head: &ResponseHead,
    scope: CacheScope,
) -> HttpFreshness {
    cache_policy::freshness(
        head,
        CacheRules {
            scope,
            ..CacheRules::from(DEFAULT)
        },
    )
    .renewing(stored)
}

fn judged(scope: CacheScope, lines: &[&str]) -> HttpFreshness {
    freshness(&head(200, headers(lines)), DEFAULT, scope)
}

fn lifetime(scope: CacheScope, lines: &[&str]) -> u64 {
    let lifetime = judged(scope, lines).lifetime;
    assert_eq!(lifetime.subsec_nanos(), 0, "{lines:?}");
    lifetime.as_secs()
}

/// Header lines and the seconds for which a private cache may use the answer.
const LIFETIMES: &[(&[&str], u64)] = &[
    // Nothing said (the protocol's default).
    (&[], 60),
    (&["Cache-Control: public"], 60),
    (&["Last-Modified: {+0}"], 60),
    (&["Cache-Control:"], 60),
    (&["Age: 20"], 40),
    // max-age, RFC 9111 section 5.2.2.1.
    (&["Cache-Control: max-age=10"], 10),
    (&["Cache-Control: MAX-age=10"], 10),
    (&["Cache-Control: max-age=0"], 0),
    (&["Cache-Control: max-age=0010"], 10),
    (&["Cache-Control: max-age=\"10\""], 10),
    (&["Cache-Control: public,max-age=10\t,  extension"], 10),
    (&["Cache-Control: public", "Cache-Control: max-age=10"], 10),
    (&["Cache-Control: ,, ;, =, =5, max-age=10, \"\", 7"], 10),
    // Saturation, section 1.2.2.
    (&["Cache-Control: max-age=2147483647"], LONGEST - 1),
    (&["Cache-Control: max-age=2147483649"], LONGEST),
    (&["Cache-Control: max-age=18446744073709551616"], LONGEST),
    (
        &["Cache-Control: max-age=99999999999999999999999999999999999999999999"],
        LONGEST,
    ),
    // Conflicts and invalid values are stale, section 4.2.1.
    (&["Cache-Control: max-age=10, max-age=5"], 5),
    (
        &["Cache-Control: max-age=5", "Cache-Control: max-age=10"],
        5,
    ),
    (&["Cache-Control: max-age=10, max-age=x"], 0),
    (&["Cache-Control: max-age=-1"], 0),
    (&["Cache-Control: max-age=1.5"], 0),
    (&["Cache-Control: max-age=10s"], 0),
    (&["Cache-Control: max-age='10'"], 0),
    (&["Cache-Control: max-age="], 0),
    (&["Cache-Control: max-age"], 0),
    (&["Cache-Control: max-age =10"], 0),
    (&["Cache-Control: max-age= 10"], 0),
    (&["Cache-Control: max-age=\"10"], 0),
    // Commas inside quotes, RFC 9110 section 5.6.4.
    (&["Cache-Control: ext=\"a, max-age=3600\", max-age=1"], 1),
    (
        &["Cache-Control: max-age=1000, ext=\"a \\\", no-store\""],
        1000,
    ),
    (&["Cache-Control: ext=\"open, max-age=10, no-cache"], 0),
    (
        &["Cache-Control: ext=\"open", "Cache-Control: max-age=10"],
        10,
    ),
    // s-maxage is for shared caches, section 5.2.2.10.
    (&["Cache-Control: s-maxage=3600"], 60),
    (&["Cache-Control: s-maxage=3600, max-age=1"], 1),
    (&["Cache-Control: private, max-age=10"], 10),
    // no-store and no-cache, sections 5.2.2.5 and 5.2.2.4.
    (&["Cache-Control: No-Store, max-age=10"], 0),
    (&["Cache-Control: no-CACHE, max-age=10"], 0),
    (
        &["Cache-Control: no-cache=\"set-cookie, x\", max-age=10"],
        0,
    ),
    (&["Cache-Control: no-store=1"], 0),
    (&["Cache-Control: must-understand, no-store, max-age=10"], 0),
    // Expires less Date, section 5.3.
    (&["Expires: {+30}", "Date: {+10}"], 20),
    (&["Expires: {+30}"], 30),
    (&["Expires: {+30}", "Date: foo"], 30),
    (&["Expires: {+30}", "Date: {+30}"], 0),
    (&["Expires: {+30}", "Date: {+60}"], 0),
    (&["Expires: 0"], 0),
    (&["Expires: -1", "Date: {+0}"], 0),
    (&["Expires: {+30}", "Expires: {+40}"], 0),
    (&["Expires: Fri, 31 Dec 9999 23:59:59 GMT"], LONGEST),
    (&["Expires: Thursday, 01-Jan-26 00:00:30 GMT"], 30),
    (&["Expires: Thu Jan  1 00:00:30 2026"], 30),
    // In any letter case, and whatever weekday is named: RFC 9111 section 4.2.
    (&["Expires: thu, 01 jan 2026 00:00:30 gmt"], 30),
    (&["Expires: THU, 01 JAN 2026 00:00:30 GMT"], 30),
    (&["Expires: thursday, 01-JAN-26 00:00:30 gmt"], 30),
    (&["Expires: thu JAN  1 00:00:30 2026"], 30),
    (&["Expires: Mon, 01 Jan 2026 00:00:30 GMT"], 30),
    (
        &[
            "Expires: Mon, 01 Jan 2026 00:00:30 GMT",
            "Date: Tue, 01 jan 2026 00:00:10 GMT",
        ],
        20,
    ),
    (&["Expires: Thu, 01 Jan 2026 00:00:30 UTC"], 0),
    (&["Expires: Foo, 01 Jan 2026 00:00:30 GMT"], 0),
    (&["Expires: Thu, 32 Jan 2026 00:00:30 GMT"], 0),
    (&["Expires: 0", "Cache-Control: max-age=10"], 10),
    (&["Expires: {+30}", "Cache-Control: public"], 30),
    // Pragma only without Cache-Control, section 5.4.
    (&["Pragma: No-Cache", "Expires: {+30}"], 0),
    (&["Pragma: x, no-cache"], 0),
    (&["Pragma: no-cache", "Cache-Control: max-age=10"], 10),
    (&["Pragma: no-cache", "Cache-Control: public"], 60),
    (&["Pragma: other"], 60),
    // Vary, section 4.1.
    (&["Vary: *", "Cache-Control: max-age=10"], 0),
    (&["Vary: , *", "Cache-Control: max-age=10"], 0),
    (
        &["Vary: Accept", "Vary: x ,*", "Cache-Control: max-age=10"],
        0,
    ),
    (
        &["Vary: Accept, Accept-Encoding", "Cache-Control: max-age=10"],
        10,
    ),
    // Age, sections 4.2.3 and 5.1.
    (&["Age: 3", "Cache-Control: max-age=10"], 7),
    (&["Age: 10", "Cache-Control: max-age=10"], 0),
    (
        &["Age: 18446744073709551615", "Cache-Control: max-age=10"],
        0,
    ),
    (
        &["Age: 18446744073709551616", "Cache-Control: max-age=10"],
        0,
    ),
    (&["Age: -3", "Cache-Control: max-age=10"], 10),
    (&["Age: 3.0", "Cache-Control: max-age=10"], 10),
    (&["Age: 3;x=1", "Cache-Control: max-age=10"], 10),
    (&["Age: 3, 0", "Cache-Control: max-age=10"], 7),
    (&["Age: 0, 3", "Cache-Control: max-age=10"], 10),
    (&["Age: 3", "Age: 0", "Cache-Control: max-age=10"], 7),
    (&["Age: 3", "Expires: {+30}"], 27),
    // The sender's clock is not compared with ours.
    (
        &[
            "Date: Wed, 01 Jan 2025 00:00:00 GMT",
            "Cache-Control: max-age=10",
        ],
        10,
    ),
];

#[test]
fn the_lifetime_follows_the_rules() {
    for (lines, expected) in LIFETIMES {
        assert_eq!(lifetime(Private, lines), *expected, "{lines:?}");
    }
}

#[test]
fn a_shared_cache_obeys_what_is_meant_for_it() {
    let cases: &[(&[&str], u64)] = &[
        (&["Cache-Control: s-maxage=3600"], 3600),
        (&["Cache-Control: s-maxage=3600, max-age=1"], 3600),
        (
            &["Cache-Control: max-age=3600", "Cache-Control: s-maxage=1"],
            1,
        ),
        (&["Cache-Control: s-maxage=x, max-age=3600"], 0),
        (&["Cache-Control: s-maxage=3600", "Expires: 0"], 3600),
        (&["Cache-Control: private, max-age=10"], 0),
        (&["Cache-Control: private=\"x\", max-age=10"], 0),
        (&["Cache-Control: max-age=10"], 10),
        (&["Cache-Control: s-maxage=10, no-cache"], 0),
    ];
    for (lines, expected) in cases {
        assert_eq!(lifetime(Shared, lines), *expected, "{lines:?}");
    }
    assert!(judged(Shared, &["Cache-Control: private"]).no_store);
    assert!(!judged(Private, &["Cache-Control: private"]).no_store);
}

#[test]
fn stale_use_is_read() {
    let windows = |lines: &[&str]| {
        let freshness = judged(Private, lines);
        (
            freshness.stale_while_revalidate.map(|it| it.as_secs()),
            freshness.stale_if_error.map(|it| it.as_secs()),
        )
    };
    assert_eq!(windows(&[]), (None, None));
    assert_eq!(
        windows(&["Cache-Control: stale-while-revalidate=5, Stale-If-Error=\"7\""]),
        (Some(5), Some(7))
    );
    assert_eq!(
        windows(&["Cache-Control: stale-while-revalidate, stale-if-error=x"]),
        (None, None)
    );
    assert_eq!(
        windows(&["Cache-Control: stale-if-error=9, stale-if-error=8"]),
        (None, Some(8))
    );
    assert_eq!(
        windows(&["Cache-Control: stale-if-error=99999999999999999999"]),
        (None, Some(LONGEST))
    );

    let forbidden =
        |scope, text: &str| judged(scope, &[&format!("Cache-Control: {text}")]).must_revalidate;
    for (text, private, shared) in [
        ("max-age=1", false, false),
        ("must-revalidate", true, true),
        ("no-cache", true, true),
        ("proxy-revalidate", false, true),
        ("s-maxage=1", false, true),
    ] {
        assert_eq!(forbidden(Private, text), private, "{text}");
        assert_eq!(forbidden(Shared, text), shared, "{text}");
    }
}

#[test]
fn validators_are_kept_as_sent_but_not_with_no_store() {
    let lines = ["ETag: unquoted", "Last-Modified: yesterday"];
    let kept = judged(Private, &lines).validators;
    assert_eq!(kept.etag.unwrap(), "unquoted");
    assert_eq!(kept.last_modified.unwrap(), "yesterday");
    let not_stored = judged(Private, &[lines[0], lines[1], "Cache-Control: no-store"]);
    assert!(not_stored.no_store);
    assert_eq!(not_stored.validators, HttpValidators::default());
}

#[test]
fn the_time_that_an_answer_took_counts_as_age() {
    let mut head = head(200, headers(&["Cache-Control: max-age=10", "Age: 2"]));
    head.received = head.requested + Duration::from_millis(1500);
    let freshness = freshness(&head, DEFAULT, Private);
    assert_eq!(freshness.lifetime, Duration::from_millis(6500));
    assert_eq!(freshness.fresh_until(), head.received + freshness.lifetime);
    assert_eq!(freshness.received, head.received);
    assert_eq!(freshness.received_at, head.received_at);
}

#[test]
fn a_304_renews_header_by_header() {
    let cases: &[(&[&str], &[&str], u64)] = &[
        // It says nothing: what was stored stays, without its age.
        (&["Cache-Control: max-age=10", "Age: 5"], &[], 10),
        (&["Expires: {+30}", "Date: {+0}"], &[], 30),
        (&[], &[], 60),
        (&["Cache-Control: no-cache"], &[], 0),
        (&["Vary: *"], &[], 0),
        (&["Pragma: no-cache"], &[], 0),
        // Its own age counts.
        (&["Cache-Control: max-age=10"], &["Age: 4"], 6),
        // What it says replaces what was said, as a whole header.
        (
            &["Cache-Control: max-age=10"],
            &["Cache-Control: max-age=100"],
            100,
        ),
        (
            &["Cache-Control: max-age=10, no-cache"],
            &["Cache-Control: max-age=100"],
            100,
        ),
        (
            &["Cache-Control: max-age=10"],
            &["Cache-Control: public"],
            60,
        ),
        (&["Pragma: no-cache"], &["Cache-Control: max-age=100"], 100),
        (
            &["Vary: *", "Cache-Control: max-age=10"],
            &["Vary: Accept"],
            10,
        ),
        (
            &["Expires: {+30}", "Date: {+0}"],
            &["Expires: {+90}", "Date: {+50}"],
            40,
        ),
        (&["Expires: {+30}", "Date: {+0}"], &["Date: {+20}"], 10),
        // `Cache-Control` comes before `Expires` also when they came in different answers.
        (&["Cache-Control: max-age=10"], &["Expires: {+90}"], 10),
    ];
    for (stored, renewed, expected) in cases {
        let not_modified = head(304, headers(renewed));
        let after = after_not_modified(&judged(Private, stored), &not_modified, Private);
        assert_eq!(
            after.lifetime,
            Duration::from_secs(*expected),
            "{stored:?} and {renewed:?}"
        );
        assert_eq!(after.received, not_modified.received);
    }
}

#[test]
fn a_304_renews_validators_and_storage() {
    let stored = judged(
        Private,
        &[
            "ETag: \"1\"",
            "Last-Modified: then",
            "Cache-Control: max-age=1, must-revalidate",
        ],
    );
    let after = |lines: &[&str]| after_not_modified(&stored, &head(304, headers(lines)), Private);

    assert_eq!(after(&[]).validators, stored.validators);
    assert!(after(&[]).must_revalidate);
    assert_eq!(after(&["ETag: \"2\""]).validators.etag.unwrap(), "\"2\"");
    assert_eq!(
        after(&["ETag: \"2\""]).validators.last_modified.unwrap(),
        "then"
    );
    let forgotten = after(&["Cache-Control: no-store"]);
    assert!(forgotten.no_store && !forgotten.must_revalidate);
    assert_eq!(forgotten.validators, HttpValidators::default());
}

fn strict(lines: &[&str]) -> HttpFreshness {
    cache_policy::freshness(&head(200, headers(lines)), CacheRules::strict(Private))
}

/// So many seconds after the answer.
fn later(stored: &HttpFreshness, seconds: u64) -> tokio::time::Instant {
    stored.received + Duration::from_secs(seconds)
}

#[test]
fn before_a_request_the_stored_answer_decides() {
    let plan = |lines: &[&str], seconds| {
        let stored = strict(lines);
        before_request(Some(&stored), later(&stored, seconds))
    };
    let tag = "ETag: \"1\"";
    let lasting = "Cache-Control: max-age=10";
    assert_eq!(
        before_request(None, Clock::system().now()),
        Plan::Fetch(Meanwhile::Wait)
    );
    assert_eq!(plan(&[lasting, tag], 9), Plan::Reuse);
    assert_eq!(plan(&[lasting, tag], 10), Plan::Revalidate(Meanwhile::Wait));
    assert_eq!(
        plan(&[lasting, "Last-Modified: then"], 10),
        Plan::Revalidate(Meanwhile::Wait)
    );
    assert_eq!(plan(&[lasting], 10), Plan::Fetch(Meanwhile::Wait));
    assert_eq!(
        plan(&["Cache-Control: no-cache", tag], 0),
        Plan::Revalidate(Meanwhile::Wait)
    );
    assert_eq!(
        plan(&["Cache-Control: no-store", tag], 0),
        Plan::Fetch(Meanwhile::Wait)
    );
    let window = "Cache-Control: max-age=10, stale-while-revalidate=5";
    assert_eq!(plan(&[window, tag], 14), Plan::Revalidate(Meanwhile::Serve));
    assert_eq!(plan(&[window], 14), Plan::Fetch(Meanwhile::Serve));
    assert_eq!(plan(&[window], 15), Plan::Fetch(Meanwhile::Wait));
    assert_eq!(
        plan(&[window, "Cache-Control: must-revalidate"], 14),
        Plan::Fetch(Meanwhile::Wait)
    );
}

#[test]
fn only_a_good_answer_takes_the_place_of_what_is_stored() {
    let rules = CacheRules::strict(Private);
    let tagged = strict(&["Cache-Control: max-age=1", "ETag: \"1\""]);
    let plain = strict(&["Cache-Control: max-age=1"]);
    let lasting = headers(&["Cache-Control: max-age=100"]);
    for status in [300, 301, 307, 400, 401, 404, 410, 429, 500, 503, 599] {
        let answer = head(status, lasting.clone());
        assert_eq!(
            after_response(Some(&tagged), &answer, rules),
            Verdict::Keep(Stale::Allowed),
            "{status}"
        );
        assert_eq!(
            after_response(None, &answer, rules),
            Verdict::Keep(Stale::Forbidden),
            "{status}"
        );
    }
    let renewed = after_response(Some(&tagged), &head(304, lasting.clone()), rules);
    assert!(
        matches!(&renewed, Verdict::Renew(it) if it.lifetime.as_secs() == 100 && it.validators == tagged.validators)
    );
    // Nobody asked whether it changed: there is nothing that it could renew.
    assert_eq!(
        after_response(Some(&plain), &head(304, lasting.clone()), rules),
        Verdict::Keep(Stale::Allowed)
    );
    assert_eq!(
        after_response(None, &head(304, lasting.clone()), rules),
        Verdict::Keep(Stale::Forbidden)
    );
    let replaced = after_response(Some(&tagged), &head(200, lasting), rules);
    assert!(
        matches!(&replaced, Verdict::Replace(it) if it.validators == HttpValidators::default())
    );
}

/// Header lines, and for how many seconds a private cache may use the answer while asking fails, by
/// the letter; `None` is for ever.
const USABLE: &[(&str, Option<u64>)] = &[
    ("max-age=10", None),
    ("max-age=10, stale-if-error=5", Some(15)),
    ("max-age=10, stale-while-revalidate=7", Some(17)),
    (
        "max-age=10, stale-while-revalidate=7, stale-if-error=5",
        Some(17),
    ),
    ("max-age=10, stale-if-error=0", Some(10)),
    ("max-age=10, must-revalidate", Some(10)),
    ("max-age=10, must-revalidate, stale-if-error=5", Some(10)),
    ("max-age=10, no-cache, stale-if-error=5", Some(0)),
    ("max-age=10, no-store", Some(0)),
    ("max-age=10, proxy-revalidate", None),
];

#[test]
fn the_last_good_answer_outlives_its_directives_only_by_the_rule_for_that() {
    let own = CacheRules {
        last_good: true,
        ..CacheRules::strict(Private)
    };
    for (said, usable) in USABLE {
        let lines = [format!("Cache-Control: {said}")];
        let lines = [lines[0].as_str()];
        let letter = strict(&lines);
        let ours = cache_policy::freshness(&head(200, headers(&lines)), own);
        let at = usable.unwrap_or(1 << 31);
        assert_eq!(
            after_failure(Some(&letter), later(&letter, at)) == Stale::Allowed,
            usable.is_none(),
            "{said}"
        );
        if at > 0 {
            assert_eq!(
                after_failure(Some(&letter), later(&letter, at - 1)),
                Stale::Allowed,
                "{said}"
            );
        }
        assert_eq!(
            after_failure(Some(&ours), later(&ours, 1 << 31)),
            Stale::Allowed,
            "{said}"
        );
        // It changes nothing else: when to ask, and what may be on disk.
        assert_eq!(ours.lifetime, letter.lifetime, "{said}");
        assert_eq!(ours.no_store, letter.no_store, "{said}");
        assert_eq!(
            before_request(Some(&ours), later(&ours, 10)),
            before_request(Some(&letter), later(&letter, 10))
        );
    }
    assert_eq!(after_failure(None, Clock::system().now()), Stale::Forbidden);
}

#[test]
fn the_default_lifetime_is_a_rule_of_its_own() {
    assert_eq!(strict(&[]).lifetime, Duration::ZERO);
    assert_eq!(judged(Private, &[]).lifetime, DEFAULT);
    // It never takes the place of what was said.
    assert_eq!(
        judged(Private, &["Cache-Control: max-age=5"]).lifetime,
        Duration::from_secs(5)
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_header_value_panics_or_outlives_the_limit(
        values in proptest::collection::vec((0..FIELDS.len(), proptest::collection::vec(any::<u8>(), 0..64)), 0..12),
        pieces in proptest::collection::vec((0..FIELDS.len(), proptest::collection::vec(0..PIECES.len(), 0..8)), 0..8),
        default in any::<u64>(),
        took in 0..u64::from(u32::MAX),
    ) {
        let mut all = HeaderMap::new();
        let built = pieces.iter().map(|(field, pieces)| {
            (*field, pieces.iter().flat_map(|piece| PIECES[*piece].bytes()).collect::<Vec<u8>>())
        });
        for (field, value) in values.into_iter().chain(built) {
            // What http refuses cannot come from the network either.
            if let Ok(value) = HeaderValue::from_bytes(&value) {
                all.append(FIELDS[field], value);
            }
        }
        let mut head = head(200, all);
        head.received = head.requested + Duration::from_secs(took);
        for scope in [Private, Shared] {
            let judged = freshness(&head, Duration::from_secs(default), scope);
            prop_assert!(judged.lifetime <= Duration::from_secs(LONGEST));
            prop_assert!(judged.fresh_until() >= judged.received);
            let renewed = after_not_modified(&judged, &head, scope);
            prop_assert!(renewed.lifetime <= Duration::from_secs(LONGEST));
            // A 304 with the very same headers changes no header, so nothing else either.
            prop_assert_eq!(renewed.no_store, judged.no_store);
            prop_assert_eq!(&renewed.validators, &judged.validators);
        }
    }
}

const FIELDS: [&str; 9] = [
    "cache-control",
    "age",
    "expires",
    "date",
    "pragma",
    "vary",
    "etag",
    "last-modified",
    "x-other",
];

/// What headers are made of, so that chance also finds what is almost right.
const PIECES: [&str; 20] = [
    "max-age",
    "s-maxage",
    "no-store",
    "no-cache",
    "stale-if-error",
    "=",
    "=",
    ",",
    ",",
    " ",
    "\"",
    "\\",
    "60",
    "-1",
    "18446744073709551616",
    "*",
    ";",
    "Thu, 01 Jan 2026 00:00:00 GMT",
    "Sunday, 06-Nov-94 08:49:37 GMT",
    "\u{e9}",
];
