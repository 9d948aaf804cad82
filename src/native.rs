//! Native tools: Rust functions of the program that embeds callsheet, as a scenario inside the
//! process.
//!
//! They are described as [`provide`](callsheet_provide) describes tools and pass through the same
//! decoding, merging and preferences as all others, but no request is sent: [`Native`] answers for
//! them. A function runs when it is called, by a caller of tools or by the program itself
//! ([`Callsheet::run_native`](crate::Callsheet::run_native)), never because it was listed.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;
use std::time::Duration;

use callsheet_provide::{
    InvalidDefinition, Provider, Registry, RegistryConfig, ToolDefinition, ToolFuture,
};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::watch;

use crate::discovery::embedded::NATIVE;
use crate::model::{InProcessId, JsonText, ScenarioName, Target};
use crate::protocols::{
    Call, CallContext, CallError, CallIo, ConnectError, ContextFunction, Fits, Hint, ListError,
    ListRequest, Listing, Outcome, Protocol, ProtocolId, Session, Validity, context_function,
    run_function, tool_discovery, without_context,
};
use crate::runtime::Clock;
use crate::transports::{TransportError, Transports};

/// How long a call may take when its tool does not say.
const TIMEOUT: Duration = Duration::from_secs(300);

/// How long a listing counts as fresh. A change is signalled.
const LIFETIME: Duration = Duration::from_secs(60);

/// The tools of one scenario inside this process. Clones share them.
///
/// ```
/// use callsheet::native::NativeTools;
/// use callsheet::provide::{Parameter, ToolDefinition};
/// use callsheet::runtime::Clock;
/// use serde_json::{Value, json};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let add = ToolDefinition::new("add", "Adds two numbers")?
///     .parameter("a", Parameter::number("The one").required())
///     .parameter("b", Parameter::number("The other").required());
/// let tools = NativeTools::new("calculator", "Calculates", Clock::system())?.tool(add, |given: Value| async move {
///     let number = |name: &str| given[name].as_f64().ok_or(format!("`{name}` is not a number"));
///     Ok::<_, String>(json!(number("a")? + number("b")?))
/// });
/// # let _ = tools;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NativeTools {
    name: ScenarioName,
    registry: Registry,
    tools: Arc<Tools>,
}

#[derive(Default)]
struct Tools {
    list: RwLock<Vec<(ToolDefinition, ContextFunction)>>,
    /// Signals each change of the list.
    changes: watch::Sender<()>,
}

impl Tools {
    fn function(&self, tool: &str) -> Option<ContextFunction> {
        let tools = self.list.read();
        tools
            .iter()
            .find(|(known, _)| known.name() == tool)
            .map(|(_, function)| Arc::clone(function))
    }
}

/// Why a native tool did not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NativeError {
    /// No native scenario of this name was registered.
    #[error("no scenario inside this program is called `{0}`")]
    UnknownScenario(ScenarioName),
    /// The scenario has no such tool.
    #[error("`{0}` has no tool called `{1}`")]
    UnknownTool(ScenarioName, String),
    /// The function failed.
    #[error("`{tool}` failed: {message}")]
    Failed {
        /// The tool's original name.
        tool: String,
        /// What the function said.
        message: String,
    },
}

impl NativeTools {
    /// A scenario without tools. Refuses a name that no scenario may have.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        clock: Clock,
    ) -> Result<Self, InvalidDefinition> {
        let about = RegistryConfig {
            scenario_name: name.into(),
            scenario_version: env!("CARGO_PKG_VERSION").to_owned(),
            scenario_description: description.into(),
            ..RegistryConfig::default()
        };
        let name = about.scenario_name.clone();
        let registry = Registry::with_clock(about, move || clock.wall())?;
        // The registry takes the same names.
        let name = name
            .parse()
            .map_err(|_| InvalidDefinition::ScenarioName(name))?;
        let tools = Arc::<Tools>::default();
        registry.register(Offered(Arc::clone(&tools)));
        Ok(Self {
            name,
            registry,
            tools,
        })
    }

    /// Adds a tool with the function that runs it, or replaces the one of the same name. The
    /// function gets the arguments as they are: it checks what it needs.
    #[must_use]
    pub fn tool<F, A, E>(self, definition: ToolDefinition, function: F) -> Self
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: fmt::Display,
    {
        self.add(definition, function);
        self
    }

    /// The same while it is in use; the list shows it at once.
    pub fn add<F, A, E>(&self, definition: ToolDefinition, function: F)
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: fmt::Display,
    {
        self.put(
            definition,
            without_context(callsheet_provide::function(function)),
        );
    }

    /// Adds a tool whose function also learns of its caller, until when its answer is waited for,
    /// and that the caller cancelled the call.
    pub fn add_with_context<F, A, E>(&self, definition: ToolDefinition, function: F)
    where
        F: Fn(Value, CallContext) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: fmt::Display,
    {
        self.put(definition, context_function(function));
    }

    fn put(&self, definition: ToolDefinition, function: ContextFunction) {
        let mut tools = self.tools.list.write();
        tools.retain(|(known, _)| known.name() != definition.name());
        tools.push((definition, function));
        self.tools.changes.send_replace(());
    }

    /// Adds a function that runs definitions, and is no tool for LLMs itself: as an activity it
    /// gets the arguments that fit its definition. While it is in use, the next revision has it.
    pub fn add_activity<F, A, E>(&self, name: &str, function: F) -> Result<(), InvalidDefinition>
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: fmt::Display,
    {
        let definition =
            ToolDefinition::new(name, format!("Runs definitions as the activity {name}"))?;
        self.add(definition.metadata("internal_only", true), function);
        Ok(())
    }

    /// Takes a tool or an activity out. Returns whether it was there.
    pub fn remove(&self, tool: &str) -> bool {
        let mut tools = self.tools.list.write();
        let before = tools.len();
        tools.retain(|(known, _)| known.name() != tool);
        let is_removed = tools.len() < before;
        self.tools.changes.send_replace(());
        is_removed
    }

    /// The scenario's name.
    pub fn name(&self) -> &ScenarioName {
        &self.name
    }

    /// Runs a tool by its original name.
    pub async fn run(&self, tool: &str, arguments: Value) -> Result<Value, NativeError> {
        let function = self.function(tool)?;
        function(arguments, CallContext::of_program())
            .await
            .map_err(|message| NativeError::Failed {
                tool: tool.to_owned(),
                message,
            })
    }

    fn function(&self, tool: &str) -> Result<ContextFunction, NativeError> {
        self.tools
            .function(tool)
            .ok_or_else(|| NativeError::UnknownTool(self.name.clone(), tool.to_owned()))
    }
}

