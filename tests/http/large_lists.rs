//! Lists that are larger than all that may be kept, over HTTP: sent while they are made, and no other than they would be whole.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::time::Duration;

use callsheet::catalog::{Change, Inputs};
use callsheet::runtime::Tasks;
use tokio::io::AsyncReadExt as _;

use crate::support::offers::{offer, put, scenario, tool};
use crate::support::serving::{Answer, Served, serve_keeping, snapshot};

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

fn long_offer(at: usize, edition: usize) -> callsheet::catalog::Offer {
    let tools = (0..20).map(|number| {
        let text = format!("Edition {edition}. {}", "It does what its name says, and nothing else. ".repeat(48));
        tool(&format!("scenario_{at}_{number}")).about(&text)
    });
    offer(&format!("scenario-{at}"), &tools.collect::<Vec<_>>())
}

async fn served(most: u64) -> Served {
    serve_keeping(snapshot(&fleet(), Vec::new(), Vec::new()), most).await
}

fn headers(answer: &Answer) -> BTreeSet<String> {
    let headers = answer.headers.iter().filter(|(name, _)| *name != "date");
    headers.map(|(name, value)| format!("{name}: {value:?}")).collect()
}

#[tokio::test]
async fn a_list_that_is_sent_while_it_is_made_is_the_list_as_it_is_whole() {
    let (whole, little) = (served(64 << 20).await, served(LITTLE).await);
    let (plain, sent) = (whole.get(TARGET).await, little.get(TARGET).await);
    assert!(sent.body.len() as u64 > 8 * LITTLE && sent.status == 200);
    assert!(sent.body == plain.body);
    assert_eq!(headers(&sent), headers(&plain));
    assert_eq!(sent.header("content-length"), sent.body.len().to_string());
    // Once more, in the same words.
    assert!(little.get(TARGET).await.body == plain.body);
    for server in [&whole, &little] {
        let head = server.ask("HEAD", TARGET, &[], "").await;
        assert_eq!((head.status, head.body.len()), (200, 0));
        assert_eq!(headers(&head), headers(&plain));
        let known = server.ask("GET", TARGET, &[("if-none-match", plain.header("etag"))], "").await;
        assert_eq!((known.status, known.body.len()), (304, 0));
        assert_eq!(known.header("etag"), plain.header("etag"));
        let coded = server.ask("GET", TARGET, &[("accept-encoding", "gzip")], "").await;
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&coded.body[..]).read_to_end(&mut text).unwrap();
        assert!(text == plain.body);
        assert_ne!(coded.header("etag"), plain.header("etag"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everyone_who_asks_at_the_same_time_has_all_of_it() {
    let server = served(LITTLE).await;
    let (address, tasks) = (server.address, Tasks::new());
    let first = server.get(TARGET).await;
    let asking =
        (0..6).map(|_| tasks.spawn(async move { crate::support::serving::ask(address, "GET", TARGET, &[], "").await }));
    for asked in asking.collect::<Vec<_>>() {
        let answer = tokio::time::timeout(PATIENCE, asked).await.expect("an answer").unwrap();
        assert!(answer.body == first.body);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_was_begun_is_sent_as_it_was_though_it_changes() {
    let mut server = served(LITTLE).await;
    let before = server.get(TARGET).await;
    let mut stream = server.begun(TARGET).await;
    let catalog =
        server.writer.current().catalog.with(Change::Offer(scenario("scenario-239"), Some(long_offer(239, 1))));
    let next = callsheet::catalog::Snapshot { catalog, sequence: 2, ..(*server.writer.current()).clone() };
    server.writer.publish(next);
    let mut rest = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end").unwrap();
    let end = rest.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    assert!(rest[end..] == before.body);
    let after = server.get(TARGET).await;
    assert_ne!(after.header("etag"), before.header("etag"));
    assert!(String::from_utf8(after.body).unwrap().contains("Edition 1."));
}
