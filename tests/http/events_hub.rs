//! The hub as a library: typed messages, found once for all who follow the same, and what happens
//! at its limits.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use callsheet::catalog::{
    Catalog, CatalogWriter, Snapshot, StateTransitions, ViewQuery, build, catalog_store,
};
use callsheet::config;
use callsheet::events::{
    CallsSeen, Cursor, Ending, Event, EventType, Hub, Message, Next, SubscribeError,
    SubscribeRequest, Subscription,
};
use callsheet::model::{ScenarioState, StateTransition};
use callsheet::runtime::{Clock, StopTrigger, Tasks};
use futures_util::FutureExt as _;
use jiff::Timestamp;
use tokio::sync::oneshot;

use crate::support::offers::{change, inputs, offer, scenario, tool};

/// No message of these tests takes this long unless it never comes.
const PATIENCE: Duration = Duration::from_secs(30);

struct Stage {
    hub: Hub,
    writer: CatalogWriter,
    catalog: Catalog,
    turns: StateTransitions,
    sequence: u64,
    stop: StopTrigger,
    tasks: Tasks,
}

impl Stage {
    fn new(limits: impl FnOnce(&mut config::EventsConfig)) -> Self {
        let mut events = config::EventsConfig::default();
        limits(&mut events);
        let catalog = build(&inputs(&[("a", &["x"]), ("b", &["y"])]));
        let (writer, reader) = catalog_store(snapshot(&catalog, &StateTransitions::default(), 1));
        let (stop, stopping) = StopTrigger::new();
        let tasks = Tasks::new();
        let hub = Hub::start(reader, events, Clock::system(), &tasks, &stopping);
        Self {
            hub,
            writer,
            catalog,
            turns: StateTransitions::default(),
            sequence: 1,
            stop,
            tasks,
        }
    }

    fn publish(&mut self) {
        self.sequence += 1;
        self.writer
            .publish(snapshot(&self.catalog, &self.turns, self.sequence));
    }

    /// Lets scenario `a` offer one tool of this name.
    fn offer(&mut self, name: &str) {
        self.catalog = self.catalog.with(change(offer("a", &[tool(name)])));
        self.publish();
    }

    /// Follows what is asked for, with the first message.
    async fn follow(&self, ask: SubscribeRequest) -> (Subscription, Arc<Message>) {
        let mut subscription = self.hub.subscribe(ask).await.unwrap();
        let first = message(&mut subscription).await;
        (subscription, first)
    }
}

fn snapshot(catalog: &Catalog, turns: &StateTransitions, sequence: u64) -> Snapshot {
    Snapshot {
        catalog: catalog.clone(),
        former_names: callsheet::catalog::FormerNames::default(),
        generated_at: Timestamp::UNIX_EPOCH,
        health: imbl::OrdMap::new(),
        findings: Arc::default(),
        sequence,
        transitions: turns.clone(),
        program_ends: callsheet::catalog::ProgramEnds::default(),
        isolated: None,
        configuration: None,
    }
}

async fn message(subscription: &mut Subscription) -> Arc<Message> {
    match tokio::time::timeout(PATIENCE, subscription.next())
        .await
        .unwrap()
    {
        Next::Message(message) => message,
        Next::Ended(ending) => panic!("{ending:?}"),
    }
}

fn of_profile(name: &str, cursor: Option<Cursor>) -> SubscribeRequest {
    let query = ViewQuery {
        profile: Some(name.to_owned()),
        ..ViewQuery::default()
    };
    SubscribeRequest {
        query,
        cursor,
        ..SubscribeRequest::default()
    }
}

fn is_snapshot(message: &Message) -> bool {
    matches!(message.event, Event::Snapshot(_))
}

#[tokio::test]
async fn what_differs_is_found_once_for_all_who_follow_the_same() {
    let mut stage = Stage::new(|_| {});
    let mut followers = Vec::new();
    for _ in 0..200 {
        followers.push(stage.follow(SubscribeRequest::default()).await);
    }
    let (mut other, _) = stage.follow(of_profile("p", None)).await;
    assert!(
        followers
            .iter()
            .all(|(_, first)| Arc::ptr_eq(first, &followers[0].1)),
        "one snapshot"
    );
    stage.offer("z");
    let first = message(&mut followers[0].0).await;
    let Event::Catalog(change) = &first.event else {
        panic!("{first:?}")
    };
    assert_eq!(change.difference.added[0].name.as_str(), "z");
    assert_eq!(change.revision, stage.catalog.revision());
    for (follower, _) in followers.iter_mut().skip(1) {
        assert!(Arc::ptr_eq(&message(follower).await, &first));
    }
    let others = message(&mut other).await;
    assert!(
        !Arc::ptr_eq(&others, &first) && others.id == first.id,
        "another list, the same place"
    );
    stage.stop.stop();
    for (mut follower, _) in followers {
        assert!(matches!(
            follower.next().await,
            Next::Ended(Ending::Stopping)
        ));
    }
    drop(other);
    assert_eq!(
        stage.tasks.finish(PATIENCE).await,
        callsheet::runtime::tasks::Finish::Clean
    );
}

