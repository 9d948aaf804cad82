//! The sources of the program that callsheet is embedded in.
//!
//! Those with the same id are one source for the engine: each keeps its own set, and what one of
//! them no longer names says nothing about the others. Nothing here looks anywhere by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;

use super::{
    Endpoint, EndpointId, EndpointSet, KnownSources, Source, SourceError, SourceTrust, announce,
    publish_once,
};
use crate::model::{Finding, FindingCode, ScenarioName, SourceAbsence, SourceId, SourceSpec};
use crate::runtime::Stop;

/// The protocol of scenarios inside this process.
pub const NATIVE: &str = "native";

impl SourceId {
    /// The program that callsheet is embedded in.
    pub const EMBEDDED: Self = Self::new(&SourceSpec {
        name: "embedded",
        rank: 0,
        found: "in this program",
        absence: SourceAbsence::HintAlways,
        is_announced: false,
        has_entries: false,
    });
}

/// Several sources with one id as one.
pub struct ProgramSource {
    id: SourceId,
    parts: Vec<Box<dyn Source>>,
}

/// Scenarios inside this process, sent once.
struct InProcessSource(Vec<ScenarioName>);

impl ProgramSource {
    /// These sources, and that of the scenarios inside this process if there are any, each id once.
    /// An id that is one of ours counts as [`SourceId::EMBEDDED`].
    pub fn by_id(
        sources: Vec<Box<dyn Source>>,
        inside: Vec<ScenarioName>,
    ) -> impl Iterator<Item = Self> {
        let mut by_id = BTreeMap::<SourceId, Vec<Box<dyn Source>>>::new();
        if !inside.is_empty() {
            by_id
                .entry(SourceId::EMBEDDED)
                .or_default()
                .push(Box::new(InProcessSource(inside)));
        }
        let ours = KnownSources::with([]);
        for source in sources {
            let is_own = ours.named(source.id().as_str()) == SourceId::UNKNOWN;
            let id = if is_own {
                source.id()
            } else {
                SourceId::EMBEDDED
            };
            by_id.entry(id).or_default().push(source);
        }
        by_id.into_iter().map(|(id, parts)| Self { id, parts })
    }
}

impl Source for ProgramSource {
    fn id(&self) -> SourceId {
        self.id
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        Box::pin(async move {
            let mut sets = Vec::new();
            let mut running = FuturesUnordered::new();
            for (index, source) in self.parts.into_iter().enumerate() {
                let (sender, set) = watch::channel(EndpointSet::default());
                sets.push(set);
                let run = source.run(sender, stop.clone());
                running.push(async move { (index, run.await) });
            }
            let mut failed = BTreeMap::new();
            loop {
                announce(&out, joined(&sets, &failed));
                let changes: FuturesUnordered<_> = sets.iter_mut().map(changed).collect();
                tokio::select! {
                    () = stop.wait() => return Ok(()),
                    _ = changes.into_future() => {}
                    Some((index, ended)) = running.next() => if let Err(error) = ended {
                        failed.insert(index, error.to_string());
                    },
                }
            }
        })
    }
}

/// Waits for ever once the source has ended: its last set stays valid.
async fn changed(set: &mut watch::Receiver<EndpointSet>) {
    if set.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn joined(sets: &[watch::Receiver<EndpointSet>], failed: &BTreeMap<usize, String>) -> EndpointSet {
    let mut whole = EndpointSet {
        initial_scan_done: true,
        ..EndpointSet::default()
    };
    for (index, set) in sets.iter().enumerate() {
        let set = set.borrow();
        // One that failed before it had looked everywhere is waited for no longer.
        whole.initial_scan_done &= set.initial_scan_done || failed.contains_key(&index);
        let own = |id: &EndpointId| EndpointId(format!("{index}/{id}").into());
        whole.endpoints.extend(
            set.endpoints
                .iter()
                .map(|(id, endpoint)| (own(id), endpoint.clone())),
        );
        whole.findings.extend(set.findings.iter().cloned());
    }
    whole.findings.extend(failed.values().map(|message| {
        Finding::new(FindingCode::SourceFailed, message.clone())
            .hint("its last endpoints stay; the program that registered it knows why it ended")
    }));
    whole
}

impl Source for InProcessSource {
    fn id(&self) -> SourceId {
        SourceId::EMBEDDED
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        let endpoint = |name: &ScenarioName| {
            let url = format!("local:{name}").parse().ok()?;
            let protocol = Some(NATIVE.to_owned());
            let endpoint = Endpoint {
                name: Some(name.clone()),
                protocol,
                ..Endpoint::at(url, SourceTrust::Trusted)
            };
            Some((EndpointId(Arc::from(name.as_str())), endpoint))
        };
        let endpoints = self.0.iter().filter_map(endpoint).collect();
        Box::pin(publish_once(
            EndpointSet {
                initial_scan_done: true,
                endpoints,
                findings: Vec::new(),
            },
            out,
            stop,
        ))
    }
}
