//! What a scenario offers, valid by construction: tools and categories in the Tool Discovery
//! Protocol's own spelling.

use serde_json::{Map, Value};

use super::parameter::{Parameter, append, object_schema};

/// The longest name of a tool, in bytes.
const TOOL_NAME_MAX: usize = 100;
/// The longest id of a category, in characters.
const CATEGORY_ID_MAX: usize = 50;

/// A definition that the protocol does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDefinition {
    /// Not within the protocol's grammar of tool names.
    #[error("`{0}` is not a tool name: use 1 to 100 letters, digits and underscores")]
    ToolName(String),
    /// A category id that is empty, too long, or holds control characters.
    #[error("`{0}` is not a category id: use 1 to 50 characters without control characters")]
    CategoryId(String),
    /// A schema that is not an object's. Holds the tool's name and what is wrong.
    #[error(
        "the parameters of tool `{0}` are no object schema: {1}; use an object with `type` \"object\""
    )]
    Parameters(String, &'static str),
    /// Not within the grammar of scenario names.
    #[error(
        "`{0}` is not a scenario name: use 1 to 100 letters, digits, `.`, `_` or `-`, beginning with a letter or digit"
    )]
    ScenarioName(String),
    /// A base address that no client could use.
    #[error("`{0}` is not a base address: use an absolute `http` or `https` URL")]
    BaseUrl(String),
}

/// One tool (`ToolDefinition` in the protocol). Made with [`ToolDefinition::new`]; each setter
/// replaces what was set before.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    name: String,
    description: String,
    category: Option<String>,
    parameters: Map<String, Value>,
    metadata: Map<String, Value>,
}

/// What a call costs, relative to others (`cost_estimate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Hardly anything.
    Low,
    /// Noticeable.
    Medium,
    /// Think twice.
    High,
    /// Depends on the input.
    Variable,
}

