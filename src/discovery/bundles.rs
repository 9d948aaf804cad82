//! The bundles of stored tools below `bundles.path`, as scenarios.
//!
//! A bundle that is disabled stays a scenario, without tools; one that is deleted is none.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Endpoint, EndpointId, EndpointSet, Source, SourceError, SourceTrust, announce};
use crate::bundles::{BundleSet, BundleStore};
use crate::model::{BundleId, SourceAbsence, SourceId, SourceSpec};
use crate::runtime::Stop;

/// The protocol of bundles.
pub const BUNDLE: &str = "bundle";

impl SourceId {
    /// The folder of bundles that `[bundles] path` names.
    pub const BUNDLES: Self = Self::new(&SourceSpec {
        name: "bundles",
        rank: 20,
        found: "in the folder of bundles",
        absence: SourceAbsence::Decision("its bundle was deleted"),
        is_announced: false,
        has_entries: false,
    });
}

/// The source of bundles. It reads nothing itself: the store follows the folder.
#[derive(Debug)]
pub struct BundleSource(watch::Receiver<std::sync::Arc<BundleSet>>);

impl BundleSource {
    /// The source of this store, which was read; `None` if no folder is configured.
    pub fn new(store: &BundleStore) -> Option<Self> {
        store.is_on().then(|| Self(store.subscribe()))
    }
}

impl Source for BundleSource {
    fn id(&self) -> SourceId {
        SourceId::BUNDLES
    }

    fn run(
        self: Box<Self>,
        out: watch::Sender<EndpointSet>,
        stop: Stop,
    ) -> BoxFuture<'static, Result<(), SourceError>> {
        let mut sets = self.0;
        async move {
            loop {
                let set = endpoints(&sets.borrow_and_update());
                announce(&out, set);
                tokio::select! {
                    () = stop.wait() => return Ok(()),
                    changed = sets.changed() => if changed.is_err() {
                        stop.wait().await;
                        return Ok(());
                    },
                }
            }
        }
        .boxed()
    }
}

fn endpoints(set: &BundleSet) -> EndpointSet {
    let endpoint = |bundle: &crate::bundles::StoredBundle| {
        let target = BundleId::new(bundle.definition.id)?.into();
        let name = Some(bundle.scenario.clone());
        let protocol = Some(BUNDLE.to_owned());
        let id = EndpointId(bundle.definition.id.to_string().into());
        Some((
            id,
            Endpoint {
                name,
                protocol,
                ..Endpoint::new(target, SourceTrust::Trusted)
            },
        ))
    };
    let endpoints = set.listed().filter_map(|bundle| endpoint(bundle)).collect();
    EndpointSet {
        initial_scan_done: true,
        endpoints,
        findings: set.findings.clone(),
    }
}
