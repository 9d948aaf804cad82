//! What the store has of turns that are forgotten while they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use callsheet::calls::CallMode;
use callsheet::calls::turns::{self, TurnRequest};
use callsheet::config::Config;
use callsheet::model::JsonText;
use callsheet::runtime::Clock;
use callsheet::state::{Restored, StateError, StateStore, Write, sqlite};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::sync::watch;

use crate::support::callee::{Callee, PATIENCE, done, manifest, tool};
use crate::support::house::House;

/// A real store that writes the end of a turn when the test lets it.
struct SlowStore {
    store: Arc<dyn StateStore>,
    /// How many writes of turns there were.
    turns: AtomicUsize,
    may_write: watch::Sender<bool>,
    /// What was written, in that order.
    written: watch::Sender<Vec<String>>,
}

impl StateStore for SlowStore {
    fn load(&self) -> BoxFuture<'_, Result<Restored, StateError>> {
        self.store.load()
    }

    fn save(&self, writes: Vec<Write>) -> BoxFuture<'_, Result<(), StateError>> {
        let words = writes.iter().filter_map(|write| match write {
            Write::Turn(turn) => Some(format!("turn {}", turn.id)),
            Write::ForgetTurn(id, _) => Some(format!("forget {id}")),
            _ => None,
        });
        let words: Vec<_> = words.collect();
        // The first one is the beginning of the first turn.
        let is_turn = words.iter().any(|word| word == "turn first-turn");
        let is_end = is_turn && self.turns.fetch_add(1, Ordering::Relaxed) == 1;
        async move {
            if is_end {
                self.written
                    .send_modify(|written| written.push("the end comes".to_owned()));
                self.may_write
                    .subscribe()
                    .wait_for(|may| *may)
                    .await
                    .unwrap();
            }
            self.store.save(writes).await?;
            self.written.send_modify(|written| written.extend(words));
            Ok(())
        }
        .boxed()
    }
}

async fn until_written(store: &SlowStore, word: &str) {
    let mut written = store.written.subscribe();
    let seen = written.wait_for(|written| written.iter().any(|other| other == word));
    tokio::time::timeout(PATIENCE, seen)
        .await
        .unwrap_or_else(|_| panic!("never `{word}`"))
        .unwrap();
}

fn turn(id: &str) -> TurnRequest {
    let format = turns::by_id("openai").unwrap();
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let response = json!({"role": "assistant", "content": null, "tool_calls": [call]}).to_string();
    TurnRequest {
        format,
        read: turns::read_response(format, &response).unwrap(),
        response: JsonText::parse(&response).unwrap(),
        id: Some(id.to_owned()),
        owner: "full".into(),
        permission: None,
        profile: None,
        chat: None,
        user_id: None,
        list: None,
        revision: None,
        parallel: None,
        mode: CallMode::All,
        own_tools: None,
        tells_approvals: false,
        text_bytes: None,
    }
}

#[tokio::test]
async fn a_turn_that_is_forgotten_while_its_end_is_written_does_not_stay_in_the_store() {
    let callee = Callee::start(manifest("files", &[tool("read")]), |_| async {
        done(&json!("fine"))
    })
    .await;
    let house = House::of(&[("files", callee.url())]).await;
    let path = house.folder().join("another.db");
    let store = Arc::new(SlowStore {
        store: sqlite::open(&path, Clock::system()).unwrap(),
        turns: AtomicUsize::new(0),
        may_write: watch::Sender::new(false),
        written: watch::Sender::new(Vec::new()),
    });
    let mut config = Config::for_state(path.clone()).calls;
    config.turns.max = 1;
    let calls = house.calls_with(config, Arc::clone(&store) as Arc<dyn StateStore>);
    calls.begin_turn(turn("first-turn")).await.unwrap();
    until_written(&store, "the end comes").await;
    // There is room for one turn, and the first one is over.
    calls.begin_turn(turn("second-turn")).await.unwrap();
    until_written(&store, "forget first-turn").await;
    store.written.send_replace(Vec::new());
    store.may_write.send_replace(true);
    until_written(&store, "turn first-turn").await;
    until_written(&store, "forget first-turn").await;
    let restored = store.load().await.unwrap();
    assert!(
        restored.turns.iter().all(|turn| *turn.id == *"second-turn"),
        "{:?}",
        restored.turns
    );
    calls.close_audit();
    house.finish().await;
}
