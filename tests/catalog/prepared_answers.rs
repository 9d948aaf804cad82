//! Prepared answers: made once, kept, and never those of another content.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use callsheet::catalog::{
    self, Catalog, Change, Inputs, Offer, Snapshot, View, ViewQuery, Visibility,
};
use callsheet::formats::native::NativeFormat;
use callsheet::formats::openai::OpenAiFormat;
use callsheet::formats::{Encoded, Format, FormatLimits, ListFrame, ListHead};
use callsheet::model::{
    Digest, FindingCode, PreferenceSet, PreferenceTarget, ScenarioName, Scope, Settings, ViewTool,
};
use callsheet::runtime::{AnswerBudget, ByteBudget, Tasks};
use callsheet::views::{Coding, Prepared, ViewCache, ViewRequest, render};
use futures_util::FutureExt;
use futures_util::future::join;
use serde_json::Value;

use crate::support::assert_empty;
use crate::support::counting::Counting;
use crate::support::view_tools::{manifest, offered, then, tool};

const MANY: u64 = 64 << 20;

/// Native, but no tool is encoded while somebody holds the lock.
#[derive(Debug, Default)]
struct Held(Mutex<()>);

impl Format for Held {
    fn id(&self) -> &'static str {
        "held"
    }
    fn limits(&self) -> &FormatLimits {
        NativeFormat.limits()
    }
    fn for_llm(&self) -> bool {
        false
    }
    fn encode(&self, tool: &ViewTool) -> Encoded {
        let _free = self.0.lock().unwrap();
        NativeFormat.encode(tool)
    }
    fn frame(&self, head: &ListHead<'_>) -> ListFrame {
        NativeFormat.frame(head)
    }
}

/// The offer of a scenario with so many tools; `version` stands in each description.
fn offer(scenario: &str, tools: usize, version: u64) -> Offer {
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"}}}"#;
    let tools = (0..tools).map(|n| {
        let name = format!("{scenario}_{n:03}");
        offered(tool(scenario, &name, schema), |tool| {
            tool.description = format!("Version {version}").into();
        })
        .tool
    });
    let mut manifest = manifest(scenario, tools.collect(), Vec::new());
    manifest.digest = Digest(u128::from(version) + 1);
    Offer {
        manifest: Arc::new(manifest),
        visibility: Visibility::Published,
    }
}

fn catalog(offers: &[(&str, usize)]) -> Catalog {
    let offers = offers
        .iter()
        .map(|(name, tools)| (name.parse().unwrap(), offer(name, *tools, 0)));
    catalog::build(&Inputs {
        offers: offers.collect(),
        ..Inputs::default()
    })
}

fn snapshot(catalog: Catalog, sequence: u64) -> Arc<Snapshot> {
    let findings = Arc::default();
    let turns = catalog::StateTransitions::default();
    let health = imbl::OrdMap::new();
    Arc::new(Snapshot {
        catalog,
        former_names: callsheet::catalog::FormerNames::default(),
        generated_at: then(),
        health,
        findings,
        sequence,
        transitions: turns,
        program_ends: callsheet::catalog::ProgramEnds::default(),
        isolated: None,
        configuration: None,
    })
}

fn whole(prepared: &Prepared) -> Bytes {
    prepared.body.clone()
}

fn names(body: &[u8]) -> Vec<String> {
    let list: Value = serde_json::from_slice(body).unwrap();
    let tools = list
        .as_array()
        .or_else(|| list["tools"].as_array())
        .unwrap();
    let name = |tool: &Value| {
        tool.get("name")
            .or_else(|| tool["function"].get("name"))
            .unwrap()
            .as_str()
            .unwrap()
            .to_owned()
    };
    tools.iter().map(name).collect()
}

