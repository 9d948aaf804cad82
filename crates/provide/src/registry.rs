//! Merges what the providers offer into one manifest, and notices when it has changed.
//!
//! Tools are sorted by name and categories by id, bytewise, so that the same offer gives the same
//! bytes in any order of registration.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use jiff::Timestamp;
use serde_json::{Map, Value};
use xxhash_rust::xxh3::xxh3_128;

use super::definition::InvalidDefinition;
use super::json_rpc::offer::RpcOffer;
use super::provider::{Provider, ToolFuture};

/// The version of the protocol that manifests are written in.
const PROTOCOL_VERSION: &str = "1.0";

/// Characters of a scenario name at most.
const SCENARIO_NAME_MAX: usize = 100;
/// Characters of a refused name that an error quotes.
const SHOWN_CHARS: usize = 120;

/// The identity of the scenario, and how long its manifest may be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryConfig {
    /// Its identifier: 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit.
    pub scenario_name: String,
    /// Its own version, semantic by the protocol's wish.
    pub scenario_version: String,
    /// What it is, for people.
    pub scenario_description: String,
    /// Where its API is, for consumers elsewhere; an absolute `http` or `https` URL.
    pub base_url: Option<String>,
    /// How long consumers may use a manifest without another request, in whole seconds
    /// (`Cache-Control: max-age`).
    pub max_age: Duration,
}

impl Default for RegistryConfig {
    /// No name, which must be given; version 0.1.0; 60 seconds, as the protocol requires.
    fn default() -> Self {
        Self {
            scenario_name: String::new(),
            scenario_version: "0.1.0".to_owned(),
            scenario_description: String::new(),
            base_url: None,
            max_age: Duration::from_secs(60),
        }
    }
}

/// The providers of one scenario and the manifest they make together. Clones share the same
/// providers; it may be changed while it is served.
#[derive(Clone)]
pub struct Registry(Arc<RegistryState>);

struct RegistryState {
    config: RegistryConfig,
    now: Box<dyn Fn() -> Timestamp + Send + Sync>,
    /// In the order they first came.
    providers: RwLock<Vec<Arc<dyn Provider>>>,
    /// What was last served.
    current: Mutex<Option<Arc<ServedOffer>>>,
    /// How many parts of the program are still starting.
    starting: AtomicUsize,
}

/// A part of the program that is still starting, until this is dropped; see
/// [`Registry::starting`].
#[must_use = "the program counts as started when this is dropped"]
pub struct Starting(Arc<RegistryState>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.starting.fetch_sub(1, Ordering::Release);
    }
}

impl fmt::Debug for Starting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starting")
    }
}

/// A tool that is left out because an earlier provider offers one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shadowed {
    /// The name they share.
    pub tool: String,
    /// The provider whose tool is left out.
    pub provider: String,
    /// The provider whose tool is served.
    pub kept: String,
}

/// What comes of a request to run a tool.
pub(super) enum CallStart {
    /// It runs.
    Runs(ToolFuture),
    /// It is listed, and that is all.
    ListedOnly,
    /// No provider offers it.
    Unknown,
}

/// One state of the offer, ready to be sent.
pub(super) struct ServedOffer {
    /// The manifest.
    pub(super) manifest: JsonDocument,
    /// Each tool alone, by name.
    pub(super) tools: BTreeMap<String, JsonDocument>,
    shadowed: Vec<Shadowed>,
    /// The same over JSON-RPC, once it was requested so.
    rpc: OnceLock<RpcOffer>,
}

impl ServedOffer {
    /// The offer over JSON-RPC.
    pub(super) fn rpc(&self) -> &RpcOffer {
        let tool =
            |document: &JsonDocument| serde_json::from_slice(&document.body).unwrap_or_default();
        self.rpc
            .get_or_init(|| RpcOffer::new(self.tools.values().map(tool)))
    }
}

/// A JSON text with the digest of its content (`generated_at` left out), which is equal for equal
/// content.
#[derive(Clone)]
pub(super) struct JsonDocument {
    pub(super) body: Bytes,
    pub(super) digest: u128,
}

impl Registry {
    /// A registry without providers, which is a valid scenario. Refuses a name or base address that
    /// no consumer could use.
    pub fn new(config: RegistryConfig) -> Result<Self, InvalidDefinition> {
        Self::with_clock(config, system_time)
    }