#[tokio::test]
async fn only_what_was_asked_for_comes() {
    let mut stage = Stage::new(|_| {});
    let query = ViewQuery {
        scenarios: [scenario("b")].into(),
        ..ViewQuery::default()
    };
    let (mut states, _) = stage
        .follow(SubscribeRequest {
            query,
            kinds: [EventType::Scenario].into(),
            ..SubscribeRequest::default()
        })
        .await;
    for name in ["a", "b"] {
        stage.turns.push(turn(name));
    }
    stage.offer("z");
    let received = message(&mut states).await;
    assert!(
        matches!(&received.event, Event::Scenario(turn) if turn.name == scenario("b")),
        "{received:?}"
    );
}

fn turn(name: &str) -> StateTransition {
    StateTransition {
        name: scenario(name),
        from: Some(ScenarioState::Live),
        to: Some(ScenarioState::Stale),
        reason: "the test says so".into(),
        at: Timestamp::UNIX_EPOCH,
        restarts: 0,
        failures_in_a_row: 1,
    }
}

#[tokio::test]
async fn whoever_missed_changes_of_states_gets_a_snapshot() {
    let mut stage = Stage::new(|_| {});
    let (mut follower, first) = stage.follow(SubscribeRequest::default()).await;
    for _ in 0..5_000 {
        stage.turns.push(turn("a"));
    }
    stage.publish();
    let received = message(&mut follower).await;
    assert!(
        is_snapshot(&received) && received.id.seq > first.id.seq,
        "{received:?}"
    );
    stage.turns.push(turn("a"));
    stage.publish();
    assert!(matches!(
        message(&mut follower).await.event,
        Event::Scenario(_)
    ));
}

#[tokio::test]
async fn a_reader_too_far_behind_is_told_so_and_may_resume() {
    let mut stage = Stage::new(|events| (events.ring, events.reader_queue) = (64, 2));
    let (mut slow, first) = stage.follow(SubscribeRequest::default()).await;
    let (mut quick, _) = stage.follow(SubscribeRequest::default()).await;
    let watch = slow.watch();
    for name in ["p", "q", "r"] {
        stage.offer(name);
        message(&mut quick).await;
    }
    assert_eq!(
        tokio::time::timeout(PATIENCE, watch.ended())
            .await
            .expect("it is ended in time"),
        Some(Ending::Overrun)
    );
    assert!(matches!(slow.next().await, Next::Ended(Ending::Overrun)));
    let (mut resumed, received) = stage
        .follow(SubscribeRequest {
            cursor: Some(first.id),
            ..SubscribeRequest::default()
        })
        .await;
    assert!(
        matches!(&received.event, Event::Catalog(change) if change.difference.added[0].name.as_str() == "p")
    );
    // What it has to catch up on does not count against it.
    stage.offer("s");
    for name in ["q", "r", "s"] {
        let received = message(&mut resumed).await;
        assert!(
            matches!(&received.event, Event::Catalog(change) if change.difference.added[0].name.as_str() == name)
        );
    }
}