#[tokio::test]
async fn the_prepared_body_is_the_rendered_view_in_every_coding() {
    let snapshot = snapshot(catalog(&[("a", 3), ("b", 5)]), 1);
    let plain = render(
        &View::select(&snapshot.catalog, &ViewQuery::default()),
        then(),
        &NativeFormat,
    )
    .body;
    // Two caches stand for two processes.
    for views in [
        ViewCache::new(MANY, Tasks::new()),
        ViewCache::new(0, Tasks::new()),
    ] {
        for coding in Coding::ALL {
            let prepared = views
                .prepare(&snapshot, &ViewQuery::default(), &NativeFormat, coding)
                .await;
            assert_eq!(whole(&prepared), coding.encode(&plain).unwrap(), "{coding}");
            assert_eq!(
                prepared.etag,
                callsheet::views::etag::strong(&plain, coding),
                "{coding}"
            );
            assert_eq!(prepared.coding, coding);
            assert_eq!(prepared.tools, 8);
            assert_eq!(prepared.left_out, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_askers_share_one_rendering() {
    let counting = Counting::leaked();
    let tasks = Tasks::new();
    let views = ViewCache::new(MANY, tasks.clone());
    let snapshot = snapshot(catalog(&[("a", 20), ("b", 30)]), 1);
    let ask = |coding| {
        let views = views.clone();
        let snapshot = Arc::clone(&snapshot);
        tasks.spawn(async move {
            views
                .prepare(&snapshot, &ViewQuery::default(), counting, coding)
                .await
        })
    };
    let askers: Vec<_> = (0..80).map(|n| ask(Coding::ALL[n % 4])).collect();
    for asker in askers {
        assert_eq!(asker.await.unwrap().tools, 50);
    }
    assert_eq!(counting.take(), 50);
}

#[tokio::test]
async fn requests_for_a_body_larger_than_the_bound_share_one_rendering() {
    let held: &'static Held = Box::leak(Box::default());
    let views = ViewCache::new(1_000, Tasks::new());
    let snapshot = snapshot(catalog(&[("a", 20), ("b", 30)]), 1);
    let query = ViewQuery::default();
    let request = || views.prepare(&snapshot, &query, held, Coding::Identity);
    // Held, so that both requests are there before the body is.
    let until_both_wait = held.0.lock().unwrap();
    let mut both = Box::pin(join(request(), request()));
    assert!(
        (&mut both).now_or_never().is_none(),
        "the rendering waits for the lock"
    );
    drop(until_both_wait);
    let (first, second) = both.await;
    assert!(
        Arc::ptr_eq(&first, &second),
        "both requests get the same body"
    );
    assert_eq!(first.tools, 50);
}

#[tokio::test]
async fn a_body_larger_than_the_bound_is_not_kept() {
    let counting = Counting::leaked();
    let views = ViewCache::new(1_000, Tasks::new());
    let snapshot = snapshot(catalog(&[("a", 20), ("b", 30)]), 1);
    let query = ViewQuery::default();
    let mut made = Vec::new();
    for _ in 0..20 {
        made.push(Arc::downgrade(
            &views
                .prepare(&snapshot, &query, counting, Coding::Identity)
                .await,
        ));
        assert_eq!(counting.take(), 50, "it is made for each request");
        assert_eq!(
            views.kept().await,
            (0, 0),
            "entries and bytes that are kept"
        );
    }
    // The cache frees what it has dropped a moment later.
    let left = made.iter().filter(|body| body.strong_count() > 0).count();
    assert!(left <= 4, "{left} of {} are in memory", made.len());
}

#[tokio::test]
async fn the_bodies_used_last_are_kept_within_the_bound() {
    let snapshot = snapshot(catalog(&[("a", 20), ("b", 20), ("c", 20)]), 1);
    let of = |scenario: &str| ViewQuery {
        scenarios: [scenario.parse().unwrap()].into(),
        ..ViewQuery::default()
    };
    let body = render(
        &View::select(&snapshot.catalog, &of("a")),
        then(),
        &NativeFormat,
    )
    .body;
    // Two of them fit, three do not.
    let views = ViewCache::new(body.len() as u64 * 5 / 2, Tasks::new());
    for (scenario, kept) in [("a", 1), ("b", 2), ("a", 2), ("c", 2)] {
        views
            .prepare(&snapshot, &of(scenario), &NativeFormat, Coding::Identity)
            .await;
        assert_eq!(views.kept().await.0, kept, "after {scenario}");
    }
}

#[tokio::test]
async fn bodies_of_older_contents_do_not_pile_up() {
    const CHANGES: u64 = 60;
    let views = ViewCache::new(MANY, Tasks::new());
    let before = catalog(&[("a", 20), ("b", 20)]);
    let mut made = Vec::new();
    for version in 1..=CHANGES {
        let change = Change::Offer("a".parse().unwrap(), Some(offer("a", 20, version)));
        let after = snapshot(before.with(change), version);
        for coding in [Coding::Identity, Coding::Gzip] {
            made.push(Arc::downgrade(
                &views
                    .prepare(&after, &ViewQuery::default(), &NativeFormat, coding)
                    .await,
            ));
        }
        assert_eq!(views.kept().await.0, 2, "version {version}");
    }
    let left = made.iter().filter(|body| body.strong_count() > 0).count();
    // The cache frees what it has dropped a moment later.
    assert!(left <= 8, "{left} of {} are in memory", made.len());
}

#[tokio::test]
async fn an_asker_that_goes_away_takes_nobody_with_it() {
    let held: &'static Held = Box::leak(Box::default());
    let views = ViewCache::new(MANY, Tasks::new());
    let snapshot = snapshot(catalog(&[("a", 20)]), 1);
    let query = ViewQuery::default();
    let first = views.prepare(&snapshot, &query, held, Coding::Gzip);
    let second = views.prepare(&snapshot, &query, held, Coding::Gzip);
    let waiting = held.0.lock().unwrap();
    assert!(
        first.now_or_never().is_none(),
        "nobody can have made it yet"
    );
    drop(waiting);
    assert_eq!(second.await.tools, 20);
}

#[tokio::test]
async fn a_change_renders_the_changed_scenario_alone() {
    let counting = Counting::leaked();
    let views = ViewCache::new(MANY, Tasks::new());
    let before = catalog(&[("a", 20), ("b", 30), ("c", 40)]);
    let first = views
        .prepare(
            &snapshot(before.clone(), 1),
            &ViewQuery::default(),
            counting,
            Coding::Identity,
        )
        .await;
    assert_eq!(counting.take(), 90);
    let after = before.with(Change::Offer("b".parse().unwrap(), Some(offer("b", 31, 1))));
    let second = views
        .prepare(
            &snapshot(after, 2),
            &ViewQuery::default(),
            counting,
            Coding::Identity,
        )
        .await;
    assert_eq!(counting.take(), 31);
    assert_eq!(second.tools, 91);
    assert_ne!(first.etag, second.etag);
    // A view of some scenarios is made of the same parts.
    let only_c = ViewQuery {
        scenarios: ["c".parse::<ScenarioName>().unwrap()].into(),
        ..ViewQuery::default()
    };
    let third = views
        .prepare(
            &snapshot(before.clone(), 3),
            &only_c,
            counting,
            Coding::Identity,
        )
        .await;
    assert_eq!(third.tools, 40);
    assert_eq!(counting.take(), 0);
    // And it does not make the whole list forget the others.
    let fourth = views
        .prepare(
            &snapshot(before, 4),
            &ViewQuery::default(),
            counting,
            Coding::Identity,
        )
        .await;
    assert_eq!(fourth.tools, 90);
    assert_eq!(counting.take(), 30);
    assert_eq!(whole(&fourth), whole(&first));
}

#[tokio::test]
async fn lists_for_llms_are_capped_and_tell_what_they_left_out() {
    let views = ViewCache::new(MANY, Tasks::new());
    let snapshot = snapshot(catalog(&[("a", 100), ("b", 60)]), 1);
    let ask = |max_tools| {
        let views = views.clone();
        let snapshot = Arc::clone(&snapshot);
        async move {
            let query = ViewQuery {
                max_tools,
                ..ViewQuery::default()
            };
            views
                .prepare(&snapshot, &query, &OpenAiFormat, Coding::Identity)
                .await
        }
    };
    let capped = ask(None).await;
    assert_eq!(capped.tools, 128);
    assert_eq!(capped.left_out, 32);
    assert_eq!(names(&whole(&capped)).len(), 128);
    assert_eq!(capped.findings.len(), 32);
    assert!(
        capped
            .findings
            .iter()
            .all(|finding| finding.code == FindingCode::OverLimit)
    );
    let lifted = ask(Some(0)).await;
    assert_eq!(lifted.tools, 160);
    assert_eq!(lifted.left_out, 0);
    assert_empty!(lifted.findings);
    assert_eq!(ask(Some(3)).await.tools, 3);
}

#[tokio::test]
async fn disabled_and_internal_tools_are_never_in_a_list_for_llms() {
    let views = ViewCache::new(MANY, Tasks::new());
    let mut offers = Inputs::default();
    let schema = "{\"type\":\"object\",\"properties\":{}}";
    let make = |name, enabled, internal| {
        let change = |tool: &mut callsheet::model::Tool| {
            tool.facts_mut().enabled_by_default = enabled;
            tool.facts_mut().internal_only = internal;
        };
        offered(tool("a", name, schema), change).tool
    };
    let tools = vec![
        make("hidden", true, true),
        make("off", false, false),
        make("on", true, false),
    ];
    let offer = Offer {
        manifest: Arc::new(manifest("a", tools, Vec::new())),
        visibility: Visibility::Published,
    };
    offers.offers.insert("a".parse().unwrap(), offer);
    let snapshot = snapshot(catalog::build(&offers), 1);
    let query = ViewQuery {
        include_disabled: true,
        include_internal: true,
        ..ViewQuery::default()
    };
    let openai = views
        .prepare(&snapshot, &query, &OpenAiFormat, Coding::Identity)
        .await;
    assert_eq!(names(&whole(&openai)), ["on"]);
    let native = views
        .prepare(&snapshot, &query, &NativeFormat, Coding::Identity)
        .await;
    assert_eq!(names(&whole(&native)), ["hidden", "off", "on"]);
}

#[tokio::test]
async fn a_preference_of_one_chat_shows_in_that_chat_at_once() {
    let views = ViewCache::new(MANY, Tasks::new());
    let before = catalog(&[("a", 2)]);
    let chat = ViewQuery {
        chat: Some("7".into()),
        ..ViewQuery::default()
    };
    let first = views
        .prepare(
            &snapshot(before.clone(), 1),
            &chat,
            &NativeFormat,
            Coding::Identity,
        )
        .await;
    assert_eq!(names(&whole(&first)), ["a_000", "a_001"]);
    let mut preferences = PreferenceSet::default();
    let off = Settings {
        enabled: Some(false),
        ..Settings::default()
    };
    preferences.set(
        Scope::Chat("7".into()),
        PreferenceTarget::Tool("a/a_000".parse().unwrap()),
        off,
    );
    let after = snapshot(before.with(Change::Preferences(Arc::new(preferences))), 2);
    let second = views
        .prepare(&after, &chat, &NativeFormat, Coding::Identity)
        .await;
    assert_eq!(names(&whole(&second)), ["a_001"]);
    let other = views
        .prepare(
            &after,
            &ViewQuery::default(),
            &NativeFormat,
            Coding::Identity,
        )
        .await;
    assert_eq!(other.etag, first.etag);
}

/// A runtime with one thread for work that blocks: what is given to it is done in that order.
fn with_one_blocking_thread(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(test);
}

/// Looks at requests while the thread is held, and then waits until it has done what they gave it.
/// Gives those that were ready.
async fn looked_at<R: Future + Unpin>(tasks: &Tasks, requests: &mut [R]) -> Vec<Option<R::Output>> {
    let (release, held) = std::sync::mpsc::sync_channel::<()>(1);
    let blocked = tasks.spawn_blocking(move || held.recv().is_err());
    let ready = requests.iter_mut().map(FutureExt::now_or_never).collect();
    drop(release);
    assert!(blocked.await.unwrap());
    tasks.blocking(|| ()).await;
    ready
}

/// Lists of 50 tools, and the room that their clients have.
struct ListStage {
    whole: ByteBudget,
    tasks: Tasks,
    budget: AnswerBudget,
    views: ViewCache,
    snapshot: Arc<Snapshot>,
}

impl ListStage {
    fn new() -> Self {
        let whole = ByteBudget::new(1 << 20);
        let tasks = Tasks::new();
        let budget = AnswerBudget::new(whole.clone(), whole.share(1 << 20));
        let views = ViewCache::new(MANY, tasks.clone());
        let snapshot = snapshot(catalog(&[("a", 20), ("b", 30)]), 1);
        Self {
            whole,
            tasks,
            budget,
            views,
            snapshot,
        }
    }
}

fn with_max_tools(most: usize) -> ViewQuery {
    ViewQuery {
        max_tools: Some(most),
        ..ViewQuery::default()
    }
}

fn of_query(query: &ViewQuery) -> ViewRequest<'_> {
    ViewRequest {
        query,
        format: &NativeFormat,
        report: false,
    }
}

#[test]
fn a_list_keeps_its_room_from_its_making_until_its_client_has_it() {
    with_one_blocking_thread(async {
        let ListStage {
            whole,
            tasks,
            budget,
            views,
            snapshot,
        } = ListStage::new();
        for coding in [Coding::Identity, Coding::Gzip] {
            let query = with_max_tools(if coding == Coding::Identity { 40 } else { 39 });
            let mut requests = [Box::pin(views.prepare_for(
                &snapshot,
                of_query(&query),
                coding,
                &budget,
            ))];
            assert!(looked_at(&tasks, &mut requests).await[0].is_none());
            if coding == Coding::Gzip {
                assert!(
                    looked_at(&tasks, &mut requests).await[0].is_none(),
                    "it was made, and is coded"
                );
            }
            // The list is there, and its request has not looked.
            let [request] = requests;
            let held = whole.reserved();
            assert!(held > 100, "{held}");
            let others = whole.reserve(whole.limit() - held).unwrap();
            let made = request.await.unwrap();
            let bytes = made.prepared.body.len();
            assert_eq!(made.reserved.bytes(), bytes);
            assert_eq!(whole.reserved(), others.bytes() + bytes, "{coding}");
            drop((made, others));
            assert_eq!(whole.reserved(), 0);
        }
    });
}

#[test]
fn a_coded_list_is_made_and_coded_in_one_turn() {
    with_one_blocking_thread(async {
        let ListStage {
            whole,
            tasks,
            budget,
            views,
            snapshot,
        } = ListStage::new();
        let queries: Vec<_> = (40..44).map(with_max_tools).collect();
        let request =
            |query| Box::pin(views.prepare_for(&snapshot, of_query(query), Coding::Gzip, &budget));
        let mut requests: Vec<_> = queries.iter().map(request).collect();
        for step in ["made", "coded"] {
            let ready = looked_at(&tasks, &mut requests).await;
            assert!(ready.iter().all(Option::is_none), "two are {step}");
            assert!(whole.reserved() > 0);
        }
        let ready = looked_at(&tasks, &mut requests).await;
        let is_ready: Vec<_> = ready.iter().map(Option::is_some).collect();
        assert_eq!(
            is_ready,
            [true, true, false, false],
            "no others were made before these were coded"
        );
        for (made, request) in ready.into_iter().zip(requests) {
            let made = match made {
                Some(made) => made,
                None => request.await,
            };
            assert_eq!(made.unwrap().prepared.coding, Coding::Gzip);
        }
        assert_eq!(whole.reserved(), 0);
    });
}

#[tokio::test]
async fn a_long_list_is_coded_though_it_takes_the_whole_share_of_its_client() {
    let whole = ByteBudget::new(1 << 20);
    let budget = AnswerBudget::new(whole.clone(), whole.share(70_000));
    let views = ViewCache::new(0, Tasks::new());
    let snapshot = snapshot(catalog(&[("a", 400)]), 1);
    let query = with_max_tools(399);
    let plain = views
        .prepare_for(&snapshot, of_query(&query), Coding::Identity, &budget)
        .await
        .unwrap();
    assert!(plain.prepared.body.len() > 70_000);
    assert_eq!(plain.reserved.bytes(), 70_000);
    drop(plain);
    let coded = views
        .prepare_for(&snapshot, of_query(&query), Coding::Gzip, &budget)
        .await
        .unwrap();
    assert_eq!(coded.reserved.bytes(), coded.prepared.body.len());
    assert_eq!(whole.reserved(), coded.reserved.bytes());
}

#[tokio::test]
async fn a_client_without_a_body_needs_no_room_for_a_list_that_is_there() {
    let whole = ByteBudget::new(1 << 20);
    let budget = AnswerBudget::new(whole.clone(), whole.share(1 << 20));
    let views = ViewCache::new(MANY, Tasks::new());
    let snapshot = snapshot(catalog(&[("a", 20)]), 1);
    let query = with_max_tools(19);
    let made = views
        .prepare_without_body(&snapshot, of_query(&query), Coding::Identity, &budget)
        .await
        .unwrap();
    assert_eq!(whole.reserved(), 0);
    let others = whole.reserve(whole.limit()).unwrap();
    let again = views
        .prepare_without_body(&snapshot, of_query(&query), Coding::Identity, &budget)
        .await
        .unwrap();
    assert!(Arc::ptr_eq(&made, &again));
    let refused = views
        .prepare_for(&snapshot, of_query(&query), Coding::Identity, &budget)
        .await;
    assert!(refused.is_err());
    drop(others);
}
