//! One poll: a listing of one scenario, started by the loop and returned to it as an event.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use futures_util::FutureExt as _;
use tracing::Instrument as _;

use super::sessions::link::Connected;
use crate::metrics::Listings;
use crate::model::{Awaited, Manifest, ScenarioName, Target};
use crate::protocols::decoding::decode_manifest;
use crate::protocols::{ListError, ListRequest, Listing, Protocol, Protocols, Session, probe};
use crate::runtime::Tasks;
use crate::transports::{TransportError, Transports};

/// What to poll, and how.
pub(super) struct PollRequest {
    pub(super) name: ScenarioName,
    pub(super) generation: u64,
    pub(super) target: Target,
    pub(super) mode: PollMode,
    /// Whether the program of the scenario sleeps: its former process may still be ending.
    pub(super) is_asleep: bool,
    pub(super) transports: Transports,
    pub(super) request: ListRequest,
    /// How long it may take, including the wait for a permit: a session's own timeout may be wrong.
    pub(super) longest: Duration,
    /// Counts the results.
    pub(super) listings: Arc<Listings>,
    /// The session that lists, as soon as there is one.
    pub(super) current: CurrentSession,
}

/// The session through which a poll lists. Clones share it.
#[derive(Clone, Default)]
pub(super) struct CurrentSession(Arc<ArcSwapOption<Arc<dyn Session>>>);

impl CurrentSession {
    fn set(&self, session: &Arc<dyn Session>) {
        self.0.store(Some(Arc::new(Arc::clone(session))));
    }

    /// What it waits for.
    pub(super) fn awaited(&self) -> Option<Awaited> {
        self.0.load().as_ref()?.awaited()
    }
}

/// How a scenario is polled.
pub(super) enum PollMode {
    /// Through its existing session.
    Session(Arc<dyn Protocol>, Arc<dyn Session>),
    /// Through a new session, since there is none.
    Connect(Arc<dyn Protocol>),
    /// By detecting which of these protocols it speaks.
    Probe(Protocols),
}

/// The result of a poll.
pub(super) struct PollResult {
    pub(super) name: ScenarioName,
    pub(super) generation: u64,
    /// The session that was made, also when the listing through it failed.
    pub(super) connected: Option<Connected>,
    /// Whether every change is signalled; the loop sets this when it handles the answer.
    pub(super) followed: bool,
    pub(super) result: Result<(Arc<dyn Protocol>, Listing), ListError>,
}

/// Polls. Never fails: errors are part of the result. A panic, or a poll without end, only loses
/// its own answer; otherwise its scenario would wait for ever.
pub(super) async fn poll(poll_request: PollRequest) -> PollResult {
    let name = poll_request.name.clone();
    let generation = poll_request.generation;
    let listings = Arc::clone(&poll_request.listings);
    let longest = poll_request.longest;
    let span = tracing::info_span!("ask", scenario = %name, outcome = tracing::field::Empty);
    let mut connected = None;
    let listed = list(poll_request, &mut connected).instrument(span.clone());
    let caught = AssertUnwindSafe(listed).catch_unwind();
    let result = match tokio::time::timeout(longest, caught).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(ListError::Malformed(
            "reading the answer failed inside callsheet; see its log".into(),
        )),
        Err(_) => Err(TransportError::Timeout {
            url: name.to_string(),
            limit: longest,
        }
        .into()),
    };
    let outcome = match &result {
        Ok((_, Listing::Manifest { .. })) => "manifest",
        Ok((_, Listing::Unchanged(_))) => "unchanged",
        Err(ListError::Transport(_)) => "unanswered",
        Err(error) => error.kind(),
    };
    span.record("outcome", outcome);
    listings.ended(outcome);
    PollResult {
        name,
        generation,
        connected,
        followed: false,
        result,
    }
}

async fn list(
    poll_request: PollRequest,
    connected: &mut Option<Connected>,
) -> Result<(Arc<dyn Protocol>, Listing), ListError> {
    let PollRequest {
        target,
        mode,
        transports,
        request,
        current,
        is_asleep,
        ..
    } = poll_request;
    if is_asleep && let Target::Stdio(program) = &target {
        transports.program_ended(program).await;
    }
    let (protocol, listing) = match mode {
        PollMode::Session(protocol, session) => {
            current.set(&session);
            let listing = session.list(&request).await?;
            (protocol, listing)
        }
        PollMode::Connect(protocol) => {
            let session = protocol.connect(&target, &transports).await?;
            *connected = Some(Connected {
                target,
                protocol: Arc::clone(&protocol),
                session: Arc::clone(&session),
            });
            current.set(&session);
            let listing = session.list(&request).await?;
            (protocol, listing)
        }
        PollMode::Probe(protocols) => {
            let probe::Probed {
                protocol,
                session,
                listing,
            } = probe::probe(&protocols, &target, &transports, &request, &|session| {
                current.set(session);
            })
            .await?;
            *connected = Some(Connected {
                target,
                protocol: Arc::clone(&protocol),
                session,
            });
            (protocol, listing)
        }
    };
    if let Listing::Manifest { manifest, .. } = &listing
        && request.judged.is_some_and(|known| known != manifest.digest)
    {
        compute_versions(transports.tasks(), manifest).await;
    }
    Ok((protocol, listing))
}

/// Computes the versions of the definitions of a list that changed. The loop compares them with
/// those that were accepted, and would compute them while everything else waits.
async fn compute_versions(tasks: &Tasks, manifest: &Manifest) {
    let tools = manifest.tools.clone();
    let bytes = tools.iter().map(|tool| tool.bytes()).sum();
    let work = move || {
        for tool in &tools {
            tool.version();
        }
    };
    decode_manifest(tasks, bytes, work).await;
}

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;

    use super::*;
    use crate::protocols::tool_discovery::ToolDiscovery;
    use crate::runtime::Clock;
    use crate::transports::http::{Client, ClientLimits};

    struct Broken;

    struct NeverEndingList;

    impl Session for NeverEndingList {
        fn list<'a>(&'a self, _: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
            Box::pin(std::future::pending())
        }
    }

    impl Session for Broken {
        fn list<'a>(&'a self, _: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
            Box::pin(async { panic!("on purpose") })
        }
    }

    fn poll_request(session: Arc<dyn Session>) -> PollRequest {
        let second = Duration::from_secs(1);
        let limits = ClientLimits {
            connect: second,
            whole: second,
            max_body: 1,
            max_redirects: 0,
        };
        let client = Client::new(limits, 1, second, Clock::system(), Tasks::new());
        PollRequest {
            name: "files".parse().unwrap(),
            generation: 7,
            target: Target::at("http://127.0.0.1:1".parse().unwrap()),
            mode: PollMode::Session(Arc::new(ToolDiscovery), session),
            transports: Transports::new(client),
            is_asleep: false,
            request: ListRequest::whole(),
            longest: second,
            listings: Arc::default(),
            current: CurrentSession::default(),
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_answer_too() {
        let answered = poll(poll_request(Arc::new(Broken))).await;
        assert_eq!(answered.name.as_str(), "files");
        assert_eq!(answered.generation, 7);
        assert_eq!(
            answered.result.err().map(|error| error.kind()),
            Some("malformed")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_poll_without_end_times_out() {
        let answered = poll(poll_request(Arc::new(NeverEndingList))).await;
        assert_eq!(
            answered.result.err().map(|error| error.kind()),
            Some("timeout")
        );
    }
}
