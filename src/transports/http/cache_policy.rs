//! How long an answer may be used (RFC 9111, RFC 5861). Pure: time is an argument.
//!
//! It knows one stored answer per scenario and never fetches, stores or publishes.
//! [`before_request`] decides whether to send a request and how; [`after_response`] and
//! [`after_failure`] give the result. [`freshness`] and [`HttpFreshness::renewing`] are their
//! parts, for code that holds only the answer or only the stored values. The engine's schedule uses
//! these same functions.
//!
//! The product's own rules on top of the RFCs are kept apart. [`CacheRules`] has the rules that are
//! applied here, each of which can be off. The shortest time between two polls belongs to the
//! schedule, and the rule that `no-store` answers are never written to disk belongs to the archive.
//!
//! Left out on purpose: `must-understand` (section 5.2.2.3: a `no-store` beside it stands),
//! heuristic lifetimes (RFC 9111 section 4.2.2; the protocol's default lifetime is used instead),
//! the `Authorization` rule of shared caches (section 3.5: the credentials are the daemon's, the
//! same for every reader), and `Vary` by name (section 4.1: the daemon sends every scenario the
//! same request headers each time).

use std::time::{Duration, SystemTime};

use http::HeaderValue;
use http::header::{
    AGE, CACHE_CONTROL, DATE, ETAG, EXPIRES, HeaderMap, HeaderName, LAST_MODIFIED, PRAGMA, VARY,
};
use jiff::Timestamp;
use tokio::time::Instant;

use super::http_date;
use directives::{DELTA_SECONDS_MAX, Directives};

mod decide;
mod directives;

pub use decide::{Meanwhile, Plan, Stale, Verdict, after_failure, after_response, before_request};

/// The readers of a cache, which decide the directives that apply (RFC 9111 section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheScope {
    /// One principal reads them.
    #[default]
    Private,
    /// Several principals read them: `s-maxage`, `private` and `proxy-revalidate` count.
    Shared,
}

/// The parts of an answer that the caching rules need.
#[derive(Debug, Clone)]
pub struct ResponseHead {
    /// The status.
    pub status: http::StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// When the request was sent, monotonic.
    pub requested: Instant,
    /// When the head was received, monotonic.
    pub received: Instant,
    /// When the head was received, wall time.
    pub received_at: Timestamp,
}

/// The rules for judging answers: the scope of the cache, and the product's own rules on top of RFC
/// 9111 and RFC 5861.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheRules {
    /// The readers of the cache (`cache.scope`).
    pub scope: CacheScope,
    /// Own rule: how long an answer is fresh that does not say so itself
    /// (`refresh.default_lifetime`). Zero switches the rule off.
    pub default_lifetime: Duration,
    /// Own rule: the last good answer stays in use while requests fail, whatever it said about
    /// stale use (`cache.last_good`).
    pub last_good: bool,
}

impl CacheRules {
    /// Strictly the RFCs: none of the product's own rules.
    pub fn strict(scope: CacheScope) -> Self {
        Self {
            scope,
            default_lifetime: Duration::ZERO,
            last_good: false,
        }
    }
}

/// A private cache with the product's own rules and this default lifetime.
impl From<Duration> for CacheRules {
    fn from(default_lifetime: Duration) -> Self {
        Self {
            scope: CacheScope::Private,
            default_lifetime,
            last_good: true,
        }
    }
}

/// The validators that make the next request conditional (RFC 9110 section 8.8).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HttpValidators {
    /// `ETag`, as sent.
    pub etag: Option<HeaderValue>,
    /// `Last-Modified`, as sent.
    pub last_modified: Option<HeaderValue>,
}

/// Until when an answer is fresh, and the values for the next request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpFreshness {
    /// When the answer was received, monotonic.
    pub received: Instant,
    /// When the answer was received, wall time.
    pub received_at: Timestamp,
    /// From sending the request to receiving the head.
    pub took: Duration,
    /// Its freshness lifetime less its age on arrival (RFC 9111 section 4.2): fresh until
    /// `received + lifetime`.
    pub lifetime: Duration,
    /// `no-store`: the answer must not be kept on disk.
    pub no_store: bool,
    /// The answer must not be used past its lifetime without a request (RFC 9111 section 4.2.4),
    /// whatever the two windows below say.
    pub must_revalidate: bool,
    /// How long past its lifetime the answer may be used while a new one is fetched (RFC 5861
    /// section 3).
    pub stale_while_revalidate: Option<Duration>,
    /// How long past its lifetime the answer may be used while fetching fails (RFC 5861 section 4).
    pub stale_if_error: Option<Duration>,
    /// For the next request. Empty with `no-store`.
    pub validators: HttpValidators,
    /// What it was judged by, for [`HttpFreshness::renewing`].
    pub basis: Basis,
}

