//! `Cache-Control` is read as a list (RFC 9111 section 5.2, RFC 9110 section 5.6): whatever its
//! writing, it means what was written.

use std::time::Duration;

use callsheet::runtime::Clock;
use callsheet::transports::http::cache_policy::freshness;
use callsheet::transports::http::{CacheRules, CacheScope, HttpFreshness, ResponseHead};
use http::header::{CACHE_CONTROL, HeaderMap, HeaderValue};
use proptest::prelude::*;

const LONGEST: u128 = 1 << 31;
const DEFAULT: u64 = 77;

/// A directive as it was meant, before it is written.
#[derive(Debug, Clone)]
enum Meant {
    /// Names without an argument, or with one that does not matter.
    Flag(&'static str, Option<&'static str>),
    /// A number of seconds, in quotes or not, perhaps with zeros before it.
    Seconds(&'static str, u128, bool, usize),
    /// A lifetime or window that is not a number.
    Invalid(&'static str, Option<&'static str>),
    /// Something unknown, whose argument may look like anything else.
    Extension(&'static str),
    /// An empty member.
    Nothing,
}

const TIMES: [&str; 4] = [
    "max-age",
    "s-maxage",
    "stale-while-revalidate",
    "stale-if-error",
];

fn meant() -> impl Strategy<Value = Meant> {
    let flag = prop::sample::select(vec![
        ("no-store", None),
        ("no-cache", None),
        ("no-cache", Some("\"set-cookie, max-age=9\"")),
        ("private", None),
        ("private", Some("\"a, no-store\"")),
        ("must-revalidate", None),
        ("proxy-revalidate", None),
        ("public", None),
        ("immutable", None),
    ]);
    let seconds = prop_oneof![
        0..100_u128,
        (LONGEST - 2)..(LONGEST + 2),
        (u128::from(u64::MAX) - 1)..(u128::from(u64::MAX) + 2),
        Just(u128::MAX),
    ];
    let time = prop::sample::select(TIMES.to_vec());
    let wrong = prop::sample::select(vec![
        None,
        Some(""),
        Some("-1"),
        Some("1.5"),
        Some("x9"),
        Some("9x"),
        Some("'9'"),
        Some(" 9"),
    ]);
    let extension = prop::sample::select(vec![
        "ext",
        "max-ages=3",
        "x-max-age=3",
        "ext=\"a, no-store, max-age=1\"",
        "ext=\"\\\", no-cache, \\\\\"",
        "=5",
        "7",
        "\"max-age=1, no-store\"",
    ]);
    prop_oneof![
        3 => flag.prop_map(|(name, argument)| Meant::Flag(name, argument)),
        6 => (time.clone(), seconds, any::<bool>(), 0..3_usize).prop_map(|(name, n, quoted, zeros)| Meant::Seconds(name, n, quoted, zeros)),
        1 => (time, wrong).prop_map(|(name, argument)| Meant::Invalid(name, argument)),
        2 => extension.prop_map(Meant::Extension),
        1 => Just(Meant::Nothing),
    ]
}

/// Writes a directive, with the case of its name changed where `upper` says so.
fn write(meant: &Meant, upper: &[bool]) -> String {
    let cased = |name: &str| -> String {
        let mark = upper.iter().cycle();
        name.chars()
            .zip(mark)
            .map(|(c, up)| if *up { c.to_ascii_uppercase() } else { c })
            .collect()
    };
    match meant {
        Meant::Flag(name, argument) | Meant::Invalid(name, argument) => argument.map_or_else(
            || cased(name),
            |argument| format!("{}={argument}", cased(name)),
        ),
        Meant::Seconds(name, seconds, quoted, zeros) => {
            let zeros = "0".repeat(*zeros);
            let mark = if *quoted { "\"" } else { "" };
            format!("{}={mark}{zeros}{seconds}{mark}", cased(name))
        }
        Meant::Extension(text) => (*text).into(),
        Meant::Nothing => String::new(),
    }
}

/// The reference: the least of what was said under a name; `on_invalid` is what something else than
/// a number counts as.
fn least(all: &[Meant], wanted: &str, on_invalid: Option<u128>) -> Option<Duration> {
    let said = all.iter().filter_map(|meant| match meant {
        Meant::Seconds(name, seconds, ..) if *name == wanted => Some((*seconds).min(LONGEST)),
        Meant::Invalid(name, _) if *name == wanted => on_invalid,
        _ => None,
    });
    said.min()
        .map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap()))
}