    /// The same, with a clock of the program's own for `generated_at`.
    pub fn with_clock(
        config: RegistryConfig,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> Result<Self, InvalidDefinition> {
        if !is_scenario_name(&config.scenario_name) {
            return Err(InvalidDefinition::ScenarioName(
                config.scenario_name.chars().take(SHOWN_CHARS).collect(),
            ));
        }
        if let Some(text) = &config.base_url {
            let usable = text
                .parse::<Uri>()
                .is_ok_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
            if !usable {
                return Err(InvalidDefinition::BaseUrl(text.clone()));
            }
        }
        let providers = RwLock::default();
        let current = Mutex::default();
        let starting = AtomicUsize::new(0);
        Ok(Self(Arc::new(RegistryState {
            config,
            now: Box::new(now),
            providers,
            current,
            starting,
        })))
    }

    /// Says that a part of the program is still starting: until the returned value is dropped, all
    /// routes answer 503, so that no client takes a half-filled list for the whole one. Consumers
    /// come back soon and keep what they knew.
    pub fn starting(&self) -> Starting {
        self.0.starting.fetch_add(1, Ordering::Release);
        Starting(Arc::clone(&self.0))
    }

    /// Whether a part of the program is still starting.
    pub fn is_starting(&self) -> bool {
        self.0.starting.load(Ordering::Acquire) > 0
    }

    /// The identity of the scenario.
    pub fn config(&self) -> &RegistryConfig {
        &self.0.config
    }

    /// Adds a provider, or replaces the one of the same name, whose place it takes.
    pub fn register(&self, provider: impl Provider + 'static) {
        let provider: Arc<dyn Provider> = Arc::new(provider);
        let mut providers = self
            .0
            .providers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        match providers
            .iter_mut()
            .find(|known| known.name() == provider.name())
        {
            Some(known) => *known = provider,
            None => providers.push(provider),
        }
    }

    /// Removes the provider of this name; false when there is none.
    pub fn unregister(&self, name: &str) -> bool {
        let mut providers = self
            .0
            .providers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let before = providers.len();
        providers.retain(|provider| provider.name() != name);
        providers.len() < before
    }

    /// The manifest as it is served now (`ToolManifest` in the protocol).
    ///
    /// When two providers offer a tool of the same name, the one that was registered first is
    /// served, so that no newcomer can take over a tool; [`Registry::shadowed`] lists the other. Of
    /// two categories with the same id the last registered is served, as the protocol's first
    /// implementation does. `generated_at` is when the registry first saw this content.
    pub fn manifest(&self) -> Value {
        serde_json::from_slice(&self.offer().manifest.body).unwrap_or_default()
    }

    /// The tools that are left out because an earlier provider offers one of the same name.
    pub fn shadowed(&self) -> Vec<Shadowed> {
        self.offer().shadowed.clone()
    }

    /// Begins a call, by the provider whose tool of that name is served.
    pub(super) fn run(&self, tool: &str, arguments: Value) -> CallStart {
        // Asked outside the lock, as for a manifest.
        let providers = self
            .0
            .providers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let owner = providers
            .iter()
            .find(|provider| provider.tools().iter().any(|own| own.name() == tool));
        match owner.map(|provider| provider.run(tool, arguments)) {
            Some(Some(running)) => CallStart::Runs(running),
            Some(None) => CallStart::ListedOnly,
            None => CallStart::Unknown,
        }
    }

    /// Collects the offer of the providers; it is the last one again if it has not changed.
    pub(super) fn offer(&self) -> Arc<ServedOffer> {
        // Providers are called outside the locks: they may take their time, and may use the
        // registry themselves.
        let providers = self
            .0
            .providers
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let merged = MergedDefinitions::from_providers(&providers);
        let content = merged.content(&self.0.config);
        let digest = xxh3_128(content.as_bytes());
        let mut current = self
            .0
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match &*current {
            Some(offer) if offer.manifest.digest == digest && offer.shadowed == merged.shadowed => {
                Arc::clone(offer)
            }
            known => {
                // When only a shadowed tool came or went, what is served is still the same.
                let manifest = known
                    .as_ref()
                    .filter(|offer| offer.manifest.digest == digest)
                    .map_or_else(
                        || JsonDocument {
                            body: stamped(&content, (self.0.now)()),
                            digest,
                        },
                        |offer| offer.manifest.clone(),
                    );
                let offer = Arc::new(merged.offer(manifest));
                warn_of_shadowed(known.as_deref(), &offer);
                *current = Some(Arc::clone(&offer));
                offer
            }
        }
    }
}

/// What the providers offer together.
struct MergedDefinitions {
    /// By name, with the provider that it is of.
    tools: BTreeMap<String, (String, Value)>,
    /// By id.
    categories: BTreeMap<String, Value>,
    shadowed: Vec<Shadowed>,
}

impl MergedDefinitions {
    fn from_providers(providers: &[Arc<dyn Provider>]) -> Self {
        let mut tools = BTreeMap::<String, (String, Value)>::new();
        let mut categories = BTreeMap::new();
        let mut shadowed = Vec::new();
        for provider in providers {
            for tool in provider.tools() {
                let name = tool.name().to_owned();
                let provider = provider.name().to_owned();
                match tools.get(&name) {
                    Some((kept, _)) => shadowed.push(Shadowed {
                        tool: name,
                        provider,
                        kept: kept.clone(),
                    }),
                    None => drop(tools.insert(name, (provider, tool.to_json()))),
                }
            }
            for category in provider.categories() {
                categories.insert(category.id().to_owned(), category.to_json());
            }
        }
        shadowed.sort();
        Self {
            tools,
            categories,
            shadowed,
        }
    }

