//! How long a failing scenario is left alone.

use std::time::Duration;

use callsheet::model::{Health, ScenarioState};

use crate::support::in_process::{health, listed};
use crate::support::scripted::{Reply, Scripted};
use crate::support::watched::{HOUR, ms, one, setting};

/// From the last failure to the next ask.
fn wait(health: &Health) -> Duration {
    let failed = health.last_error.as_ref().unwrap().at;
    Duration::try_from(health.next_attempt.unwrap().duration_since(failed)).unwrap()
}

#[tokio::test]
async fn retry_after_is_honoured_on_503_and_429() {
    for status in ["503 Service Unavailable", "429 Too Many Requests"] {
        for (header, expected) in [("7", 7), ("99999", 600)] {
            let server =
                Scripted::saying(Reply::status(status).header(&format!("Retry-After: {header}")));
            let sheet = one("files", &server).start().await;
            let failed = sheet
                .until_health("files", "failed", |health| health.last_error.is_some())
                .await;
            let shown = health(&failed, "files");
            assert_eq!(
                wait(&shown),
                Duration::from_secs(expected),
                "{status}, Retry-After: {header}"
            );
            assert_eq!(
                shown.failures_in_a_row,
                u32::from(status.starts_with("503"))
            );
        }
    }
}

#[tokio::test]
async fn retry_after_does_not_shorten_the_back_off() {
    let server =
        Scripted::saying(Reply::status("503 Service Unavailable").header("Retry-After: 1"));
    let setting = one("files", &server).with(|config| {
        (config.refresh.backoff_base, config.refresh.backoff_max) =
            (Duration::from_secs(30), Duration::from_secs(60));
    });
    let sheet = setting.start().await;
    let failed = sheet
        .until_health("files", "failed", |health| health.last_error.is_some())
        .await;
    assert_eq!(wait(&health(&failed, "files")), Duration::from_secs(30));
}

#[tokio::test]
async fn a_busy_scenario_is_not_dead() {
    let server =
        Scripted::saying(Reply::tools("files", &["read"]).header("Cache-Control: no-cache"));
    let sheet = one("files", &server)
        .with(|config| config.health.grace = ms(1))
        .start()
        .await;
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status("429 Too Many Requests"));
    let polls = server.count();
    server.until_asked(polls + 8).await;
    let busy = sheet
        .until_health("files", "busy", |health| health.last_error.is_some())
        .await;
    let shown = health(&busy, "files");
    assert_eq!(shown.failures_in_a_row, 0);
    assert_eq!(shown.state, ScenarioState::Stale);
    assert!(shown.reason.contains("429"), "{}", shown.reason);
    assert_eq!(listed(&busy), ["read"]);
}

#[tokio::test]
async fn being_busy_in_between_does_not_wipe_failures_out() {
    let mut polls = 0;
    let server = Scripted::start(move |_| {
        polls += 1;
        let status = if polls % 2 == 0 {
            "429 Too Many Requests"
        } else {
            "500 Internal Server Error"
        };
        Reply::status(status)
    });
    let sheet = one("files", &server)
        .with(|config| config.health.grace = ms(1))
        .start()
        .await;
    let down = sheet.until_state("files", ScenarioState::Down).await;
    assert_eq!(health(&down, "files").failures_in_a_row, 3);
    assert!(server.count() >= 5, "{}", server.count());
}

#[tokio::test]
async fn the_back_off_grows_and_stays_within_its_bounds() {
    let base = ms(10);
    let most = ms(200);
    let server = Scripted::saying(Reply::status("500 Internal Server Error"));
    let setting = one("files", &server).with(|config| {
        (config.refresh.backoff_base, config.refresh.backoff_max) = (base, most);
        config.health.grace = HOUR;
    });
    let sheet = setting.start().await;
    let mut first = None;
    let grown = sheet.until_health("files", "has grown", |health| {
        if health.last_error.is_none() {
            return false;
        }
        let wait = wait(health);
        assert!(
            (base..=most).contains(&wait),
            "{wait:?} after {} failures",
            health.failures_in_a_row
        );
        if health.failures_in_a_row == 1 {
            first = Some(wait);
        }
        wait >= base * 6
    });
    grown.await;
    assert!(
        first.is_none_or(|first| first == base),
        "the first wait is the base: {first:?}"
    );

    // A good answer ends it: the next failure waits as if it were the first.
    server.say(Reply::tools("files", &["read"]).header("Cache-Control: no-cache"));
    sheet.until_listed(&["read"]).await;
    server.say(Reply::status("500 Internal Server Error").header("X-Anew: yes"));
    let again = sheet
        .until_health("files", "fails anew", |health| {
            health.failures_in_a_row == 1
        })
        .await;
    assert_eq!(wait(&health(&again, "files")), base);
}

#[tokio::test]
async fn the_real_waits_are_those_that_health_tells() {
    let failing = Scripted::saying(Reply::status("500 Internal Server Error"));
    let setting = setting([("files", failing.url())]).with(|config| {
        (config.refresh.backoff_base, config.refresh.backoff_max) = (ms(50), ms(50));
    });
    let _sheet = setting.start().await;
    failing.until_asked(5).await;
    let seen = failing.seen();
    for pair in seen.windows(2) {
        assert!(
            pair[1].at - pair[0].at >= ms(50),
            "{:?}",
            pair[1].at - pair[0].at
        );
    }
}
