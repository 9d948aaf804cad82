//! Providers, which contribute tools to a scenario.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::definition::{CategoryDefinition, ToolDefinition};

/// A call under way: what the tool gives back, or what it says went wrong.
pub type ToolFuture = BoxFuture<'static, Result<Value, String>>;

/// Runs one tool: from its arguments, as they were sent.
pub type Function = Arc<dyn Fn(Value) -> ToolFuture + Send + Sync>;

/// A [`Function`] made of an async function whose error is any text.
pub fn function<F, A, E>(run: F) -> Function
where
    F: Fn(Value) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Value, E>> + Send + 'static,
    E: fmt::Display,
{
    Arc::new(move |arguments| {
        let answer = run(arguments);
        Box::pin(async move { answer.await.map_err(|error| error.to_string()) })
    })
}

/// Contributes tools and categories to a [`Registry`](super::Registry). It is called for each
/// manifest, from any thread, and should answer from memory: the client waits.
pub trait Provider: Send + Sync {
    /// What it is registered as; a later one of the same name replaces it.
    fn name(&self) -> &str;

    /// The tools it offers now.
    fn tools(&self) -> Vec<ToolDefinition>;

    /// The categories its tools are grouped under.
    fn categories(&self) -> Vec<CategoryDefinition> {
        Vec::new()
    }

    /// Begins a call of one of its tools. The arguments come as they were sent, and the tool checks
    /// what it needs. Nothing when the tool is only listed here and runs elsewhere, or not at all.
    fn run(&self, tool: &str, arguments: Value) -> Option<ToolFuture> {
        let _ = (tool, arguments);
        None
    }
}

/// A provider whose offer never changes.
#[derive(Clone)]
pub struct StaticProvider {
    name: String,
    tools: Vec<ToolDefinition>,
    categories: Vec<CategoryDefinition>,
    functions: BTreeMap<String, Function>,
}

impl StaticProvider {
    /// A provider without tools yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            tools: Vec::new(),
            categories: Vec::new(),
            functions: BTreeMap::new(),
        }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: ToolDefinition) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a tool with the function that runs it. The function gets the arguments as they were
    /// sent: it checks what it needs.
    #[must_use]
    pub fn runs<F, A, E>(mut self, tool: ToolDefinition, run: F) -> Self
    where
        F: Fn(Value) -> A + Send + Sync + 'static,
        A: Future<Output = Result<Value, E>> + Send + 'static,
        E: fmt::Display,
    {
        self.functions.insert(tool.name().to_owned(), function(run));
        self.tool(tool)
    }

    /// Adds tools.
    #[must_use]
    pub fn with_tools(mut self, tools: impl IntoIterator<Item = ToolDefinition>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Adds a category.
    #[must_use]
    pub fn category(mut self, category: CategoryDefinition) -> Self {
        self.categories.push(category);
        self
    }
}

impl Provider for StaticProvider {
    fn name(&self) -> &str {
        &self.name
    }

    fn tools(&self) -> Vec<ToolDefinition> {
        self.tools.clone()
    }

    fn categories(&self) -> Vec<CategoryDefinition> {
        self.categories.clone()
    }

    fn run(&self, tool: &str, arguments: Value) -> Option<ToolFuture> {
        self.functions.get(tool).map(|function| function(arguments))
    }
}

impl fmt::Debug for StaticProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticProvider")
            .field("name", &self.name)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
