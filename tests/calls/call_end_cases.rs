//! The ways in which a call can end, and how each is brought about.

use callsheet::runtime::Clock;
use serde_json::{Value, json};

use crate::call_end_faces::{Face, Wanted, line, post};
use crate::call_end_stage::Stage;
use crate::support::callee::PATIENCE;
use crate::support::serving::{Answer, ask};

/// One way, or several that follow on one call.
pub(crate) struct Case {
    way: &'static str,
    tool: &'static str,
    arguments: fn() -> Value,
    profile: Option<&'static str>,
    version: Option<&'static str>,
    then: Then,
}

/// What happens around the call.
#[derive(Clone, Copy)]
enum Then {
    /// It ends at once.
    Ends,
    /// Only the second of two calls is a row.
    Again,
    /// It waits for approval, which is given.
    Approved,
    /// It waits for approval, which is denied.
    Rejected,
    /// It waits for input, which is declined.
    WaitsForInput,
    /// It goes on, and its end is read later.
    GoesOn,
}

const fn case(way: &'static str, tool: &'static str, arguments: fn() -> Value, then: Then) -> Case {
    Case {
        way,
        tool,
        arguments,
        profile: None,
        version: None,
        then,
    }
}

const fn of_profile(way: &'static str, tool: &'static str, profile: &'static str) -> Case {
    Case {
        way,
        tool,
        arguments: none,
        profile: Some(profile),
        version: None,
        then: Then::Ends,
    }
}

/// A call that names the version of its definition. Turns name it by themselves.
const fn of_version(way: &'static str, tool: &'static str, version: &'static str) -> Case {
    Case {
        way,
        tool,
        arguments: none,
        profile: None,
        version: Some(version),
        then: Then::Ends,
    }
}

fn none() -> Value {
    json!({})
}

fn disk() -> Value {
    json!({"disk": "sda"})
}

fn text() -> Value {
    json!({"text": "good"})
}

fn unfit() -> Value {
    json!({"text": "good", "_output": {"stars": "five"}})
}

fn rated() -> Value {
    json!({"text": "good", "_output": {"stars": 5}})
}

fn not_a_number() -> Value {
    json!({"n": "many", "m": true})
}

pub(crate) const ALL: &[Case] = &[
    case("done", "give", disk, Then::Ends),
    case("failed by the tool", "fail", none, Then::Ends),
    case("unknown tool", "nope", none, Then::Ends),
    case("ambiguous", "twin", none, Then::Ends),
    case("disabled", "off", none, Then::Ends),
    case("not trusted", "shady/peek", none, Then::Ends),
    of_profile("out of bounds", "left/twin", "guest"),
    of_profile("unknown profile", "give", "ghost"),
    of_version(
        "stale definition",
        "give",
        "00000000000000000000000000000000",
    ),
    of_version("no version", "give", "1"),
    case("invalid arguments", "strict", not_a_number, Then::Ends),
    case("approved", "wipe", disk, Then::Approved),
    case("approved and failed", "shred", disk, Then::Approved),
    case("rejected", "wipe", disk, Then::Rejected),
    case("rate limited", "often", none, Then::Again),
    case("busy", "narrow/squeeze", none, Then::Ends),
    case("circuit open", "frail", none, Then::Ends),
    case("unavailable", "absent/work", none, Then::Ends),
    case("unreachable", "gone-{face}/vanish", none, Then::Ends),
    case("timeout", "slow", none, Then::Ends),
    case("bad answer", "garbled", none, Then::Ends),
    case("answered with 500", "crash", none, Then::Ends),
    case("too large", "large", none, Then::Ends),
    case("not callable", "inert", none, Then::Ends),
    case("input required", "input", none, Then::WaitsForInput),
    case("operation", "start", none, Then::GoesOn),
    case("operation that fails", "start_badly", none, Then::GoesOn),
    case(
        "operation that is not followed",
        "start_alone",
        none,
        Then::Ends,
    ),
    case("latent", "rate", rated, Then::Ends),
    case("latent without output", "rate", text, Then::Ends),
    case("latent with unfit output", "rate", unfit, Then::Ends),
    case("no activity", "adrift", text, Then::Ends),
];