impl fmt::Debug for NativeTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeTools")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The registry's view of these tools.
struct Offered(Arc<Tools>);

impl Provider for Offered {
    fn name(&self) -> &'static str {
        NATIVE
    }

    fn tools(&self) -> Vec<ToolDefinition> {
        let tools = self.0.list.read();
        tools
            .iter()
            .map(|(definition, _)| definition.clone())
            .collect()
    }

    fn run(&self, tool: &str, arguments: Value) -> Option<ToolFuture> {
        let function = self.0.function(tool)?;
        Some(function(arguments, CallContext::of_program()))
    }
}

/// The protocol that answers for scenarios inside this process.
#[derive(Debug)]
pub(crate) struct Native(pub(crate) BTreeMap<ScenarioName, NativeTools>);

impl Protocol for Native {
    fn id(&self) -> ProtocolId {
        NATIVE
    }

    fn fits(&self, target: &Target) -> Fits {
        match self.at(target) {
            Some(_) => Fits::Probe {
                at: "inside this program",
            },
            None => Fits::Never,
        }
    }

    fn connect<'a>(
        &'a self,
        target: &'a Target,
        transports: &'a Transports,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, ConnectError>> {
        let session = self.at(target).map(|tools| {
            Arc::new(Inside {
                tools: tools.clone(),
                clock: transports.clock(),
            }) as _
        });
        let session = session.ok_or_else(|| {
            ConnectError::NotThisProtocol("it is not inside this program".to_owned())
        });
        Box::pin(ready(session))
    }

    fn is_connectionless(&self) -> bool {
        true
    }
}

impl Native {
    fn at(&self, target: &Target) -> Option<&NativeTools> {
        let Target::InProcess(id) = target else {
            return None;
        };
        self.0
            .values()
            .find(|tools| tools.name.as_str() == InProcessId::as_str(id))
    }
}

/// One scenario inside this process.
struct Inside {
    tools: NativeTools,
    clock: Clock,
}

impl Session for Inside {
    fn list<'a>(&'a self, request: &'a ListRequest) -> BoxFuture<'a, Result<Listing, ListError>> {
        Box::pin(async move {
            let document = self.tools.registry.manifest().to_string();
            let decoded = tool_discovery::decode(document.as_bytes(), &request.accept)?;
            let tool_discovery::Decoded {
                manifest,
                findings,
                quarantined,
                ..
            } = decoded;
            let validity = Validity::made_here(self.clock, LIFETIME);
            Ok(Listing::Manifest {
                manifest,
                findings,
                quarantined,
                validity,
            })
        })
    }

    fn hints(&self) -> Option<BoxStream<'static, Hint>> {
        let changes = stream::unfold(
            self.tools.tools.changes.subscribe(),
            |mut changes| async move {
                changes.changed().await.ok()?;
                Some((Hint::Changed, changes))
            },
        );
        Some(stream::once(ready(Hint::Following)).chain(changes).boxed())
    }

    fn call<'a>(
        &'a self,
        call: &'a Call,
        io: &'a dyn CallIo,
    ) -> BoxFuture<'a, Result<Outcome, CallError>> {
        Box::pin(async move {
            let arguments = serde_json::from_str(call.arguments.get());
            let Ok(arguments) = arguments else {
                return Err(CallError::NotCallable(
                    "the arguments are no JSON".to_owned(),
                ));
            };
            let limit = call.limit(TIMEOUT);
            let function = match self.tools.function(&call.tool) {
                Ok(function) => function,
                Err(error) => {
                    let code = Some("unknown_tool".to_owned());
                    return Ok(Outcome::failed(None, error.to_string(), code));
                }
            };
            let deadline = self.clock.now() + limit;
            let run = |context| function(arguments, context);
            let Some(ran) = run_function(run, call.caller.clone(), deadline, io).await else {
                let url = format!("local:{}", self.tools.name);
                return Err(CallError::Unanswered(TransportError::Timeout {
                    url,
                    limit,
                }));
            };
            Ok(match ran {
                Ok(result) => Outcome::done(JsonText::known(result.to_string())),
                Err(message) => Outcome::failed(None, message, None),
            })
        })
    }
}