    /// The manifest without `generated_at`.
    fn content(&self, config: &RegistryConfig) -> String {
        let mut scenario = Map::new();
        scenario.insert("name".to_owned(), config.scenario_name.as_str().into());
        scenario.insert(
            "version".to_owned(),
            config.scenario_version.as_str().into(),
        );
        scenario.insert(
            "description".to_owned(),
            config.scenario_description.as_str().into(),
        );
        if let Some(url) = &config.base_url {
            scenario.insert("base_url".to_owned(), url.as_str().into());
        }
        let tools: Vec<Value> = self.tools.values().map(|(_, tool)| tool.clone()).collect();
        let categories: Vec<Value> = self.categories.values().cloned().collect();
        let mut manifest = Map::new();
        manifest.insert("protocol_version".to_owned(), PROTOCOL_VERSION.into());
        manifest.insert("scenario".to_owned(), scenario.into());
        manifest.insert("tools".to_owned(), tools.into());
        manifest.insert("categories".to_owned(), categories.into());
        Value::from(manifest).to_string()
    }

    fn offer(self, manifest: JsonDocument) -> ServedOffer {
        let document = |(name, (_, tool)): (String, (String, Value))| {
            let text = tool.to_string();
            let digest = xxh3_128(text.as_bytes());
            (
                name,
                JsonDocument {
                    body: text.into(),
                    digest,
                },
            )
        };
        let tools = self.tools.into_iter().map(document).collect();
        ServedOffer {
            manifest,
            tools,
            shadowed: self.shadowed,
            rpc: OnceLock::new(),
        }
    }
}

/// Whether a text is within the grammar of scenario names.
fn is_scenario_name(text: &str) -> bool {
    let legal = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    text.len() <= SCENARIO_NAME_MAX
        && text
            .bytes()
            .next()
            .is_some_and(|first| first.is_ascii_alphanumeric())
        && text.bytes().all(legal)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place in this crate that reads time"
)]
fn system_time() -> Timestamp {
    Timestamp::now()
}

/// `content`, which is the text of a JSON object, with `generated_at` as its last member.
fn stamped(content: &str, at: Timestamp) -> Bytes {
    let open = content.strip_suffix('}').unwrap_or(content);
    format!(r#"{open},"generated_at":"{at}"}}"#).into()
}

fn warn_of_shadowed(before: Option<&ServedOffer>, now: &ServedOffer) {
    for one in &now.shadowed {
        if before.is_none_or(|before| !before.shadowed.contains(one)) {
            tracing::warn!(
                tool = one.tool,
                provider = one.provider,
                kept = one.kept,
                "a tool is left out because an earlier provider offers one of the same name"
            );
        }
    }
}
