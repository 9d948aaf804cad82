//! The definitions of this daemon, as a scenario inside its process.
//!
//! They are listed, preferred, searched and published like the tools of every other scenario. The
//! catalog decides which activity runs each. The session itself runs none: a call of a definition
//! is the call of its activity, or its result came with it.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    ConnectError, Fits, Hint, ListError, ListRequest, Listing, Protocol, ProtocolId, Session,
    Validity,
};
use crate::model::{DEFINITIONS, InProcessId, Manifest, ScenarioInfo, Target};
use crate::runtime::Clock;
use crate::transports::Transports;

mod definition;

pub use definition::{Definition, DefinitionError};

/// The protocol's id, which is also the name of the scenario.
pub const ID: ProtocolId = DEFINITIONS;

/// How long a listing counts as fresh. A change is signalled.
const LIFETIME: std::time::Duration = std::time::Duration::from_secs(60);

/// The definitions in use, by name. Clones share them.
#[derive(Debug, Clone)]
pub struct DefinitionRegistry {
    parts: Arc<Mutex<RegistryParts>>,
    all: watch::Sender<Arc<BTreeMap<String, Definition>>>,
    has_registered: watch::Sender<bool>,
}

/// The definitions by where they come from.
#[derive(Debug, Default)]
struct RegistryParts {
    /// Those of the embedding program.
    own: Vec<Definition>,
    /// Those that operators added. They go before the program's.
    registered: Vec<Definition>,
    /// Those of the configuration. They go before all others.
    configured: Vec<Definition>,
}

impl DefinitionRegistry {
    /// Those of the embedding program and of the configuration. Of several with one name the last
    /// one counts.
    pub fn new(own: Vec<Definition>, configured: &[Definition]) -> Self {
        let registry = Self {
            parts: Arc::default(),
            all: watch::Sender::default(),
            has_registered: watch::Sender::default(),
        };
        registry.change(|parts| {
            parts.own = own;
            parts.configured = configured.to_vec();
        });
        registry
    }

    /// Replaces those of the configuration, each of which goes before every other one with its
    /// name.
    pub fn configure(&self, configured: &[Definition]) {
        self.change(|parts| parts.configured = configured.to_vec());
    }

    /// Replaces those that operators added.
    pub fn register(&self, registered: Vec<Definition>) {
        self.change(|parts| parts.registered = registered);
    }

    fn change(&self, change: impl FnOnce(&mut RegistryParts)) {
        let mut parts = self.parts.lock();
        change(&mut parts);
        let RegistryParts {
            own,
            registered,
            configured,
        } = &*parts;
        let all = own
            .iter()
            .chain(registered)
            .chain(configured)
            .map(|one| (one.name().to_owned(), one.clone()));
        let all: BTreeMap<String, Definition> = all.collect();
        self.has_registered.send_replace(!registered.is_empty());
        self.all.send_if_modified(|known| {
            let is_changed = **known != all;
            *known = Arc::new(all);
            is_changed
        });
    }

    /// Whether the embedding program has any.
    pub fn has_own(&self) -> bool {
        !self.parts.lock().own.is_empty()
    }

    /// Those of the embedding program.
    pub fn own(&self) -> Vec<Definition> {
        self.parts.lock().own.clone()
    }

    /// Whether operators added any, now and with each change.
    pub fn has_registered(&self) -> watch::Receiver<bool> {
        self.has_registered.subscribe()
    }
}

impl Protocol for DefinitionRegistry {
    fn id(&self) -> ProtocolId {
        ID
    }

    fn fits(&self, target: &Target) -> Fits {
        match target {
            Target::InProcess(id) if InProcessId::as_str(id) == DEFINITIONS => Fits::Named,
            _ => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        _target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let session = DefinitionSession {
            definitions: self.all.subscribe(),
            clock: transports.clock(),
        };
        Box::pin(ready(Ok(Arc::new(session) as Arc<dyn Session>)))
    }

    fn is_connectionless(&self) -> bool {
        true
    }
}

/// The scenario.
struct DefinitionSession {
    definitions: watch::Receiver<Arc<BTreeMap<String, Definition>>>,
    clock: Clock,
}

impl Session for DefinitionSession {
    fn list<'a>(&'a self, _request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        let definitions = Arc::clone(&self.definitions.borrow());
        let validity = Validity::made_here(self.clock, LIFETIME);
        let manifest = manifest(&definitions);
        Box::pin(ready(Ok(Listing::Manifest {
            manifest,
            findings: Vec::new(),
            quarantined: 0,
            validity,
        })))
    }

    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        let changes = stream::unfold(self.definitions.clone(), |mut definitions| async move {
            definitions.changed().await.ok()?;
            Some((Hint::Changed, definitions))
        });
        Some(stream::once(ready(Hint::Following)).chain(changes).boxed())
    }
}

fn manifest(definitions: &BTreeMap<String, Definition>) -> Manifest {
    let scenario = ScenarioInfo {
        name: DEFINITIONS.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        description: "Tools that are defined by their schemas".into(),
        ..ScenarioInfo::default()
    };
    let tools = definitions
        .values()
        .map(|definition| Arc::new(definition.tool()));
    Manifest::new(scenario, tools.collect()).digested()
}
