//! Metrics of requests to the server, by route, method and status.
//!
//! All counters are created at the start, so counting is one addition and no request can create a
//! counter: `route` is an entry of the table of routes, never the path that a client sent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, StatusCode};

use super::family::{Family, MetricKind};
use super::histogram::DurationHistogram;

/// Methods with a counter of their own; any other method counts as the last one.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "other"];
/// Statuses with a counter of their own, the most frequent first; any other counts as the last one.
const STATUSES: [u16; 23] = [
    200, 304, 101, 204, 202, 400, 401, 403, 404, 405, 408, 409, 413, 415, 422, 426, 429, 500, 502,
    503, 504, 507, OTHER,
];
/// All other statuses.
const OTHER: u16 = 0;

/// Counts requests.
#[derive(Debug)]
pub struct Requests(Box<[RouteCounters]>);

/// Index of the counters of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RouteIndex(usize);

/// Index of the counters of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodIndex(usize);

#[derive(Debug)]
struct RouteCounters {
    path: &'static str,
    counts: [[AtomicU64; STATUSES.len()]; METHODS.len()],
    times: DurationHistogram,
}

impl Requests {
    /// Creates the counters for `routes`. The last one counts requests that match no route.
    pub fn new(routes: impl IntoIterator<Item = &'static str>) -> Self {
        let route = |path| RouteCounters {
            path,
            counts: Default::default(),
            times: DurationHistogram::default(),
        };
        Self(routes.into_iter().map(route).collect())
    }

    /// The index of a route; that of the last one for an unknown path.
    pub fn route(&self, path: &str) -> RouteIndex {
        let place = self.0.iter().position(|route| route.path == path);
        RouteIndex(place.unwrap_or(self.0.len().saturating_sub(1)))
    }

    /// The path of a route.
    pub fn path(&self, route: RouteIndex) -> &'static str {
        self.0.get(route.0).map_or("", |route| route.path)
    }

    /// The index of a method.
    pub fn method(method: &Method) -> MethodIndex {
        let place = METHODS.iter().position(|known| *known == method.as_str());
        MethodIndex(place.unwrap_or(METHODS.len() - 1))
    }

    /// A request was answered. `took` is the time since its head was read.
    pub fn answered(
        &self,
        route: RouteIndex,
        method: MethodIndex,
        status: StatusCode,
        took: Duration,
    ) {
        let Some(route) = self.0.get(route.0) else {
            return;
        };
        let status = STATUSES
            .iter()
            .position(|known| *known == status.as_u16())
            .unwrap_or(STATUSES.len() - 1);
        if let Some(count) = route
            .counts
            .get(method.0)
            .and_then(|counts| counts.get(status))
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
        route.times.observe(took);
    }

    /// The metrics. Counters at 0 are left out.
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
                        let status = if *status == OTHER {
                            "other".to_owned()
                        } else {
                            status.to_string()
                        };
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
        for (path, method, status) in [
            ("/a", &Method::GET, 200),
            ("/b", &strange, 418),
            ("/c", &strange, 419),
            ("/a", &Method::GET, 200),
        ] {
            let route = requests.route(path);
            let method = Requests::method(method);
            requests.answered(
                route,
                method,
                StatusCode::from_u16(status).unwrap(),
                Duration::from_millis(1),
            );
        }
        let [counts, times] = requests.families().try_into().unwrap();
        let shown: Vec<_> = counts
            .samples
            .iter()
            .map(|sample| (sample.labels.clone(), sample.value.clone()))
            .collect();
        let labels = |route: &str, method: &str, status: &str| {
            vec![
                ("route", route.to_owned()),
                ("method", method.to_owned()),
                ("status", status.to_owned()),
            ]
        };
        assert_eq!(
            shown,
            [
                (labels("/a", "GET", "200"), 2_u64.into()),
                (labels("unmatched", "other", "other"), 2_u64.into())
            ]
        );
        assert_eq!(times.samples.len(), 2);
    }
}
