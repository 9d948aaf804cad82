//! Who contributes tools to a scenario.

use super::definition::{CategoryDefinition, ToolDefinition};

/// Contributes tools and categories to a [`Registry`](super::Registry). It is asked anew for each manifest, from any thread, and should
/// answer from memory: the asker waits.
pub trait Provider: Send + Sync {
    /// What it is registered as; a later one of the same name replaces it.
    fn name(&self) -> &str;

    /// The tools it offers now.
    fn tools(&self) -> Vec<ToolDefinition>;

    /// The categories its tools are grouped under.
    fn categories(&self) -> Vec<CategoryDefinition> {
        Vec::new()
    }
}

/// A provider whose offer never changes.
#[derive(Debug, Clone)]
pub struct StaticProvider {
    name: String,
    tools: Vec<ToolDefinition>,
    categories: Vec<CategoryDefinition>,
}

impl StaticProvider {
    /// A provider that offers nothing yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), tools: Vec::new(), categories: Vec::new() }
    }

    /// Adds a tool.
    #[must_use]
    pub fn tool(mut self, tool: ToolDefinition) -> Self {
        self.tools.push(tool);
        self
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
}
