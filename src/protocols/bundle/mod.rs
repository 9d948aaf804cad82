//! Bundles of stored tools: each is a scenario whose tools are requests, or functions of the
//! embedding program.
//!
//! ```text
//! list: StoredBundle -> usable (can it run?) -> listing -> decoder of tool_discovery -> Manifest
//! call: Call -> stored tool -> request -> allowed host, checked address -> answer -> Outcome
//!                           -> function of the program | built_in
//! ```
//!
//! What is kept true here:
//!
//! - A list is made of what the store has read, so it waits for no file.
//! - A call sends what the tool's file says, to an allowed host at the address that was checked. Of
//!   the call it takes the arguments alone.
//! - What goes wrong between a tool and its API is that tool's failure, and does not count against
//!   the other tools of the bundle.
//! - A request is sent again only if it was not sent, or if its method may be repeated.
//! - A tool that cannot be run here is left out, with a finding.
//!
//! Read in this order: this file (the session), `listing.rs`, `usable.rs`, `call.rs`, `answer.rs`,
//! `built_in.rs` (the tools that need no API).
//!
//! It never writes a file.

mod answer;
mod built_in;
mod call;
mod listing;
mod usable;

pub(crate) use listing::listed_tool;
pub use usable::left_out;

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream};
use tokio::sync::watch;
use uuid::Uuid;

use super::{
    Call, CallError, CallIo, ConnectError, Fits, Hint, ListError, ListRequest, Listing, Outcome,
    Protocol, ProtocolId, Session, Validity,
};
use crate::bundles::{BundleStore, StoredBundle};
use crate::model::{Manifest, Target};
use crate::transports::Transports;

/// The id of this protocol, as the configuration and answers have it.
pub const ID: ProtocolId = "bundle";

/// How long a listing counts as fresh; changes are signalled.
const LIFETIME: Duration = Duration::from_secs(60);

/// The protocol of the bundles of one store.
#[derive(Debug)]
pub struct BundleProtocol(pub(crate) BundleStore);

/// The session of one bundle, which reads the store at each listing and call.
#[derive(Debug)]
pub struct BundleSession {
    id: Uuid,
    store: BundleStore,
    transports: Transports,
}

impl Protocol for BundleProtocol {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::Bundle(_) => Fits::Probe {
                at: "the folder of bundles",
            },
            Target::Http(_) | Target::Stdio(_) | Target::InProcess(_) => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let session = match target {
            Target::Bundle(id) => {
                let store = self.0.clone();
                let transports = transports.clone();
                Ok(Arc::new(BundleSession {
                    id: id.uuid(),
                    store,
                    transports,
                }) as _)
            }
            other => Err(ConnectError::NotThisProtocol(format!(
                "{other} is no bundle"
            ))),
        };
        Box::pin(ready(session))
    }

    fn is_connectionless(&self) -> bool {
        true
    }
}

/// The manifest of a bundle with all its tools, also those that are disabled or cannot be run.
pub fn whole_manifest(bundle: &StoredBundle) -> Option<Manifest> {
    listing::whole(bundle)
}

impl BundleSession {
    /// The bundle as it is now.
    fn bundle(&self) -> Option<Arc<StoredBundle>> {
        self.store.set().bundle(self.id).ok().cloned()
    }
}

impl Session for BundleSession {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        let listed = self
            .bundle()
            .ok_or_else(|| ListError::Malformed("its bundle was deleted".to_owned()));
        let listed = listed.and_then(|bundle| {
            let decoded = listing::decode(&bundle, &self.store, request)?;
            let validity = Validity::made_here(self.transports.clock(), LIFETIME);
            let (manifest, findings, quarantined) = decoded;
            Ok(Listing::Manifest {
                manifest,
                findings,
                quarantined,
                validity,
            })
        });
        Box::pin(ready(listed))
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(self.run(call, io))
    }

    /// Every change of the bundle and of the settings.
    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        let followed = BundleChanges {
            id: self.id,
            bundle: self.bundle(),
            sets: self.store.subscribe(),
            settings: self.store.follow_settings(),
        };
        let changes = stream::unfold(followed, |mut followed| async move {
            followed.changed().await?;
            Some((Hint::Changed, followed))
        });
        Some(stream::iter([Hint::Following]).chain(changes).boxed())
    }
}

/// What the hints of a session come from.
struct BundleChanges {
    id: Uuid,
    /// The bundle as it was when a hint was given last.
    bundle: Option<Arc<StoredBundle>>,
    sets: watch::Receiver<Arc<crate::bundles::BundleSet>>,
    settings: watch::Receiver<Arc<crate::bundles::BundleSettings>>,
}

impl BundleChanges {
    /// Waits for a change; `None` when there will be none.
    async fn changed(&mut self) -> Option<()> {
        loop {
            tokio::select! {
                changed = self.sets.changed() => changed.ok()?,
                changed = self.settings.changed() => return changed.ok(),
            }
            let now = self.sets.borrow_and_update().bundle(self.id).ok().cloned();
            if now != self.bundle {
                self.bundle = now;
                return Some(());
            }
        }
    }
}
