//! The effects of reports of sessions, by their content and time.

#![allow(
    clippy::unwrap_used,
    reason = "a name that cannot be read fails the test"
)]

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::*;
use crate::config::Config;
use crate::model::Target;
use crate::protocols::tool_discovery::ToolDiscovery;
use crate::protocols::{EndReason, ListError, ListRequest, Listing};
use crate::runtime::{Clock, Tasks};
use crate::transports::http::{Client, ClientLimits};

/// A session that reports nothing by itself: the tests send its reports.
struct Quiet;

impl Session for Quiet {
    fn list<'a>(&'a self, _: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(std::future::pending())
    }

    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        Some(Box::pin(futures_util::stream::pending()))
    }
}

/// Sessions with one scenario, at a time that the test says.
struct Fixture {
    sessions: Sessions,
    name: ScenarioName,
    refresh: RefreshConfig,
    now: Instant,
}

impl Fixture {
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let limits = ClientLimits {
            connect: second,
            whole: second,
            max_body: 1,
            max_redirects: 0,
        };
        let client = Client::new(limits, 1, second, Clock::system(), Tasks::new());
        let events = mpsc::channel(1).0;
        let refresh = Config::for_state("state.db").refresh;
        let sessions = Sessions::new(Transports::new(client), events);
        let mut fixture = Self {
            sessions,
            name: "files".parse().unwrap(),
            refresh,
            now: Clock::system().now(),
        };
        fixture.connect();
        fixture
    }

    /// A listing connects.
    fn connect(&mut self) {
        let target = Target::at("http://127.0.0.1:1".parse().unwrap());
        let made_of = Connected {
            target,
            protocol: Arc::new(ToolDiscovery),
            session: Arc::new(Quiet),
        };
        self.sessions.connected(&self.name, made_of, self.now);
    }

    /// The session of this number says something.
    fn says(&mut self, number: u64, news: News) -> SessionEffect {
        let report = SessionNews {
            name: self.name.clone(),
            number,
            news,
        };
        self.sessions
            .handle(report, Some(self.now), &self.refresh, self.now)
    }

    fn listed(&mut self, outcome: ListOutcome) -> Option<Instant> {
        self.sessions.listed(
            &self.name,
            outcome,
            true,
            (Some(self.now), self.now),
            &self.refresh,
        )
    }
}

#[tokio::test]
async fn sessions_that_end_again_and_again_are_made_after_growing_waits() {
    let mut fixture = Fixture::new();
    let mut waits = Vec::new();
    for number in 1..=40 {
        let SessionEffect::Gone(at, _) = fixture.says(number, News::Ended(EndReason::new("gone")))
        else {
            panic!("{number}")
        };
        waits.push(at - fixture.now);
        fixture.now = at;
        fixture.connect();
    }
    let base = fixture.refresh.backoff_base;
    let max = fixture.refresh.backoff_max;
    assert_eq!(waits[0], base / 4, "the first wait is short");
    assert!(
        waits[1..].iter().all(|wait| (base..=max).contains(wait)),
        "{waits:?}"
    );
    assert!(
        waits.iter().any(|wait| *wait > base * 4),
        "they grow: {waits:?}"
    );
    // A session that lived this long did not fail to start.
    fixture.now += SETTLED;
    let effect = fixture.says(41, News::Ended(EndReason::new("gone")));
    assert_eq!(
        effect,
        SessionEffect::Gone(fixture.now + base / 4, EndReason::new("gone"))
    );
}

#[tokio::test]
async fn by_default_calls_wait_longer_than_the_first_new_connection_does() {
    let config = Config::for_state("state.db");
    let mut fixture = Fixture::new();
    let SessionEffect::Gone(at, _) = fixture.says(1, News::Ended(EndReason::new("gone"))) else {
        panic!("it ended")
    };
    assert!(
        (at - fixture.now) * 2 < config.calls.reroute_wait,
        "{:?}",
        at - fixture.now
    );
}

#[tokio::test]
async fn a_hint_during_a_listing_leads_to_another_one() {
    let mut fixture = Fixture::new();
    fixture.says(1, News::Hint(Hint::Changed));
    fixture.sessions.begun(&fixture.name);
    assert!(!fixture.sessions.is_hinted(&fixture.name));
    fixture.says(1, News::Hint(Hint::Changed));
    assert!(
        fixture.listed(ListOutcome::Changed).is_some(),
        "what changed meanwhile may have been missed"
    );
    fixture.sessions.begun(&fixture.name);
    assert_eq!(fixture.listed(ListOutcome::Unchanged), None);
}

#[tokio::test]
async fn hints_of_an_earlier_session_are_ignored() {
    let mut fixture = Fixture::new();
    fixture.connect();
    fixture.listed(ListOutcome::Changed);
    fixture.says(2, News::Hint(Hint::Following));
    assert!(fixture.sessions.is_followed(&fixture.name));
    for news in [
        News::HintsEnded,
        News::Hint(Hint::Changed),
        News::Ended(EndReason::new("gone")),
    ] {
        assert_eq!(fixture.says(1, news), SessionEffect::None);
    }
    assert!(fixture.sessions.is_followed(&fixture.name));
    assert!(matches!(
        fixture.says(2, News::HintsEnded),
        SessionEffect::Unfollowed(_)
    ));
}

#[tokio::test]
async fn a_hint_that_was_queued_behind_the_end_of_its_session_does_not_bypass_the_back_off() {
    let mut fixture = Fixture::new();
    let SessionEffect::Gone(..) = fixture.says(1, News::Ended(EndReason::new("gone"))) else {
        panic!("it ended")
    };
    assert_eq!(
        fixture.says(1, News::Hint(Hint::Changed)),
        SessionEffect::None
    );
    assert!(
        !fixture.sessions.is_hinted(&fixture.name),
        "the next listing waits for the back-off"
    );
}

#[tokio::test]
async fn a_stream_of_hints_that_panics_has_ended() {
    let (events, mut received) = mpsc::channel(4);
    let hints = futures_util::stream::once(async { panic!("on purpose") });
    let reporter = Reporter {
        name: "files".parse().unwrap(),
        number: 3,
        events,
    };
    reporter.hints(Box::pin(hints), Clock::system()).await;
    let Some(EngineEvent::Session(report)) = received.recv().await else {
        panic!("it says so")
    };
    assert!(report.number == 3 && matches!(report.news, News::HintsEnded));
}
