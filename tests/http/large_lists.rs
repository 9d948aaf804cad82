//! Lists that are larger than what may be kept of prepared bodies, over HTTP: no other than a list
//! that is kept.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::time::Duration;

use callsheet::catalog::{Change, Inputs, Offer, Snapshot};
use callsheet::runtime::Tasks;
use tokio::io::AsyncReadExt as _;

use crate::support::assert_empty;
use crate::support::offers::{offer, put, scenario, tool};
use crate::support::serving::{Answer, Served, ask, serve_keeping, snapshot};

const TARGET: &str = "/api/v1/tools";
const LITTLE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(30);

/// A fleet whose list has some twelve megabytes.
fn fleet() -> Inputs {
    let mut all = Inputs::default();
    for at in 0..240 {
        put(&mut all, long_offer(at, 0));
    }
    all
}

fn long_offer(at: usize, edition: usize) -> Offer {
    let tools = (0..20).map(|number| {
        let text = format!(
            "Edition {edition}. {}",
            "It does what its name says, and nothing else. ".repeat(48)
        );
        tool(&format!("scenario_{at}_{number}")).about(&text)
    });
    offer(&format!("scenario-{at}"), &tools.collect::<Vec<_>>())
}

async fn served(most: u64) -> Served {
    serve_keeping(snapshot(&fleet(), Vec::new(), Vec::new()), most).await
}

fn headers(answer: &Answer) -> BTreeSet<String> {
    let headers = answer.headers.iter().filter(|(name, _)| *name != "date");
    headers
        .map(|(name, value)| format!("{name}: {value:?}"))
        .collect()
}

#[tokio::test]
async fn a_list_that_is_too_large_to_be_kept_is_the_list_that_is_kept() {
    let large = served(64 << 20).await;
    let little = served(LITTLE).await;
    let kept = large.get(TARGET).await;
    let sent = little.get(TARGET).await;
    assert!(sent.body.len() as u64 > 8 * LITTLE && sent.status == 200);
    assert!(sent.body == kept.body);
    assert_eq!(headers(&sent), headers(&kept));
    assert_eq!(sent.header("content-length"), sent.body.len().to_string());
    for server in [&large, &little] {
        assert!(server.get(TARGET).await.body == kept.body, "once more");
        let head = server.ask("HEAD", TARGET, &[], "").await;
        assert_eq!(head.status, 200);
        assert_empty!(head.body);
        assert_eq!(headers(&head), headers(&kept));
        let known = server
            .ask("GET", TARGET, &[("if-none-match", kept.header("etag"))], "")
            .await;
        assert_eq!(known.status, 304);
        assert_empty!(known.body);
        assert_eq!(known.header("etag"), kept.header("etag"));
        let coded = server
            .ask("GET", TARGET, &[("accept-encoding", "gzip")], "")
            .await;
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&coded.body[..])
            .read_to_end(&mut text)
            .unwrap();
        assert!(text == kept.body);
        assert_ne!(coded.header("etag"), kept.header("etag"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_client_that_requests_it_at_the_same_time_has_all_of_it() {
    let server = served(LITTLE).await;
    let address = server.address;
    let tasks = Tasks::new();
    let first = server.get(TARGET).await;
    let requests =
        (0..6).map(|_| tasks.spawn(async move { ask(address, "GET", TARGET, &[], "").await }));
    for request in requests.collect::<Vec<_>>() {
        let answer = tokio::time::timeout(PATIENCE, request)
            .await
            .expect("an answer")
            .unwrap();
        assert!(answer.body == first.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_was_begun_is_sent_as_it_was_though_it_changes() {
    let mut server = served(LITTLE).await;
    let before = server.get(TARGET).await;
    let mut stream = server.begun(TARGET).await;
    let change = Change::Offer(scenario("scenario-239"), Some(long_offer(239, 1)));
    let catalog = server.writer.current().catalog.with(change);
    let next = Snapshot {
        catalog,
        sequence: 2,
        ..(*server.writer.current()).clone()
    };
    server.writer.publish(next);
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest))
        .await
        .expect("an end")
        .unwrap();
    let end = rest
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap()
        + 4;
    assert!(rest[end..] == before.body);
    let after = server.get(TARGET).await;
    assert_ne!(after.header("etag"), before.header("etag"));
    assert!(
        String::from_utf8(after.body)
            .unwrap()
            .contains("Edition 1.")
    );
}
