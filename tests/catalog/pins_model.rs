//! Random interleavings of changes, restarts, acceptances and calls, against a model that keeps
//! whole texts: a call never runs under another version than its caller named, one with the same
//! version is never refused, and what is held is neither listed nor run.
//!
//! `CALLSHEET_INTERLEAVINGS` sets how many there are; they are shared among the processors.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::Arc;

use callsheet::catalog::pins::{
    AcceptedPin, Baseline, Observation, PinDifference, PinSubject, PinVerdict, listed,
};
use callsheet::catalog::{Catalog, Change, NameLookup, Offer, Visibility};
use callsheet::model::{DefinitionVersion, Manifest, NameRef, NamedVersion, PinMode};
use fastrand::Rng;
use jiff::Timestamp;

use crate::support::offers::{self, catalog, scenario, tool};

const INTERLEAVINGS: usize = 2_000;
const STEPS: usize = 24;
const TOOLS: [&str; 3] = ["get", "put", "list"];
const TEXTS: [&str; 3] = ["One", "Two", "Three"];

/// What is offered or accepted: the text of each tool.
type Texts = BTreeMap<&'static str, &'static str>;

struct World {
    rng: Rng,
    offered: Texts,
    accepted: Texts,
    /// What callers were shown, and when they call, name.
    seen: Vec<(&'static str, &'static str, DefinitionVersion)>,
    /// What an operator was shown.
    shown: Vec<AcceptedPin>,
    shown_texts: Texts,
    manifest: Arc<Manifest>,
    baseline: Baseline,
    verdict: PinVerdict,
    catalog: Catalog,
    second: i64,
}

fn manifest(texts: &Texts) -> Arc<Manifest> {
    let tools: Vec<_> = texts
        .iter()
        .map(|(name, text)| tool(name).about(text))
        .collect();
    Arc::new(offers::manifest("bank", &tools))
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let offered = random_texts(&mut rng);
        let first = manifest(&offered);
        let mut world = Self {
            rng,
            accepted: offered.clone(),
            offered,
            seen: Vec::new(),
            shown: Vec::new(),
            shown_texts: Texts::new(),
            baseline: Baseline::first(&first, Timestamp::UNIX_EPOCH),
            manifest: first,
            verdict: PinVerdict::default(),
            catalog: catalog(&[], &[]),
            second: 0,
        };
        world.list();
        world
    }

    /// The scenario is listed, and the catalog gets what is not held.
    fn list(&mut self) {
        self.second += 1;
        self.manifest = manifest(&self.offered);
        self.verdict = self.baseline.judge(Observation {
            manifest: &self.manifest,
            mode: PinMode::Hold,
            is_complete: self.rng.bool(),
            is_listing: true,
            now: Timestamp::from_second(self.second).unwrap(),
        });
        let offer = Offer {
            manifest: listed(&self.manifest, PinMode::Hold, &self.verdict),
            visibility: Visibility::Published,
        };
        let change = Change::Offer(scenario("bank"), Some(offer));
        self.catalog = self.catalog.with(change);
    }

    fn step(&mut self) {
        match self.rng.u8(0..8) {
            0 | 1 => {
                self.offered = random_texts(&mut self.rng);
                self.list();
            }
            2 => {
                // A restart: only what was stored is known.
                self.baseline = Baseline::read(&self.baseline.write()).unwrap();
                self.catalog = catalog(&[], &[]);
                self.list();
            }
            3 => {
                let differences = &self.verdict.differences;
                self.shown = differences.iter().map(PinDifference::as_shown).collect();
                self.shown_texts = self.offered.clone();
            }
            4 => self.accept(),
            5 => self.look(),
            _ => self.call(),
        }
        self.check();
    }

    fn accept(&mut self) {
        let keep = self.rng.usize(0..=self.shown.len());
        let shown: Vec<AcceptedPin> = self.shown.iter().take(keep).cloned().collect();
        let is_same = shown.iter().all(|pin| {
            let PinSubject::Tool(name) = &pin.subject else {
                return false;
            };
            self.offered.get(&**name) == self.shown_texts.get(&**name)
        });
        let accepted = Baseline::acceptance(&self.manifest, &shown);
        assert_eq!(
            accepted.is_ok(),
            is_same,
            "an acceptance is for what was shown"
        );
        let Ok(accepted) = accepted else { return };
        for pin in &shown {
            let name = pin.subject.tool().unwrap();
            let (name, text) = match self.offered.get_key_value(&**name) {
                Some((name, text)) => (*name, Some(*text)),
                None => (TOOLS.into_iter().find(|one| *one == &**name).unwrap(), None),
            };
            match text {
                Some(text) => _ = self.accepted.insert(name, text),
                None => _ = self.accepted.remove(name),
            }
        }
        let now = Timestamp::from_second(self.second).unwrap();
        self.baseline.accept(&accepted, now);
        self.list();
    }

    fn look(&mut self) {
        let entries = self.catalog.entries().flat_map(|entry| entry.tools.iter());
        self.seen = entries
            .map(|tool| {
                let name = TOOLS
                    .into_iter()
                    .find(|name| *name == &*tool.id.tool)
                    .unwrap();
                let text = TEXTS
                    .into_iter()
                    .find(|text| *text == &*tool.tool.description)
                    .unwrap();
                (name, text, tool.tool.version())
            })
            .collect();
    }

    fn call(&mut self) {
        let Some((name, text, version)) = self.rng.choice(self.seen.clone()) else {
            return;
        };
        let named = NamedVersion::from(version);
        let id = NameRef::parse(&format!("bank/{name}"));
        let runs = match self.catalog.find(&id) {
            NameLookup::One(tool) => named.names(tool.tool.version()).then_some(tool),
            NameLookup::Ambiguous(_) | NameLookup::None => None,
        };
        let may_run =
            self.offered.get(name) == Some(&text) && self.accepted.get(name) == Some(&text);
        match runs {
            Some(tool) => {
                assert_eq!(
                    &*tool.tool.description, text,
                    "it ran under another version"
                );
                assert!(may_run, "a held tool ran");
            }
            None => assert!(!may_run, "{name} is as the caller saw it, and was refused"),
        }
    }

    /// What is listed is what is offered and accepted.
    fn check(&self) {
        let entries = self.catalog.entries().flat_map(|entry| entry.tools.iter());
        let listed: BTreeMap<&str, &str> = entries
            .map(|tool| (&*tool.id.tool, &*tool.tool.description))
            .collect();
        let offered = self.offered.iter();
        let expected: BTreeMap<&str, &str> = offered
            .filter(|(name, text)| self.accepted.get(*name) == Some(text))
            .map(|(name, text)| (*name, *text))
            .collect();
        assert_eq!(listed, expected);
    }
}

fn random_texts(rng: &mut Rng) -> Texts {
    let mut texts = Texts::new();
    for name in TOOLS {
        if rng.u8(0..4) > 0 {
            texts.insert(name, TEXTS[rng.usize(0..TEXTS.len())]);
        }
    }
    texts
}

#[test]
fn no_interleaving_lists_or_runs_what_was_not_accepted() {
    let wanted = std::env::var("CALLSHEET_INTERLEAVINGS");
    let interleavings = wanted.map_or(INTERLEAVINGS, |text| text.parse().unwrap());
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for first in 0..threads {
            scope.spawn(move || {
                for seed in (first..interleavings).step_by(threads) {
                    let mut world = World::new(u64::try_from(seed).unwrap());
                    for _ in 0..STEPS {
                        world.step();
                    }
                }
            });
        }
    });
}