impl ToolDefinition {
    /// A tool without parameters, enabled by default and without approval. `name` is letters,
    /// digits and underscores, as the protocol asks, and at most 100 of them; `description` is what
    /// an LLM reads.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Result<Self, InvalidDefinition> {
        let name = name.into();
        let legal = (1..=TOOL_NAME_MAX).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !legal {
            return Err(InvalidDefinition::ToolName(shortened(&name)));
        }
        let mut metadata = Map::new();
        metadata.insert("enabled_by_default".to_owned(), true.into());
        metadata.insert("requires_approval".to_owned(), false.into());
        Ok(Self {
            name,
            description: description.into(),
            category: None,
            parameters: object_schema(),
            metadata,
        })
    }

    /// The tool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Groups it under the category of this id.
    #[must_use]
    pub fn category(mut self, id: impl Into<String>) -> Self {
        self.category = Some(id.into());
        self
    }

    /// Adds or replaces one parameter.
    #[must_use]
    pub fn parameter(mut self, name: impl Into<String>, parameter: Parameter) -> Self {
        parameter.add_to(&mut self.parameters, name.into());
        self
    }

    /// Replaces the whole input schema. It must be an object schema; a missing `type` or
    /// `properties` is filled in.
    pub fn parameters(mut self, schema: Value) -> Result<Self, InvalidDefinition> {
        let refuse = |reason| InvalidDefinition::Parameters(self.name.clone(), reason);
        let Value::Object(given) = schema else {
            return Err(refuse("the schema is not a JSON object"));
        };
        if given.get("type").is_some_and(|kind| kind != "object") {
            return Err(refuse("its `type` is something else"));
        }
        if given
            .get("properties")
            .is_some_and(|properties| !properties.is_object())
        {
            return Err(refuse("its `properties` is not a JSON object"));
        }
        self.parameters = object_schema();
        self.parameters.extend(given);
        Ok(self)
    }

    /// Whether it is enabled by default.
    #[must_use]
    pub fn enabled_by_default(self, enabled: bool) -> Self {
        self.metadata("enabled_by_default", enabled)
    }

    /// Whether a human must approve each call.
    #[must_use]
    pub fn requires_approval(self, required: bool) -> Self {
        self.metadata("requires_approval", required)
    }

    /// The default time limit of a call.
    #[must_use]
    pub fn timeout_seconds(self, seconds: u32) -> Self {
        self.metadata("timeout_seconds", seconds)
    }

    /// Calls a minute at most.
    #[must_use]
    pub fn rate_limit_per_minute(self, calls: u32) -> Self {
        self.metadata("rate_limit_per_minute", calls)
    }

    /// What a call costs.
    #[must_use]
    pub fn cost_estimate(self, cost: Cost) -> Self {
        self.metadata("cost_estimate", cost.as_str())
    }

    /// Whether a call may take long.
    #[must_use]
    pub fn long_running(self, long: bool) -> Self {
        self.metadata("long_running", long)
    }

    /// Whether a call may safely be made again.
    #[must_use]
    pub fn idempotent(self, idempotent: bool) -> Self {
        self.metadata("idempotent", idempotent)
    }

    /// Replaces the labels.
    #[must_use]
    pub fn tags<T: Into<String>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        let tags: Vec<Value> = tags.into_iter().map(|tag| tag.into().into()).collect();
        self.metadata("tags", tags)
    }

    /// Adds a usage example: what it shows, and the input of the call.
    #[must_use]
    pub fn example(mut self, description: impl Into<String>, input: Value) -> Self {
        let mut example = Map::new();
        example.insert("description".to_owned(), description.into().into());
        example.insert("input".to_owned(), input);
        append(&mut self.metadata, "examples", example.into());
        self
    }

    /// Sets any member of the metadata, for what has no setter of its own.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// The tool in the protocol's spelling, as it is served.
    pub fn to_json(&self) -> Value {
        let mut tool = Map::new();
        tool.insert("name".to_owned(), self.name.as_str().into());
        tool.insert("description".to_owned(), self.description.as_str().into());
        insert_some(&mut tool, "category", self.category.as_deref());
        tool.insert("parameters".to_owned(), self.parameters.clone().into());
        tool.insert("metadata".to_owned(), self.metadata.clone().into());
        tool.into()
    }
}

impl Cost {
    /// The estimate as the protocol writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Variable => "variable",
        }
    }
}

/// A grouping of tools (`ToolCategory` in the protocol).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CategoryDefinition {
    id: String,
    name: String,
    description: Option<String>,
    icon: Option<String>,
    display_order: Option<i32>,
}

impl CategoryDefinition {
    /// A category; tools refer to it by `id`, people read `name`.
    pub fn new(id: impl Into<String>, name: impl Into<String>) -> Result<Self, InvalidDefinition> {
        let id = id.into();
        if !(1..=CATEGORY_ID_MAX).contains(&id.chars().count()) || id.chars().any(char::is_control)
        {
            return Err(InvalidDefinition::CategoryId(shortened(&id)));
        }
        Ok(Self {
            id,
            name: name.into(),
            description: None,
            icon: None,
            display_order: None,
        })
    }

    /// The category's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Says what it groups.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Names an icon for user interfaces.
    #[must_use]
    pub fn icon(mut self, icon: impl Into<String>) -> Self {
        self.icon = Some(icon.into());
        self
    }

    /// Says where user interfaces should put it, smallest first.
    #[must_use]
    pub fn display_order(mut self, order: i32) -> Self {
        self.display_order = Some(order);
        self
    }

    /// The category in the protocol's spelling, as it is served.
    pub fn to_json(&self) -> Value {
        let mut category = Map::new();
        category.insert("id".to_owned(), self.id.as_str().into());
        category.insert("name".to_owned(), self.name.as_str().into());
        insert_some(&mut category, "description", self.description.as_deref());
        insert_some(&mut category, "icon", self.icon.as_deref());
        insert_some(&mut category, "display_order", self.display_order);
        category.into()
    }
}

fn insert_some(object: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        object.insert(key.to_owned(), value.into());
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(120).collect()
}