#[tokio::test]
async fn however_much_is_told_at_once_drops_nobody_who_keeps_up() {
    let mut stage = Stage::new(|events| (events.ring, events.reader_queue) = (64, 2));
    let (mut reader, mut last) = stage.follow(SubscribeRequest::default()).await;
    // More at once than a reader may be behind, several times.
    for round in 0..20 {
        stage.offer(&format!("z{round}"));
        for _ in 0..30 {
            stage.turns.push(turn("a"));
        }
        stage.publish();
        let mut turns = 0;
        while turns < 30 {
            let received = message(&mut reader).await;
            assert!(received.id.seq > last.id.seq, "in order");
            turns += usize::from(matches!(received.event, Event::Scenario(_)));
            assert!(!is_snapshot(&received), "all of it fits");
            last = received;
        }
    }
    // More than half of what is remembered is told as one snapshot, for who asked for anything.
    let only = SubscribeRequest {
        kinds: [EventType::Scenario].into(),
        ..SubscribeRequest::default()
    };
    let (mut states, _) = stage.follow(only).await;
    for round in 0..3 {
        for _ in 0..=32 {
            stage.turns.push(turn("a"));
        }
        stage.publish();
        for follower in [&mut reader, &mut states] {
            let mut received = message(follower).await;
            while matches!(received.event, Event::Catalog(_)) {
                received = message(follower).await;
            }
            assert!(is_snapshot(&received), "{round}: {received:?}");
        }
        stage.turns.push(turn("b"));
        stage.publish();
        for follower in [&mut reader, &mut states] {
            assert!(
                matches!(message(follower).await.event, Event::Scenario(_)),
                "{round}"
            );
        }
    }
}

#[tokio::test]
async fn who_comes_back_to_what_was_told_at_once_loses_nothing() {
    let mut stage = Stage::new(|events| (events.ring, events.reader_queue) = (64, 1));
    let (slow, first) = stage.follow(SubscribeRequest::default()).await;
    drop(slow);
    for _ in 0..30 {
        stage.turns.push(turn("a"));
    }
    stage.publish();
    let (mut resumed, received) = stage
        .follow(SubscribeRequest {
            cursor: Some(first.id),
            ..SubscribeRequest::default()
        })
        .await;
    assert!(matches!(received.event, Event::Scenario(_)), "{received:?}");
    for _ in 1..30 {
        assert!(matches!(
            message(&mut resumed).await.event,
            Event::Scenario(_)
        ));
    }
}

#[tokio::test]
async fn a_filter_that_nobody_follows_is_remembered_for_a_while() {
    let mut stage = Stage::new(|_| {});
    let (mut plain, _) = stage.follow(SubscribeRequest::default()).await;
    let (gone, first) = stage.follow(of_profile("p", None)).await;
    drop(gone);
    stage.offer("z");
    message(&mut plain).await;
    let (_, received) = stage.follow(of_profile("p", Some(first.id))).await;
    assert!(matches!(received.event, Event::Catalog(_)), "{received:?}");
    // Many others come and go, and it is the one that went first.
    for number in 0..70 {
        stage.follow(of_profile(&format!("p{number}"), None)).await;
    }
    let (_, received) = stage.follow(of_profile("p", Some(first.id))).await;
    assert!(is_snapshot(&received), "{received:?}");

    let mut stage = Stage::new(|events| events.linger = Duration::ZERO);
    let (_, first) = stage.follow(of_profile("p", None)).await;
    stage.offer("z");
    let (_, received) = stage.follow(of_profile("p", Some(first.id))).await;
    assert!(is_snapshot(&received), "{received:?}");
}

#[tokio::test]
async fn no_more_than_so_many_follow() {
    let stage = Stage::new(|events| events.max_subscribers = 1);
    let (first, _) = stage.follow(SubscribeRequest::default()).await;
    let refused = stage
        .hub
        .subscribe(SubscribeRequest::default())
        .await
        .unwrap_err();
    assert_eq!(refused, SubscribeError::Full(1));
    assert!(refused.to_string().contains("`events.max_subscribers`"));
    drop(first);
    stage.follow(SubscribeRequest::default()).await;
}

/// A stream that follows, or why it ended.
async fn ending(stream: &mut Subscription) -> Ending {
    loop {
        if let Next::Ended(ending) = stream.next().await {
            return ending;
        }
    }
}