impl Case {
    /// The answers that a face gives, each with the name of its row.
    pub(crate) async fn run(&self, stage: &Stage, face: Face) -> Vec<(&'static str, String)> {
        if self.version.is_some() && face == Face::Turns {
            return Vec::new();
        }
        let mut arguments = (self.arguments)();
        if matches!(self.then, Then::Approved | Then::Rejected) {
            // Equal calls wait for one approval.
            arguments["disk"] = format!("{} {}", face.name(), self.way).into();
        }
        // Each face has a scenario of its own that is gone: the first call finds that out.
        let tool = self.tool.replace("{face}", face.name());
        let wait = if matches!(self.then, Then::GoesOn) {
            20
        } else {
            0
        };
        let wanted = Wanted {
            tool,
            arguments,
            profile: self.profile,
            version: self.version,
            wait,
        };
        let address = stage.address;
        let first = face.call(address, &wanted).await;
        match self.then {
            Then::Ends => vec![(self.way, line(&first))],
            Then::Again => vec![(self.way, line(&face.call(address, &wanted).await))],
            Then::Approved => self.decided(stage, face, &wanted, &first, "approve").await,
            Then::Rejected => self.decided(stage, face, &wanted, &first, "reject").await,
            Then::WaitsForInput => {
                decline(stage, &first).await;
                vec![(self.way, line(&first))]
            }
            Then::GoesOn => {
                let end = goes_on(stage, face, &first).await;
                let all = std::iter::once(&first).chain(&end);
                all.map(|answer| (self.way, line(answer))).collect()
            }
        }
    }

    async fn decided(
        &self,
        stage: &Stage,
        face: Face,
        wanted: &Wanted,
        waits: &Answer,
        decision: &str,
    ) -> Vec<(&'static str, String)> {
        let address = stage.address;
        let id = stage.waiting().await;
        let body = match decision {
            "reject" => json!({"by": "kim", "reason": "not today"}),
            _ => json!({"by": "kim"}),
        };
        let decided = post(
            address,
            &format!("/api/v1/approvals/{id}/{decision}"),
            &body,
        )
        .await;
        assert_eq!(decided.status, 200, "{decided:?}");
        let end = match face {
            Face::Http => get(stage, &format!("/api/v1/approvals/{id}")).await,
            Face::Mcp | Face::JsonRpc => face.call(address, wanted).await,
            Face::Turns => turn_end(stage, waits).await,
        };
        vec![("waits for approval", line(waits)), (self.way, line(&end))]
    }
}

/// Declines the input that a call waits for, where the face says its id.
async fn decline(stage: &Stage, waits: &Answer) {
    let answer = waits.json();
    let places = [
        "/interaction/id",
        "/error/data/interaction/id",
        "/calls/0/interaction/id",
    ];
    let Some(id) = places
        .into_iter()
        .find_map(|place| answer.pointer(place)?.as_str())
    else {
        return;
    };
    let declined = post(
        stage.address,
        &format!("/api/v1/interactions/{id}"),
        &json!({"action": "decline"}),
    )
    .await;
    assert_eq!(declined.status, 200, "{declined:?}");
}

/// The end of what goes on after the first answer, where the face did not wait for it.
async fn goes_on(stage: &Stage, face: Face, first: &Answer) -> Option<Answer> {
    if face != Face::Http {
        return None;
    }
    let id = first.json()["operation_id"]
        .as_str()
        .unwrap_or_else(|| panic!("{first:?}"))
        .to_owned();
    let deadline = Clock::system().now() + PATIENCE;
    loop {
        let operation = get(stage, &format!("/api/v1/operations/{id}")).await;
        if operation.json()["state"] != "running" {
            return Some(operation);
        }
        assert!(Clock::system().now() < deadline, "{operation:?}");
        tokio::task::yield_now().await;
    }
}

async fn turn_end(stage: &Stage, first: &Answer) -> Answer {
    let id = first.json()["turn_id"].as_str().unwrap().to_owned();
    get(stage, &format!("/api/v1/turns/{id}?wait=20")).await
}

async fn get(stage: &Stage, target: &str) -> Answer {
    ask(stage.address, "GET", target, &[], "").await
}
