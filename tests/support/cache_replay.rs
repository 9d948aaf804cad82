//! Replays a case for HTTP caches: an origin in memory that answers as the case says, and a reader
//! between whom and the origin stands the daemon's own policy, nothing else. Time is the test's.
//!
//! The form of a case is that of the public cases (suites of cases of requests, in JSON). Of what a
//! case may expect, the headers of the answer that the reader gets are not looked at, since no
//! header of a scenario's answer is served again; they are counted.

use std::time::{Duration, SystemTime};

use callsheet::runtime::Clock;
use callsheet::transports::http::cache_policy::{
    Meanwhile, Plan, Stale, Verdict, after_failure, after_response, before_request,
};
use callsheet::transports::http::{CacheRules, HttpFreshness, HttpValidators, ResponseHead};
use http::StatusCode;
use http::header::{ETAG, HeaderMap, HeaderName, HeaderValue, LAST_MODIFIED};
use serde_json::Value;

/// How long the reader waits after a request that says so.
const PAUSE: Duration = Duration::from_secs(3);

/// What came of a case.
#[derive(Debug)]
pub(crate) struct Report {
    /// What was not as expected; the first thing only.
    pub(crate) wrong: Option<String>,
    /// How many expectations were not looked at.
    pub(crate) left_out: usize,
}

/// What the reader gets.
#[derive(Debug, Clone)]
struct Seen {
    status: u16,
    /// How many requests the origin had had when it made this answer.
    asked: usize,
    /// For which of the reader's requests it was made.
    made_for: usize,
}

struct Origin<'a> {
    requests: &'a [Value],
    clock: Clock,
    asked: usize,
    /// The validators of the latest answer that had any.
    sent: HttpValidators,
    /// For which of the reader's requests it was last asked, and how.
    last: Option<(usize, HttpValidators)>,
}

struct Reader<'a> {
    origin: Origin<'a>,
    rules: CacheRules,
    clock: Clock,
    stored: Option<(HttpFreshness, Seen)>,
}

/// Runs a case under these rules.
pub(crate) async fn replay(case: &Value, rules: CacheRules, clock: Clock) -> Report {
    let requests = case["requests"].as_array().unwrap();
    let origin = Origin {
        requests,
        clock,
        asked: 0,
        sent: HttpValidators::default(),
        last: None,
    };
    let mut reader = Reader {
        origin,
        rules,
        clock,
        stored: None,
    };
    let mut report = Report {
        wrong: None,
        left_out: 0,
    };
    for (number, request) in (1..).zip(requests) {
        let seen = reader.get(number).await;
        let wrong = wrong(
            request,
            number,
            seen.as_ref(),
            &reader.origin,
            &mut report.left_out,
        );
        report.wrong = report
            .wrong
            .or(wrong.map(|wrong| format!("request {number}: {wrong}")));
        if request["pause_after"] == true {
            clock.sleep(PAUSE).await;
        }
    }
    report
}

impl Reader<'_> {
    /// What whoever wants the answer gets; `None` is an error.
    async fn get(&mut self, number: usize) -> Option<Seen> {
        let (fresh, old) = self.stored.clone().unzip();
        let (conditions, meanwhile) = match before_request(fresh.as_ref(), self.clock.now()) {
            Plan::Reuse => return old,
            Plan::Revalidate(meanwhile) => (
                fresh.map(|fresh| fresh.validators).unwrap_or_default(),
                meanwhile,
            ),
            Plan::Fetch(meanwhile) => (HttpValidators::default(), meanwhile),
        };
        let answered = self.ask(number, conditions).await;
        if meanwhile == Meanwhile::Serve {
            old
        } else {
            answered
        }
    }

    async fn ask(&mut self, number: usize, conditions: HttpValidators) -> Option<Seen> {
        let (fresh, old) = self.stored.clone().unzip();
        for interim in self.origin.interim(number) {
            assert!(
                matches!(
                    after_response(fresh.as_ref(), &interim, self.rules),
                    Verdict::Keep(_)
                ),
                "{interim:?}"
            );
        }
        let Some(head) = self.origin.answer(number, conditions).await else {
            return old
                .filter(|_| after_failure(fresh.as_ref(), self.clock.now()) == Stale::Allowed);
        };
        let new = Seen {
            status: head.status.as_u16(),
            asked: self.origin.asked,
            made_for: number,
        };
        match after_response(fresh.as_ref(), &head, self.rules) {
            Verdict::Replace(fresh) => {
                self.stored = Some((fresh, new.clone()));
                Some(new)
            }
            Verdict::Renew(fresh) => {
                self.stored = old.clone().map(|old| (fresh, old));
                old
            }
            Verdict::Keep(Stale::Allowed) => old,
            // The daemon has nobody to pass an error on to; the reader here sees it.
            Verdict::Keep(Stale::Forbidden) => Some(new),
        }
    }
}

