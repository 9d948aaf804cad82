//! A large manifest is read beside the async threads, so that nobody waits for it.

use std::sync::mpsc;
use std::time::Duration;

use callsheet::protocols::tool_discovery::ToolDiscoverySession;
use callsheet::protocols::{ListRequest, Listing, Session as _};
use callsheet::runtime::{Clock, Tasks};
use callsheet::transports::http::Upstream;
use serde_json::json;

use crate::support::upstream_server::{UpstreamServer, answer, upstream};

fn manifest(tools: usize) -> Vec<u8> {
    let tool =
        |index| json!({"name": format!("tool_{index}"), "description": "It reads. ".repeat(30)});
    let tools: Vec<_> = (0..tools).map(tool).collect();
    json!({"protocol_version": "1.0", "scenario": {"name": "large"}, "tools": tools})
        .to_string()
        .into_bytes()
}

async fn listed(upstream: &Upstream) -> usize {
    match ToolDiscoverySession::new(upstream.clone())
        .list(&ListRequest::whole())
        .await
        .unwrap()
    {
        Listing::Manifest { manifest, .. } => manifest.tools.len(),
        Listing::Unchanged(_) => panic!("nothing was known"),
    }
}

#[test]
fn a_large_manifest_is_read_on_the_blocking_pool_and_a_small_one_at_once() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    runtime.block_on(async {
        let tasks = Tasks::new();
        let (release, held) = mpsc::sync_channel::<()>(0);
        // The only blocking thread is taken until this says otherwise.
        let taken = tasks.spawn_blocking(move || held.recv().unwrap());
        let large = UpstreamServer::answering(|_| answer("200 OK", &[], &manifest(2_000))).await;
        let small = UpstreamServer::answering(|_| answer("200 OK", &[], &manifest(2))).await;
        let reading = tasks.spawn({
            let large = upstream(large.url());
            async move { listed(&large).await }
        });
        let deadline = Clock::system().now() + Duration::from_secs(20);
        while large.requests().is_empty() && Clock::system().now() < deadline {
            assert_eq!(
                listed(&upstream(small.url())).await,
                2,
                "a small one needs no blocking thread"
            );
        }
        // Rounds enough for the large answer to arrive as well.
        for _ in 0..50 {
            assert_eq!(listed(&upstream(small.url())).await, 2);
        }
        assert!(
            !reading.is_finished(),
            "the large one was read on the async thread"
        );
        release.send(()).unwrap();
        assert_eq!(reading.await.unwrap(), 2_000);
        taken.await.unwrap();
    });
}
