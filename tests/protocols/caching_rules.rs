//! The product's own caching rules in a running daemon, and their switches. That `no-store` never
//! reaches the disk, the floor and the default lifetime are in `health_fresh.rs`.

use callsheet::model::{FindingCode, ScenarioState};
use callsheet::transports::http::CacheScope;

use crate::support::in_process::{findings, listed};
use crate::support::scripted::{Reply, Scripted};
use crate::support::watched::{HOUR, one};

fn saying(cache_control: &str) -> Reply {
    Reply::tools("files", &["read"]).header(&format!("Cache-Control: {cache_control}"))
}

const BROKEN: &str = "503 Service Unavailable";

/// Its last answer forbade stale use in each of the ways there are.
const FORBIDDING: [&str; 4] = [
    "max-age=0, must-revalidate",
    "no-cache",
    "no-store",
    "max-age=0, stale-if-error=0",
];

#[tokio::test]
async fn the_last_good_answer_stays_published_whatever_it_said_of_stale_use() {
    for said in FORBIDDING {
        let server = Scripted::saying(saying(said));
        let sheet = one("files", &server)
            .with(|config| config.health.grace = HOUR)
            .start()
            .await;
        sheet.until_listed(&["read"]).await;
        server.say(Reply::status(BROKEN));
        let failed = sheet
            .until_health("files", "failed often", |health| {
                health.failures_in_a_row >= 4
            })
            .await;
        assert_eq!(listed(&failed), ["read"], "{said}");
    }
}

#[tokio::test]
async fn without_that_rule_the_first_failure_withdraws_what_forbade_stale_use_and_a_good_answer_brings_it_back()
 {
    for said in FORBIDDING {
        let server = Scripted::saying(saying(said));
        let sheet = one("files", &server)
            .with(|config| (config.health.grace, config.cache.last_good) = (HOUR, false))
            .start()
            .await;
        sheet.until_listed(&["read"]).await;
        server.say(Reply::status(BROKEN));
        let withdrawn = sheet.until_listed(&[]).await;
        assert_eq!(
            findings(&withdrawn, FindingCode::Withdrawn).len(),
            1,
            "{said}"
        );
        assert_ne!(sheet.health("files").state, ScenarioState::Down, "{said}");
        server.say(saying(said));
        sheet.until_listed(&["read"]).await;
    }
}

#[tokio::test]
async fn without_that_rule_what_forbade_nothing_stays_and_a_window_ends_by_itself() {
    let server = Scripted::saying(saying("max-age=0"));
    let switch = |config: &mut callsheet::config::Config| {
        (config.health.grace, config.cache.last_good) = (HOUR, false);
    };
    let sheet = one("files", &server).with(switch).start().await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status(BROKEN));
    let failed = sheet
        .until_health("files", "failed often", |health| {
            health.failures_in_a_row >= 4
        })
        .await;
    assert_eq!(listed(&failed), ["read"]);

    // Once it failed nobody asks again for an hour: time alone ends the window.
    let server = Scripted::saying(saying("max-age=0, stale-if-error=2"));
    let sheet = one("files", &server)
        .with(switch)
        .with(|config| (config.refresh.backoff_base, config.refresh.backoff_max) = (HOUR, HOUR))
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status(BROKEN));
    let failed = sheet
        .until_health("files", "failed", |health| health.failures_in_a_row == 1)
        .await;
    assert_eq!(listed(&failed), ["read"]);
    sheet.until_listed(&[]).await;
    assert_eq!(sheet.health("files").failures_in_a_row, 1);
}

#[tokio::test]
async fn a_shared_cache_keeps_nothing_private_on_disk_and_goes_by_its_own_lifetime() {
    for (scope, kept, seconds) in [(CacheScope::Private, 1, 100), (CacheScope::Shared, 0, 0)] {
        let server = Scripted::saying(saying("private, max-age=100"));
        let sheet = one("files", &server)
            .with(|config| config.cache.scope = scope)
            .start()
            .await;
        let now = sheet.until_listed(&["read"]).await;
        let freshness = crate::support::in_process::health(&now, "files")
            .freshness
            .unwrap();
        let lifetime = freshness
            .fresh_until
            .duration_since(freshness.received_at)
            .as_secs();
        assert!(
            (seconds - 1..=seconds).contains(&lifetime),
            "{scope:?}: {lifetime}"
        );
        let stored = sheet.stop().await.1.stored().await;
        assert_eq!(stored.manifests.len(), kept, "{scope:?}");
    }
    let server = Scripted::saying(saying("s-maxage=300, max-age=100"));
    let sheet = one("files", &server)
        .with(|config| config.cache.scope = CacheScope::Shared)
        .start()
        .await;
    let now = sheet.until_listed(&["read"]).await;
    let freshness = crate::support::in_process::health(&now, "files")
        .freshness
        .unwrap();
    assert!(
        freshness
            .fresh_until
            .duration_since(freshness.received_at)
            .as_secs()
            > 200
    );
}