impl Origin<'_> {
    fn interim(&self, number: usize) -> Vec<ResponseHead> {
        let all = self.requests[number - 1]["interim_responses"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        all.iter()
            .map(|interim| self.head(interim[0].as_u64().unwrap(), &interim[1]))
            .collect()
    }

    async fn answer(&mut self, number: usize, conditions: HttpValidators) -> Option<ResponseHead> {
        let request = &self.requests[number - 1];
        self.asked += 1;
        self.last = Some((number, conditions.clone()));
        let requested = self.clock.now();
        if let Some(seconds) = request["response_pause"].as_u64() {
            self.clock.sleep(Duration::from_secs(seconds)).await;
        }
        if request["disconnect"] == true {
            return None;
        }
        let known = |asked: &Option<HeaderValue>, sent: &Option<HeaderValue>| {
            asked.is_some() && asked == sent
        };
        let matches = known(&conditions.etag, &self.sent.etag)
            || known(&conditions.last_modified, &self.sent.last_modified);
        let status = match request["expected_type"].as_str() {
            Some("etag_validated" | "lm_validated") if matches => 304,
            // It waited for a condition that did not come.
            Some("etag_validated" | "lm_validated") => 999,
            _ => request["response_status"][0].as_u64().unwrap_or(200),
        };
        let head = self.head(status, &request["response_headers"]);
        for (name, sent) in [
            (ETAG, &mut self.sent.etag),
            (LAST_MODIFIED, &mut self.sent.last_modified),
        ] {
            *sent = head.headers.get(name).cloned().or(sent.take());
        }
        Some(ResponseHead { requested, ..head })
    }

    /// Numbers in date headers are seconds from now.
    fn head(&self, status: u64, lines: &Value) -> ResponseHead {
        let now = SystemTime::from(self.clock.wall());
        let mut headers = HeaderMap::new();
        for line in lines.as_array().into_iter().flatten() {
            let value = match line[1].as_i64() {
                Some(seconds) if seconds < 0 => {
                    httpdate::fmt_http_date(now - Duration::from_secs(seconds.unsigned_abs()))
                }
                Some(seconds) => {
                    httpdate::fmt_http_date(now + Duration::from_secs(seconds.unsigned_abs()))
                }
                None => line[1].as_str().unwrap().to_owned(),
            };
            let name = HeaderName::from_bytes(line[0].as_str().unwrap().as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_str(&value).unwrap());
        }
        let status = StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap();
        let received = self.clock.now();
        ResponseHead {
            status,
            headers,
            requested: received,
            received,
            received_at: self.clock.wall(),
        }
    }
}

/// What is not as the case expects of this request.
fn wrong(
    request: &Value,
    number: usize,
    seen: Option<&Seen>,
    origin: &Origin<'_>,
    left_out: &mut usize,
) -> Option<String> {
    if request.get("expected_status").is_some_and(Value::is_null) {
        *left_out += 1;
        return seen.map(|seen| format!("an error was expected, but {seen:?} came"));
    }
    let Some(seen) = seen else {
        return Some("nothing came".into());
    };
    let asked = origin
        .last
        .as_ref()
        .filter(|(last, _)| *last == number)
        .map(|(_, conditions)| conditions);
    let expected = request["expected_type"].as_str();
    let met = match expected {
        None => true,
        Some("cached") => seen.asked < number && seen.made_for < number,
        Some("not_cached") => seen.made_for == number,
        Some("etag_validated") => {
            asked.is_some_and(|it| it.etag.is_some()) && seen.made_for < number
        }
        Some("lm_validated") => {
            asked.is_some_and(|it| it.last_modified.is_some()) && seen.made_for < number
        }
        Some(other) => panic!("what is `{other}`?"),
    };
    if !met {
        return Some(format!(
            "{} was expected, but {seen:?} came, asked by {asked:?}",
            expected.unwrap_or_default()
        ));
    }
    if let Some(status) = request["expected_status"]
        .as_u64()
        .filter(|status| *status != u64::from(seen.status))
    {
        return Some(format!("{status} was expected, not {}", seen.status));
    }
    conditions(request, asked, left_out).or_else(|| made_for(request, seen, left_out))
}

/// Checks by which validators the origin was asked.
fn conditions(
    request: &Value,
    asked: Option<&HttpValidators>,
    left_out: &mut usize,
) -> Option<String> {
    let sent = |name: &str| match name.to_ascii_lowercase().as_str() {
        "if-none-match" => Some(asked.and_then(|asked| asked.etag.clone())),
        "if-modified-since" => Some(asked.and_then(|asked| asked.last_modified.clone())),
        _ => None,
    };
    for expected in request["expected_request_headers"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let name = expected[0].as_str().unwrap();
        let value = expected[1].as_str().unwrap();
        match sent(name) {
            Some(sent) if sent.as_ref().is_some_and(|sent| sent == value) => {}
            Some(sent) => return Some(format!("{name} was {sent:?}, not {value}")),
            None => *left_out += 1,
        }
    }
    for name in request["expected_request_headers_missing"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if let Some(Some(sent)) = sent(name.as_str().unwrap()) {
            return Some(format!("{name} was sent: {sent:?}"));
        }
    }
    None
}

/// Checks for which request the answer was made, the one header that belongs to the cases
/// themselves.
fn made_for(request: &Value, seen: &Seen, left_out: &mut usize) -> Option<String> {
    *left_out += request["expected_response_headers_missing"]
        .as_array()
        .map_or(0, Vec::len);
    let mut wrong = None;
    for expected in request["expected_response_headers"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if expected[0] == "client-request-count" {
            let right = expected[1]
                .as_str()
                .is_some_and(|number| number == seen.made_for.to_string());
            wrong =
                wrong.or((!right).then(|| format!("it was made for request {}", seen.made_for)));
        } else {
            *left_out += 1;
        }
    }
    wrong
}