/// What an answer said about caching, before judgement. Opaque; [`freshness`] makes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Basis {
    /// Each field is `None` where the answer did not have the header at all.
    cache_control: Option<Directives>,
    expires: Option<Expires>,
    pragma_no_cache: Option<bool>,
    varies_by_all: Option<bool>,
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
    /// `Date`, or the time of receipt where it is missing or cannot be read (RFC 9110 section
    /// 6.6.1). `None` only in the default value.
    date: Option<SystemTime>,
    age: Duration,
    took: Duration,
    rules: CacheRules,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expires {
    At(SystemTime),
    /// An invalid date, most often `0`, is in the past (RFC 9111 section 5.3).
    Past,
}

/// Judges an answer whose status was found good.
pub fn freshness(head: &ResponseHead, rules: CacheRules) -> HttpFreshness {
    Basis::from_head(head, rules).judge(head.received, head.received_at)
}

impl HttpValidators {
    /// Whether a request with them is conditional.
    pub fn any(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

impl HttpFreshness {
    /// How old the answer was on arrival.
    pub(crate) fn age(&self) -> Duration {
        self.basis.age
    }

    /// Until when it counts as fresh.
    pub fn fresh_until(&self) -> Instant {
        self.received + self.lifetime
    }

    /// Until when the answer may be used while requests fail; `None` if there is no end.
    pub fn usable_until(&self) -> Option<Instant> {
        if self.basis.rules.last_good {
            return None;
        }
        // RFC 9111 sections 4.2.4 and 5.2.2.5: forbidden outright, which no window outweighs.
        if self.must_revalidate || self.no_store {
            return Some(self.fresh_until());
        }
        // RFC 5861 sections 3 and 4. Where neither is said, RFC 9111 section 4.2.4 allows a
        // disconnected cache to go on.
        let window = self.stale_if_error.max(self.stale_while_revalidate)?;
        Some(self.fresh_until() + window)
    }

    /// Completes what a 304 said by the answer that it renews. `self` is the 304's.
    ///
    /// A 304 without an `ETag` renews a stored answer that has one, though RFC 9111 section 4.3.4
    /// would not find it by the letter: one answer is stored per scenario, the 304 answers the
    /// conditions made of it, and handwritten servers often leave the `ETag` out.
    #[must_use]
    pub fn renewing(self, stored: &Self) -> Self {
        let new = self.basis;
        let old = stored.basis.clone();
        let basis = Basis {
            cache_control: new.cache_control.or(old.cache_control),
            expires: new.expires.or(old.expires),
            pragma_no_cache: new.pragma_no_cache.or(old.pragma_no_cache),
            varies_by_all: new.varies_by_all.or(old.varies_by_all),
            etag: new.etag.or(old.etag),
            last_modified: new.last_modified.or(old.last_modified),
            // The age and the date are those of the 304, because the server has just confirmed the
            // answer.
            ..new
        };
        basis.judge(self.received, self.received_at)
    }
}

impl Basis {
    fn from_head(head: &ResponseHead, rules: CacheRules) -> Self {
        let headers = &head.headers;
        let has = |name: &HeaderName| headers.contains_key(name);
        let first_date = headers.get(DATE).and_then(http_date::parse);
        Self {
            cache_control: has(&CACHE_CONTROL)
                .then(|| directives::parse(headers.get_all(CACHE_CONTROL))),
            expires: expires(headers),
            pragma_no_cache: has(&PRAGMA).then(|| lists(headers, &PRAGMA, b"no-cache")),
            varies_by_all: has(&VARY).then(|| lists(headers, &VARY, b"*")),
            etag: headers.get(ETAG).and_then(detached),
            last_modified: headers.get(LAST_MODIFIED).and_then(detached),
            date: Some(first_date.unwrap_or_else(|| SystemTime::from(head.received_at))),
            age: age(head),
            took: head.received.saturating_duration_since(head.requested),
            rules: CacheRules {
                default_lifetime: rules.default_lifetime.min(DELTA_SECONDS_MAX),
                ..rules
            },
        }
    }

    fn judge(self, received: Instant, received_at: Timestamp) -> HttpFreshness {
        let shared = self.rules.scope == CacheScope::Shared;
        let none = Directives::default();
        let directives = self.cache_control.as_ref().unwrap_or(&none);
        // `private` is the same to a shared cache as `no-store` (RFC 9111 sections 5.2.2.5 and
        // 5.2.2.7).
        let no_store = directives.no_store || (shared && directives.private);
        // RFC 9111 section 4.2.4 lists the directives that forbid stale use; `s-maxage` does it by
        // section 5.2.2.10.
        let forbidden_to_all = directives.must_revalidate || directives.no_cache;
        let forbidden_to_shared =
            shared && (directives.proxy_revalidate || directives.s_maxage.is_some());
        let etag = self.etag.clone().filter(|_| !no_store);
        let last_modified = self.last_modified.clone().filter(|_| !no_store);
        HttpFreshness {
            received,
            received_at,
            took: self.took,
            // RFC 9111 section 4.2: fresh while the lifetime exceeds the age.
            lifetime: if no_store {
                Duration::ZERO
            } else {
                self.lifetime(directives).saturating_sub(self.age)
            },
            no_store,
            must_revalidate: forbidden_to_all || forbidden_to_shared,
            stale_while_revalidate: directives.stale_while_revalidate,
            stale_if_error: directives.stale_if_error,
            validators: HttpValidators {
                etag,
                last_modified,
            },
            basis: self,
        }
    }

    /// The freshness lifetime before the age is taken off (RFC 9111 section 4.2.1), the first that
    /// applies.
    fn lifetime(&self, directives: &Directives) -> Duration {
        // RFC 9111 section 5.2.2.4: never without revalidation.
        if directives.no_cache {
            return Duration::ZERO;
        }
        // RFC 9111 section 5.4: a relic that counts only where `Cache-Control` is missing.
        if self.cache_control.is_none() && self.pragma_no_cache == Some(true) {
            return Duration::ZERO;
        }
        // RFC 9111 section 4.1: fits no later request.
        if self.varies_by_all == Some(true) {
            return Duration::ZERO;
        }
        // RFC 9111 section 5.2.2.10: for shared caches only, before everything else.
        if let (CacheScope::Shared, Some(s_maxage)) = (self.rules.scope, directives.s_maxage) {
            return s_maxage;
        }
        // RFC 9111 section 5.2.2.1, before `Expires` by section 5.3.
        if let Some(max_age) = directives.max_age {
            return max_age;
        }
        // RFC 9111 section 5.3; both dates are the sender's, so its clock may be wrong.
        match (self.expires, self.date) {
            (Some(Expires::Past), _) => Duration::ZERO,
            (Some(Expires::At(at)), Some(date)) => at
                .duration_since(date)
                .unwrap_or(Duration::ZERO)
                .min(DELTA_SECONDS_MAX),
            // The Tool Discovery Protocol's own default takes the place of section 4.2.2's guesses.
            _ => self.rules.default_lifetime,
        }
    }
}

/// The age on arrival: `Age` and the time that the answer took (RFC 9111 section 4.2.3,
/// `corrected_age_value`).
///
/// Not its `apparent_age`, which compares `Date` with the daemon's clock: a scenario whose clock is
/// slow would make all its answers stale, and most caches on servers leave it out for that reason.
/// Of several members or lines of `Age` the first one counts; a value that is not a number counts
/// as not sent (section 5.1).
fn age(head: &ResponseHead) -> Duration {
    let first = head
        .headers
        .get(AGE)
        .and_then(|age| age.as_bytes().split(|byte| *byte == b',').next());
    let age = first
        .and_then(|age| directives::delta_seconds(age.trim_ascii()))
        .unwrap_or_default();
    age.saturating_add(head.received.saturating_duration_since(head.requested))
}

fn expires(headers: &HeaderMap) -> Option<Expires> {
    let mut lines = headers.get_all(EXPIRES).iter();
    let first = lines.next()?;
    // Several lines contradict each other, which counts as stale (RFC 9111 section 4.2.1).
    let at = if lines.next().is_some() {
        None
    } else {
        http_date::parse(first)
    };
    Some(at.map_or(Expires::Past, Expires::At))
}

/// Whether `member` stands in a header that is a list, in any of its lines, whatever its case.
fn lists(headers: &HeaderMap, name: &HeaderName, member: &[u8]) -> bool {
    let mut members = headers
        .get_all(name)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    members.any(|each| each.trim_ascii().eq_ignore_ascii_case(member))
}

/// A copy that stands alone: a header's value is a slice of the whole response head and would keep
/// that alive.
fn detached(value: &HeaderValue) -> Option<HeaderValue> {
    HeaderValue::from_bytes(value.as_bytes()).ok()
}
