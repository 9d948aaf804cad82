//! Random steps at the real faces, against a model that keeps whole texts: changes of a scenario,
//! restarts of the daemon, acceptances and calls, while definitions that change are held.

use std::collections::BTreeMap;

use callsheet::model::PinMode;
use fastrand::Rng;
use serde_json::{Value, json};

use crate::call_end_faces::post;
use crate::pins::{Stage, offer};

const STEPS: usize = 2_000;
const TOOLS: [&str; 3] = ["get", "list", "put"];
const TEXTS: [&str; 3] = ["One", "Two", "Three"];

/// The text of each tool that is offered, or accepted.
type Texts = BTreeMap<String, String>;

struct World {
    rng: Rng,
    stage: Stage,
    offered: Texts,
    accepted: Texts,
    /// What a caller saw: name, text and version.
    seen: Vec<[String; 3]>,
    /// What an operator saw: the body that accepts it, and what was offered then.
    shown: (Value, Texts),
    ran: usize,
    refused: usize,
}

fn random_texts(rng: &mut Rng) -> Texts {
    let mut texts = Texts::new();
    for name in TOOLS {
        if rng.u8(0..4) > 0 {
            let text = TEXTS[rng.usize(0..TEXTS.len())];
            texts.insert(name.to_owned(), text.to_owned());
        }
    }
    texts
}

impl World {
    async fn start(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let offered = random_texts(&mut rng);
        let stage = Stage::of(PinMode::Hold, &listing(&offered)).await;
        Self {
            rng,
            stage,
            accepted: offered.clone(),
            offered,
            seen: Vec::new(),
            shown: (json!({"tools": []}), Texts::new()),
            ran: 0,
            refused: 0,
        }
    }

    async fn step(mut self) -> Self {
        match self.rng.u8(0..16) {
            0..4 => {
                self.offered = random_texts(&mut self.rng);
                self.stage.lists(&listing(&self.offered)).await;
                self.check().await;
            }
            4..7 => self.shown = (self.stage.shown().await, self.offered.clone()),
            7..9 => {
                self.accept().await;
                self.check().await;
            }
            9..11 => self.seen = self.listed().await,
            11 if self.rng.u8(0..10) == 0 => {
                self.stage = self.stage.restarted(PinMode::Hold).await;
                self.stage.refresh().await;
                self.check().await;
            }
            _ => self.call().await,
        }
        self
    }

    async fn accept(&mut self) {
        let (body, texts) = self.shown.clone();
        let tools = body["tools"].as_array().unwrap().clone();
        if tools.is_empty() {
            return;
        }
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        let is_same = |tool: &Value| self.offered.get(&name(tool)) == texts.get(&name(tool));
        let expected = if tools.iter().all(is_same) { 200 } else { 409 };
        let answer = self.stage.accept(&body).await;
        assert_eq!(answer.status, expected, "{answer:?}");
        for tool in tools.iter().filter(|_| expected == 200) {
            match self.offered.get(&name(tool)) {
                Some(text) => _ = self.accepted.insert(name(tool), text.clone()),
                None => _ = self.accepted.remove(&name(tool)),
            }
        }
    }

    async fn call(&mut self) {
        let Some([name, text, version]) = self.rng.choice(self.seen.clone()) else {
            return;
        };
        let named = json!({"definition_version": version, "arguments": {}});
        let before = self.stage.ran();
        let address = self.stage.address();
        if self.rng.bool() {
            let mut body = named;
            body["tool_name"] = json!(format!("bank/{name}"));
            post(address, "/api/v1/tools/execute", &body).await;
        } else {
            let mut params = named;
            params["name"] = json!(format!("bank/{name}"));
            let body = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
            post(address, "/rpc", &body).await;
        }
        let ran = self.stage.ran() > before;
        let may_run =
            self.offered.get(&name) == Some(&text) && self.accepted.get(&name) == Some(&text);
        assert_eq!(
            ran, may_run,
            "{name} as `{text}`: {:?} {:?}",
            self.offered, self.accepted
        );
        self.ran += usize::from(ran);
        self.refused += usize::from(!ran);
    }

    async fn listed(&self) -> Vec<[String; 3]> {
        let list = self.stage.list().await;
        let tools = list["tools"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        tools
            .map(|tool| {
                ["original_name", "description", "definition_version"].map(|key| text(&tool[key]))
            })
            .collect()
    }

    /// What is listed is what is offered and accepted.
    async fn check(&self) {
        let listed = self.listed().await;
        let listed: Texts = listed
            .into_iter()
            .map(|[name, text, _]| (name, text))
            .collect();
        let mut expected = self.offered.clone();
        expected.retain(|name, text| self.accepted.get(name) == Some(text));
        assert_eq!(listed, expected);
    }
}

fn listing(texts: &Texts) -> Value {
    let tools: Vec<(&str, &str)> = texts
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    offer(&tools)
}

#[tokio::test]
async fn no_step_lists_or_runs_what_was_not_accepted() {
    let mut world = World::start(40).await;
    for _ in 0..STEPS {
        world = Box::pin(world.step()).await;
    }
    assert!(
        world.ran > 100 && world.refused > 100,
        "{} {}",
        world.ran,
        world.refused
    );
    world.stage.stop().await;
}