fn has(all: &[Meant], wanted: &str) -> bool {
    all.iter()
        .any(|meant| matches!(meant, Meant::Flag(name, _) if *name == wanted))
}

fn read(lines: &[String], scope: CacheScope) -> HttpFreshness {
    let mut headers = HeaderMap::new();
    for line in lines {
        headers.append(CACHE_CONTROL, HeaderValue::from_str(line).unwrap());
    }
    let clock = Clock::system();
    let received = clock.now();
    let status = http::StatusCode::OK;
    let head = ResponseHead {
        status,
        headers,
        requested: received,
        received,
        received_at: clock.wall(),
    };
    freshness(
        &head,
        CacheRules {
            scope,
            default_lifetime: Duration::from_secs(DEFAULT),
            last_good: false,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_written_list_means_what_was_meant(
        all in prop::collection::vec(meant(), 0..8),
        upper in prop::collection::vec(any::<bool>(), 1..6),
        blanks in prop::collection::vec(prop::sample::select(vec!["", " ", "\t", "  "]), 2..6),
        breaks in prop::collection::vec(any::<bool>(), 8),
    ) {
        let mut lines = vec![String::new()];
        let mut blanks = blanks.iter().cycle();
        for (at, meant) in all.iter().enumerate() {
            if at > 0 && breaks[at] {
                lines.push(String::new());
            } else if at > 0 {
                lines.last_mut().unwrap().push(',');
            }
            let member = write(meant, &upper);
            let before = blanks.next().unwrap();
            let after = blanks.next().unwrap();
            lines.last_mut().unwrap().extend([before, member.as_str(), after]);
        }
        for scope in [CacheScope::Private, CacheScope::Shared] {
            let judged = read(&lines, scope);
            let shared = scope == CacheScope::Shared;
            let s_maxage = least(&all, "s-maxage", Some(0)).filter(|_| shared);
            let no_store = has(&all, "no-store") || (shared && has(&all, "private"));
            let stale = no_store || has(&all, "no-cache");
            let lifetime = s_maxage.or(least(&all, "max-age", Some(0))).unwrap_or(Duration::from_secs(DEFAULT));
            let must = has(&all, "must-revalidate") || has(&all, "no-cache")
                || (shared && (has(&all, "proxy-revalidate") || s_maxage.is_some()));
            prop_assert_eq!(judged.lifetime, if stale { Duration::ZERO } else { lifetime }, "{:?} {:?}", &lines, scope);
            prop_assert_eq!(judged.no_store, no_store, "{:?} {:?}", &lines, scope);
            prop_assert_eq!(judged.must_revalidate, must, "{:?} {:?}", &lines, scope);
            prop_assert_eq!(judged.stale_while_revalidate, least(&all, "stale-while-revalidate", None), "{:?}", &lines);
            prop_assert_eq!(judged.stale_if_error, least(&all, "stale-if-error", None), "{:?}", &lines);
        }
    }

    #[test]
    fn no_line_makes_it_panic_or_outlive_the_limit(line in prop::collection::vec(any::<u8>(), 0..200)) {
        // What http refuses cannot come from the network either.
        let Ok(value) = HeaderValue::from_bytes(&line) else { return Ok(()) };
        let clock = Clock::system();
        let received = clock.now();
        let received_at = clock.wall();
        let headers = HeaderMap::from_iter([(CACHE_CONTROL, value)]);
        let head = ResponseHead { status: http::StatusCode::OK, headers, requested: received, received, received_at };
        for scope in [CacheScope::Private, CacheScope::Shared] {
            let judged = freshness(&head, CacheRules::strict(scope));
            prop_assert!(judged.lifetime.as_secs() <= 1 << 31);
            prop_assert!(judged.usable_until().is_none_or(|until| until >= received));
        }
    }
}
