//! One ask: a listing of one scenario, started by the loop and answered to it as an event.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tracing::Instrument as _;

use crate::metrics::Listings;
use crate::model::{Accept, ScenarioName};
use crate::protocols::{Known, ListError, Listing, Protocol, Protocols, probe};
use crate::transports::http::Upstream;

/// What to ask.
pub(super) struct Question {
    pub(super) name: ScenarioName,
    pub(super) generation: u64,
    pub(super) upstream: Upstream,
    /// Probed when absent.
    pub(super) protocol: Option<Arc<dyn Protocol>>,
    /// What an unknown scenario is probed with.
    pub(super) protocols: Protocols,
    pub(super) accept: Accept,
    /// Absent for an unconditional ask.
    pub(super) known: Option<Known>,
    /// Where what comes of it is counted.
    pub(super) listings: Arc<Listings>,
}

/// What came of it.
pub(super) struct Answered {
    pub(super) name: ScenarioName,
    pub(super) generation: u64,
    pub(super) result: Result<(Arc<dyn Protocol>, Listing), ListError>,
}

/// Asks. Never fails: what went wrong is in the answer. A panic costs the answer it came from, or its scenario would wait for ever.
pub(super) async fn ask(question: Question) -> Answered {
    let (name, generation, listings) = (question.name.clone(), question.generation, Arc::clone(&question.listings));
    let span = tracing::info_span!("ask", scenario = %name, outcome = tracing::field::Empty);
    let listed = list(question).instrument(span.clone());
    let result = AssertUnwindSafe(listed).catch_unwind().await.unwrap_or_else(|_| {
        Err(ListError::Malformed("reading the answer failed inside callsheet; its log says where".into()))
    });
    let outcome = match &result {
        Ok((_, Listing::Manifest { .. })) => "manifest",
        Ok((_, Listing::Unchanged(_))) => "unchanged",
        Err(ListError::Ask(_)) => "unanswered",
        Err(error) => error.kind(),
    };
    span.record("outcome", outcome);
    listings.ended(outcome);
    Answered { name, generation, result }
}

async fn list(question: Question) -> Result<(Arc<dyn Protocol>, Listing), ListError> {
    let Question { upstream, protocol, protocols, accept, known, .. } = question;
    let (protocol, listing) = if let Some(protocol) = protocol {
        let listing = protocol.list(&upstream, &accept, known.as_ref()).await?;
        (protocol, listing)
    } else {
        let probed = probe::probe(&protocols, &upstream, &accept, known.as_ref()).await?;
        (probed.protocol, probed.listing)
    };
    Ok((protocol, listing))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures_util::future::BoxFuture;

    use super::*;
    use crate::runtime::Clock;
    use crate::transports::http::{Client, Limits};

    struct Broken;

    impl Protocol for Broken {
        fn id(&self) -> &'static str {
            "broken"
        }

        fn path(&self) -> &'static str {
            "/"
        }

        fn list<'a>(
            &'a self,
            _: &'a Upstream,
            _: &'a Accept,
            _: Option<&'a Known>,
        ) -> BoxFuture<'a, Result<Listing, ListError>> {
            Box::pin(async { panic!("on purpose") })
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_too() {
        let second = Duration::from_secs(1);
        let limits = Limits { connect: second, whole: second, max_body: 1, max_redirects: 0 };
        let client = Client::new(limits, 1, second, Clock::system(), crate::runtime::Tasks::new());
        let question = Question {
            name: "files".parse().unwrap(),
            generation: 7,
            upstream: client.upstream("http://127.0.0.1:1".parse().unwrap()).unwrap(),
            protocol: Some(Arc::new(Broken)),
            protocols: Protocols::built_in(),
            accept: Accept::read(">=1.0").unwrap(),
            known: None,
            listings: Arc::default(),
        };
        let answered = ask(question).await;
        assert_eq!((answered.name.as_str(), answered.generation), ("files", 7));
        assert_eq!(answered.result.err().map(|error| error.kind()), Some("malformed"));
    }
}
