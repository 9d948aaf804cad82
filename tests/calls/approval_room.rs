//! Which calls give way where as many wait for approval as may.

use std::ops::Range;

use callsheet::model::{Profile, Secret};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::callee::{Callee, manifest, tool_with};
use crate::support::daemon::{Daemon, Home, configured};
use crate::support::serving::{self, Answer};

/// How many calls wait at most: the default of `calls.approvals_max`.
const MOST_WAITING: usize = 1_000;
/// The operator's token.
const TOKEN: &str = "an-operator-token-of-this-test";
/// How many requests of a flood are sent at once.
const AT_ONCE: usize = 50;

/// A disk that is wiped only after approval.
async fn disks() -> Callee {
    let parameters = json!({"type": "object", "properties": {"disk": {"type": "string"}}});
    let wipe = json!({"enabled_by_default": true, "requires_approval": true});
    Callee::echo(manifest("disks", &[tool_with("wipe", &parameters, &wipe)])).await
}

/// A daemon in front of it with two profiles.
async fn office(home: &Home, callee: &Callee) -> Daemon {
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    for name in ["victim", "other"] {
        config.profiles.insert(name.into(), Profile::default());
    }
    assert_eq!(config.calls.approvals_max, MOST_WAITING);
    Daemon::ready(config).await
}

async fn ask(daemon: &Daemon, profile: &str, chat: &str, disk: usize) -> Answer {
    let body = json!({"tool_name": "wipe", "arguments": {"disk": disk.to_string()}, "profile": profile, "chat_id": chat});
    daemon
        .send_json("POST", "/api/v1/tools/execute", &body)
        .await
}

/// The ids of so many calls of one conversation that wait, in their order.
async fn conversation(daemon: &Daemon, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    for disk in 0..count {
        let answer = ask(daemon, "victim", "7", disk).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        ids.push(answer.json()["approval_id"].as_str().unwrap().to_owned());
    }
    ids
}

/// Sends calls with a conversation of their own each. How many wait; the others are refused.
async fn flood(daemon: &Daemon, profile: &str, numbers: Range<usize>) -> usize {
    let mut waiting = 0;
    for first in numbers.clone().step_by(AT_ONCE) {
        let last = numbers.end.min(first + AT_ONCE);
        let calls = (first..last)
            .map(async |number| ask(daemon, profile, &format!("invented-{number}"), 0).await);
        for answer in join_all(calls).await {
            assert!(matches!(answer.status, 202 | 429), "{answer:?}");
            waiting += usize::from(answer.status == 202);
        }
    }
    waiting
}

async fn shown(daemon: &Daemon, id: &str) -> Value {
    daemon.json(&format!("/api/v1/approvals/{id}")).await
}

async fn assert_waiting(daemon: &Daemon, ids: &[String]) {
    for id in ids {
        assert_eq!(shown(daemon, id).await["state"], "waiting", "{id}");
    }
}

#[tokio::test]
async fn a_flood_without_the_token_leaves_room_for_operators() {
    let home = Home::new();
    let callee = disks().await;
    let mut config = home.config(&[]);
    config.scenarios = vec![configured("disks", ([127, 0, 0, 1], callee.port()).into())];
    config.server.operator_token = Some(Secret::new(TOKEN));
    let daemon = Daemon::ready(config).await;
    let call = async |chat: String, headers: &[(&str, &str)]| {
        let headers = [&[("content-type", "application/json")], headers].concat();
        let body = json!({"tool_name": "wipe", "arguments": {}, "chat_id": chat}).to_string();
        serving::ask(
            daemon.address,
            "POST",
            "/api/v1/tools/execute",
            &headers,
            &body,
        )
        .await
    };
    for first in (0..MOST_WAITING).step_by(AT_ONCE) {
        let calls = (first..first + AT_ONCE).map(|number| call(format!("invented-{number}"), &[]));
        for answer in join_all(calls).await {
            assert_eq!(answer.status, 202, "{answer:?}");
        }
    }
    assert_eq!(call("one-more".to_owned(), &[]).await.status, 429);
    let token = format!("Bearer {TOKEN}");
    let own = call("7".to_owned(), &[("authorization", &token)]).await;
    assert_eq!(own.status, 202, "{own:?}");
    let id = own.json()["approval_id"].as_str().unwrap().to_owned();
    assert_eq!(
        call("one-more".to_owned(), &[]).await.status,
        429,
        "it takes no call of the operator"
    );
    assert_eq!(shown(&daemon, &id).await["state"], "waiting");
    daemon.stop().await;
}

#[tokio::test]
async fn invented_conversations_take_no_call_of_another_profile() {
    let home = Home::new();
    let callee = disks().await;
    let daemon = office(&home, &callee).await;
    let mut own = conversation(&daemon, 5).await;
    assert_eq!(
        flood(&daemon, "other", 0..998).await,
        MOST_WAITING - own.len()
    );
    assert_eq!(
        flood(&daemon, "other", 1_000..1_020).await,
        0,
        "their own profile is the largest"
    );
    assert_waiting(&daemon, &own).await;

    let next = ask(&daemon, "victim", "7", 5).await;
    assert_eq!(next.status, 202, "{next:?}");
    own.push(next.json()["approval_id"].as_str().unwrap().to_owned());
    let elsewhere = ask(&daemon, "victim", "8", 0).await;
    assert_eq!(elsewhere.status, 202, "{elsewhere:?}");
    assert_waiting(&daemon, &own).await;
    let gone = daemon.json("/api/v1/approvals?state=expired").await["approvals"].take();
    let gone = gone.as_array().unwrap();
    assert_eq!(gone.len(), 2, "{gone:?}");
    for call in gone {
        assert_eq!(call["profile"], "other", "{call}");
        let reason = call["reason"].as_str().unwrap();
        assert!(
            reason.contains("no profile takes more") && reason.contains("`disks/wipe`"),
            "{reason}"
        );
    }
    daemon.stop().await;
}

#[tokio::test]
async fn invented_conversations_leave_an_older_one_of_their_profile_its_share() {
    let home = Home::new();
    let callee = disks().await;
    let daemon = office(&home, &callee).await;
    let own = conversation(&daemon, 10).await;
    assert_eq!(flood(&daemon, "victim", 0..990).await, 990);
    assert_eq!(
        flood(&daemon, "victim", 1_000..1_050).await,
        2,
        "what it has beyond its share gives way"
    );
    assert_waiting(&daemon, &own[2..]).await;
    for id in &own[..2] {
        let gone = shown(&daemon, id).await;
        assert_eq!(gone["state"], "expired", "{gone}");
        assert!(
            gone["reason"]
                .as_str()
                .unwrap()
                .contains("no conversation of the same profile"),
            "{gone}"
        );
    }
    let next = ask(&daemon, "victim", "7", 10).await;
    assert_eq!(next.status, 202, "{next:?}");
    let gone = shown(&daemon, &own[2]).await;
    assert!(
        gone["reason"]
            .as_str()
            .unwrap()
            .contains("which requested another one"),
        "{gone}"
    );
    assert_waiting(&daemon, &own[3..]).await;
    daemon.stop().await;
}
