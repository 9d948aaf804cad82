//! Requests to the server, by route, method and status.
//!
//! All counters there can ever be are made at the start, so that counting is an addition and no request can make a new one: a route is
//! one of the table of routes, never the path that a client wrote.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};

use super::family::{Family, MetricKind};
use super::histogram::DurationHistogram;

/// The methods that are told apart; any other is the last.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "other"];
/// The statuses that are told apart, the most frequent first; any other is the last.
const STATUSES: [u16; 23] = [
    200, 304, 101, 204, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 426, 429, 500, 502, 503, 504, 507, OTHER,
];
/// Stands for the statuses that are not told apart.
const OTHER: u16 = 0;

/// Counts requests.
#[derive(Debug)]
pub struct Requests(Box<[RouteCounters]>);

/// Where the requests of one route are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteIndex(usize);

/// Where one request is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodIndex(usize);

#[derive(Debug)]
struct RouteCounters {
    path: &'static str,
    counts: [[AtomicU64; STATUSES.len()]; METHODS.len()],
    times: DurationHistogram,
}

impl Requests {
    /// For these routes. The last one stands for every request that no route answers.
    pub fn new(routes: impl IntoIterator<Item = &'static str>) -> Self {
        let route = |path| RouteCounters { path, counts: Default::default(), times: DurationHistogram::default() };
        Self(routes.into_iter().map(route).collect())
    }

    /// Where a route is counted.
    pub fn route(&self, path: &str) -> RouteIndex {
        let place = self.0.iter().position(|route| route.path == path);
        RouteIndex(place.unwrap_or(self.0.len().saturating_sub(1)))
    }

    /// The route that is counted there.
    pub fn path(&self, route: RouteIndex) -> &'static str {
        self.0.get(route.0).map_or("", |route| route.path)
    }

    /// Where a method is counted.
    pub fn method(method: &Method) -> MethodIndex {
        let place = METHODS.iter().position(|known| *known == method.as_str());
        MethodIndex(place.unwrap_or(METHODS.len() - 1))
    }

    /// A request was answered with this status, so long after its head was read.
    pub fn answered(&self, route: RouteIndex, method: MethodIndex, status: StatusCode, took: Duration) {
        let Some(route) = self.0.get(route.0) else { return };
        let status = STATUSES.iter().position(|known| *known == status.as_u16()).unwrap_or(STATUSES.len() - 1);
        if let Some(count) = route.counts.get(method.0).and_then(|counts| counts.get(status)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        route.times.observe(took);
    }

    /// The metrics. What never happened is left out.
    pub fn families(&self) -> Vec<Family> {
        let mut counts = Family::new(
            MetricKind::Counter,
            "callsheet_http_requests",
            "Requests by route, method and status; `refused` are those that the guard did not let pass.",
        );
        let mut times = Family::new(
            MetricKind::Histogram,
            "callsheet_http_request_duration_seconds",
            "How long requests took by route, from their head to the head of the answer.",
        );
        for route in &self.0 {
            for (method, statuses) in METHODS.iter().zip(&route.counts) {
                for (status, count) in STATUSES.iter().zip(statuses) {
                    let count = count.load(Ordering::Relaxed);
                    if count > 0 {
                        let status = if *status == OTHER { "other".to_owned() } else { status.to_string() };
                        let labels = vec![
                            ("route", route.path.to_owned()),
                            ("method", (*method).to_owned()),
                            ("status", status),
                        ];
                        counts = counts.sample(labels, count);
                    }
                }
            }
            let measured = route.times.measured();
            if measured.count > 0 {
                times = times.with_label("route", route.path, measured);
            }
        }
        vec![counts, times]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_asked_there_are_no_more_counters_than_at_the_start() {
        let requests = Requests::new(["/a", "unmatched"]);
        let strange = Method::from_bytes(b"BREW").unwrap();
        for (path, method, status) in
            [("/a", &Method::GET, 200), ("/b", &strange, 418), ("/c", &strange, 419), ("/a", &Method::GET, 200)]
        {
            let (route, method) = (requests.route(path), Requests::method(method));
            requests.answered(route, method, StatusCode::from_u16(status).unwrap(), Duration::from_millis(1));
        }
        let [counts, times] = requests.families().try_into().unwrap();
        let shown: Vec<_> = counts.samples.iter().map(|sample| (sample.labels.clone(), sample.value.clone())).collect();
        let labels = |route: &str, method: &str, status: &str| {
            vec![("route", route.to_owned()), ("method", method.to_owned()), ("status", status.to_owned())]
        };
        assert_eq!(
            shown,
            [(labels("/a", "GET", "200"), 2_u64.into()), (labels("unmatched", "other", "other"), 2_u64.into())]
        );
        assert_eq!(times.samples.len(), 2);
    }
}
