//! What is remembered of events for all filters together: a bounded part, and a filter whose events
//! are forgotten sends everything.

use callsheet::catalog::{Inputs, Offer, Snapshot};
use callsheet::config::EventsConfig;

use crate::support::listener::Listener;
use crate::support::offers::{change, offer, put, tool};
use crate::support::serving::{self, Served};

const FILTERS: usize = 64;
/// For one filter. A change is some 7 KB.
const RING_BYTES: usize = 32 << 10;
/// As many bytes as 16 filters may remember.
const ALL_RINGS_BYTES: usize = 16 * RING_BYTES;
const PLAIN: &str = "?kind=catalog";

/// A scenario whose tools all have other names in each edition.
fn edition(number: usize) -> Offer {
    let tools: Vec<_> = (0..10)
        .map(|at| tool(&format!("edition_{number}_tool_{at}")))
        .collect();
    offer("a", &tools)
}

fn publish(server: &mut Served, number: usize) {
    let now = server.writer.current();
    let catalog = now.catalog.with(change(edition(number)));
    let next = Snapshot {
        catalog,
        sequence: now.sequence + 1,
        ..(*now).clone()
    };
    server.writer.publish(next);
}

async fn remembered(server: &Served) -> usize {
    let text = String::from_utf8(server.get("/metrics").await.body).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("callsheet_event_ring_bytes "))
        .unwrap();
    line.parse().unwrap()
}

#[tokio::test]
async fn all_filters_together_remember_a_bounded_part_and_lose_no_reader() {
    let mut inputs = Inputs::default();
    put(&mut inputs, edition(0));
    let events = EventsConfig {
        ring_bytes: RING_BYTES,
        ..EventsConfig::default()
    };
    let first = serving::snapshot(&inputs, Vec::new(), Vec::new());
    let mut server = serving::serve_following(first, 1 << 20, serving::configured(), events).await;
    let (mut plain, _) = Listener::begin(server.address, PLAIN).await;
    let mut others = Vec::new();
    for number in 0..FILTERS {
        others.push(
            Listener::begin(
                server.address,
                &format!("{PLAIN}&max_tools={}", 100 + number),
            )
            .await,
        );
    }
    for number in 1..=8 {
        publish(&mut server, number);
        assert_eq!(
            plain.next().await.event,
            "catalog",
            "the plain list keeps its own"
        );
        for (other, _) in &mut others {
            let event = other.next().await;
            assert!(
                matches!(event.event.as_str(), "catalog" | "snapshot"),
                "{event:?}"
            );
        }
        let bytes = remembered(&server).await;
        assert!(
            bytes <= ALL_RINGS_BYTES + RING_BYTES,
            "{bytes} after {number} changes"
        );
    }
    assert!(
        remembered(&server).await > RING_BYTES,
        "some of it is remembered"
    );
    let ids: Vec<_> = others.into_iter().map(|(_, first)| first.id).collect();
    for (number, id) in ids.iter().enumerate() {
        let query = format!("{PLAIN}&max_tools={}", 100 + number);
        let mut resumed = Listener::resume(server.address, &query, id).await;
        assert_eq!(
            resumed.next().await.event,
            "snapshot",
            "what it missed is not remembered"
        );
    }
}