#[tokio::test]
async fn in_a_full_table_the_oldest_stream_of_the_largest_holder_gives_way() {
    let stage = Stage::new(|events| events.max_subscribers = 64);
    let of_client = |chat: &str| {
        let query = ViewQuery {
            chat: Some(chat.to_owned()),
            ..ViewQuery::default()
        };
        let calls = CallsSeen::OwnWithIds("without-token".into(), BTreeSet::new());
        SubscribeRequest {
            query,
            calls,
            ..SubscribeRequest::default()
        }
    };
    let (mut operator, _) = stage.follow(SubscribeRequest::default()).await;
    let (mut other, _) = stage.follow(of_client("other")).await;
    let mut flood = Vec::new();
    for _ in 0..62 {
        flood.push(stage.follow(of_client("flood")).await.0);
    }
    assert_eq!(stage.hub.subscribers(), 64);
    let (mut new, _) = stage.follow(of_client("new")).await;
    assert_eq!(stage.hub.subscribers(), 64);
    let watch = flood[1].watch();
    assert_eq!(ending(&mut flood[0]).await, Ending::GaveWay);
    let (_another, _) = stage.follow(of_client("flood")).await;
    assert_eq!(
        watch.ended().await,
        Some(Ending::GaveWay),
        "a client that does not read is disconnected"
    );
    for kept in [&mut operator, &mut other, &mut new, &mut flood[2]] {
        let next = tokio::time::timeout(Duration::ZERO, kept.next()).await;
        assert!(!matches!(next, Ok(Next::Ended(_))), "it keeps its place");
    }
    flood.clear();
    assert!(
        stage.hub.subscribers() < 10,
        "what gave way frees no place twice"
    );
}

#[tokio::test]
async fn streams_of_invented_conversations_take_no_place_of_an_operator_or_of_another_profile() {
    let stage = Stage::new(|events| events.max_subscribers = 64);
    let of_client = |profile: Option<&str>, chat: String| {
        let query = ViewQuery {
            profile: profile.map(str::to_owned),
            chat: Some(chat),
            ..ViewQuery::default()
        };
        let calls = CallsSeen::OwnWithIds("without-token".into(), BTreeSet::new());
        SubscribeRequest {
            query,
            calls,
            ..SubscribeRequest::default()
        }
    };
    let mut kept = Vec::new();
    for _ in 0..2 {
        kept.push(stage.follow(SubscribeRequest::default()).await.0);
        kept.push(stage.follow(of_client(Some("p"), "7".to_owned())).await.0);
    }
    let mut flood = Vec::new();
    for number in 0..70 {
        flood.push(stage.follow(of_client(None, number.to_string())).await.0);
    }
    assert_eq!(stage.hub.subscribers(), 64);
    for stream in &mut flood[..10] {
        assert_eq!(
            ending(stream).await,
            Ending::GaveWay,
            "the oldest ones of the flood"
        );
    }
    for stream in &mut kept {
        let next = tokio::time::timeout(Duration::ZERO, stream.next()).await;
        assert!(!matches!(next, Ok(Next::Ended(_))), "it keeps its place");
    }
}

/// Where no token is configured, all clients are one owner.
#[tokio::test]
async fn a_few_streams_of_one_conversation_are_no_more_than_one_of_an_invented_one() {
    let stage = Stage::new(|events| events.max_subscribers = 250);
    let of_chat = |chat: String| {
        let query = ViewQuery {
            chat: Some(chat),
            ..ViewQuery::default()
        };
        SubscribeRequest {
            query,
            ..SubscribeRequest::default()
        }
    };
    let mut flood = Vec::new();
    for number in 0..248 {
        flood.push(stage.follow(of_chat(number.to_string())).await.0);
    }
    let mut tabs = vec![stage.follow(SubscribeRequest::default()).await.0];
    tabs.push(stage.follow(SubscribeRequest::default()).await.0);
    let _new = stage.follow(of_chat("new".to_owned())).await;
    assert_eq!(ending(&mut flood[0]).await, Ending::GaveWay);
    for tab in &mut tabs {
        let next = tokio::time::timeout(Duration::ZERO, tab.next()).await;
        assert!(!matches!(next, Ok(Next::Ended(_))), "it keeps its place");
    }
}

/// As in a connection that waits for other things at the same time.
#[test]
fn a_snapshot_is_made_once_though_its_reader_stops_waiting_for_it_meanwhile() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let stage = Stage::new(|_| {});
            let mut subscription = stage
                .hub
                .subscribe(SubscribeRequest::default())
                .await
                .unwrap();
            assert!(
                subscription.next().now_or_never().is_none(),
                "it is made now"
            );
            // The only thread for such work comes to this when the snapshot was made, and makes no
            // other.
            let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
            let (blocks, is_blocked) = oneshot::channel();
            let blocked = stage.tasks.spawn_blocking(move || {
                blocks.send(()).unwrap();
                held.recv().is_err()
            });
            is_blocked.await.unwrap();
            let next = subscription.next().now_or_never();
            assert!(
                matches!(&next, Some(Next::Message(message)) if is_snapshot(message)),
                "{next:?}"
            );
            drop(release);
            assert!(blocked.await.unwrap());
        });
}
